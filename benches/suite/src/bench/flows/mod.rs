//! `bench flows`: speed and memory of `linkweir flows` beside other programs on the same captures.
//!
//! Two captures: recorded HTTP traffic of few big connections, and made traffic of 200,000 connections,
//! 50,000 at once, each packet of one chosen by chance. Every row runs on one core, in rounds that take
//! turns; speed is packets per second of CPU time, memory the peak resident size.

mod bars;
mod captures;
mod growth;
mod rows;

use super::bars::print;
use super::measure::median;
use super::progress;
use crate::Outcome;
use crate::shell::{self, Options, grouped, print_table, root};
use anyhow::{Context as _, Result};
use captures::{Capture, Plan};
use linkweir_testkit::many_flows::ManyFlows;
use rows::{Programs, Row, Series};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Rounds of the slow programs, whose ratio is far from its bar.
const SLOW_ROUNDS: usize = 3;

/// `bench flows [--packets N] [--capture FILE] [--runs R] [--dir DIR] [--binary FILE] [--keep] [--short]`
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let dir: Option<PathBuf> = options.value("--dir")?;
    let plan = Plan {
        packets: options.value("--packets")?.unwrap_or(2_000_000),
        few: options.value("--capture")?,
        keep: options.flag("--keep") || dir.is_some(),
        dir: dir.unwrap_or_else(|| shell::memory_folder("bench-flows")),
    };
    let runs: usize = options.value("--runs")?.unwrap_or(5);
    let binary: Option<PathBuf> = options.value("--binary")?;
    // Without the captures of two million flows and a million at once.
    let is_short = options.flag("--short");
    options.rest()?;

    shell::passes(
        Command::new("scripts/setup.sh")
            .arg("bench")
            .current_dir(root()),
    )?;
    let binary = match binary {
        Some(binary) => binary,
        None => shell::release_binary()?,
    };
    let walk = captures::prepare(&plan)?;
    let programs = Programs::new(binary, walk.clone(), plan.dir.clone());
    let outcome = compare(&plan, &walk, &programs, runs.max(1), is_short);
    if !plan.keep {
        super::captures::remove(&plan.dir)?;
    }
    outcome
}

fn compare(
    plan: &Plan,
    walk: &std::path::Path,
    programs: &Programs,
    runs: usize,
    is_short: bool,
) -> Outcome {
    let few = captures::few(plan, walk)?;
    let many = captures::many(&plan.dir, ManyFlows::default())?;
    println!("{runs} rounds (slow programs: {SLOW_ROUNDS} at most); CPU time on one core, medians");
    let of_few = rounds(programs, &few, runs)?;
    table(&few, &of_few);
    let of_many = rounds(programs, &many, runs)?;
    table(&many, &of_many);
    table_one(&[(&few, &of_few), (&many, &of_many)]);
    let same = workers(programs, &few, &many)?;
    if !plan.keep && plan.few.is_none() {
        std::fs::remove_file(&few.path)?;
    }
    let million = growth::run(programs, &plan.dir, plan.keep, is_short)?;
    let bars = bars::all(&of_few, &of_many, million, &same);
    println!();
    print(&bars);
    Ok(bars.iter().all(|bar| bar.passed))
}

/// Runs every row on a capture, in turns.
fn rounds(programs: &Programs, capture: &Capture, runs: usize) -> Result<Vec<Series>> {
    let mut all: Vec<Series> = Row::ALL
        .into_iter()
        .filter(|row| programs.has(*row))
        .map(|row| Series {
            row,
            packets: capture.packets,
            costs: Vec::new(),
            flows: None,
        })
        .collect();
    for round in 0..runs {
        for series in &mut all {
            if series.row.is_slow() && round >= SLOW_ROUNDS {
                continue;
            }
            progress(&format!("round {}: {}", round + 1, series.row.name()));
            let (cost, flows) = programs.run(series.row, &capture.path, capture.packets)?;
            series.costs.push(cost);
            series.flows = flows;
        }
    }
    progress("");
    Ok(all)
}

fn table(capture: &Capture, all: &[Series]) {
    println!(
        "\n{}: {} packets{}",
        capture.name,
        grouped(capture.packets),
        capture
            .flows
            .map(|flows| format!(", {} connections", grouped(flows)))
            .unwrap_or_default()
    );
    let header = [
        "program",
        "runs",
        "Mpps",
        "ns/packet",
        "CPU s",
        "wall s",
        "MB",
        "flows",
        "track is",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let track = all.iter().find(|series| series.row == Row::Track);
    for series in all {
        let wall = median(&series.costs.iter().map(|c| c.wall_s).collect::<Vec<_>>());
        let ratio = match track {
            Some(track) if track.row != series.row => {
                format!("{:.2} x", track.speed_over(series))
            }
            _ => String::new(),
        };
        rows.push(vec![
            series.row.name().to_owned(),
            series.costs.len().to_string(),
            format!("{:.3}", series.mpps()),
            format!("{:.0}", 1e3 / series.mpps()),
            format!("{:.3}", series.cpu_s()),
            format!("{wall:.3}"),
            format!("{:.1}", series.peak_mb()),
            series.flows.map_or_else(String::new, grouped),
            ratio,
        ]);
    }
    print_table(&rows);
    println!("(argus: status records; nfpcapd: flows of one direction, cut by time)");
}

/// The paper's Table I: what it costs without output and with the archive, and how many times faster
/// than the traffic itself that is.
fn table_one(all: &[(&Capture, &[Series])]) {
    println!("\nTable I of the paper: CPU time, packets/s, speed-up over real time");
    let header = [
        "capture",
        "output",
        "packets",
        "CPU s",
        "packets/s",
        "speed-up",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for (capture, series) in all {
        for (row, name) in [(Row::Track, "null"), (Row::Archive, "archive")] {
            let Some(series) = series.iter().find(|series| series.row == row) else {
                continue;
            };
            rows.push(vec![
                capture.name.clone(),
                name.to_owned(),
                grouped(capture.packets),
                format!("{:.3}", series.cpu_s()),
                format!("{:.0}", series.mpps() * 1e6),
                format!("{:.1}", capture.seconds / series.cpu_s()),
            ]);
        }
    }
    print_table(&rows);
}

/// Whether the sorted records of several workers are those of one.
fn workers(programs: &Programs, few: &Capture, many: &Capture) -> Result<Vec<(u32, bool)>> {
    let sorted = |capture: &Capture, workers: u32| -> Result<Vec<Vec<u8>>> {
        progress(&format!("records of {workers} workers: {}", capture.name));
        let output = Command::new(programs.linkweir())
            .args(["flows", "-q", "--format", "jsonl", "-w", "-", "--workers"])
            .arg(workers.to_string())
            .arg("-r")
            .arg(&capture.path)
            .stderr(Stdio::inherit())
            .output()
            .context("run linkweir")?;
        let lines = output.stdout.split(|byte| *byte == b'\n');
        let mut lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
        lines.sort_unstable();
        Ok(lines)
    };
    let mut same = vec![(2, true), (4, true)];
    for capture in [few, many] {
        let one = sorted(capture, 1)?;
        for (workers, same) in &mut same {
            *same &= sorted(capture, *workers)? == one && one.len() > 1;
        }
    }
    progress("");
    Ok(same)
}
