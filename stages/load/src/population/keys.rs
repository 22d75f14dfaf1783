//! Addresses of both versions as numbers, and the first and last of a prefix.

use std::net::{IpAddr, Ipv6Addr};

use linkweir_record::IpNet;

/// First and last address of a prefix as keys (see [`key`]).
pub(super) fn keys(prefix: &IpNet) -> (u128, u128) {
    (key(prefix.network()), key(prefix.broadcast()))
}

/// Keys of the first and the last address that a client may have.
///
/// Left out are the network's own address and the broadcast address of an IPv4 prefix of up to
/// /30 (RFC 1122 sec. 3.2.1.3; a /31 has neither, RFC 3021), and the anycast address of the
/// routers, the first of an IPv6 prefix of up to /126 (RFC 4291 sec. 2.6.1, RFC 6164).
pub(super) fn client_keys(prefix: &IpNet) -> (u128, u128) {
    let (first, last) = keys(prefix);
    match prefix {
        IpNet::V4(prefix) if prefix.prefix_len() <= 30 => (first + 1, last - 1),
        IpNet::V6(prefix) if prefix.prefix_len() <= 126 => (first + 1, last),
        _ => (first, last),
    }
}

/// An address of either version as a number: IPv4 as the mapped address of IPv6 (RFC 4291
/// sec. 2.5.5.2).
pub(super) const fn key(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// The address of a key.
pub(super) const fn address(key: u128) -> IpAddr {
    let v6 = Ipv6Addr::from_bits(key);
    match v6.to_ipv4_mapped() {
        Some(v4) => IpAddr::V4(v4),
        None => IpAddr::V6(v6),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn contains_says_what_the_keys_say(a: u32, b: u32, len in 0_u8..=32) {
            let prefix = IpNet::new(Ipv4Addr::from_bits(a).into(), len).unwrap();
            let other = Ipv4Addr::from_bits(b).into();
            let (first, last) = keys(&prefix);
            prop_assert_eq!(prefix.contains(&other), (first..=last).contains(&key(other)));
            prop_assert_eq!(address(key(other)), other);
        }
    }
}
