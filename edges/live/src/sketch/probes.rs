//! The probes that sketches come from: which of their messages were there, and whether they still send.
//!
//! Memory: [`MAX_PROBES`] names of 128 bytes and [`MAX_RUNS`] runs of 100 bytes each, 1 MiB.

use std::collections::BTreeMap;

use super::Cause;
use super::read::Taken;
use super::series::Mergeable;
use crate::api;
use crate::text::{seconds, to_f64};

/// Maximum number of probes.
const MAX_PROBES: usize = 1024;
/// Runs of a probe that are remembered.
const MAX_RUNS: usize = 8;
/// How many messages before the latest one of a run are remembered; older ones count as
/// duplicates.
const WINDOW: u64 = 128;

/// One run of a probe.
#[derive(Debug)]
struct Run {
    run: u64,
    /// Number of the latest message, and which of those before it have come: bit 0 is the latest.
    top: u64,
    came: u128,
    /// Numbers of the first and of the last interval, and how many have come.
    intervals: Option<(u64, u64)>,
    count: u64,
    /// End of the last interval.
    reached: u64,
    has_ended: bool,
    /// When its last message came.
    seen: u64,
}

impl Run {
    /// Whether message `seq` is new; it is noted.
    fn is_new(&mut self, seq: u64) -> bool {
        if let Some(ahead) = seq.checked_sub(self.top).filter(|ahead| *ahead > 0) {
            let shift = u32::try_from(ahead).ok();
            self.came = shift
                .and_then(|shift| self.came.checked_shl(shift))
                .unwrap_or(0)
                | 1;
            self.top = seq;
            return true;
        }
        let back = self.top.saturating_sub(seq);
        if back >= WINDOW {
            return false;
        }
        let bit = 1_u128 << back;
        let is_new = self.came & bit == 0;
        self.came |= bit;
        is_new
    }

    /// Intervals between the first and the last that have not come.
    fn missing(&self) -> u64 {
        let span = self
            .intervals
            .map_or(0, |(first, last)| (last - first).saturating_add(1));
        span.saturating_sub(self.count)
    }
}

#[derive(Debug, Default)]
struct Probe {
    status: api::Probe,
    runs: Vec<Run>,
    /// Missing intervals of runs that are not remembered any more.
    missing: u64,
    seen: u64,
}

/// All probes, by name.
#[derive(Debug, Default)]
pub(super) struct Roll {
    probes: BTreeMap<String, Probe>,
}

impl Roll {
    /// Notes a message that came at `now`; `false` where it came before.
    pub(super) fn note<K: Mergeable>(&mut self, taken: &Taken<K>, now: u64) -> Result<bool, Cause> {
        if !self.probes.contains_key(&taken.probe) && self.probes.len() >= MAX_PROBES {
            return Err(Cause::TooManyProbes);
        }
        let probe = self.probes.entry(taken.probe.clone()).or_default();
        probe.status.name.clone_from(&taken.probe);
        probe.seen = now;
        let is_new = match probe.runs.iter_mut().find(|run| run.run == taken.run) {
            Some(run) => run.is_new(taken.seq),
            None => {
                probe.begin(taken.run, taken.seq);
                true
            }
        };
        if !is_new {
            probe.status.duplicates += 1;
            return Ok(false);
        }
        if let Some(run) = probe.runs.iter_mut().find(|run| run.run == taken.run) {
            run.seen = now;
            run.has_ended |= taken.has_ended;
            if let Some(number) = taken.number {
                let (first, last) = run.intervals.unwrap_or((number, number));
                run.intervals = Some((first.min(number), last.max(number)));
                run.count += 1;
                run.reached = run.reached.max(taken.end);
            }
        }
        if taken.number.is_some() {
            let (status, sums) = (&mut probe.status, &taken.sums);
            status.packets = status.packets.saturating_add(sums.packets);
            status.bytes = status.bytes.saturating_add(sums.bytes);
            status.dropped.add(&sums.dropped);
            status.t_ms = taken.end / 1_000_000;
            let length = seconds(taken.end.saturating_sub(taken.start));
            status.packets_per_s = if length > 0.0 {
                to_f64(sums.packets) / length
            } else {
                0.0
            };
        }
        Ok(true)
    }

    /// Notes that an interval of a probe was late.
    pub(super) fn note_late(&mut self, name: &str) {
        if let Some(probe) = self.probes.get_mut(name) {
            probe.status.late_intervals += 1;
        }
    }

    /// How far each run has come that is waited for: it has not ended, and something of it came since
    /// `since`.
    pub(super) fn reached(&self, since: u64) -> impl Iterator<Item = u64> {
        let runs = self.probes.values().flat_map(|probe| &probe.runs);
        runs.filter(move |run| !run.has_ended && run.seen >= since)
            .map(|run| run.reached)
    }

    /// What readers see; stale is what has sent nothing since `since`.
    pub(super) fn shown(&self, since: u64) -> Vec<api::Probe> {
        let shown = self.probes.values().map(|probe| {
            let missing = probe.runs.iter().map(Run::missing);
            let has_ended = probe.runs.iter().all(|run| run.has_ended);
            api::Probe {
                last_seen_ms: probe.seen / 1_000_000,
                missing_intervals: missing.fold(probe.missing, u64::saturating_add),
                has_ended,
                is_stale: !has_ended && probe.seen < since,
                ..probe.status.clone()
            }
        });
        shown.collect()
    }
}

impl Probe {
    /// A new run; the one that sent nothing for longest is forgotten where there are too many.
    fn begin(&mut self, run: u64, seq: u64) {
        self.status.runs += 1;
        if self.runs.len() >= MAX_RUNS {
            let oldest = self.runs.iter().enumerate().min_by_key(|(_, run)| run.seen);
            if let Some((at, _)) = oldest {
                self.missing = self
                    .missing
                    .saturating_add(self.runs.swap_remove(at).missing());
            }
        }
        self.runs.push(Run {
            run,
            top: seq,
            came: 1,
            intervals: None,
            count: 0,
            reached: 0,
            has_ended: false,
            seen: self.seen,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seq: u64) -> Run {
        let mut probe = Probe::default();
        probe.begin(7, seq);
        probe.runs.remove(0)
    }

    #[test]
    fn messages_are_new_once_in_any_order() {
        let mut run = run(5);
        assert!(!run.is_new(5));
        assert!(run.is_new(7) && run.is_new(6));
        assert!(!run.is_new(6) && !run.is_new(7) && !run.is_new(5));
        assert!(run.is_new(1000), "a gap");
        assert!(run.is_new(999) && !run.is_new(999));
        assert!(!run.is_new(1000 - WINDOW), "too old to tell");
        assert!(run.is_new(u64::MAX) && !run.is_new(u64::MAX));
    }

    #[test]
    fn the_runs_of_a_probe_are_bounded_and_their_gaps_kept() {
        let mut probe = Probe::default();
        for number in 0..100 {
            probe.seen = number;
            probe.begin(number, 0);
            if let Some(run) = probe.runs.last_mut() {
                (run.intervals, run.count) = (Some((1, 10)), 8);
            }
        }
        assert_eq!(probe.runs.len(), MAX_RUNS);
        let mut all = probe.missing;
        all += probe.runs.iter().map(Run::missing).sum::<u64>();
        assert_eq!(all, 200);
    }
}
