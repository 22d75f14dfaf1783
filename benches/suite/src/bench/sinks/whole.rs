//! The command as a whole: a capture in, records out.

use super::super::harness::{self, CORE, FEEDER_CORE, Job, cost, count};
use super::Place;
use super::rows::{ANALYSIS, PARQUET_ON_TWO, Row, Series, Sink, Taken};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs every row over the capture, in turns.
pub(super) fn rounds(place: &Place, rows: &[&'static Row], runs: usize) -> Result<Vec<Series>> {
    let has_parquet = rows.iter().any(|row| row.word == "parquet");
    let rows = std::iter::once(&ANALYSIS).chain(rows.iter().copied());
    let rows = rows.chain(has_parquet.then_some(&PARQUET_ON_TWO));
    harness::rounds("linkweir http", rows, runs, |_, row, _| {
        run(place, row).map(Some)
    })
}

fn run(place: &Place, row: &Row) -> Result<Taken> {
    let summary = place.path("summary.json")?;
    let target = place.target(row)?;
    let capture = &place.capture;
    let mut args: Vec<String> = [
        "http",
        "-q",
        "--overwrite",
        "-r",
        capture,
        "--summary",
        &summary,
    ]
    .map(str::to_owned)
    .to_vec();
    args.extend(["-w".to_owned(), target.destination.clone()]);
    args.extend(target.words.clone());
    let stdout = place.dir.join("stdout");
    let job = Job {
        program: &place.linkweir,
        args,
        stdin: Stdio::null(),
        stdout: &stdout,
    };
    let cost = match row.how {
        Sink::TwoCores => cost::cost_on(&[FEEDER_CORE, CORE], job, &place.dir)?,
        _ => cost::cost(job, &place.dir)?,
    };
    let totals: Value = serde_json::from_slice(&std::fs::read(&summary)?)?;
    let transactions = count(&totals, "http/transactions")?;
    let written = count(&totals, "records")?;
    let expected = match row.how {
        Sink::Nowhere => 0,
        _ => place.transactions,
    };
    if transactions != place.transactions || written != expected {
        bail!(
            "{transactions} transactions of {}, {written} records",
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
