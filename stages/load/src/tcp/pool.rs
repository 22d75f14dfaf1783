//! Things of one kind that come and go, in one bounded array.

/// No place.
pub(super) const NOBODY: u32 = u32::MAX;

/// A bounded pool. Memory is reserved, and touched when it is used; what was given back last is
/// taken first.
#[derive(Debug)]
pub(super) struct Pool<T> {
    items: Vec<T>,
    free: Vec<u32>,
    capacity: u32,
}

impl<T> Pool<T> {
    pub(super) fn with_capacity(capacity: u32) -> Self {
        let capacity = capacity.min(NOBODY - 1);
        Self {
            items: Vec::with_capacity(capacity as usize),
            free: Vec::with_capacity(capacity as usize),
            capacity,
        }
    }

    /// Puts an item in; `None` where there is no room.
    #[inline]
    pub(super) fn insert(&mut self, item: T) -> Option<u32> {
        if let Some(at) = self.free.pop() {
            *self.items.get_mut(at as usize)? = item;
            return Some(at);
        }
        let at = u32::try_from(self.items.len()).ok()?;
        if at >= self.capacity {
            return None;
        }
        self.items.push(item);
        Some(at)
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<&T> {
        self.items.get(at as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.items.get_mut(at as usize)
    }

    /// Gives a place back; the caller forgets its number.
    #[inline]
    pub(super) fn remove(&mut self, at: u32) {
        if (at as usize) < self.items.len() && self.free.len() < self.items.len() {
            self.free.push(at);
        }
    }

    /// Places in use.
    #[cfg(test)]
    pub(super) const fn in_use(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// Bytes of memory that were touched so far.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.items.len() * (size_of::<T>() + size_of::<u32>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_bounded() {
        let mut pool = Pool::with_capacity(2);
        let a = pool.insert('a').unwrap();
        let b = pool.insert('b').unwrap();
        assert_eq!(pool.insert('c'), None);
        pool.remove(a);
        assert_eq!(pool.insert('c'), Some(a));
        assert_eq!((pool.get(a), pool.get(b)), (Some(&'c'), Some(&'b')));
        assert_eq!(pool.in_use(), 2);
        pool.remove(a);
        pool.remove(b);
        assert_eq!(pool.in_use(), 0);
    }
}
