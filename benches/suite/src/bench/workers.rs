//! Workers of one file, by the clock: how many times as fast as one worker they are.
//!
//! Only so many workers as there are cores are run: with more, a clock shows nothing.

use super::captures::Capture;
use super::harness::{Column, Row, Series, Target, digits, print, rounds, row, text};
use super::programs::Programs;
use anyhow::{Context as _, Result, bail};
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::Instant;

/// A number of workers, and how many times as fast as one they must be.
type Many = (usize, f64);

#[rustfmt::skip]
static ROWS: [Row<Many>; 3] = [
    row("one", "1 worker", (1, 1.0)),
    row("two", "2 workers", (2, 1.8)),
    row("four", "4 workers", (4, 3.4)),
];

/// A command with workers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared {
    pub(super) command: &'static str,
    /// That of its records.
    pub(super) format: &'static str,
}

/// Measures a command over a capture with as many workers as there are cores; prints the table.
///
/// # Errors
/// A run failed.
pub(super) fn by_clock(
    programs: &Programs,
    measured: Shared,
    capture: (&str, &Capture),
    runs: usize,
) -> Result<Vec<Target>> {
    let Shared { command, format } = measured;
    let (name, capture) = capture;
    let cores = available_parallelism()?.get();
    let program = programs.path("linkweir").context("no linkweir")?;
    let input = text(&capture.path)?;
    let rows = ROWS.iter().filter(|row| row.how.0 <= cores);
    let all = rounds(name, rows, runs, |_, row, _| {
        let begin = Instant::now();
        let status = Command::new(&program)
            .args([
                command,
                "-q",
                "--overwrite",
                "-w",
                "/dev/null",
                "--format",
                format,
            ])
            .args(["--workers", &row.how.0.to_string(), "-r", &input])
            .stdout(Stdio::null())
            .status()
            .context("run linkweir")?;
        if !status.success() {
            bail!("linkweir {command}: {status}");
        }
        Ok(Some(begin.elapsed().as_secs_f64()))
    })?;
    let one = all.first().context("no row of one worker")?;
    // The runs of a row, and those of one worker.
    type Cells<'a> = (&'a Series<Many, f64>, &'a Series<Many, f64>);
    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 4] = [
        ("workers", |(own, _)| own.row.name.to_owned()),
        ("clock s, median", |(own, _)| digits(own.median(|wall_s| *wall_s), 3)),
        ("least", |(own, _)| digits(own.least(|wall_s| *wall_s), 3)),
        ("x one worker", |(own, one)| digits(times(own, one), 2)),
    ];
    print(
        &format!("{name}: linkweir {command}, by the clock, {cores} cores"),
        &columns,
        all.iter().map(|own| (own, one)),
    );
    Ok(targets(name, command, &all))
}

/// How many times as fast as one.
fn times(own: &Series<Many, f64>, one: &Series<Many, f64>) -> f64 {
    own.ratio(&[one], |wall_s| wall_s.recip())
}

fn targets(capture: &str, command: &str, all: &[Series<Many, f64>]) -> Vec<Target> {
    let Some((one, several)) = all.split_first() else {
        return Vec::new();
    };
    let of = |own: &Series<Many, f64>| {
        let (name, (_, least)) = (own.row.name, own.row.how);
        let reached = times(own, one);
        Target::new(
            format!(
                "{capture}: {command} with {name} at least {least} x as fast as one, by the clock"
            ),
            format!("{reached:.2} x"),
            reached >= least,
        )
    };
    several.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::harness::reached;
    use super::*;

    #[test]
    fn each_number_of_workers_has_its_target() {
        let walls = [1.9, 1.0, 0.6];
        let series = |(row, wall_s)| Series {
            row,
            runs: [Some(wall_s)].into_iter().collect(),
        };
        let all: Vec<_> = ROWS.iter().zip(walls).map(series).collect();
        assert_eq!(reached(&targets("mix", "http", &all)), [true, false]);
        assert_eq!(reached(&targets("mix", "http", &all[..2])), [true]);
        assert_eq!(reached(&targets("mix", "http", &all[..1])), [false; 0]);
    }
}
