//! A real Prometheus scrapes the console; `promtool` checks the text. Both are in Debian's package
//! `prometheus`; without them the tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use linkweir_console::{Console, ConsoleOptions};
use linkweir_engine::{RunReport, seams::Drops};
use linkweir_live::alert::Rule;
use linkweir_live::api::{FlowCounts, GatewayCounts};
use linkweir_live::gateway::{
    ApplicationStatus, GatewayStatus, KernelCount, QueueStatus, ScannerStatus, StatusBoard,
    StepStatus, VaultStatus,
};
use linkweir_live::load::{GeneratorStatus, LoadStatus, LoadStep};
use linkweir_live::sketch::{Carrier, MergeOptions, Merger, Publisher, PublisherOptions};
use linkweir_live::{FlowLive, GatewayLive, Live, LiveOptions, LoadLive};
use linkweir_record::flow::FlowText;
use linkweir_record::gateway::{GatewayBatch, GatewayEventKind, GatewayRow, GatewayText};
use linkweir_record::{FlowBatch, FlowRow, HttpBatch, HttpRow, HttpState, Text};
use linkweir_wire::Timestamp;

const S: u64 = 1_000_000_000;
const T0: u64 = 1_700_000_000 * S;

fn live() -> Live {
    let live = Live::new(LiveOptions {
        source: "if\"0\\".into(),
        alerts: vec![
            "drops > 0".parse().unwrap(),
            "drops > 0".parse().unwrap(),
            "p95 of host \"a\\b\" > 1 s".parse().unwrap(),
        ],
        ..LiveOptions::default()
    });
    let mut sink = live.sink();
    live.tick(&RunReport::default(), Timestamp::from_nanos(T0));
    let mut batch = HttpBatch::default();
    for n in 0..100_u64 {
        let state = match n {
            0..90 => HttpState::Complete,
            90..95 => HttpState::Unanswered,
            _ => HttpState::Orphan,
        };
        let row = HttpRow {
            request_ts_ns: (state != HttpState::Orphan).then_some(T0 + n),
            response_ts_ns: (state != HttpState::Unanswered).then_some(T0 + n * 2_000_000),
            status_code: (state != HttpState::Unanswered).then_some(if n % 10 == 0 {
                500
            } else {
                200
            }),
            server_ip: [192, 0, 2, 1].into(),
            server_port: 80,
            state,
            ..HttpRow::default()
        };
        let text = Text {
            method: if n % 2 == 0 { b"GET" } else { b"\"\xff\n{}\\" },
            uri: b"/",
            host: b"h",
            ..Text::default()
        };
        batch.push(row, &text);
    }
    sink.write(&batch).unwrap();
    let report = RunReport {
        packets: 12_345,
        bytes: 1 << 60,
        first: Some(Timestamp::from_nanos(T0)),
        last: Some(Timestamp::from_nanos(T0 + S)),
        drops: Drops {
            kernel: 7,
            ..Drops::default()
        },
        ..RunReport::default()
    };
    live.tick(&report, Timestamp::from_nanos(T0 + S / 2));
    live.tick(&report, Timestamp::from_nanos(T0 + 2 * S));
    live.set_decode_errors([("ip", "bad_checksum", 3)]);
    live
}

fn is_there(command: &str) -> bool {
    let is_there = Command::new(command)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if !is_there {
        eprintln!("SKIPPED: no `{command}` (Debian package `prometheus`)");
    }
    is_there
}

/// What `promtool` says of a text.
fn check(metrics: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool
        .stdin
        .take()
        .unwrap()
        .write_all(metrics.as_bytes())
        .unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{said}\n{metrics}"
    );
}

/// Takes the sketches of a probe, and brings them to nobody but the test.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Vec<u8>>>>);

impl Carrier for Kept {
    fn send(&mut self, _key: &[u8], message: &[u8]) -> bool {
        self.0.lock().unwrap().push(message.to_vec());
        true
    }
}

#[test]
fn promtool_finds_no_fault_in_what_is_merged_from_probes() {
    let merged = Live::new(LiveOptions::default());
    let mut merger = Merger::new(merged.clone(), MergeOptions::default());
    for name in ["hall-1", "hall \"2\""] {
        let kept = Kept::default();
        let probe = live();
        let options = PublisherOptions {
            probe: name.to_owned(),
            run: T0,
            waits: true,
        };
        let publisher = Publisher::start(&probe, &options, kept.clone()).unwrap();
        probe.close();
        assert_eq!(publisher.finish().lost, 0);
        for message in kept.0.lock().unwrap().iter() {
            merger.take(message, Timestamp::from_nanos(T0));
        }
    }
    merger.take(b"no sketch", Timestamp::from_nanos(T0));
    merger.finish(Timestamp::from_nanos(T0 + S));
    let metrics = merged.metrics();
    for line in [
        "linkweir_probe_up{probe=\"hall \\\"2\\\"\"} 0",
        "linkweir_sketches_refused_total{cause=\"malformed\"} 1",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
    if is_there("promtool") {
        check(&metrics);
    }
}

/// The settings for Prometheus in the documentation are ones that it takes.
#[test]
fn promtool_finds_no_fault_in_the_documentation() {
    if !is_there("promtool") {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/console.md");
    let page = std::fs::read_to_string(page).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let begin = "```yaml\n# prometheus.yml\n";
    let (_, rest) = page.split_once(begin).unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let path = directory.path().join("prometheus.yml");
    std::fs::write(&path, text).unwrap();
    let output = Command::new("promtool")
        .args(["check", "config", "--syntax-only"])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn promtool_finds_no_fault() {
    if is_there("promtool") {
        check(&live().metrics());
    }
}

#[test]
fn promtool_finds_no_fault_in_flows() {
    let live = FlowLive::new(LiveOptions {
        source: "if\"0\\".into(),
        alerts: vec![Rule::read::<FlowCounts>("p95 of rtt of name \"a\\b\" > 1 s").unwrap()],
        ..LiveOptions::default()
    });
    let mut sink = live.sink();
    live.tick(&RunReport::default(), Timestamp::from_nanos(T0));
    let mut batch = FlowBatch::default();
    for n in 0..100_u64 {
        let mut row = FlowRow {
            flow_id: n,
            first_ns: T0,
            last_ns: T0 + n * 1_000_000,
            application: if n % 3 == 0 { "tls" } else { "" },
            syn_ack_ns: Some(n * 100_000),
            ack_dat_ns: Some(1_000),
            ..FlowRow::default()
        };
        row.client.rtt.count = 1;
        row.client.rtt.avg_ns = n * 1_000_000;
        row.server.pkts_data = 10;
        batch.push(row, &FlowText::default());
    }
    sink.write(&batch).unwrap();
    let report = RunReport {
        packets: 5,
        ..RunReport::default()
    };
    live.tick(&report, Timestamp::from_nanos(T0 + 2 * S));
    let metrics = live.metrics();
    for line in [
        "linkweir_flows_ended_total{protocol=\"tcp\"} 100",
        "linkweir_flows_application_flows_total{application=\"unknown\"} 66",
        "linkweir_flows_rtt_seconds_bucket{path=\"server\",le=\"0.01\"} 11",
        "linkweir_flows_rtt_seconds_sum{path=\"server\"} 4.950000000",
        "linkweir_flows_rtt_seconds_count{path=\"all\"} 0",
        "linkweir_flows_handshake_seconds_count 100",
        "linkweir_flows_data_segments_total 1000",
        "linkweir_flows_active 0",
    ] {
        assert!(metrics.lines().any(|l| l == line), "{line}\n{metrics}");
    }
    assert!(!metrics.contains("linkweir_http"), "{metrics}");
    if is_there("promtool") {
        check(&metrics);
    }
}

#[test]
fn promtool_finds_no_fault_in_load() {
    let live = LoadLive::new(LiveOptions::default());
    live.tick(&RunReport::default(), Timestamp::from_nanos(T0));
    let mut step = LoadStep {
        at_ns: T0 + 1,
        generator: "eth\"0".into(),
        ..LoadStep::default()
    };
    step.counts.causes.record_n("reset", 2);
    step.counts.codes.record_n(200, 7);
    step.counts.response_time_ns.record_n(2_000_000, 7);
    live.take(&vec![step]);
    let status = LoadStatus {
        role: "all",
        arrivals: "poisson:\"\\".into(),
        generators: vec![GeneratorStatus::default()],
        ..LoadStatus::default()
    };
    live.set_status(status, Timestamp::from_nanos(T0));
    let metrics = live.metrics();
    assert!(
        metrics.contains("linkweir_load_responses_total{code=\"200\"} 7\n"),
        "{metrics}"
    );
    assert!(!metrics.contains("linkweir_gateway"), "{metrics}");
    if is_there("promtool") {
        check(&metrics);
    }
}

/// A gateway with everything that it can have, and with names that need escaping.
fn gateway() -> GatewayLive {
    let live = GatewayLive::new(LiveOptions {
        source: "gateway \"a\\b\"".into(),
        alerts: vec![
            Rule::read::<GatewayCounts>("infected rate of application \"a\\b\" > 0 /s").unwrap(),
        ],
        ..LiveOptions::default()
    });
    let board = StatusBoard::new(live.clone());
    let count = |name: &str, n| [(name.to_owned(), n)].into();
    let status = GatewayStatus {
        uptime_s: 1.25,
        fail: "open".into(),
        packets: 77,
        applications: [("a\"\\".to_owned(), ApplicationStatus::default())].into(),
        rules: [("rule \"1\"".to_owned(), KernelCount::default())].into(),
        counts: count("out_of_order", 3),
        queues: vec![QueueStatus::default(); 1],
        steps: vec![StepStatus {
            step: "inspect".into(),
            samples: 2,
            sum_ns: 3_000,
            ..StepStatus::default()
        }],
        scanner: Some(ScannerStatus {
            failed: count("timeout", 2),
            latency_us: ["p50", "p90", "p99", "max"]
                .map(|name| (name.to_owned(), 1_500))
                .into(),
            ..ScannerStatus::default()
        }),
        vault: Some(VaultStatus {
            dropped_bytes: count("full", 9),
            ..VaultStatus::default()
        }),
        ..GatewayStatus::default()
    };
    board.show(status.clone(), Timestamp::from_nanos(T0));
    let mut batch = GatewayBatch::default();
    for event in GatewayEventKind::ALL {
        let row = GatewayRow {
            ts_ns: T0,
            event: *event,
            size: Some(5_000),
            ..GatewayRow::default()
        };
        let text = GatewayText {
            application: b"a\"\\\n",
            rule: b"\xff{}",
            ..GatewayText::default()
        };
        batch.push(row, &text);
    }
    live.sink().write(&batch).unwrap();
    board.show(status, Timestamp::from_nanos(T0 + 2 * S));
    live
}

#[test]
fn promtool_finds_no_fault_in_a_gateway() {
    let metrics = gateway().metrics();
    for line in [
        "linkweir_gateway_events_total{event=\"infected\"} 1",
        "linkweir_gateway_application_events_total{application=\"a\\\"\\\\\\\\x0a\"} 10",
        "linkweir_gateway_rule_packets_total{rule=\"rule \\\"1\\\"\"} 0",
        "linkweir_gateway_scan_latency_seconds{quantile=\"0.99\"} 0.001500000",
        "linkweir_gateway_vault_dropped_bytes_total{cause=\"full\"} 9",
        "linkweir_packets_total 77",
        "linkweir_alert_firing{rule=\"infected rate of application \\\"a\\\\b\\\" > 0 /s\"} 0",
    ] {
        assert!(metrics.lines().any(|l| l == line), "{line}\n{metrics}");
    }
    assert!(!metrics.contains("linkweir_flows"), "{metrics}");
    // Every sample stands under a family with a help and a type.
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let parts = ["_bucket", "_sum", "_count"];
        let base = parts.iter().find_map(|part| name.strip_suffix(part));
        let is_known = [Some(name), base].into_iter().flatten().any(|family| {
            ["HELP", "TYPE"]
                .iter()
                .all(|what| metrics.contains(&format!("# {what} {family} ")))
        });
        assert!(is_known, "{line}");
    }
    if is_there("promtool") {
        check(&metrics);
    }
}

/// Ends with the test, whatever comes of it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn pause(length: Duration) {
    let (_held, nothing) = mpsc::channel::<()>();
    nothing.recv_timeout(length).ok();
}

/// The value of an expression, `None` as long as there is none.
fn query(prometheus: SocketAddr, expression: &str) -> Option<f64> {
    let mut socket = TcpStream::connect(prometheus).ok()?;
    let body = expression
        .bytes()
        .fold(String::from("query="), |sum, byte| {
            format!("{sum}%{byte:02x}")
        });
    write!(
        socket,
        "POST /api/v1/query HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    let (_, json) = answer.split_once("\r\n\r\n")?;
    let json: serde_json::Value = serde_json::from_str(json).ok()?;
    json["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

#[test]
fn a_real_prometheus_scrapes_it() {
    if !is_there("prometheus") {
        return;
    }
    let options = ConsoleOptions {
        listen: "127.0.0.1:0".into(),
        token: Some("scrape-token".into()),
        ..ConsoleOptions::default()
    };
    let console = Console::start(&options, live()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("prometheus.yml");
    std::fs::write(
        &config,
        format!(
            "global: {{ scrape_interval: 500ms, scrape_timeout: 500ms }}\nscrape_configs:\n- job_name: linkweir\n  authorization: {{ credentials: scrape-token }}\n  static_configs: [{{ targets: ['{}'] }}]\n",
            console.local_addr()
        ),
    )
    .unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let prometheus = free.local_addr().unwrap();
    drop(free);
    let _running = Running(
        Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                directory.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={prometheus}"))
            .arg("--log.level=error")
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap(),
    );
    for _ in 0..600 {
        if query(prometheus, "up{job=\"linkweir\"}") == Some(1.0)
            && query(prometheus, "linkweir_packets_total").is_some()
        {
            break;
        }
        pause(Duration::from_millis(100));
    }
    for (expression, want) in [
        ("up{job=\"linkweir\"}", 1.0),
        ("linkweir_packets_total", 12_345.0),
        ("linkweir_dropped_total{cause=\"kernel\"}", 7.0),
        ("linkweir_http_transactions_total{state=\"complete\"}", 90.0),
        (
            "linkweir_http_transactions_total{state=\"unanswered\"}",
            5.0,
        ),
        ("sum(linkweir_http_requests_total)", 95.0),
        ("linkweir_http_responses_total{code=\"200\"}", 86.0),
        (
            "linkweir_decode_errors_total{layer=\"ip\",cause=\"bad_checksum\"}",
            3.0,
        ),
        ("linkweir_alert_firing{rule=\"drops > 0\"}", 1.0),
        (
            "sum(linkweir_http_response_time_seconds_count{server=\"192.0.2.1:80\"})",
            90.0,
        ),
        (
            "sum(linkweir_http_response_time_seconds_bucket{le=\"+Inf\"})",
            90.0,
        ),
        (
            "linkweir_http_response_time_seconds_bucket{code=\"500\",le=\"0.05\"}",
            3.0,
        ),
        // The rank is 45 of 90: 1 of 2 ms steps, in the bucket from 50 to 100 ms.
        (
            "histogram_quantile(0.5, sum by (le) (linkweir_http_response_time_seconds_bucket)) > bool 0.05",
            1.0,
        ),
        (
            "histogram_quantile(0.5, sum by (le) (linkweir_http_response_time_seconds_bucket)) < bool 0.1",
            1.0,
        ),
        ("count(linkweir_build_info)", 1.0),
    ] {
        let got = query(prometheus, expression);
        assert_eq!(got, Some(want), "{expression}");
    }
}
