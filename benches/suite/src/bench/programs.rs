//! The programs that are compared, and how each is run.

use super::captures::Capture;
use super::measure::{self, Cost, FEEDER_CORE, Job};
use crate::shell;
use anyhow::{Context as _, Result, bail};
use nix::fcntl::{FcntlArg, fcntl};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Room in the pipe to the program: fewer turns of writer and reader.
const PIPE_SIZE: i32 = 1 << 20;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// `benches/limits/pcapwalk.c`: the limit.
    Walk,
    /// The walk of a folder beside the checkout, if there is one: is our limit the right one?
    OtherWalk,
    Linkweir,
    Httpry,
    Tcpflow,
    /// On the head of the capture only.
    Tshark,
}

impl Program {
    pub(super) const ALL: [Self; 6] = [
        Self::Walk,
        Self::OtherWalk,
        Self::Linkweir,
        Self::Httpry,
        Self::Tcpflow,
        Self::Tshark,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Walk => "pcapwalk (the limit)",
            Self::OtherWalk => "../shared/tools/pcapwalk",
            Self::Linkweir => "linkweir http",
            Self::Httpry => "httpry",
            Self::Tcpflow => "tcpflow",
            Self::Tshark => "tshark -T fields",
        }
    }

    /// Whether a run takes many times what the others take.
    pub(super) fn is_slow(self) -> bool {
        matches!(self, Self::Tcpflow | Self::Tshark)
    }
}

/// The columns of a record, as far as tshark has them.
const TSHARK_FIELDS: [&str; 15] = [
    "frame.number",
    "frame.time_epoch",
    "ip.src",
    "tcp.srcport",
    "ip.dst",
    "tcp.dstport",
    "http.request.method",
    "http.request.uri",
    "http.host",
    "http.user_agent",
    "http.response.code",
    "http.response.phrase",
    "http.response_in",
    "http.request_in",
    "http.time",
];

/// Where the programs are.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) linkweir: PathBuf,
    walk: PathBuf,
    other_walk: Option<PathBuf>,
    httpry: Option<PathBuf>,
    tcpflow: Option<PathBuf>,
    tshark: Option<PathBuf>,
    dir: PathBuf,
}

impl Programs {
    pub(super) fn find(linkweir: PathBuf, walk: PathBuf, dir: PathBuf) -> Self {
        let other_source = shell::root().join("../shared/tools/pcapwalk.c");
        let other_walk = dir.join("other-pcapwalk");
        let built = other_source.is_file() && compile(&other_source, &other_walk).is_ok();
        Self {
            linkweir,
            walk,
            other_walk: built.then_some(other_walk),
            httpry: shell::find("httpry"),
            tcpflow: shell::find("tcpflow"),
            tshark: shell::find("tshark"),
            dir,
        }
    }

    fn path(&self, program: Program) -> Option<&Path> {
        match program {
            Program::Walk => Some(&self.walk),
            Program::OtherWalk => self.other_walk.as_deref(),
            Program::Linkweir => Some(&self.linkweir),
            Program::Httpry => self.httpry.as_deref(),
            Program::Tcpflow => self.tcpflow.as_deref(),
            Program::Tshark => self.tshark.as_deref(),
        }
    }

    pub(super) fn has(&self, program: Program) -> bool {
        self.path(program).is_some()
    }

    /// Runs a program over a capture; what it writes goes to the folder of the captures, in memory.
    pub(super) fn run(&self, program: Program, capture: &Capture) -> Result<Cost> {
        let path = self
            .path(program)
            .with_context(|| format!("no {}", program.name()))?;
        let input = text(&capture.path)?;
        let output = self.dir.join("output");
        let output_text = text(&output)?;
        let args: Vec<String> = match program {
            Program::Walk => vec![input],
            // Work 4, input 4: what our own does.
            Program::OtherWalk => vec![input, "4".to_owned(), "4".to_owned()],
            Program::Linkweir => return self.run_linkweir(&input, Stdio::null(), capture.packets),
            Program::Httpry => ["-r", &input, "-o", &output_text]
                .map(str::to_owned)
                .to_vec(),
            Program::Tcpflow => ["-r", &input, "-o", &output_text]
                .map(str::to_owned)
                .to_vec(),
            Program::Tshark => {
                let mut args = ["-n", "-r", &input, "-Y", "http", "-T", "fields"]
                    .map(str::to_owned)
                    .to_vec();
                for field in TSHARK_FIELDS {
                    args.extend(["-e".to_owned(), field.to_owned()]);
                }
                args
            }
        };
        let stdout = self.dir.join("stdout");
        let job = Job {
            program: path,
            args,
            stdin: Stdio::null(),
            stdout: &stdout,
        };
        let cost = measure::cost(job, &self.dir);
        // A file, a folder or nothing: whichever the program makes.
        if output.is_dir() {
            std::fs::remove_dir_all(&output)?;
        } else if output.exists() {
            std::fs::remove_file(&output)?;
        }
        cost
    }

    /// Runs `linkweir http` over a capture that comes `times` over, through a pipe.
    pub(super) fn run_repeated(&self, capture: &Capture, times: u32) -> Result<Cost> {
        let mut feeder = Command::new(std::env::current_exe()?)
            .args([
                "repeated",
                "--core",
                &FEEDER_CORE.to_string(),
                &text(&capture.path)?,
            ])
            .arg(times.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .context("run the feeder")?;
        let pipe = feeder.stdout.take().context("its output")?;
        // An unprivileged user may have less; then it stays as it is, for both lengths alike.
        if fcntl(&pipe, FcntlArg::F_SETPIPE_SZ(PIPE_SIZE)).is_err() {
            eprintln!("the pipe stays at its default size");
        }
        let cost = self.run_linkweir("-", pipe.into(), capture.packets * u64::from(times));
        let fed = feeder.wait()?;
        if !fed.success() {
            bail!("the feeder failed");
        }
        cost
    }

    fn run_linkweir(&self, input: &str, stdin: Stdio, packets: u64) -> Result<Cost> {
        let records = self.dir.join("records.txt");
        let summary = self.dir.join("summary.json");
        let args = [
            "http",
            "-q",
            "--overwrite",
            "-r",
            input,
            "--format",
            "text",
            "-w",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain([text(&records)?, "--summary".to_owned(), text(&summary)?])
        .collect();
        let stdout = self.dir.join("stdout");
        let job = Job {
            program: &self.linkweir,
            args,
            stdin,
            stdout: &stdout,
        };
        let cost = measure::cost(job, &self.dir)?;
        let seen: Value = serde_json::from_slice(&std::fs::read(&summary)?)?;
        let seen = seen.get("packets").and_then(Value::as_u64);
        if seen != Some(packets) {
            bail!("linkweir saw {seen:?} of {packets} packets");
        }
        // Full records are part of the work: none would be no measurement.
        if std::fs::metadata(&records)?.len() == 0 {
            bail!("linkweir wrote no record");
        }
        std::fs::remove_file(&records)?;
        Ok(cost)
    }
}

/// Compiles a walk as fast as the compiler can make it for this machine.
pub(super) fn compile(source: &Path, program: &Path) -> Result<()> {
    let mut cc = Command::new("cc");
    cc.args(["-O3", "-march=native", "-w", "-o"])
        .arg(program)
        .arg(source);
    if !shell::passes(&mut cc)? {
        bail!("cc cannot compile {}", source.display());
    }
    Ok(())
}

fn text(path: &Path) -> Result<String> {
    Ok(path
        .to_str()
        .context("a path that is not UTF-8")?
        .to_owned())
}
