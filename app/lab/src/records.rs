//! Records of linkweir's commands, as JSON lines.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::IpAddr;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::LabError;

/// Fields of `load_session`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Session {
    pub(crate) client_ip: IpAddr,
    pub(crate) client_port: Option<u16>,
    pub(crate) started_ts_ns: Option<u64>,
    pub(crate) first_byte_ns: Option<u64>,
}

/// Fields of `http_transaction`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Transaction {
    pub(crate) client_ip: IpAddr,
    pub(crate) client_port: u16,
    pub(crate) request_ts_ns: Option<u64>,
    pub(crate) response_time_ns: Option<u64>,
}

/// Fields of `tcp_flow`, as Tstat names and measures them: times in milliseconds since the flow began.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Flow {
    pub(crate) c_ip: IpAddr,
    pub(crate) c_port: u16,
    /// First payload of the client, milliseconds from the flow's first segment; none where it sent none.
    pub(crate) c_first: Option<f64>,
    /// The same of the server.
    pub(crate) s_first: Option<f64>,
}

/// Reads the records of a file one by one.
pub(crate) fn each<R: DeserializeOwned>(
    path: &Path,
    mut take: impl FnMut(R),
) -> Result<(), LabError> {
    let file = File::open(path).map_err(LabError::file(path))?;
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(LabError::file(path))?;
        let record = serde_json::from_str(&line).map_err(|error| LabError::Program {
            what: format!("{}, line {}", path.display(), number + 1),
            why: error.to_string(),
        })?;
        take(record);
    }
    Ok(())
}
