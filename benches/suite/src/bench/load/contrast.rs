//! Constant arrivals against correlated ones at the same mean rate: Table 2 of the paper.
//!
//! The server is made slow by what it has to do for each answer of `/work`, so that its one core is the
//! limit, as the processor of the paper's server was. The limit is what wrk gets from it. Then linkweir
//! load runs at a half of that and close to it: first with arrivals of the model, whose realised mean
//! nobody knows before, and then with constant gaps at just that mean.

use super::generator::{self, Job, Outcome};
use super::peers::CONNECTIONS;
use super::rows::Clients;
use super::site::Site;
use crate::bench::harness::{Column, Target, digits, print, progress};
use crate::shell::root;
use anyhow::{Context as _, Result};
use std::path::Path;
use std::time::Duration;

/// Commands of an answer: the limit is then near the paper's thousand a second.
pub(super) const WORK: u32 = 1500;
/// Parts of the limit at which the paper measured: 495 and 993 requests per second.
const PARTS: [f64; 2] = [0.5, 0.95];
/// Least seconds of a run: the model needs time for its states.
const LEAST_SECONDS: u32 = 20;
/// Seconds in which wrk finds the limit.
const LIMIT_SECONDS: u32 = 3;
/// How fast the model is played. It is fitted to two days of the 1998 World Cup log in bins of ten seconds
/// and remembers for hours; so it remembers for half a second, and a run sees it forget many times.
const BIN: &str = "200us";

/// One line of the table, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    part: f64,
    is_mmpp: bool,
    /// Least, longest, mean, standard deviation, median, 99th percentile.
    times: [f64; 6],
    rate: f64,
    failed: u64,
}

/// Runs all four, and prints the table.
pub(super) fn run(seconds: u32, site: &Site, binary: &Path) -> Result<Vec<Target>> {
    progress("the server's limit");
    let limit = limit(site)?;
    let model = root().join("app/lab/scenarios/web.model.json");
    let mut lines = Vec::new();
    for part in PARTS {
        let mut rate = limit * part;
        for is_mmpp in [true, false] {
            progress(&format!(
                "{rate:.0} sessions/s{}",
                if is_mmpp { ", MMPP" } else { "" }
            ));
            let arrivals = if is_mmpp {
                format!("mmpp:{}@{rate:.3}", model.display())
            } else {
                format!("constant:{rate:.3}")
            };
            let job = Job {
                binary,
                path: "/work",
                clients: Clients::MILLION,
                arrivals,
                seconds: seconds.max(LEAST_SECONDS),
                script: None,
                words: words(is_mmpp),
            };
            let outcome = generator::run(site, &job)?;
            let planned = outcome.number("planned")? / f64::from(job.seconds);
            lines.push(line(&outcome, part, is_mmpp, planned)?);
            rate = planned;
        }
    }
    progress("");
    print(
        &format!(
            "Table 2 of the paper: response times of a server with a limit of {limit:.0} requests/s"
        ),
        &COLUMNS,
        &lines,
    );
    println!(
        "response time: from when the schedule wanted the request to the last byte of its answer; rate: realised by the schedule"
    );
    Ok(vec![target(&lines)])
}

/// Further words: nobody gives up while the server is behind.
fn words(is_mmpp: bool) -> Vec<String> {
    let mut words = vec![
        "--timeout",
        "120s",
        "--drain",
        "120s",
        "--close",
        "--lag-limit",
        "20ms",
    ];
    if is_mmpp {
        words.extend(["--model-bin", BIN]);
    }
    words.into_iter().map(str::to_owned).collect()
}

/// What the server can do in a second.
fn limit(site: &Site) -> Result<f64> {
    let mut wrk = site.client("wrk");
    wrk.args([
        "-t1",
        &format!("-c{CONNECTIONS}"),
        &format!("-d{LIMIT_SECONDS}s"),
    ]);
    wrk.args(["-H", "Connection: close", &Site::url("/work")]);
    let ended = site.run(&mut wrk, Duration::from_secs(60))?;
    let line = ended
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("Requests/sec:"));
    let rate = line.with_context(|| format!("wrk: {}", ended.stdout))?;
    Ok(rate.trim().parse()?)
}

fn line(outcome: &Outcome, part: f64, is_mmpp: bool, rate: f64) -> Result<Line> {
    let mut times = [0.0; 6];
    let names = ["min", "max", "avg", "stdev", "median", "p99"];
    for (time, name) in times.iter_mut().zip(names) {
        *time = outcome.number(&format!("response_time_s/{name}"))?;
    }
    Ok(Line {
        part,
        is_mmpp,
        times,
        rate,
        failed: outcome.failed()?,
    })
}

#[rustfmt::skip]
const COLUMNS: [Column<Line>; 10] = [
    ("test type", |line| (if line.is_mmpp { "MMPP" } else { "constant" }).to_owned()),
    ("of the limit", |line| format!("{:.0} %", 100.0 * line.part)),
    ("min [s]", |line| digits(line.times[0], 4)),
    ("max [s]", |line| digits(line.times[1], 4)),
    ("avg [s]", |line| digits(line.times[2], 4)),
    ("stdev [s]", |line| digits(line.times[3], 4)),
    ("med [s]", |line| digits(line.times[4], 4)),
    ("p99 [s]", |line| digits(line.times[5], 4)),
    ("rate [1/s]", |line| digits(line.rate, 0)),
    ("failed", |line| line.failed.to_string()),
];

/// Near the limit bursts must cost: that is why anybody plays them.
fn target(lines: &[Line]) -> Target {
    let mean = |is_mmpp: bool| {
        let line = lines.iter().rev().find(|line| line.is_mmpp == is_mmpp);
        line.map_or(f64::NAN, |line| line.times[2])
    };
    let ratio = mean(true) / mean(false);
    Target::new(
        "close to the limit MMPP arrivals wait longer than constant ones at the same mean rate",
        format!("{ratio:.1} x"),
        ratio > 1.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_decides() {
        let line = |part, is_mmpp, mean| Line {
            part,
            is_mmpp,
            times: [0.0, 0.0, mean, 0.0, 0.0, 0.0],
            rate: 1.0,
            failed: 0,
        };
        let lines = [
            line(0.5, true, 1.0),
            line(0.5, false, 9.0),
            line(0.97, true, 6.0),
            line(0.97, false, 2.0),
        ];
        let near = target(&lines);
        assert!(near.is_reached && near.figure == "3.0 x", "{near:?}");
        assert!(!target(&lines[..2]).is_reached && !target(&[]).is_reached);
    }
}
