//! Frames handed to the kernel, many with one call.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::PacketSocket;

/// The most frames that one call takes.
pub const BATCH: usize = 64;

/// Memory for the descriptions of a call's frames.
///
/// Invariant: what the descriptions point at is used during [`Outbox::send`] only, which writes them
/// anew.
pub struct Outbox {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
}

// SAFETY: its pointers are not followed outside a call that has just written them.
unsafe impl Send for Outbox {}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Outbox {
    /// Memory for [`BATCH`] frames.
    #[must_use]
    pub fn new() -> Self {
        Self {
            headers: Vec::with_capacity(BATCH),
            vectors: Vec::with_capacity(BATCH),
        }
    }

    /// Sends the first [`BATCH`] of these frames, without waiting for room. Returns how many the kernel
    /// took, counted from the first.
    ///
    /// # Errors
    /// What `sendmmsg(2)` says of the first frame: `WouldBlock` or `ENOBUFS` where a queue is full,
    /// `NetworkDown`, `EMSGSIZE` where it is longer than the interface takes.
    pub fn send(&mut self, socket: &PacketSocket, frames: &[&[u8]]) -> io::Result<usize> {
        self.headers.clear();
        self.vectors.clear();
        for frame in frames.iter().take(BATCH) {
            self.vectors.push(libc::iovec {
                // The kernel only reads it.
                iov_base: frame.as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            });
        }
        let first: *mut libc::iovec = self.vectors.as_mut_ptr();
        for number in 0..self.vectors.len() {
            // SAFETY: integers and pointers, for all of which zero is a value.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = first.wrapping_add(number);
            header.msg_hdr.msg_iovlen = 1;
            self.headers.push(header);
        }
        let count = libc::c_uint::try_from(self.headers.len()).unwrap_or(0);
        let headers = self.headers.as_mut_ptr();
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: `count` headers, each with one vector of a frame that is borrowed for this call.
        let sent = unsafe { libc::sendmmsg(fd, headers, count, libc::MSG_DONTWAIT) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(usize::try_from(sent).unwrap_or(0))
    }
}
