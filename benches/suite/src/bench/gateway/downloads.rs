//! Downloads through the rows in turns, as fast as wrk gets them, and the table of them.

use super::Plan;
use super::between::{Between, Rounds};
use super::policy::WINDOW_KIB;
use super::rows::{Row, Run, Series, Stands};
use super::site::{DOWNLOAD, Site};
use crate::bench::harness::proc::{Clock, memory};
use crate::bench::harness::{self, Column, cells, digits, find, megabytes, number, percent};
use crate::shell::{grouped, root};
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::gateway::QueueCounters;
use serde_json::Value;
use std::process::{Command, Stdio};

/// Bytes of the longest IP packet: a download that is queued to its end has at least so many packets.
const LONGEST: f64 = 65_535.0;

impl Rounds<'_> {
    /// Runs rows in turns.
    pub(super) fn of(
        &self,
        site: &Site,
        rows: impl IntoIterator<Item = &'static Row>,
    ) -> Result<Vec<Series>> {
        let rows = rows.into_iter().filter(|row| self.has(row));
        harness::rounds("downloads", rows, self.plan.runs, |_, row, _| {
            match row.how.stands {
                Stands::Automaton => self.automaton(site),
                Stands::Clamd => self.clamd_alone(site, WINDOW_KIB),
                _ => self.through(site, row),
            }
            .map(Some)
        })
    }

    /// Downloads through a row.
    fn through(&self, site: &Site, row: &Row) -> Result<Run> {
        let between = Between::start(self, site, row)?;
        let run = self.downloads(site, &between.ids())?;
        between.finish()?;
        let packets = run.queued as f64;
        let least = run.gbit_s * 1e9 / 8.0 * f64::from(self.plan.seconds) / LONGEST;
        if row.how.is_queued && packets < least {
            bail!("only {packets} packets were queued: the downloads went past it");
        }
        Ok(run)
    }

    /// Downloads through what stands there now; `ids` are its processes.
    pub(super) fn downloads(&self, site: &Site, ids: &[u32]) -> Result<Run> {
        let clamd: Vec<u32> = self.clamd.iter().map(|(_, id)| *id).collect();
        let begin = (Clock::now(ids)?, Clock::now(&clamd)?);
        let before = Counters::of(&site.net().queues());
        let gbit_s = wrk(site, self.plan)?;
        let end = (Clock::now(ids)?, Clock::now(&clamd)?);
        let after = Counters::of(&site.net().queues());
        let mut resident = 0;
        for id in ids {
            resident += memory(*id)?.0;
        }
        let used = end.0.since(&begin.0);
        Ok(Run {
            gbit_s,
            processes: used.processes(),
            machine: used.machine(),
            kernel: used.kernel(),
            queued: after.queued.saturating_sub(before.queued),
            dropped: after.dropped,
            memory: resident,
            clamd: end.1.since(&begin.1).processes(),
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
        Ok(Run {
            gbit_s: number(&said, "mb_per_s")? * 8e-3,
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
        let rate = rate(&said).with_context(|| format!("throughput: {}", said.trim()))?;
        let used = Clock::now(&[id])?.since(&begin);
        Ok(Run {
            gbit_s: rate * 8e-3,
            clamd: used.processes(),
            machine: used.machine(),
            kernel: used.kernel(),
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

/// wrk: downloads `file.bin` for as long and over as many connections as is planned, with a connection for
/// each download or with connections that are kept; Gbit/s.
pub(super) fn wrk(site: &Site, plan: &Plan) -> Result<f64> {
    let mut wrk = site.client("wrk");
    wrk.args([
        "-t1",
        &format!("-c{}", plan.connections),
        &format!("-d{}s", plan.seconds),
        // A scan may take a while on a machine that does other things.
        "--timeout",
        "10s",
        "-s",
    ])
    .arg(root().join("benches/gateway/wrk.lua"));
    if plan.is_one_each {
        wrk.args(["-H", "Connection: close"]);
    }
    let output = wrk
        .arg(Site::url("file.bin"))
        .stderr(Stdio::inherit())
        .output()
        .context("run wrk")?;
    let said = String::from_utf8_lossy(&output.stdout);
    of_wrk(&said).with_context(|| format!("wrk: {}", said.trim()))
}

fn of_wrk(said: &str) -> Result<f64> {
    let line = said.lines().find(|line| line.starts_with('{'));
    let counted: Value = serde_json::from_str(line.context("no counters")?)?;
    let number = |name| number(&counted, name);
    let (bytes, seconds) = (number("bytes")?, number("duration_us")? * 1e-6);
    // An answer that is not the file, or none, is no download.
    if number("failed")? + number("status")? > 0.0 {
        bail!("not all connections and answers were good");
    }
    if bytes == 0.0 || seconds == 0.0 {
        bail!("nothing came");
    }
    Ok(bytes * 8e-9 / seconds)
}

/// The rate of the program `throughput`, MB/s: the third column of its second line.
fn rate(said: &str) -> Option<f64> {
    said.lines().nth(1)?.split_whitespace().nth(2)?.parse().ok()
}

/// Prints the table.
pub(super) fn table(title: &str, all: &[Series]) {
    // A row, and the one that it is compared with.
    type Cells<'a> = (&'a Series, Option<&'a Series>);
    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 14] = [
        ("row", |(own, _)| own.row.name.to_owned()),
        ("runs", |(own, _)| own.count().to_string()),
        ("Gbit/s", |(own, _)| digits(own.median(|run| run.gbit_s), 2)),
        ("least", |(own, _)| digits(own.least(|run| run.gbit_s), 2)),
        ("most", |(own, _)| digits(own.most(|run| run.gbit_s), 2)),
        ("forward", |(own, forward)| own.cell_of(*forward, |run| run.gbit_s)),
        ("its CPU", |(own, _)| percent(own.median(|run| run.processes))),
        ("clamd", |(own, _)| percent(own.median(|run| run.clamd))),
        ("machine", |(own, _)| percent(own.median(|run| run.machine))),
        ("kernel", |(own, _)| percent(own.median(|run| run.kernel))),
        ("queued", |(own, _)| digits(own.median(|run| run.queued as f64), 0)),
        ("bytes each", |(own, _)| {
            let each = |run: &Run| run.gbit_s * 1e9 / 8.0 / run.queued.max(1) as f64;
            if own.row.how.is_queued {
                digits(own.median(each), 0)
            } else {
                "-".to_owned()
            }
        }),
        ("dropped", |(own, _)| grouped(own.sum(|run| run.dropped))),
        ("MB", |(own, _)| megabytes(own.median(|run| run.memory as f64))),
    ];
    /// What a row that has no network has: up to `most`.
    const OF_LIMITS: usize = 5;
    let forward = find(all, "forward");
    let rows = all.iter().map(|series| {
        let mut cells = cells(&columns, &(series, forward));
        if series.row.how.stands.is_limit() {
            cells.truncate(OF_LIMITS);
        }
        cells
    });
    harness::print_cells(&format!("{title}: {DOWNLOAD} bytes each"), &columns, rows);
    println!(
        "forward: part of that row, by rounds; its CPU, clamd: of one core; machine, kernel: of all cores; \
         queued: packets per run; bytes each: of the downloads, per queued packet; dropped: by the kernel, all runs; \
         MB: resident"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_behind_the_report() {
        let line = |failed| {
            format!(
                "Running 1s test\n  2 requests\n{{\"bytes\":250000000,\"requests\":2,\"duration_us\":1000000,\
                 \"failed\":{failed},\"status\":0,\"p50_us\":1,\"p99_us\":2}}\n"
            )
        };
        assert_eq!(of_wrk(&line(0)).unwrap(), 2.0);
        assert!(of_wrk(&line(1)).is_err());
        assert!(of_wrk("wrk: no such host").is_err());
    }

    #[test]
    fn the_rate_is_read() {
        let said = "window_kib connections mb_per_s scans_per_s\n32 4 104.5 3189 1.2\n";
        assert_eq!(rate(said), Some(104.5));
        assert_eq!(rate("window_kib\n"), None);
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
