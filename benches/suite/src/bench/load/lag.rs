//! How well the schedule is kept.

use super::Plan;
use super::generator::{self, Job};
use super::rows::Clients;
use super::site::Site;
use crate::bench::harness::{Column, Row, Series, Target, digits, percent, print, rounds, row};
use anyhow::Result;
use std::path::Path;

/// Sessions per second.
const RATE: u32 = 5000;
/// Least seconds of a run.
const LEAST_SECONDS: u32 = 4;
/// The paper's granularity is 5 us; these are ours, in microseconds.
const MOST_P50_US: f64 = 1.0;
const MOST_P99_US: f64 = 20.0;

/// Lags of one run, microseconds.
#[derive(Debug, Clone, Copy)]
struct Lags {
    p50: f64,
    p99: f64,
    max: f64,
    client: f64,
}

/// Arrivals as `--arrivals` has them, without the rate.
#[derive(Debug)]
struct Arrivals;

/// Even gaps, as the paper had them, and a Poisson process, whose gaps are as often short as in any real
/// load: there one session in six comes while another is being sent.
static ROWS: [Row<Arrivals>; 2] = [
    row("constant", "constant", Arrivals),
    row("poisson", "poisson", Arrivals),
];

#[rustfmt::skip]
const COLUMNS: [Column<Series<Arrivals, Lags>>; 6] = [
    ("schedule lag, us", |own| format!("{RATE} sessions/s, {}", own.row.name)),
    ("runs", |own| own.count().to_string()),
    ("median", |own| digits(own.median(|lags| lags.p50), 2)),
    ("99 %", |own| digits(own.median(|lags| lags.p99), 2)),
    ("longest", |own| digits(own.median(|lags| lags.max), 0)),
    ("client's core", |own| percent(own.median(|lags| lags.client))),
];

/// Starts sessions, at real-time priority: the lag that is asked for is the program's, not that of what else
/// the machine does.
pub(super) fn run(plan: &Plan, site: &Site, binary: &Path) -> Result<Vec<Target>> {
    let all = rounds("schedule lag", &ROWS, plan.runs, |_, row, _| {
        measure(plan, site, binary, row.word).map(Some)
    })?;
    print(
        "from when the schedule wants a session to when its SYN is sent; the middle of the runs, with --rt",
        &COLUMNS,
        &all,
    );
    let targets = all.iter().flat_map(|own| {
        let (p50, p99) = (own.median(|lags| lags.p50), own.median(|lags| lags.p99));
        targets(own.row.word, p50, p99)
    });
    Ok(targets.collect())
}

fn measure(plan: &Plan, site: &Site, binary: &Path, arrivals: &str) -> Result<Lags> {
    let job = Job {
        binary,
        path: "/small",
        clients: Clients::MILLION,
        arrivals: format!("{arrivals}:{RATE}"),
        seconds: plan.seconds.max(LEAST_SECONDS),
        script: None,
        words: ["--close", "--rt"].map(str::to_owned).to_vec(),
    };
    let outcome = generator::run(site, &job)?;
    Ok(Lags {
        p50: outcome.number("schedule_lag_us/p50")?,
        p99: outcome.number("schedule_lag_us/p99")?,
        max: outcome.number("schedule_lag_us/max")?,
        client: outcome.ended.busy.client,
    })
}

fn targets(arrivals: &str, p50: f64, p99: f64) -> [Target; 2] {
    let target = |name: &str, figure: f64, most: f64| {
        Target::new(
            format!("schedule lag at {RATE} sessions/s, {arrivals}: {name} at most {most} us"),
            format!("{figure:.2} us"),
            figure <= most,
        )
    };
    [
        target("median", p50, MOST_P50_US),
        target("99th percentile", p99, MOST_P99_US),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::harness::reached;

    #[test]
    fn targets_are_where_they_are_said_to_be() {
        let passed = |p50, p99| reached(&targets("constant", p50, p99));
        assert_eq!(passed(1.0, 20.0), [true, true]);
        assert_eq!(passed(1.1, 20.1), [false, false]);
        assert_eq!(passed(f64::NAN, f64::NAN), [false, false]);
    }
}
