//! A Poisson process of one rate.

use linkweir_model::Random;

use super::{Arrivals, whole_nanos};

/// Exponential gaps of one mean, which know nothing of each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Poisson {
    mean_gap_ns: f64,
    at_ns: f64,
    random: Random,
}

impl Poisson {
    /// So many sessions a second on average.
    #[must_use]
    pub fn new(rate: f64, random: Random) -> Self {
        Self {
            mean_gap_ns: 1e9 / rate.max(f64::MIN_POSITIVE),
            at_ns: 0.0,
            random,
        }
    }
}

impl Arrivals for Poisson {
    #[inline]
    fn next(&mut self) -> Option<u64> {
        // Below a nanosecond of error for the first 100 days.
        self.at_ns += self.random.exponential() * self.mean_gap_ns;
        Some(whole_nanos(self.at_ns))
    }
}
