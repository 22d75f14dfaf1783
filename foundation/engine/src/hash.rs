//! The hashes of HTTPanalyzer, by equation, and the mixing that makes a table index of them.
//!
//! Source: Vega et al. 2017, sec. 2.1.2 and 2.1.3.

use std::net::IpAddr;

/// An address and port of one side.
pub type Endpoint = (IpAddr, u16);

/// XOR of the 32-bit words of an address: the address itself for IPv4, and for IPv4 as the mapped address
/// of IPv6, since records do not tell these two apart.
#[inline]
const fn address_word(address: IpAddr) -> u32 {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_bits(),
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the four words of 128 bits, folded"
            )]
            {
                (bits >> 96) as u32 ^ (bits >> 64) as u32 ^ (bits >> 32) as u32 ^ bits as u32
            }
        }
    }
}

/// Eq. (1): `Src.IP ^ Src.Port ^ Dst.IP ^ Dst.Port`. Symmetric, hence one value a connection.
#[inline]
#[must_use]
pub const fn eq1_connection(src: Endpoint, dst: Endpoint) -> u32 {
    address_word(src.0) ^ src.1 as u32 ^ address_word(dst.0) ^ dst.1 as u32
}

/// Eq. (2): Eq. (1) with the acknowledgment number of a request or the sequence number of a
/// response, which are the same number for the two halves of a transaction.
#[inline]
#[must_use]
pub const fn eq2_transaction(src: Endpoint, dst: Endpoint, link: u32) -> u32 {
    eq1_connection(src, dst) ^ link
}

/// Eq. (3): Eq. (2) with the four bytes of `link` folded into the lowest one, because a shard number
/// is the remainder of a small division, which only the low bits decide.
#[inline]
#[must_use]
pub const fn eq3_balance(src: Endpoint, dst: Endpoint, link: u32) -> u32 {
    let [a, b, c, d] = link.to_be_bytes();
    eq2_transaction(src, dst, link) ^ (a ^ b ^ c ^ d) as u32
}

/// A modern hash in the place of Eq. (3): all bits of all parts reach every bit.
#[inline]
#[must_use]
pub const fn mixed_balance(src: Endpoint, dst: Endpoint, link: u32) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half of a mixed value"
    )]
    {
        mix((flow_hash(src, dst) as u64) << 32 | link as u64) as u32
    }
}

/// Spreads a hash over all its bits: the finalizer of `splitmix64` (Steele et al. 2014).
///
/// The XOR of addresses and ports differs between connections in few and mostly low bits; a table
/// index or a shard number needs all of them.
#[inline]
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A symmetric 32-bit hash of a connection with good low bits: Eq. (1), mixed with the sum of its
/// parts so that connections which collide in Eq. (1) mostly do not here.
#[inline]
#[must_use]
pub const fn flow_hash(a: Endpoint, b: Endpoint) -> u32 {
    let sum = (address_word(a.0) as u64 + address_word(b.0) as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (a.1 as u64 + b.1 as u64).rotate_left(40);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half of a mixed value"
    )]
    {
        mix(sum ^ eq1_connection(a, b) as u64) as u32
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const A: Endpoint = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 40_000);
    const B: Endpoint = (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 80);

    #[test]
    fn both_halves_of_a_transaction_meet() {
        assert_eq!(
            eq1_connection(A, B),
            0x0a00_0001 ^ 40_000 ^ 0xc000_0207 ^ 80
        );
        assert_eq!(
            eq2_transaction(A, B, 0xdead_beef),
            eq2_transaction(B, A, 0xdead_beef)
        );
        assert_eq!(flow_hash(A, B), flow_hash(B, A));
    }

    #[test]
    fn both_forms_of_an_address_are_one() {
        let IpAddr::V4(address) = A.0 else {
            panic!("IPv4");
        };
        let mapped = (IpAddr::V6(address.to_ipv6_mapped()), A.1);
        assert_eq!(flow_hash(mapped, B), flow_hash(A, B));
        assert_eq!(eq3_balance(mapped, B, 7), eq3_balance(A, B, 7));
    }

    #[test]
    fn every_word_of_an_ipv6_address_counts() {
        let at = |n: u128| (IpAddr::V6(Ipv6Addr::from_bits(n)), 1);
        for shift in [0, 32, 64, 96] {
            assert_ne!(eq1_connection(at(0), B), eq1_connection(at(1 << shift), B));
        }
    }

    #[test]
    fn low_bits_of_the_mixed_hash_are_even() {
        let mut counts = [0_u32; 16];
        for port in 0..16_000_u16 {
            counts[flow_hash((A.0, port), B) as usize % 16] += 1;
        }
        assert!(counts.iter().all(|n| (850..1150).contains(n)), "{counts:?}");
    }
}
