use std::collections::BTreeMap;

use linkweir_record::gateway::{GatewayBatch, GatewayEventKind, GatewayRow, GatewayText};
use proptest::prelude::*;

use crate::api::{AlertState, GatewayBy, GatewayOf, GatewaySort, Window};
use crate::download::What;
use crate::gateway::{
    ApplicationStatus, GatewayStatus, Held, KernelCount, QueueStatus, ScannerStatus, StatusBoard,
    StepStatus, VaultStatus,
};
use crate::live::lock;
use crate::*;
use linkweir_record::GatewayKind;
use linkweir_wire::Timestamp;
use std::time::Duration;

const S: u64 = 1_000_000_000;
const T0: u64 = 1_700_000_000 * S;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn live(alerts: &[&str]) -> GatewayLive {
    GatewayLive::new(LiveOptions {
        source: "gateway.toml".into(),
        alerts: alerts
            .iter()
            .map(|rule| GatewayKind::rule(rule).unwrap())
            .collect(),
        ..LiveOptions::default()
    })
}

fn row(event: GatewayEventKind, after: u64) -> GatewayRow {
    GatewayRow {
        ts_ns: T0 + after,
        event,
        client_ip: [10, 0, 0, 7].into(),
        client_port: 40_000,
        server_ip: [192, 0, 2, 1].into(),
        server_port: 1863,
        protocol: "tcp",
        ..GatewayRow::default()
    }
}

fn text<'a>(application: &'a str, file_name: &'a [u8], detail: &'a str) -> GatewayText<'a> {
    GatewayText {
        application: application.as_bytes(),
        rule: b"audit",
        file_name,
        detail: detail.as_bytes(),
        ..GatewayText::default()
    }
}

/// Two connections decided, one of them refused; a keyword, a virus and the end of its connection; a
/// file and a message.
fn events() -> GatewayBatch {
    use GatewayEventKind::{Blocked, Decided, File, Infected, Keyword, Message};
    let mut batch = GatewayBatch::default();
    let inspect = GatewayRow {
        action: "inspect",
        ..row(Decided, S / 10)
    };
    batch.push(inspect, &text("msn", b"", ""));
    let drop = GatewayRow {
        action: "drop",
        client_ip: [10, 0, 0, 8].into(),
        ..row(Decided, S / 10)
    };
    batch.push(drop, &text("", b"", ""));
    batch.push(row(Keyword, S / 5), &text("msn", b"", "secret"));
    batch.push(row(Infected, S / 4), &text("msn", b"a\x1b.exe", "Eicar"));
    batch.push(row(Blocked, S / 4), &text("msn", b"", "infected"));
    let file = GatewayRow {
        size: Some(20_000),
        verdict: "infected",
        ..row(File, S / 4)
    };
    batch.push(file, &text("msn", b"a\x1b.exe", ""));
    let message = GatewayRow {
        size: Some(5),
        ..row(Message, S / 3)
    };
    let hello = GatewayText {
        message: b"hello",
        ..text("msn", b"", "")
    };
    batch.push(message, &hello);
    batch
}

fn status(packets: u64) -> GatewayStatus {
    GatewayStatus {
        program: "linkweir 0.1.0".into(),
        uptime_s: 12.5,
        config: "gateway.toml".into(),
        fail: "open".into(),
        packets,
        bytes: packets.saturating_mul(1000),
        connections: 3,
        evicted: 2,
        events_lost: 4,
        applications: BTreeMap::from([(
            "msn".to_owned(),
            ApplicationStatus {
                connections: 9,
                packets: 70,
                bytes: 7000,
                inspected: 8,
                dropped: 1,
                blocked: 2,
                ..ApplicationStatus::default()
            },
        )]),
        rules: BTreeMap::from([(
            "audit".to_owned(),
            KernelCount {
                packets: 11,
                bytes: 1100,
                ..KernelCount::default()
            },
        )]),
        held: Held {
            packets: 5,
            bytes: 600,
            peak_packets: 60,
        },
        queues: vec![QueueStatus {
            number: 3,
            waiting: 6,
            dropped: 7,
            user_dropped: 8,
            total: 900,
        }],
        steps: vec![StepStatus {
            step: "hold".to_owned(),
            samples: 3,
            sum_ns: 4_500_000,
            mean_ns: 1_500_000,
            p50_ns: 1_000_000,
            p99_ns: 2_500_000,
        }],
        scanner: Some(ScannerStatus {
            is_reachable: true,
            scans: 10,
            infected: 1,
            failed: BTreeMap::from([("timeout".to_owned(), 2)]),
            latency_us: BTreeMap::from([("p50".to_owned(), 850), ("max".to_owned(), 2_500_000)]),
            ..ScannerStatus::default()
        }),
        vault: Some(VaultStatus {
            kept: 4,
            ..VaultStatus::default()
        }),
        ..GatewayStatus::default()
    }
}

/// A second of events between two statuses, and another status after it.
fn shown(alerts: &[&str]) -> GatewayLive {
    let live = live(alerts);
    let board = StatusBoard::new(live.clone());
    board.show(status(0), at(T0));
    let mut sink = live.sink();
    sink.write(&events()).unwrap();
    board.show(status(500), at(T0 + S / 2));
    board.show(status(600), at(T0 + 3 * S / 2));
    live
}

#[test]
fn events_of_an_interval_by_kind_application_and_rule() {
    let live = shown(&[]);
    let ticks = live.ticks_after(0);
    let tick = &ticks[0];
    assert_eq!(tick.events, 7);
    assert_eq!(tick.kinds["decided"], 2);
    assert_eq!((tick.refused, tick.blocked, tick.stopped()), (1, 1, 2));
    assert_eq!((tick.kind("infected"), tick.kind("limit")), (1, 0));
    assert_eq!(
        tick.applications,
        BTreeMap::from([("msn".to_owned(), 6), ("unknown".to_owned(), 1)])
    );
    assert_eq!(tick.rules, BTreeMap::from([("audit".to_owned(), 7)]));
    assert_eq!(tick.transferred_bytes, 20_000);
    assert_eq!(tick.file_size.unwrap().count, 1, "a message is no file");
    assert_eq!(tick.table.entries, 3);
    // Its first half-second, and half of what came until the next status.
    assert_eq!(tick.packets, 550);
    let totals = live.totals();
    assert_eq!((totals.packets, totals.bytes), (600, 600_000));
    assert_eq!(totals.dropped.kernel, 15);
    assert_eq!((totals.dropped.table_full, totals.dropped.sink), (2, 4));
    assert_eq!(totals.late_records, 0);
}

#[test]
fn tables_have_what_was_found_and_where() {
    let live = shown(&[]);
    let top = |by, sort| live.top(by, sort, Window::All, 10).rows;
    let applications = top(GatewayBy::Application, GatewaySort::Events);
    let msn = &applications[0];
    assert_eq!((msn.key.as_str(), msn.events), ("msn", 6));
    assert_eq!((msn.connections, msn.refused, msn.blocked), (1, 0, 1));
    assert_eq!((msn.found, msn.infected), (2, 1));
    assert_eq!((msn.messages, msn.files, msn.bytes), (1, 1, 20_005));
    let refused = &top(GatewayBy::Client, GatewaySort::Stopped);
    let keys: Vec<_> = refused.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, ["10.0.0.7", "10.0.0.8"], "equals: by events");
    let files = top(GatewayBy::File, GatewaySort::Bytes);
    assert_eq!(files.len(), 1, "an event without a file is under none");
    assert_eq!((files[0].key.as_str(), files[0].events), ("a\\x1b.exe", 2));
    let findings = top(GatewayBy::Finding, GatewaySort::Found);
    let keys: Vec<_> = findings.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, ["keyword: secret", "virus: Eicar"]);
    assert_eq!(live.ccdf_of(GatewayOf::FileSize, Window::All).count, 1);
    let csv = live.csv(What::Keys(GatewayBy::Finding));
    assert!(csv.starts_with("key,events,connections,"), "{csv}");
    let series = live.csv(What::Series);
    assert!(series.contains("events_application_msn"), "{series}");
}

#[test]
fn rules_fire_by_what_they_are_about() {
    let live = shown(&[
        "infected rate > 0 /s",
        "blocked rate of client 10.0.0.8 >= 1 /s",
        "blocked rate of application kazaa > 0 /s",
        "drops > 20",
    ]);
    let states: Vec<_> = live.ticks_after(0)[0]
        .alerts
        .iter()
        .map(|alert| alert.state)
        .collect();
    use AlertState::{Firing, Ok};
    assert_eq!(states, [Firing, Firing, Ok, Firing]);
}

#[test]
fn the_last_events_and_the_status_are_there() {
    let live = shown(&[]);
    let mut sink = live.sink();
    for _ in 0..20 {
        sink.write(&events()).unwrap();
    }
    let now = live.now();
    // 21 times two that were decided and five others: the last hundred of these, and all of those.
    assert_eq!(now.events.len(), 142);
    let ids: Vec<_> = now.events.iter().map(|one| one.id).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    assert_eq!((ids.first(), ids.last()), (Some(&1), Some(&147)));
    let kept = now.events.iter().filter(|one| one.event.event == "decided");
    assert_eq!(kept.count(), 42);
    let last = &now.events.last().unwrap().event;
    assert_eq!((last.event, last.message.as_str()), ("message", "hello"));
    assert_eq!(last.client, "10.0.0.7:40000");
    assert_eq!(now.status.as_deref(), Some(&status(600)));
    assert_eq!(now.status_ms, (T0 + 3 * S / 2) / 1_000_000);
    let json = serde_json::to_value(&now).unwrap();
    assert_eq!(json["status"]["queues"][0]["user_dropped"], 8);
    assert_eq!(json["events"][141]["event"], "message");
    assert_eq!(json["events"][140]["file_name"], "a\\x1b.exe");
    let back: GatewayStatus = serde_json::from_value(json["status"].clone()).unwrap();
    assert_eq!(back, status(600));
}

#[test]
fn the_end_closes_the_last_interval() {
    let live = shown(&[]);
    StatusBoard::new(live.clone()).finish(status(700), at(T0 + 2 * S));
    assert!(live.is_finished());
    assert_eq!(live.totals().packets, 700);
    let seen: u64 = live.ticks_after(0).iter().map(|tick| tick.packets).sum();
    assert_eq!(seen, 700);
}

#[test]
fn metrics_are_those_of_events_and_status() {
    let metrics = shown(&[]).metrics();
    for line in [
        "linkweir_gateway_events_total{event=\"decided\"} 2",
        "linkweir_gateway_events_total{event=\"limit\"} 0",
        "linkweir_gateway_application_events_total{application=\"msn\"} 6",
        "linkweir_gateway_rule_events_total{rule=\"audit\"} 7",
        "linkweir_gateway_stopped_connections_total{cause=\"content\"} 1",
        "linkweir_gateway_file_size_bytes_bucket{le=\"10000\"} 0",
        "linkweir_gateway_file_size_bytes_bucket{le=\"100000\"} 1",
        "linkweir_gateway_file_size_bytes_sum 20000",
        "linkweir_gateway_info{config=\"gateway.toml\",fail=\"open\"} 1",
        "linkweir_gateway_uptime_seconds 12.5",
        "linkweir_gateway_lost_events_total 4",
        "linkweir_gateway_verdicts_total{application=\"msn\",verdict=\"blocked\"} 2",
        "linkweir_gateway_rule_bytes_total{rule=\"audit\"} 1100",
        "linkweir_gateway_queue_waiting_packets{queue=\"3\"} 6",
        "linkweir_gateway_queue_dropped_packets_total{queue=\"3\",cause=\"socket_full\"} 8",
        "linkweir_gateway_scans_total{result=\"clean\"} 9",
        "linkweir_gateway_scan_failures_total{cause=\"timeout\"} 2",
        "linkweir_gateway_scan_latency_seconds{quantile=\"0.5\"} 0.000850000",
        "linkweir_gateway_scan_latency_seconds{quantile=\"1\"} 2.500000000",
        "linkweir_gateway_held_packets 5",
        "linkweir_gateway_step_seconds{step=\"hold\",quantile=\"0.99\"} 0.002500000",
        "linkweir_gateway_step_seconds_sum{step=\"hold\"} 0.004500000",
        "linkweir_gateway_step_seconds_count{step=\"hold\"} 3",
        "linkweir_gateway_vault_files_total{what=\"whole\"} 4",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
    // Before there is a status, none of it is made up.
    let none = live(&[]).metrics();
    assert!(!none.contains("linkweir_gateway_info"), "{none}");
}

/// Without the right to ask the kernel there are no counters of its rules, and no names of them.
#[test]
fn metrics_without_counters_of_the_kernel() {
    let live = live(&[]);
    let unasked = GatewayStatus {
        rules: BTreeMap::new(),
        ..status(5)
    };
    StatusBoard::new(live.clone()).show(unasked, at(T0));
    let metrics = live.metrics();
    assert!(!metrics.contains("linkweir_gateway_rule_"), "{metrics}");
    let packets = "linkweir_gateway_packets_total 5";
    assert!(metrics.lines().any(|line| line == packets), "{metrics}");
}

/// An event a little before or after the moment at which a tick looks at the clock.
fn put(batch: &mut GatewayBatch, event: GatewayEventKind, ts_ns: u64) {
    let row = GatewayRow {
        ts_ns,
        action: "drop",
        ..row(event, 0)
    };
    batch.push(row, &text("msn", b"", ""));
}

/// As a running gateway does it: ten times a second what the workers sent, a flush, and a status.
#[test]
fn events_of_a_running_gateway_count_in_the_interval_of_their_time() {
    use GatewayEventKind::{Decided, Infected};
    const MS: u64 = 1_000_000;
    const BEGAN: u64 = 1_795_333_691_123_456_789;
    for interval in [S, 100 * MS] {
        let live = GatewayLive::new(LiveOptions {
            interval: Duration::from_nanos(interval),
            alerts: vec![GatewayKind::rule("infected rate > 0 /s").unwrap()],
            ..LiveOptions::default()
        });
        let board = StatusBoard::new(live.clone());
        let mut sink = live.sink();
        let mut want = BTreeMap::<u64, u64>::new();
        let mut end = BEGAN;
        for n in 0..50 {
            let now = BEGAN + n * 100 * MS;
            let mut batch = GatewayBatch::default();
            // One that waited for the writer, and one that a worker stamped after the tick began.
            for ts_ns in [now - MS, now - 120 * MS, now + 30 * MS] {
                put(&mut batch, Decided, ts_ns);
                let since = ts_ns.saturating_sub(BEGAN - MS);
                *want.entry(since / interval).or_default() += 1;
                end = end.max(ts_ns);
            }
            if n == 22 {
                put(&mut batch, Infected, now - MS);
                *want.entry((n * 100 * MS) / interval).or_default() += 1;
            }
            sink.write(&batch).unwrap();
            sink.flush().unwrap();
            board.show(status(10 * n), at(now));
            // What is in no closed interval yet is in the totals all the same.
            assert_eq!(live.totals().kind("decided"), 3 * (n + 1));
        }
        board.finish(status(500), at(end));
        let ticks = live.ticks_after(0);
        let seen = ticks.iter().map(|tick| tick.events);
        assert_eq!(seen.collect::<Vec<_>>(), Vec::from_iter(want.into_values()));
        assert_eq!(live.totals().late_records, 0);
        assert_eq!(ticks.iter().map(|tick| tick.packets).sum::<u64>(), 500);

        let alerts = live.events_after(0);
        let states: Vec<_> = alerts.iter().map(|(_, alert)| alert.status.state).collect();
        assert_eq!(states, [AlertState::Firing, AlertState::Resolved]);
        // At the end of the interval of the infected event.
        let fired = BEGAN - MS + (2200 * MS / interval + 1) * interval;
        assert_eq!(alerts[0].1.t_ms, fired / MS);
        let metrics = live.metrics();
        for line in [
            "linkweir_gateway_events_total{event=\"decided\"} 150",
            "linkweir_gateway_events_total{event=\"infected\"} 1",
            "linkweir_gateway_stopped_connections_total{cause=\"rule\"} 150",
        ] {
            assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_event_can_be_counted(
        rows in prop::collection::vec(
            (0..GatewayEventKind::ALL.len(), any::<u64>(), any::<Option<u64>>(), any::<Vec<u8>>()),
            0..60,
        ),
    ) {
        let live = live(&["events rate > 1 /s"]);
        let board = StatusBoard::new(live.clone());
        board.show(status(0), at(T0));
        let mut batch = GatewayBatch::default();
        for (kind, ts_ns, size, bytes) in &rows {
            let row = GatewayRow {
                ts_ns: *ts_ns,
                event: GatewayEventKind::ALL[*kind],
                size: *size,
                ..GatewayRow::default()
            };
            let text = GatewayText {
                application: bytes,
                rule: bytes,
                file_name: bytes,
                detail: bytes,
                message: bytes,
                ..GatewayText::default()
            };
            batch.push(row, &text);
        }
        live.sink().write(&batch).unwrap();
        board.finish(status(u64::MAX), at(T0 + S));
        let totals = live.totals();
        prop_assert_eq!(totals.events, rows.len() as u64);
        let kinds = rows.iter().map(|(kind, ..)| GatewayEventKind::ALL[*kind]);
        let of_connections = kinds.filter(|kind| kind.has_connection()).count();
        prop_assert_eq!(totals.applications.values().sum::<u64>(), of_connections as u64);
        prop_assert_eq!(live.now().events.len(), rows.len());
        let json = serde_json::to_string(&live.now()).unwrap();
        let is_raw = json.chars().any(char::is_control);
        prop_assert!(!is_raw);
        prop_assert!(live.metrics().contains("linkweir_gateway_events_total"));
    }
}

#[test]
fn records_that_nobody_can_look_at_are_not_copied() {
    let live = live(&[]);
    live.keep_records();
    live.take(&events());
    assert!(lock(&live.0.recent).is_none());
    assert_eq!(GatewayKind::behind(GatewayBy::Client, "10.0.0.7"), None);
}
