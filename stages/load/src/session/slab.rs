//! Entries by number, in memory that is reserved once.

/// A slab of bounded size. Numbers of entries that are gone are used again, the last one first.
///
/// Shape: room for all entries is reserved at the beginning and touched when it is used for the first time.
#[derive(Debug)]
pub(super) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
    capacity: usize,
}

impl<T> Slab<T> {
    pub(super) fn with_capacity(capacity: u32) -> Self {
        let capacity = capacity as usize;
        Self {
            entries: Vec::with_capacity(capacity),
            free: Vec::new(),
            capacity,
        }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    /// The number of a new entry; `None` where there is no room.
    pub(super) fn insert(&mut self, entry: T) -> Option<u32> {
        if let Some(number) = self.free.pop() {
            *self.entries.get_mut(number as usize)? = Some(entry);
            return Some(number);
        }
        if self.entries.len() >= self.capacity {
            return None;
        }
        let number = u32::try_from(self.entries.len()).ok()?;
        self.entries.push(Some(entry));
        Some(number)
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(number as usize)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(number as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let entry = self.entries.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(entry)
    }

    /// Numbers of all entries, as they are now.
    pub(super) fn numbers(&self) -> Vec<u32> {
        (0..)
            .zip(&self.entries)
            .filter(|(_, entry)| entry.is_some())
            .map(|(number, _)| number)
            .collect()
    }

    /// Bytes that have been touched.
    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.len() * size_of::<Option<T>>() + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_room_ends() {
        let mut slab = Slab::with_capacity(2);
        assert_eq!(
            (slab.insert('a'), slab.insert('b'), slab.insert('c')),
            (Some(0), Some(1), None)
        );
        assert!(slab.is_full());
        assert_eq!(
            (slab.remove(0), slab.remove(0), slab.len()),
            (Some('a'), None, 1)
        );
        assert_eq!(
            (slab.get(0), slab.get(1), slab.get(9)),
            (None, Some(&'b'), None)
        );
        assert_eq!(slab.insert('d'), Some(0));
        assert_eq!(slab.numbers(), [0, 1]);
    }
}
