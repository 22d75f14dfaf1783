use crate::alert::Rule;
use crate::api::{AlertState, Application, FlowBy, FlowOf, FlowSort, Window};
use crate::*;
use linkweir_engine::RunReport;
use linkweir_engine::seams::TableFill;
use linkweir_record::flow::{
    Anomaly, Extent, FlowBatch, FlowRow, FlowState, FlowText, Protocol, RttRow,
};
use linkweir_record::{FlowKind, Place};
use linkweir_wire::Timestamp;
use proptest::prelude::*;

const S: u64 = 1_000_000_000;
/// Start of the made captures.
const T0: u64 = 1_700_000_000 * S;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn live(is_live: bool, alerts: &[&str]) -> FlowLive {
    FlowLive::new(LiveOptions {
        source: "eth0".into(),
        is_live,
        alerts: alerts.iter().map(|r| FlowKind::rule(r).unwrap()).collect(),
        ..LiveOptions::default()
    })
}

fn report(packets: u64, last: u64, entries: u64) -> RunReport {
    RunReport {
        packets,
        bytes: packets * 100,
        first: Some(at(T0)),
        last: Some(at(last)),
        fill: TableFill {
            entries,
            capacity: 1000,
            evicted: 0,
        },
        ..RunReport::default()
    }
}

/// A closed TCP flow of a second that ended at `last`: 10 segments with payload, one sent again.
fn tcp(id: u64, last: u64) -> FlowRow {
    let mut row = FlowRow {
        flow_id: id,
        first_ns: last - S,
        last_ns: last,
        start_ns: last - S,
        state: FlowState::Closed,
        has_syn: true,
        application: "tls",
        syn_ack_ns: Some(18_000_000),
        ack_dat_ns: Some(2_000_000),
        ..FlowRow::default()
    };
    row.client.ip = [10, 0, 1, 9].into();
    row.server.ip = [192, 0, 2, 1].into();
    row.server.port = 443;
    (row.client.pkts_all, row.server.pkts_all) = (8, 12);
    (row.client.ip_bytes, row.server.ip_bytes) = (1_000, 9_000);
    (row.client.bytes_uniq, row.server.bytes_uniq) = (500, 7_500);
    (row.client.pkts_data, row.server.pkts_data) = (2, 8);
    (row.server.pkts_retx, row.server.bytes_retx) = (1, 900);
    row.server.anomalies[Anomaly::FastRetransmit as usize] = 1;
    let rtt = |avg_ns| RttRow {
        count: 4,
        avg_ns,
        min_ns: avg_ns,
        max_ns: avg_ns,
        std_ns: 0,
    };
    row.client.rtt = rtt(20_000_000);
    row.server.rtt = rtt(1_000_000);
    row
}

fn udp(id: u64, last: u64) -> FlowRow {
    let mut row = FlowRow {
        protocol: Protocol::Udp,
        state: FlowState::Idle,
        application: "dns",
        ..tcp(id, last)
    };
    row.server.port = 53;
    (row.client.bytes_all, row.server.bytes_all) = (60, 300);
    row
}

fn batch(rows: impl IntoIterator<Item = FlowRow>, name: &[u8]) -> FlowBatch {
    let mut batch = FlowBatch::default();
    for row in rows {
        let text = FlowText {
            sni: if row.protocol == Protocol::Tcp {
                name
            } else {
                b""
            },
            ..FlowText::default()
        };
        batch.push(row, &text);
    }
    batch
}

#[test]
fn flows_are_counted_by_country_and_system_where_these_are_known() {
    let live = live(true, &[]);
    let mut sink = live.sink();
    live.tick(&report(0, T0, 0), at(T0));
    let between = |id, client: (&str, u32), server: (&str, u32)| {
        let mut row = tcp(id, T0 + S / 4);
        row.client.place = Place::new(client.0, client.1);
        row.server.place = Place::new(server.0, server.1);
        row
    };
    let rows = [
        between(1, ("NL", 64_500), ("DE", 0)),
        between(2, ("NL", 0), ("", 4_200_000_000)),
        tcp(3, T0 + S / 4),
    ];
    sink.write(&batch(rows, b"")).unwrap();
    live.tick(&report(400, T0 + S / 2, 7), at(T0 + S + S / 4));
    let top = |by| {
        let rows = live.top(by, FlowSort::Flows, Window::All, 9).rows;
        let keys = rows.into_iter().map(|row| (row.key, row.flows, row.bytes));
        keys.collect::<Vec<_>>()
    };
    let key = |text: &str, flows| (text.to_owned(), flows, flows * 10_000);
    assert_eq!(top(FlowBy::ClientCountry), [key("NL", 2)]);
    assert_eq!(top(FlowBy::ServerCountry), [key("DE", 1)]);
    assert_eq!(top(FlowBy::ClientAsn), [key("AS64500", 1)]);
    assert_eq!(top(FlowBy::ServerAsn), [key("AS4200000000", 1)]);
    let csv = live.csv(What::Keys(FlowBy::ClientCountry));
    assert!(csv.contains("\nNL,"), "{csv}");
    assert!(!csv.contains("asn"), "columns of clients: {csv}");
    // The client of all three, by what is newest.
    let clients = live
        .top(FlowBy::Client, FlowSort::Flows, Window::All, 9)
        .rows;
    let about = &clients[0].about;
    assert_eq!((about.country.as_deref(), about.asn), (Some("NL"), None));
    let csv = live.csv(What::Keys(FlowBy::Client));
    assert!(
        csv.contains(",country\r\n") && csv.contains(",NL\r\n"),
        "{csv}"
    );
    let servers = live
        .top(FlowBy::Server, FlowSort::Flows, Window::All, 9)
        .rows;
    assert_eq!(servers[0].about, AboutRow::default());
    assert!(!live.meta().places, "no database was named");
    let with = FlowLive::new(LiveOptions {
        has_places: true,
        ..LiveOptions::default()
    });
    assert!(with.meta().places);
}

#[test]
fn flows_count_when_their_record_comes_and_what_began_is_told_from_the_table() {
    let live = live(true, &[]);
    let mut sink = live.sink();
    live.tick(&report(0, T0, 0), at(T0));
    let reset = FlowRow {
        state: FlowState::Reset,
        has_syn: false,
        ..tcp(2, T0 + S / 2)
    };
    let rows = [tcp(1, T0 + S / 4), reset, udp(3, T0 - 300 * S)];
    sink.write(&batch(rows, b"Shop.Example")).unwrap();
    live.tick(&report(400, T0 + S / 2, 7), at(T0 + S / 2));
    live.tick(&report(500, T0 + S / 2, 7), at(T0 + S + S / 4));
    let ticks = live.ticks_after(0);
    let [tick] = ticks.as_slice() else {
        panic!("{ticks:?}");
    };
    // Seven are there and three have gone.
    assert_eq!((tick.new_flows, tick.table.entries), (10, 7));
    assert_eq!((tick.ended, tick.ended_tcp, tick.ended_udp), (3, 2, 1));
    assert_eq!(
        (
            tick.ends.closed,
            tick.ends.reset,
            tick.ends.idle,
            tick.midstream
        ),
        (1, 1, 1, 1)
    );
    assert_eq!((tick.flow_packets, tick.flow_bytes), (60, 30_000));
    // Segments are those of TCP.
    assert_eq!(
        (tick.data_segments, tick.retransmissions, tick.payload_bytes),
        (20, 2, 16_000)
    );
    assert_eq!(tick.anomalies, [("fast_retransmit", 2)].into());
    let tls = Application {
        flows: 2,
        bytes: 20_000,
    };
    assert_eq!(tick.applications.get("tls"), Some(&tls));
    let rtt = tick.rtt_ns.unwrap();
    assert_eq!((rtt.count, rtt.max), (2, 21_000_000));
    assert_eq!(tick.server_rtt_ns.unwrap().max, 20_000_000);
    assert_eq!(tick.client_rtt_ns.unwrap().max, 1_000_000);
    assert_eq!(tick.handshake_ns.unwrap().max, 20_000_000);
    // 8,000 bytes in a second, and 360 of UDP.
    let rate = tick.throughput_bps.unwrap();
    assert_eq!((rate.min, rate.max), (2_880, 64_000));
    assert_eq!(live.totals().late_records, 0);

    let top = live.top(FlowBy::Name, FlowSort::Bytes, Window::All, 9);
    assert_eq!(top.rows.len(), 1, "what has no name is under none");
    let row = &top.rows[0];
    assert_eq!(row.key, "shop.example");
    assert_eq!((row.bytes, row.flows, row.reset), (20_000, 2, 1));
    assert_eq!((row.data_segments, row.retransmissions), (20, 2));
    let servers = live.top(FlowBy::Server, FlowSort::Flows, Window::All, 9);
    let keys: Vec<_> = servers.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, ["192.0.2.1:443", "192.0.2.1:53"]);
    let of = live.top(
        FlowBy::Application,
        FlowSort::Retransmissions,
        Window::All,
        1,
    );
    assert_eq!(of.rows[0].key, "tls");
    assert_eq!(live.ccdf_of(FlowOf::Rtt, Window::All).count, 2);
    assert_eq!(live.ccdf_of(FlowOf::Duration, Window::Minute).count, 3);
}

#[test]
fn partial_records_have_the_counters_and_the_final_one_the_end() {
    let live = live(false, &[]);
    let mut sink = live.sink();
    live.tick(&report(1, T0, 1), at(T0));
    let partial = |bytes| {
        let mut row = FlowRow {
            extent: Extent::Partial,
            state: FlowState::Open,
            ..tcp(9, T0 + S)
        };
        (row.client.ip_bytes, row.server.ip_bytes) = (0, bytes);
        row
    };
    let rows = [
        partial(4_000),
        partial(6_000),
        tcp(9, T0 + S),
        tcp(10, T0 + S),
    ];
    sink.write(&batch(rows, b"a")).unwrap();
    live.finish(&report(2, T0 + S, 0));
    let totals = live.totals();
    assert_eq!((totals.flow_bytes, totals.ended), (20_000, 2));
    assert_eq!(totals.duration_ns.unwrap().count, 2);
    assert_eq!(totals.applications["tls"].flows, 2);
    let top = live.top(FlowBy::Name, FlowSort::Bytes, Window::All, 1);
    // An end without bytes counts as one byte.
    assert_eq!((top.rows[0].bytes, top.rows[0].flows), (20_001, 2));
}

#[test]
fn rules_of_flows() {
    let rules = [
        "retransmissions share > 3 %",
        "p95 of rtt of server 192.0.2.1:443 >= 21 ms min 5 samples",
        "mean of server rtt of client 10.0.1.9 > 20 ms min 1 samples",
        "resets share > 10 % min 1 samples",
        "active flows > 5",
        "max of throughput of name SHOP.example > 60 kb/s",
        "fast_retransmit share of application tls > 9 %",
        "flows rate of server 192.0.2.1:53 > 0 /s",
        "new flows rate > 1 /s",
    ];
    let live = live(true, &rules);
    let mut sink = live.sink();
    live.tick(&report(0, T0, 0), at(T0));
    let rows = (0..10).map(|n| tcp(n, T0 + S / 4));
    sink.write(&batch(rows, b"shop.example")).unwrap();
    live.tick(&report(500, T0 + S / 2, 7), at(T0 + S / 2));
    live.tick(&report(500, T0 + S / 2, 7), at(T0 + S + S / 4));
    let alerts = live.alerts();
    let stands: Vec<_> = alerts.iter().map(|a| (a.state, a.value)).collect();
    use AlertState::{Firing, Ok as Fine};
    assert_eq!(
        stands,
        [
            (Firing, Some(10.0)),
            (Firing, Some(21_000_000.0)),
            (Fine, Some(20_000_000.0)),
            (Fine, Some(0.0)),
            (Firing, Some(7.0)),
            (Firing, Some(64_000.0)),
            (Firing, Some(10.0)),
            (Fine, Some(0.0)),
            (Firing, Some(17.0)),
        ]
    );
    assert_eq!(alerts[5].unit, "bit/s");
    let told = live.events_after(0);
    let told: Vec<_> = told.iter().map(|(_, event)| event.to_string()).collect();
    let throughput = "alert firing: max of throughput of name SHOP.example > 60 kb/s (64 kbit/s)";
    assert!(told.iter().any(|line| line == throughput), "{told:?}");
    for (rule, column, part) in [
        ("p95 > 1 ms", 5, "of rtt"),
        ("p95 of url > 1 ms", 8, "`rtt`"),
        ("p95 of server > 1 ms", 15, "expected `rtt`"),
        ("p95 of rtt > 1 %", 16, "unit of time"),
        ("active flows of server 10.0.0.1 > 1", 14, "whole run only"),
        ("requests rate > 1 /s", 1, "expected what to measure"),
        ("p95 of rtt of host a > 1 ms", 15, "`name`, `server`"),
        ("rto rate > 1 /s", 5, "expected `share`"),
    ] {
        let error = FlowKind::rule(rule).expect_err(rule);
        assert_eq!(error.column, column, "{error}");
        assert!(error.message.contains(part), "{error}");
    }
    // And HTTP has none of these words.
    assert!("active flows > 5".parse::<Rule>().is_err());
}

#[test]
fn files_have_a_column_for_everything() {
    let live = live(false, &[]);
    let mut sink = live.sink();
    live.tick(&report(1, T0, 1), at(T0));
    sink.write(&batch([tcp(1, T0 + S)], b"=x")).unwrap();
    live.finish(&report(2, T0 + S, 0));
    let csv = live.csv(What::Series);
    let mut lines = csv.lines();
    let names: Vec<_> = lines.next().unwrap().split(',').collect();
    let first: Vec<_> = lines.next().unwrap().split(',').collect();
    assert_eq!(names.len(), first.len());
    for name in [
        "new_flows",
        "closed",
        "rto",
        "server_rtt_p95_ns",
        "bytes_tls",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), names.len(), "no name twice");
    let keys = live.csv(What::Keys(FlowBy::Name));
    assert!(
        keys.ends_with("\"'=x\",10000,1,0,0,10,1,21000000,21000000\r\n"),
        "{keys}"
    );
    let row =
        serde_json::to_value(&live.top(FlowBy::Name, FlowSort::Bytes, Window::All, 1).rows[0]);
    let row = row.unwrap();
    assert!(
        <FlowKind as Kind>::Keyed::COLUMNS
            .iter()
            .all(|name| row.get(name).is_some())
    );
    assert_eq!(
        row.as_object().unwrap().len(),
        <FlowKind as Kind>::Keyed::COLUMNS.len()
    );
    let json = serde_json::to_value(live.snapshot()).unwrap();
    assert_eq!(json["meta"]["kind"], "flows");
    assert_eq!(json["ticks"][0]["rtt_ns"]["count"], 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn intervals_add_up_to_the_run(
        flows in prop::collection::vec((0_u64..20 * S, any::<bool>(), 0_u8..7), 0..80),
        is_live in any::<bool>(),
    ) {
        let live = live(is_live, &[]);
        let mut sink = live.sink();
        let mut sum = 0;
        for (n, (time, is_tcp, state)) in (0..).zip(&flows) {
            let state = [
                FlowState::Open, FlowState::Closed, FlowState::Reset, FlowState::Idle,
                FlowState::Unanswered, FlowState::Evicted, FlowState::Reused,
            ][usize::from(*state)];
            let row = if *is_tcp { tcp(n, T0 + time) } else { udp(n, T0 + time) };
            sum += 10_000;
            live.tick(&report(n, T0 + time, n % 5), at(T0 + time));
            sink.write(&batch([FlowRow { state, ..row }], b"n")).unwrap();
            if n % 7 == 0 {
                sink.flush().unwrap();
            }
        }
        live.finish(&report(flows.len() as u64, T0 + 20 * S, 0));
        let ticks = live.ticks_after(0);
        let count = flows.len() as u64;
        let total = live.totals();
        prop_assert_eq!(ticks.iter().map(|t| t.ended).sum::<u64>(), count);
        prop_assert_eq!(ticks.iter().map(|t| t.flow_bytes).sum::<u64>(), sum);
        prop_assert_eq!(total.flow_bytes, sum);
        prop_assert_eq!(ticks.iter().map(|t| t.new_flows).sum::<u64>(), total.new_flows);
        prop_assert!(total.new_flows >= count);
        let states: u64 = total.ends.by_state().iter().map(|(_, n)| n).sum();
        prop_assert_eq!(states, count);
        prop_assert_eq!(total.late_records, 0);
    }
}

#[test]
fn times_of_records_are_nanoseconds_and_named_so() {
    let live = live(true, &[]);
    live.keep_records();
    live.take(&batch([tcp(1, T0 + S)], b"shop.example"));
    let behind = FlowKind::behind(FlowBy::Name, "shop.example").unwrap();
    let found = live.records(&behind, RecentOrder::Slowest, 9).unwrap();
    let record = &found.records[0];
    let last = record["last_ns"].as_u64().unwrap();
    assert_eq!(last, T0 + S);
    assert_eq!(
        last - record["first_ns"].as_u64().unwrap(),
        record["durat_ns"]
    );
    assert!(!record.contains_key("first") && !record.contains_key("durat"));
}
