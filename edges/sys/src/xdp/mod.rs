//! Sockets to which the driver of a network card hands frames past the stack (`AF_XDP`).
//!
//! A program on the interface redirects every frame that arrives to the socket of its receive
//! queue. A frame that was redirected does not reach the stack: the machine itself does not see it.
//!
//! Source: `Documentation/networking/af_xdp.rst` of Linux, `linux/if_xdp.h`, `linux/bpf.h`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::mapped_file::Mapping;

mod program;
mod ring;
mod sender;

pub use program::{Attach, XdpProgram};
pub use sender::{Kick, XdpSender};

use program::{STAMP_BYTES, stamp};
use ring::Ring;

/// Whether the card writes frames to the memory of the socket, or the kernel copies them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// The card writes them.
    ZeroCopy,
    /// The kernel copies them.
    Copy,
}

/// What the kernel counted since the socket was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct XdpStatistics {
    /// Frames that were not taken for other reasons (too long for a chunk).
    pub dropped: u64,
    /// Frames for which the receive ring had no room.
    pub ring_full: u64,
    /// How often there was no free chunk for a frame.
    pub no_chunk: u64,
}

/// A frame that was copied out of the socket's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Offset of the first byte in the buffer it was copied to.
    pub offset: usize,
    /// Its length in bytes.
    pub len: usize,
    /// When the program saw it, by the monotonic clock, where the driver has room for stamps.
    pub monotonic_ns: Option<u64>,
}

/// Bytes for one frame; what the driver needs around it included.
const CHUNK_BYTES: usize = 4096;

/// The longest frame a chunk takes beside headroom (256 bytes) and what drivers put behind (320).
pub const MAX_FRAME_BYTES: u32 = 3520;

/// An `AF_XDP` socket of one receive queue.
///
/// Invariant: a chunk of `umem` belongs to the kernel from when its address was put into `fill`
/// until it comes out of `received`; then to this type, which copies the frame and puts the address
/// back. No reference to the memory is ever made: only addresses inside it are read.
#[derive(Debug)]
pub struct XdpSocket {
    // Closed before the memory goes.
    fd: OwnedFd,
    fill: Ring,
    received: Ring,
    umem: Mapping,
    needs_wakeup: bool,
}

impl XdpSocket {
    /// Opens a socket for a receive queue, with room for `chunks` frames (a power of two).
    ///
    /// # Errors
    /// What the kernel says: `Unsupported` where the driver has no such transfer, `ResourceBusy`
    /// where another socket has the queue.
    pub fn open(interface: u32, queue: u32, transfer: Transfer, chunks: u32) -> io::Result<Self> {
        let fd = socket()?;
        let count = usize::try_from(chunks).unwrap_or(0);
        let len = count
            .checked_mul(CHUNK_BYTES)
            .filter(|_| chunks.is_power_of_two())
            .ok_or(io::ErrorKind::InvalidInput)?;
        let umem = Mapping::private(len)?;
        let set =
            |option: i32, value: &u32| crate::socket::set(fd.as_fd(), libc::SOL_XDP, option, value);
        register(fd.as_fd(), &umem, len, CHUNK_BYTES)?;
        set(libc::XDP_UMEM_FILL_RING, &chunks)?;
        // Only a sender uses it, but a memory without one is not taken.
        set(libc::XDP_UMEM_COMPLETION_RING, &64)?;
        set(libc::XDP_RX_RING, &chunks)?;
        let offsets = offsets(fd.as_fd())?;
        let fill_page = i64::try_from(libc::XDP_UMEM_PGOFF_FILL_RING).unwrap_or(0);
        let mut fill = Ring::map(fd.as_fd(), &offsets.fr, chunks, size_of::<u64>(), fill_page)?;
        let received = Ring::map(
            fd.as_fd(),
            &offsets.rx,
            chunks,
            size_of::<libc::xdp_desc>(),
            libc::XDP_PGOFF_RX_RING,
        )?;
        for chunk in 0..u64::from(chunks) {
            fill.put(chunk * CHUNK_BYTES as u64);
        }
        fill.publish();
        let flags = match transfer {
            Transfer::ZeroCopy => libc::XDP_ZEROCOPY | libc::XDP_USE_NEED_WAKEUP,
            Transfer::Copy => libc::XDP_COPY,
        };
        bind(fd.as_fd(), interface, queue, flags)?;
        Ok(Self {
            fd,
            fill,
            received,
            umem,
            needs_wakeup: transfer == Transfer::ZeroCopy,
        })
    }

    /// Copies up to `limit` frames that have arrived to the end of `buffer`, each cut at `snaplen`
    /// bytes, and gives their memory back. `each` is reported of every frame and its length on the wire.
    pub fn receive(
        &mut self,
        limit: u32,
        snaplen: usize,
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(Received, u32),
    ) -> u32 {
        let mut taken = 0;
        while taken < limit
            && let Some(described) = self.received.take::<libc::xdp_desc>()
        {
            taken += 1;
            let at = usize::try_from(described.addr).unwrap_or(usize::MAX);
            let wire = usize::try_from(described.len).unwrap_or(0);
            let len = wire.min(snaplen);
            if let Some(start) = self.umem.at(at, len) {
                let offset = buffer.len();
                buffer.reserve(len);
                // SAFETY: `len` bytes inside the mapping, in a chunk that is ours (type invariant).
                // The slice lives for this statement, while nothing writes to the chunk.
                buffer
                    .extend_from_slice(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) });
                let stamped = at
                    .checked_sub(STAMP_BYTES)
                    .and_then(|before| self.umem.at(before, STAMP_BYTES))
                    .and_then(|before| {
                        // SAFETY: 16 bytes before the frame in the same chunk, which is ours: the
                        // kernel puts a frame behind 256 bytes of headroom. Bytes need no alignment.
                        stamp(unsafe { before.cast::<[u8; STAMP_BYTES]>().read() })
                    });
                let frame = Received {
                    offset,
                    len,
                    monotonic_ns: stamped,
                };
                each(frame, described.len);
            }
            self.fill.put(described.addr & !(CHUNK_BYTES as u64 - 1));
        }
        if taken > 0 {
            self.received.release();
            self.fill.publish();
            if self.needs_wakeup && self.fill.needs_wakeup() {
                self.wake_up();
            }
        }
        taken
    }

    /// Tells the driver that there are free chunks again.
    fn wake_up(&self) {
        // SAFETY: no memory is passed; the call only makes the driver look at its rings.
        unsafe {
            libc::recvfrom(
                self.fd.as_raw_fd(),
                std::ptr::null_mut(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
    }

    /// What the kernel counted since the socket was opened.
    ///
    /// # Errors
    /// What `getsockopt(2)` says.
    pub fn statistics(&self) -> io::Result<XdpStatistics> {
        let mut raw = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        crate::socket::get(self.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS, &mut raw)?;
        Ok(XdpStatistics {
            dropped: raw.rx_dropped,
            ring_full: raw.rx_ring_full,
            no_chunk: raw.rx_fill_ring_empty_descs,
        })
    }
}

fn socket() -> io::Result<OwnedFd> {
    // SAFETY: takes three numbers; the result is checked.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that has just been opened and that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Gives the kernel the memory of a socket's frames, which must live as long as the socket.
fn register(fd: BorrowedFd<'_>, umem: &Mapping, len: usize, chunk: usize) -> io::Result<()> {
    let registration = libc::xdp_umem_reg {
        addr: umem.start().as_ptr().expose_provenance() as u64,
        len: len as u64,
        chunk_size: u32::try_from(chunk).unwrap_or(0),
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    crate::socket::set(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)
}

fn bind(fd: BorrowedFd<'_>, interface: u32, queue: u32, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: crate::socket::family(libc::AF_XDP),
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    crate::socket::bind(fd, &address)
}

fn offsets(fd: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    const NONE: libc::xdp_ring_offset = libc::xdp_ring_offset {
        producer: 0,
        consumer: 0,
        desc: 0,
        flags: 0,
    };
    let mut offsets = libc::xdp_mmap_offsets {
        rx: NONE,
        tx: NONE,
        fr: NONE,
        cr: NONE,
    };
    crate::socket::get(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    Ok(offsets)
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
