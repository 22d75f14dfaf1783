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
}
