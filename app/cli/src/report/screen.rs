//! The report on a terminal.

use linkweir_record::human::{counted, thousands};
use linkweir_report::ReportMeta;
use linkweir_report::stored::{Compared, Sample, StoredReport, compare, shell_word, times};
use linkweir_sketch::LogLinear;

use super::source::{OTHER_FILES, Passed, passed_over};
use crate::common_args::terminal_width;
use crate::exit::safe;
use crate::{screen, table};

/// Values of a column of few on one line.
const LISTED: usize = 8;

fn counts(report: &StoredReport) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let classes = report.status_classes();
    if !classes.is_empty() {
        let classes: Vec<String> = classes
            .iter()
            .map(|(class, count)| format!("{class} {}", thousands(*count)))
            .collect();
        rows.push(("Status classes", classes.join("  ")));
    }
    for ((title, _), counts) in report.subject.counts.iter().zip(&report.counts) {
        if counts.total() == 0 {
            continue;
        }
        let all = counts.by_count().into_iter();
        let mut all: Vec<(String, u64)> = all
            .map(|(key, count)| (safe(&String::from_utf8_lossy(key)), count))
            .collect();
        if counts.other() > 0 {
            all.push(("other".to_owned(), counts.other()));
        }
        rows.push((title, screen::listed(all, LISTED)));
    }
    rows
}

/// What is set apart.
fn apart(report: &StoredReport) -> Vec<(&'static str, String)> {
    let Some((of, apart)) = report.apart() else {
        return Vec::new();
    };
    let counts = apart.counts.by_count().into_iter();
    let counts = counts.map(|(key, count)| (safe(&String::from_utf8_lossy(key)), count));
    let counts = screen::listed(counts.collect(), LISTED);
    let records = thousands(apart.records);
    let condition = shell_word(of.condition);
    let mut rows = vec![(
        of.noun,
        format!("{records}: {counts}  (--where {condition})"),
    )];
    if apart.times.count() > 0 {
        rows.push((of.times, distribution(&apart.times)));
    }
    rows
}

/// The lines of a table, on a terminal as wide as that.
fn fitted(lines: Vec<String>) -> Vec<String> {
    match terminal_width() {
        Some(width) => table::fitted(lines, width),
        None => lines,
    }
}

fn distribution(spans: &LogLinear) -> String {
    let named = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];
    screen::quantiles(spans, &named)
}

/// A report.
pub(super) fn of_report(
    report: &StoredReport,
    meta: &ReportMeta,
    passed: &[Passed],
    titles: &[&str],
    rows: usize,
) -> String {
    let subject = report.subject;
    let files = counted(meta.inputs.len() as u64, "file");
    let mut lines = vec![format!("{} of {files}, {}", subject.noun, times(report))];
    let mut totals: Vec<(&str, String)> = Vec::new();
    let all = report.totals();
    for (name, figure) in &all {
        let text = match name == subject.error.0 {
            true => format!(
                "{}  (--where {})",
                figure.text(),
                shell_word(subject.error.1)
            ),
            false => figure.text(),
        };
        totals.push((name.as_str(), text));
    }
    for ((title, _), spans) in subject.spans.iter().zip(&report.spans) {
        if spans.count() > 0 {
            totals.push((title, distribution(spans)));
        }
    }
    totals.extend(counts(report));
    totals.extend(apart(report));
    for (name, count) in meta.drops.iter().chain(&meta.notes) {
        if *count > 0 && name != OTHER_FILES {
            totals.push((name.as_str(), thousands(*count)));
        }
    }
    if !passed.is_empty() {
        totals.push(("passed over", passed_over(passed)));
    }
    lines.push(screen::rows(&totals));
    for table in &report.tables {
        let found = report.rows(table, rows);
        let Some(first) = found.first() else { continue };
        let mut head = vec![table.by.as_str()];
        head.extend(first.figures.iter().map(|(name, _)| name.as_str()));
        head.push("records of the row");
        let cells = found.iter().map(|row| {
            let mut cells = vec![safe(&row.key)];
            cells.extend(row.figures.iter().map(|(_, figure)| figure.text()));
            let condition = row.condition.as_deref();
            cells.push(condition.map_or_else(String::new, |condition| {
                format!("--where {}", shell_word(&safe(condition)))
            }));
            cells
        });
        let cells: Vec<Vec<String>> = cells.collect();
        lines.push(format!("\n{}", report.heading(&table.by)));
        lines.extend(fitted(table::lines(&head, &cells)));
        lines.extend(report.note(table).map(|note| format!("  {note}")));
    }
    if !report.extreme.is_empty() {
        lines.push(format!("\n{}", report.extreme_title()));
        lines.extend(fitted(samples(titles, report.extreme.iter())));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn samples<'a>(titles: &[&str], samples: impl Iterator<Item = &'a Sample>) -> Vec<String> {
    let mut head = vec!["record"];
    head.extend(titles);
    let cells = samples.map(|sample| {
        let cells = std::iter::once(&sample.place).chain(&sample.cells);
        cells.map(|cell| safe(cell)).collect()
    });
    let cells: Vec<Vec<String>> = cells.collect();
    table::lines(&head, &cells)
}

/// Two reports side by side.
pub(super) fn of_both(reports: [&StoredReport; 2], names: [&str; 2], rows: usize) -> String {
    let [one, other] = reports;
    let (totals, distributions) = compare(reports);
    let mut lines = Vec::new();
    for ((letter, name), report) in ["A", "B"].into_iter().zip(names).zip(reports) {
        lines.push(format!("{letter}  {name}: {}", times(report)));
    }
    let text = |figures: &[Compared]| -> Vec<(String, String)> {
        let rows = figures.iter();
        rows.map(|of| (of.name.clone(), of.text())).collect()
    };
    let aligned = |pairs: &[(String, String)]| {
        let rows: Vec<(&str, String)> = pairs
            .iter()
            .map(|(name, text)| (name.as_str(), text.clone()))
            .collect();
        screen::rows(&rows)
    };
    lines.push(aligned(&text(&totals)));
    for (title, figures) in &distributions {
        lines.push(format!("\n{title}"));
        lines.push(aligned(&text(figures)));
    }
    for (a, b) in one.tables.iter().zip(&other.tables) {
        let found = one.compared_rows(other, [a, b], rows);
        let Some(first) = found.first() else { continue };
        let mut head = vec![a.by.as_str()];
        head.extend(first.figures.iter().map(|of| of.name.as_str()));
        let cells: Vec<Vec<String>> = found
            .iter()
            .map(|row| {
                let figures = row.figures.iter().map(Compared::text);
                std::iter::once(safe(&row.key)).chain(figures).collect()
            })
            .collect();
        lines.push(format!("\n{}", one.heading(&a.by)));
        lines.extend(fitted(table::lines(&head, &cells)));
    }
    lines.push(
        "\n▲ ▼  a percentile that differs by more than its histogram may err, of enough values\n"
            .to_owned(),
    );
    lines.join("\n")
}
