//! Histograms with fixed bounds, as `/metrics` has them: cumulative over a run.

/// Counts between bounds, which the caller brings: pairs of a bound and of its text.
///
/// Cost: a binary search and an addition a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buckets<const N: usize> {
    /// Not cumulated; what is above the last bound is in `count` only.
    pub(super) buckets: [u64; N],
    pub(super) count: u64,
    pub(super) sum: u128,
}

impl<const N: usize> Default for Buckets<N> {
    fn default() -> Self {
        Self {
            buckets: [0; N],
            count: 0,
            sum: 0,
        }
    }
}

impl<const N: usize> Buckets<N> {
    /// Adds those of another run.
    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// What came since `earlier`, an older state of the same histogram.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let mut grown = *self;
        for (mine, before) in grown.buckets.iter_mut().zip(&earlier.buckets) {
            *mine = mine.saturating_sub(*before);
        }
        grown.count = grown.count.saturating_sub(earlier.count);
        grown.sum = grown.sum.saturating_sub(earlier.sum);
        grown
    }

    /// Counts a value; bounds are inclusive.
    pub(super) fn record(&mut self, bounds: &[(u64, &str); N], value: u64) {
        let at = bounds.partition_point(|(bound, _)| *bound < value);
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += u128::from(value);
    }
}
