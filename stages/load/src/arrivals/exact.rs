//! Arrivals of a model whose number in the duration is known beforehand.
//!
//! A path of a model strays far from the mean where it visits a state only a few times. Here its rates are taken
//! as they are drawn, and the number of sessions is given: of an inhomogeneous Poisson process with a given
//! number of arrivals these are independent of each other, each with a density like the rate (Cox, Lewis 1966,
//! *The Statistical Analysis of Series of Events*, sec. 2.1). They are drawn in order, one after the
//! other: of `k` that are left, the first takes `1 - U^(1/k)` of the expected arrivals that are left.

use super::{Arrivals, RateSource, whole_nanos};
use linkweir_model::Random;

/// Most bins of a duration: they are walked through before the first session.
const MAX_BINS: u64 = 1 << 24;

/// So many arrivals within a duration, spread as the rates of a path of a model.
#[derive(Debug, Clone)]
pub struct Exact<R> {
    source: R,
    bin_ns: f64,
    end_ns: f64,
    random: Random,
    /// Arrivals that are left.
    left: u64,
    /// Expected arrivals that are left, in the rates of the source.
    mass: f64,
    /// Number of the next bin, and the end of this one.
    next_bin: u64,
    edge_ns: f64,
    /// Expected arrivals in a whole bin like this one.
    rate: f64,
    at_ns: f64,
}

impl<R: RateSource + Clone> Exact<R> {
    /// `sessions` arrivals before `duration_ns`, in bins of `bin_ns` (at least 1). `None` where the path has no
    /// arrivals in this time, or 2^24 bins and more.
    #[must_use]
    pub fn new(
        source: R,
        bin_ns: u64,
        duration_ns: u64,
        sessions: u64,
        random: Random,
    ) -> Option<Self> {
        let bin_ns = bin_ns.max(1);
        if duration_ns.div_ceil(bin_ns) >= MAX_BINS {
            return None;
        }
        let mass = expected(&mut source.clone(), bin_ns, duration_ns);
        (mass > 0.0 && mass.is_finite()).then_some(Self {
            source,
            bin_ns: float(bin_ns),
            end_ns: float(duration_ns),
            random,
            left: sessions,
            mass,
            next_bin: 0,
            edge_ns: 0.0,
            rate: 0.0,
            at_ns: 0.0,
        })
    }
}

impl<R: RateSource> Exact<R> {
    fn begin_bin(&mut self) {
        self.rate = at_least_zero(self.source.next_bin());
        self.at_ns = self.edge_ns;
        self.next_bin += 1;
        self.edge_ns = (float(self.next_bin) * self.bin_ns).min(self.end_ns);
    }
}

impl<R: RateSource> Arrivals for Exact<R> {
    fn next(&mut self) -> Option<u64> {
        self.left.checked_sub(1)?;
        let share = -(-self.random.exponential() / float(self.left)).exp_m1();
        let mut gap = self.mass * share;
        self.mass = (self.mass - gap).max(0.0);
        self.left -= 1;
        loop {
            let in_bin = (self.edge_ns - self.at_ns) / self.bin_ns * self.rate;
            if gap < in_bin {
                self.at_ns += gap / self.rate * self.bin_ns;
                break;
            }
            if self.edge_ns >= self.end_ns {
                // Rounding has left a little more than there is.
                self.at_ns = self.edge_ns;
                break;
            }
            gap -= in_bin;
            self.begin_bin();
        }
        // The end itself is no part of the duration.
        Some(whole_nanos(self.at_ns.min(self.end_ns - 1.0)))
    }
}

/// Expected arrivals of the path before `duration_ns`.
fn expected(source: &mut impl RateSource, bin_ns: u64, duration_ns: u64) -> f64 {
    let mut sum = 0.0;
    let mut left = duration_ns;
    while left > 0 {
        let rate = at_least_zero(source.next_bin());
        let used = left.min(bin_ns);
        sum += rate * (float(used) / float(bin_ns));
        left -= used;
    }
    sum
}

/// What is no number is none.
const fn at_least_zero(rate: f64) -> f64 {
    rate.max(0.0)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a length of time, a number of sessions"
)]
const fn float(of: u64) -> f64 {
    of as f64
}
