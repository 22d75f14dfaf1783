//! The rows of the table.

/// What stands between client and server, or what is measured beside it as a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// The kernel forwards.
    Forward,
    /// It translates addresses too: the paper's "NAT".
    Nat,
    /// Every packet goes to a program that accepts it: the paper's "NAT+libipq".
    Accept,
    /// Connections are classified and left to the kernel: "NAT+libipq+L7".
    Classify,
    /// Names of files are looked at: "P2P Proxy + Filter".
    Inspect,
    /// Keywords in every byte.
    Keywords,
    /// Files are kept: "P2P Proxy + Log File".
    Record,
    /// Files are scanned: "P2P Proxy + Virus Scan".
    Scan,
    /// All of it: "P2P Proxy + Filter + Log File + Virus Scan", and keywords.
    All,
    /// A proxy that copies, behind a port redirection.
    Redirect,
    /// squid behind a port redirection.
    Squid,
    /// The keyword automaton alone on one core; no network.
    Automaton,
    /// clamd alone; no network.
    Clamd,
}

impl Row {
    pub(super) const ALL: [Self; 13] = [
        Self::Forward,
        Self::Nat,
        Self::Accept,
        Self::Classify,
        Self::Inspect,
        Self::Keywords,
        Self::Record,
        Self::Scan,
        Self::All,
        Self::Redirect,
        Self::Squid,
        Self::Automaton,
        Self::Clamd,
    ];

    /// Those that are measured again with packets as on a cable.
    pub(super) const ON_CABLE: [Self; 5] = [
        Self::Forward,
        Self::Accept,
        Self::Classify,
        Self::Inspect,
        Self::Keywords,
    ];

    /// The word on the command line.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Nat => "nat",
            Self::Accept => "accept",
            Self::Classify => "classify",
            Self::Inspect => "inspect",
            Self::Keywords => "keywords",
            Self::Record => "record",
            Self::Scan => "scan",
            Self::All => "all",
            Self::Redirect => "redirect",
            Self::Squid => "squid",
            Self::Automaton => "automaton",
            Self::Clamd => "clamd",
        }
    }

    /// The name in the table.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Nat => "NAT (masquerade)",
            Self::Accept => "NFQUEUE, all accepted",
            Self::Classify => "gateway: classify, then the kernel's",
            Self::Inspect => "gateway: file names",
            Self::Keywords => "gateway: 1000 keywords, all bytes",
            Self::Record => "gateway: file names, files kept",
            Self::Scan => "gateway: clamd, windows of 32 KiB",
            Self::All => "gateway: all of these",
            Self::Redirect => "REDIRECT, copying proxy",
            Self::Squid => "REDIRECT, squid without cache",
            Self::Automaton => "limit: keyword automaton, one core",
            Self::Clamd => "limit: clamd alone, windows of 32 KiB",
        }
    }

    /// What its promise compares it with.
    pub(super) const fn compared_with(self) -> &'static [Self] {
        match self {
            Self::Classify => &[Self::Forward],
            Self::Inspect => &[Self::Accept],
            Self::Keywords => &[Self::Accept, Self::Automaton],
            Self::Scan => &[Self::Clamd],
            _ => &[],
        }
    }

    /// Whether packets of a download go through a queue to the end.
    pub(super) const fn is_queued(self) -> bool {
        matches!(
            self,
            Self::Accept | Self::Inspect | Self::Keywords | Self::Record | Self::Scan | Self::All
        )
    }

    /// Whether it needs clamd.
    pub(super) const fn scans(self) -> bool {
        matches!(self, Self::Scan | Self::All | Self::Clamd)
    }
}
