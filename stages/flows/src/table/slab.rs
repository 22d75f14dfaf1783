//! Slots in pieces: growing copies nothing.

/// Number of a slot.
pub(crate) type SlotId = u32;

/// Slots of a piece: 256 KiB of flows.
const PIECE: usize = 512;

/// Slots that are taken and given back; memory stays at the most that were taken at once.
///
/// The slot given back last is taken first: it is still in the cache.
#[derive(Debug, Clone)]
pub(crate) struct Slab<T> {
    pieces: Vec<Box<[T]>>,
    free: Vec<SlotId>,
    /// Slots that were ever taken.
    used: u32,
}

impl<T: Default + Clone> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            pieces: Vec::new(),
            free: Vec::new(),
            used: 0,
        }
    }

    /// Takes a slot; what is in it is what was left there.
    pub(crate) fn take(&mut self) -> SlotId {
        if let Some(id) = self.free.pop() {
            return id;
        }
        let id = self.used;
        if id as usize / PIECE >= self.pieces.len() {
            self.pieces
                .push(vec![T::default(); PIECE].into_boxed_slice());
        }
        self.used += 1;
        id
    }

    /// Gives a slot back.
    pub(crate) fn give_back(&mut self, id: SlotId) {
        self.free.push(id);
    }

    /// Slots taken now.
    pub(crate) const fn len(&self) -> usize {
        self.used as usize - self.free.len()
    }

    /// Slots that were ever taken: their numbers are below this.
    pub(crate) const fn used(&self) -> u32 {
        self.used
    }

    #[inline]
    pub(crate) fn get(&self, id: SlotId) -> Option<&T> {
        self.pieces
            .get(id as usize / PIECE)?
            .get(id as usize % PIECE)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: SlotId) -> Option<&mut T> {
        self.pieces
            .get_mut(id as usize / PIECE)?
            .get_mut(id as usize % PIECE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back_warm() {
        let mut slab: Slab<u32> = Slab::new();
        let all: Vec<_> = (0..1300).map(|_| slab.take()).collect();
        assert_eq!((slab.len(), slab.used()), (1300, 1300));
        slab.give_back(all[7]);
        slab.give_back(all[9]);
        assert_eq!(slab.len(), 1298);
        assert_eq!(slab.take(), 9);
        *slab.get_mut(9).unwrap() = 5;
        assert_eq!(slab.get(9), Some(&5));
        assert_eq!(slab.get(4000), None);
    }
}
