//! How cost grows with the number of connections, and with how many there are at once.

use super::super::harness::{self, Column, Runs, digits, megabytes};
use super::super::programs::{Programs, Run, cpu_s};
use super::captures::{self, Capture};
use super::rows::TRACK;
use crate::shell::grouped;
use anyhow::Result;
use linkweir_testkit::many_flows::ManyFlows;
use std::path::Path;
use std::process::Stdio;

/// Runs of each.
const RUNS: usize = 3;

/// A step of the growth.
#[derive(Debug)]
struct Step {
    capture: Capture,
    runs: Runs<Run>,
}

#[rustfmt::skip]
const COLUMNS: [Column<Step>; 6] = [
    ("capture", |step| step.capture.name.clone()),
    ("packets", |step| grouped(step.capture.file.packets)),
    ("CPU s", |step| digits(cpu_s(&step.runs), 3)),
    ("ns/packet", |step| digits(cpu_s(&step.runs) * 1e9 / step.capture.file.packets as f64, 0)),
    ("MB", |step| megabytes(step.runs.most(Run::peak))),
    ("flows found", |step| {
        let found = step.runs.iter().last().and_then(|run| run.flows);
        found.map_or_else(String::new, grouped)
    }),
];

/// Measures and prints; gives the peak memory of a million connections at once, in MB (not a number
/// where that was left out).
pub(super) fn run(programs: &Programs, dir: &Path, keep: bool, is_short: bool) -> Result<f64> {
    let shape = |flows, concurrent| ManyFlows {
        flows,
        concurrent,
        ..ManyFlows::default()
    };
    let lengths = [20_000, 200_000, 2_000_000].map(|flows| shape(flows, 10_000));
    let widths = [5_000, 50_000, 500_000].map(|concurrent| shape(500_000, concurrent));
    let shown = if is_short { 2 } else { 3 };
    for (title, shapes) in [
        ("ten times the connections, 10,000 at once", lengths),
        ("ten times as many at once, of 500,000", widths),
    ] {
        let steps = shapes
            .into_iter()
            .take(shown)
            .map(|shape| step(programs, dir, keep, shape, RUNS))
            .collect::<Result<Vec<_>>>()?;
        print(title, &steps);
    }
    if is_short {
        return Ok(f64::NAN);
    }
    let million = ManyFlows {
        exchanges: 1,
        ..shape(1_000_000, 1_000_000)
    };
    let million = step(programs, dir, keep, million, 1)?;
    print("a million at once", std::slice::from_ref(&million));
    Ok(million.runs.most(Run::peak) * 1e-6)
}

fn step(
    programs: &Programs,
    dir: &Path,
    keep: bool,
    shape: ManyFlows,
    runs: usize,
) -> Result<Step> {
    let capture = captures::many(dir, shape)?;
    // As many as there are must have room.
    let words = ["--max-flows", "2000000"];
    let runs = Runs::measure(runs, &capture.name, |_| {
        programs.run(&TRACK, &capture.file, Stdio::null(), &words)
    })?;
    if !keep {
        std::fs::remove_file(&capture.file.path)?;
    }
    Ok(Step { capture, runs })
}

fn print(title: &str, steps: &[Step]) {
    let title = format!("linkweir flows --no-output: {title}");
    harness::print(&title, &COLUMNS, steps);
}
