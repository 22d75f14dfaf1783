//! Tasks of the project: `cargo xtask TASK`. What CI runs is what you run.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a developer's tool: it prints, and it measures with the clock"
)]

mod bench;
mod ci;
mod deps;
mod docs;
mod fuzz;
mod oracle;
mod papers;
mod shell;
mod size;
mod source;

use anyhow::Result;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

  check                       format, lints, sizes, dependencies: the quick ones
  ci [--skip STEP]... [--fuzz-seconds N]
                              every check: fmt size deps clippy doc docs test loom page
                              fuzz-smoke oracle
  fmt | clippy | doc | test   one of them
  loom                        the rings' protocol under every interleaving of two threads
  page                        whether the console's page is what its sources give
  deps                        which crate imports which, against the floors
  size                        lengths of files, unsafe code, unfinished work
  fuzz-smoke [--seconds N] [--asan] [TARGET]...
                              builds the fuzz targets and runs each for N seconds (default 30)
  docs [--check]              examples and field tables of the manual, from the program itself
  bench http [--packets N] [--capture FILE] [--tiny FILE] [--runs R] [--dir DIR] [--keep]
                              speed and memory beside other tools; exit 1 where a bar is missed
  bench flows [--packets N] [--capture FILE] [--runs R] [--dir DIR] [--binary FILE] [--keep] [--short]
                              the same for flows; --short without the largest captures
  bench live [--packets N] [--transactions N] [--capture FILE] [--binary FILE] [--runs R]
             [--seconds S] [--only speed|shares|feed]
                              packets from an interface, in network namespaces made for it
  bench gateway [--seconds N] [--runs R] [--queues N] [--keep-alive] [--binary FILE] [--only PART]...
                              what passes through the gateway, beside proxies and the plain kernel; parts:
                              rows (forward, nat, accept, classify, inspect, keywords, record, scan, all,
                              redirect, squid), cable, sweep, slow-scan, shape, many
  bench load [--seconds N] [--runs R] [--cable] [--urgent] [--binary FILE] [--only PART]...
                              what the load generator makes of a core, beside wrk, ab and httperf; parts:
                              rows (wrk, ab, httperf, one, thousand, million), lag, open, contrast
  bench model [--logs DIR] [--seed N]
                              the fitted arrivals beside simpler processes, on recorded series
  bench sinks [--transactions N] [--times N] [--runs R] [--binary FILE] [--only PART]... [--sink NAME]...
                              what a record costs in each output, and a broker that goes away; parts: whole,
                              alone, growth, real, stopped
  bench record [--packets N] --dir DIR
                              only makes the captures for it
  oracle [--file PART] [--verbose] [--captures DIR]
                              our records against tshark's, on a folder of captures
  oracle flows [--file PART] [--verbose] [--captures DIR] [--binary FILE]
                              flow records against tcptrace's and tshark's conversations
  papers [--capture FILE] [--uris FILE] [--packets N] [--runs R] [--dir DIR] [--keep]
                              figures and tables of the paper computed again, beside tshark: rows
                              for docs/papers.md
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (task, rest) = match args.split_first() {
        Some((task, rest)) => (task.as_str(), rest),
        None => ("help", args.as_slice()),
    };
    let outcome = match task {
        "check" => ci::check(),
        "ci" => ci::run(rest),
        "fmt" => ci::fmt(),
        "clippy" => ci::clippy(),
        "doc" => ci::doc(),
        "test" => ci::test(),
        "loom" => ci::loom(),
        "page" => ci::page(),
        "deps" => deps::run(),
        "size" => size::run(),
        "fuzz-smoke" => fuzz::run(rest),
        "bench" => bench::run(rest),
        "oracle" => oracle::run(rest),
        "docs" => docs::run(rest),
        "papers" => papers::run(rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(true)
        }
        // The two halves of a measurement: see `bench::measure` and `bench::repeat`.
        "measured" => bench::measured(rest),
        "repeated" => bench::repeated(rest),
        other => Err(usage(&format!("no task `{other}`"))),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// An error that shows how the command is used.
fn usage(what: &str) -> anyhow::Error {
    anyhow::anyhow!("{what}\n\n{USAGE}")
}

/// What a task ends with: `true` if everything it checks holds.
type Outcome = Result<bool>;
