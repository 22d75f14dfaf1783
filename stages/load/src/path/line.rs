//! One direction of the lines of a group: when a frame arrives, if it does.
//!
//! Which frames are lost.
//!
//! Source: Gilbert 1960, "Capacity of a burst-noise channel": a good state in which all come through
//! and a bad one in which none does, changed at each frame. The bad state lasts `burst` frames in the
//! mean; the good one as long as makes the share of `loss`. A `burst` of 1 is no state at all: each
//! frame is lost or not by itself.
//!
//! The lines on which something is under way.
//!
//! A line that has been silent for a while is as one that was never used: nothing need be kept of it. So
//! the memory is that of the clients that were active within the last second, not of all.

use crate::population::{Direction, Profile};
use crate::seam::Client;
use linkweir_model::Random;
use linkweir_wire::Timestamp;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

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

fn later(timestamp: Timestamp, nanos: u64) -> Timestamp {
    Timestamp::from_nanos(timestamp.as_nanos().saturating_add(nanos))
}

/// The losses of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Loss {
    /// Share of the frames that are lost.
    share: f64,
    /// Probabilities to go to the bad state and to leave it; `None` without bursts.
    bursts: Option<(f64, f64)>,
}

impl Loss {
    pub(super) fn new(share: f64, burst: f64) -> Self {
        let has_bursts = burst > 1.0 && share > 0.0 && share < 1.0;
        Self {
            share,
            bursts: has_bursts.then(|| (share / (burst * (1.0 - share)), 1.0 / burst)),
        }
    }

    /// Whether a frame can be lost at all.
    pub(super) fn is_none(&self) -> bool {
        self.share == 0.0
    }

    /// Whether frames of a client depend on those before.
    pub(super) const fn has_bursts(&self) -> bool {
        self.bursts.is_some()
    }

    /// Whether the next frame is lost. `was_bad` is the state of its line after the last frame, where
    /// that is known.
    pub(super) fn draw(&self, was_bad: Option<bool>, random: &mut Random) -> bool {
        let probability = match (self.bursts, was_bad) {
            (Some((_, leave)), Some(true)) => 1.0 - leave,
            (Some((enter, _)), Some(false)) => enter,
            // Nothing is known of it: as at any time.
            (Some(_), None) | (None, _) => self.share,
        };
        random.uniform() < probability
    }
}

/// What a line remembers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct State {
    /// When the last frame of its queue has left.
    pub(super) busy_until: Timestamp,
    /// When the last frame arrives.
    pub(super) last_arrival: Timestamp,
    /// Whether the last frame was lost.
    pub(super) was_bad: Option<bool>,
    used: Timestamp,
}

impl State {
    /// How long a burst of losses may pause.
    const MEMORY: Duration = Duration::from_secs(1);

    fn is_over(&self, now: Timestamp) -> bool {
        let quiet_since = self.used.max(self.busy_until).max(self.last_arrival);
        quiet_since + Self::MEMORY <= now
    }
}

/// The states by client.
#[derive(Debug, Clone, Default)]
pub(super) struct Active {
    states: HashMap<Client, State, BuildHasherDefault<Mix>>,
    /// How many there may be before those that are over are removed.
    sweep_at: usize,
}

impl Active {
    const LEAST: usize = 1024;

    /// The state of a client's line, new where the last is over.
    pub(super) fn of(&mut self, client: Client, now: Timestamp) -> &mut State {
        if self.states.len() >= self.sweep_at {
            self.states.retain(|_, state| !state.is_over(now));
            // A sweep looks at as many as have come since the last one.
            self.sweep_at = (self.states.len() * 2).max(Self::LEAST);
        }
        let state = self.states.entry(client).or_default();
        if state.is_over(now) {
            *state = State::default();
        }
        state.used = now;
        state
    }
}

/// Spreads the numbers of clients, which nobody from outside chooses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        // Multiplication moves what differs up, the fold down again.
        let wide = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = wide ^ (wide >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of the losses, and their mean number in a row, of a million frames.
    fn measured(share: f64, burst: f64) -> (f64, f64) {
        let loss = Loss::new(share, burst);
        let mut random = Random::new(5);
        let (mut lost, mut rows) = (0_u32, 0_u32);
        let mut state = None;
        for _ in 0..1_000_000 {
            let is_lost = loss.draw(state, &mut random);
            rows += u32::from(is_lost && state != Some(true));
            lost += u32::from(is_lost);
            state = Some(is_lost);
        }
        (f64::from(lost) / 1e6, f64::from(lost) / f64::from(rows))
    }

    #[test]
    fn share_and_bursts_are_those_asked_for() {
        let (share, burst) = measured(0.02, 1.0);
        assert!((share - 0.02).abs() < 0.001, "{share}");
        assert!(
            (burst - 1.0 / 0.98).abs() < 0.01,
            "{burst}: as chance makes them"
        );
        let (share, burst) = measured(0.05, 4.0);
        assert!((share - 0.05).abs() < 0.003, "{share}");
        assert!((burst - 4.0).abs() < 0.1, "{burst}");
        let (share, burst) = measured(0.5, 20.0);
        assert!((share - 0.5).abs() < 0.02, "{share}");
        assert!((burst - 20.0).abs() < 0.6, "{burst}");
        assert_eq!(measured(1.0, 1.0).0, 1.0);
        assert!(Loss::new(0.0, 1.0).is_none());
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let mut active = Active::default();
        let second = |n: u64| Timestamp::from_nanos(n * 1_000_000_000);
        for client in 0..1_000_000_u32 {
            // A thousand clients a second, each once.
            let now = second(10) + Duration::from_millis(client.into());
            active.of(client, now).was_bad = Some(true);
        }
        assert!(active.states.len() < 4096, "{}", active.states.len());
        let last = second(10) + Duration::from_millis(999_999);
        assert_eq!(active.of(999_999, last).was_bad, Some(true));
        assert_eq!(
            active.of(999_999, last + Duration::from_secs(1)).was_bad,
            None
        );
    }

    #[test]
    fn a_queue_is_not_forgotten_before_it_is_empty() {
        let mut active = Active::default();
        let now = Timestamp::from_nanos(5);
        active.of(1, now).busy_until = now + Duration::from_secs(3);
        let state = *active.of(1, now + Duration::from_secs(2));
        assert_eq!(state.busy_until, now + Duration::from_secs(3));
    }
}
