//! The shape of a log-linear histogram: which value goes to which bucket.

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
    use super::*;
    use proptest::prelude::*;

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
