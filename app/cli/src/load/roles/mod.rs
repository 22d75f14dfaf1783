//! Several hosts: the pair of the paper's Fig. 1, and a controller with its workers.
//!
//! One side reports (`stat`, `controller`) and listens; the other (`init`, `worker`) connects. Over one
//! TCP connection each, in lines of JSON ([`wire`]): hello with the terms that both must have alike,
//! the share, a few questions for the time, ready, the agreed start, signs of life, the results.
//!
//! The other side is not trusted: lines are bounded, every wait has an end, what it says is parsed into
//! checked figures. It is not authenticated either: this belongs on the network of a laboratory.

mod clock;
mod operator;
mod pump;
mod terms;
mod wire;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use linkweir_load::measure::{Figures, Progress};
use linkweir_load::stage::Share;
use linkweir_wire::Timestamp;

pub(super) use clock::Offset;
pub(super) use operator::{Asked, Nobody, Operator};
pub(super) use terms::terms;
pub(super) use wire::Terms;

use super::args::{MEETING_PORT, Role, RoleArgs};
use crate::clock::{now, wall_clock};
use crate::exit::{Wrong, warn};
use clock::Probe;
use pump::{News, Pump};
use wire::Lines;
use wire::{Hello, Message, PROTOCOL};

/// From when everybody is ready to the first session.
const HEAD_START: Duration = Duration::from_millis(500);
/// Who connects must say hello within this time.
const HELLO: Duration = Duration::from_secs(1);
/// Between attempts to reach the other side.
const PAUSE: Duration = Duration::from_millis(50);
/// Questions for the time.
const PROBES: u32 = 16;
/// The shortest interval between reports of progress.
const MIN_PROGRESS: Duration = Duration::from_millis(10);

/// The connections of this process to the others.
pub(super) struct Link<'a> {
    role: Role,
    timeout: Duration,
    stop: &'a dyn Fn() -> bool,
    /// Until the start.
    lines: Vec<Lines>,
    share: Share,
    /// How often progress is wanted: by this side, or of it. Zero is never.
    progress: Duration,
    /// From the start on.
    pumps: Vec<(SocketAddr, Pump)>,
}

/// What was agreed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// When the schedule begins, by our clock.
    pub(super) at: Timestamp,
    /// How far the clocks are apart; nothing on the side that reports.
    pub(super) clock: Offset,
}

/// What the reporting side has at the end.
#[derive(Debug)]
pub(super) struct Gathered {
    /// The figures of all.
    pub(super) figures: Figures,
    /// What each worker brought, in the order of their shares; for a controller.
    pub(super) workers: Vec<(SocketAddr, String)>,
    /// Who is missing in them, and why.
    pub(super) missing: Vec<String>,
}

/// What a worker's figures are in one line.
fn brought(figures: &Figures) -> String {
    let causes = figures.failed.iter().filter(|(_, count)| *count > 0);
    let causes: Vec<String> = causes
        .map(|(cause, count)| format!("{} {count}", cause.as_str()))
        .collect();
    let causes = if causes.is_empty() {
        String::new()
    } else {
        format!(" ({})", causes.join(", "))
    };
    format!(
        "{} planned, {} completed, {} failed{causes}",
        figures.planned,
        figures.completed,
        figures.failed.total()
    )
}

impl<'a> Link<'a> {
    /// Meets the others and compares terms; `None` where there are none (`--role all`). `stop` is asked
    /// while waiting.
    ///
    /// # Errors
    /// Where the other side does not come in time or has other terms ([`Wrong`]).
    pub(super) fn open(
        args: &RoleArgs,
        terms: &Terms,
        stop: &'a dyn Fn() -> bool,
    ) -> anyhow::Result<Option<Self>> {
        Self::open_with(args, terms, stop, Duration::ZERO, &mut Nobody)
    }

    /// The same, where `operator` looks on and wants the `progress` of the others so often.
    pub(super) fn open_with(
        args: &RoleArgs,
        terms: &Terms,
        stop: &'a dyn Fn() -> bool,
        progress: Duration,
        operator: &mut dyn Operator,
    ) -> anyhow::Result<Option<Self>> {
        let mut link = Self {
            progress,
            role: args.role,
            timeout: args.peer_wait,
            stop,
            lines: Vec::new(),
            share: Share::ALL,
            pumps: Vec::new(),
        };
        match args.role {
            Role::All => return Ok(None),
            Role::Init | Role::Worker => {
                let peer = args.peer.context("--peer")?;
                link.join(peer, terms)?;
            }
            Role::Stat => {
                let peer = args.peer.context("--peer")?;
                let everywhere = SocketAddr::new(unspecified(peer.ip()), peer.port());
                let listener = listen(args.listen.unwrap_or(everywhere))?;
                link.gather(&listener, ("init", 1), Some(peer.ip()), terms, operator)?;
            }
            Role::Controller => {
                let everywhere = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), MEETING_PORT);
                let listener = match args.listen {
                    Some(address) => listen(address),
                    None => listen(everywhere).or_else(|_| {
                        // Without IPv6.
                        listen(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), MEETING_PORT))
                    }),
                }?;
                let workers = ("worker", args.generators.unwrap_or(1));
                link.gather(&listener, workers, None, terms, operator)?;
            }
        }
        Ok(Some(link))
    }

    /// Which sessions of the schedule are this generator's.
    pub(super) const fn share(&self) -> Share {
        self.share
    }

    /// Connects to the one that reports.
    fn join(&mut self, peer: SocketAddr, terms: &Terms) -> anyhow::Result<()> {
        let until = now() + self.timeout;
        let stream = loop {
            match TcpStream::connect_timeout(&peer, Duration::from_secs(1)) {
                Ok(stream) => break stream,
                Err(error) if now() >= until => {
                    return Err(error).with_context(|| format!("{peer}: no connection"));
                }
                Err(_) if (self.stop)() => bail!("stopped while waiting for {peer}"),
                Err(_) => std::thread::park_timeout(PAUSE),
            }
        };
        let mut lines = Lines::new(stream, peer)?;
        lines.send(&Message::Hello(Hello {
            protocol: PROTOCOL,
            role: self.name().to_owned(),
            terms: terms.clone(),
        }))?;
        match lines.receive(until, self.stop)? {
            Message::Welcome {
                index,
                of,
                progress_ns,
            } if index < of => {
                self.share = Share { index, of };
                if progress_ns > 0 {
                    self.progress = Duration::from_nanos(progress_ns).max(MIN_PROGRESS);
                }
            }
            Message::Refused { reason } => {
                let what = format!("{peer} refuses this {}: {reason}", self.name());
                return Err(anyhow!(Wrong(what)));
            }
            _ => bail!("{peer}: it is out of step"),
        }
        self.lines.push(lines);
        Ok(())
    }

    /// Waits for so many others.
    fn gather(
        &mut self,
        listener: &TcpListener,
        (role, count): (&str, u32),
        only: Option<IpAddr>,
        terms: &Terms,
        operator: &mut dyn Operator,
    ) -> anyhow::Result<()> {
        let until = now() + self.timeout;
        listener.set_nonblocking(true)?;
        // A controller knows some of the terms; the others are those of the first worker.
        let mut terms = terms.clone();
        let mut is_part = self.role == Role::Controller;
        let mut index = 0;
        while index < count {
            operator.ask();
            let (stream, peer) = match listener.accept() {
                Ok(came) => came,
                Err(_) if (self.stop)() => bail!("stopped while waiting for the others"),
                Err(_) if now() >= until => {
                    bail!("only {index} of {count} connected before the timeout ({role})")
                }
                Err(_) => {
                    std::thread::park_timeout(PAUSE);
                    continue;
                }
            };
            if only.is_some_and(|only| only.to_canonical() != peer.ip().to_canonical()) {
                warn(&format!(
                    "{peer}: connection rejected: not the expected peer"
                ));
                continue;
            }
            let mut lines = Lines::new(stream, peer)?;
            let hello = match lines.receive((now() + HELLO).min(until), self.stop) {
                Ok(Message::Hello(hello)) => hello,
                // Whoever it was: this is an open port.
                Ok(_) => {
                    warn(&format!("{peer}: connection rejected: no hello message"));
                    continue;
                }
                Err(error) => {
                    warn(&format!("{error:#}: connection rejected"));
                    continue;
                }
            };
            if let Some(reason) = hello.fault(role, &terms, is_part) {
                let what = format!("{peer} cannot take part: {reason}");
                let told = lines.send(&Message::Refused { reason });
                if self.role == Role::Controller {
                    // Another may come in its place: the workers that are here wait.
                    warn(&format!("{what}: connection rejected"));
                    continue;
                }
                told?;
                return Err(anyhow!(Wrong(what)));
            }
            terms = hello.terms;
            is_part = false;
            // Both hosts of a pair have all sessions.
            let (index_there, of) = if self.role == Role::Stat {
                (0, 1)
            } else {
                (index, count)
            };
            lines.send(&Message::Welcome {
                index: index_there,
                of,
                progress_ns: linkweir_wire::nanos(self.progress),
            })?;
            operator.came(peer);
            self.lines.push(lines);
            index += 1;
        }
        Ok(())
    }

    /// Says that everything is set up, and waits until it is so with all. Gives the time of the start.
    ///
    /// # Errors
    /// Where another is gone, silent, or out of step.
    pub(super) fn agree(&mut self) -> anyhow::Result<Start> {
        self.agree_with(false, &mut Nobody)
    }

    /// The same, where `operator` looks on; the one that reports waits for its order where `is_ordered`.
    pub(super) fn agree_with(
        &mut self,
        is_ordered: bool,
        operator: &mut dyn Operator,
    ) -> anyhow::Result<Start> {
        let until = now() + self.timeout;
        let (at_ns, clock) = if self.reports() {
            self.await_ready(until)?;
            if is_ordered {
                self.await_order(operator)?;
            }
            (self.call_start()?, Offset::default())
        } else {
            self.await_start(until)?
        };
        for mut lines in self.lines.drain(..) {
            lines.expect_results();
            self.pumps.push((lines.peer(), Pump::start(lines)?));
        }
        Ok(Start {
            at: Timestamp::from_nanos(at_ns),
            clock,
        })
    }

    fn await_ready(&mut self, until: Instant) -> anyhow::Result<()> {
        for lines in &mut self.lines {
            loop {
                match lines.receive(until, self.stop)? {
                    Message::Ping { number } => lines.send(&Message::Pong {
                        number,
                        at_ns: wall_clock(),
                    })?,
                    Message::Ready { .. } => break,
                    _ => bail!("{}: it is out of step", lines.peer()),
                }
            }
        }
        Ok(())
    }

    /// All are ready: keeps them waiting until the order to start comes.
    fn await_order(&mut self, operator: &mut dyn Operator) -> anyhow::Result<()> {
        let mut said = now();
        while !operator.ask().start {
            if (self.stop)() {
                bail!("stopped before the order to start");
            }
            if now().duration_since(said) >= pump::BEAT {
                said = now();
                for lines in &mut self.lines {
                    lines.send(&Message::Alive)?;
                }
            }
            std::thread::park_timeout(PAUSE);
        }
        Ok(())
    }

    fn call_start(&mut self) -> anyhow::Result<u64> {
        let head_start = linkweir_wire::nanos(HEAD_START);
        let at_ns = wall_clock().saturating_add(head_start);
        for lines in &mut self.lines {
            lines.send(&Message::Start { at_ns })?;
        }
        Ok(at_ns)
    }

    fn await_start(&mut self, until: Instant) -> anyhow::Result<(u64, Offset)> {
        let lines = self.lines.first_mut().context("no connection")?;
        let peer = lines.peer();
        let mut probes = Vec::new();
        for number in 0..PROBES {
            let asked = wall_clock();
            lines.send(&Message::Ping { number })?;
            match lines.receive(until, self.stop)? {
                Message::Pong { number: n, at_ns } if n == number => probes.push(Probe {
                    asked,
                    said: at_ns,
                    heard: wall_clock(),
                }),
                _ => bail!("{peer}: it is out of step"),
            }
        }
        let clock = Offset::estimate(&probes);
        lines.send(&Message::Ready {
            error_ns: clock.error_ns,
        })?;
        let mut until = until;
        let at_ns = loop {
            match lines.receive(until, self.stop)? {
                Message::Start { at_ns } => break at_ns,
                // Somebody there has yet to say when.
                Message::Alive => until = until.max(now() + pump::PATIENCE),
                _ => bail!("{peer}: it is out of step"),
            }
        };
        // Neither long ago nor for ever: its word is not trusted.
        let timeout = linkweir_wire::nanos(self.timeout);
        let soon = wall_clock()..wall_clock().saturating_add(timeout);
        let here = clock.here(at_ns).filter(|at| soon.contains(at));
        let here =
            here.with_context(|| format!("{peer}: the start it names is past or far off"))?;
        Ok((here, clock))
    }

    /// Whether the run should end: the one that reports says so, or a pair has lost its other half.
    pub(super) fn must_stop(&self) -> bool {
        self.pumps
            .iter()
            .any(|(_, pump)| pump.must_stop() || (pump.is_gone() && self.role != Role::Controller))
    }

    /// How often the one that reports wants to know how it goes; `None` where it does not.
    pub(super) fn progress(&self) -> Option<Duration> {
        let is_wanted = self.role == Role::Worker && !self.progress.is_zero();
        is_wanted.then_some(self.progress)
    }

    /// Tells the one that reports how it goes.
    pub(super) fn tell(&self, progress: Box<Progress>) {
        if let Some((_, pump)) = self.pumps.first() {
            pump.send(Message::Progress(progress));
        }
    }

    /// Whether the one that reports has asked for the figures so far.
    pub(super) fn take_report(&self) -> bool {
        self.pumps.iter().any(|(_, pump)| pump.take_report())
    }

    /// Gives them.
    pub(super) fn report(&self, figures: Box<Figures>) {
        if let Some((_, pump)) = self.pumps.first() {
            pump.send(Message::Interim(figures));
        }
    }

    /// Brings the figures together: `own` are those of this process. Gives all of them where this is the
    /// side that reports, `None` where the other does.
    ///
    /// # Errors
    /// Where the other side did not take our figures.
    pub(super) fn finish(self, own: &Figures) -> anyhow::Result<Option<Gathered>> {
        self.finish_with(own, &mut Nobody)
    }

    /// The same, where `operator` looks on.
    pub(super) fn finish_with(
        mut self,
        own: &Figures,
        operator: &mut dyn Operator,
    ) -> anyhow::Result<Option<Gathered>> {
        if self.reports() {
            return Ok(Some(self.collect(own, operator)));
        }
        let (peer, pump) = self.pumps.pop().context("the run never started")?;
        if (self.stop)() {
            // The other half of a pair would wait for sessions that never start.
            pump.send(Message::Stop);
        }
        pump.send(Message::Result(Box::new(own.clone())));
        // The other side may still drain; the pump hears when it falls silent.
        loop {
            match pump.wait(PAUSE) {
                Some(News::Taken) => return Ok(None),
                Some(News::Gone(why)) => bail!("the results did not arrive: {why}"),
                Some(_) => bail!("{peer}: it is out of step"),
                None => {}
            }
        }
    }

    fn collect(&self, own: &Figures, operator: &mut dyn Operator) -> Gathered {
        let mut gathered = Gathered {
            figures: own.clone(),
            workers: Vec::new(),
            missing: Vec::new(),
        };
        let mut has_stopped = false;
        let mut until = None;
        // What each brought; `None` while it runs.
        let mut all: Vec<Option<String>> = self.pumps.iter().map(|_| None).collect();
        while all.iter().any(Option::is_none) {
            let asked = operator.ask();
            if !has_stopped && (asked.stop || (self.stop)()) {
                self.say(&all, || Message::Stop);
                has_stopped = true;
            }
            if asked.report {
                self.say(&all, || Message::Report);
            }
            // A pair ends together; workers have as long as they give signs of life.
            if until.is_none() && (has_stopped || self.role == Role::Stat) {
                until = Some(now() + self.timeout);
            }
            let is_late = until.is_some_and(|until| now() >= until);
            let mut is_quiet = true;
            for (index, ((peer, pump), brought)) in self.pumps.iter().zip(&mut all).enumerate() {
                while brought.is_none() {
                    let missing = match pump.wait(Duration::ZERO) {
                        Some(News::Progress(progress)) => {
                            is_quiet = false;
                            operator.progress(index, *progress);
                            continue;
                        }
                        Some(News::Interim(figures)) => {
                            is_quiet = false;
                            operator.interim(index, *figures);
                            continue;
                        }
                        Some(News::Result(figures)) => {
                            *brought = Some(self.take(&mut gathered, &figures));
                            pump.send(Message::Taken);
                            operator.ended(index, Ok(*figures));
                            break;
                        }
                        Some(News::Gone(why)) => why,
                        Some(News::Taken) => format!("{peer}: it is out of step"),
                        None if is_late => format!("{peer}: its figures did not come"),
                        None => break,
                    };
                    *brought = Some("missing".to_owned());
                    operator.ended(index, Err(&missing));
                    gathered.missing.push(missing);
                }
            }
            if is_quiet && all.iter().any(Option::is_none) {
                std::thread::park_timeout(PAUSE);
            }
        }
        if self.role == Role::Controller {
            let peers = self.pumps.iter().map(|(peer, _)| *peer);
            gathered.workers = peers.zip(all.into_iter().flatten()).collect();
        }
        // The last `Taken` is on its way before the connections close.
        for (_, pump) in &self.pumps {
            let _closed = pump.wait(Duration::from_secs(1));
        }
        gathered
    }

    /// Says something to all that have brought nothing yet.
    fn say(&self, all: &[Option<String>], message: fn() -> Message) {
        let running = self.pumps.iter().zip(all).filter(|(_, one)| one.is_none());
        running.for_each(|((_, pump), _)| pump.send(message()));
    }

    /// Adds what another brought; what it is in one line.
    fn take(&self, gathered: &mut Gathered, figures: &Figures) -> String {
        if self.role == Role::Stat {
            gathered.figures.adopt_sender(figures);
        } else {
            gathered.figures.merge(figures);
        }
        brought(figures)
    }

    const fn reports(&self) -> bool {
        matches!(self.role, Role::Stat | Role::Controller)
    }

    /// The word of the command line.
    pub(super) const fn name(&self) -> &'static str {
        match self.role {
            Role::All => "all",
            Role::Init => "init",
            Role::Stat => "stat",
            Role::Controller => "controller",
            Role::Worker => "worker",
        }
    }
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).with_context(|| format!("listen at {address}"))
}

const fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

#[cfg(test)]
mod tests;
