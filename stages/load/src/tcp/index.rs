//! Which connection a segment belongs to: a hash table with open addressing.

/// Places for each connection: 4/3, so that at most three of four are taken.
const PLACES_PER_THREE: u64 = 4;

/// Slots by hash. A place is 8 bytes: the hash, so that a place of another key costs no look at its
/// slot, and the slot plus one. Probing is linear: the places looked at are nearly always one cache
/// line. What is removed leaves no mark: what stands behind moves up.
#[derive(Debug)]
pub(super) struct Index {
    places: Vec<u64>,
}

#[inline]
fn pack(hash: u32, slot: u32) -> u64 {
    u64::from(hash) << 32 | (u64::from(slot) + 1)
}

#[inline]
fn slot_of(place: u64) -> u32 {
    u32::try_from((place & 0xffff_ffff).wrapping_sub(1)).unwrap_or(u32::MAX)
}

impl Index {
    /// An index of at most `capacity` slots, numbered below 2^32 - 1.
    pub(super) fn with_capacity(capacity: u32) -> Self {
        let places = u64::from(capacity) * PLACES_PER_THREE / 3 + 8;
        Self {
            places: vec![0; usize::try_from(places).unwrap_or(usize::MAX)],
        }
    }

    /// Bytes of memory.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.places.len() * size_of::<u64>()
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        // The hash as a fraction of the table: below its length.
        usize::try_from((hash * self.places.len() as u64) >> 32).unwrap_or(0)
    }

    #[inline]
    const fn after(&self, at: usize) -> usize {
        if at + 1 == self.places.len() {
            0
        } else {
            at + 1
        }
    }

    /// The slot with this hash for which `is_key` holds.
    #[inline]
    pub(super) fn find(&self, hash: u32, is_key: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.home(u64::from(hash));
        loop {
            let place = self.places.get(at).copied().unwrap_or(0);
            if place == 0 {
                return None;
            }
            if place >> 32 == u64::from(hash) && is_key(slot_of(place)) {
                return Some(slot_of(place));
            }
            at = self.after(at);
        }
    }

    /// Adds a slot. The caller keeps to the capacity.
    #[inline]
    pub(super) fn insert(&mut self, hash: u32, slot: u32) {
        let mut at = self.home(u64::from(hash));
        while let Some(place) = self.places.get_mut(at) {
            if *place == 0 {
                *place = pack(hash, slot);
                return;
            }
            at = self.after(at);
        }
    }

    /// Takes a slot out.
    #[inline]
    pub(super) fn remove(&mut self, hash: u32, slot: u32) {
        let wanted = pack(hash, slot);
        let mut hole = self.home(u64::from(hash));
        loop {
            match self.places.get(hole) {
                None | Some(0) => return,
                Some(place) if *place == wanted => break,
                Some(_) => hole = self.after(hole),
            }
        }
        // Who stands behind the hole and may stand in it (its home is not between) moves there.
        let len = self.places.len();
        let mut at = self.after(hole);
        while let Some(&place) = self.places.get(at) {
            if place == 0 {
                break;
            }
            let from_home = (at + len - self.home(place >> 32)) % len;
            let from_hole = (at + len - hole) % len;
            if from_home >= from_hole {
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
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a map, with few hashes, at both ends of the range, so that runs wrap.
        #[test]
        fn behaves_like_a_map(steps in proptest::collection::vec((any::<bool>(), 0_u32..12, 0_u32..6), 1..200)) {
            let mut index = Index::with_capacity(12);
            let mut model: HashMap<u32, u32> = HashMap::new();
            for (add, slot, hash) in steps {
                let hash = hash.wrapping_sub(3).wrapping_mul(0x1000_0001);
                if add {
                    model.entry(slot).or_insert_with(|| {
                        index.insert(hash, slot);
                        hash
                    });
                } else if let Some(hash) = model.remove(&slot) {
                    index.remove(hash, slot);
                } else {
                    index.remove(hash, slot);
                }
                for slot in 0..12 {
                    let hash = model.get(&slot).copied();
                    let found = hash.and_then(|hash| index.find(hash, |other| other == slot));
                    prop_assert_eq!(found, hash.map(|_| slot));
                }
                prop_assert_eq!(index.places.iter().filter(|place| **place != 0).count(), model.len());
            }
        }
    }
}
