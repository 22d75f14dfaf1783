//! Histograms with fixed bounds, as `/metrics` has them: cumulative over a run.

/// Counts between bounds, which the caller brings: pairs of a bound and of its text.
///
/// Cost: a binary search and an addition a value.
#[derive(Debug, Clone, Copy)]
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
