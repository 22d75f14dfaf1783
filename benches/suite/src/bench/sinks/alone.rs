//! The sinks without the analysis: the example `sink_speed`, which writes prepared records.

use super::super::measure::{self, Job};
use super::super::progress;
use super::Place;
use super::row::{Row, Series, Taken};
use crate::shell::{cargo, grouped, passes, print_table, target_dir};
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
    pub(super) fn rounds(&self, rows: &[Row], runs: usize) -> Result<Vec<Series>> {
        let mut all: Vec<Series> = rows.iter().copied().map(Series::new).collect();
        for round in 0..runs {
            for series in &mut all {
                progress(&format!("round {}: {} alone", round + 1, series.row.name()));
                let taken = self.run(series.row, self.times)?;
                series.runs.push(taken);
            }
        }
        progress("");
        Ok(all)
    }

    /// Each row with the records once and [`MORE`] times, in turns.
    pub(super) fn growth(&self, rows: &[Row], runs: usize) -> Result<Vec<Growth>> {
        let both = |row| (Series::new(row), Series::new(row));
        let mut all: Vec<Growth> = rows.iter().copied().map(both).collect();
        for round in 0..runs {
            for (once, often) in &mut all {
                progress(&format!("round {}: {} grows", round + 1, once.row.name()));
                once.runs.push(self.run(once.row, 1)?);
                often.runs.push(self.run(often.row, MORE)?);
            }
        }
        progress("");
        Ok(all)
    }

    fn run(&self, row: Row, times: u32) -> Result<Taken> {
        let target = self.place.target(row)?;
        let records = self.records.to_str().context("a path that is not UTF-8")?;
        let mut args = vec![
            records.to_owned(),
            times.to_string(),
            target.destination.clone(),
        ];
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
        measure::cost(job, &self.place.dir)?;
        let said: Value = serde_json::from_slice(&std::fs::read(&stdout)?).context("sink_speed")?;
        let whole = |name: &str| said.get(name).and_then(Value::as_u64);
        let number = |name: &str| said.get(name).and_then(Value::as_f64);
        let user_s = number("user_s").context("no `user_s`")?;
        if whole("lost") != Some(0) {
            bail!("{}: {:?} records lost", row.name(), whole("lost"));
        }
        Ok(Taken {
            records: whole("records").context("no `records`")?,
            bytes: self.place.taken_bytes(&target)?,
            cpu_s: user_s + number("system_s").context("no `system_s`")?,
            user_s: Some(user_s),
            wall_s: number("wall_s").context("no `wall_s`")?,
            memory: whole("memory").unwrap_or(0),
        })
    }
}

/// A row with the records once, and many times.
pub(super) type Growth = (Series, Series);

/// Prints what growth costs.
pub(super) fn growth_table(all: &[Growth]) {
    let Some((once, often)) = all.first() else {
        return;
    };
    let records = |series: &Series| grouped(series.runs.first().map_or(0, |taken| taken.records));
    println!(
        "\nsinks alone, {} and {} records: what one costs (ns), and what of it is the sink's own (user)\n\
         The rest is the kernel's: new memory for the files costs it more the more there is of it.",
        records(once),
        records(often)
    );
    let header = [
        "sink",
        "ns once",
        "ns ten",
        "ratio",
        "user once",
        "user ten",
        "ratio",
        "bytes once",
        "bytes ten",
        "MB once",
        "MB ten",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for (once, often) in all {
        rows.push(vec![
            once.row.name().to_owned(),
            format!("{:.0}", once.ns()),
            format!("{:.0}", often.ns()),
            format!("{:.2}", often.cost_over(once)),
            format!("{:.0}", once.user_ns()),
            format!("{:.0}", often.user_ns()),
            format!("{:.2}", often.user_over(once)),
            format!("{:.1}", once.bytes_per_record()),
            format!("{:.1}", often.bytes_per_record()),
            format!("{:.1}", once.memory() as f64 * 1e-6),
            format!("{:.1}", often.memory() as f64 * 1e-6),
        ]);
    }
    print_table(&rows);
}
