//! Where clamd is, and how much is asked of it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::icap::Service;

/// Where clamd listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Its local socket (`LocalSocket` of clamd.conf).
    Unix(PathBuf),
    /// Its port (`TCPAddr` and `TCPSocket`). A name is looked up again whenever clamd was away.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
}

/// The text is not an address of clamd.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a valid address of clamd: expected the path of its socket, or HOST:PORT")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    /// `/path`, `unix:/path`, `host:port` or `[::1]:port`.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let path = text.strip_prefix("unix:").unwrap_or(text);
        if path.starts_with('/') {
            return Ok(Self::Unix(path.into()));
        }
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| AddressError(text.to_owned()))?;
        let is_v6 = host.starts_with('[') && host.ends_with(']');
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match port.parse() {
            // A second colon outside of brackets: an IPv6 address without a port, or a typing error.
            Ok(port) if port > 0 && !bare.is_empty() && is_v6 == bare.contains(':') => {
                Ok(Self::Tcp {
                    host: bare.to_owned(),
                    port,
                })
            }
            _ => Err(AddressError(text.to_owned())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// How the scanner is spoken to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Protocol {
    /// clamd(8): `INSTREAM`.
    #[default]
    Clamd,
    /// ICAP (RFC 3507): `RESPMOD`, with preview and 204 as the service supports them.
    Icap {
        /// The name of the service: `virus_scan`.
        service: String,
    },
}

/// How a [`Scanner`](crate::Scanner) works.
#[derive(Debug, Clone)]
pub struct ScannerOptions {
    /// Where clamd listens.
    pub address: Address,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Scans that clamd works on at the same time: one connection and one thread each. At least 1;
    /// more than clamd's `MaxThreads` only wait there.
    pub connections: usize,
    /// From the last chunk of a scan to its report, at the latest: waiting for a connection,
    /// connecting, sending, clamd's work, and the second attempt.
    pub timeout: Duration,
    /// Longest scan, bytes. clamd has a limit of its own (`StreamMaxLength`), which should not be
    /// smaller.
    pub max_scan_bytes: u64,
    /// Bound on the bytes of all scans in memory, with 256 bytes for each scan.
    pub memory_bytes: usize,
    /// Directory for the bytes of scans that are longer than 1 MiB while they wait for their last chunk.
    /// The files in it have no names. `None`: they stay in memory.
    pub spool_dir: Option<PathBuf>,
    /// Bound on the bytes of all files in `spool_dir`.
    pub spool_bytes: u64,
    /// Scans after which a connection is replaced; with 1 each scan has its own. At least 1.
    pub scans_per_connection: u32,
    /// How often clamd is asked for its version while it is reachable.
    pub probe_interval: Duration,
}

impl ScannerOptions {
    /// Four connections, 5 s, scans up to 25 MiB (`StreamMaxLength` of Debian), 64 MiB of memory, no
    /// spool directory.
    #[must_use]
    pub const fn new(address: Address) -> Self {
        Self {
            address,
            protocol: Protocol::Clamd,
            connections: 4,
            timeout: Duration::from_secs(5),
            max_scan_bytes: 25 << 20,
            memory_bytes: 64 << 20,
            spool_dir: None,
            spool_bytes: 1 << 30,
            scans_per_connection: 1000,
            probe_interval: Duration::from_secs(10),
        }
    }

    /// What the scanner is called in messages.
    pub(crate) const fn name(&self) -> &'static str {
        match self.protocol {
            Protocol::Clamd => "clamd",
            Protocol::Icap { .. } => "the ICAP service",
        }
    }

    /// The ICAP service, where it is one.
    pub(crate) fn icap(&self) -> Option<Service> {
        match &self.protocol {
            Protocol::Clamd => None,
            Protocol::Icap { service } => Some(Service {
                authority: match &self.address {
                    Address::Unix(_) => "localhost".to_owned(),
                    address => address.to_string(),
                },
                name: service.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        for text in [
            "/run/clamd.ctl",
            "localhost:3310",
            "[::1]:3310",
            "10.0.0.1:1",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!(
            "unix:/run/clamd.ctl".parse(),
            Ok(Address::Unix("/run/clamd.ctl".into()))
        );
        for wrong in [
            "",
            "clamd",
            ":3310",
            "host:",
            "host:0",
            "host:70000",
            "::1",
            "::1:3310",
            "[x]:1",
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
