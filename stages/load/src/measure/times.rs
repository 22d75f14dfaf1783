//! Times of one kind: how they are spread, their mean and their standard deviation.

use linkweir_sketch::LogLinear;
use serde::{Deserialize, Serialize};

/// Any number of times in nanoseconds. Merges by addition.
///
/// Count, minimum, maximum, mean and standard deviation are exact; quantiles are at most 0.098 % too
/// large. Sums and squares are integers, so that nothing depends on the order of merging.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Times {
    histogram: LogLinear,
    /// Sum of the squares.
    squares: u128,
}

impl Times {
    /// Counts one time.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        self.histogram.record(nanos);
        let square = u128::from(nanos) * u128::from(nanos);
        self.squares = self.squares.saturating_add(square);
    }

    /// Adds all times of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// The histogram: count, extremes, quantiles, complementary distribution; nanoseconds.
    #[must_use]
    pub const fn histogram(&self) -> &LogLinear {
        &self.histogram
    }

    /// Number of times.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.histogram.count()
    }

    /// Arithmetic mean, nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| wide(self.histogram.sum()) / wide(self.count().into()))
    }

    /// Standard deviation of the sample, nanoseconds; `None` below two times.
    #[must_use]
    pub fn stdev_ns(&self) -> Option<f64> {
        let count = u128::from(self.count());
        if count < 2 {
            return None;
        }
        // Around the mean rounded down, in integers: squares and mean may be large and nearly equal, and
        // floating point would cancel. What wraps on the way wraps back, for the result is in range.
        let middle = self.histogram.sum() / count;
        let around = self
            .squares
            .wrapping_sub(self.histogram.sum().wrapping_mul(middle).wrapping_mul(2))
            .wrapping_add(middle.wrapping_mul(middle).wrapping_mul(count));
        let rest = wide(self.histogram.sum() % count) / wide(count);
        let squares = wide(around) - wide(count) * rest * rest;
        Some((squares.max(0.0) / wide(count - 1)).sqrt())
    }

    /// The time that the share `q` of all times do not exceed, nanoseconds.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        self.histogram.quantile(q)
    }

    /// Sum of all times, nanoseconds.
    #[must_use]
    pub const fn sum_ns(&self) -> u128 {
        self.histogram.sum()
    }
}

/// What travels between generators. The wide numbers are text, for JSON readers keep 64 bits at most.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    buckets: Vec<(u64, u64)>,
    extremes: Option<(u64, u64)>,
    sum: String,
    squares: String,
}

impl From<Times> for Parts {
    fn from(times: Times) -> Self {
        let histogram = &times.histogram;
        Self {
            buckets: histogram.buckets().collect(),
            extremes: histogram.min().zip(histogram.max()),
            sum: histogram.sum().to_string(),
            squares: times.squares.to_string(),
        }
    }
}

impl TryFrom<Parts> for Times {
    type Error = &'static str;

    fn try_from(parts: Parts) -> Result<Self, Self::Error> {
        const NO_TIMES: &str = "buckets, extremes and sum of times do not belong together";
        let number = |text: &str| text.parse::<u128>().map_err(|_| NO_TIMES);
        let sum = number(&parts.sum)?;
        let histogram =
            LogLinear::from_parts(parts.buckets, sum, parts.extremes).ok_or(NO_TIMES)?;
        Ok(Self {
            histogram,
            squares: number(&parts.squares)?,
        })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "means and deviations need no more than 53 bits"
)]
pub(super) const fn wide(number: u128) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(values: &[u64]) -> Times {
        let mut times = Times::default();
        values.iter().for_each(|nanos| times.record(*nanos));
        times
    }

    #[test]
    fn mean_and_deviation_are_those_of_the_text_book() {
        let few = times(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(few.mean_ns(), Some(5.0));
        assert_eq!(few.stdev_ns(), Some((32.0_f64 / 7.0).sqrt()));
        assert_eq!((times(&[]).mean_ns(), times(&[]).stdev_ns()), (None, None));
        assert_eq!(
            (times(&[3]).mean_ns(), times(&[3]).stdev_ns()),
            (Some(3.0), None)
        );
    }

    #[test]
    fn a_small_deviation_beside_a_large_mean_is_not_lost() {
        // Squares of about 1e34: floating point would keep no digit of the deviation.
        let hour = 100_000_000_000_000_000;
        let close = times(&[hour, hour + 2, hour + 1]);
        assert_eq!(close.stdev_ns(), Some(1.0));
    }

    #[test]
    fn parts_of_another_process_are_checked() {
        let text = serde_json::to_string(&times(&[5, 7, 70_000])).unwrap();
        let refused = |from: &str, to: &str| {
            assert!(text.contains(from), "{text}");
            serde_json::from_str::<Times>(&text.replace(from, to)).unwrap_err()
        };
        refused("\"sum\":\"70012\"", "\"sum\":\"1\"");
        refused("\"sum\":\"70012\"", "\"sum\":\"-1\"");
        refused("[5,1]", "[5,0]");
        refused("\"extremes\":[5,", "\"extremes\":[6,");
        refused("\"squares\"", "\"square\"");
    }

    proptest! {
        #[test]
        fn merging_and_travelling_change_nothing(a in prop::collection::vec(0_u64..1 << 40, 0..60),
                                                 b in prop::collection::vec(any::<u64>(), 0..60)) {
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            let mut one = times(&a);
            one.merge(&times(&b));
            prop_assert_eq!(&one, &times(&all));
            let text = serde_json::to_string(&one).unwrap();
            prop_assert_eq!(serde_json::from_str::<Times>(&text).unwrap(), one);
        }

        #[test]
        fn deviation_agrees_with_two_passes(values in prop::collection::vec(0_u64..1 << 45, 2..100)) {
            let n = values.len() as f64;
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / n;
            let truth = (values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
            let got = times(&values).stdev_ns().unwrap();
            prop_assert!((got - truth).abs() <= 1e-9 * truth.max(1.0), "{} for {}", got, truth);
        }
    }
}
