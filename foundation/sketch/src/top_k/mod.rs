//! The most frequent keys of a stream in bounded memory.
//!
//! Space-Saving: a table of `capacity` keys with a count and an error each. A key that is not in a
//! full table takes the place of the one with the smallest count and inherits that count as its error.
//! For every key in the table `count - error <= true count <= count`; every key whose true count
//! exceeds `total / capacity` is in the table; a key that is not in it occurred at most
//! [`TopK::floor`] times.
//!
//! Cost: one hash look-up and a step or two in a heap per key, and for a key that is new to a full
//! table the way down the heap; at most `capacity` keys of at most
//! `max_key_bytes` bytes. Each key may carry a payload of its own (a small histogram, say) that starts
//! afresh when the key enters the table.
//!
//! Source: A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k
//! elements in data streams", ICDT 2005; the merge: P. Agarwal et al., "Mergeable summaries",
//! PODS 2012, in the form for Space-Saving tables.

mod parts;

pub use parts::TopPart;

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// What a [`TopK`] keeps with each key.
pub trait Payload: Default {
    /// Adds what `other` holds.
    fn merge(&mut self, other: &Self);

    /// Forgets everything; may keep its memory for the next key.
    fn reset(&mut self) {
        *self = Self::default();
    }
}

impl Payload for () {
    fn merge(&mut self, _other: &Self) {}
}

/// One key of a [`TopK`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopEntry<'a, P> {
    /// The key, cut off at the limit of the table.
    pub key: &'a [u8],
    /// Whether a longer key was cut off: all keys with these first bytes are counted as one.
    pub is_truncated: bool,
    /// At least the true count.
    pub count: u64,
    /// How much too large `count` may be.
    pub error: u64,
    /// What was kept with the key since it entered the table.
    pub payload: &'a P,
}

/// Passes on what is a good hash already.
#[derive(Debug, Clone, Copy, Default)]
struct Passed(u64);

impl Hasher for Passed {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Slots by the hash of their key, which is keyed afresh in each process: nobody who sends keys can
/// make two of them meet, and by chance two of 2048 do so once in 10^13 runs (and are then counted as
/// one). For that, a new key costs no second copy in the index.
type Index = HashMap<u64, usize, BuildHasherDefault<Passed>>;

#[derive(Debug, Clone)]
struct Slot<P> {
    hash: u64,
    key: Vec<u8>,
    is_truncated: bool,
    count: u64,
    error: u64,
    /// Place of this slot in the heap.
    at: usize,
    payload: P,
}

/// A mergeable Space-Saving table over byte strings.
#[derive(Debug, Clone)]
pub struct TopK<P = ()> {
    capacity: usize,
    max_key_bytes: usize,
    total: u64,
    /// How often a key may have occurred that is not in the table though it is not full: what smaller
    /// tables lost that were merged into this one. No count is below it.
    absent: u64,
    slots: Vec<Slot<P>>,
    hasher: RandomState,
    index: Index,
    /// Counts and slots as a binary heap, the smallest count first. The count is here too, so that the
    /// way down the heap stays within it.
    heap: Vec<(u64, usize)>,
}

impl<P: Payload> TopK<P> {
    /// A table of at most `capacity` keys (at least one) of at most `max_key_bytes` bytes.
    #[must_use]
    pub fn new(capacity: usize, max_key_bytes: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            max_key_bytes,
            total: 0,
            absent: 0,
            slots: Vec::new(),
            hasher: RandomState::new(),
            index: Index::default(),
            heap: Vec::new(),
        }
    }

    /// Counts one occurrence of `key`; gives its payload to add to.
    pub fn record(&mut self, key: &[u8]) -> Option<&mut P> {
        self.record_n(key, 1)
    }

    /// Counts `times` occurrences of `key`; gives its payload, `None` where `times` is 0.
    pub fn record_n(&mut self, key: &[u8], times: u64) -> Option<&mut P> {
        if times == 0 {
            return None;
        }
        self.total = self.total.saturating_add(times);
        let cut = key.get(..self.max_key_bytes).unwrap_or(key);
        let slot = self.slot_for(cut)?;
        let entry = self.slots.get_mut(slot)?;
        entry.count = entry.count.saturating_add(times);
        entry.is_truncated |= cut.len() < key.len();
        let (at, count) = (entry.at, entry.count);
        self.grow(at, count);
        self.slots.get_mut(slot).map(|entry| &mut entry.payload)
    }

    fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// The slot of `key`, made or taken over where there is none.
    fn slot_for(&mut self, key: &[u8]) -> Option<usize> {
        let hash = self.hash(key);
        if let Some(slot) = self.index.get(&hash) {
            return Some(*slot);
        }
        if self.slots.len() < self.capacity {
            return Some(self.insert(hash, key));
        }
        let (_, slot) = *self.heap.first()?;
        let entry = self.slots.get_mut(slot)?;
        self.index.remove(&entry.hash);
        entry.hash = hash;
        entry.key.clear();
        entry.key.extend_from_slice(key);
        entry.error = entry.count;
        entry.is_truncated = false;
        entry.payload.reset();
        self.index.insert(hash, slot);
        Some(slot)
    }

    fn insert(&mut self, hash: u64, key: &[u8]) -> usize {
        let slot = self.slots.len();
        let at = self.heap.len();
        self.slots.push(Slot {
            hash,
            key: key.to_vec(),
            is_truncated: false,
            count: self.absent,
            error: self.absent,
            at,
            payload: P::default(),
        });
        self.index.insert(hash, slot);
        self.heap.push((self.absent, slot));
        self.rise(at);
        slot
    }

    fn count_at(&self, at: usize) -> Option<u64> {
        self.heap.get(at).map(|(count, _)| *count)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for at in [a, b] {
            if let Some(slot) = self
                .heap
                .get(at)
                .and_then(|(_, slot)| self.slots.get_mut(*slot))
            {
                slot.at = at;
            }
        }
    }

    /// Moves a slot with a new, smaller count up the heap.
    fn rise(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.count_at(parent) <= self.count_at(at) {
                return;
            }
            self.swap(parent, at);
            at = parent;
        }
    }

    /// Notes the grown count of the slot at `at` and moves it down the heap.
    fn grow(&mut self, at: usize, count: u64) {
        if let Some(entry) = self.heap.get_mut(at) {
            entry.0 = count;
        }
        self.sink(at);
    }

    /// Moves a slot with a grown count down the heap: smaller ones rise into the gap it leaves, and
    /// only where the gap ends is it written.
    fn sink(&mut self, from: usize) {
        let Some(moved) = self.heap.get(from).copied() else {
            return;
        };
        let mut gap = from;
        while let Some(left) = self.heap.get(2 * gap + 1).copied() {
            let (child, least) = match self.heap.get(2 * gap + 2) {
                Some(right) if right.0 < left.0 => (2 * gap + 2, *right),
                _ => (2 * gap + 1, left),
            };
            if least.0 >= moved.0 {
                break;
            }
            self.put(gap, least);
            gap = child;
        }
        if gap != from {
            self.put(gap, moved);
        }
    }

    /// Writes a place of the heap and tells its slot.
    fn put(&mut self, at: usize, entry: (u64, usize)) {
        if let Some(place) = self.heap.get_mut(at) {
            *place = entry;
        }
        if let Some(slot) = self.slots.get_mut(entry.1) {
            slot.at = at;
        }
    }

    /// Occurrences of all keys, in the table or not; exact.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Number of keys in the table.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The most often a key can have occurred that is not in the table: 0 as long as all fit. No
    /// error is larger.
    #[must_use]
    pub fn floor(&self) -> u64 {
        if self.slots.len() < self.capacity {
            return self.absent;
        }
        self.count_at(0).unwrap_or(0)
    }

    /// The `n` keys with the largest counts, largest first, keys in byte order among equals.
    #[must_use]
    pub fn top(&self, n: usize) -> Vec<TopEntry<'_, P>> {
        let mut all: Vec<_> = self.entries().collect();
        all.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(b.key)));
        all.truncate(n);
        all
    }

    /// All keys of the table, in no order.
    pub fn entries(&self) -> impl Iterator<Item = TopEntry<'_, P>> {
        self.slots.iter().map(|slot| TopEntry {
            key: &slot.key,
            is_truncated: slot.is_truncated,
            count: slot.count,
            error: slot.error,
            payload: &slot.payload,
        })
    }

    /// Adds all keys of a table that has lost none, where they fit.
    fn take_in(&mut self, other: &Self) {
        for theirs in &other.slots {
            let key = theirs.key.get(..self.max_key_bytes).unwrap_or(&theirs.key);
            let Some(slot) = self.slot_for(key) else {
                continue;
            };
            let Some(entry) = self.slots.get_mut(slot) else {
                continue;
            };
            entry.count = entry.count.saturating_add(theirs.count);
            entry.error = entry.error.saturating_add(theirs.error);
            entry.is_truncated |= theirs.is_truncated || key.len() < theirs.key.len();
            entry.payload.merge(&theirs.payload);
            let (at, count) = (entry.at, entry.count);
            self.grow(at, count);
        }
    }

    /// Adds the table of another part of the stream. The guarantees hold for the whole stream, with
    /// errors at most the sum of both. The tables may differ in capacity.
    ///
    /// Cost: where all keys of both fit and `other` has lost none, a look-up for each key of `other`;
    /// else all keys of both are sorted.
    pub fn merge(&mut self, other: &Self) {
        let (my_floor, their_floor) = (self.floor(), other.floor());
        self.total = self.total.saturating_add(other.total);
        if their_floor == 0 && self.slots.len() + other.slots.len() <= self.capacity {
            return self.take_in(other);
        }
        self.absent = my_floor.saturating_add(their_floor);
        let mut slots = std::mem::take(&mut self.slots);
        let mut index = std::mem::take(&mut self.index);
        self.heap.clear();
        let mine = slots.len();
        for theirs in &other.slots {
            let key = theirs.key.get(..self.max_key_bytes).unwrap_or(&theirs.key);
            let hash = self.hash(key);
            let at = *index.entry(hash).or_insert_with(|| {
                slots.push(Slot {
                    hash,
                    key: key.to_vec(),
                    is_truncated: false,
                    // It may have been here and have left.
                    count: my_floor,
                    error: my_floor,
                    at: usize::MAX,
                    payload: P::default(),
                });
                slots.len() - 1
            });
            if let Some(slot) = slots.get_mut(at) {
                slot.count = slot.count.saturating_add(theirs.count);
                slot.error = slot.error.saturating_add(theirs.error);
                slot.is_truncated |= theirs.is_truncated || key.len() < theirs.key.len();
                slot.payload.merge(&theirs.payload);
            }
        }
        if their_floor > 0 {
            for slot in slots.iter_mut().take(mine) {
                if !other.index.contains_key(&other.hash(&slot.key)) {
                    slot.count = slot.count.saturating_add(their_floor);
                    slot.error = slot.error.saturating_add(their_floor);
                }
            }
        }
        slots.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
        slots.truncate(self.capacity);
        // Rising counts in heap order are a heap.
        self.heap = slots
            .iter()
            .enumerate()
            .rev()
            .map(|(at, slot)| (slot.count, at))
            .collect();
        let last = slots.len().saturating_sub(1);
        for (at, slot) in slots.iter_mut().enumerate() {
            slot.at = last - at;
        }
        index.clear();
        index.extend(slots.iter().enumerate().map(|(at, slot)| (slot.hash, at)));
        self.index = index;
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn key(n: u8) -> [u8; 2] {
        [b'k', n]
    }

    fn heap_is_sound(top: &TopK) {
        for (at, (count, slot)) in top.heap.iter().enumerate() {
            assert_eq!(top.slots[*slot].at, at);
            assert_eq!(top.slots[*slot].count, *count);
            if at > 0 {
                assert!(top.count_at((at - 1) / 2) <= top.count_at(at));
            }
        }
        assert_eq!(top.index.len(), top.slots.len());
        for (hash, slot) in &top.index {
            assert_eq!(top.slots[*slot].hash, *hash);
            assert_eq!(top.hash(&top.slots[*slot].key), *hash);
        }
    }

    fn guarantees(top: &TopK, truth: &HashMap<u8, u64>, sharp: bool) {
        heap_is_sound(top);
        let total: u64 = truth.values().sum();
        assert_eq!(top.total(), total);
        for (n, count) in truth {
            match top.entries().find(|entry| entry.key == key(*n)) {
                Some(entry) => {
                    assert!(entry.count >= *count, "count below truth");
                    assert!(entry.count - entry.error <= *count, "error too small");
                }
                None => {
                    assert!(*count <= top.floor(), "a frequent key is missing");
                    assert!(!sharp || *count <= total / top.capacity as u64);
                }
            }
        }
    }

    #[test]
    fn exact_as_long_as_all_fit() {
        let mut top = TopK::<()>::new(3, 10);
        for word in ["b", "a", "b", "c", "b", "a"] {
            top.record(word.as_bytes());
        }
        let got: Vec<_> = top
            .top(2)
            .iter()
            .map(|e| (e.key.to_vec(), e.count, e.error))
            .collect();
        assert_eq!(got, [(b"b".to_vec(), 3, 0), (b"a".to_vec(), 2, 0)]);
        // Full: the newcomer inherits the smallest count.
        top.record(b"d");
        let d = top
            .entries()
            .find(|e| e.key == b"d")
            .map(|e| (e.count, e.error));
        assert_eq!(d, Some((2, 1)));
        assert_eq!(top.len(), 3);
    }

    #[test]
    fn long_keys_are_cut_and_marked() {
        let mut top = TopK::<()>::new(4, 3);
        top.record(b"abc");
        top.record(b"abcdef");
        top.record(b"xy");
        let got: Vec<_> = top
            .top(9)
            .iter()
            .map(|e| (e.key.to_vec(), e.count, e.is_truncated))
            .collect();
        assert_eq!(
            got,
            [(b"abc".to_vec(), 2, true), (b"xy".to_vec(), 1, false)]
        );
    }

    proptest! {
        #[test]
        fn space_saving_guarantees(keys in prop::collection::vec((0_u8..13).prop_map(|n| n * n / 4), 0..400),
                                   capacity in 1_usize..20) {
            let mut top = TopK::new(capacity, 8);
            let mut truth = HashMap::new();
            for n in keys {
                top.record(&key(n));
                *truth.entry(n).or_insert(0_u64) += 1;
            }
            guarantees(&top, &truth, true);
        }

        #[test]
        fn tables_merged_into_a_larger_one_keep_them(
            parts in prop::collection::vec(prop::collection::vec(0_u8..30, 0..60), 0..6),
            after in prop::collection::vec(0_u8..40, 0..50),
            capacity in 1_usize..12, times in 1_usize..4,
        ) {
            let mut all = TopK::new(capacity * times, 8);
            let mut truth = HashMap::new();
            for part in parts {
                let mut one = TopK::new(capacity, 8);
                part.iter().for_each(|n| { one.record(&key(*n)); *truth.entry(*n).or_insert(0_u64) += 1; });
                all.merge(&one);
                guarantees(&all, &truth, false);
                prop_assert!(all.entries().all(|entry| entry.error <= all.floor()));
            }
            after.iter().for_each(|n| { all.record(&key(*n)); *truth.entry(*n).or_insert(0_u64) += 1; });
            guarantees(&all, &truth, false);
        }

        #[test]
        fn merged_tables_keep_them(a in prop::collection::vec(0_u8..30, 0..200),
                                   b in prop::collection::vec(10_u8..40, 0..200),
                                   after in prop::collection::vec(0_u8..40, 0..50),
                                   capacity in 1_usize..20) {
            let (mut one, mut two) = (TopK::new(capacity, 8), TopK::new(capacity, 8));
            let mut truth = HashMap::new();
            a.iter().for_each(|n| { one.record(&key(*n)); *truth.entry(*n).or_insert(0_u64) += 1; });
            b.iter().for_each(|n| { two.record(&key(*n)); *truth.entry(*n).or_insert(0_u64) += 1; });
            one.merge(&two);
            guarantees(&one, &truth, false);
            after.iter().for_each(|n| { one.record(&key(*n)); *truth.entry(*n).or_insert(0_u64) += 1; });
            guarantees(&one, &truth, false);
        }
    }
}
