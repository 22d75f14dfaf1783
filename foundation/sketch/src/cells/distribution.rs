//! A distribution: how many values, their moments and how they are spread.
//!
//! Not a [`LogLinear`](crate::LogLinear): the shape is in the header of the archive and differs by series, the first bucket holds
//! everything below it, the squares are kept, and a quantile lies within its bucket instead of at its end.

/// Values of one series in one step or row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// Which value goes to which bucket.
    pub shape: Buckets,
    /// Values.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// The sum of their squares.
    pub squares: u128,
    /// The smallest; meaningless where there is none.
    pub min: u64,
    /// The largest; meaningless where there is none.
    pub max: u64,
    /// Values by bucket, as many as the shape has.
    pub buckets: Vec<u64>,
}

impl Distribution {
    /// One without values.
    #[must_use]
    pub fn new(shape: Buckets) -> Self {
        Self {
            shape,
            count: 0,
            sum: 0,
            squares: 0,
            min: u64::MAX,
            max: 0,
            buckets: vec![0; shape.len()],
        }
    }

    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(u128::from(value));
        // The square of a u64 fits.
        let square = u128::from(value) * u128::from(value);
        self.squares = self.squares.saturating_add(square);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if let Some(bucket) = self.buckets.get_mut(self.shape.index(value)) {
            *bucket = bucket.saturating_add(1);
        }
    }

    /// Adds the values of another of the same shape.
    pub fn merge(&mut self, other: &Self) {
        if self.shape != other.shape {
            return;
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// The mean; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The standard deviation of the values; `None` without values.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let variance = mean.mul_add(-mean, self.squares as f64 / self.count as f64);
        Some(variance.max(0.0).sqrt())
    }

    /// The value below which a share of `share` (0 to 1) of the values lies, exact to one bucket;
    /// `None` without values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let (min, max) = (self.min as f64, self.max as f64);
        let rank = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0);
        let mut before = 0.0;
        for (index, values) in self.buckets.iter().enumerate() {
            let values = *values as f64;
            if values > 0.0 && before + values >= rank {
                // Only part of the first and last bucket used has values.
                let (from, to) = self.shape.edges(index);
                let is_last = index + 1 == self.buckets.len();
                let to = if is_last { max } else { to.min(max) };
                let from = from.max(min).min(to);
                let within = (rank - before - 0.5) / values;
                return Some(within.mul_add(to - from, from).clamp(min, max.max(min)));
            }
            before += values;
        }
        Some(max)
    }

    /// The histogram: every bucket from the first to the last with values, and how many values are
    /// above it. The first bucket of all begins with the smallest value, the last one ends with the
    /// largest.
    #[must_use]
    pub fn bins(&self) -> Vec<Bin> {
        let used = |values: &u64| *values > 0;
        let (Some(first), Some(last)) = (
            self.buckets.iter().position(used),
            self.buckets.iter().rposition(used),
        ) else {
            return Vec::new();
        };
        let total = self
            .buckets
            .iter()
            .fold(0_u64, |sum, one| sum.saturating_add(*one));
        let mut above = total;
        let within = self
            .buckets
            .iter()
            .enumerate()
            .skip(first)
            .take(last + 1 - first);
        within
            .map(|(index, values)| {
                let (mut low, mut high) = self.shape.edges(index);
                if index == 0 {
                    low = high.min(self.min as f64);
                }
                if index + 1 == self.buckets.len() {
                    high = low.max(self.max as f64);
                }
                above = above.saturating_sub(*values);
                Bin {
                    low,
                    high,
                    count: *values,
                    above,
                    total,
                }
            })
            .collect()
    }
}

/// A bucket of a histogram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Its values are at least this.
    pub low: f64,
    /// Its values are below this; the largest value of all may be equal to it.
    pub high: f64,
    /// Its values.
    pub count: u64,
    /// Values of the buckets after it.
    pub above: u64,
    /// Values of all buckets.
    pub total: u64,
}

impl Bin {
    /// Its share of all values.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.count as f64 / self.total.max(1) as f64
    }

    /// The complementary distribution function at its upper edge: the share of values above it.
    #[must_use]
    pub fn ccdf(&self) -> f64 {
        self.above as f64 / self.total.max(1) as f64
    }

    /// The probability density in it, per unit; `None` where it has no width.
    #[must_use]
    pub fn density(&self) -> Option<f64> {
        let width = self.high - self.low;
        (width > 0.0).then(|| self.share() / width)
    }
}

// The shape of a log-linear histogram: which value goes to which bucket.

/// Buckets of a distribution: each octave `[2^e, 2^(e+1))` from `2^low_bits` to `2^high_bits` in
/// `2^sub_bits` parts of equal width, one bucket below and one above.
///
/// A value is known to one part in `2^sub_bits`; the first bucket holds everything below
/// `2^low_bits`, the last everything from `2^high_bits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buckets {
    /// The exponent of the first octave.
    pub low_bits: u8,
    /// The exponent after that of the last octave.
    pub high_bits: u8,
    /// Parts of an octave, as an exponent.
    pub sub_bits: u8,
}

impl Buckets {
    /// The most parts of an octave, as an exponent.
    const MAX_SUB_BITS: u8 = 8;

    /// Whether the shape makes sense: octaves in order, all within 64 bits.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.low_bits < self.high_bits && self.high_bits < 64 && self.sub_bits <= Self::MAX_SUB_BITS
    }

    /// Number of buckets.
    #[must_use]
    pub const fn len(self) -> usize {
        2 + ((self.high_bits.saturating_sub(self.low_bits) as usize) << (self.sub_bits & 15))
    }

    /// Whether there is none: never, there are always the first and the last.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        false
    }

    /// The bucket of a value.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the part of an octave is below 2^sub_bits"
    )]
    #[inline]
    #[must_use]
    pub const fn index(self, value: u64) -> usize {
        if value == 0 || value >> self.low_bits == 0 {
            return 0;
        }
        if value >> self.high_bits != 0 {
            return self.len() - 1;
        }
        let exponent = 63 - value.leading_zeros();
        let sub = self.sub_bits as u32;
        let mask = (1_u64 << sub) - 1;
        let part = if exponent >= sub {
            (value >> (exponent - sub)) & mask
        } else {
            (value << (sub - exponent)) & mask
        };
        1 + (((exponent as usize) - self.low_bits as usize) << sub) + part as usize
    }

    /// The values of a bucket: from, and up to but not including; the last one has no end and gives
    /// its beginning twice.
    #[must_use]
    pub fn edges(self, index: usize) -> (f64, f64) {
        let last = self.len() - 1;
        if index == 0 {
            return (0.0, power(u32::from(self.low_bits)));
        }
        if index >= last {
            let from = power(u32::from(self.high_bits));
            return (from, from);
        }
        let at = index - 1;
        let octave = at >> self.sub_bits;
        let part = at & ((1 << self.sub_bits) - 1);
        let base = power(u32::try_from(octave).unwrap_or(0) + u32::from(self.low_bits));
        let width = base / power(u32::from(self.sub_bits));
        let from = width.mul_add(part as f64, base);
        (from, from + width)
    }
}

/// `2^exponent`.
fn power(exponent: u32) -> f64 {
    (1_u64 << exponent.min(63)) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHAPE: Buckets = Buckets {
        low_bits: 4,
        high_bits: 40,
        sub_bits: 3,
    };

    #[test]
    fn moments() {
        let mut one = Distribution::new(SHAPE);
        assert_eq!((one.mean(), one.quantile(0.5)), (None, None));
        for value in [2, 4, 4, 4, 5, 5, 7, 9] {
            one.add(value);
        }
        assert_eq!(one.mean(), Some(5.0));
        assert_eq!(one.standard_deviation(), Some(2.0));
        assert_eq!(one.quantile(0.0).map(f64::floor), Some(2.0));
        assert_eq!(one.quantile(1.0).map(f64::ceil), Some(9.0));
    }

    #[test]
    fn the_bins_are_all_values() {
        let mut one = Distribution::new(SHAPE);
        assert_eq!(one.bins(), []);
        for value in [3, 9, 40, 40, 47, 1 << 41] {
            one.add(value);
        }
        let bins = one.bins();
        let (first, last) = (bins[0], bins[bins.len() - 1]);
        assert_eq!(
            (first.low, first.high, first.count, first.above),
            (3.0, 16.0, 2, 4)
        );
        let end = (1_u64 << 41) as f64;
        assert_eq!((last.low, last.high, last.ccdf()), (end / 2.0, end, 0.0));
        let forty = bins.iter().find(|bin| bin.low == 40.0).unwrap();
        assert_eq!(
            (forty.high, forty.count, forty.share(), forty.ccdf()),
            (44.0, 2, 2.0 / 6.0, 2.0 / 6.0)
        );
        assert_eq!(forty.density(), Some(2.0 / 6.0 / 4.0));
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), 6);
        // No hole between two of them.
        assert!(bins.windows(2).all(|pair| pair[0].high == pair[1].low));
        let area: f64 = bins
            .iter()
            .map(|bin| bin.density().unwrap() * (bin.high - bin.low))
            .sum();
        assert!((area - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn merging_is_adding_and_quantiles_are_within_a_bucket(
            values in prop::collection::vec(0_u64..1 << 42, 1..300), cut in 0_usize..300, share in 0.0..1.0
        ) {
            let (mut a, mut b, mut all) = (Distribution::new(SHAPE), Distribution::new(SHAPE), Distribution::new(SHAPE));
            for (at, value) in values.iter().enumerate() {
                if at < cut { a.add(*value) } else { b.add(*value) }
                all.add(*value);
            }
            a.merge(&b);
            prop_assert_eq!(&a, &all);
            let mut sorted = values;
            sorted.sort_unstable();
            let rank: f64 = share * sorted.len() as f64;
            let rank = rank.ceil();
            let exact = sorted.iter().zip(1_u32..).find(|(_, n)| f64::from(*n) >= rank);
            let exact = *exact.unwrap().0;
            let found = all.quantile(share).unwrap();
            let (from, to) = SHAPE.edges(SHAPE.index(exact));
            let to = if to == from { f64::INFINITY } else { to };
            prop_assert!(found >= from && found <= to, "{found} for {exact}");
        }
    }

    #[test]
    fn octaves_are_parted() {
        let shape = Buckets {
            low_bits: 3,
            high_bits: 6,
            sub_bits: 2,
        };
        assert_eq!(shape.len(), 14);
        let at: Vec<usize> = [0, 7, 8, 9, 10, 15, 16, 31, 32, 63, 64, u64::MAX]
            .map(|value| shape.index(value))
            .to_vec();
        assert_eq!(at, [0, 0, 1, 1, 2, 4, 5, 8, 9, 12, 13, 13]);
        assert_eq!(shape.edges(2), (10.0, 12.0));
        assert_eq!(shape.edges(13), (64.0, 64.0));
    }

    #[test]
    fn small_numbers_are_exact_where_octaves_have_more_parts_than_numbers() {
        let shape = Buckets {
            low_bits: 0,
            high_bits: 20,
            sub_bits: 3,
        };
        let mut seen: Vec<usize> = (0..16).map(|value| shape.index(value)).collect();
        seen.dedup();
        assert_eq!(seen.len(), 16);
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(value: u64, low in 0_u8..20, octaves in 1_u8..40, sub in 0_u8..6) {
            let shape = Buckets { low_bits: low, high_bits: low + octaves, sub_bits: sub };
            prop_assert!(shape.is_valid());
            let index = shape.index(value);
            prop_assert!(index < shape.len());
            let (from, to) = shape.edges(index);
            prop_assert!(value as f64 >= from);
            prop_assert!(index == shape.len() - 1 || (value as f64) < to);
        }
    }
}
