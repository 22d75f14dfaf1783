//! What a run costs.
//!
//! The kernel adds up the cost of all children of a process, so each run has a parent of its own: this
//! program again, as `xtask measured`, which pins itself to a core, runs the command, and writes down
//! what its only child cost.

use super::count;
use crate::Outcome;
use crate::shell::Options;
use anyhow::{Context as _, Result, bail};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The core of what is measured, and that of what feeds it.
pub(crate) const CORE: usize = 1;
pub(crate) const FEEDER_CORE: usize = 0;

/// The cost of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// User and system time.
    pub(crate) cpu_s: f64,
    /// Time on the clock.
    pub(crate) wall_s: f64,
    /// Peak resident size.
    pub(crate) peak_bytes: u64,
}

/// What to run and with which files.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: Vec<String>,
    /// Its standard input; nothing if not given.
    pub(crate) stdin: Stdio,
    /// Where its standard output goes.
    pub(crate) stdout: &'a Path,
}

/// Runs a job on the core for it.
///
/// # Errors
/// It could not be run or it failed.
pub(crate) fn cost(job: Job<'_>, dir: &Path) -> Result<Cost> {
    cost_on(&[CORE], job, dir)
}

/// The same on these cores.
///
/// # Errors
/// The same.
pub(crate) fn cost_on(cores: &[usize], job: Job<'_>, dir: &Path) -> Result<Cost> {
    let result = dir.join("cost.json");
    let name = job.program.display().to_string();
    let messages = dir.join("stderr");
    let status = Command::new(std::env::current_exe()?)
        .arg("measured")
        .args(
            cores
                .iter()
                .flat_map(|core| ["--core".to_owned(), core.to_string()]),
        )
        .arg("--result")
        .arg(&result)
        .arg("--stdout")
        .arg(job.stdout)
        .arg("--")
        .arg(job.program)
        .args(&job.args)
        .stdin(job.stdin)
        .stderr(std::fs::File::create(&messages)?)
        .status()
        .context("run the measurement")?;
    if !status.success() {
        let messages = std::fs::read_to_string(&messages).unwrap_or_default();
        bail!("{name} {} failed: {}", job.args.join(" "), messages.trim());
    }
    let result: Value = serde_json::from_slice(&std::fs::read(&result)?)?;
    let count = |way| count(&result, way);
    Ok(Cost {
        cpu_s: count("cpu_us")? as f64 * 1e-6,
        wall_s: count("wall_us")? as f64 * 1e-6,
        peak_bytes: count("peak_kib")? * 1024,
    })
}

/// `measured --core N... --result FILE --stdout FILE -- PROGRAM ARGS`
pub(crate) fn measured(args: &[String]) -> Outcome {
    let at = args
        .iter()
        .position(|arg| arg == "--")
        .context("no command to measure")?;
    let (own, command) = args.split_at_checked(at).context("no command to measure")?;
    let [_, program, rest @ ..] = command else {
        bail!("no command to measure")
    };
    let mut options = Options::new(own);
    let mut cores: Vec<usize> = Vec::new();
    while let Some(core) = options.value("--core")? {
        cores.push(core);
    }
    let result: String = options.value("--result")?.context("--result")?;
    let stdout: String = options.value("--stdout")?.context("--stdout")?;
    options.rest()?;

    pin_to(&cores)?;
    let stdout = std::fs::File::create(&stdout).with_context(|| format!("create {stdout}"))?;
    let begin = Instant::now();
    let status = Command::new(program)
        .args(rest)
        .stdout(stdout)
        .status()
        .with_context(|| format!("run {program}"))?;
    let wall = begin.elapsed();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu_us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let cost = json!({
        "cpu_us": cpu_us,
        "wall_us": u64::try_from(wall.as_micros())?,
        "peak_kib": usage.max_rss(),
    });
    std::fs::write(&result, cost.to_string()).with_context(|| format!("write {result}"))?;
    Ok(status.success())
}

/// Keeps this process, and what it starts, on one core; on a machine with fewer, where it is.
pub(crate) fn pin(core: usize) -> Result<()> {
    pin_to(&[core])
}

fn pin_to(cores: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core)?;
    }
    if let Err(error) = sched_setaffinity(Pid::from_raw(0), &set) {
        eprintln!("not pinned to cores {cores:?}: {error}");
    }
    Ok(())
}
