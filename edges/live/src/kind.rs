//! What differs between the live statistics of one kind of record and another: the content of an
//! interval. Intervals, windows, history, rules, server and terminal are the same for all.

use std::fmt::Debug;

use linkweir_record::{Filter, FilterError, RecordBatch as _, RecordKind};
use linkweir_sketch::{TopEntry, TopK};
use serde::Serialize;

use crate::alert::{Measured, Rule, RuleError, Scope};
use crate::api::{Totals, Word};
use crate::exposition::Family;
use crate::figures::{Counts, Keyed};
use crate::interval::LiveOptions;
use crate::recent::{self, Found, RecentOrder, Ring};

/// Where the time of the writer stands, nanoseconds since the epoch.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Latest time of a record.
    pub records_to: u64,
    /// Latest time of a tick.
    pub ticks_to: u64,
    /// Start of the oldest interval that is open.
    pub open_from: u64,
    /// Whether the records of an interval come before the first tick of the next one.
    pub is_cut: bool,
}

/// What the keys of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyShape {
    /// Text, most of it from the network.
    Name,
    /// An address, with or without a port.
    Address,
    /// The two letters of a country.
    Country,
    /// The number of an autonomous system, 4 bytes in network byte order.
    System,
}

/// A table of keys.
#[derive(Debug, Clone, Copy)]
pub struct KeyTable {
    /// What files call it.
    pub name: &'static str,
    /// Maximum length of a key; longer ones are truncated.
    pub key_bytes: usize,
    /// What its keys are.
    pub shape: KeyShape,
}

impl KeyTable {
    pub(crate) const fn of_names(name: &'static str, key_bytes: usize) -> Self {
        Self {
            name,
            key_bytes,
            shape: KeyShape::Name,
        }
    }

    pub(crate) const fn of_addresses(name: &'static str) -> Self {
        Self {
            name,
            key_bytes: ADDRESS_BYTES,
            shape: KeyShape::Address,
        }
    }

    pub(crate) const fn of_countries(name: &'static str) -> Self {
        Self {
            name,
            key_bytes: 2,
            shape: KeyShape::Country,
        }
    }

    pub(crate) const fn of_systems(name: &'static str) -> Self {
        Self {
            name,
            key_bytes: 4,
            shape: KeyShape::System,
        }
    }

    /// Whether it is filled only where a database says where addresses are.
    #[must_use]
    pub const fn needs_places(&self) -> bool {
        matches!(self.shape, KeyShape::Country | KeyShape::System)
    }
}

/// Bytes of an address and a port as a key.
pub(crate) const ADDRESS_BYTES: usize = 18;

/// The expression of an address with its port.
pub(crate) fn behind_server(key: &str, ip: &str, port: &str) -> Option<String> {
    let server: std::net::SocketAddr = key.parse().ok()?;
    Some(format!(
        "{ip} = {} and {port} = {}",
        server.ip(),
        server.port()
    ))
}

/// The number in `AS64500`.
pub(crate) fn system(key: &str) -> Option<u32> {
    key.strip_prefix("AS")?.parse().ok()
}

/// What there is of the records of a run.
#[derive(Debug)]
pub struct Records<K: Kind> {
    pub(crate) totals: Totals<K::Figures>,
    pub(crate) series: K::Series,
}

/// What statistics are counted from: records, or what somebody has counted already.
pub trait Fed: Sized + 'static {
    /// One of them.
    type View<'a>: Copy;
    /// Many.
    type Batch;

    /// Which of them a rule means by `where`.
    type Condition: Debug + Send + Sync;
    /// The last of them, and what of those a reader gets; `()` where nobody can look at one.
    type Recent: Debug + Default + Send;
    /// What a reader gets of them.
    type Chunks;

    /// All of a batch, in order.
    fn views(batch: &Self::Batch) -> impl Iterator<Item = Self::View<'_>>;

    /// Reads a condition.
    ///
    /// # Errors
    /// Where it is none over these.
    fn condition(text: &str) -> Result<Self::Condition, FilterError>;

    /// Whether one of them meets a condition.
    fn meets(view: &Self::View<'_>, condition: &Self::Condition) -> bool;

    /// Keeps those of a batch.
    fn keep(recent: &mut Self::Recent, batch: &Self::Batch);

    /// Those that are kept at this moment.
    fn share(recent: &mut Self::Recent) -> Self::Chunks;

    /// Those that meet an expression of `--where` and `is_meant`, at most `most`.
    ///
    /// # Errors
    /// What is wrong with the expression.
    fn find(
        chunks: &Self::Chunks,
        condition: &str,
        is_meant: impl FnMut(&Self::View<'_>) -> bool,
        order: RecentOrder,
        most: usize,
    ) -> Result<Found, String>;
}

/// What is behind a row of a table, or behind a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Behind {
    /// As an expression of `--where`.
    pub condition: String,
    /// What the expression says less exactly than the tables do.
    pub scope: Scope,
}

impl<R> Fed for R
where
    R: RecordKind,
    R::Batch: Send + Sync,
{
    type Recent = Ring<R>;
    type Chunks = recent::Chunks<R>;

    type View<'a> = <R as RecordKind>::View<'a>;
    type Batch = <R as RecordKind>::Batch;
    type Condition = Filter<R>;

    fn views(batch: &Self::Batch) -> impl Iterator<Item = Self::View<'_>> {
        batch.views()
    }

    fn condition(text: &str) -> Result<Filter<R>, FilterError> {
        Filter::read(text)
    }

    fn meets(view: &Self::View<'_>, condition: &Filter<R>) -> bool {
        condition.matches(view)
    }

    fn keep(recent: &mut Ring<R>, batch: &Self::Batch) {
        recent.keep(batch);
    }

    fn share(recent: &mut Ring<R>) -> Self::Chunks {
        recent.share()
    }

    fn find(
        chunks: &Self::Chunks,
        condition: &str,
        is_meant: impl FnMut(&Self::View<'_>) -> bool,
        order: RecentOrder,
        most: usize,
    ) -> Result<Found, String> {
        recent::find::<R>(chunks, condition, is_meant, order, most)
    }
}

/// A kind of which there are records.
pub trait OfRecords: Kind + RecordKind + Fed<Batch = <Self as RecordKind>::Batch> {}

impl<K> OfRecords for K where K: Kind + RecordKind + Fed<Batch = <K as RecordKind>::Batch> {}

/// A kind of record that there are live statistics of.
///
/// The statistics are made of this: `Counts` of an interval add up to those of a run; `Keyed` is what
/// is kept with a key of a table; `Series` are what `/metrics` has of the whole run and of nothing shorter.
pub trait Kind: Fed + Debug + Clone + Send + Sync {
    /// The word in the API.
    const SUBJECT: &'static str;
    /// Whether there is something beside the intervals: a status, last records.
    const HAS_STATUS: bool = false;
    /// Whether readers can look at the records behind a row ([`Kind::behind`]); those of other kinds are not kept.
    const HAS_RECORDS: bool = false;
    /// Whether the last records are kept in a list.
    const HAS_EVENTS: bool = Self::HAS_STATUS;
    /// The tables, in the order of [`Kind::By`].
    const TABLES: &'static [KeyTable];
    /// Its metrics.
    const METRICS: &'static [Family<Records<Self>>];
    /// Metrics of the status of the process.
    const STATUS_METRICS: &'static [Family<Self::Status>] = &[];
    /// What of a distribution is in a file of intervals.
    const STATS: &'static [&'static str] = &["count", "p50", "p95", "p99"];

    /// What readers get of an interval.
    type Figures: Debug + Clone + Default + PartialEq + Serialize + Send + Sync;
    /// Sums and distributions of an interval: of all records, or of those of a rule.
    type Counts: Counts<Figures = Self::Figures> + Measured;
    /// What is kept with each key of a table.
    type Keyed: Keyed<Row = Self::Row>;
    /// What is counted for the whole run only.
    type Series: Debug + Default + Clone + Send + Sync;
    /// Texts of the record at hand, and what has to be known of those before it.
    type Scratch: Debug + Default + Send + Sync;
    /// What tables are by, and in their order.
    type By: Word;
    /// What tables can be sorted by.
    type Sort: Word;
    /// What there are distributions of, in the order of [`Counts::distributions`].
    type Of: Word;
    /// A row of a table.
    type Row: Debug + Clone + PartialEq + Serialize + Send + Sync;
    /// The status of the process; `()` if there is none.
    type Status: Debug + Serialize + Send + Sync;
    /// A record in the list of the last ones; `()` where there is no such list.
    type Event: Debug + Clone + Serialize + Send + Sync;

    /// Reads a rule in the words of this kind.
    ///
    /// # Errors
    /// Where it is not one.
    fn rule(text: &str) -> Result<Rule, RuleError> {
        let rule = Rule::read::<Self::Counts>(text)?;
        if let Scope::Where { condition, column } = &rule.scope {
            Self::condition(condition).map_err(|error| RuleError {
                rule: text.to_owned(),
                column: column + error.column - 1,
                message: error.message,
            })?;
        }
        Ok(rule)
    }

    /// The series of a run in which nothing was counted yet.
    fn series(options: &LiveOptions) -> Self::Series {
        let _ = options;
        Self::Series::default()
    }

    /// The time at which a record counts.
    fn time(view: &Self::View<'_>, clock: Clock) -> u64;

    /// Counts a record in the series; leaves what the other functions need in `scratch`.
    fn prepare(view: &Self::View<'_>, series: &mut Self::Series, scratch: &mut Self::Scratch);

    /// Counts a record in an interval or in the scope of a rule.
    fn count(view: &Self::View<'_>, scratch: &Self::Scratch, counts: &mut Self::Counts);

    /// Whether a record belongs to a scope that is not a condition.
    fn is_in(view: &Self::View<'_>, scope: &Scope, scratch: &Self::Scratch) -> bool;

    /// What is behind a row of a table; `None` where records do not say.
    fn behind(by: Self::By, key: &str) -> Option<Behind> {
        let _ = (by, key);
        None
    }

    /// What is behind a rule.
    fn behind_rule(rule: &Rule) -> Option<Behind> {
        let _ = rule;
        None
    }

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
    fn close(counts: &mut Self::Counts, scratch: &mut Self::Scratch, entries: u64) {
        let _ = (counts, scratch, entries);
    }

    /// What a row is sorted by.
    fn rank(entry: &TopEntry<'_, Self::Keyed>, sort: Self::Sort) -> u64;
}
