//! The line of each client: delay, bandwidth and loss, each way.
//!
//! A frame goes through the queue of its client's line, is lost on the line or not, and arrives half
//! the round-trip time later. [`Paths`] says when; a [`DelayLine`] keeps the frame until then. Both
//! sides of the line are one machine, so what is emulated is exact to the precision with which the
//! frames are sent.
//!
//! A frame that segmentation offload joined is many on the line: [`take_apart`] makes them of it.

use crate::population::Population;
use crate::seam::Client;
use line::{Active, Line, Passage, State};
use linkweir_model::Random;
use linkweir_wire::Timestamp;

mod delay_line;
mod joined;
mod line;
#[cfg(test)]
mod tests;

pub use delay_line::DelayLine;
pub use joined::take_apart;
pub use line::Fate;

/// What became of frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Frames that arrived, at once or later.
    pub passed: u64,
    /// Frames that were lost on the line.
    pub lost: u64,
    /// Frames that were dropped at the tail of a full queue.
    pub dropped: u64,
}

/// One direction of all lines.
#[derive(Debug, Clone)]
struct Way {
    /// By group.
    lines: Vec<Line>,
    counts: Vec<PathCounts>,
    active: Active,
    random: Random,
}

/// The lines of all clients.
#[derive(Debug, Clone)]
pub struct Paths {
    up: Way,
    down: Way,
    is_plain: bool,
}

impl Paths {
    /// The lines of a population. What is lost and how delays vary is that of the seed.
    #[must_use]
    pub fn new(population: &Population, seed: u64) -> Self {
        let profiles = || population.groups().iter().map(|group| &group.profile);
        let way = |lines: Vec<Line>, part| Way {
            counts: vec![PathCounts::default(); lines.len()],
            lines,
            active: Active::default(),
            random: Random::part(seed, part),
        };
        let up = profiles().map(|one| Line::new(one, &one.up)).collect();
        let down = profiles().map(|one| Line::new(one, &one.down)).collect();
        Self {
            up: way(up, u64::from_be_bytes(*b"the ways")),
            down: way(down, u64::from_be_bytes(*b"and back")),
            is_plain: population
                .groups()
                .iter()
                .all(|group| group.profile.is_plain()),
        }
    }

    /// Whether all frames of all clients pass at once: nothing need be asked.
    #[inline]
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// What becomes of a frame from a client to the server. `now` must not go back.
    #[inline]
    pub fn outgoing(
        &mut self,
        population: &Population,
        client: Client,
        bytes: usize,
        now: Timestamp,
    ) -> Fate {
        if self.is_plain {
            return Fate::Now;
        }
        self.up.pass(population.group(client), client, bytes, now)
    }

    /// What becomes of a frame from the server to a client, which reached the interface at `at`.
    #[inline]
    pub fn incoming(
        &mut self,
        population: &Population,
        client: Client,
        bytes: usize,
        at: Timestamp,
    ) -> Fate {
        if self.is_plain {
            return Fate::Now;
        }
        self.down.pass(population.group(client), client, bytes, at)
    }

    /// What became of frames of a group: up, and down. Groups whose lines do nothing are not counted.
    #[must_use]
    pub fn counts(&self, group: u16) -> (PathCounts, PathCounts) {
        let of = |way: &Way| way.counts.get(usize::from(group)).copied();
        (
            of(&self.up).unwrap_or_default(),
            of(&self.down).unwrap_or_default(),
        )
    }
}

impl Way {
    fn pass(&mut self, group: u16, client: Client, bytes: usize, now: Timestamp) -> Fate {
        let place = usize::from(group);
        let (Some(line), Some(counts)) = (self.lines.get(place), self.counts.get_mut(place)) else {
            return Fate::Now;
        };
        if line.is_plain() {
            return Fate::Now;
        }
        let mut none = State::default();
        let state = if line.has_state() {
            self.active.of(client, now)
        } else {
            &mut none
        };
        match line.pass(bytes, now, state, &mut self.random) {
            Passage::Arrives(at) => {
                counts.passed += 1;
                if at > now { Fate::At(at) } else { Fate::Now }
            }
            Passage::Lost => {
                counts.lost += 1;
                Fate::Lost
            }
            Passage::Dropped => {
                counts.dropped += 1;
                Fate::Lost
            }
        }
    }
}
