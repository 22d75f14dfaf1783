//! Networks in CIDR notation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// A network: the addresses that begin with these bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    bits: u128,
    mask: u128,
    is_v4: bool,
}

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is no network; write 10.0.0.0/8, 2001:db8::/32 or one address")]
pub struct NetworkError(pub String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(text.to_owned());
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u32>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let (all, width) = bits(address);
        let length = length.unwrap_or(width);
        if length > width {
            return Err(wrong());
        }
        // Version 4 stands in the upper bits, so that a prefix length means the same in both.
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        Ok(Self {
            bits: all & mask,
            mask,
            is_v4: address.is_ipv4(),
        })
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let length = self.mask.leading_ones();
        if self.is_v4 {
            let bits = u32::try_from(self.bits >> 96).unwrap_or(0);
            write!(f, "{}/{length}", Ipv4Addr::from_bits(bits))
        } else {
            write!(f, "{}/{length}", Ipv6Addr::from_bits(self.bits))
        }
    }
}

impl Network {
    /// Whether it holds an address.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_v4 && bits(address).0 & self.mask == self.bits
    }
}

/// An address in the upper bits, and its width.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

/// A set of networks; empty means every address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<Network>);

impl Networks {
    /// Whether an address is in one of them.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.is_empty() || self.0.iter().any(|network| network.holds(address))
    }
}
