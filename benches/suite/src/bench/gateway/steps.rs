//! Fig. 9 of the paper: what a packet takes at each step, where a scan holds its own packets alone, and where the
//! queue waits for it.

use super::between::{Gateway, Rounds};
use super::crowd::{PAPER, load};
use super::policy::Policy;
use super::rows::named;
use super::site::Site;
use crate::bench::harness::{
    Column, Row, Series, cells, count, digits, find, number, percent, print, print_cells, rounds,
    row,
};
use anyhow::{Context as _, Result};
use serde_json::Value;

/// Whether the queue waits for scans.
#[derive(Debug)]
struct Waits(bool);

static ROWS: [Row<Waits>; 2] = [
    row("held", "a scan holds its packets", Waits(false)),
    row("blocking", "the queue waits for each scan", Waits(true)),
];

/// A step, as `status` has it.
#[derive(Debug, Clone)]
struct Step {
    name: String,
    samples: u64,
    sum_ns: f64,
    mean_ns: f64,
    p50_ns: f64,
    p99_ns: f64,
}

#[derive(Debug)]
struct Run {
    gbit_s: f64,
    steps: Vec<Step>,
}

/// Measures both in turns, with all functions on, and prints the tables.
pub(super) fn run(measured: &Rounds<'_>, site: &Site) -> Result<()> {
    let all = rounds("steps", &ROWS, measured.plan.runs, |_, row, _| {
        let mut policy = Policy::of(named("all")?, measured.plan.queues, measured.scanner())?;
        policy.waits_for_scans = row.how.0;
        let gateway = Gateway::start(measured, site, &policy)?;
        let came = load(measured, site, PAPER)?;
        let steps = steps(&gateway.status()?)?;
        gateway.finish()?;
        Ok(Some(Run {
            gbit_s: came.gbit_s,
            steps,
        }))
    })?;
    for own in &all {
        let rows = own.iter().flat_map(|run| &run.steps).map(|step| &step.name);
        let mut names: Vec<&String> = Vec::new();
        for name in rows {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let rows = names
            .iter()
            .map(|name| cells(&columns(), &(own, name.as_str())));
        let title = format!("Fig. 9 of the paper, all functions: {}", own.row.name);
        print_cells(&title, &columns(), rows);
        println!(
            "medians over the rounds, us; of the total: all timed packets together; a scan is {} times what a packet takes at all other steps but hold",
            digits(own.median(scan_of_others), 0)
        );
    }
    let held = find(&all, "held");
    type Cells<'a> = (&'a Series<Waits, Run>, Option<&'a Series<Waits, Run>>);
    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 6] = [
        ("row", |(own, _)| own.row.name.to_owned()),
        ("runs", |(own, _)| own.count().to_string()),
        ("Mbit/s", |(own, _)| digits(1e3 * own.median(|run| run.gbit_s), 1)),
        ("least", |(own, _)| digits(1e3 * own.least(|run| run.gbit_s), 1)),
        ("most", |(own, _)| digits(1e3 * own.most(|run| run.gbit_s), 1)),
        ("of the first", |(own, held)| own.cell_of(*held, |run| run.gbit_s)),
    ];
    print(
        "Fig. 9 of the paper: the gain of not blocking the queue",
        &columns,
        all.iter().map(|own| (own, held)),
    );
    Ok(())
}

/// A step of a row.
type Of<'a> = (&'a Series<Waits, Run>, &'a str);

#[rustfmt::skip]
fn columns<'a>() -> [Column<Of<'a>>; 6] {
    [
        ("step", |(_, name)| (*name).to_owned()),
        ("timed", |of| digits(median(of, |step, _| step.samples as f64), 0)),
        ("mean", |of| digits(median(of, |step, _| step.mean_ns / 1e3), 2)),
        ("median", |of| digits(median(of, |step, _| step.p50_ns / 1e3), 2)),
        ("99 %", |of| digits(median(of, |step, _| step.p99_ns / 1e3), 2)),
        ("of the total", |of| match of.1 {
            "scan" => String::new(),
            _ => percent(median(of, |step, total| step.sum_ns / total)),
        }),
    ]
}

/// Over the rounds; `part` gets the step and the sum of `total`.
fn median((own, name): &Of<'_>, part: fn(&Step, f64) -> f64) -> f64 {
    own.median(|run| {
        let total = run.step("total").map_or(f64::NAN, |total| total.sum_ns);
        run.step(name).map_or(f64::NAN, |step| part(step, total))
    })
}

impl Run {
    fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }
}

/// How many times the other steps of a packet a scan takes.
fn scan_of_others(run: &Run) -> f64 {
    let mean = |name| run.step(name).map_or(0.0, |step| step.mean_ns);
    let others = ["queue", "track", "classify", "inspect", "verdict"].map(mean);
    mean("scan") / others.iter().sum::<f64>()
}

/// The steps of a status.
fn steps(status: &Value) -> Result<Vec<Step>> {
    let list = status.get("steps").and_then(Value::as_array);
    let steps = list.context("no steps in the status")?.iter().map(|step| {
        let ns = |name| number(step, name);
        Ok(Step {
            name: step
                .get("step")
                .and_then(Value::as_str)
                .context("a step without a name")?
                .to_owned(),
            samples: count(step, "samples")?,
            sum_ns: ns("sum_ns")?,
            mean_ns: ns("mean_ns")?,
            p50_ns: ns("p50_ns")?,
            p99_ns: ns("p99_ns")?,
        })
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_status_are_read() {
        let step = |name: &str, mean: u64| {
            serde_json::json!({
                "step": name, "samples": 2, "sum_ns": 2 * mean, "mean_ns": mean, "p50_ns": mean, "p99_ns": mean
            })
        };
        let all = [
            step("queue", 1000),
            step("inspect", 4000),
            step("total", 5000),
            step("scan", 1_000_000),
        ];
        let status = serde_json::json!({ "steps": all });
        let steps = steps(&status).unwrap();
        let run = Run { gbit_s: 1.0, steps };
        assert_eq!(scan_of_others(&run), 200.0);
        let series = Series {
            row: &ROWS[0],
            runs: std::iter::once(Some(run)).collect(),
        };
        let cells = cells(&columns(), &(&series, "inspect"));
        assert_eq!(cells, ["inspect", "2", "4.00", "4.00", "4.00", "80 %"]);
        assert!(super::steps(&serde_json::json!({})).is_err());
    }
}
