//! `bench http`: speed and memory of `linkweir http` beside other programs on the same captures.
//!
//! Every row runs on one core, in rounds that take turns, so that what the machine does meanwhile hits
//! all of them. Speed is packets per second of CPU time (user and system); memory is the peak resident
//! size. The limit is `benches/limits/pcapwalk.c`, which does the least that the job needs.

mod bars;
mod captures;
mod flows;
mod gateway;
mod live;
mod load;
pub(crate) mod measure;
mod model;
mod programs;
mod repeat;
mod sinks;

use crate::shell::{self, Options, print_table, root};
use crate::{Outcome, usage};
use anyhow::{Context as _, Result};
use captures::{Captures, Plan};
use measure::{Cost, Series, median};
use programs::{Program, Programs};
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

pub(crate) use measure::measured;
pub(crate) use repeat::repeated;

/// How many times the long input repeats the capture.
const REPETITIONS: u32 = 10;
/// Rounds of the slow programs, whose ratio is far from its bar.
const SLOW_ROUNDS: usize = 3;
/// Runs for the time to the first record.
const STARTS: usize = 20;

/// `bench http ...` and `bench record ...`
pub(crate) fn run(args: &[String]) -> Outcome {
    let (what, rest) = args.split_first().ok_or_else(|| usage("bench what?"))?;
    match what.as_str() {
        "live" => return live::run(rest),
        "flows" => return flows::run(rest),
        "gateway" => return gateway::run(rest),
        "load" => return load::run(rest),
        "model" => return model::run(rest),
        "sinks" => return sinks::run(rest),
        _ => {}
    }
    let mut options = Options::new(rest);
    let dir: Option<PathBuf> = options.value("--dir")?;
    let plan = Plan {
        packets: options.value("--packets")?.unwrap_or(2_000_000),
        mix: options.value("--capture")?,
        tiny: options.value("--tiny")?,
        keep: options.flag("--keep") || dir.is_some(),
        dir: dir.unwrap_or_else(captures::default_dir),
    };
    let runs: usize = options.value("--runs")?.unwrap_or(5);
    options.rest()?;

    // A compiler for the limit, the other programs, and what records traffic. What cannot be
    // installed is named, and its rows are left out.
    shell::passes(
        Command::new("scripts/setup.sh")
            .arg("bench")
            .current_dir(root()),
    )?;
    match what.as_str() {
        "record" => {
            let captures = captures::prepare(&Plan { keep: true, ..plan })?;
            println!(
                "{}\n{}",
                captures.mix.path.display(),
                captures.tiny.path.display()
            );
            Ok(true)
        }
        "http" => {
            let captures = captures::prepare(&plan)?;
            let outcome = http(&captures, &plan.dir, runs.max(1));
            if !plan.keep {
                captures::remove(&plan.dir)?;
            }
            outcome
        }
        other => Err(usage(&format!("no benchmark `{other}`"))),
    }
}

fn http(captures: &Captures, dir: &Path, runs: usize) -> Outcome {
    let binary = shell::release_binary()?;
    let programs = Programs::find(binary, captures.walk.clone(), dir.to_path_buf());
    describe(captures, runs);

    let mix = rounds(&programs, captures, &captures.mix, runs, true)?;
    let tiny = rounds(&programs, captures, &captures.tiny, runs, false)?;
    let (once, often) = repeated_rounds(&programs, captures, runs.min(3))?;
    let starts = (0..STARTS)
        .map(|_| first_record(&programs.linkweir, &captures.small))
        .collect::<Result<Vec<f64>>>()?;

    println!("\nCPU time, one core, median of the rounds; rates are per second of CPU time");
    let mut table = vec![
        [
            "program",
            "runs",
            "Mpps",
            "Gb/s",
            "CPU s",
            "wall s",
            "MB",
            "linkweir is",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    section(&mut table, "mix", &mix);
    section(&mut table, "tiny", &tiny);
    let piped = [once, often];
    section(&mut table, "mix, through a pipe", &piped);
    print_table(&table);

    let [once, often] = &piped;
    let bars = bars::all(&mix, &tiny, once, often, median(&starts));
    println!();
    bars::print(&bars);
    Ok(bars.iter().all(|bar| bar.passed))
}

/// Says on a terminal what runs.
fn progress(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{what:<60}\r");
    }
}

fn describe(captures: &Captures, runs: usize) {
    for (name, capture) in [
        ("mix", &captures.mix),
        ("tiny", &captures.tiny),
        ("head of mix", &captures.head),
    ] {
        println!(
            "{name}: {} packets, {} bytes on the wire, {} requests, {} responses ({})",
            shell::grouped(capture.packets),
            shell::grouped(capture.wire_bytes),
            shell::grouped(capture.requests),
            shell::grouped(capture.responses),
            capture.path.display()
        );
    }
    println!(
        "{runs} rounds (tcpflow and tshark: {} at most)",
        SLOW_ROUNDS
    );
}

/// Runs every program on a capture, in turns.
fn rounds(
    programs: &Programs,
    captures: &Captures,
    capture: &captures::Capture,
    runs: usize,
    slow_too: bool,
) -> Result<Vec<Series>> {
    let mut series: Vec<Series> = Program::ALL
        .into_iter()
        .filter(|program| programs.has(*program) && (slow_too || !program.is_slow()))
        .map(|program| {
            let input = if program == Program::Tshark {
                &captures.head
            } else {
                capture
            };
            Series::new(program, input.packets, input.wire_bytes)
        })
        .collect();
    for round in 0..runs {
        for row in &mut series {
            if row.program.is_slow() && round >= SLOW_ROUNDS {
                continue;
            }
            let input = if row.program == Program::Tshark {
                &captures.head
            } else {
                capture
            };
            progress(&format!("round {}: {}", round + 1, row.program.name()));
            row.costs.push(programs.run(row.program, input)?);
        }
    }
    progress("");
    Ok(series)
}

/// `linkweir http` on the capture once and ten times over, both through the same kind of pipe: ten
/// times the capture is more than the memory of many machines. The writer is on another core and its
/// time is not counted.
fn repeated_rounds(
    programs: &Programs,
    captures: &Captures,
    runs: usize,
) -> Result<(Series, Series)> {
    let series = |times: u32| {
        let times = u64::from(times);
        let Captures { mix, .. } = captures;
        Series::new(
            Program::Linkweir,
            mix.packets * times,
            mix.wire_bytes * times,
        )
    };
    let (mut once, mut often) = (series(1), series(REPETITIONS));
    for round in 0..runs {
        for (times, row) in [(1, &mut once), (REPETITIONS, &mut often)] {
            progress(&format!(
                "round {}: linkweir http, {times} x through a pipe",
                round + 1
            ));
            row.costs.push(programs.run_repeated(&captures.mix, times)?);
        }
    }
    progress("");
    Ok((once, often))
}

/// Seconds from the start of the program to the first byte of its first record.
fn first_record(linkweir: &Path, capture: &Path) -> Result<f64> {
    let begin = Instant::now();
    let mut child = Command::new(linkweir)
        .args(["http", "-q", "-w", "-", "-r"])
        .arg(capture)
        .stdout(Stdio::piped())
        .spawn()
        .context("run linkweir")?;
    let mut output = child.stdout.take().context("its output")?;
    let mut first = [0_u8];
    output.read_exact(&mut first).context("no record came")?;
    let seconds = begin.elapsed().as_secs_f64();
    std::io::copy(&mut output, &mut std::io::sink())?;
    child.wait()?;
    Ok(seconds)
}

fn section(table: &mut Vec<Vec<String>>, title: &str, series: &[Series]) {
    table.push(vec![format!("[{title}]")]);
    let linkweir = series.iter().find(|row| row.program == Program::Linkweir);
    for row in series {
        let Cost {
            cpu_s,
            wall_s,
            peak_bytes,
        } = row.median();
        let packets = row.packets as f64;
        let ratio = match linkweir {
            Some(linkweir) if row.program != Program::Linkweir => {
                format!("{:.2} x", linkweir.speed_over(row))
            }
            _ => String::new(),
        };
        let name = match row.program {
            Program::Linkweir | Program::Tshark => {
                format!(
                    "{} ({} packets)",
                    row.program.name(),
                    shell::grouped(row.packets)
                )
            }
            program => program.name().to_owned(),
        };
        table.push(vec![
            name,
            row.costs.len().to_string(),
            format!("{:.3}", packets / cpu_s * 1e-6),
            format!("{:.2}", row.wire_bytes as f64 * 8.0 / cpu_s * 1e-9),
            format!("{cpu_s:.3}"),
            format!("{wall_s:.3}"),
            format!("{:.1}", peak_bytes as f64 * 1e-6),
            ratio,
        ]);
    }
}
