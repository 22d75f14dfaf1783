//! Quantiles over time in bounded memory.

use std::collections::BTreeMap;

use crate::{Coarse, Payload as _};

/// A [`Coarse`] for each bin of time in which there is a value.
///
/// Shape: at most `max_bins` of 1 KiB. Where there would be more, bins are made twice as long, so that a bin is always as
/// long as all others. Values may come in any order.
#[derive(Debug, Clone)]
pub struct CoarseSeries {
    width_ns: u64,
    max_bins: usize,
    bins: BTreeMap<u64, Coarse>,
}

impl CoarseSeries {
    /// Bins of `width_ns` nanoseconds (at least one) at first, at most `max_bins` (at least one).
    #[must_use]
    pub fn new(width_ns: u64, max_bins: usize) -> Self {
        Self {
            width_ns: width_ns.max(1),
            max_bins: max_bins.max(1),
            bins: BTreeMap::new(),
        }
    }

    /// Counts a value at a time in nanoseconds.
    pub fn record(&mut self, time_ns: u64, value: u64) {
        self.bins
            .entry(time_ns / self.width_ns)
            .or_default()
            .record(value);
        while self.bins.len() > self.max_bins {
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        for (number, bin) in std::mem::take(&mut self.bins) {
            self.bins.entry(number / 2).or_default().merge(&bin);
        }
    }

    /// Length of a bin, nanoseconds.
    #[must_use]
    pub const fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Begin of each bin, nanoseconds, and its values, in order of time.
    pub fn bins(&self) -> impl Iterator<Item = (u64, &Coarse)> {
        let bins = self.bins.iter();
        bins.map(|(number, bin)| (number.saturating_mul(self.width_ns), bin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_widen_and_keep_all_values() {
        let mut series = CoarseSeries::new(10, 4);
        for time in (0..200).rev() {
            series.record(time, 1000 + time);
        }
        assert_eq!(series.width_ns(), 80);
        let bins: Vec<_> = series.bins().map(|(at, bin)| (at, bin.count())).collect();
        assert_eq!(bins, [(0, 80), (80, 80), (160, 40)]);
        assert_eq!(series.bins().last().unwrap().1.max(), Some(1199));
        series.record(u64::MAX, 1);
        assert_eq!(series.bins().map(|(_, bin)| bin.count()).sum::<u64>(), 201);
    }
}
