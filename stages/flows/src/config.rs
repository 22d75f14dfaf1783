//! Settings of a run of the stage.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use linkweir_record::prefix::{IpNet, ip_mask_to_prefix};
use linkweir_record::{Anonymizer, Places};
use thiserror::Error;

/// Whose rules classify out-of-sequence segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Classifier {
    /// Timestamps and selective acknowledgments first; the published rules where they are silent.
    #[default]
    Evidence,
    /// The rules of Mellia et al. 2008 exactly, as Tstat applies them.
    Tstat,
}

/// Settings of the stage.
#[derive(Debug, Clone)]
pub struct FlowsConfig {
    /// A TCP flow without packets for this long has ended.
    pub tcp_idle: Duration,
    /// A UDP flow without packets for this long has ended.
    pub udp_idle: Duration,
    /// A TCP flow of which only SYNs were seen, or a UDP flow of one packet, has ended after this.
    pub syn_timeout: Duration,
    /// How long a closed flow stays at least, so that what still comes of it counts with it; ten
    /// times as long where it was reset, and two round trips where that is longer.
    pub linger: Duration,
    /// Flows at most; with more the one idle longest leaves.
    pub max_flows: usize,
    /// Which addresses are internal; none given: all.
    pub internal: Subnets,
    /// Whose rules classify.
    pub classifier: Classifier,
    /// Write partial records of this period.
    pub periodic: Option<Duration>,
    /// Measure steps of this length: histograms and cells of the archive.
    pub step: Option<Duration>,
    /// Give the heads of HTTP messages ([`linkweir_record::flow::Message`]).
    pub with_messages: bool,
    /// Give queries of DNS ([`FlowBatch::queries`](linkweir_record::FlowBatch::queries)).
    pub with_queries: bool,
    /// Give handshakes of TLS ([`FlowBatch::handshakes`](linkweir_record::FlowBatch::handshakes)).
    pub with_handshakes: bool,
    /// Group the flows of no known application ([`FlowsStage::unknown`](crate::FlowsStage::unknown)), and show so
    /// many groups: 20 bytes more for each flow.
    pub unknown: Option<u16>,
    /// Look at payloads: application, names.
    pub with_names: bool,
    /// Mixed into the hash of the table, so that collisions cannot be chosen from outside.
    pub hash_seed: u64,
    /// Replaces addresses in all that leaves.
    pub anonymizer: Option<Anonymizer>,
    /// Says where addresses are, those before they are replaced.
    pub places: Option<Arc<dyn Places>>,
    /// Which of several workers this is, and how many there are.
    pub shard: (u32, u32),
    /// Whether IP fragments were reassembled before: one that still comes is the start of a packet whose
    /// rest is lost.
    pub is_reassembled: bool,
}

impl Default for FlowsConfig {
    /// Tstat's timeouts and its tables' sizes together.
    fn default() -> Self {
        Self {
            tcp_idle: Duration::from_secs(300),
            udp_idle: Duration::from_secs(200),
            syn_timeout: Duration::from_secs(10),
            linger: Duration::from_millis(150),
            max_flows: 1 << 20,
            internal: Subnets::default(),
            classifier: Classifier::Evidence,
            periodic: None,
            step: None,
            with_messages: false,
            with_queries: false,
            with_handshakes: false,
            unknown: None,
            with_names: true,
            hash_seed: 0,
            anonymizer: None,
            places: None,
            shard: (0, 1),
            is_reassembled: false,
        }
    }
}

// Which addresses are internal: Tstat's subnet file.

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
                        return Err(fault(format!(
                            "`{line}` has no prefix length: write one network per line, as 10.0.0.0/8, 10.0.0.0/255.0.0.0 or, for a host, 10.0.0.5/32"
                        )));
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
