//! Mean, autocovariance and histogram of counts.

use std::collections::BTreeMap;

/// Lags at which autocovariances are compared, bins; 0 is the variance.
pub(super) const LAGS: [usize; 6] = [0, 1, 2, 4, 8, 16];
/// Lags over which the model is fitted and checked, bins.
pub(super) const FIT_LAGS: usize = 30;

/// Mean of counts, and their autocovariances at the lags that were asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moments {
    /// Arrivals in a bin.
    pub(super) mean: f64,
    /// At each of the lags; lag 0 is the variance.
    pub(super) covariances: Vec<f64>,
}

impl Moments {
    /// Of counts: sums over the pairs that are so far apart, divided by the number of bins (the usual
    /// estimator, which `linkweir model` has too).
    pub(super) fn of(counts: &[u64], lags: &[usize]) -> Self {
        let bins = counts.len().max(1) as f64;
        let mean = counts.iter().sum::<u64>() as f64 / bins;
        let apart: Vec<f64> = counts.iter().map(|count| *count as f64 - mean).collect();
        let at = |lag: &usize| {
            let pairs = apart.iter().zip(apart.iter().skip(*lag));
            pairs.map(|(a, b)| a * b).sum::<f64>() / bins
        };
        Self {
            mean,
            covariances: lags.iter().map(at).collect(),
        }
    }

    /// The mean and all covariances.
    pub(super) fn figures(&self) -> impl Iterator<Item = f64> + '_ {
        std::iter::once(self.mean).chain(self.covariances.iter().copied())
    }
}

/// Part of the bins that had so many arrivals.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Histogram(BTreeMap<u64, f64>);

impl Histogram {
    /// Of counts.
    pub(super) fn of(counts: &[u64]) -> Self {
        let part = 1.0 / counts.len().max(1) as f64;
        let mut parts = BTreeMap::new();
        for count in counts {
            *parts.entry(*count).or_insert(0.0) += part;
        }
        Self(parts)
    }

    /// Half of what two differ by: 0 for the same, 1 for nothing in common.
    pub(super) fn total_variation(&self, other: &Self) -> f64 {
        let at = |histogram: &Self, count: &u64| histogram.0.get(count).copied().unwrap_or(0.0);
        let mine = self
            .0
            .keys()
            .map(|count| (at(self, count) - at(other, count)).abs());
        let only_theirs = other
            .0
            .iter()
            .filter(|(count, _)| !self.0.contains_key(count));
        (mine.sum::<f64>() + only_theirs.map(|(_, part)| part).sum::<f64>()) / 2.0
    }

    /// Arrivals in a bin and part of the bins, in order.
    pub(super) fn points(&self) -> Vec<(f64, f64)> {
        self.0
            .iter()
            .map(|(count, part)| (*count as f64, *part))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_few_counts() {
        let moments = Moments::of(&[1, 3, 1, 3], &[0, 1, 2]);
        assert_eq!(moments.mean, 2.0);
        assert_eq!(moments.covariances, [1.0, -0.75, 0.5]);
        assert_eq!(moments.figures().count(), 4);
    }

    #[test]
    fn total_variation_is_half_the_difference() {
        let a = Histogram::of(&[1, 1, 2, 3]);
        let b = Histogram::of(&[1, 2, 2, 5]);
        assert!((a.total_variation(&b) - 0.5).abs() < 1e-12);
        assert_eq!(a.total_variation(&a), 0.0);
        assert!((a.total_variation(&Histogram::of(&[7])) - 1.0).abs() < 1e-12);
        assert_eq!(a.points(), [(1.0, 0.5), (2.0, 0.25), (3.0, 0.25)]);
    }
}
