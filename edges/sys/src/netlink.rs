//! Sockets on which the kernel's packet filter talks (`NETLINK_NETFILTER`).
//!
//! Mechanism only: datagrams go out and come in, many of them per system call. What is in them is the
//! caller's business.
//!
//! Source: netlink(7), `linux/netlink.h`, recvmmsg(2).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// What [`NetfilterSocket::wait`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// There are datagrams, or the socket has an error that the next receive tells.
    pub has_datagrams: bool,
    /// The [`Waker`] was used since the last wait.
    pub was_woken: bool,
}

/// The room for datagrams that wait to be received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveBuffer {
    /// Bytes, by the kernel's own count, which includes what it needs around a datagram: twice of
    /// what was asked for, where all of it was given.
    pub bytes: u32,
    /// Whether the system's limit (`net.core.rmem_max`) was passed; that takes `CAP_NET_ADMIN`.
    pub is_forced: bool,
}

/// A socket of the packet filter, connected to the kernel of this network namespace.
#[derive(Debug)]
pub struct NetfilterSocket {
    fd: OwnedFd,
    port: u32,
}

impl NetfilterSocket {
    /// Opens a socket; anybody may. What is sent on it is checked for `CAP_NET_ADMIN`, of the opener
    /// and of the sender.
    ///
    /// # Errors
    /// `EPROTONOSUPPORT` where the kernel has no nfnetlink.
    pub fn open() -> io::Result<Self> {
        let fd = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::NETFILTER),
        )?;
        // Port 0: the kernel chooses one that is free.
        rustix::net::bind(&fd, &SocketAddrNetlink::new(0, 0))?;
        let address = SocketAddrNetlink::try_from(rustix::net::getsockname(&fd)?)?;
        Ok(Self {
            fd,
            port: address.pid(),
        })
    }

    /// The number under which the kernel knows the socket: often, not always, the process id.
    #[must_use]
    pub const fn port(&self) -> u32 {
        self.port
    }

    /// Asks for room for datagrams; past the system's limit where that is allowed.
    ///
    /// # Errors
    /// What `setsockopt(2)` says; less room than asked for is no error.
    pub fn set_receive_buffer(&self, bytes: u32) -> io::Result<ReceiveBuffer> {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        let is_forced = self
            .set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes)
            .is_ok();
        if !is_forced {
            self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes)?;
        }
        let mut got = 0_i32;
        crate::socket::get(self.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &mut got)?;
        Ok(ReceiveBuffer {
            bytes: u32::try_from(got).unwrap_or(0),
            is_forced,
        })
    }

    /// Has the kernel go on after a datagram for which there was no room. Without it, one loss makes
    /// the kernel refuse every datagram until the reader has taken all that wait, and a receive
    /// fails with `ENOBUFS`. [`NetfilterSocket::overruns`] counts either way.
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn continue_after_overrun(&self) -> io::Result<()> {
        self.set(libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS, &1_i32)
    }

    /// How many datagrams found no room since the socket was opened; wraps around.
    ///
    /// # Errors
    /// What `getsockopt(2)` says.
    pub fn overruns(&self) -> io::Result<u32> {
        let mut numbers = [0_u32; MEMORY_NUMBERS];
        crate::socket::get(self.as_fd(), libc::SOL_SOCKET, SO_MEMINFO, &mut numbers)?;
        Ok(numbers.last().copied().unwrap_or(0))
    }

    /// Sends one datagram to the kernel, which works on it before this returns.
    ///
    /// # Errors
    /// What `send(2)` says: `EMSGSIZE` for one longer than the send buffer (208 KiB as a rule),
    /// `ENOBUFS` where there is no memory. What the kernel thinks of the content comes back as a
    /// datagram.
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        loop {
            match rustix::net::send(&self.fd, datagram, SendFlags::empty()) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until there is something to receive or `waker` is used; neither is true after `limit`.
    ///
    /// # Errors
    /// What `poll(2)` says. A signal ends the wait early, as a limit does.
    pub fn wait(&self, waker: &Waker, limit: Duration) -> io::Result<Ready> {
        let mut both = [
            PollFd::new(self, PollFlags::IN),
            PollFd::new(waker, PollFlags::IN),
        ];
        let limit = Timespec::try_from(limit).ok();
        match poll(&mut both, limit.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {
                return Ok(Ready {
                    has_datagrams: false,
                    was_woken: false,
                });
            }
            Err(error) => return Err(error.into()),
        }
        let [own, wake] = both.map(|one| !one.revents().is_empty());
        if wake {
            waker.clear();
        }
        Ok(Ready {
            has_datagrams: own,
            was_woken: wake,
        })
    }

    /// Takes the datagrams that wait, as many as the arena has slots for, without waiting for any.
    ///
    /// # Errors
    /// `WouldBlock` where there are none; `ENOBUFS` after a loss (see
    /// [`NetfilterSocket::continue_after_overrun`]).
    pub fn receive(&self, arena: &mut Arena) -> io::Result<usize> {
        arena.receive(self.as_fd())
    }

    /// Waits for one datagram and takes it: its bytes, cut where `buffer` is shorter.
    ///
    /// # Errors
    /// `TimedOut` after `limit`; what `recv(2)` says.
    pub fn receive_one<'a>(&self, buffer: &'a mut [u8], limit: Duration) -> io::Result<&'a [u8]> {
        if !crate::wait::readable(self, limit)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (_, len) = rustix::net::recv(&self.fd, &mut *buffer, RecvFlags::DONTWAIT)?;
        Ok(buffer.get(..len).unwrap_or(buffer))
    }

    fn set<T: Copy>(&self, level: i32, option: i32, value: &T) -> io::Result<()> {
        crate::socket::set(self.as_fd(), level, option, value)
    }
}

/// `SO_MEMINFO` (`asm-generic/socket.h`); the last of its numbers is that of the drops.
const SO_MEMINFO: i32 = 55;
/// `SK_MEMINFO_VARS` (`linux/sock_diag.h`).
const MEMORY_NUMBERS: usize = 9;

impl AsFd for NetfilterSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Ends the wait of a thread; its clones ring the same bell.
#[derive(Debug, Clone)]
pub struct Waker {
    event: Arc<OwnedFd>,
}

impl Waker {
    /// A new bell.
    ///
    /// # Errors
    /// What `eventfd(2)` says: too many open files.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            event: Arc::new(event),
        })
    }

    /// Ends the wait that goes on, or else the next one. Several before it count as one. Never
    /// blocks, and makes no lock.
    pub fn wake(&self) {
        // The only failure of an eventfd that is open is a counter at its end: rung already.
        rustix::io::write(&self.event, &1_u64.to_ne_bytes()).ok();
    }

    /// Uses up what was rung.
    pub(super) fn clear(&self) {
        let mut count = [0; 8];
        // Nothing rung, nothing to use up.
        rustix::io::read(&self.event, &mut count).ok();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that the kernel answers to anybody: `NLMSG_ERROR`, for want of a valid message type.
    const NONSENSE: [u8; 16] = {
        let mut message = [0; 16];
        message[0] = 16;
        // A type that no subsystem has, NLM_F_REQUEST | NLM_F_ACK.
        (message[4], message[5], message[6]) = (0xff, 0xff, 5);
        message
    };

    fn socket() -> Option<NetfilterSocket> {
        NetfilterSocket::open()
            .map_err(|error| println!("SKIPPED: no NETLINK_NETFILTER socket: {error}"))
            .ok()
    }

    #[test]
    fn each_question_is_answered_in_a_datagram_of_its_own() {
        let Some(socket) = socket() else { return };
        let mut arena = Arena::new();
        let none = socket.receive(&mut arena).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(arena.datagrams().count(), 0);
        for _ in 0..Arena::SLOTS + 3 {
            socket.send(&NONSENSE).unwrap();
        }
        assert_eq!(socket.receive(&mut arena).unwrap(), Arena::SLOTS);
        for datagram in arena.datagrams() {
            assert!(datagram.is_from_kernel && !datagram.is_cut);
            // Length of all, NLMSG_ERROR.
            assert_eq!(usize::from(datagram.bytes[0]), datagram.bytes.len());
            assert_eq!(datagram.bytes[4], 2);
        }
        assert_eq!(socket.receive(&mut arena).unwrap(), 3);
        assert_eq!(arena.datagrams().count(), 3);
        assert_eq!(socket.overruns().unwrap(), 0);
    }

    #[test]
    fn a_wait_ends_with_a_wake_a_datagram_or_the_limit() {
        let Some(socket) = socket() else { return };
        let waker = Waker::new().unwrap();
        let long = Duration::from_secs(20);
        let nothing = socket.wait(&waker, Duration::from_millis(1)).unwrap();
        assert!(!nothing.was_woken && !nothing.has_datagrams);
        let other = waker.clone();
        std::thread::spawn(move || other.wake()).join().unwrap();
        waker.wake();
        let woken = socket.wait(&waker, long).unwrap();
        assert!(woken.was_woken && !woken.has_datagrams);
        let again = socket.wait(&waker, Duration::ZERO).unwrap();
        assert!(!again.was_woken, "two wakes are one, and it is used up");
        socket.send(&NONSENSE).unwrap();
        assert!(socket.wait(&waker, long).unwrap().has_datagrams);
        let mut buffer = [0; 8];
        let cut = socket.receive_one(&mut buffer, long).unwrap();
        assert_eq!(cut.len(), 8);
        let none = socket.receive_one(&mut buffer, Duration::ZERO).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let Some(socket) = socket() else { return };
        socket.continue_after_overrun().unwrap();
        let buffer = socket.set_receive_buffer(4096).unwrap();
        assert!((4096..=16_384).contains(&buffer.bytes), "{buffer:?}");
        for _ in 0..200 {
            socket.send(&NONSENSE).unwrap();
        }
        let lost = socket.overruns().unwrap();
        assert!((100..200).contains(&lost), "{lost}");
        let mut arena = Arena::new();
        let got = socket.receive(&mut arena).unwrap();
        assert_eq!(u32::try_from(got).unwrap() + lost, 200);
    }

    #[test]
    fn two_sockets_have_two_ports() {
        let (Some(one), Some(other)) = (socket(), socket()) else {
            return;
        };
        assert_ne!(one.port(), 0);
        assert_ne!(one.port(), other.port());
    }
}
