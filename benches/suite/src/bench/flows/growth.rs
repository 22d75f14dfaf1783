//! How cost grows with the number of connections, and with how many there are at once.

use super::super::measure::median;
use super::super::progress;
use super::captures::{self, Capture};
use super::rows::{Programs, Row};
use crate::shell::{grouped, print_table};
use anyhow::Result;
use linkweir_testkit::many_flows::ManyFlows;
use std::path::Path;

/// Runs of each.
const RUNS: usize = 3;

/// What a step of the growth cost.
struct Step {
    capture: Capture,
    cpu_s: f64,
    peak_mb: f64,
    found: Option<u64>,
}

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
    let peak = million.peak_mb;
    print("a million at once", &[million]);
    Ok(peak)
}

fn step(
    programs: &Programs,
    dir: &Path,
    keep: bool,
    shape: ManyFlows,
    runs: usize,
) -> Result<Step> {
    progress(&format!(
        "{} connections, {} at once",
        shape.flows, shape.concurrent
    ));
    let capture = captures::many(dir, shape)?;
    let mut costs = Vec::new();
    let mut found = None;
    for _ in 0..runs {
        // As many as there are must have room.
        let (cost, flows) = programs.run_with(
            Row::Track,
            &capture.path,
            capture.packets,
            &["--max-flows", "2000000"],
        )?;
        costs.push(cost);
        found = flows;
    }
    if !keep {
        std::fs::remove_file(&capture.path)?;
    }
    progress("");
    Ok(Step {
        capture,
        cpu_s: median(&costs.iter().map(|cost| cost.cpu_s).collect::<Vec<_>>()),
        peak_mb: costs.iter().map(|c| c.peak_bytes).max().unwrap_or(0) as f64 * 1e-6,
        found,
    })
}

fn print(title: &str, steps: &[Step]) {
    println!("\nlinkweir flows --no-output: {title}");
    let header = [
        "capture",
        "packets",
        "CPU s",
        "ns/packet",
        "MB",
        "flows found",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for step in steps {
        rows.push(vec![
            step.capture.name.clone(),
            grouped(step.capture.packets),
            format!("{:.3}", step.cpu_s),
            format!("{:.0}", step.cpu_s * 1e9 / step.capture.packets as f64),
            format!("{:.1}", step.peak_mb),
            step.found.map_or_else(String::new, grouped),
        ]);
    }
    print_table(&rows);
}
