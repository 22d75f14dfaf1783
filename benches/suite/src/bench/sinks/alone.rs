//! The sinks without the analysis: the example `sink_speed`, which writes prepared records.

use super::super::harness::{self, Column, Job, cost, count, digits, megabytes, number, print};
use super::Place;
use super::rows::{Grown, Row, Series, Sink, Taken, user_growth};
use crate::shell::{cargo, grouped, passes, target_dir};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Times more records in the rows about growth.
const MORE: u32 = 10;

/// Builds the example; says where it is.
pub(super) fn build() -> Result<PathBuf> {
    let mut build = cargo();
    build
        .args(["build", "--release", "--package", "linkweir-sink"])
        .args(["--example", "sink_speed", "--features", "parquet,kafka"]);
    if !passes(&mut build)? {
        bail!("sink_speed does not build");
    }
    Ok(target_dir().join("release/examples/sink_speed"))
}

/// The example, and the records that it writes.
#[derive(Debug)]
pub(super) struct Alone<'a> {
    pub(super) program: &'a Path,
    pub(super) place: &'a Place,
    /// As JSON lines.
    pub(super) records: &'a Path,
    /// How many times all of them.
    pub(super) times: u32,
}

impl Alone<'_> {
    /// Runs every row, in turns.
    pub(super) fn rounds(&self, rows: &[&'static Row], runs: usize) -> Result<Vec<Series>> {
        harness::rounds("alone", rows.iter().copied(), runs, |_, row, _| {
            self.run(row, self.times).map(Some)
        })
    }

    /// Each row with the records once and [`MORE`] times, in turns.
    pub(super) fn growth(&self, rows: &[&'static Row], runs: usize) -> Result<Vec<Growth>> {
        harness::rounds("growth", rows.iter().copied(), runs, |_, row, _| {
            let once = self.run(row, 1)?;
            let often = self.run(row, MORE)?;
            Ok(Some(Grown { once, often }))
        })
    }

    fn run(&self, row: &Row, times: u32) -> Result<Taken> {
        let target = self.place.target(row)?;
        let records = harness::text(self.records)?;
        let mut args = vec![records, times.to_string(), target.destination.clone()];
        // The format stands behind the destination; of the options only Kafka's are known there.
        args.extend(
            target
                .words
                .iter()
                .filter(|word| *word != "--format")
                .cloned(),
        );
        let stdout = self.place.dir.join("stdout");
        let job = Job {
            program: self.program,
            args,
            stdin: Stdio::null(),
            stdout: &stdout,
        };
        cost::cost(job, &self.place.dir)?;
        let said: Value = serde_json::from_slice(&std::fs::read(&stdout)?).context("sink_speed")?;
        let user_s = number(&said, "user_s")?;
        let lost = count(&said, "lost")?;
        if lost != 0 {
            bail!("{lost} records lost");
        }
        Ok(Taken {
            records: count(&said, "records")?,
            bytes: self.place.taken_bytes(&target)?,
            cpu_s: user_s + number(&said, "system_s")?,
            user_s: Some(user_s),
            wall_s: number(&said, "wall_s")?,
            memory: count(&said, "memory").unwrap_or(0),
        })
    }
}

/// The runs of a row with the records once, and many times.
pub(super) type Growth = harness::Series<Sink, Grown>;

#[rustfmt::skip]
const COLUMNS: [Column<Growth>; 11] = [
    ("sink", |own| own.row.name.to_owned()),
    ("ns once", |own| digits(own.median(|run| run.once.ns()), 0)),
    ("ns ten", |own| digits(own.median(|run| run.often.ns()), 0)),
    ("ratio", |own| digits(own.median(|run| run.often.ns() / run.once.ns()), 2)),
    ("user once", |own| digits(own.median(|run| run.once.user_ns()), 0)),
    ("user ten", |own| digits(own.median(|run| run.often.user_ns()), 0)),
    ("ratio", |own| digits(user_growth(own), 2)),
    ("bytes once", |own| digits(own.median(|run| run.once.bytes_per_record()), 1)),
    ("bytes ten", |own| digits(own.median(|run| run.often.bytes_per_record()), 1)),
    ("MB once", |own| megabytes(own.most(|run| run.once.memory()))),
    ("MB ten", |own| megabytes(own.most(|run| run.often.memory()))),
];

/// Prints what growth costs.
pub(super) fn growth_table(all: &[Growth]) {
    let Some(run) = all.first().and_then(|own| own.iter().next()) else {
        return;
    };
    let title = format!(
        "sinks alone, {} and {} records: what one costs (ns), and what of it is the sink's own (user)\n\
         The rest is the kernel's: new memory for the files costs it more the more there is of it.",
        grouped(run.once.records),
        grouped(run.often.records)
    );
    print(&title, &COLUMNS, all);
}
