//! Sequence numbers of TCP: arithmetic modulo 2^32.
//!
//! Source: RFC 9293 sec. 3.4.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A TCP sequence or acknowledgment number.
///
/// There is no `Ord`: "before" on a circle is not transitive, so sorting by it is a mistake the
/// type does not allow. Compare with [`SeqNumber::before`] and [`SeqNumber::after`], which hold
/// for numbers less than 2^31 apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// Whether `self` comes before `other`: the signed distance is negative.
    #[inline]
    #[must_use]
    pub const fn before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// Whether `self` comes after `other`: the signed distance is positive.
    #[inline]
    #[must_use]
    pub const fn after(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }

    /// Whether `self` lies in the `len` numbers that start at `start`.
    ///
    /// Source: RFC 9293 sec. 3.4, the acceptability test of a window.
    #[inline]
    #[must_use]
    pub const fn in_window(self, start: Self, len: u32) -> bool {
        self.0.wrapping_sub(start.0) < len
    }

    #[inline]
    const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0).cast_signed()
    }
}

impl Add<u32> for SeqNumber {
    type Output = Self;
    #[inline]
    fn add(self, octets: u32) -> Self {
        Self(self.0.wrapping_add(octets))
    }
}

impl AddAssign<u32> for SeqNumber {
    #[inline]
    fn add_assign(&mut self, octets: u32) {
        *self = *self + octets;
    }
}

impl Sub<u32> for SeqNumber {
    type Output = Self;
    #[inline]
    fn sub(self, octets: u32) -> Self {
        Self(self.0.wrapping_sub(octets))
    }
}

/// The signed distance from `other` to `self`, in octets.
impl Sub for SeqNumber {
    type Output = i32;
    #[inline]
    fn sub(self, other: Self) -> i32 {
        self.distance_from(other)
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::SeqNumber;

    #[test]
    fn wraps_at_the_top() {
        let last = SeqNumber(u32::MAX);
        assert_eq!(last + 1, SeqNumber(0));
        assert_eq!(SeqNumber(0) - last, 1);
        assert!(last.before(SeqNumber(0)));
        assert!(SeqNumber(5).after(last));
        assert!(SeqNumber(2).in_window(last, 4));
        assert!(!SeqNumber(3).in_window(last, 4));
        assert!(!last.in_window(last, 0));
    }

    proptest! {
        #[test]
        fn addition_and_distance_agree(start: u32, step in 0_u32..0x8000_0000) {
            let seq = SeqNumber(start);
            prop_assert_eq!(i64::from((seq + step) - seq), i64::from(step));
            prop_assert_eq!((seq + step) - step, seq);
            prop_assert_eq!((seq + step).after(seq), step != 0);
            prop_assert_eq!(seq.before(seq + step), step != 0);
            prop_assert!(!(seq + step).before(seq));
        }

        #[test]
        fn before_is_the_mirror_of_after(a: u32, b: u32) {
            let (a, b) = (SeqNumber(a), SeqNumber(b));
            // At 2^31 apart both come before each other: the circle has no other answer.
            prop_assume!((a - b) != i32::MIN);
            prop_assert_eq!(a.before(b), b.after(a));
            prop_assert_eq!(a == b, !a.before(b) && !a.after(b));
            prop_assert_eq!(a - b, -(b - a));
        }

        #[test]
        fn addition_composes(start: u32, x: u32, y: u32) {
            prop_assert_eq!(SeqNumber(start) + x + y, SeqNumber(start) + x.wrapping_add(y));
        }
    }
}
