//! What becomes of files that are there already, and of those that cannot be written: the same for all that
//! commands write.

use std::fs;
use std::path::Path;

use crate::common::{Ran, demo, demo_frames, plain, run};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// A directory with inputs of every command.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempdir().unwrap());
        fs::write(place.at("x.pcap"), plain(&demo_frames()[..400])).unwrap();
        place
            .runs("http -r x.pcap -w x.jsonl --sketch x.sketch")
            .exits(0);
        place
            .runs("flows -r x.pcap --no-output --archive x.lwa")
            .exits(0);
        let counts: String = (0..400)
            .map(|at| format!("{}\n", 5 + at * 7919 % 11))
            .collect();
        fs::write(place.at("x.csv"), counts).unwrap();
        place.runs("model fit x.csv --bin 10s -o x.json").exits(0);
        place
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs a line of words; those that begin with `x.`, `new` or `out` are files of the directory.
    fn runs(&self, line: &str) -> Ran {
        let words = line.split(' ').map(|word| {
            let is_file = ["x.", "new", "out"]
                .iter()
                .any(|start| word.starts_with(start));
            if is_file {
                self.at(word)
            } else {
                word.to_owned()
            }
        });
        run(&words.collect::<Vec<_>>())
    }

    /// The names in the directory, those that begin with a dot too.
    fn names(&self) -> Vec<String> {
        names(self.0.path())
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Commands with one output each, whose name is behind.
const WRITERS: [&str; 20] = [
    "http -q -r x.pcap -w out.jsonl",
    "http -q -r x.pcap -w /dev/null --summary out.json",
    "http -q -r x.pcap -w /dev/null --report out.html",
    "http -q -r x.pcap -w /dev/null --sketch out.json",
    "flows -q -r x.pcap -w out.csv",
    "flows -q -r x.pcap --no-output --summary out.json",
    "flows -q -r x.pcap --no-output --report out.html",
    "halves -q -r x.pcap -w out.parquet",
    "halves -q -r x.pcap -w /dev/null --sketch out.json",
    "merge -q x.sketch --summary out.json",
    "merge -q x.sketch --sketch out.json",
    "feed -q -r x.pcap --histogram out.svg",
    "model sessions -q x.jsonl -w out.csv",
    "model sessions -q x.jsonl -w /dev/null --summary out.json",
    "model fit -q x.csv --bin 10s -o out.json",
    "model simulate -q x.json --bins 500 --seed 1 -w out.csv",
    "model check x.json x.csv --plot out.svg",
    "model export x.json -w out.json",
    "archive dump x.lwa -o out.csv",
    "archive plot x.lwa -o out.svg",
];

#[test]
fn a_finished_file_is_replaced_only_where_that_is_said() {
    let place = Place::new();
    for line in WRITERS {
        let out = line.split(' ').next_back().unwrap();
        let before = place.names();
        place.runs(line).exits(0);
        let written = fs::read(place.at(out)).unwrap();
        fs::write(place.at(out), "precious").unwrap();
        let with_it = place.names();
        place
            .runs(line)
            .exits(3)
            .says(&format!("{out}: exists; --overwrite replaces it"));
        assert_eq!(fs::read(place.at(out)).unwrap(), b"precious", "{line}");
        assert_eq!(place.names(), with_it, "{line}: nothing else is left");
        place.runs(&format!("{line} --overwrite")).exits(0);
        let again = fs::read(place.at(out)).unwrap();
        // Some tell how long it took.
        assert!(
            again.len() + 100 > written.len() && again.len() > 10,
            "{line}"
        );
        fs::remove_file(place.at(out)).unwrap();
        assert_eq!(place.names(), before, "{line}");
    }
}

#[test]
fn a_finished_directory_of_tstat_is_replaced_only_where_that_is_said() {
    let place = Place::new();
    for line in [
        "flows -q -r x.pcap --format tstat -w out",
        "flows -q -r x.pcap --no-output --histograms out",
    ] {
        place.runs(line).exits(0);
        let directory = place.0.path().join("out");
        let inner = directory.join(&names(&directory)[0]);
        fs::write(inner.join("mark"), "").unwrap();
        let before = names(&inner);
        place
            .runs(line)
            .exits(3)
            .says(".out: exists; --overwrite replaces it");
        assert_eq!(names(&inner), before, "{line}");
        assert_eq!(names(&directory).len(), 1, "{line}");
        place.runs(&format!("{line} --overwrite")).exits(0);
        assert_eq!(names(&directory).len(), 1, "{line}");
        fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn what_cannot_be_written_is_found_before_the_work() {
    let place = Place::new();
    let before = place.names();
    for command in ["http", "flows", "halves"] {
        for flag in ["--summary", "--report", "--sketch"] {
            if matches!(
                (command, flag),
                ("flows", "--sketch") | ("halves", "--report")
            ) {
                continue;
            }
            let line =
                format!("{command} -q -r x.pcap -w out.jsonl {flag} /no/such/directory/a.html");
            place
                .runs(&line)
                .exits(3)
                .says(&format!("{flag}: /no/such/directory/a.html"));
            // The records were not begun, or are gone.
            assert_eq!(place.names(), before, "{line}");
        }
    }
}

#[test]
fn a_document_that_fails_fails_alone() {
    let place = Place::new();
    for (command, others) in [
        (
            "http",
            "--report /dev/full --sketch new.sketch --summary new.json",
        ),
        ("http", "--summary /dev/full"),
        ("http", "--sketch /dev/full --report new.html"),
        ("flows", "--report /dev/full --summary new.json"),
        ("flows", "--summary /dev/full"),
        ("halves", "--sketch /dev/full --summary new.json"),
        ("halves", "--summary /dev/full"),
    ] {
        let line = format!("{command} -r x.pcap -w new.jsonl {others}");
        let ran = place.runs(&line).exits(1);
        let flag = others.split(" /dev/full").next().unwrap();
        let ran = ran
            .says(&format!(
                "linkweir: {flag}: /dev/full: No space left on device"
            ))
            .says("not written to /dev/full");
        assert!(
            !ran.stderr.contains("nothing by linkweir"),
            "{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("/dev/full 0"), "{}", ran.stderr);
        assert_eq!(
            ran.stderr.matches("No space left").count(),
            1,
            "{}",
            ran.stderr
        );
        // All else is there, and the summary knows what is not.
        let mut written: Vec<&str> = others
            .split(' ')
            .filter(|word| word.starts_with("new"))
            .collect();
        written.push("new.jsonl");
        for name in &written {
            assert!(
                fs::metadata(place.at(name)).unwrap().len() > 10,
                "{line}: {name}"
            );
        }
        if written.contains(&"new.json") {
            let summary: Value =
                serde_json::from_slice(&fs::read(place.at("new.json")).unwrap()).unwrap();
            assert_eq!(summary["dropped"]["sink"]["/dev/full"], 0, "{line}");
        }
        written
            .iter()
            .for_each(|name| fs::remove_file(place.at(name)).unwrap());
    }
    // A feed has no records: its table is reported, its summary not written.
    let line = "feed -r x.pcap --histogram out.json --summary /dev/full";
    place
        .runs(line)
        .exits(1)
        .says("--summary: /dev/full: No space left");
    assert!(fs::metadata(place.at("out.json")).unwrap().len() > 10);
}

#[test]
fn what_a_killed_run_left_is_said_to_be_not_whole() {
    let place = Place::new();
    let line = "http -q -r x.pcap -w out.jsonl";
    fs::write(place.at(".out.jsonl.partial"), "{}\n").unwrap();
    let ran = place.runs(line).exits(3);
    let ran = ran.says("which a killed run left, to ");
    let ran = ran.says("out.jsonl: is what a killed run left, which is not whole");
    ran.says("--overwrite");
    assert_eq!(fs::read(place.at("out.jsonl")).unwrap(), b"{}\n");
    place.runs(&format!("{line} --overwrite")).exits(0);
    assert!(fs::read(place.at("out.jsonl")).unwrap().len() > 100);
    // Half a summary is no summary: it does not get a name.
    fs::write(place.at(".new.json.partial"), "{").unwrap();
    place
        .runs("http -q -r x.pcap -w /dev/null --summary new.json")
        .exits(0);
    assert!(fs::read(place.at("new.json")).unwrap().len() > 100);
    assert!(!place.names().contains(&".new.json.partial".to_owned()));
}

#[test]
fn standard_output_is_for_one_thing() {
    let capture = demo();
    let capture = capture.to_str().unwrap();
    let place = Place::new();
    for line in [
        "http -q -r x.pcap --summary -",
        "http -q -r x.pcap -w - --summary -",
        "http -q -r x.pcap -w out.jsonl --summary - --sketch -",
        "flows -q -r x.pcap --summary -",
        "flows -q -r x.pcap --no-output --summary - --report /dev/stdout",
        "halves -q -r x.pcap --summary -",
        "merge -q x.sketch --summary - --sketch -",
        "model sessions -q x.jsonl --summary -",
    ] {
        let ran = place.runs(line).exits(2).says("standard output too");
        assert_eq!(ran.stdout, "", "{line}");
    }
    for command in ["http", "flows"] {
        let ran = run(&[command, "-r", capture, "--no-output", "--summary", "-"]).exits(0);
        let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert!(summary["packets"].as_u64().unwrap() > 2000, "{command}");
        assert_eq!(summary["dropped"]["sink"], serde_json::json!({}));
        run(&[command, "-r", capture, "--no-output", "-w", "x"]).exits(2);
    }
}
