//! Flows: what travels.

use std::collections::BTreeMap;

use linkweir_proto::application::Application as Protocol;
use linkweir_record::FlowKind;
use linkweir_record::flow::Anomaly;
use linkweir_sketch::LogLinear;
use serde::{Deserialize, Serialize};

use super::wire::{Grown, Small, are_bounded, is_zero};
use super::{Cause, Mergeable};
use crate::api::{Application, FlowEnds, FlowOf};
use crate::buckets::Buckets;
use crate::flow::{FlowCounts, FlowKeyed, FlowSeries};
use crate::flow_metrics::{HALVES, RTT_BOUNDS};

/// What has no name here, and what a probe of a later version has a name for.
const UNKNOWN: &str = "unknown";
/// Applications of a message at most.
const MAX_APPLICATIONS: usize = 256;
/// The name of the series that is no part of the path.
const HANDSHAKE: &str = "handshake";

type Times = Buckets<{ RTT_BOUNDS.len() }>;

/// Counts of an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireCounts {
    new_flows: u64,
    ended_tcp: u64,
    ended_udp: u64,
    midstream: u64,
    ends: FlowEnds,
    packets: u64,
    bytes: u64,
    data_segments: u64,
    retransmissions: u64,
    payload_bytes: u64,
    retransmitted_bytes: u64,
    out_of_order: u64,
    zero_windows: u64,
    /// By the names of the classes, those that occurred.
    anomalies: BTreeMap<String, u64>,
    applications: BTreeMap<String, Application>,
}

/// What is kept with a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireKeyed {
    #[serde(default, skip_serializing_if = "is_zero")]
    flows: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    reset: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    unanswered: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    data_segments: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    retransmissions: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rtt: Option<Small>,
}

/// Round-trip times of a part of the path, or times of handshakes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireSeries {
    of: String,
    times: Grown,
}

/// The histograms of `/metrics` at one moment.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    /// In the order of the parts of the path.
    rtt: [Times; HALVES.len()],
    handshake: Times,
}

impl WireCounts {
    fn are_sound(&self) -> bool {
        let ends = self.ends.by_state().map(|(_, count)| count);
        let applications = self.applications.values();
        are_bounded(&ends)
            && are_bounded(&[
                self.new_flows,
                self.ended_tcp,
                self.ended_udp,
                self.midstream,
                self.packets,
                self.bytes,
                self.data_segments,
                self.retransmissions,
                self.payload_bytes,
                self.retransmitted_bytes,
                self.out_of_order,
                self.zero_windows,
            ])
            && self.anomalies.values().all(|count| are_bounded(&[*count]))
            && self.applications.len() <= MAX_APPLICATIONS
            && { applications }.all(|one| are_bounded(&[one.flows, one.bytes]))
    }
}

impl Mergeable for FlowKind {
    type WireCounts = WireCounts;
    type WireKeyed = WireKeyed;
    type WireSeries = WireSeries;
    type Marks = Marks;

    fn send_counts(counts: &FlowCounts) -> WireCounts {
        let all = &counts.all;
        let anomalies = Anomaly::ALL.iter().zip(&all.anomalies);
        let applications = counts.applications.iter();
        WireCounts {
            new_flows: all.new_flows,
            ended_tcp: all.ended_tcp,
            ended_udp: all.ended_udp,
            midstream: all.midstream,
            ends: all.ends,
            packets: all.packets,
            bytes: all.bytes,
            data_segments: all.data_segments,
            retransmissions: all.retransmissions,
            payload_bytes: all.payload_bytes,
            retransmitted_bytes: all.retransmitted_bytes,
            out_of_order: all.out_of_order,
            zero_windows: all.zero_windows,
            anomalies: anomalies
                .filter(|(_, count)| **count > 0)
                .map(|(class, count)| (class.as_str().to_owned(), *count))
                .collect(),
            applications: applications
                .map(|(name, sums)| ((*name).to_owned(), *sums))
                .collect(),
        }
    }

    fn take_counts(sent: &WireCounts) -> Result<FlowCounts, Cause> {
        if !sent.are_sound() {
            return Err(Cause::Contradictory);
        }
        let mut counts = FlowCounts::default();
        let all = &mut counts.all;
        all.new_flows = sent.new_flows;
        all.ended_tcp = sent.ended_tcp;
        all.ended_udp = sent.ended_udp;
        all.midstream = sent.midstream;
        all.ends = sent.ends;
        all.packets = sent.packets;
        all.bytes = sent.bytes;
        all.data_segments = sent.data_segments;
        all.retransmissions = sent.retransmissions;
        all.payload_bytes = sent.payload_bytes;
        all.retransmitted_bytes = sent.retransmitted_bytes;
        all.out_of_order = sent.out_of_order;
        all.zero_windows = sent.zero_windows;
        for (class, count) in &sent.anomalies {
            let at = Anomaly::ALL.iter().position(|one| one.as_str() == class);
            let slot = at.and_then(|at| all.anomalies.get_mut(at));
            *slot.ok_or(Cause::Contradictory)? = *count;
        }
        for (name, sums) in &sent.applications {
            let name = Protocol::from_name(name).map_or(UNKNOWN, Protocol::as_str);
            if let Some(mine) = counts.application(name) {
                mine.flows = mine.flows.saturating_add(sums.flows);
                mine.bytes = mine.bytes.saturating_add(sums.bytes);
            }
        }
        Ok(counts)
    }

    fn distribution_mut(counts: &mut FlowCounts, of: FlowOf) -> &mut LogLinear {
        // As many as there are words.
        let [rtt, server_rtt, client_rtt, handshake, throughput, duration] =
            &mut counts.all.distributions;
        match of {
            FlowOf::Rtt => rtt,
            FlowOf::ServerRtt => server_rtt,
            FlowOf::ClientRtt => client_rtt,
            FlowOf::Handshake => handshake,
            FlowOf::Throughput => throughput,
            FlowOf::Duration => duration,
        }
    }

    fn send_keyed(keyed: &FlowKeyed) -> WireKeyed {
        WireKeyed {
            flows: keyed.flows,
            reset: keyed.reset,
            unanswered: keyed.unanswered,
            data_segments: keyed.data_segments,
            retransmissions: keyed.retransmissions,
            rtt: Small::of(&keyed.rtt),
        }
    }

    fn take_keyed(sent: &WireKeyed) -> Result<FlowKeyed, Cause> {
        let counts = [
            sent.flows,
            sent.reset,
            sent.unanswered,
            sent.data_segments,
            sent.retransmissions,
        ];
        let rtt = Small::values(sent.rtt.as_ref()).filter(|_| are_bounded(&counts));
        Ok(FlowKeyed {
            flows: sent.flows,
            reset: sent.reset,
            unanswered: sent.unanswered,
            data_segments: sent.data_segments,
            retransmissions: sent.retransmissions,
            rtt: rtt.ok_or(Cause::Contradictory)?,
        })
    }

    fn mark(series: &FlowSeries) -> Marks {
        Marks {
            rtt: series.rtt,
            handshake: series.handshake,
        }
    }

    fn send_series(now: &Marks, before: &Marks) -> Vec<WireSeries> {
        let parts = HALVES.iter().zip(now.rtt.iter().zip(&before.rtt));
        let rtt = parts.map(|(of, (now, before))| (*of, now.since(before)));
        let handshake = (HANDSHAKE, now.handshake.since(&before.handshake));
        let grown = rtt.chain([handshake]);
        grown
            .filter(|(_, times)| times.count > 0)
            .map(|(of, times)| WireSeries {
                of: of.to_owned(),
                times: Grown::of(&times),
            })
            .collect()
    }

    fn take_series(series: &mut FlowSeries, grown: &WireSeries) -> Result<(), Cause> {
        let times: Times = grown.times.buckets().ok_or(Cause::Contradictory)?;
        if grown.of == HANDSHAKE {
            series.handshake.merge(&times);
            return Ok(());
        }
        let at = HALVES.iter().position(|half| *half == grown.of);
        let mine = at.and_then(|at| series.rtt.get_mut(at));
        mine.ok_or(Cause::Contradictory)?.merge(&times);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Word as _;

    #[test]
    fn distributions_are_in_their_places() {
        let mut counts = FlowCounts::default();
        for (at, of) in FlowOf::ALL.iter().enumerate() {
            FlowKind::distribution_mut(&mut counts, *of).record(at as u64 + 1);
            assert_eq!(counts.all.distribution(*of).max(), Some(at as u64 + 1));
        }
    }
}
