//! `papers`: the figures and tables of the HTTPanalyzer paper that an offline run can answer, computed
//! again on a capture: ours beside tshark's, as rows of Markdown for `docs/papers.md`.
//!
//! Source: Vega, Roquero, Aracil 2017, "Multi-Gbps HTTP traffic analysis in commodity hardware based on
//! local knowledge of TCP streams", Computer Networks 113.
//!
//! The runs behind the rows.

use crate::Outcome;
use crate::bench::harness::{self, Cost, Job, in_directory, median, setup};
use crate::shell::{self, Options, grouped, passes, root};
use anyhow::{Context as _, Result, bail};
use sample::{BETWEEN, Sample, TSHARK_FIELDS};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod curve;
mod figures;
mod rows;
mod sample;

/// The modes of `benches/record_http.sh` whose traffic is compared: an easy network first, then the troubles that the
/// paper's traces had.
const TRAFFIC: [&str; 4] = ["mix", "pipelined", "lossy", "troubled"];

/// What is asked for.
#[derive(Debug)]
struct Plan {
    capture: Option<PathBuf>,
    uris: Option<PathBuf>,
    plot: Option<PathBuf>,
    packets: u64,
    rounds: usize,
    dir: PathBuf,
    keep: bool,
}

/// `papers [--capture FILE] [--uris FILE] [--packets N] [--runs R] [--plot DIR] [--dir DIR] [--keep]`
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let dir: Option<PathBuf> = options.value("--dir")?;
    let plan = Plan {
        capture: options.value("--capture")?,
        uris: options.value("--uris")?,
        plot: options.value("--plot")?,
        packets: options.value("--packets")?.unwrap_or(500_000),
        rounds: options.value::<usize>("--runs")?.unwrap_or(5).max(1),
        keep: options.flag("--keep") || dir.is_some(),
        dir: dir.unwrap_or_else(|| shell::memory_directory("papers")),
    };
    options.rest()?;

    setup()?;
    let tshark =
        shell::find("tshark").context("the paper's reference, tshark, is not installed")?;
    let linkweir = shell::release_binary()?;
    in_directory(&plan.dir, plan.keep, |dir| {
        let lab = linkweir.with_file_name("linkweir-lab");
        let runs = Runs::new(linkweir, tshark, dir.to_path_buf());
        let modes = if plan.capture.is_some() {
            &TRAFFIC[..1]
        } else {
            &TRAFFIC
        };
        let mut all = Vec::new();
        for mode in modes {
            let capture = recorded(&plan, &lab, plan.capture.as_deref(), mode)?;
            let rounds = if all.is_empty() { plan.rounds } else { 1 };
            let name = if plan.capture.is_some() {
                "capture"
            } else {
                mode
            };
            all.push((name, runs.all(&capture, rounds)?));
        }
        let uris = recorded(&plan, &lab, plan.uris.as_deref(), "uris")?;
        all.push(("uris", runs.all(&uris, 1)?));
        print(&runs, &all, plan.rounds)?;
        if let Some(directory) = &plan.plot {
            std::fs::create_dir_all(directory)?;
            for (name, results) in &all {
                for (figure, svg) in figures::all(name, results) {
                    std::fs::write(directory.join(format!("fig{figure}-{name}.svg")), svg)?;
                }
            }
        }
        Ok(true)
    })
}

/// The capture that was given, or one recorded in this mode.
fn recorded(plan: &Plan, lab: &Path, given: Option<&Path>, mode: &str) -> Result<PathBuf> {
    if let Some(path) = given {
        return Ok(path.to_path_buf());
    }
    let path = plan.dir.join(format!("{mode}-{}.pcap", plan.packets));
    if !path.is_file() {
        let mut script = Command::new(root().join("benches/record_http.sh"));
        // Rows go to standard output, and nothing else.
        script.stdout(std::io::stderr());
        script.env("LINKWEIR_LAB", lab);
        if !passes(script.arg(&path).arg(plan.packets.to_string()).arg(mode))? {
            bail!("benches/record_http.sh failed");
        }
    }
    Ok(path)
}

fn print(runs: &Runs, all: &[(&str, Results)], rounds: usize) -> Result<()> {
    for (name, results) in all {
        println!(
            "{name}: {} packets, {} bytes on the wire ({:.0} a packet), {} requests, {} responses",
            grouped(results.ours.packets),
            grouped(results.ours.bytes),
            results.ours.bytes as f64 / results.ours.packets as f64,
            grouped(results.ours.requests),
            grouped(results.ours.responses),
        );
    }
    println!(
        "{}; {}; speed: user and system time on one core, input in memory, records as text to a file \
         in memory, median of {rounds} runs (tshark: one)\n",
        version(&runs.linkweir)?,
        version(&runs.tshark)?,
    );
    println!(
        "| claim | capture | paper | ours | command | remark |\n| --- | --- | --- | --- | --- | --- |"
    );
    for (name, row) in rows::all(all) {
        println!(
            "| {} | `{name}` | {} | {} | `cargo xtask papers` | {} |",
            row.claim, row.paper, row.ours, row.remark
        );
    }
    Ok(())
}

/// The programs, and the directory for what they write.
#[derive(Debug)]
struct Runs {
    linkweir: PathBuf,
    tshark: PathBuf,
    dir: PathBuf,
}

/// What the programs said of a capture, and what it cost them.
#[derive(Debug)]
struct Results {
    ours: Sample,
    /// tshark as it is by default: a message counts where its last segment is.
    last_packet: Sample,
    /// tshark without TCP reassembly: a message counts where its first segment is.
    first_packet: Sample,
    /// CPU seconds of `linkweir http` with `text` records.
    our_cpu_s: f64,
    /// CPU seconds of tshark by default.
    tshark_cpu_s: f64,
}

impl Runs {
    fn new(linkweir: PathBuf, tshark: PathBuf, dir: PathBuf) -> Self {
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
    fn all(&self, capture: &Path, rounds: usize) -> Result<Results> {
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
fn version(program: &Path) -> Result<String> {
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
