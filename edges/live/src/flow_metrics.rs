//! Flows in `/metrics`.
//!
//! Counters are of the whole run and never go back; times are histograms with fixed bounds, so that
//! Prometheus can add those of several probes and take quantiles over any window.

use linkweir_record::FlowKind;
use linkweir_record::flow::Anomaly;

use crate::exposition::families;
use crate::kind::Records;

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

families! {
    pub(crate) FAMILIES: Records<FlowKind>;
    gauge "linkweir_flows_active" [] "Flows in the table."
        => |all, out| out.one(all.totals.table.entries);
    counter "linkweir_flows_started_total" [] "Flows that entered the table."
        => |all, out| out.one(all.totals.new_flows);
    counter "linkweir_flows_ended_total" ["protocol"] "Flows that ended, by transport protocol."
        => |all, out| out.by([("tcp", all.totals.ended_tcp), ("udp", all.totals.ended_udp)]);
    counter "linkweir_flows_ends_total" ["state"] "Flows that ended, by how."
        => |all, out| out.by(all.totals.ends.by_state());
    counter "linkweir_flows_midstream_total" [] "TCP flows that ended and whose first packet was not seen."
        => |all, out| out.one(all.totals.midstream);
    counter "linkweir_flows_packets_total" [] "Packets of the records of flows."
        => |all, out| out.one(all.totals.flow_packets);
    counter "linkweir_flows_bytes_total" [] "Bytes of IP packets of the records of flows."
        => |all, out| out.one(all.totals.flow_bytes);
    counter "linkweir_flows_data_segments_total" [] "TCP segments with payload."
        => |all, out| out.one(all.totals.data_segments);
    counter "linkweir_flows_retransmissions_total" [] "TCP segments that their sender sent again: of the classes rto, fast_retransmit, unnecessary_rto, unnecessary_fast_retransmit and tail_loss_probe."
        => |all, out| out.one(all.totals.retransmissions);
    counter "linkweir_flows_payload_bytes_total" [] "TCP payload, each byte once."
        => |all, out| out.one(all.totals.payload_bytes);
    counter "linkweir_flows_retransmitted_bytes_total" [] "TCP payload that had been seen before."
        => |all, out| out.one(all.totals.retransmitted_bytes);
    counter "linkweir_flows_out_of_order_total" [] "TCP segments that came after later ones and had not been seen before."
        => |all, out| out.one(all.totals.out_of_order);
    counter "linkweir_flows_zero_windows_total" [] "Announcements of a TCP window of zero."
        => |all, out| out.one(all.totals.zero_windows);
    counter "linkweir_flows_anomalies_total" ["class"] "Out-of-sequence TCP segments, by class."
        => |all, out| {
            let classes = Anomaly::ALL.map(Anomaly::as_str);
            let anomalies = &all.totals.anomalies;
            out.by(classes.map(|class| (class, anomalies.get(class).copied().unwrap_or(0))));
        };
    counter "linkweir_flows_application_flows_total" ["application"] "Flows that ended, by application protocol."
        => |all, out| {
            let applications = all.totals.applications.iter();
            out.by(applications.map(|(name, one)| (name, one.flows)));
        };
    counter "linkweir_flows_application_bytes_total" ["application"] "Bytes of IP packets, by application protocol."
        => |all, out| {
            let applications = all.totals.applications.iter();
            out.by(applications.map(|(name, one)| (name, one.bytes)));
        };
    histogram "linkweir_flows_rtt_seconds" ["path"] "Mean round-trip time of a flow, by part of the path: client to server and back (all), capture point to server, capture point to client."
        => |all, out| {
            for (half, times) in HALVES.iter().zip(&all.series.rtt) {
                out.times(&[half], &RTT_BOUNDS, times);
            }
        };
    histogram "linkweir_flows_handshake_seconds" [] "Time from the SYN to the ACK that completes the handshake."
        => |all, out| out.times(&[], &RTT_BOUNDS, &all.series.handshake);
}
