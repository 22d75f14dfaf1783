//! The rows of the paper's table, and what each observer says.
//!
//! Response times over time, and how they are distributed.

use super::Settings;
use super::play::Played;
use super::seen::Seen;
use super::seen::mean_response;
use crate::curves::{complementary, means_over_time, quantile};
use crate::program::Ended;
use crate::report::{Axis, Curve, Picture, Report, Rule, Table, Unit};

/// What the clocks of two readers of the same frames may differ by, seconds.
const CLOCKS_S: f64 = 50e-6;
/// Runs that the table of the paper has: far and near, MMPP and constant.
const JUDGED: usize = 4;
/// Columns of the table, as the runs are in order.
const COLUMNS: [&str; JUDGED] = ["far: MMPP", "far: constant", "near: MMPP", "near: constant"];

/// Everything that was said: first the four runs of the table, then others.
pub(super) struct Observations<'a> {
    pub(super) settings: &'a Settings,
    /// Answers that the server can give a second: as was found first, and as was known when the runs near it began.
    pub(super) limits: [f64; 2],
    pub(super) runs: &'a [Played],
    pub(super) seen: &'a [Seen],
    /// Whether the server had its core near the limit.
    pub(super) is_quiet: bool,
    pub(super) http: &'a Ended,
    pub(super) flows: &'a Ended,
}

impl Observations<'_> {
    /// The tables.
    pub(super) fn report(&self) -> Report {
        let mut report = Report::default();
        let settings = self.settings;
        let [first, _] = self.limits;
        report.fact(
            "the server's limit",
            format!("{first:.0} answers in a second of its processor"),
        );
        report.fact(
            "arrivals",
            format!(
                "MMPP `web` in bins of {:?} and constant at its realised mean, {:?} each, at {} and {} of the limit",
                settings.model_bin, settings.duration, settings.far, settings.near
            ),
        );
        report.tables = vec![
            self.counts(),
            self.losses(),
            self.as_client(),
            self.as_wire(),
            self.client_and_wire(),
            self.contrast(),
            self.machine(),
        ];
        report.notes.push(
            "Response time of the client: from when the schedule wanted the request to the last byte of its \
             answer. Of the wire: from the first segment of the request to that last byte. The \
             gateway's kernel passes the frames on; linkweir gateway does not run here."
                .to_owned(),
        );
        if !self.is_quiet {
            report.notes.push(format!(
                "NOT JUDGED near the limit: beside the other programs of this machine the server was at its limit \
                 with constant gaps too; less than {:.0} % of its core was left in each try.",
                50.0 * (1.0 - settings.near)
            ));
        }
        report
    }

    fn counts(&self) -> Table {
        let observers = ["planned", "completed", "nginx", "http", "flows"];
        let mut table = Table::new("sessions of one request", &observers);
        for (run, seen) in self.runs.iter().zip(self.seen) {
            let cells = [
                run.planned(),
                run.load.count("load/completed"),
                seen.served,
                seen.transactions,
                seen.flows,
            ];
            table.count(&run.name, Rule::Same, &cells.map(Some));
        }
        table
    }

    fn losses(&self) -> Table {
        let mut table = Table::new("losses of observers", &["load", "http", "flows"]);
        let load = self.runs.iter().map(|run| run.load.sum("dropped")).sum();
        let [http, flows] = [self.http, self.flows].map(|ended| ended.sum("dropped"));
        let dropped = [load, http, flows].map(Some);
        table.count("packets and records", Rule::AtMost(0.0), &dropped);
        table
    }

    fn as_client(&self) -> Table {
        let times = self.times(|seen| seen.client.iter().map(|(_, time)| *time).collect());
        let mut table = paper_table("response time, as the client saw it", &times);
        let rates = self
            .of_runs(|run, _| Some(run.planned() as f64 / self.settings.duration.as_secs_f64()));
        table.row("rate", Unit::PerSecond, Rule::Shown, &rates);
        let [first, then] = self.limits;
        let limits = [first, first, then, then];
        let part = rates
            .iter()
            .zip(limits)
            .map(|(rate, limit)| Some((*rate)? / limit));
        let part: Vec<Option<f64>> = part.collect();
        table.row("  of the limit", Unit::Part, Rule::Shown, &part);
        let queue = self.of_runs(|_, seen| mean_response(&seen.planned, 1.0 / first));
        table.row("avg of a queue", Unit::Seconds, Rule::Shown, &queue);
        table
    }

    fn as_wire(&self) -> Table {
        let times = self.times(|seen| seen.wire.clone());
        paper_table("response time, as the wire saw it (http)", &times)
    }

    /// The client is further away from the server than the wire, so it waits longer.
    fn client_and_wire(&self) -> Table {
        let title = "median, from the request's first byte";
        let mut table = Table::new(title, &["client", "wire (http)"]);
        let client = self.times(|seen| seen.service.clone());
        let wire = self.times(|seen| seen.wire.clone());
        for (name, (client, wire)) in COLUMNS.iter().zip(client.iter().zip(&wire)) {
            let cells = [quantile(client, 0.5), quantile(wire, 0.5)];
            table.row(name, Unit::Seconds, Rule::Falling(CLOCKS_S), &cells);
        }
        table
    }

    /// What it is all about: bursts cost, most of all near the limit.
    fn contrast(&self) -> Table {
        let mut table = Table::new("mean response time", &["MMPP", "constant"]);
        let near = if self.is_quiet {
            Rule::Falling(0.0)
        } else {
            Rule::Shown
        };
        let client = self.times(|seen| seen.client.iter().map(|(_, time)| *time).collect());
        let wire = self.times(|seen| seen.wire.clone());
        for (who, times) in [("client", &client), ("wire", &wire)] {
            let means: Vec<Option<f64>> = times.iter().map(|times| mean(times)).collect();
            let (far, close) = means.split_at(means.len().min(2));
            table.row(&format!("far, {who}"), Unit::Seconds, Rule::Shown, far);
            table.row(&format!("near, {who}"), Unit::Seconds, near, close);
        }
        table
    }

    fn machine(&self) -> Table {
        let mut table = Table::new("machine load", &COLUMNS);
        let busy = self.of_runs(|run, _| run.busy());
        table.row("the server's core is busy", Unit::Part, Rule::Shown, &busy);
        let denied = self.of_runs(|run, _| run.denied());
        table.row(
            "the server waits for a core",
            Unit::Part,
            Rule::Shown,
            &denied,
        );
        let lag = self.of_runs(|run, _| {
            let micros = run.load.number("load/schedule_lag_us/p99")?;
            Some(micros / 1e6)
        });
        table.row(
            "sessions start late by, 99 %",
            Unit::Seconds,
            Rule::Shown,
            &lag,
        );
        table
    }

    /// A figure of each of the four runs.
    fn of_runs(&self, figure: impl Fn(&Played, &Seen) -> Option<f64>) -> Vec<Option<f64>> {
        let runs = self.runs.iter().zip(self.seen).take(JUDGED);
        runs.map(|(run, seen)| figure(run, seen)).collect()
    }

    /// Times of each of the four runs, sorted.
    fn times(&self, pick: impl Fn(&Seen) -> Vec<f64>) -> Vec<Vec<f64>> {
        let runs = self.seen.iter().take(JUDGED);
        runs.map(|seen| {
            let mut times = pick(seen);
            times.sort_by(f64::total_cmp);
            times
        })
        .collect()
    }
}

/// A figure of sorted times.
type Figure = fn(&[f64]) -> Option<f64>;

/// The paper's row, standing.
fn paper_table(title: &str, runs: &[Vec<f64>]) -> Table {
    let mut table = Table::new(title, &COLUMNS);
    let rows: [(&str, Figure); 6] = [
        ("min", |times| times.first().copied()),
        ("max", |times| times.last().copied()),
        ("avg", mean),
        ("stdev", deviation),
        ("med", |times| quantile(times, 0.5)),
        ("99 %", |times| quantile(times, 0.99)),
    ];
    for (name, figure) in rows {
        let cells: Vec<Option<f64>> = runs.iter().map(|times| figure(times)).collect();
        table.row(name, Unit::Seconds, Rule::Shown, &cells);
    }
    table
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation of these values.
fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    Some((squares.sum::<f64>() / values.len() as f64).sqrt())
}

/// What a point over time is the mean of, seconds.
const STEP_S: f64 = 0.1;
/// Names of the runs near the limit, and where they are.
const NEAR: [(&str, usize); 2] = [("MMPP", 2), ("constant", 3)];

/// All of them; the runs are in the order of the table.
pub(super) fn all(seen: &[Seen]) -> Vec<Picture> {
    let curves = |points: fn(&Seen) -> Vec<(f64, f64)>| {
        let near = NEAR
            .iter()
            .filter_map(|(name, at)| Some((name, seen.get(*at)?)));
        near.map(|(name, seen)| Curve {
            name: (*name).to_owned(),
            points: points(seen),
        })
        .collect()
    };
    let response = |is_logarithmic| Axis {
        name: "response time".to_owned(),
        unit: Unit::Seconds,
        is_logarithmic,
    };
    let over_time = Picture {
        title: "Response time near the limit, by tenths of a second".to_owned(),
        x: Axis {
            name: "time".to_owned(),
            unit: Unit::Seconds,
            is_logarithmic: false,
        },
        y: response(true),
        curves: curves(|seen| means_over_time(&seen.client, STEP_S)),
    };
    let distribution = Picture {
        title: "Response time near the limit".to_owned(),
        x: response(true),
        y: Axis {
            name: "part that is longer".to_owned(),
            unit: Unit::Part,
            is_logarithmic: true,
        },
        curves: curves(|seen| {
            let mut times: Vec<f64> = seen.client.iter().map(|(_, time)| *time).collect();
            times.sort_by(f64::total_cmp);
            complementary(&times)
        }),
    };
    vec![over_time, distribution]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_of_the_paper() {
        let runs = [vec![1.0, 2.0, 3.0, 6.0], vec![]];
        let table = paper_table("t", &runs);
        let figure = |row: usize| table.rows[row].cells[0].unwrap();
        assert_eq!([figure(0), figure(1), figure(2)], [1.0, 6.0, 3.0]);
        assert!((figure(3) - 3.5_f64.sqrt()).abs() < 1e-12);
        assert!(table.rows.iter().all(|row| row.cells[1].is_none()));
    }
}
