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

/// Run all systems together, and report where their counts differ.
///
/// Creates network namespaces (as root, or as an ordinary user in a user namespace) with emulated clients,
/// a gateway, a web server, and `linkweir http` and `linkweir flows` between them. At the end a table
/// compares what was sent with what each observer reports, with differences and tolerances. The network of
/// the machine is not touched, and everything is removed at the end.
///
/// Scenarios are files: `--list` lists those that are built in, `--print` prints one, which can be changed
/// and run as `linkweir lab ./mine.toml`.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    after_long_help = AFTER_HELP,
)]
pub struct LabArgs {
    /// Name of a built-in scenario, or path of a scenario file.
    #[arg(value_name = "SCENARIO", default_value = "web", value_hint = ValueHint::FilePath)]
    pub scenario: String,

    /// List the built-in scenarios and exit.
    #[arg(long)]
    pub list: bool,

    /// Print the scenario file and exit.
    #[arg(long, conflicts_with = "list")]
    pub print: bool,

    /// Start sessions for this time [default: as the scenario says].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub duration: Option<Duration>,

    /// Mean sessions per second; `overload` finds its own [default: as the scenario says].
    #[arg(long, value_name = "RATE", value_parser = units::positive)]
    pub rate: Option<f64>,

    /// Random seed: the same seed gives the same schedule.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Keep all files (records, logs, policies) in this directory, which must be new or empty [default: a
    /// temporary directory, removed at the end].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,

    /// Write the results as one JSON object; `-` is standard output.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub summary: Option<String>,

    /// Write a self-contained HTML page with the tables and plots.
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub report: Option<String>,

    /// What becomes of files that exist.
    #[command(flatten)]
    pub files: OverwriteArgs,

    /// Do not serve web pages. By default each command serves its page on loopback and prints its address.
    #[arg(long)]
    pub no_console: bool,

    /// Print only the tables.
    #[arg(short, long)]
    pub quiet: bool,
}

const AFTER_HELP: &str = "\
Examples:
  linkweir lab
  linkweir lab loss --duration 5s --report loss.html

Exit codes:
  0  success, all checks passed, or interrupted
  1  success, but observers differ by more than the stated tolerance
  2  invalid usage or scenario
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
