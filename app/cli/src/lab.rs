//! `lab`: its command line, which `linkweir-lab` has too, and the start of that program.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueHint};

use crate::exit::Exit;
use crate::files::OverwriteArgs;
use crate::units;

/// The program beside `linkweir`.
const PROGRAM: &str = "linkweir-lab";

/// Runs all systems against one another, and reports where they disagree.
///
/// In network namespaces of its own (as root, or as an ordinary user in a user namespace): emulated
/// clients, a gateway, a web server, and `linkweir http` and `linkweir flows` between them. At the end
/// one table shows what was sent beside what each of them saw, the differences and their tolerances.
/// Nothing of the machine's own network is touched, and nothing stays.
///
/// Scenarios are files: `--list` names those that come with the program, `--print` prints one, to be
/// changed and run as `linkweir lab ./mine.toml`.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    after_long_help = AFTER_HELP,
)]
pub struct LabArgs {
    /// Name of a scenario, or path of one in a file.
    #[arg(value_name = "SCENARIO", default_value = "web", value_hint = ValueHint::FilePath)]
    pub scenario: String,

    /// List the scenarios that come with the program.
    #[arg(long)]
    pub list: bool,

    /// Print the scenario's file, and run nothing.
    #[arg(long, conflicts_with = "list")]
    pub print: bool,

    /// Sessions start during this time [default: as the scenario says].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub duration: Option<Duration>,

    /// Mean sessions per second; `overload` finds its own [default: as the scenario says].
    #[arg(long, value_name = "RATE", value_parser = units::positive)]
    pub rate: Option<f64>,

    /// Names all random numbers: the same seed gives the same schedule.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Keep everything that is written (records, logs, policies) in this directory, which is new or empty
    /// [default: a temporary one, which goes with the run].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,

    /// Write what was found as one JSON object; `-` is standard output.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub summary: Option<String>,

    /// Write a self-contained HTML page with the tables and plots.
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub report: Option<String>,

    /// What becomes of files that exist.
    #[command(flatten)]
    pub files: OverwriteArgs,

    /// No web pages while it runs. Else each of the commands serves its page on loopback, and its
    /// address is printed.
    #[arg(long)]
    pub no_console: bool,

    /// Print the tables alone.
    #[arg(short, long)]
    pub quiet: bool,
}

const AFTER_HELP: &str = "\
Examples:
  linkweir lab
  linkweir lab loss --duration 5s --report loss.html

Exit codes:
  0  done, all checks passed, or interrupted
  1  done, but observers differ by more than the stated tolerance
  2  wrong command line or scenario
  3  a program is missing or failed, or the kernel allows no namespaces";

/// Becomes `linkweir-lab`, which stands beside this program, with the words behind `lab`. Returns only where
/// that fails.
///
/// # Errors
/// It is missing, or cannot be started.
pub fn start() -> anyhow::Result<Exit> {
    let own = std::env::current_exe().context("the path of this program")?;
    let program = own.with_file_name(PROGRAM);
    let mut words = std::env::args_os();
    // Reports show the command line as it was written.
    let name: OsString = words
        .by_ref()
        .take(2)
        .collect::<Vec<_>>()
        .join(OsStr::new(" "));
    let error = Command::new(&program).arg0(name).args(words).exec();
    let path = program.display();
    match error.kind() {
        ErrorKind::NotFound => Err(anyhow!(
            "{path} is missing, which is the laboratory; \
             `make install` and the Debian package put it there, `cargo build --package {PROGRAM}` in a checkout"
        )),
        _ => Err(error).with_context(|| path.to_string()),
    }
}
