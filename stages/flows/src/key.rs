//! What distinguishes flows: addresses, ports and protocol, both directions alike.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linkweir_engine::hash::mix;
use linkweir_record::flow::Protocol;
use linkweir_wire::Network;

/// An address as 128 bits, upper half first, IPv4 mapped (RFC 4291 sec. 2.5.5.2). Two halves and
/// no `u128`, whose alignment would cost every flow eight bytes.
type Address = [u64; 2];

const MAPPED: u64 = 0xffff_0000_0000;

/// The two ends of a flow in the order of their numbers, so that both directions have one key.
///
/// Shape: 40 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FlowKey {
    low: Address,
    high: Address,
    low_port: u16,
    high_port: u16,
    is_udp: bool,
}

impl FlowKey {
    /// The key of a packet, and whether its source is the lower end.
    #[inline]
    pub(crate) fn of(
        network: &Network<'_>,
        protocol: Protocol,
        src_port: u16,
        dst_port: u16,
    ) -> (Self, bool) {
        let (src, dst) = match network {
            Network::V4(h) => {
                let [.., a, b, c, d, e, f, g, i] = **h;
                (
                    [0, MAPPED | u64::from(u32::from_be_bytes([a, b, c, d]))],
                    [0, MAPPED | u64::from(u32::from_be_bytes([e, f, g, i]))],
                )
            }
            Network::V6(_) | Network::None => (bits(network.src()), bits(network.dst())),
        };
        Self::ordered((src, src_port), (dst, dst_port), protocol)
    }

    /// The key of what is between two ends.
    pub(crate) fn between(one: (IpAddr, u16), other: (IpAddr, u16), protocol: Protocol) -> Self {
        Self::ordered((bits(one.0), one.1), (bits(other.0), other.1), protocol).0
    }

    /// Both ends by their numbers, and whether the first is the lower.
    #[inline]
    fn ordered(
        (src, src_port): (Address, u16),
        (dst, dst_port): (Address, u16),
        protocol: Protocol,
    ) -> (Self, bool) {
        let is_low = (src, src_port) <= (dst, dst_port);
        let ((low, low_port), (high, high_port)) = if is_low {
            ((src, src_port), (dst, dst_port))
        } else {
            ((dst, dst_port), (src, src_port))
        };
        let key = Self {
            low,
            high,
            low_port,
            high_port,
            is_udp: matches!(protocol, Protocol::Udp),
        };
        (key, is_low)
    }

    /// Where it stands in a table whose seed is `seed`.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "folding bits is what a hash does"
    )]
    pub(crate) const fn hash(&self, seed: u64) -> u32 {
        let hash = self.fold(seed);
        (hash ^ (hash >> 32)) as u32
    }

    /// Names the flow that began at `start_ns`: the same in every run.
    pub(crate) const fn id(&self, start_ns: u64) -> u64 {
        mix(self.fold(0) ^ start_ns.rotate_left(17))
    }

    #[inline]
    const fn fold(&self, seed: u64) -> u64 {
        let ports =
            (self.low_port as u64) << 32 | (self.high_port as u64) << 8 | self.is_udp as u64;
        let low = self.low[1] ^ self.low[0].rotate_left(29);
        let high = self.high[1] ^ self.high[0].rotate_left(29);
        mix(mix(low ^ seed).wrapping_add(high) ^ ports.rotate_left(13))
    }

    /// Address and port of the lower or the higher end.
    pub(crate) fn end(&self, is_low: bool) -> (IpAddr, u16) {
        if is_low {
            (address(self.low), self.low_port)
        } else {
            (address(self.high), self.high_port)
        }
    }

    /// Transport protocol.
    pub(crate) const fn protocol(&self) -> Protocol {
        if self.is_udp {
            Protocol::Udp
        } else {
            Protocol::Tcp
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "halves")]
const fn bits(address: IpAddr) -> Address {
    match address {
        IpAddr::V4(v4) => [0, MAPPED | v4.to_bits() as u64],
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            [(bits >> 64) as u64, bits as u64]
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the low bits are the IPv4 address"
)]
const fn address([high, low]: Address) -> IpAddr {
    if high == 0 && low >> 32 == MAPPED >> 32 {
        IpAddr::V4(Ipv4Addr::from_bits(low as u32))
    } else {
        IpAddr::V6(Ipv6Addr::from_bits((high as u128) << 64 | low as u128))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_have_one_key() {
        let mut there = [0_u8; 20];
        there[12..16].copy_from_slice(&[10, 0, 0, 1]);
        there[16..20].copy_from_slice(&[10, 0, 0, 2]);
        let mut back = there;
        back[12..16].copy_from_slice(&[10, 0, 0, 2]);
        back[16..20].copy_from_slice(&[10, 0, 0, 1]);
        let (a, is_low) = FlowKey::of(&Network::V4(&there), Protocol::Tcp, 4000, 80);
        let (b, is_low_back) = FlowKey::of(&Network::V4(&back), Protocol::Tcp, 80, 4000);
        assert_eq!(a, b);
        assert!(is_low && !is_low_back);
        assert_eq!(a.hash(7), b.hash(7));
        assert_eq!(a.end(true), ("10.0.0.1".parse().unwrap(), 4000));
        assert_eq!(a.end(false), ("10.0.0.2".parse().unwrap(), 80));
        let ends = [a.end(true), a.end(false)];
        assert_eq!(FlowKey::between(ends[1], ends[0], Protocol::Tcp), a);
        let (udp, _) = FlowKey::of(&Network::V4(&there), Protocol::Udp, 4000, 80);
        assert_ne!(a, udp);
        assert_ne!(a.id(1), a.id(2));
    }
}
