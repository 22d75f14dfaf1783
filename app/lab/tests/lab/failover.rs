//! `linkweir lab`: the scenario `failover`, small. What is killed loses nothing that nobody tells of.

use std::fs;
use std::path::Path;

use crate::run;
use linkweir_testkit::ran::skipped;
use serde_json::Value;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The records of a file.
fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Sessions of a generator that did all they should.
fn completed(kept: &Path, name: &str) -> usize {
    let sessions = records(&kept.join(format!("{name}.jsonl")));
    let complete = sessions.iter().filter(|one| one["state"] == "completed");
    complete.count()
}

#[test]
fn what_is_lost_is_announced() {
    let directory = tempfile::tempdir().unwrap();
    let (keep, summary) = (
        directory.path().join("kept"),
        directory.path().join("lab.json"),
    );
    let (keep_text, path) = (keep.display().to_string(), summary.display().to_string());
    let ran = run(&[
        "lab",
        "failover",
        "--no-console",
        "--duration",
        "3600ms",
        "--rate",
        "100",
        "--seed",
        "7",
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

    // What fails open let something through and says so, what fails closed let nothing through.
    assert!(completed(&keep, "open-keyword") > 0);
    assert_eq!(completed(&keep, "closed-keyword"), 0);
    assert!(completed(&keep, "closed-load") > 0);
    let count = |name: &str, what: &str| {
        let summary = json(&keep.join(format!("{name}.json")));
        summary["gateway"]["counts"][what].as_u64().unwrap()
    };
    assert!(count("open-gateway-2", "undecided_at_start") > 0);
    assert_eq!(count("closed-gateway-2", "undecided_at_start"), 0);

    // A packet that a feeder dealt was taken by somebody, or is announced as dropped.
    for ring in ["64MiB", "256KiB"] {
        let fed = json(&keep.join(format!("consumer-feed-{ring}.json")));
        let killed = &fed["feed"]["consumers"][1];
        let number = |what: &str| killed[what].as_u64().unwrap();
        let next = json(&keep.join(format!("consumer-http-{ring}-1-2.json")));
        assert_eq!(number("killed"), 1, "{fed}");
        assert!(number("unwritten_by_killed") <= number("taken_by_killed"));
        assert!(number("taken_by_killed") > 0, "{fed}");
        assert_eq!(
            number("packets"),
            number("taken_by_killed") + next["packets"].as_u64().unwrap()
        );
    }
    // All that was served was recorded, but for what the killed one had not written.
    let log = fs::read_to_string(keep.join("web/access.log")).unwrap();
    let is_of_feed = |line: &&str| line.split(' ').nth(1).unwrap().starts_with("10.40.");
    let served = log.lines().filter(is_of_feed).count();
    let files = ["0-1", "0-2", "1-2"].map(|name| format!("consumer-http-64MiB-{name}.jsonl"));
    let killed = ".consumer-http-64MiB-1-1.jsonl.partial".to_owned();
    let files = files.into_iter().chain([killed]);
    let recorded: usize = files.map(|name| records(&keep.join(name)).len()).sum();
    assert!(served > 100, "{served}");
    let fed = json(&keep.join("consumer-feed-64MiB.json"));
    let unwritten = &fed["feed"]["consumers"][1]["unwritten_by_killed"];
    let unwritten = usize::try_from(unwritten.as_u64().unwrap()).unwrap();
    assert!(
        recorded + unwritten >= served,
        "{recorded} {unwritten} {served}"
    );
}
