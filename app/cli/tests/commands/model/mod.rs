//! `linkweir model`: logs to sessions, counts to a model and back.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{Ran, demo, ended, linkweir, run};
use linkweir_model::{Model, Provenance, Source, Superposition};
use serde_json::Value;
use tempfile::TempDir;

mod sessions;
mod weblogs;

use sessions::{line, log};

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
