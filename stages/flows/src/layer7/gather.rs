//! Bytes that wait for more: heads and hellos that span segments. A bounded number of buffers.

use linkweir_table::Slab;

/// The most bytes that wait in one direction of a flow.
pub(super) const MAX_BYTES: usize = 4096;

/// A buffer of the pool; zero: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct GatherId(u32);

impl GatherId {
    pub(super) const fn is_some(self) -> bool {
        self.0 != 0
    }
}

#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// When the first of the bytes came, nanoseconds since the epoch.
    time_ns: u64,
}

/// Buffers of at most [`MAX_BYTES`] bytes, given back when the head is whole.
#[derive(Debug)]
pub(super) struct Pool {
    buffers: Slab<Buffer>,
    /// Times that no buffer was free.
    pub(super) refused: u64,
}

impl Pool {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            buffers: Slab::with_capacity(capacity),
            refused: 0,
        }
    }

    fn buffer(&self, id: GatherId) -> Option<&Buffer> {
        self.buffers.get(id.0.checked_sub(1)?)
    }

    fn buffer_mut(&mut self, id: GatherId) -> Option<&mut Buffer> {
        self.buffers.get_mut(id.0.checked_sub(1)?)
    }

    fn take(&mut self, time_ns: u64) -> Option<GatherId> {
        let Some(at) = self.buffers.take() else {
            self.refused += 1;
            return None;
        };
        let id = GatherId(at + 1);
        self.buffer_mut(id)?.time_ns = time_ns;
        Some(id)
    }

    /// Appends what fits below `most` (at most [`MAX_BYTES`]); takes a buffer where there is none yet.
    /// Says whether all of it was kept.
    pub(super) fn append(
        &mut self,
        id: &mut GatherId,
        bytes: &[u8],
        most: usize,
        time_ns: u64,
    ) -> bool {
        if bytes.is_empty() {
            return true;
        }
        if !id.is_some() {
            *id = self.take(time_ns).unwrap_or_default();
        }
        let Some(buffer) = self.buffer_mut(*id) else {
            return false;
        };
        let room = most.min(MAX_BYTES).saturating_sub(buffer.bytes.len());
        let part = bytes.get(..room).unwrap_or(bytes);
        buffer.bytes.extend_from_slice(part);
        part.len() == bytes.len()
    }

    /// What waits; empty where nothing does.
    pub(super) fn bytes(&self, id: GatherId) -> &[u8] {
        self.buffer(id)
            .map(|buffer| buffer.bytes.as_slice())
            .unwrap_or_default()
    }

    /// Buffers that are not free.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.buffers.len()
    }

    /// When the first of it came.
    pub(super) fn time_ns(&self, id: GatherId) -> Option<u64> {
        self.buffer(id).map(|buffer| buffer.time_ns)
    }

    /// Takes the bytes out to work on them; [`Pool::put_back`] returns the allocation.
    pub(super) fn lift(&mut self, id: GatherId) -> Vec<u8> {
        self.buffer_mut(id)
            .map(|buffer| std::mem::take(&mut buffer.bytes))
            .unwrap_or_default()
    }

    /// Gives lifted bytes back to their buffer.
    pub(super) fn put_back(&mut self, id: GatherId, bytes: Vec<u8>) {
        if let Some(buffer) = self.buffer_mut(id) {
            buffer.bytes = bytes;
        }
    }

    /// Gives the buffer back.
    pub(super) fn release(&mut self, id: &mut GatherId) {
        if let Some(buffer) = self.buffer_mut(*id) {
            buffer.bytes.clear();
            self.buffers.give_back(id.0 - 1);
        }
        *id = GatherId::default();
    }
}

// Headers of a fixed length that the end of a segment may cut.

/// The first bytes of a header of `N` bytes whose others come with the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut<const N: usize> {
    bytes: [u8; N],
    len: u8,
}

impl<const N: usize> Default for Cut<N> {
    fn default() -> Self {
        Self {
            bytes: [0; N],
            len: 0,
        }
    }
}

impl<const N: usize> Cut<N> {
    /// Takes the next header off `rest`; `None` where the bytes end before it does: they wait then.
    #[inline]
    pub(super) fn take(&mut self, rest: &mut &[u8]) -> Option<[u8; N]> {
        if self.len == 0
            && let Some((header, behind)) = rest.split_first_chunk()
        {
            *rest = behind;
            return Some(*header);
        }
        let room = self.bytes.get_mut(usize::from(self.len)..)?;
        let count = room.len().min(rest.len());
        let (now, behind) = rest.split_at_checked(count)?;
        room.get_mut(..count)?.copy_from_slice(now);
        *rest = behind;
        // `N` at most, a few bytes.
        self.len += u8::try_from(count).unwrap_or(0);
        if usize::from(self.len) < N {
            return None;
        }
        self.len = 0;
        Some(self.bytes)
    }

    /// Forgets what waits.
    pub(super) const fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_bounded_and_come_back() {
        let mut pool = Pool::new(1);
        let (mut first, mut second) = (GatherId::default(), GatherId::default());
        assert!(pool.append(&mut first, b"abc", MAX_BYTES, 7));
        assert!(!pool.append(&mut second, b"abc", MAX_BYTES, 8));
        assert_eq!(pool.refused, 1);
        assert!(!pool.append(&mut first, &[0; 5000], 100, 9));
        assert_eq!(
            (pool.bytes(first).len(), pool.time_ns(first)),
            (100, Some(7))
        );
        pool.release(&mut first);
        assert!(!first.is_some());
        assert!(pool.append(&mut second, b"abc", MAX_BYTES, 8));
        let bytes = pool.lift(second);
        assert_eq!(bytes, b"abc");
        pool.put_back(second, bytes);
        pool.release(&mut second);
        assert!(pool.bytes(second).is_empty());
    }

    #[test]
    fn a_header_in_any_pieces() {
        for at in 0..=5 {
            let mut cut = Cut::<5>::default();
            let (first, second) = [1, 2, 3, 4, 5, 6].split_at(at);
            let mut rest = first;
            let mut found = cut.take(&mut rest);
            if found.is_none() {
                rest = second;
                found = cut.take(&mut rest);
                assert_eq!(rest, [6]);
            }
            assert_eq!(found, Some([1, 2, 3, 4, 5]));
        }
        let mut cut = Cut::<2>::default();
        assert_eq!(cut.take(&mut [9].as_slice()), None);
        cut.clear();
        assert_eq!(cut.take(&mut [1, 2].as_slice()), Some([1, 2]));
    }
}
