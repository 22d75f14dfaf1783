use crate::api::{AlertState, By, Sort, Tick, Window, Word as _};
use crate::live::lock;
use crate::*;
use linkweir_engine::RunReport;
use linkweir_engine::seams::{Drops, TableFill};
use linkweir_record::http::{HttpRow, HttpState, Text};
use linkweir_record::{HttpBatch, Place, RecordBatch as _, Web};
use linkweir_wire::Timestamp;
use proptest::prelude::*;
use std::net::Ipv4Addr;
use std::time::Duration;

const S: u64 = 1_000_000_000;
/// Start of the made captures.
const T0: u64 = 1_700_000_000 * S;

fn options(is_live: bool, alerts: &[&str]) -> LiveOptions {
    LiveOptions {
        source: "eth0".into(),
        is_live,
        alerts: alerts.iter().map(|rule| rule.parse().unwrap()).collect(),
        ..LiveOptions::default()
    }
}

#[derive(Clone, Copy)]
struct Made {
    at: u64,
    took: u64,
    code: u16,
    host: &'static str,
    uri: &'static str,
    server: u8,
}

const MADE: Made = Made {
    at: T0,
    took: 1_000_000,
    code: 200,
    host: "shop",
    uri: "/cart/17",
    server: 1,
};

/// A complete transaction whose response came at `at`.
fn push(batch: &mut HttpBatch, made: Made) {
    let row = HttpRow {
        client_ip: Ipv4Addr::new(10, 0, 1, 9).into(),
        server_ip: Ipv4Addr::new(10, 0, 0, made.server).into(),
        server_port: 80,
        request_ts_ns: Some(made.at - made.took),
        response_ts_ns: Some(made.at),
        status_code: Some(made.code),
        request_bytes: Some(100),
        response_bytes: Some(900),
        ..HttpRow::default()
    };
    let text = Text {
        method: b"GET",
        uri: made.uri.as_bytes(),
        host: made.host.as_bytes(),
        ..Text::default()
    };
    batch.push(row, &text);
}

fn unanswered(batch: &mut HttpBatch, at: u64) {
    let row = HttpRow {
        request_ts_ns: Some(at),
        state: HttpState::Unanswered,
        ..HttpRow::default()
    };
    let text = Text {
        method: b"POST",
        uri: b"/pay",
        host: b"shop",
        ..Text::default()
    };
    batch.push(row, &text);
}

fn orphan(batch: &mut HttpBatch, at: u64) {
    let row = HttpRow {
        response_ts_ns: Some(at),
        status_code: Some(503),
        state: HttpState::Orphan,
        ..HttpRow::default()
    };
    batch.push(row, &Text::default());
}

fn report(packets: u64, last: u64) -> RunReport {
    RunReport {
        packets,
        bytes: packets * 100,
        first: Some(Timestamp::from_nanos(T0)),
        last: Some(Timestamp::from_nanos(last)),
        ..RunReport::default()
    }
}

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

#[test]
fn an_interface_closes_an_interval_a_quarter_of_a_second_after_its_end() {
    let live = Live::new(options(true, &[]));
    let mut sink = live.sink();
    live.tick(&report(0, T0), at(T0));
    let mut batch = HttpBatch::default();
    push(
        &mut batch,
        Made {
            at: T0 + S / 2,
            ..MADE
        },
    );
    push(
        &mut batch,
        Made {
            at: T0 + S - 1,
            code: 404,
            took: 3_000_000,
            ..MADE
        },
    );
    push(
        &mut batch,
        Made {
            at: T0 + S,
            code: 500,
            ..MADE
        },
    );
    sink.write(&batch).unwrap();
    live.tick(&report(40, T0 + S), at(T0 + S));
    assert_eq!(live.last_id(), 0);
    // A record that comes late, but in time.
    batch.clear();
    orphan(&mut batch, T0 + S - 2);
    sink.write(&batch).unwrap();
    live.tick(&report(50, T0 + S), at(T0 + S + S / 4));
    let ticks = live.ticks_after(0);
    assert_eq!(ticks.len(), 1);
    let tick = &ticks[0];
    assert_eq!(
        (tick.id, tick.t_ms, tick.interval_s),
        (1, (T0 + S) / 1_000_000, 1.0)
    );
    assert_eq!(
        (tick.requests, tick.responses, tick.complete, tick.orphans),
        (2, 3, 2, 1)
    );
    assert_eq!(tick.packets, 40);
    assert_eq!(tick.codes, [(200, 1), (404, 1), (503, 1)].into());
    assert_eq!(tick.methods, [("GET".to_owned(), 2)].into());
    let times = tick.response_time_ns.unwrap();
    assert_eq!(
        (times.count, times.min, times.mean, times.max),
        (2, 1_000_000, 2_000_000, 3_000_000)
    );
    assert_eq!(live.totals().requests, 3);
    assert_eq!(live.totals().packets, 50);

    // An unanswered request counts when that is known, long after it was sent.
    batch.clear();
    unanswered(&mut batch, T0);
    sink.write(&batch).unwrap();
    live.tick(&report(50, T0 + S), at(T0 + 3 * S + S / 2));
    let ticks = live.ticks_after(1);
    assert_eq!(
        ticks.iter().map(|tick| tick.unanswered).collect::<Vec<_>>(),
        [1, 0]
    );
    assert_eq!(ticks[0].requests, 2);
    // A record from before the oldest open interval is counted in that and called late.
    batch.clear();
    push(&mut batch, MADE);
    sink.write(&batch).unwrap();
    live.finish(&report(60, T0 + S));
    let last = live.ticks_after(3);
    assert_eq!(last.len(), 1);
    assert_eq!(
        (last[0].requests, last[0].packets, last[0].interval_s),
        (1, 10, 0.5)
    );
    assert_eq!(live.totals().late_records, 1);
    assert!(live.is_finished() && live.snapshot().meta.finished);
    let sum: u64 = live.ticks_after(0).iter().map(|tick| tick.packets).sum();
    assert_eq!(sum, 60);
}

#[test]
fn packets_between_two_ticks_are_spread_over_the_intervals_between() {
    let live = Live::new(options(false, &[]));
    let mut sink = live.sink();
    live.tick(&report(1, T0), at(T0));
    live.tick(&report(1001, T0 + 10 * S), at(T0 + 10 * S));
    assert_eq!(live.last_id(), 0, "records of a file may still come");
    sink.flush().unwrap();
    let ticks = live.ticks_after(0);
    assert_eq!(ticks.len(), 10);
    assert_eq!(ticks[0].packets, 101);
    assert!(ticks[1..].iter().all(|tick| tick.packets == 100));
    live.finish(&report(1001, T0 + 10 * S));
    let sum: u64 = live.ticks_after(0).iter().map(|tick| tick.packets).sum();
    assert_eq!(sum, 1001);
}

#[test]
fn drops_and_fill_are_of_the_interval_and_of_the_run() {
    let live = Live::new(options(true, &["drops > 0", "table fill > 50 %"]));
    let with = |packets, kernel, entries, now| {
        let mut report = RunReport {
            drops: Drops {
                kernel,
                ring: 0,
                unusable_records: 0,
            },
            fill: TableFill {
                entries,
                capacity: 100,
                ..TableFill::default()
            },
            ..report(packets, T0)
        };
        report.fill.evicted = if now > T0 + S { 2 } else { 0 };
        live.tick(&report, at(now));
    };
    with(0, 0, 1, T0);
    with(5, 3, 60, T0 + S / 2);
    with(6, 3, 70, T0 + 3 * S / 2);
    with(7, 3, 10, T0 + 5 * S / 2);
    with(7, 3, 10, T0 + 7 * S / 2);
    let ticks = live.ticks_after(0);
    let seen: Vec<_> = ticks
        .iter()
        .map(|t| {
            (
                t.dropped.kernel,
                t.dropped.table_full,
                t.dropped_total.total(),
                t.table.entries,
            )
        })
        .collect();
    assert_eq!(seen, [(3, 0, 3, 70), (0, 2, 5, 10), (0, 0, 5, 10)]);
    let states: Vec<_> = ticks
        .iter()
        .map(|t| (t.alerts[0].state, t.alerts[1].state))
        .collect();
    use AlertState::{Firing, Ok as Fine, Resolved};
    assert_eq!(
        states,
        [(Firing, Firing), (Firing, Resolved), (Resolved, Fine)]
    );
    let events = live.events_after(0);
    let lines: Vec<_> = events.iter().map(|(_, event)| event.to_string()).collect();
    assert_eq!(
        lines,
        [
            "alert firing: drops > 0 (3)",
            "alert firing: table fill > 50 % (70 %)",
            "alert resolved: table fill > 50 % (10 %)",
            "alert resolved: drops > 0 (0)",
        ]
    );
    assert_eq!(live.events_after(3).len(), 1);
    assert_eq!(live.totals().dropped.total(), 5);
}

#[test]
fn rules_see_their_scope_exactly() {
    let live = Live::new(options(
        true,
        &[
            "p50 of host shop > 10 ms for 2 intervals",
            "5xx share of url shop/cart/{n} > 50 %",
            "requests rate of server 10.0.0.2 < 1 /s",
            "requests rate of client 10.0.1.9 > 100 /s",
            "p50 where (host ~ ^shop and status = 500) > 10 ms for 2 intervals",
        ],
    ));
    let mut sink = live.sink();
    live.tick(&report(0, T0), at(T0));
    for second in 0..4 {
        let mut batch = HttpBatch::default();
        for n in 0..40 {
            let at = T0 + second * S + n * 1000 + 100;
            push(
                &mut batch,
                Made {
                    at,
                    took: 20_000_000,
                    code: 500,
                    uri: "/cart/9?x=1",
                    host: "Shop:80",
                    ..MADE
                },
            );
            push(
                &mut batch,
                Made {
                    at,
                    took: 20,
                    server: 2,
                    host: "other",
                    ..MADE
                },
            );
            push(
                &mut batch,
                Made {
                    at,
                    took: 20,
                    uri: "/about",
                    host: "shop",
                    ..MADE
                },
            );
            push(
                &mut batch,
                Made {
                    at,
                    took: 20_000_000,
                    uri: "/cart/1",
                    host: "shop:80",
                    ..MADE
                },
            );
        }
        sink.write(&batch).unwrap();
        live.tick(&report(0, T0), at(T0 + (second + 1) * S));
    }
    live.tick(&report(0, T0), at(T0 + 4 * S + S / 4));
    let states: Vec<Vec<_>> = live
        .ticks_after(0)
        .iter()
        .map(|tick| tick.alerts.iter().map(|alert| alert.state).collect())
        .collect();
    use AlertState::{Firing, Ok as Fine, Pending};
    // The template of `shop:80/cart/1` is not that of `shop/cart/1`: its host has a port.
    assert_eq!(states[0], [Pending, Fine, Fine, Firing, Pending]);
    assert_eq!(states[3], [Firing, Fine, Fine, Firing, Firing]);
    let metrics = live.metrics();
    assert!(
        metrics.contains(
            "linkweir_alert_firing{rule=\"p50 of host shop > 10 ms for 2 intervals\"} 1\n"
        )
    );
    assert!(
        metrics
            .contains("linkweir_alert_firing{rule=\"5xx share of url shop/cart/{n} > 50 %\"} 0\n")
    );
    assert!(metrics.contains(
        "linkweir_http_response_time_seconds_bucket{server=\"10.0.0.1:80\",code=\"500\",le=\"0.025\"} 160\n"
    ));
    assert!(metrics.contains(
        "linkweir_http_response_time_seconds_sum{server=\"10.0.0.1:80\",code=\"500\"} 3.200000000\n"
    ));
    assert!(metrics.contains("linkweir_http_requests_total{method=\"GET\"} 640\n"));
}

#[test]
fn tables_by_window() {
    let live = Live::new(options(true, &[]));
    let mut sink = live.sink();
    let mut batch = HttpBatch::default();
    live.tick(&report(0, T0), at(T0));
    for second in 0..400 {
        batch.clear();
        let host = if second < 200 { "old" } else { "new" };
        for n in 0..3 {
            let code = if n == 0 { 404 } else { 200 };
            push(
                &mut batch,
                Made {
                    at: T0 + second * S + 1 + n,
                    code,
                    host,
                    took: 1_000_000 * (n + 1),
                    ..MADE
                },
            );
        }
        sink.write(&batch).unwrap();
        live.tick(&report(second, T0), at(T0 + (second + 1) * S + S / 4));
    }
    for (window, min, max, hosts) in [
        (Window::Minute, 60, 65, vec!["new"]),
        (Window::FiveMinutes, 300, 335, vec!["new", "old"]),
        (Window::All, 395, 400, vec!["new", "old"]),
    ] {
        let top = live.top(By::Host, Sort::Requests, window, 10);
        let requests: u64 = top.rows.iter().map(|row| row.requests).sum();
        assert!(
            (min * 3..=max * 3).contains(&requests),
            "{window:?} {requests}"
        );
        assert_eq!(
            top.rows
                .iter()
                .map(|row| row.key.as_str())
                .collect::<Vec<_>>(),
            hosts
        );
        let row = &top.rows[0];
        assert_eq!(row.errors_4xx * 3, row.requests);
        assert_eq!((row.bytes, row.max), (row.requests * 1000, Some(3_000_000)));
        assert!((2_000_000..=2_250_000).contains(&row.p50.unwrap()));
        assert_eq!(top.floor, 0);
        let ccdf = live.ccdf(window);
        assert!(
            (min * 3..=max * 3).contains(&ccdf.count),
            "{window:?} {}",
            ccdf.count
        );
        assert!((ccdf.points[0].1 - 2.0 / 3.0).abs() < 1e-9);
    }
    let top = |by| live.top(by, Sort::P95, Window::All, 1).rows[0].key.clone();
    assert_eq!(top(By::Server), "10.0.0.1:80");
    assert_eq!(top(By::Client), "10.0.1.9");
    assert_eq!(top(By::Url), "new/cart/{n}");
    assert_eq!(live.top(By::Url, Sort::Errors, Window::Minute, 0).rows, []);
    live.finish(&report(400, T0));
    let all: u64 = live
        .top(By::Host, Sort::Bytes, Window::All, 9)
        .rows
        .iter()
        .map(|row| row.requests)
        .sum();
    assert_eq!(all, 1200);
}

#[test]
fn hostile_texts_are_shown_as_bytes() {
    let live = Live::new(options(true, &[]));
    let mut sink = live.sink();
    let mut batch = HttpBatch::default();
    push(
        &mut batch,
        Made {
            host: "\u{1b}[2J<script>\u{202e}",
            ..MADE
        },
    );
    sink.write(&batch).unwrap();
    live.finish(&report(1, T0));
    let top = live.top(By::Host, Sort::Requests, Window::All, 1);
    assert_eq!(top.rows[0].key, "\\x1b[2j<script>\\xe2\\x80\\xae");
}

#[test]
fn memory_is_bounded_whatever_the_keys() {
    let max_keys = 8;
    let live = Live::new(LiveOptions {
        max_keys,
        ..options(true, &[])
    });
    let mut sink = live.sink();
    let names: Vec<&'static str> = (0..2000)
        .map(|n| &*Box::leak(format!("host{n}/").into_boxed_str()))
        .collect();
    for second in 0..700_u64 {
        let mut batch = HttpBatch::default();
        for n in 0..20 {
            let name = names[usize::try_from(second * 20 + n).unwrap() % names.len()];
            push(
                &mut batch,
                Made {
                    at: T0 + second * S + n,
                    host: name,
                    uri: name,
                    server: (n % 200) as u8,
                    ..MADE
                },
            );
        }
        sink.write(&batch).unwrap();
        live.tick(&report(second, T0), at(T0 + (second + 1) * S + S / 4));
    }
    let board = lock(&live.0.board);
    assert!(board.windows.parts(Window::All).len() <= 33);
    for part in board.windows.parts(Window::All) {
        assert!(
            By::ALL
                .iter()
                .all(|by| part.table(*by).unwrap().len() <= max_keys)
        );
    }
    drop(board);
    let whole = lock(&live.0.whole);
    assert!(
        By::ALL
            .iter()
            .all(|by| whole.table(*by).unwrap().len() <= max_keys * 4)
    );
    assert!(whole.table(By::Host).unwrap().floor() > 0);
    drop(whole);
    assert_eq!(lock(&live.0.writer).open_intervals(), 1);
}

#[test]
fn ticks_are_kept_for_an_hour_and_given_by_id() {
    let live = Live::new(options(true, &[]));
    live.tick(&report(0, T0), at(T0));
    for second in 0..5000_u64 {
        live.tick(&report(second, T0), at(T0 + second * S + S / 4));
    }
    assert_eq!(live.last_id(), 4999);
    assert_eq!(live.ticks_after(0).len(), MAX_TICKS);
    // What came before is there in coarser intervals.
    let series = live.series();
    assert!(series.len() > MAX_TICKS);
    let sum: u64 = series.iter().map(|tick| tick.packets).sum();
    assert!((4990..=5000).contains(&sum), "{sum}");
    assert_eq!(live.ticks_after(4990).first().unwrap().id, 4991);
    assert!(live.ticks_after(4999).is_empty() && live.ticks_after(u64::MAX).is_empty());
    assert_eq!(live.snapshot().ticks.len(), SNAPSHOT_TICKS);
    assert_eq!(live.snapshot().ticks.last().unwrap().id, 4999);
}

#[test]
fn waiting_ends_with_a_tick_or_the_run() {
    let live = Live::new(options(true, &[]));
    live.tick(&report(0, T0), at(T0));
    assert!(live.wait_tick(0, Duration::from_millis(1)).is_empty());
    let waiting = {
        let live = live.clone();
        std::thread::spawn(move || live.wait_tick(0, Duration::from_secs(60)))
    };
    live.tick(&report(1, T0), at(T0 + 2 * S));
    assert!(!waiting.join().unwrap().is_empty());
    let waiting = {
        let live = live.clone();
        std::thread::spawn(move || live.wait_tick(99, Duration::from_secs(60)))
    };
    live.finish(&report(1, T0));
    assert!(waiting.join().unwrap().is_empty());
}

#[test]
fn one_absurd_time_stamp_costs_one_interval() {
    let live = Live::new(options(false, &[]));
    let mut sink = live.sink();
    let absurd = T0 + 400 * 365 * 86_400 * S;
    let mut packets = 0;
    let mut last = T0;
    for second in 0..50_u64 {
        let now = T0 + second * S;
        let stamp = if second == 20 { absurd } else { now };
        last = last.max(stamp);
        packets += 10;
        live.tick(&report(packets, last), at(last));
        let mut batch = HttpBatch::default();
        push(&mut batch, Made { at: stamp, ..MADE });
        sink.write(&batch).unwrap();
        sink.flush().unwrap();
    }
    live.finish(&report(packets, last));
    let ticks = live.ticks_after(0);
    assert!(ticks.len() < 120, "{}", ticks.len());
    let sum = |of: fn(&Tick) -> u64| ticks.iter().map(|tick| of(tick)).sum::<u64>();
    assert_eq!((sum(|t| t.packets), sum(|t| t.requests)), (500, 50));
}

proptest! {
    /// Whatever the batches, ticks and times: nothing is lost, nothing twice.
    #[test]
    fn intervals_add_up_to_the_run(
        is_live in any::<bool>(),
        steps in prop::collection::vec((0_u64..3_000_000_000, prop::collection::vec((0_u64..4_000_000_000, 0_u8..3), 0..5),
                                        any::<bool>(), 0_u64..50), 0..60),
    ) {
        let live = Live::new(options(is_live, &["p95 > 1 ms min 1 sample"]));
        let mut sink = live.sink();
        let (mut now, mut packets) = (T0, 0);
        let (mut requests, mut responses) = (0, 0);
        for (step, records, is_flush, more) in steps {
            now += step;
            packets += more;
            live.tick(&report(packets, now), at(now));
            let mut batch = HttpBatch::default();
            for (back, kind) in records {
                let time = now - back;
                match kind {
                    0 => { push(&mut batch, Made { at: time, ..MADE }); requests += 1; responses += 1; }
                    1 => { unanswered(&mut batch, time); requests += 1; }
                    _ => { orphan(&mut batch, time); responses += 1; }
                }
            }
            sink.write(&batch).unwrap();
            if is_flush {
                sink.flush().unwrap();
            }
        }
        let before = live.totals();
        prop_assert_eq!((before.packets, before.requests, before.responses), (packets, requests, responses));
        live.finish(&report(packets, now));
        let ticks = live.ticks_after(0);
        let sum = |of: &dyn Fn(&Tick) -> u64| ticks.iter().map(|tick| of(tick)).sum::<u64>();
        prop_assert_eq!(sum(&|t| t.packets), packets);
        prop_assert_eq!(sum(&|t| t.bytes), packets * 100);
        prop_assert_eq!(sum(&|t| t.requests), requests);
        prop_assert_eq!(sum(&|t| t.responses), responses);
        prop_assert!(ticks.windows(2).all(|w| w[0].id + 1 == w[1].id && w[0].t_ms <= w[1].t_ms));
        for tick in &ticks {
            prop_assert_eq!(tick.requests, tick.complete + tick.unanswered);
            prop_assert_eq!(tick.responses, tick.complete + tick.orphans);
            prop_assert_eq!(tick.codes.values().sum::<u64>(), tick.responses);
            prop_assert_eq!(tick.methods.values().sum::<u64>(), tick.requests);
        }
        let times: u64 = ticks.iter().filter_map(|t| t.response_time_ns).map(|t| t.count).sum();
        let totals = live.totals();
        prop_assert_eq!(times, totals.response_time_ns.map_or(0, |t| t.count));
        prop_assert_eq!(live.ccdf(Window::All).count, times);
        let top: u64 = live.top(By::Host, Sort::Requests, Window::All, 9).rows.iter().map(|row| row.requests).sum();
        prop_assert_eq!(top, requests);
        prop_assert_eq!(serde_json::to_value(live.snapshot()).unwrap()["totals"]["requests"].as_u64(), Some(requests));
    }
}

#[test]
fn clients_have_the_place_and_the_ja4_that_are_known() {
    let live = Live::new(LiveOptions::default());
    let ja4 = *b"t13d1516h2_8daaf6152771_02713d6af862";
    let mut batch = HttpBatch::default();
    for (client, web) in [
        (
            7,
            Some(Web {
                places: [Place::new("NL", 64_500), Place::new("DE", 1)],
                ..Web::default()
            }),
        ),
        (
            7,
            Some(Web {
                ja4: Some(ja4),
                ..Web::default()
            }),
        ),
        (8, None),
    ] {
        let row = HttpRow {
            client_ip: [10, 0, 0, client].into(),
            request_ts_ns: Some(1_000_000_000),
            state: HttpState::Unanswered,
            ..HttpRow::default()
        };
        match web {
            Some(web) => batch.push_web(row, &Text::default(), &web),
            None => batch.push(row, &Text::default()),
        }
    }
    live.take(&batch);
    live.finish(&RunReport::default());
    let top = live.top(By::Client, Sort::Requests, Window::All, 9);
    let rows = serde_json::to_value(&top.rows).unwrap();
    assert_eq!(
        (&rows[0]["key"], &rows[0]["country"]),
        (&"10.0.0.7".into(), &"NL".into())
    );
    assert_eq!(rows[0]["asn"], 64_500);
    assert_eq!(rows[0]["ja4"].as_str().map(str::as_bytes), Some(&ja4[..]));
    assert_eq!(rows[1]["key"], "10.0.0.8");
    assert!(rows[1].get("country").is_none() && rows[1].get("ja4").is_none());
    let csv = live.csv(What::Keys(By::Client));
    assert!(
        csv.starts_with("key,requests,") && csv.contains(",max,country,asn,ja4\r\n"),
        "{csv}"
    );
    assert!(csv.contains(",NL,64500,t13d1516h2_"), "{csv}");
    assert!(!live.csv(What::Keys(By::Host)).contains("ja4"));
}
