//! What the observers wrote, read back: also by those who were killed.
//!
//! Those who look at the wire behind the gateway.

use super::part::Part;
use crate::error::LabError;
use crate::program::{self, Ended, Program, watch};
use crate::testbed::Testbed;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// A connection: address and port of its client. The server has one of each.
pub(super) type Ends = (IpAddr, u16);

/// Fields of `load_session`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Session {
    pub(super) client_ip: IpAddr,
    pub(super) client_port: Option<u16>,
    pub(super) planned_ts_ns: u64,
    pub(super) ended_ts_ns: u64,
    pub(super) state: String,
    pub(super) failure: Option<String>,
}

impl Session {
    /// Whether somebody ended it with a RST: a response that is late was not stopped by anybody.
    pub(super) fn is_reset(&self) -> bool {
        self.failure.as_deref() == Some("reset")
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state == "completed"
    }

    pub(super) fn ends(&self) -> Ends {
        (self.client_ip, self.client_port.unwrap_or(0))
    }
}

/// Fields of `http_transaction`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Transaction {
    pub(super) client_ip: IpAddr,
    pub(super) client_port: u16,
    pub(super) request_ts_ns: Option<u64>,
    pub(super) state: String,
}

/// Fields of `tcp_flow`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Flow {
    pub(super) c_ip: IpAddr,
    pub(super) c_port: u16,
    /// First packet, milliseconds since 1970.
    first: f64,
}

impl Flow {
    pub(super) const fn ends(&self) -> Ends {
        (self.c_ip, self.c_port)
    }

    /// First packet, nanoseconds since 1970.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time of these years, good to a microsecond"
    )]
    pub(super) const fn began(&self) -> u64 {
        (self.first * 1e6) as u64
    }
}

/// Fields of `gateway_event`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Event {
    pub(super) event: String,
    client_ip: Option<IpAddr>,
    client_port: Option<u16>,
}

impl Event {
    /// `None` where it is about no connection, as `unseen` on a busy machine.
    pub(super) fn ends(&self) -> Option<Ends> {
        self.client_ip.zip(self.client_port)
    }
}

/// The records of a file of a part, in a file that is complete or that a killed program left.
pub(super) fn read<R: DeserializeOwned>(
    testbed: &Testbed<'_>,
    part: Part,
    name: &str,
) -> Result<Vec<R>, LabError> {
    let name = part.file(name);
    let complete = testbed.path(&name);
    let path = if complete.exists() {
        complete
    } else {
        partial(testbed, &name)
    };
    all(&path)
}

/// What a killed program left of an output.
fn partial(testbed: &Testbed<'_>, name: &str) -> PathBuf {
    testbed.path(&format!(".{name}.partial"))
}

fn all<R: DeserializeOwned>(path: &Path) -> Result<Vec<R>, LabError> {
    let mut found = Vec::new();
    program::each(path, |record| found.push(record))?;
    Ok(found)
}

/// `linkweir http` and `linkweir flows`.
pub(super) struct Wire {
    http: Program,
    flows: Program,
}

impl Wire {
    /// Starts both, and waits until they capture.
    pub(super) fn watch(testbed: &Testbed<'_>, part: Part) -> Result<Self, LabError> {
        let start = |command: &str| watch(testbed, &part.file(command), command);
        Ok(Self {
            http: start("http")?,
            flows: start("flows")?,
        })
    }

    /// Ends both: what http and flows found.
    pub(super) fn finish(self) -> Result<(Ended, Ended), LabError> {
        Ok((self.http.finish()?, self.flows.finish()?))
    }
}
