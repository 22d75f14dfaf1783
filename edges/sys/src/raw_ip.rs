//! Sockets that send IP packets as they are, header and source address included.
//!
//! The kernel routes such a packet by its destination, fills the checksum of an IPv4 header and its
//! identification where that is 0, and changes nothing else. The source may be anybody's.
//! `CAP_NET_RAW` is checked when a socket is opened and not when it is used: a process may drop it
//! in between.
//!
//! Source: raw(7), ipv6(7), socket(7) (`SO_MARK`).

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto};

/// Which version of IP a socket sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A socket that sends IP packets of one version, and receives none.
#[derive(Debug)]
pub struct RawIpSocket {
    fd: OwnedFd,
    version: IpVersion,
}

impl RawIpSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_NET_RAW`; `EAFNOSUPPORT` where the kernel has no such version.
    pub fn open(version: IpVersion) -> io::Result<Self> {
        let (family, level, option) = match version {
            IpVersion::V4 => (AddressFamily::INET, libc::IPPROTO_IP, libc::IP_HDRINCL),
            IpVersion::V6 => (AddressFamily::INET6, libc::IPPROTO_IPV6, IPV6_HDRINCL),
        };
        let fd = rustix::net::socket_with(
            family,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(ipproto::RAW),
        )?;
        // `IPPROTO_RAW` implies it; said once more for kernels where that holds for one version.
        crate::socket::set(fd.as_fd(), level, option, &1_i32)?;
        Ok(Self { fd, version })
    }

    /// Marks every packet that is sent from now on, for the rules of the packet filter.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_NET_ADMIN` (since Linux 5.17 `CAP_NET_RAW` will do).
    pub fn set_mark(&self, mark: u32) -> io::Result<()> {
        crate::socket::set(self.as_fd(), libc::SOL_SOCKET, libc::SO_MARK, &mark)
    }

    /// Sends a packet to `destination`, which is the address in its header.
    ///
    /// # Errors
    /// `InvalidInput` for an address of the other version; what `sendto(2)` says: no route,
    /// `EMSGSIZE` for a packet longer than the MTU, `PermissionDenied` where a rule dropped it.
    pub fn send(&self, packet: &[u8], destination: SocketAddr) -> io::Result<()> {
        // A port is no part of IP; one of an IPv6 socket would be taken for a protocol.
        let sent = match (self.version, destination) {
            (IpVersion::V4, SocketAddr::V4(to)) => {
                let to = SocketAddrV4::new(*to.ip(), 0);
                rustix::net::sendto(&self.fd, packet, SendFlags::empty(), &to)?
            }
            (IpVersion::V6, SocketAddr::V6(to)) => {
                let to = SocketAddrV6::new(*to.ip(), 0, 0, to.scope_id());
                rustix::net::sendto(&self.fd, packet, SendFlags::empty(), &to)?
            }
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        if sent == packet.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }
}

impl IpVersion {
    /// The version of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

/// `IPV6_HDRINCL` (`linux/in6.h`).
const IPV6_HDRINCL: i32 = 36;

impl AsFd for RawIpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::privileges::Restrict;

    /// A UDP datagram of "hello" from 127.9.9.9:9 (IPv4) with a checksum of none.
    fn datagram(to: SocketAddr) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 33, 0, 0, 0, 0, 64, 17, 0, 0, 127, 9, 9, 9];
        match to.ip() {
            IpAddr::V4(ip) => packet.extend(ip.octets()),
            IpAddr::V6(_) => panic!("only version 4 goes without a checksum"),
        }
        packet.extend([0, 9]);
        packet.extend(to.port().to_be_bytes());
        packet.extend([0, 13, 0, 0]);
        packet.extend(b"hello");
        packet
    }

    #[test]
    fn a_spoofed_packet_leaves_after_the_privilege_is_gone() {
        let socket = match RawIpSocket::open(IpVersion::V4) {
            Ok(socket) => socket,
            Err(error) => {
                println!(
                    "SKIPPED: a_spoofed_packet_leaves_after_the_privilege_is_gone: needs \
                     CAP_NET_RAW: {error}"
                );
                return;
            }
        };
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let to = receiver.local_addr().unwrap();
        // The privileges of a thread are its own.
        std::thread::spawn(move || {
            Restrict {
                keep_net_admin: true,
                ..Restrict::default()
            }
            .apply()
            .unwrap();
            let denied = RawIpSocket::open(IpVersion::V4).unwrap_err();
            assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
            socket.send(&datagram(to), to).unwrap();
            let other = "[::1]:9".parse().unwrap();
            let wrong = socket.send(&datagram(to), other).unwrap_err();
            assert_eq!(wrong.kind(), io::ErrorKind::InvalidInput);
        })
        .join()
        .unwrap();
        let mut buffer = [0; 16];
        let (len, from) = receiver.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], b"hello");
        assert_eq!(from, "127.9.9.9:9".parse().unwrap());
    }
}
