//! The scenarios of the laboratory.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

mod ends;
mod experiments;
mod scenarios;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

use linkweir_testkit::ran::{self, Ran, ended, skipped};
use serde_json::Value;

/// The laboratory's own program.
const LAB: &str = env!("CARGO_BIN_EXE_linkweir-lab");

/// The program beside it, as where they are installed: it starts the laboratory, which runs its commands.
fn linkweir() -> PathBuf {
    let path = Path::new(LAB).with_file_name("linkweir");
    let how = "build both: cargo build -p linkweir -p linkweir-lab";
    assert!(path.is_file(), "{} is missing; {how}", path.display());
    path
}

/// Runs `linkweir` with these words.
fn run(words: &[&str]) -> Ran {
    ended(ran::command(linkweir()).args(words).output().unwrap())
}

/// Runs the laboratory, which keeps its files in `kept` of a directory; gives how it ended and its summary.
/// `None`, with a message, where the machine cannot run it.
fn lab(directory: &Path, words: &[&str]) -> Option<(Ran, Value)> {
    let _beside = MACHINE.read();
    lab_beside(directory, words)
}

/// The same with the machine for itself: beside so much work others lose what they would not lose alone.
fn lab_alone(directory: &Path, words: &[&str]) -> Option<(Ran, Value)> {
    let _alone = MACHINE.write();
    lab_beside(directory, words)
}

static MACHINE: RwLock<()> = RwLock::new(());

fn lab_beside(directory: &Path, words: &[&str]) -> Option<(Ran, Value)> {
    let (keep, summary) = (directory.join("kept"), directory.join("lab.json"));
    let (keep, path) = (keep.display().to_string(), summary.display().to_string());
    let fixed = ["lab", "--no-console", "--keep", &keep, "--summary", &path];
    let ran = run(&[&fixed[..], words].concat());
    let reasons = ["not installed", "no network namespaces"];
    if ran.code == Some(3) && reasons.iter().any(|why| ran.stderr.contains(why)) {
        skipped(ran.stderr.trim());
        return None;
    }
    let summary = fs::read(&summary);
    let summary = summary.map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap());
    Some((ran, summary))
}

/// The same for a scenario with other values.
fn lab_with(
    directory: &Path,
    name: &str,
    values: &[(&str, &str)],
    words: &[&str],
) -> Option<(Ran, Value)> {
    let text = run(&["lab", name, "--print"]).exits(0).stdout;
    let mut changed = String::new();
    for line in text.lines() {
        let key = line.split_once(" = ").map_or("", |(key, _)| key);
        match values.iter().find(|(name, _)| *name == key) {
            Some((key, value)) => changed.push_str(&format!("{key} = {value}\n")),
            None => changed.push_str(&format!("{line}\n")),
        }
    }
    let file = directory.join("small.toml");
    fs::write(&file, changed).unwrap();
    let file = file.display().to_string();
    lab(directory, &[&[file.as_str()], words].concat())
}

/// All observers agree, and the laboratory says so.
fn agree(ran: &Ran, found: &Value) {
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stderr, ran.stdout);
    assert!(ran.stdout.contains("\nAll "), "{}", ran.stdout);
    assert_eq!(found["agree"], true);
}

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

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap().lines().count()
}

/// A row of a table.
fn row<'a>(found: &'a Value, table: &str, what: &str) -> &'a Value {
    let tables = found["lab"]["tables"].as_array().unwrap();
    let table = tables.iter().find(|one| one["title"] == table).unwrap();
    let rows = table["rows"].as_array().unwrap();
    rows.iter().find(|one| one["what"] == what).unwrap()
}

/// Its cells; `None` where an observer cannot know.
fn cells(found: &Value, table: &str, what: &str) -> Vec<Option<f64>> {
    let cells = row(found, table, what)["cells"].as_array().unwrap();
    cells.iter().map(Value::as_f64).collect()
}

/// The cells that are there.
fn figures(found: &Value, table: &str, what: &str) -> Vec<f64> {
    cells(found, table, what).into_iter().flatten().collect()
}
