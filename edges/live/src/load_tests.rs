//! Load generators as intervals, tables, metrics and rules.

use linkweir_engine::RunReport;
use linkweir_wire::Timestamp;

use crate::alert::Rule;
use crate::api::{AlertState, LoadBy, LoadCounts, LoadOf, LoadSort, Window};
use crate::load::{GeneratorStatus, LoadPart, LoadRun, LoadState, LoadStatus, LoadStep};
use crate::{Kind as _, LiveOptions, LoadLive, What};

const S: u64 = 1_000_000_000;
const T0: u64 = 1_700_000_000 * S;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// What a generator does in a second: ten sessions, of which one is reset, with two groups.
fn step(generator: &str, second: u64) -> LoadStep {
    let mut counts = LoadCounts {
        planned: 10,
        started: 10,
        completed: 9,
        requests: 20,
        responses: 18,
        unanswered: 2,
        request_bytes: 2000,
        response_bytes: 18_000,
        ..LoadCounts::default()
    };
    counts.causes.record_n("reset", 1);
    counts.causes.record_n("no_room", 0);
    counts.codes.record_n(200, 17);
    counts.codes.record_n(503, 1);
    for n in 1..=18 {
        counts.response_time_ns.record(n * 1_000_000);
        counts.service_time_ns.record(n * 500_000);
    }
    counts.schedule_lag_ns.record_n(2_000_000, 10);
    let part = |name: &str, bytes, sessions| LoadPart {
        name: name.to_owned(),
        bytes,
        sessions,
        ..LoadPart::default()
    };
    LoadStep {
        at_ns: T0 + (second + 1) * S - 1,
        generator: generator.to_owned(),
        counts,
        groups: vec![
            part("dsl", 12_000, 4),
            part("mobile", 6_000, 6),
            part("nobody", 0, 0),
        ],
    }
}

fn run(seconds: u64, rules: &[&str]) -> LoadLive {
    let live = LoadLive::new(LiveOptions {
        source: "http://192.0.2.1/".to_owned(),
        alerts: rules
            .iter()
            .map(|rule| LoadRun::rule(rule).unwrap())
            .collect(),
        ..LiveOptions::default()
    });
    let mut report = RunReport::default();
    live.tick(&report, at(T0));
    for second in 0..seconds {
        live.take(&vec![step("veth0", second), step("10.0.0.2:7", second)]);
        report.packets += 100;
        report.fill.entries = 5;
        live.tick(&report, at(T0 + (second + 1) * S + S / 3));
    }
    live
}

#[test]
fn a_step_counts_in_the_interval_that_it_ends() {
    let live = run(3, &[]);
    let ticks = live.ticks_after(0);
    assert_eq!(ticks.len(), 3);
    for tick in &ticks {
        assert_eq!((tick.started, tick.completed, tick.failed), (20, 18, 2));
        assert_eq!((tick.causes["reset"], tick.codes[&503]), (2, 2));
        assert_eq!(tick.causes.get("no_room"), None);
        let times = tick.response_time_ns.unwrap();
        assert_eq!((times.count, times.max), (36, 18_000_000));
        assert_eq!(tick.service_time_ns.unwrap().max, 9_000_000);
        assert_eq!(tick.table.entries, 5);
    }
    // One that comes too late counts in the interval that is open, and so do its times.
    live.take(&vec![step("veth0", 0)]);
    live.close();
    let totals = live.totals();
    assert_eq!((totals.started, totals.responses), (70, 126));
    assert_eq!((totals.late_records, totals.causes["reset"]), (0, 7));
    assert_eq!(live.ccdf_of(LoadOf::ServiceTime, Window::All).count, 126);
    assert_eq!(live.ccdf_of(LoadOf::Connect, Window::All).count, 0);
}

#[test]
fn tables_have_groups_and_generators() {
    let live = run(3, &[]);
    live.close();
    let rows = |by| live.top(by, LoadSort::Sessions, Window::All, 9).rows;
    let shown = |by| -> Vec<(String, u64, u64)> {
        let rows = rows(by).into_iter();
        rows.map(|row| (row.key, row.sessions, row.bytes)).collect()
    };
    assert_eq!(
        shown(LoadBy::Group),
        [
            ("mobile".to_owned(), 36, 36_000),
            ("dsl".to_owned(), 24, 72_000)
        ]
    );
    let generators = shown(LoadBy::Generator);
    assert_eq!(generators.len(), 2);
    assert!(generators.iter().all(|(_, sessions, _)| *sessions == 30));
    assert_eq!(rows(LoadBy::Generator)[0].failed, 3);
    let csv = live.csv(What::Series);
    let head = csv.lines().next().unwrap();
    for column in [
        "started",
        "failed",
        "failed_reset",
        "code_503",
        "service_time_p99_ns",
    ] {
        assert!(
            head.split(',').any(|one| one == column),
            "{column} in {head}"
        );
    }
    // Without groups all clients are one.
    let alone = LoadLive::new(LiveOptions::default());
    alone.tick(&RunReport::default(), at(T0));
    let mut one = step("veth0", 0);
    one.groups.clear();
    alone.take(&vec![one]);
    alone.close();
    let rows = alone
        .top(LoadBy::Group, LoadSort::Bytes, Window::All, 9)
        .rows;
    assert_eq!(
        (rows[0].key.as_str(), rows[0].requests),
        ("all clients", 20)
    );
}

#[test]
fn metrics_are_those_of_the_whole_run() {
    let live = run(3, &[]);
    let worker = |name: &str, state| GeneratorStatus {
        name: name.to_owned(),
        state,
        started: 30,
        ..GeneratorStatus::default()
    };
    let status = LoadStatus {
        role: "controller",
        target: "http://192.0.2.1/\"".to_owned(),
        arrivals: "poisson:20".to_owned(),
        open: 5,
        generators: vec![
            worker("veth0", LoadState::Running),
            worker("10.0.0.2:7", LoadState::Gone),
        ],
        ..LoadStatus::default()
    };
    live.set_status(status, at(T0 + 4 * S));
    let metrics = live.metrics();
    for line in [
        "linkweir_load_sessions_started_total 60",
        "linkweir_load_sessions_failed_total{cause=\"reset\"} 6",
        "linkweir_load_responses_total{code=\"200\"} 102",
        "linkweir_load_response_time_seconds_count 108",
        // 10 ms are in a bin that goes on beyond them.
        "linkweir_load_response_time_seconds_bucket{le=\"0.01\"} 54",
        "linkweir_load_response_time_seconds_sum 1.026000000",
        "linkweir_load_service_time_seconds_bucket{le=\"0.005\"} 54",
        "linkweir_load_schedule_lag_seconds_bucket{le=\"0.001\"} 0",
        "linkweir_load_schedule_lag_seconds_bucket{le=\"0.005\"} 60",
        "linkweir_load_open_sessions 5",
        "linkweir_load_generators{state=\"running\"} 1",
        "linkweir_load_generators{state=\"gone\"} 1",
        "linkweir_load_generator_sessions_total{generator=\"veth0\"} 30",
        "linkweir_load_info{role=\"controller\",target=\"http://192.0.2.1/\\\"\",arrivals=\"poisson:20\"} 1",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
}

#[test]
fn rules_speak_of_sessions() {
    let live = run(
        3,
        &[
            "p50 of lag > 1 ms",
            "max of response > 18 ms",
            "failed share >= 10 %",
            "5xx share > 50 %",
            "sessions rate < 21 /s",
        ],
    );
    let states: Vec<AlertState> = live.alerts().iter().map(|alert| alert.state).collect();
    use AlertState::{Firing, Ok};
    assert_eq!(states, [Firing, Ok, Firing, Ok, Firing]);
    for (rule, why) in [
        ("p99 > 1 s", "expected `of`"),
        (
            "p99 of response of client 10.0.0.1 > 1 s",
            "for the whole run only",
        ),
        ("retransmissions share > 1 %", "failed share"),
    ] {
        let said = Rule::read::<LoadCounts>(rule).unwrap_err().to_string();
        assert!(said.contains(why), "{rule}: {said}");
    }
}
