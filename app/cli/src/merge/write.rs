//! Writes sketches.
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
//! values in it; the sum of all values is a text, because it may need more than 64 bits.

use linkweir_engine::{Fault, FaultKind};
use linkweir_sketch::LogLinear;
use linkweir_wire::Timestamp;
use serde_json::{Map, Value, json};

use super::sketch::{HttpTotals, KIND, RunTotals, Sketch, VERSION};

impl Sketch {
    /// The object of a sketch's file.
    pub(crate) fn to_json(&self) -> Value {
        let mut all = Map::new();
        all.insert("linkweir_sketch".to_owned(), VERSION.into());
        all.insert("kind".to_owned(), KIND.into());
        all.insert("started_ns".to_owned(), self.started_ns.into());
        all.insert("ended_ns".to_owned(), self.ended_ns.into());
        if let Some(run) = &self.run {
            all.insert("run".to_owned(), run_json(run));
        }
        if let Some(http) = &self.http {
            all.insert("http".to_owned(), http_json(http));
        }
        Value::Object(all)
    }
}

fn run_json(run: &RunTotals) -> Value {
    let nanos = |time: Option<Timestamp>| time.map(Timestamp::as_nanos);
    let mut errors = Map::new();
    for (layer, cause, count) in run.decode_errors.iter() {
        let layer = errors.entry(layer).or_insert_with(|| json!({}));
        if let Value::Object(causes) = layer {
            causes.insert(cause.to_owned(), count.into());
        }
    }
    json!({
        "packets": run.packets,
        "bytes": run.bytes,
        "first_ts_ns": nanos(run.first),
        "last_ts_ns": nanos(run.last),
        "dropped": {
            "kernel": run.drops.kernel,
            "ring": run.drops.ring,
            "unusable_records": run.drops.unusable_records,
        },
        "decode_errors": errors,
        "input_faults": run.input_faults.iter().map(fault_json).collect::<Vec<_>>(),
    })
}

fn fault_json(fault: &Fault) -> Value {
    json!({
        "input": fault.input,
        "offset": fault.offset,
        "kind": kind_name(fault.kind),
        "message": fault.message,
    })
}

/// The name of a kind of fault.
pub(super) const fn kind_name(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Unusable => "unusable",
        FaultKind::Damaged => "damaged",
        FaultKind::Interrupted => "interrupted",
        FaultKind::Skipped => "skipped",
    }
}

fn http_json(http: &HttpTotals) -> Value {
    let stats = &http.stats;
    let mut all = Map::new();
    all.insert("records".to_owned(), http.records.into());
    all.insert("unsorted".to_owned(), http.unsorted.into());
    all.insert("sink_losses".to_owned(), http.sink_losses.into());
    for (name, count) in stats.counters() {
        all.insert(name.to_owned(), count.into());
    }
    // A method is a token (RFC 9110 sec. 9.1): letters, digits and marks of ASCII.
    let methods: Map<String, Value> = stats
        .methods()
        .map(|(name, count)| (String::from_utf8_lossy(name).into_owned(), count.into()))
        .collect();
    let codes: Map<String, Value> = stats
        .status_codes()
        .map(|(code, count)| (code.to_string(), count.into()))
        .collect();
    all.insert("methods".to_owned(), methods.into());
    all.insert("other_methods".to_owned(), stats.other_methods().into());
    all.insert("status_codes".to_owned(), codes.into());
    let times = histogram_json(&stats.response_time);
    all.insert("response_time_ns".to_owned(), times);
    Value::Object(all)
}

fn histogram_json(histogram: &LogLinear) -> Value {
    json!({
        "sum": histogram.sum().to_string(),
        "min": histogram.min(),
        "max": histogram.max(),
        "buckets": histogram.buckets().map(|(upper, count)| json!([upper, count])).collect::<Vec<_>>(),
    })
}
