//! Several workers on a file give what one gives.

use crate::common::{demo, http};
use serde_json::Value;
use tempfile::tempdir;

/// Records, sorted as lines, and the summary.
fn measured(words: &[&str]) -> (Vec<String>, Value) {
    let directory = tempdir().unwrap();
    let summary = directory.path().join("summary.json");
    let words: Vec<&str> = ["--format", "jsonl", "--summary", summary.to_str().unwrap()]
        .iter()
        .chain(words)
        .copied()
        .collect();
    let ran = http(&demo(), &words).exits(0);
    let mut records: Vec<String> = ran.lines().iter().map(|&line| line.to_owned()).collect();
    records.sort_unstable();
    let summary = std::fs::read_to_string(summary).unwrap();
    (records, serde_json::from_str(&summary).unwrap())
}

#[test]
fn records_and_totals_of_several_workers() {
    for more in [
        &[][..],
        &["--ttlb"],
        &["--keep-duplicates", "--host", "www"],
    ] {
        let (records, totals) = measured(more);
        for workers in ["2", "3", "8", "auto"] {
            let words: Vec<&str> = ["--workers", workers].iter().chain(more).copied().collect();
            let (shared, sum) = measured(&words);
            assert_eq!(records, shared, "{workers} workers {more:?}");
            for key in [
                "http",
                "packets",
                "bytes",
                "decode_errors",
                "dropped",
                "first_ts_ns",
            ] {
                assert_eq!(totals[key], sum[key], "{key}, {workers} workers {more:?}");
            }
            let shares = sum["workers"].as_array().unwrap();
            let packets = shares.iter().map(|one| one["packets"].as_u64().unwrap());
            if workers != "auto" {
                assert_eq!(shares.len(), workers.parse::<usize>().unwrap());
                assert_eq!(packets.sum::<u64>(), totals["packets"].as_u64().unwrap());
            }
        }
    }
}

#[test]
fn sorted_output_is_the_same_text() {
    let one = http(&demo(), &["--sort"]).exits(0);
    let four = http(&demo(), &["--sort", "--workers", "4"]).exits(0);
    assert_eq!(one.stdout, four.stdout);
}

#[test]
fn a_limit_counts_the_packets_of_all() {
    let (records, one) = measured(&["-c", "1500"]);
    let (shared, four) = measured(&["-c", "1500", "--workers", "4"]);
    assert_eq!(four["packets"], 1500);
    assert_eq!(one["http"], four["http"]);
    assert_eq!(records, shared);
}

#[test]
fn a_reader_that_goes_away_ends_all_quietly() {
    use std::io::Read;
    let mut child = crate::common::linkweir()
        .args(["http", "-q", "--workers", "4", "--format", "jsonl", "-r"])
        .arg(demo())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn numbers_of_workers() {
    for bad in ["0", "-1", "many", "100000"] {
        http(&demo(), &[&format!("--workers={bad}")])
            .exits(2)
            .says("--workers");
    }
}
