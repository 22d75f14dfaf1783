//! All histograms of a step: bins of those that were used, and moments.

use super::catalogue::{HISTOGRAMS, HistogramId};
use crate::LogLinear;

/// One histogram of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Linear {
    /// Values counted.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The sum of their squares.
    pub sum_squares: u128,
    /// The smallest; meaningless where there is none.
    pub min: u64,
    /// The largest; meaningless where there is none.
    pub max: u64,
    /// Values per bin; empty until the first value.
    pub bins: Vec<u64>,
    /// The same values without the limits of the bins, for families that have such a twin
    /// ([`HistogramId::twin_divisor`]), in its unit.
    pub twin: Option<Box<LogLinear>>,
}

/// The histograms of the catalogue, as far as anything was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramSet {
    all: Vec<Linear>,
}

impl Default for HistogramSet {
    fn default() -> Self {
        Self {
            all: vec![Linear::default(); HISTOGRAMS.len()],
        }
    }
}

impl HistogramSet {
    /// Counts `value` once.
    #[inline]
    pub fn add(&mut self, id: HistogramId, value: u64) {
        self.add_n(id, value, 1);
    }

    /// Counts a value of a histogram with a twin once, given in the unit of the twin.
    pub fn add_fine(&mut self, id: HistogramId, fine: u64) {
        let divisor = id.twin_divisor();
        let value = match divisor {
            None | Some(0 | 1) => fine,
            // A constant is divided by without a division.
            Some(1000) => fine / 1000,
            Some(divisor) => fine / u64::from(divisor),
        };
        self.add(id, value);
        if divisor.is_some()
            && let Some(one) = self.all.get_mut(usize::from(id.0))
        {
            one.twin.get_or_insert_default().record(fine);
        }
    }

    /// Counts `value` `times` times. Values outside the range go to the nearest end.
    #[inline]
    pub fn add_n(&mut self, id: HistogramId, value: u64, times: u64) {
        let (Some(one), Some(def)) = (self.all.get_mut(usize::from(id.0)), id.def()) else {
            return;
        };
        if times == 0 {
            return;
        }
        if one.bins.is_empty() {
            one.bins.resize(def.bins(), 0);
            one.min = u64::MAX;
        }
        let above = value.saturating_sub(u64::from(def.min));
        // A division costs as much as all the rest.
        let at = match (def.bin_size, u32::try_from(above)) {
            (0 | 1, _) => above,
            (size, Ok(small)) => u64::from(small / size),
            (size, Err(_)) => above / u64::from(size),
        };
        let last = one.bins.len() - 1;
        let at = usize::try_from(at).unwrap_or(last).min(last);
        if let Some(bin) = one.bins.get_mut(at) {
            *bin = bin.saturating_add(times);
        }
        one.count = one.count.saturating_add(times);
        one.sum = one.sum.saturating_add(value.saturating_mul(times));
        let square = u128::from(value).saturating_mul(u128::from(value));
        one.sum_squares = one
            .sum_squares
            .saturating_add(square.saturating_mul(u128::from(times)));
        one.min = one.min.min(value);
        one.max = one.max.max(value);
    }

    /// A histogram, where anything was counted.
    #[must_use]
    pub fn get(&self, id: HistogramId) -> Option<&Linear> {
        self.all.get(usize::from(id.0)).filter(|one| one.count > 0)
    }

    /// All that hold anything.
    pub fn used(&self) -> impl Iterator<Item = (HistogramId, &Linear)> {
        (0..)
            .map(HistogramId)
            .zip(&self.all)
            .filter(|(_, one)| one.count > 0)
    }

    /// Adds what `other` counted: the same as having counted it here.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.all.iter_mut().zip(&other.all) {
            if theirs.count == 0 {
                continue;
            }
            if mine.count == 0 {
                mine.clone_from(theirs);
                continue;
            }
            mine.count = mine.count.saturating_add(theirs.count);
            mine.sum = mine.sum.saturating_add(theirs.sum);
            mine.sum_squares = mine.sum_squares.saturating_add(theirs.sum_squares);
            mine.min = mine.min.min(theirs.min);
            mine.max = mine.max.max(theirs.max);
            for (a, b) in mine.bins.iter_mut().zip(&theirs.bins) {
                *a = a.saturating_add(*b);
            }
            if let Some(twin) = &theirs.twin {
                mine.twin.get_or_insert_default().merge(twin);
            }
        }
    }

    /// Forgets all values, gives the memory back.
    pub fn clear(&mut self) {
        self.all.fill(Linear::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_to_their_bins_and_merging_adds() {
        let id = HistogramId::named("tcp_mss_used").unwrap();
        assert_eq!(id.def().unwrap().bin_size, 4);
        let (mut a, mut b, mut all) = <(HistogramSet, HistogramSet, HistogramSet)>::default();
        for value in [0, 3, 1460, 1_000_000] {
            a.add(id, value);
            all.add(id, value);
        }
        b.add_n(id, 1463, 2);
        all.add_n(id, 1463, 2);
        a.merge(&b);
        assert_eq!(a, all);
        let one = a.get(id).unwrap();
        assert_eq!((one.count, one.min, one.max), (6, 0, 1_000_000));
        assert_eq!(one.bins.first(), Some(&2));
        assert_eq!(one.bins.get(365), Some(&3));
        assert_eq!(one.bins.last(), Some(&1));
        a.clear();
        assert_eq!(a.used().count(), 0);
    }

    #[test]
    fn a_twin_knows_what_the_last_bin_hides() {
        let id = HistogramId::named("tcp_rtt_max_in").unwrap();
        let (mut a, mut b) = <(HistogramSet, HistogramSet)>::default();
        a.add_fine(id, 1_500);
        b.add_fine(id, 5_000_000);
        a.merge(&b);
        let one = a.get(id).unwrap();
        assert_eq!((one.bins.get(1), one.bins.last()), (Some(&1), Some(&1)));
        let twin = one.twin.as_ref().unwrap();
        assert_eq!((twin.min(), twin.max()), (Some(1_500), Some(5_000_000)));
    }
}
