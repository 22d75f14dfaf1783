//! The figures on a terminal.

use linkweir_load::measure::{Failures, Figures, Times};
use linkweir_record::human::{counted, percent, scaled, span, thousands};

use super::page::checks;
use super::summary::seconds;
use super::{Report, stages};
use crate::screen::{listed, quantile, rows};

/// The verdict, the paper's row, and everything else; ends without a line feed.
pub(super) fn text(report: Report<'_>) -> String {
    let figures = report.figures;
    let mut out = Vec::new();
    if !report.verdict.is_valid() {
        out.push("  INVALID: the generator itself was the bottleneck".to_owned());
        let reasons = report.verdict.reasons().iter();
        out.extend(reasons.map(|reason| format!("    {reason}")));
    }
    out.push(rows(&counts(figures)));
    out.push(String::new());
    out.extend(paper(figures));
    out.push(String::new());
    out.extend(stage_table(figures));
    if figures.groups.len() > 1 {
        out.push(String::new());
        out.extend(group_table(figures));
    }
    out.push(String::new());
    let checks = checks(report);
    let checks: Vec<(&str, String)> = checks
        .iter()
        .map(|(name, outcome)| (name.as_str(), outcome.clone()))
        .collect();
    out.push(rows(&checks));
    out.join("\n")
}

fn counts(figures: &Figures) -> Vec<(&'static str, String)> {
    let causes = |failures: &Failures| {
        let came = failures.iter().filter(|(_, count)| *count > 0);
        came.map(|(cause, count)| (cause.as_str().replace('_', " "), count))
            .collect::<Vec<_>>()
    };
    let codes = figures.statuses.iter();
    let mut lines = vec![
        (
            "sessions",
            format!(
                "{} planned, {} started, {} completed, {} failed ({}), {} open at most",
                thousands(figures.planned),
                thousands(figures.started),
                thousands(figures.completed),
                thousands(figures.failed.total()),
                percent(figures.failed.total(), figures.planned),
                thousands(figures.open.peak())
            ),
        ),
        ("failed", listed(causes(&figures.failed), 12)),
        (
            "requests",
            format!(
                "{} sent, {} answered, {}, {}, {} up, {} down",
                thousands(figures.requests),
                thousands(figures.responses),
                counted(figures.pages, "page"),
                counted(figures.connections, "connection"),
                bytes(figures.request_bytes),
                bytes(figures.response_bytes)
            ),
        ),
        (
            "status codes",
            listed(codes.map(|(code, n)| (code.to_string(), n)).collect(), 10),
        ),
    ];
    if figures.failed_requests.total() > 0 {
        lines.push(("no response", listed(causes(&figures.failed_requests), 12)));
    }
    let tcp: Vec<(String, u64)> = figures
        .tcp
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| (name.replace('_', " "), *count))
        .collect();
    lines.push(("TCP", listed(tcp, 8)));
    lines
}

/// The row of Table 2 of the paper, in its units.
fn paper(figures: &Figures) -> [String; 2] {
    let times = &figures.stages.response;
    let exact = |seconds: Option<f64>| match seconds {
        Some(seconds) => format!("{seconds:.4}"),
        None => "-".to_owned(),
    };
    let histogram = times.histogram();
    let cells = [
        exact(histogram.min().map(seconds)),
        exact(histogram.max().map(seconds)),
        exact(times.mean_ns().map(|nanos| nanos / 1e9)),
        exact(times.stdev_ns().map(|nanos| nanos / 1e9)),
        exact(times.quantile(0.5).map(seconds)),
        figures
            .rate_per_s()
            .filter(|_| times.count() > 0)
            .map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}")),
    ];
    let [min, max, avg, stdev, med, rate] = cells;
    [
        format!(
            "  {:<13}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>10}",
            "", "min [s]", "max [s]", "avg [s]", "stdev [s]", "med [s]", "rate [1/s]"
        ),
        format!(
            "  {:<13}  {min:>9}  {max:>9}  {avg:>9}  {stdev:>9}  {med:>9}  {rate:>10}",
            "response time"
        ),
    ]
}

fn stage_table(figures: &Figures) -> Vec<String> {
    let head = ["count", "min", "avg", "p50", "p90", "p99", "p99.9", "max"];
    let mut lines = vec![line("", &head.map(str::to_owned))];
    for stage in stages(&figures.stages).filter(|stage| stage.times.count() > 0) {
        lines.push(line(stage.name, &spread(stage.times)));
    }
    lines
}

fn spread(times: &Times) -> [String; 8] {
    let at = |q| quantile(times.histogram(), q);
    let min = times.histogram().min();
    let mean = times.sum_ns().checked_div(u128::from(times.count()));
    let mean = mean.and_then(|nanos| u64::try_from(nanos).ok());
    [
        thousands(times.count()),
        min.map_or_else(|| "-".to_owned(), span),
        mean.map_or_else(|| "-".to_owned(), span),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0),
    ]
}

fn line(name: &str, cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>10}")).collect();
    format!("  {name:<13}  {}", cells.join(" "))
}

/// Groups of clients, the busiest first; at most so many.
const SHOWN_GROUPS: usize = 20;

fn group_table(figures: &Figures) -> Vec<String> {
    let width = |name: &str| name.chars().count();
    let mut groups: Vec<_> = figures.groups.iter().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.started));
    groups.truncate(SHOWN_GROUPS);
    let widest = groups.iter().map(|group| width(&group.name)).max();
    let widest = widest.unwrap_or(0).max("group".len());
    let cells = |cells: [String; 7]| cells.map(|cell| format!("{cell:>10}")).join(" ");
    let head = [
        "sessions",
        "failed",
        "responses",
        "connect",
        "p50",
        "p99",
        "max",
    ];
    let mut lines = vec![format!(
        "  {:<widest$}  {}",
        "group",
        cells(head.map(str::to_owned))
    )];
    for group in groups {
        let at = |times: &Times, q| quantile(times.histogram(), q);
        let row = cells([
            thousands(group.started),
            thousands(group.failed),
            thousands(group.responses),
            at(&group.connect, 0.5),
            at(&group.response, 0.5),
            at(&group.response, 0.99),
            at(&group.response, 1.0),
        ]);
        lines.push(format!("  {:<widest$}  {row}", group.name));
    }
    lines
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn bytes(number: u64) -> String {
    scaled(number as f64, "B")
}
