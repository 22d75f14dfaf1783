//! Years of measurement in packet time: the archive is always the same size, and so is the memory.
//!
//! Every run plays some days. To play more than three years, which takes some minutes:
//! `make test-soak`, or `LINKWEIR_SOAK=all cargo test -p linkweir --test commands -- soak --nocapture`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{demo, ended, installed, linkweir, run};
use linkweir_testkit::many_flows::ManyFlows;

/// Steps a day.
const STEPS: u32 = 288;
/// Bytes of the archive, from the first step to the last.
const ARCHIVE_BYTES: u64 = 143_026_048;
/// Files of `RRDtool`, and the bytes of each.
const RRD: (usize, u64) = (1_404, 24_184);
/// The most memory, kB, however long it takes: here a step has half a megabyte of histograms for ports alone, and waits for
/// a few others to be written. In 1,200 days, a kilobyte kept of each step would be five times as much.
const MEMORY_KB: u64 = 64 << 10;

fn is_all() -> bool {
    std::env::var_os("LINKWEIR_SOAK").is_some_and(|which| which == "all")
}

/// A connection of 10 packets in each step of 5 minutes.
fn traffic(days: u32) -> ManyFlows {
    let gap_us = 1_000;
    ManyFlows {
        flows: days * STEPS,
        concurrent: 1,
        exchanges: 1,
        gap_us,
        pause_us: 300_000_000 - 10 * gap_us,
        ..ManyFlows::default()
    }
}

/// What is written to a process, which is looked at meanwhile.
struct Watched<'a, W> {
    input: W,
    process: u32,
    /// Bytes between two looks.
    every: u64,
    written: u64,
    files: &'a Files,
    looks: Vec<Look>,
}

/// Files that must not grow.
struct Files {
    archive: PathBuf,
    rrd: Option<PathBuf>,
}

/// Memory of a process but for the pages of files, kB, and the bytes of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    memory_kb: u64,
    archive: u64,
    rrd: (usize, u64),
}

impl Files {
    fn look(&self, process: u32) -> Look {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let memory = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let memory = memory.unwrap().trim().trim_end_matches(" kB");
        let rrd = self.rrd.iter().flat_map(|directory| files_below(directory));
        let rrd: Vec<u64> = rrd.collect();
        Look {
            memory_kb: memory.parse().unwrap(),
            archive: self.archive.metadata().map_or(0, |about| about.len()),
            rrd: (rrd.len(), rrd.into_iter().max().unwrap_or(0)),
        }
    }
}

/// The lengths of all files below a directory.
fn files_below(directory: &Path) -> Vec<u64> {
    let mut lengths = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => lengths.extend(files_below(&path)),
            false => lengths.push(path.metadata().unwrap().len()),
        }
    }
    lengths
}

impl<W: Write> Write for Watched<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.input.write(bytes)?;
        self.written += written as u64;
        if self.written / self.every >= self.looks.len() as u64 {
            self.looks.push(self.files.look(self.process));
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.input.flush()
    }
}

/// Plays so many days; gives the archive.
fn soak(directory: &Path, days: u32, has_rrd: bool) -> PathBuf {
    let files = Files {
        archive: directory.join("a.lwa"),
        rrd: has_rrd.then(|| directory.join("rrd")),
    };
    let mut command = linkweir();
    command.args(["flows", "-q", "--no-output", "-r", "-", "--archive"]);
    command.arg(&files.archive);
    if let Some(rrd) = &files.rrd {
        command.arg("--rrd").arg(rrd);
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let traffic = traffic(days);
    let mut length = Vec::new();
    ManyFlows {
        flows: 1,
        ..traffic
    }
    .write(&mut length)
    .unwrap();
    let mut watched = Watched {
        process: child.id(),
        input: child.stdin.take().unwrap(),
        every: length.len() as u64 * u64::from(traffic.flows) / 40,
        written: 0,
        files: &files,
        looks: Vec::new(),
    };
    let written = traffic.write(io::BufWriter::with_capacity(1 << 14, &mut watched));
    let looks = std::mem::take(&mut watched.looks);
    drop(watched);
    ended(child.wait_with_output().unwrap()).exits(0);
    written.unwrap();
    // At the beginning not everything is there yet.
    let (first, rest) = looks.split_at(looks.len() / 4);
    let most = |looks: &[Look]| looks.iter().map(|look| look.memory_kb).max().unwrap();
    println!(
        "{days} days, {}: memory {} kB in the first quarter, {} kB after it",
        if has_rrd {
            "archive and RRD"
        } else {
            "archive"
        },
        most(first),
        most(rest)
    );
    assert!(looks.len() > 30, "{}", looks.len());
    assert!(most(rest) <= MEMORY_KB, "{looks:?}");
    let rrd = if has_rrd { RRD } else { (0, 0) };
    for look in rest {
        assert_eq!((look.archive, look.rrd), (ARCHIVE_BYTES, rrd));
    }
    let last = files.look(std::process::id());
    assert_eq!((last.archive, last.rrd), (ARCHIVE_BYTES, rrd));
    files.archive
}

/// The last days are all there, each with all its packets.
fn holds(archive: &Path, days: u32) {
    let words = [
        "archive",
        "dump",
        archive.to_str().unwrap(),
        "--level",
        "1day",
    ];
    let series = ["--series", "packets_tcp_loc"];
    let dumped = run(&[&words[..], &series].concat()).exits(0).stdout;
    let cells = dumped
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect::<Vec<_>>());
    let sums = |name: &str| -> Vec<u64> {
        let of = cells.clone().filter(|cells| cells[0] == name);
        of.map(|cells| cells[8].parse().unwrap()).collect()
    };
    let packets = sums("packets_tcp_loc");
    // The first and the last day are parts of one.
    let held = (days as usize + 1).min(797);
    assert_eq!(packets.len(), held);
    let whole = &packets[1..held - 1];
    assert!(
        whole.iter().all(|sum| *sum == u64::from(STEPS) * 10),
        "{whole:?}"
    );
}

#[test]
fn the_archive_and_the_memory_do_not_grow_in_a_soak() {
    let directory = tempfile::tempdir().unwrap();
    let days = if is_all() { 1_200 } else { 4 };
    holds(&soak(directory.path(), days, false), days);
}

#[test]
fn round_robin_files_do_not_grow_in_a_soak() {
    if is_all() && installed("rrdtool") {
        let directory = tempfile::tempdir().unwrap();
        holds(&soak(directory.path(), 2, true), 2);
    }
}

/// rrdtool is another program, which nobody may start once rights are given up.
#[test]
fn round_robin_files_are_made() {
    if !installed("rrdtool") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let rrd = directory.path().join("rrd");
    let capture = demo();
    let words = [
        "flows",
        "-q",
        "--no-output",
        "-r",
        capture.to_str().unwrap(),
    ];
    run(&[&words[..], &["--rrd", rrd.to_str().unwrap()]].concat()).exits(0);
    let lengths = files_below(&rrd);
    assert_eq!(lengths.len(), RRD.0);
    assert!(lengths.iter().all(|length| *length == RRD.1));
}
