//! Community ID, version 1: what names a flow in the records of several monitors.
//!
//! A hash of addresses, protocol and ports, the same for both directions and at every capture point. Where packets are
//! in a tunnel it is that of the innermost packet, and no VLAN is part of it: the specification leaves both open.
//!
//! Source: "Community ID Flow Hashing" (Corelight), version 1, whose baselines the tests have.

use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha1::block_api::compress;

use crate::schema::Endpoint;
use crate::short::Short;

/// Bytes of the digest.
const DIGEST: usize = 20;

/// The id of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommunityId([u8; DIGEST]);

impl CommunityId {
    /// Of a protocol with ports: TCP, UDP or SCTP, by its number in the IP header. It does not matter which end is
    /// given first.
    #[must_use]
    pub fn of_ports(seed: u16, protocol: u8, one: Endpoint, other: Endpoint) -> Self {
        let (low, high) = if one <= other {
            (one, other)
        } else {
            (other, one)
        };
        Self::of(seed, protocol, low.0, high.0, Some([low.1, high.1]))
    }

    /// Of a message of ICMP, of its version 6 where the addresses are of that. A type that has a counterpart stands
    /// for a port, and its counterpart for the other; of one that has none the code does, and the direction counts.
    #[must_use]
    pub fn of_icmp(seed: u16, source: IpAddr, destination: IpAddr, kind: u8, code: u8) -> Self {
        let (protocol, counterpart) = match source {
            IpAddr::V4(_) => (1, counterpart(kind)),
            IpAddr::V6(_) => (58, counterpart6(kind)),
        };
        let kind = u16::from(kind);
        match counterpart {
            Some(other) => Self::of_ports(
                seed,
                protocol,
                (source, kind),
                (destination, u16::from(other)),
            ),
            None => {
                let ports = Some([kind, u16::from(code)]);
                Self::of(seed, protocol, source, destination, ports)
            }
        }
    }

    /// Of any other protocol: addresses alone.
    #[must_use]
    pub fn of_addresses(seed: u16, protocol: u8, one: IpAddr, other: IpAddr) -> Self {
        Self::of(seed, protocol, one.min(other), one.max(other), None)
    }

    fn of(seed: u16, protocol: u8, low: IpAddr, high: IpAddr, ports: Option<[u16; 2]>) -> Self {
        let mut input = Block::new();
        input.add(&seed.to_be_bytes());
        for address in [low, high] {
            match address {
                IpAddr::V4(v4) => input.add(&v4.octets()),
                IpAddr::V6(v6) => input.add(&v6.octets()),
            }
        }
        input.add(&[protocol, 0]);
        for port in ports.into_iter().flatten() {
            input.add(&port.to_be_bytes());
        }
        Self(input.digest())
    }

    /// The digest of SHA-1.
    #[must_use]
    pub const fn digest(&self) -> &[u8; DIGEST] {
        &self.0
    }

    /// The text of version 1: `1:` and the digest in base 64.
    #[must_use]
    pub fn text(&self) -> Short {
        let mut text = *b"1:............................";
        if let Some(room) = text.get_mut(2..) {
            let _fits = BASE64_STANDARD.encode_slice(self.0, room);
        }
        Short::new(&text)
    }
}

/// What is hashed: with its padding it is one block of SHA-1 (RFC 3174 sec. 4), which is made here, without the buffers
/// that a text of any length needs.
struct Block {
    bytes: [u8; 64],
    len: u8,
}

impl Block {
    /// The value that hashing begins with (RFC 3174 sec. 6.1).
    const BEGIN: [u32; 5] = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];

    const fn new() -> Self {
        Self {
            bytes: [0; 64],
            len: 0,
        }
    }

    /// Appends at most 40 bytes in all: seed, two addresses of IPv6, protocol and padding, two ports.
    fn add<const N: usize>(&mut self, part: &[u8; N]) {
        let room = self.bytes.get_mut(usize::from(self.len)..);
        if let Some(room) = room.and_then(|room| room.first_chunk_mut::<N>()) {
            *room = *part;
            self.len += u8::try_from(N).unwrap_or(0);
        }
    }

    fn digest(mut self) -> [u8; DIGEST] {
        let bits = u16::from(self.len) * 8;
        self.add(&[0x80]);
        if let Some(length) = self.bytes.last_chunk_mut() {
            *length = bits.to_be_bytes();
        }
        let mut state = Self::BEGIN;
        compress(&mut state, &[self.bytes]);
        let mut digest = [0; DIGEST];
        for (to, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(state) {
            *to = word.to_be_bytes();
        }
        digest
    }
}

/// The ICMP type that answers this one, or that this one answers, as Zeek pairs them.
const fn counterpart(kind: u8) -> Option<u8> {
    Some(match kind {
        0 => 8,
        8 => 0,
        9 => 10,
        10 => 9,
        13 => 14,
        14 => 13,
        15 => 16,
        16 => 15,
        17 => 18,
        18 => 17,
        _ => return None,
    })
}

/// The same of `ICMPv6`.
const fn counterpart6(kind: u8) -> Option<u8> {
    Some(match kind {
        128 => 129,
        129 => 128,
        130 => 131,
        131 => 130,
        133 => 134,
        134 => 133,
        135 => 136,
        136 => 135,
        139 => 140,
        140 => 139,
        144 => 145,
        145 => 144,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(address: &str, port: u16) -> Endpoint {
        (address.parse().unwrap(), port)
    }

    fn text(id: CommunityId) -> String {
        String::from_utf8(id.text().as_bytes().to_vec()).unwrap()
    }

    /// Digests made by hand: `printf` of the bytes of each into `sha1sum`, and that into `base64`.
    #[test]
    fn agrees_with_digests_made_by_hand() {
        let (client, server) = (end("10.0.0.1", 40_000), end("10.0.0.2", 80));
        let tcp = CommunityId::of_ports(0, 6, client, server);
        assert_eq!(text(tcp), "1:3k1SoWXs/FltHw2aBCgUTgbDQF4=");
        assert_eq!(tcp, CommunityId::of_ports(0, 6, server, client));
        let udp = CommunityId::of_ports(1, 17, end("2001:db8::2", 53), end("2001:db8::1", 53));
        assert_eq!(text(udp), "1:orNyPw8Qp23h7qPFJ8a81Muqzs4=");
        let same = CommunityId::of_ports(0, 132, end("10.0.0.1", 9), end("10.0.0.1", 8));
        assert_eq!(text(same), "1:IqBXSdb4S9u/0TVZUdA2dBzgIhs=");
        let gre = CommunityId::of_addresses(0, 47, server.0, client.0);
        assert_eq!(text(gre), "1:+KlEHDT0vJgzs/eNmzHq0aSpRYw=");
    }

    #[test]
    fn icmp_with_a_counterpart_has_one_id_in_both_directions() {
        for (one, other, ask, answer) in [
            ("10.0.0.1", "10.0.0.2", 8, 0),
            ("2001:db8::1", "2001:db8::2", 128, 129),
        ] {
            let (one, other) = (one.parse().unwrap(), other.parse().unwrap());
            let id = CommunityId::of_icmp(0, one, other, ask, 0);
            assert_eq!(id, CommunityId::of_icmp(0, other, one, answer, 0));
            // The code does not count, a direction without counterpart does.
            assert_eq!(id, CommunityId::of_icmp(0, one, other, ask, 7));
            let unreachable = CommunityId::of_icmp(0, one, other, 3, 1);
            assert_ne!(unreachable, CommunityId::of_icmp(0, other, one, 3, 1));
            assert_ne!(unreachable, CommunityId::of_icmp(0, one, other, 3, 2));
        }
    }
}
