//! How well the schedule is kept.

use super::Plan;
use super::generator::{self, Job};
use super::row::Clients;
use super::site::Site;
use crate::bench::bars::Bar;
use crate::bench::measure::median;
use crate::bench::progress;
use crate::shell::print_table;
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

/// Starts sessions with even gaps, as the paper did, and by a Poisson process, whose gaps are as often short
/// as in any real load: there one session in six comes while another is being sent. At real-time priority:
/// the lag that is asked for is the program's, not that of what else the machine does.
pub(super) fn run(plan: &Plan, site: &Site, binary: &Path) -> Result<Vec<Bar>> {
    let header = [
        "schedule lag, us",
        "runs",
        "median",
        "99 %",
        "longest",
        "client's core",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let mut all = Vec::new();
    for arrivals in ["constant", "poisson"] {
        let runs = measure(plan, site, binary, arrivals)?;
        let of = |part: fn(&Lags) -> f64| median(&runs.iter().map(part).collect::<Vec<f64>>());
        rows.push(vec![
            format!("{RATE} sessions/s, {arrivals}"),
            runs.len().to_string(),
            format!("{:.2}", of(|lags| lags.p50)),
            format!("{:.2}", of(|lags| lags.p99)),
            format!("{:.0}", of(|lags| lags.max)),
            format!("{:.0} %", 100.0 * of(|lags| lags.client)),
        ]);
        all.extend(bars(arrivals, of(|lags| lags.p50), of(|lags| lags.p99)));
    }
    progress("");
    println!(
        "\nfrom when the schedule wants a session to when its SYN is sent; the middle of the runs, with --rt"
    );
    print_table(&rows);
    Ok(all)
}

fn measure(plan: &Plan, site: &Site, binary: &Path, arrivals: &str) -> Result<Vec<Lags>> {
    let mut runs = Vec::new();
    for round in 0..plan.runs {
        progress(&format!("round {}: schedule lag, {arrivals}", round + 1));
        let job = Job {
            binary,
            path: "/small",
            clients: Clients::Million,
            arrivals: format!("{arrivals}:{RATE}"),
            seconds: plan.seconds.max(LEAST_SECONDS),
            script: None,
            words: ["--close", "--rt"].map(str::to_owned).to_vec(),
        };
        let outcome = generator::run(site, &job)?;
        runs.push(Lags {
            p50: outcome.number("schedule_lag_us.p50")?,
            p99: outcome.number("schedule_lag_us.p99")?,
            max: outcome.number("schedule_lag_us.max")?,
            client: outcome.ended.busy.client,
        });
    }
    Ok(runs)
}

fn bars(arrivals: &str, p50: f64, p99: f64) -> Vec<Bar> {
    let bar = |name: &str, figure: f64, most: f64| Bar {
        what: format!("schedule lag at {RATE} sessions/s, {arrivals}: {name} at most {most} us"),
        figure: format!("{figure:.2} us"),
        passed: figure <= most,
    };
    vec![
        bar("median", p50, MOST_P50_US),
        bar("99th percentile", p99, MOST_P99_US),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_where_they_are_said_to_be() {
        let passed = |p50, p99| {
            let bars = bars("constant", p50, p99);
            (bars[0].passed, bars[1].passed)
        };
        assert_eq!(passed(1.0, 20.0), (true, true));
        assert_eq!(passed(1.1, 20.1), (false, false));
        assert_eq!(passed(f64::NAN, f64::NAN), (false, false));
    }
}
