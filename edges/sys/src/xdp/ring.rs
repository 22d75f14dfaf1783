//! A ring of descriptors between the kernel and a socket, with one producer and one consumer.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::mapped_file::Mapping;

/// Our side of a ring: producer of the fill and the send ring, consumer of the receive and the
/// completion ring.
///
/// Invariant: `size` (a power of two) descriptors of `entry_bytes` begin at `entries` in the
/// mapping. Entries between the consumer's and the producer's index belong to the consumer, the
/// others to the producer; both indexes run freely and are taken modulo `size`.
#[derive(Debug)]
pub(super) struct Ring {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    entry_bytes: usize,
    size: u32,
    /// Our index, ahead of what the other side was reported.
    index: u32,
    /// What the other side was last seen to have reached (consuming only).
    seen: u32,
}

impl Ring {
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        offsets: &libc::xdp_ring_offset,
        size: u32,
        entry_bytes: usize,
        page: i64,
    ) -> io::Result<Self> {
        let offset = |value: u64| usize::try_from(value).map_err(|_| io::ErrorKind::InvalidData);
        let entries = offset(offsets.desc)?;
        let count = usize::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
        let len = entries + count * entry_bytes;
        Ok(Self {
            mapping: Mapping::shared(fd, len, page)?,
            producer: offset(offsets.producer)?,
            consumer: offset(offsets.consumer)?,
            flags: offset(offsets.flags)?,
            entries,
            entry_bytes,
            size,
            index: 0,
            seen: 0,
        })
    }

    fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let word = self.mapping.at(offset, size_of::<u32>())?;
        // SAFETY: four aligned bytes of the mapping that both sides use as whole words only.
        Some(unsafe { word.cast::<AtomicU32>().as_ref() })
    }

    fn entry(&self, index: u32) -> Option<std::ptr::NonNull<u8>> {
        let at = usize::try_from(index & (self.size - 1)).ok()?;
        self.mapping
            .at(self.entries + at * self.entry_bytes, self.entry_bytes)
    }

    /// Puts a descriptor into the next entry. The ring has as many entries as there are chunks, so
    /// one is free.
    pub(super) fn put<T: Copy>(&mut self, descriptor: T) {
        if let Some(entry) = self.entry(self.index) {
            // SAFETY: aligned bytes of an entry that is the producer's, hence ours, of the type that
            // the ring was mapped for: integers only.
            unsafe { entry.cast::<T>().write(descriptor) };
            self.index = self.index.wrapping_add(1);
        }
    }

    /// How many of those that were put the other side has not taken yet.
    pub(super) fn untaken(&self) -> u32 {
        self.word(self.consumer).map_or(0, |taken| {
            self.index.wrapping_sub(taken.load(Ordering::Acquire))
        })
    }

    /// Tells the kernel of what was put.
    pub(super) fn publish(&self) {
        if let Some(producer) = self.word(self.producer) {
            producer.store(self.index, Ordering::Release);
        }
    }

    /// Takes the next descriptor; its entry stays ours until [`Ring::release`].
    pub(super) fn take<T: Copy>(&mut self) -> Option<T> {
        if self.seen == self.index {
            self.seen = self.word(self.producer)?.load(Ordering::Acquire);
            if self.seen == self.index {
                return None;
            }
        }
        let entry = self.entry(self.index)?;
        self.index = self.index.wrapping_add(1);
        // SAFETY: an entry that the producer has published, hence ours, of the type that the ring
        // was mapped for: integers only.
        Some(unsafe { entry.cast::<T>().read() })
    }

    /// Gives the entries back that were taken.
    pub(super) fn release(&self) {
        if let Some(consumer) = self.word(self.consumer) {
            consumer.store(self.index, Ordering::Release);
        }
    }

    /// Whether the driver sleeps until it is called.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.word(self.flags)
            .is_some_and(|flags| flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0)
    }
}
