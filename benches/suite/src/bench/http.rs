//! `bench http`: speed and memory of `linkweir http` beside other programs on the same captures.
//!
//! Every row runs on one core. Speed is packets per second of CPU time (user and system); memory is the peak
//! resident size. The limit is `benches/limits/pcapwalk.c`, which does the least that the job needs.

use super::captures::{self, Capture, Plan};
use super::compressed;
use super::harness::{
    Column, FEEDER_CORE, Row, Runs, Target, cells, count, digits, find, in_directory, linkweir,
    megabytes, print_cells, rounds, row, setup, verdict,
};
use super::programs::{self, Over, Programs, Ran, Run, SLOW_ROUNDS, Series, over};
use super::repeat::head;
use super::workers::{Shared, by_clock};
use crate::Outcome;
use crate::shell::{self, Options, grouped, root};
use anyhow::{Context as _, Result, bail};
use nix::fcntl::{FcntlArg, fcntl};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// How many times the long input repeats the capture.
const REPETITIONS: u32 = 10;
/// Runs for the time to the first record.
const STARTS: usize = 20;
/// Packets for tshark, which would take minutes for all of them.
const HEAD_PACKETS: u64 = 200_000;
/// Room in the pipe to the program: fewer turns of writer and reader.
const PIPE_SIZE: i32 = 1 << 20;

const MEMORY_MB: f64 = 64.0;
const START_MS: f64 = 2.0;
/// Million packets per second of CPU time through a pipe.
const PIPED_MPPS: f64 = 3.5;
/// The program as it is built, with symbols if it has any.
const BINARY_MB: f64 = 15.0;
/// What may differ between once and ten times the capture, in parts of one.
const TOLERANCE: f64 = 0.05;

#[rustfmt::skip]
static ROWS: [Row<Over>; 6] = [
    row("walk", "pcapwalk (the limit)", over("pcapwalk", &["{in}"]).least(&[("tiny", 0.4)])),
    row("mapped", "pcapwalk, the file mapped", over("pcapwalk", &["{in}", "mapped"])
        .least(&[("mix", 0.85)])),
    row("linkweir", "linkweir http", OURS),
    row("httpry", "httpry", over("httpry", &["-r", "{in}", "-o", "{out}"])
        .least(&[("mix", 5.0), ("tiny", 3.0)])),
    row("tcpflow", "tcpflow", over("tcpflow", &["-r", "{in}", "-o", "{out}"]).slow()),
    // The columns of a record, as far as tshark has them.
    row("tshark", "tshark -T fields", over("tshark", &[
        "-n", "-r", "{in}", "-Y", "http", "-T", "fields", "-e", "frame.number",
        "-e", "frame.time_epoch", "-e", "ip.src", "-e", "tcp.srcport", "-e", "ip.dst",
        "-e", "tcp.dstport", "-e", "http.request.method", "-e", "http.request.uri",
        "-e", "http.host", "-e", "http.user_agent", "-e", "http.response.code",
        "-e", "http.response.phrase", "-e", "http.response_in", "-e", "http.request_in",
        "-e", "http.time",
    ]).slow().least(&[("mix", 100.0)])),
];

#[rustfmt::skip]
const OURS: Over = over("linkweir", &[
    "http", "-q", "--overwrite", "-r", "{in}", "--format", "text", "-w", "{out}",
    "--summary", "{summary}",
]).found(full_records);

/// The capture once and ten times over.
static PIPED: [Row<u32>; 2] = [
    row("once", "linkweir http, once", 1),
    row("often", "linkweir http, ten times", REPETITIONS),
];

/// The summary must have seen every packet, and full records are part of the work: none would be no
/// measurement.
pub(super) fn full_records(ran: &Ran<'_>) -> Result<Option<u64>> {
    let summary = serde_json::from_slice(&std::fs::read(ran.summary())?)?;
    let seen = count(&summary, "packets")?;
    if seen != ran.packets {
        bail!("linkweir saw {seen} of {} packets", ran.packets);
    }
    if std::fs::metadata(ran.output())?.len() == 0 {
        bail!("linkweir wrote no record");
    }
    Ok(None)
}

/// All captures.
#[derive(Debug)]
struct Captures {
    mix: Capture,
    tiny: Capture,
    head: Capture,
    /// The bundled capture, unpacked.
    small: PathBuf,
    walk: PathBuf,
}

/// `bench http [--packets N] [--capture FILE] [--tiny FILE] [--runs R] [--binary FILE] [--dir DIR] [--keep]`, and `bench
/// record` with the same options, which only makes the captures.
pub(super) fn run(args: &[String], only_records: bool) -> Outcome {
    let mut options = Options::new(args);
    let dir: Option<PathBuf> = options.value("--dir")?;
    let mix: Option<PathBuf> = options.value("--capture")?;
    let tiny: Option<PathBuf> = options.value("--tiny")?;
    let plan = Plan {
        packets: options.value("--packets")?.unwrap_or(2_000_000),
        keep: options.flag("--keep") || dir.is_some() || only_records,
        dir: dir.unwrap_or_else(|| shell::memory_directory("bench")),
    };
    let runs: usize = options.value("--runs")?.unwrap_or(5);
    let binary: Option<PathBuf> = options.value("--binary")?;
    options.rest()?;
    setup()?;
    in_directory(&plan.dir, plan.keep, |_| {
        let captures = prepare(&plan, mix.as_deref(), tiny.as_deref())?;
        if only_records {
            println!("{}", captures.mix.path.display());
            println!("{}", captures.tiny.path.display());
            return Ok(true);
        }
        compare(&captures, &plan.dir, binary.as_deref(), runs.max(1))
    })
}

/// Makes what is not there yet.
fn prepare(plan: &Plan, mix: Option<&Path>, tiny: Option<&Path>) -> Result<Captures> {
    let dir = &plan.dir;
    let walk = captures::walk(dir)?;
    let with_http = |capture: Capture| {
        if capture.requests == 0 {
            bail!(
                "{}: no HTTP in it (a classic little-endian pcap file is needed)",
                capture.path.display()
            );
        }
        Ok(capture)
    };
    let mix = with_http(captures::recorded(plan, &walk, "mix", mix)?)?;
    let tiny = with_http(captures::recorded(plan, &walk, "tiny", tiny)?)?;
    let head_path = dir.join("head.pcap");
    head(&mix.path, &head_path, HEAD_PACKETS)?;
    let head = with_http(captures::examine(&walk, &head_path)?)?;
    let small = dir.join("small.pcap");
    let bundled = root().join("app/testkit/captures/nginx-demo.pcap.gz");
    std::fs::write(&small, shell::read_unpacked(&bundled)?)?;
    Ok(Captures {
        mix,
        tiny,
        head,
        small,
        walk,
    })
}

fn compare(captures: &Captures, dir: &Path, binary: Option<&Path>, runs: usize) -> Outcome {
    let linkweir = linkweir(binary)?;
    let own = vec![
        ("linkweir", linkweir.clone()),
        ("pcapwalk", captures.walk.clone()),
    ];
    let programs = Programs {
        own,
        dir: dir.to_path_buf(),
    };
    describe(captures, runs);

    let on = |capture: &'static str| {
        let whole = if capture == "mix" {
            &captures.mix
        } else {
            &captures.tiny
        };
        let slow_too = capture == "mix";
        let rows = ROWS.iter().filter(move |row| slow_too || !row.how.is_slow);
        programs.compare(capture, rows, runs, |row| {
            if row.word == "tshark" {
                &captures.head
            } else {
                whole
            }
        })
    };
    let (mix, tiny) = (on("mix")?, on("tiny")?);
    let piped = rounds("through a pipe", &PIPED, runs.min(3), |_, row, _| {
        repeated(&programs, &captures.mix, row.how).map(Some)
    })?;
    let measured = Shared {
        command: "http",
        format: "text",
    };
    let many = by_clock(&programs, measured, ("mix", &captures.mix), runs)?;
    let starts = Runs::measure(STARTS, "first record", |_| {
        first_record(&linkweir, &captures.small)
    })?;

    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 8] = [
        ("program", |(name, own, _)| match own.iter().next() {
            Some(run) if name.starts_with("linkweir") || name.starts_with("tshark") => {
                format!("{name} ({} packets)", grouped(run.packets))
            }
            _ => (*name).to_owned(),
        }),
        ("runs", |(_, own, _)| own.count().to_string()),
        ("Mpps", |(_, own, _)| digits(programs::mpps(own), 3)),
        ("Gb/s", |(_, own, _)| digits(programs::per_cpu_s(own, |run| run.wire_bytes) * 8e-9, 2)),
        ("CPU s", |(_, own, _)| digits(programs::cpu_s(own), 3)),
        ("wall s", |(_, own, _)| digits(own.median(|run| run.cost.wall_s), 3)),
        ("MB", |(_, own, _)| megabytes(own.most(Run::peak))),
        ("linkweir is", |(_, _, ratio)| ratio.clone()),
    ];
    let section = |title: &str, rows: Vec<_>| {
        let head = vec![format!("[{title}]")];
        let rows = rows.iter().map(|row| cells(&columns, row));
        std::iter::once(head).chain(rows).collect::<Vec<_>>()
    };
    let of_pipe = piped
        .iter()
        .map(|own| ("linkweir http", &own.runs, String::new()));
    let table = [
        section("mix", compared(&mix)),
        section("tiny", compared(&tiny)),
        section("mix, through a pipe", of_pipe.collect()),
    ];
    print_cells(
        "CPU time, one core, median of the rounds; rates are per second of CPU time",
        &columns,
        table.concat(),
    );
    let [once, often] = piped.as_slice() else {
        bail!("two rows through a pipe")
    };
    let of_program = OfProgram {
        start_s: starts.median(|start_s| *start_s),
        bytes: std::fs::metadata(&linkweir)?.len(),
    };
    let mut targets = targets(&mix, &tiny, once, often, &of_program);
    targets.extend(compressed::compare(
        &linkweir,
        &captures.head.path,
        dir,
        runs,
    )?);
    targets.extend(many);
    verdict(&targets)
}

/// A row of the table: its name, its runs, and how many times its speed ours is.
type Cells<'a> = (&'static str, &'a Runs<Run>, String);

fn compared(all: &[Series]) -> Vec<Cells<'_>> {
    let linkweir = find(all, "linkweir");
    let rows = all.iter();
    rows.map(|own| (own.row.name, &own.runs, programs::compared(linkweir, own)))
        .collect()
}

fn describe(captures: &Captures, runs: usize) {
    for (name, capture) in [
        ("mix", &captures.mix),
        ("tiny", &captures.tiny),
        ("head of mix", &captures.head),
    ] {
        println!(
            "{name}: {} packets, {} bytes on the wire, {} requests, {} responses ({})",
            grouped(capture.packets),
            grouped(capture.wire_bytes),
            grouped(capture.requests),
            grouped(capture.responses),
            capture.path.display()
        );
    }
    println!("{runs} rounds (tcpflow and tshark: {SLOW_ROUNDS} at most)");
}

/// `linkweir http` on the capture once or ten times over, through the same kind of pipe: ten times the
/// capture is more than the memory of many machines. The writer is on another core and its time is not
/// counted.
fn repeated(programs: &Programs, capture: &Capture, times: u32) -> Result<Run> {
    let mut feeder = Command::new(std::env::current_exe()?)
        .args(["repeated", "--core", &FEEDER_CORE.to_string()])
        .arg(&capture.path)
        .arg(times.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .context("run the feeder")?;
    let pipe = feeder.stdout.take().context("its output")?;
    // An unprivileged user may have less; then it stays as it is, for both lengths alike.
    if fcntl(&pipe, FcntlArg::F_SETPIPE_SZ(PIPE_SIZE)).is_err() {
        eprintln!("the pipe stays at its default size");
    }
    let piped = Capture {
        path: "-".into(),
        packets: capture.packets * u64::from(times),
        wire_bytes: capture.wire_bytes * u64::from(times),
        ..capture.clone()
    };
    let run = programs.run(&OURS, &piped, pipe.into(), &[]);
    if !feeder.wait()?.success() {
        bail!("the feeder failed");
    }
    run
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

/// What does not depend on the captures.
struct OfProgram {
    /// From its start to its first record.
    start_s: f64,
    /// Of its file.
    bytes: u64,
}

/// All targets but those of compressed captures, in the order in which they are promised.
fn targets(
    mix: &[Series],
    tiny: &[Series],
    once: &Runs<Run>,
    often: &Runs<Run>,
    of_program: &OfProgram,
) -> Vec<Target> {
    let mut targets = programs::targets("mix", &ROWS, mix, "linkweir");
    targets.extend(programs::targets("tiny", &ROWS, tiny, "linkweir"));
    let peak_mb = |runs: &Runs<Run>| runs.most(Run::peak) * 1e-6;
    let ours = [mix, tiny]
        .into_iter()
        .filter_map(|all| find(all, "linkweir"));
    let ours = ours.map(|series| &series.runs).chain([once, often]);
    let peak = ours.map(peak_mb).fold(0.0, f64::max);
    targets.push(Target::new(
        format!("peak memory at most {MEMORY_MB} MB"),
        format!("{peak:.1} MB"),
        peak > 0.0 && peak <= MEMORY_MB,
    ));
    let memory = peak_mb(often) / peak_mb(once);
    targets.push(Target::new(
        "peak memory the same for ten times the packets, within 5 %",
        format!(
            "{:.1} and {:.1} MB, {}",
            peak_mb(once),
            peak_mb(often),
            change(memory)
        ),
        (memory - 1.0).abs() <= TOLERANCE,
    ));
    // Time per packet, ten times over against once.
    let time = once.ratio(&[often], Run::rate);
    targets.push(Target::new(
        "time linear in the packets, within 5 %",
        format!("per packet {}", change(time)),
        (time - 1.0).abs() <= TOLERANCE,
    ));
    targets.push(Target::new(
        format!("first record within {START_MS} ms of the start"),
        format!("{:.2} ms", of_program.start_s * 1e3),
        of_program.start_s * 1e3 <= START_MS,
    ));
    let rate = programs::mpps(once);
    targets.push(Target::new(
        format!("mix through a pipe: at least {PIPED_MPPS} million packets/s of CPU time"),
        digits(rate, 2),
        rate >= PIPED_MPPS,
    ));
    let binary_mb = of_program.bytes as f64 * 1e-6;
    targets.push(Target::new(
        format!("the program has at most {BINARY_MB} MB"),
        format!("{binary_mb:.1} MB"),
        binary_mb <= BINARY_MB,
    ));
    targets
}

fn change(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::harness::reached;
    use super::super::programs::tests::run;
    use super::*;

    fn verdicts(linkweir_s: f64, often_s: f64, peak: u64) -> Vec<bool> {
        let series = |word: &str, run| Series {
            row: ROWS.iter().find(|row| row.word == word).unwrap(),
            runs: [Some(run)].into_iter().collect(),
        };
        let mix = [
            series("walk", run(100, 0.85, 1)),
            series("mapped", run(100, 0.85, 1)),
            series("linkweir", run(100, linkweir_s, peak)),
            series("httpry", run(100, 5.0, 1)),
            series("tshark", run(10, 10.0, 1)),
        ];
        let once = [Some(run(3_500_000, 1.0, 10_000_000))]
            .into_iter()
            .collect();
        let often = [Some(run(35_000_000, often_s, 10_400_000))]
            .into_iter()
            .collect();
        let of_program = OfProgram {
            start_s: 0.002,
            bytes: 15_000_000,
        };
        reached(&targets(&mix, &mix, &once, &often, &of_program))
    }

    #[test]
    fn targets_that_are_met() {
        assert!(verdicts(1.0, 10.4, 64_000_000).iter().all(|passed| *passed));
    }

    #[test]
    fn targets_that_are_missed() {
        let verdicts = verdicts(1.1, 10.6, 64_100_000);
        assert_eq!(
            verdicts,
            [
                false, false, false, true, true, false, true, false, true, true, true
            ]
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_a_miss() {
        let targets = programs::targets("mix", &ROWS, &[], "linkweir");
        assert_eq!(reached(&targets), [false; 3]);
    }
}
