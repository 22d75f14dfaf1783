//! The figures as the report page takes them.

use linkweir_load::measure::{Failures, Figures};
use linkweir_record::human::short;
use linkweir_report::{GroupTimes, LoadReport, SeriesBin, StageTimes};

use super::{Report, arrival_check, stages};
use crate::screen::quantiles;

/// The page.
pub(super) fn html(report: Report<'_>) -> String {
    let figures = report.figures;
    let run = |key: &str| {
        let entry = report.header.0.iter().find(|(name, _)| *name == key);
        entry.map_or("", |(_, value)| value.as_str())
    };
    LoadReport {
        title: format!("Load of {}", run("target")),
        run: report
            .header
            .0
            .iter()
            .map(|(name, value)| (name.replace('_', " "), value.clone()))
            .collect(),
        invalid: report.verdict.reasons().to_vec(),
        planned: figures.planned,
        started: figures.started,
        completed: figures.completed,
        failed: figures.failed.total(),
        requests: figures.requests,
        responses: figures.responses,
        response_bytes: figures.response_bytes,
        rate_per_s: figures.rate_per_s(),
        peak_open: figures.open.peak(),
        stages: stages(&figures.stages)
            .map(|stage| StageTimes {
                name: stage.name,
                meaning: stage.meaning,
                times: stage.times.histogram(),
                mean_ns: stage.times.mean_ns(),
                stdev_ns: stage.times.stdev_ns(),
            })
            .collect(),
        bin_ns: figures.series.width_ns(),
        series: series(figures),
        statuses: figures.statuses.iter().collect(),
        failures: causes(&figures.failed),
        failed_requests: causes(&figures.failed_requests),
        tcp: figures
            .tcp
            .iter()
            .map(|(name, count)| (name.clone(), *count))
            .collect(),
        checks: checks(report),
        groups: figures
            .groups
            .iter()
            .map(|group| GroupTimes {
                name: &group.name,
                started: group.started,
                failed: group.failed,
                requests: group.requests,
                response_bytes: group.response_bytes,
                response: group.response.histogram(),
                connect: group.connect.histogram(),
            })
            .collect(),
        program: concat!("linkweir ", env!("CARGO_PKG_VERSION")).to_owned(),
    }
    .render()
}

fn series(figures: &Figures) -> Vec<SeriesBin> {
    let series = &figures.series;
    series
        .bins()
        .map(|(start, bin)| SeriesBin {
            start_ns: start.as_nanos(),
            planned: bin.planned,
            started: bin.started,
            failed: bin.failed,
            requests: bin.requests,
            responses: bin.responses,
            open: series.open(bin),
            mean_ns: bin.response_mean_ns(),
            p99_ns: bin.response.quantile(990),
            max_ns: bin.response.max(),
        })
        .collect()
}

fn causes(failures: &Failures) -> Vec<(String, u64)> {
    failures
        .iter()
        .map(|(cause, count)| (cause.as_str().to_owned(), count))
        .collect()
}

/// What the run says of itself: name and outcome, for the page and the terminal.
pub(super) fn checks(report: Report<'_>) -> Vec<(String, String)> {
    let figures = report.figures;
    let mut checks = Vec::new();
    let lag = &figures.stages.lag;
    checks.push((
        "schedule lag".to_owned(),
        quantiles(lag.histogram(), &[("p50", 0.5), ("p99", 0.99)]),
    ));
    if let Some(little) = figures.open.little() {
        checks.push((
            "Little's law".to_owned(),
            format!(
                "N {:.3} open, X R = {:.3}/s x {:.6} s = {:.3}, error {:.4} %",
                little.mean_open,
                little.rate_per_s,
                little.mean_s,
                little.rate_per_s * little.mean_s,
                little.error * 100.0
            ),
        ));
    }
    if let Some(rates) = report.rates {
        checks.push((
            "session rate".to_owned(),
            format!(
                "asked {}/s, drawn {}/s",
                short(rates.asked_per_s),
                short(rates.drawn_per_s)
            ),
        ));
    }
    let arrivals = arrival_check(figures);
    checks.push((
        "arrivals".to_owned(),
        format!(
            "per {} s: planned {:.3}, started {:.3}; total variation of the counts {:.4}",
            arrivals.bin_s, arrivals.planned_mean, arrivals.started_mean, arrivals.distance
        ),
    ));
    if let Some(agreement) = arrivals.agreement {
        checks.push((
            "autocovariance".to_owned(),
            format!(
                "started against planned over {} lags: inequality coefficient {:.2} %, Theil {:.2} %",
                arrivals.lags,
                agreement.ic * 100.0,
                agreement.theil * 100.0
            ),
        ));
    }
    checks
}
