//! Exact counters for a set of keys that ought to be small, such as methods or status codes, and is
//! bounded even where it is not.
//!
//! The first `max_keys` distinct keys have a counter each, everything else is counted together.
//! Cost: one ordered-map look-up per key; memory bounded by `max_keys * max_key_bytes`.

use std::collections::BTreeMap;

/// Longest key that gets a counter of its own.
const MAX_KEY_BYTES: usize = 64;

/// Counters by key, at most so many; the rest under "other".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundedCounts {
    max_keys: usize,
    counts: BTreeMap<Box<[u8]>, u64>,
    other: u64,
}

impl BoundedCounts {
    /// At most `max_keys` keys of at most 64 bytes.
    #[must_use]
    pub const fn new(max_keys: usize) -> Self {
        Self {
            max_keys,
            counts: BTreeMap::new(),
            other: 0,
        }
    }

    /// Counts `key` once.
    pub fn record(&mut self, key: &[u8]) {
        self.record_n(key, 1);
    }

    /// Counts `key` `times` times.
    pub fn record_n(&mut self, key: &[u8], times: u64) {
        if let Some(count) = self.counts.get_mut(key) {
            *count = count.saturating_add(times);
        } else if self.counts.len() < self.max_keys && key.len() <= MAX_KEY_BYTES {
            self.counts.insert(key.into(), times);
        } else {
            self.other = self.other.saturating_add(times);
        }
    }

    /// Counts `times` occurrences of keys that are not distinguished.
    pub const fn record_other(&mut self, times: u64) {
        self.other = self.other.saturating_add(times);
    }

    /// Adds the counts of `other`. Nothing is lost; where both together have too many keys, which of
    /// them keep a counter depends on the order of merging.
    pub fn merge(&mut self, other: &Self) {
        for (key, count) in &other.counts {
            self.record_n(key, *count);
        }
        self.other = self.other.saturating_add(other.other);
    }

    /// Keys and counts, in byte order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.counts
            .iter()
            .map(|(key, count)| (key.as_ref(), *count))
    }

    /// Keys and counts, the largest count first.
    #[must_use]
    pub fn by_count(&self) -> Vec<(&[u8], u64)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_by_key(|entry| std::cmp::Reverse(entry.1));
        all
    }

    /// Occurrences of keys that have no counter of their own.
    #[must_use]
    pub const fn other(&self) -> u64 {
        self.other
    }

    /// Occurrences of all keys.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts
            .values()
            .fold(self.other, |sum, count| sum.saturating_add(*count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_rest_is_other() {
        let mut counts = BoundedCounts::new(2);
        for key in ["GET", "POST", "GET", "BREW", "GET"] {
            counts.record(key.as_bytes());
        }
        counts.record(&[b'x'; 65]);
        assert_eq!(counts.by_count(), [(&b"GET"[..], 3), (&b"POST"[..], 1)]);
        assert_eq!((counts.other(), counts.total()), (2, 6));
    }

    proptest! {
        #[test]
        fn merging_loses_nothing(a in prop::collection::vec(0_u8..12, 0..60),
                                 b in prop::collection::vec(0_u8..12, 0..60), max in 0_usize..16) {
            let (mut one, mut two, mut all) =
                (BoundedCounts::new(max), BoundedCounts::new(max), BoundedCounts::new(max));
            a.iter().for_each(|k| { one.record(&[*k]); all.record(&[*k]); });
            b.iter().for_each(|k| { two.record(&[*k]); all.record(&[*k]); });
            one.merge(&two);
            prop_assert_eq!(one.total(), all.total());
            if max >= 12 {
                prop_assert_eq!(&one, &all);
            }
            prop_assert!(one.iter().count() <= max);
        }
    }
}
