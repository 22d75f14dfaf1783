//! `linkweir lab overload` and `capture-to-model`, small.

use std::fs;
use std::path::Path;

use crate::run;
use linkweir_testkit::ran::{Ran, skipped};
use serde_json::Value;

/// A scenario with other values, kept in a directory; `None`, and a loud word, where it cannot be.
fn lab(directory: &Path, name: &str, values: &[(&str, &str)]) -> Option<(Ran, Value)> {
    let text = run(&["lab", name, "--print"]).exits(0).stdout;
    let mut changed = String::new();
    for line in text.lines() {
        let key = line.split_once(" = ").map_or("", |(key, _)| key);
        match values.iter().find(|(name, _)| *name == key) {
            Some((key, value)) => changed.push_str(&format!("{key} = {value}\n")),
            None => changed.push_str(&format!("{line}\n")),
        }
    }
    let paths = ["small.toml", "kept", "lab.json"].map(|name| directory.join(name));
    fs::write(&paths[0], changed).unwrap();
    let [file, keep, summary] = paths.each_ref().map(|path| path.display().to_string());
    let words = [
        "lab",
        &file,
        "--no-console",
        "--seed",
        "5",
        "--keep",
        &keep,
        "--summary",
        &summary,
    ];
    let ran = run(&words);
    let cannot = ["not installed", "no network namespaces"];
    if ran.code == Some(3) && cannot.iter().any(|why| ran.stderr.contains(why)) {
        skipped(ran.stderr.trim());
        return None;
    }
    let found = fs::read(&paths[2]);
    let found = found.map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap());
    Some((ran, found))
}

/// The rows of a table.
fn rows<'a>(found: &'a Value, table: &str) -> &'a Vec<Value> {
    let tables = found["lab"]["tables"].as_array().unwrap();
    let table = tables.iter().find(|one| one["title"] == table).unwrap();
    table["rows"].as_array().unwrap()
}

/// The cells of a row, those that are there.
fn cells(rows: &[Value], what: &str) -> Vec<f64> {
    let row = rows.iter().find(|one| one["what"] == what).unwrap();
    let cells = row["cells"].as_array().unwrap();
    cells.iter().filter_map(Value::as_f64).collect()
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap().lines().count()
}

#[test]
fn everybody_counts_the_same_near_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let values = [("duration", "\"3s\""), ("rounds", "1")];
    let Some((ran, found)) = lab(directory.path(), "overload", &values) else {
        return;
    };
    let ran = ran.exits(0).says("answers");
    assert!(ran.stdout.contains("\nAll "), "{}", ran.stdout);
    let rows = rows(&found, "sessions of one request");
    let mut all = 0.0;
    for run in [
        "limit",
        "far-mmpp",
        "far-constant",
        "near1-mmpp",
        "near1-constant",
    ] {
        let cells = cells(rows, run);
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
    // The second pair is where it should be, whatever path the model took: nearer to the limit, at
    // one mean rate.
    let rates = cells(
        self::rows(&found, "response time, as the client saw it"),
        "  of the limit",
    );
    assert!((0.5..0.88).contains(&rates[2]), "{rates:?}");
    assert!((rates[2] - rates[3]).abs() < 0.01, "{rates:?}");
}

#[test]
fn the_circle_closes() {
    let directory = tempfile::tempdir().unwrap();
    let values = [("duration", "\"5s\""), ("rate", "300.0")];
    let Some((ran, found)) = lab(directory.path(), "capture-to-model", &values) else {
        return;
    };
    let ran = ran.exits(0).says("fitted");
    assert!(ran.stdout.contains("\nAll "), "{}", ran.stdout);
    let kept = directory.path().join("kept");
    for name in ["first", "second"] {
        let sessions = cells(rows(&found, "generations"), &format!("{name}: sessions"));
        let requests = cells(rows(&found, "generations"), &format!("{name}: requests"));
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
fn a_timeout_shorter_than_a_pause_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let values = [
        ("duration", "\"2s\""),
        ("rate", "200.0"),
        ("timeout", "\"50ms\""),
    ];
    let Some((ran, found)) = lab(directory.path(), "capture-to-model", &values) else {
        return;
    };
    ran.exits(1);
    let sessions = cells(rows(&found, "generations"), "first: sessions");
    // A session in three has a pause of 200 ms.
    assert!(sessions[2] > 1.2 * sessions[0], "{sessions:?}");
}
