//! Out-of-sequence segments of which it is known what they are, through the whole binary.
//!
//! Every case of the testkit with every combination of IP version, timestamps, SACK,
//! identification, sender and sequence numbers; the captures of a second, independent generator
//! where it is there.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::{demo, ended, linkweir, plain};
use linkweir_record::flow::Anomaly;
use linkweir_testkit::anomalies::{Case, Columns, Options, Verdict, all};
use linkweir_testkit::conversation::{Conversation, Side};
use serde_json::Value;
use tempfile::tempdir;

/// The records of a capture by the client's port. Where only the server was seen it may stand as
/// the client: then the sides are exchanged here.
fn records(capture: &Path, words: &[&str]) -> BTreeMap<u64, Value> {
    let output = linkweir()
        .args(["flows", "-q", "--format", "jsonl", "-w", "-", "-r"])
        .arg(capture)
        .args(words)
        .output()
        .unwrap();
    let ran = ended(output).exits(0);
    let mut records = BTreeMap::new();
    for line in ran.lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if record["c_port"] == 80 {
            record = exchanged(&record);
        }
        let port = record["c_port"].as_u64().unwrap();
        let before = records.insert(port, record);
        assert!(before.is_none(), "two records of port {port}");
    }
    records
}

fn exchanged(record: &Value) -> Value {
    let other = |name: &String| match name.split_at_checked(2) {
        Some(("c_", rest)) => format!("s_{rest}"),
        Some(("s_", rest)) => format!("c_{rest}"),
        _ => name.clone(),
    };
    let fields = record.as_object().unwrap().iter();
    Value::Object(fields.map(|(k, v)| (other(k), v.clone())).collect())
}

const COLUMNS: [&str; Anomaly::COUNT] = [
    "pkts_rto",
    "pkts_fs",
    "pkts_reor",
    "pkts_dup",
    "pkts_unk",
    "pkts_fc",
    "pkts_unrto",
    "pkts_unfs",
    "pkts_tlp",
];

fn prefix(side: Side) -> &'static str {
    match side {
        Side::Client => "c",
        Side::Server => "s",
    }
}

fn number(record: &Value, side: Side, column: &str) -> u64 {
    let name = format!("{}_{column}", prefix(side));
    record[&name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name} in {record}"))
}

fn counts(record: &Value, side: Side) -> [u64; Anomaly::COUNT] {
    COLUMNS.map(|column| number(record, side, column))
}

/// The classes that are not zero.
fn words(counts: &[u64; Anomaly::COUNT]) -> String {
    let classes = Anomaly::ALL.iter().zip(counts).filter(|(_, n)| **n > 0);
    let words: Vec<String> = classes
        .map(|(class, n)| match n {
            1 => class.as_str().to_owned(),
            n => format!("{n} {}", class.as_str()),
        })
        .collect();
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join(", ")
    }
}

fn truth(case: &Case) -> String {
    let mut counts = [0; Anomaly::COUNT];
    for class in case.labels.iter().filter_map(|label| label.truth) {
        counts[class as usize] += 1;
    }
    words(&counts)
}

const fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

/// What a record says that does not depend on a classifier.
fn wrong_columns(case: &Case, record: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for side in [Side::Client, Side::Server] {
        let Columns {
            pkts_all,
            pkts_data,
            bytes_all,
            bytes_uniq,
            pkts_retx,
            bytes_retx,
            pkts_ooo,
            syn_cnt,
            syn_retx,
            fin_cnt,
        } = case.columns(side);
        let expected = [
            ("pkts_all", pkts_all),
            ("pkts_data", pkts_data),
            ("bytes_all", bytes_all),
            ("bytes_uniq", bytes_uniq),
            ("pkts_retx", pkts_retx),
            ("bytes_retx", bytes_retx),
            ("pkts_ooo", pkts_ooo),
            ("syn_cnt", syn_cnt),
            ("syn_retx", syn_retx),
            ("fin_cnt", fin_cnt),
        ];
        for (column, value) in expected {
            let ours = number(record, side, column);
            if ours != value {
                wrong.push(format!("{}_{column} {ours}, not {value}", prefix(side)));
            }
        }
    }
    wrong
}

/// One capture with all cases of one set of options.
fn capture(options: Options, path: &Path) -> Vec<Case> {
    let cases = all(options, 20_000, Conversation::START_NS);
    let frames: Vec<_> = cases.iter().flat_map(|c| c.frames.clone()).collect();
    std::fs::write(path, plain(&frames)).unwrap();
    cases
}

/// Of each case: right, tolerated, wrong; and what was found where it was wrong.
type Table = BTreeMap<&'static str, ([usize; 3], BTreeMap<String, Vec<String>>)>;

fn print(title: &str, truths: &BTreeMap<&'static str, String>, table: &Table) {
    eprintln!(
        "\n{title}\n{:<38} {:>5} {:>9} {:>5}  truth",
        "case", "right", "tolerated", "wrong"
    );
    for (name, ([right, tolerated, wrong], found)) in table {
        eprintln!(
            "{name:<38} {right:>5} {tolerated:>9} {wrong:>5}  {}",
            truths[name]
        );
        for (found, options) in found {
            eprintln!(
                "    found {found}: {} of them, {}",
                options.len(),
                options[0]
            );
        }
    }
}

#[test]
fn the_classes_are_those_that_happened() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("anomalies.pcap");
    let mut table = Table::new();
    let mut truths = BTreeMap::new();
    let mut columns: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = 0;
    for options in Options::all() {
        let cases = capture(options, &path);
        let records = records(&path, &[]);
        assert_eq!(records.len(), cases.len(), "{}", options.name());
        for case in &cases {
            let record = &records[&u64::from(case.port)];
            let found = counts(record, options.sender);
            let quiet = counts(record, other(options.sender));
            truths.insert(case.name, truth(case));
            let row = table.entry(case.name).or_default();
            let mut verdict = case.judge(&found);
            let mut text = words(&found);
            if quiet != [0; Anomaly::COUNT] {
                verdict = Verdict::Wrong;
                text = format!("{text}; of the receiver {}", words(&quiet));
            }
            row.0[verdict as usize] += 1;
            if verdict == Verdict::Wrong {
                wrong += 1;
                let evidence = record["classifier_evidence"].as_str().unwrap_or("");
                let of = row.1.entry(format!("{text} [by {evidence}]")).or_default();
                of.push(options.name());
            }
            for difference in wrong_columns(case, record) {
                columns
                    .entry(format!("{}: {difference}", case.name))
                    .or_insert_with(|| options.name());
            }
        }
    }
    print("by evidence", &truths, &table);
    for (difference, options) in &columns {
        eprintln!("{difference} ({options})");
    }
    assert_eq!(wrong, 0, "segments in the wrong class");
    assert!(columns.is_empty(), "counts that are wrong");
}

#[test]
fn the_published_rules_say_what_they_say() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("anomalies.pcap");
    let mut table = Table::new();
    let mut truths = BTreeMap::new();
    let mut wrong = 0;
    for options in Options::all() {
        let cases = capture(options, &path);
        let records = records(&path, &["--classifier", "tstat"]);
        for case in cases.iter().filter(|case| !case.is_one_way) {
            let found = counts(&records[&u64::from(case.port)], options.sender);
            let is_right = case.is_as_published(&found);
            truths.insert(case.name, truth(case));
            let row = table.entry(case.name).or_default();
            row.0[if is_right { 0 } else { 2 }] += 1;
            if !is_right {
                wrong += 1;
                row.1.entry(words(&found)).or_default().push(options.name());
            }
        }
    }
    print("by the published rules", &truths, &table);
    assert_eq!(wrong, 0, "not the published rules");
}

#[test]
fn round_trips_are_those_of_the_path() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("anomalies.pcap");
    for options in Options::all() {
        let cases = capture(options, &path);
        let records = records(&path, &[]);
        for case in cases.iter().filter(|case| !case.is_one_way) {
            let record = &records[&u64::from(case.port)];
            for side in ["c", "s"] {
                let millis = |column: &str| record[&format!("{side}_{column}")].as_f64().unwrap();
                let at = format!("{} ({}): {record}", case.name, options.name());
                assert!((millis("rtt_min") - 10.0).abs() < 1e-6, "{at}");
                assert!(millis("rtt_max") >= millis("rtt_avg"), "{at}");
                if case.name == "clean" {
                    assert!((millis("rtt_max") - 10.0).abs() < 1e-6, "{at}");
                    assert!(millis("rtt_std") < 1e-3, "{at}");
                }
            }
        }
    }
}

#[test]
fn the_screen_has_the_classes_that_came_in_words() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("anomalies.pcap");
    capture(Options::all()[0], &path);
    let row = |path: &Path| {
        let mut command = linkweir();
        let command = command.args(["flows", "-w", "/dev/null", "-r"]).arg(path);
        let screen = ended(command.output().unwrap()).exits(0).stderr;
        let row = screen.lines().find(|line| line.contains("out of sequence"));
        row.map(str::to_owned)
    };
    let all = row(&path).unwrap();
    assert!(all.contains("  retransmitted by timer "), "{all}");
    assert!(!all.contains('_') && !all.contains(" 0"), "{all}");
    assert_eq!(row(&demo()), None, "where nothing is out of sequence");
}

/// The classes of the other generator's scenarios: truth, and the published rules on IPv4.
const SCENARIOS: [(&str, &str, &str); 11] = [
    ("clean", "none", "none"),
    ("rto_seen", "rto", "rto"),
    ("rto_hole", "rto", "rto"),
    ("fr_seen", "fast_retransmit", "fast_retransmit"),
    ("fr_hole", "fast_retransmit", "fast_retransmit"),
    ("reorder", "reordering", "reordering"),
    ("netdup", "network_duplicate", "network_duplicate"),
    ("unnec_rto", "unnecessary_rto", "unnecessary_rto"),
    ("zwp", "flow_control", "flow_control"),
    ("tlp", "tail_loss_probe", "unknown"),
    ("rto_ipid0", "rto", "network_duplicate"),
];

#[test]
fn another_generator_agrees() {
    let tool =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/tools/make_tcp_anomalies.py");
    if !tool.is_file() || !crate::common::installed("python3") {
        eprintln!("SKIPPED: the other generator of anomalies is not here");
        return;
    }
    let directory = tempdir().unwrap();
    let path = directory.path().join("anomalies.pcap");
    let mut wrong = Vec::new();
    for version in ["4", "6"] {
        let mut make = Command::new("python3");
        make.arg(&tool);
        if version == "6" {
            make.arg("-6");
        }
        let names = ended(make.arg(&path).output().unwrap()).exits(0);
        let names: Vec<String> = names.stdout.trim().split(',').map(str::to_owned).collect();
        assert_eq!(names.len(), SCENARIOS.len());
        let ours = records(&path, &[]);
        let published = records(&path, &["--classifier", "tstat"]);
        eprintln!(
            "\nIPv{version}\n{:<12} {:<20} published rules",
            "scenario", "by evidence"
        );
        for ((name, truth, rules), port) in SCENARIOS.iter().zip(40_000_u64..) {
            assert!(names.contains(&(*name).to_owned()), "{name}");
            let found = words(&counts(&ours[&port], Side::Server));
            let by_rules = words(&counts(&published[&port], Side::Server));
            eprintln!("{name:<12} {found:<20} {by_rules}");
            if found != *truth {
                wrong.push(format!("IPv{version} {name}: {found}, not {truth}"));
            }
            if version == "4" && by_rules != *rules {
                wrong.push(format!(
                    "IPv4 {name}, published rules: {by_rules}, not {rules}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
