//! What a reader of the live statistics gets: plain values, in JSON under the names of the HTTP API.
//!
//! Text that came from the network is in these values as [`clean`](crate::text::clean) leaves it:
//! valid UTF-8 without control characters, but otherwise what a stranger chose. Whoever shows it
//! escapes it for its own medium.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Serialize;

/// Response times of an interval or of a run.
///
/// Units: nanoseconds. Quantiles are at most 0.1 % too large.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ResponseTimes {
    /// Complete transactions.
    pub count: u64,
    /// Shortest.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: u64,
    /// Median.
    pub p50: u64,
    /// 90 % took at most this long.
    pub p90: u64,
    /// 95 % took at most this long.
    pub p95: u64,
    /// 99 % took at most this long.
    pub p99: u64,
    /// 99.9 % took at most this long.
    pub p999: u64,
    /// Longest.
    pub max: u64,
}

/// What was lost, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Packets the kernel dropped before the ring.
    pub kernel: u64,
    /// Packets dropped because a ring was full.
    pub ring: u64,
    /// Records of a capture whose frame could not be used.
    pub unusable_records: u64,
    /// Transactions evicted from a full table.
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

/// How full the transaction table is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TableState {
    /// Entries now.
    pub entries: u64,
    /// Entries at most.
    pub capacity: u64,
}

/// Where an alert stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
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
    /// Unit of both: `ns`, `%`, `/s` or empty.
    pub unit: &'static str,
    /// Since when it has been in this state, milliseconds since the epoch of capture time.
    pub since_ms: u64,
}

/// One closed interval.
///
/// A transaction counts in the interval in which its fate was known: with its response, or, where
/// none came, when the request left the table. So `requests` = `complete` + `unanswered` and
/// `responses` = `complete` + `orphans` in every interval, and shares are between 0 and 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tick {
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
    /// Requests whose fate became known.
    pub requests: u64,
    /// Final responses.
    pub responses: u64,
    /// Pairs of both.
    pub complete: u64,
    /// Requests without a response.
    pub unanswered: u64,
    /// Responses without a request.
    pub orphans: u64,
    /// Retransmitted heads of those transactions.
    pub retransmissions: u64,
    /// Final responses by status code.
    pub codes: BTreeMap<u16, u64>,
    /// Requests by method; more than 32 different ones are `other`.
    pub methods: BTreeMap<String, u64>,
    /// Response times, `None` where no transaction was complete.
    pub response_time_ns: Option<ResponseTimes>,
    /// What was lost in the interval.
    pub dropped: Dropped,
    /// What was lost since the start of the run.
    pub dropped_total: Dropped,
    /// How full the table was at the end of the interval.
    pub table: TableState,
    /// Every rule, in the order of the configuration.
    pub alerts: Vec<AlertStatus>,
}

impl Tick {
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
}

/// Sums since the start of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Packets the stage saw.
    pub packets: u64,
    /// Bytes of those packets on the wire.
    pub bytes: u64,
    /// Earliest capture time, milliseconds since the epoch.
    pub first_ms: Option<u64>,
    /// Latest capture time, milliseconds since the epoch.
    pub last_ms: Option<u64>,
    /// Requests whose fate is known.
    pub requests: u64,
    /// Final responses.
    pub responses: u64,
    /// Pairs of both.
    pub complete: u64,
    /// Requests without a response.
    pub unanswered: u64,
    /// Responses without a request.
    pub orphans: u64,
    /// Retransmitted heads.
    pub retransmissions: u64,
    /// Final responses by status code.
    pub codes: BTreeMap<u16, u64>,
    /// Requests by method.
    pub methods: BTreeMap<String, u64>,
    /// Response times.
    pub response_time_ns: Option<ResponseTimes>,
    /// What was lost.
    pub dropped: Dropped,
    /// How full the table is.
    pub table: TableState,
    /// Records that came after their interval was closed and were counted in a later one.
    pub late_records: u64,
}

/// Everything a page needs to start with.
#[derive(Debug, Clone, Serialize)]
pub struct Snapshot {
    /// What the run is.
    pub meta: Meta,
    /// The last intervals, oldest first.
    #[serde(serialize_with = "plain")]
    pub ticks: Vec<std::sync::Arc<Tick>>,
    /// Sums since the start.
    pub totals: Totals,
}

fn plain<S: serde::Serializer>(
    ticks: &[std::sync::Arc<Tick>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ticks.iter().map(AsRef::as_ref))
}

/// Names its variants as the query strings of the API do.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word of the API.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
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

/// A word that is none of those expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected one of: {expected}")]
pub struct UnknownWord {
    /// The words, with a space after each.
    pub expected: &'static str,
}

words! {
    /// What requests are grouped by.
    By {
        /// `Host` field, lower case.
        Host = "host",
        /// Address and port of the server.
        Server = "server",
        /// Host and path with identifiers folded: [`url_template`](fn@crate::url_template).
        Url = "url",
        /// Address of the client.
        Client = "client",
    }
}

words! {
    /// What a table is sorted by, largest first.
    Sort {
        /// Requests.
        Requests = "requests",
        /// 4xx and 5xx responses.
        Errors = "errors",
        /// 95th percentile of the response time.
        P95 = "p95",
        /// Declared bytes of the responses.
        Bytes = "bytes",
        /// Requests without a response.
        Unanswered = "unanswered",
    }
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

/// One key of a [`TopTable`].
///
/// Units: nanoseconds for times, which are at most 12.5 % too large (`max` is exact).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopRow {
    /// The host, server, URL template or client.
    pub key: String,
    /// Requests; at most [`TopTable::floor`] too many.
    pub requests: u64,
    /// Responses with 4xx.
    pub errors_4xx: u64,
    /// Responses with 5xx.
    pub errors_5xx: u64,
    /// Requests without a response.
    pub unanswered: u64,
    /// Declared bytes of requests and responses.
    pub bytes: u64,
    /// Median response time.
    pub p50: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// Longest.
    pub max: Option<u64>,
}

/// The most frequent keys of a window, sorted as asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopTable {
    /// What the keys are.
    pub by: By,
    /// The span they were counted over.
    pub window: Window,
    /// The rows, largest first.
    pub rows: Vec<TopRow>,
    /// A key that is not among those tracked had at most this many requests, and no count is more
    /// than this too large.
    pub floor: u64,
}

/// The complementary cumulative distribution of the response time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ccdf {
    /// Transactions.
    pub count: u64,
    /// A time in nanoseconds and the share of transactions that took longer; shares fall and are
    /// above 0.
    pub points: Vec<(u64, f64)>,
}
