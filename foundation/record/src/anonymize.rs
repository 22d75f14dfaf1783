//! Addresses replaced so that prefixes stay prefixes: Crypto-PAn.
//!
//! Two addresses that share their first n bits share the first n bits of their replacements, so
//! that subnets can still be told apart, and nobody without the key can go back.
//! Source: Xu, Fan, Ammar, Moon 2002, "Prefix-preserving IP address anonymization"; the published
//! reference implementation for the use of the key.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};

/// Length of a key: 16 bytes for the cipher, 16 from which the padding is made.
pub const KEY_BYTES: usize = 32;

/// Replaces addresses under one key.
#[derive(Clone)]
pub struct Anonymizer {
    cipher: Aes128,
    pad: u128,
}

impl std::fmt::Debug for Anonymizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Anonymizer(..)")
    }
}

impl Anonymizer {
    /// From a key of 32 bytes.
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        let (cipher_key, pad_key) = key.split_at(16);
        let mut first = [0; 16];
        let mut second = [0; 16];
        first.copy_from_slice(cipher_key);
        second.copy_from_slice(pad_key);
        let cipher = Aes128::new(&first.into());
        let mut block = second.into();
        cipher.encrypt_block(&mut block);
        Self {
            cipher,
            pad: u128::from_be_bytes(block.into()),
        }
    }

    /// The replacement of an address, of the same version.
    ///
    /// Cost: one cipher block a bit.
    #[must_use]
    pub fn replace(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(v4) => {
                let bits = u128::from(v4.to_bits()) << 96;
                let replaced = (self.replace_bits(bits, 32) >> 96) as u32;
                IpAddr::V4(Ipv4Addr::from_bits(replaced))
            }
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(self.replace_bits(v6.to_bits(), 128))),
        }
    }

    /// A host that is an address, with a port or not, with its replacement in place; `None` for a
    /// name.
    #[must_use]
    pub fn replace_host(&self, host: &[u8]) -> Option<Vec<u8>> {
        let text = str::from_utf8(host).ok()?;
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(self.replace(address).to_string().into_bytes());
        }
        if let Ok(socket) = text.parse::<SocketAddr>() {
            return Some(
                SocketAddr::new(self.replace(socket.ip()), socket.port())
                    .to_string()
                    .into_bytes(),
            );
        }
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        let address: IpAddr = inner.parse().ok()?;
        Some(format!("[{}]", self.replace(address)).into_bytes())
    }

    /// Flips each of the first `len` bits by a pseudo-random function of the bits before it.
    fn replace_bits(&self, bits: u128, len: u32) -> u128 {
        (0..len).fold(bits, |replaced, at| {
            let before = if at == 0 { 0 } else { u128::MAX << (128 - at) };
            let mut block = ((bits & before) | (self.pad & !before))
                .to_be_bytes()
                .into();
            self.cipher.encrypt_block(&mut block);
            let block: [u8; 16] = block.into();
            let flip = u128::from(block.first().copied().unwrap_or(0) >> 7);
            replaced ^ (flip << (127 - at))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key and addresses of the reference implementation's sample.
    const KEY: [u8; KEY_BYTES] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    #[test]
    fn agrees_with_the_published_sample() {
        let anonymizer = Anonymizer::new(&KEY);
        for (from, to) in [
            ("128.11.68.132", "135.242.180.132"),
            ("129.118.74.4", "134.136.186.123"),
            ("130.132.252.244", "133.68.164.234"),
            ("141.223.7.43", "141.167.8.160"),
            ("192.102.249.13", "252.138.62.131"),
        ] {
            let from: IpAddr = from.parse().unwrap();
            assert_eq!(anonymizer.replace(from).to_string(), to, "{from}");
        }
    }

    #[test]
    fn hosts_that_are_addresses_are_replaced() {
        let anonymizer = Anonymizer::new(&KEY);
        let of = |host: &str| {
            anonymizer
                .replace_host(host.as_bytes())
                .map(|host| String::from_utf8(host).unwrap())
        };
        assert_eq!(of("128.11.68.132").as_deref(), Some("135.242.180.132"));
        assert_eq!(
            of("128.11.68.132:8080").as_deref(),
            Some("135.242.180.132:8080")
        );
        assert!(of("[2001:db8::1]:80").is_some_and(|host| host.ends_with("]:80")));
        assert!(of("[2001:db8::1]").is_some_and(|host| host != "[2001:db8::1]"));
        assert_eq!(of("www.example.test"), None);
    }

    #[test]
    fn prefixes_stay_prefixes() {
        let anonymizer = Anonymizer::new(&KEY);
        let of = |text: &str| match anonymizer.replace(text.parse().unwrap()) {
            IpAddr::V6(v6) => v6.to_bits(),
            IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        };
        for (a, b, shared) in [
            ("2001:db8::1", "2001:db8::2", 126),
            ("2001:db8:1::", "2001:db8:2::", 46),
            ("10.1.2.3", "10.1.3.3", 23),
        ] {
            assert_eq!((of(a) ^ of(b)).leading_zeros(), shared, "{a} {b}");
        }
    }
}
