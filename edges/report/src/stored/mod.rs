//! Reports of records that were stored before: what is added up, as figures for a terminal, a page and JSON.
//!
//! Cost: a bounded amount of memory for any number of records: about 1.5 KiB for each of at most 1,024 keys of a table, and
//! for all others the histograms of `linkweir-sketch`.

mod apart;
mod compare;
mod figure;
mod key;
mod page;
mod samples;
mod subject;

use std::rc::Rc;

use linkweir_record::stored::StoredRecord;
use linkweir_record::{Field, RecordKind};
use linkweir_sketch::{BoundedCounts, Coarse, CoarseSeries, LogLinear, Payload, RateSeries, TopK};

pub use apart::{Apart, SetApart};
pub use compare::{Compared, ComparedRow, Moved, compare};
pub use figure::{Figure, KeyRow, Total, shell_word};
pub use key::Key;
use key::Part;
pub use page::{render_compared, times};
pub use samples::{Sample, SampleValue, Samples};
pub use subject::{SUBJECTS, Subject};

/// Keys of a table that are counted one by one.
const KEYS: usize = 1024;
/// Tables of a report at most: each has about 1.5 MiB.
const MAX_TABLES: usize = 32;
/// Longer values in keys are cut off.
const PART_BYTES: usize = 200;
/// Values of a column of few that are counted one by one.
const FEW: usize = 256;
/// Finest bin of what is shown over time, and their greatest number.
const BIN_NS: u64 = 10_000_000;
const BINS: usize = 4096;
const QUANTILE_BINS: usize = 256;

/// A sum of two, of which the first is a part.
type Share = (u64, u64);

/// What is kept of a key.
#[derive(Debug, Default)]
pub struct Group {
    /// Records since the key entered the table.
    pub records: u64,
    /// Errors among them.
    pub errors: u64,
    /// Sum of their bytes.
    pub bytes: u64,
    /// Sums of the share.
    pub share: Share,
    /// Their spans.
    pub spans: Coarse,
    /// Some of the records.
    pub samples: Samples,
}

impl Payload for Group {
    fn merge(&mut self, other: &Self) {
        self.records += other.records;
        self.errors += other.errors;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.share.0 = self.share.0.saturating_add(other.share.0);
        self.share.1 = self.share.1.saturating_add(other.share.1);
        self.spans.merge(&other.spans);
        self.samples.merge(&other.samples);
    }

    fn reset(&mut self) {
        self.spans.reset();
        self.samples.clear();
        (self.records, self.errors, self.bytes, self.share) = (0, 0, 0, (0, 0));
    }
}

/// The records grouped by a key.
#[derive(Debug)]
pub struct Table {
    /// As the user named it.
    pub by: String,
    /// By what.
    pub key: Key,
    /// The groups.
    pub groups: TopK<Group>,
}

/// The places of the columns that are added up.
#[derive(Debug)]
struct Columns {
    spans: Vec<usize>,
    bytes: Vec<usize>,
    part: Vec<usize>,
    whole: Vec<usize>,
    counts: Vec<usize>,
}

/// What is known of stored records.
#[derive(Debug)]
pub struct StoredReport {
    /// What it is about.
    pub subject: &'static Subject,
    fields: &'static [Field],
    columns: Columns,
    /// Records.
    pub records: u64,
    /// Errors among them.
    pub errors: u64,
    /// Sum of their bytes.
    pub bytes: u64,
    /// Sums of the share.
    pub share: Share,
    /// Times of the first and the last record, nanoseconds since the epoch.
    pub time_ns: Option<(u64, u64)>,
    /// Distributions, in the order of the subject.
    pub spans: Vec<LogLinear>,
    spans_at: CoarseSeries,
    records_at: RateSeries,
    errors_at: RateSeries,
    /// Counts of values, in the order of the subject.
    pub counts: Vec<BoundedCounts>,
    /// Groups of records.
    pub tables: Vec<Table>,
    /// Those with the longest span, or the most bytes where the subject has no span.
    pub extreme: Samples,
    /// Records that are in none of the above.
    pub apart: SetApart,
    key: Vec<u8>,
}

impl StoredReport {
    /// A report of nothing yet, with a table for each key of `by` ([`Key::named`]; none: those of the subject), and the `rows` slowest records.
    ///
    /// # Errors
    /// What is wrong with a word.
    pub fn new<K: RecordKind>(
        subject: &'static Subject,
        by: &[String],
        rows: usize,
    ) -> Result<Self, String> {
        let place = |name: &&str| K::column(name);
        let places = |names: &[&str]| names.iter().filter_map(place).collect::<Vec<usize>>();
        let names = |pairs: &'static [(&'static str, &'static str)]| {
            pairs.iter().map(|(_, name)| *name).collect::<Vec<&str>>()
        };
        let (part, whole) = subject
            .share
            .map_or((&[][..], &[][..]), |(_, part, whole)| (part, whole));
        let default: Vec<String> = subject.by.iter().map(|by| (*by).to_owned()).collect();
        let by = if by.is_empty() { &default } else { by };
        let mut tables: Vec<Table> = Vec::new();
        for by in by {
            let key = Key::named::<K>(subject, by)?;
            if tables.iter().any(|table| table.key == key) {
                continue;
            }
            if tables.len() >= MAX_TABLES {
                return Err(format!("at most {MAX_TABLES} tables"));
            }
            let words: Vec<&str> = by.split(',').map(str::trim).collect();
            tables.push(Table {
                by: words.join(","),
                groups: TopK::new(KEYS, key.max_bytes()),
                key,
            });
        }
        Ok(Self {
            subject,
            fields: K::fields(),
            columns: Columns {
                spans: places(&names(subject.spans)),
                bytes: places(subject.bytes.1),
                part: places(part),
                whole: places(whole),
                counts: places(&names(subject.counts)),
            },
            records: 0,
            errors: 0,
            bytes: 0,
            share: (0, 0),
            time_ns: None,
            spans: vec![LogLinear::new(); subject.spans.len()],
            spans_at: CoarseSeries::new(BIN_NS, QUANTILE_BINS),
            records_at: RateSeries::new(BIN_NS, BINS),
            errors_at: RateSeries::new(BIN_NS, BINS),
            counts: vec![BoundedCounts::new(FEW); subject.counts.len()],
            tables,
            extreme: Samples::new(rows),
            apart: SetApart::new(
                subject.apart.as_ref().and_then(|apart| K::column(apart.by)),
                FEW,
            ),
            key: Vec::new(),
        })
    }

    /// The columns that it reads, by their places.
    #[must_use]
    pub fn columns(&self) -> Vec<usize> {
        let Columns {
            spans,
            bytes,
            part,
            whole,
            counts,
        } = &self.columns;
        let own = [spans, bytes, part, whole, counts].into_iter().flatten();
        let keys = self.tables.iter().flat_map(|table| table.key.columns());
        own.copied().chain(keys).chain(self.apart.by).collect()
    }

    /// Takes a record with its time, nanoseconds since the epoch, and whether it is an error; `sample` is asked for what is
    /// shown of it where it is kept.
    pub fn record(
        &mut self,
        view: &StoredRecord<'_>,
        time_ns: u64,
        is_error: bool,
        sample: impl Fn() -> Rc<Sample>,
    ) {
        let sum = |columns: &[usize]| {
            let numbers = columns.iter().filter_map(|column| view.number(*column));
            numbers.fold(0_u64, u64::saturating_add)
        };
        let bytes = sum(&self.columns.bytes);
        let share = (sum(&self.columns.part), sum(&self.columns.whole));
        let span = self.columns.spans.first();
        let span = span.and_then(|column| view.number(*column));
        self.records += 1;
        self.errors += u64::from(is_error);
        self.bytes = self.bytes.saturating_add(bytes);
        self.share.0 = self.share.0.saturating_add(share.0);
        self.share.1 = self.share.1.saturating_add(share.1);
        if time_ns > 0 {
            let (first, last) = self.time_ns.unwrap_or((time_ns, time_ns));
            self.time_ns = Some((first.min(time_ns), last.max(time_ns)));
            self.records_at.record(time_ns);
            if is_error {
                self.errors_at.record(time_ns);
            }
            if let Some(span) = span {
                self.spans_at.record(time_ns, span);
            }
        }
        for (spans, column) in self.spans.iter_mut().zip(&self.columns.spans) {
            if let Some(span) = view.number(*column) {
                spans.record(span);
            }
        }
        for (counts, column) in self.counts.iter_mut().zip(&self.columns.counts) {
            self.key.clear();
            Part::Column(*column).push(view, &mut self.key);
            if !self.key.is_empty() {
                counts.record(&self.key);
            }
        }
        let rank = match self.subject.spans {
            [] => bytes,
            _ => span.unwrap_or(0),
        };
        if rank > 0 {
            self.extreme.offer((false, rank), &sample);
        }
        let weight = match self.subject.is_by_bytes {
            // Records without a byte are records too.
            true => bytes.max(1),
            false => 1,
        };
        let rank = if self.subject.is_by_bytes {
            bytes
        } else {
            rank
        };
        for table in &mut self.tables {
            table.key.of(view, &mut self.key);
            let is_full = table.groups.len() >= KEYS;
            let Some(group) = table.groups.record_n(&self.key, weight) else {
                continue;
            };
            group.records += 1;
            group.errors += u64::from(is_error);
            group.bytes = group.bytes.saturating_add(bytes);
            group.share.0 = group.share.0.saturating_add(share.0);
            group.share.1 = group.share.1.saturating_add(share.1);
            if let Some(span) = span {
                group.spans.record(span);
            }
            // A key that only passes through a full table is not worth it.
            if !is_full || group.records > 1 {
                group.samples.offer((is_error, rank), &sample);
            }
        }
    }
}
