//! Which addresses are internal: Tstat's subnet file.

use std::net::{IpAddr, Ipv4Addr};

use linkweir_record::prefix::{IpNet, ip_mask_to_prefix};
use thiserror::Error;

/// A line of a subnet file that is not a network.
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
pub struct Subnets(Vec<IpNet>);

impl Subnets {
    /// Reads Tstat's format: one network a line as `a.b.c.d/len`, `a.b.c.d/m.m.m.m` or `x::/len`, or
    /// a network and its mask on two lines; `#` begins a comment.
    ///
    /// # Errors
    /// Names the first line that is not a network.
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
            // A mask is a length, or an address of ones and then zeros.
            let length = match mask.parse::<Ipv4Addr>() {
                Ok(mask) => ip_mask_to_prefix(mask.into())
                    .ok()
                    .filter(|_| !address.contains(':')),
                Err(_) => mask.parse().ok(),
            };
            let address: IpAddr = address
                .parse()
                .map_err(|_| fault(format!("`{address}` is not a valid address")))?;
            let network = length.and_then(|length| IpNet::new(address, length).ok());
            let network = network.ok_or_else(|| {
                let expected = match address {
                    IpAddr::V4(_) => "mask: expected 0 to 32 or m.m.m.m",
                    IpAddr::V6(_) => "prefix length: expected 0 to 128",
                };
                fault(format!("`{mask}` is not a valid {expected}"))
            })?;
            all.0.push(network);
        }
        Ok(all)
    }

    /// Whether there is no network: then every address is internal.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the address is of one of the networks, or there is none.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.is_empty() || self.0.iter().any(|network| network.contains(&address))
    }
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
