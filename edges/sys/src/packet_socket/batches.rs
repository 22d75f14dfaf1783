//! Frames taken from the queue of a socket or handed to the kernel: many with one call, each whole.
//!
//! The queue holds what the stack holds: a frame of segmentation offload (up to 64 KiB) is one
//! entry and is copied once, when it is taken.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::mapped_file::Mapping;
use crate::packet_socket::PacketSocket;
use crate::packet_socket::control::{Control, Note};

/// Room before every frame, for a VLAN tag that the kernel took out.
pub const TAG_ROOM: usize = 4;

/// The longest frame that is taken whole: the longest IPv4 packet, an Ethernet header, two tags.
pub const LONGEST: usize = 65_535 + 22;

/// From one slot to the next. Not a multiple of a page: slots that are read one after the other should
/// not fall on the same lines of a cache.
const STRIDE: usize = (TAG_ROOM + LONGEST).next_multiple_of(64) | 64;

/// A frame that was taken.
#[derive(Debug)]
pub struct Arrived<'a> {
    /// [`TAG_ROOM`] bytes that are free, and the frame behind them, cut at [`LONGEST`].
    pub room_and_frame: &'a mut [u8],
    /// Its length on the wire.
    pub wire_len: usize,
    /// What the kernel noted of it.
    pub note: Note,
}

/// Memory for a number of frames.
///
/// Invariant: header `i` points at entry `i` of `vectors`, which points at slot `i` of `slots`, and at
/// part `i` of `controls`. The vectors are not touched after they were made. The first `taken` slots
/// and controls hold what the kernel wrote; it writes during [`Inbox::take`] only.
pub struct Inbox {
    headers: Vec<libc::mmsghdr>,
    _vectors: Vec<libc::iovec>,
    slots: Mapping,
    controls: Mapping,
    taken: usize,
}

// SAFETY: the pointers in the headers lead into memory that this value owns and that belongs to no
// thread.
unsafe impl Send for Inbox {}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let slots = self.headers.len();
        f.debug_struct("Inbox")
            .field("slots", &slots)
            .finish_non_exhaustive()
    }
}

impl Inbox {
    /// Memory for so many frames at a time.
    ///
    /// # Errors
    /// `OutOfMemory` where the system has not the memory.
    pub fn new(frames: usize) -> io::Result<Self> {
        let room = |one: usize| frames.checked_mul(one).ok_or(io::ErrorKind::OutOfMemory);
        let slots = Mapping::private(room(STRIDE)?)?;
        let controls = Mapping::private(room(Control::BYTES)?)?;
        let mut vectors = Vec::with_capacity(frames);
        for number in 0..frames {
            let slot = slots.at(number * STRIDE + TAG_ROOM, LONGEST);
            vectors.push(libc::iovec {
                iov_base: slot.ok_or(io::ErrorKind::OutOfMemory)?.as_ptr().cast(),
                iov_len: LONGEST,
            });
        }
        let first: *mut libc::iovec = vectors.as_mut_ptr();
        let mut headers = Vec::with_capacity(frames);
        for number in 0..frames {
            let control = controls.at(number * Control::BYTES, Control::BYTES);
            // SAFETY: integers and pointers, for all of which zero is a value.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = first.wrapping_add(number);
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.ok_or(io::ErrorKind::OutOfMemory)?.as_ptr().cast();
            header.msg_hdr.msg_controllen = Control::BYTES;
            headers.push(header);
        }
        Ok(Self {
            headers,
            _vectors: vectors,
            slots,
            controls,
            taken: 0,
        })
    }

    /// How many frames it has room for.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.headers.len()
    }

    /// Takes frames that wait at a socket, without waiting for any; those of before are forgotten.
    /// Returns how many came.
    ///
    /// # Errors
    /// What `recvmmsg(2)` says: `NetworkDown` once where the interface went down.
    pub fn take(&mut self, socket: &PacketSocket) -> io::Result<usize> {
        for header in self.headers.iter_mut().take(self.taken) {
            header.msg_hdr.msg_controllen = Control::BYTES;
            header.msg_hdr.msg_flags = 0;
        }
        self.taken = 0;
        let count = libc::c_uint::try_from(self.headers.len()).unwrap_or(0);
        let headers = self.headers.as_mut_ptr();
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: `count` headers, whose pointers lead to memory of this value (type invariant); no
        // slice of it is alive, for they borrow from `self`.
        let taken =
            unsafe { libc::recvmmsg(fd, headers, count, libc::MSG_DONTWAIT, std::ptr::null_mut()) };
        if taken >= 0 {
            self.taken = usize::try_from(taken).unwrap_or(0);
            return Ok(self.taken);
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error => Err(error),
        }
    }

    /// A frame of those that were taken last.
    pub fn frame(&mut self, number: usize) -> Option<Arrived<'_>> {
        let header = self.headers.get(..self.taken)?.get(number)?;
        let len = usize::try_from(header.msg_len).unwrap_or(0).min(LONGEST);
        let control_len = header.msg_hdr.msg_controllen.min(Control::BYTES);
        let control = self.controls.at(number * Control::BYTES, control_len)?;
        // SAFETY: bytes of the mapping that the kernel has written and writes no more (type
        // invariant); borrowed for this call.
        let control = unsafe { std::slice::from_raw_parts(control.as_ptr(), control_len) };
        let note = Control(control).note();
        let slot = self.slots.at(number * STRIDE, TAG_ROOM + len)?;
        // SAFETY: as above; each slot is borrowed through `&mut self`, one at a time.
        let room_and_frame =
            unsafe { std::slice::from_raw_parts_mut(slot.as_ptr(), TAG_ROOM + len) };
        Some(Arrived {
            room_and_frame,
            wire_len: note.wire_len.unwrap_or(len).max(len),
            note,
        })
    }
}

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
