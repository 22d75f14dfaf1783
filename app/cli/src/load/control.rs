//! A controller: it sends nothing itself, watches its workers, and reports for them.
//!
//! With `--console` its page shows each worker while it runs. With `--console-control` the workers wait, once all are
//! ready, until the page starts them, and the page can end them early.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use linkweir_console::Order;
use linkweir_load::measure::{Figures, Progress};
use linkweir_record::human::moment;

use super::args::LoadArgs;
use super::conclude::{self, Beside};
use super::interim::Interim;
use super::live::{Board, LoadView};
use super::report::Files;
use super::roles::{Asked, Link, Operator, terms};
use super::table::Speaker;
use super::target::Target;
use super::written;
use crate::clock::{now, timestamp};
use crate::exit::{Exit, say};
use crate::outputs;
use crate::signals::Signals;
use crate::view::{Subject, View};

/// How often the clock of the statistics moves on.
const TICK: Duration = Duration::from_millis(100);
/// How long the figures of a worker that were asked for may take.
const REPORTED: Duration = Duration::from_secs(5);

/// Waits for the workers, lets them run, and reports for them.
pub(super) fn control(
    args: &LoadArgs,
    target: &Target,
    files: Files,
    signals: &Signals,
) -> anyhow::Result<Exit> {
    conclude::may_control(args)?;
    let (orders, given) = channel();
    let subject = Subject {
        orders: args.roles.console_control.then_some(orders),
        ..subject(args)
    };
    outputs::restrict_reader(written(args).into_iter().map(|(_, path)| path))?;
    let view: LoadView = View::start(&args.view, &subject, signals)?;
    let interval = args.view.interval.unwrap_or(super::INTERVAL);
    let progress = if view.is_wanted() {
        interval
    } else {
        Duration::ZERO
    };
    drop(subject);
    let header = conclude::header(args, target, None);
    let mut operator = Watcher {
        board: Board::new(args, view, "controller", 0),
        interval,
        orders: given,
        signals,
        ticked: now(),
        interim: Interim::start(args, &header, files)?,
        figures: BTreeMap::new(),
        running: 0,
        asked: None,
    };
    let stop = || signals.stop();
    let link = Link::open_with(&args.roles, &terms(args)?, &stop, progress, &mut operator)?;
    let mut link = link.context("a controller has workers")?;
    if args.roles.console_control && !args.output.quiet {
        say("linkweir: all workers are here; the page starts them");
    }
    let begin = link.agree_with(args.roles.console_control, &mut operator)?;
    operator.board.begin(begin.at);
    if !args.output.quiet {
        say(&format!(
            "linkweir: all are ready; the first session starts at {}",
            moment(begin.at.as_nanos())
        ));
    }
    let gathered = link.finish_with(&Figures::default(), &mut operator)?;
    let gathered = gathered.context("a controller reports")?;
    let files = operator.interim.finish()?;
    let undelivered = operator.board.finish(timestamp());
    conclude::for_workers(args, header, &gathered, files, undelivered)
}

/// What a run of load is to those who look at it.
pub(super) fn subject(args: &LoadArgs) -> Subject<'_> {
    let written = written(args);
    let files: Vec<_> = written
        .into_iter()
        .filter(|(flag, _)| *flag != "-w")
        .collect();
    Subject {
        end: args.output.store.end(),
        ..Subject::of_run(&args.url, true, &args.output.write, &files)
    }
}

/// Looks at the workers.
struct Watcher<'a> {
    board: Board,
    interval: Duration,
    orders: Receiver<Order>,
    signals: &'a Signals,
    ticked: Instant,
    interim: Interim,
    /// The last figures of each worker: those of the end, or as they were asked for.
    figures: BTreeMap<usize, Figures>,
    running: usize,
    /// Workers whose figures are to come for a report, and until when they are waited for.
    asked: Option<(Vec<usize>, Instant)>,
}

impl Operator for Watcher<'_> {
    fn came(&mut self, peer: SocketAddr) {
        self.running += 1;
        self.board.add(peer.to_string());
    }

    /// It counts in the middle of the interval before: it was said when that had ended.
    fn progress(&mut self, worker: usize, progress: Progress) {
        let half = linkweir_wire::nanos(self.interval / 2);
        let at_ns = timestamp().as_nanos().saturating_sub(half);
        self.board.look(worker, at_ns, progress);
    }

    fn interim(&mut self, worker: usize, figures: Figures) {
        self.figures.insert(worker, figures);
        self.came_in(worker);
    }

    fn ended(&mut self, worker: usize, with: Result<Figures, &str>) {
        self.running = self.running.saturating_sub(1);
        self.board.ended(worker, with.as_ref().err().copied());
        if let Ok(figures) = with {
            self.figures.insert(worker, figures);
        }
        self.came_in(worker);
    }

    fn ask(&mut self) -> Asked {
        let mut asked = Asked::default();
        for order in self.orders.try_iter() {
            match order {
                Order::Start => asked.start = true,
                Order::Stop => asked.stop = true,
            }
        }
        if asked.stop || self.signals.stop() {
            self.board.stopping();
        }
        if self.asked.is_none() && self.interim.is_free() && self.signals.take_report() {
            asked.report = true;
            let all = (0..self.board.generators()).filter(|one| self.board.runs(*one));
            self.asked = Some((all.collect(), now() + REPORTED));
            self.report_if_complete();
        }
        if now().duration_since(self.ticked) >= TICK {
            self.ticked = now();
            self.board.show(timestamp());
            self.report_if_complete();
        }
        asked
    }
}

impl Watcher<'_> {
    fn came_in(&mut self, worker: usize) {
        if let Some((awaited, _)) = &mut self.asked {
            awaited.retain(|one| *one != worker);
        }
        self.report_if_complete();
    }

    /// Writes the report that was asked for once the figures of all are here, or have been waited for long enough.
    fn report_if_complete(&mut self) {
        let is_complete =
            |(awaited, until): &(Vec<usize>, Instant)| awaited.is_empty() || now() >= *until;
        if !self.asked.as_ref().is_some_and(is_complete) {
            return;
        }
        self.asked = None;
        let mut all = Figures::default();
        self.figures.values().for_each(|one| all.merge(one));
        let beside = Beside {
            begun: self.board.begun(),
            ..Beside::default()
        };
        self.interim.write(all, beside, Speaker::default());
    }
}
