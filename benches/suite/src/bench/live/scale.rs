//! N workers, and N consumers of a feeder, of one file: the CPU time of each thread that matters, the time on the clock,
//! what each gets, and the transactions that are lost.
//!
//! A machine with few cores cannot show on the clock what more cores would do. The busiest thread shows it: with a core
//! for each, a run takes as long as that one.

use super::super::harness::{
    Column, Row, Runs, Series, Target, count, digits, print, proc::Threads, rounds, row,
};
use super::readers::summary;
use crate::shell::grouped;
use anyhow::{Context as _, Result, bail, ensure};
use linkweir_testkit::netns::Running;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often the threads are looked at: what they do in the last of these is not counted.
const LOOK: Duration = Duration::from_millis(5);
const TIMEOUT: Duration = Duration::from_secs(600);
/// What the rule without memory may lose, in parts of one: "very few" in the words of the paper.
const FEW: f64 = 0.02;

/// Who distributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// One process reads and measures.
    Alone,
    /// `--workers`.
    Workers,
    /// `linkweir feed --by`, with processes behind it.
    Feed(&'static str),
}

/// What is run.
#[derive(Debug, Clone, Copy)]
struct Division {
    command: &'static str,
    way: Way,
    count: u32,
}

const fn of(command: &'static str, way: Way, count: u32) -> Division {
    Division {
        command,
        way,
        count,
    }
}

#[rustfmt::skip]
static ROWS: [Row<Division>; 17] = [
    row("http", "http", of("http", Way::Alone, 1)),
    row("http-2", "http --workers 2", of("http", Way::Workers, 2)),
    row("http-4", "http --workers 4", of("http", Way::Workers, 4)),
    row("transaction-1", "feed --by transaction, 1 http", of("http", Way::Feed("transaction"), 1)),
    row("transaction-2", "feed --by transaction, 2 http", of("http", Way::Feed("transaction"), 2)),
    row("transaction-4", "feed --by transaction, 4 http", of("http", Way::Feed("transaction"), 4)),
    row("paper-1", "feed --by paper, 1 http", of("http", Way::Feed("paper"), 1)),
    row("paper-2", "feed --by paper, 2 http", of("http", Way::Feed("paper"), 2)),
    row("paper-4", "feed --by paper, 4 http", of("http", Way::Feed("paper"), 4)),
    row("flow-2", "feed --by flow, 2 http", of("http", Way::Feed("flow"), 2)),
    row("flow-4", "feed --by flow, 4 http", of("http", Way::Feed("flow"), 4)),
    row("flows", "flows", of("flows", Way::Alone, 1)),
    row("flows-2", "flows --workers 2", of("flows", Way::Workers, 2)),
    row("flows-4", "flows --workers 4", of("flows", Way::Workers, 4)),
    row("flows-flow-1", "feed --by flow, 1 flows", of("flows", Way::Feed("flow"), 1)),
    row("flows-flow-2", "feed --by flow, 2 flows", of("flows", Way::Feed("flow"), 2)),
    row("flows-flow-4", "feed --by flow, 4 flows", of("flows", Way::Feed("flow"), 4)),
];

/// What a run took and gave.
#[derive(Debug, Clone, Default)]
struct Ran {
    wall_s: f64,
    /// CPU time of the thread that distributes; 0 where none does.
    dispatcher_s: f64,
    /// Of each that measures.
    consumers_s: Vec<f64>,
    /// Of all other threads: with workers, the one that writes.
    others_s: f64,
    /// Packets of each that measures.
    packets: Vec<u64>,
    /// Transactions, or flows.
    records: u64,
}

impl Ran {
    fn busiest(&self) -> f64 {
        let all = self.consumers_s.iter().copied();
        all.fold(self.dispatcher_s.max(self.others_s), f64::max)
    }

    fn all(&self) -> f64 {
        self.dispatcher_s + self.others_s + self.consumers_s.iter().sum::<f64>()
    }

    fn shares(&self) -> String {
        let all: u64 = self.packets.iter().sum();
        let percent = |packets: &u64| format!("{:.1}", *packets as f64 * 100.0 / all.max(1) as f64);
        self.packets
            .iter()
            .map(percent)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// A row of the table: what was run, what that came to, the same by one process.
type Cells<'a> = (&'a Series<Division, Ran>, &'a Series<Division, Ran>);

/// The columns of the table.
fn columns<'a>() -> [Column<Cells<'a>>; 9] {
    [
        ("run", |(own, _)| own.row.name.to_owned()),
        ("clock s", |(own, _)| {
            digits(own.median(|ran| ran.wall_s), 2)
        }),
        ("CPU s: all", |(own, _)| digits(own.median(Ran::all), 2)),
        ("dispatcher", |(own, _)| {
            digits(own.median(|ran| ran.dispatcher_s), 2)
        }),
        ("most of a consumer", |(own, _)| {
            digits(
                own.median(|ran| ran.consumers_s.iter().copied().fold(0.0, f64::max)),
                2,
            )
        }),
        ("writer", |(own, _)| {
            digits(own.median(|ran| ran.others_s), 2)
        }),
        ("busiest, times one", |(own, one)| {
            own.cell_of(Some(*one), Ran::busiest)
        }),
        ("packets, %", |(own, _)| {
            own.iter().last().map_or_else(String::new, Ran::shares)
        }),
        ("records lost", |(own, one)| grouped(lost(own, one))),
    ]
}

/// Records of one process that are not there; the most of any round.
fn lost(own: &Runs<Ran>, one: &Runs<Ran>) -> u64 {
    let whole = one.iter().map(|ran| ran.records).max().unwrap_or(0);
    let least = own.iter().map(|ran| ran.records).min().unwrap_or(0);
    whole.saturating_sub(least)
}

/// Measures all rows over `capture`; prints the table.
pub(super) fn all(linkweir: &Path, capture: &Path, runs: usize, dir: &Path) -> Result<Vec<Target>> {
    let site = Site {
        linkweir,
        capture,
        dir,
    };
    let all = rounds("scale", &ROWS, runs, |round, row, _| {
        site.run(round, row).map(Some)
    })?;
    let one_of = |command: &str| {
        let one = all.iter().find(|series| series.row.word == command);
        one.with_context(|| format!("no row `{command}`"))
    };
    let (http, flows) = (one_of("http")?, one_of("flows")?);
    let one = |series: &Series<Division, Ran>| {
        if series.row.how.command == "http" {
            http
        } else {
            flows
        }
    };
    let packets = http
        .iter()
        .flat_map(|ran| &ran.packets)
        .max()
        .copied()
        .unwrap_or(0);
    let title = format!(
        "{}: {} packets, {} transactions, {} flows; CPU time by thread, median of {runs}",
        capture.display(),
        grouped(packets),
        grouped(http.iter().map(|ran| ran.records).max().unwrap_or(0)),
        grouped(flows.iter().map(|ran| ran.records).max().unwrap_or(0)),
    );
    print(
        &title,
        &columns(),
        all.iter().map(|series| (series, one(series))),
    );
    Ok(all
        .iter()
        .flat_map(|series| targets(series, one(series)))
        .collect())
}

/// What is promised of a row.
fn targets(own: &Series<Division, Ran>, one: &Series<Division, Ran>) -> Vec<Target> {
    let (name, how) = (own.row.name, own.row.how);
    let (gone, whole) = (
        lost(own, one),
        one.iter().map(|ran| ran.records).max().unwrap_or(0),
    );
    let mut targets = Vec::new();
    match how.way {
        Way::Alone => {}
        Way::Feed("paper") => {
            let part = gone as f64 / whole.max(1) as f64;
            let what = format!(
                "{name}: at most {:.0} % of the transactions are lost",
                FEW * 100.0
            );
            targets.push(Target::new(
                what,
                format!("{:.2} %", part * 100.0),
                whole > 0 && part <= FEW,
            ));
        }
        _ => {
            let what = format!("{name}: no record is lost");
            targets.push(Target::new(what, grouped(gone), whole > 0 && gone == 0));
        }
    }
    if how.count > 1 {
        let part = own.ratio(&[one], Ran::busiest);
        let what = format!(
            "{name}: the busiest thread has 1/{} of the work of one process",
            how.count
        );
        let figure = format!("{part:.2} of it");
        targets.push(Target::new(
            what,
            figure,
            part <= 1.0 / f64::from(how.count) * 1.1,
        ));
    }
    targets
}

/// Where it is run.
struct Site<'a> {
    linkweir: &'a Path,
    capture: &'a Path,
    dir: &'a Path,
}

impl Site<'_> {
    fn run(&self, round: usize, row: &Row<Division>) -> Result<Ran> {
        let Division {
            command,
            way,
            count,
        } = row.how;
        let summaries: Vec<PathBuf> = match way {
            Way::Feed(_) => (0..count)
                .map(|number| self.dir.join(format!("scale-{number}.json")))
                .collect(),
            Way::Alone | Way::Workers => vec![self.dir.join("scale.json")],
        };
        let mut programs = Vec::new();
        let begin = Instant::now();
        match way {
            Way::Alone | Way::Workers => {
                let mut command = self.consumer(command, summaries.first().context("a summary")?);
                command
                    .arg("-r")
                    .arg(self.capture)
                    .args(["--workers", &count.to_string()]);
                programs.push(Running::start(&mut command)?);
            }
            Way::Feed(by) => {
                let name = format!("scale-{}-{round}-{}", std::process::id(), row.word);
                let mut feeder = Command::new(self.linkweir);
                feeder
                    .args([
                        "feed",
                        "-q",
                        "--by",
                        by,
                        "--name",
                        &name,
                        "--when-full",
                        "wait",
                        // Of a file no more has to wait, and what is small stays in a cache.
                        "--ring",
                        "4MiB",
                    ])
                    .args(["--consumers", &count.to_string(), "-r"])
                    .arg(self.capture)
                    .stderr(Stdio::piped());
                programs.push(Running::start(&mut feeder)?);
                for (number, summary) in summaries.iter().enumerate() {
                    let mut command = self.consumer(command, summary);
                    command.args(["--feed", &format!("{name}/{number}")]);
                    programs.push(Running::start(&mut command)?);
                }
            }
        }
        let (times, wall) = watch(programs, begin)?;
        let mut ran = split(way, count, &times)?;
        ran.wall_s = wall.as_secs_f64();
        for path in &summaries {
            take(&mut ran, command, &summary(path)?)?;
        }
        Ok(ran)
    }

    fn consumer(&self, command: &str, summary: &Path) -> Command {
        let mut consumer = Command::new(self.linkweir);
        consumer
            .args([command, "-q", "--overwrite", "-w", "/dev/null", "--format"])
            .arg(if command == "http" { "text" } else { "jsonl" })
            .arg("--summary")
            .arg(summary)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        consumer
    }
}

/// Looks at the threads of programs until all have ended; gives the CPU time of each thread, by program.
fn watch(mut programs: Vec<Running>, begin: Instant) -> Result<(Vec<Vec<f64>>, Duration)> {
    let mut times: Vec<Threads> = programs.iter().map(|_| Threads::default()).collect();
    loop {
        let mut are_running = false;
        for (program, times) in programs.iter_mut().zip(&mut times) {
            if program.ended()?.is_none() {
                are_running = true;
                times.update(&Threads::of(program.id()));
            }
        }
        let wall = begin.elapsed();
        if !are_running {
            for program in programs {
                let output = program.output()?;
                // A distributed half may be missing: that is what is counted.
                if !matches!(output.status.code(), Some(0 | 1)) {
                    bail!(
                        "{}: {}",
                        output.status,
                        String::from_utf8_lossy(&output.stderr).trim()
                    );
                }
            }
            return Ok((times.iter().map(Threads::each).collect(), wall));
        }
        ensure!(wall < TIMEOUT, "a run does not end");
        std::thread::sleep(LOOK);
    }
}

/// Which thread did what. Threads are in the order in which they were started: the one that writes, the one that
/// distributes where workers do not take turns, the workers.
fn split(way: Way, count: u32, times: &[Vec<f64>]) -> Result<Ran> {
    let mut ran = Ran::default();
    match (way, times) {
        (Way::Alone, [threads]) => ran.consumers_s.push(threads.iter().sum()),
        (Way::Workers, [threads]) => {
            let count = count as usize;
            let (others, workers) = threads.split_at(threads.len().saturating_sub(count));
            (ran.others_s, ran.dispatcher_s) = match others {
                [writer] => (*writer, 0.0),
                [writer, dispatcher] => (*writer, *dispatcher),
                _ => bail!("{} threads", threads.len()),
            };
            ran.consumers_s = workers.to_vec();
        }
        (Way::Feed(_), [feeder, consumers @ ..]) => {
            ran.dispatcher_s = feeder.iter().sum();
            ran.consumers_s = consumers
                .iter()
                .map(|threads| threads.iter().sum())
                .collect();
        }
        _ => bail!("{} programs", times.len()),
    }
    Ok(ran)
}

/// Adds what a summary says.
fn take(ran: &mut Ran, command: &str, summary: &Value) -> Result<()> {
    let workers = summary.get("workers").and_then(Value::as_array);
    match workers.map(Vec::as_slice) {
        Some(workers @ [_, ..]) => {
            for worker in workers {
                ran.packets.push(count(worker, "packets")?);
            }
        }
        _ => ran.packets.push(count(summary, "packets")?),
    }
    ran.records += match command {
        "http" => count(summary, "http/transactions")?,
        _ => count(summary, "records")?,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::harness::{assert_different, reached};
    use super::*;

    #[test]
    fn rows_are_different() {
        assert_different(&ROWS.each_ref().map(|row| row.word));
        assert_different(&ROWS.each_ref().map(|row| row.name));
    }

    #[test]
    fn threads_by_their_order() {
        let ran = split(Way::Workers, 2, &[vec![0.5, 1.0, 1.5]]).unwrap();
        assert_eq!((ran.dispatcher_s, ran.others_s), (0.0, 0.5));
        assert_eq!(
            (ran.consumers_s.as_slice(), ran.busiest()),
            ([1.0, 1.5].as_slice(), 1.5)
        );
        let ran = split(Way::Workers, 2, &[vec![0.5, 3.0, 1.0, 1.5]]).unwrap();
        assert_eq!((ran.dispatcher_s, ran.others_s), (3.0, 0.5));
        assert!(split(Way::Workers, 4, &[vec![0.5, 3.0, 1.0, 1.5]]).is_err());
        let ran = split(
            Way::Feed("flow"),
            2,
            &[vec![1.0, 0.5], vec![2.0], vec![1.0]],
        )
        .unwrap();
        assert_eq!(
            (ran.dispatcher_s, ran.busiest(), ran.all()),
            (1.5, 2.0, 4.5)
        );
    }

    #[test]
    fn what_is_promised() {
        let series = |word: &str, busiest: f64, records: u64| {
            let ran = Ran {
                consumers_s: vec![busiest],
                records,
                ..Ran::default()
            };
            Series {
                row: ROWS.iter().find(|row| row.word == word).unwrap(),
                runs: [Some(ran)].into_iter().collect(),
            }
        };
        let one = series("http", 1.0, 1000);
        let of = |word, busiest, records| reached(&targets(&series(word, busiest, records), &one));
        assert!(of("http", 1.0, 1000).is_empty());
        assert_eq!(of("http-2", 0.54, 1000), [true, true]);
        assert_eq!(of("http-4", 0.54, 999), [false, false]);
        assert_eq!(of("paper-2", 0.5, 980), [true, true]);
        assert_eq!(of("paper-1", 5.0, 979), [false]);
    }
}
