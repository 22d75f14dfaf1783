//! What happens while a run goes on: a table on a terminal, drawn over itself each second; a line each
//! second elsewhere, where it was asked for.

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linkweir_load::measure::Figures;
use linkweir_record::human::{scaled, span, thousands};
use linkweir_sketch::Coarse;

use crate::clock::now;
use crate::exit::say;
use crate::screen::{listed, rows};

/// How often.
const EVERY: Duration = Duration::from_secs(1);

/// What is shown of a run at a moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    started: u64,
    completed: u64,
    open: u64,
    requests: u64,
    responses: u64,
    failed: Vec<(String, u64)>,
    recent: Coarse,
    lag_p50: Option<u64>,
    lag_p99: Option<u64>,
}

impl Snapshot {
    /// Of the figures so far and the response times since the last snapshot. Costs some microseconds.
    pub(super) fn new(figures: &Figures, recent: Coarse) -> Self {
        let lag = &figures.stages.lag;
        let failed = figures.failed.iter().filter(|(_, count)| *count > 0);
        Self {
            started: figures.started,
            completed: figures.completed,
            open: figures.open.now(),
            requests: figures.requests,
            responses: figures.responses,
            failed: failed
                .map(|(cause, count)| (cause.as_str().replace('_', " "), count))
                .collect(),
            recent,
            lag_p50: lag.quantile(0.5),
            lag_p99: lag.quantile(0.99),
        }
    }
}

/// Shows snapshots on a thread of its own: the schedule never waits for a terminal.
#[derive(Debug)]
pub(super) struct Table {
    due: Instant,
    shown: Option<(SyncSender<Shown>, JoinHandle<()>)>,
}

/// What comes to whoever draws.
#[derive(Debug)]
enum Shown {
    Shot(Shot),
    /// A text that stays.
    Text(String),
}

/// Says a text above the table.
#[derive(Debug, Default)]
pub(super) struct Speaker(Option<SyncSender<Shown>>);

impl Speaker {
    /// Says it; waits for its turn.
    pub(super) fn say(&self, text: String) {
        match &self.0 {
            Some(drawer) => {
                let _drawn = drawer.send(Shown::Text(text));
            }
            None => say(&text),
        }
    }
}

/// A snapshot and its time.
type Shot = (Instant, Snapshot);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Table,
    Lines,
}

impl Table {
    /// On a terminal unless `quiet`; elsewhere lines where there is to be `progress`. `planned` is the
    /// length of the schedule, where it is known.
    pub(super) fn start(quiet: bool, progress: bool, planned: Option<Duration>) -> Self {
        let form = match (quiet, std::io::stderr().is_terminal(), progress) {
            (true, ..) | (_, false, false) => None,
            (_, true, _) => Some(Form::Table),
            (_, false, true) => Some(Form::Lines),
        };
        let begun = now();
        let shown = form.and_then(|form| {
            // One waits while one is drawn; what comes meanwhile is not shown.
            let (sender, shots) = sync_channel(1);
            let drawer = Drawer::new(form, begun, planned);
            let thread = std::thread::Builder::new().name("table".to_owned());
            let thread = thread.spawn(move || drawer.run(&shots)).ok()?;
            Some((sender, thread))
        });
        Self {
            due: begun + EVERY,
            shown,
        }
    }

    /// Whether a second has passed, and somebody looks.
    pub(super) fn is_due(&self) -> bool {
        self.shown.is_some() && now() >= self.due
    }

    /// Shows a snapshot.
    pub(super) fn show(&mut self, snapshot: Snapshot) {
        let time = now();
        self.due = time + EVERY;
        if let Some((sender, _)) = &self.shown {
            let _busy_is_fine = sender.try_send(Shown::Shot((time, snapshot)));
        }
    }

    /// Says a text where the table is.
    pub(super) fn speaker(&self) -> Speaker {
        Speaker(self.shown.as_ref().map(|(sender, _)| sender.clone()))
    }

    /// Takes the table away: what follows is the report.
    pub(super) fn finish(&mut self) {
        if let Some((sender, thread)) = self.shown.take() {
            drop(sender);
            let _drawn = thread.join();
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.finish();
    }
}

struct Drawer {
    form: Form,
    begun: Instant,
    planned: Option<Duration>,
    before: Shot,
    lines: usize,
}

impl Drawer {
    fn new(form: Form, begun: Instant, planned: Option<Duration>) -> Self {
        Self {
            form,
            begun,
            planned,
            before: (begun, Snapshot::default()),
            lines: 0,
        }
    }

    fn run(mut self, shots: &Receiver<Shown>) {
        for shown in shots {
            let shot = match shown {
                Shown::Shot(shot) => shot,
                Shown::Text(text) => {
                    self.clear();
                    say(&text);
                    continue;
                }
            };
            let text = self.text(&shot);
            self.clear();
            self.lines = text.lines().count();
            say(&text);
            self.before = shot;
        }
        self.clear();
    }

    /// Takes the table away; lines stay.
    fn clear(&mut self) {
        let up = std::mem::take(&mut self.lines);
        if self.form == Form::Table && up > 0 {
            // Up to its first line, and everything from there on erased.
            say(&format!("\x1b[{up}F\x1b[J\x1b[1A"));
        }
    }

    fn text(&self, (time, shot): &Shot) -> String {
        let (then, before) = &self.before;
        let seconds = time.duration_since(*then).as_secs_f64().max(1e-3);
        let rate = |now: u64, before: u64| scaled(per_second(now - before.min(now), seconds), "/s");
        let elapsed = time.duration_since(self.begun).as_secs();
        let at = |per_mille| match shot.recent.quantile(per_mille) {
            Some(nanos) => format!("≈ {}", span(nanos)),
            None => "-".to_owned(),
        };
        let max = shot.recent.max().map_or_else(|| "-".to_owned(), span);
        let lag = |nanos: Option<u64>| nanos.map_or_else(|| "-".to_owned(), span);
        let failed: u64 = shot.failed.iter().map(|(_, count)| count).sum();
        let sessions = rate(shot.started, before.started);
        let responses = rate(shot.responses, before.responses);
        if self.form == Form::Lines {
            return format!(
                "{elapsed} s  sessions {sessions}  open {}  failed {}  responses {responses}  p50 {}  p99 {}  max {max}  lag p99 {}",
                thousands(shot.open),
                thousands(failed),
                at(500),
                at(990),
                lag(shot.lag_p99)
            );
        }
        let of = self
            .planned
            .map_or_else(String::new, |planned| format!(" of {}", planned.as_secs()));
        rows(&[
            ("time", format!("{elapsed}{of} s")),
            (
                "sessions",
                format!(
                    "{sessions}  started {}  open {}  completed {}  failed {}",
                    thousands(shot.started),
                    thousands(shot.open),
                    thousands(shot.completed),
                    thousands(failed)
                ),
            ),
            (
                "requests",
                format!(
                    "{}  responses {responses}",
                    rate(shot.requests, before.requests)
                ),
            ),
            (
                "response",
                format!("p50 {}  p99 {}  max {max}", at(500), at(990)),
            ),
            (
                "lag",
                format!("p50 {}  p99 {}", lag(shot.lag_p50), lag(shot.lag_p99)),
            ),
            ("failed", listed(shot.failed.clone(), 6)),
        ])
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::samples::figures;

    fn drawer(form: Form) -> Drawer {
        Drawer::new(form, now(), Some(Duration::from_secs(100)))
    }

    #[test]
    fn rates_are_those_since_the_last_time() {
        let mut drawer = drawer(Form::Table);
        let mut recent = Coarse::default();
        recent.record(10_000_000);
        let first = Snapshot::new(&figures(400, 0, 1), recent.clone());
        let after = |seconds| drawer.begun + Duration::from_secs(seconds);
        let (two, four) = (after(2), after(4));
        let text = drawer.text(&(two, first.clone()));
        for part in [
            "2 of 100 s",
            "200 /s  started 400",
            "180 /s",
            "failed 40",
            "reset 40",
            "max 10 ms",
            "p99 20",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        drawer.before = (two, first);
        let second = Snapshot::new(&figures(404, 0, 1), recent);
        let text = drawer.text(&(four, second));
        assert!(text.contains("2 /s  started 404"), "{text}");
    }

    #[test]
    fn a_line_is_one_line() {
        let drawer = drawer(Form::Lines);
        let snapshot = Snapshot::new(&Figures::default(), Coarse::default());
        let text = drawer.text(&(drawer.begun, snapshot));
        assert_eq!(text.lines().count(), 1);
        assert!(text.starts_with("0 s  sessions 0 /s"), "{text}");
    }

    #[test]
    fn nobody_looks_at_a_quiet_run() {
        let mut table = Table::start(true, true, None);
        table.due = now();
        assert!(!table.is_due());
        table.show(Snapshot::default());
        table.finish();
    }
}
