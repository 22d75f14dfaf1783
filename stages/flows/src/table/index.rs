//! Finds slots by hash: open addressing with linear probing.

/// Cells a new index has.
const FIRST: usize = 1 << 12;

/// An open-addressing index: 8 bytes a cell, at most half full, so that a look-up is nearly always
/// one cache line. The hash stands beside the slot: a slot is read only when all 32 bits agree.
///
/// Grows by doubling; never shrinks, as its size is that of the most flows there were.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    /// Hash in the upper half, slot plus one in the lower; 0: free.
    cells: Vec<u64>,
    len: usize,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self {
            cells: vec![0; FIRST],
            len: 0,
        }
    }

    #[inline]
    const fn mask(&self) -> usize {
        self.cells.len() - 1
    }

    /// The slot that is probably that of this hash, without looking at it.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "halves of a cell")]
    pub(crate) fn guess(&self, hash: u32) -> Option<u32> {
        let cell = *self.cells.get(hash as usize & self.mask())?;
        (cell as u32).checked_sub(1)
    }

    /// The slot with this hash for which `is_it` holds.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "halves of a cell")]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = hash as usize & self.mask();
        loop {
            let cell = *self.cells.get(at)?;
            let slot = (cell as u32).checked_sub(1)?;
            if (cell >> 32) as u32 == hash && is_it(slot) {
                return Some(slot);
            }
            at = (at + 1) & self.mask();
        }
    }

    pub(crate) fn insert(&mut self, hash: u32, slot: u32) {
        if (self.len + 1) * 2 > self.cells.len() {
            self.grow();
        }
        self.len += 1;
        self.put(u64::from(hash) << 32 | (u64::from(slot) + 1));
    }

    fn put(&mut self, entry: u64) {
        let mask = self.mask();
        let mut at = (entry >> 32) as usize & mask;
        while let Some(cell) = self.cells.get_mut(at) {
            if *cell == 0 {
                *cell = entry;
                return;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![0; self.cells.len() * 2];
        let old = std::mem::replace(&mut self.cells, larger);
        for entry in old.into_iter().filter(|entry| *entry != 0) {
            self.put(entry);
        }
    }

    /// Takes the entry of this slot out; those behind it move up.
    pub(crate) fn remove(&mut self, hash: u32, slot: u32) {
        let entry = u64::from(hash) << 32 | (u64::from(slot) + 1);
        let mask = self.mask();
        let mut hole = hash as usize & mask;
        loop {
            match self.cells.get(hole) {
                None | Some(0) => return,
                Some(cell) if *cell == entry => break,
                Some(_) => hole = (hole + 1) & mask,
            }
        }
        self.len -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let cell = self.cells.get(at).copied().unwrap_or_default();
            if cell == 0 {
                break;
            }
            let home = (cell >> 32) as usize & mask;
            // It may move up unless its home lies behind the hole.
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                if let Some(free) = self.cells.get_mut(hole) {
                    *free = cell;
                }
                hole = at;
            }
        }
        if let Some(free) = self.cells.get_mut(hole) {
            *free = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec((any::<bool>(), 0_u32..64), 1..400)) {
            let mut index = Index::new();
            // Hashes that collide and wrap around the end of the table.
            let hash = |key: u32| 0x0fff - (key % 7) + ((key % 3) << 20);
            let mut map: HashMap<u32, u32> = HashMap::new();
            for (adds, key) in steps {
                if adds {
                    map.entry(key).or_insert_with(|| {
                        index.insert(hash(key), key);
                        hash(key)
                    });
                } else if map.remove(&key).is_some() {
                    index.remove(hash(key), key);
                }
                for key in 0..64 {
                    let found = index.find(hash(key), |slot| slot == key);
                    prop_assert_eq!(found.is_some(), map.contains_key(&key));
                }
            }
        }
    }

    #[test]
    fn growing_keeps_all() {
        let mut index = Index::new();
        for key in 0..50_000_u32 {
            index.insert(key.wrapping_mul(2_654_435_761), key);
        }
        for key in 0..50_000_u32 {
            let found = index.find(key.wrapping_mul(2_654_435_761), |slot| slot == key);
            assert_eq!(found, Some(key));
        }
    }
}
