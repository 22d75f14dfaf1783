//! The state of a gateway at one time: what `gateway status` prints, the page shows and Prometheus
//! reads. Counters count from the start of the run.

use std::collections::BTreeMap;

use linkweir_engine::RunReport;
use linkweir_engine::seams::{Drops, TableFill};
use linkweir_wire::Timestamp;
use serde::{Deserialize, Serialize};

use crate::live::GatewayLive;

/// Everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayStatus {
    /// Program and version.
    pub program: String,
    /// Process id.
    pub pid: u32,
    /// Seconds since the start.
    pub uptime_s: f64,
    /// Path of the policy.
    pub config: String,
    /// How often a policy was loaded again.
    pub reloads: u64,
    /// `open` or `closed`: what happens to traffic without this program.
    pub fail: String,
    /// By application.
    pub applications: BTreeMap<String, ApplicationStatus>,
    /// By rule, from the kernel's own counters, which count since `gateway up`; empty where no rules are up
    /// or they cannot be read.
    pub rules: BTreeMap<String, KernelCount>,
    /// Packets and bytes that came to user space.
    pub packets: u64,
    /// IP bytes of them.
    pub bytes: u64,
    /// Connections that are classified or inspected now.
    pub connections: u64,
    /// Connections forgotten because the table was full.
    pub evicted: u64,
    /// Packets that wait now, their bytes, and the most at once.
    pub held: Held,
    /// By cause: duplicates, out of order, bad checksums, over a limit, gaps...
    pub counts: BTreeMap<String, u64>,
    /// Events by kind.
    pub events: BTreeMap<String, u64>,
    /// Packets that passed unseen because a queue of the kernel was full and fails open.
    pub unseen: u64,
    /// Events that found no room, or did not reach an output, of all outputs together.
    pub events_lost: u64,
    /// Events that did not reach an output, by output.
    pub not_written: BTreeMap<String, u64>,
    /// The kernel's queues.
    pub queues: Vec<QueueStatus>,
    /// What packets took at each step, those that were seen, in the order of the way.
    pub steps: Vec<StepStatus>,
    /// The scanner, where there is one.
    pub scanner: Option<ScannerStatus>,
    /// Recorded files, where any are kept.
    pub vault: Option<VaultStatus>,
}

impl GatewayStatus {
    /// Packets that came to a queue and were not seen: dropped by the kernel, or passed.
    #[must_use]
    pub fn lost_packets(&self) -> u64 {
        let queues = self.queues.iter();
        let dropped = queues.map(|queue| queue.dropped.saturating_add(queue.user_dropped));
        dropped.fold(self.unseen, u64::saturating_add)
    }
}

/// One application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationStatus {
    /// Connections that were decided.
    pub connections: u64,
    /// Packets that came to user space.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// Connections allowed without inspection.
    pub allowed: u64,
    /// Connections dropped by rule.
    pub dropped: u64,
    /// Connections rejected by rule.
    pub rejected: u64,
    /// Connections that are or were inspected.
    pub inspected: u64,
    /// Inspected connections that were blocked for what they carried.
    pub blocked: u64,
}

impl ApplicationStatus {
    /// Connections by what became of them.
    #[must_use]
    pub const fn by_verdict(&self) -> [(&'static str, u64); 5] {
        [
            ("allowed", self.allowed),
            ("dropped", self.dropped),
            ("rejected", self.rejected),
            ("inspected", self.inspected),
            ("blocked", self.blocked),
        ]
    }
}

/// Packets and bytes that the kernel counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCount {
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
    /// Packets that were dropped because their client exceeded its rate; not among the others.
    #[serde(default)]
    pub over_rate_packets: u64,
    /// Their IP bytes.
    #[serde(default)]
    pub over_rate_bytes: u64,
}

/// Packets that wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Now.
    pub packets: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// The most packets at once.
    pub peak_packets: u64,
}

/// A queue of the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// Its number.
    pub number: u16,
    /// Packets in it now, held ones too.
    pub waiting: u64,
    /// Packets that the kernel dropped because the queue was full.
    pub dropped: u64,
    /// Packets that the kernel dropped because the socket's buffer was full.
    pub user_dropped: u64,
    /// Packets that went through it.
    pub total: u64,
}

/// What timed packets took at a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStatus {
    /// Its name.
    pub step: String,
    /// Timed packets that came to it; scans, of `scan`.
    pub samples: u64,
    /// All of them together, nanoseconds.
    pub sum_ns: u64,
    /// Their mean, nanoseconds.
    pub mean_ns: u64,
    /// Their median, nanoseconds.
    pub p50_ns: u64,
    /// Their 99th percentile, nanoseconds.
    pub p99_ns: u64,
}

/// The virus scanner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScannerStatus {
    /// Where it is.
    pub address: String,
    /// Whether the last try reached it.
    pub is_reachable: bool,
    /// What it calls itself and its database.
    pub version: String,
    /// Scans that were answered.
    pub scans: u64,
    /// Scans that found something.
    pub infected: u64,
    /// Scans without an answer, by cause.
    pub failed: BTreeMap<String, u64>,
    /// Bytes scanned.
    pub bytes: u64,
    /// Scans that wait now.
    pub waiting: u64,
    /// From asking to the answer, microseconds: p50, p90, p99, max.
    pub latency_us: BTreeMap<String, u64>,
    /// The last thing that went wrong.
    pub last_error: Option<String>,
}

/// Recorded files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultStatus {
    /// Whole files kept.
    pub kept: u64,
    /// Parts of files kept.
    pub parts: u64,
    /// Files in the quarantine.
    pub quarantined: u64,
    /// Bytes in the directories.
    pub bytes: u64,
    /// Files being written.
    pub open: u64,
    /// Files that were not recorded, or only in part, by cause.
    pub lost_files: BTreeMap<String, u64>,
    /// Bytes that were not kept, by cause.
    pub dropped_bytes: BTreeMap<String, u64>,
    /// The last thing that went wrong.
    pub last_error: Option<String>,
}

/// A handle for the thread that knows the status; a clone is another handle on the same.
///
/// Intervals close when a status comes, so that one is wanted about once a second even where nothing
/// happens.
#[derive(Debug, Clone)]
pub struct StatusBoard(GatewayLive);

impl StatusBoard {
    /// A handle on `live`.
    #[must_use]
    pub const fn new(live: GatewayLive) -> Self {
        Self(live)
    }

    /// Shows the status at `now`, by the clock that the events have their times from. Cheap: a few
    /// additions under a lock.
    pub fn show(&self, status: GatewayStatus, now: Timestamp) {
        let report = report(&status, now);
        self.0.set_sink_drops(status.events_lost);
        self.0.tick(&report, now);
        self.0.set_status(status, now);
    }

    /// Shows the last status; the run has ended, and readers are notified.
    pub fn finish(&self, status: GatewayStatus, now: Timestamp) {
        self.show(status, now);
        self.0.close();
    }
}

/// The counters that every run has, out of those of a gateway. How many connections the table can hold
/// is not known here: its capacity is 0.
fn report(status: &GatewayStatus, now: Timestamp) -> RunReport {
    RunReport {
        packets: status.packets,
        bytes: status.bytes,
        last: Some(now),
        drops: Drops {
            kernel: status.lost_packets(),
            ..Drops::default()
        },
        fill: TableFill {
            entries: status.connections,
            evicted: status.evicted,
            capacity: 0,
        },
        ..RunReport::default()
    }
}
