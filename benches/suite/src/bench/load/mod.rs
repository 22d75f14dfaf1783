//! `bench load`: what `linkweir load` makes of one core, beside wrk, ab and httperf.
//!
//! Two network namespaces joined by a veth pair: nginx with one worker on one core, what loads it on the
//! other. What arrives by a veth pair is worked off on the core of who sent it: the client's core also
//! bears the server's receiving, for all programs alike; with `--steer` each core bears its own. The rows
//! take turns, a short run each per round;
//! figures are medians over the rounds, ratios are of runs of the same round.

mod bars;
mod contrast;
mod cores;
mod generator;
mod lag;
mod open;
mod part;
mod peers;
mod rates;
mod row;
mod search;
mod site;

use super::bars::{self as all_bars, Bar};
use super::captures;
use crate::shell::{self, Options, passes, root};
use crate::{Outcome, usage};
use anyhow::{Context as _, Result, bail};
use part::Part;
use row::{Mode, Tool};
use site::Site;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What cannot be done without: program and Debian package.
const NEEDED: [(&str, &str); 5] = [
    ("nginx", "nginx"),
    ("wrk", "wrk"),
    ("ip", "iproute2"),
    ("ethtool", "ethtool"),
    ("taskset", "util-linux"),
];

/// What is asked for.
#[derive(Debug)]
struct Plan {
    /// Length of a run.
    seconds: u32,
    /// Rounds.
    runs: usize,
    /// Whether links are as on a cable: no offloads.
    is_cable: bool,
    /// Whether what arrives is worked off on the core of who receives it.
    is_steered: bool,
    /// Whether server and clients go before all other programs.
    is_urgent: bool,
    only: Vec<Part>,
    binary: Option<PathBuf>,
}

impl Plan {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// The rows that are asked for and can be run, with wrk, which others are compared with.
    fn rows(&self) -> Vec<Tool> {
        let mut rows: Vec<Tool> = Tool::all();
        rows.retain(|tool| self.wants(Part::Row(*tool)) && is_there(*tool));
        if !rows.is_empty() && !rows.contains(&Tool::Wrk) {
            rows.insert(0, Tool::Wrk);
        }
        rows
    }
}

fn is_there(tool: Tool) -> bool {
    let is_there = match tool {
        Tool::Ab | Tool::Httperf => shell::find(tool.name()).is_some(),
        Tool::Wrk | Tool::Linkweir(_) => true,
    };
    if !is_there {
        eprintln!(
            "bench load: {} is not installed: no row for it",
            tool.name()
        );
    }
    is_there
}

/// `bench load [--seconds N] [--runs N] [--cable] [--steer] [--urgent] [--binary FILE] [--only PART]...`
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let mut plan = Plan {
        seconds: options.value("--seconds")?.unwrap_or(2).max(1),
        runs: options.value("--runs")?.unwrap_or(5).max(1),
        is_cable: options.flag("--cable"),
        is_steered: options.flag("--steer"),
        is_urgent: options.flag("--urgent"),
        only: Vec::new(),
        binary: options.value("--binary")?,
    };
    while let Some(word) = options.value::<String>("--only")? {
        let part = Part::named(&word).ok_or_else(|| {
            usage(&format!(
                "no part `{word}`; there are {}",
                Part::names().join(", ")
            ))
        })?;
        plan.only.push(part);
    }
    options.rest()?;
    passes(
        Command::new("scripts/setup.sh")
            .arg("bench")
            .current_dir(root()),
    )?;
    let missing = NEEDED
        .iter()
        .filter(|(program, _)| shell::find(program).is_none());
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if !packages.is_empty() {
        bail!(
            "missing; install them with: apt-get install {}",
            packages.join(" ")
        );
    }
    let dir = shell::memory_folder("bench-load");
    if dir.is_dir() {
        captures::remove(&dir)?;
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let outcome = measure(&plan, &dir);
    captures::remove(&dir)?;
    outcome
}

fn measure(plan: &Plan, dir: &Path) -> Outcome {
    let binary = match &plan.binary {
        Some(binary) => binary.canonicalize().context("--binary")?,
        None => shell::release_binary()?,
    };
    let site = Site::new(plan, &dir.join("site"), contrast::WORK)?;
    describe(plan, &site);
    let mut bars: Vec<Bar> = Vec::new();
    let rows = plan.rows();
    for mode in Mode::ALL {
        if !rows.is_empty() {
            let all = rates::measure(plan, &site, &binary, &rows, mode)?;
            rates::table(mode, &all);
            bars.extend(bars::of_rows(&all));
        }
    }
    bars.extend(others(plan, &site, &binary)?);
    println!();
    all_bars::print(&bars);
    Ok(bars.iter().all(|bar| bar.passed))
}

/// What is measured beside the rows.
fn others(plan: &Plan, site: &Site, binary: &Path) -> Result<Vec<Bar>> {
    let mut bars = Vec::new();
    if plan.wants(Part::Lag) {
        bars.extend(lag::run(plan, site, binary)?);
    }
    if plan.wants(Part::Open) {
        bars.extend(open::run(site, binary)?);
    }
    if plan.wants(Part::Contrast) {
        bars.extend(contrast::run(plan.seconds, site, binary)?);
    }
    Ok(bars)
}

fn describe(plan: &Plan, site: &Site) {
    println!(
        "{} rounds of {} s{}{}{}{}; nginx with one worker on core {}, what loads it on core {}; answers of {} bytes; wrk and ab with {} connections",
        plan.runs,
        plan.seconds,
        if site.net().is_unprivileged() {
            ", in a user namespace"
        } else {
            ""
        },
        if plan.is_cable {
            ", offloads off"
        } else {
            ", offloads as on a host"
        },
        if plan.is_steered {
            ", frames worked off on the core of who receives them"
        } else {
            ", frames worked off on the core of who sends them"
        },
        if plan.is_urgent {
            ", before all other programs"
        } else {
            ""
        },
        cores::SERVER,
        cores::CLIENT,
        linkweir_testkit::load::SMALL,
        peers::CONNECTIONS,
    );
}
