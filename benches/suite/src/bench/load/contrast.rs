//! Constant arrivals against correlated ones at the same mean rate: Table 2 of the paper.
//!
//! A session is the paper's: a page and, on the same connection, an object of it. The server is made slow by
//! what it has to do for each page (`/work`), so that its one core is the limit, as the processor of the paper's
//! server was. The limit is what wrk gets of such sessions. Then linkweir load runs at a half of that and close to
//! it, with arrivals of the model and with constant gaps, both with the same number of sessions.
//!
//! Both times are shown: from when a request is issued, as in the paper, and from when the schedule wanted it.

use super::figures;
use super::generator::{self, Job, Outcome};
use super::peers::CONNECTIONS;
use super::rows::Clients;
use super::site::Site;
use crate::bench::harness::{Column, Target, digits, median, print, progress};
use crate::shell::root;
use anyhow::{Context as _, Result};
use linkweir_testkit::load::EMBEDDED;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Commands of an answer: the limit is then near the paper's thousand a second.
pub(super) const WORK: u32 = 1500;
/// Parts of the limit at which the paper measured: 495 and 993 requests per second.
const PARTS: [f64; 2] = [0.5, 0.95];
/// Runs of each row, each with a seed of its own.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;
/// Least seconds of a run: the model needs time for its states.
const LEAST_SECONDS: u32 = 20;
/// Seconds in which wrk finds the limit.
const LIMIT_SECONDS: u32 = 3;
/// By how much the rates of two runs may differ that are compared.
const SAME: f64 = 0.01;
/// How fast the model is played. It is fitted to two days of the 1998 World Cup log in bins of ten seconds
/// and remembers for hours; so it remembers for half a second, and a run sees it forget many times.
pub(super) const BIN: &str = "200us";

/// The model as `--arrivals` has it, with sessions per second that the run keeps.
pub(super) fn mmpp(rate: f64) -> String {
    let model = root().join("app/lab/scenarios/web.model.json");
    format!("mmpp:{}@={rate:.3}", model.display())
}

/// Which time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// From the first byte of the request, as in the paper.
    Issued,
    /// From when the schedule wanted it.
    Wanted,
}

/// One line of the table, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    part: f64,
    is_mmpp: bool,
    from: From,
    seed: u64,
    /// Least, longest, mean, standard deviation, median.
    times: [f64; 5],
    rate: f64,
    failed: u64,
}

/// What is asked for.
#[derive(Debug)]
pub(super) struct Contrast<'a> {
    pub(super) seconds: u32,
    pub(super) binary: &'a Path,
    /// A directory for Figs. 7 to 10.
    pub(super) plot: Option<&'a Path>,
}

impl Contrast<'_> {
    /// Runs all, and prints the tables.
    pub(super) fn run(&self, site: &Site) -> Result<Vec<Target>> {
        progress("the server's limit");
        let limit = limit(site)?;
        let mut lines = Vec::new();
        for seed in SEEDS {
            // As the paper numbers its figures: both of the model, then both of constant gaps.
            for (part, numbers) in PARTS.into_iter().zip([[7, 9], [8, 10]]) {
                for (is_mmpp, number) in [true, false].into_iter().zip(numbers) {
                    lines.extend(self.one(site, (limit, part, is_mmpp), seed, number)?);
                }
            }
        }
        progress("");
        println!(
            "\nTable 2 of the paper: response times of a server with a limit of {limit:.0} sessions/s, each a page and an object of it; \
             issued: from the first byte of a request to the last of its response, as in the paper; \
             wanted: from when the schedule wanted it; rate: of the schedule"
        );
        let middle = medians(&lines);
        print("median of the runs", &COLUMNS, &middle);
        print("every run", &COLUMNS, &lines);
        Ok(targets(&lines).into())
    }

    fn one(
        &self,
        site: &Site,
        (limit, part, is_mmpp): (f64, f64, bool),
        seed: u64,
        number: u32,
    ) -> Result<[Line; 2]> {
        let rate = limit * part;
        let kind = if is_mmpp { "MMPP" } else { "constant" };
        progress(&format!("{rate:.0} sessions/s, {kind}, seed {seed}"));
        let records = site.path("sessions.jsonl");
        let plot = self.plot.filter(|_| seed == *SEEDS.start());
        let mut words = words(is_mmpp);
        if plot.is_some() {
            words.extend(["-w".to_owned(), records.display().to_string()]);
        }
        let job = Job {
            binary: self.binary,
            path: "/work",
            clients: Clients::MILLION,
            arrivals: if is_mmpp {
                mmpp(rate)
            } else {
                format!("constant:{rate:.3}")
            },
            seconds: self.seconds.max(LEAST_SECONDS),
            seed,
            script: Some(session()),
            words,
        };
        let outcome = generator::run(site, &job)?;
        let rate = outcome.number("planned")? / f64::from(job.seconds);
        if let Some(directory) = plot {
            let title = format!("Fig. {number}: {kind}, {rate:.0} sessions/s");
            let text = fs::read_to_string(&records).context("records of the run")?;
            let svg = figures::draw(&title, &text)?;
            fs::create_dir_all(directory)?;
            fs::write(directory.join(format!("fig{number}.svg")), svg)?;
        }
        let of = |from| line(&outcome, (part, is_mmpp, from), seed, rate);
        Ok([of(From::Issued)?, of(From::Wanted)?])
    }
}

/// The page and an object of it.
fn session() -> String {
    format!("/work\n    {}\n", EMBEDDED[0])
}

/// Further words: nobody gives up while the server is behind.
fn words(is_mmpp: bool) -> Vec<String> {
    let mut words = vec![
        "--timeout",
        "120s",
        "--drain",
        "120s",
        "--lag-limit",
        "20ms",
    ];
    if is_mmpp {
        words.extend(["--model-bin", BIN]);
    }
    words.into_iter().map(str::to_owned).collect()
}

/// Sessions that the server can do in a second: half of the requests, where every second one is the object and the last
/// on its connection.
fn limit(site: &Site) -> Result<f64> {
    let script = site.path("sessions.lua");
    fs::write(
        &script,
        format!(
            "local number = 0\n\
             request = function()\n\
             number = number + 1\n\
             if number % 2 == 1 then return wrk.format(\"GET\", \"/work\") end\n\
             return wrk.format(\"GET\", \"{}\", {{[\"Connection\"] = \"close\"}})\n\
             end\n",
            EMBEDDED[0]
        ),
    )?;
    let mut wrk = site.client("wrk");
    wrk.args([
        "-t1",
        &format!("-c{CONNECTIONS}"),
        &format!("-d{LIMIT_SECONDS}s"),
        "-s",
    ]);
    wrk.arg(&script).arg(Site::url("/work"));
    let ended = site.run(&mut wrk, Duration::from_secs(60))?;
    let line = ended
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("Requests/sec:"));
    let rate = line.with_context(|| format!("wrk: {}", ended.stdout))?;
    Ok(rate.trim().parse::<f64>()? / 2.0)
}

fn line(
    outcome: &Outcome,
    (part, is_mmpp, from): (f64, bool, From),
    seed: u64,
    rate: f64,
) -> Result<Line> {
    let stage = match from {
        From::Issued => "service",
        From::Wanted => "response",
    };
    let mut times = [0.0; 5];
    let names = ["min", "max", "avg", "stdev", "median"];
    for (time, name) in times.iter_mut().zip(names) {
        *time = outcome.number(&format!("times_s/{stage}/{name}"))?;
    }
    Ok(Line {
        part,
        is_mmpp,
        from,
        seed,
        times,
        rate,
        failed: outcome.failed()?,
    })
}

/// One line for all runs of a kind: the median of each figure; seed 0.
fn medians(lines: &[Line]) -> Vec<Line> {
    let is_like = |a: &Line, b: &Line| (a.part, a.is_mmpp, a.from) == (b.part, b.is_mmpp, b.from);
    let mut all: Vec<Line> = Vec::new();
    for line in lines {
        if all.iter().any(|other| is_like(line, other)) {
            continue;
        }
        let alike: Vec<&Line> = lines.iter().filter(|other| is_like(line, other)).collect();
        let middle = |of: &dyn Fn(&Line) -> f64| {
            median(&alike.iter().map(|line| of(line)).collect::<Vec<f64>>())
        };
        all.push(Line {
            seed: 0,
            times: std::array::from_fn(|place| {
                middle(&|line| line.times.get(place).copied().unwrap_or(f64::NAN))
            }),
            rate: middle(&|line| line.rate),
            failed: alike.iter().map(|line| line.failed).sum(),
            ..*line
        });
    }
    all
}

#[rustfmt::skip]
const COLUMNS: [Column<Line>; 11] = [
    ("test type", |line| (if line.is_mmpp { "MMPP" } else { "constant" }).to_owned()),
    ("of the limit", |line| format!("{:.0} %", 100.0 * line.part)),
    ("seed", |line| if line.seed == 0 { "all".to_owned() } else { line.seed.to_string() }),
    ("time from", |line| (if line.from == From::Issued { "issued" } else { "wanted" }).to_owned()),
    ("min [s]", |line| digits(line.times[0], 4)),
    ("max [s]", |line| digits(line.times[1], 4)),
    ("avg [s]", |line| digits(line.times[2], 4)),
    ("stdev [s]", |line| digits(line.times[3], 4)),
    ("med [s]", |line| digits(line.times[4], 4)),
    ("rate [1/s]", |line| digits(line.rate, 1)),
    ("failed", |line| line.failed.to_string()),
];

/// Only runs of the same rate can be compared; near the limit bursts must cost: that is why anybody plays them.
fn targets(lines: &[Line]) -> [Target; 2] {
    let constant = |line: &Line| {
        lines.iter().find(|other| {
            !other.is_mmpp
                && (other.part, other.seed, other.from) == (line.part, line.seed, line.from)
        })
    };
    let pairs = lines.iter().filter(|line| line.is_mmpp);
    let pairs: Vec<(&Line, &Line)> = pairs
        .filter_map(|line| Some((line, constant(line)?)))
        .collect();
    let apart = pairs
        .iter()
        .map(|(mmpp, constant)| (mmpp.rate / constant.rate - 1.0).abs());
    let apart = apart.fold(0.0, f64::max);
    let near = |(mmpp, constant): &(&Line, &Line)| {
        let is_meant = mmpp.from == From::Wanted && mmpp.part == PARTS[1];
        is_meant.then(|| mmpp.times[2] / constant.times[2])
    };
    let ratios: Vec<f64> = pairs.iter().filter_map(near).collect();
    let ratio = if ratios.is_empty() {
        f64::NAN
    } else {
        median(&ratios)
    };
    [
        Target::new(
            format!(
                "realised rates of compared runs at most {:.0} % apart",
                SAME * 100.0
            ),
            format!("{:.3} %", apart * 100.0),
            !pairs.is_empty() && apart <= SAME,
        ),
        Target::new(
            "close to the limit MMPP arrivals wait longer than constant ones at the same mean rate",
            format!("{ratio:.1} x"),
            ratio > 1.0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::harness::reached;

    fn line(part: f64, is_mmpp: bool, seed: u64, mean: f64, rate: f64) -> Line {
        Line {
            part,
            is_mmpp,
            from: From::Wanted,
            seed,
            times: [0.0, 0.0, mean, 0.0, 0.0],
            rate,
            failed: 1,
        }
    }

    #[test]
    fn the_part_near_the_limit_decides() {
        let lines = [
            line(0.5, true, 1, 1.0, 50.0),
            line(0.5, false, 1, 9.0, 50.2),
            line(0.95, true, 1, 6.0, 95.0),
            line(0.95, false, 1, 2.0, 95.0),
        ];
        let found = targets(&lines);
        assert_eq!(reached(&found), [true, true]);
        assert_eq!(found[1].figure, "3.0 x");
        assert_eq!(reached(&targets(&lines[..2])), [true, false]);
        assert_eq!(reached(&targets(&[])), [false, false]);
        // A rate that strayed.
        let strayed = [line(0.95, true, 1, 6.0, 137.0), lines[3]];
        assert_eq!(reached(&targets(&strayed)), [false, true]);
    }

    #[test]
    fn lines_of_a_kind_are_one() {
        let lines = [
            line(0.5, true, 1, 1.0, 50.0),
            line(0.5, false, 1, 9.0, 50.0),
            line(0.5, true, 2, 5.0, 50.0),
            line(0.5, true, 3, 2.0, 51.0),
        ];
        let all = medians(&lines);
        assert_eq!(all.len(), 2);
        assert_eq!(
            (all[0].times[2], all[0].rate, all[0].failed),
            (2.0, 50.0, 3)
        );
        assert_eq!(all[1].times[2], 9.0);
    }

    #[test]
    fn a_session_is_a_page_and_an_object() {
        assert_eq!(session(), "/work\n    /style.css\n");
        assert!(mmpp(500.0).ends_with("web.model.json@=500.000"));
    }
}
