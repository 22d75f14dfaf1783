//! One direction of a line: what becomes of each frame.

use std::time::Duration;

use linkweir_load::frames::Frames;
use linkweir_load::path::DelayLine;
use linkweir_model::Random;
use linkweir_wire::Timestamp;

use super::counts::{Counts, Kind};

/// Frames that may be late at a time, and their bytes.
const LATE_FRAMES: usize = 100_000;
const LATE_BYTES: usize = 128 << 20;

/// What is done to frames; only TCP segments are lost or come late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Harm {
    /// How long each frame is on its way.
    pub latency: Duration,
    /// Part of them that is lost.
    pub loss: f64,
    /// Part of the others that comes late.
    pub reorder: f64,
    /// By how much more.
    pub delay: Duration,
}

/// One direction. What becomes of its segment number n is named by the seed and n alone.
#[derive(Debug)]
pub(super) struct Way {
    harm: Harm,
    random: Random,
    late: DelayLine,
    counts: Counts,
}

impl Way {
    /// Direction `number` of a seed.
    pub(super) fn new(harm: Harm, seed: u64, number: u64) -> Self {
        Self {
            harm,
            random: Random::part(seed, number),
            late: DelayLine::new(LATE_FRAMES, LATE_BYTES),
            counts: Counts::default(),
        }
    }

    /// Takes a frame: it goes to `out` now, or late, or never.
    pub(super) fn take(&mut self, frame: &[u8], now: Timestamp, out: &mut Frames) {
        let (kind, payload) = Kind::of(frame);
        self.counts.frames += 1;
        let mut wait = self.harm.latency;
        if kind != Kind::Other {
            self.counts.segments.add(kind);
            self.counts.payload_bytes += payload;
            // Both are drawn for each, so that the fate of one does not move that of the next.
            let (is_lost, is_late) = (
                self.random.uniform() < self.harm.loss,
                self.random.uniform() < self.harm.reorder,
            );
            if is_lost {
                self.counts.lost.add(kind);
                self.counts.lost_bytes += payload;
                return;
            }
            if is_late {
                wait += self.harm.delay;
                self.counts.late.add(kind);
            }
        }
        if wait.is_zero() {
            self.pass(frame, out);
        } else if !self.late.put(now + wait, frame) {
            self.counts.no_room += 1;
            self.pass(frame, out);
        }
    }

    /// Hands on what has waited long enough.
    pub(super) fn pop_due(&mut self, now: Timestamp, out: &mut Frames) {
        let passed = &mut self.counts.passed;
        self.late.pop_due(now, |_, frame| {
            *passed += 1;
            out.push(frame);
        });
    }

    /// When that is so next.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.late.next_deadline()
    }

    /// What was done so far.
    pub(super) const fn counts(&self) -> Counts {
        self.counts
    }

    fn pass(&mut self, frame: &[u8], out: &mut Frames) {
        self.counts.passed += 1;
        out.push(frame);
    }
}
