//! A ring of blocks that the kernel fills with frames (`TPACKET_V3`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::PacketSocket;
use crate::mapped_file::Mapping;

/// A socket and the blocks it shares with the kernel.
///
/// Invariant: block `current` belongs to the kernel while its status has no `TP_STATUS_USER` bit;
/// from the moment the bit was seen (`is_held`) until the status is cleared, the kernel neither
/// reads nor writes the block. `blocks` blocks of `block_bytes` fill the mapping.
#[derive(Debug)]
pub struct PacketRing {
    socket: PacketSocket,
    mapping: Mapping,
    block_bytes: usize,
    blocks: usize,
    current: usize,
    is_held: bool,
}

/// Where the status stands in a block (`struct tpacket_block_desc`, then `struct tpacket_hdr_v1`).
const STATUS_OFFSET: usize = 8;

const _: () = {
    assert!(std::mem::offset_of!(libc::tpacket_block_desc, hdr) == STATUS_OFFSET);
    assert!(std::mem::offset_of!(libc::tpacket_hdr_v1, block_status) == 0);
};

impl PacketRing {
    pub(super) const fn new(
        socket: PacketSocket,
        mapping: Mapping,
        block_bytes: usize,
        blocks: usize,
    ) -> Self {
        Self {
            socket,
            mapping,
            block_bytes,
            blocks,
            current: 0,
            is_held: false,
        }
    }

    /// The socket.
    #[must_use]
    pub const fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// Gives the held block back to the kernel and takes the next one, if it is ready.
    pub fn advance(&mut self) -> bool {
        self.release();
        self.is_held = self.is_ready();
        self.is_held
    }

    /// Whether the current block is the reader's.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.status()
            .is_some_and(|status| status.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0)
    }

    /// Gives the held block back, if one is held.
    pub fn release(&mut self) {
        if !self.is_held {
            return;
        }
        if let Some(status) = self.status() {
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.is_held = false;
        self.current = (self.current + 1).checked_rem(self.blocks).unwrap_or(0);
    }

    /// Waits until a block is ready or the socket has an error; false after `limit`.
    ///
    /// # Errors
    /// What `poll(2)` says.
    pub fn wait(&self, limit: Duration) -> io::Result<bool> {
        crate::wait::readable(self, limit)
    }

    /// The held block with its header; empty where none is held.
    #[must_use]
    pub fn block(&self) -> &[u8] {
        let Some(start) = self.held() else {
            return &[];
        };
        // SAFETY: the block lies in the mapping and is ours while held (type invariant); it is
        // given back only through `&mut self`, when this borrow has ended.
        unsafe { std::slice::from_raw_parts(start, self.block_bytes) }
    }

    /// The held block for changes in place; empty where none is held.
    #[must_use]
    pub fn block_mut(&mut self) -> &mut [u8] {
        let Some(start) = self.held() else {
            return &mut [];
        };
        // SAFETY: as in `block`, and `&mut self` makes it the only borrow.
        unsafe { std::slice::from_raw_parts_mut(start, self.block_bytes) }
    }

    fn held(&self) -> Option<*mut u8> {
        let offset = self.current.checked_mul(self.block_bytes)?;
        let start = self.mapping.at(offset, self.block_bytes)?;
        self.is_held.then_some(start.as_ptr())
    }

    fn status(&self) -> Option<&AtomicU32> {
        let offset = self.current.checked_mul(self.block_bytes)?;
        let status = self.mapping.at(offset + STATUS_OFFSET, size_of::<u32>())?;
        // SAFETY: four aligned bytes in the mapping (a block starts at a page), which only whole
        // words are written to, by the kernel and by this type; no slice of the block is alive here.
        Some(unsafe { status.cast::<AtomicU32>().as_ref() })
    }
}

impl AsFd for PacketRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
