//! The file of a sketch, as JSON.
//!
//! ```json
//! {"linkweir_sketch": 1, "kind": "http", "started_ns": 1, "ended_ns": 2,
//!  "run": {"packets": 9, "bytes": 900, "first_ts_ns": 1, "last_ts_ns": 2, "dropped": {"kernel": 0},
//!          "decode_errors": {"ipv4": {"cut_by_capture": 1}}, "input_faults": []},
//!  "http": {"records": 3, "requests": 3, "methods": {"GET": 3}, "other_methods": 0, "status_codes": {"200": 3},
//!           "response_time_ns": {"sum": "4500", "min": 1000, "max": 2000, "buckets": [[1000, 1], [1500, 2]]}}}
//! ```
//!
//! Names are those of the summary where it has them. A bucket is its largest value and the number of
//! values in it; the sum of all values is a string, because it may need more than 64 bits. It is read strictly: a key that is
//! missing, of another type or not known is an error.

use std::collections::BTreeMap;

use linkweir_engine::{Drops, Fault, FaultKind};
use linkweir_http::{HttpStats, StreamStats};
use linkweir_sketch::LogLinear;
use linkweir_wire::{DecodeFaults, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sketch::{HttpTotals, KIND, RunTotals, Sketch, VERSION};

/// What says that it is a sketch, and which.
#[derive(Deserialize)]
struct Head {
    linkweir_sketch: u64,
    kind: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SketchFile {
    linkweir_sketch: u64,
    kind: String,
    started_ns: u64,
    ended_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<HttpObject>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunObject {
    packets: u64,
    bytes: u64,
    // Null where there was no packet, but never left out; so are others of this form below.
    #[serde(deserialize_with = "Option::deserialize")]
    first_ts_ns: Option<u64>,
    #[serde(deserialize_with = "Option::deserialize")]
    last_ts_ns: Option<u64>,
    #[serde(with = "DropsObject")]
    dropped: Drops,
    /// By layer and cause.
    decode_errors: BTreeMap<String, BTreeMap<String, u64>>,
    input_faults: Vec<FaultItem>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Drops", deny_unknown_fields)]
struct DropsObject {
    kernel: u64,
    ring: u64,
    unusable_records: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct FaultItem(#[serde(with = "FaultObject")] Fault);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Fault", deny_unknown_fields)]
struct FaultObject {
    input: String,
    #[serde(deserialize_with = "Option::deserialize")]
    offset: Option<u64>,
    #[serde(with = "FaultKindName")]
    kind: FaultKind,
    message: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FaultKind", rename_all = "lowercase")]
enum FaultKindName {
    Unusable,
    Damaged,
    Interrupted,
    Skipped,
}

#[derive(Serialize, Deserialize)]
struct HttpObject {
    records: u64,
    unsorted: u64,
    sink_losses: u64,
    /// A method is a token (RFC 9110 sec. 9.1): letters, digits and marks of ASCII.
    methods: BTreeMap<String, u64>,
    other_methods: u64,
    status_codes: BTreeMap<u16, u64>,
    response_time_ns: Histogram,
    /// Later than the others: older sketches have none.
    #[serde(default)]
    estimated_time_ns: Histogram,
    #[serde(default)]
    streams: StreamsObject,
    /// All keys left: the counters of the stage, by name.
    #[serde(flatten)]
    counters: BTreeMap<String, Value>,
}

#[derive(Default, Serialize, Deserialize)]
struct StreamsObject {
    first_event_ns: Histogram,
    event_gap_ns: Histogram,
    /// Streams of each host, and those of them that were buffered.
    hosts: BTreeMap<String, (u64, u64)>,
    other_hosts: (u64, u64),
    /// All keys left: the counters, by name.
    #[serde(flatten)]
    counters: BTreeMap<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Histogram {
    sum: String,
    #[serde(deserialize_with = "Option::deserialize")]
    min: Option<u64>,
    #[serde(deserialize_with = "Option::deserialize")]
    max: Option<u64>,
    buckets: Vec<(u64, u64)>,
}

/// The sketch that a file holds, or what is wrong with it.
pub(super) fn from_json(text: &str) -> Result<Sketch, String> {
    let head: Head = serde_json::from_str(text)
        .map_err(|error| format!("this is not a sketch of linkweir: {error}"))?;
    let version = head.linkweir_sketch;
    if version != VERSION {
        return Err(format!(
            "a sketch of version {version}, this linkweir reads version {VERSION}"
        ));
    }
    if head.kind != KIND {
        return Err(format!(
            "a sketch of `{}`, this linkweir merges those of `{KIND}`",
            head.kind
        ));
    }
    let file: SketchFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(Sketch {
        started_ns: file.started_ns,
        ended_ns: file.ended_ns,
        run: file.run.map(RunObject::totals).transpose()?,
        http: file.http.map(HttpObject::totals).transpose()?,
    })
}

impl Sketch {
    /// The object of a sketch's file.
    pub(crate) fn to_json(&self) -> Value {
        let file = SketchFile {
            linkweir_sketch: VERSION,
            kind: KIND.to_owned(),
            started_ns: self.started_ns,
            ended_ns: self.ended_ns,
            run: self.run.as_ref().map(RunObject::of),
            http: self.http.as_ref().map(HttpObject::of),
        };
        // It cannot fail: keys are strings or numbers, and no number is a fraction.
        serde_json::to_value(file).unwrap_or_default()
    }
}

impl RunObject {
    fn of(run: &RunTotals) -> Self {
        let mut decode_errors: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for (layer, cause, count) in run.decode_errors.iter() {
            let causes = decode_errors.entry(layer.to_owned()).or_default();
            causes.insert(cause.to_owned(), count);
        }
        Self {
            packets: run.packets,
            bytes: run.bytes,
            first_ts_ns: run.first.map(Timestamp::as_nanos),
            last_ts_ns: run.last.map(Timestamp::as_nanos),
            dropped: run.drops,
            decode_errors,
            input_faults: run.input_faults.iter().cloned().map(FaultItem).collect(),
        }
    }

    fn totals(self) -> Result<RunTotals, String> {
        let mut decode_errors = DecodeFaults::default();
        for (layer, causes) in &self.decode_errors {
            for (cause, count) in causes {
                if !decode_errors.record_named(layer, cause, *count) {
                    return Err(not_known(&format!("run.decode_errors.{layer}.{cause}")));
                }
            }
        }
        Ok(RunTotals {
            packets: self.packets,
            bytes: self.bytes,
            first: self.first_ts_ns.map(Timestamp::from_nanos),
            last: self.last_ts_ns.map(Timestamp::from_nanos),
            drops: self.dropped,
            decode_errors,
            input_faults: self.input_faults.into_iter().map(|item| item.0).collect(),
        })
    }
}

fn not_known(path: &str) -> String {
    format!("`{path}` is not known to this version of linkweir")
}

impl HttpObject {
    fn of(http: &HttpTotals) -> Self {
        let stats = &http.stats;
        let methods = stats.methods();
        let counters = stats.counters().into_iter();
        Self {
            records: http.records,
            unsorted: http.unsorted,
            sink_losses: http.sink_losses,
            methods: methods
                .map(|(name, count)| (String::from_utf8_lossy(name).into_owned(), count))
                .collect(),
            other_methods: stats.other_methods(),
            status_codes: stats.status_codes().collect(),
            response_time_ns: Histogram::of(&stats.response_time),
            estimated_time_ns: Histogram::of(&stats.estimated_time),
            streams: StreamsObject::of(&stats.streams),
            counters: counters
                .map(|(name, count)| (name.to_owned(), count.into()))
                .collect(),
        }
    }

    fn totals(mut self) -> Result<HttpTotals, String> {
        let mut stats = HttpStats::default();
        let counters = stats.counters_mut();
        read_counters(
            "http",
            counters,
            HttpStats::FIRST_COUNTERS,
            &mut self.counters,
        )?;
        for (method, count) in &self.methods {
            stats.count_methods(method.as_bytes(), *count);
        }
        stats.count_other_methods(self.other_methods);
        for (code, count) in &self.status_codes {
            if !stats.count_statuses(*code, *count) {
                return Err(format!(
                    "`http.status_codes.{code}` is not a valid status code"
                ));
            }
        }
        stats.response_time = self.response_time_ns.read("response_time_ns")?;
        stats.estimated_time = self.estimated_time_ns.read("estimated_time_ns")?;
        stats.streams = self.streams.stats()?;
        Ok(HttpTotals {
            records: self.records,
            unsorted: self.unsorted,
            sink_losses: self.sink_losses,
            stats,
        })
    }
}

/// Reads the counters of an object; the first ones must be there.
fn read_counters<const N: usize>(
    object: &str,
    counters: [(&'static str, &mut u64); N],
    first: usize,
    values: &mut BTreeMap<String, Value>,
) -> Result<(), String> {
    for (at, (name, counter)) in counters.into_iter().enumerate() {
        let value = values.remove(name);
        // A sketch of an earlier version: what this counts was not read then.
        if value.is_none() && at >= first {
            continue;
        }
        let value = value.ok_or_else(|| format!("`{object}.{name}` is missing"))?;
        let wrong = || format!("`{object}.{name}` must be a whole number from 0 on, not {value}");
        *counter = value.as_u64().ok_or_else(wrong)?;
    }
    match values.keys().next() {
        Some(name) => Err(not_known(&format!("{object}.{name}"))),
        None => Ok(()),
    }
}

impl StreamsObject {
    fn of(stats: &StreamStats) -> Self {
        let hosts = stats.hosts().into_iter();
        let counters = stats.counters().into_iter();
        Self {
            first_event_ns: Histogram::of(&stats.first_event),
            event_gap_ns: Histogram::of(&stats.event_gap),
            hosts: hosts
                .map(|(host, streams, buffered)| {
                    let host = String::from_utf8_lossy(host).into_owned();
                    (host, (streams, buffered))
                })
                .collect(),
            other_hosts: stats.other_hosts(),
            counters: counters
                .map(|(name, count)| (name.to_owned(), count.into()))
                .collect(),
        }
    }

    fn stats(mut self) -> Result<StreamStats, String> {
        let mut stats = StreamStats::default();
        read_counters("http.streams", stats.counters_mut(), 0, &mut self.counters)?;
        for (host, (streams, buffered)) in &self.hosts {
            stats.count_host(host.as_bytes(), *streams, *buffered);
        }
        let (streams, buffered) = self.other_hosts;
        stats.count_other_hosts(streams, buffered);
        stats.first_event = self.first_event_ns.read("streams.first_event_ns")?;
        stats.event_gap = self.event_gap_ns.read("streams.event_gap_ns")?;
        Ok(stats)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::of(&LogLinear::default())
    }
}

impl Histogram {
    fn of(times: &LogLinear) -> Self {
        Self {
            sum: times.sum().to_string(),
            min: times.min(),
            max: times.max(),
            buckets: times.buckets().collect(),
        }
    }

    fn read(self, name: &str) -> Result<LogLinear, String> {
        let Self {
            sum,
            min,
            max,
            buckets,
        } = self;
        let sum: u128 = sum
            .parse()
            .map_err(|_| format!("`http.{name}.sum` must be digits, not `{sum}`"))?;
        LogLinear::from_parts(buckets, sum, min.zip(max))
            .filter(|histogram| (histogram.min(), histogram.max()) == (min, max))
            .ok_or_else(|| {
                format!("`http.{name}.buckets` contradict `sum`, `min` and `max` beside them")
            })
    }
}
