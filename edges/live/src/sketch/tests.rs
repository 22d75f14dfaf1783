//! Merged statistics are those of one run over all records.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use linkweir_engine::RunReport;
use linkweir_record::flow::{Extent, FlowBatch, FlowRow, FlowState, FlowText, Protocol, RttRow};
use linkweir_record::http::{HttpRow, HttpState, Text};
use linkweir_record::{FlowKind, HttpBatch, HttpKind, RecordBatch as _, RecordKind};
use linkweir_wire::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::api::{By, FlowBy, FlowOf, FlowSort, HttpOf, Sort, Window, Word as _};
use crate::interval::LiveOptions;
use crate::live::LiveOf;

const S: u64 = 1_000_000_000;
/// Start of the made captures, and the time at which sketches come.
const T0: u64 = 1_700_000_000 * S;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn live<K: Mergeable>(max_keys: usize, is_aligned: bool) -> LiveOf<K> {
    LiveOf::new(LiveOptions {
        is_live: false,
        is_aligned,
        max_keys,
        ..LiveOptions::default()
    })
}

/// Keeps what is sent.
#[derive(Clone, Default)]
struct Topic(Arc<Mutex<Vec<Vec<u8>>>>);

impl Carrier for Topic {
    fn send(&mut self, _key: &[u8], message: &[u8]) -> bool {
        self.0.lock().unwrap().push(message.to_vec());
        true
    }
}

/// A run over `batches`, one for each second, in which 10 packets of 100 bytes came for each record.
fn run<K: Mergeable>(live: &LiveOf<K>, batches: &[<K as RecordKind>::Batch]) {
    let mut sink = live.sink();
    let mut report = RunReport {
        first: Some(at(T0)),
        ..RunReport::default()
    };
    for (second, batch) in (0..).zip(batches) {
        live.tick(&report, at(T0 + second * S));
        report.packets += 10 * batch.len() as u64;
        report.bytes = report.packets * 100;
        report.drops.kernel += 1;
        report.fill.entries = second;
        report.fill.capacity = 100;
        report.last = Some(at(T0 + second * S + S - 1));
        sink.write(batch).unwrap();
        live.tick(&report, at(T0 + second * S + S - 1));
        sink.flush().unwrap();
    }
    live.finish(&report);
}

/// What a probe sends of a run.
fn sent<K: Mergeable>(
    probe: &str,
    max_keys: usize,
    batches: &[<K as RecordKind>::Batch],
) -> Vec<Vec<u8>> {
    let live = live::<K>(max_keys, true);
    let topic = Topic::default();
    let options = PublisherOptions {
        probe: probe.to_owned(),
        run: T0,
        waits: true,
    };
    let publisher = Publisher::start(&live, &options, topic.clone()).unwrap();
    run(&live, batches);
    let sent = publisher.finish();
    let messages = topic.0.lock().unwrap().clone();
    assert_eq!((sent.messages, sent.lost), (messages.len() as u64, 0));
    assert!(messages.iter().all(|message| message.len() <= MAX_BYTES));
    messages
}

/// The statistics of all messages, in this order, when they have all come.
fn merged<K: Mergeable>(max_keys: usize, messages: &[Vec<u8>]) -> LiveOf<K> {
    let live = live::<K>(max_keys, false);
    let mut merger = Merger::new(live.clone(), MergeOptions::default());
    for message in messages {
        merger.take(message, at(T0));
    }
    merger.finish(at(T0 + S));
    live
}

/// One transaction: probe, millisecond of its response, response time, code, host, method.
type Made = (usize, u64, u64, u16, u8, u8);

fn push(batch: &mut HttpBatch, (_, millis, took, code, host, method): Made) {
    let end = T0 + millis * 1_000_000;
    let state = match code {
        0 => HttpState::Unanswered,
        503 => HttpState::Orphan,
        _ => HttpState::Complete,
    };
    let row = HttpRow {
        client_ip: Ipv4Addr::new(10, 0, 1, host % 5).into(),
        server_ip: Ipv4Addr::new(10, 0, 0, host % 3).into(),
        server_port: 80,
        request_ts_ns: (state != HttpState::Orphan).then(|| end - took),
        response_ts_ns: (state != HttpState::Unanswered).then_some(end),
        status_code: (code > 0).then_some(code),
        request_bytes: Some(100),
        response_bytes: Some(900),
        state,
        ..HttpRow::default()
    };
    let methods: [&[u8]; 3] = [b"GET", b"POST", b"\xff\n"];
    let host = format!("host{host}");
    let text = Text {
        method: methods[usize::from(method)],
        uri: b"/user/17",
        host: host.as_bytes(),
        ..Text::default()
    };
    batch.push(row, &text);
}

/// The records of those for which `is_mine` holds, second by second, in order of time.
fn batches(all: &[Made], is_mine: impl Fn(&Made) -> bool) -> Vec<HttpBatch> {
    let mut all = all.to_vec();
    all.sort_unstable_by_key(|made| made.1);
    let batch = |second: u64| {
        let mut batch = HttpBatch::default();
        let here = all.iter().filter(|made| made.1 / 1000 == second);
        here.filter(|made| is_mine(made))
            .for_each(|made| push(&mut batch, *made));
        batch
    };
    (0..5).map(batch).collect()
}

fn transactions() -> impl Strategy<Value = Vec<Made>> {
    let code = prop::sample::select(vec![0_u16, 200, 200, 200, 304, 404, 500, 503, 999]);
    let one = (
        0_usize..3,
        0_u64..5000,
        1_u64..3 * S,
        code,
        0_u8..12,
        0_u8..3,
    );
    prop::collection::vec(one, 0..200)
}

/// The lines of `/metrics` that belong to HTTP.
fn http_lines(live: &LiveOf<HttpKind>) -> Vec<String> {
    let text = live.metrics();
    let lines = text
        .lines()
        .filter(|line| line.starts_with("linkweir_http_"));
    lines.map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn probes_merged_in_any_order_are_one_run(
        (all, order) in transactions().prop_flat_map(|all| (Just(all), any::<prop::sample::Index>())),
        seed in any::<u64>(),
    ) {
        let one = live::<HttpKind>(64, true);
        run(&one, &batches(&all, |_| true));
        let mut messages: Vec<Vec<u8>> = (0..3)
            .flat_map(|probe| {
                let mine = batches(&all, |made| made.0 == probe);
                sent::<HttpKind>(&format!("probe{probe}"), 64, &mine)
            })
            .collect();
        // Some come twice, and all in another order; within the window in which messages are distinguished.
        messages.push(messages[order.index(messages.len())].clone());
        let mut state = seed;
        for at in (1..messages.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            messages.swap(at, usize::try_from(state >> 33).unwrap() % (at + 1));
        }
        let merged = merged::<HttpKind>(64, &messages);

        let (is, should) = (merged.totals(), one.totals());
        prop_assert_eq!(&is.figures, &should.figures);
        prop_assert_eq!((is.packets, is.bytes), (should.packets, should.bytes));
        prop_assert_eq!(is.dropped.kernel, 3 * should.dropped.kernel);
        prop_assert_eq!((is.first_ms, is.last_ms), (should.first_ms, should.last_ms));
        prop_assert_eq!(http_lines(&merged), http_lines(&one));
        prop_assert_eq!(
            merged.ccdf_of(HttpOf::ResponseTime, Window::All),
            one.ccdf_of(HttpOf::ResponseTime, Window::All)
        );
        // Intervals, in their order: the last one of a run is as short as the run.
        let figures = |live: &LiveOf<HttpKind>| {
            let ticks = live.ticks_after(0);
            ticks.iter().map(|tick| (tick.packets, tick.figures.clone())).collect::<Vec<_>>()
        };
        prop_assert_eq!(figures(&merged), figures(&one));
        for by in By::ALL {
            for window in [Window::All, Window::FiveMinutes] {
                let tables = [&merged, &one].map(|live| live.top(*by, Sort::Requests, window, 100));
                prop_assert_eq!(&tables[0].rows, &tables[1].rows);
            }
        }
        let probes = merged.probes().unwrap();
        prop_assert_eq!(probes.probes.len(), 3);
        prop_assert_eq!(probes.probes.iter().map(|probe| probe.duplicates).sum::<u64>(), 1);
        prop_assert_eq!(probes.probes.iter().map(|probe| probe.packets).sum::<u64>(), is.packets);
        prop_assert!(probes.probes.iter().all(|probe| probe.has_ended && probe.missing_intervals == 0));
        prop_assert!(probes.refused.is_empty(), "{:?}", probes.refused);
    }

    #[test]
    fn counts_of_keys_are_as_wrong_as_the_table_says(all in transactions()) {
        let messages: Vec<Vec<u8>> = (0..3)
            .flat_map(|probe| {
                let mine = batches(&all, |made| made.0 == probe);
                sent::<HttpKind>(&format!("probe{probe}"), 4, &mine)
            })
            .collect();
        let merged = merged::<HttpKind>(4, &messages);
        let table = merged.top(By::Host, Sort::Requests, Window::All, 100);
        for host in 0..12 {
            let true_count = all.iter().filter(|made| made.4 == host && made.3 != 503).count() as u64;
            match table.rows.iter().find(|row| row.key == format!("host{host}")) {
                Some(row) => {
                    prop_assert!(row.requests >= true_count);
                    prop_assert!(row.requests - true_count <= table.floor);
                }
                None => prop_assert!(true_count <= table.floor),
            }
        }
    }

    #[test]
    fn what_a_stranger_sends_is_counted_and_harms_nothing(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        number in prop::sample::select(vec!["0", "1", "18446744073709551615", "-1", "1e9", "281474976710656", "null", "[]"]),
        place in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let all: Vec<Made> = (0..40).map(|n| (0, n * 100, 1000 + n, 200, 1, 0)).collect();
        let valid = sent::<HttpKind>("p", 8, &batches(&all, |_| true));
        let live = live::<HttpKind>(8, false);
        let mut merger = Merger::new(live.clone(), MergeOptions::default());
        merger.take(&bytes, at(T0));
        for message in &valid {
            let mut changed = message.clone();
            for (index, byte) in &edits {
                let at = index.index(changed.len());
                changed[at] = *byte;
            }
            merger.take(&changed, at(T0));
            merger.take(&message[..cut.index(message.len())], at(T0));
            // Another number in the place of one of its numbers.
            let text = String::from_utf8(message.clone()).unwrap();
            let digits: Vec<_> = text
                .match_indices(|c: char| c.is_ascii_digit())
                .filter(|(at, _)| *at == 0 || !text.as_bytes()[at - 1].is_ascii_digit())
                .map(|(at, _)| at)
                .collect();
            let from = digits[place.index(digits.len())];
            let (before, rest) = text.split_at(from);
            let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            merger.take(format!("{before}{number}{after}").as_bytes(), at(T0));
            merger.take(message, at(T0));
            merger.advance(at(T0 + 20 * S));
        }
        merger.finish(at(T0 + 30 * S));
        // Everything can still be asked for.
        let _ = (live.metrics(), serde_json::to_string(&live.snapshot()).unwrap());
        for by in By::ALL {
            for sort in Sort::ALL {
                prop_assert!(live.top(*by, *sort, Window::All, 10).rows.len() <= 10);
            }
        }
        let probes = live.probes().unwrap();
        prop_assert!(probes.refused.values().sum::<u64>() > 0, "half a message is none");
    }
}

fn flow(id: u64, millis: u64, rtt: u64) -> FlowRow {
    let last = T0 + millis * 1_000_000;
    let mut row = FlowRow {
        flow_id: id,
        first_ns: last - S,
        last_ns: last,
        start_ns: last - S,
        extent: Extent::Final,
        state: if id.is_multiple_of(3) {
            FlowState::Reset
        } else {
            FlowState::Closed
        },
        application: if id.is_multiple_of(2) { "tls" } else { "http" },
        syn_ack_ns: Some(rtt),
        ack_dat_ns: Some(2_000),
        ..FlowRow::default()
    };
    if id.is_multiple_of(5) {
        (row.protocol, row.application) = (Protocol::Udp, "dns");
    }
    row.server.ip = Ipv4Addr::new(192, 0, 2, 1).into();
    (row.client.pkts_all, row.server.pkts_all) = (8, 12);
    (row.client.ip_bytes, row.server.ip_bytes) = (1_000, 9_000 + id);
    (row.client.pkts_data, row.server.pkts_data) = (2, 8);
    (row.server.pkts_retx, row.server.bytes_retx) = (1, 900);
    row.server.anomalies[0] = 1;
    let mean = |avg_ns| RttRow {
        count: 4,
        avg_ns,
        min_ns: avg_ns,
        max_ns: avg_ns,
        std_ns: 0,
    };
    (row.client.rtt, row.server.rtt) = (mean(rtt), mean(1_000_000));
    row
}

#[test]
fn flows_of_probes_merged_are_those_of_one_run() {
    let batches = |is_mine: &dyn Fn(u64) -> bool| -> Vec<FlowBatch> {
        let batch = |second: u64| {
            let mut batch = FlowBatch::default();
            for id in (0..100).filter(|id| is_mine(*id)) {
                let text = FlowText {
                    sni: if id.is_multiple_of(2) {
                        b"shop.test"
                    } else {
                        b""
                    },
                    ..FlowText::default()
                };
                let mut row = flow(second * 100 + id, second * 1000 + id * 9, id * id * 77_777);
                row.client.place = linkweir_record::Place::new("NL", 64_500);
                row.server.place = linkweir_record::Place::new("DE", 64_501);
                batch.push(row, &text);
            }
            batch
        };
        (0..4).map(batch).collect()
    };
    let one = live::<FlowKind>(64, true);
    run(&one, &batches(&|_| true));
    let mut messages = sent::<FlowKind>("b", 64, &batches(&|id| id.is_multiple_of(4)));
    messages.extend(sent::<FlowKind>(
        "a",
        64,
        &batches(&|id| !id.is_multiple_of(4)),
    ));
    let merged = merged::<FlowKind>(64, &messages);
    let (is, should) = (merged.totals(), one.totals());
    // A flow enters a table when it leaves it or when the table is fuller: there are two tables here.
    let figures = crate::api::FlowFigures {
        new_flows: is.new_flows,
        ..should.figures
    };
    assert_eq!(is.figures, figures);
    assert!(is.figures.ended == 400 && is.figures.applications["tls"].flows > 0);
    for of in FlowOf::ALL {
        assert_eq!(
            merged.ccdf_of(*of, Window::All),
            one.ccdf_of(*of, Window::All)
        );
    }
    assert!(merged.meta().places, "some probe knows where addresses are");
    for by in FlowBy::ALL {
        let tables = [&merged, &one].map(|live| live.top(*by, FlowSort::Bytes, Window::All, 9));
        assert!(!tables[0].rows.is_empty());
        assert_eq!(tables[0].rows, tables[1].rows);
    }
    let lines = |live: &LiveOf<FlowKind>| -> Vec<String> {
        let text = live.metrics();
        let seconds = text.lines().filter(|line| line.contains("_seconds_bucket"));
        seconds.map(str::to_owned).collect()
    };
    assert!(lines(&one).len() > 60);
    assert_eq!(lines(&merged), lines(&one));
}

#[test]
fn what_is_too_large_for_a_message_is_cut_and_nothing_is_lost() {
    let mut batch = HttpBatch::default();
    for n in 0..20_000 {
        push(&mut batch, (0, 1 + n / 100, 1000 + n * n, 200, 1, 0));
    }
    let messages = sent::<HttpKind>("p", 256, &[batch]);
    let intervals = messages
        .iter()
        .filter(|m| String::from_utf8_lossy(m).contains("\"interval\""));
    assert_eq!(intervals.count(), 1);
    let pieces = messages
        .iter()
        .filter(|m| String::from_utf8_lossy(m).contains("\"distributions\""));
    assert!(pieces.count() > 1);
    let times = merged::<HttpKind>(256, &messages)
        .totals()
        .figures
        .response_time_ns;
    let times = times.unwrap();
    let sum: u64 = (0..20_000).map(|n| 1000 + n * n).sum();
    assert_eq!((times.count, times.mean), (20_000, sum / 20_000));
    assert_eq!((times.min, times.max), (1000, 1000 + 19_999 * 19_999));
}

#[test]
fn a_table_that_is_too_large_leaves_its_smallest_keys_out() {
    let mut batch = HttpBatch::default();
    for n in 0..200_000_u64 {
        // Hosts by the hundred, each with values in every bucket there is.
        let took = (8 + n / 400 / 32 % 8) << (7 + n / 400 % 32);
        let host = format!("{:0>120}", n % 400);
        let row = HttpRow {
            request_ts_ns: Some(T0 - took),
            response_ts_ns: Some(T0),
            status_code: Some(200),
            ..HttpRow::default()
        };
        let text = Text {
            method: b"GET",
            uri: b"/",
            host: host.as_bytes(),
            ..Text::default()
        };
        batch.push(row, &text);
    }
    let live = live::<HttpKind>(1024, true);
    let topic = Topic::default();
    let options = PublisherOptions {
        probe: "p".to_owned(),
        run: T0,
        waits: true,
    };
    let publisher = Publisher::start(&live, &options, topic.clone()).unwrap();
    run(&live, &[batch]);
    assert_eq!(publisher.finish().lost, 0);
    let messages = topic.0.lock().unwrap().clone();
    assert!(messages.iter().all(|message| message.len() <= MAX_BYTES));
    let table =
        merged::<HttpKind>(1024, &messages).top(By::Host, Sort::Requests, Window::All, 1000);
    assert!(
        (50..400).contains(&table.rows.len()),
        "{}",
        table.rows.len()
    );
    // All had 500; those that are not there had no more.
    assert!(table.rows.iter().all(|row| row.requests == 500));
    assert_eq!(table.floor, 500);
}

/// A merger of intervals of a second, and its statistics.
fn merger() -> (Merger<HttpKind>, LiveOf<HttpKind>) {
    let live = live::<HttpKind>(64, false);
    (Merger::new(live.clone(), MergeOptions::default()), live)
}

fn five_seconds(probe: &str) -> Vec<Vec<u8>> {
    let all: Vec<Made> = (0..50).map(|n| (0, n * 100, 1000, 200, 1, 0)).collect();
    sent::<HttpKind>(probe, 64, &batches(&all, |_| true))
}

/// Numbers of the messages that have the sums of an interval.
fn with_sums(messages: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let has_sums = |m: &&Vec<u8>| String::from_utf8_lossy(m).contains("\"interval\"");
    messages.iter().filter(has_sums).cloned().collect()
}

#[test]
fn an_interval_waits_for_slow_probes_and_not_for_ever() {
    let (mut merger, live) = merger();
    let (fast, slow) = (
        with_sums(&five_seconds("fast")),
        with_sums(&five_seconds("slow")),
    );
    for (fast, slow) in fast.iter().zip(&slow).take(2) {
        merger.take(fast, at(T0));
        merger.take(slow, at(T0));
    }
    merger.advance(at(T0 + S));
    assert_eq!(live.last_id(), 0, "others may be about to be heard of");
    merger.advance(at(T0 + 3 * S));
    assert_eq!(live.last_id(), 2, "all that are known have sent these");
    merger.take(&fast[2], at(T0 + 4 * S));
    merger.advance(at(T0 + 5 * S));
    assert_eq!(live.last_id(), 2, "one is slow");
    merger.advance(at(T0 + 14 * S));
    assert_eq!(live.last_id(), 3, "it is too slow");
    let before = live.totals().requests;
    merger.take(&slow[2], at(T0 + 14 * S));
    merger.advance(at(T0 + 14 * S));
    assert_eq!(live.last_id(), 3);
    assert_eq!(
        live.totals().requests,
        before + 10,
        "late ones are in the sums"
    );
    let probes = live.probes().unwrap();
    let late: Vec<u64> = probes
        .probes
        .iter()
        .map(|probe| probe.late_intervals)
        .collect();
    assert_eq!(late, [0, 1]);
    let ticks = live.ticks_after(0);
    let requests: Vec<u64> = ticks.iter().map(|tick| tick.requests).collect();
    assert_eq!(requests, [20, 20, 10]);
    assert!((ticks[0].t_ms, ticks[0].table.capacity) == ((T0 + S) / 1_000_000, 200));
}

#[test]
fn a_probe_that_is_silent_is_stale_and_one_that_has_ended_is_not() {
    let (mut merger, live) = merger();
    let (ended, silent) = (five_seconds("ended"), with_sums(&five_seconds("silent")));
    ended
        .iter()
        .for_each(|message| merger.take(message, at(T0)));
    merger.take(&silent[0], at(T0));
    // Two of five never come.
    merger.take(&silent[3], at(T0 + S));
    merger.advance(at(T0 + 15 * S));
    let states = |live: &LiveOf<HttpKind>| -> Vec<(String, bool, bool, u64)> {
        let all = live.probes().unwrap().probes.clone();
        let state = |p: crate::api::Probe| (p.name, p.has_ended, p.is_stale, p.missing_intervals);
        all.into_iter().map(state).collect()
    };
    let (ended, silent) = ("ended".to_owned(), "silent".to_owned());
    assert_eq!(
        states(&live),
        [
            (ended.clone(), true, false, 0),
            (silent.clone(), false, false, 2)
        ]
    );
    merger.advance(at(T0 + 17 * S));
    assert_eq!(
        states(&live),
        [(ended, true, false, 0), (silent, false, true, 2)]
    );
    assert_eq!(live.last_id(), 5, "it is not waited for");
    let text = live.metrics();
    for line in [
        "linkweir_probe_up{probe=\"silent\"} 0",
        "linkweir_probe_packets_total{probe=\"ended\"} 500",
        "linkweir_probe_missing_intervals_total{probe=\"silent\"} 2",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} in {text}");
    }
}

#[test]
fn a_clock_that_is_years_ahead_makes_nobody_late() {
    let (mut merger, live) = merger();
    let right = with_sums(&five_seconds("right"));
    merger.take(&right[0], at(T0));
    merger.advance(at(T0 + 4 * S));
    assert_eq!(live.last_id(), 1);
    let ahead = String::from_utf8(with_sums(&five_seconds("ahead"))[0].clone()).unwrap();
    let (start, end) = (T0.to_string(), (T0 + S).to_string());
    let later = |text: &str| (text.parse::<u64>().unwrap() + 100_000_000 * S).to_string();
    let ahead = ahead
        .replace(
            &format!("\"start_ns\":{start}"),
            &format!("\"start_ns\":{}", later(&start)),
        )
        .replace(
            &format!("\"end_ns\":{end}"),
            &format!("\"end_ns\":{}", later(&end)),
        );
    merger.take(ahead.as_bytes(), at(T0 + 4 * S));
    for (second, message) in (0..).zip(right.iter().take(4).skip(1)) {
        merger.take(message, at(T0 + (5 + 4 * second) * S));
        merger.advance(at(T0 + (6 + 4 * second) * S));
    }
    let probes = live.probes().unwrap();
    assert!(probes.refused.is_empty(), "{:?}", probes.refused);
    assert_eq!(probes.probes[1].late_intervals, 0);
    assert_eq!(live.last_id(), 4, "the one ahead still waits");
    // Nobody else is left: it is its turn.
    merger.advance(at(T0 + 60 * S));
    assert_eq!(live.last_id(), 5);
    assert_eq!(live.totals().requests, 50);
}

#[test]
fn rules_look_at_all_probes_together() {
    let live = LiveOf::<HttpKind>::new(LiveOptions {
        alerts: vec!["requests rate > 15 /s".parse().unwrap()],
        ..LiveOptions::default()
    });
    let mut merger = Merger::new(live.clone(), MergeOptions::default());
    for message in five_seconds("a").iter().chain(&five_seconds("b")) {
        merger.take(message, at(T0));
    }
    merger.advance(at(T0 + 10 * S));
    let events = live.events_after(0);
    assert_eq!(
        events.len(),
        1,
        "ten of each probe are not above the limit, twenty are"
    );
    assert!((events[0].1.status.value.unwrap() - 20.0).abs() < 1e-9);
}

#[test]
fn messages_are_refused_by_cause() {
    let (mut merger, live) = merger();
    let text = String::from_utf8(with_sums(&five_seconds("p"))[0].clone()).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} in {text}");
        text.replacen(from, to, 1)
    };
    for (message, cause) in [
        ("{".to_owned(), "malformed"),
        (" ".repeat(MAX_BYTES + 1), "too_large"),
        (
            changed("\"linkweir_sketch\":1", "\"linkweir_sketch\":2"),
            "version",
        ),
        (
            changed("\"subject\":\"http\"", "\"subject\":\"flows\""),
            "other_kind",
        ),
        (
            changed("\"packets\":", "\"other\":1,\"packets\":"),
            "malformed",
        ),
        (
            changed("\"unanswered\":0", "\"unanswered\":11"),
            "contradictory",
        ),
        (
            changed("\"unanswered\":0", "\"unanswered\":11,\"other\":1"),
            "malformed",
        ),
        (
            changed("\"unanswered\":0", "\"unanswered\":0,\"unanswered\":0"),
            "malformed",
        ),
        (
            changed("\"codes\":{\"200\"", "\"codes\":{\"2000\""),
            "contradictory",
        ),
        (
            changed("\"of\":\"response_time\"", "\"of\":\"weight\""),
            "contradictory",
        ),
        (
            changed("\"probe\":\"p\"", "\"probe\":\"\""),
            "contradictory",
        ),
    ] {
        let before = live.probes().unwrap().refused.get(cause).copied();
        merger.take(message.as_bytes(), at(T0));
        merger.advance(at(T0));
        let after = live.probes().unwrap().refused.get(cause).copied();
        assert_eq!(
            after,
            Some(before.unwrap_or(0) + 1),
            "{cause}: {message:.300}"
        );
    }
    assert!(live.probes().unwrap().probes.is_empty());
    assert_eq!(
        Cause::ALL.map(|cause| cause.as_str().is_empty()),
        [false; 6]
    );
    merger.take(text.as_bytes(), at(T0));
    assert_eq!(live.probes().unwrap().sketches, 0, "shown when it advances");
    merger.advance(at(T0 + S));
    assert_eq!(live.probes().unwrap().sketches, 1);
}

#[test]
fn names_of_probes_are_bounded() {
    let (mut merger, live) = merger();
    let text = String::from_utf8(with_sums(&five_seconds("p"))[0].clone()).unwrap();
    for n in 0..2000 {
        let named = text.replace("\"probe\":\"p\"", &format!("\"probe\":\"{n}\""));
        merger.take(named.as_bytes(), at(T0));
    }
    merger.advance(at(T0 + S));
    let probes = live.probes().unwrap();
    assert_eq!(probes.probes.len(), 1024);
    assert_eq!(probes.refused["too_many_probes"], 2000 - 1024);
}

/// The name that messages have for a kind is that of its records.
#[test]
fn subjects_are_kinds() {
    assert_eq!(<HttpKind as crate::Kind>::SUBJECT, "http");
    assert_eq!(<FlowKind as crate::Kind>::SUBJECT, "flows");
    assert!(!HttpKind::NAME.is_empty() && !FlowKind::NAME.is_empty());
}

#[test]
fn only_the_probes_that_were_asked_for_are_merged() {
    let (merger, one) = merger();
    let mut merger = merger.only(["a"]);
    for message in five_seconds("a").iter().chain(&five_seconds("b")) {
        merger.take(message, at(T0));
    }
    merger.take(b"{", at(T0));
    merger.advance(at(T0 + 10 * S));
    let shown = one.probes().unwrap();
    let names: Vec<&str> = shown.probes.iter().map(|probe| &*probe.name).collect();
    assert_eq!(names, ["a"]);
    assert_eq!(shown.left_out, shown.sketches);
    assert_eq!(shown.refused["malformed"], 1);
    merger.finish(at(T0 + 10 * S));
    assert_eq!(one.totals().requests, 50, "as one probe counts");
    let alone = live::<HttpKind>(64, true);
    run(
        &alone,
        &batches(
            &(0..50)
                .map(|n| (0, n * 100, 1000, 200, 1, 0))
                .collect::<Vec<Made>>(),
            |_| true,
        ),
    );
    assert_eq!(one.totals().figures, alone.totals().figures);
}
