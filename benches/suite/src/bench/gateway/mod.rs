//! `bench gateway`: what passes through `linkweir gateway`, beside what else can stand in the middle.
//!
//! Three network namespaces are made for it: nginx on one side, wrk on the other, between them the row
//! that is measured. The rows take turns, a short run each per round; figures are medians over the
//! rounds, ratios are of runs of the same round. The rows are the configurations of the paper's Figs. 7
//! and 8 and the proxies of Figs. 11 and 12; the sweep is Fig. 10.

mod bars;
mod between;
mod cost;
mod download;
mod far;
mod flood;
mod latency;
mod many;
mod part;
mod policy;
mod programs;
mod row;
mod series;
mod shaping;
mod site;
mod sweep;

use super::bars::{self as all_bars, Bar};
use super::captures;
use crate::shell::{self, Options, passes, root};
use crate::{Outcome, usage};
use anyhow::Context as _;
use linkweir_testkit::clamd::Clamd;
use linkweir_testkit::gateway::Links;
use part::Part;
use programs::Programs;
use row::Row;
use series::Rounds;
use site::Site;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is asked for.
#[derive(Debug, Clone)]
struct Plan {
    /// Length of a run.
    seconds: u32,
    /// Rounds.
    runs: usize,
    /// Kernel queues, and threads that serve them. The kernel picks the queue of a packet by its two
    /// addresses alone, and wrk has one: of several, one is used.
    queues: u16,
    /// Connections at once.
    connections: usize,
    /// Whether connections carry one download each, or as many as fit in a run.
    is_one_each: bool,
    only: Vec<Part>,
    binary: Option<PathBuf>,
}

impl Plan {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// The rows of a table, and those that they are compared with.
    fn rows(&self, all: &[Row]) -> Vec<Row> {
        let is_asked = |row: Row| self.wants(Part::Row(row));
        let is_needed = |row: Row| {
            let by = |other: &Row| is_asked(*other) && other.compared_with().contains(&row);
            is_asked(row) || all.iter().any(by)
        };
        let rows = all.iter().copied();
        rows.filter(|row| is_needed(*row)).collect()
    }
}

/// `bench gateway [--seconds N] [--runs N] [--queues N] [--keep-alive] [--binary FILE] [--only PART]...`
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let mut plan = Plan {
        seconds: options.value("--seconds")?.unwrap_or(1).max(1),
        runs: options.value("--runs")?.unwrap_or(5).max(1),
        queues: options.value("--queues")?.unwrap_or(1).max(1),
        connections: 4,
        is_one_each: !options.flag("--keep-alive"),
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
    programs::check()?;
    let dir = shell::memory_folder("bench-gateway");
    if dir.is_dir() {
        captures::remove(&dir)?;
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let outcome = measure(&plan, &dir);
    captures::remove(&dir)?;
    outcome
}

fn measure(plan: &Plan, dir: &Path) -> Outcome {
    let programs = Programs::build(plan.binary.as_deref())?;
    // Without it the rows with scanning are missing, and missed.
    let clamd = Clamd::start()
        .map_err(|error| eprintln!("bench gateway: {error}: nothing is scanned"))
        .ok();
    let socket = clamd.as_ref().map(Clamd::socket);
    let site = Site::new(Links::default(), &dir.join("site"))?;
    describe(plan, &site);
    let rounds = Rounds {
        plan,
        programs: &programs,
        clamd: socket.as_deref().zip(clamd.as_ref().and_then(Clamd::pid)),
    };
    let mut bars: Vec<Bar> = Vec::new();
    let rows = plan.rows(&Row::ALL);
    if !rows.is_empty() {
        let all = rounds.of(&site, &rows)?;
        series::table("2 MB downloads, offloads as on a host", &all);
        bars.extend(bars::of_rows(plan, &all));
    }
    if plan.wants(Part::Sweep) && socket.is_some() {
        sweep::run(&rounds, &site)?;
    }
    if plan.wants(Part::SlowScan) {
        bars.push(latency::run(&rounds, &site)?);
    }
    if plan.wants(Part::Shape) {
        bars.extend(shaping::run(&rounds, &site)?);
    }
    if plan.wants(Part::Many) {
        bars.extend(many::run(&rounds, &site)?);
    }
    if plan.wants(Part::Flood) {
        bars.extend(flood::run(&rounds, &site)?);
    }
    drop(site);
    if plan.wants(Part::Cable) {
        let links = Links {
            has_offloads: false,
            ..Links::default()
        };
        let site = Site::new(links, &dir.join("cable"))?;
        let all = rounds.of(&site, &Row::ON_CABLE)?;
        series::table("the same in packets of 1448 bytes, offloads off", &all);
        bars.push(bars::no_drop("1448-byte packets", &all));
    }
    if plan.wants(Part::Far) {
        bars.extend(far::run(&rounds, &dir.join("far"))?);
    }
    println!();
    all_bars::print(&bars);
    Ok(bars.iter().all(|bar| bar.passed))
}

fn describe(plan: &Plan, site: &Site) {
    println!(
        "{} rounds of {} s{}; wrk with one thread and {} connections, {}; {} queue(s)",
        plan.runs,
        plan.seconds,
        if site.net().is_unprivileged() {
            ", in a user namespace"
        } else {
            ""
        },
        plan.connections,
        if plan.is_one_each {
            "a new one for each download"
        } else {
            "kept from download to download"
        },
        plan.queues,
    );
}
