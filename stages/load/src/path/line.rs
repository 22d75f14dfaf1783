//! One direction of the lines of a group: when a frame arrives, if it does.

use linkweir_model::Random;
use linkweir_wire::Timestamp;

use super::active::State;
use super::loss::Loss;
use crate::population::{Direction, Profile};

/// Bits of a byte, in nanoseconds of a second.
const BIT_NANOS: u128 = 8_000_000_000;

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at once.
    Now,
    /// It arrives later.
    At(Timestamp),
    /// It does not arrive.
    Lost,
}

/// How a frame was lost, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    Arrives(Timestamp),
    Lost,
    /// The queue before the line was full.
    Dropped,
}

/// One direction of the lines of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    /// Mean delay, and how much more or less it may be.
    delay_ns: u64,
    spread_ns: u64,
    keeps_order: bool,
    bits_per_second: Option<u64>,
    queue_ns: u64,
    loss: Loss,
}

impl Line {
    pub(super) fn new(profile: &Profile, direction: &Direction) -> Self {
        Self {
            delay_ns: linkweir_wire::nanos(profile.rtt) / 2,
            spread_ns: linkweir_wire::nanos(profile.jitter) / 4,
            keeps_order: !profile.reorder,
            bits_per_second: direction.bits_per_second,
            queue_ns: linkweir_wire::nanos(direction.queue),
            loss: Loss::new(direction.loss, direction.burst),
        }
    }

    /// Whether frames pass at once and whole.
    pub(super) fn is_plain(&self) -> bool {
        self.delay_ns == 0 && self.bits_per_second.is_none() && self.loss.is_none()
    }

    /// Whether what becomes of a frame depends on those before it.
    pub(super) const fn has_state(&self) -> bool {
        self.bits_per_second.is_some()
            || (self.spread_ns > 0 && self.keeps_order)
            || self.loss.has_bursts()
    }

    /// Sends a frame down the line. `state` is that of the line of its client.
    pub(super) fn pass(
        &self,
        bytes: usize,
        now: Timestamp,
        state: &mut State,
        random: &mut Random,
    ) -> Passage {
        let mut leaves = now;
        if let Some(rate) = self.bits_per_second {
            let begins = now.max(state.busy_until);
            if begins.nanos_since(now) > self.queue_ns {
                return Passage::Dropped;
            }
            // A byte more than memory has would be slow, but not wrong.
            let wide = (bytes as u128 * BIT_NANOS).div_ceil(u128::from(rate.max(1)));
            leaves = later(begins, u64::try_from(wide).unwrap_or(u64::MAX));
            state.busy_until = leaves;
        }
        // Lost behind the queue: it has taken its time on the line.
        if !self.loss.is_none() {
            let is_lost = self.loss.draw(state.was_bad, random);
            state.was_bad = Some(is_lost);
            if is_lost {
                return Passage::Lost;
            }
        }
        let mut arrives = later(leaves, self.delay_ns);
        if self.spread_ns > 0 {
            let width = self.spread_ns.saturating_mul(2).saturating_add(1);
            let drawn = random.below(width);
            arrives = later(
                leaves,
                (self.delay_ns + drawn).saturating_sub(self.spread_ns),
            );
            if self.keeps_order {
                arrives = arrives.max(state.last_arrival);
                state.last_arrival = arrives;
            }
        }
        Passage::Arrives(arrives)
    }
}

fn later(moment: Timestamp, nanos: u64) -> Timestamp {
    Timestamp::from_nanos(moment.as_nanos().saturating_add(nanos))
}
