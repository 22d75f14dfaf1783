//! What the statistics say of the probes that they are merged from.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Dropped;

/// One probe, by its name. Several runs under one name, one after the other or at once, count together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Probe {
    /// As the probe calls itself.
    pub name: String,
    /// When its last sketch came, milliseconds since the epoch, by the clock of who merges.
    pub last_seen_ms: u64,
    /// End of its latest interval, milliseconds since the epoch, capture time.
    pub t_ms: u64,
    /// Runs under this name since the start.
    pub runs: u64,
    /// Packets it saw.
    pub packets: u64,
    /// Bytes of those packets on the wire.
    pub bytes: u64,
    /// Packets a second in its latest interval.
    pub packets_per_s: f64,
    /// What it lost.
    pub dropped: Dropped,
    /// Intervals that never came: between two others of the same run.
    pub missing_intervals: u64,
    /// Intervals that came after the merged interval had closed, and are in the sums only.
    pub late_intervals: u64,
    /// Sketches that came more than once, and were counted once.
    pub duplicates: u64,
    /// It said that its run has ended.
    pub has_ended: bool,
    /// It has not ended, and nothing has come for too long: nobody waits for it.
    pub is_stale: bool,
}

/// The probes, and what became of what they sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Probes {
    /// By name.
    pub probes: Vec<Probe>,
    /// Sketches that were merged.
    pub sketches: u64,
    /// Messages that were no sketches of this kind, by cause.
    pub refused: BTreeMap<&'static str, u64>,
    /// What the connection to the sketches said last, where it is broken.
    pub fault: Option<String>,
}
