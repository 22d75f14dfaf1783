//! The lines on which something is under way.
//!
//! A line that has been silent for a while is as one that was never used: nothing need be kept of it. So
//! the memory is that of the clients that were active within the last second, not of all.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use linkweir_wire::Timestamp;

use crate::seam::Client;

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
