//! What a flow that has ended adds to the cells of the archive.

use linkweir_record::flow::{FlowRow, FlowSide, FlowState, Protocol};
use linkweir_sketch::CellSet;
use linkweir_sketch::cells::{Direction, Ended, Measure, SeriesId};

/// Adds the final record of a flow.
pub(super) fn add(row: &FlowRow, into: &mut CellSet) {
    let (client, server) = (&row.client, &row.server);
    let opened = Direction::of(client.is_internal, server.is_internal);
    let back = Direction::of(server.is_internal, client.is_internal);
    let how = match row.protocol {
        Protocol::Udp => Ended::Udp,
        Protocol::Tcp if row.is_complete() => Ended::TcpComplete,
        Protocol::Tcp => Ended::TcpIncomplete,
    };
    into.add(SeriesId::ended(how, opened), 1);
    if row.state == FlowState::Evicted {
        into.add(SeriesId::evicted(), 1);
    }
    let name = match row.application {
        "" => "unknown",
        name => name,
    };
    let application = SeriesId::application(name);
    into.add(SeriesId::application_flows(application), 1);
    for (side, direction) in [(client, opened), (server, back)] {
        if let Some(bytes) = SeriesId::application_bytes(application, direction) {
            into.add(bytes, side.ip_bytes);
        }
        match row.protocol {
            Protocol::Tcp => add_tcp(side, direction, row, into),
            Protocol::Udp if side.pkts_all > 0 => {
                put(into, Measure::UdpBytes, direction, side.bytes_all);
                put(into, Measure::UdpPackets, direction, side.pkts_all);
            }
            Protocol::Udp => {}
        }
    }
    match row.protocol {
        Protocol::Udp => put(into, Measure::UdpDuration, opened, row.duration_ns()),
        Protocol::Tcp if is_connection(row) => {
            put(into, Measure::TcpDuration, opened, row.duration_ns());
        }
        Protocol::Tcp => {}
    }
}

/// Whether something was sent both ways: the distributions are those of connections, which a scan of
/// ports would hide.
const fn is_connection(row: &FlowRow) -> bool {
    row.client.pkts_all > 0 && row.server.pkts_all > 0
}

fn add_tcp(side: &FlowSide, direction: Direction, row: &FlowRow, into: &mut CellSet) {
    for (class, segments) in (0..).zip(side.anomalies) {
        into.add(SeriesId::anomaly(class, direction), segments);
    }
    into.add(SeriesId::retransmitted_bytes(direction), side.bytes_retx);
    if !is_connection(row) {
        return;
    }
    put(into, Measure::TcpBytes, direction, side.bytes_uniq);
    put(into, Measure::TcpPackets, direction, side.pkts_all);
    // As Tstat: from the first packet of the flow to the last payload of the side, so that two
    // segments in a row are no throughput of gigabits.
    if let Some(span_ns) = side.last_ns
        && span_ns > 0
        && side.bytes_uniq > 0
    {
        let bits = u128::from(side.bytes_uniq) * 8_000_000_000 / u128::from(span_ns);
        let bits = u64::try_from(bits).unwrap_or(u64::MAX);
        put(into, Measure::TcpThroughput, direction, bits);
    }
    if side.rtt.count > 0 {
        put(into, Measure::TcpRttMin, direction, side.rtt.min_ns);
        put(into, Measure::TcpRttAvg, direction, side.rtt.avg_ns);
        put(into, Measure::TcpRttMax, direction, side.rtt.max_ns);
    }
    for (measure, value) in [
        (Measure::TcpMss, u32::from(side.mss)),
        (Measure::TcpWindowMax, side.win_max),
        (Measure::TcpInFlightMax, side.cwin_max),
    ] {
        if value > 0 {
            put(into, measure, direction, u64::from(value));
        }
    }
}

fn put(into: &mut CellSet, measure: Measure, direction: Direction, value: u64) {
    if let Some(series) = SeriesId::distribution(measure, direction) {
        into.add(series, value);
    }
}
