//! The cells of the archive: what packets and flows add to them.
//!
//! A side of a flow counts in the direction in which it sent: of a flow that an internal client
//! opened to an external server, what the client sent is `out` and what the server sent is `in`.
//! Flows count when they end, packets when they come.

use linkweir_record::flow::{Anomaly, Extent, FlowRow, FlowSide, FlowState, Protocol};
use linkweir_sketch::CellSet;
use linkweir_sketch::cells::{Direction, Ended, Measure, SeriesId, Transport};

/// Counts an IP packet of `ip_len` bytes, its header included: two additions. `protocol` is the
/// number in the IP header.
#[inline]
pub(super) fn packet(
    cells: &mut CellSet,
    protocol: u8,
    src_internal: bool,
    dst_internal: bool,
    ip_len: u32,
) {
    packets(
        cells,
        transport(protocol),
        Direction::of(src_internal, dst_internal),
        1,
        u64::from(ip_len),
    );
}

/// Counts many IP packets at once.
pub(super) fn packets(
    cells: &mut CellSet,
    transport: Transport,
    direction: Direction,
    packets: u64,
    ip_bytes: u64,
) {
    cells.add(SeriesId::packets(transport, direction), packets);
    cells.add(SeriesId::bytes(transport, direction), ip_bytes);
}

/// The transport of a number in the IP header.
#[inline]
pub(super) const fn transport(protocol: u8) -> Transport {
    match protocol {
        6 => Transport::Tcp,
        17 => Transport::Udp,
        1 | 58 => Transport::Icmp,
        _ => Transport::Other,
    }
}

const fn carried_by(protocol: Protocol) -> Transport {
    match protocol {
        Protocol::Tcp => Transport::Tcp,
        Protocol::Udp => Transport::Udp,
    }
}

/// A flow has begun.
pub(super) fn opened(
    cells: &mut CellSet,
    protocol: Protocol,
    client_internal: bool,
    server_internal: bool,
) {
    let direction = Direction::of(client_internal, server_internal);
    if let Some(series) = SeriesId::opened(carried_by(protocol), direction) {
        cells.add(series, 1);
    }
}

/// So many flows of this protocol are in the table now: the step keeps the most.
#[inline]
pub(super) fn active(cells: &mut CellSet, protocol: Protocol, flows: u64) {
    if let Some(series) = SeriesId::active(carried_by(protocol)) {
        cells.raise(series, flows);
    }
}

/// A flow has ended: its final record. Partial ones are not counted, for they add up to it.
pub(super) fn flow(cells: &mut CellSet, row: &FlowRow) {
    if row.extent == Extent::Partial {
        return;
    }
    let opened = Direction::of(row.client.is_internal, row.server.is_internal);
    let back = Direction::of(row.server.is_internal, row.client.is_internal);
    let how = match (row.protocol, row.is_complete()) {
        (Protocol::Udp, _) => Ended::Udp,
        (Protocol::Tcp, true) => Ended::TcpComplete,
        (Protocol::Tcp, false) => Ended::TcpIncomplete,
    };
    cells.add(SeriesId::ended(how, opened), 1);
    if row.state == FlowState::Evicted {
        cells.add(SeriesId::evicted(), 1);
    }
    let application = SeriesId::application(match row.application {
        "" => "unknown",
        name => name,
    });
    cells.add(SeriesId::application_flows(application), 1);
    for (side, direction) in [(&row.client, opened), (&row.server, back)] {
        if let Some(series) = SeriesId::application_bytes(application, direction) {
            cells.add(series, side.ip_bytes);
        }
        match row.protocol {
            Protocol::Tcp => tcp_side(cells, row, side, direction),
            Protocol::Udp => udp_side(cells, side, direction),
        }
    }
    let measure = match row.protocol {
        Protocol::Udp => Measure::UdpDuration,
        Protocol::Tcp if how == Ended::TcpComplete => Measure::TcpDuration,
        Protocol::Tcp => return,
    };
    value(cells, measure, opened, row.duration_ns());
}

fn tcp_side(cells: &mut CellSet, row: &FlowRow, side: &FlowSide, direction: Direction) {
    for (class, count) in (0..).zip(side.anomalies) {
        if count > 0 {
            cells.add(SeriesId::anomaly(class, direction), count);
        }
    }
    if side.bytes_retx > 0 {
        let series = SeriesId::retransmitted_bytes(direction);
        cells.add(series, side.bytes_retx);
    }
    let rtt = (side.rtt.count > 0).then_some(side.rtt).unwrap_or_default();
    for (measure, number) in [
        (Measure::TcpBytes, side.bytes_uniq),
        (Measure::TcpPackets, side.pkts_all),
        (Measure::TcpRttMin, rtt.min_ns),
        (Measure::TcpRttAvg, rtt.avg_ns),
        (Measure::TcpRttMax, rtt.max_ns),
        (Measure::TcpMss, u64::from(side.mss)),
        (Measure::TcpWindowMax, u64::from(side.win_max)),
        (Measure::TcpInFlightMax, u64::from(side.cwin_max)),
    ] {
        if number > 0 {
            value(cells, measure, direction, number);
        }
    }
    // As Tstat: from the first packet of the flow to the last payload of the side, of complete
    // flows; others would measure how long was captured.
    if let Some(span_ns) = side.last_ns
        && span_ns > 0
        && side.bytes_uniq > 0
        && row.is_complete()
    {
        let bits = u128::from(side.bytes_uniq) * 8 * 1_000_000_000;
        let rate = u64::try_from(bits / u128::from(span_ns)).unwrap_or(u64::MAX);
        value(cells, Measure::TcpThroughput, direction, rate);
    }
}

fn udp_side(cells: &mut CellSet, side: &FlowSide, direction: Direction) {
    if side.pkts_all > 0 {
        value(cells, Measure::UdpBytes, direction, side.bytes_all);
        value(cells, Measure::UdpPackets, direction, side.pkts_all);
    }
}

fn value(cells: &mut CellSet, measure: Measure, direction: Direction, number: u64) {
    if let Some(series) = SeriesId::distribution(measure, direction) {
        cells.add(series, number);
    }
}

// The classes stand in the archive by the numbers that the records give them.
const _: () = assert!(Anomaly::COUNT == linkweir_sketch::cells::ANOMALIES.len());

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_record::flow::RttRow;
    use linkweir_sketch::cells::ANOMALIES;

    fn row() -> FlowRow {
        let mut row = FlowRow {
            first_ns: 5_000_000_000,
            last_ns: 7_000_000_000,
            state: FlowState::Closed,
            application: "http",
            ..FlowRow::default()
        };
        row.client = FlowSide {
            is_internal: true,
            syn_cnt: 1,
            pkts_all: 10,
            ip_bytes: 900,
            bytes_uniq: 500,
            bytes_all: 600,
            bytes_retx: 100,
            last_ns: Some(1_000_000_000),
            mss: 1460,
            ..FlowSide::default()
        };
        row.server = FlowSide {
            syn_cnt: 1,
            pkts_all: 12,
            ip_bytes: 1_000_600,
            bytes_uniq: 1_000_000,
            last_ns: Some(2_000_000_000),
            rtt: RttRow {
                count: 3,
                avg_ns: 20_000_000,
                min_ns: 10_000_000,
                max_ns: 40_000_000,
                std_ns: 1,
            },
            ..FlowSide::default()
        };
        row.server.anomalies[Anomaly::FastRetransmit as usize] = 2;
        row
    }

    #[test]
    fn sides_count_in_the_direction_in_which_they_sent() {
        let mut cells = CellSet::default();
        flow(&mut cells, &row());
        let (inward, outward) = (Direction::In, Direction::Out);
        assert_eq!(
            cells.scalar(SeriesId::ended(Ended::TcpComplete, outward)),
            1
        );
        let http = SeriesId::application("http");
        assert_eq!(cells.scalar(SeriesId::application_flows(http)), 1);
        let bytes = |direction| SeriesId::application_bytes(http, direction).unwrap();
        assert_eq!(cells.scalar(bytes(outward)), 900);
        assert_eq!(cells.scalar(bytes(inward)), 1_000_600);
        assert_eq!(cells.scalar(SeriesId::retransmitted_bytes(outward)), 100);
        assert_eq!(cells.scalar(SeriesId::anomaly(1, inward)), 2);
        let sum = |measure, direction| {
            let series = SeriesId::distribution(measure, direction).unwrap();
            cells.distribution(series).map(|all| (all.count, all.sum))
        };
        assert_eq!(sum(Measure::TcpThroughput, inward), Some((1, 4_000_000)));
        assert_eq!(sum(Measure::TcpThroughput, outward), Some((1, 4_000)));
        assert_eq!(sum(Measure::TcpDuration, outward), Some((1, 2_000_000_000)));
        assert_eq!(sum(Measure::TcpDuration, inward), None);
        assert_eq!(sum(Measure::TcpRttMax, inward), Some((1, 40_000_000)));
        assert_eq!(sum(Measure::TcpRttMin, outward), None);
        assert_eq!(sum(Measure::TcpMss, outward), Some((1, 1460)));
        assert_eq!(sum(Measure::TcpMss, inward), None);
    }

    #[test]
    fn partial_and_incomplete_records() {
        let mut cells = CellSet::default();
        let partial = FlowRow {
            extent: Extent::Partial,
            ..row()
        };
        flow(&mut cells, &partial);
        assert!(cells.is_empty());
        let open = FlowRow {
            state: FlowState::Evicted,
            application: "",
            ..row()
        };
        flow(&mut cells, &open);
        let throughput = SeriesId::distribution(Measure::TcpThroughput, Direction::In).unwrap();
        assert!(cells.distribution(throughput).is_none());
        assert_eq!(cells.scalar(SeriesId::evicted()), 1);
        let unknown = SeriesId::application("unknown");
        assert_eq!(cells.scalar(SeriesId::application_flows(unknown)), 1);
        let udp = FlowRow {
            protocol: Protocol::Udp,
            ..row()
        };
        cells.clear();
        flow(&mut cells, &udp);
        let bytes = SeriesId::distribution(Measure::UdpBytes, Direction::Out).unwrap();
        assert_eq!(cells.distribution(bytes).unwrap().sum, 600);
        assert_eq!(cells.scalar(SeriesId::ended(Ended::Udp, Direction::Out)), 1);
    }

    #[test]
    fn packets_and_flows_in_the_table() {
        let mut cells = CellSet::default();
        for protocol in [6, 17, 1, 58, 47] {
            packet(&mut cells, protocol, false, true, 100);
        }
        let count =
            |cells: &CellSet, transport| cells.scalar(SeriesId::packets(transport, Direction::In));
        assert_eq!(count(&cells, Transport::Icmp), 2);
        assert_eq!(count(&cells, Transport::Other), 1);
        assert_eq!(
            cells.scalar(SeriesId::bytes(Transport::Udp, Direction::In)),
            100
        );
        opened(&mut cells, Protocol::Udp, true, true);
        let series = SeriesId::opened(Transport::Udp, Direction::Loc).unwrap();
        assert_eq!(cells.scalar(series), 1);
        active(&mut cells, Protocol::Tcp, 5);
        active(&mut cells, Protocol::Tcp, 3);
        assert_eq!(cells.scalar(SeriesId::active(Transport::Tcp).unwrap()), 5);
    }

    #[test]
    fn classes_have_the_names_of_the_records() {
        for (name, class) in ANOMALIES.iter().zip(Anomaly::ALL) {
            assert_eq!(*name, class.as_str());
        }
    }
}
