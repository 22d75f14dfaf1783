//! `bench sinks`: what a record costs in each output, and what a broker that stops costs: nothing.
//!
//! Records are of a capture made for it. Each sink is measured with the whole command, and alone with the
//! records prepared, so that its cost is told from that of the analysis. What is measured runs on one core,
//! what it speaks to on the other, in rounds that take turns.

mod alone;
mod bars;
mod chance;
mod place;
mod population;
mod real;
mod row;
mod stopped;
mod topics;
mod traffic;
mod whole;

use super::bars::{Bar, print};
use super::captures::remove;
use super::measure::{CORE, FEEDER_CORE, pin};
use crate::shell::{self, Options, grouped};
use crate::{Outcome, usage};
use alone::Alone;
use anyhow::{Context as _, Result};
use place::Place;
use row::{Row, table};
use std::path::{Path, PathBuf};

/// What is asked for.
#[derive(Debug)]
struct Plan {
    transactions: u64,
    times: u32,
    runs: usize,
    binary: Option<PathBuf>,
    parts: Vec<Part>,
    rows: Vec<Row>,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The whole command.
    Whole,
    /// The sinks alone.
    Alone,
    /// Ten times the records.
    Growth,
    /// Bytes of real captures.
    Real,
    /// A broker that goes away while an interface is captured.
    Stopped,
}

impl Part {
    const ALL: [(&'static str, Self); 5] = [
        ("whole", Self::Whole),
        ("alone", Self::Alone),
        ("growth", Self::Growth),
        ("real", Self::Real),
        ("stopped", Self::Stopped),
    ];
}

impl Plan {
    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }
}

/// `bench sinks [--transactions N] [--times N] [--runs R] [--binary FILE] [--only PART]... [--sink NAME]...`
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let mut plan = Plan {
        transactions: options.value("--transactions")?.unwrap_or(500_000),
        times: options.value("--times")?.unwrap_or(4),
        runs: options.value("--runs")?.unwrap_or(5).max(1),
        binary: options.value("--binary")?,
        parts: Vec::new(),
        rows: Vec::new(),
    };
    while let Some(word) = options.value::<String>("--only")? {
        let part = Part::ALL.into_iter().find(|(name, _)| *name == word);
        let names = Part::ALL.map(|(name, _)| name).join(", ");
        let (_, part) = part.ok_or_else(|| usage(&format!("--only: one of {names}")))?;
        plan.parts.push(part);
    }
    while let Some(word) = options.value::<String>("--sink")? {
        let names = Row::SINKS.map(Row::name).join(", ");
        plan.rows
            .push(Row::of(&word).ok_or_else(|| usage(&format!("--sink: one of {names}")))?);
    }
    // The part of `stopped` that runs in a namespace.
    let is_inside = options.flag("--inside");
    options.rest()?;
    if is_inside {
        let linkweir = plan.binary.context("--binary")?;
        let dir = shell::memory_folder("bench-sinks-inside");
        std::fs::create_dir_all(&dir)?;
        let outcome = stopped::inside(&linkweir, &dir);
        remove(&dir)?;
        return outcome;
    }
    if plan.rows.is_empty() {
        plan.rows = Row::SINKS.to_vec();
    }
    let dir = shell::memory_folder("bench-sinks");
    if dir.is_dir() {
        remove(&dir)?;
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let outcome = measure(&plan, &dir);
    remove(&dir)?;
    outcome
}

fn measure(plan: &Plan, dir: &Path) -> Outcome {
    let linkweir = match &plan.binary {
        Some(binary) => binary.canonicalize().context("--binary")?,
        None => shell::release_binary()?,
    };
    let stopped = !plan.wants(Part::Stopped) || stopped::run(&linkweir)?;
    let program = if plan.wants(Part::Alone) || plan.wants(Part::Growth) {
        Some(alone::build()?)
    } else {
        None
    };
    // What is measured goes to a core of its own; everything else, the broker too, stays on this one.
    pin(FEEDER_CORE)?;
    let mut bars: Vec<Bar> = Vec::new();
    if plan.wants(Part::Real) {
        bars.extend(bars::of_sizes(&real::sizes(&linkweir, dir)?));
    }
    if plan.wants(Part::Whole) || program.is_some() {
        bars.extend(rates(plan, linkweir, program.as_deref(), dir)?);
    }
    println!();
    print(&bars);
    Ok(stopped && bars.iter().all(|bar| bar.passed))
}

fn rates(plan: &Plan, linkweir: PathBuf, program: Option<&Path>, dir: &Path) -> Result<Vec<Bar>> {
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
    let mut bars = Vec::new();
    if plan.wants(Part::Whole) {
        let all = whole::rounds(&place, &plan.rows, plan.runs)?;
        table("linkweir http as a whole", "peak MB", &all);
        bars.extend(bars::of_rates("whole command", &all));
    }
    if let Some(program) = program {
        let alone = Alone {
            program,
            place: &place,
            records: &records,
            times: plan.times,
        };
        if plan.wants(Part::Alone) {
            let all = alone.rounds(&plan.rows, plan.runs)?;
            table("sinks alone", "own MB", &all);
            bars.extend(bars::of_rates("sink alone", &all));
        }
        if plan.wants(Part::Growth) {
            let all = alone.growth(&plan.rows, plan.runs.min(3))?;
            alone::growth_table(&all);
            bars.extend(bars::of_growth(&all));
        }
    }
    Ok(bars)
}
