//! What the statistics say of the events of a gateway.

use linkweir_record::gateway::GatewayEventKind;
use serde::Serialize;

use crate::figure::{Class, Classes, Derived, Names};
use crate::figures::{figures, rows};
use crate::words::words;

impl Class for GatewayEventKind {
    const ALL: &'static [Self] = Self::ALL;

    fn name(self) -> &'static str {
        self.as_str()
    }
}

figures! {
    /// What the events of an interval, or of a run, came to.
    ///
    /// A connection is stopped once: by a rule, which is an event `decided` with the action `drop` or
    /// `reject`, or for what it carried, which is an event `blocked`.
    GatewayCounts => GatewayFigures {
        /// Events of all kinds.
        events: Derived,
        /// By kind, those that occurred.
        kinds: Classes<GatewayEventKind>,
        /// Events by application; what has no counter of its own is `other`.
        applications: Names<64, true>,
        /// Events by rule of the policy; what has no counter of its own is `other`.
        rules: Names<64, true>,
        /// Connections that a rule dropped or rejected.
        refused: u64,
        /// Inspected connections that were dropped or reset for what they carried.
        blocked: Derived,
        /// Bytes of the files of events `file` that passed by.
        transferred_bytes: u64,
    }
    distributions {
        /// Sizes of those files. Bytes.
        file_size,
    }
    derive |counts, figures| {
        figures.events = counts.kinds.total();
        figures.blocked = counts.kinds.get(GatewayEventKind::Blocked);
    };
    is_sound |_| true;
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

rows! {
    /// One key of a table of events.
    GatewayKeyed => GatewayTopRow, GatewayWireKeyed {
        /// The application, client, file name or finding.
        key,
        /// Events; at most [`TopTable::floor`](super::TopTable::floor) too many.
        events,
        /// Connections that were decided.
        connections: count,
        /// Connections that a rule dropped or rejected.
        refused: count,
        /// Connections that were dropped or reset for what they carried.
        blocked: count,
        /// Keywords, file names and viruses that were found.
        found: count,
        /// Of those, viruses.
        infected: count,
        /// Chat messages.
        messages: count,
        /// Files.
        files: count,
        /// Bytes of files and messages.
        bytes: bytes,
    }
}

/// One event as the list of the last ones shows it; texts that are too long end in `...`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GatewayLine {
    /// When, milliseconds since the epoch.
    pub t_ms: u64,
    /// What happened, by the word of the records.
    pub event: &'static str,
    /// Application, `unknown` if it was not recognised.
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
    /// The sender of a file or message.
    pub from: String,
    /// Its recipient.
    pub to: String,
    /// Bytes of the file or message.
    pub size: Option<u64>,
}
