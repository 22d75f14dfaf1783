//! The loop of a run: interface and stage joined, until the schedule is over or a signal comes.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::anyhow;
use linkweir_inject::{Checksum as Seen, Port, PortCounts, ReceivedFrame};
use linkweir_load::frames::Frames;
use linkweir_load::measure::{Figures, Progress};
use linkweir_load::neighbours::NeighbourState;
use linkweir_load::stage::{Checksum, LoadStage};
use linkweir_model::Sampler;
use linkweir_record::LoadBatch;
use linkweir_wire::Timestamp;

use super::args::LoadArgs;
use super::conclude::{self, Beside};
use super::interim::Interim;
use super::live::Lookout;
use super::pcap::Pcap;
use super::records::{Missing, Records};
use super::report::Header;
use super::roles::Link;
use super::table::{Snapshot, Table};
use crate::clock::timestamp;
use crate::exit::{Exit, warn};
use crate::signals::Signals;

/// How long the first answer of the next hop is waited for.
const RESOLVE: Duration = Duration::from_secs(5);
/// The longest sleep: signals and records are looked at so often.
const NAP: Duration = Duration::from_millis(20);
/// How long the last connections may take to close when all sessions are over.
const CLOSING: Duration = Duration::from_secs(1);
/// Maximum number of reports that the next hop has moved.
const TELL: Duration = Duration::from_secs(1);
/// Records that are handed over at a time.
const RECORDS: usize = 1024;
/// A schedule that is this late gains nothing from frames that are sent one by one.
const LATE: Duration = Duration::from_millis(1);

/// Everything that the loop works with.
pub(super) struct Runner<'a> {
    pub(super) port: Port,
    pub(super) stage: LoadStage<Sampler>,
    pub(super) frames: Frames,
    pub(super) pcap: Option<Pcap>,
    pub(super) records: Records,
    pub(super) signals: &'a Signals,
    /// To other generators, where there are any.
    pub(super) link: Option<Link<'a>>,
    pub(super) table: Table,
    pub(super) spin: Duration,
    pub(super) pace: Pace,
    /// How long the schedule is, where that is known.
    pub(super) duration: Option<Duration>,
    pub(super) drain: Duration,
    pub(super) moves: ReportedMoves,
    pub(super) interim: Interim,
    pub(super) lookout: Lookout,
}

/// Moves of the next hop that were reported.
#[derive(Debug, Default)]
pub(super) struct ReportedMoves {
    count: u64,
    next: Timestamp,
}

impl ReportedMoves {
    /// Says where the next hop has moved to, unless it has just been said.
    pub(super) fn tell(&mut self, stage: &LoadStage<Sampler>, time: Timestamp) {
        let count = stage.neighbour_counts().moved;
        let Some(moved) = stage.last_move().filter(|_| count > self.count) else {
            return;
        };
        if time < self.next {
            return;
        }
        (self.count, self.next) = (count, time + TELL);
        let again = if count > 1 {
            format!(" ({count} moves so far)")
        } else {
            String::new()
        };
        warn(&format!("{moved}{again}"));
    }
}

/// How fast frames are sent.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Of late, nanoseconds a frame.
    frame_ns: u64,
}

impl Pace {
    fn add(&mut self, frames: usize, took_ns: u64) {
        if let Some(frame_ns) = took_ns.checked_div(frames as u64) {
            self.frame_ns = (7 * self.frame_ns + frame_ns) / 8;
        }
    }

    /// How many frames can be sent until something is due, one at least.
    fn frames_before(&self, due: Option<Timestamp>, now: Timestamp) -> usize {
        let Some(due) = due.filter(|due| *due + LATE > now) else {
            return usize::MAX;
        };
        let left = due.nanos_since(now);
        usize::try_from(left / self.frame_ns.max(1)).map_or(usize::MAX, |frames| frames.max(1))
    }
}

impl Runner<'_> {
    /// Waits for the hardware address of the next hop.
    pub(super) fn resolve(&mut self, interface: &str, next_hop: IpAddr) -> anyhow::Result<()> {
        let until = timestamp() + RESOLVE;
        loop {
            let time = timestamp();
            let state = self.stage.resolve(time, &mut self.frames);
            self.send()?;
            if state == NeighbourState::Resolved {
                return Ok(());
            }
            if self.signals.stop() {
                return Err(anyhow!("stopped before the first session"));
            }
            if time >= until {
                return Err(anyhow!(
                    "no host on {interface} answers for {next_hop} (ARP or neighbour discovery): is it the \
                     right interface, is the server in a network of it, or does it need --gateway or --vlan?"
                ));
            }
            self.receive(time + NAP, Duration::ZERO)?;
        }
    }

    /// Plays the schedule, which begins at `begin`.
    pub(super) fn play(&mut self, begin: Timestamp) -> anyhow::Result<()> {
        self.stage.begin(begin);
        let reported = self.link.as_ref().and_then(Link::progress);
        if self.lookout.begin(begin, reported.is_some()) {
            self.stage.measure().watch();
        }
        // The schedule may be more than can be played: it ends when it should have.
        let mut last = self.duration.map(|duration| begin + duration + self.drain);
        let mut is_closing = false;
        loop {
            let time = timestamp();
            self.stage.on_tick(time, &mut self.frames);
            self.send()?;
            if self.stage.is_done() {
                return Ok(());
            }
            if self.stage.has_ended() && !is_closing {
                is_closing = true;
                last = Some(last.map_or(time + CLOSING, |last| last.min(time + CLOSING)));
            }
            if self.stage.is_planned_out() && last.is_none() {
                last = Some(time + self.drain);
            }
            let is_told = self.link.as_ref().is_some_and(Link::must_stop);
            if is_told || self.signals.stop() || last.is_some_and(|last| time >= last) {
                if self.stage.is_behind(time) {
                    warn(
                        "the schedule was not played to its end: not all sessions that were due have begun",
                    );
                }
                self.stage.end(time, &mut self.frames);
                return self.send();
            }
            self.look(time);
            self.moves.tell(&self.stage, time);
            let nap = time + NAP;
            let wake = self.stage.next_deadline().map_or(nap, |due| due.min(nap));
            self.receive(wake, self.spin)?;
        }
    }

    /// Records to their outputs, and a look at the figures each second.
    fn look(&mut self, time: Timestamp) {
        if self.lookout.is_due(time) {
            let progress = self.progress();
            let link = self.link.as_ref().filter(|link| link.progress().is_some());
            if let Some(link) = link {
                link.tell(Box::new(progress.clone()));
            }
            self.lookout.look(time, progress);
        }
        if self.stage.measure().waiting_records() >= RECORDS {
            self.hand_over();
        }
        if self.table.is_due() {
            self.hand_over();
            let recent = self.stage.measure().take_recent();
            self.table.show(Snapshot::new(self.stage.figures(), recent));
        }
        // Asked for while the last one is written, it is written next.
        if self.interim.is_free() && self.signals.take_report() {
            self.report();
        }
        if self.link.as_ref().is_some_and(Link::take_report) {
            let (figures, _) = self.figures();
            if let Some(link) = &self.link {
                link.report(Box::new(figures));
            }
        }
    }

    /// The figures as they stand now. While those of a long run are copied nothing is sent.
    fn figures(&mut self) -> (Figures, PortCounts) {
        let port = self.port.counts();
        let mut figures = self.stage.figures().clone();
        conclude::counts(&self.stage, &port).add_to(&mut figures);
        (figures, port)
    }

    /// What there is to see of the run.
    pub(super) fn progress(&mut self) -> Progress {
        let port = self.port.counts();
        Progress {
            frames: port.sent.frames + port.received_frames,
            frame_bytes: port.sent.bytes + port.received_bytes,
            dropped: port.dropped + port.too_long,
            ..self.stage.measure().progress()
        }
    }

    /// Reports as it stands now.
    fn report(&mut self) {
        let (figures, port) = self.figures();
        let beside = Beside {
            port,
            malformed: self.stage.frame_counts().malformed,
            missing: Missing {
                queue: self.records.lost(),
                ..Missing::default()
            },
            begun: self.stage.begun(),
            ..Beside::default()
        };
        self.interim.write(figures, beside, self.table.speaker());
    }

    /// Gives the records of sessions that are over to their outputs.
    pub(super) fn hand_over(&mut self) {
        if self.records.are_wanted() && self.stage.measure().waiting_records() > 0 {
            let mut batch = LoadBatch::default();
            self.stage.measure().take_records(&mut batch);
            self.records.take(batch);
        }
    }

    /// Ends a run: figures, reports, exit code. What was measured is written also when the run broke off.
    pub(super) fn conclude(
        mut self,
        args: &LoadArgs,
        header: &Header,
        played: anyhow::Result<()>,
    ) -> anyhow::Result<Exit> {
        if played.is_err() {
            // Every session ends once, also where the interface has gone.
            self.stage.end(timestamp(), &mut self.frames);
        }
        self.hand_over();
        let files = self.interim.finish()?;
        let last = self.progress();
        let teller = self.link.as_ref();
        if let Some(link) = teller.filter(|link| link.progress().is_some()) {
            link.tell(Box::new(last.clone()));
        }
        let undelivered = self.lookout.finish(timestamp(), last)?;
        self.table.finish();
        let (missing_records, written, mut failed) = match self.records.finish() {
            Ok((missing, exit)) => (missing, exit, None),
            Err(error) => (Missing::default(), Exit::Failed, Some(error)),
        };
        let mut beside = Beside {
            is_interrupted: self.signals.stop(),
            port: self.port.counts(),
            malformed: self.stage.frame_counts().malformed,
            missing: missing_records,
            lost_frames: 0,
            begun: self.stage.begun(),
        };
        beside.missing.outputs.extend(undelivered);
        if let Some(pcap) = self.pcap.take() {
            match pcap.finish() {
                Ok(lost) => beside.lost_frames = lost,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let stage = &mut self.stage;
        let counts = conclude::counts(stage, &beside.port);
        counts.add_to(stage.measure().figures_mut());
        let own = self.stage.figures();
        let (figures, mut exit) = match self.link.take() {
            None => (own.clone(), Exit::Done),
            Some(link) => match link.finish(own)? {
                Some(gathered) => {
                    let exit = conclude::missing(&gathered);
                    (gathered.figures, exit)
                }
                // The other side reports for both; here is what was done here.
                None => (own.clone(), Exit::Done),
            },
        };
        exit = exit.max(written);
        exit = exit.max(conclude::report(args, header, &figures, &mut beside, files));
        played?;
        failed.map_or(Ok(exit), Err)
    }

    fn receive(&mut self, until: Timestamp, spin: Duration) -> anyhow::Result<()> {
        let Self {
            port,
            stage,
            frames,
            pcap,
            ..
        } = self;
        let mut time = None;
        port.receive_until(until, spin, |frame: ReceivedFrame<'_>| {
            // The clock is asked once for the frames that came together.
            let now = *time.get_or_insert_with(timestamp);
            if let Some(pcap) = pcap {
                pcap.frame(frame.at, frame.bytes);
            }
            let checksum = match frame.checksum {
                Seen::Valid | Seen::NotComputed => Checksum::Trusted,
                Seen::Unknown => Checksum::Unknown,
            };
            stage.on_frame(frame.bytes, checksum, frame.at, now, frames);
        })?;
        self.send()
    }

    /// Sends the frames that wait. A session that falls due meanwhile does not wait for all of them: where the
    /// receiver shares the core, a frame takes as long to send as the receiver takes for it.
    fn send(&mut self) -> anyhow::Result<()> {
        if self.frames.is_empty() {
            return Ok(());
        }
        let mut waiting = std::mem::take(&mut self.frames);
        let sent = self.send_in_time(&waiting);
        waiting.clear();
        self.frames = waiting;
        sent
    }

    fn send_in_time(&mut self, waiting: &Frames) -> anyhow::Result<()> {
        let mut left = waiting.len();
        let mut waiting = waiting.iter();
        let mut now = timestamp();
        loop {
            let due = self.stage.next_start();
            let count = self.pace.frames_before(due, now).min(left);
            let frames = waiting.by_ref().take(count);
            let sent = self.put(frames, count, now);
            left -= count;
            sent?;
            if left == 0 {
                return Ok(());
            }
            now = timestamp();
            if due.is_some_and(|due| due <= now) {
                let mut urgent = std::mem::take(&mut self.frames);
                self.stage.start_due(now, &mut urgent);
                let sent = self.put(urgent.iter(), urgent.len(), now);
                urgent.clear();
                self.frames = urgent;
                sent?;
                now = timestamp();
            }
        }
    }

    /// Sends so many frames now.
    fn put<'f>(
        &mut self,
        frames: impl Iterator<Item = &'f [u8]>,
        count: usize,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let Self { port, pcap, .. } = self;
        port.send(frames.inspect(|frame| {
            if let Some(pcap) = pcap {
                pcap.frame(now, frame);
            }
        }))?;
        self.pace.add(count, timestamp().nanos_since(now));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_fit_before_what_is_due() {
        let mut pace = Pace::default();
        pace.add(0, 5000);
        (0..100).for_each(|_| pace.add(4, 80_000));
        assert!((19_900..=20_000).contains(&pace.frame_ns), "{pace:?}");
        let now = Timestamp::from_nanos(5_000_000_000);
        let frames = |due| pace.frames_before(due, now);
        assert_eq!(frames(None), usize::MAX);
        assert_eq!(frames(Some(now + Duration::from_micros(130))), 6);
        assert_eq!(frames(Some(now)), 1, "one at least");
        assert_eq!(frames(Some(now - LATE)), usize::MAX, "too late to gain");
    }
}
