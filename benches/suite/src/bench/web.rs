//! `bench web`: HTTP/2 in clear and in TLS with keys, beside tshark and beside the cipher alone; memory with ten
//! thousand connections that are followed at once; and TLS without keys, beside the same transactions in clear.
//!
//! Captures are recorded from nginx and h2load, in frames as they are on a cable. Every row runs on one core; speed
//! is packets per second of CPU time.

use super::captures::{self, Capture, Plan};
use super::harness::{
    Column, Parts, Row, Runs, Target, count, digits, find, in_directory, megabytes, number, print,
    row, setup, text, verdict,
};
use super::http::full_records;
use super::programs::{self, Over, Programs, Ran, Run, Series, over};
use super::repeat::head;
use crate::Outcome;
use crate::shell::{self, Options, cargo, grouped, output, passes, target_dir};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `--only` may name: the modes of `benches/record_http.sh` that are recorded.
const PARTS: [&str; 5] = ["h2", "tls", "h2-crowd", "tls-crowd", ESTIMATED];
/// The part without keys, and the mode of the same transactions in clear.
const ESTIMATED: &str = "mix-tls";
const CLEAR: &str = "mix";
/// Packets for tshark, which would take minutes for all of them.
const HEAD_PACKETS: u64 = 100_000;
/// Connections of a crowd.
const CROWD: u64 = 10_000;
/// What they may take.
const CROWD_MB: f64 = 256.0;
/// Part of the speed of the cipher alone that the whole command must reach.
const OF_CIPHER: f64 = 0.6;

#[rustfmt::skip]
static ROWS: [Row<Over>; 4] = [
    row("linkweir", "linkweir http", OURS.found(full_records)),
    row("blind", "linkweir http, without keys", OURS),
    row("keys", "linkweir http --keys", WITH_KEYS.found(full_records)),
    // The columns of a record, as far as tshark has them.
    row("tshark", "tshark -T fields", over("tshark", &[
        "-n", "-r", "{in}", "-o", "tls.keylog_file:{keys}",
        "-d", "tcp.port==80,http2", "-d", "tcp.port==443,tls", "-Y", "http2.headers", "-T", "fields",
        "-e", "frame.number", "-e", "frame.time_epoch", "-e", "ip.src", "-e", "tcp.srcport",
        "-e", "ip.dst", "-e", "tcp.dstport", "-e", "http2.streamid", "-e", "http2.headers.method",
        "-e", "http2.headers.path", "-e", "http2.headers.authority", "-e", "http2.headers.user_agent",
        "-e", "http2.headers.status",
    ]).slow().least(&[("h2", 100.0), ("tls", 50.0)])),
];

#[rustfmt::skip]
const OURS: Over = over("linkweir", &[
    "http", "-q", "--overwrite", "-r", "{in}", "--format", "text", "-w", "{out}", "--summary", "{summary}",
]);

#[rustfmt::skip]
const WITH_KEYS: Over = over("linkweir", &[
    "http", "-q", "--overwrite", "-r", "{in}", "--format", "text", "-w", "{out}", "--summary", "{summary}",
    "--keys", "{keys}",
]);

/// TLS without keys: at most 1.25 times the time of a packet in clear.
#[rustfmt::skip]
static ESTIMATES: [Row<Over>; 4] = [
    row("estimated", "linkweir http, estimates", OURS.found(full_records)),
    row("off", "linkweir http --estimate off", over("linkweir", &[
        "http", "-q", "--overwrite", "-r", "{in}", "--format", "text", "-w", "{out}", "--summary", "{summary}",
        "--estimate", "off",
    ])),
    row("clear", "linkweir http, in clear", OURS.found(full_records).least(&[(ESTIMATED, 0.8)])),
    row("walk", "pcapwalk (the limit)", over("pcapwalk", &["{in}"]).least(&[(ESTIMATED, 0.6)])),
];

/// The same of a crowd: every connection is followed, and none of them left.
#[rustfmt::skip]
static CROWDS: [Row<Over>; 2] = [
    row("h2-crowd", "linkweir http", OURS.found(whole_crowd)),
    row("tls-crowd", "linkweir http --keys", WITH_KEYS.found(whole_crowd)),
];

/// Our row of a part.
fn ours(part: &str) -> &'static str {
    match part {
        "tls" => "keys",
        _ => "linkweir",
    }
}

fn whole_crowd(ran: &Ran<'_>) -> Result<Option<u64>> {
    full_records(ran)?;
    let summary: Value = serde_json::from_slice(&std::fs::read(ran.summary())?)?;
    let followed = count(&summary, "http/followed/connections")?;
    let evicted = count(&summary, "http/followed/evicted")?;
    if followed < CROWD || evicted > 0 {
        bail!("{followed} connections were followed, {evicted} of them evicted");
    }
    Ok(Some(followed))
}

/// `bench web [--packets N] [--runs R] [--dir DIR] [--keep] [--binary FILE] [--only PART]...`
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let dir: Option<PathBuf> = options.value("--dir")?;
    let plan = Plan {
        packets: options.value("--packets")?.unwrap_or(300_000),
        keep: options.flag("--keep") || dir.is_some(),
        dir: dir.unwrap_or_else(|| shell::memory_directory("bench-web")),
    };
    let runs: usize = options.value("--runs")?.unwrap_or(5);
    let binary: Option<PathBuf> = options.value("--binary")?;
    let parts = Parts::of(&mut options, &PARTS)?;
    options.rest()?;
    setup()?;
    let linkweir = super::harness::linkweir(binary.as_deref())?;
    in_directory(&plan.dir, plan.keep, |dir| {
        let walk = captures::walk(dir)?;
        let programs = Programs {
            own: vec![("linkweir", linkweir), ("pcapwalk", walk.clone())],
            dir: dir.to_path_buf(),
        };
        let mut targets = Vec::new();
        for part in PARTS.iter().filter(|part| parts.wants(part)) {
            let capture = captures::recorded(&plan, &walk, part, None)?;
            // What has no TLS in it has no key log.
            if !capture.keys().is_file() {
                std::fs::write(capture.keys(), "# no TLS\n")?;
            }
            targets.extend(match *part {
                ESTIMATED => {
                    let clear = captures::recorded(&plan, &walk, CLEAR, None)?;
                    estimates(&programs, &capture, &clear, runs)?
                }
                part if part.ends_with("crowd") => crowd(&programs, part, &capture, runs)?,
                part => speed(&programs, part, &capture, &walk, runs)?,
            });
        }
        verdict(&targets)
    })
}

/// Speed beside tshark, and in TLS beside the cipher alone.
fn speed(
    programs: &Programs,
    part: &'static str,
    capture: &Capture,
    walk: &Path,
    runs: usize,
) -> Result<Vec<Target>> {
    let is_tls = part == "tls";
    let path = programs.dir.join("head.pcap");
    head(&capture.path, &path, HEAD_PACKETS)?;
    let first = captures::examine(walk, &path)?;
    std::fs::copy(capture.keys(), first.keys())?;
    let rows = ROWS.iter().filter(|row| match row.word {
        "linkweir" => !is_tls,
        "blind" | "keys" => is_tls,
        _ => true,
    });
    let all = programs.compare(part, rows, runs.max(1), |row| match row.word {
        "tshark" => &first,
        _ => capture,
    })?;
    let own = find(&all, ours(part)).context("our row")?;
    let rows = all.iter().map(|other| (Some(own), other));
    table(part, capture, runs, rows);
    let mut targets = programs::targets(part, &ROWS, &all, ours(part));
    if is_tls {
        let limit = cipher(&programs.dir, capture, runs.max(1))?;
        let (bytes, seconds) = (limit.median(|of| of.bytes), limit.median(|of| of.seconds));
        println!(
            "the cipher alone, AES-128-GCM: {} records, {:.1} MB in {seconds:.4} s, {:.2} GB/s",
            grouped(limit.iter().map(|of| of.records).max().unwrap_or_default()),
            bytes * 1e-6,
            bytes / seconds * 1e-9
        );
        let part_of = seconds / programs::cpu_s(own);
        targets.push(Target::new(
            format!(
                "TLS: at least {OF_CIPHER} of the speed of the cipher alone over the same records"
            ),
            format!(
                "{part_of:.2}, {:.2} GB/s",
                bytes / programs::cpu_s(own) * 1e-9
            ),
            part_of >= OF_CIPHER,
        ));
    }
    Ok(targets)
}

/// Speed without keys, beside the same transactions in clear and the limit.
fn estimates(
    programs: &Programs,
    sealed: &Capture,
    clear: &Capture,
    runs: usize,
) -> Result<Vec<Target>> {
    let all = programs.compare(ESTIMATED, &ESTIMATES, runs.max(1), |row| match row.word {
        "clear" => clear,
        _ => sealed,
    })?;
    let own = find(&all, "estimated").context("our row")?;
    table(
        ESTIMATED,
        sealed,
        runs,
        all.iter().map(|other| (Some(own), other)),
    );
    Ok(programs::targets(ESTIMATED, &ESTIMATES, &all, "estimated"))
}

/// Memory with a crowd.
fn crowd(
    programs: &Programs,
    part: &'static str,
    capture: &Capture,
    runs: usize,
) -> Result<Vec<Target>> {
    let rows = CROWDS.iter().filter(|row| row.word == part);
    let runs = runs.clamp(1, 3);
    let all = programs.compare(part, rows, runs, |_| capture)?;
    table(part, capture, runs, all.iter().map(|own| (None, own)));
    let peak_mb = all
        .iter()
        .map(|own| own.most(Run::peak))
        .fold(0.0, f64::max)
        * 1e-6;
    Ok(vec![Target::new(
        format!(
            "{part}: {} connections followed at once in {CROWD_MB} MB",
            grouped(CROWD)
        ),
        format!("{peak_mb:.1} MB"),
        peak_mb > 0.0 && peak_mb <= CROWD_MB,
    )])
}

/// A row, and ours to compare with.
type Cells<'a> = (Option<&'a Series>, &'a Series);

/// Prints rows below what the capture is.
fn table<'a>(part: &str, capture: &Capture, runs: usize, rows: impl Iterator<Item = Cells<'a>>) {
    let title = format!(
        "{part}: {} packets, {} bytes on the wire; CPU time, one core, median of {runs} rounds",
        grouped(capture.packets),
        grouped(capture.wire_bytes)
    );
    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 7] = [
        ("program", |(_, own)| match own.iter().next() {
            Some(run) => format!("{} ({} packets)", own.row.name, grouped(run.packets)),
            None => own.row.name.to_owned(),
        }),
        ("runs", |(_, own)| own.count().to_string()),
        ("Mpps", |(_, own)| digits(programs::mpps(own), 3)),
        ("Gb/s", |(_, own)| digits(programs::per_cpu_s(own, |run| run.wire_bytes) * 8e-9, 2)),
        ("CPU s", |(_, own)| digits(programs::cpu_s(own), 3)),
        ("MB", |(_, own)| megabytes(own.most(Run::peak))),
        ("linkweir is", |(ours, own)| programs::compared(*ours, own)),
    ];
    print(&title, &columns, rows);
}

/// What the cipher alone took.
#[derive(Debug)]
struct Opened {
    records: u64,
    bytes: f64,
    seconds: f64,
}

/// Times the cipher over records of the lengths that tshark sees in the capture.
fn cipher(dir: &Path, capture: &Capture, runs: usize) -> Result<Runs<Opened>> {
    let mut build = cargo();
    build
        .args(["build", "--release", "--package", "linkweir-keys"])
        .args(["--example", "aead"]);
    if !passes(&mut build)? {
        bail!("the example aead does not build");
    }
    let mut tshark = Command::new("tshark");
    tshark
        .args([
            "-n",
            "-Y",
            "tls.app_data",
            "-T",
            "fields",
            "-e",
            "tls.record.length",
        ])
        .args(["-E", "aggregator=/s", "-r", &text(&capture.path)?]);
    let lengths = dir.join("lengths");
    std::fs::write(&lengths, output(&mut tshark)?)?;
    let mut pinned = vec!["-c".to_owned(), super::harness::CORE.to_string()];
    pinned.push(text(&target_dir().join("release/examples/aead"))?);
    pinned.push(text(&lengths)?);
    Runs::measure(runs, "the cipher alone", |_| {
        let said = output(Command::new("taskset").args(&pinned))?;
        let said: Value = serde_json::from_slice(&said).context("what the example aead says")?;
        Ok(Opened {
            records: count(&said, "records")?,
            bytes: number(&said, "bytes")?,
            seconds: number(&said, "seconds")?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::harness::{assert_different, reached};
    use super::super::programs::tests::run;
    use super::*;

    #[test]
    fn rows_are_named_once_and_targets_are_of_recorded_parts() {
        assert_different(&ROWS.each_ref().map(|row| row.word));
        assert_different(&ESTIMATES.each_ref().map(|row| row.word));
        for row in ROWS.iter().chain(&ESTIMATES) {
            for (part, _) in row.how.least {
                assert!(PARTS.contains(part), "{part}");
            }
        }
    }

    #[test]
    fn a_hundred_times_tshark_is_wanted_in_clear_and_fifty_times_in_tls() {
        let series = |word: &str, run| Series {
            row: ROWS.iter().find(|row| row.word == word).unwrap(),
            runs: [Some(run)].into_iter().collect(),
        };
        let all = |tshark_s, own| {
            [
                series(own, run(1000, 1.0, 1)),
                series("tshark", run(100, tshark_s, 1)),
            ]
        };
        let reached = |part, tshark_s| {
            let all = all(tshark_s, ours(part));
            reached(&programs::targets(part, &ROWS, &all, ours(part)))
        };
        assert_eq!(reached("h2", 10.0), [true]);
        assert_eq!(reached("h2", 9.9), [false]);
        assert_eq!(reached("tls", 5.0), [true]);
        assert_eq!(reached("tls", 4.9), [false]);
    }
}
