//! What a scanner has done.

use linkweir_sketch::LogLinear;

/// Why a scan failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureCause {
    /// No connection to clamd.
    Unreachable,
    /// No report in time.
    Timeout,
    /// clamd closed the connection twice without an answer.
    Closed,
    /// Its reply was invalid, twice.
    Protocol,
    /// Longer than clamd's `StreamMaxLength`.
    ClamdSizeLimit,
    /// Another error of clamd.
    Clamd,
    /// Longer than [`ScannerOptions::max_scan_bytes`](crate::ScannerOptions::max_scan_bytes).
    TooLong,
    /// More bytes wait than the options allow.
    QueueFull,
    /// The spool directory is full, or its file cannot be written or read.
    Spool,
    /// The scanner was stopped.
    Stopped,
}

impl FailureCause {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Unreachable,
        Self::Timeout,
        Self::Closed,
        Self::Protocol,
        Self::ClamdSizeLimit,
        Self::Clamd,
        Self::TooLong,
        Self::QueueFull,
        Self::Spool,
        Self::Stopped,
    ];

    /// The word for summaries and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Protocol => "protocol",
            Self::ClamdSizeLimit => "clamd_size_limit",
            Self::Clamd => "clamd",
            Self::TooLong => "too_long",
            Self::QueueFull => "queue_full",
            Self::Spool => "spool",
            Self::Stopped => "stopped",
        }
    }
}

/// A failure: its cause, and one sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) cause: FailureCause,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(cause: FailureCause, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cause, text }
    }
}

/// Failed scans by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failures([u64; FailureCause::ALL.len()]);

impl Failures {
    /// How many failed for this cause.
    #[must_use]
    pub fn of(&self, cause: FailureCause) -> u64 {
        self.iter()
            .find(|(of, _)| *of == cause)
            .map_or(0, |(_, count)| count)
    }

    /// Every cause with its count.
    pub fn iter(&self) -> impl Iterator<Item = (FailureCause, u64)> + '_ {
        FailureCause::ALL.into_iter().zip(self.0)
    }

    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn count(&mut self, cause: FailureCause) {
        for (of, count) in FailureCause::ALL.into_iter().zip(&mut self.0) {
            *count += u64::from(of == cause);
        }
    }
}

/// A scanner's counters, and how it is.
#[derive(Debug, Clone, Default)]
pub struct ScannerStatus {
    /// Whether clamd answered last time.
    pub is_reachable: bool,
    /// What clamd says it is: program and database. Empty before it has answered.
    pub version: String,
    /// Reports given: clean, infected and failed.
    pub scans: u64,
    /// Reports of something found.
    pub infected: u64,
    /// Reports of failure.
    pub failed: Failures,
    /// Scans given up by their stage before their report.
    pub abandoned: u64,
    /// Bytes of the scans that clamd answered.
    pub bytes: u64,
    /// Scans that gather or wait or are with clamd now.
    pub waiting: usize,
    /// Bytes in memory of them, with what each scan costs by itself.
    pub waiting_bytes: usize,
    /// Bytes of them in the spool directory.
    pub spooled_bytes: u64,
    /// From the last chunk to the report, nanoseconds, of scans that clamd answered.
    pub latency_ns: LogLinear,
    /// Connections for scans that were made.
    pub connections: u64,
    /// Those of them that replaced one which broke.
    pub reconnects: u64,
    /// Attempts to reach clamd that failed.
    pub connect_failures: u64,
    /// What failed last.
    pub last_error: Option<String>,
}
