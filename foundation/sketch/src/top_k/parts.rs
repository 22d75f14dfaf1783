//! A table from its parts, as another process gives them.

use super::{Payload, TopK};

/// One key of a table that is put together: what [`TopEntry`](super::TopEntry) shows, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopPart<P> {
    /// The key.
    pub key: Vec<u8>,
    /// Whether a longer key was cut off.
    pub is_truncated: bool,
    /// At least the true count.
    pub count: u64,
    /// How much too large `count` may be.
    pub error: u64,
    /// What was kept with the key.
    pub payload: P,
}

impl<P: Payload> TopK<P> {
    /// A table of the largest keys of another one, with its guarantees.
    ///
    /// `total` is that of the other table; `floor` the most often that a key can have occurred that is
    /// not among `parts`: the [`floor`](TopK::floor) of the other table, or the largest count that was
    /// left out. `None` where the parts contradict one another: more keys than `capacity`, a key twice
    /// or longer than `max_key_bytes`, a count below the floor, an error above the count or the floor,
    /// sure occurrences of more than `total`.
    #[must_use]
    pub fn from_parts(
        capacity: usize,
        max_key_bytes: usize,
        (total, floor): (u64, u64),
        parts: impl IntoIterator<Item = TopPart<P>>,
    ) -> Option<Self> {
        let mut table = Self::new(capacity, max_key_bytes);
        let mut sure = 0_u64;
        for part in parts {
            let is_sound = part.count > 0
                && part.count >= floor
                && part.error <= part.count.min(floor)
                && part.key.len() <= max_key_bytes
                && table.slots.len() < table.capacity
                && !table.index.contains_key(&table.hash(&part.key));
            if !is_sound {
                return None;
            }
            sure = sure.checked_add(part.count - part.error)?;
            table.record_n(&part.key, part.count);
            let last = table.slots.last_mut()?;
            last.is_truncated = part.is_truncated;
            last.error = part.error;
            last.payload = part.payload;
        }
        if sure > total {
            return None;
        }
        table.total = total;
        table.absent = floor;
        Some(table)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// The `most` largest keys of a table, as they would be sent.
    fn sent(table: &TopK, most: usize) -> ((u64, u64), Vec<TopPart<()>>) {
        let all = table.top(usize::MAX);
        let left_out = all.get(most).map_or(0, |entry| entry.count);
        let parts = all.iter().take(most).map(|entry| TopPart {
            key: entry.key.to_vec(),
            is_truncated: entry.is_truncated,
            count: entry.count,
            error: entry.error,
            payload: (),
        });
        (
            (table.total(), table.floor().max(left_out)),
            parts.collect(),
        )
    }

    #[test]
    fn parts_that_contradict_one_another_are_refused() {
        let part = |key: &[u8], count, error| TopPart {
            key: key.to_vec(),
            is_truncated: false,
            count,
            error,
            payload: (),
        };
        let made = |sums, parts: Vec<TopPart<()>>| TopK::from_parts(2, 3, sums, parts);
        assert!(made((5, 1), vec![part(b"a", 4, 1), part(b"b", 2, 1)]).is_some());
        assert!(
            made((5, 1), vec![part(b"a", 4, 2)]).is_none(),
            "error above the floor"
        );
        assert!(
            made((5, 5), vec![part(b"a", 4, 1)]).is_none(),
            "count below the floor"
        );
        assert!(
            made((9, 0), vec![part(b"a", 4, 0), part(b"a", 2, 0)]).is_none(),
            "twice"
        );
        assert!(
            made((9, 0), vec![part(b"abcd", 4, 0)]).is_none(),
            "too long"
        );
        assert!(
            made((3, 0), vec![part(b"a", 4, 0)]).is_none(),
            "more than all"
        );
        assert!(made((0, 0), vec![part(b"a", 0, 0)]).is_none(), "nothing");
        let three = vec![part(b"a", 1, 0), part(b"b", 1, 0), part(b"c", 1, 0)];
        assert!(made((9, 0), three).is_none(), "too many");
    }

    proptest! {
        #[test]
        fn guarantees_hold_for_tables_that_were_sent_and_merged(
            streams in prop::collection::vec(prop::collection::vec(0_u8..30, 0..150), 1..5),
            capacity in 1_usize..20, most in 1_usize..20,
        ) {
            let mut truth: HashMap<u8, u64> = HashMap::new();
            let mut all = TopK::<()>::new(capacity, 8);
            for stream in &streams {
                let mut one = TopK::<()>::new(capacity, 8);
                for n in stream {
                    one.record(&[*n]);
                    *truth.entry(*n).or_default() += 1;
                }
                let (sums, parts) = sent(&one, most);
                all.merge(&TopK::from_parts(capacity, 8, sums, parts).expect("a sound table"));
            }
            prop_assert_eq!(all.total(), truth.values().sum::<u64>());
            for (n, count) in &truth {
                match all.entries().find(|entry| entry.key == [*n]) {
                    Some(entry) => {
                        prop_assert!(entry.count >= *count);
                        prop_assert!(entry.count - entry.error <= *count);
                    }
                    None => prop_assert!(*count <= all.floor()),
                }
            }
        }
    }
}
