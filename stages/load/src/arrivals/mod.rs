//! When sessions begin: an open loop, planned before anything is sent and never held up by the
//! server.
//!
//! A [`Schedule`] is one of the ways to plan, bounded by [`Limits`]. It is named by its description
//! ([`Word`], what stands on the command line) and its seed: the same two give the same schedule on
//! every machine. Times are nanoseconds from the beginning of the schedule.

mod exact;
mod process;
mod replay;
mod word;

pub use exact::Exact;
pub use process::{Even, Modulated, Poisson, RateSource, rate_factor};
pub use replay::{Replay, ReplayError};
pub use word::{Word, WordError};

use linkweir_model::Sampler;

/// Says when sessions begin.
pub trait Arrivals {
    /// Nanoseconds from the beginning of the schedule to the next session, never less than the one
    /// before; `None` at the end, and from then on.
    fn next(&mut self) -> Option<u64>;
}

/// Where a schedule ends: at the first bound that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// No session begins at this time or later, nanoseconds.
    pub duration_ns: u64,
    /// Most sessions.
    pub sessions: u64,
}

impl Limits {
    /// None.
    pub const NONE: Self = Self {
        duration_ns: u64::MAX,
        sessions: u64::MAX,
    };
}

/// A way to plan, with the random numbers it needs.
#[derive(Debug, Clone)]
pub enum Plan<R = Sampler> {
    /// Equal gaps.
    Even(Even),
    /// A Poisson process of one rate.
    Poisson(Poisson),
    /// A Poisson process whose rate changes from bin to bin (dMMPP).
    Modulated(Modulated<R>),
    /// The same with a number of sessions that is known beforehand.
    Exact(Exact<R>),
    /// Times that were recorded.
    Replay(Replay),
}

impl<R: RateSource> Arrivals for Plan<R> {
    fn next(&mut self) -> Option<u64> {
        match self {
            Self::Even(even) => even.next(),
            Self::Poisson(poisson) => poisson.next(),
            Self::Modulated(modulated) => modulated.next(),
            Self::Exact(exact) => exact.next(),
            Self::Replay(replay) => replay.next(),
        }
    }
}

/// A plan within its bounds.
///
/// Cost of an arrival: a comparison and what the plan costs, at most a logarithm and a step of the
/// chains of the model for each bin that begins.
#[derive(Debug, Clone)]
pub struct Schedule<R = Sampler> {
    plan: Plan<R>,
    limits: Limits,
    planned: u64,
}

impl<R: RateSource> Schedule<R> {
    /// A schedule.
    #[must_use]
    pub fn new(mut plan: Plan<R>, limits: Limits) -> Self {
        if let Plan::Modulated(modulated) = &mut plan {
            // So that a model that has gone silent is not asked for ever.
            modulated.end_at(limits.duration_ns);
        }
        Self {
            plan,
            limits,
            planned: 0,
        }
    }

    /// Sessions so far.
    #[must_use]
    pub const fn planned(&self) -> u64 {
        self.planned
    }

    /// The bounds.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }
}

impl<R: RateSource> Arrivals for Schedule<R> {
    fn next(&mut self) -> Option<u64> {
        if self.planned >= self.limits.sessions {
            return None;
        }
        let Some(at) = self.plan.next().filter(|at| *at < self.limits.duration_ns) else {
            self.limits.sessions = self.planned;
            return None;
        };
        self.planned += 1;
        Some(at)
    }
}

/// A number of nanoseconds, which is never negative here; beyond 64 bits it is the largest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and NaN is 0: wanted"
)]
pub(crate) const fn whole_nanos(nanos: f64) -> u64 {
    nanos as u64
}

#[cfg(test)]
mod tests;
