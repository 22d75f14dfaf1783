//! Programs that are compared on the same captures: how each is run, what it cost, and how they compare.

use super::captures::Capture;
use super::harness::{self, Cost, Job, Row, Runs, Target, cost, find, remove, rounds, text};
use crate::shell;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Rounds of the slow programs, whose ratio is far from its target.
pub(super) const SLOW_ROUNDS: usize = 3;

/// How a program is run over a capture.
#[derive(Debug)]
pub(super) struct Over {
    /// One of ours, or what is looked for on the path.
    pub(super) program: &'static str,
    /// Its arguments; `{in}` is the capture, `{keys}` the key log beside it, `{out}` where it writes, `{summary}`
    /// another file.
    pub(super) args: &'static [&'static str],
    /// Whether a run takes many times what the others take: fewer rounds will do.
    pub(super) is_slow: bool,
    /// Whether it writes into a directory that must be there.
    pub(super) into_directory: bool,
    /// Looks at what it wrote, and gives the flows that it found, where it says so.
    pub(super) found: fn(&Ran<'_>) -> Result<Option<u64>>,
    /// Targets: by the name of a capture, how many times the packets per second of this ours must make.
    pub(super) least: &'static [(&'static str, f64)],
}

/// A program, and its arguments.
pub(super) const fn over(program: &'static str, args: &'static [&'static str]) -> Over {
    Over {
        program,
        args,
        is_slow: false,
        into_directory: false,
        found: |_| Ok(None),
        least: &[],
    }
}

impl Over {
    pub(super) const fn slow(mut self) -> Self {
        self.is_slow = true;
        self
    }

    pub(super) const fn into_directory(mut self) -> Self {
        self.into_directory = true;
        self
    }

    pub(super) const fn found(mut self, found: fn(&Ran<'_>) -> Result<Option<u64>>) -> Self {
        self.found = found;
        self
    }

    pub(super) const fn least(mut self, least: &'static [(&'static str, f64)]) -> Self {
        self.least = least;
        self
    }
}

/// What a program has left.
#[derive(Debug)]
pub(super) struct Ran<'a> {
    /// Where it was run.
    pub(super) dir: &'a Path,
    /// Packets of the capture.
    pub(super) packets: u64,
}

impl Ran<'_> {
    /// What it wrote.
    pub(super) fn output(&self) -> PathBuf {
        self.dir.join("output")
    }

    /// What it said.
    pub(super) fn stdout(&self) -> PathBuf {
        self.dir.join("stdout")
    }

    /// Its other file.
    pub(super) fn summary(&self) -> PathBuf {
        self.dir.join("summary.json")
    }
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) packets: u64,
    pub(super) wire_bytes: u64,
    pub(super) cost: Cost,
    /// Flows it found, in its own words.
    pub(super) flows: Option<u64>,
}

impl Run {
    /// Packets per second of CPU time.
    pub(super) fn rate(&self) -> f64 {
        self.packets as f64 / self.cost.cpu_s
    }

    /// Peak memory in bytes.
    pub(super) fn peak(&self) -> f64 {
        self.cost.peak_bytes as f64
    }
}

/// The runs of one program on one capture.
pub(super) type Series = harness::Series<Over, Run>;

/// Where the programs are.
#[derive(Debug)]
pub(super) struct Programs {
    /// Those that are not looked for on the path.
    pub(super) own: Vec<(&'static str, PathBuf)>,
    /// In memory.
    pub(super) dir: PathBuf,
}

impl Programs {
    /// The path of a program, where it is installed.
    pub(super) fn path(&self, program: &str) -> Option<PathBuf> {
        let own = self.own.iter().find(|(name, _)| *name == program);
        own.map_or_else(|| shell::find(program), |(_, path)| Some(path.clone()))
    }

    /// Runs all that are installed over a capture, in turns; `capture` may give a program another one.
    ///
    /// # Errors
    /// A program failed.
    pub(super) fn compare<'a>(
        &self,
        title: &str,
        rows: impl IntoIterator<Item = &'static Row<Over>>,
        runs: usize,
        capture: impl Fn(&Row<Over>) -> &'a Capture,
    ) -> Result<Vec<Series>> {
        let rows = rows.into_iter();
        let rows = rows.filter(|row| self.path(row.how.program).is_some());
        rounds(title, rows, runs, |round, row, _| {
            if row.how.is_slow && round >= SLOW_ROUNDS {
                return Ok(None);
            }
            self.run(&row.how, capture(row), Stdio::null(), &[])
                .map(Some)
        })
    }

    /// Runs a program over a capture with further words. What it writes goes to the directory of the
    /// captures, in memory, and is removed.
    ///
    /// # Errors
    /// It failed, or left something else than it should.
    pub(super) fn run(
        &self,
        how: &Over,
        capture: &Capture,
        stdin: Stdio,
        words: &[&str],
    ) -> Result<Run> {
        let program = self.path(how.program);
        let program = program.with_context(|| format!("no {}", how.program))?;
        let ran = Ran {
            dir: &self.dir,
            packets: capture.packets,
        };
        remove(&ran.output())?;
        if how.into_directory {
            std::fs::create_dir_all(ran.output())?;
        }
        let names = [
            ("{in}", text(&capture.path)?),
            ("{keys}", text(&capture.keys())?),
            ("{out}", text(&ran.output())?),
            ("{summary}", text(&ran.summary())?),
        ];
        let argument = |word: &&str| {
            let word = (*word).to_owned();
            let named = names.iter();
            named.fold(word, |word, (name, path)| word.replace(name, path))
        };
        let job = Job {
            program: &program,
            args: how.args.iter().chain(words).map(argument).collect(),
            stdin,
            stdout: &ran.stdout(),
        };
        let cost = cost::cost(job, &self.dir)?;
        let flows = (how.found)(&ran)?;
        remove(&ran.output())?;
        Ok(Run {
            packets: capture.packets,
            wire_bytes: capture.wire_bytes,
            cost,
            flows,
        })
    }
}

/// The middle CPU time, seconds.
pub(super) fn cpu_s(runs: &Runs<Run>) -> f64 {
    runs.median(|run| run.cost.cpu_s)
}

/// So much of something that every run had, per second of CPU time.
pub(super) fn per_cpu_s(runs: &Runs<Run>, part: fn(&Run) -> u64) -> f64 {
    runs.iter().next().map_or(f64::NAN, |run| part(run) as f64) / cpu_s(runs)
}

/// Million packets per second of CPU time.
pub(super) fn mpps(runs: &Runs<Run>) -> f64 {
    per_cpu_s(runs, |run| run.packets) * 1e-6
}

/// How many times the packets per second of another, where that is another and was run.
pub(super) fn compared(own: Option<&Series>, other: &Series) -> String {
    own.filter(|own| own.row.word != other.row.word)
        .map_or_else(String::new, |own| {
            format!("{:.2} x", own.ratio(&[other], Run::rate))
        })
}

/// The targets beside the rows that are about a capture of this name; `own` is the word of our row.
pub(super) fn targets(
    capture: &str,
    rows: &'static [Row<Over>],
    all: &[Series],
    own: &str,
) -> Vec<Target> {
    let least = |row: &'static Row<Over>| {
        let of_capture = row.how.least.iter().find(|(name, _)| *name == capture)?;
        Some((row, of_capture.1))
    };
    let targets = rows.iter().filter_map(least).map(|(row, least)| {
        let what = format!(
            "{capture}: at least {least} x the packets/s of {}",
            row.name
        );
        match find(all, own).zip(find(all, row.word)) {
            Some((own, other)) => {
                let ratio = own.ratio(&[other], Run::rate);
                Target::new(what, format!("{ratio:.2} x"), ratio >= least)
            }
            None => Target::not_measured(what),
        }
    });
    targets.collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run of so many packets, seconds of CPU time and bytes of memory.
    pub(crate) fn run(packets: u64, cpu_s: f64, peak_bytes: u64) -> Run {
        Run {
            packets,
            wire_bytes: 0,
            cost: Cost {
                cpu_s,
                wall_s: cpu_s,
                peak_bytes,
            },
            flows: None,
        }
    }

    #[test]
    fn speed_is_compared_round_by_round() {
        let runs = |packets, cpu: &[f64]| -> Runs<Run> {
            cpu.iter()
                .map(|cpu_s| Some(run(packets, *cpu_s, 7)))
                .collect()
        };
        // The second round was twice as slow for both.
        let own = runs(100, &[1.0, 2.0]);
        assert_eq!(own.ratio(&[&runs(100, &[4.0, 8.0, 1.0])], Run::rate), 4.0);
        // A tenth of the packets in the same time is a tenth of the speed.
        assert_eq!(own.ratio(&[&runs(10, &[1.0, 2.0])], Run::rate), 10.0);
        assert!((mpps(&own) - 100.0 / 1.5 * 1e-6).abs() < 1e-12);
    }
}
