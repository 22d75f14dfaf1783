//! The table: how many connections and requests a second each program makes.
//!
//! The highest rate that a generator with a schedule of its own can keep.
//!
//! A program that waits for each answer finds the server's limit by itself. One that starts sessions on
//! a schedule is asked for a rate: we go up until it or the server does not follow any more, and then
//! back by halves.

use super::peers::{self, Loaded};
use super::rows::{Mode, Reached, Row, Run, Series, Tool};
use super::site::Site;
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
        let found = highest(start, steps, |rate| {
            progress(&format!("{} {rate:.0}/s", row.name));
            at(rate)
        });
        anyhow::Ok(found?.map(|(_, found)| found))
    };
    let found = match row.how {
        Tool::Wrk => Some(peers::wrk(site, mode, seconds)?),
        Tool::Ab => Some(peers::ab(site, mode, seconds)?),
        Tool::Httperf => highest(&|rate| peers::httperf(site, mode, seconds, rate))?,
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

/// How far a search goes at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Steps {
    /// From one rate to the next while it goes up, and while it goes down to one that is kept.
    factor: f64,
    /// Halvings of the last step.
    halvings: u32,
}

impl Steps {
    /// Where little is known: 1.3, and in the end 1.07.
    pub(super) const WIDE: Self = Self {
        factor: 1.3,
        halvings: 2,
    };
    /// Where the rate is nearly known: 1.07 at once.
    pub(super) const NARROW: Self = Self {
        factor: 1.07,
        halvings: 0,
    };
    /// Most in one direction: a factor of 190.
    const MOST: u32 = 20;
}

/// Looks for the highest rate at which `run` gives something; gives that with the rate. `None` where
/// no rate is kept.
///
/// What else the machine does may spoil a run, so a rate is given up when two runs fail.
pub(super) fn highest<T>(
    start: f64,
    steps: Steps,
    mut run: impl FnMut(f64) -> Result<Option<T>>,
) -> Result<Option<(f64, T)>> {
    let mut kept = |rate: f64| -> Result<Option<T>> {
        match run(rate)? {
            None => run(rate),
            some => Ok(some),
        }
    };
    let mut best: Option<(f64, T)> = None;
    let mut rate = start;
    for _ in 0..Steps::MOST {
        match (kept(rate)?, &best) {
            (Some(figures), _) => {
                let was_going_down = best.is_none() && rate < start;
                best = Some((rate, figures));
                if was_going_down {
                    // The rate above it has failed already.
                    break;
                }
                rate *= steps.factor;
            }
            (None, Some(_)) => break,
            (None, None) => rate /= steps.factor,
        }
    }
    let Some(mut best) = best else {
        return Ok(None);
    };
    let mut step = steps.factor;
    for _ in 0..steps.halvings {
        step = step.sqrt();
        let rate = best.0 * step;
        if let Some(figures) = kept(rate)? {
            best = (rate, figures);
        }
    }
    Ok(Some(best))
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::series;
    use super::*;

    #[test]
    fn a_row_without_a_rate_says_so() {
        let cells = || vec!["cell".to_owned(); 13];
        assert_eq!(with_rate(cells(), true), cells());
        assert_eq!(with_rate(cells(), false).last().unwrap(), "no rate kept");
        let ab = series("ab", &[20.0, 20.0, 15.0], 0.96);
        assert_eq!(micros(&ab, |reached| reached.p50_us), "-");
        assert_eq!(micros(&ab, |reached| Some(reached.per_second)), "20");
    }

    fn found(start: f64, limit: f64, steps: Steps) -> Option<f64> {
        let run = |rate: f64| Ok((rate <= limit).then_some(()));
        highest(start, steps, run).unwrap().map(|(rate, ())| rate)
    }

    #[test]
    fn the_limit_is_found_from_below_and_from_above() {
        for start in [100.0, 900.0, 1000.0, 1100.0, 20_000.0] {
            let rate = found(start, 1000.0, Steps::WIDE).unwrap();
            assert!((930.0..=1000.0).contains(&rate), "{rate} from {start}");
        }
        for start in [800.0, 990.0, 1100.0] {
            let rate = found(start, 1000.0, Steps::NARROW).unwrap();
            assert!((930.0..=1000.0).contains(&rate), "{rate} from {start}");
        }
        assert_eq!(found(1000.0, 1e-9, Steps::WIDE), None);
    }

    #[test]
    fn one_bad_run_is_not_the_limit() {
        let mut runs = 0;
        let run = |rate: f64| {
            runs += 1;
            Ok((rate <= 1000.0 && runs != 2).then_some(()))
        };
        let (rate, ()) = highest(500.0, Steps::WIDE, run).unwrap().unwrap();
        assert!(rate >= 930.0, "{rate}");
    }

    #[test]
    fn what_cannot_be_run_is_an_error() {
        let run = |_| -> Result<Option<()>> { anyhow::bail!("no such program") };
        assert!(highest(1.0, Steps::WIDE, run).is_err());
    }
}
