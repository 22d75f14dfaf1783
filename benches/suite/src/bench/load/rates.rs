//! The table: how many connections and requests a second each program makes.

use super::peers::{Loaded, Reached};
use super::rows::{Mode, Row, Tool};
use super::search::{self, Steps};
use super::site::{Busy, Site};
use super::{Plan, generator};
use crate::bench::harness::{
    self, Column, Runs, cells, digits, find, megabytes, percent, print_cells, progress,
};
use crate::shell::grouped;
use anyhow::Result;
use std::path::Path;

/// Where the search begins when nothing is known, in the rate that wrk has just had.
const START: f64 = 0.9;
/// Where it begins in later rounds, in the rate of the last.
const AGAIN: f64 = 0.97;
/// A core with less idle time than this is full,
const FULL: f64 = 0.95;
/// and it is full of the server where nginx itself has this part of it; the rest are interrupts.
const FULL_OF_NGINX: f64 = 0.8;

/// One run that counts: of a program with a schedule, the highest rate that was kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) reached: Reached,
    pub(super) busy: Busy,
    pub(super) memory: u64,
}

/// The runs of one program; of one that kept no rate in a round there is none.
pub(super) type Series = harness::Series<Tool, Run>;

/// Whether the server's core was full in the middle run.
pub(super) fn is_server_full(runs: &Runs<Run>) -> bool {
    runs.median(|run| run.busy.server) >= FULL
        && runs.median(|run| run.busy.process) >= FULL_OF_NGINX
}

/// Runs the rows in turns.
pub(super) fn measure(
    plan: &Plan,
    site: &Site,
    binary: &Path,
    rows: &[&'static Row],
    mode: &Mode,
) -> Result<Vec<Series>> {
    let mut of_wrk = 10_000.0;
    harness::rounds("rates", rows.iter().copied(), plan.runs, |_, row, last| {
        // What was found in the last round is kept again, or nearly.
        let search = match last {
            Some(Run { reached, .. }) => (reached.per_second * AGAIN, Steps::NARROW),
            None => (of_wrk * START, Steps::WIDE),
        };
        let run = once(plan.seconds, site, binary, (row, mode), search)?;
        if let ("wrk", Some(run)) = (row.word, &run) {
            of_wrk = run.reached.per_second;
        }
        Ok(run)
    })
}

fn once(
    seconds: u32,
    site: &Site,
    binary: &Path,
    (row, mode): (&Row, &Mode),
    (start, steps): (f64, Steps),
) -> Result<Option<Run>> {
    let highest = |at: &dyn Fn(f64) -> Result<Option<Loaded>>| {
        let found = search::highest(start, steps, |rate| {
            progress(&format!("{} {rate:.0}/s", row.name));
            at(rate)
        });
        anyhow::Ok(found?.map(|(_, found)| found))
    };
    let found = match row.how {
        Tool::Closed(run) => Some(run(site, mode, seconds)?),
        Tool::Scheduled(run) => highest(&|rate| run(site, mode, seconds, rate))?,
        Tool::Linkweir(clients) => {
            highest(&|rate| generator::at_rate(site, binary, (clients, mode), seconds, rate))?
        }
    };
    Ok(found.map(|(reached, ended)| Run {
        reached,
        busy: ended.busy,
        memory: ended.memory,
    }))
}

/// Prints the table of a mode.
pub(super) fn table(mode: &Mode, all: &[Series]) {
    // A row, and that of wrk.
    type Cells<'a> = (&'a Series, Option<&'a Series>);
    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 13] = [
        ("program", |(own, _)| own.row.name.to_owned()),
        ("client addresses", |(own, _)| grouped(own.row.how.addresses())),
        ("runs", |(own, _)| own.count().to_string()),
        ("per second", |(own, _)| digits(own.median(|run| run.reached.per_second), 0)),
        ("least", |(own, _)| digits(own.least(|run| run.reached.per_second), 0)),
        ("most", |(own, _)| digits(own.most(|run| run.reached.per_second), 0)),
        ("of wrk", |(own, wrk)| own.cell_of(*wrk, |run| run.reached.per_second)),
        ("p50 us", |(own, _)| micros(own, |reached| reached.p50_us)),
        ("p99 us", |(own, _)| micros(own, |reached| reached.p99_us)),
        ("server's core", |(own, _)| percent(own.median(|run| run.busy.server))),
        ("nginx", |(own, _)| percent(own.median(|run| run.busy.process))),
        ("client's core", |(own, _)| percent(own.median(|run| run.busy.client))),
        ("MB", |(own, _)| megabytes(own.median(|run| run.memory as f64))),
    ];
    let wrk = find(all, "wrk");
    let rows = all.iter();
    let rows = rows.map(|own| with_rate(cells(&columns, &(own, wrk)), own.count() > 0));
    print_cells(mode.title, &columns, rows);
    println!(
        "wrk, ab: as fast as they are answered; httperf, linkweir load: the highest rate on a schedule that was kept; \
         of wrk: by rounds; nginx: its process, of a core; MB: resident"
    );
}

/// The cells of a row; where no rate was kept, those up to `runs`, and that.
fn with_rate(mut cells: Vec<String>, is_kept: bool) -> Vec<String> {
    if !is_kept {
        cells.truncate(3);
        cells.push("no rate kept".to_owned());
    }
    cells
}

/// The middle of the times that are reported.
fn micros(runs: &Runs<Run>, part: fn(&Reached) -> Option<f64>) -> String {
    let reported = runs.iter().filter_map(|run| part(&run.reached));
    let reported: Runs<f64> = reported.map(Some).collect();
    match reported.count() {
        0 => "-".to_owned(),
        _ => digits(reported.median(|micros| *micros), 0),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rows::ROWS;
    use super::*;

    /// A row with these rates and this use of the server's core.
    pub(crate) fn series(word: &str, rates: &[f64], server: f64) -> Series {
        let run = |per_second: &f64| Run {
            reached: Reached {
                per_second: *per_second,
                p50_us: None,
                p99_us: None,
            },
            busy: Busy {
                server,
                process: server,
                ..Busy::default()
            },
            memory: 0,
        };
        Series {
            row: ROWS.iter().find(|row| row.word == word).unwrap(),
            runs: rates.iter().map(run).map(Some).collect(),
        }
    }

    #[test]
    fn a_server_is_full_in_the_middle_run() {
        let wrk = series("wrk", &[10.0, 20.0, 10.0], 0.5);
        let ab = series("ab", &[20.0, 20.0, 15.0], 0.96);
        assert!(is_server_full(&ab) && !is_server_full(&wrk));
        let none: Runs<Run> = [None].into_iter().collect();
        assert!(!is_server_full(&none));
        let cells = || vec!["cell".to_owned(); 13];
        assert_eq!(with_rate(cells(), true), cells());
        assert_eq!(with_rate(cells(), false).last().unwrap(), "no rate kept");
        assert_eq!(micros(&ab, |reached| reached.p50_us), "-");
        assert_eq!(micros(&ab, |reached| Some(reached.per_second)), "20");
    }
}
