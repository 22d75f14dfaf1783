//! A series of counts: how many arrivals fell into each bin of time.

mod spread;

pub use spread::{Spread, spread};

use crate::number::{number, to_index};

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
    #[error("time {0} s is no number or before the first one")]
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
    /// As [`new`](Self::new); a time that is no number or before `begin_s`.
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
}
