//! What a scenario of this kind says.

use std::time::Duration;

use serde::Deserialize;

use crate::settings::duration;

/// Peers of file sharing and chat through the gateway.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// How long the torrent takes at the rate to which it is shaped: that says how long it is.
    #[serde(deserialize_with = "duration")]
    pub duration: Duration,
    /// What the gateway shapes BitTorrent to, kbit/s.
    pub shape_kbit: u32,
    /// Downloads by HTTP beside it, started in a second.
    pub rate: f64,
    /// Bytes of each of them.
    pub download_bytes: u32,
    /// Files of each protocol that may pass.
    pub transfers: u32,
    /// Bytes of each of them.
    pub file_bytes: u32,
    /// Transfers by eDonkey, which are dropped, and as many of guests by FastTrack, which are rejected.
    pub refused: u32,
    /// Files with the EICAR string by Gnutella, and as many by MSNFTP, where clamd is installed.
    pub infected: u32,
    /// Conversations in which a keyword is said.
    pub secrets: u32,
}

impl Settings {
    /// What the gateway shapes BitTorrent to, bit/s.
    pub(super) fn shape(&self) -> f64 {
        1e3 * f64::from(self.shape_kbit)
    }
}
