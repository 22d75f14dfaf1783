//! Prefixes of addresses, as they are written: `10.0.0.0/8`, `fd00::/112`, `10.0.0.1`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A prefix of IPv4 or IPv6 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    first: IpAddr,
    len: u8,
}

/// Why a text is no prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CidrError {
    /// The part before the slash is no address.
    #[error("{0:?} is no IPv4 or IPv6 address")]
    Address(String),
    /// The part behind the slash is no length, or too long for the address.
    #[error("/{0} is no prefix length of {1}")]
    Length(String, IpAddr),
    /// Bits behind the prefix are set: most likely another prefix was meant.
    #[error("{0}/{1} has bits set behind its prefix; the prefix is {2}")]
    HostBits(IpAddr, u8, Cidr),
}

impl Cidr {
    /// A prefix; bits of `address` behind it are cleared. `None` for a length that the address does
    /// not have.
    #[must_use]
    pub fn new(address: IpAddr, len: u8) -> Option<Self> {
        let first = match address {
            IpAddr::V4(v4) => {
                let behind = 32_u32.checked_sub(u32::from(len))?;
                let mask = u32::MAX.checked_shl(behind).unwrap_or(0);
                Ipv4Addr::from_bits(v4.to_bits() & mask).into()
            }
            IpAddr::V6(v6) => {
                let behind = 128_u32.checked_sub(u32::from(len))?;
                let mask = u128::MAX.checked_shl(behind).unwrap_or(0);
                Ipv6Addr::from_bits(v6.to_bits() & mask).into()
            }
        };
        Some(Self { first, len })
    }

    /// The first address.
    #[must_use]
    pub const fn first(self) -> IpAddr {
        self.first
    }

    /// Bits of the prefix.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "the length of a prefix")]
    pub const fn len(self) -> u8 {
        self.len
    }

    /// Whether an address has the prefix.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        Self::new(address, self.len).is_some_and(|its| its.first == self.first)
    }

    /// First and last address as keys (see [`key`]).
    pub(super) fn keys(self) -> (u128, u128) {
        let first = key(self.first);
        let bits = if self.first.is_ipv4() { 32 } else { 128 };
        let behind = u32::from(u8::saturating_sub(bits, self.len));
        let span = 1_u128.checked_shl(behind).map_or(u128::MAX, |n| n - 1);
        (first, first | span)
    }

    /// Keys of the first and the last address that a client may have.
    ///
    /// Left out are the network's own address and the broadcast address of an IPv4 prefix of up to
    /// /30 (RFC 1122 sec. 3.2.1.3; a /31 has neither, RFC 3021), and the anycast address of the
    /// routers, the first of an IPv6 prefix of up to /126 (RFC 4291 sec. 2.6.1, RFC 6164).
    pub(super) fn client_keys(self) -> (u128, u128) {
        let (first, last) = self.keys();
        match self.first {
            IpAddr::V4(_) if self.len <= 30 => (first + 1, last - 1),
            IpAddr::V6(_) if self.len <= 126 => (first + 1, last),
            _ => (first, last),
        }
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

impl FromStr for Cidr {
    type Err = CidrError;

    /// Reads a prefix; an address alone is the prefix of its full length.
    fn from_str(text: &str) -> Result<Self, CidrError> {
        let (before, behind) = match text.split_once('/') {
            Some((before, behind)) => (before, Some(behind)),
            None => (text, None),
        };
        let address: IpAddr = before
            .parse()
            .map_err(|_| CidrError::Address(before.to_owned()))?;
        let full = if address.is_ipv4() { 32 } else { 128 };
        let wrong = |text: &str| CidrError::Length(text.to_owned(), address);
        let len = match behind {
            // "+8" would parse as a number.
            Some(text) if !text.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err(wrong(text));
            }
            Some(text) => text.parse().map_err(|_| wrong(text))?,
            None => full,
        };
        let cidr = Self::new(address, len).ok_or_else(|| wrong(&len.to_string()))?;
        if cidr.first == address {
            Ok(cidr)
        } else {
            Err(CidrError::HostBits(address, len, cidr))
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prefixes_are_read_and_written() {
        for text in [
            "10.0.0.0/8",
            "0.0.0.0/0",
            "::/0",
            "fd00::/112",
            "10.1.2.3/32",
        ] {
            assert_eq!(text.parse::<Cidr>().unwrap().to_string(), text);
        }
        assert_eq!("10.1.2.3".parse::<Cidr>().unwrap().len(), 32);
        assert_eq!("fd00::1".parse::<Cidr>().unwrap().len(), 128);
    }

    #[test]
    fn what_is_no_prefix_is_named() {
        let error = |text: &str| text.parse::<Cidr>().unwrap_err().to_string();
        assert_eq!(error("ten/8"), "\"ten\" is no IPv4 or IPv6 address");
        assert_eq!(error("10.0.0.0/33"), "/33 is no prefix length of 10.0.0.0");
        assert_eq!(error("10.0.0.0/+8"), "/+8 is no prefix length of 10.0.0.0");
        assert_eq!(error("fd00::/129"), "/129 is no prefix length of fd00::");
        assert_eq!(
            error("10.1.2.3/8"),
            "10.1.2.3/8 has bits set behind its prefix; the prefix is 10.0.0.0/8"
        );
    }

    proptest! {
        #[test]
        fn contains_says_what_the_keys_say(a: u32, b: u32, len in 0_u8..=32) {
            let cidr = Cidr::new(Ipv4Addr::from_bits(a).into(), len).unwrap();
            let other = Ipv4Addr::from_bits(b).into();
            let (first, last) = cidr.keys();
            prop_assert_eq!(cidr.contains(other), (first..=last).contains(&key(other)));
            prop_assert_eq!(address(key(other)), other);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-f.:/+]{0,24}") {
            if let Ok(cidr) = text.parse::<Cidr>() {
                prop_assert_eq!(cidr.to_string().parse(), Ok(cidr));
            }
        }
    }
}
