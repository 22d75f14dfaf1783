//! What of a record of a flow counts, and its quantities.

use linkweir_record::flow::{Anomaly, FlowRow, FlowSide, FlowState, Protocol};

use crate::api::FlowCounts;

/// What of a record counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    /// Its counters: not those of a final record after partial ones.
    pub(super) has_counters: bool,
    /// Its end.
    pub(super) has_ended: bool,
    /// Client to server and back.
    pub(super) rtt: Option<u64>,
}

/// Round-trip times of what a side sent, as one number for the flow.
pub(super) const fn half(side: &FlowSide) -> Option<u64> {
    if side.rtt.count > 0 {
        Some(side.rtt.avg_ns)
    } else {
        None
    }
}

/// Round-trip time between client and server, where both halves were measured.
pub(super) fn rtt(row: &FlowRow) -> Option<u64> {
    Some(half(&row.client)?.saturating_add(half(&row.server)?))
}

pub(super) fn handshake(row: &FlowRow) -> Option<u64> {
    Some(row.syn_ack_ns?.saturating_add(row.ack_dat_ns?))
}

/// Payload, bytes: of TCP each byte once.
const fn payload(row: &FlowRow) -> u64 {
    match row.protocol {
        Protocol::Tcp => row.client.bytes_uniq.saturating_add(row.server.bytes_uniq),
        Protocol::Udp => row.client.bytes_all.saturating_add(row.server.bytes_all),
    }
}

/// Payload over the length of the flow, bits per second.
fn throughput(row: &FlowRow) -> Option<u64> {
    let bits = u128::from(payload(row)) * 8;
    let length = u128::from(row.duration_ns());
    let rate = (bits * 1_000_000_000).checked_div(length)?;
    (bits > 0).then(|| u64::try_from(rate).unwrap_or(u64::MAX))
}

/// Bytes of IP packets of both directions.
pub(super) const fn ip_bytes(row: &FlowRow) -> u64 {
    row.client.ip_bytes.saturating_add(row.server.ip_bytes)
}

impl Facts {
    /// Counts the record in `counts`.
    pub(super) fn count(&self, row: &FlowRow, counts: &mut FlowCounts) {
        if self.has_counters {
            self.count_traffic(row, counts);
        }
        if self.has_ended {
            Self::count_end(row, counts);
        }
    }

    fn count_traffic(&self, row: &FlowRow, counts: &mut FlowCounts) {
        counts.flow_bytes = counts.flow_bytes.saturating_add(ip_bytes(row));
        for side in [&row.client, &row.server] {
            counts.flow_packets = counts.flow_packets.saturating_add(side.pkts_all);
        }
        if row.protocol == Protocol::Udp {
            return;
        }
        for side in [&row.client, &row.server] {
            counts.data_segments = counts.data_segments.saturating_add(side.pkts_data);
            counts.retransmissions = counts
                .retransmissions
                .saturating_add(side.retransmissions());
            counts.payload_bytes = counts.payload_bytes.saturating_add(side.bytes_uniq);
            counts.retransmitted_bytes = counts.retransmitted_bytes.saturating_add(side.bytes_retx);
            counts.out_of_order = counts.out_of_order.saturating_add(side.pkts_ooo);
            counts.zero_windows = counts.zero_windows.saturating_add(side.win_0);
            for (class, count) in Anomaly::ALL.iter().zip(&side.anomalies) {
                counts.anomalies.record_n(*class, *count);
            }
        }
        for (values, value) in [
            (&mut counts.rtt_ns, self.rtt),
            // What the client sent was acknowledged by the server.
            (&mut counts.server_rtt_ns, half(&row.client)),
            (&mut counts.client_rtt_ns, half(&row.server)),
        ] {
            if let Some(value) = value {
                values.record(value);
            }
        }
    }

    fn count_end(row: &FlowRow, counts: &mut FlowCounts) {
        match row.protocol {
            Protocol::Tcp => {
                counts.ended_tcp += 1;
                counts.midstream += u64::from(!row.has_syn);
            }
            Protocol::Udp => counts.ended_udp += 1,
        }
        let ends = &mut counts.ends;
        let count = match row.state {
            FlowState::Open => &mut ends.open,
            FlowState::Closed => &mut ends.closed,
            FlowState::Reset => &mut ends.reset,
            FlowState::Idle => &mut ends.idle,
            FlowState::Unanswered => &mut ends.unanswered,
            FlowState::Evicted => &mut ends.evicted,
            FlowState::Reused => &mut ends.reused,
        };
        *count += 1;
        counts.duration_ns.record(row.duration_ns());
        if let Some(rate) = throughput(row) {
            counts.throughput_bps.record(rate);
        }
        if let Some(time) = handshake(row) {
            counts.handshake_ns.record(time);
        }
    }
}
