//! `bench live`: packets from an interface.
//!
//! Two network namespaces with a veth pair between them are made for it and go with it, however it
//! ends. A capture is replayed from one side by `benches/limits/replay.c` while one program after the
//! other listens on the other: an empty reader (`benches/limits/rxv3.c`, the limit), `linkweir http`,
//! tcpdump and tshark. Then the shares of workers and of the consumers of a feeder are counted, the rings
//! of a feeder timed, and what N of either cost over one file ([`mod@scale`], which needs no namespaces).

mod readers;
mod scale;
mod sender;
mod shares;
mod speed;
mod traffic;

use super::harness::{Parts, Target, compile, in_memory, linkweir, record, setup, verdict};
use crate::Outcome;
use crate::shell::{Options, root};
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::Wire;
use readers::{EMPTY, LINKWEIR, Readers, TCPDUMP, TSHARK};
use sender::Sender;
use speed::Speed;
use std::path::{Path, PathBuf};

/// What is asked for.
#[derive(Debug)]
struct Plan {
    packets: u64,
    transactions: u64,
    capture: Option<PathBuf>,
    binary: Option<PathBuf>,
    runs: usize,
    seconds: f64,
    parts: Parts,
}

/// `bench live [--packets N] [--transactions N] [--capture FILE] [--binary FILE] [--runs R]
/// [--seconds S] [--only speed|shares|feed|scale]...`
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let plan = Plan {
        packets: options.value("--packets")?.unwrap_or(500_000),
        transactions: options.value("--transactions")?.unwrap_or(200_000),
        capture: options.value("--capture")?,
        binary: options.value("--binary")?,
        runs: options.value("--runs")?.unwrap_or(3),
        seconds: options.value("--seconds")?.unwrap_or(4.0),
        parts: Parts::of(&mut options, &["speed", "shares", "feed", "scale"])?,
    };
    options.rest()?;
    setup()?;
    in_memory("bench-live", |dir| measure(&plan, dir))
}

fn measure(plan: &Plan, dir: &Path) -> Outcome {
    let binary = linkweir(plan.binary.as_deref())?;
    let mut targets: Vec<Target> = Vec::new();
    if plan.parts.wants("scale") {
        targets.extend(scale(plan, &binary, dir)?);
    }
    if !["speed", "shares", "feed"]
        .iter()
        .any(|part| plan.parts.wants(part))
    {
        return verdict(&targets);
    }
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
    let readers = Readers {
        wire: &wire,
        linkweir: binary.clone(),
        dir: dir.to_path_buf(),
    };
    println!(
        "{}; veth pair, offloads off; sender on core {}, readers and what the kernel does for them on core {}; rings of 64 MiB",
        if wire.is_unprivileged() {
            "in a user namespace, at plain priority"
        } else {
            "at real-time priority (tshark, two programs on one core: plain)"
        },
        sender::CORE,
        readers::CORE
    );
    if plan.parts.wants("speed") {
        wire.steer(Side::Server, readers::CORE)?;
        let speed = Speed {
            sender: &sender,
            readers: &readers,
            runs: plan.runs.max(1),
            seconds: plan.seconds,
        };
        let all = [&EMPTY, &LINKWEIR, &TCPDUMP, &TSHARK];
        if let Some(mix) = &plan.capture {
            targets.extend(speed.of("mix", mix, &all)?);
        } else {
            for (mode, readers) in [("mix", all.as_slice()), ("tiny", &[&EMPTY, &LINKWEIR])] {
                let path = dir.join(format!("{mode}.pcap"));
                record(&path, plan.packets, mode)?;
                targets.extend(speed.of(mode, &path, readers)?);
                std::fs::remove_file(&path)?;
            }
        }
    }
    if plan.parts.wants("shares") {
        let shares = shares::all(&sender, &binary, plan.transactions, dir)?;
        targets.extend(shares);
    }
    if plan.parts.wants("feed") {
        targets.push(sender::rate(plan.runs.max(1))?);
    }
    verdict(&targets)
}

/// What workers and consumers cost, over the capture of the command line or the traffic of the shares.
fn scale(plan: &Plan, binary: &Path, dir: &Path) -> anyhow::Result<Vec<Target>> {
    let made = dir.join("scale.pcap");
    let capture = match &plan.capture {
        Some(capture) => capture,
        None => {
            traffic::write(&made, plan.transactions)?;
            &made
        }
    };
    let targets = scale::all(binary, capture, plan.runs.max(1), dir)?;
    super::harness::remove(&made)?;
    Ok(targets)
}
