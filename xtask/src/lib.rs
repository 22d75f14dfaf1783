//! What the tasks of the project share: running other programs, options, tables.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a developer's tool: it prints, and it measures with the clock"
)]

pub mod shell;

use std::process::ExitCode;

/// What a task ends with: `true` if everything it checks holds.
pub type Outcome = anyhow::Result<bool>;

/// Runs the task that the command line names (`help` where it names none) with the words behind it.
///
/// Exit status: 0 where everything it checks holds, 1 where something does not, 2 after an error.
pub fn ends(run: impl FnOnce(&str, &[String]) -> Outcome) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (task, rest) = match args.split_first() {
        Some((task, rest)) if !matches!(task.as_str(), "--help" | "-h") => (task.as_str(), rest),
        _ => ("help", [].as_slice()),
    };
    match run(task, rest) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}
