//! What flow records must say of captures that are known packet by packet.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::{ended, installed, linkweir, plain};
use linkweir_testkit::anomalies::{Options, all};
use linkweir_testkit::conversation::Conversation;
use linkweir_testkit::many_flows::ManyFlows;
use serde_json::Value;
use tempfile::tempdir;

const MANY: ManyFlows = ManyFlows {
    flows: 3_000,
    concurrent: 500,
    exchanges: 2,
    gap_us: 10,
    pause_us: 0,
    one_way_per_cent: 0,
    snaplen: 65_535,
    seed: 11,
};

fn lines(capture: &Path, words: &[&str]) -> Vec<String> {
    let output = linkweir()
        .args(["flows", "-q", "--format", "jsonl", "-w", "-", "-r"])
        .arg(capture)
        .args(words)
        .output()
        .unwrap();
    let ran = ended(output).exits(0);
    ran.lines().into_iter().map(str::to_owned).collect()
}

#[test]
fn every_one_of_many_flows_is_found_whole() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("many.pcap");
    MANY.write(std::fs::File::create(&path).unwrap()).unwrap();
    let lines = lines(&path, &[]);
    assert_eq!(lines.len(), 3_000);
    for line in &lines {
        let record: Value = serde_json::from_str(line).unwrap();
        let is = |column: &str, value: u64| {
            assert_eq!(record[column].as_u64(), Some(value), "{column} of {line}");
        };
        // SYN, ACK, two requests and their ACKs, FIN, ACK; and what answers them.
        is("c_pkts_all", 8);
        is("s_pkts_all", 6);
        is("c_pkts_data", 2);
        is("s_pkts_data", 2);
        is("c_bytes_all", 2 * 80);
        is("s_bytes_all", 2 * 465);
        is("c_bytes_uniq", 2 * 80);
        is("s_bytes_uniq", 2 * 465);
        for column in ["pkts_retx", "pkts_ooo", "pkts_unk", "pkts_rto", "pkts_dup"] {
            is(&format!("c_{column}"), 0);
            is(&format!("s_{column}"), 0);
        }
        is("c_syn_cnt", 1);
        is("s_fin_cnt", 1);
        // SYN, two requests and FIN; SYN, two responses and FIN.
        assert!(record["c_rtt_cnt"].as_u64().unwrap() >= 3, "{line}");
        assert_eq!(record["state"], "closed", "{line}");
        assert_eq!(record["record"], "final", "{line}");
        assert_eq!(record["s_port"], 80, "{line}");
    }
}

#[test]
fn records_are_the_same_for_any_number_of_workers() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("many.pcap");
    let mut file = Vec::new();
    MANY.write(&mut file).unwrap();
    // And connections to which things happen.
    let start = Conversation::START_NS + 100_000_000_000;
    let cases = all(Options::PLAIN, 20_000, start);
    let frames: Vec<_> = cases.iter().flat_map(|c| c.frames.clone()).collect();
    file.extend(&plain(&frames)[24..]);
    std::fs::write(&path, &file).unwrap();
    let sorted = |workers: &str| {
        let mut lines = lines(&path, &["--workers", workers]);
        lines.sort_unstable();
        lines
    };
    let one = sorted("1");
    assert_eq!(one.len(), 3_000 + cases.len());
    for workers in ["2", "4"] {
        let several = sorted(workers);
        let different = one.iter().zip(&several).find(|(a, b)| a != b);
        assert_eq!(different, None, "{workers} workers");
        assert_eq!(one.len(), several.len());
    }
}

/// Packets and bytes of IP of the two directions, by ports.
type Totals = BTreeMap<(u64, u64), [u64; 4]>;

#[test]
fn totals_are_those_of_tshark() {
    if !installed("tshark") {
        eprintln!("SKIPPED: tshark is not here");
        return;
    }
    let directory = tempdir().unwrap();
    let path = directory.path().join("anomalies.pcap");
    for options in [
        Options::PLAIN,
        Options {
            timestamps: true,
            sack: true,
            version: linkweir_testkit::anomalies::Version::V6,
            ..Options::PLAIN
        },
    ] {
        let cases = all(options, 20_000, Conversation::START_NS);
        let frames: Vec<_> = cases.iter().flat_map(|c| c.frames.clone()).collect();
        std::fs::write(&path, plain(&frames)).unwrap();
        let mut ours = Totals::new();
        for line in lines(&path, &[]) {
            let record: Value = serde_json::from_str(&line).unwrap();
            let number = |column: &str| record[column].as_u64().unwrap();
            let key = (number("c_port"), number("s_port"));
            let key = (key.0.max(key.1), key.0.min(key.1));
            let totals = ours.entry(key).or_default();
            let sides = if key.0 == number("c_port") {
                ["c", "s"]
            } else {
                ["s", "c"]
            };
            totals[0] += number(&format!("{}_pkts_all", sides[0]));
            totals[1] += number(&format!("{}_pkts_all", sides[1]));
            totals[2] += number(&format!("{}_ip_bytes", sides[0]));
            totals[3] += number(&format!("{}_ip_bytes", sides[1]));
        }
        assert_eq!(ours, tshark(&path));
    }
}

/// The same by tshark: Ethernet frames less their 14 bytes.
fn tshark(capture: &Path) -> Totals {
    let output = Command::new("tshark")
        .args([
            "-n",
            "-T",
            "fields",
            "-e",
            "tcp.srcport",
            "-e",
            "tcp.dstport",
        ])
        .args(["-e", "frame.len", "-r"])
        .arg(capture)
        .output()
        .unwrap();
    let ran = ended(output).exits(0);
    let mut totals = Totals::new();
    for line in ran.lines() {
        let cells: Vec<u64> = line.split('\t').map(|c| c.parse().unwrap()).collect();
        let (from, to, bytes) = (cells[0], cells[1], cells[2] - 14);
        let of = totals.entry((from.max(to), from.min(to))).or_default();
        let at = usize::from(from < to);
        of[at] += 1;
        of[at + 2] += bytes;
    }
    totals
}
