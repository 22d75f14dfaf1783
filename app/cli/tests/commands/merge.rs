//! `linkweir merge`: sketches of parts become the totals of the whole.

use std::path::{Path, PathBuf};

use crate::common::{demo_frames, http, plain, run};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_wire::{LinkType, Transport, decode};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

/// Sketch and summary of a capture.
fn measured(directory: &Path, name: &str, capture: &[u8]) -> (PathBuf, Value) {
    let path = directory.join(format!("{name}.pcap"));
    let (sketch, summary) = (
        directory.join(format!("{name}.json")),
        directory.join(format!("{name}.summary")),
    );
    std::fs::write(&path, capture).unwrap();
    let words = ["-w", "/dev/null", "--sketch", sketch.to_str().unwrap()];
    let ran = http(
        &path,
        &[&words[..], &["--summary", summary.to_str().unwrap()]].concat(),
    );
    assert!(ran.code <= Some(1), "{}", ran.stderr);
    let summary = std::fs::read_to_string(summary).unwrap();
    (sketch, serde_json::from_str(&summary).unwrap())
}

fn merged(words: &[&Path]) -> Value {
    let ran = run(&[&[Path::new("merge"), Path::new("-q")][..], words].concat()).exits(0);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Totals without what a clock has said, and without the names of outputs, which a sketch does not have.
fn timeless(mut totals: Value) -> Value {
    let elapsed = totals.as_object_mut().unwrap().remove("elapsed_s").unwrap();
    assert!(elapsed.as_f64().unwrap() >= 0.0);
    let outputs = totals["dropped"]["sink"].take();
    let counts = outputs.as_object().unwrap().values();
    let lost: u64 = counts.map(|count| count.as_u64().unwrap()).sum();
    totals["dropped"]["sink"] = lost.into();
    totals
}

#[test]
fn parts_add_up_to_the_whole() {
    let directory = tempdir().unwrap();
    let frames = demo_frames();
    let (_, whole) = measured(directory.path(), "whole", &plain(&frames));
    // Both directions of a connection are in one share.
    let ports = |frame: &&CapturedFrame| {
        let packet = decode(LinkType::ETHERNET, &frame.bytes, frame.wire_len).unwrap();
        match packet.transport {
            Transport::Tcp(tcp) => (tcp.src_port() ^ tcp.dst_port()) % 3,
            _ => 0,
        }
    };
    let shares: Vec<PathBuf> = (0..3)
        .map(|share| {
            let frames: Vec<_> = frames
                .iter()
                .filter(|f| ports(f) == share)
                .cloned()
                .collect();
            assert!(!frames.is_empty());
            measured(directory.path(), &format!("share{share}"), &plain(&frames)).0
        })
        .collect();
    let [a, b, c] = shares.as_slice() else {
        unreachable!("three shares")
    };
    let stdout = [Path::new("--summary"), Path::new("-")];
    let sum = merged(&[&[a.as_path(), b, c], &stdout[..]].concat());
    assert_eq!(timeless(sum), timeless(whole.clone()));
    // Merged in two steps, in another order.
    let two = directory.path().join("two.json");
    run(&[
        Path::new("merge"),
        c,
        a,
        Path::new("-q"),
        Path::new("--sketch"),
        &two,
    ])
    .exits(0);
    let sum = merged(&[&[two.as_path(), b], &stdout[..]].concat());
    assert_eq!(timeless(sum), timeless(whole.clone()));
    // A directory of sketches; other files in it are none of its business.
    let inside = directory.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    for (at, share) in shares.iter().enumerate() {
        std::fs::copy(share, inside.join(format!("{at}.json"))).unwrap();
    }
    std::fs::write(inside.join("notes.txt"), "x").unwrap();
    let sum = merged(&[&[inside.as_path()], &stdout[..]].concat());
    assert_eq!(timeless(sum), timeless(whole));
}

#[test]
fn losses_and_screen_are_those_of_one_run() {
    let directory = tempdir().unwrap();
    let mut cut = plain(&demo_frames());
    cut.truncate(cut.len() / 2 + 3);
    let (sketch, summary) = measured(directory.path(), "cut", &cut);
    let ran = run(&[
        Path::new("merge"),
        &sketch,
        Path::new("--summary"),
        Path::new("-"),
    ])
    .exits(1)
    .says("damaged inputs 1")
    .says("complete");
    let again: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(timeless(again), timeless(summary));
}

/// A sketch with something done to it, and what `merge` says.
fn refused(directory: &TempDir, change: impl FnOnce(&mut Value), says: &str) {
    let sketch = directory.path().join("good.json");
    let mut value: Value =
        serde_json::from_str(&std::fs::read_to_string(&sketch).unwrap()).unwrap();
    change(&mut value);
    let path = directory.path().join("changed.json");
    std::fs::write(&path, value.to_string()).unwrap();
    let ran = run(&[Path::new("merge"), &path]).exits(2).says(says);
    assert!(ran.stderr.contains("changed.json"), "{}", ran.stderr);
}

#[test]
fn what_is_no_sketch_is_refused_by_name() {
    let directory = tempdir().unwrap();
    measured(directory.path(), "good", &plain(&demo_frames()));
    refused(
        &directory,
        |v| v["linkweir_sketch"] = 2.into(),
        "version 2, this linkweir reads version 1",
    );
    refused(
        &directory,
        |v| *v = json!({"packets": 1}),
        "not a sketch of linkweir: missing field `linkweir_sketch`",
    );
    refused(&directory, |v| v["kind"] = "flows".into(), "`flows`");
    refused(
        &directory,
        |v| v["http"]["requests"] = "7".into(),
        "`http.requests` must be a whole number from 0 on, not \"7\"",
    );
    refused(
        &directory,
        |v| v["http"]["requests"] = (-7).into(),
        "`http.requests`",
    );
    refused(
        &directory,
        |v| drop(v["run"].as_object_mut().unwrap().remove("bytes")),
        "missing field `bytes` at line",
    );
    refused(
        &directory,
        |v| v["run"]["moons"] = 1.into(),
        "unknown field `moons`, expected one of `packets`, `bytes`",
    );
    refused(
        &directory,
        |v| v["run"]["decode_errors"] = json!({"ipv5": {"cut": 1}}),
        "`run.decode_errors.ipv5.cut`",
    );
    refused(
        &directory,
        |v| drop(v["run"].as_object_mut().unwrap().remove("first_ts_ns")),
        "missing field `first_ts_ns`",
    );
    refused(
        &directory,
        |v| drop(v["http"].as_object_mut().unwrap().remove("requests")),
        "`http.requests` is missing",
    );
    refused(
        &directory,
        |v| v["http"]["moons"] = 1.into(),
        "`http.moons` is not known to this version",
    );
    refused(
        &directory,
        |v| v["http"]["status_codes"]["2000"] = 1.into(),
        "`http.status_codes.2000` is not a valid status code",
    );
    refused(
        &directory,
        |v| v["http"]["response_time_ns"]["sum"] = "1".into(),
        "`http.response_time_ns.buckets` contradict",
    );
    refused(
        &directory,
        |v| v["http"]["response_time_ns"]["buckets"][0] = 1.into(),
        "expected a tuple of size 2 at line",
    );
    refused(
        &directory,
        |v| {
            v["run"]["input_faults"] =
                json!([{"input": "a", "offset": null, "kind": "odd", "message": ""}]);
        },
        "unknown variant `odd`, expected one of `unusable`, `damaged`",
    );
    let path = directory.path().join("no.json");
    std::fs::write(&path, "{").unwrap();
    run(&[Path::new("merge"), &path])
        .exits(2)
        .says("not a sketch of linkweir");
    run(&[Path::new("merge"), Path::new("absent.json")])
        .exits(3)
        .says("absent.json");
}

#[test]
fn a_run_counts_once_and_parts_are_asked_for() {
    let directory = tempdir().unwrap();
    let (sketch, _) = measured(directory.path(), "good", &plain(&demo_frames()));
    run(&[Path::new("merge"), &sketch, &sketch])
        .exits(2)
        .says("given twice");
    let empty = directory.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    run(&[Path::new("merge"), &empty])
        .exits(2)
        .says("no .json file");
    run(&[Path::new("merge"), &sketch, Path::new("--summary"), &sketch])
        .exits(2)
        .says("already used by PATH");
    let text = std::fs::read_to_string(&sketch).unwrap();
    let mut part: Value = serde_json::from_str(&text).unwrap();
    part.as_object_mut().unwrap().remove("run");
    std::fs::write(&sketch, part.to_string()).unwrap();
    run(&[Path::new("merge"), &sketch])
        .exits(2)
        .says("no sketch has packets");
}
