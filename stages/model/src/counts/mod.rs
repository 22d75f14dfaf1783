//! A series of counts: how many arrivals fell into each bin of time.
//!
//! Counts of long bins spread over shorter ones.

use crate::number::{number, to_count, to_index};
use crate::{Random, poisson};

/// Longest series: 2^22 bins, 485 days of 10 s.
pub const MAX_BINS: usize = 1 << 22;

/// Counts of arrivals in consecutive bins of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    bin_s: f64,
    values: Vec<u32>,
}

/// Why there is no series.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum CountsError {
    /// A bin has no length, or an endless one.
    #[error("a bin of {0} s: its length must be positive")]
    BinLength(f64),
    /// There are no bins.
    #[error("no bins")]
    NoBins,
    /// More than [`MAX_BINS`].
    #[error("{0} bins are more than {MAX_BINS}: choose longer bins")]
    TooManyBins(usize),
    /// A time is no number, or before the first one.
    #[error("time {0} s is not a number, or is before the first one")]
    Time(f64),
}

impl Counts {
    /// The counts of consecutive bins, each `bin_s` seconds long.
    ///
    /// # Errors
    /// A bin length that is not positive, no bins, more than [`MAX_BINS`].
    pub fn new(bin_s: f64, values: Vec<u32>) -> Result<Self, CountsError> {
        if !(bin_s.is_finite() && bin_s > 0.0) {
            return Err(CountsError::BinLength(bin_s));
        }
        match values.len() {
            0 => Err(CountsError::NoBins),
            n if n > MAX_BINS => Err(CountsError::TooManyBins(n)),
            _ => Ok(Self { bin_s, values }),
        }
    }

    /// The counts of arrivals at `times_s`, in seconds after any origin and in any order; the first
    /// bin begins at `begin_s`, the last one is that of the last arrival.
    ///
    /// # Errors
    /// As [`new`](Self::new); a time that is not a number or before `begin_s`.
    pub fn of_times(begin_s: f64, bin_s: f64, times_s: &[f64]) -> Result<Self, CountsError> {
        if !(bin_s.is_finite() && bin_s > 0.0) {
            return Err(CountsError::BinLength(bin_s));
        }
        let mut values = Vec::new();
        for &time in times_s {
            let after = time - begin_s;
            if !(after.is_finite() && after >= 0.0) {
                return Err(CountsError::Time(time));
            }
            let bin = to_index(after / bin_s);
            if bin >= MAX_BINS {
                return Err(CountsError::TooManyBins(bin.saturating_add(1)));
            }
            if bin >= values.len() {
                values.resize(bin + 1, 0_u32);
            }
            if let Some(count) = values.get_mut(bin) {
                *count = count.saturating_add(1);
            }
        }
        Self::new(bin_s, values)
    }

    /// Length of a bin in seconds.
    #[must_use]
    pub const fn bin_s(&self) -> f64 {
        self.bin_s
    }

    /// Arrivals in each bin.
    #[must_use]
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// Number of bins; at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub const fn len(&self) -> usize {
        self.values.len()
    }

    /// All arrivals.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.values.iter().map(|&count| u64::from(count)).sum()
    }

    /// Arrivals per bin.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.total() as f64 / number(self.len())
    }

    /// The fullest bin's count.
    #[must_use]
    pub fn max(&self) -> u32 {
        self.values.iter().copied().max().unwrap_or(0)
    }

    /// The histogram: each count that occurs, in ascending order, with the share of bins that have
    /// it.
    #[must_use]
    pub fn histogram(&self) -> Vec<(u32, f64)> {
        let mut sorted = self.values.clone();
        sorted.sort_unstable();
        let n = number(self.len());
        sorted
            .chunk_by(|a, b| a == b)
            .filter_map(|run| Some((*run.first()?, number(run.len()) / n)))
            .collect()
    }
}

/// How [`spread`] spreads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Length of the given bins in seconds.
    pub from_bin_s: f64,
    /// Length of the bins that are made, in seconds; must divide `from_bin_s`.
    pub bin_s: f64,
    /// Arrivals per bin that are made, on average; `None`: all of those that are given.
    pub mean: Option<f64>,
    /// Seed of the draws.
    pub seed: u64,
}

/// Spreads counts of long bins (of a minute, say) over shorter ones (of 10 s).
///
/// The given counts are taken as the rate in the middle of their bins. Between the middles the rate
/// is interpolated along a line, before the first and after the last it stays; it is scaled to
/// `mean`, and each new bin is a Poisson draw around the rate in its middle. What is made follows the
/// given series from the length of its bins upwards and has no structure below that: it is a
/// surrogate of what was counted, and whoever shows figures from it should say so.
///
/// # Errors
/// A bin length that is not positive or does not divide the given one, no bins, too many.
pub fn spread(counts: &[u64], how: Spread) -> Result<Counts, CountsError> {
    let per_bin = how.from_bin_s / how.bin_s;
    let times = to_index(per_bin.round());
    let is_whole = (per_bin - number(times)).abs() <= 1e-9 * per_bin;
    if !(per_bin.is_finite() && times > 0 && is_whole) {
        return Err(CountsError::BinLength(how.bin_s));
    }
    let bins = counts.len().saturating_mul(times);
    if bins > MAX_BINS {
        return Err(CountsError::TooManyBins(bins));
    }
    let mut rates = Vec::with_capacity(bins);
    for (at, &here) in counts.iter().enumerate() {
        let here = here as f64;
        let before = at.checked_sub(1).and_then(|at| counts.get(at));
        let before = before.map_or(here, |&count| count as f64);
        let after = counts.get(at + 1).map_or(here, |&count| count as f64);
        for step in 0..times {
            // From the middle of the given bin, in parts of it: -1/2 to 1/2.
            let off = (number(step) + 0.5) / number(times) - 0.5;
            let next = if off < 0.0 { before } else { after };
            rates.push(here + (next - here) * off.abs());
        }
    }
    let mean = rates.iter().sum::<f64>() / number(bins);
    let wanted = how.mean.unwrap_or_else(|| mean / number(times));
    let scale = if mean > 0.0 { wanted / mean } else { 0.0 };
    let mut random = Random::new(how.seed);
    let values = rates
        .iter()
        .map(|rate| to_count(poisson::draw(rate * scale, &mut random)))
        .collect();
    Counts::new(how.bin_s, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_histogram() {
        let counts = Counts::new(10.0, vec![1, 3, 1, 7]).unwrap();
        assert_eq!(counts.len(), 4);
        assert_eq!(counts.total(), 12);
        assert_eq!(counts.mean(), 3.0);
        assert_eq!(counts.max(), 7);
        assert_eq!(counts.histogram(), [(1, 0.5), (3, 0.25), (7, 0.25)]);
    }

    #[test]
    fn what_is_no_series_is_refused() {
        for bin_s in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                Counts::new(bin_s, vec![1]),
                Err(CountsError::BinLength(_))
            ));
        }
        assert_eq!(Counts::new(1.0, Vec::new()), Err(CountsError::NoBins));
        assert_eq!(
            Counts::new(1.0, vec![0; MAX_BINS + 1]),
            Err(CountsError::TooManyBins(MAX_BINS + 1))
        );
    }

    #[test]
    fn times_fall_into_bins() {
        let counts = Counts::of_times(100.0, 0.5, &[100.0, 101.6, 100.49, 101.5]).unwrap();
        assert_eq!(counts.values(), [2, 0, 0, 2]);
        assert!(matches!(
            Counts::of_times(0.0, 1.0, &[-0.1]),
            Err(CountsError::Time(_))
        ));
        assert!(matches!(
            Counts::of_times(0.0, 1.0, &[f64::NAN]),
            Err(CountsError::Time(_))
        ));
        assert!(matches!(
            Counts::of_times(0.0, 1e-9, &[1e9]),
            Err(CountsError::TooManyBins(_))
        ));
    }

    const HOW: Spread = Spread {
        from_bin_s: 60.0,
        bin_s: 10.0,
        mean: None,
        seed: 1,
    };

    #[test]
    fn the_total_is_kept_and_the_rate_is_followed() {
        let minutes: Vec<u64> = (0..500).map(|i| 6_000 + 3_000 * (i % 2)).collect();
        let counts = spread(&minutes, HOW).unwrap();
        assert_eq!(counts.len(), 3000);
        assert!((counts.mean() / 1250.0 - 1.0).abs() < 0.005, "{counts:?}");
        // The middle of an even minute is low, that of an odd one high.
        let middle = |odd: usize| -> f64 {
            let of = counts.values().iter().skip(6 * odd + 2).step_by(12);
            of.map(|&count| f64::from(count)).sum::<f64>() / 250.0
        };
        assert!(middle(0) < 1060.0 && middle(1) > 1440.0);
    }

    #[test]
    fn a_mean_can_be_asked_for_and_a_seed_repeats() {
        let how = Spread {
            mean: Some(32.57),
            ..HOW
        };
        let counts = spread(&[70_000; 200], how).unwrap();
        assert!((counts.mean() - 32.57).abs() < 0.5);
        assert_eq!(counts, spread(&[70_000; 200], how).unwrap());
        let other = spread(&[70_000; 200], Spread { seed: 2, ..how }).unwrap();
        assert_ne!(counts, other);
    }

    #[test]
    fn lengths_that_do_not_divide_are_refused() {
        for bin_s in [7.0, 0.0, f64::NAN, 120.0] {
            assert!(spread(&[1, 2], Spread { bin_s, ..HOW }).is_err());
        }
        assert_eq!(spread(&[], HOW), Err(CountsError::NoBins));
        assert_eq!(spread(&[0, 0], HOW).unwrap().total(), 0);
    }
}
