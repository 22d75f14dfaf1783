//! Room for many datagrams, filled by one system call.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes for one datagram: a packet of 64 KiB, and what the kernel says about it.
const SLOT_BYTES: usize = 66 * 1024;

/// A datagram that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// What was received.
    pub bytes: &'a [u8],
    /// Whether it was longer than a slot.
    pub is_cut: bool,
    /// Whether the kernel sent it, and not another process.
    pub is_from_kernel: bool,
}

/// What the kernel said of a slot it filled.
#[derive(Debug, Clone, Copy, Default)]
struct Filled {
    len: usize,
    is_cut: bool,
    is_from_kernel: bool,
}

/// Room for [`Arena::SLOTS`] datagrams, allocated once.
pub struct Arena {
    memory: Box<[u8]>,
    filled: [Filled; Self::SLOTS],
    count: usize,
}

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}

impl Arena {
    /// How many datagrams one receive takes at most.
    pub const SLOTS: usize = 32;

    /// An empty arena.
    #[must_use]
    pub fn new() -> Self {
        Self {
            memory: vec![0; SLOT_BYTES * Self::SLOTS].into_boxed_slice(),
            filled: [Filled::default(); Self::SLOTS],
            count: 0,
        }
    }

    /// What the last receive brought, in order of arrival.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        let slots = self.memory.chunks_exact(SLOT_BYTES);
        let filled = self.filled.iter().take(self.count);
        slots.zip(filled).map(|(slot, filled)| Datagram {
            bytes: slot.get(..filled.len).unwrap_or(slot),
            is_cut: filled.is_cut,
            is_from_kernel: filled.is_from_kernel,
        })
    }

    /// Fills the arena with what waits at the socket; it is empty after an error.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.count = 0;
        let mut vectors = [libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }; Self::SLOTS];
        // SAFETY: an address of integers; all zeros is one.
        let mut senders: [libc::sockaddr_nl; Self::SLOTS] = unsafe { std::mem::zeroed() };
        // SAFETY: integers and pointers that may be null; all zeros is an empty header.
        let mut headers: [libc::mmsghdr; Self::SLOTS] = unsafe { std::mem::zeroed() };
        let slots = self.memory.chunks_exact_mut(SLOT_BYTES);
        let parts = slots.zip(&mut vectors).zip(&mut senders).zip(&mut headers);
        for (((slot, vector), sender), header) in parts {
            vector.iov_base = slot.as_mut_ptr().cast();
            vector.iov_len = slot.len();
            header.msg_hdr.msg_name = (&raw mut *sender).cast();
            header.msg_hdr.msg_namelen = SENDER_BYTES;
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: `SLOTS` headers, each with one writable vector (a slot of its own) and one
        // writable address of the size it says; all of them outlive the call, which keeps none.
        let got = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                SLOTS_U32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let Ok(got) = usize::try_from(got) else {
            return Err(io::Error::last_os_error());
        };
        self.count = got;
        for ((filled, header), sender) in self.filled.iter_mut().zip(&headers).zip(&senders) {
            *filled = Filled {
                len: usize::try_from(header.msg_len).unwrap_or(0),
                is_cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                is_from_kernel: sender.nl_pid == 0,
            };
        }
        Ok(got)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a constant of 32")]
const SLOTS_U32: u32 = Arena::SLOTS as u32;
#[expect(clippy::cast_possible_truncation, reason = "a constant of 12")]
const SENDER_BYTES: libc::socklen_t = size_of::<libc::sockaddr_nl>() as libc::socklen_t;

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}
