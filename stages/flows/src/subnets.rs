//! Which addresses are internal: Tstat's subnet file.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// A line of a subnet file that is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct SubnetError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub message: String,
}

/// A set of networks.
///
/// Lookup walks the networks, of which Tstat's files have a few; it is done once per flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subnets {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

impl Subnets {
    /// Reads Tstat's format: one network a line as `a.b.c.d/len`, `a.b.c.d/m.m.m.m` or `x::/len`, or
    /// a network and its mask on two lines; `#` begins a comment.
    ///
    /// # Errors
    /// Names the first line that is no network.
    pub fn parse(text: &str) -> Result<Self, SubnetError> {
        let mut all = Self::default();
        let mut lines = text
            .lines()
            .zip(1..)
            .map(|(line, number)| (line.split('#').next().unwrap_or_default().trim(), number))
            .filter(|(line, _)| !line.is_empty());
        while let Some((line, number)) = lines.next() {
            let fault = |message: String| SubnetError {
                line: number,
                message,
            };
            let (address, mask) = match line.split_once('/') {
                Some((address, mask)) => (address.trim(), mask.trim()),
                None => {
                    let Some((mask, _)) = lines.next() else {
                        return Err(fault(format!("`{line}` has no mask: write `{line}/24`")));
                    };
                    (line, mask)
                }
            };
            let network: IpAddr = address
                .parse()
                .map_err(|_| fault(format!("`{address}` is no address")))?;
            match network {
                IpAddr::V4(network) => {
                    let mask = mask_v4(mask).ok_or_else(|| {
                        fault(format!("`{mask}` is no mask: expected 0 to 32 or m.m.m.m"))
                    })?;
                    all.v4.push((network.to_bits() & mask, mask));
                }
                IpAddr::V6(network) => {
                    let bits = mask.parse::<u32>().ok().filter(|bits| *bits <= 128);
                    let bits = bits.ok_or_else(|| {
                        fault(format!("`{mask}` is no prefix length: expected 0 to 128"))
                    })?;
                    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or_default();
                    all.v6.push((network.to_bits() & mask, mask));
                }
            }
        }
        Ok(all)
    }

    /// Whether there is no network: then every address is internal.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Whether the address is of one of the networks, or there is none.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        if self.is_empty() {
            return true;
        }
        match address {
            IpAddr::V4(address) => self.has_v4(address),
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(address) => self.has_v4(address),
                None => self.has_v6(address),
            },
        }
    }

    fn has_v4(&self, address: Ipv4Addr) -> bool {
        let bits = address.to_bits();
        self.v4
            .iter()
            .any(|(network, mask)| bits & mask == *network)
    }

    fn has_v6(&self, address: Ipv6Addr) -> bool {
        let bits = address.to_bits();
        self.v6
            .iter()
            .any(|(network, mask)| bits & mask == *network)
    }
}

fn mask_v4(text: &str) -> Option<u32> {
    if let Ok(mask) = text.parse::<Ipv4Addr>() {
        // Ones, then zeros.
        let bits = mask.to_bits();
        return (bits.leading_ones() + bits.trailing_zeros() >= 32).then_some(bits);
    }
    let bits: u32 = text.parse().ok()?;
    (bits <= 32).then(|| u32::MAX.checked_shl(32 - bits).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_of_tstat() {
        let text = "# ours\n10.0.0.0/8\n192.168.0.0/255.255.0.0 # office\n\n172.16.0.0\n255.240.0.0\n2001:db8::/32\n";
        let nets = Subnets::parse(text).unwrap();
        for inside in [
            "10.9.8.7",
            "192.168.3.1",
            "172.31.0.1",
            "2001:db8::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(nets.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["11.0.0.1", "172.32.0.1", "2001:db9::1"] {
            assert!(!nets.contains(outside.parse().unwrap()), "{outside}");
        }
        assert!(Subnets::default().contains("8.8.8.8".parse().unwrap()));
        let all = Subnets::parse("0.0.0.0/0\n::/0").unwrap();
        assert!(all.contains("8.8.8.8".parse().unwrap()) && all.contains("::1".parse().unwrap()));
    }

    #[test]
    fn faults_name_their_line() {
        for (text, line) in [
            ("10.0.0.0/8\nnonsense/8", 2),
            ("10.0.0.0/33", 1),
            ("\n\n10.0.0.0", 3),
            ("10.0.0.0/255.0.255.0", 1),
            ("::/129", 1),
        ] {
            assert_eq!(Subnets::parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
