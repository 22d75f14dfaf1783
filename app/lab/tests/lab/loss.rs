//! `linkweir lab`: the scenario `loss`, small. What was lost is what was sent again.

use std::fs;
use std::path::Path;

use crate::run;
use linkweir_testkit::ran::{self, ended, skipped};
use serde_json::Value;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Segments that a line lost on a way, of all kinds that have a place in the sequence.
fn lost(line: &Value, way: &str) -> u64 {
    let kinds = ["syn", "data", "fin"];
    let count = |kind: &&str| line["line"][way]["lost"][kind].as_u64().unwrap();
    kinds.iter().map(count).sum()
}

#[test]
fn what_is_lost_is_sent_again_and_everybody_counts_it() {
    let directory = tempfile::tempdir().unwrap();
    let (keep, summary) = (
        directory.path().join("kept"),
        directory.path().join("lab.json"),
    );
    let (keep_text, path) = (keep.display().to_string(), summary.display().to_string());
    let ran = run(&[
        "lab",
        "loss",
        "--no-console",
        "--duration",
        "3s",
        "--rate",
        "120",
        "--seed",
        "5",
        "--keep",
        &keep_text,
        "--summary",
        &path,
    ]);
    let reasons = ["not installed", "no network namespaces"];
    if ran.code == Some(3) && reasons.iter().any(|why| ran.stderr.contains(why)) {
        skipped(ran.stderr.trim());
        return;
    }
    let ran = ran.exits(0);
    assert!(ran.stdout.contains("\nAll "), "{}", ran.stdout);

    // Something was lost both ways, some came late, and the server sent at least as much again.
    let line = json(&keep.join("line.json"));
    let (up, down) = (lost(&line, "forth"), lost(&line, "back"));
    assert!(up > 0 && down > 0, "{line}");
    for way in ["forth", "back"] {
        // Of any kind: a client sends few segments with data, and chance may spare them.
        let late = line["line"][way]["late"].as_object().unwrap();
        assert!(
            late.values().any(|count| count.as_u64() > Some(0)),
            "{line}"
        );
    }
    let found = json(&summary);
    let tables = found["lab"]["tables"].as_array().unwrap();
    let row = |title: &str, what: &str| {
        let table = tables.iter().find(|table| table["title"] == title).unwrap();
        let rows = table["rows"].as_array().unwrap();
        rows.iter().find(|row| row["what"] == what).unwrap().clone()
    };
    let again = row("retransmissions", "server: sent again");
    assert!(
        again["cells"][4].as_f64().unwrap() >= down as f64,
        "{again}"
    );
    let reasons = row("causes of retransmission", "server");
    assert_eq!(reasons["cells"][0], again["cells"][4], "{reasons}");
    assert_eq!(reasons["rule"], "same");
    // The gateway and the server heard the same requests in spite of it.
    let requests = row("traffic", "requests");
    let log = fs::read_to_string(keep.join("web/access.log")).unwrap();
    assert_eq!(
        requests["cells"][0].as_f64(),
        Some(log.lines().count() as f64)
    );
    assert!(log.lines().count() > 100, "{log}");
}

#[test]
fn the_line_is_no_command_for_users() {
    let lab = |words: &[&str]| ended(ran::command(crate::LAB).args(words).output().unwrap());
    let help = lab(&["--help"]).exits(0).stdout;
    assert_eq!(help, run(&["lab", "--help"]).exits(0).stdout);
    assert!(!help.contains("Commands:"), "{help}");
    lab(&["line", "--between", "lo"]).exits(2).says("--and");
}
