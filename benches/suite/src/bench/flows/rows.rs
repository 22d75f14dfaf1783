//! The rows of the table: programs, how each is run, and how many flows it finds.

use super::super::measure::{self, Cost, Job, median};
use crate::shell;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program with what it is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// `benches/limits/pcapwalk.c`: the limit.
    Walk,
    /// Reads and writes what it read to nowhere: the floor.
    Tcpdump,
    /// All measurements, no output.
    Track,
    /// The same, and the archive.
    Archive,
    /// Tstat's tree of logs and histograms.
    Logs,
    Argus,
    Tcptrace,
    Softflowd,
    Nfpcapd,
}

impl Row {
    pub(super) const ALL: [Self; 9] = [
        Self::Walk,
        Self::Tcpdump,
        Self::Track,
        Self::Archive,
        Self::Logs,
        Self::Argus,
        Self::Tcptrace,
        Self::Softflowd,
        Self::Nfpcapd,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Walk => "pcapwalk (the limit)",
            Self::Tcpdump => "tcpdump -w /dev/null (the floor)",
            Self::Track => "linkweir flows --no-output",
            Self::Archive => "linkweir flows --no-output --archive",
            Self::Logs => "linkweir flows --format tstat",
            Self::Argus => "argus",
            Self::Tcptrace => "tcptrace -l -r",
            Self::Softflowd => "softflowd",
            Self::Nfpcapd => "nfpcapd",
        }
    }

    const fn program(self) -> &'static str {
        match self {
            Self::Walk => "pcapwalk",
            Self::Tcpdump => "tcpdump",
            Self::Track | Self::Archive | Self::Logs => "linkweir",
            Self::Argus => "argus",
            Self::Tcptrace => "tcptrace",
            Self::Softflowd => "softflowd",
            Self::Nfpcapd => "nfpcapd",
        }
    }

    /// Whether it takes seconds: fewer rounds will do.
    pub(super) const fn is_slow(self) -> bool {
        matches!(self, Self::Tcptrace | Self::Nfpcapd | Self::Softflowd)
    }
}

/// The runs of one row on one capture.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) row: Row,
    pub(super) packets: u64,
    pub(super) costs: Vec<Cost>,
    /// Flows it found, in its own words.
    pub(super) flows: Option<u64>,
}

impl Series {
    pub(super) fn cpu_s(&self) -> f64 {
        median(&self.costs.iter().map(|cost| cost.cpu_s).collect::<Vec<_>>())
    }

    pub(super) fn mpps(&self) -> f64 {
        self.packets as f64 / self.cpu_s() * 1e-6
    }

    pub(super) fn peak_mb(&self) -> f64 {
        let peak = self.costs.iter().map(|cost| cost.peak_bytes).max();
        peak.unwrap_or(0) as f64 * 1e-6
    }

    /// How many times the packets per second of `other`: the median of the ratios of each round.
    pub(super) fn speed_over(&self, other: &Self) -> f64 {
        let packets = self.packets as f64 / other.packets as f64;
        let rounds = self.costs.iter().zip(&other.costs);
        let ratios: Vec<f64> = rounds
            .map(|(own, its)| packets * its.cpu_s / own.cpu_s)
            .collect();
        median(&ratios)
    }
}

/// Where the programs are.
#[derive(Debug)]
pub(super) struct Programs {
    linkweir: PathBuf,
    walk: PathBuf,
    dir: PathBuf,
}

impl Programs {
    pub(super) const fn new(linkweir: PathBuf, walk: PathBuf, dir: PathBuf) -> Self {
        Self {
            linkweir,
            walk,
            dir,
        }
    }

    pub(super) fn linkweir(&self) -> &Path {
        &self.linkweir
    }

    fn path(&self, row: Row) -> Option<PathBuf> {
        match row {
            Row::Walk => Some(self.walk.clone()),
            Row::Track | Row::Archive | Row::Logs => Some(self.linkweir.clone()),
            other => shell::find(other.program()),
        }
    }

    pub(super) fn has(&self, row: Row) -> bool {
        self.path(row).is_some()
    }

    fn output(&self) -> PathBuf {
        self.dir.join("output")
    }

    /// Runs a row over a capture: the cost, and the flows that it found. What it writes goes to the
    /// folder of the captures, in memory, and is removed.
    pub(super) fn run(
        &self,
        row: Row,
        capture: &Path,
        packets: u64,
    ) -> Result<(Cost, Option<u64>)> {
        self.run_with(row, capture, packets, &[])
    }

    /// The same with further words for linkweir.
    pub(super) fn run_with(
        &self,
        row: Row,
        capture: &Path,
        packets: u64,
        words: &[&str],
    ) -> Result<(Cost, Option<u64>)> {
        let program = self
            .path(row)
            .with_context(|| format!("no {}", row.program()))?;
        let output = self.output();
        remove(&output)?;
        let (input, out) = (text(capture)?, text(&output)?);
        let summary = self.dir.join("summary.json");
        let summary_text = text(&summary)?;
        let ours = [
            "flows",
            "-q",
            "--overwrite",
            "-r",
            &input,
            "--summary",
            &summary_text,
        ];
        let args: Vec<&str> = match row {
            Row::Walk => vec![&input],
            Row::Tcpdump => vec!["-r", &input, "-w", "/dev/null"],
            Row::Track => [ours.as_slice(), &["--no-output"]].concat(),
            Row::Archive => [ours.as_slice(), &["--no-output", "--archive", &out]].concat(),
            Row::Logs => [ours.as_slice(), &["--format", "tstat", "-w", &out]].concat(),
            Row::Argus => vec!["-X", "-r", &input, "-w", &out],
            Row::Tcptrace => vec!["-n", "-l", "-r", &input],
            // Its default of 8192 flows would cut them.
            Row::Softflowd => vec!["-r", &input, "-m", "4000000", "-d"],
            Row::Nfpcapd => {
                std::fs::create_dir_all(&output)?;
                vec!["-r", &input, "-w", &out]
            }
        };
        let stdout = self.dir.join("stdout");
        let job = Job {
            program: &program,
            args: args
                .iter()
                .chain(words)
                .map(|word| (*word).to_owned())
                .collect(),
            stdin: Stdio::null(),
            stdout: &stdout,
        };
        let cost = measure::cost(job, &self.dir)?;
        let flows = match row {
            Row::Walk | Row::Tcpdump => None,
            Row::Track | Row::Archive | Row::Logs => Some(of_linkweir(&summary, packets)?),
            Row::Argus => records_of_argus(&output)?,
            Row::Tcptrace => number_in(&stdout, |line| {
                let (count, _) = line.split_once(" TCP connection")?;
                count.parse().ok()
            })?,
            // It tells of its flows on both, by how it was built.
            Row::Softflowd => {
                let expired = |line: &str| -> Option<u64> {
                    let rest = line.strip_prefix("Flows expired: ")?;
                    rest.split(' ').next()?.parse().ok()
                };
                let said = number_in(&stdout, expired)?;
                said.or(number_in(&self.dir.join("stderr"), expired)?)
            }
            Row::Nfpcapd => flows_of_nfdump(&output)?,
        };
        remove(&output)?;
        Ok((cost, flows))
    }
}

/// Flows by the summary, which must have seen every packet.
fn of_linkweir(summary: &Path, packets: u64) -> Result<u64> {
    let seen: Value = serde_json::from_slice(&std::fs::read(summary)?)?;
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64);
    let counted = number(&seen, "packets");
    if counted != Some(packets) {
        bail!("linkweir saw {counted:?} of {packets} packets");
    }
    let flows = seen.get("flows").context("no `flows` in the summary")?;
    let of = |name| number(flows, name).with_context(|| format!("no `{name}` in the summary"));
    Ok(of("tcp_complete")? + of("tcp_incomplete")? + of("udp")?)
}

/// Records of argus: at least one a flow, more of those that last.
fn records_of_argus(file: &Path) -> Result<Option<u64>> {
    let Some(ra) = shell::find("ra") else {
        return Ok(None);
    };
    let mut command = Command::new(ra);
    command
        .args(["-n", "-r"])
        .arg(file)
        .args(["-", "tcp", "or", "udp"]);
    let lines = shell::output(&mut command)?;
    let lines = lines.iter().filter(|byte| **byte == b'\n').count();
    Ok(Some(lines as u64))
}

/// Flows of one direction, as nfdump counts them.
fn flows_of_nfdump(dir: &Path) -> Result<Option<u64>> {
    let Some(nfdump) = shell::find("nfdump") else {
        return Ok(None);
    };
    let mut command = Command::new(nfdump);
    command.arg("-R").arg(dir).arg("-I");
    let text = String::from_utf8_lossy(&shell::output(&mut command)?).into_owned();
    let count = text.lines().find_map(|line| line.strip_prefix("Flows: "));
    Ok(count.and_then(|count| count.trim().parse().ok()))
}

/// What the first line of a file gives that gives a number.
fn number_in(file: &Path, number: impl Fn(&str) -> Option<u64>) -> Result<Option<u64>> {
    let file = BufReader::new(std::fs::File::open(file)?);
    for line in file.lines() {
        if let Some(number) = number(&line?) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

fn remove(path: &Path) -> Result<()> {
    if path.is_dir() {
        std::fs::remove_dir_all(path)?;
    } else if path.exists() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

fn text(path: &Path) -> Result<String> {
    Ok(path
        .to_str()
        .context("a path that is not UTF-8")?
        .to_owned())
}
