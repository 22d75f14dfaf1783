//! Equal gaps.
//!
//! A Poisson process of one rate.
//!
//! A Poisson process whose rate changes from bin to bin: the discrete-time MMPP of the paper
//! (Eq. (1)), and a slow profile where the model has one.

use super::{Arrivals, whole_nanos};
use linkweir_model::{Random, Sampler};

/// Session k begins at k / rate: the first at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Even {
    gap_ns: f64,
    number: u64,
}

impl Even {
    /// So many sessions a second; a rate that is not above zero has only the first.
    #[must_use]
    pub fn new(rate: f64) -> Self {
        Self {
            gap_ns: 1e9 / rate.max(f64::MIN_POSITIVE),
            number: 0,
        }
    }
}

impl Arrivals for Even {
    #[inline]
    fn next(&mut self) -> Option<u64> {
        // A product, not a sum: the error does not grow.
        #[expect(clippy::cast_precision_loss, reason = "exact to 2^53 sessions")]
        let at = self.number as f64 * self.gap_ns;
        self.number += 1;
        Some(whole_nanos(at))
    }
}

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

/// Bins without an arrival after which a model counts as silent for good.
const MAX_EMPTY_BINS: u32 = 1 << 20;

/// Gives the rate of one bin after the other.
pub trait RateSource {
    /// Expected arrivals in the next bin; what is not above zero is none.
    fn next_bin(&mut self) -> f64;
}

impl RateSource for Sampler {
    fn next_bin(&mut self) -> f64 {
        self.next_rate()
    }
}

/// By what the rates of a model are multiplied so that `wanted` sessions begin a second.
///
/// `mean` is the model's mean of arrivals in a bin and `bin_ns` the length of a bin as it is played,
/// nanoseconds. The autocovariance grows with the square of the factor. 0 where the model is silent.
#[must_use]
pub fn rate_factor(mean: f64, bin_ns: u64, wanted: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a length of time")]
    let expected = wanted * bin_ns as f64 / 1e9;
    if mean > 0.0 { expected / mean } else { 0.0 }
}

/// Arrivals of a model.
///
/// Within a bin of rate R, arrivals are R expected in one bin length, with exponential gaps. At the edge
/// the gap is drawn again at the new rate: the exponential has no memory, so this is exact, and the
/// number in each bin is Poisson of its rate.
#[derive(Debug, Clone)]
pub struct Modulated<R> {
    source: R,
    factor: f64,
    bin_ns: f64,
    random: Random,
    /// Number of the next bin.
    next_bin: u64,
    /// End of this bin.
    edge_ns: f64,
    mean_gap_ns: f64,
    at_ns: f64,
    end_ns: f64,
}

impl<R: RateSource> Modulated<R> {
    /// Plays a model in bins of `bin_ns` (at least 1), its rates times `factor`.
    ///
    /// Another length than the model's own plays it slower or faster: the same counts in other bins.
    #[must_use]
    pub fn new(source: R, bin_ns: u64, factor: f64, random: Random) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a length of time")]
        let bin_ns = bin_ns.max(1) as f64;
        Self {
            source,
            factor,
            bin_ns,
            random,
            next_bin: 0,
            edge_ns: 0.0,
            mean_gap_ns: f64::INFINITY,
            at_ns: 0.0,
            end_ns: f64::INFINITY,
        }
    }

    /// No bin begins at this time or later.
    #[expect(clippy::cast_precision_loss, reason = "a length of time")]
    pub(super) const fn end_at(&mut self, end_ns: u64) {
        self.end_ns = end_ns as f64;
    }

    fn begin_bin(&mut self) {
        let rate = self.source.next_bin() * self.factor;
        self.mean_gap_ns = if rate > 0.0 {
            self.bin_ns / rate
        } else {
            f64::INFINITY
        };
        self.at_ns = self.edge_ns;
        self.next_bin += 1;
        #[expect(clippy::cast_precision_loss, reason = "exact to 2^53 bins")]
        let bins = self.next_bin as f64;
        // A product, not a sum: the edges do not drift.
        self.edge_ns = bins * self.bin_ns;
    }
}

impl<R: RateSource> Arrivals for Modulated<R> {
    fn next(&mut self) -> Option<u64> {
        for _ in 0..MAX_EMPTY_BINS {
            // Infinite in a silent bin; 0 times infinity is no number and not before the edge.
            let at = self.at_ns + self.random.exponential() * self.mean_gap_ns;
            if at < self.edge_ns {
                self.at_ns = at;
                return Some(whole_nanos(at));
            }
            if self.edge_ns >= self.end_ns {
                return None;
            }
            self.begin_bin();
        }
        None
    }
}
