//! `linkweir lab`: the scenarios `web`, `loss` and `failover`, small.

use std::fs;
use std::path::Path;

use crate::{agree, cells, json, lab, records, row, run};
use linkweir_testkit::ran::{self, ended};
use serde_json::Value;

#[test]
fn everybody_sees_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["web", "--duration", "3s", "--rate", "200", "--seed", "3"];
    let Some((ran, found)) = lab(directory.path(), &words) else {
        return;
    };
    agree(&ran.says("the gateway"), &found);

    // What is said to be the same is what the log and the records have.
    let log = fs::read_to_string(directory.path().join("kept/web/access.log")).unwrap();
    let served = log.lines().count();
    let requests = cells(&found, "traffic", "requests");
    assert!(served > 100, "{served}");
    assert_eq!(requests[..3], [Some(served as f64); 3]);
    assert_eq!(
        records(&directory.path().join("kept/http.jsonl")).len(),
        served
    );
    // What was planted was sent, and did not arrive.
    let caught = cells(&found, "planted transfers", "keyword: caught");
    assert_eq!((caught[0], caught[2]), (Some(25.0), Some(25.0)));
    assert!(log.lines().filter(|line| line.contains("/keyword")).count() == 25);
}

#[test]
fn a_scenario_can_be_changed_and_a_wrong_one_says_where() {
    let text = run(&["lab", "web", "--print"]).exits(0).stdout;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    fs::write(&path, text.replace("rate =", "rtae =")).unwrap();
    let mine = path.display().to_string();
    run(&["lab", &mine]).exits(2).says("rtae").says("line ");
    run(&["lab", "nothing"]).exits(2).says("no such scenario");
    let list = run(&["lab", "--list"]).exits(0).stdout;
    assert!(list.lines().any(|line| line.starts_with("web ")), "{list}");
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
    let words = ["loss", "--duration", "3s", "--rate", "120", "--seed", "5"];
    let Some((ran, found)) = lab(directory.path(), &words) else {
        return;
    };
    agree(&ran, &found);
    let keep = directory.path().join("kept");

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
    let again = row(&found, "retransmissions", "server: sent again");
    assert!(
        again["cells"][4].as_f64().unwrap() >= down as f64,
        "{again}"
    );
    let reasons = row(&found, "causes of retransmission", "server");
    assert_eq!(reasons["cells"][0], again["cells"][4], "{reasons}");
    // But for the last words of the server, which perhaps nobody hears.
    let excused = reasons["rule"]["within"].as_f64().unwrap_or(0.0);
    assert!(
        excused <= again["cells"][4].as_f64().unwrap() / 4.0,
        "{reasons}"
    );
    // The gateway and the server heard the same requests in spite of it.
    let requests = cells(&found, "traffic", "requests");
    let log = fs::read_to_string(keep.join("web/access.log")).unwrap();
    assert_eq!(requests[0], Some(log.lines().count() as f64));
    assert!(log.lines().count() > 100, "{log}");
}

#[test]
fn the_line_is_no_command_for_users() {
    let own = |words: &[&str]| ended(ran::command(crate::LAB).args(words).output().unwrap());
    let help = own(&["--help"]).exits(0).stdout;
    assert_eq!(help, run(&["lab", "--help"]).exits(0).stdout);
    assert!(!help.contains("Commands:"), "{help}");
    own(&["line", "--between", "lo"]).exits(2).says("--and");
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
    let words = [
        "failover",
        "--duration",
        "3600ms",
        "--rate",
        "100",
        "--seed",
        "7",
    ];
    let Some((ran, found)) = lab(directory.path(), &words) else {
        return;
    };
    agree(&ran, &found);
    let keep = directory.path().join("kept");

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

    // A packet that a feeder distributed was taken by somebody, or is announced as dropped.
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
