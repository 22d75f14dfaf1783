//! `linkweir gateway`: what it did not see and what it could not write is reported, while it runs and at its end.

use super::site;

use std::fs;
use std::time::Duration;

use linkweir_testkit::gateway::{Place, SERVER};
use linkweir_testkit::netns::until;
use serde_json::{Value, json};
use site::{Gateway, PATIENCE, Site, noise, pause, url};

const WEB: &str = "[[rule]]\nname = \"web\"\napplication = [\"http\"]\n";

fn json_of(gateway: &Gateway<'_>) -> Value {
    serde_json::from_str(&gateway.status_with(&["--json"])).unwrap()
}

/// A line of `/metrics`.
fn metric(site: &Site, name: &str) -> Option<u64> {
    let mut curl = site.net.command(Place::Gateway, "curl");
    let output = curl.args(["-s", "-m", "15", "http://127.0.0.1:8080/metrics"]);
    let text = String::from_utf8(output.output().unwrap().stdout).unwrap();
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
    values.next()?.trim().parse().ok()
}

/// A queue that is full and fails open lets packets pass that nobody looks at, and a rule that is to fail
/// closed is void meanwhile. The kernel counts them nowhere.
#[test]
fn what_passes_a_full_queue_is_told_with_the_rules_that_were_void() {
    let Some(site) = Site::open(&["bash"]) else {
        return;
    };
    let rule = |name: &str, fail: &str| {
        format!(
            "[[rule]]\nname = \"{name}\"\napplication = [\"{name}\"]\naction = \"inspect\"\naudit = true\nfail = \"{fail}\"\n"
        )
    };
    let policy = format!(
        "queue-length = 64\n{}{}{}",
        rule("http", "closed"),
        rule("msn", "open"),
        rule("gnutella", "closed")
    );
    let gateway = site.gateway_with(&policy, &["--console", "127.0.0.1:8080"]);
    assert_eq!(json_of(&gateway)["unseen"], 0);
    site.net
        .must(
            Place::Server,
            "iptables",
            &["-A", "OUTPUT", "-p", "icmp", "-j", "DROP"],
        )
        .unwrap();
    gateway.running.signal("STOP").unwrap();
    let flood = format!("exec 3>/dev/udp/{SERVER}/9; for i in {{1..300}}; do echo $i >&3; done");
    site.net
        .must(Place::Client, "bash", &["-c", &flood])
        .unwrap();
    pause(Duration::from_millis(200));
    gateway.running.signal("CONT").unwrap();
    let is_told = || json_of(&gateway)["events"]["unseen"] == 2;
    assert!(until(PATIENCE, is_told), "{}", json_of(&gateway));
    // As many as a queue holds waited, and what the worker had taken before it stopped.
    let unseen = json_of(&gateway)["unseen"].as_u64().unwrap();
    assert!((228..=236).contains(&unseen), "{unseen}");
    let screen = gateway.status();
    assert!(
        screen.contains(&format!("{unseen} packets unseen")),
        "{screen}"
    );
    let is_shown = || metric(&site, "linkweir_gateway_unseen_packets_total ") == Some(unseen);
    assert!(until(PATIENCE, is_shown));
    assert_eq!(
        metric(&site, "linkweir_dropped_total{cause=\"kernel\"}"),
        Some(unseen)
    );
    let (code, said, events) = gateway.ended();
    assert_eq!(code, 1, "{said}");
    let passed = format!("{unseen} packets passed unseen in ");
    assert!(said.contains(&passed), "{said}");
    assert!(said.contains("void meanwhile: http, gnutella"), "{said}");
    for rule in ["http", "gnutella"] {
        let event = events.one("unseen", "rule", rule);
        let detail = event["detail"].as_str().unwrap();
        assert!(detail.starts_with(&passed), "{detail}");
        assert_eq!(event["client_ip"], Value::Null);
        assert_eq!(event["server_port"], Value::Null);
    }
}

/// An output on a full disk.
#[test]
fn events_that_are_not_written_are_told_while_it_runs() {
    let Some(site) = Site::open(&[]) else { return };
    let policy = format!("{WEB}action = \"allow\"\n");
    let words = ["-w", "/dev/full", "--console", "127.0.0.1:8080"];
    let gateway = site.gateway_with(&policy, &words);
    site.nginx.put("small", b"small").unwrap();
    for _ in 0..12 {
        assert_eq!(site.curl(0, &url("plain/small"), "out", &[]).0, 0);
        pause(Duration::from_millis(15));
    }
    let lost = || json_of(&gateway)["events_lost"].as_u64().unwrap();
    let is_told = until(PATIENCE, || lost() >= 10);
    let status = json_of(&gateway);
    assert!(is_told, "{status}");
    assert_eq!(status["not_written"]["/dev/full"], status["events_lost"]);
    assert_eq!(status["not_written"]["events.jsonl"], 0);
    assert!(gateway.status().contains("events not written to /dev/full"));
    let count = lost();
    let is_shown = || metric(&site, "linkweir_gateway_lost_events_total ") == Some(count);
    assert!(until(PATIENCE, is_shown));
    let sink = "linkweir_dropped_total{cause=\"sink\"}";
    assert!(until(PATIENCE, || metric(&site, sink) == Some(count)));
    let (code, said, events) = gateway.ended();
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains("not written to /dev/full so far"), "{said}");
    assert_eq!(events.of("decided").len(), 12);
}

/// An output on a disk that was full, and has room again.
#[test]
fn an_output_that_failed_is_written_again_after_a_hangup() {
    let Some(site) = Site::open(&[]) else { return };
    let again = site.path("again.jsonl");
    std::os::unix::fs::symlink("/dev/full", &again).unwrap();
    let policy = format!("{WEB}action = \"allow\"\n");
    let gateway = site.gateway_with(&policy, &["-w", "again.jsonl"]);
    site.nginx.put("small", b"small").unwrap();
    let fetch = || assert_eq!(site.curl(0, &url("plain/small"), "out", &[]).0, 0);
    let lost = || json_of(&gateway)["events_lost"].as_u64().unwrap();
    fetch();
    assert!(until(PATIENCE, || lost() == 1), "{}", json_of(&gateway));
    fs::remove_file(&again).unwrap();
    gateway.running.signal("HUP").unwrap();
    let partial = site.path(".again.jsonl.partial");
    assert!(until(PATIENCE, || partial.exists()), "not opened");
    fetch();
    let (code, said, _) = gateway.ended();
    assert_eq!(code, 1, "{said}");
    let back = "again.jsonl is written again; not written so far: 1";
    assert!(said.contains(back), "{said}");
    let written = fs::read_to_string(&again).unwrap();
    assert_eq!(written.lines().count(), 1, "{written}");
    assert!(written.contains("\"event\":\"decided\""), "{written}");
}

/// An output that nobody reads: its opening waits, and no packet with it.
#[test]
fn a_pipe_without_a_reader_holds_up_no_traffic() {
    let Some(site) = Site::open(&["mkfifo"]) else {
        return;
    };
    let policy = format!("{WEB}action = \"allow\"\n");
    drop(site.gateway(&policy).end());
    let pipe = site.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let config = site.configure("gateway.toml", &policy);
    let up = ["up", "--config", &config];
    assert!(site.linkweir(&up).status().unwrap().success());
    let running = site.run(&config, "other.jsonl", &["-w", "pipe"]);
    let opened = || site.path(".other.jsonl.partial").exists();
    assert!(until(PATIENCE, opened));
    pause(Duration::from_millis(300));
    site.nginx.put("small", b"small").unwrap();
    assert_eq!(site.curl(0, &url("plain/small"), "out", &[]).0, 0);
    // The first signal asks; the second ends what waits.
    running.signal("TERM").unwrap();
    pause(Duration::from_millis(700));
    let output = running.finish().unwrap();
    assert!(!output.status.success());
    let down = ["down", "--config", &config];
    assert!(site.linkweir(&down).status().unwrap().success());
}

/// Directories that hold as much as they may.
#[test]
fn recordings_that_are_not_kept_are_told_and_change_the_exit_code() {
    let Some(site) = Site::open(&[]) else { return };
    let policy = format!("{WEB}action = \"inspect\"\nrecord = true\n");
    let full = |text: String| text.replace("quarantine = ", "max-total = \"4KiB\"\nquarantine = ");
    let words = ["--console", "127.0.0.1:8080", "--summary", "summary.json"];
    let gateway = site.gateway_changed(&policy, full, &words);
    site.nginx.put("some", &noise(100_000)).unwrap();
    for _ in 0..2 {
        assert_eq!(site.curl(0, &url("plain/some"), "out", &[]).0, 0);
    }
    let lost = |status: &Value| status["vault"]["lost_files"]["total_limit"].clone();
    let is_told = until(PATIENCE, || lost(&json_of(&gateway)) == 2);
    assert!(is_told, "{}", json_of(&gateway));
    let screen = gateway.status();
    assert!(screen.contains("2 files not recorded whole"), "{screen}");
    let name = "linkweir_gateway_vault_lost_files_total{cause=\"total_limit\"}";
    assert!(until(PATIENCE, || metric(&site, name) == Some(2)));
    let (code, said, _) = gateway.ended();
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("not written to recorded files 2"), "{said}");
    let summary = fs::read_to_string(site.path("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(
        summary["dropped"]["sink"],
        json!({ "events.jsonl": 0, "recorded files": 2 })
    );
}
