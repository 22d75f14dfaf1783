//! `papers`: the figures and tables of the HTTPanalyzer paper that an offline run can answer, computed
//! again on a capture: ours beside tshark's, as rows of Markdown for `docs/papers.md`.
//!
//! Source: Vega, Roquero, Aracil 2017, "Multi-Gbps HTTP traffic analysis in commodity hardware based on
//! local knowledge of TCP streams", Computer Networks 113.

mod curve;
mod rows;
mod runs;
mod sample;

use crate::Outcome;
use crate::bench::harness::{in_directory, setup};
use crate::shell::{self, Options, grouped, passes, root};
use anyhow::{Context as _, Result, bail};
use runs::Runs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is asked for.
#[derive(Debug)]
struct Plan {
    capture: Option<PathBuf>,
    uris: Option<PathBuf>,
    packets: u64,
    rounds: usize,
    dir: PathBuf,
    keep: bool,
}

/// `papers [--capture FILE] [--uris FILE] [--packets N] [--runs R] [--dir DIR] [--keep]`
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let dir: Option<PathBuf> = options.value("--dir")?;
    let plan = Plan {
        capture: options.value("--capture")?,
        uris: options.value("--uris")?,
        packets: options.value("--packets")?.unwrap_or(500_000),
        rounds: options.value::<usize>("--runs")?.unwrap_or(5).max(1),
        keep: options.flag("--keep") || dir.is_some(),
        dir: dir.unwrap_or_else(|| shell::memory_directory("papers")),
    };
    options.rest()?;

    setup()?;
    let tshark =
        shell::find("tshark").context("the paper's reference, tshark, is not installed")?;
    let linkweir = shell::release_binary()?;
    in_directory(&plan.dir, plan.keep, |dir| {
        let traffic = recorded(&plan, plan.capture.as_deref(), "mix")?;
        let uris = recorded(&plan, plan.uris.as_deref(), "uris")?;
        let runs = Runs::new(linkweir, tshark, dir.to_path_buf());
        let traffic = runs.all(&traffic, plan.rounds)?;
        let uris = runs.all(&uris, 1)?;
        print(&runs, &traffic, &uris, plan.rounds)?;
        Ok(true)
    })
}

/// The capture that was given, or one recorded in this mode.
fn recorded(plan: &Plan, given: Option<&Path>, mode: &str) -> Result<PathBuf> {
    if let Some(path) = given {
        return Ok(path.to_path_buf());
    }
    let path = plan.dir.join(format!("{mode}-{}.pcap", plan.packets));
    if !path.is_file() {
        let mut script = Command::new(root().join("benches/record_http.sh"));
        // Rows go to standard output, and nothing else.
        script.stdout(std::io::stderr());
        if !passes(script.arg(&path).arg(plan.packets.to_string()).arg(mode))? {
            bail!("benches/record_http.sh failed");
        }
    }
    Ok(path)
}

fn print(runs: &Runs, traffic: &runs::Results, uris: &runs::Results, rounds: usize) -> Result<()> {
    for (name, results) in [("traffic", traffic), ("long URIs", uris)] {
        println!(
            "{name}: {} packets, {} bytes on the wire ({:.0} a packet), {} requests, {} responses",
            grouped(results.ours.packets),
            grouped(results.ours.bytes),
            results.ours.bytes as f64 / results.ours.packets as f64,
            grouped(results.ours.requests),
            grouped(results.ours.responses),
        );
    }
    println!(
        "{}; {}; speed: user and system time on one core, input in memory, records as text to a file \
         in memory, median of {rounds} runs (tshark: one)\n",
        runs::version(&runs.linkweir)?,
        runs::version(&runs.tshark)?,
    );
    println!("| claim | paper | ours | command | remark |\n| --- | --- | --- | --- | --- |");
    for row in rows::all(traffic, uris) {
        println!(
            "| {} | {} | {} | `cargo xtask papers` | {} |",
            row.claim, row.paper, row.ours, row.remark
        );
    }
    Ok(())
}
