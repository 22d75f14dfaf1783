//! Figures, each with its name, as a terminal, a page and JSON show them.

use linkweir_record::human::{percent, scaled, span, thousands, to_f64};
use linkweir_sketch::{Coarse, LogLinear, TopEntry};

use super::{Group, Sample, StoredReport, Table};
use crate::http_page::about_span;

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// A number of things.
    Count(u64),
    /// A part of a whole.
    Share(u64, u64),
    /// Bytes.
    Bytes(u64),
    /// A span in nanoseconds; nothing where there are too few values.
    Span(Option<u64>),
    /// A span within an eighth.
    About(Option<u64>),
}

impl Figure {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        match *self {
            Self::Count(count) => thousands(count),
            Self::Share(part, whole) => percent(part, whole),
            Self::Bytes(bytes) => scaled(to_f64(bytes), "B"),
            Self::Span(nanos) => nanos.map_or_else(|| "–".to_owned(), span),
            Self::About(nanos) => about_span(nanos),
        }
    }

    /// For programs: a number, nanoseconds, or a share from 0 to 1.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match *self {
            Self::Count(n) | Self::Bytes(n) => Some(to_f64(n)),
            Self::Share(_, 0) => None,
            Self::Share(part, whole) => Some(to_f64(part) / to_f64(whole)),
            Self::Span(nanos) | Self::About(nanos) => nanos.map(to_f64),
        }
    }

    /// A whole number, where it is one.
    #[must_use]
    pub const fn whole(&self) -> Option<u64> {
        match *self {
            Self::Count(n) | Self::Bytes(n) => Some(n),
            Self::Share(..) => None,
            Self::Span(nanos) | Self::About(nanos) => nanos,
        }
    }
}

/// A condition as a shell takes it in one word.
#[must_use]
pub fn shell_word(condition: &str) -> String {
    format!("'{}'", condition.replace('\'', "'\\''"))
}

/// A figure and its name.
pub type Total = (String, Figure);

/// A group of a table.
#[derive(Debug)]
pub struct KeyRow<'a> {
    /// Its key, for people.
    pub key: String,
    /// The condition (`--where`) that its records meet.
    pub condition: Option<String>,
    /// What it is ordered by, which may be up to `error` too large.
    pub weight: u64,
    /// By how much at most.
    pub error: u64,
    /// Its figures.
    pub figures: Vec<Total>,
    /// What was kept of it.
    pub group: &'a Group,
}

impl KeyRow<'_> {
    /// Some of its records: errors and long ones first.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.group.samples.iter()
    }
}

/// The percentiles that are shown, in thousandths, and from how many values on: of fewer none is expected above.
pub(super) const PERCENTILES: [(&str, u16, u64); 3] =
    [("p50", 500, 2), ("p95", 950, 20), ("p99", 990, 100)];

/// A percentile, where the values are enough for it.
pub(super) fn percentile(spans: &Coarse, per_mille: u16, enough: u64) -> Option<u64> {
    let is_enough = spans.count() >= enough;
    spans.quantile(per_mille).filter(|_| is_enough)
}

/// The same of a fine histogram.
pub(super) fn fine(spans: &LogLinear, per_mille: u16, enough: u64) -> Option<u64> {
    let is_enough = spans.count() >= enough;
    let quantile = spans.quantile(f64::from(per_mille) / 1000.0);
    quantile.filter(|_| is_enough)
}

/// The figures of a distribution.
pub(super) fn figures_of(spans: &LogLinear) -> Vec<Total> {
    let mut figures = vec![("count".to_owned(), Figure::Count(spans.count()))];
    for (name, per_mille, enough) in PERCENTILES {
        let value = fine(spans, per_mille, enough);
        figures.push((name.to_owned(), Figure::Span(value)));
    }
    figures.push(("max".to_owned(), Figure::Span(spans.max())));
    figures.push(("mean".to_owned(), Figure::Span(spans.mean())));
    figures
}

impl StoredReport {
    /// Figures of all records.
    #[must_use]
    pub fn totals(&self) -> Vec<Total> {
        let subject = self.subject;
        let mut totals = vec![
            (subject.noun.to_owned(), Figure::Count(self.records)),
            (subject.error.0.to_owned(), Figure::Count(self.errors)),
            (
                format!("{} share", subject.error.0),
                Figure::Share(self.errors, self.records),
            ),
        ];
        if !subject.bytes.1.is_empty() {
            totals.push((subject.bytes.0.to_owned(), Figure::Bytes(self.bytes)));
        }
        if let Some((title, ..)) = subject.share {
            totals.push((title.to_owned(), Figure::Share(self.share.0, self.share.1)));
        }
        totals
    }

    /// Records by the class of their status code (`2xx`), where records have one.
    #[must_use]
    pub fn status_classes(&self) -> Vec<(String, u64)> {
        let columns = self.subject.counts.iter().zip(&self.counts);
        let mut codes = columns.filter(|((_, column), _)| *column == "status_code");
        let Some((_, codes)) = codes.next() else {
            return Vec::new();
        };
        let mut classes = std::collections::BTreeMap::new();
        for (code, count) in codes.iter() {
            let class = match code {
                [class, _, _] => format!("{}xx", char::from(*class)),
                _ => "other".to_owned(),
            };
            *classes.entry(class).or_insert(0) += count;
        }
        if codes.other() > 0 {
            *classes.entry("other".to_owned()).or_insert(0) += codes.other();
        }
        classes.into_iter().collect()
    }

    /// Figures of the distributions that have values: title, and the figures.
    #[must_use]
    pub fn distributions(&self) -> Vec<(&'static str, Vec<Total>)> {
        let all = self.subject.spans.iter().zip(&self.spans);
        let all = all.filter(|(_, spans)| spans.count() > 0);
        all.map(|((title, _), spans)| (*title, figures_of(spans)))
            .collect()
    }

    /// The figures of a group.
    pub(super) fn of_group(&self, group: &Group) -> Vec<Total> {
        let subject = self.subject;
        let mut figures = vec![
            (subject.noun.to_owned(), Figure::Count(group.records)),
            (
                "share".to_owned(),
                Figure::Share(group.records, self.records),
            ),
            (subject.error.0.to_owned(), Figure::Count(group.errors)),
        ];
        if !subject.spans.is_empty() {
            for (name, per_mille, enough) in PERCENTILES {
                let value = percentile(&group.spans, per_mille, enough);
                figures.push((name.to_owned(), Figure::About(value)));
            }
            let max = group.spans.max().filter(|_| group.spans.count() > 0);
            figures.push(("max".to_owned(), Figure::Span(max)));
        }
        if !subject.bytes.1.is_empty() {
            figures.push((subject.bytes.0.to_owned(), Figure::Bytes(group.bytes)));
        }
        if let Some((title, ..)) = subject.share {
            figures.push((
                title.to_owned(),
                Figure::Share(group.share.0, group.share.1),
            ));
        }
        figures
    }

    /// The first rows of a table.
    #[must_use]
    pub fn rows<'a>(&self, table: &'a Table, most: usize) -> Vec<KeyRow<'a>> {
        let top = table.groups.top(most);
        let row = |entry: TopEntry<'a, Group>| KeyRow {
            key: table.key.shown(entry.key, entry.is_truncated),
            condition: self.narrowed(table.key.condition(
                self.fields,
                entry.key,
                entry.is_truncated,
            )),
            weight: entry.count,
            error: entry.error,
            figures: self.of_group(entry.payload),
            group: entry.payload,
        };
        top.into_iter().map(row).collect()
    }

    /// The heading of a table: by what, whose percentiles it has, and in which order it is.
    #[must_use]
    pub fn heading(&self, by: &str) -> String {
        let subject = self.subject;
        let most = match subject.is_by_bytes {
            true => subject.bytes.0,
            false => subject.noun,
        };
        match subject.spans.first() {
            Some((title, _)) => format!("By {by} (most {most} first; p50 to max: {title})"),
            None => format!("By {by} (most {most} first)"),
        }
    }

    /// What is below a table: by how much a row may be too small, where keys left the table.
    #[must_use]
    pub fn note(&self, table: &Table) -> Option<String> {
        let floor = table.groups.floor();
        if floor == 0 {
            return None;
        }
        let unit = match self.subject.is_by_bytes {
            true => self.subject.bytes.0,
            false => self.subject.noun,
        };
        Some(format!(
            "Of more than {} keys those with the most {unit}; a row may lack up to {} {unit}, and a key that is not shown has no more.",
            thousands(table.groups.len() as u64),
            thousands(floor)
        ))
    }
}
