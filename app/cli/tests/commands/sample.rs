//! `--sample`: some records whole, the others not at all, and totals of all.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{demo, run};

fn lines(words: &[&str]) -> BTreeSet<String> {
    let path = demo();
    let all = [
        &words[..1],
        &["-q", "--format", "jsonl", "-r", path.to_str().unwrap()],
        &words[1..],
    ];
    let ran = run(&all.concat()).exits(0);
    ran.stdout.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_sample_has_whole_records_and_the_same_in_every_run() {
    for (command, of, extra) in [
        ("http", 4, &[][..]),
        ("flows", 2, &[]),
        // All partial records of a flow, or none.
        ("flows", 2, &["--periodic", "10ms"]),
    ] {
        let words = |more: &[&'static str]| [&[command][..], extra, more].concat();
        let all = lines(&words(&[]));
        let share = format!("1/{of}");
        let share: &'static str = share.leak();
        let sample = lines(&words(&["--sample", share]));
        assert!(sample.is_subset(&all), "{command}");
        let count = |lines: &BTreeSet<String>| {
            lines
                .iter()
                .map(|line| subject(line))
                .collect::<BTreeSet<_>>()
                .len() as f64
        };
        let (n, expected) = (count(&sample), count(&all) / f64::from(of));
        let deviation = (expected * (1.0 - 1.0 / f64::from(of))).sqrt();
        assert!(
            (n - expected).abs() < 4.0 * deviation,
            "{command}: {n} of {expected}"
        );
        let subjects: BTreeSet<String> = sample.iter().map(|line| subject(line)).collect();
        let of_subjects = all
            .iter()
            .filter(|line| subjects.contains(&subject(line)))
            .count();
        assert_eq!(of_subjects, sample.len(), "{command}");
        assert_eq!(
            sample,
            lines(&words(&["--sample", share, "--workers", "3"])),
            "{command}"
        );
        assert_eq!(all, lines(&words(&["--sample", "1/1"])), "{command}");
    }
}

/// The transaction or flow that a line is about.
fn subject(line: &str) -> String {
    let record: Value = serde_json::from_str(line).unwrap();
    match record.get("flow_id") {
        Some(flow) => flow.to_string(),
        None => line.to_owned(),
    }
}

#[test]
fn totals_are_of_everything_and_say_what_was_sampled() {
    let path = demo();
    for (command, key) in [("http", "http"), ("flows", "flows")] {
        let path = path.to_str().unwrap();
        let all = summary_of(command, path, &[]);
        let sampled = summary_of(command, path, &["--sample", "1/10"]);
        assert_eq!(sampled[key], all[key]);
        assert_eq!(sampled["records"], all["records"]);
        assert_eq!(sampled["sampled"], 10);
        let taken = sampled["sampled_records"].as_u64().unwrap();
        let records = all["records"].as_u64().unwrap();
        assert!(taken > 0 && taken < records / 2);
        assert_eq!(sampled["sampled_estimate"], taken * 10);
        let error = sampled["sampled_error"].as_f64().unwrap();
        assert!((error - (taken as f64 * 90.0).sqrt()).abs() < 1e-9);
        assert!((taken as f64 * 10.0 - records as f64).abs() < 4.0 * error);
        assert!(all.get("sampled").is_none());
    }
}

fn summary_of(command: &str, path: &str, words: &[&str]) -> Value {
    let all = [
        &[
            command,
            "-q",
            "-r",
            path,
            "-w",
            "/dev/null",
            "--summary",
            "-",
        ],
        words,
    ];
    serde_json::from_str(&run(&all.concat()).exits(0).stdout).unwrap()
}

#[test]
fn what_is_no_share_or_counts_every_flow_is_refused() {
    run(&["http", "-r", "a.pcap", "--sample", "10"])
        .exits(2)
        .says("write 1/N");
    let path = demo();
    let path = path.to_str().unwrap();
    let words = [
        "flows", "-r", path, "-w", "tree", "--format", "tstat", "--sample", "1/10",
    ];
    run(&words).exits(2).says("count every flow");
}
