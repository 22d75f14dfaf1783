//! What `linkweir load` refuses before it opens an interface.

use std::fs::File;

use crate::common::{Ran, run};

/// A run that would be right but for the words that are added.
fn load(more: &[&str]) -> Ran {
    let words = [
        "load",
        "http://127.0.0.1:1/",
        "--arrivals",
        "constant:1",
        "--sessions",
        "1",
    ];
    run(&[&words[..], more].concat())
}

const HERE: [&str; 4] = ["-i", "lo", "--clients", "10.128.0.0/24"];

#[test]
fn a_controller_writes_no_records_and_no_capture() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    for (flag, path) in [("-w", at("records.jsonl")), ("--pcap", at("all.pcap"))] {
        // It would wait for its worker for a minute.
        let controller = ["--role", "controller", "--generators", "1", flag, &path];
        load(&controller)
            .exits(2)
            .says("a controller sends nothing: -w and --pcap are for its workers");
        assert!(!std::path::Path::new(&path).exists());
    }
}

#[test]
fn outputs_need_a_directory_that_is_there() {
    let directory = tempfile::tempdir().unwrap();
    for (flag, name) in [
        ("-w", "none/records.jsonl"),
        ("--pcap", "none/all.pcap"),
        ("--summary", "none/summary.json"),
        ("--series", "none/series.csv"),
        ("--report", "none/report.html"),
        ("--report", "none/report.json"),
    ] {
        let path = directory.path().join(name).display().to_string();
        load(&[&HERE[..], &[flag, &path]].concat())
            .exits(3)
            .says("none: no such directory to write to");
    }
}

#[test]
fn a_script_has_at_most_16_mib() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    // Nothing but length: no disk is needed for it.
    File::create(&path)
        .unwrap()
        .set_len((16 << 20) + 1)
        .unwrap();
    let shown = path.display().to_string();
    load(&[&HERE[..], &["--script", &shown]].concat())
        .exits(2)
        .says(&format!("{shown}: larger than 16 MiB"));
    // One byte less is read, and refused for what is in it.
    File::create(&path).unwrap().set_len(16 << 20).unwrap();
    let ran = load(&[&HERE[..], &["--script", &shown]].concat()).exits(2);
    assert!(!ran.stderr.contains("larger"), "{}", ran.stderr);
    assert!(ran.stderr.len() < 8192, "what is quoted is cut");
}

#[test]
fn an_exact_mean_is_that_of_a_duration() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("silent.json");
    let text = r#"{"format": "linkweir-model", "version": 1, "bin_s": 1.0,
        "sources": [{"rates": [0.0], "P": [[1.0]]}],
        "provenance": {"source": "", "bins": 1, "mean": 0.0, "lags": 1, "date": "", "program": ""}}"#;
    std::fs::write(&path, text).unwrap();
    let arrivals = format!("mmpp:{}@=5", path.display());
    let words = ["load", "http://127.0.0.1:1/", "--arrivals", &arrivals];
    let words = [&words[..], &HERE].concat();
    run(&[&words[..], &["--sessions", "5"]].concat())
        .exits(2)
        .says("the mean is that of the run: give --duration");
    run(&[&words[..], &["--duration", "5s"]].concat())
        .exits(2)
        .says("the model has no arrivals in this duration");
}
