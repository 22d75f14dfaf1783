//! A bounded hash table whose entries stand in order of age.

use std::num::NonZeroU32;

/// Names an entry while it is in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(NonZeroU32);

impl Id {
    /// The id of a slot by its number plus one.
    #[inline]
    fn of(at: u32) -> Option<Self> {
        NonZeroU32::new(at).map(Self)
    }
}

/// "No slot": slots are stored plus one, so that fresh zeroed memory is an empty table and pages
/// were never used are not touched.
const NONE: u32 = 0;

#[derive(Debug, Clone)]
struct Slot<T> {
    hash: u32,
    /// Next entry of the bucket, or of the free list.
    next: u32,
    older: u32,
    newer: u32,
    value: Option<T>,
}

/// A chained hash table over a slab of at most `capacity` entries, with an age list through them.
///
/// Shape: one `u32` a bucket (a quarter of the capacity, rounded up to a power of two: a table that
/// is far from full, as most are, has all its buckets in the level 2 cache), one slot an entry. Cost: O(1) expected for all; two cache misses a lookup that hits (bucket, slot).
/// The caller keeps the keys in the values and compares them, so that a key stands only once.
///
/// The age list serves both bounds: the oldest entry is the next to time out (one timeout for all
/// entries makes the list a timer wheel with exact slots) and the first to leave when full.
#[derive(Debug, Clone)]
pub struct Table<T> {
    buckets: Vec<u32>,
    slots: Vec<Slot<T>>,
    capacity: usize,
    free: u32,
    oldest: u32,
    newest: u32,
    len: usize,
}

impl<T> Table<T> {
    /// A table for at most `capacity` entries (at least 1, at most 2^31).
    ///
    /// Memory is reserved, not touched.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, 1 << 31);
        Self {
            buckets: vec![NONE; (capacity / 4).next_power_of_two()],
            slots: Vec::with_capacity(capacity),
            capacity,
            free: NONE,
            oldest: NONE,
            newest: NONE,
            len: 0,
        }
    }

    /// Entries in the table.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Entries at most.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether nothing is in the table.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether [`Table::insert`] would refuse.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    #[inline]
    fn bucket_of(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    #[inline]
    fn slot(&self, at: u32) -> Option<&Slot<T>> {
        self.slots.get((at as usize).checked_sub(1)?)
    }

    #[inline]
    fn slot_mut(&mut self, at: u32) -> Option<&mut Slot<T>> {
        self.slots.get_mut((at as usize).checked_sub(1)?)
    }

    /// The first entry with this hash for which `is_key` holds.
    #[inline]
    pub fn find(&self, hash: u32, is_key: impl Fn(&T) -> bool) -> Option<Id> {
        let mut at = self.buckets.get(self.bucket_of(hash)).copied()?;
        while let Some(slot) = self.slot(at) {
            if slot.hash == hash && slot.value.as_ref().is_some_and(&is_key) {
                return Id::of(at);
            }
            at = slot.next;
        }
        None
    }

    /// The entry `id`, where it is still there.
    #[inline]
    #[must_use]
    pub fn get(&self, id: Id) -> Option<&T> {
        self.slot(id.0.get())?.value.as_ref()
    }

    /// The entry `id`, where it is still there.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        self.slot_mut(id.0.get())?.value.as_mut()
    }

    /// Adds an entry as the newest.
    ///
    /// # Errors
    /// Gives the value back when the table is full.
    pub fn insert(&mut self, hash: u32, value: T) -> Result<Id, T> {
        let mut at = self.free;
        if let Some(slot) = self.slot_mut(at) {
            let next = slot.next;
            slot.value = Some(value);
            self.free = next;
        } else {
            if self.slots.len() >= self.capacity {
                return Err(value);
            }
            // At most 2^31 slots: the number fits.
            at = u32::try_from(self.slots.len() + 1).unwrap_or(NONE);
            self.slots.push(Slot {
                hash,
                next: NONE,
                older: NONE,
                newer: NONE,
                value: Some(value),
            });
        }
        let id = Id(NonZeroU32::new(at).unwrap_or(NonZeroU32::MAX));
        self.len += 1;
        self.link_bucket(at, hash);
        self.link_newest(at);
        Ok(id)
    }

    /// Takes an entry out.
    pub fn remove(&mut self, id: Id) -> Option<T> {
        let value = self.slot_mut(id.0.get())?.value.take()?;
        self.unlink_bucket(id.0.get());
        self.unlink_age(id.0.get());
        let free = self.free;
        if let Some(slot) = self.slot_mut(id.0.get()) {
            slot.next = free;
        }
        self.free = id.0.get();
        self.len -= 1;
        Some(value)
    }

    /// Files an entry under another hash; its age stays.
    pub fn rehash(&mut self, id: Id, hash: u32) {
        if self.get(id).is_some() {
            self.unlink_bucket(id.0.get());
            self.link_bucket(id.0.get(), hash);
        }
    }

    /// Makes an entry the newest.
    pub fn refresh(&mut self, id: Id) {
        if self.get(id).is_some() {
            self.unlink_age(id.0.get());
            self.link_newest(id.0.get());
        }
    }

    /// The entry that was added or refreshed longest ago.
    #[inline]
    #[must_use]
    pub fn oldest(&self) -> Option<(Id, &T)> {
        let slot = self.slot(self.oldest)?;
        Some((Id::of(self.oldest)?, slot.value.as_ref()?))
    }

    /// All entries, in no order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }

    fn link_bucket(&mut self, at: u32, hash: u32) {
        let bucket = self.bucket_of(hash);
        let Some(head) = self.buckets.get_mut(bucket) else {
            return;
        };
        let next = std::mem::replace(head, at);
        if let Some(slot) = self.slot_mut(at) {
            slot.hash = hash;
            slot.next = next;
        }
    }

    fn unlink_bucket(&mut self, at: u32) {
        let Some((hash, after)) = self.slot(at).map(|slot| (slot.hash, slot.next)) else {
            return;
        };
        let bucket = self.bucket_of(hash);
        let Some(head) = self.buckets.get_mut(bucket) else {
            return;
        };
        if *head == at {
            *head = after;
            return;
        }
        let mut previous = *head;
        while let Some(slot) = self.slot_mut(previous) {
            if slot.next == at {
                slot.next = after;
                return;
            }
            previous = slot.next;
        }
    }

    fn link_newest(&mut self, at: u32) {
        let newest = self.newest;
        if let Some(slot) = self.slot_mut(at) {
            slot.older = newest;
            slot.newer = NONE;
        }
        match self.slot_mut(newest) {
            Some(slot) => slot.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    fn unlink_age(&mut self, at: u32) {
        let Some((older, newer)) = self.slot(at).map(|slot| (slot.older, slot.newer)) else {
            return;
        };
        match self.slot_mut(older) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
        match self.slot_mut(newer) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_table_refuses_and_the_oldest_can_leave() {
        let mut table = Table::with_capacity(2);
        table.insert(7, "a").unwrap();
        let b = table.insert(7, "b").unwrap();
        assert_eq!(table.insert(7, "c"), Err("c"));
        let (oldest, value) = table.oldest().unwrap();
        assert_eq!(*value, "a");
        table.remove(oldest);
        table.refresh(b);
        table.insert(7, "c").unwrap();
        assert_eq!(table.oldest().unwrap().1, &"b");
        assert_eq!(table.find(7, |v| *v == "a"), None);
        assert!(table.find(7, |v| *v == "c").is_some());
    }

    proptest! {
        /// Against a map and a list, with hashes that collide all the time.
        #[test]
        fn behaves_like_a_map_with_ages(steps in proptest::collection::vec((0_u8..5, 0_u32..12), 1..300)) {
            let mut table: Table<u32> = Table::with_capacity(8);
            let mut ages: Vec<u32> = Vec::new();
            let mut hashes: HashMap<u32, u32> = HashMap::new();
            for (step, key) in steps {
                let hash = hashes.get(&key).copied().unwrap_or(key % 3);
                let found = table.find(hash, |v| *v == key);
                prop_assert_eq!(found.is_some(), ages.contains(&key));
                match (step, found) {
                    (0 | 1, None) => {
                        let full = ages.len() == 8;
                        prop_assert_eq!(table.insert(key % 3, key).is_err(), full);
                        if !full {
                            ages.push(key);
                            hashes.insert(key, key % 3);
                        }
                    }
                    (2, Some(id)) => {
                        prop_assert_eq!(table.remove(id), Some(key));
                        prop_assert_eq!(table.get(id), None);
                        ages.retain(|k| *k != key);
                        hashes.remove(&key);
                    }
                    (3, Some(id)) => {
                        table.refresh(id);
                        ages.retain(|k| *k != key);
                        ages.push(key);
                    }
                    (4, Some(id)) => {
                        table.rehash(id, key + 100);
                        hashes.insert(key, key + 100);
                    }
                    _ => {}
                }
                prop_assert_eq!(table.len(), ages.len());
                prop_assert_eq!(table.oldest().map(|(_, v)| *v), ages.first().copied());
            }
        }
    }
}
