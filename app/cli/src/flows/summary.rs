//! The totals of a run: as JSON for programs, on one screen for people.

use std::time::Duration;

use linkweir_engine::RunReport;
use linkweir_flows::FlowsStats;
use linkweir_record::flow::Anomaly;
use linkweir_sink::human::{counted, percent, thousands};
use linkweir_wire::{DecodeFaults, FragmentStats};
use serde_json::{Map, Value, json};

use crate::screen::{listed, lost, rows};
use crate::totals;

/// Everything a summary is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals<'a> {
    pub(crate) report: &'a RunReport,
    pub(crate) stats: &'a FlowsStats,
    pub(crate) faults: &'a DecodeFaults,
    pub(crate) fragments: &'a FragmentStats,
    pub(crate) elapsed: Duration,
    /// The share of each worker, where there were several.
    pub(crate) workers: &'a [WorkerTotals],
}

/// What one of several workers did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerTotals {
    packets: u64,
    bytes: u64,
    flows: u64,
    dropped: u64,
}

impl WorkerTotals {
    pub(crate) const fn new(report: &RunReport, stats: &FlowsStats) -> Self {
        Self {
            packets: report.packets,
            bytes: report.bytes,
            flows: flows(stats),
            dropped: report.drops.kernel + report.drops.ring,
        }
    }
}

const fn flows(stats: &FlowsStats) -> u64 {
    stats.tcp_complete + stats.tcp_incomplete + stats.udp
}

impl Totals<'_> {
    /// Losses by cause, without those of outputs; every cause is there, also with zero.
    pub(crate) const fn drops(&self) -> [(&'static str, u64); 4] {
        let drops = self.report.drops;
        [
            ("kernel", drops.kernel),
            ("ring", drops.ring),
            ("unusable_records", drops.unusable_records),
            ("table_full", self.stats.evicted),
        ]
    }

    /// Inputs of which a part could not be read. An interface that went and came back is none.
    pub(crate) fn damaged(&self) -> u64 {
        totals::damaged(self.report)
    }

    /// What was lost, for people.
    fn lost(&self) -> Vec<(String, u64)> {
        totals::lost(self.report, &self.drops(), self.faults, self.fragments)
    }

    /// Whether anything was lost.
    pub(crate) fn is_lossy(&self) -> bool {
        !self.lost().is_empty() || totals::unread(self.report).next().is_some()
    }

    /// The JSON object of `--summary`.
    pub(crate) fn to_json(self) -> Value {
        let mut json = totals::common(self.report, self.elapsed, &self.drops(), self.faults);
        let workers: Vec<Value> = self
            .workers
            .iter()
            .map(|worker| {
                json!({
                    "packets": worker.packets,
                    "bytes": worker.bytes,
                    "flows": worker.flows,
                    "dropped": worker.dropped,
                })
            })
            .collect();
        json.insert("workers".to_owned(), workers.into());
        json.insert(
            "fragments".to_owned(),
            totals::fragments_json(self.fragments),
        );
        json.insert("flows".to_owned(), self.flows());
        Value::Object(json)
    }

    fn flows(&self) -> Value {
        let stats = self.stats;
        let classes: Map<String, Value> = classes(stats)
            .into_iter()
            .map(|(name, count)| (name, count.into()))
            .collect();
        json!({
            "tcp_complete": stats.tcp_complete,
            "tcp_incomplete": stats.tcp_incomplete,
            "tcp_midstream": stats.tcp_midstream,
            "udp": stats.udp,
            "partial_records": stats.partial,
            "peak_flows": stats.peak_flows,
            "evicted": stats.evicted,
            "packets": stats.packets,
            "bytes": stats.bytes,
            "retransmissions": classes,
            "bytes_retx": stats.bytes_retx,
            "fragments": stats.fragments,
            "other_packets": stats.other,
            "impossible_sequences": stats.impossible_sequences,
            "forgotten_segments": stats.forgotten_segments,
            "layer7_refused": stats.layer7_refused,
        })
    }

    /// One screen for people; what was lost comes first.
    pub(crate) fn to_screen(self) -> String {
        let (report, stats) = (self.report, self.stats);
        let mut lines = vec![
            ("lost", lost(self.lost(), 6)),
            totals::read(report, self.elapsed),
        ];
        lines.extend(totals::not_read(report));
        totals::tell_undecoded(self.faults, report.packets, &mut lines);
        lines.extend(totals::fragments(self.fragments));
        lines.extend([
            (
                "TCP flows",
                format!(
                    "{} complete, {} incomplete ({} met in the middle)",
                    thousands(stats.tcp_complete),
                    thousands(stats.tcp_incomplete),
                    thousands(stats.tcp_midstream)
                ),
            ),
            ("UDP flows", thousands(stats.udp)),
            (
                "at once",
                format!("{} at most", counted(stats.peak_flows, "flow")),
            ),
            (
                "in flows",
                format!(
                    "{}, {}; not: {}, {}",
                    counted(stats.packets, "packet"),
                    counted(stats.bytes, "byte"),
                    counted(stats.fragments, "fragment"),
                    counted(stats.other, "other packet")
                ),
            ),
        ]);
        let out_of_sequence = Anomaly::ALL.into_iter().zip(stats.anomalies);
        let out_of_sequence: Vec<(String, u64)> = out_of_sequence
            .filter(|(_, count)| *count > 0)
            .map(|(class, count)| (words(class).to_owned(), count))
            .collect();
        if !out_of_sequence.is_empty() {
            let text = listed(out_of_sequence, Anomaly::COUNT);
            lines.push(("out of sequence", text));
        }
        if stats.impossible_sequences > 0 {
            let count = counted(stats.impossible_sequences, "segment");
            lines.push((
                "impossible",
                format!("{count} with numbers of no connection"),
            ));
        }
        if !self.workers.is_empty() {
            lines.push(("workers", self.shares()));
        }
        rows(&lines)
    }

    /// Each worker's share of packets and flows.
    fn shares(self) -> String {
        let all = flows(self.stats);
        let shares: Vec<String> = self
            .workers
            .iter()
            .map(|worker| {
                format!(
                    "{} ({})",
                    percent(worker.packets, self.report.packets),
                    percent(worker.flows, all)
                )
            })
            .collect();
        format!("packets (flows): {}", shares.join("  "))
    }
}

/// A class for people.
const fn words(class: Anomaly) -> &'static str {
    match class {
        Anomaly::Rto => "retransmitted by timer",
        Anomaly::FastRetransmit => "retransmitted fast",
        Anomaly::Reordering => "reordered",
        Anomaly::NetworkDuplicate => "duplicated by the network",
        Anomaly::Unknown => "unknown",
        Anomaly::FlowControl => "window probes and keep-alives",
        Anomaly::UnnecessaryRto => "retransmitted by timer in vain",
        Anomaly::UnnecessaryFastRetransmit => "retransmitted fast in vain",
        Anomaly::TailLossProbe => "tail loss probes",
    }
}

/// Out-of-sequence segments by class.
fn classes(stats: &FlowsStats) -> Vec<(String, u64)> {
    Anomaly::ALL
        .into_iter()
        .zip(stats.anomalies)
        .map(|(class, count)| (class.as_str().to_owned(), count))
        .collect()
}
