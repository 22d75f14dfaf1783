//! A program of ours that a test runs to its end, and what it said.
#![allow(
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// How a program ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ran {
    /// The same, where it ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        self
    }

    /// The same, where standard error says this.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text),
            "no `{text}` in: {}",
            self.stderr
        );
        self
    }

    /// The lines of standard output.
    #[must_use]
    pub fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

/// A program with nothing of the surroundings that changes what it prints.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env_remove("COLUMNS")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What it wrote, as texts.
#[must_use]
pub fn ended(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Says loudly that a test did not do its work.
pub fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// Where a program is installed. Debian keeps some in directories where ordinary users do not look.
#[must_use]
pub fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut directories = std::env::split_paths(&path).chain(others);
    directories.find_map(|directory| Some(directory.join(program)).filter(|path| path.is_file()))
}

/// Whether a program that a test needs is installed; says loudly where it is not.
#[must_use]
pub fn has(program: &str) -> bool {
    let is_installed = installed(program).is_some();
    if !is_installed {
        skipped(&format!("{program} is not installed"));
    }
    is_installed
}
