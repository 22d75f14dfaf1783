//! Sending through memory that is shared with the kernel.
//!
//! No program is put on the interface and no receive ring is made: what the interface receives goes
//! its usual way. The kernel copies the frames (copy mode), which every driver can.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::ring::Ring;
use crate::mapped_file::Mapping;

/// What the kernel says when it is reported that frames are in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kick {
    /// It has taken all.
    Done,
    /// It has taken some (32 at a time), or none where a queue is full: see
    /// [`XdpSender::untaken`].
    Again,
    /// The driver has thrown the last one away that it took, and there may be more in the ring.
    Dropped,
}

/// An `AF_XDP` socket that only sends.
///
/// Invariant: a chunk of `umem` is ours while its address is in `free`; from when it is put into
/// `to_send` until it comes out of `completed` it is the kernel's.
#[derive(Debug)]
pub struct XdpSender {
    // Closed before the memory goes.
    fd: OwnedFd,
    to_send: Ring,
    completed: Ring,
    umem: Mapping,
    free: Vec<u64>,
    chunk_bytes: usize,
}

impl XdpSender {
    /// The longest frame that any sender takes.
    pub const LONGEST: usize = 4096;

    /// Opens a socket on a queue of an interface, with room for `chunks` frames (a power of two) of up to
    /// `longest` bytes. The memory counts against `RLIMIT_MEMLOCK` without `CAP_IPC_LOCK`.
    ///
    /// # Errors
    /// `InvalidInput` for frames longer than [`XdpSender::LONGEST`]; what the kernel says:
    /// `PermissionDenied` without `CAP_NET_RAW`, `ResourceBusy` where another socket has the queue,
    /// `ENOBUFS` beyond the limit of locked memory.
    pub fn open(interface: u32, queue: u32, chunks: u32, longest: usize) -> io::Result<Self> {
        // Chunks of other sizes the kernel takes in huge pages only.
        let chunk_bytes = longest.max(2048).next_power_of_two();
        let count = usize::try_from(chunks).unwrap_or(0);
        let len = count
            .checked_mul(chunk_bytes)
            .filter(|_| chunks.is_power_of_two() && chunk_bytes <= Self::LONGEST)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let fd = super::socket()?;
        let umem = Mapping::private(len)?;
        super::register(fd.as_fd(), &umem, len, chunk_bytes)?;
        let set =
            |option: i32, value: &u32| crate::socket::set(fd.as_fd(), libc::SOL_XDP, option, value);
        // Only a receiver uses it, but a memory without one is not taken.
        set(libc::XDP_UMEM_FILL_RING, &64)?;
        set(libc::XDP_UMEM_COMPLETION_RING, &chunks)?;
        set(libc::XDP_TX_RING, &chunks)?;
        let offsets = super::offsets(fd.as_fd())?;
        let page = i64::try_from(libc::XDP_UMEM_PGOFF_COMPLETION_RING).unwrap_or(0);
        let completed = Ring::map(fd.as_fd(), &offsets.cr, chunks, size_of::<u64>(), page)?;
        let to_send = Ring::map(
            fd.as_fd(),
            &offsets.tx,
            chunks,
            size_of::<libc::xdp_desc>(),
            libc::XDP_PGOFF_TX_RING,
        )?;
        super::bind(fd.as_fd(), interface, queue, libc::XDP_COPY)?;
        let free = (0..u64::from(chunks)).map(|chunk| chunk * chunk_bytes as u64);
        Ok(Self {
            fd,
            to_send,
            completed,
            umem,
            free: free.collect(),
            chunk_bytes,
        })
    }

    /// Asks for so many bytes of memory for frames that the driver has not sent yet, counted as the
    /// kernel counts; without `CAP_NET_ADMIN` it gives at most `net.core.wmem_max`.
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        let wanted = i32::try_from(bytes / 2).unwrap_or(i32::MAX / 2);
        let set = |option| crate::socket::set(self.fd.as_fd(), libc::SOL_SOCKET, option, &wanted);
        set(libc::SO_SNDBUFFORCE).or_else(|_| set(libc::SO_SNDBUF))
    }

    /// The longest frame that it takes.
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.chunk_bytes
    }

    /// Copies a frame into the ring. False where no chunk is free, or the frame is empty or too long.
    #[must_use]
    pub fn put(&mut self, frame: &[u8]) -> bool {
        if frame.is_empty() || frame.len() > self.chunk_bytes {
            return false;
        }
        if self.free.is_empty() {
            self.reclaim();
        }
        let Some(address) = self.free.pop() else {
            return false;
        };
        let at = usize::try_from(address).unwrap_or(usize::MAX);
        let (Some(chunk), Ok(len)) = (self.umem.at(at, frame.len()), u32::try_from(frame.len()))
        else {
            return false;
        };
        // SAFETY: `frame.len()` bytes inside the mapping, in a chunk that is ours (type invariant); the
        // frame lies elsewhere, for nothing ever borrows from the mapping.
        unsafe { std::ptr::copy_nonoverlapping(frame.as_ptr(), chunk.as_ptr(), frame.len()) };
        self.to_send.put(libc::xdp_desc {
            addr: address,
            len,
            options: 0,
        });
        true
    }

    /// Takes the chunks back whose frames have left.
    fn reclaim(&mut self) {
        while let Some(address) = self.completed.take::<u64>() {
            self.free.push(address);
        }
        self.completed.release();
    }

    /// Tells the kernel of what was put; it sends in this call.
    ///
    /// # Errors
    /// What `sendto(2)` says: `NetworkDown`, `ENXIO` where the interface is gone.
    pub fn kick(&mut self) -> io::Result<Kick> {
        self.to_send.publish();
        // SAFETY: no memory is passed; the call only makes the kernel look at its ring.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        let outcome = if sent >= 0 {
            Ok(Kick::Done)
        } else {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(Kick::Again),
                Some(libc::EBUSY) => Ok(Kick::Dropped),
                _ => Err(error),
            }
        };
        self.reclaim();
        outcome
    }

    /// How many frames in the ring the kernel has not taken yet.
    #[must_use]
    pub fn untaken(&self) -> u32 {
        self.to_send.untaken()
    }
}

impl AsFd for XdpSender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
