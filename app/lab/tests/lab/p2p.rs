//! `linkweir lab p2p`, small.

use std::fs;
use std::path::Path;

use crate::run;
use linkweir_testkit::ran::{Ran, skipped};
use serde_json::Value;

/// The scenario at small scale, kept in a directory; `None`, and a loud word, where it cannot be.
fn lab(directory: &Path) -> Option<(Ran, Value)> {
    let text = run(&["lab", "p2p", "--print"]).exits(0).stdout;
    let mut small = String::new();
    for line in text.lines() {
        let line = match line.split_once(" = ") {
            Some(("duration", _)) => "duration = \"4s\"",
            Some(("transfers", _)) => "transfers = 2",
            Some((key, _)) if ["refused", "infected", "secrets"].contains(&key) => {
                &format!("{key} = 1")
            }
            _ => line,
        };
        small.push_str(line);
        small.push('\n');
    }
    let (file, keep, summary) = (
        directory.join("small.toml"),
        directory.join("kept"),
        directory.join("lab.json"),
    );
    fs::write(&file, small).unwrap();
    let [file, keep, path] = [&file, &keep, &summary].map(|path| path.display().to_string());
    let words = [
        "lab",
        &file,
        "--no-console",
        "--keep",
        &keep,
        "--summary",
        &path,
    ];
    let ran = run(&words);
    let cannot = ["not installed", "no network namespaces"];
    if ran.code == Some(3) && cannot.iter().any(|why| ran.stderr.contains(why)) {
        skipped(ran.stderr.trim());
        return None;
    }
    let found =
        fs::read(&summary).map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap());
    Some((ran, found))
}

/// The figures of a row.
fn row(found: &Value, table: &str, what: &str) -> Vec<Option<f64>> {
    let tables = found["lab"]["tables"].as_array().unwrap();
    let table = tables.iter().find(|one| one["title"] == table).unwrap();
    let rows = table["rows"].as_array().unwrap();
    let row = rows.iter().find(|one| one["what"] == what).unwrap();
    let cells = row["cells"].as_array().unwrap();
    cells.iter().map(Value::as_f64).collect()
}

#[test]
fn every_application_is_known_and_treated_as_the_policy_says() {
    let directory = tempfile::tempdir().unwrap();
    let Some((ran, found)) = lab(directory.path()) else {
        return;
    };
    let ran = ran.exits(0).says("the torrent");
    assert!(ran.stdout.contains("\nAll "), "{}", ran.stdout);
    assert_eq!(found["agree"], true);

    // What is said to be the same is what was asked for, and what the records have.
    let table = "connections, by application";
    assert_eq!(row(&found, table, "unknown"), [Some(2.0); 4]);
    assert_eq!(row(&found, table, "edonkey, dropped")[..3], [Some(1.0); 3]);
    let kept = |name: &str| fs::read_to_string(directory.path().join("kept").join(name)).unwrap();
    let records = kept("flows-behind.jsonl");
    let records = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let records: Vec<Value> = records
        .filter(|flow: &Value| flow["record"] == "final")
        .collect();
    assert!(records.iter().all(|flow| flow["application"] != "edonkey"));
    let torrents = records
        .iter()
        .filter(|flow| flow["application"] == "bittorrent");
    let torrents = Some(torrents.count() as f64);
    assert!(torrents > Some(1.0), "{records:#?}");
    assert_eq!(row(&found, table, "bittorrent"), [torrents; 4]);

    // The torrent came at its rate, and is what was sent.
    let read = |name: &str| fs::read(directory.path().join("kept").join(name)).unwrap();
    let (sent, came) = (read("seed/shared.bin"), read("leech/shared.bin"));
    assert!(sent.len() > 4_000_000 && sent == came);
    let rates = row(&found, "rates", "torrent, in content");
    let rates: Vec<f64> = rates.into_iter().flatten().collect();
    assert_eq!(rates.len(), 4, "{rates:?}");
    assert!(
        rates.iter().all(|rate| (9e6..10.1e6).contains(rate)),
        "{rates:?}"
    );
    let picture = &found["lab"]["pictures"][0];
    let points = picture["curves"][0]["points"].as_array().unwrap();
    assert!(points.len() >= 12, "{picture:#}");
}
