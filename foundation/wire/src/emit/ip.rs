//! IP headers.

use std::net::{IpAddr, SocketAddr};

use super::put;
use crate::checksum;

/// What an IP header says; the version is that of the addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) protocol: u8,
    pub(super) ttl: u8,
    pub(super) identification: u16,
    pub(super) payload_len: usize,
}

impl Header {
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let start = out.len();
                let total = u16::try_from(self.payload_len + 20).unwrap_or(0);
                out.extend_from_slice(&[0x45, 0]);
                out.extend_from_slice(&total.to_be_bytes());
                out.extend_from_slice(&self.identification.to_be_bytes());
                // Don't fragment, as every TCP sends (RFC 1191).
                out.extend_from_slice(&[0x40, 0, self.ttl, self.protocol, 0, 0]);
                out.extend_from_slice(&src.octets());
                out.extend_from_slice(&dst.octets());
                if let Some(header) = out.get_mut(start..) {
                    put(header, 10, checksum::of(header));
                }
            }
            (src, dst) => {
                let len = u16::try_from(self.payload_len).unwrap_or(0);
                out.extend_from_slice(&[0x60, 0, 0, 0]);
                out.extend_from_slice(&len.to_be_bytes());
                out.extend_from_slice(&[self.protocol, self.ttl]);
                out.extend_from_slice(&checksum::v6_octets(src));
                out.extend_from_slice(&checksum::v6_octets(dst));
            }
        }
    }
}

/// Both addresses in the one family that can hold both.
pub(super) const fn one_family(src: IpAddr, dst: IpAddr) -> (IpAddr, IpAddr) {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V6(_)) => (IpAddr::V6(src.to_ipv6_mapped()), dst),
        (IpAddr::V6(_), IpAddr::V4(dst)) => (src, IpAddr::V6(dst.to_ipv6_mapped())),
        same => same,
    }
}

pub(super) const fn ethertype(src: SocketAddr, dst: SocketAddr) -> u16 {
    if src.is_ipv4() && dst.is_ipv4() {
        0x0800
    } else {
        0x86dd
    }
}
