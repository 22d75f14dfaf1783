//! What a reader of the live statistics gets: plain values, in JSON under the names of the HTTP API.
//!
//! Text that came from the network is in these values as [`clean`](crate::text::clean) leaves it:
//! valid UTF-8 without control characters, but otherwise chosen by whoever sent the traffic. Code that shows it
//! escapes it for its own medium.

mod flow;
mod gateway;
mod http;
mod load;

pub use crate::values::{Dropped, Percentiles, TableState};
pub use crate::words::{UnknownWord, Word};
pub use flow::{
    Application, Applications, FlowBy, FlowCounts, FlowEnds, FlowFigures, FlowKeyed, FlowOf,
    FlowSort, FlowTopRow, FlowWireKeyed,
};
pub use gateway::{
    GatewayBy, GatewayCounts, GatewayFigures, GatewayKeyed, GatewayLine, GatewayOf, GatewaySort,
    GatewayTopRow, GatewayWireKeyed,
};
pub use http::{By, HttpCounts, HttpFigures, HttpKeyed, HttpOf, HttpWireKeyed, Sort, TopRow};
pub use load::{
    Causes, LoadBy, LoadCounts, LoadFigures, LoadKeyed, LoadOf, LoadSort, LoadTopRow, LoadWireKeyed,
};

use std::collections::BTreeMap;

use serde::Serialize;

use crate::words::words;

/// Where an alert stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// The limit holds.
    #[default]
    Ok,
    /// The limit is broken, but not yet for as many intervals as the rule says.
    Pending,
    /// The limit has been broken for that many intervals.
    Firing,
    /// The limit has held again for that many intervals; `ok` from the next interval on.
    Resolved,
    /// There were too few samples for too long; a rule that fired was not resolved.
    NoData,
}

impl AlertState {
    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Pending => "pending",
            Self::Firing => "firing",
            Self::Resolved => "resolved",
            Self::NoData => "no_data",
        }
    }
}

/// One rule at the end of an interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlertStatus {
    /// The rule as it was written.
    pub rule: String,
    /// Where it stands.
    pub state: AlertState,
    /// What was measured; `None` where there were too few samples.
    pub value: Option<f64>,
    /// The limit.
    pub threshold: f64,
    /// Unit of both: `ns`, `%`, `/s`, `b/s` or empty.
    pub unit: &'static str,
    /// Since when it has been in this state, milliseconds since the epoch of capture time.
    pub since_ms: u64,
}

/// One closed interval; the figures of its records can be read as if they were its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tick<F = HttpFigures> {
    /// Rises by one with every interval, from 1.
    pub id: u64,
    /// End of the interval, milliseconds since the epoch, capture time.
    pub t_ms: u64,
    /// Length of the interval, seconds.
    pub interval_s: f64,
    /// Packets the stage saw.
    pub packets: u64,
    /// Bytes of those packets on the wire.
    pub bytes: u64,
    /// What the records came to.
    #[serde(flatten)]
    pub figures: F,
    /// What was lost in the interval.
    pub dropped: Dropped,
    /// What was lost since the start of the run.
    pub dropped_total: Dropped,
    /// How full the table was at the end of the interval.
    pub table: TableState,
    /// Every rule, in the order of the configuration.
    pub alerts: Vec<AlertStatus>,
}

impl<F> std::ops::Deref for Tick<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.figures
    }
}

impl<F> Tick<F> {
    /// A count of this interval per second.
    #[must_use]
    pub fn per_second(&self, count: u64) -> f64 {
        if self.interval_s > 0.0 {
            crate::text::to_f64(count) / self.interval_s
        } else {
            0.0
        }
    }
}

/// What a run is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Meta {
    /// What is counted: `http`, `flows`, `gateway` or `load`.
    pub kind: &'static str,
    /// Version of the program.
    pub version: &'static str,
    /// What is read: an interface, a file.
    pub source: String,
    /// Whether the source is an interface (else time is that of a capture file).
    pub live: bool,
    /// Length of an interval, seconds.
    pub interval_s: f64,
    /// Capture time of the start, milliseconds since the epoch; 0 before anything was seen.
    pub started_ms: u64,
    /// Whether the run has ended.
    pub finished: bool,
    /// Whether these are the statistics of several probes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub merged: bool,
    /// Whether `/archive` shows what was measured before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub archive: bool,
    /// Whether `/api/history` has the last day, from a file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub history: bool,
    /// Whether there are tables of countries and AS numbers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub places: bool,
}

/// Sums since the start of the run; the figures of its records can be read as if they were its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Totals<F = HttpFigures> {
    /// Packets the stage saw.
    pub packets: u64,
    /// Bytes of those packets on the wire.
    pub bytes: u64,
    /// Earliest capture time, milliseconds since the epoch.
    pub first_ms: Option<u64>,
    /// Latest capture time, milliseconds since the epoch.
    pub last_ms: Option<u64>,
    /// What the records came to.
    #[serde(flatten)]
    pub figures: F,
    /// What was lost.
    pub dropped: Dropped,
    /// How full the table is.
    pub table: TableState,
    /// Records that came after their interval was closed and were counted in a later one.
    pub late_records: u64,
}

impl<F> std::ops::Deref for Totals<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.figures
    }
}

/// Everything a page needs to start with.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "F: Serialize")]
pub struct Snapshot<F = HttpFigures> {
    /// What the run is.
    pub meta: Meta,
    /// The last intervals, oldest first.
    #[serde(serialize_with = "plain")]
    pub ticks: Vec<std::sync::Arc<Tick<F>>>,
    /// Sums since the start.
    pub totals: Totals<F>,
}

fn plain<S: serde::Serializer, T: Serialize>(
    all: &[std::sync::Arc<T>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(AsRef::as_ref))
}

words! {
    /// A duration of capture time that ends now.
    Window {
        /// The last minute.
        Minute = "60",
        /// The last five minutes.
        FiveMinutes = "300",
        /// The whole run.
        All = "all",
    }
}

/// The most frequent keys of a window, sorted as asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopTable<B = By, R = TopRow> {
    /// What the keys are.
    pub by: B,
    /// The window they were counted over.
    pub window: Window,
    /// The rows, largest first.
    pub rows: Vec<R>,
    /// A key that is not among those tracked had at most this many requests (bytes, where flows are
    /// counted), and no count is more than this too large.
    pub floor: u64,
}

/// What there is beside the intervals: the status of the process, and its last records.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "S: Serialize, E: Serialize")]
pub struct Now<S, E> {
    /// The last status of the process; `None` before the first.
    #[serde(serialize_with = "shared")]
    pub status: Option<std::sync::Arc<S>>,
    /// When it was set, milliseconds since the epoch; 0 before that.
    pub status_ms: u64,
    /// The last records, oldest first: a hundred, and a hundred of those of which there are many.
    #[serde(serialize_with = "plain")]
    pub events: Vec<std::sync::Arc<Numbered<E>>>,
}

fn shared<S: serde::Serializer, T: Serialize>(
    value: &Option<std::sync::Arc<T>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_deref().serialize(serializer)
}

/// One of the last records and its number, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Numbered<E> {
    /// Rises by one with every record.
    pub id: u64,
    /// The record.
    #[serde(flatten)]
    pub event: E,
}

/// The complementary cumulative distribution of a quantity.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ccdf {
    /// Samples.
    pub count: u64,
    /// A value (a time in nanoseconds, a rate in bits per second) and the share of samples above it;
    /// shares fall and are above 0.
    pub points: Vec<(u64, f64)>,
}

/// One probe, by its name. Several runs under one name, one after the other or at once, count together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Probe {
    /// As the probe calls itself.
    pub name: String,
    /// When its last sketch came, milliseconds since the epoch, by the clock of the merging side.
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
    /// Its run has ended.
    pub has_ended: bool,
    /// It has not ended and has been silent for too long: intervals do not wait for it.
    pub is_stale: bool,
}

/// The probes, and what became of what they sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Probes {
    /// By name.
    pub probes: Vec<Probe>,
    /// Sketches that were merged.
    pub sketches: u64,
    /// Sketches of probes that nobody asked for, where only some were.
    #[serde(skip_serializing_if = "crate::sketch::wire::is_zero")]
    pub left_out: u64,
    /// Messages that were no sketches of this kind, by cause.
    pub refused: BTreeMap<&'static str, u64>,
    /// The last error of the connection to the broker, while it is broken.
    pub fault: Option<String>,
}
