//! The page of a report of stored records.

use linkweir_record::human::{moment, percent, span, thousands, to_f64};
use linkweir_sketch::BoundedCounts;

use super::{Compared, Figure, KeyRow, Sample, StoredReport, Table, Total, compare, shell_word};
use crate::ReportMeta;
use crate::http_page::{Clock, about, name_of, percentile_bars, spans_plot};
use crate::page::{BarRow, Page, bar_table, bar_table_with, escape, table};
use crate::plot::{Axis, Scale, Unit};

/// Values of a column of few that are shown.
const SHOWN: usize = 24;

impl StoredReport {
    /// The report as one HTML page without references to anything outside it. `titles` are those of the cells of samples,
    /// `rows` the rows of a table.
    #[must_use]
    pub fn render(&self, meta: &ReportMeta, titles: &[&str], rows: usize) -> String {
        let mut page = Page::new(&meta.title);
        let clock = Clock::new(meta, [&self.records_at, &self.errors_at]);
        page.raw(&(about(meta) + &clock.note()));
        page.cards(&self.cards(meta));
        page.raw("<div class=\"grid2\">\n");
        let curves = self.subject.spans.iter().zip(&self.spans);
        let curves: Vec<_> = curves
            .filter(|(_, spans)| spans.count() > 0)
            .map(|((title, _), spans)| (*title, spans))
            .collect();
        if let Some((title, first)) = curves.first() {
            let plot = spans_plot(
                "Share of records that took longer than a given time",
                ["time", "records"],
                &curves,
            );
            page.section("Distributions", false, &(plot.svg() + &plot.table()));
            page.section(
                &format!("Percentiles: {title}"),
                false,
                &percentile_bars(first, "record"),
            );
            let plot = self.over_time(&clock, title);
            page.section(
                &format!("Over time: {title}"),
                false,
                &(plot.svg() + &plot.table()),
            );
        }
        let plot = clock.plot(
            "Records per second",
            "per second",
            vec![
                (self.subject.noun, &self.records_at),
                (self.subject.error.0, &self.errors_at),
            ],
        );
        let heading = format!("Rate of {}", self.subject.noun);
        page.section(&heading, false, &(plot.svg() + &plot.table()));
        for ((title, column), counts) in self.subject.counts.iter().zip(&self.counts) {
            if counts.total() > 0 {
                let html = counts_table(column, self.subject.noun, counts);
                page.section(title, false, &html);
            }
        }
        if let Some((heading, html)) = self.apart_section() {
            page.section(heading, false, &html);
        }
        for table in &self.tables {
            page.section(
                &self.heading(&table.by),
                true,
                &self.group_table(table, titles, rows),
            );
        }
        if !self.extreme.is_empty() {
            let html = samples_table(titles, self.extreme.iter());
            page.section(&self.extreme_title(), true, &html);
        }
        page.raw("</div>\n");
        page.finish(&format!(
            "Made by {}. This page needs no network. The records behind a row: linkweir report RECORDS --where EXPR --records",
            meta.program
        ))
    }

    /// What the list of single records has.
    #[must_use]
    pub fn extreme_title(&self) -> String {
        match self.subject.spans.first() {
            None => format!("Most {}", self.subject.bytes.0),
            Some((title, _)) => format!("Longest {title}"),
        }
    }

    fn cards<'a>(&self, meta: &'a ReportMeta) -> Vec<(String, &'a str, bool)> {
        let lost = meta.drops.iter();
        let lost = lost.map(|(name, n)| (thousands(*n), name.as_str(), *n > 0));
        let notes = meta.notes.iter();
        let notes = notes.map(|(name, n)| (thousands(*n), name.as_str(), false));
        let mut cards: Vec<(String, &'a str, bool)> = lost.chain(notes).collect();
        let subject = self.subject;
        cards.push((thousands(self.records), subject.noun, false));
        cards.push((thousands(self.errors), subject.error.0, false));
        if let Some((of, apart)) = self.apart() {
            cards.push((thousands(apart.records), of.noun, false));
        }
        cards.push((percent(self.errors, self.records), "share of them", false));
        if !subject.bytes.1.is_empty() {
            cards.push((Figure::Bytes(self.bytes).text(), subject.bytes.0, false));
        }
        if let Some((title, ..)) = subject.share {
            cards.push((percent(self.share.0, self.share.1), title, false));
        }
        if let (Some(spans), Some((title, _))) = (self.spans.first(), subject.spans.first())
            && let Some(median) = spans.quantile(0.5)
        {
            cards.push((span(median), title, false));
        }
        cards
    }

    fn over_time(&self, clock: &Clock, title: &str) -> crate::plot::Plot {
        let width = self.spans_at.width_ns();
        let line = |name, per_mille: u16| {
            let mut points: Vec<(u64, f64)> = Vec::new();
            for (at, spans) in self.spans_at.bins() {
                let Some(quantile) = spans.quantile(per_mille) else {
                    continue;
                };
                let last = points.last().map(|(last, _)| *last);
                // Nothing is drawn over bins without a record.
                if let Some(last) = last.filter(|last| at > last.saturating_add(width)) {
                    points.push((last.saturating_add(width), f64::NAN));
                }
                points.push((at, to_f64(quantile.max(1)) / 1e9));
            }
            (name, points)
        };
        clock.lines(
            title,
            Axis::new(title, Scale::Log, Unit::Seconds),
            vec![line("p50", 500), line("p95", 950)],
        )
    }

    fn group_table(&self, table: &Table, titles: &[&str], most: usize) -> String {
        let rows = self.rows(table, most);
        let heaviest = rows.first().map_or(1, |row| row.weight).max(1);
        let names = rows.first().map(|row| row.figures.as_slice());
        let names = names
            .unwrap_or_default()
            .iter()
            .map(|(name, _)| name.as_str());
        let head: Vec<&str> = std::iter::once(table.by.as_str()).chain(names).collect();
        let bar = |row: &KeyRow<'_>| BarRow {
            key: row.key.clone(),
            share: to_f64(row.weight) / to_f64(heaviest),
            class: "",
            cells: texts(&row.figures),
        };
        let more: Vec<String> = rows.iter().map(|row| more(row, titles)).collect();
        let bars: Vec<BarRow> = rows.iter().map(bar).collect();
        let mut html = bar_table_with(&head, &bars, &more);
        if let Some(note) = self.note(table) {
            html += &format!("<p class=\"note\">{}</p>\n", escape(&note));
        }
        html
    }
}

/// Two reports as one page.
#[must_use]
pub fn render_compared(reports: [&StoredReport; 2], meta: &ReportMeta, rows: usize) -> String {
    let [one, other] = reports;
    let mut page = Page::new(&meta.title);
    page.raw(&about(meta));
    page.raw("<div class=\"grid2\">\n");
    let (totals, distributions) = compare(reports);
    let cells = |figures: &[Compared]| figures.iter().map(Compared::text).collect();
    let lines = totals.iter().map(|of| (of.name.clone(), vec![of.text()]));
    page.section("Totals", false, &table(&["", "A → B"], lines));
    for (title, figures) in &distributions {
        let lines = figures.iter().map(|of| (of.name.clone(), vec![of.text()]));
        page.section(title, false, &table(&["", "A → B"], lines));
    }
    if let (Some(a), Some(b)) = (one.spans.first(), other.spans.first()) {
        let plot = spans_plot(
            "Share of records that took longer than a given time",
            ["time", "records"],
            &[("A", a), ("B", b)],
        );
        page.section("Distributions", false, &(plot.svg() + &plot.table()));
    }
    for (a, b) in one.tables.iter().zip(&other.tables) {
        let found = one.compared_rows(other, [a, b], rows);
        let names = found.first().map(|row| row.figures.as_slice());
        let names = names.unwrap_or_default().iter().map(|of| of.name.as_str());
        let head: Vec<&str> = std::iter::once(a.by.as_str()).chain(names).collect();
        let lines = found
            .iter()
            .map(|row| (row.key.clone(), cells(&row.figures)));
        page.section(&one.heading(&a.by), true, &table(&head, lines));
    }
    page.raw("</div>\n");
    page.finish(&format!(
        "Made by {}. ▲ and ▼: a percentile that differs by more than its histogram may err, of enough values.",
        meta.program
    ))
}

fn texts(figures: &[Total]) -> Vec<String> {
    figures.iter().map(|(_, figure)| figure.text()).collect()
}

/// What is folded away below a row: its condition, and some of its records.
fn more(row: &KeyRow<'_>, titles: &[&str]) -> String {
    let Some(condition) = &row.condition else {
        return String::new();
    };
    format!(
        "<details><summary>{} of {} records</summary>\n<p class=\"note\"><code>--where {}</code></p>\n{}</details>",
        row.group.samples.len(),
        thousands(row.group.records),
        escape(&shell_word(condition)),
        samples_table(titles, row.samples())
    )
}

fn samples_table<'a>(titles: &[&str], samples: impl Iterator<Item = &'a Sample>) -> String {
    let head: Vec<&str> = std::iter::once("record")
        .chain(titles.iter().copied())
        .collect();
    table(
        &head,
        samples.map(|sample| (sample.place.clone(), sample.cells.clone())),
    )
}

fn counts_table(column: &str, noun: &str, counts: &BoundedCounts) -> String {
    let all = counts.by_count();
    let most = all.first().map_or(1, |(_, count)| *count).max(1);
    let class = |key: &[u8]| match key {
        [b'1', _, _] => "c1",
        [b'2', _, _] => "c2",
        [b'3', _, _] => "c3",
        [b'4', _, _] => "c4",
        [b'5', _, _] => "c5",
        _ => "",
    };
    let row = |key: String, count: u64, class: &'static str| BarRow {
        key,
        share: to_f64(count) / to_f64(most),
        class,
        cells: vec![thousands(count), percent(count, counts.total())],
    };
    let shown = all.iter().take(SHOWN);
    let mut rows: Vec<BarRow> = shown
        .map(|(key, count)| row(name_of(key, false), *count, class(key)))
        .collect();
    let rest = counts.other() + all.iter().skip(SHOWN).map(|(_, count)| count).sum::<u64>();
    if rest > 0 {
        rows.push(row("other".to_owned(), rest, ""));
    }
    bar_table(&[column, noun, "share"], &rows)
}

/// The times of a report, for its meta.
#[must_use]
pub fn times(report: &StoredReport) -> String {
    report.time_ns.map_or_else(
        || "no time".to_owned(),
        |(first, last)| {
            let length = span(last.saturating_sub(first));
            format!("{} to {} ({length})", moment(first), moment(last))
        },
    )
}
