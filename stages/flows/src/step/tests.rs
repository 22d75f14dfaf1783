use linkweir_record::flow::{Anomaly, FlowSide, FlowState, RttRow};
use linkweir_sketch::cells::{Ended, Measure};
use linkweir_sketch::step::HistogramId;
use linkweir_wire::{LinkType, decode};

use super::*;

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_800_000_000 * SECOND;

/// Lines that Tstat would write of a histogram.
fn lines(step: &Step, name: &str) -> Vec<(u64, u64)> {
    step.lines(HistogramId::named(name).unwrap()).collect()
}

/// An IPv4 packet of raw link type: a SYN from port 1025 to 80.
fn syn() -> Vec<u8> {
    let mut bytes = vec![
        0x45, 0x10, 0, 40, 0, 1, 0, 0, 61, 6, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1,
    ];
    bytes.extend([
        4, 1, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0,
    ]);
    bytes
}

fn steps(batch: &FlowBatch) -> Vec<Step> {
    batch.steps().iter().map(|step| (**step).clone()).collect()
}

#[test]
fn packets_count_in_their_direction() {
    let mut recorder = Recorder::new(Duration::from_secs(300), 0, 1);
    let mut out = FlowBatch::default();
    let frame = syn();
    let packet = decode(LinkType::RAW, &frame, 40).unwrap();
    recorder.advance(START, &mut out);
    for _ in 0..3 {
        recorder.on_packet(&packet, true, false, 40);
        recorder.on_flow_packet(Protocol::Tcp, L7Class::UNKNOWN, true, false, 40);
    }
    recorder.on_packet(&packet, false, true, 9000);
    recorder.advance(START + 2 * SECOND, &mut out);
    recorder.finish(&mut out);
    let step = steps(&out).remove(0);
    assert_eq!(lines(&step, "ip_len_out"), [(40, 3)]);
    assert_eq!(lines(&step, "ip_len_in"), [(1504, 1)]);
    assert_eq!(lines(&step, "ip_ttl_out"), [(61, 3)]);
    assert_eq!(lines(&step, "ip_tos_out"), [(16, 3)]);
    assert_eq!(lines(&step, "ip_protocol_out"), [(6, 3)]);
    assert_eq!(lines(&step, "L3_protocol_out"), [(0, 3)]);
    assert_eq!(lines(&step, "tcp_port_syndst_out"), [(80, 3)]);
    assert_eq!(lines(&step, "tcp_port_src_out"), [(1025, 3)]);
    // 120 bytes in two seconds.
    assert_eq!(lines(&step, "tcp_bitrate_out"), [(49, 480)]);
    assert_eq!(lines(&step, "ip_bitrate_nc_out"), [(0, 480), (3, 480)]);
    assert_eq!(lines(&step, "L3_bitrate_out"), [(0, 480)]);
    assert!(lines(&step, "ip_len_loc").is_empty());
    let one = step
        .histograms
        .get(HistogramId::named("ip_len_in").unwrap())
        .unwrap();
    assert_eq!((one.sum, one.max), (9000, 9000));
    let packets = SeriesId::packets(Transport::Tcp, Direction::Out);
    assert_eq!(step.cells.scalar(packets), 3);
    let bytes = SeriesId::bytes(Transport::Tcp, Direction::In);
    assert_eq!(step.cells.scalar(bytes), 9000);
}

#[test]
fn steps_end_in_time_and_gaps_give_none() {
    let mut recorder = Recorder::new(Duration::from_secs(300), 1, 2);
    let mut out = FlowBatch::default();
    let frame = syn();
    let packet = decode(LinkType::RAW, &frame, 40).unwrap();
    let first = START + 100 * SECOND;
    for ts in [first, first - 50 * SECOND, START + 299 * SECOND] {
        recorder.advance(ts, &mut out);
        recorder.on_packet(&packet, true, true, 40);
    }
    assert!(out.steps().is_empty());
    recorder.advance(START + 3000 * SECOND, &mut out);
    // Time that goes back over the start of the step counts in it.
    recorder.advance(START + 10 * SECOND, &mut out);
    recorder.on_packet(&packet, true, true, 40);
    recorder.finish(&mut out);
    let all = steps(&out);
    let [one, two] = all.as_slice() else {
        panic!("{}", all.len())
    };
    assert_eq!(one.number, START / SECOND / 300);
    assert_eq!(two.number, one.number + 10);
    assert_eq!((one.shard, one.shards, one.is_last), (1, 2, false));
    assert!(two.is_last);
    assert_eq!((one.from_ns, one.to_ns), (first, START + 300 * SECOND));
    assert_eq!((two.from_ns, two.measured_ns()), (START + 3000 * SECOND, 0));
    assert_eq!(lines(one, "ip_ttl_loc"), [(61, 3)]);
    assert_eq!(lines(two, "ip_ttl_loc"), [(61, 1)]);
    recorder.finish(&mut out);
    assert_eq!(out.steps().len(), 2);
}

/// A flow from inside to outside.
fn flow() -> FlowRow {
    let rtt = |ms: u64| RttRow {
        count: 3,
        avg_ns: ms * 1_000_000,
        min_ns: ms * 500_000,
        max_ns: ms * 2_000_000,
        std_ns: 1_500_000,
    };
    let mut anomalies = [0; Anomaly::COUNT];
    anomalies[Anomaly::Reordering as usize] = 2;
    anomalies[Anomaly::TailLossProbe as usize] = 1;
    FlowRow {
        first_ns: START,
        last_ns: START + 4 * SECOND,
        state: FlowState::Closed,
        has_syn: true,
        con_t: 1,
        application: "http",
        client: FlowSide {
            is_internal: true,
            syn_cnt: 1,
            pkts_all: 10,
            pkts_data: 1,
            bytes_all: 500,
            bytes_uniq: 400,
            last_ns: Some(SECOND),
            rtt: rtt(20),
            mss: 1460,
            has_sack: true,
            win_max: 70_000,
            win_min: 300,
            ..FlowSide::default()
        },
        server: FlowSide {
            syn_cnt: 1,
            pkts_all: 2000,
            pkts_data: 1990,
            bytes_all: 2_500_000,
            bytes_uniq: 2_500_000,
            last_ns: Some(2 * SECOND),
            rtt: rtt(1500),
            mss: 1400,
            anomalies,
            ..FlowSide::default()
        },
        ..FlowRow::default()
    }
}

fn step_of(rows: &[FlowRow]) -> Step {
    let mut recorder = Recorder::new(Duration::from_secs(300), 0, 1);
    let mut out = FlowBatch::default();
    recorder.advance(START, &mut out);
    for row in rows {
        recorder.on_open(row.protocol, row.client.is_internal, row.server.is_internal);
    }
    recorder.advance(START + 4 * SECOND, &mut out);
    for row in rows {
        recorder.on_flow(row, &FlowText::default());
    }
    recorder.finish(&mut out);
    steps(&out).remove(0)
}

#[test]
fn a_complete_flow_fills_its_histograms() {
    let step = step_of(&[flow()]);
    for (name, expected) in [
        ("tcp_opts_SACK", (2, 1)),
        ("tcp_opts_TS", (4, 1)),
        ("tcp_mss_used", (1400, 1)),
        ("tcp_cl_p_out", (10, 1)),
        ("tcp_cl_p_in", (1000, 1)),
        ("tcp_cl_b_s_c2s", (500, 1)),
        ("tcp_cl_b_l_s2c", (2_500_000, 1)),
        ("tcp_rtt_avg_out", (20, 1)),
        ("tcp_rtt_max_in", (2000, 1)),
        ("tcp_rtt_nc_avg_in", (1500, 1)),
        ("tcp_rtt_cnt_s2c", (3, 1)),
        ("tcp_reordering_in", (2, 1)),
        ("tcp_unknown_s2c", (1, 1)),
        ("tcp_net_dup_out", (0, 1)),
        ("tcp_thru_c2s", (3, 1)),
        ("tcp_thru_s2c", (1000, 1)),
        ("tcp_thru_lf_s2c", (10_000, 1)),
        ("tcp_tot_time", (4000, 1)),
        ("tcp_interrupted", (0, 1)),
        ("L7_TCP_num_out", (0, 1)),
        ("L7_TCP_num_nc_out", (0, 1)),
        ("L4_flow_number", (0, 1)),
        ("profile_tcpdata", (0, 2)),
        ("profile_flows", (3, 1)),
    ] {
        assert_eq!(lines(&step, name), [expected], "{name}");
    }
    assert_eq!(
        lines(&step, "tcp_anomalies_in"),
        [(0, 1987), (3, 2), (8, 1)]
    );
    assert_eq!(lines(&step, "tcp_win_max"), [(0, 1), (65_536, 1)]);
    let twin = |name: &str| {
        let one = step.histograms.get(HistogramId::named(name).unwrap());
        one.unwrap().twin.clone().unwrap()
    };
    assert_eq!(twin("tcp_rtt_max_in").max(), Some(3_000_000));
    assert_eq!(twin("tcp_win_max").max(), Some(70_000));
    assert_eq!(twin("tcp_thru_s2c").max(), Some(10_000));
    let rtt = SeriesId::distribution(Measure::TcpRttAvg, Direction::In).unwrap();
    assert_eq!(step.cells.distribution(rtt).unwrap().sum, 1_500_000_000);
    let ended = SeriesId::ended(Ended::TcpComplete, Direction::Out);
    assert_eq!(step.cells.scalar(ended), 1);
    let active = SeriesId::active(Transport::Tcp).unwrap();
    assert_eq!(step.cells.scalar(active), 1);
}

#[test]
fn what_is_not_complete_counts_little() {
    let mut open = flow();
    open.state = FlowState::Open;
    open.has_syn = false;
    let mut partial = flow();
    partial.extent = Extent::Partial;
    let mut gave_up = flow();
    gave_up.state = FlowState::Reset;
    gave_up.client.rst_cnt = 1;
    gave_up.server.last_ns = Some(4 * SECOND - 1_000_000);
    let step = step_of(&[open, partial, gave_up]);
    assert_eq!(lines(&step, "tcp_tot_time"), [(4000, 1)]);
    assert_eq!(lines(&step, "tcp_interrupted"), [(0, 1), (1, 1)]);
    assert_eq!(lines(&step, "profile_trash"), [(0, 2010)]);
}

#[test]
fn udp_flows_count_both_ways() {
    let mut row = flow();
    row.protocol = Protocol::Udp;
    row.con_t = 27;
    row.client.port = 40_000;
    row.server.port = 443;
    let mut one_way = row;
    one_way.server.pkts_all = 0;
    one_way.state = FlowState::Evicted;
    let step = step_of(&[row, one_way]);
    assert_eq!(lines(&step, "udp_cl_p_out"), [(10, 2)]);
    assert_eq!(lines(&step, "udp_cl_p_in"), [(0, 1), (1000, 1)]);
    assert_eq!(lines(&step, "L7_UDP_num_out"), [(45, 2)]);
    assert_eq!(lines(&step, "L7_UDP_num_in"), [(45, 1)]);
    assert_eq!(lines(&step, "udp_port_flow_dst"), [(443, 2), (40_000, 1)]);
    assert_eq!(lines(&step, "udp_tot_time"), [(4000, 2)]);
    assert_eq!(lines(&step, "profile_flows"), [(0, 1), (1, 2)]);
    assert_eq!(lines(&step, "L4_flow_number"), [(1, 2)]);
}

#[test]
fn shards_add_up() {
    let rows = [flow(), {
        let mut other = flow();
        other.client.bytes_all = 7;
        other
    }];
    let whole = step_of(&rows);
    let mut merged = step_of(&rows[..1]);
    merged.merge(&step_of(&rows[1..]));
    assert_eq!(merged.histograms, whole.histograms);
    assert_eq!(merged.flow_us, whole.flow_us);
    assert_eq!(merged.cells, whole.cells);
}

/// An `ICMPv6` message of raw link type: a neighbour solicitation (type 135).
fn solicitation() -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 24, 58, 255];
    bytes.extend([0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, 0, 0, 2]);
    bytes.extend([135, 0, 0, 0]);
    bytes.extend([0; 20]);
    bytes
}

#[test]
fn messages_of_icmpv6_count_by_type() {
    let mut recorder = Recorder::new(Duration::from_secs(300), 0, 1);
    let mut out = FlowBatch::default();
    let frame = solicitation();
    let packet = decode(LinkType::RAW, &frame, 64).unwrap();
    recorder.advance(START, &mut out);
    recorder.on_packet(&packet, true, true, 64);
    recorder.on_packet(&packet, true, false, 64);
    recorder.finish(&mut out);
    let step = steps(&out).remove(0);
    for name in ["icmpv6_type_loc", "icmpv6_type_out"] {
        assert_eq!(lines(&step, name), [(135, 1)], "{name}");
    }
    assert_eq!(lines(&step, "ip6_protocol_loc"), [(58, 1)]);
}

#[test]
fn sites_count_by_their_class_in_flows_and_in_bytes() {
    let mut recorder = Recorder::new(Duration::from_secs(300), 0, 1);
    let mut out = FlowBatch::default();
    recorder.advance(START, &mut out);
    // Before and after the name was seen; a request to Facebook, one to Twitter.
    for class in [
        L7Class(33),
        L7Class::tls(2),
        L7Class::http(10),
        L7Class::http(25),
    ] {
        recorder.on_flow_packet(Protocol::Tcp, class, true, false, 1_000);
    }
    recorder.advance(START + SECOND, &mut out);
    let mut http = flow();
    http.http_t = 1 + 25;
    http.client.has_multipath = true;
    recorder.on_flow(&http, &FlowText::default());
    let mut tls = flow();
    tls.con_t = 8192;
    let text = FlowText {
        sni: b"www.dropbox.com",
        ..FlowText::default()
    };
    recorder.on_flow(&tls, &text);
    recorder.finish(&mut out);
    let step = steps(&out).remove(0);
    for (name, expected) in [
        ("tcp_bitrate_out", vec![(0, 16_000), (33, 16_000)]),
        ("tls_bitrate_out", vec![(0, 8_000), (2, 8_000)]),
        ("http_bitrate_out", vec![(10, 8_000), (16, 8_000)]),
        ("http_bitrate_nc_out", vec![(10, 8_000), (16, 8_000)]),
        ("web_bitrate_out", vec![(5, 16_000)]),
        ("L7_HTTP_num_out", vec![(16, 1)]),
        ("L7_WEB_num_out", vec![(5, 1)]),
        ("L7_TLS_num_out", vec![(5, 1)]),
        ("tcp_opts_MPTCP", vec![(2, 1), (4, 1)]),
    ] {
        assert_eq!(lines(&step, name), expected, "{name}");
    }
}
