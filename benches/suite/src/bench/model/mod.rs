//! `bench model`: the fitted model beside simpler processes, on recorded series.
//!
//! One table for each series, by the models' equations and, where it is said, by one simulated path; how many states
//! are found for several draws; the Hurst parameters; then the targets: the paper's coefficient and means
//! (sec. 3.2). What needs recorded series is left out where they are not there; the rest is made here.

mod dependence;
mod row;
mod states;

use super::harness::{Target, median, verdict};
use crate::Outcome;
use crate::shell::{self, Options, print_table, root};
use anyhow::{Context as _, Result};
use linkweir_model::{Counts, FitOptions, Model};
use row::{Row, over};
use std::path::{Path, PathBuf};

/// The paper: IC 2.35 %, means 32.5699 and 32.5267.
const PAPER_IC: f64 = 0.0235;
const PAPER_MEAN_ERROR: f64 = 0.0013;
const PAPER_STATES: usize = 14;
/// Of one path with its profile.
const PATH_MEAN_ERROR: f64 = 0.003;
const FIT_S: f64 = 0.5;

/// `bench model [--logs DIR] [--seed N] [--write FILE]`: FILE gets the made series, one count per line.
pub(super) fn run(args: &[String]) -> Outcome {
    if cfg!(debug_assertions) {
        // The fit's time counts: the same task again, optimised.
        let mut again = shell::cargo();
        again.args([
            "run",
            "--quiet",
            "--profile",
            "dev-fast",
            "--package",
            "linkweir-suite",
        ]);
        return shell::passes(again.args(["--", "bench", "model"]).args(args));
    }
    let mut options = Options::new(args);
    let logs: Option<PathBuf> = options.value("--logs")?;
    let seed: u64 = options.value("--seed")?.unwrap_or(1);
    let write: Option<PathBuf> = options.value("--write")?;
    options.rest()?;
    let logs = logs.unwrap_or_else(|| root().join("../shared/weblogs"));

    let made = dependence::made(seed)?;
    if let Some(path) = write {
        let lines = made.values().iter().map(|count| format!("{count}\n"));
        std::fs::write(&path, lines.collect::<String>())
            .with_context(|| format!("write {}", path.display()))?;
    }
    let mut targets = own(&made)?;
    if logs.is_dir() {
        targets.extend(recorded(&logs, seed)?);
    } else {
        eprintln!(
            "bench model: {} is not there: no rows of recorded series (--logs DIR)",
            logs.display()
        );
    }
    verdict(&targets)
}

/// Lags of the World Cup log.
const FITTED: usize = 300;

/// Series that are made here: nothing is needed for them.
fn own(made: &Counts) -> Result<Vec<Target>> {
    let path = root().join("app/lab/scenarios/web.model.json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let model = Model::from_json(&text)?;
    let bins = made.len();
    let draws = states::find(
        states::SEEDS,
        FITTED,
        |seed| Ok(model.simulate(bins, seed)?),
    )?;
    states::table(
        &format!(
            "{bins} bins drawn from a model of {} states (app/lab/scenarios/web.model.json)",
            model.superposition().states()
        ),
        &draws,
    );
    let title = format!("made with H = {}", dependence::MADE.h);
    let draws = states::find(1..=5, FITTED, dependence::made)?;
    states::table(&format!("{bins} bins {title}"), &draws);
    Ok(vec![dependence::show(&title, made)?])
}

fn recorded(logs: &Path, seed: u64) -> Result<Vec<Target>> {
    let counts = row::world_cup(logs, seed)?;
    let mut targets = world_cup(&counts)?;
    let draws = states::find(states::SEEDS, FITTED, |seed| row::world_cup(logs, seed))?;
    states::table("World Cup, --spread with seeds 1 to 20", &draws);
    targets.push(dependence::show("World Cup", &counts)?);
    let counts = row::requests(logs)?;
    targets.extend(requests(&counts)?);
    targets.push(dependence::show("requests", &counts)?);
    Ok(targets)
}

fn world_cup(counts: &Counts) -> Result<Vec<Target>> {
    const LAGS: [usize; 4] = [60, 100, FITTED, 1000];
    let most = 1000;
    let poisson = Row::poisson(counts, most)?;
    let hidden = Row::hidden_markov(counts, most)?;
    let chosen = Row::fitted("dMMPP, states chosen", counts, most, &over(FITTED))?;
    let asked = FitOptions {
        states: Some(PAPER_STATES),
        ..over(FITTED)
    };
    let asked = Row::fitted("dMMPP, 14 states asked for", counts, most, &asked)?;
    let trend = FitOptions {
        profile_s: Some(900.0),
        ..over(FITTED)
    };
    let trend = Row::fitted("dMMPP + profile of 15 min", counts, most, &trend)?;
    let path = trend.realised(counts, 1)?;
    let stationary_path = asked.realised(counts, 1)?;
    let mut targets = vec![
        below(
            "World Cup: IC over 300 lags, 14 states",
            asked.agreement(FITTED).ic,
            PAPER_IC,
        ),
        below(
            "World Cup: mean error, 14 states",
            asked.check.mean_error.abs(),
            PAPER_MEAN_ERROR,
        ),
        below(
            "World Cup: IC over 300 lags, states chosen",
            chosen.agreement(FITTED).ic,
            PAPER_IC,
        ),
        below(
            "World Cup: one path with profile: IC over 300 lags",
            path.agreement(FITTED).ic,
            PAPER_IC,
        ),
        below(
            "World Cup: one path with profile: mean error",
            path.check.mean_error.abs(),
            PATH_MEAN_ERROR,
        ),
    ];
    let states = chosen.model.superposition().states();
    targets.push(Target::new(
        "World Cup: 14 states are chosen",
        states.to_string(),
        states == PAPER_STATES,
    ));
    targets.push(better("World Cup", &chosen, &[&poisson, &hidden], FITTED));
    for row in [&chosen, &asked, &trend] {
        targets.push(quick("World Cup", row));
    }
    let rows = [
        &poisson,
        &hidden,
        &chosen,
        &asked,
        &stationary_path,
        &trend,
        &path,
    ];
    table(
        "World Cup 1998, 48 h in bins of 10 s (requests spread from minutes: a surrogate)",
        counts,
        &rows,
        &LAGS,
        FITTED,
    );
    Ok(targets)
}

fn requests(counts: &Counts) -> Result<Vec<Target>> {
    const FITTED: usize = 20;
    const LAGS: [usize; 4] = [FITTED, 60, 100, 300];
    let most = 300;
    let poisson = Row::poisson(counts, most)?;
    let hidden = Row::hidden_markov(counts, most)?;
    let chosen = Row::fitted("dMMPP, states chosen", counts, most, &over(FITTED))?;
    let two = FitOptions {
        scales: Some(2),
        ..over(FITTED)
    };
    let two = Row::fitted("dMMPP, two time scales", counts, most, &two)?;
    let trend = FitOptions {
        profile_s: Some(600.0),
        ..over(FITTED)
    };
    let trend = Row::fitted("dMMPP + profile of 10 min", counts, most, &trend)?;
    let states = two.model.superposition().states();
    let mut targets = vec![
        below(
            "requests: IC over 20 lags, two time scales",
            two.agreement(FITTED).ic,
            PAPER_IC,
        ),
        below(
            "requests: mean error",
            two.check.mean_error.abs(),
            PAPER_MEAN_ERROR,
        ),
        Target::new("requests: 8 states", states.to_string(), states == 8),
    ];
    targets.push(better("requests", &chosen, &[&poisson, &hidden], FITTED));
    for row in [&chosen, &two, &trend] {
        targets.push(quick("requests", row));
    }
    let rows = [&poisson, &hidden, &chosen, &two, &trend];
    table(
        "Requests of an hour in bins of 0.2 s",
        counts,
        &rows,
        &LAGS,
        FITTED,
    );
    Ok(targets)
}

fn table(title: &str, counts: &Counts, rows: &[&Row], lags: &[usize], fitted: usize) {
    println!(
        "\n{title}: {} bins, mean {:.4}; fitted over {fitted} lags",
        counts.len(),
        counts.mean()
    );
    let mut header = vec!["process".to_owned(), "states".to_owned()];
    header.extend(lags.iter().map(|lags| format!("IC {lags} %")));
    header.push(format!("Theil {fitted} %"));
    header.extend(["mean error %", "TV", "log-likelihood", "fit s"].map(str::to_owned));
    let mut cells = vec![header];
    cells.extend(rows.iter().map(|row| row.cells(lags, fitted)));
    print_table(&cells);
}

fn below(what: &str, value: f64, most: f64) -> Target {
    Target::new(
        format!("{what}: at most {:.2} %", most * 100.0),
        format!("{:.3} %", value * 100.0),
        value <= most,
    )
}

fn quick(series: &str, row: &Row) -> Target {
    let seconds = row.fit_s.unwrap_or(f64::INFINITY);
    Target::new(
        format!("{series}: {}: fitted in less than {FIT_S} s", row.name),
        format!("{seconds:.3} s"),
        seconds < FIT_S,
    )
}

fn better(series: &str, row: &Row, than: &[&Row], lags: usize) -> Target {
    let ic = |row: &Row| row.agreement(lags).ic;
    let others = than
        .iter()
        .map(|other| format!("{} {:.2} %", other.name, ic(other) * 100.0));
    Target::new(
        format!("{series}: IC over {lags} lags below the others'"),
        format!(
            "{:.2} %; {}",
            ic(row) * 100.0,
            others.collect::<Vec<_>>().join(", ")
        ),
        than.iter().all(|other| ic(row) < ic(other)),
    )
}
