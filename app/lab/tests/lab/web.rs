//! `linkweir lab`: the scenario `web`, small.

use std::fs;
use std::path::Path;

use crate::run;
use linkweir_testkit::ran::{Ran, skipped};
use serde_json::Value;

/// The laboratory at small scale, kept in a directory; `None`, and a loud word, where it cannot be.
fn lab(directory: &Path, words: &[&str]) -> Option<(Ran, Value)> {
    let (keep, summary) = (directory.join("kept"), directory.join("lab.json"));
    let (keep, path) = (keep.display().to_string(), summary.display().to_string());
    let fixed = ["lab", "--no-console", "--keep", &keep, "--summary", &path];
    let ran = run(&[&fixed[..], words].concat());
    if ran.code == Some(3)
        && ["not installed", "no network namespaces"]
            .iter()
            .any(|why| ran.stderr.contains(why))
    {
        skipped(ran.stderr.trim());
        return None;
    }
    let found =
        fs::read(&summary).map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap());
    Some((ran, found))
}

/// The cells of a row.
fn row<'a>(found: &'a Value, table: &str, what: &str) -> &'a Value {
    let tables = found["lab"]["tables"].as_array().unwrap();
    let table = tables.iter().find(|one| one["title"] == table).unwrap();
    let rows = table["rows"].as_array().unwrap();
    &rows.iter().find(|one| one["what"] == what).unwrap()["cells"]
}

#[test]
fn everybody_sees_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["web", "--duration", "3s", "--rate", "200", "--seed", "3"];
    let Some((ran, found)) = lab(directory.path(), &words) else {
        return;
    };
    let ran = ran.exits(0).says("the gateway");
    assert!(ran.stdout.contains("\nAll "), "{}", ran.stdout);
    assert_eq!(found["agree"], true);

    // What is said to be the same is what the log and the records have.
    let log = fs::read_to_string(directory.path().join("kept/web/access.log")).unwrap();
    let served = log.lines().count();
    let requests = row(&found, "traffic", "requests");
    assert!(served > 100, "{served}");
    for observer in 0..3 {
        assert_eq!(
            requests[observer].as_f64(),
            Some(served as f64),
            "{requests}"
        );
    }
    let records = fs::read_to_string(directory.path().join("kept/http.jsonl")).unwrap();
    assert_eq!(records.lines().count(), served);
    // What was planted was sent, and did not arrive.
    let caught = row(&found, "planted transfers", "keyword: caught");
    assert_eq!(
        (&caught[0], &caught[2]),
        (&Value::from(25.0), &Value::from(25.0))
    );
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
