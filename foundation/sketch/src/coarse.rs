//! A small histogram to carry by the hundred: one per key of a [`TopK`](crate::TopK).
//!
//! Buckets: eight per octave from 2^10 to 2^42 (for nanoseconds: a microsecond to 73 minutes), values
//! outside go to the nearest end. Cost: 1 KiB once a value was seen; counts saturate at `u32::MAX`.
//!
//! Not a [`LogLinear`](crate::LogLinear): that has 8 KiB for each octave, 64-bit counts and a sum, and gives a quantile below
//! 1024 exactly, all of which would change what is written of the top keys, and their memory.

use crate::Payload;

const SUB_BITS: u32 = 3;
const LOWEST_BIT: u32 = 10;
const BUCKETS: usize = 256;

/// A mergeable histogram with quantiles within 12.5 %.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coarse {
    buckets: Option<Box<[u32; BUCKETS]>>,
    count: u64,
    min: u64,
    max: u64,
}

fn bucket(value: u64) -> usize {
    let bits = value.max(1).ilog2();
    if bits < LOWEST_BIT {
        return 0;
    }
    let octave = (bits - LOWEST_BIT) as usize;
    let sub = usize::try_from((value >> (bits - SUB_BITS)) & 7).unwrap_or(0);
    (octave * 8 + sub).min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let octave = (bucket / 8) as u64;
    let sub = (bucket % 8) as u64;
    ((9 + sub) << (u64::from(LOWEST_BIT - SUB_BITS) + octave)) - 1
}

impl Coarse {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts a value `times` times.
    pub fn record_n(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let buckets = self.buckets.get_or_insert_with(|| Box::new([0; BUCKETS]));
        if let Some(bucket) = buckets.get_mut(bucket(value)) {
            *bucket = bucket.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
        }
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.count = self.count.saturating_add(times);
        self.max = self.max.max(value);
    }

    /// Number of values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Largest value; exact; `None` where there is none.
    #[must_use]
    pub const fn max(&self) -> Option<u64> {
        if self.count == 0 {
            None
        } else {
            Some(self.max)
        }
    }

    /// Smallest value; exact; `None` where there is none.
    #[must_use]
    pub const fn min(&self) -> Option<u64> {
        if self.count == 0 {
            None
        } else {
            Some(self.min)
        }
    }

    /// The used buckets in rising order: number of the bucket, number of values in it.
    pub fn buckets(&self) -> impl Iterator<Item = (u8, u32)> + '_ {
        let buckets = self.buckets.iter().flat_map(|buckets| buckets.iter());
        (0..=u8::MAX)
            .zip(buckets.copied())
            .filter(|(_, count)| *count > 0)
    }

    /// The used buckets in rising order: the largest value that may be in each, never above the largest there is, and
    /// the number of values in it.
    pub fn values(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.buckets().map(|(at, count)| {
            let value = match at {
                u8::MAX => self.max,
                _ => upper(usize::from(at)),
            };
            (value.min(self.max), count)
        })
    }

    /// Number of values in buckets above that of `value`: of those less than 12.5 % larger it leaves some out.
    #[must_use]
    pub fn count_above(&self, value: u64) -> u64 {
        let end = bucket(value);
        self.buckets()
            .filter(|(at, _)| usize::from(*at) > end)
            .map(|(_, count)| u64::from(count))
            .sum()
    }

    /// A histogram from its parts, as [`buckets`](Self::buckets), [`min`](Self::min) and
    /// [`max`](Self::max) gave them; `None` where they contradict one another.
    #[must_use]
    pub fn from_parts(
        buckets: impl IntoIterator<Item = (u8, u32)>,
        extremes: Option<(u64, u64)>,
    ) -> Option<Self> {
        let mut histogram = Self::default();
        for (at, count) in buckets {
            if count == 0 {
                return None;
            }
            histogram.record_n(upper(usize::from(at)), u64::from(count));
        }
        match extremes {
            None => (histogram.count == 0).then_some(histogram),
            Some((min, max)) => {
                let are_at_ends = histogram.count > 0
                    && min <= max
                    && bucket(min) == bucket(histogram.min)
                    && bucket(max) == bucket(histogram.max);
                (histogram.min, histogram.max) = (min, max);
                are_at_ends.then_some(histogram)
            }
        }
    }

    /// The value that at least `per_mille` of a thousand values do not exceed: at most 12.5 % too
    /// large between 2^10 and 2^42, never above the largest value.
    #[must_use]
    pub fn quantile(&self, per_mille: u16) -> Option<u64> {
        let buckets = self.buckets.as_ref().filter(|_| self.count > 0)?;
        let rank = (u128::from(self.count) * u128::from(per_mille))
            .div_ceil(1000)
            .max(1);
        let mut seen = 0_u128;
        for (at, count) in buckets.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank {
                // The last bucket has no upper end.
                let value = if at == BUCKETS - 1 {
                    self.max
                } else {
                    upper(at)
                };
                return Some(value.min(self.max));
            }
        }
        Some(self.max)
    }
}

impl Payload for Coarse {
    fn merge(&mut self, other: &Self) {
        if let Some(theirs) = &other.buckets {
            let mine = self.buckets.get_or_insert_with(|| Box::new([0; BUCKETS]));
            for (a, b) in mine.iter_mut().zip(theirs.iter()) {
                *a = a.saturating_add(*b);
            }
        }
        if other.count > 0 {
            self.min = if self.count == 0 {
                other.min
            } else {
                self.min.min(other.min)
            };
        }
        self.count = self.count.saturating_add(other.count);
        self.max = self.max.max(other.max);
    }

    /// Clears only the buckets between the smallest and the largest value: in a stream of ever new
    /// keys a payload rarely held more than a value or two.
    fn reset(&mut self) {
        if let Some(buckets) = &mut self.buckets
            && let Some(used) = buckets.get_mut(bucket(self.min)..=bucket(self.max))
        {
            used.fill(0);
        }
        (self.count, self.min, self.max) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_and_what_is_above_one() {
        let mut histogram = Coarse::default();
        histogram.record_n(1 << 20, 3);
        histogram.record(5_000_000_000);
        let values: Vec<_> = histogram.values().collect();
        assert_eq!(values, [((9 << 17) - 1, 3), (5_000_000_000, 1)]);
        assert_eq!(histogram.count_above((1 << 20) - 1), 4);
        assert_eq!(histogram.count_above(1 << 20), 1);
        assert_eq!(histogram.count_above(5_000_000_000), 0);
    }

    #[test]
    fn edges() {
        for value in (1024_u64..5000).chain((11..42).map(|b| (1 << b) + (1 << (b - 1)))) {
            let at = bucket(value);
            assert!(
                upper(at) >= value && upper(at) - value <= value / 8,
                "{value}"
            );
            assert_eq!(bucket(upper(at)), at);
            assert_eq!(bucket(upper(at) + 1), (at + 1).min(BUCKETS - 1));
        }
        assert_eq!(
            (bucket(0), bucket(1023), bucket(u64::MAX)),
            (0, 0, BUCKETS - 1)
        );
        let mut h = Coarse::default();
        assert_eq!((h.quantile(500), h.max()), (None, None));
        h.record(u64::MAX);
        assert_eq!(h.quantile(500), Some(u64::MAX));
        h.record(5_000);
        h.reset();
        assert_eq!((h.quantile(500), h.max(), h.count()), (None, None, 0));
        assert!(
            h.buckets
                .is_some_and(|buckets| buckets.iter().all(|n| *n == 0))
        );
    }

    #[test]
    fn parts_that_contradict_one_another_are_refused() {
        let parts =
            |buckets: &[(u8, u32)], extremes| Coarse::from_parts(buckets.iter().copied(), extremes);
        assert!(parts(&[(0, 2)], Some((3, 9))).is_some());
        assert_eq!(parts(&[(0, 2)], Some((9, 3))), None);
        assert_eq!(parts(&[(0, 0)], Some((3, 9))), None);
        assert_eq!(parts(&[(0, 2)], Some((3, 1 << 20))), None);
        assert_eq!(parts(&[(0, 2)], None), None);
        assert_eq!(parts(&[], Some((3, 9))), None);
    }

    proptest! {
        #[test]
        fn parts_give_the_same_again(values in prop::collection::vec(any::<u64>().prop_map(|v| v >> (v % 60)), 0..50)) {
            let mut h = Coarse::default();
            values.iter().for_each(|v| h.record(*v));
            prop_assert_eq!(Coarse::from_parts(h.buckets(), h.min().zip(h.max())), Some(h));
        }

        #[test]
        fn merging_is_recording_all(a in prop::collection::vec(any::<u64>(), 0..50),
                                    b in prop::collection::vec(0_u64..1 << 40, 1..50)) {
            let (mut one, mut two, mut all) = (Coarse::default(), Coarse::default(), Coarse::default());
            a.iter().for_each(|v| { one.record(*v); all.record(*v); });
            b.iter().for_each(|v| { two.record(*v); all.record(*v); });
            one.merge(&two);
            prop_assert_eq!(&one, &all);
        }
    }
}
