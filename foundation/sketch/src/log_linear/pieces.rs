//! A histogram in pieces that are no larger than a message may be.

use super::{LogLinear, lower};

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
