//! What a run says when it is over: on the terminal, as JSON, as a page, as CSV.

mod csv;
mod page;
mod screen;
mod summary;

use linkweir_engine::Loss;
use linkweir_load::measure::{Figures, Stages, Times, Verdict};
use linkweir_model::{Agreement, autocovariance};
use serde_json::{Value, json};

use super::args::{LoadOutputArgs, ReportFile};
use crate::outputs::AtEnd;

/// Where the reports of a run go.
#[derive(Debug, Default)]
pub(super) struct Files {
    reports: Vec<(ReportFile, AtEnd)>,
    series: Option<AtEnd>,
    /// Written by itself: it tells of the others.
    summary: Option<AtEnd>,
    /// What could not be written so far.
    lost: Vec<Loss>,
}

impl Files {
    /// Opens what was asked for.
    pub(super) fn open(output: &LoadOutputArgs) -> anyhow::Result<Self> {
        let existing = output.store.files.existing(true);
        let mut files = Self::default();
        for report in &output.report {
            let file = AtEnd::open("--report", Some(report.name()), existing)?;
            files
                .reports
                .extend(file.map(|file| (report.clone(), file)));
        }
        files.series = AtEnd::open("--series", output.series.as_deref(), existing)?;
        files.summary = AtEnd::open("--summary", output.summary.as_deref(), existing)?;
        Ok(files)
    }

    /// Writes the reports and the series of a run that is over; what failed.
    pub(super) fn write(&mut self, report: Report<'_>) -> Vec<Loss> {
        let mut lost = std::mem::take(&mut self.lost);
        for (kind, file) in self.reports.drain(..) {
            lost.extend(file.write(&report.text(&kind)));
        }
        if let Some(file) = self.series.take() {
            lost.extend(file.write(&report.series_csv()));
        }
        lost
    }

    /// Writes the summary of a run that is over, where one was asked for; whether that failed.
    pub(super) fn write_summary(self, summary: impl FnOnce() -> Value) -> Option<Loss> {
        self.summary?.write_json(&summary())
    }

    /// Writes everything as it stands, in the middle of a run: what is written next takes its place.
    pub(super) fn write_now(&mut self, report: Report<'_>, summary: &Value) {
        for (kind, file) in std::mem::take(&mut self.reports) {
            let again = self.again(file, &report.text(&kind));
            self.reports.extend(again.map(|file| (kind, file)));
        }
        if let Some(file) = self.series.take() {
            self.series = self.again(file, &report.series_csv());
        }
        if let Some(file) = self.summary.take() {
            self.summary = self.again(file, &json_text(summary));
        }
    }

    fn again(&mut self, file: AtEnd, text: &str) -> Option<AtEnd> {
        file.write_and_reopen(text)
            .map_err(|loss| self.lost.push(loss))
            .ok()
    }
}

/// What was run, on what: names and values for the head of a report, such as seed, arrivals, script,
/// interface, sender, kernel, processor. Names are keys of the JSON report.
#[derive(Debug, Clone, Default)]
pub(super) struct Header(pub(super) Vec<(&'static str, String)>);

impl Header {
    /// Adds an entry.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "numbers and texts alike, without a `&` before each"
    )]
    pub(super) fn push(&mut self, name: &'static str, value: impl ToString) {
        self.0.push((name, value.to_string()));
    }
}

/// An object as it stands in a file.
fn json_text(object: &Value) -> String {
    format!("{object:#}\n")
}

/// A run that is over, or as it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report<'a> {
    pub(super) header: &'a Header,
    pub(super) figures: &'a Figures,
    pub(super) verdict: &'a Verdict,
    pub(super) rates: Option<Rates>,
    /// Whether the run goes on.
    pub(super) is_intermediate: bool,
}

/// Sessions a second that were asked for, and those of the schedule that was drawn: a bursty one is off
/// by as much as its bursts have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    pub(super) asked_per_s: f64,
    pub(super) drawn_per_s: f64,
}

impl Report<'_> {
    /// The key `load` of the summary.
    pub(super) fn summary(self) -> Value {
        summary::load(self)
    }

    /// The report as one JSON object: the summary, the head of the run, and the series.
    pub(super) fn to_json(self) -> Value {
        let run: serde_json::Map<String, Value> = self
            .header
            .0
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
            .collect();
        json!({
            "run": run,
            "intermediate": self.is_intermediate,
            "load": self.summary(),
            "series": summary::series(self.figures),
        })
    }

    /// Tables for a terminal.
    pub(super) fn to_screen(self) -> String {
        screen::text(self)
    }

    /// What happened in each second, as CSV.
    pub(super) fn series_csv(self) -> String {
        csv::text(&self.figures.series)
    }

    fn text(self, kind: &ReportFile) -> String {
        match kind {
            ReportFile::Json(_) => json_text(&self.to_json()),
            ReportFile::Html(_) => page::html(self),
        }
    }
}

/// A stage of sessions as reports name it, and from where to where it goes.
struct Stage<'a> {
    key: &'static str,
    name: &'static str,
    meaning: &'static str,
    times: &'a Times,
}

fn stages(stages: &Stages) -> impl Iterator<Item = Stage<'_>> {
    stages.all().into_iter().map(|(key, times)| {
        let (name, meaning) = match key {
            "response" => (
                "response time",
                "from when a request was wanted to the last byte of its response",
            ),
            "service" => (
                "service time",
                "from the first byte of a request to the last byte of its response",
            ),
            "first_byte" => (
                "first byte",
                "from the first byte of a request to the first segment of its response",
            ),
            "connect" => ("connect", "from the first SYN to the SYN ACK"),
            "page" => (
                "page",
                "from when a page was wanted to the end of all its objects",
            ),
            "session" => (
                "session",
                "from when a session was wanted to its end, where it completed",
            ),
            _ => (
                "schedule lag",
                "from when a session was wanted to its first SYN",
            ),
        };
        Stage {
            key,
            name,
            meaning,
            times,
        }
    })
}

/// Lags over which realised and planned arrivals are compared, at most; and at most a tenth of the bins,
/// beyond which an autocovariance is mostly noise.
const MAX_LAGS: usize = 300;

/// How the arrivals that were realised compare with those that were planned.
struct ArrivalCheck {
    bin_s: f64,
    bins: usize,
    planned_mean: f64,
    started_mean: f64,
    /// Total variation between the histograms of counts per bin.
    distance: f64,
    lags: usize,
    /// Of the autocovariances at lags 1 to `lags`; `None` where the run is too short.
    agreement: Option<Agreement>,
    /// Autocovariance of the realised counts, lag 0 first.
    autocovariance: Vec<f64>,
}

fn arrival_check(figures: &Figures) -> ArrivalCheck {
    let arrivals = figures.arrivals();
    let planned = floats(&arrivals.planned);
    let started = floats(&arrivals.started);
    let lags = (planned.len().min(started.len()) / 10).min(MAX_LAGS);
    let (agreement, realised) = if lags > 0 {
        let wanted = autocovariance(&planned, lags);
        let realised = autocovariance(&started, lags);
        let agreement = Agreement::of(
            wanted.get(1..).unwrap_or_default(),
            realised.get(1..).unwrap_or_default(),
        );
        (Some(agreement), realised)
    } else {
        (None, Vec::new())
    };
    let mean = |counts: &[f64]| counts.iter().sum::<f64>() / to_float(counts.len().max(1));
    ArrivalCheck {
        bin_s: arrivals.bin_s,
        bins: started.len(),
        planned_mean: mean(&planned),
        started_mean: mean(&started),
        distance: arrivals.distance,
        lags,
        agreement,
        autocovariance: realised,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts per second are far below 2^53"
)]
fn floats(counts: &[u64]) -> Vec<f64> {
    counts.iter().map(|count| *count as f64).collect()
}

#[expect(clippy::cast_precision_loss, reason = "at most 4096 bins")]
const fn to_float(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
pub(super) mod samples;
#[cfg(test)]
mod tests;
