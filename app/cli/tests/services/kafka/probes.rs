//! Many probes, one view: what several runs send to a broker is shown as one run over all packets.
//!
//! With a real broker; where Java or its jars are missing, the tests say SKIPPED.
#![cfg(feature = "kafka")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{demo, demo_frames, linkweir, plain, run, skipped, summary};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::kafka::Broker;
use linkweir_testkit::netns::{Running, until};
use serde_json::Value;
use tempfile::tempdir;

/// Brokers and programs may take so long on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A broker whose port is known and that does not run, where there can be one.
fn broker() -> Option<Broker> {
    Broker::prepared()
        .map_err(|why| skipped(&format!("many probes: {why}")))
        .ok()
}

/// A console that runs, and what it says.
struct Console {
    running: Running,
    address: SocketAddr,
    log: PathBuf,
}

impl Console {
    fn start(directory: &Path, broker: &Broker, words: &[&str]) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let log = directory.join(format!("console-{}.log", address.port()));
        let mut command = linkweir();
        command
            .args(["console", "--from", &broker.url("web")])
            .args(["--console", &address.to_string()])
            .args(words)
            .stdout(File::create(directory.join("stdout")).unwrap())
            .stderr(File::create(&log).unwrap());
        Self {
            running: Running::start(&mut command).unwrap(),
            address,
            log,
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn has_said(&self, text: &str) -> bool {
        until(PATIENCE, || self.said().contains(text))
    }

    /// The body of an answer; empty where there is none.
    fn get(&self, path: &str) -> String {
        let Ok(mut stream) = TcpStream::connect(self.address) else {
            return String::new();
        };
        let host = self.address;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        body.to_owned()
    }

    /// An answer in JSON, when it is so.
    #[track_caller]
    fn wait_for(&self, path: &str, mut is_so: impl FnMut(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let is_there = until(PATIENCE, || {
            last = serde_json::from_str(&self.get(path)).unwrap_or_default();
            is_so(&last)
        });
        assert!(
            is_there,
            "{path} says {last}; the console says {}",
            self.said()
        );
        last
    }
}

/// The bundled capture in two: its connections with even and those with odd ports.
fn halves(directory: &Path) -> [PathBuf; 2] {
    // Ports of TCP without options of IPv4 in Ethernet; the two sides of a connection give the same.
    let is_odd = |frame: &CapturedFrame| frame.bytes[35] % 2 != frame.bytes[37] % 2;
    [false, true].map(|wanted| {
        let mut frames = demo_frames();
        frames.retain(|frame| is_odd(frame) == wanted);
        assert!(frames.len() > 100);
        let path = directory.join(format!("{wanted}.pcap"));
        std::fs::write(&path, plain(&frames)).unwrap();
        path
    })
}

/// A run of a probe, which must end well.
fn probe(command: &str, name: &str, capture: &Path, broker: &Broker) {
    let (path, url) = (capture.to_str().unwrap(), broker.url("web"));
    run(&[command, "-q", "-r", path, "--probe", name, "-w", &url]).exits(0);
}

fn names(probes: &Value) -> Vec<&str> {
    let all = probes["probes"].as_array();
    let all = all.map(Vec::as_slice).unwrap_or_default();
    all.iter()
        .filter_map(|probe| probe["name"].as_str())
        .collect()
}

#[test]
fn two_probes_are_shown_as_one_run_over_all_packets() {
    let Some(mut broker) = broker() else { return };
    let directory = tempdir().unwrap();
    let [even, odd] = halves(directory.path());

    // Nobody is there yet: that is reported, and tried again.
    let console = Console::start(directory.path(), &broker, &["--since", "beginning"]);
    assert!(console.has_said("tried again"), "{}", console.said());
    console.wait_for("/api/probes", |probes| probes["fault"].is_string());
    broker.start_again().unwrap();

    probe("http", "left", &even, &broker);
    probe("http", "right", &odd, &broker);
    let have_ended = |probes: &Value| {
        let all = probes["probes"].as_array();
        all.is_some_and(|all| all.len() == 2 && all.iter().all(|probe| probe["has_ended"] == true))
    };
    let probes = console.wait_for("/api/probes", have_ended);
    assert_eq!(names(&probes), ["left", "right"]);
    assert_eq!(probes["fault"], Value::Null);

    let one = summary(&demo(), &[]);
    // An interval closes a moment after it is in the sums.
    let snapshot = console.wait_for("/api/snapshot", |snapshot| {
        let ticks = snapshot["ticks"].as_array();
        snapshot["totals"]["requests"] == one["http"]["requests"]
            && ticks.is_some_and(|ticks| !ticks.is_empty())
    });
    let totals = &snapshot["totals"];
    for name in ["packets", "bytes"] {
        assert_eq!(totals[name], one[name], "{name}");
    }
    for name in ["methods", "response_time_ns", "unanswered", "orphans"] {
        assert_eq!(totals[name], one["http"][name], "{name}");
    }
    for (code, count) in totals["codes"].as_object().unwrap() {
        assert_eq!(*count, one["http"]["status_codes"][code], "{code}");
    }
    assert_eq!(snapshot["meta"]["merged"], true);
    let ticks = snapshot["ticks"].as_array().unwrap();
    // What the second probe sent of intervals that the first one had closed is in the sums only.
    assert!(
        ticks
            .iter()
            .all(|tick| tick["t_ms"].as_u64().unwrap() % 1000 == 0)
    );

    // Tables too: all keys fit, so the counts are exact.
    let hosts = console.wait_for("/api/top?by=host&window=all", |top| {
        let rows = top["rows"].as_array().cloned().unwrap_or_default();
        let requests = rows.iter().filter_map(|row| row["requests"].as_u64());
        one["http"]["requests"] == requests.sum::<u64>()
    });
    assert_eq!(hosts["floor"], 0);

    let metrics = console.get("/metrics");
    for name in ["left", "right"] {
        let packets = format!("linkweir_probe_packets_total{{probe=\"{name}\"}} ");
        let line = metrics.lines().find(|line| line.starts_with(&packets));
        assert!(line.is_some_and(|line| !line.ends_with(" 0")), "{metrics}");
        let missing = format!("linkweir_probe_missing_intervals_total{{probe=\"{name}\"}} 0");
        assert!(metrics.lines().any(|line| line == missing), "{metrics}");
    }
    assert!(metrics.contains("linkweir_http_response_time_seconds_bucket{"));

    // One of them, by a second console over the same topic.
    let words = ["--since", "beginning", "--probe", "right"];
    let one = Console::start(directory.path(), &broker, &words);
    let probes = one.wait_for("/api/probes", |probes| {
        let has_ended = probes["probes"][0]["has_ended"] == true;
        has_ended && probes["left_out"].as_u64() > Some(0)
    });
    assert_eq!(names(&probes), ["right"]);
    let right = summary(&odd, &[]);
    let snapshot = one.wait_for("/api/snapshot", |snapshot| {
        snapshot["totals"]["requests"] == right["http"]["requests"]
    });
    let source = snapshot["meta"]["source"].as_str().unwrap();
    assert!(source.ends_with("/web (right)"), "{source}");
    assert_eq!(one.running.finish().unwrap().status.code(), Some(0));

    let ended = console.running.finish().unwrap();
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn flows_are_merged_and_a_broker_that_comes_back_is_read_again() {
    let Some(mut broker) = broker() else { return };
    broker.start_again().unwrap();
    let directory = tempdir().unwrap();
    let [even, odd] = halves(directory.path());
    // One of HTTP in the same topic is another view's.
    probe("http", "web", &even, &broker);
    probe("flows", "left", &even, &broker);
    let words = ["--kind", "flows", "--since", "beginning"];
    let console = Console::start(directory.path(), &broker, &words);
    console.wait_for("/api/probes", |probes| names(probes) == ["left"]);

    broker.stop();
    console.wait_for("/api/probes", |probes| probes["fault"].is_string());
    broker.start_again().unwrap();
    probe("flows", "right", &odd, &broker);
    let probes = console.wait_for("/api/probes", |probes| names(probes) == ["left", "right"]);
    assert!(
        probes["refused"]["other_kind"].as_u64().unwrap() > 0,
        "{probes}"
    );

    let demo = demo();
    let words = [
        "flows",
        "-q",
        "-r",
        demo.to_str().unwrap(),
        "--no-output",
        "--summary",
        "-",
    ];
    let one: Value = serde_json::from_str(&run(&words).exits(0).stdout).unwrap();
    console.wait_for("/api/snapshot", |snapshot| {
        let totals = &snapshot["totals"];
        totals["packets"] == one["packets"] && totals["ended"].as_u64() > Some(0)
    });
    assert!(console.has_said("can be read again"), "{}", console.said());
}

#[test]
fn a_rule_about_a_part_of_the_traffic_is_for_the_probes() {
    let words = [
        "console",
        "--from",
        "kafka://127.0.0.1:1/web",
        "--alert",
        "p95 of host shop > 1 s",
    ];
    run(&words).exits(2).says("give this rule to the probes");
    run(&["console", "--from", "127.0.0.1:9092/web"])
        .exits(2)
        .says("not a topic: kafka://");
}
