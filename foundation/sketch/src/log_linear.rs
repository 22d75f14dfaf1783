//! A histogram of 64-bit values with buckets that are linear inside an octave.
//!
//! Buckets: values below 2048 have one each; above, every octave `[2^k, 2^(k+1))` is cut into 1024
//! buckets of equal width. A bucket is therefore never wider than 1/1024 of any value in it, and a
//! quantile, given as the largest value of its bucket, is at most 0.098 % too large.
//!
//! Cost: [`LogLinear::record`] is O(1), about 2 ns; memory is 8 KiB per octave in which a value was
//! seen, at most 440 KiB. Count, sum, minimum and maximum are exact.
//!
//! Source: the shape of `HdrHistogram` (G. Tene), with a fixed precision of 2^10 per octave.

/// Buckets per octave, as a power of two.
const SUB_BITS: u32 = 10;
/// Buckets per octave.
const SUB: usize = 1 << SUB_BITS;
/// Octave 0 holds the values below 1024; octave `n` those with bit `9 + n` as the highest.
const OCTAVES: usize = 64 - SUB_BITS as usize + 1;

type Octave = Box<[u64; SUB]>;

/// A mergeable log-linear histogram of `u64` values.
///
/// Shape: at most 56 320 buckets. Errors: quantiles within +0.098 %, never below the true value.
/// Counts saturate at `u64::MAX`.
#[derive(Clone)]
pub struct LogLinear {
    octaves: [Option<Octave>; OCTAVES],
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for LogLinear {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for LogLinear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogLinear")
            .field("count", &self.count)
            .field("sum", &self.sum)
            .field("min", &self.min())
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

impl PartialEq for LogLinear {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count
            && self.sum == other.sum
            && self.min == other.min
            && self.max == other.max
            && self.buckets().eq(other.buckets())
    }
}

impl Eq for LogLinear {}

/// Octave and place of the bucket of `value`.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "only the ten bits of the mask are used"
)]
const fn place(value: u64) -> (usize, usize) {
    let bits = u64::BITS - value.leading_zeros();
    let octave = bits.saturating_sub(SUB_BITS);
    let shift = octave.saturating_sub(1);
    // The mask keeps the ten bits below the highest one (all ten bits in octave 0).
    (octave as usize, ((value >> shift) as usize) & (SUB - 1))
}

/// The largest value of a bucket.
const fn upper(octave: usize, place: usize) -> u64 {
    if octave == 0 {
        return place as u64;
    }
    let shift = octave - 1;
    let low = ((place | SUB) as u64) << shift;
    low | ((1 << shift) - 1)
}

/// The smallest value of the bucket in which `value` is.
const fn lower(value: u64) -> u64 {
    let shift = place(value).0.saturating_sub(1);
    value >> shift << shift
}

#[cold]
#[inline(never)]
fn new_octave() -> Octave {
    Box::new([0; SUB])
}

impl LogLinear {
    /// An empty histogram; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            octaves: [const { None }; OCTAVES],
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts a value `times` times.
    #[inline]
    pub fn record_n(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let (octave, at) = place(value);
        if let Some(slot) = self.octaves.get_mut(octave)
            && let Some(bucket) = slot.get_or_insert_with(new_octave).get_mut(at)
        {
            *bucket = bucket.saturating_add(times);
        }
        self.count = self.count.saturating_add(times);
        self.sum = self
            .sum
            .saturating_add(u128::from(value) * u128::from(times));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all values of `other`: the same as having recorded them here.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.octaves.iter_mut().zip(&other.octaves) {
            let Some(theirs) = theirs else { continue };
            let mine = mine.get_or_insert_with(new_octave);
            for (a, b) in mine.iter_mut().zip(theirs.iter()) {
                *a = a.saturating_add(*b);
            }
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Number of values; exact.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Sum of all values; exact.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
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

    /// Largest value; exact; `None` where there is none.
    #[must_use]
    pub const fn max(&self) -> Option<u64> {
        if self.count == 0 {
            None
        } else {
            Some(self.max)
        }
    }

    /// Arithmetic mean, rounded down; `None` where there is no value.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The smallest recorded value that at least the share `q` of all values does not exceed
    /// (nearest-rank), given as the largest value of its bucket.
    ///
    /// Shape: `q` from 0 to 1; outside it is clamped, NaN counts as 0. `quantile(0.0)` is the exact
    /// minimum, `quantile(1.0)` the exact maximum. At most 0.098 % above the true value, never below.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        if q.is_nan() || q <= 0.0 {
            return Some(self.min);
        }
        let rank = rank(q, self.count);
        let mut seen = 0_u64;
        for (upper, count) in self.buckets() {
            seen = seen.saturating_add(count);
            if seen >= rank {
                return Some(upper.clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }

    /// The used buckets in rising order: largest value of the bucket, number of values in it.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.octaves
            .iter()
            .enumerate()
            .filter_map(|(number, octave)| Some((number, octave.as_ref()?)))
            .flat_map(|(number, octave)| {
                octave
                    .iter()
                    .enumerate()
                    .filter(|(_, count)| **count > 0)
                    .map(move |(at, count)| (upper(number, at), *count))
            })
    }

    /// A histogram from its parts, as [`buckets`](Self::buckets), [`sum`](Self::sum), [`min`](Self::min) and
    /// [`max`](Self::max) gave them, perhaps in another process.
    ///
    /// `None` where they contradict one another: a value that ends no bucket, extremes outside of the
    /// first and the last bucket, a sum that these buckets cannot have.
    #[must_use]
    pub fn from_parts(
        buckets: impl IntoIterator<Item = (u64, u64)>,
        sum: u128,
        extremes: Option<(u64, u64)>,
    ) -> Option<Self> {
        let mut histogram = Self::new();
        let mut count = 0_u64;
        for (value, times) in buckets {
            let (octave, at) = place(value);
            if times == 0 || upper(octave, at) != value {
                return None;
            }
            count = count.checked_add(times)?;
            histogram.record_n(value, times);
        }
        let Some((min, max)) = extremes else {
            return (count == 0 && sum == 0).then_some(histogram);
        };
        let are_at_ends = count > 0
            && min <= max
            && place(min) == place(histogram.min)
            && place(max) == place(histogram.max);
        let least = histogram
            .buckets()
            .map(|(value, times)| u128::from(lower(value)) * u128::from(times))
            .fold(0, u128::saturating_add);
        if !are_at_ends || !(least..=histogram.sum).contains(&sum) {
            return None;
        }
        (histogram.sum, histogram.min, histogram.max) = (sum, min, max);
        Some(histogram)
    }

    /// The complementary distribution: for each used bucket its largest value and the share of all
    /// values that are greater than it, falling from at most 1 to 0.
    #[must_use]
    pub fn ccdf(&self) -> Vec<(u64, f64)> {
        let mut left = self.count;
        let total = to_f64(self.count.max(1));
        self.buckets()
            .map(|(upper, count)| {
                left = left.saturating_sub(count);
                (upper.min(self.max), to_f64(left) / total)
            })
            .collect()
    }

    /// Bytes of memory in use.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.octaves.iter().flatten().count() * size_of::<[u64; SUB]>()
    }
}

/// Nearest rank of share `q` among `count` values, from 1 to `count`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate, and the result is clamped"
)]
fn rank(q: f64, count: u64) -> u64 {
    let exact = q.min(1.0) * to_f64(count);
    // 0.999 * 1000 is 999.0000000000001 in binary; such dust must not move the rank up by one.
    let rank = (exact - exact * 1e-15).ceil() as u64;
    rank.clamp(1, count.max(1))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "shares need no more than 53 bits"
)]
pub(crate) const fn to_f64(value: u64) -> f64 {
    value as f64
}

// A histogram in pieces that are no larger than a message may be.

impl LogLinear {
    /// Histograms of at most `most` buckets each (at least one) that merge into this one exactly, in
    /// whatever order; none of an empty one.
    ///
    /// Each is sound by itself: its sum is one that values in its buckets can have.
    #[must_use]
    pub fn pieces(&self, most: usize) -> Vec<Self> {
        let buckets: Vec<(u64, u64)> = self.buckets().collect();
        let least = |(upper, count): &(u64, u64)| u128::from(lower(*upper)) * u128::from(*count);
        let greatest = |(upper, count): &(u64, u64)| u128::from(*upper) * u128::from(*count);
        // What the values have above the smallest of their buckets goes to the first that can hold it.
        let added = |parts: &mut dyn Iterator<Item = u128>| parts.fold(0, u128::saturating_add);
        let mut above = self
            .sum
            .saturating_sub(added(&mut buckets.iter().map(least)));
        let mut pieces = Vec::new();
        for chunk in buckets.chunks(most.max(1)) {
            let (Some((first, _)), Some((last, _))) = (chunk.first(), chunk.last()) else {
                continue;
            };
            let from = added(&mut chunk.iter().map(least));
            let to = added(&mut chunk.iter().map(greatest));
            let share = above.min(to - from);
            above -= share;
            let extremes = (lower(*first).max(self.min), (*last).min(self.max));
            pieces.extend(Self::from_parts(
                chunk.iter().copied(),
                from + share,
                Some(extremes),
            ));
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_and_bounds_agree() {
        for value in (0..5000).chain([u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, 1 << 40]) {
            let (octave, at) = place(value);
            assert!(octave < OCTAVES && at < SUB);
            let bound = upper(octave, at);
            assert!(bound >= value);
            assert_eq!(place(bound), (octave, at));
            assert!(u128::from(bound - value) * 1024 <= u128::from(value));
            if bound < u64::MAX {
                assert_ne!(place(bound + 1), (octave, at));
            }
        }
        assert_eq!(upper(place(2047).0, place(2047).1), 2047);
        assert_eq!(upper(place(2048).0, place(2048).1), 2049);
        assert_eq!(place(u64::MAX), (OCTAVES - 1, SUB - 1));
    }

    #[test]
    fn empty_one_and_extremes() {
        let mut h = LogLinear::new();
        assert_eq!(
            (h.count(), h.min(), h.max(), h.mean()),
            (0, None, None, None)
        );
        assert_eq!(h.quantile(0.5), None);
        assert!(h.ccdf().is_empty());
        h.record(7_000_003);
        for q in [-1.0, 0.0, 0.5, 1.0, 2.0, f64::NAN] {
            assert_eq!(h.quantile(q), Some(7_000_003));
        }
        h.record(u64::MAX);
        h.record(0);
        assert_eq!(h.sum(), u128::from(u64::MAX) + 7_000_003);
        assert_eq!((h.min(), h.max()), (Some(0), Some(u64::MAX)));
        assert_eq!(h.quantile(1.0), Some(u64::MAX));
    }

    #[test]
    fn small_values_are_exact() {
        let mut h = LogLinear::new();
        (1..=1000).for_each(|v| h.record(v));
        assert_eq!(h.quantile(0.5), Some(500));
        assert_eq!(h.quantile(0.9), Some(900));
        assert_eq!(h.quantile(0.99), Some(990));
        assert_eq!(h.quantile(0.999), Some(999));
        assert_eq!(h.mean(), Some(500));
        let ccdf = h.ccdf();
        assert_eq!(ccdf.first(), Some(&(1, 0.999)));
        assert_eq!(ccdf.last(), Some(&(1000, 0.0)));
    }

    #[test]
    fn parts_that_contradict_one_another_are_refused() {
        let parts = |buckets: &[(u64, u64)], sum, extremes| {
            LogLinear::from_parts(buckets.iter().copied(), sum, extremes)
        };
        assert_eq!(parts(&[], 0, None), Some(LogLinear::new()));
        assert!(parts(&[(2049, 3)], 3 * 2048, Some((2048, 2048))).is_some());
        // No end of a bucket; a bucket without values; extremes elsewhere; a sum too large or too small.
        assert_eq!(parts(&[(2048, 3)], 3 * 2048, Some((2048, 2048))), None);
        assert_eq!(parts(&[(7, 0)], 0, Some((7, 7))), None);
        assert_eq!(parts(&[(7, 1)], 7, Some((6, 7))), None);
        assert_eq!(parts(&[(7, 1)], 7, None), None);
        assert_eq!(parts(&[], 0, Some((0, 0))), None);
        assert_eq!(parts(&[(2049, 3)], 3 * 2050, Some((2048, 2049))), None);
        assert_eq!(parts(&[(2049, 3)], 3 * 2047, Some((2048, 2049))), None);
        assert_eq!(parts(&[(7, u64::MAX), (8, 1)], 8, Some((7, 8))), None);
    }

    proptest! {
        #[test]
        fn parts_give_the_same_again(values in prop::collection::vec(any::<u64>().prop_map(|v| v >> (v % 60)), 0..200)) {
            let mut h = LogLinear::new();
            values.iter().for_each(|v| h.record(*v));
            let again = LogLinear::from_parts(h.buckets(), h.sum(), h.min().zip(h.max()));
            prop_assert_eq!(again, Some(h));
        }

        #[test]
        fn merging_is_recording_all(a in prop::collection::vec(any::<u64>(), 0..200),
                                    b in prop::collection::vec(0_u64..100_000, 0..200)) {
            let (mut one, mut two, mut all) = (LogLinear::new(), LogLinear::new(), LogLinear::new());
            a.iter().for_each(|v| { one.record(*v); all.record(*v); });
            b.iter().for_each(|v| { two.record(*v); all.record(*v); });
            one.merge(&two);
            prop_assert_eq!(&one, &all);
            prop_assert_eq!(one.count(), (a.len() + b.len()) as u64);
        }

        #[test]
        fn quantiles_are_within_a_thousandth(mut values in prop::collection::vec(
                (0_u32..64, any::<u64>()).prop_map(|(shift, v)| v >> shift), 1..300), q in 0.0_f64..=1.0) {
            let mut h = LogLinear::new();
            values.iter().for_each(|v| h.record(*v));
            values.sort_unstable();
            let at = usize::try_from(rank(q, values.len() as u64)).unwrap() - 1;
            let truth = values[at];
            let got = h.quantile(q).unwrap();
            prop_assert!(got >= truth);
            prop_assert!(u128::from(got - truth) * 1000 <= u128::from(truth), "{got} for {truth}");
            prop_assert_eq!(h.min(), values.first().copied());
            prop_assert_eq!(h.max(), values.last().copied());
            let total: u64 = h.buckets().map(|b| b.1).sum();
            prop_assert_eq!(total, values.len() as u64);
        }
    }

    proptest! {
        #[test]
        fn pieces_merge_into_the_whole(
            values in prop::collection::vec((0_u32..64, any::<u64>()).prop_map(|(shift, v)| v >> shift), 0..300),
            most in 1_usize..40,
        ) {
            let mut whole = LogLinear::new();
            values.iter().for_each(|value| whole.record(*value));
            let mut again = LogLinear::new();
            for piece in whole.pieces(most).iter().rev() {
                prop_assert!(piece.buckets().count() <= most);
                again.merge(piece);
            }
            prop_assert_eq!(again, whole);
        }
    }
}
