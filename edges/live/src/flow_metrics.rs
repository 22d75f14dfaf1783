//! Flows in `/metrics`.
//!
//! Counters are of the whole run and never go back; times are histograms with fixed bounds, so that
//! Prometheus can add those of several probes and take quantiles over any span.

use crate::api::{FlowFigures, Totals};
use crate::flow::FlowSeries;
use crate::metrics::Exposition;

/// Upper bounds of the buckets of round-trip times, nanoseconds, and as Prometheus writes them in
/// seconds: from a local network to a satellite and a queue before it.
pub(super) const RTT_BOUNDS: [(u64, &str); 17] = [
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (200_000_000, "0.2"),
    (350_000_000, "0.35"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5"),
];

/// Parts of the path that round-trip times are of.
pub(super) const HALVES: [&str; 3] = ["all", "server", "client"];

pub(super) fn expose(out: &mut Exposition, totals: &Totals<FlowFigures>, series: &FlowSeries) {
    flows(out, totals);
    segments(out, totals);
    applications(out, totals);
    const RTT: &str = "linkweir_flows_rtt_seconds";
    out.family(
        RTT,
        "histogram",
        "Mean round-trip time of a flow, by part of the path: client to server and back (all), capture point to server, capture point to client.",
    );
    for (half, buckets) in HALVES.iter().zip(&series.rtt) {
        out.histogram(RTT, &[("path", half)], &RTT_BOUNDS, buckets);
    }
    const HANDSHAKE: &str = "linkweir_flows_handshake_seconds";
    out.family(
        HANDSHAKE,
        "histogram",
        "Time from the SYN to the ACK that completes the handshake.",
    );
    out.histogram(HANDSHAKE, &[], &RTT_BOUNDS, &series.handshake);
}

fn flows(out: &mut Exposition, totals: &Totals<FlowFigures>) {
    out.single(
        "linkweir_flows_active",
        "gauge",
        "Flows in the table.",
        totals.table.entries,
    );
    out.single(
        "linkweir_flows_started_total",
        "counter",
        "Flows that entered the table.",
        totals.new_flows,
    );
    out.by_label(
        (
            "linkweir_flows_ended_total",
            "counter",
            "Flows that ended, by transport protocol.",
        ),
        "protocol",
        [("tcp", totals.ended_tcp), ("udp", totals.ended_udp)],
    );
    out.by_label(
        (
            "linkweir_flows_ends_total",
            "counter",
            "Flows that ended, by how.",
        ),
        "state",
        totals.ends.by_state(),
    );
    out.single(
        "linkweir_flows_midstream_total",
        "counter",
        "TCP flows that ended and whose first packet was not seen.",
        totals.midstream,
    );
    out.single(
        "linkweir_flows_packets_total",
        "counter",
        "Packets of the records of flows.",
        totals.flow_packets,
    );
    out.single(
        "linkweir_flows_bytes_total",
        "counter",
        "Bytes of IP packets of the records of flows.",
        totals.flow_bytes,
    );
}

fn segments(out: &mut Exposition, totals: &Totals<FlowFigures>) {
    for (name, help, count) in [
        (
            "linkweir_flows_data_segments_total",
            "TCP segments with payload.",
            totals.data_segments,
        ),
        (
            "linkweir_flows_retransmissions_total",
            "TCP segments with payload that had been seen before.",
            totals.retransmissions,
        ),
        (
            "linkweir_flows_payload_bytes_total",
            "TCP payload, each byte once.",
            totals.payload_bytes,
        ),
        (
            "linkweir_flows_retransmitted_bytes_total",
            "TCP payload that had been seen before.",
            totals.retransmitted_bytes,
        ),
        (
            "linkweir_flows_out_of_order_total",
            "TCP segments that came after later ones and had not been seen before.",
            totals.out_of_order,
        ),
        (
            "linkweir_flows_zero_windows_total",
            "Announcements of a TCP window of zero.",
            totals.zero_windows,
        ),
    ] {
        out.single(name, "counter", help, count);
    }
    let classes = linkweir_record::flow::Anomaly::ALL.map(|class| class.as_str());
    out.by_label(
        (
            "linkweir_flows_anomalies_total",
            "counter",
            "Out-of-sequence TCP segments, by class.",
        ),
        "class",
        classes.map(|class| (class, totals.anomalies.get(class).copied().unwrap_or(0))),
    );
}

fn applications(out: &mut Exposition, totals: &Totals<FlowFigures>) {
    let applications = &totals.figures.applications;
    out.by_label(
        (
            "linkweir_flows_application_flows_total",
            "counter",
            "Flows that ended, by application protocol.",
        ),
        "application",
        applications.iter().map(|(name, one)| (*name, one.flows)),
    );
    out.by_label(
        (
            "linkweir_flows_application_bytes_total",
            "counter",
            "Bytes of IP packets, by application protocol.",
        ),
        "application",
        applications.iter().map(|(name, one)| (*name, one.bytes)),
    );
}
