//! Community ID, version 1: what names a flow in the records of several monitors.
//!
//! A hash of addresses, protocol and ports, the same for both directions and at every capture point. Where packets are
//! in a tunnel it is that of the innermost packet, and no VLAN is part of it: the specification leaves both open.
//!
//! Source: "Community ID Flow Hashing" (Corelight), version 1, whose baselines the tests have.

use std::cell::Cell;
use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha1::{Digest as _, Sha1};

use crate::flow::Protocol;
use crate::schema::{Endpoint, Value};
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
        let mut input = Input {
            bytes: [0; Input::MAX],
            len: 0,
        };
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
        Self(Sha1::digest(input.bytes()).into())
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

/// What is hashed, gathered first: one update of the hash costs less than seven.
struct Input {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Input {
    /// Seed, two addresses of IPv6, protocol and padding, two ports.
    const MAX: usize = 2 + 32 + 2 + 4;

    fn add(&mut self, part: &[u8]) {
        for (to, from) in self.bytes.iter_mut().skip(self.len).zip(part) {
            *to = *from;
        }
        self.len += part.len();
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }
}

/// Flows whose ids a thread remembers: records of one connection come again and again.
const REMEMBERED: usize = 256;

/// A protocol, the ends, and the text of their id.
type Remembered = Option<(u8, [Endpoint; 2], Short)>;

thread_local! {
    /// By the ends: those that came last to each place.
    static LAST: [Cell<Remembered>; REMEMBERED] = const { [const { Cell::new(None) }; REMEMBERED] };
}

/// Where the id of these ends is remembered.
fn place_of(ends: &[Endpoint; 2]) -> usize {
    let low = |address: IpAddr| match address {
        IpAddr::V4(v4) => v4.to_bits(),
        IpAddr::V6(v6) => {
            let [.., a, b, c, d] = v6.octets();
            u32::from_be_bytes([a, b, c, d])
        }
    };
    let [(one, one_port), (other, other_port)] = *ends;
    let ports = u32::from(one_port) << 16 | u32::from(other_port);
    let mixed = (low(one) ^ low(other).rotate_left(13) ^ ports).wrapping_mul(0x9e37_79b1);
    // The high bits depend on all of them.
    (mixed >> 24) as usize % REMEMBERED
}

/// The column `community_id` of a record: of the addresses that stand in it, with the seed 0. Some records keep
/// addresses of IPv4 as mapped ones.
pub(crate) fn column(protocol: Protocol, ends: [Endpoint; 2]) -> Value<'static> {
    let [one, other] = ends.map(|(address, port)| (address.to_canonical(), port));
    let (protocol, ends) = (protocol.number(), [one, other]);
    let make = || CommunityId::of_ports(0, protocol, one, other).text();
    let known = LAST.try_with(|last| {
        let place = last.get(place_of(&ends))?;
        let text = match place.get() {
            Some((of, known, text)) if of == protocol && known == ends => text,
            _ => make(),
        };
        place.set(Some((protocol, ends, text)));
        Some(text)
    });
    // Without what a thread has, when it is about to end.
    Value::Short(known.ok().flatten().unwrap_or_else(make))
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
    fn a_column_remembers_and_never_mistakes() {
        let text_of = |value: Value<'_>| match value {
            Value::Short(text) => text,
            other => panic!("{other:?}"),
        };
        // Twice around, so that places are taken over and found again; each protocol has its own.
        for _ in 0..2 {
            for port in 1..1500 {
                let ends = [end("10.0.0.1", port), end("::ffff:10.0.0.2", 443)];
                let plain = [end("10.0.0.1", port), end("10.0.0.2", 443)];
                for protocol in [Protocol::Tcp, Protocol::Udp] {
                    let made = CommunityId::of_ports(0, protocol.number(), plain[0], plain[1]);
                    for ends in [ends, plain, [plain[1], plain[0]]] {
                        assert_eq!(text_of(column(protocol, ends)), made.text(), "{port}");
                    }
                }
            }
        }
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
