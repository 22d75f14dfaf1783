//! What differs between the live statistics of one kind of record and another: the content of an
//! interval. Intervals, windows, history, rules, server and terminal are the same for all.

use std::fmt::Debug;

use linkweir_record::RecordKind;
use linkweir_sketch::{LogLinear, Payload, TopEntry, TopK};
use serde::Serialize;
use serde_json::Value;

use crate::alert::{Measured, Rule, RuleError, Scope};
use crate::api::{Percentiles, Tick, Totals, Word};
use crate::metrics::Exposition;

/// Where the time of the writer stands, nanoseconds since the epoch.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Latest time of a record.
    pub records_to: u64,
    /// Latest time of a tick.
    pub ticks_to: u64,
    /// Start of the oldest interval that is open.
    pub open_from: u64,
}

/// A column of a file of intervals: its name, and its value.
pub type Column = (&'static str, Value);

/// A kind of record that there are live statistics of.
///
/// The statistics are made of this: `Counts` of an interval add up to those of a run; `Keyed` is what
/// is kept with a key of a table; `Numbers` is what a rule looks at; `Series` are what `/metrics` has
/// of the whole run and of nothing shorter.
pub trait Kind: RecordKind + Debug + Clone + Send + Sync {
    /// The word in the API.
    const SUBJECT: &'static str;
    /// Whether there is something beside the intervals: a status, last records.
    const HAS_STATUS: bool = false;

    /// What readers get of an interval.
    type Figures: Debug + Clone + Default + PartialEq + Serialize + Send + Sync;
    /// What a rule looks at.
    type Numbers: Measured + Debug + Default + Send + Sync;
    /// Sums and distributions of an interval.
    type Counts: Debug + Default + Send + Sync;
    /// What is kept with each key of a table.
    type Keyed: Payload + Debug + Send + Sync;
    /// What is counted for the whole run only.
    type Series: Debug + Default + Clone + Send + Sync;
    /// Texts of the record at hand.
    type Scratch: Debug + Default + Send + Sync;
    /// What tables are by, and in their order.
    type By: Word;
    /// What tables can be sorted by.
    type Sort: Word;
    /// What there are distributions of.
    type Of: Word;
    /// A row of a table.
    type Row: Debug + Clone + PartialEq + Serialize + Send + Sync;
    /// What the process says of itself; `()` where it says nothing.
    type Status: Debug + Serialize + Send + Sync;
    /// A record in the list of the last ones; `()` where there is no such list.
    type Event: Debug + Clone + Serialize + Send + Sync;

    /// Reads a rule in the words of this kind.
    ///
    /// # Errors
    /// Where it is none.
    fn rule(text: &str) -> Result<Rule, RuleError>;

    /// The time at which a record counts.
    fn time(view: &Self::View<'_>, clock: Clock) -> u64;

    /// Counts a record; leaves its texts in `scratch` for what follows.
    fn count(
        view: &Self::View<'_>,
        counts: &mut Self::Counts,
        series: &mut Self::Series,
        scratch: &mut Self::Scratch,
    );

    /// Whether a record belongs to a scope.
    fn is_in(view: &Self::View<'_>, scope: &Scope, scratch: &Self::Scratch) -> bool;

    /// Counts a record in a scope.
    fn count_in(view: &Self::View<'_>, scratch: &Self::Scratch, numbers: &mut Self::Numbers);

    /// Whether a record goes into the tables.
    fn has_keys(view: &Self::View<'_>) -> bool;

    /// Counts a record in the tables, which are in the order of [`Kind::By`].
    fn count_keys(view: &Self::View<'_>, tables: &mut [TopK<Self::Keyed>], scratch: &Self::Scratch);

    /// A record for the list of the last ones, where there is one.
    fn event(view: &Self::View<'_>) -> Option<Self::Event> {
        let _ = view;
        None
    }

    /// Whether such a record is one of many: those keep a list of their own, so that they do not push
    /// out what is rare.
    fn is_routine(event: &Self::Event) -> bool {
        let _ = event;
        false
    }

    /// An interval closes, at whose end the table had `entries`.
    fn close(counts: &mut Self::Counts, series: &mut Self::Series, entries: u64) {
        let _ = (counts, series, entries);
    }

    /// Adds the counts of an interval to those of a run.
    fn merge(mine: &mut Self::Counts, theirs: &Self::Counts);

    /// What rules without a scope look at.
    fn all(counts: &Self::Counts) -> &Self::Numbers;

    /// A distribution of an interval.
    fn distribution(counts: &Self::Counts, of: Self::Of) -> &LogLinear;

    /// What readers get.
    fn figures(counts: &Self::Counts) -> Self::Figures;

    /// Adds figures of other intervals, but for distributions; what is too much for a long history is
    /// left out.
    fn add(mine: &mut Self::Figures, theirs: Self::Figures);

    /// Puts a distribution in its place.
    fn put(figures: &mut Self::Figures, of: Self::Of, percentiles: Option<Percentiles>);

    /// Longest key of a table.
    fn key_bytes(by: Self::By) -> usize;

    /// What a row is sorted by.
    fn rank(entry: &TopEntry<'_, Self::Keyed>, sort: Self::Sort) -> u64;

    /// A row of a table.
    fn row(by: Self::By, entry: &TopEntry<'_, Self::Keyed>) -> Self::Row;

    /// Columns of an interval in a file: those that each has, and further ones.
    fn columns(tick: &Tick<Self::Figures>) -> (Vec<Column>, Vec<(String, Value)>);

    /// What files call the tables.
    fn table_name(by: Self::By) -> &'static str;

    /// Columns of a row in a file.
    fn row_columns() -> &'static [&'static str];

    /// Writes what is special of this kind in `/metrics`.
    fn expose(out: &mut Exposition, totals: &Totals<Self::Figures>, series: &Self::Series);

    /// Writes what the process says of itself in `/metrics`.
    fn expose_status(out: &mut Exposition, status: &Self::Status) {
        let _ = (out, status);
    }
}
