//! `bench gateway`: what passes through `linkweir gateway`, beside what else can stand in the middle.
//!
//! Three network namespaces are made for it: nginx on one side, wrk on the other, between them the row
//! that is measured. The rows take turns, a short run each per round; figures are medians over the
//! rounds, ratios are of runs of the same round. The rows are the configurations of the paper's Figs. 7
//! and 8 and the proxies of Figs. 11 and 12; the crowd is its test bed, Fig. 6; the steps are Fig. 9, the sweep is
//! Fig. 10.

mod between;
mod crowd;
mod downloads;
mod far;
mod flood;
mod latency;
mod many;
mod policy;
mod programs;
mod rows;
mod shaping;
mod site;
mod steps;
mod sweep;

use super::harness::{Parts, Target, in_memory, needs, setup, verdict};
use crate::Outcome;
use crate::shell::Options;
use between::Rounds;
use linkweir_testkit::clamd::Clamd;
use linkweir_testkit::gateway::Links;
use programs::Programs;
use rows::{ROWS, Row};
use site::Site;
use std::path::{Path, PathBuf};

/// What `--only` may name beside the rows: what is measured beside the table, and the table again, in
/// packets as on a cable.
const OTHERS: [&str; 10] = [
    "cable",
    "crowd",
    "queues",
    "steps",
    "sweep",
    "slow-scan",
    "shape",
    "many",
    "far",
    "flood",
];

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
    parts: Parts,
    binary: Option<PathBuf>,
}

impl Plan {
    /// The rows of the table, and those that they are compared with.
    fn rows(&self) -> Vec<&'static Row> {
        let is_asked = |row: &Row| self.parts.wants(row.word);
        let is_needed = |row: &&Row| {
            let by = |other: &Row| {
                let (_, compared) = other.how.least.unwrap_or_default();
                is_asked(other) && compared.contains(&row.word)
            };
            is_asked(row) || ROWS.iter().any(by)
        };
        ROWS.iter().filter(is_needed).collect()
    }
}

/// All words of `--only`.
fn words() -> Vec<&'static str> {
    let rows = ROWS.iter().map(|row| row.word);
    rows.chain(OTHERS).collect()
}

/// `bench gateway [--seconds N] [--runs N] [--queues N] [--keep-alive] [--binary FILE] [--only PART]...`
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let plan = Plan {
        seconds: options.value("--seconds")?.unwrap_or(1).max(1),
        runs: options.value("--runs")?.unwrap_or(5).max(1),
        queues: options.value("--queues")?.unwrap_or(1).max(1),
        connections: 4,
        is_one_each: !options.flag("--keep-alive"),
        parts: Parts::of(&mut options, &words())?,
        binary: options.value("--binary")?,
    };
    options.rest()?;
    setup()?;
    needs(&programs::NEEDED)?;
    in_memory("bench-gateway", |dir| measure(&plan, dir))
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
    let mut targets: Vec<Target> = Vec::new();
    let asked = |part: &str| plan.parts.wants(part);
    let rows = plan.rows();
    if !rows.is_empty() {
        let all = rounds.of(&site, rows)?;
        downloads::table("2 MB downloads, offloads as on a host", &all);
        let rows = ROWS.iter().filter(|row| asked(row.word));
        targets.extend(rows.filter_map(|row| rows::target("", row, row.how.least, &all)));
        targets.push(rows::no_drop("2 MB downloads", &all));
    }
    if asked("sweep") && socket.is_some() {
        sweep::run(&rounds, &site)?;
    }
    if asked("steps") && socket.is_some() {
        steps::run(&rounds, &site)?;
    }
    if asked("crowd") {
        targets.push(crowd::run(&rounds, &site)?);
    }
    if asked("queues") {
        crowd::queues(&rounds, &site)?;
    }
    if asked("slow-scan") {
        targets.push(latency::run(&rounds, &site)?);
    }
    if asked("shape") {
        targets.extend(shaping::run(&rounds, &site)?);
    }
    if asked("many") {
        targets.extend(many::run(&rounds, &site)?);
    }
    if asked("flood") {
        targets.extend(flood::run(&rounds, &site)?);
    }
    drop(site);
    if asked("cable") {
        let links = Links {
            has_offloads: false,
            ..Links::default()
        };
        let site = Site::new(links, &dir.join("cable"))?;
        let all = rounds.of(&site, ROWS.iter().filter(|row| row.how.on_cable))?;
        downloads::table("the same in packets of 1448 bytes, offloads off", &all);
        let target = |row| rows::target("1448-byte packets, ", row, row.how.least_on_cable, &all);
        targets.extend(ROWS.iter().filter_map(target));
        targets.push(rows::no_drop("1448-byte packets", &all));
    }
    if asked("far") {
        targets.extend(far::run(&rounds, &dir.join("far"))?);
    }
    verdict(&targets)
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

#[cfg(test)]
mod tests {
    #[test]
    fn every_part_has_a_word_of_its_own() {
        crate::bench::harness::assert_different(&super::words());
    }
}
