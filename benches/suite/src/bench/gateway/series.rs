//! Runs of the rows in turns, and the table of them.

use super::between::Between;
use super::cost::{Clock, Used, memory};
use super::download;
use super::policy::WINDOW_KIB;
use super::programs::Programs;
use super::row::Row;
use super::site::{DOWNLOAD, Site};
use super::{Plan, sweep};
use crate::bench::measure::median;
use crate::bench::progress;
use crate::shell::{grouped, print_table};
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::gateway::QueueCounters;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Bytes of the longest IP packet: a download that is queued to its end has at least so many packets.
const LONGEST: f64 = 65_535.0;

/// One run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    pub(super) gbit_s: f64,
    pub(super) used: Used,
    /// Packets that went through a queue.
    pub(super) queued: u64,
    /// Packets that the kernel dropped because a queue or its socket was full.
    pub(super) dropped: u64,
    /// Resident memory of the programs, bytes.
    pub(super) memory: u64,
    /// Of one core, by clamd.
    pub(super) clamd: f64,
}

/// The runs of one row.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) row: Row,
    pub(super) runs: Vec<Run>,
}

impl Series {
    pub(super) fn median(&self, part: impl Fn(&Run) -> f64) -> f64 {
        median(&self.runs.iter().map(part).collect::<Vec<_>>())
    }

    pub(super) fn sum(&self, part: impl Fn(&Run) -> u64) -> u64 {
        self.runs.iter().map(part).sum()
    }
}

/// The median over the rounds of what one row makes of the smallest of others.
pub(super) fn ratio(own: &Series, others: &[&Series]) -> f64 {
    let of_round = |(at, run): (usize, &Run)| {
        let rates = others
            .iter()
            .map(|other| other.runs.get(at).map(|run| run.gbit_s));
        let least = rates
            .collect::<Option<Vec<f64>>>()?
            .into_iter()
            .reduce(f64::min)?;
        Some(run.gbit_s / least)
    };
    let ratios: Vec<f64> = own.runs.iter().enumerate().filter_map(of_round).collect();
    median(&ratios)
}

/// What all measurements need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds<'a> {
    pub(super) plan: &'a Plan,
    pub(super) programs: &'a Programs,
    /// Socket and process of clamd, where it runs.
    pub(super) clamd: Option<(&'a Path, u32)>,
}

impl Rounds<'_> {
    /// Runs rows in turns.
    pub(super) fn of(&self, site: &Site, rows: &[Row]) -> Result<Vec<Series>> {
        let is_possible = |row: &&Row| {
            (self.clamd.is_some() || !row.scans())
                && (self.programs.squid.is_some() || **row != Row::Squid)
        };
        let series = |row: &Row| Series {
            row: *row,
            runs: Vec::new(),
        };
        let mut all: Vec<Series> = rows.iter().filter(is_possible).map(series).collect();
        for round in 0..self.plan.runs {
            for series in &mut all {
                progress(&format!("round {}: {}", round + 1, series.row.name()));
                let run = match series.row {
                    Row::Automaton => self.automaton(site),
                    Row::Clamd => self.clamd_alone(site, WINDOW_KIB),
                    row => self.through(site, row),
                };
                series.runs.push(run.with_context(|| series.row.name())?);
            }
        }
        progress("");
        Ok(all)
    }

    /// Downloads through a row.
    fn through(&self, site: &Site, row: Row) -> Result<Run> {
        let between = Between::start(self, site, row)?;
        let run = self.downloads(site, &between.ids())?;
        between.finish()?;
        let packets = run.queued as f64;
        let least = run.gbit_s * 1e9 / 8.0 * f64::from(self.plan.seconds) / LONGEST;
        if row.is_queued() && packets < least {
            bail!("only {packets} packets were queued: the downloads went past it");
        }
        Ok(run)
    }

    /// Downloads through what stands there now; `ids` are its processes.
    pub(super) fn downloads(&self, site: &Site, ids: &[u32]) -> Result<Run> {
        let clamd: Vec<u32> = self.clamd.iter().map(|(_, id)| *id).collect();
        let begin = (Clock::now(ids)?, Clock::now(&clamd)?);
        let before = Counters::of(&site.net().queues());
        let downloaded = download::run(site, self.plan)?;
        let end = (Clock::now(ids)?, Clock::now(&clamd)?);
        let after = Counters::of(&site.net().queues());
        let mut resident = 0;
        for id in ids {
            resident += memory(*id)?.0;
        }
        Ok(Run {
            gbit_s: downloaded.gbit_s(),
            used: end.0.since(&begin.0),
            queued: after.queued.saturating_sub(before.queued),
            dropped: after.dropped,
            memory: resident,
            clamd: end.1.since(&begin.1).processes,
        })
    }

    /// The keyword automaton over the file that is downloaded.
    fn automaton(&self, site: &Site) -> Result<Run> {
        let mut keywords = Command::new(self.programs.own("keywords"));
        keywords
            .arg(site.path("keywords"))
            .arg(site.file("file.bin"));
        keywords.arg(self.plan.seconds.to_string());
        let output = crate::shell::output(&mut keywords)?;
        let said: Value = serde_json::from_slice(&output).context("keywords")?;
        let rate = said
            .get("mb_per_s")
            .and_then(Value::as_f64)
            .context("no `mb_per_s`")?;
        Ok(Run {
            gbit_s: rate * 8e-3,
            ..Run::default()
        })
    }

    /// clamd without a network: windows of that many KiB from memory.
    pub(super) fn clamd_alone(&self, site: &Site, window_kib: u32) -> Result<Run> {
        let (socket, id) = self.clamd.context("there is no clamd")?;
        let begin = Clock::now(&[id])?;
        let output = site
            .gateway(self.programs.example("throughput"))
            .args(["--connections", &self.plan.connections.to_string()])
            .args(["--seconds", &self.plan.seconds.to_string(), "--socket"])
            .arg(socket)
            .arg(window_kib.to_string())
            .stderr(Stdio::inherit())
            .output()
            .context("run throughput")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let rate = sweep::rate(&said).with_context(|| format!("throughput: {}", said.trim()))?;
        let used = Clock::now(&[id])?.since(&begin);
        Ok(Run {
            gbit_s: rate * 8e-3,
            clamd: used.processes,
            used: Used {
                processes: 0.0,
                ..used
            },
            ..Run::default()
        })
    }
}

/// Sums over all queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counters {
    queued: u64,
    dropped: u64,
}

impl Counters {
    fn of(queues: &[QueueCounters]) -> Self {
        queues.iter().fold(Self::default(), |sum, queue| Self {
            queued: sum.queued + queue.packets,
            dropped: sum.dropped + queue.dropped + queue.user_dropped,
        })
    }
}

/// Prints the table.
pub(super) fn table(title: &str, all: &[Series]) {
    let header = [
        "row",
        "runs",
        "Gbit/s",
        "least",
        "most",
        "forward",
        "its CPU",
        "clamd",
        "machine",
        "kernel",
        "queued",
        "bytes each",
        "dropped",
        "MB",
    ];
    let forward = all.iter().find(|series| series.row == Row::Forward);
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for series in all {
        rows.push(cells(series, forward));
    }
    println!("\n{title}: {DOWNLOAD} bytes each");
    print_table(&rows);
    println!(
        "forward: part of that row, by rounds; its CPU, clamd: of one core; machine, kernel: of all cores; \
         queued: packets per run; bytes each: of the downloads, per queued packet; dropped: by the kernel, all runs; \
         MB: resident"
    );
}

fn cells(series: &Series, forward: Option<&Series>) -> Vec<String> {
    let rates = || series.runs.iter().map(|run| run.gbit_s);
    let percent = |part: fn(&Run) -> f64| format!("{:.0} %", 100.0 * series.median(part));
    let mut cells = vec![
        series.row.name().to_owned(),
        series.runs.len().to_string(),
        format!("{:.2}", series.median(|run| run.gbit_s)),
        format!("{:.2}", rates().fold(f64::INFINITY, f64::min)),
        format!("{:.2}", rates().fold(0.0, f64::max)),
    ];
    if matches!(series.row, Row::Automaton | Row::Clamd) {
        return cells;
    }
    let of_forward = forward.map(|forward| format!("{:.2}", ratio(series, &[forward])));
    let queued = series.median(|run| run.queued as f64);
    let each = series.median(|run| run.gbit_s * 1e9 / 8.0 / run.queued.max(1) as f64);
    cells.push(of_forward.unwrap_or_default());
    cells.extend([
        percent(|run| run.used.processes),
        percent(|run| run.clamd),
        percent(|run| run.used.machine),
        percent(|run| run.used.kernel),
        format!("{queued:.0}"),
        if series.row.is_queued() {
            format!("{each:.0}")
        } else {
            "-".to_owned()
        },
        grouped(series.sum(|run| run.dropped)),
        format!("{:.1}", series.median(|run| run.memory as f64) * 1e-6),
    ]);
    cells
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row with these rates.
    pub(crate) fn series(row: Row, rates: &[f64]) -> Series {
        let run = |gbit_s: &f64| Run {
            gbit_s: *gbit_s,
            ..Run::default()
        };
        Series {
            row,
            runs: rates.iter().map(run).collect(),
        }
    }

    #[test]
    fn ratios_are_by_round() {
        let own = series(Row::Keywords, &[4.0, 1.0, 9.0]);
        let (accept, automaton) = (
            series(Row::Accept, &[8.0, 2.0, 10.0]),
            series(Row::Automaton, &[5.0, 5.0, 5.0]),
        );
        // 4 of 5, 1 of 2, 9 of 5.
        assert_eq!(ratio(&own, &[&accept, &automaton]), 0.8);
        assert_eq!(ratio(&own, &[&accept]), 0.5);
        // A round in which the other did not run is none.
        assert_eq!(ratio(&own, &[&series(Row::Accept, &[8.0])]), 0.5);
    }

    #[test]
    fn drops_of_all_queues_and_causes_count() {
        let queue = |number, packets, dropped, user_dropped| QueueCounters {
            number,
            waiting: 0,
            dropped,
            user_dropped,
            packets,
        };
        let sum = Counters::of(&[queue(0, 5, 1, 2), queue(1, 7, 0, 4)]);
        let expected = Counters {
            queued: 12,
            dropped: 7,
        };
        assert_eq!(sum, expected);
    }
}
