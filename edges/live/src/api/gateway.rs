//! What the statistics say of the events of a gateway.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Serialize;

use super::{Percentiles, UnknownWord, Word};

/// What the events of an interval, or of a run, came to.
///
/// A connection is stopped once: by a rule, which is an event `decided` with the action `drop` or
/// `reject`, or for what it carried, which is an event `blocked`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GatewayFigures {
    /// Events of all kinds.
    pub events: u64,
    /// By kind, those that occurred.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Events by application; what has no counter of its own is `other`.
    pub applications: BTreeMap<String, u64>,
    /// Events by rule of the policy; what has no counter of its own is `other`.
    pub rules: BTreeMap<String, u64>,
    /// Connections that a rule dropped or rejected.
    pub refused: u64,
    /// Inspected connections that were dropped or reset for what they carried.
    pub blocked: u64,
    /// Bytes of the files of events `file` that passed by.
    pub transferred_bytes: u64,
    /// Sizes of those files. Bytes.
    pub file_size: Option<Percentiles>,
}

impl GatewayFigures {
    /// Events of a kind, by its word in the records.
    #[must_use]
    pub fn kind(&self, event: &str) -> u64 {
        self.kinds.get(event).copied().unwrap_or_default()
    }

    /// Connections that were stopped, by rule or for what they carried.
    #[must_use]
    pub const fn stopped(&self) -> u64 {
        self.refused.saturating_add(self.blocked)
    }
}

words! {
    /// What events are grouped by.
    GatewayBy {
        /// Application of the connection.
        Application = "application",
        /// Address of the client.
        Client = "client",
        /// Name of the file that the event is about.
        File = "file",
        /// The keyword, virus or pattern that was found.
        Finding = "finding",
    }
}

words! {
    /// What a table of events is sorted by, largest first.
    GatewaySort {
        /// Events.
        Events = "events",
        /// Connections that were stopped.
        Stopped = "stopped",
        /// Keywords, file names and viruses that were found.
        Found = "found",
        /// Files.
        Files = "files",
        /// Bytes of files.
        Bytes = "bytes",
    }
}

words! {
    /// What there is a distribution of.
    GatewayOf {
        /// Size of a file that passed by, bytes.
        FileSize = "file_size",
    }
}

/// One key of a table of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GatewayTopRow {
    /// The application, client, file name or finding.
    pub key: String,
    /// Events; at most [`TopTable::floor`](super::TopTable::floor) too many.
    pub events: u64,
    /// Connections that were decided.
    pub connections: u64,
    /// Connections that a rule dropped or rejected.
    pub refused: u64,
    /// Connections that were dropped or reset for what they carried.
    pub blocked: u64,
    /// Keywords, file names and viruses that were found.
    pub found: u64,
    /// Of those, viruses.
    pub infected: u64,
    /// Chat messages.
    pub messages: u64,
    /// Files.
    pub files: u64,
    /// Bytes of files and messages.
    pub bytes: u64,
}

/// One event as the list of the last ones shows it; texts that are too long end in `...`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GatewayLine {
    /// When, milliseconds since the epoch.
    pub t_ms: u64,
    /// What happened, by the word of the records.
    pub event: &'static str,
    /// Application, `unknown` where there is none.
    pub application: String,
    /// Rule of the policy.
    pub rule: String,
    /// Address and port of the client.
    pub client: String,
    /// Address and port of the server.
    pub server: String,
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// What is done: `allow`, `drop`, `reject`, `inspect` or nothing.
    pub action: &'static str,
    /// Verdict on a file.
    pub verdict: &'static str,
    /// Name of the file.
    pub file_name: String,
    /// Text of the message.
    pub message: String,
    /// The keyword, virus, pattern or reason.
    pub detail: String,
    /// Who sends a file or message.
    pub from: String,
    /// Who gets it.
    pub to: String,
    /// Bytes of the file or message.
    pub size: Option<u64>,
}
