//! The command as a whole: a capture in, records out.

use super::super::measure::{self, Job};
use super::super::progress;
use super::Place;
use super::row::{Row, Series, Taken};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs every row over the capture, in turns.
pub(super) fn rounds(place: &Place, rows: &[Row], runs: usize) -> Result<Vec<Series>> {
    let mut all: Vec<Series> = [Row::Analysis]
        .iter()
        .chain(rows)
        .copied()
        .map(Series::new)
        .collect();
    for round in 0..runs {
        for series in &mut all {
            progress(&format!(
                "round {}: linkweir http, {}",
                round + 1,
                series.row.name()
            ));
            let taken = run(place, series.row)?;
            series.runs.push(taken);
        }
    }
    progress("");
    Ok(all)
}

fn run(place: &Place, row: Row) -> Result<Taken> {
    let summary = place.path("summary.json")?;
    let target = place.target(row)?;
    let mut args: Vec<String> = [
        "http",
        "-q",
        "--overwrite",
        "-r",
        &place.capture,
        "--summary",
        &summary,
    ]
    .map(str::to_owned)
    .to_vec();
    args.extend(["-w".to_owned(), target.destination.clone()]);
    if row == Row::Analysis {
        // Everything is analysed and counted; no host has a blank, so no record is written.
        args.extend(["--format", "text", "--host", " "].map(str::to_owned));
    } else {
        args.extend(target.words.clone());
    }
    let stdout = place.dir.join("stdout");
    let job = Job {
        program: &place.linkweir,
        args,
        stdin: Stdio::null(),
        stdout: &stdout,
    };
    let cost = measure::cost(job, &place.dir)?;
    let totals: Value = serde_json::from_slice(&std::fs::read(&summary)?)?;
    let transactions = totals.pointer("/http/transactions").and_then(Value::as_u64);
    let written = totals.get("records").and_then(Value::as_u64);
    let expected = if row == Row::Analysis {
        0
    } else {
        place.transactions
    };
    if transactions != Some(place.transactions) || written != Some(expected) {
        bail!(
            "{}: {transactions:?} transactions of {}, {written:?} records",
            row.name(),
            place.transactions
        );
    }
    Ok(Taken {
        records: place.transactions,
        bytes: place.taken_bytes(&target)?,
        cpu_s: cost.cpu_s,
        user_s: None,
        wall_s: cost.wall_s,
        memory: cost.peak_bytes,
    })
}

/// Writes the records of captures, all as one trace, in the format of the file's ending.
///
/// # Errors
/// They could not be written. A capture that ends in the middle of a packet is none.
pub(super) fn write(linkweir: &Path, captures: &[impl AsRef<Path>], to: &Path) -> Result<()> {
    let mut command = Command::new(linkweir);
    command.args(["http", "-q", "--overwrite", "-w"]).arg(to);
    for capture in captures {
        command.arg("-r").arg(capture.as_ref());
    }
    let ran = command.output().context("run linkweir")?;
    if !matches!(ran.status.code(), Some(0 | 1)) {
        bail!("linkweir: {}", String::from_utf8_lossy(&ran.stderr).trim());
    }
    Ok(())
}
