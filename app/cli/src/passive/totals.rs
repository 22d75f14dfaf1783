//! The totals of a run: as JSON for programs, on one screen for people.

use std::time::Duration;

use linkweir_engine::{Fault, FaultKind, RunReport, SampleCounts};
use linkweir_record::human::{counted, percent, scaled, span, thousands};
use linkweir_wire::{DecodeFaults, FragmentStats, Timestamp};
use serde_json::{Map, Value, json};

use crate::exit::{safe, warn};
use crate::outputs;
use crate::packets::PacketTotals;
use crate::screen::{self, listed};

/// A row of the screen: label and text.
pub(crate) type Row = (&'static str, String);

/// What the stages of a command count.
pub(crate) trait Counters: Default {
    /// The key of its object in the summary.
    const KEY: &'static str;
    /// The heading of its report.
    const TITLE: &'static str;

    /// Entries that left a full table, where the command has one.
    fn evicted(&self) -> Option<u64> {
        None
    }

    /// What the summary says of each worker; the last one is on the screen too.
    fn of_worker(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The object of the summary.
    fn to_json(totals: &Totals<'_, Self>) -> Value;

    /// Adds rows to the screen, behind those of what was read.
    fn add_rows(totals: &Totals<'_, Self>, rows: &mut Vec<Row>);

    /// What stands below the rows.
    fn table(_totals: &Totals<'_, Self>) -> Option<String> {
        None
    }

    /// What the report lists.
    fn notes(_totals: &Totals<'_, Self>) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// What one of several workers did.
#[derive(Debug)]
pub(crate) struct WorkerTotals {
    packets: u64,
    bytes: u64,
    dropped: u64,
    /// Nothing where workers took turns, and counted together.
    counted: Vec<(&'static str, u64)>,
}

impl WorkerTotals {
    pub(crate) const fn new(report: &RunReport, counted: Vec<(&'static str, u64)>) -> Self {
        Self {
            packets: report.packets,
            bytes: report.bytes,
            dropped: report.drops.kernel + report.drops.ring,
            counted,
        }
    }

    fn to_json(&self) -> Value {
        let read = [
            ("packets", self.packets),
            ("bytes", self.bytes),
            ("dropped", self.dropped),
        ];
        object(read.into_iter().chain(self.counted.iter().copied()))
    }
}

/// Everything a summary is made of.
#[derive(Debug)]
pub(crate) struct Totals<'a, N> {
    pub(crate) report: &'a RunReport,
    pub(crate) counters: &'a N,
    pub(crate) faults: &'a DecodeFaults,
    pub(crate) fragments: &'a FragmentStats,
    pub(crate) elapsed: Duration,
    /// The share of each worker, where there were several.
    pub(crate) workers: &'a [WorkerTotals],
    /// The packets of `--pcap-out`.
    pub(crate) packets: Option<&'a PacketTotals>,
}

impl<N: Counters> Totals<'_, N> {
    /// Losses by cause, without those of outputs; every cause is there, also with zero.
    pub(crate) fn drops(&self) -> Vec<(&'static str, u64)> {
        let drops = self.report.drops;
        let read = [
            ("kernel", drops.kernel),
            ("ring", drops.ring),
            ("unusable_records", drops.unusable_records),
        ];
        let evicted = self.counters.evicted();
        let evicted = evicted.map(|count| ("table_full", count));
        read.into_iter().chain(evicted).collect()
    }

    fn lost(&self) -> Vec<(String, u64)> {
        lost(self.report, &self.drops(), self.faults, self.fragments)
    }

    /// Whether anything was lost.
    pub(crate) fn is_lossy(&self) -> bool {
        !self.lost().is_empty() || unread(self.report).next().is_some()
    }

    /// The JSON object of `--summary`.
    pub(crate) fn to_json(&self) -> Value {
        let report = self.report;
        let mut json = common(self.report, self.elapsed, &self.drops(), self.faults);
        if !self.counters.of_worker().is_empty() {
            let workers: Vec<Value> = self.workers.iter().map(WorkerTotals::to_json).collect();
            json.insert("workers".to_owned(), workers.into());
        }
        json.extend(interfaces_json(report));
        json.insert("fragments".to_owned(), fragments_json(self.fragments));
        if let Some(sample) = report.sample {
            json.insert("sampled".to_owned(), sample.of.get().into());
            json.insert("sampled_records".to_owned(), sample.taken.into());
            json.insert("sampled_estimate".to_owned(), sample.estimate().into());
            json.insert("sampled_error".to_owned(), sample.standard_error().into());
        }
        if report.left_out > 0 {
            json.insert("left_out_records".to_owned(), report.left_out.into());
        }
        if let Some(packets) = self.packets {
            json.insert("pcap_out".to_owned(), packets.to_json());
        }
        json.insert(N::KEY.to_owned(), N::to_json(self));
        Value::Object(json)
    }

    /// One screen for people; what was lost comes first.
    pub(crate) fn to_screen(&self) -> String {
        let report = self.report;
        let mut rows = vec![
            ("lost", screen::lost(self.lost(), 6)),
            read(report, self.elapsed),
        ];
        rows.extend(interfaces(report));
        rows.extend(not_read(report));
        add_undecoded(self.faults, report.packets, &mut rows);
        rows.extend(fragments(self.fragments));
        N::add_rows(self, &mut rows);
        rows.extend(report.sample.map(|sample| sampled(sample, report.records)));
        rows.extend(left_out(report));
        rows.extend(self.packets.map(PacketTotals::row));
        rows.extend(self.shares());
        let mut screen = screen::rows(&rows);
        if let Some(table) = N::table(self) {
            screen.extend(["\n", table.as_str()]);
        }
        screen
    }

    /// Each worker's share of packets and of what it counted last.
    fn shares(&self) -> Option<Row> {
        let (name, all) = self.counters.of_worker().pop()?;
        let has_counted = self.workers.iter().all(|worker| !worker.counted.is_empty());
        let shares = self.workers.iter().map(|worker| {
            let packets = percent(worker.packets, self.report.packets);
            match worker.counted.last() {
                Some((_, count)) => format!("{packets} ({})", percent(*count, all)),
                None => packets,
            }
        });
        let shares = shares.collect::<Vec<_>>().join("  ");
        let what = if has_counted {
            format!("packets ({name})")
        } else {
            "packets".to_owned()
        };
        (!shares.is_empty()).then(|| ("workers", format!("{what}: {shares}")))
    }
}

/// A JSON object of counts.
pub(crate) fn object<S: Into<String>>(counts: impl Iterator<Item = (S, u64)>) -> Value {
    Value::Object(
        counts
            .map(|(name, count)| (name.into(), count.into()))
            .collect(),
    )
}

/// Inputs of which a part could not be read. An interface that went and came back is none, for what
/// passed meanwhile was never there to be counted, nor is a directory's file that is not a capture, nor an
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
pub(crate) fn not_read(report: &RunReport) -> Option<Row> {
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
pub(crate) fn read(report: &RunReport, elapsed: Duration) -> Row {
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

/// The row of what came through each interface, where there are several.
pub(crate) fn interfaces(report: &RunReport) -> Option<Row> {
    let each = report.inputs.iter().map(|one| {
        let (name, packets) = (safe(&one.name), counted(one.packets, "packet"));
        let lost = one.drops.kernel + one.drops.ring + one.drops.unusable_records;
        format!("{name}: {packets}, {} dropped", thousands(lost))
    });
    let text = each.collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then_some(("interfaces", text))
}

/// The same for `--summary`: its key, and an object for each interface.
pub(crate) fn interfaces_json(report: &RunReport) -> Option<(String, Value)> {
    let each = report.inputs.iter().map(|one| {
        json!({
            "name": one.name,
            "packets": one.packets,
            "bytes": one.bytes,
            "dropped": {
                "kernel": one.drops.kernel,
                "ring": one.drops.ring,
                "unusable_records": one.drops.unusable_records,
            },
        })
    });
    let each = each.collect::<Vec<_>>();
    (!each.is_empty()).then(|| ("interfaces".to_owned(), each.into()))
}

/// So many in this time, in a second.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(crate) fn rate(number: u64, unit: &str, elapsed: Duration) -> String {
    scaled(number as f64 / elapsed.as_secs_f64().max(1e-9), unit)
}

/// Adds the row of what did not decode: first where it is most of `packets`, for then everything else is
/// about the rest.
pub(crate) fn add_undecoded(faults: &DecodeFaults, packets: u64, rows: &mut Vec<Row>) {
    let count = faults.undecoded();
    if count > 0 {
        let is_most = count > packets / 2;
        let place = if is_most { 0 } else { rows.len() };
        rows.insert(place, ("not decoded", listed(undecoded(faults), 5)));
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
        // Those of link types beyond the ones that are distinguished stay what they are.
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
pub(crate) fn fragments(stats: &FragmentStats) -> Option<Row> {
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
    object(counters.filter(|(_, count)| *count > 0))
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

/// The row of records that were not to be written.
fn left_out(report: &RunReport) -> Option<Row> {
    let (out, all) = (report.left_out, report.records);
    let text = format!("{} of {}", thousands(out), counted(all, "record"));
    (out > 0).then_some(("left out", text))
}

/// How many of the records the sample has.
fn sampled(sample: SampleCounts, records: u64) -> Row {
    let [of, taken, estimate] =
        [u64::from(sample.of.get()), sample.taken, sample.estimate()].map(thousands);
    let text = format!(
        "1 in {of}: {taken} of {} written; estimate {estimate} ± {:.0}",
        counted(records, "record"),
        sample.standard_error()
    );
    ("sample", text)
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
    let links = faults.link_types();
    let links = object(links.map(|(link, count)| (link.to_string(), count)));
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
        ("undecoded_link_types", links),
        ("input_faults", faults_json(report)),
    ] {
        totals.insert(key.to_owned(), value);
    }
    totals
}

/// The faults of the inputs for `--summary`.
pub(crate) fn faults_json(report: &RunReport) -> Value {
    let faults = report.faults.iter();
    faults
        .map(|fault| json!({ "input": fault.input, "offset": fault.offset, "message": fault.message }))
        .collect()
}
