//! `bench live`: packets from an interface.
//!
//! Two network namespaces with a veth pair between them are made for it and go with it, however it
//! ends. A capture is replayed from one side by `benches/limits/replay.c` while one program after the
//! other listens on the other: an empty reader (`benches/limits/rxv3.c`, the limit), `linkweir http`,
//! tcpdump and tshark. Then the shares of workers and of the consumers of a feeder are counted, and
//! the rings of a feeder timed.

mod feed;
mod readers;
mod sender;
mod shares;
mod speed;
mod threads;
mod traffic;
mod words;

use super::bars::Bar;
use super::captures;
use super::programs::compile;
use crate::Outcome;
use crate::shell::{self, Options, passes, root};
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::netns::Wire;
use readers::Reader;
use sender::Sender;
use speed::Speed;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is asked for.
#[derive(Debug)]
struct Plan {
    packets: u64,
    transactions: u64,
    capture: Option<PathBuf>,
    binary: Option<PathBuf>,
    runs: usize,
    seconds: f64,
    only: Option<String>,
}

/// `bench live [--packets N] [--transactions N] [--capture FILE] [--binary FILE] [--runs R]
/// [--seconds S] [--only speed|shares|feed]`
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let plan = Plan {
        packets: options.value("--packets")?.unwrap_or(500_000),
        transactions: options.value("--transactions")?.unwrap_or(200_000),
        capture: options.value("--capture")?,
        binary: options.value("--binary")?,
        runs: options.value("--runs")?.unwrap_or(3),
        seconds: options.value("--seconds")?.unwrap_or(4.0),
        only: options.value("--only")?,
    };
    options.rest()?;
    passes(
        Command::new("scripts/setup.sh")
            .arg("bench")
            .current_dir(root()),
    )?;
    let dir = shell::memory_folder("bench-live");
    if dir.is_dir() {
        captures::remove(&dir)?;
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let outcome = measure(&plan, &dir);
    captures::remove(&dir)?;
    outcome
}

fn measure(plan: &Plan, dir: &Path) -> Outcome {
    let wants = |part: &str| plan.only.as_deref().is_none_or(|only| only == part);
    let binary = match &plan.binary {
        Some(binary) => binary.canonicalize().context("--binary")?,
        None => shell::release_binary()?,
    };
    for program in ["replay", "rxv3"] {
        let source = root()
            .join("benches/limits")
            .join(program)
            .with_extension("c");
        compile(&source, &dir.join(program))?;
    }
    let wire = Wire::new()?;
    let sender = Sender {
        wire: &wire,
        program: dir.join("replay"),
    };
    let readers = readers::find(&wire, binary.clone(), dir);
    println!(
        "{}; veth pair, offloads off; sender on core {}, readers on core {}; rings of 64 MiB",
        if wire.is_unprivileged() {
            "in a user namespace, at plain priority"
        } else {
            "at real-time priority (tshark, two programs on one core: plain)"
        },
        sender::CORE,
        readers::CORE
    );
    let mut bars: Vec<Bar> = Vec::new();
    if wants("speed") {
        let speed = Speed {
            sender: &sender,
            readers: &readers,
            runs: plan.runs.max(1),
            seconds: plan.seconds,
        };
        let mix = match &plan.capture {
            Some(path) => path.clone(),
            None => record(dir, "mix", plan.packets)?,
        };
        bars.extend(speed.of("mix", &mix, &Reader::ALL)?);
        if plan.capture.is_none() {
            std::fs::remove_file(&mix)?;
            let tiny = record(dir, "tiny", plan.packets)?;
            bars.extend(speed.of("tiny", &tiny, &[Reader::Empty, Reader::Linkweir])?);
            std::fs::remove_file(&tiny)?;
        }
    }
    if wants("shares") {
        bars.extend(shares::all(&sender, &binary, plan.transactions, dir)?);
    }
    if wants("feed") {
        bars.push(feed::rate(plan.runs.max(1))?);
    }
    println!();
    super::bars::print(&bars);
    Ok(bars.iter().all(|bar| bar.passed))
}

/// Records real traffic, as `bench http` does.
fn record(dir: &Path, mode: &str, packets: u64) -> Result<PathBuf> {
    let path = dir.join(format!("{mode}.pcap"));
    println!("recording {} packets of {mode}", shell::grouped(packets));
    let mut script = Command::new(root().join("benches/record_http.sh"));
    if !passes(script.arg(&path).arg(packets.to_string()).arg(mode))? {
        bail!("benches/record_http.sh failed");
    }
    Ok(path)
}
