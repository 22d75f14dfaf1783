//! The view of a load generator and of its controller.

use super::*;

/// A controller with a worker that runs and one that is gone.
fn load_status() -> LoadStatus {
    let worker = |name: &str, state, fault: Option<&str>| GeneratorStatus {
        name: name.to_owned(),
        state,
        started: 4000,
        completed: 3900,
        failed: 20,
        open: 80,
        responses: 3950,
        sessions_per_s: 500.0,
        responses_per_s: 498.0,
        response_p99_ns: Some(12_000_000),
        lag_p99_ns: Some(18_000),
        fault: fault.map(str::to_owned),
    };
    LoadStatus {
        role: "controller",
        target: "http://10.9.0.1/".to_owned(),
        arrivals: "poisson:1000".to_owned(),
        state: LoadState::Running,
        begun_ms: Some(1_700_000_000_000),
        duration_s: Some(60.0),
        open: 160,
        peak_open: 212,
        may_control: false,
        generators: vec![
            worker("10.0.0.2:40000", LoadState::Running, None),
            worker(
                "10.0.0.3:40000",
                LoadState::Gone,
                Some("it closed the connection"),
            ),
        ],
    }
}

#[test]
fn a_controller_shows_its_workers_before_and_during_a_run() {
    let mut screen = Screen::<LoadRun>::new(false).unwrap();
    let live = LoadLive::new(LiveOptions::default());
    let status = load_status();
    let now = linkweir_wire::Timestamp::from_nanos(1_700_000_000_000_000_000);
    live.set_status(status, now);
    live.tick(&RunReport::default(), now);
    let mut step = LoadStep {
        at_ns: now.as_nanos() + 999_999_999,
        generator: "10.0.0.2:40000".to_owned(),
        ..LoadStep::default()
    };
    step.counts.started = 500;
    step.counts.responses = 498;
    step.counts.codes.record_n(200, 490);
    step.counts.codes.record_n(503, 8);
    step.counts.causes.record_n("closed_early", 3);
    step.counts.response_time_ns.record_n(4_000_000, 498);
    step.counts.service_time_ns.record_n(3_000_000, 498);
    step.counts.schedule_lag_ns.record_n(18_000, 500);
    live.take(&vec![step]);
    let mut report = RunReport {
        packets: 5000,
        bytes: 1_000_000,
        ..RunReport::default()
    };
    report.fill.entries = 160;
    live.tick(&report, now + std::time::Duration::from_millis(1300));
    screen.refresh(&live);
    let lines = text(&drawn(&mut screen, 100, 40));
    let all = lines.join("\n");
    for part in [
        "sessions/s 500",
        "resp/s 498",
        "failed/s 3",
        "in table 160",
        "service p99 3 ms",
        "lag p99 18 µs",
        "closed early 3",
        "state running",
        "arrivals poisson:1000",
        "gone it closed the connection",
    ] {
        assert!(all.contains(part), "{part} in:\n{all}");
    }
    let row = |name: &str| lines.iter().find(|line| line.starts_with(name)).unwrap();
    let cells = |name: &str| {
        row(name)
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        cells("GENERATOR"),
        [
            "GENERATOR",
            "STATE",
            "SESS/S",
            "RESP/S",
            "OPEN",
            "FAILED",
            "P99",
            "LAG",
            "P99"
        ]
    );
    assert_eq!(
        cells("10.0.0.2:40000"),
        [
            "10.0.0.2:40000",
            "running",
            "500",
            "498",
            "80",
            "20",
            "12",
            "ms",
            "18",
            "µs"
        ]
    );
    let line = line::<LoadRun>(screen.last().unwrap());
    assert_eq!(
        line,
        "22:13:21Z dropped 0 table 160 sessions/s 500 open 160 failed 3 resp/s 498 p50 4 ms p99 4 ms 5xx 8 lag-p99 18 µs pkt/s 3.85k bit/s 6.15M"
    );
    fits_everywhere(&mut screen);
}
