//! How well the schedule is kept.

use super::Plan;
use super::contrast::{BIN, mmpp};
use super::generator::{self, Job};
use super::rows::Clients;
use super::site::{CLIENT_CORE, SERVER_CORE, Site};
use crate::bench::harness::{
    self, Column, Row, Series, Target, digits, percent, print, rounds, row,
};
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::load::{generator as address, routed};
use linkweir_testkit::netns::Running;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

/// Sessions per second.
const RATE: u32 = 5000;
/// Least seconds of a run.
const LEAST_SECONDS: u32 = 4;
/// What a host of a pair may take beyond its run.
const MORE: Duration = Duration::from_secs(60);
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

/// How sessions arrive, and from where.
#[derive(Debug)]
enum Kind {
    /// `--arrivals` of one generator, without the rate.
    Alone(&'static str),
    /// The model.
    Modulated,
    /// Constant gaps from the host of a pair that sends the SYNs (Fig. 1 of the paper).
    Init,
    /// The same with the model.
    ModulatedInit,
}

/// Even gaps, as the paper had them; a Poisson process, whose gaps are as often short as in any real load: there one
/// session in six comes while another is being sent; the model, the paper's other mode; and both modes where another
/// host takes the sessions over.
static ROWS: [Row<Kind>; 5] = [
    row("constant", "constant", Kind::Alone("constant")),
    row("poisson", "poisson", Kind::Alone("poisson")),
    row("mmpp", "mmpp", Kind::Modulated),
    row("init", "constant, --role init", Kind::Init),
    row("mmpp-init", "mmpp, --role init", Kind::ModulatedInit),
];

#[rustfmt::skip]
const COLUMNS: [Column<Series<Kind, Lags>>; 6] = [
    ("schedule lag, us", |own| format!("{RATE} sessions/s, {}", own.row.name)),
    ("runs", |own| own.count().to_string()),
    ("median", |own| digits(own.median(|lags| lags.p50), 2)),
    ("99 %", |own| digits(own.median(|lags| lags.p99), 2)),
    ("longest", |own| digits(own.median(|lags| lags.max), 0)),
    ("client's core", |own| percent(own.median(|lags| lags.client))),
];

/// Starts sessions, at real-time priority: the lag that is asked for is the program's, not that of what else
/// the machine does. `pair` is a site with two generators.
pub(super) fn run(plan: &Plan, site: &Site, pair: &Site, binary: &Path) -> Result<Vec<Target>> {
    let all = rounds("schedule lag", &ROWS, plan.runs, |_, row, _| {
        let lags = match &row.how {
            Kind::Alone(arrivals) => alone(plan, site, binary, (format!("{arrivals}:{RATE}"), &[])),
            Kind::Modulated => alone(plan, site, binary, (mmpp(RATE.into()), &FAST)),
            Kind::Init => together(plan, pair, binary, (format!("constant:{RATE}"), &[])),
            Kind::ModulatedInit => together(plan, pair, binary, (mmpp(RATE.into()), &FAST)),
        };
        lags.map(Some)
    })?;
    print(
        "from when the schedule wants a session to when its SYN is sent; the middle of the runs, with --rt",
        &COLUMNS,
        &all,
    );
    let targets = all.iter().flat_map(|own| {
        let (p50, p99) = (own.median(|lags| lags.p50), own.median(|lags| lags.p99));
        targets(own.row.name, p50, p99)
    });
    Ok(targets.collect())
}

/// The model so fast that a run sees it forget.
const FAST: [&str; 2] = ["--model-bin", BIN];
/// `--arrivals`, and further words.
type Arrivals<'a> = (String, &'a [&'a str]);

fn alone(plan: &Plan, site: &Site, binary: &Path, (arrivals, more): Arrivals<'_>) -> Result<Lags> {
    let words = ["--close", "--rt"].into_iter().chain(more.iter().copied());
    let job = Job {
        binary,
        path: "/small",
        clients: Clients::MILLION,
        arrivals,
        seconds: plan.seconds.max(LEAST_SECONDS),
        seed: 1,
        script: None,
        words: words.map(str::to_owned).collect(),
    };
    let outcome = generator::run(site, &job)?;
    Ok(Lags {
        p50: outcome.number("schedule_lag_us/p50")?,
        p99: outcome.number("schedule_lag_us/p99")?,
        max: outcome.number("schedule_lag_us/max")?,
        client: outcome.ended.busy.client,
    })
}

/// One host sends the SYNs, another on the server's core takes the sessions over and has the figures of both.
fn together(
    plan: &Plan,
    site: &Site,
    binary: &Path,
    (arrivals, more): Arrivals<'_>,
) -> Result<Lags> {
    let seconds = plan.seconds.max(LEAST_SECONDS);
    let summary = site.path("pair.json");
    let command = |number: u8, core: usize, role: &str| {
        let mut load = site.linkweir_at(number, core, binary, &Site::url("/small"));
        // What the server sends to these clients goes to the second generator.
        load.args([
            "--clients",
            &routed(1),
            "--arrivals",
            &arrivals,
            "--seed",
            "1",
        ]);
        load.args(["--duration", &format!("{seconds}s"), "--close", "--rt"]);
        load.args(["--role", role, "--peer", &address(1 - number).to_string()]);
        load.args(more);
        load
    };
    let errors = site.path("stat.stderr");
    let mut stat = command(1, SERVER_CORE, "stat");
    stat.args(["--overwrite", "--summary"]).arg(&summary);
    stat.stderr(File::create(&errors)?);
    let mut stat = Running::start(&mut stat).context("start the second host")?;
    let timeout = Duration::from_secs(seconds.into()) + MORE;
    let init = site.run(&mut command(0, CLIENT_CORE, "init"), timeout)?;
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = stat.ended()? {
            break status;
        }
        if begin.elapsed() > timeout {
            bail!("the second host does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if !matches!((init.code, status.code()), (Some(0 | 1), Some(0 | 1))) {
        let stat = fs::read_to_string(&errors)?;
        bail!(
            "--role init: {:?}, {}; --role stat: {status}, {stat}",
            init.code,
            init.stderr.trim()
        );
    }
    let summary = serde_json::from_slice(&fs::read(&summary).context("no summary")?)?;
    let lag = |name: &str| harness::number(&summary, &format!("load/schedule_lag_us/{name}"));
    Ok(Lags {
        p50: lag("p50")?,
        p99: lag("p99")?,
        max: lag("max")?,
        client: init.busy.client,
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
