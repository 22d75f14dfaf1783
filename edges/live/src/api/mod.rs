//! What a reader of the live statistics gets: plain values, in JSON under the names of the HTTP API.
//!
//! Text that came from the network is in these values as [`clean`](crate::text::clean) leaves it:
//! valid UTF-8 without control characters, but otherwise what a stranger chose. Whoever shows it
//! escapes it for its own medium.

/// Names its variants as the query strings of the API do.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+ }

        impl Word for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord { expected: concat!($($word, " "),+) }),
                }
            }
        }
    };
}

mod flow;
mod gateway;
mod http;
mod probe;

pub use flow::{
    Application, Applications, FlowBy, FlowCounts, FlowEnds, FlowFigures, FlowKeyed, FlowOf,
    FlowSort, FlowTopRow, FlowWireKeyed,
};
pub use gateway::{
    GatewayBy, GatewayCounts, GatewayFigures, GatewayKeyed, GatewayLine, GatewayOf, GatewaySort,
    GatewayTopRow, GatewayWireKeyed,
};
pub use http::{By, HttpCounts, HttpFigures, HttpKeyed, HttpOf, HttpWireKeyed, Sort, TopRow};
pub use probe::{Probe, Probes};

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A distribution in a few figures: response times, round-trip times, durations, rates.
///
/// Units: nanoseconds, of rates bits per second. Quantiles are at most 0.1 % too large.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: u64,
    /// Median.
    pub p50: u64,
    /// 90 % were at most this.
    pub p90: u64,
    /// 95 % were at most this.
    pub p95: u64,
    /// 99 % were at most this.
    pub p99: u64,
    /// 99.9 % were at most this.
    pub p999: u64,
    /// Largest.
    pub max: u64,
}

impl Percentiles {
    /// A figure by its name; `None` of a name that it does not have.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        Some(match name {
            "count" => self.count,
            "min" => self.min,
            "mean" => self.mean,
            "p50" => self.p50,
            "p90" => self.p90,
            "p95" => self.p95,
            "p99" => self.p99,
            "p999" => self.p999,
            "max" => self.max,
            _ => return None,
        })
    }
}

/// What was lost, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    /// Packets the kernel dropped before the ring.
    pub kernel: u64,
    /// Packets dropped because a ring was full.
    pub ring: u64,
    /// Records of a capture whose frame could not be used.
    pub unusable_records: u64,
    /// Transactions or flows evicted from a full table.
    pub table_full: u64,
    /// Records an output refused.
    pub sink: u64,
}

impl Dropped {
    /// Causes and counts, by the names of the summary.
    #[must_use]
    pub const fn by_cause(&self) -> [(&'static str, u64); 5] {
        [
            ("kernel", self.kernel),
            ("ring", self.ring),
            ("unusable_records", self.unusable_records),
            ("table_full", self.table_full),
            ("sink", self.sink),
        ]
    }

    /// All causes together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_cause()
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// What was lost since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            kernel: self.kernel.saturating_sub(earlier.kernel),
            ring: self.ring.saturating_sub(earlier.ring),
            unusable_records: self
                .unusable_records
                .saturating_sub(earlier.unusable_records),
            table_full: self.table_full.saturating_sub(earlier.table_full),
            sink: self.sink.saturating_sub(earlier.sink),
        }
    }

    /// Adds the losses of another interval.
    pub const fn add(&mut self, other: &Self) {
        self.kernel = self.kernel.saturating_add(other.kernel);
        self.ring = self.ring.saturating_add(other.ring);
        self.unusable_records = self.unusable_records.saturating_add(other.unusable_records);
        self.table_full = self.table_full.saturating_add(other.table_full);
        self.sink = self.sink.saturating_add(other.sink);
    }
}

/// How full the table of transactions or flows is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableState {
    /// Entries now.
    pub entries: u64,
    /// Entries at most.
    pub capacity: u64,
}

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
    /// There were too few samples for so long that nothing can be said; a rule that fired was not resolved.
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
    /// What the records are: `http`, `flows` or `gateway`.
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

/// A choice that has a word in the query strings of the API.
pub trait Word:
    Copy + std::fmt::Debug + PartialEq + Serialize + FromStr<Err = UnknownWord> + Send + Sync + 'static
{
    /// All of them; the first is the default.
    const ALL: &'static [Self];

    /// The word of the API.
    #[must_use]
    fn as_str(self) -> &'static str;

    /// Its place among all.
    #[must_use]
    fn position(self) -> usize {
        Self::ALL.iter().position(|one| *one == self).unwrap_or(0)
    }
}

/// A word that is none of those expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected one of: {expected}")]
pub struct UnknownWord {
    /// The words, with a space after each.
    pub expected: &'static str,
}

words! {
    /// A span of capture time that ends now.
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
    /// The span they were counted over.
    pub window: Window,
    /// The rows, largest first.
    pub rows: Vec<R>,
    /// A key that is not among those tracked had at most this many requests (bytes, where flows are
    /// counted), and no count is more than this too large.
    pub floor: u64,
}

/// What there is beside the intervals: what the process says of itself, and its last records.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "S: Serialize, E: Serialize")]
pub struct Now<S, E> {
    /// What the process said last; `None` before it said anything.
    #[serde(serialize_with = "shared")]
    pub status: Option<std::sync::Arc<S>>,
    /// When it said so, milliseconds since the epoch; 0 before that.
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
