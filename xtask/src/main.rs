//! Tasks of the project: `cargo xtask TASK`. What CI runs is what you run.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a developer's tool: it prints, and it measures with the clock"
)]

mod ci;
mod deps;
mod docs;
mod fuzz;
mod instructions;
mod links;
mod size;
mod test_programs;
mod words;

use std::process::ExitCode;
use xtask::{Outcome, ends, shell};

const USAGE: &str = "\
usage: cargo xtask TASK

  check                       format, lints, sizes, dependencies: the quick ones
  ci [--skip STEP]... [--fuzz-seconds N]
                              every check: fmt size words deps deny links clippy doc docs test loom page
                              fuzz-smoke oracle instructions
  fmt | clippy | doc          one of them
  test [--seed N|today] [--properties] [--only PROGRAM]... [FILTER]...
                              all tests, programs side by side where they may be; --seed: of the property tests
                              (today: the date); --properties: only programs that have some
  loom                        the rings' protocol under every interleaving of two threads
  page                        whether the console's page is what its sources give
  deny                        licences and sources of the libraries, against deny.toml
  instructions [--update]     instructions of the hot paths against the numbers in benches/instructions
  links                       the links between the documents
  deps                        which crate imports which, against the floors
  size                        lengths of files, unfinished work
  words                       phrases that the glossary replaces, in the manual, help and messages
  fuzz-smoke [--seconds N] [--asan] [TARGET]...
                              builds the fuzz targets and runs each for N seconds (default 29)
  docs [--check]              examples and field tables of the manual, from the program itself
  bench | oracle | papers     what benches/suite measures and compares; `cargo xtask bench` lists them
";

fn main() -> ExitCode {
    ends(|task, rest| match task {
        "check" => ci::check(),
        "ci" => ci::run(rest),
        "fmt" => ci::fmt(),
        "clippy" => ci::clippy(),
        "doc" => ci::doc(),
        "test" => test_programs::run(rest),
        "loom" => ci::loom(),
        "page" => ci::page(),
        "deny" => ci::deny(),
        "links" => links::run(),
        "instructions" => instructions::run(rest),
        "deps" => deps::run(),
        "size" => size::run(),
        "words" => words::run(),
        "fuzz-smoke" => fuzz::run(rest),
        "docs" => docs::run(rest),
        "bench" | "oracle" | "papers" => suite(task, rest),
        "help" => {
            print!("{USAGE}");
            Ok(true)
        }
        other => Err(usage(&format!("no task `{other}`"))),
    })
}

/// Runs a task of `benches/suite`, which is built for it. It starts what it measures as other programs.
fn suite(task: &str, rest: &[String]) -> Outcome {
    let program = shell::built("linkweir-suite")?;
    shell::passes(std::process::Command::new(program).arg(task).args(rest))
}

/// An error that shows how the command is used.
fn usage(what: &str) -> anyhow::Error {
    anyhow::anyhow!("{what}\n\n{USAGE}")
}
