//! One rule of the policy.

use std::net::IpAddr;

use serde::Deserialize;

use super::{Keywords, Label, NamePatterns, Networks};

/// What is done with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It passes; the kernel asks no more.
    Allow,
    /// Its packets are dropped.
    Drop,
    /// It is reset.
    Reject,
    /// It passes while it is inspected.
    Inspect,
}

impl Action {
    /// The name in settings and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Drop => "drop",
            Self::Reject => "reject",
            Self::Inspect => "inspect",
        }
    }
}

/// What happens when something that should inspect the traffic cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fail {
    /// It passes.
    #[default]
    Open,
    /// It does not.
    Closed,
}

/// What happens to a connection in which something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnMatch {
    /// It is reset at both ends.
    #[default]
    Reject,
    /// Its packets are dropped from then on.
    Drop,
    /// It goes on; only the event is written.
    Event,
}

/// How much is scanned at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanMode {
    /// Windows of so many bytes, each with the last `tail` bytes of the one before (paper sec. 3.5.2).
    Window {
        /// Bytes that are new in a window.
        bytes: usize,
        /// Bytes repeated from the window before: the longest signature less one, at least.
        tail: usize,
    },
    /// The whole file at its end; its last packet waits for the verdict.
    File,
}

/// What waits for a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// The packets of what is being scanned: a window, or the last one of a file.
    #[default]
    Packet,
    /// The whole file. The gateway acknowledges it in the name of its receiver.
    File,
}

/// How files are scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanSettings {
    /// How much at a time.
    pub mode: ScanMode,
    /// How long a packet waits for the scanner, nanoseconds.
    pub timeout_ns: u64,
    /// What waits for the verdict.
    pub hold: Hold,
}

/// What is inspected in a connection.
#[derive(Debug, Clone, Default)]
pub struct Inspect {
    /// Keywords in messages, heads, names and bodies.
    pub keywords: Option<Keywords>,
    /// Names of files that are not to pass.
    pub file_names: NamePatterns,
    /// Whether and how files are scanned.
    pub scan: Option<ScanSettings>,
    /// Whether messages and files are recorded as events.
    pub audit: bool,
    /// Whether files are kept.
    pub record: bool,
    /// Whether infected files are kept apart.
    pub quarantine: bool,
    /// What a keyword or a file name leads to. A virus never passes.
    pub on_match: OnMatch,
}

/// Which applications a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applications {
    /// All, the unknown too.
    Any,
    /// These.
    Of(Vec<Label>),
}

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name in events and in the status.
    pub name: String,
    /// Its number in marks.
    pub number: u16,
    /// Applications it is for.
    pub applications: Applications,
    /// Clients it is for.
    pub clients: Networks,
    /// TLS or QUIC server names it is for; empty: all, and those without.
    pub server_names: NamePatterns,
    /// What is done.
    pub action: Action,
    /// What is inspected, where the action is to inspect.
    pub inspect: Inspect,
    /// What happens when something cannot be inspected.
    pub fail: Fail,
}

impl Rule {
    /// A rule that does `action` to everything.
    #[must_use]
    pub fn any(name: &str, number: u16, action: Action) -> Self {
        Self {
            name: name.to_owned(),
            number,
            applications: Applications::Any,
            clients: Networks::default(),
            server_names: NamePatterns::default(),
            action,
            inspect: Inspect::default(),
            fail: Fail::default(),
        }
    }

    pub(super) fn matches(&self, label: Label, client: IpAddr, server_name: &[u8]) -> bool {
        let is_application = match &self.applications {
            Applications::Any => true,
            Applications::Of(labels) => labels.iter().any(|one| label.includes(*one)),
        };
        let is_name = || {
            self.server_names.0.is_empty()
                || (!server_name.is_empty() && self.server_names.find(server_name).is_some())
        };
        is_application && self.clients.holds(client) && is_name()
    }

    /// Whether it needs no look at a connection of its clients.
    pub(super) fn is_for_any(&self) -> bool {
        self.applications == Applications::Any
            && self.server_names.0.is_empty()
            && self.action != Action::Inspect
    }
}
