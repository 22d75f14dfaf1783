//! What `linkweir flows` counts, in the totals of a run.

use linkweir_flows::{FlowsStage, FlowsStats, UnknownFlows};
use linkweir_record::flow::Anomaly;
use linkweir_record::human::{counted, thousands};
use serde_json::{Value, json};

use super::unknown;
use crate::passive::totals::{Counters, Row, Totals, object};
use crate::screen::listed;

/// What stages have counted together.
#[derive(Debug, Default)]
pub(crate) struct FlowsCounters {
    stats: FlowsStats,
    /// Where it is asked for.
    unknown: Option<UnknownFlows>,
}

impl FlowsCounters {
    /// Adds what a stage has counted.
    pub(super) fn merge(&mut self, stage: &FlowsStage) {
        self.stats.merge(&stage.stats());
        match (&mut self.unknown, stage.unknown()) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine, theirs) => *mine = mine.take().or_else(|| theirs.cloned()),
        }
    }
}

impl Counters for FlowsCounters {
    const KEY: &'static str = "flows";
    const TITLE: &'static str = "TCP and UDP flows";

    fn evicted(&self) -> Option<u64> {
        Some(self.stats.evicted + self.stats.queries_evicted)
    }

    fn of_worker(&self) -> Vec<(&'static str, u64)> {
        let stats = &self.stats;
        vec![(
            "flows",
            stats.tcp_complete + stats.tcp_incomplete + stats.udp,
        )]
    }

    fn to_json(totals: &Totals<'_, Self>) -> Value {
        let stats = &totals.counters.stats;
        let classes = Anomaly::ALL.into_iter().zip(stats.anomalies);
        let classes = object(classes.map(|(class, count)| (class.as_str(), count)));
        let mut object = json!({
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
            "fragments": totals.fragments.lost,
            "other_packets": stats.other,
            "impossible_sequences": stats.impossible_sequences,
            "forgotten_segments": stats.forgotten_segments,
            "layer7_refused": stats.layer7_refused,
            "queries_evicted": stats.queries_evicted,
        });
        if let (Some(object), Some(unknown)) = (object.as_object_mut(), &totals.counters.unknown) {
            object.insert("unknown".to_owned(), unknown::to_json(unknown));
        }
        object
    }

    fn table(totals: &Totals<'_, Self>) -> Option<String> {
        unknown::table(totals.counters.unknown.as_ref()?)
    }

    fn add_rows(totals: &Totals<'_, Self>, rows: &mut Vec<Row>) {
        let stats = &totals.counters.stats;
        rows.extend([
            (
                "TCP flows",
                format!(
                    "{} complete, {} incomplete ({} midstream)",
                    thousands(stats.tcp_complete),
                    thousands(stats.tcp_incomplete),
                    thousands(stats.tcp_midstream)
                ),
            ),
            ("UDP flows", thousands(stats.udp)),
            (
                "peak",
                format!("{} at once", counted(stats.peak_flows, "flow")),
            ),
            (
                "in flows",
                format!(
                    "{}, {}; not: {}, {}",
                    counted(stats.packets, "packet"),
                    counted(stats.bytes, "byte"),
                    counted(totals.fragments.lost, "fragment"),
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
            rows.push(("out of sequence", text));
        }
        if stats.impossible_sequences > 0 {
            let count = counted(stats.impossible_sequences, "segment");
            rows.push((
                "impossible",
                format!("{count} with numbers of no connection"),
            ));
        }
        let unknown = totals.counters.unknown.as_ref();
        rows.extend(unknown.map(|unknown| ("unknown", unknown::row(unknown))));
    }

    fn notes(totals: &Totals<'_, Self>) -> Vec<(&'static str, u64)> {
        let stats = &totals.counters.stats;
        vec![
            ("TCP flows, complete", stats.tcp_complete),
            ("TCP flows, incomplete", stats.tcp_incomplete),
            ("UDP flows", stats.udp),
            ("maximum of concurrent flows", stats.peak_flows),
            ("fragments of no flow", totals.fragments.lost),
            ("impossible sequence numbers", stats.impossible_sequences),
        ]
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
