//! `linkweir model`: logs to sessions, counts to a model and back.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{Ran, demo, ended, linkweir, run};
use linkweir_model::{Model, Provenance, Source, Superposition};
use serde_json::Value;
use tempfile::TempDir;

/// A directory with files.
struct Directory(TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn with(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.at(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }
}

/// `linkweir model` with words.
fn model(words: &[&str]) -> Ran {
    run(&[&["model"], words].concat())
}

/// The same with bytes on standard input.
fn model_stdin(words: &[&str], bytes: &[u8]) -> Ran {
    let mut command = linkweir();
    command.arg("model").args(words).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    ended(child.wait_with_output().unwrap())
}

/// A line of a log, `minutes` after noon.
fn line(client: &str, minutes: u64, seconds: u64) -> String {
    let (hour, minute) = (12 + minutes / 60, minutes % 60);
    format!(
        "{client} - - [10/Oct/2000:{hour:02}:{minute:02}:{seconds:02} +0000] \"GET / HTTP/1.1\" 200 5\n"
    )
}

/// Three clients; with a timeout of half an hour 5 sessions, of ten minutes 7.
fn log() -> Vec<String> {
    vec![
        line("10.0.0.1", 0, 0),
        line("2001:db8::1", 0, 5),
        line("10.0.0.1", 5, 0),
        // 15 minutes after its last.
        line("10.0.0.1", 20, 0),
        // Half an hour to the second belongs to the session.
        line("2001:db8::1", 30, 5),
        line("pc7.example.net", 31, 0),
        // Written late: it came a second before the line above.
        line("pc8.example.net", 30, 59),
        line("10.0.0.1", 50, 1),
        line("PC7.example.net", 62, 0),
    ]
}

const STARTS: &str = "session_start
2000-10-10T12:00:00Z
2000-10-10T12:00:05Z
2000-10-10T12:30:59Z
2000-10-10T12:31:00Z
2000-10-10T12:50:01Z
2000-10-10T13:02:00Z
";

#[test]
fn sessions_of_a_log() {
    let directory = Directory::new();
    let path = directory.with("a.log", log().concat());
    let summary = directory.at("s.json");
    let ran = model(&["sessions", &path, "--summary", &summary]).exits(0);
    assert_eq!(ran.stdout, STARTS);
    ran.says("9 of 4 clients")
        .says("6, 1.5 requests each (timeout 30m)");
    let object = directory.json("s.json");
    let model_part = &object["model"];
    assert_eq!(model_part["requests"], 9);
    assert_eq!(model_part["clients"], 4);
    assert_eq!(model_part["sessions"], 6);
    assert_eq!(model_part["late_requests"], 0);
    assert_eq!(object["first_ts_ns"], 971_179_200_000_000_000_u64);
    assert_eq!(object["last_ts_ns"], 971_182_920_000_000_000_u64);
    // Shorter: 10.0.0.1 comes back three times, 2001:db8::1 and pc7 once.
    let short = model(&["sessions", &path, "--timeout", "10m", "-q"]).exits(0);
    assert_eq!((short.lines().len() - 1, short.stderr.as_str()), (8, ""));
    let bins = model(&["sessions", &path, "--bin", "30m", "-q"]).exits(0);
    assert_eq!(
        bins.stdout,
        "bin_start,count\n2000-10-10T12:00:00Z,2\n2000-10-10T12:30:00Z,3\n2000-10-10T13:00:00Z,1\n"
    );
    let part = [
        "--from",
        "2000-10-10 12:30:30",
        "--to",
        "2000-10-10 12:50:00",
    ];
    let part = model(&[&["sessions", &path, "-q"], &part[..]].concat()).exits(0);
    assert_eq!(part.lines().len(), 1 + 2);
}

#[test]
fn one_wrong_year_in_an_input_does_not_become_bins() {
    let directory = Directory::new();
    let mut lines = log();
    lines.push(line("10.0.0.9", 21, 0).replace("/2000:", "/2010:"));
    let path = directory.with("a.log", lines.concat());
    let counts = "bin_start,count\n2000-10-10 12:00,2\n2000-10-10 12:30,3\n2010-10-10 13:00,1\n";
    let counts = directory.with("counts.csv", counts);
    let events = "time\n2000-10-10 12:00\n2000-10-10 12:30\n2010-10-10 13:00\n";
    let events = directory.with("events.csv", events);
    let model_path = directory.at("m.json");
    let fit = |input| ["fit", input, "--bin", "30m", "-o", &model_path].map(str::to_owned);
    let sessions = ["sessions", &path, "--bin", "30m"].map(str::to_owned);
    let events_flag = ["--events".to_owned()];
    for words in [
        sessions.to_vec(),
        fit(&path).to_vec(),
        fit(&counts).to_vec(),
        [&fit(&events)[..], &events_flag].concat(),
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = model(&words).exits(2);
        assert_eq!(ran.stdout, "", "{words:?}");
        ran.says("no arrivals from 2000-10-10 1")
            .says("--max-gap 36");
        assert!(!Path::new(&model_path).exists(), "{words:?}");
    }
    let asked = ["sessions", &path, "--bin", "30m", "-q", "--max-gap"];
    let ran = model(&[&asked[..], &["3653d"]].concat()).exits(0);
    assert_eq!(
        ran.lines().len(),
        1 + 3652 * 48 + 1,
        "{:?}",
        ran.lines().last()
    );
    // What is beyond the gap covers nothing: the bins end with the lines before it.
    let part = ["--from", "2000-10-10", "--to", "2000-10-11"];
    let ran = model(&[&asked[..5], &part[..]].concat()).exits(0);
    assert_eq!(ran.lines().len(), 1 + 3, "from noon to one o'clock");
}

#[test]
fn a_wrong_year_is_told_with_its_line() {
    let directory = Directory::new();
    let mut lines = log();
    lines.insert(7, line("10.0.0.9", 21, 0).replace("/2000:", "/2011:"));
    let later = directory.with("later.log", lines.concat());
    let mut lines = log();
    lines.insert(4, line("10.0.0.9", 21, 0).replace("/2000:", "/1999:"));
    let earlier = directory.with("earlier.log", lines.concat());
    let out = directory.at("out.csv");
    // With bins; with bins that would be too many; with the beginning of the time that is meant.
    for (bin, more, fits) in [
        ("30m", &[][..], true),
        ("10s", &[], false),
        ("30m", &["--from", "2000-01-01"], true),
    ] {
        let words = ["sessions", &later, "-w", &out, "--bin", bin];
        let ran = model(&[&words[..], more].concat()).exits(2);
        let ran = ran
            .says("no arrivals from 2000-10-10 13:02:00 UTC (")
            .says("later.log:10) to 2011-10-10 12:21:00 UTC (")
            .says("later.log:8 stands alone: is its time wrong?")
            .says("Leave it out with --to 2011-10-10T12:21:00Z");
        assert!(!ran.stderr.contains("longer --bin"), "{}", ran.stderr);
        // What is advised has to work.
        assert_eq!(ran.stderr.contains("--max-gap 40"), fits, "{}", ran.stderr);
        assert!(!Path::new(&out).exists(), "{more:?}");
    }
    let left_out = ["--to", "2011-10-10T12:21:00Z", "--bin", "10s", "-q"];
    model(&[&["sessions", &later], &left_out[..]].concat()).exits(0);
    let early = model(&["sessions", &earlier, "-q", "--bin", "30m"])
        .exits(2)
        .says("earlier.log:5) to 2000-10-10 12:00:00 UTC (")
        .says("earlier.log:1): ")
        .says("earlier.log:5 stands alone")
        .says("with --from 2000-10-10T12:00:00Z, or");
    assert!(!early.stderr.contains("earlier.log:1 stands"));
    // Without bins nothing is filled, and every session has its line.
    let starts = model(&["sessions", &later, "-q"]).exits(0);
    assert_eq!(starts.lines().len(), 1 + 6 + 1);
    // More than one on either side; one between two others.
    let mut lines = log();
    lines.extend([20, 21].map(|at| line("10.0.0.9", at, 0).replace("/2000:", "/2011:")));
    let two = directory.with("two.log", lines.concat());
    model(&["sessions", &two, "--bin", "30m"])
        .exits(2)
        .says("Leave out 2 requests with --to 2011-10-10T12:20:00Z");
    lines.extend([line("10.0.0.9", 30, 0).replace("/2000:", "/2005:")]);
    let between = directory.with("between.log", lines.concat());
    model(&["sessions", &between, "--bin", "30m"])
        .exits(2)
        .says("between.log:12 stands alone: is its time wrong? Take it out of the log");
    // It is left out as the message says, and fills nothing.
    let words = [
        "sessions",
        &earlier,
        "-q",
        "--bin",
        "10s",
        "--from",
        "2000-01-01",
    ];
    let ran = model(&words);
    assert_eq!(
        ran.lines().len(),
        1 + 62 * 6 + 1,
        "from 12:00:00 to 13:02:00"
    );
    assert!(
        ran.stdout
            .starts_with("bin_start,count\n2000-10-10T12:00:00Z,2\n")
    );
    let starts = model(&["sessions", &later, "-q", "--to", "2000-12-31"]).exits(0);
    assert_eq!(starts.stdout, STARTS);
}

#[test]
fn bins_most_of_which_are_empty_are_told() {
    let directory = Directory::new();
    let mut lines = log();
    let full = directory.with("full.log", lines.concat());
    lines.push(line("10.0.0.9", 0, 0).replace("10/Oct", "25/Oct"));
    let empty = directory.with("empty.log", lines.concat());
    let out = directory.at("out.csv");
    let bins = |path: &str| {
        let words = ["sessions", path, "--bin", "30m", "-w", &out, "--overwrite"];
        model(&words).exits(0)
    };
    bins(&empty)
        .says("717 of 721 bins are empty; the longest time without a session is from 2000-10-10 13:00:00 UTC to 2000-10-25 12:00:00 UTC");
    assert!(!bins(&full).stderr.contains("empty;"));
}

#[test]
fn a_log_may_come_in_pieces_compressed_and_through_a_pipe() {
    let directory = Directory::new();
    let lines = log();
    let newer = directory.with("new.log", lines[5..].concat());
    let mut gzip = std::process::Command::new("gzip")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let older = lines[..5].concat();
    gzip.stdin
        .take()
        .unwrap()
        .write_all(older.as_bytes())
        .unwrap();
    let packed = gzip.wait_with_output().unwrap().stdout;
    let older = directory.with("old.log.1", &packed);
    // In the wrong order.
    assert_eq!(
        model(&["sessions", &newer, &older, "-q"]).exits(0).stdout,
        STARTS
    );
    let piped = model_stdin(&["sessions", "-", "-q"], lines.concat().as_bytes());
    assert_eq!(piped.exits(0).stdout, STARTS);
    // What is before the damage counts.
    let cut = directory.with("cut.gz", &packed[..packed.len() - 4]);
    let ran = model(&["sessions", &cut])
        .exits(1)
        .says("what is before it was read");
    assert_eq!(ran.lines().len(), 1 + 2);
}

#[test]
fn lines_that_cannot_be_read_are_counted_by_cause() {
    let directory = Directory::new();
    let mut lines = log();
    lines.insert(1, "10.0.0.9 - - [yesterday] \"GET /\" 200 5\n".to_owned());
    lines.insert(
        3,
        "10.0.0.9 - - [10/Oct/2000:12:00:00 +0000] GET / 200 5\n".to_owned(),
    );
    lines.push("\u{1b}[31mrubbish\n".to_owned());
    lines.push("10.0.0.9 - - [10/Oct/2000:12:00:00 +0000] \"-\" 408 -\n".to_owned());
    let path = directory.with("a.log", lines.concat());
    let summary = directory.at("s.json");
    let ran = model(&["sessions", &path, "--summary", &summary]).exits(1);
    assert_eq!(ran.stdout, STARTS);
    let ran = ran
        .says("1 line not read (time), the first is line 2")
        .says("1 line not read (request), the first is line 4")
        .says("1 line not read (client), the first is line 12");
    assert!(!ran.stderr.contains('\u{1b}'));
    let object = directory.json("s.json");
    assert_eq!(object["model"]["not_read"].as_array().unwrap().len(), 4);
    // A connection without a request is no damage.
    let path = directory.with("b.log", lines[lines.len() - 1].clone() + &log().concat());
    model(&["sessions", &path, "-q"]).exits(0);
    // A log that is not sorted at all.
    let mut lines = log();
    lines.reverse();
    let path = directory.with("c.log", lines.concat());
    model(&["sessions", &path, "-q"])
        .exits(1)
        .says("sort the log");
}

/// A record of the World Cup logs.
fn record(time: u32, client: u32) -> Vec<u8> {
    let mut bytes = time.to_be_bytes().to_vec();
    bytes.extend(client.to_be_bytes());
    bytes.extend([0, 0, 0, 1, 0, 0, 1, 0, 0, 2, 1, 33]);
    bytes
}

#[test]
fn sessions_of_world_cup_records() {
    let directory = Directory::new();
    let start = 897_343_200;
    let mut bytes = Vec::new();
    for (seconds, client) in [(0, 1), (3, 2), (12, 1), (1812, 1), (1813, 2), (1900, 3)] {
        bytes.extend(record(start + seconds, client));
    }
    let path = directory.with("wc_day45_1", &bytes);
    let ran = model(&["sessions", &path, "-q", "--bin", "1h"]).exits(0);
    // 1 and 2 begin; 2 again after 1810 s, 1 not after 1800 s; 3 begins.
    assert_eq!(ran.stdout, "bin_start,count\n1998-06-08T22:00:00Z,4\n");
    bytes.pop();
    let path = directory.with("cut", &bytes);
    let ran = model(&["sessions", &path, "--bin", "1h", "-w", "/dev/null"]);
    ran.exits(1)
        .says("1 line not read (truncated), the first is line 6");
    // A time beyond the event is taken where the form is stated.
    let path = directory.with("late", record(1_000_000_000, 1));
    model(&["sessions", &path])
        .exits(3)
        .says("no log in a known form");
    model(&["sessions", &path, "--format", "wc98", "-q"]).exits(0);
}

#[test]
fn sessions_of_http_records_are_the_same_in_every_form() {
    let directory = Directory::new();
    let mut outputs = Vec::new();
    let capture = demo();
    for form in ["jsonl", "csv", "text", "parquet", "arrow"] {
        let records = directory.at(form);
        let words = [
            "http",
            "-q",
            "-r",
            capture.to_str().unwrap(),
            "-w",
            &records,
        ];
        run(&[&words[..], &["--format", form]].concat()).exits(0);
        let summary = directory.at("s.json");
        let words = [
            "sessions",
            &records,
            "--timeout",
            "5ms",
            "--overwrite",
            "--summary",
            &summary,
        ];
        outputs.push(model(&words).exits(0).stdout);
        assert_eq!(directory.json("s.json")["model"]["requests"], 800, "{form}");
    }
    assert!(outputs[0].lines().count() > 5, "{}", outputs[0]);
    assert!(outputs.iter().all(|output| *output == outputs[0]));

    // A stream needs no file; several inputs of several forms are merged by time.
    let stream = fs::read(directory.at("arrow")).unwrap();
    let ran = model_stdin(&["sessions", "-", "--timeout", "5ms", "-q"], &stream).exits(0);
    assert_eq!(ran.stdout, outputs[0]);
    let both = [directory.at("parquet"), directory.at("jsonl")];
    let summary = directory.at("both.json");
    let words = [
        "sessions",
        &both[0],
        &both[1],
        "--timeout",
        "5ms",
        "--summary",
        &summary,
    ];
    assert_eq!(model(&words).exits(0).stdout, outputs[0]);
    assert_eq!(directory.json("both.json")["model"]["requests"], 1600);

    let counts = [
        "fit",
        &both[0],
        "--bin",
        "10ms",
        "--timeout",
        "5ms",
        "--json",
        "-o",
    ];
    let of_columns = model(&[&counts[..], &[&directory.at("m.json")]].concat()).exits(0);
    let arrivals: Value = serde_json::from_str(&of_columns.stdout).unwrap();
    assert_eq!(arrivals["arrivals"], outputs[0].lines().count() - 1);
}

#[test]
fn columns_that_are_damaged_or_of_something_else_are_told_by_name() {
    let directory = Directory::new();
    let capture = demo();
    let capture = capture.to_str().unwrap();
    let records = |command: &str, name: &str| {
        let path = directory.at(name);
        run(&[command, "-q", "-r", capture, "-w", &path]).exits(0);
        path
    };
    for name in ["flows.parquet", "flows.arrow"] {
        let flows = records("flows", name);
        model(&["sessions", &flows])
            .exits(3)
            .says(name)
            .says("no column `client_ip`; there are: c_ip, c_port,");
    }
    let parquet = records("http", "http.parquet");
    let bytes = fs::read(&parquet).unwrap();
    let _no_file = model_stdin(&["sessions", "-"], &bytes)
        .exits(3)
        .says("standard input")
        .says("no pipe");
    let cut = directory.with("cut.parquet", &bytes[..bytes.len() / 2]);
    model(&["sessions", &cut]).exits(3).says("cut.parquet");
    // A stream that ends in the middle: what is before the damage counts.
    let stream = fs::read(records("http", "http.arrow")).unwrap();
    let cut = directory.with("cut.arrow", &stream[..stream.len() - 5000]);
    model(&["sessions", &cut, "-q"]).exits(1).says("cut.arrow");
    let feather = directory.with("x.feather", b"ARROW1\0\0 and more");
    model(&["sessions", &feather])
        .exits(3)
        .says("has to be a stream");
}

/// One two-state source and a rest of three states: 6 states, mean 30.
fn known() -> Model {
    let (low, persistence) = (0.6, (-1.0 / 40.0_f64).exp());
    let rows = [
        vec![low + 0.4 * persistence, 0.4 * (1.0 - persistence)],
        vec![low * (1.0 - persistence), 0.4 + low * persistence],
    ];
    let slow = Source::new(vec![0.0, 25.0], &rows).unwrap();
    let rest = Source::memoryless(vec![10.0, 20.0, 30.0], &[0.3, 0.4, 0.3]).unwrap();
    let all = Superposition::new(vec![slow, rest]).unwrap();
    Model::new(10.0, all, None, Provenance::default()).unwrap()
}

#[test]
fn from_counts_to_a_model_and_back() {
    let directory = Directory::new();
    let path = directory.with("known.json", known().to_json());
    let counts = directory.at("counts.csv");
    let simulate = ["simulate", &path, "--bins", "20000", "--seed", "7"];
    model(&[&simulate[..], &["-w", &counts]].concat())
        .exits(0)
        .says("20,000 bins of 10 s")
        .says("(model 30.0000)");
    // The same seed, the same counts; another, others.
    let again = model(&simulate).exits(0);
    assert_eq!(again.stdout, directory.read("counts.csv"));
    let other = model(&["simulate", &path, "--bins", "20000", "--seed", "8"]).exits(0);
    assert_ne!(other.stdout, again.stdout);

    let fitted = directory.at("fitted.json");
    let fit = [
        "fit",
        &counts,
        "--bin",
        "10s",
        "--lags",
        "100",
        "--overwrite",
        "-o",
        &fitted,
    ];
    let ran = model(&[&fit[..], &["--max-ic", "20", "--max-mean-error", "0.01"]].concat()).exits(0);
    for part in [
        "counts.csv",
        "20,000 bins of 10 s",
        "two-state sources",
        "over 100 lags (1000 s)",
        "Theil's",
        "log-likelihood",
        "fitted in",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let ran = model(&[&fit[..], &["--json"]].concat()).exits(0);
    let object: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(object["check"]["mean_error"].as_f64().unwrap().abs() < 1e-9);
    let tau = object["time_scales"]
        .as_array()
        .unwrap()
        .iter()
        .map(|scale| scale["tau_s"].as_f64().unwrap())
        .fold(0.0, f64::max);
    // 40 bins; a sample of 20,000 bins knows it within a third.
    assert!((270.0..=530.0).contains(&tau), "{tau}");
    model(&[&fit[..], &["--max-ic", "0.0001", "-q"]].concat())
        .exits(1)
        .says("the inequality coefficient is");

    let check = ["check", &fitted, &counts];
    let ran = model(&[&check[..], &["--simulate", "5"]].concat()).exits(0);
    assert!(
        ran.stdout.contains("In 5 runs as long as the counts"),
        "{}",
        ran.stdout
    );
    for part in [
        "Hurst parameter",
        "R/S              counts 0.",
        "local Whittle",
        "slope: counts -0.",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let ran =
        model(&[&check[..], &["--simulate", "3", "--json", "--lags", "60"]].concat()).exits(0);
    let object: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(object["equations"]["lags"], 60);
    assert_eq!(object["runs"].as_array().unwrap().len(), 3);
    // Its source remembers 40 bins: dependent over the scales of the counts, and the runs as the equations say.
    let dependence = &object["dependence"];
    assert_eq!(dependence["scales"], serde_json::json!([5, 625]));
    assert_eq!(dependence["model"]["rescaled_range"], Value::Null);
    for estimator in ["variance_time", "local_whittle"] {
        let h = |of: &Value| of[estimator]["h"].as_f64().unwrap();
        let (counts, model) = (h(&dependence["counts"]), h(&dependence["model"]));
        assert!(
            model > 0.6 && (counts - model).abs() < 0.1,
            "{counts} {model}"
        );
        for run in dependence["runs"].as_array().unwrap() {
            assert!((h(run) - model).abs() < 0.15, "{run}");
        }
    }
    assert!(object["equations"]["total_variation"].as_f64().unwrap() < 0.05);
    // Another load is distinguished from it.
    let steady: String = (0..2000).map(|at| format!("{}\n", 3 + at % 2)).collect();
    let steady = directory.with("steady.csv", steady);
    model(&["check", &fitted, &steady, "--max-mean-error", "10"])
        .exits(1)
        .says("the error of the mean is");
}

/// Numbers of a row.
fn numbers(row: &Value) -> Vec<f64> {
    let row = row.as_array().unwrap().iter();
    row.map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn an_exported_chain_has_the_mean_and_the_autocovariance_of_the_model() {
    let directory = Directory::new();
    let known = known();
    let path = directory.with("known.json", known.to_json());
    let ran = model(&["export", &path, "--matrices"]).exits(0);
    let object: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(object["states"], 6);
    assert_eq!(object["states_of_sources"], serde_json::json!([2, 3]));
    let (share, rates) = (numbers(&object["stationary"]), numbers(&object["rates"]));
    let rows: Vec<Vec<f64>> = object["P"]
        .as_array()
        .unwrap()
        .iter()
        .map(numbers)
        .collect();
    let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-10 * b.abs().max(1.0), "{a} and {b}");
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    // Solved from what was written: pi P = pi, pi Lambda 1, pi Lambda P^k Lambda 1 - mean^2.
    near(share.iter().sum(), 1.0);
    for (to, share_of_it) in share.iter().enumerate() {
        let column: Vec<f64> = rows.iter().map(|row| row[to]).collect();
        near(dot(&share, &column), *share_of_it);
    }
    let mean = dot(&share, &rates);
    near(mean, known.mean());
    let weighted: Vec<f64> = share.iter().zip(&rates).map(|(p, rate)| p * rate).collect();
    let mut ahead = rates.clone();
    for (lag, expected) in known.superposition().autocovariance(60).iter().enumerate() {
        let found = dot(&weighted, &ahead) - mean * mean;
        near(found + if lag == 0 { mean } else { 0.0 }, *expected);
        ahead = rows.iter().map(|row| dot(row, &ahead)).collect();
    }
    for (state, row) in object["Lambda"].as_array().unwrap().iter().enumerate() {
        let mut diagonal = vec![0.0; 6];
        diagonal[state] = rates[state];
        assert_eq!(numbers(row), diagonal);
    }
    // The same numbers in columns.
    let table = model(&["export", &path, "--matrices", "--format", "csv"]).exits(0);
    let lines = table.lines();
    assert_eq!(lines[0], "state,rate,stationary,p1,p2,p3,p4,p5,p6");
    for (state, line) in lines[1..].iter().enumerate() {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        let place = f64::from(u32::try_from(state).unwrap()) + 1.0;
        let expected = [&[place, rates[state], share[state]], &rows[state][..]].concat();
        assert_eq!(cells, expected);
    }
    // The chain as a model of one source is the same model: drawn, it has the same mean.
    let one = Superposition::new(vec![Source::new(rates, &rows).unwrap()]).unwrap();
    let one = Model::new(10.0, one, None, Provenance::default()).unwrap();
    let one = directory.with("one.json", one.to_json());
    let ran = model(&["simulate", &one, "--bins", "200000", "--seed", "3"]).exits(0);
    let drawn: Vec<f64> = ran.lines()[1..]
        .iter()
        .map(|line| line.parse().unwrap())
        .collect();
    // Correlated over 40 bins: the mean spreads by 0.25.
    assert!((drawn.iter().sum::<f64>() / 2e5 - mean).abs() < 1.0);
}

#[test]
fn a_chain_that_is_too_large_has_no_matrices() {
    let directory = Directory::new();
    let two = || Source::new(vec![0.0, 1.0], &[vec![0.9, 0.1], vec![0.2, 0.8]]).unwrap();
    let many = Superposition::new(vec![two(); 11]).unwrap();
    let many = Model::new(1.0, many, None, Provenance::default()).unwrap();
    let path = directory.with("many.json", many.to_json());
    let out = directory.at("out.json");
    model(&["export", &path, "--matrices", "-w", &out])
        .exits(2)
        .says("2048 states together: --matrices is for at most 1024");
    assert!(!Path::new(&out).exists());
    // Its states alone can be had.
    model(&["export", &path, "-w", &out]).exits(0);
    let object = directory.json("out.json");
    assert_eq!(object["stationary"].as_array().unwrap().len(), 2048);
    assert!(object.get("P").is_none());
}

#[test]
fn figures_are_drawn() {
    let directory = Directory::new();
    let path = directory.with("known.json", known().to_json());
    let counts = directory.at("counts.csv");
    model(&[
        "simulate", &path, "--bins", "2000", "--seed", "1", "-q", "-w", &counts,
    ])
    .exits(0);
    for (name, begins, most) in [
        ("a.svg", &b"<svg xmlns"[..], 200_000),
        ("a.html", b"<!doctype html>", 200_000),
    ] {
        let plot = directory.at(name);
        model(&["check", &path, &counts, "--lags", "100", "--plot", &plot]).exits(0);
        let picture = fs::read(&plot).unwrap();
        assert!(picture.starts_with(begins), "{name}");
        assert!(
            (5_000..most).contains(&picture.len()),
            "{name} {}",
            picture.len()
        );
    }
    let svg = directory.read("a.svg");
    assert!(svg.contains("Histogram of the model") && svg.contains("over 100 lags (1000 s)"));
    assert!(svg.contains("Variance-time") && svg.contains("independent"));
    // Too few bins for it are no error.
    let few = directory.with("few.csv", "3\n5\n4\n6\n".repeat(50));
    let ran = model(&["check", &path, &few, "--lags", "10"]).exits(0);
    assert!(
        ran.stdout
            .contains("Long-range dependence: too few bins, 512"),
        "{}",
        ran.stdout
    );
    let plot = directory.at("a.png");
    model(&["check", &path, &counts, "--plot", &plot])
        .exits(2)
        .says("a picture ends in");
}

#[test]
fn counts_are_taken_as_people_have_them() {
    let directory = Directory::new();
    let path = directory.with("known.json", known().to_json());
    let counts = directory.at("counts.csv");
    model(&[
        "simulate", &path, "--bins", "3000", "--seed", "2", "-q", "-w", &counts,
    ])
    .exits(0);
    let plain = directory.read("counts.csv");
    let expected = model(&["check", &path, &counts, "--json", "--lags", "50"])
        .exits(0)
        .stdout;
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let timed: String = plain
        .lines()
        .skip(1)
        .enumerate()
        .map(|(at, count)| format!("{},{count}\n", 897_343_200 + at * 10))
        .collect();
    let events: String = plain
        .lines()
        .skip(1)
        .enumerate()
        .flat_map(|(at, count)| {
            let count: usize = count.parse().unwrap();
            (0..count).map(move |n| format!("{}.{n:03},x,y\n", 897_343_200 + at * 10 + n % 10))
        })
        .collect();
    for (name, text) in [
        ("timed.csv", timed),
        ("events.csv", format!("TIMESTAMP,Context,Tokens\n{events}")),
        ("quoted.csv", plain.replace("count", "\"count\"")),
    ] {
        let table = directory.with(name, text);
        let ran = model(&["check", &path, &table, "--json", "--lags", "50"]).exits(0);
        let object: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(object["equations"], expected["equations"], "{name}");
    }
    // Bins are summed, and the model's have another length then.
    model(&["check", &path, &directory.at("timed.csv"), "--bin", "20s"])
        .exits(2)
        .says("bins of 10 s, the counts of 20 s");
    let minutes: String = (0..400).map(|at| format!("{}\n", 100 + at % 50)).collect();
    let minutes = directory.with(
        "minutes.csv",
        format!("minute,n\n{}", {
            let lines = minutes.lines().enumerate();
            lines
                .map(|(at, n)| format!("{},{n}\n", 897_343_200 + at * 60))
                .collect::<String>()
        }),
    );
    let out = directory.at("out.json");
    model(&["fit", &minutes, "--bin", "10s", "-o", &out])
        .exits(2)
        .says("--spread SEED makes a surrogate");
    let ran = model(&[
        "fit", &minutes, "--bin", "10s", "--spread", "1", "--mean", "20", "-o", &out,
    ]);
    let ran = ran.exits(0);
    assert!(ran.stdout.contains("2,400 bins of 10 s"), "{}", ran.stdout);
}

#[test]
fn a_log_can_be_fitted_at_once() {
    let directory = Directory::new();
    let mut lines = String::new();
    // A client a second or so, more in every other ten minutes; each for itself.
    let mut client = 0;
    for second in 0..7200_u64 {
        let many = if second / 600 % 2 == 0 { 1 } else { 3 };
        for _ in 0..(second * 7919 % 5 + many) / 3 {
            client += 1;
            let name = format!("10.{}.{}.{}", client >> 16, client >> 8 & 255, client & 255);
            lines.push_str(&line(&name, second / 60, second % 60));
        }
    }
    let log = directory.with("a.log", &lines);
    let counts = directory.at("counts.csv");
    model(&["sessions", &log, "--bin", "10s", "-q", "-w", &counts]).exits(0);
    let (a, b) = (directory.at("a.json"), directory.at("b.json"));
    let ran = model(&["fit", &log, "--bin", "10s", "--lags", "50", "-o", &a]).exits(0);
    assert!(
        ran.stdout.contains("sessions of a.log, timeout 30m"),
        "{}",
        ran.stdout
    );
    model(&["fit", &counts, "--lags", "50", "-o", &b]).exits(0);
    let sources = |name: &str| directory.json(name)["sources"].clone();
    assert_eq!(sources("a.json"), sources("b.json"));
    assert!(sources("a.json").is_array());
}

#[test]
fn bad_input_is_refused_by_name() {
    let directory = Directory::new();
    let out = directory.at("out.json");
    let lines = |of: &dyn Fn(u32) -> String| (0..500).map(of).collect::<String>();
    let cases = [
        ("empty", String::new(), "it is empty"),
        ("one", "5\n".to_owned(), "1 bins: at least 100"),
        (
            "constant",
            lines(&|_| "5\n".to_owned()),
            "every bin has 5 arrivals",
        ),
        (
            "zero",
            lines(&|_| "0\n".to_owned()),
            "every bin has 0 arrivals",
        ),
        (
            "negative",
            lines(&|at| {
                if at == 9 {
                    "-3\n".to_owned()
                } else {
                    format!("{at}\n")
                }
            }),
            "line 10: `-3` is not a valid count",
        ),
        (
            "huge",
            lines(&|at| format!("{}\n", 5_000_000_000_u64 + u64::from(at))),
            "is beyond 4294967295",
        ),
        (
            "huger",
            "1\n99999999999999999999999999\n".to_owned(),
            "is not a valid count",
        ),
        ("heading", "count\n".to_owned(), "a heading and no rows"),
        (
            "words",
            "hello world\nit is nice\n".to_owned(),
            "is not a valid count",
        ),
        (
            "irregular",
            "time,n\n1000000000,1\n1000000010,2\n1000000025,3\n".to_owned(),
            "not in equal steps",
        ),
    ];
    for (name, text, what) in cases {
        let path = directory.with(name, text);
        model(&["fit", &path, "--bin", "10s", "-o", &out])
            .exits(3)
            .says(what)
            .says(name);
        assert!(!Path::new(&out).exists(), "{name}");
    }
    let garbage: Vec<u8> = (0..5000_u32).map(|at| (at * at % 251) as u8).collect();
    let garbage = directory.with("garbage", garbage);
    model(&["fit", &garbage, "-o", &out]).exits(3);
    model(&["sessions", &garbage])
        .exits(3)
        .says("no log in a known form");
    model(&["sessions", &garbage, "--format", "clf", "-q"]).exits(1);
    model(&["simulate", &garbage, "--bins", "5", "--seed", "1"])
        .exits(3)
        .says("garbage");
    model(&["check", &garbage, &garbage]).exits(3);
    // Largest counts that there can be.
    let large = directory.with(
        "large",
        lines(&|at| format!("{}\n", u32::MAX - at * 7919 % 1000)),
    );
    let ran = model(&["fit", &large, "--bin", "10s", "-o", &out]);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let nothing = directory.at("nothing");
    for words in [
        vec!["sessions", &nothing],
        vec!["fit", &nothing, "-o", &out],
        vec!["simulate", &nothing, "--bins", "5", "--seed", "1"],
        vec!["check", &nothing, &nothing],
        vec!["sessions", directory.0.path().to_str().unwrap()],
    ] {
        model(&words).exits(3);
    }
}

#[test]
fn wrong_usage_and_outputs_that_fail() {
    let directory = Directory::new();
    let path = directory.with("known.json", known().to_json());
    let counts = directory.at("counts.csv");
    model(&[
        "simulate", &path, "--bins", "500", "--seed", "1", "-q", "-w", &counts,
    ])
    .exits(0);
    let out = directory.at("out.json");
    for words in [
        vec![],
        vec!["fit", &counts],
        vec!["fit", &counts, "-o", &out, "--bin", "10"],
        vec!["fit", &counts, "-o", &out, "--lags", "0"],
        vec!["fit", &counts, "-o", &out, "--lags", "400"],
        vec![
            "fit",
            &counts,
            "-o",
            &out,
            "--states",
            "7",
            "--sources",
            "1",
        ],
        vec!["fit", &counts, "-o", &out, "--profile", "10h"],
        vec!["fit", &counts, "-o", &out, "--column", "none"],
        vec!["fit", &counts, "-o", &out, "--from", "2000-01-01"],
        vec!["fit", &counts, "-o", &counts],
        vec!["fit", &counts, "-o", "-", "--json"],
        vec!["fit", &counts, "-o", &out, "--mean", "5"],
        vec!["fit", &counts, "-o", &out, "--max-ic", "-5"],
        vec!["simulate", &path, "--bins", "0", "--seed", "1"],
        vec!["simulate", &path, "--bins", "5"],
        vec!["check", &path, &counts, "--lags", "500"],
        vec!["sessions", &counts, "--timeout", "0s"],
        vec!["sessions"],
    ] {
        assert_eq!(model(&words).code, Some(2), "{words:?}");
    }
    assert!(!Path::new(&out).exists());
    let log = directory.with("a.log", log().concat());
    for words in [
        vec!["fit", &counts, "-o", "/nowhere/out.json"],
        vec!["fit", &counts, "-q", "-o", "/dev/full"],
        vec![
            "simulate",
            &path,
            "--bins",
            "50000",
            "--seed",
            "1",
            "-w",
            "/dev/full",
        ],
        vec!["sessions", &log, "-w", "/dev/full"],
        vec!["sessions", &log, "-w", "/nowhere/starts.csv"],
        vec!["check", &path, &counts, "--plot", "/nowhere/a.svg"],
    ] {
        assert_eq!(model(&words).code, Some(3), "{words:?}");
    }
    // Nothing half done is left.
    let left: Vec<_> = fs::read_dir(directory.0.path())
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

/// Data that is not shipped; `None`, and a loud line, where it is not there.
fn weblog(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/weblogs")
        .join(name);
    if path.exists() {
        return Some(path.to_str().unwrap().to_owned());
    }
    eprintln!("SKIPPED: {name} is not there; the model is not tried on real data");
    None
}

#[test]
fn a_part_of_a_profile_has_its_own_mean() {
    let directory = Directory::new();
    // An hour of 10 in a bin, an hour of 30: the mean of both is 20.
    let counts: String = (0..720)
        .map(|bin| format!("{}\n", if bin < 360 { 8 + bin % 5 } else { 28 + bin % 5 }))
        .collect();
    fs::write(directory.at("counts.csv"), counts).unwrap();
    let counts = directory.at("counts.csv");
    let out = directory.at("model.json");
    let fit = ["fit", &counts, "--bin", "10s", "--profile", "10m"];
    let fit = [&fit[..], &["--sources", "1", "--lags", "20", "-o", &out]].concat();
    let ran = model(&fit).exits(0);
    assert!(
        ran.stdout.contains("L = 1 two-state source, M = "),
        "{}",
        ran.stdout
    );
    // (model 12.3456 over these bins)
    let mean = |bins: &str| {
        let ran = model(&["simulate", &out, "--bins", bins, "--seed", "1"]).exits(0);
        let (_, said) = ran.stderr.split_once("(model ").unwrap();
        let (mean, rest) = said.split_once(' ').unwrap();
        assert!(rest.starts_with("over these bins)"), "{rest}");
        mean.parse::<f64>().unwrap()
    };
    assert!((mean("300") - 10.0).abs() < 1.0, "{}", mean("300"));
    assert!((mean("720") - 20.0).abs() < 0.1, "{}", mean("720"));
}

#[test]
fn the_world_cup_surrogate_is_fitted_as_the_paper_fits_it() {
    let Some(minutes) = weblog("wc98_48h_permin.csv") else {
        return;
    };
    let directory = Directory::new();
    let out = directory.at("wc98.json");
    let fit = [
        "fit",
        &minutes,
        "--bin",
        "10s",
        "--spread",
        "1",
        "--mean",
        "32.57",
        "--overwrite",
        "-o",
        &out,
    ];
    // 14 states, the paper's 2.35 % over 300 lags, its mean error of 0.13 %.
    let shape = ["--sources", "1", "--states", "14", "--lags", "300"];
    let limits = ["--max-ic", "2.35", "--max-mean-error", "0.13", "--json"];
    let ran = model(&[&fit[..], &shape[..], &limits[..]].concat()).exits(0);
    let object: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(object["states"], 14);
    assert_eq!(object["check"]["bins"], 17_280);
    // With the trend as a profile, runs of 48 hours resemble it too.
    model(&[&fit[..], &["--profile", "15m", "--lags", "300", "-q"]].concat()).exits(0);
    let spread = ["--bin", "10s", "--spread", "1", "--mean", "32.57"];
    let check = [
        "check",
        &out,
        &minutes,
        "--simulate",
        "5",
        "--lags",
        "300",
        "--json",
    ];
    let ran = model(&[&check[..], &spread[..]].concat()).exits(0);
    let object: Value = serde_json::from_str(&ran.stdout).unwrap();
    for run in object["runs"].as_array().unwrap() {
        let of = |name: &str| run[name].as_f64().unwrap();
        assert!(of("ic") < 0.05 && of("mean_error").abs() < 0.01, "{run}");
    }
}

#[test]
fn real_time_stamps_are_fitted() {
    let Some(events) = weblog("azure_llm_code.csv") else {
        return;
    };
    let directory = Directory::new();
    let out = directory.at("azure.json");
    let fit = [
        "fit",
        &events,
        "--bin",
        "200ms",
        "--sources",
        "2",
        "--lags",
        "20",
        "-o",
        &out,
    ];
    let ran = model(&[&fit[..], &["--max-ic", "2.35", "--json"]].concat()).exits(0);
    let object: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(object["arrivals"], 8819);
    assert!(object["check"]["mean_error"].as_f64().unwrap().abs() < 1e-9);
}
