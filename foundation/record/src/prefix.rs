//! Prefixes of addresses, as people write them: `10.0.0.0/8`, `2001:db8::/32`, or one address alone.

use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::str::FromStr;

pub use ipnet::{IpNet, ip_mask_to_prefix};

/// A prefix of IPv4 or IPv6 addresses. Bits behind it may be set; [`IpNet::trunc`] clears them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix(pub IpNet);

/// Why a string is not a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixError(pub String);

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "{text:?} is not a valid network: write 10.0.0.0/8, 2001:db8::/32 or one address"
        )
    }
}

impl std::error::Error for PrefixError {}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// Reads a prefix; an address alone is the prefix of its full length.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let wrong = || PrefixError(text.to_owned());
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let Some(length) = length else {
            return Ok(Self(address.into()));
        };
        // "+8" would parse as a number.
        let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length.parse().ok().filter(|_| is_number);
        let network = length.and_then(|length| IpNet::new(address, length).ok());
        network.map(Self).ok_or_else(wrong)
    }
}

impl Deref for Prefix {
    type Target = IpNet;

    fn deref(&self) -> &IpNet {
        &self.0
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
            "10.1.2.3/8",
        ] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!("10.1.2.3".parse::<Prefix>().unwrap().prefix_len(), 32);
        assert_eq!("fd00::1".parse::<Prefix>().unwrap().prefix_len(), 128);
    }

    #[test]
    fn what_is_not_a_prefix_is_named() {
        for text in [
            "ten/8",
            "10/8",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "fd00::/129",
            "010.0.0.0/8",
            "",
        ] {
            let error = text.parse::<Prefix>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{text:?} is not a valid")),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-f.:/+]{0,24}") {
            if let Ok(prefix) = text.parse::<Prefix>() {
                prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
            }
        }
    }
}
