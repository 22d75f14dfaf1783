//! Flows of live traffic: those of a recording of it, alone, by several workers and behind a feeder.

#[allow(dead_code, reason = "the other test of live traffic uses the rest")]
use std::path::Path;

use crate::common::run;
use crate::traffic::Site;
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Running, interface};
use serde_json::Value;
use tempfile::tempdir;

/// What must agree: all but times, and what depends on which of two packets of both directions came
/// first: sent and received on two cores, each socket of the host may see them its own way.
const COLUMNS: [&str; 22] = [
    "c_ip",
    "c_port",
    "s_ip",
    "s_port",
    "c_pkts_all",
    "s_pkts_all",
    "c_bytes_all",
    "s_bytes_all",
    "c_bytes_uniq",
    "s_bytes_uniq",
    "c_pkts_retx",
    "s_pkts_retx",
    "c_pkts_ooo",
    "s_pkts_ooo",
    "c_win_max",
    "s_win_max",
    "c_mss",
    "s_mss",
    "http_req_cnt",
    "http_res_cnt",
    "application",
    "state",
];

fn flows(records: &str) -> Vec<String> {
    let mut all: Vec<String> = records
        .lines()
        .map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            COLUMNS.map(|name| record[name].to_string()).join(" ")
        })
        .collect();
    all.sort_unstable();
    all
}

fn live(site: &Site, name: &str, words: &[&str]) -> Running {
    let mut command = site.linkweir();
    command
        .args([
            "flows",
            "-q",
            "-i",
            interface(Side::Server),
            "-B",
            "16384",
            "-w",
        ])
        .arg(format!("{name}.jsonl"))
        .args(words);
    site.listening(&mut command, 1)
}

fn ended(running: Running, directory: &Path, name: &str) -> Vec<String> {
    let output = running.finish().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{name}: {said}");
    flows(&std::fs::read_to_string(directory.join(format!("{name}.jsonl"))).unwrap())
}

#[test]
fn live_flows_are_those_of_the_recording() {
    let directory = tempdir().unwrap();
    let Some(site) = Site::open(directory.path()) else {
        return;
    };
    let path = directory.path().join("recorded.pcap");
    let Some(recorder) = site.record(&path) else {
        return;
    };
    let runs = [
        ("one", live(&site, "one", &[])),
        ("two", live(&site, "two", &["--workers", "2"])),
    ];
    site.load(2);
    Site::settle();
    recorder.finish().unwrap();
    let offline = flows(
        &run(&[
            "flows",
            "-q",
            "-r",
            path.to_str().unwrap(),
            "--format",
            "jsonl",
        ])
        .exits(0)
        .stdout,
    );
    assert!(offline.len() > 20, "{} flows", offline.len());
    for (name, running) in runs {
        let live = ended(running, directory.path(), name);
        let missing: Vec<_> = offline.iter().filter(|flow| !live.contains(flow)).collect();
        let more: Vec<_> = live.iter().filter(|flow| !offline.contains(flow)).collect();
        assert!(
            missing.is_empty() && more.is_empty(),
            "{name}: missing {missing:#?}\nmore {more:#?}"
        );
    }
}
