//! What each step has.
//!
//! Autocovariances and histograms, side by side.

use super::Settings;
use super::check::{self, Checked};
use super::generation::{Generation, clients};
use super::moments::{FIT_LAGS, Histogram, LAGS, Moments};
use super::spread::{MARGIN, PATHS, Spread};
use crate::report::{Axis, Curve, Picture, Report, Rule, Table, Unit};

/// What two programs that compute the same figure may differ by: the rounding of sums.
const ROUNDING: f64 = 1e-6;

/// Everything that was said.
pub(super) struct Observations<'a> {
    pub(super) settings: &'a Settings,
    pub(super) known: &'a Spread,
    pub(super) fitted: &'a Spread,
    pub(super) first: &'a Generation,
    pub(super) second: &'a Generation,
    pub(super) check: &'a Checked,
    /// Of the known and of the fitted model, at the lags of the check.
    pub(super) models: &'a [Moments; 2],
}

impl Observations<'_> {
    /// The tables.
    pub(super) fn report(&self) -> Report {
        let mut report = Report::default();
        let settings = self.settings;
        report.fact(
            "known model",
            format!(
                "MMPP `web` with {} sessions/s in bins of {:?}, changing {} times as often",
                settings.rate, settings.bin, settings.changes
            ),
        );
        report.fact(
            "clients",
            format!(
                "{}, one session each; a session ends where a client is silent for {:?}",
                clients(settings),
                settings.timeout
            ),
        );
        report.tables = vec![
            self.counts(),
            self.losses(),
            self.generation("known model and its capture", self.known, self.first),
            self.fit(),
            self.generation("fitted model and its capture", self.fitted, self.second),
            self.circle(),
            self.arithmetic(),
        ];
        report.notes.push(format!(
            "Autocovariances are of sessions in bins of {:?}, lags in bins. A capture may be {MARGIN} times as \
             far from its model as the farthest of {PATHS} simulated paths of the same length; two \
             generations, as far as both together.",
            settings.bin
        ));
        for (name, one) in [("first", self.first), ("second", self.second)] {
            if !one.is_punctual(settings.bin) {
                report.notes.push(format!(
                    "NOT JUDGED: the capture of the {name} generation. This machine was too busy to send it on \
                     time, so it is not a path of its model; the schedule is."
                ));
            }
        }
        report
    }

    /// A model, the path of it that the schedule took, and what was captured of that.
    fn generation(&self, title: &str, spread: &Spread, generation: &Generation) -> Table {
        let mut table = Table::new(title, &["model", "schedule", "capture"]);
        let planned = Moments::of(&generation.planned, &LAGS);
        let captured = Moments::of(&generation.counts, &LAGS);
        let columns = [&spread.moments, &planned, &captured];
        rows(&mut table, &columns, &spread.tolerances);
        let apart = |counts: &[u64]| Some(Histogram::of(counts).total_variation(&spread.histogram));
        let cells = [None, apart(&generation.planned), apart(&generation.counts)];
        let rule = Rule::AtMost(spread.variation);
        table.row(VARIATION, Unit::Part, rule, &cells);
        if !generation.is_punctual(self.settings.bin) {
            // It stands in the table of the circle.
            let captured = table.rows.iter_mut().filter_map(|row| row.cells.last_mut());
            captured.for_each(|cell| *cell = None);
        }
        table
    }

    fn counts(&self) -> Table {
        let observers = ["planned", "load", "nginx", "http", "model sessions"];
        let mut table = Table::new("generations", &observers);
        for (name, one) in [("first", self.first), ("second", self.second)] {
            let sessions = [
                Some(one.load.count("load/planned")),
                Some(one.load.count("load/completed")),
                None,
                None,
                Some(one.counts.iter().sum()),
            ];
            table.count(&format!("{name}: sessions"), Rule::Same, &sessions);
            let requests = [
                None,
                Some(one.load.count("load/requests")),
                Some(one.served),
                Some(one.http.count("http/transactions")),
                Some(one.found.count("model/requests")),
            ];
            table.count(&format!("{name}: requests"), Rule::Same, &requests);
        }
        table
    }

    fn losses(&self) -> Table {
        let mut table = Table::new("losses of observers", &["load", "http"]);
        for (name, one) in [("first", self.first), ("second", self.second)] {
            let dropped = [&one.load, &one.http].map(|ended| Some(ended.sum("dropped")));
            table.count(name, Rule::AtMost(0.0), &dropped);
        }
        table
    }

    /// The fitted model is nearer to the record than the model that the record is a path of may be:
    /// it was made for it.
    fn fit(&self) -> Table {
        let mut table = Table::new("first capture and fitted model", &["capture", "model"]);
        let capture = Moments::of(&self.first.counts, &LAGS);
        let columns = [&capture, &self.fitted.moments];
        rows(&mut table, &columns, &self.known.tolerances);
        // The fit meets the mean.
        if let Some(mean) = table.rows.first_mut() {
            mean.rule = Rule::Within(ROUNDING);
        }
        let apart = Histogram::of(&self.first.counts).total_variation(&self.fitted.histogram);
        let rule = Rule::AtMost(self.known.variation);
        table.row(VARIATION, Unit::Part, rule, &[None, Some(apart)]);
        table
    }

    fn circle(&self) -> Table {
        let observers = [
            "known model",
            "first capture",
            "fitted model",
            "second capture",
        ];
        let mut table = Table::new("models and captures", &observers);
        let first = Moments::of(&self.first.counts, &LAGS);
        let second = Moments::of(&self.second.counts, &LAGS);
        let both = self.known.tolerances.iter().zip(&self.fitted.tolerances);
        let tolerances: Vec<f64> = both.map(|(a, b)| a + b).collect();
        let columns = [&self.known.moments, &first, &self.fitted.moments, &second];
        rows(&mut table, &columns, &tolerances);
        let from_known = |other: &Histogram| Some(self.known.histogram.total_variation(other));
        let cells = [
            None,
            from_known(&Histogram::of(&self.first.counts)),
            from_known(&self.fitted.histogram),
            from_known(&Histogram::of(&self.second.counts)),
        ];
        let rule = Rule::AtMost(self.known.variation + self.fitted.variation);
        table.row(VARIATION, Unit::Part, rule, &cells);
        let mut both = [self.first, self.second].into_iter();
        if !both.all(|one| one.is_punctual(self.settings.bin)) {
            shown_only(&mut table);
        }
        table
    }

    /// The laboratory computes what `linkweir model check` does, from the same two files.
    fn arithmetic(&self) -> Table {
        let title = "fitted model against second capture";
        let mut table = Table::new(title, &["model check", "laboratory"]);
        let lags = check::all_lags();
        let counted = Moments::of(&self.second.counts, &lags);
        let [_, model] = self.models;
        let bins = u64::try_from(self.second.counts.len()).ok();
        table.count("bins", Rule::Same, &[Some(self.check.bins), bins]);
        let same = Rule::Within(ROUNDING);
        let rows = [
            ("mean, counted", self.check.mean_counted, counted.mean),
            ("mean, model", self.check.mean_model, model.mean),
        ];
        for (name, check, here) in rows {
            table.row(name, Unit::Number, same, &[Some(check), Some(here)]);
        }
        let rows = [
            (
                format!("inequality coefficient, lags 1 to {FIT_LAGS}"),
                self.check.ic,
                1,
            ),
            ("  with the variance".to_owned(), self.check.ic_with_lag0, 0),
        ];
        for (name, check, from) in rows {
            let here = check::inequality(&counted, model, from);
            table.row(&name, Unit::Part, same, &[Some(check), Some(here)]);
        }
        let apart = Histogram::of(&self.second.counts).total_variation(&self.fitted.histogram);
        let cells = [Some(self.check.total_variation), Some(apart)];
        // By the equations there, by a long path here.
        table.row(VARIATION, Unit::Part, Rule::Shown, &cells);
        table
    }
}

/// Name of a row.
const VARIATION: &str = "histogram, total variation";

/// Takes the rules from a table.
fn shown_only(table: &mut Table) {
    let rows = table.rows.iter_mut();
    rows.for_each(|row| row.rule = Rule::Shown);
}

/// A row for the mean and one for each lag.
fn rows(table: &mut Table, columns: &[&Moments], tolerances: &[f64]) {
    let names = LAGS.iter().map(|lag| match lag {
        0 => "variance".to_owned(),
        lag => format!("autocovariance, lag {lag}"),
    });
    let names = std::iter::once("mean of a bin".to_owned()).chain(names);
    for (place, (name, tolerance)) in names.zip(tolerances).enumerate() {
        let cells: Vec<Option<f64>> = columns
            .iter()
            .map(|column| column.figures().nth(place))
            .collect();
        table.row(&name, Unit::Number, Rule::Within(*tolerance), &cells);
    }
}

/// All of them; `lags` are those of the models' moments.
pub(super) fn all(observations: &Observations<'_>, lags: &[usize]) -> Vec<Picture> {
    let [known, fitted] = observations.models;
    let bin_s = observations.settings.bin.as_secs_f64();
    let (first, second) = (&observations.first.counts, &observations.second.counts);
    let of = |counts: &[u64]| Moments::of(counts, lags);
    let covariances = [
        ("known model", known.clone()),
        ("first capture", of(first)),
        ("fitted model", fitted.clone()),
        ("second capture", of(second)),
    ];
    let histograms = [
        ("known model", observations.known.histogram.clone()),
        ("first capture", Histogram::of(first)),
        ("fitted model", observations.fitted.histogram.clone()),
        ("second capture", Histogram::of(second)),
    ];
    let curve = |name: &str, points| Curve {
        name: name.to_owned(),
        points,
    };
    let axis = |name: &str, unit| Axis {
        name: name.to_owned(),
        unit,
        is_logarithmic: false,
    };
    // The variance would hide what is behind it.
    let points = |moments: &Moments| {
        let pairs = lags.iter().zip(&moments.covariances).skip(1);
        pairs
            .map(|(lag, value)| (*lag as f64 * bin_s, *value))
            .collect()
    };
    let starts = |counts: &[u64]| {
        let places = counts.iter().enumerate();
        places
            .map(|(place, count)| (place as f64 * bin_s, *count as f64))
            .collect()
    };
    vec![
        Picture {
            title: "Autocovariance of sessions in a bin".to_owned(),
            x: axis("lag", Unit::Seconds),
            y: axis("autocovariance", Unit::Number),
            curves: covariances
                .iter()
                .map(|(name, moments)| curve(name, points(moments)))
                .collect(),
        },
        Picture {
            title: "Histogram of sessions in a bin".to_owned(),
            x: axis("sessions in a bin", Unit::Count),
            y: axis("part of the bins", Unit::Part),
            curves: histograms
                .iter()
                .map(|(name, histogram)| curve(name, histogram.points()))
                .collect(),
        },
        Picture {
            title: "Sessions that begin in a bin".to_owned(),
            x: axis("time", Unit::Seconds),
            y: axis("sessions", Unit::Count),
            curves: vec![
                curve("first capture", starts(first)),
                curve("second capture", starts(second)),
            ],
        },
    ]
}
