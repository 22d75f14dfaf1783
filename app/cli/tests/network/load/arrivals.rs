//! The schedule: the same for the same seed, and as the model has it.

use super::site;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use linkweir_testkit::load::Place;
use site::{Load, Site, number, url};

/// When each session was planned, from the first on, and who its client was.
fn plan(load: &Load) -> Vec<(u64, String)> {
    let mut all: Vec<_> = load.records.iter().collect();
    all.sort_by_key(|record| number(record, "session"));
    let first = number(all[0], "planned_ts_ns");
    let client = |record: &serde_json::Value| record["client_ip"].as_str().unwrap().to_owned();
    all.iter()
        .map(|record| (number(record, "planned_ts_ns") - first, client(record)))
        .collect()
}

#[test]
fn the_same_seed_gives_the_same_schedule_and_clients() {
    let Some(site) = Site::open(&[]) else { return };
    let run = |name: &str, seed: u32| {
        let words =
            format!("--clients 10.128.0.0/16 --arrivals poisson:400 --sessions 200 --seed {seed}");
        let load = site.load(name, &url("/small"), &words);
        load.completes(200);
        plan(&load)
    };
    let (first, again, other) = (run("first", 7), run("again", 7), run("other", 8));
    assert_eq!(first, again);
    assert_ne!(first, other);
    // Exponential gaps are not all the same, and not in steps.
    let gaps: BTreeSet<u64> = first.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(gaps.len() > 190, "{}", gaps.len());
}

#[test]
fn constant_gaps_are_constant() {
    let Some(site) = Site::open(&[]) else { return };
    let words = "--clients 10.128.0.0/16 --arrivals constant:250 --duration 400ms";
    let load = site.load("run", &url("/small"), words);
    load.completes(100);
    let plan = plan(&load);
    let gap = |pair: &[(u64, String)]| pair[1].0 - pair[0].0;
    assert!(
        plan.windows(2)
            .all(|pair| gap(pair).abs_diff(4_000_000) <= 1),
        "{plan:?}"
    );
    // Nobody starts before the time.
    for record in &load.records {
        assert!(number(record, "started_ts_ns") >= number(record, "planned_ts_ns"));
    }
}

#[test]
fn a_fitted_model_is_played() {
    let Some(site) = Site::open(&[]) else { return };
    // Counts per bin that stay high or low for a while.
    let mut counts = String::new();
    for bin in 0..600_u32 {
        let level = if bin / 20 % 3 == 0 { 40 } else { 10 };
        writeln!(counts, "{}", level + bin * 7 % 5).unwrap();
    }
    site.put("counts.txt", &counts);
    let words = [
        "model",
        "fit",
        "counts.txt",
        "--bin",
        "100ms",
        "-o",
        "model.json",
    ];
    let fit = site.linkweir(Place::Server, &words).output().unwrap();
    assert!(
        fit.status.success(),
        "{}",
        String::from_utf8_lossy(&fit.stderr)
    );
    let run = |name: &str| {
        let words =
            "--clients 10.128.0.0/16 --arrivals mmpp:model.json@300 --sessions 300 --seed 3";
        let load = site.load(name, &url("/small"), words);
        load.completes(300);
        plan(&load)
    };
    let first = run("first");
    assert_eq!(first, run("again"));
    // What a second of it has is up to its bursts, and the run says so.
    let words = "--clients 10.128.0.0/16 --arrivals mmpp:model.json@300 --duration 1s --seed 3";
    let timed = site.load("timed", &url("/small"), words);
    let arrivals = timed.value("arrivals");
    assert_eq!(arrivals["asked_per_s"].as_f64(), Some(300.0));
    let drawn = arrivals["drawn_per_s"].as_f64().unwrap();
    assert_eq!(drawn, timed.count("planned") as f64);
    // The counts of its bins vary more than those of a Poisson process of that rate.
    let mut bins = vec![0_f64; usize::try_from(first.last().unwrap().0 / 100_000_000).unwrap() + 1];
    for (at, _) in &first {
        bins[usize::try_from(at / 100_000_000).unwrap()] += 1.0;
    }
    let count = bins.len() as f64;
    let mean = bins.iter().sum::<f64>() / count;
    let variance = bins.iter().map(|bin| (bin - mean).powi(2)).sum::<f64>() / count;
    assert!(variance > mean, "variance {variance}, mean {mean}");
}
