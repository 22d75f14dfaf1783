//! What the totals of every passive command have in common.

use std::time::Duration;

use linkweir_engine::{Fault, FaultKind, RunReport};
use linkweir_sink::human::{counted, scaled, span, thousands};
use linkweir_wire::{DecodeFaults, FragmentStats, Timestamp};
use serde_json::{Map, Value, json};

use crate::exit::{safe, warn};
use crate::outputs;
use crate::screen::listed;

/// Inputs of which a part could not be read. An interface that went and came back is none, for what
/// passed meanwhile was never there to be counted, nor is a directory's file that is no capture, nor an
/// input of which nothing was read ([`unread`]).
pub(crate) fn damaged(report: &RunReport) -> u64 {
    let faults = report.faults.iter();
    faults
        .filter(|fault| fault.kind == FaultKind::Damaged)
        .count() as u64
}

/// Inputs of which nothing could be read: they are not there, or no captures.
pub(crate) fn unread(report: &RunReport) -> impl Iterator<Item = &Fault> {
    let faults = report.faults.iter();
    faults.filter(|fault| fault.kind == FaultKind::Unusable)
}

/// The row of inputs that were not read, and why, where there are any.
pub(crate) fn not_read(report: &RunReport) -> Option<(&'static str, String)> {
    const SHOWN: usize = 3;
    let mut words: Vec<String> = unread(report)
        .take(SHOWN)
        .map(|fault| format!("{}: {}", fault.input, fault.message))
        .collect();
    let more = unread(report).count().saturating_sub(SHOWN);
    if more > 0 {
        words.push(format!("{} more", thousands(more as u64)));
    }
    let text = words.join("; ");
    (!text.is_empty()).then(|| ("not read", safe(&text)))
}

/// The row of how much was read, and how fast.
pub(crate) fn read(report: &RunReport, elapsed: Duration) -> (&'static str, String) {
    let capture = match (report.first, report.last) {
        (Some(first), Some(last)) => span(last.nanos_since(first)),
        _ => "-".to_owned(),
    };
    let text = format!(
        "{}, {}, {capture} of capture in {} ({}, {})",
        counted(report.packets, "packet"),
        counted(report.bytes, "byte"),
        span(linkweir_wire::nanos(elapsed)),
        rate(report.packets, "packets/s", elapsed),
        rate(report.bytes.saturating_mul(8), "bit/s", elapsed),
    );
    ("read", text)
}

/// So many in this time, in a second.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(crate) fn rate(number: u64, unit: &str, elapsed: Duration) -> String {
    scaled(number as f64 / elapsed.as_secs_f64().max(1e-9), unit)
}

/// Adds the row of what did not decode: first where it is most of `packets`, for then everything else is
/// about the rest.
pub(crate) fn tell_undecoded(
    faults: &DecodeFaults,
    packets: u64,
    lines: &mut Vec<(&'static str, String)>,
) {
    let count = faults.undecoded();
    if count > 0 {
        let is_most = count > packets / 2;
        let place = if is_most { 0 } else { lines.len() };
        lines.insert(place, ("not decoded", listed(undecoded(faults), 5)));
    }
}

/// What did not decode, by layer and cause; frames of a link type that is not decoded by its name.
fn undecoded(faults: &DecodeFaults) -> Vec<(String, u64)> {
    let mut named = 0;
    let mut all: Vec<_> = faults
        .link_types()
        .inspect(|(_, count)| named += count)
        .map(|(link, count)| (link.to_string(), count))
        .collect();
    for (layer, cause, count) in faults.iter_undecoded() {
        // Those of link types beyond the ones that are told apart stay what they are.
        let rest = match cause {
            UNSUPPORTED => count.saturating_sub(std::mem::take(&mut named)),
            _ => count,
        };
        if rest > 0 {
            all.push((format!("{layer} {cause}"), rest));
        }
    }
    all
}

/// The cause under which frames of other link types are counted.
const UNSUPPORTED: &str = "unsupported_link_type";

/// Packets of a link type that is not decoded.
fn of_unknown_links(faults: &DecodeFaults) -> u64 {
    let causes = faults.iter().filter(|(_, cause, _)| *cause == UNSUPPORTED);
    causes.map(|(_, _, count)| count).sum()
}

/// Says which link types were met that are not decoded.
pub(crate) fn warn_of_link_types(faults: &DecodeFaults) {
    let count = of_unknown_links(faults);
    if count == 0 {
        return;
    }
    let names: Vec<String> = faults
        .link_types()
        .map(|(link, count)| match link.name() {
            Some(name) => format!("{name} ({}, {})", link.0, thousands(count)),
            None => format!("{link} ({})", thousands(count)),
        })
        .collect();
    warn(&format!(
        "{} of a link type that is not decoded: {}",
        counted(count, "packet"),
        names.join(", ")
    ));
}

/// What became of IP fragments, where there were any.
pub(crate) fn fragments(stats: &FragmentStats) -> Option<(&'static str, String)> {
    (stats.fragments + stats.malformed > 0).then(|| {
        let named = stats.counters().into_iter().skip(2);
        let faults: Vec<String> = named
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{} {name}", thousands(count)))
            .collect();
        let mut text = format!(
            "{}; {} reassembled",
            thousands(stats.fragments),
            counted(stats.packets, "packet")
        );
        if !faults.is_empty() {
            text = format!("{text}; {}", faults.join(", "));
        }
        ("fragments", text)
    })
}

/// The counts of fragments for `--summary`, those that are not zero.
pub(crate) fn fragments_json(stats: &FragmentStats) -> Value {
    let counters = stats.counters().into_iter();
    Value::Object(
        counters
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), count.into()))
            .collect(),
    )
}

/// What was lost, for people: `drops` by cause, packets that are not whole, inputs, and what did not reach
/// an output. Where there is any, a run ends with 1. Packets of a link type that is not decoded are lost
/// where there are no others.
pub(crate) fn lost(
    report: &RunReport,
    drops: &[(&'static str, u64)],
    faults: &DecodeFaults,
    fragments: &FragmentStats,
) -> Vec<(String, u64)> {
    let unknown = of_unknown_links(faults);
    let others = [
        (
            "not decoded",
            if unknown == report.packets {
                unknown
            } else {
                0
            },
        ),
        ("packets with missing fragments", fragments.incomplete),
        ("packets with evicted fragments", fragments.evicted),
        ("damaged inputs", damaged(report)),
    ];
    let causes = drops.iter().copied().chain(others);
    let causes = causes.filter(|(_, count)| *count > 0);
    let causes = causes.map(|(cause, count)| (cause.to_owned(), count));
    causes.chain(outputs::lost(&report.losses)).collect()
}

/// The keys of `--summary` that do not depend on the command; `drops` are losses by cause, without those
/// of outputs.
pub(crate) fn common(
    report: &RunReport,
    elapsed: Duration,
    drops: &[(&'static str, u64)],
    faults: &DecodeFaults,
) -> Map<String, Value> {
    let nanos = |time: Option<Timestamp>| time.map(Timestamp::as_nanos);
    let mut dropped: Map<String, Value> = drops
        .iter()
        .map(|(cause, count)| ((*cause).to_owned(), (*count).into()))
        .collect();
    dropped.insert("sink".to_owned(), outputs::by_name(&report.losses));
    let mut errors = Map::new();
    for (layer, cause, count) in faults.iter() {
        let layer = errors
            .entry(layer)
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(causes) = layer {
            causes.insert(cause.to_owned(), count.into());
        }
    }
    let links: Map<String, Value> = faults
        .link_types()
        .map(|(link, count)| (link.to_string(), count.into()))
        .collect();
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
        ("undecoded_link_types", Value::Object(links)),
        ("input_faults", Value::Array(inputs)),
    ] {
        totals.insert(key.to_owned(), value);
    }
    totals
}
