//! Records that are set apart: what was estimated has lines of its own, not among what was measured.

use linkweir_record::human::thousands;
use linkweir_record::stored::StoredRecord;
use linkweir_sketch::{BoundedCounts, LogLinear};

use super::figure::figures_of;
use super::key::Part;
use super::{StoredReport, Total};
use crate::page::table;

/// Records of a kind that are set apart, unless the user's own words name their column.
#[derive(Debug)]
pub struct Apart {
    /// What they are, in the plural.
    pub noun: &'static str,
    /// What one of them is.
    pub one: &'static str,
    /// The column that says so.
    pub column: &'static str,
    /// The condition that they meet.
    pub condition: &'static str,
    /// Title of the distribution of their first span.
    pub times: &'static str,
    /// A column of few values by which they are counted.
    pub by: &'static str,
}

/// Transactions of TLS without keys.
pub(super) const ESTIMATES: Apart = Apart {
    noun: "estimates",
    one: "estimate",
    column: "source",
    condition: "source = estimate",
    times: "estimated times",
    by: "confidence",
};

/// What is known of them.
#[derive(Debug)]
pub struct SetApart {
    /// Records.
    pub records: u64,
    /// Their first span.
    pub times: LogLinear,
    /// Counts of [`Apart::by`].
    pub counts: BoundedCounts,
    pub(super) by: Option<usize>,
}

impl SetApart {
    /// None yet; `by` is the place of [`Apart::by`], which has at most `few` values.
    pub(super) fn new(by: Option<usize>, few: usize) -> Self {
        Self {
            records: 0,
            times: LogLinear::new(),
            counts: BoundedCounts::new(few),
            by,
        }
    }
}

impl StoredReport {
    /// Takes a record that is set apart.
    pub fn set_apart(&mut self, view: &StoredRecord<'_>) {
        self.apart.records += 1;
        let span = self.columns.spans.first();
        if let Some(span) = span.and_then(|column| view.number(*column)) {
            self.apart.times.record(span);
        }
        if let Some(by) = self.apart.by {
            self.key.clear();
            Part::Column(by).push(view, &mut self.key);
            if !self.key.is_empty() {
                self.apart.counts.record(&self.key);
            }
        }
    }

    /// The records that are set apart, where there are some.
    #[must_use]
    pub fn apart(&self) -> Option<(&'static Apart, &SetApart)> {
        let of = self.subject.apart.as_ref()?;
        (self.apart.records > 0).then_some((of, &self.apart))
    }

    /// The condition of a group, which is one of the records that are not set apart.
    pub(super) fn narrowed(&self, condition: Option<String>) -> Option<String> {
        match self.apart() {
            Some((of, _)) => condition.map(|own| format!("{own} and not {}", of.condition)),
            None => condition,
        }
    }

    /// Figures of their span, where there are some.
    #[must_use]
    pub fn apart_times(&self) -> Vec<Total> {
        figures_of(&self.apart.times)
    }

    /// Their section of the page: heading and content.
    pub(super) fn apart_section(&self) -> Option<(&'static str, String)> {
        let (of, apart) = self.apart()?;
        let mut lines = vec![(of.noun.to_owned(), vec![thousands(apart.records)])];
        for (value, count) in apart.counts.by_count() {
            let value = String::from_utf8_lossy(value);
            lines.push((format!("{}: {value}", of.by), vec![thousands(count)]));
        }
        if apart.times.count() > 0 {
            let times = self.apart_times().into_iter();
            lines.extend(times.map(|(name, figure)| {
                let name = format!("{}: {name}", of.times);
                (name, vec![figure.text()])
            }));
        }
        Some((of.noun, table(&[of.condition, ""], lines.into_iter())))
    }
}
