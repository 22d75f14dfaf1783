//! Models of logs that are not shipped.

use super::*;

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
