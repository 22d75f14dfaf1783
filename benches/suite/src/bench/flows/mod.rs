//! `bench flows`: speed and memory of `linkweir flows` beside other programs on the same captures.
//!
//! Two captures: recorded HTTP traffic of few big connections, and made traffic of 200,000 connections,
//! 50,000 at once, each packet of one chosen by chance. Every row runs on one core, in rounds that take
//! turns; speed is packets per second of CPU time, memory the peak resident size.

use super::captures::{Plan, walk};
use super::harness::{
    Column, Target, digits, find, in_directory, linkweir, megabytes, print, progress, setup,
    verdict,
};
use super::programs::{self, Programs, Run, SLOW_ROUNDS, Series, cpu_s, mpps};
use super::workers::{Shared, by_clock};
use crate::Outcome;
use crate::shell::{self, Options, grouped};
use anyhow::{Context as _, Result};
use growth::{Capture, Measured};
use linkweir_testkit::many_flows::ManyFlows;
use rows::ROWS;
use std::path::PathBuf;
use std::process::{Command, Stdio};

mod growth;
mod hours;
mod rows;

pub(crate) use hours::made;

/// Million packets per second of CPU time with all measurements: what is written, its row, and how many of
/// few big flows and of many flows, where that is promised.
const LEAST_MPPS: [(&str, &str, [Option<f64>; 2]); 2] = [
    ("nothing written", "track", [Some(3.5), Some(3.5)]),
    ("records as jsonl", "jsonl", [None, Some(2.5)]),
];
/// At a million connections at once, nothing written.
const MILLION_MPPS: f64 = 2.0;
/// At 50,000 connections at once.
const MEMORY_MB: f64 = 64.0;
/// At a million.
const MILLION_MB: f64 = 700.0;

/// `bench flows [--packets N] [--capture FILE] [--runs R] [--dir DIR] [--binary FILE] [--keep] [--short]
/// [--hours H [--rate R]]`
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let dir: Option<PathBuf> = options.value("--dir")?;
    let few: Option<PathBuf> = options.value("--capture")?;
    let plan = Plan {
        packets: options.value("--packets")?.unwrap_or(2_000_000),
        keep: options.flag("--keep") || dir.is_some(),
        dir: dir.unwrap_or_else(|| shell::memory_directory("bench-flows")),
    };
    let runs: usize = options.value("--runs")?.unwrap_or(5);
    let binary: Option<PathBuf> = options.value("--binary")?;
    // Without the captures of two million flows and a million at once.
    let is_short = options.flag("--short");
    // Only hours of packet time at so many packets a second, through a pipe.
    let hours: Option<u32> = options.value("--hours")?;
    let rate: u32 = options.value("--rate")?.unwrap_or(hours::RATE);
    options.rest()?;

    setup()?;
    let linkweir = linkweir(binary.as_deref())?;
    in_directory(&plan.dir, plan.keep, |dir| {
        let walk = walk(dir)?;
        let programs = Programs {
            own: vec![("linkweir", linkweir), ("pcapwalk", walk.clone())],
            dir: dir.to_path_buf(),
        };
        if let Some(hours) = hours {
            return hours::run(&programs, hours, rate, runs.clamp(1, SLOW_ROUNDS));
        }
        let few = growth::few(&plan, &walk, few.as_deref())?;
        compare(&plan, &few, &programs, runs.max(1), is_short)
    })
}

fn compare(
    plan: &Plan,
    few: &Capture,
    programs: &Programs,
    runs: usize,
    is_short: bool,
) -> Outcome {
    let many = growth::many(&plan.dir, ManyFlows::default())?;
    println!("{runs} rounds (slow programs: {SLOW_ROUNDS} at most); CPU time on one core, medians");
    let on = |capture: &Capture| {
        let all = programs.compare(&capture.name, &ROWS, runs, |_| &capture.file)?;
        table(capture, &all);
        anyhow::Ok(all)
    };
    let (of_few, of_many) = (on(few)?, on(&many)?);
    table_one(&[(few, &of_few), (&many, &of_many)]);
    let same = workers(programs, few, &many)?;
    let measured = Shared {
        command: "flows",
        format: "jsonl",
    };
    let many_workers = by_clock(programs, measured, (&few.name, &few.file), runs)?;
    if few.file.path.starts_with(&plan.dir) && !plan.keep {
        std::fs::remove_file(&few.file.path)?;
    }
    let million = growth::run(programs, &plan.dir, plan.keep, is_short)?;
    let mut targets = targets(&of_few, &of_many, million, &same);
    targets.extend(many_workers);
    verdict(&targets)
}

/// All targets, in the order in which they are promised; `million` is what was measured of a million
/// connections at once, `same` whether the records are those of one worker, by number of workers.
fn targets(
    few: &[Series],
    many: &[Series],
    million: Measured,
    same: &[(u32, bool)],
) -> Vec<Target> {
    let track = |all| find(all, "track");
    let mut targets = Vec::new();
    let mut speed = |what: String, mpps: f64, least: f64| {
        targets.push(Target::new(
            format!("{what}: at least {least} Mpps with all measurements"),
            format!("{mpps:.2} Mpps"),
            mpps >= least,
        ));
    };
    for (written, word, least) in LEAST_MPPS {
        let captures = [("few big flows", few), ("many flows", many)];
        for ((capture, all), least) in captures.into_iter().zip(least) {
            if let Some(least) = least {
                let mpps = find(all, word).map_or(f64::NAN, |own| mpps(own));
                speed(format!("{capture}, {written}"), mpps, least);
            }
        }
    }
    let (million_mpps, million_mb) = million;
    speed(
        "a million connections at once".to_owned(),
        million_mpps,
        MILLION_MPPS,
    );
    targets.extend(programs::targets("few big flows", &ROWS, few, "track"));
    targets.extend(programs::targets("many flows", &ROWS, many, "track"));
    let peak = track(many).map_or(f64::NAN, |own| own.most(Run::peak) * 1e-6);
    for (what, peak, most) in [
        ("50,000 connections at once", peak, MEMORY_MB),
        ("a million connections at once", million_mb, MILLION_MB),
    ] {
        targets.push(Target::new(
            format!("{what}: at most {most} MB"),
            format!("{peak:.1} MB"),
            peak > 0.0 && peak <= most,
        ));
    }
    targets.extend(same.iter().map(|(workers, same)| {
        Target::new(
            format!("records of {workers} workers are those of one"),
            if *same { "identical" } else { "different" },
            *same,
        )
    }));
    targets
}

fn table(capture: &Capture, all: &[Series]) {
    let title = format!(
        "{}: {} packets{}",
        capture.name,
        grouped(capture.file.packets),
        capture
            .flows
            .map(|flows| format!(", {} connections", grouped(flows)))
            .unwrap_or_default()
    );
    // A row, and ours.
    type Cells<'a> = (&'a Series, Option<&'a Series>);
    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 9] = [
        ("program", |(own, _)| own.row.name.to_owned()),
        ("runs", |(own, _)| own.count().to_string()),
        ("Mpps", |(own, _)| digits(mpps(own), 3)),
        ("ns/packet", |(own, _)| digits(1e3 / mpps(own), 0)),
        ("CPU s", |(own, _)| digits(cpu_s(own), 3)),
        ("wall s", |(own, _)| digits(own.median(|run| run.cost.wall_s), 3)),
        ("MB", |(own, _)| megabytes(own.most(Run::peak))),
        ("flows", |(own, _)| {
            let found = own.iter().last().and_then(|run| run.flows);
            found.map_or_else(String::new, grouped)
        }),
        ("track is", |(own, track)| programs::compared(*track, own)),
    ];
    let track = find(all, "track");
    print(&title, &columns, all.iter().map(|own| (own, track)));
    println!("(argus: status records; nfpcapd: flows of one direction, cut by time)");
}

/// The paper's Table I: what it costs without output and with the archive, and how many times faster
/// than the traffic itself that is.
fn table_one(all: &[(&Capture, &[Series])]) {
    // A capture, the output, and the row with it.
    type Cells<'a> = (&'a Capture, &'static str, &'a Series);
    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 6] = [
        ("capture", |(capture, ..)| capture.name.clone()),
        ("output", |(_, output, _)| (*output).to_owned()),
        ("packets", |(capture, ..)| grouped(capture.file.packets)),
        ("CPU s", |(_, _, own)| digits(cpu_s(own), 3)),
        ("packets/s", |(_, _, own)| digits(mpps(own) * 1e6, 0)),
        ("speed-up", |(capture, _, own)| digits(capture.seconds / cpu_s(own), 1)),
    ];
    let rows = all.iter().flat_map(|(capture, all)| {
        let outputs = [("track", "null"), ("archive", "archive"), ("rrd", "RRD")];
        let row = |(word, output)| Some((*capture, output, find(all, word)?));
        outputs.into_iter().filter_map(row)
    });
    print(
        "Table I of the paper: CPU time, packets/s, speed-up over real time",
        &columns,
        rows,
    );
}

/// Whether the sorted records of several workers are those of one.
fn workers(programs: &Programs, few: &Capture, many: &Capture) -> Result<Vec<(u32, bool)>> {
    let sorted = |capture: &Capture, workers: u32| -> Result<Vec<Vec<u8>>> {
        progress(&format!("records of {workers} workers: {}", capture.name));
        let output = Command::new(programs.path("linkweir").context("no linkweir")?)
            .args(["flows", "-q", "--format", "jsonl", "-w", "-", "--workers"])
            .arg(workers.to_string())
            .arg("-r")
            .arg(&capture.file.path)
            .stderr(Stdio::inherit())
            .output()
            .context("run linkweir")?;
        let lines = output.stdout.split(|byte| *byte == b'\n');
        let mut lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
        lines.sort_unstable();
        Ok(lines)
    };
    let mut same = vec![(2, true), (4, true)];
    for capture in [few, many] {
        let one = sorted(capture, 1)?;
        for (workers, same) in &mut same {
            *same &= sorted(capture, *workers)? == one && one.len() > 1;
        }
    }
    progress("");
    Ok(same)
}

#[cfg(test)]
mod tests {
    use super::super::harness::reached;
    use super::super::programs::tests::run;
    use super::*;

    #[test]
    fn targets_that_are_met_and_missed() {
        let series = |word: &str, cpu_s, peak| Series {
            row: ROWS.iter().find(|row| row.word == word).unwrap(),
            runs: [Some(run(3_500_000, cpu_s, peak))].into_iter().collect(),
        };
        let rows = |cpu_s: f64, peak| {
            [
                series("track", cpu_s, peak),
                series("jsonl", 1.3 * cpu_s, peak),
                series("argus", 2.0, 1),
                series("tcptrace", 5.0, 1),
            ]
        };
        let million = (2.0, 700.0);
        let met = targets(&rows(1.0, 1), &rows(1.0, 64_000_000), million, &[(2, true)]);
        assert_eq!(reached(&met), [true; 11]);
        let few = rows(1.01, 1);
        let million = (1.99, 701.0);
        let missed = targets(&few, &rows(2.0, 64_100_000), million, &[(2, false)]);
        assert_eq!(reached(&missed), [false; 11], "{missed:?}");
        let nothing = programs::targets("few big flows", &ROWS, &[], "track");
        assert_eq!(reached(&nothing), [false; 2]);
    }
}
