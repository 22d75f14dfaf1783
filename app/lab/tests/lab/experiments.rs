//! `linkweir lab`: the scenarios `overload`, `capture-to-model`, `p2p` and `tls`, small.

use std::fs;

use crate::{agree, cells, figures, json, lab_alone, lab_with, lines, records};
use serde_json::Value;

const SEED: [&str; 2] = ["--seed", "5"];

#[test]
fn everybody_counts_the_same_near_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let values = [("duration", "\"3s\""), ("rounds", "1")];
    let Some((ran, found)) = lab_with(directory.path(), "overload", &values, &SEED) else {
        return;
    };
    agree(&ran.says("answers"), &found);
    let mut all = 0.0;
    for run in [
        "limit",
        "far-mmpp",
        "far-constant",
        "near1-mmpp",
        "near1-constant",
    ] {
        let cells = figures(&found, "sessions of one request", run);
        assert_eq!(cells.len(), 5, "{run}: {cells:?}");
        assert!(
            cells[0] > 50.0 && cells.iter().all(|cell| *cell == cells[0]),
            "{run}: {cells:?}"
        );
        all += cells[0];
    }
    // What is said is what the log and the records have.
    let kept = directory.path().join("kept");
    for name in ["web/access.log", "http.jsonl"] {
        assert_eq!(lines(&kept.join(name)) as f64, all, "{name}");
    }
    // The second pair is where it should be, whatever path the model took and whatever the server could do by
    // then: nearer to the limit, at one mean rate.
    let rates = figures(
        &found,
        "response time, as the client saw it",
        "  of the limit",
    );
    assert!((0.65..0.95).contains(&rates[2]), "{rates:?}");
    assert!((rates[2] - rates[3]).abs() < 0.01, "{rates:?}");
}

#[test]
fn the_circle_closes() {
    let directory = tempfile::tempdir().unwrap();
    let values = [("duration", "\"5s\""), ("rate", "300.0")];
    let Some((ran, found)) = lab_with(directory.path(), "capture-to-model", &values, &SEED) else {
        return;
    };
    agree(&ran.says("fitted"), &found);
    let kept = directory.path().join("kept");
    for name in ["first", "second"] {
        let sessions = figures(&found, "generations", &format!("{name}: sessions"));
        let requests = figures(&found, "generations", &format!("{name}: requests"));
        let recorded = lines(&kept.join(format!("{name}-http.jsonl")));
        // The list has a head.
        let started = lines(&kept.join(format!("{name}-starts.csv"))) - 1;
        assert_eq!(sessions, [started as f64; 3]);
        assert_eq!(requests, [recorded as f64; 4]);
        assert!(started > 200 && recorded > started, "{started} {recorded}");
    }
    assert!(
        fs::read_to_string(kept.join("check.svg"))
            .unwrap()
            .contains("<svg")
    );
}

#[test]
fn a_timeout_shorter_than_a_pause_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let values = [
        ("duration", "\"2s\""),
        ("rate", "200.0"),
        ("timeout", "\"50ms\""),
    ];
    let Some((ran, found)) = lab_with(directory.path(), "capture-to-model", &values, &SEED) else {
        return;
    };
    ran.exits(1);
    let sessions = figures(&found, "generations", "first: sessions");
    // A session in three has a pause of 200 ms.
    assert!(sessions[2] > 1.2 * sessions[0], "{sessions:?}");
}

#[test]
fn every_application_is_known_and_treated_as_the_policy_says() {
    let directory = tempfile::tempdir().unwrap();
    let values = [
        ("duration", "\"4s\""),
        ("transfers", "2"),
        ("refused", "1"),
        ("infected", "1"),
        ("secrets", "1"),
    ];
    let Some((ran, found)) = lab_with(directory.path(), "p2p", &values, &[]) else {
        return;
    };
    agree(&ran.says("the torrent"), &found);

    // What is said to be the same is what was asked for, and what the records have.
    let table = "connections, by application";
    assert_eq!(cells(&found, table, "unknown"), [Some(2.0); 4]);
    assert_eq!(
        cells(&found, table, "edonkey, dropped")[..3],
        [Some(1.0); 3]
    );
    let kept = directory.path().join("kept");
    let mut records = records(&kept.join("flows-behind.jsonl"));
    records.retain(|flow| flow["record"] == "final");
    assert!(records.iter().all(|flow| flow["application"] != "edonkey"));
    let torrents = records
        .iter()
        .filter(|flow| flow["application"] == "bittorrent");
    let torrents = Some(torrents.count() as f64);
    assert!(torrents > Some(1.0), "{records:#?}");
    assert_eq!(cells(&found, table, "bittorrent"), [torrents; 4]);

    // The torrent came at its rate, and is what was sent.
    let read = |name: &str| fs::read(kept.join(name)).unwrap();
    let (sent, came) = (read("seed/shared.bin"), read("leech/shared.bin"));
    assert!(sent.len() > 4_000_000 && sent == came);
    let rates = figures(&found, "rates", "torrent, in content");
    assert_eq!(rates.len(), 4, "{rates:?}");
    assert!(
        rates.iter().all(|rate| (9e6..10.1e6).contains(rate)),
        "{rates:?}"
    );
    let picture = &found["lab"]["pictures"][0];
    let points = picture["curves"][0]["points"].as_array().unwrap();
    assert!(points.len() >= 12, "{picture:#}");
}

/// Clients, a server and keys that know it all: what is said without keys is that.
#[test]
fn response_times_of_https_are_estimated() {
    let directory = tempfile::tempdir().unwrap();
    let Some((ran, found)) = lab_alone(directory.path(), &["tls", "--duration", "1500ms"]) else {
        return;
    };
    // Times are those of a machine that does other things too: what was counted is judged here.
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    let kept = directory.path().join("kept");
    let asked = figures(&found, "clean line: transactions", "curl");
    assert!(
        asked[0] > 20.0 && asked.iter().all(|count| *count == asked[0]),
        "{asked:?}"
    );
    let table = "clean line: estimates at the clients";
    let right = figures(&found, table, "  of all clients together");
    assert!(right.len() == 1 && right[0] > 0.95, "{right:?}");
    let exact = figures(&found, table, "right, of exact");
    assert!(
        !exact.is_empty() && exact.iter().all(|part| *part == 1.0),
        "{exact:?}"
    );
    // Nothing was read that is not there without keys.
    for record in records(&kept.join("clean-clients.estimated.jsonl")) {
        assert_eq!(
            (&record["source"], &record["uri"]),
            (&"estimate".into(), &Value::Null)
        );
    }
    // The line that loses has lost something.
    let line = json(&kept.join("lossy.json"));
    assert!(
        line["line"]["back"]["lost"]["data"].as_u64() > Some(0),
        "{line}"
    );
}
