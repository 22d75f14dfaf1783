//! What the totals of every passive command have in common.

use std::time::Duration;

use linkweir_engine::RunReport;
use linkweir_wire::{DecodeFaults, Timestamp};
use serde_json::{Map, Value, json};

/// Inputs of which a part could not be read. An interface that went and came back is none, for what
/// passed meanwhile was never there to be counted, nor is a directory's file that is no capture.
pub(crate) fn damaged(report: &RunReport) -> u64 {
    let faults = report.faults.iter();
    faults
        .filter(|fault| fault.kind.is_loss())
        .count() as u64
}

/// The keys of `--summary` that do not depend on the command; `drops` are losses by cause.
pub(crate) fn common(
    report: &RunReport,
    elapsed: Duration,
    drops: &[(&'static str, u64)],
    faults: &DecodeFaults,
) -> Map<String, Value> {
    let nanos = |time: Option<Timestamp>| time.map(Timestamp::as_nanos);
    let dropped: Map<String, Value> = drops
        .iter()
        .map(|(cause, count)| ((*cause).to_owned(), (*count).into()))
        .collect();
    let mut errors = Map::new();
    for (layer, cause, count) in faults.iter() {
        let layer = errors
            .entry(layer)
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(causes) = layer {
            causes.insert(cause.to_owned(), count.into());
        }
    }
    let inputs: Vec<Value> = report
        .faults
        .iter()
        .map(|fault| json!({ "input": fault.input, "offset": fault.offset, "message": fault.message }))
        .collect();
    let mut totals = Map::new();
    for (key, value) in [
        ("packets", json!(report.packets)),
        ("bytes", json!(report.bytes)),
        ("first_ts_ns", json!(nanos(report.first))),
        ("last_ts_ns", json!(nanos(report.last))),
        ("elapsed_s", json!(elapsed.as_secs_f64())),
        ("records", json!(report.records)),
        ("dropped", Value::Object(dropped)),
        ("decode_errors", Value::Object(errors)),
        ("input_faults", Value::Array(inputs)),
    ] {
        totals.insert(key.to_owned(), value);
    }
    totals
}
