//! Sockets on which the kernel's packet filter talks (`NETLINK_NETFILTER`).
//!
//! Mechanism only: datagrams go out and come in, many of them per system call. What is in them is the
//! caller's business.
//!
//! Source: netlink(7), `linux/netlink.h`, recvmmsg(2).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

mod arena;
mod waker;

pub use arena::{Arena, Datagram};
pub use waker::Waker;

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
