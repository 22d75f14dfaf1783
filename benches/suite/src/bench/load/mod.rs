//! `bench load`: what `linkweir load` makes of one core, beside wrk, ab and httperf.
//!
//! Two network namespaces joined by a veth pair: nginx with one worker on one core, what loads it on the
//! other. What arrives by a veth pair is worked off on the core of who sent it: the client's core also
//! bears the server's receiving, for all programs alike; with `--steer` each core bears its own. The rows
//! take turns, a short run each per round;
//! figures are medians over the rounds, ratios are of runs of the same round.

mod contrast;
mod figures;
mod generator;
mod lag;
mod open;
mod peers;
mod rates;
mod rows;
mod site;

use super::harness::{Parts, Target, in_memory, linkweir, needs, setup, verdict};
use crate::Outcome;
use crate::shell::{self, Options};
use rows::{MODES, ROWS, Row, Tool};
use site::Site;
use std::path::{Path, PathBuf};

/// What `--only` may name beside the rows.
const OTHERS: [&str; 3] = ["open", "lag", "contrast"];

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
    parts: Parts,
    binary: Option<PathBuf>,
    /// A directory for pictures of the contrast.
    plot: Option<PathBuf>,
}

impl Plan {
    /// The rows that are asked for and can be run, with wrk, which others are compared with.
    fn rows(&self) -> Vec<&'static Row> {
        let asked = |row: &&Row| self.parts.wants(row.word) && is_there(row);
        let mut rows: Vec<&Row> = ROWS.iter().filter(asked).collect();
        if rows.first().is_some_and(|row| row.word != "wrk") {
            rows.splice(0..0, ROWS.iter().filter(|row| row.word == "wrk"));
        }
        rows
    }
}

fn is_there(row: &Row) -> bool {
    let is_there = matches!(row.how, Tool::Linkweir(_)) || shell::find(row.name).is_some();
    if !is_there {
        eprintln!("bench load: {} is not installed: no row for it", row.name);
    }
    is_there
}

/// All words of `--only`.
fn words() -> Vec<&'static str> {
    let rows = ROWS.iter().map(|row| row.word);
    rows.chain(OTHERS).collect()
}

/// `bench load [--seconds N] [--runs N] [--cable] [--steer] [--urgent] [--binary FILE] [--plot DIR]
/// [--only PART]...`: DIR gets Figs. 7 to 10 of the paper, of `contrast`.
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let plan = Plan {
        seconds: options.value("--seconds")?.unwrap_or(2).max(1),
        runs: options.value("--runs")?.unwrap_or(5).max(1),
        is_cable: options.flag("--cable"),
        is_steered: options.flag("--steer"),
        is_urgent: options.flag("--urgent"),
        parts: Parts::of(&mut options, &words())?,
        binary: options.value("--binary")?,
        plot: options.value("--plot")?,
    };
    options.rest()?;
    setup()?;
    needs(&NEEDED)?;
    in_memory("bench-load", |dir| measure(&plan, dir))
}

fn measure(plan: &Plan, dir: &Path) -> Outcome {
    let binary = linkweir(plan.binary.as_deref())?;
    let site = Site::new(plan, &dir.join("site"), contrast::WORK, 1)?;
    describe(plan, &site);
    let mut targets: Vec<Target> = Vec::new();
    let rows = plan.rows();
    if !rows.is_empty() {
        for mode in &MODES {
            let all = rates::measure(plan, &site, &binary, &rows, mode)?;
            rates::table(mode, &all);
            targets.extend(rows::targets(mode, &all));
        }
    }
    if plan.parts.wants("lag") {
        let pair = Site::new(plan, &dir.join("pair"), contrast::WORK, 2)?;
        targets.extend(lag::run(plan, &site, &pair, &binary)?);
    }
    if plan.parts.wants("open") {
        targets.extend(open::run(&site, &binary)?);
    }
    if plan.parts.wants("contrast") {
        let contrast = contrast::Contrast {
            seconds: plan.seconds,
            binary: &binary,
            plot: plan.plot.as_deref(),
        };
        targets.extend(contrast.run(&site)?);
    }
    verdict(&targets)
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
        site::SERVER_CORE,
        site::CLIENT_CORE,
        linkweir_testkit::load::SMALL,
        peers::CONNECTIONS,
    );
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_part_has_a_word_of_its_own() {
        crate::bench::harness::assert_different(&super::words());
    }
}
