//! How cost grows with the number of connections, and with how many there are at once.
//!
//! The captures: recorded traffic of few big flows, and made ones of very many.

use super::super::captures::{self as recorded, Plan};
use super::super::harness::{self, Column, Runs, digits, megabytes};
use super::super::programs::{Programs, Run, cpu_s};
use super::super::repeat;
use super::rows::TRACK;
use crate::shell::grouped;
use anyhow::Result;
use linkweir_testkit::many_flows::ManyFlows;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Stdio;

/// Runs of each.
const RUNS: usize = 3;

/// Connections of which one direction only passes: the paper's trace of a backbone has both of 46 %.
pub(super) const ONE_WAY_PER_CENT: u32 = 54;

/// A step of the growth.
#[derive(Debug)]
struct Step {
    capture: Capture,
    runs: Runs<Run>,
}

#[rustfmt::skip]
const COLUMNS: [Column<Step>; 7] = [
    ("capture", |step| step.capture.name.clone()),
    ("packets", |step| grouped(step.capture.file.packets)),
    ("CPU s", |step| digits(cpu_s(&step.runs), 3)),
    ("Mpps", |step| digits(step.capture.file.packets as f64 * 1e-6 / cpu_s(&step.runs), 2)),
    ("ns/packet", |step| digits(cpu_s(&step.runs) * 1e9 / step.capture.file.packets as f64, 0)),
    ("MB", |step| megabytes(step.runs.most(Run::peak))),
    ("flows found", |step| {
        let found = step.runs.iter().last().and_then(|run| run.flows);
        found.map_or_else(String::new, grouped)
    }),
];

/// Million packets per second of CPU time and peak memory in MB; not numbers where they were not measured.
pub(super) type Measured = (f64, f64);

/// Measures and prints; gives what was measured of a million connections at once.
pub(super) fn run(programs: &Programs, dir: &Path, keep: bool, is_short: bool) -> Result<Measured> {
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
        return Ok((f64::NAN, f64::NAN));
    }
    let million = ManyFlows {
        exchanges: 1,
        ..shape(1_000_000, 1_000_000)
    };
    let asymmetric = ManyFlows {
        one_way_per_cent: ONE_WAY_PER_CENT,
        ..shape(1_000_000, 50_000)
    };
    let asymmetric = step(programs, dir, keep, asymmetric, RUNS)?;
    print("54 % of a million in one direction only", &[asymmetric]);
    let million = step(programs, dir, keep, million, RUNS)?;
    print("a million at once", std::slice::from_ref(&million));
    let mpps = million.capture.file.packets as f64 * 1e-6 / cpu_s(&million.runs);
    Ok((mpps, million.runs.most(Run::peak) * 1e-6))
}

fn step(
    programs: &Programs,
    dir: &Path,
    keep: bool,
    shape: ManyFlows,
    runs: usize,
) -> Result<Step> {
    let capture = many(dir, shape)?;
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

/// A capture.
#[derive(Debug, Clone)]
pub(super) struct Capture {
    pub(super) name: String,
    pub(super) file: recorded::Capture,
    /// Connections, where they were made and not recorded.
    pub(super) flows: Option<u64>,
    /// Seconds from its first to its last packet.
    pub(super) seconds: f64,
}

/// Few big flows: recorded, unless a capture is given.
///
/// # Errors
/// It could not be recorded, or is not a classic little-endian pcap file.
pub(super) fn few(plan: &Plan, walk: &Path, given: Option<&Path>) -> Result<Capture> {
    let file = recorded::recorded(plan, walk, "mix", given)?;
    let (first, last) = repeat::seconds(&file.path)?;
    Ok(Capture {
        name: "few big flows".to_owned(),
        seconds: f64::from(last.saturating_sub(first).max(1)),
        file,
        flows: None,
    })
}

/// Very many flows: made, unless it is there.
///
/// # Errors
/// It could not be written.
pub(super) fn many(dir: &Path, shape: ManyFlows) -> Result<Capture> {
    let ManyFlows {
        flows,
        concurrent,
        one_way_per_cent,
        ..
    } = shape;
    let path = dir.join(format!(
        "flows-{flows}-{concurrent}-{one_way_per_cent}.pcap"
    ));
    if !path.is_file() {
        let part = dir.join("part");
        shape.write(BufWriter::with_capacity(1 << 20, File::create(&part)?))?;
        std::fs::rename(&part, &path)?;
    }
    Ok(Capture {
        name: format!(
            "{} flows, {} at once",
            grouped(u64::from(flows)),
            grouped(u64::from(concurrent))
        ),
        flows: Some(u64::from(flows)),
        seconds: shape.seconds(),
        file: recorded::Capture {
            path,
            packets: shape.packets(),
            wire_bytes: 0,
            requests: 0,
            responses: 0,
        },
    })
}
