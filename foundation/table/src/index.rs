//! Finds slots by hash: open addressing with linear probing.

/// Places of a new index that grows.
const FIRST: usize = 1 << 12;

/// Places beside those of a fixed capacity, so that a small index has free ones as well.
const SPARE: usize = 8;

/// Slots of a slab by hash. The keys stand in the slab, where the caller compares them.
///
/// Shape: a place is 8 bytes, the hash beside the slot, so that a slot is read only when all 32 bits
/// agree. Cost: a look-up is nearly always one cache line. What is removed leaves no mark: what stands
/// behind it moves up. The upper bits of the hash must be good: they choose the place.
#[derive(Debug, Clone)]
pub struct Index {
    /// Hash in the upper half, slot plus one in the lower; 0: free.
    places: Vec<u64>,
    len: usize,
    /// Slots for which it has room before it grows.
    room: usize,
}

#[inline]
const fn pack(hash: u32, slot: u32) -> u64 {
    (hash as u64) << 32 | (slot as u64 + 1)
}

/// The slot of a place; `None` where it is free.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
const fn slot_of(place: u64) -> Option<u32> {
    (place as u32).checked_sub(1)
}

impl Index {
    /// An index for any number of slots, at most three quarters full: it doubles when it has to and never
    /// shrinks.
    #[must_use]
    pub fn growing() -> Self {
        Self {
            places: vec![0; FIRST],
            len: 0,
            room: FIRST / 4 * 3,
        }
    }

    /// An index for `capacity` slots, at most three quarters full; with more slots it grows.
    #[must_use]
    pub fn with_capacity(capacity: u32) -> Self {
        let capacity = capacity as usize;
        Self {
            places: vec![0; capacity + capacity / 3 + SPARE],
            len: 0,
            room: capacity,
        }
    }

    /// Bytes of memory.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.places.len() * size_of::<u64>()
    }

    /// Where the search for a hash begins: the hash as a fraction of the places.
    #[inline]
    const fn home(&self, hash: u32) -> usize {
        ((hash as u64 * self.places.len() as u64) >> 32) as usize
    }

    #[inline]
    const fn after(&self, at: usize) -> usize {
        if at + 1 == self.places.len() {
            0
        } else {
            at + 1
        }
    }

    /// Reads the place where the search for a hash begins, so that it is in the cache when it is needed.
    #[inline]
    #[must_use]
    pub fn touch(&self, hash: u32) -> u64 {
        self.places.get(self.home(hash)).copied().unwrap_or(0)
    }

    /// The slot that is probably that of this hash, of which all bits agree, without a look at it.
    #[inline]
    #[must_use]
    pub fn guess(&self, hash: u32) -> Option<u32> {
        self.find(hash, |_| true)
    }

    /// The slot with this hash for which `is_key` holds.
    #[inline]
    pub fn find(&self, hash: u32, mut is_key: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.home(hash);
        loop {
            let place = *self.places.get(at)?;
            let slot = slot_of(place)?;
            if place >> 32 == u64::from(hash) && is_key(slot) {
                return Some(slot);
            }
            at = self.after(at);
        }
    }

    /// Adds a slot (below 2^32 - 1) that is not in the index.
    #[inline]
    pub fn insert(&mut self, hash: u32, slot: u32) {
        if self.len >= self.room {
            self.grow();
        }
        self.len += 1;
        self.put(hash, pack(hash, slot));
    }

    #[inline]
    fn put(&mut self, hash: u32, entry: u64) {
        let mut at = self.home(hash);
        while let Some(place) = self.places.get_mut(at) {
            if *place == 0 {
                *place = entry;
                return;
            }
            at = self.after(at);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![0; self.places.len() * 2];
        self.room = (self.room * 2).max(1);
        let old = std::mem::replace(&mut self.places, larger);
        for entry in old.into_iter().filter(|entry| *entry != 0) {
            self.put(hash_of(entry), entry);
        }
    }

    /// Takes a slot out, where it is in the index; those behind it move up.
    pub fn remove(&mut self, hash: u32, slot: u32) {
        let wanted = pack(hash, slot);
        let mut hole = self.home(hash);
        loop {
            match self.places.get(hole) {
                None | Some(0) => return,
                Some(place) if *place == wanted => break,
                Some(_) => hole = self.after(hole),
            }
        }
        self.len -= 1;
        let mut at = self.after(hole);
        while let Some(&place) = self.places.get(at)
            && place != 0
        {
            // It may stand in the hole unless its home lies between the two.
            if self.steps(self.home(hash_of(place)), at) >= self.steps(hole, at) {
                if let Some(into) = self.places.get_mut(hole) {
                    *into = place;
                }
                hole = at;
            }
            at = self.after(at);
        }
        if let Some(place) = self.places.get_mut(hole) {
            *place = 0;
        }
    }

    /// Places from one to another, going on.
    #[inline]
    const fn steps(&self, from: usize, to: usize) -> usize {
        if to >= from {
            to - from
        } else {
            to + self.places.len() - from
        }
    }
}

#[inline]
const fn hash_of(place: u64) -> u32 {
    (place >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a map, with few hashes, at both ends of the range, so that runs wrap.
        #[test]
        fn behaves_like_a_map(
            fixed: bool,
            steps in proptest::collection::vec((any::<bool>(), 0_u32..12, 0_u32..6), 1..200),
        ) {
            let mut index = if fixed { Index::with_capacity(12) } else { Index::growing() };
            let mut model: HashMap<u32, u32> = HashMap::new();
            for (add, slot, hash) in steps {
                let hash = hash.wrapping_sub(3).wrapping_mul(0x1000_0001);
                if add {
                    model.entry(slot).or_insert_with(|| {
                        index.insert(hash, slot);
                        hash
                    });
                } else {
                    // Also what is not in it.
                    index.remove(model.remove(&slot).unwrap_or(hash), slot);
                }
                for slot in 0..12 {
                    let hash = model.get(&slot).copied();
                    let found = hash.and_then(|hash| index.find(hash, |other| other == slot));
                    prop_assert_eq!(found, hash.map(|_| slot));
                }
                prop_assert_eq!(index.places.iter().filter(|place| **place != 0).count(), model.len());
                prop_assert_eq!(index.len, model.len());
            }
        }
    }

    #[test]
    fn growing_keeps_all() {
        for mut index in [Index::growing(), Index::with_capacity(3)] {
            for key in 0..50_000_u32 {
                index.insert(key.wrapping_mul(2_654_435_761), key);
            }
            for key in 0..50_000_u32 {
                let found = index.find(key.wrapping_mul(2_654_435_761), |slot| slot == key);
                assert_eq!(found, Some(key));
            }
        }
    }

    #[test]
    fn a_slot_of_a_fixed_capacity_takes_11_bytes() {
        assert_eq!(
            Index::with_capacity(3_000_000).memory_bytes(),
            32_000_000 + 64
        );
    }
}
