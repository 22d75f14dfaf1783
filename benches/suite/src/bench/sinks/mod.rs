//! `bench sinks`: what a record costs in each output, and what a broker that stops costs: nothing.
//!
//! Records are of a capture made for it. Each sink is measured with the whole command, and alone with the
//! records prepared, so that its cost is distinguished from that of the analysis. What is measured runs on one core,
//! what it speaks to on the other, in rounds that take turns.

mod alone;
mod place;
mod population;
mod real;
mod rows;
mod stopped;
mod traffic;
mod whole;

use super::harness::{CORE, FEEDER_CORE, Parts, Target, in_memory, linkweir, pin, verdict};
use crate::shell::{Options, grouped};
use crate::{Outcome, usage};
use alone::Alone;
use anyhow::{Context as _, Result};
use place::Place;
use rows::{Row, SINKS, table};
use std::path::{Path, PathBuf};

/// What `--only` may name: the whole command, the sinks alone, ten times the records, bytes of real captures,
/// and a broker that goes away while an interface is captured.
const PARTS: [&str; 5] = ["whole", "alone", "growth", "real", "stopped"];

/// What is asked for.
#[derive(Debug)]
struct Plan {
    transactions: u64,
    times: u32,
    runs: usize,
    binary: Option<PathBuf>,
    parts: Parts,
    rows: Vec<&'static Row>,
}

/// `bench sinks [--transactions N] [--times N] [--runs R] [--binary FILE] [--only PART]... [--sink NAME]...`
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let mut plan = Plan {
        transactions: options.value("--transactions")?.unwrap_or(500_000),
        times: options.value("--times")?.unwrap_or(4),
        runs: options.value("--runs")?.unwrap_or(5).max(1),
        binary: options.value("--binary")?,
        parts: Parts::of(&mut options, &PARTS)?,
        rows: Vec::new(),
    };
    while let Some(word) = options.value::<String>("--sink")? {
        let row = SINKS.iter().find(|row| row.word == word);
        let names = || SINKS.each_ref().map(|row| row.word).join(", ");
        plan.rows
            .push(row.ok_or_else(|| usage(&format!("--sink: one of {}", names())))?);
    }
    // The part of `stopped` that runs in a namespace.
    let is_inside = options.flag("--inside");
    options.rest()?;
    if is_inside {
        let linkweir = plan.binary.context("--binary")?;
        return in_memory("bench-sinks-inside", |dir| stopped::inside(&linkweir, dir));
    }
    if plan.rows.is_empty() {
        plan.rows = SINKS.iter().collect();
    }
    in_memory("bench-sinks", |dir| measure(&plan, dir))
}

fn measure(plan: &Plan, dir: &Path) -> Outcome {
    let wants = |part| plan.parts.wants(part);
    let linkweir = linkweir(plan.binary.as_deref())?;
    let stopped = !wants("stopped") || stopped::run(&linkweir)?;
    let program = if wants("alone") || wants("growth") {
        Some(alone::build()?)
    } else {
        None
    };
    // What is measured goes to a core of its own; everything else, the broker too, stays on this one.
    pin(FEEDER_CORE)?;
    let mut targets: Vec<Target> = Vec::new();
    if wants("real") {
        targets.extend(real::size_target(&real::sizes(&linkweir, dir)?));
    }
    if wants("whole") || program.is_some() {
        targets.extend(rates(plan, linkweir, program.as_deref(), dir)?);
    }
    Ok(verdict(&targets)? && stopped)
}

fn rates(
    plan: &Plan,
    linkweir: PathBuf,
    program: Option<&Path>,
    dir: &Path,
) -> Result<Vec<Target>> {
    let capture = dir.join("http.pcap");
    traffic::write(&capture, plan.transactions)?;
    println!(
        "\n{} transactions, {} bytes of capture; on core {CORE}, what it speaks to on core {FEEDER_CORE}; {} rounds",
        grouped(plan.transactions),
        grouped(std::fs::metadata(&capture)?.len()),
        plan.runs
    );
    let records = dir.join("records.jsonl");
    whole::write(&linkweir, &[&capture], &records)?;
    let place = Place::new(dir, linkweir, &capture, plan.transactions, &plan.rows)?;
    let mut targets = Vec::new();
    if plan.parts.wants("whole") {
        let all = whole::rounds(&place, &plan.rows, plan.runs)?;
        table("linkweir http as a whole", "peak MB", &all);
        targets.extend(rows::rate_targets("whole command", &all));
    }
    if let Some(program) = program {
        let alone = Alone {
            program,
            place: &place,
            records: &records,
            times: plan.times,
        };
        if plan.parts.wants("alone") {
            let all = alone.rounds(&plan.rows, plan.runs)?;
            table("sinks alone", "own MB", &all);
            targets.extend(rows::rate_targets("sink alone", &all));
        }
        if plan.parts.wants("growth") {
            let all = alone.growth(&plan.rows, plan.runs.min(3))?;
            alone::growth_table(&all);
            targets.extend(rows::growth_target(&all));
        }
    }
    Ok(targets)
}
