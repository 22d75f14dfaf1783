//! Bytes for a virus scanner, and what it says.

/// Names one scan; never used twice by a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A part of what is to be scanned together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanChunk {
    /// Which scan.
    pub ticket: Ticket,
    /// The bytes that follow those of the chunks before.
    pub bytes: Vec<u8>,
    /// Whether it is the last: now the scanner is to say what it finds.
    pub is_last: bool,
}

/// What a scanner found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanOutcome {
    /// Nothing.
    Clean,
    /// Something, by the scanner's name of it.
    Infected(String),
    /// It could not say: not reachable, over its size limit, its queue full, an error of its own. One
    /// sentence without a full stop.
    Failed(String),
}

/// The answer to a scan whose last chunk was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanReport {
    /// Which scan.
    pub ticket: Ticket,
    /// What was found.
    pub outcome: ScanOutcome,
    /// From the last chunk to the answer, nanoseconds.
    pub latency_ns: u64,
}
