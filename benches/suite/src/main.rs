//! What measures and compares: `cargo xtask bench`, `cargo xtask oracle` and `cargo xtask papers` run it.
//!
//! It is a program apart from `xtask`, which a commit needs: it carries captures, the testkit and the
//! client of a broker.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a developer's tool: it prints, and it measures with the clock"
)]

mod bench;
mod oracle;
mod papers;

use std::process::ExitCode;
use xtask::{Outcome, shell};

const USAGE: &str = "\
usage: cargo xtask TASK

  bench http [--packets N] [--capture FILE] [--tiny FILE] [--runs R] [--dir DIR] [--keep]
                              speed and memory beside other tools; exit 1 where a target is missed
  bench flows [--packets N] [--capture FILE] [--runs R] [--dir DIR] [--binary FILE] [--keep] [--short]
              [--hours H [--rate R]]
                              the same for flows; --short without the largest captures; --hours: only the
                              cost of --archive and --rrd over H hours of packet time, R packets a second
  bench live [--packets N] [--transactions N] [--capture FILE] [--binary FILE] [--runs R]
             [--seconds S] [--only speed|shares|feed|scale]
                              packets from an interface, in network namespaces made for it
  bench gateway [--seconds N] [--runs R] [--queues N] [--keep-alive] [--binary FILE] [--only PART]...
                              what passes through the gateway, beside proxies and the plain kernel; parts:
                              rows (forward, nat, accept, classify, l7, inspect, keywords, record, scan,
                              all, redirect, squid), cable, crowd, queues, steps, sweep, slow-scan, shape,
                              many, far, flood
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
                              our records against tshark's, on a directory of captures
  oracle flows [--file PART] [--verbose] [--captures DIR] [--binary FILE]
                              flow records against tcptrace's and tshark's conversations
  papers [--capture FILE] [--uris FILE] [--packets N] [--runs R] [--plot DIR] [--dir DIR] [--keep]
                              figures and tables of the paper computed again, beside tshark: rows
                              for docs/papers.md
";

fn main() -> ExitCode {
    xtask::ends(|task, rest| match task {
        "bench" => bench::run(rest),
        "oracle" => oracle::run(rest),
        "papers" => papers::run(rest),
        // The halves of a measurement: see `bench::harness::cost`, `bench::repeat` and `bench::flows::hours`.
        "measured" => bench::measured(rest),
        "repeated" => bench::repeated(rest),
        "made" => bench::made(rest),
        "help" => {
            print!("{USAGE}");
            Ok(true)
        }
        other => Err(usage(&format!("no task `{other}`"))),
    })
}

/// An error that shows how the command is used.
fn usage(what: &str) -> anyhow::Error {
    anyhow::anyhow!("{what}\n\n{USAGE}")
}
