//! The table: how many connections and requests a second each program makes.

use super::cores::Busy;
use super::peers::{self, Reached};
use super::row::{Mode, Tool};
use super::search::{self, Steps};
use super::site::{Ended, Site};
use super::{Plan, generator};
use crate::bench::measure::median;
use crate::bench::progress;
use crate::shell::{grouped, print_table};
use anyhow::{Context as _, Result};
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

/// The runs of one program. One that kept no rate has none.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) tool: Tool,
    pub(super) mode: Mode,
    /// By round.
    pub(super) runs: Vec<Option<Run>>,
}

impl Series {
    fn values(&self, part: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.runs.iter().flatten().map(part).collect()
    }

    pub(super) fn median(&self, part: impl Fn(&Run) -> f64) -> f64 {
        median(&self.values(part))
    }

    /// How many times the rate of another this is: the median of the ratios by round.
    pub(super) fn over(&self, other: &Self) -> f64 {
        let rounds = self.runs.iter().zip(&other.runs);
        let ratios = rounds.filter_map(|(own, its)| {
            Some(own.as_ref()?.reached.per_second / its.as_ref()?.reached.per_second)
        });
        median(&ratios.collect::<Vec<f64>>())
    }

    /// Whether the server's core was full in the middle run.
    pub(super) fn is_server_full(&self) -> bool {
        self.median(|run| run.busy.server) >= FULL
            && self.median(|run| run.busy.process) >= FULL_OF_NGINX
    }
}

/// Runs the rows in turns.
pub(super) fn measure(
    plan: &Plan,
    site: &Site,
    binary: &Path,
    tools: &[Tool],
    mode: Mode,
) -> Result<Vec<Series>> {
    let series = |tool: &Tool| Series {
        tool: *tool,
        mode,
        runs: Vec::new(),
    };
    let mut all: Vec<Series> = tools.iter().map(series).collect();
    for round in 0..plan.runs {
        let mut of_wrk = 10_000.0;
        for series in &mut all {
            let last = series.runs.iter().flatten().last();
            // What was found in the last round is kept again, or nearly.
            let search = match last {
                Some(run) => (run.reached.per_second * AGAIN, Steps::NARROW),
                None => (of_wrk * START, Steps::WIDE),
            };
            let name = series.tool.name();
            let run = once(
                plan,
                site,
                binary,
                (series.tool, mode),
                search,
                &mut |rate| {
                    progress(&format!("round {}: {name} {rate:.0}/s", round + 1));
                },
            );
            let run = run.context(name)?;
            if let (Tool::Wrk, Some(run)) = (series.tool, &run) {
                of_wrk = run.reached.per_second;
            }
            series.runs.push(run);
        }
    }
    progress("");
    Ok(all)
}

fn once(
    plan: &Plan,
    site: &Site,
    binary: &Path,
    (tool, mode): (Tool, Mode),
    (start, steps): (f64, Steps),
    tell: &mut dyn FnMut(f64),
) -> Result<Option<Run>> {
    let seconds = plan.seconds;
    let mut at = |rate: f64| -> Result<Option<(Reached, Ended)>> {
        tell(rate);
        match tool {
            Tool::Wrk => peers::wrk(site, mode, seconds).map(Some),
            Tool::Ab => peers::ab(site, mode, seconds).map(Some),
            Tool::Httperf => peers::httperf(site, mode, seconds, rate),
            Tool::Linkweir(clients) => {
                generator::at_rate(site, binary, (clients, mode), seconds, rate)
            }
        }
    };
    let found = if tool.is_open_loop() {
        search::highest(start, steps, at)?.map(|(_, found)| found)
    } else {
        at(0.0)?
    };
    Ok(found.map(|(reached, ended)| Run {
        reached,
        busy: ended.busy,
        memory: ended.memory,
    }))
}

/// Prints the table of a mode.
pub(super) fn table(mode: Mode, all: &[Series]) {
    let header = [
        "program",
        "client addresses",
        "runs",
        "per second",
        "least",
        "most",
        "of wrk",
        "p50 us",
        "p99 us",
        "server's core",
        "nginx",
        "client's core",
        "MB",
    ];
    let wrk = all.iter().find(|series| series.tool == Tool::Wrk);
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(all.iter().map(|series| cells(series, wrk)));
    println!("\n{}", mode.title());
    print_table(&rows);
    println!(
        "wrk, ab: as fast as they are answered; httperf, linkweir load: the highest rate on a schedule that was kept; \
         of wrk: by rounds; nginx: its process, of a core; MB: resident"
    );
}

fn cells(series: &Series, wrk: Option<&Series>) -> Vec<String> {
    let rates = || series.values(|run| run.reached.per_second);
    let percent = |part: fn(&Run) -> f64| format!("{:.0} %", 100.0 * series.median(part));
    let micros = |part: fn(&Reached) -> Option<f64>| {
        let told = series
            .runs
            .iter()
            .flatten()
            .filter_map(|run| part(&run.reached));
        let told: Vec<f64> = told.collect();
        if told.is_empty() {
            "-".to_owned()
        } else {
            format!("{:.0}", median(&told))
        }
    };
    let mut cells = vec![
        series.tool.name().to_owned(),
        grouped(series.tool.addresses()),
        series.runs.iter().flatten().count().to_string(),
    ];
    if rates().is_empty() {
        cells.push("no rate kept".to_owned());
        return cells;
    }
    let least = rates().into_iter().fold(f64::INFINITY, f64::min);
    let most = rates().into_iter().fold(0.0, f64::max);
    cells.extend([
        format!("{:.0}", series.median(|run| run.reached.per_second)),
        format!("{least:.0}"),
        format!("{most:.0}"),
        wrk.map(|wrk| format!("{:.2}", series.over(wrk)))
            .unwrap_or_default(),
        micros(|reached| reached.p50_us),
        micros(|reached| reached.p99_us),
        percent(|run| run.busy.server),
        percent(|run| run.busy.process),
        percent(|run| run.busy.client),
        format!("{:.1}", series.median(|run| run.memory as f64) * 1e-6),
    ]);
    cells
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row with these rates and this use of the server's core.
    pub(crate) fn series(tool: Tool, mode: Mode, rates: &[f64], server: f64) -> Series {
        let run = |per_second: &f64| {
            Some(Run {
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
            })
        };
        Series {
            tool,
            mode,
            runs: rates.iter().map(run).collect(),
        }
    }

    #[test]
    fn ratios_are_by_round() {
        let wrk = series(Tool::Wrk, Mode::Close, &[10.0, 20.0, 10.0], 0.5);
        let mut ab = series(Tool::Ab, Mode::Close, &[20.0, 20.0, 15.0], 0.96);
        assert_eq!(ab.over(&wrk), 1.5);
        assert!(ab.is_server_full() && !wrk.is_server_full());
        // A round without a rate is none.
        ab.runs[0] = None;
        assert_eq!(ab.over(&wrk), 1.25);
        ab.runs = vec![None];
        assert!(ab.over(&wrk).is_nan() && !ab.is_server_full());
        assert_eq!(cells(&ab, Some(&wrk)).last().unwrap(), "no rate kept");
    }
}
