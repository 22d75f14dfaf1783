//! The runs behind the rows.

use super::sample::{BETWEEN, Sample, TSHARK_FIELDS};
use crate::bench::harness::{self, Cost, Job, median};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The programs, and the directory for what they write.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) linkweir: PathBuf,
    pub(super) tshark: PathBuf,
    dir: PathBuf,
}

/// What the programs said of a capture, and what it cost them.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) ours: Sample,
    /// tshark as it is by default: a message counts where its last segment is.
    pub(super) last_packet: Sample,
    /// tshark without TCP reassembly: a message counts where its first segment is.
    pub(super) first_packet: Sample,
    /// CPU seconds of `linkweir http` with `text` records.
    pub(super) our_cpu_s: f64,
    /// CPU seconds of tshark by default.
    pub(super) tshark_cpu_s: f64,
}

impl Runs {
    pub(super) fn new(linkweir: PathBuf, tshark: PathBuf, dir: PathBuf) -> Self {
        Self {
            linkweir,
            tshark,
            dir,
        }
    }

    /// All runs over one capture.
    ///
    /// # Errors
    /// A program failed, or said what cannot be understood.
    pub(super) fn all(&self, capture: &Path, rounds: usize) -> Result<Results> {
        let capture = capture.to_str().context("a path that is not UTF-8")?;
        let records = self.dir.join("records");
        let summary = self.dir.join("summary.json");
        let ours = |format: &str, extra: &[&str]| -> Result<Cost> {
            let mut args = ["http", "-q", "-r", capture, "--format", format].to_vec();
            args.extend(extra);
            args.extend([
                "--overwrite",
                "-w",
                text(&records)?,
                "--summary",
                text(&summary)?,
            ]);
            self.measured(&self.linkweir, &args)
        };
        let costs = (0..rounds)
            .map(|_| Ok(ours("text", &[])?.cpu_s))
            .collect::<Result<Vec<f64>>>()?;
        ours("jsonl", &["--ttlb"])?;
        let totals = serde_json::from_slice(&std::fs::read(&summary)?)?;
        let lines = std::fs::read_to_string(&records).context("records are not UTF-8")?;
        let our_sample = Sample::ours(&totals, &lines)?;
        std::fs::remove_file(&records)?;

        let (last_packet, cost) = self.tshark(capture, &[])?;
        let (first_packet, _) = self.tshark(capture, &["-o", "tcp.desegment_tcp_streams:FALSE"])?;
        Ok(Results {
            ours: our_sample,
            last_packet,
            first_packet,
            our_cpu_s: median(&costs),
            tshark_cpu_s: cost.cpu_s,
        })
    }

    fn tshark(&self, capture: &str, mode: &[&str]) -> Result<(Sample, Cost)> {
        let aggregator = format!("aggregator={BETWEEN}");
        let mut args = ["-n", "-r", capture, "-Y", "http", "-T", "fields"].to_vec();
        args.extend(mode);
        args.extend(["-E", &aggregator]);
        for field in TSHARK_FIELDS {
            args.extend(["-e", field]);
        }
        let cost = self.measured(&self.tshark, &args)?;
        // tshark escapes what is not printable; what is not UTF-8 is compared as far as it goes.
        let lines = std::fs::read(self.dir.join("stdout"))?;
        Ok((Sample::tshark(&String::from_utf8_lossy(&lines))?, cost))
    }

    fn measured(&self, program: &Path, args: &[&str]) -> Result<Cost> {
        let job = Job {
            program,
            args: args.iter().map(ToString::to_string).collect(),
            stdin: Stdio::null(),
            stdout: &self.dir.join("stdout"),
        };
        harness::cost::cost(job, &self.dir)
    }
}

/// The first line of what a program says with `--version`.
pub(super) fn version(program: &Path) -> Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .with_context(|| format!("run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next().unwrap_or_default();
    Ok(line.trim_end_matches('.').to_owned())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is not UTF-8")
}
