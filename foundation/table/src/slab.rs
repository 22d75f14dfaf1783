//! Slots by number, taken and given back.

use std::marker::PhantomData;

/// The number of no slot.
pub const NONE: u32 = u32::MAX;

/// Where the slots of a [`Slab`] stand: one behind the other, in an array or in [`Pieces`].
pub trait Slots<T> {
    /// Slots that a slab of `capacity` items reserves.
    fn reserved(capacity: u32) -> usize;
    /// No slots yet, memory for so many.
    fn with_reserved(slots: usize) -> Self;
    /// Slots so far.
    fn count(&self) -> usize;
    /// The item in a slot.
    fn slot(&self, at: u32) -> Option<&T>;
    /// The item in a slot.
    fn slot_mut(&mut self, at: u32) -> Option<&mut T>;
    /// One more slot.
    fn add(&mut self, item: T);
}

impl<T> Slots<T> for Vec<T> {
    fn reserved(capacity: u32) -> usize {
        capacity as usize
    }

    fn with_reserved(slots: usize) -> Self {
        Self::with_capacity(slots)
    }

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn slot(&self, at: u32) -> Option<&T> {
        self.as_slice().get(at as usize)
    }

    #[inline]
    fn slot_mut(&mut self, at: u32) -> Option<&mut T> {
        self.as_mut_slice().get_mut(at as usize)
    }

    #[inline]
    fn add(&mut self, item: T) {
        self.push(item);
    }
}

/// Slots of a piece: 256 KiB, where one has 512 bytes.
const PIECE: usize = 512;

/// Slots in pieces: growing copies nothing, and nothing is reserved. A look-up costs one more load. In
/// those of the last piece that were never taken is the default.
#[derive(Debug, Clone)]
pub struct Pieces<T> {
    pieces: Vec<Box<[T; PIECE]>>,
    count: u32,
}

impl<T: Default> Slots<T> for Pieces<T> {
    fn reserved(_: u32) -> usize {
        0
    }

    fn with_reserved(_: usize) -> Self {
        Self {
            pieces: Vec::new(),
            count: 0,
        }
    }

    fn count(&self) -> usize {
        self.count as usize
    }

    #[inline]
    fn slot(&self, at: u32) -> Option<&T> {
        self.pieces
            .get(at as usize / PIECE)?
            .get(at as usize % PIECE)
    }

    #[inline]
    fn slot_mut(&mut self, at: u32) -> Option<&mut T> {
        self.pieces
            .get_mut(at as usize / PIECE)?
            .get_mut(at as usize % PIECE)
    }

    fn add(&mut self, item: T) {
        if self.count as usize >= self.pieces.len() * PIECE {
            // On the heap from the beginning: a piece is large.
            let piece: Vec<T> = std::iter::repeat_with(T::default).take(PIECE).collect();
            self.pieces.extend(piece.try_into());
        }
        if let Some(slot) = self.slot_mut(self.count) {
            *slot = item;
            self.count += 1;
        }
    }
}

/// Items by number, of bounded count. A number that was given back is taken again, the last one
/// first: it is still in the cache. What is in it stays until then; a caller that must know whether a number is
/// taken keeps an `Option` in it.
///
/// Shape: memory for all is reserved at the beginning (not in [`Pieces`]), touched when it is used for the
/// first time, and stays. Cost: a look-up is one bounds check.
#[derive(Debug, Clone)]
pub struct Slab<T, S = Vec<T>> {
    slots: S,
    free: Vec<u32>,
    capacity: u32,
    item: PhantomData<T>,
}

impl<T, S: Slots<T>> Slab<T, S> {
    /// A slab of at most `capacity` items (at most 2^32 - 2).
    #[must_use]
    pub fn with_capacity(capacity: u32) -> Self {
        let capacity = capacity.min(NONE - 1);
        Self {
            slots: S::with_reserved(S::reserved(capacity)),
            free: Vec::with_capacity(S::reserved(capacity)),
            capacity,
            item: PhantomData,
        }
    }

    /// Puts an item in; `None` where there is no room.
    #[inline]
    pub fn insert(&mut self, item: T) -> Option<u32> {
        if let Some(at) = self.free.pop() {
            *self.slots.slot_mut(at)? = item;
            return Some(at);
        }
        self.push(item)
    }

    /// Takes a slot, in which is what was left there; `None` where there is no room.
    #[inline]
    pub fn take(&mut self) -> Option<u32>
    where
        T: Default,
    {
        self.free.pop().or_else(|| self.push(T::default()))
    }

    #[inline]
    fn push(&mut self, item: T) -> Option<u32> {
        let at = self.used();
        if at >= self.capacity {
            return None;
        }
        self.slots.add(item);
        Some(at)
    }

    /// Gives a slot back; the caller forgets its number.
    #[inline]
    pub fn give_back(&mut self, at: u32) {
        if at < self.used() && self.free.len() < self.slots.count() {
            self.free.push(at);
        }
    }

    /// Slots taken now.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.count() - self.free.len()
    }

    /// Whether none is taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() >= self.capacity as usize
    }

    /// Slots that were ever taken: their numbers are below this.
    #[inline]
    #[must_use]
    pub fn used(&self) -> u32 {
        u32::try_from(self.slots.count()).unwrap_or(NONE)
    }

    /// The item in a slot.
    #[inline]
    #[must_use]
    pub fn get(&self, at: u32) -> Option<&T> {
        self.slots.slot(at)
    }

    /// The item in a slot.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.slots.slot_mut(at)
    }

    /// Bytes of memory that were touched so far, at most.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.slots.count() * (size_of::<T>() + size_of::<u32>())
    }
}

/// Items of which it is known whether they are there.
impl<T> Slab<Option<T>> {
    /// The item with a number, where there is one.
    #[inline]
    #[must_use]
    pub fn value(&self, at: u32) -> Option<&T> {
        self.get(at)?.as_ref()
    }

    /// The item with a number, where there is one.
    #[inline]
    #[must_use]
    pub fn value_mut(&mut self, at: u32) -> Option<&mut T> {
        self.get_mut(at)?.as_mut()
    }

    /// Takes an item out, where there is one.
    pub fn remove(&mut self, at: u32) -> Option<T> {
        let item = self.get_mut(at)?.take()?;
        self.give_back(at);
        Some(item)
    }

    /// Numbers of all items, as they are now.
    #[must_use]
    pub fn numbers(&self) -> Vec<u32> {
        (0..self.used())
            .filter(|at| self.value(*at).is_some())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers_are_used_again_and_bounded(mut slab: Slab<Option<char>, impl Slots<Option<char>>>) {
        let a = slab.insert(Some('a')).unwrap();
        let b = slab.take().unwrap();
        assert_eq!((a, b, slab.insert(None), slab.take()), (0, 1, None, None));
        assert!(slab.is_full());
        slab.give_back(a);
        assert_eq!((slab.len(), slab.used()), (1, 2));
        assert_eq!(slab.take(), Some(a));
        assert_eq!(slab.get(a), Some(&Some('a')), "what was left there");
        *slab.get_mut(b).unwrap() = Some('b');
        slab.give_back(a);
        slab.give_back(b);
        assert!(slab.is_empty());
        assert_eq!(slab.insert(Some('c')), Some(b), "the last one first");
        assert_eq!((slab.get(b), slab.get(4000)), (Some(&Some('c')), None));
        slab.give_back(9);
        slab.give_back(b);
        slab.give_back(b);
        assert!(slab.is_empty());
    }

    #[test]
    fn numbers_are_used_again_and_bounded_in_an_array_and_in_pieces() {
        numbers_are_used_again_and_bounded(<Slab<_>>::with_capacity(2));
        numbers_are_used_again_and_bounded(<Slab<_, Pieces<_>>>::with_capacity(2));
    }

    #[test]
    fn what_is_removed_is_not_there() {
        let mut slab: Slab<Option<char>> = Slab::with_capacity(2);
        assert_eq!(
            (slab.insert(Some('a')), slab.insert(Some('b'))),
            (Some(0), Some(1))
        );
        assert_eq!(
            (slab.remove(0), slab.remove(0), slab.len()),
            (Some('a'), None, 1)
        );
        assert_eq!(
            (slab.value(0), slab.value(1), slab.value(9)),
            (None, Some(&'b'), None)
        );
        assert_eq!(slab.numbers(), [1]);
        assert_eq!(slab.insert(Some('d')), Some(0));
        assert_eq!(slab.numbers(), [0, 1]);
    }

    #[test]
    fn pieces_go_on_one_behind_the_other() {
        let mut slab: Slab<u32, Pieces<u32>> = Slab::with_capacity(u32::MAX);
        for n in 0..1300 {
            assert_eq!(slab.insert(n), Some(n));
        }
        assert_eq!((slab.len(), slab.used()), (1300, 1300));
        assert!((0..1300).all(|n| slab.get(n) == Some(&n)));
        assert_eq!(slab.get(4000), None);
        *slab.get_mut(1299).unwrap() = 5;
        assert_eq!(slab.get(1299), Some(&5));
    }
}
