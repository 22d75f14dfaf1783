//! Hundreds of downloads at a time: the test bed of the paper's Fig. 6, and several queues.

use super::between::{Between, Gateway, Rounds};
use super::policy::Policy;
use super::rows::{Row, named};
use super::site::Site;
use crate::bench::harness::proc::Clock;
use crate::bench::harness::{
    self, Column, Series, Target, digits, find, number, percent, print, rounds, row,
};
use crate::shell::grouped;
use anyhow::{Context as _, Result};
use linkweir_testkit::gateway::client;
use serde_json::Value;
use std::process::Stdio;

/// Shortest run, seconds: with scans a download of many is long.
const SHORTEST: u32 = 10;

/// So many clients, each with so many downloads at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    clients: u8,
    at_once: u32,
}

/// That of the paper.
pub(super) const PAPER: Load = Load {
    clients: 2,
    at_once: 100,
};
/// Enough pairs of addresses for several queues: the kernel picks the queue by them.
const SPREAD: Load = Load {
    clients: 8,
    at_once: 25,
};

/// The configurations of the paper's Fig. 7.
const ROWS: [&str; 8] = [
    "forward", "nat", "accept", "l7", "inspect", "record", "scan", "all",
];

/// What came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Came {
    pub(super) gbit_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    failed: u64,
}

/// One run.
#[derive(Debug)]
struct Run {
    came: Came,
    /// Of one core, by the programs of the row.
    processes: f64,
    /// Of all cores.
    machine: f64,
    /// Packets that passed unseen because a queue or its socket was full.
    dropped: u64,
    /// Of all queued packets, those of the queue with the most.
    largest: f64,
}

/// Downloads at a time, for as long as is planned.
pub(super) fn load(rounds: &Rounds<'_>, site: &Site, load: Load) -> Result<Came> {
    let clients = (0..load.clients).map(|number| client(number).to_string());
    let clients: Vec<String> = clients.collect();
    let servers: Vec<String> = Site::servers().iter().map(ToString::to_string).collect();
    let seconds = rounds.plan.seconds.max(SHORTEST);
    let mut crowd = site.client(rounds.programs.own("crowd"));
    crowd.args([&clients.join(","), &servers.join(","), "/file.bin"]);
    crowd.args([load.at_once, seconds].map(|number| number.to_string()));
    let output = crowd
        .stderr(Stdio::inherit())
        .output()
        .context("run crowd")?;
    let said: Value = serde_json::from_slice(&output.stdout).context("crowd failed")?;
    let number = |name| number(&said, name);
    Ok(Came {
        gbit_s: number("bytes")? * 8e-3 / number("duration_us")?,
        p50_ms: number("p50_us")? / 1e3,
        p99_ms: number("p99_us")? / 1e3,
        failed: harness::count(&said, "failed")?,
    })
}

/// The load through what stands there now; `ids` are its processes.
fn through(rounds: &Rounds<'_>, site: &Site, how: Load, ids: &[u32]) -> Result<Run> {
    let begin = Clock::now(ids)?;
    let before = site.net().queues();
    let came = load(rounds, site, how)?;
    let used = Clock::now(ids)?.since(&begin);
    let queues = site.net().queues();
    let packets = queues.iter().map(|queue| {
        let before = before.iter().find(|old| old.number == queue.number);
        queue.packets - before.map_or(0, |old| old.packets)
    });
    let packets: Vec<u64> = packets.collect();
    let all: u64 = packets.iter().sum();
    Ok(Run {
        came,
        processes: used.processes(),
        machine: used.machine(),
        dropped: queues
            .iter()
            .map(|queue| queue.dropped + queue.user_dropped)
            .sum(),
        largest: packets.iter().max().copied().unwrap_or(0) as f64 / all.max(1) as f64,
    })
}

/// Measures the configurations in turns.
pub(super) fn run(measured: &Rounds<'_>, site: &Site) -> Result<Target> {
    let rows = ROWS.iter().map(|word| named(word));
    let mut rows: Vec<&'static Row> = rows.collect::<Result<_>>()?;
    rows.retain(|row| measured.has(row));
    let all = rounds("many downloads", rows, measured.plan.runs, |_, row, _| {
        let between = Between::start(measured, site, row)?;
        let run = through(measured, site, PAPER, &between.ids())?;
        between.finish_overloaded()?;
        Ok(Some(run))
    })?;
    print_table(
        &format!(
            "Figs. 6 and 7 of the paper: {} clients, {} downloads of 2 MB at a time each, from {} servers",
            PAPER.clients,
            PAPER.at_once,
            Site::servers().len()
        ),
        "forward",
        &all,
    );
    let failed = all.iter().map(|own| own.sum(|run| run.came.failed)).sum();
    Ok(none_fails(failed))
}

fn none_fails(failed: u64) -> Target {
    Target::new(
        format!(
            "{} downloads at a time: none fails",
            u32::from(PAPER.clients) * PAPER.at_once
        ),
        grouped(failed),
        failed == 0,
    )
}

/// A number of queues.
#[derive(Debug)]
struct Queues(u16);

static QUEUES: [harness::Row<Queues>; 3] = [
    row("1", "1 queue", Queues(1)),
    row("2", "2 queues", Queues(2)),
    row("4", "4 queues", Queues(4)),
];

/// Measures numbers of queues in turns: every packet is looked at for file names.
pub(super) fn queues(measured: &Rounds<'_>, site: &Site) -> Result<()> {
    let all = rounds("queues", &QUEUES, measured.plan.runs, |_, row, _| {
        let policy = Policy::of(named("inspect")?, row.how.0, None)?;
        let gateway = Gateway::start(measured, site, &policy)?;
        let run = through(measured, site, SPREAD, &[gateway.id()])?;
        gateway.finish_overloaded()?;
        Ok(Some(run))
    })?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    print_table(
        &format!(
            "several queues, file names, on {cores} cores that clients and servers use too: {} clients, {} downloads of 2 MB at a time each, from {} servers",
            SPREAD.clients,
            SPREAD.at_once,
            Site::servers().len()
        ),
        "1",
        &all,
    );
    Ok(())
}

/// Prints a table; `first` is the word of the row that the others are compared with.
fn print_table<H: 'static>(title: &str, first: &str, all: &[Series<H, Run>]) {
    type Cells<'a, H> = (&'a Series<H, Run>, Option<&'a Series<H, Run>>);
    #[rustfmt::skip]
    let columns: [Column<Cells<'_, H>>; 12] = [
        ("row", |(own, _)| own.row.name.to_owned()),
        ("runs", |(own, _)| own.count().to_string()),
        ("Gbit/s", |(own, _)| digits(own.median(|run| run.came.gbit_s), 2)),
        ("least", |(own, _)| digits(own.least(|run| run.came.gbit_s), 2)),
        ("most", |(own, _)| digits(own.most(|run| run.came.gbit_s), 2)),
        ("of the first", |(own, first)| own.cell_of(*first, |run| run.came.gbit_s)),
        ("its CPU", |(own, _)| percent(own.median(|run| run.processes))),
        ("machine", |(own, _)| percent(own.median(|run| run.machine))),
        ("median, ms", |(own, _)| digits(own.median(|run| run.came.p50_ms), 0)),
        ("99 %, ms", |(own, _)| digits(own.median(|run| run.came.p99_ms), 0)),
        ("largest queue", |(own, _)| percent(own.median(|run| run.largest))),
        ("unseen", |(own, _)| grouped(own.sum(|run| run.dropped))),
    ];
    let first = find(all, first);
    print(title, &columns, all.iter().map(|own| (own, first)));
    println!(
        "of the first: by rounds; its CPU: of one core; median, 99 %: time of a whole download; largest queue: its part of all \
         queued packets; unseen: packets that passed because a queue was full, all runs"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_there_and_one_failure_is_a_miss() {
        assert!(ROWS.iter().all(|word| named(word).is_ok()));
        assert!(none_fails(0).is_reached && !none_fails(1).is_reached);
    }
}
