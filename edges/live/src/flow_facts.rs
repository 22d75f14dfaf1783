//! What of a record of a flow counts, and its quantities.

use linkweir_record::flow::{FlowRow, FlowSide, FlowState, Protocol};

use crate::alert::FlowNumbers;
use crate::api::FlowOf;

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
    /// Counts the record in `numbers`.
    pub(super) fn count(&self, row: &FlowRow, numbers: &mut FlowNumbers) {
        if self.has_counters {
            self.count_traffic(row, numbers);
        }
        if self.has_ended {
            Self::count_end(row, numbers);
        }
    }

    fn count_traffic(&self, row: &FlowRow, numbers: &mut FlowNumbers) {
        numbers.bytes = numbers.bytes.saturating_add(ip_bytes(row));
        for side in [&row.client, &row.server] {
            numbers.packets = numbers.packets.saturating_add(side.pkts_all);
        }
        if row.protocol == Protocol::Udp {
            return;
        }
        for side in [&row.client, &row.server] {
            numbers.data_segments = numbers.data_segments.saturating_add(side.pkts_data);
            numbers.retransmissions = numbers.retransmissions.saturating_add(side.pkts_retx);
            numbers.payload_bytes = numbers.payload_bytes.saturating_add(side.bytes_uniq);
            numbers.retransmitted_bytes =
                numbers.retransmitted_bytes.saturating_add(side.bytes_retx);
            numbers.out_of_order = numbers.out_of_order.saturating_add(side.pkts_ooo);
            numbers.zero_windows = numbers.zero_windows.saturating_add(side.win_0);
            for (sum, count) in numbers.anomalies.iter_mut().zip(&side.anomalies) {
                *sum = sum.saturating_add(*count);
            }
        }
        for (of, value) in [
            (FlowOf::Rtt, self.rtt),
            // What the client sent was acknowledged by the server.
            (FlowOf::ServerRtt, half(&row.client)),
            (FlowOf::ClientRtt, half(&row.server)),
        ] {
            if let Some(value) = value {
                numbers.sample(of, value);
            }
        }
    }

    fn count_end(row: &FlowRow, numbers: &mut FlowNumbers) {
        match row.protocol {
            Protocol::Tcp => {
                numbers.ended_tcp += 1;
                numbers.midstream += u64::from(!row.has_syn);
            }
            Protocol::Udp => numbers.ended_udp += 1,
        }
        let ends = &mut numbers.ends;
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
        numbers.sample(FlowOf::Duration, row.duration_ns());
        if let Some(rate) = throughput(row) {
            numbers.sample(FlowOf::Throughput, rate);
        }
        if let Some(time) = handshake(row) {
            numbers.sample(FlowOf::Handshake, time);
        }
    }
}
