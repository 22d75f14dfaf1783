//! How a destination is written, beyond its format.

use linkweir_engine::DeliveryTimeout;

use crate::rotate::{Period, Rotation};
use crate::table::TableOptions;

/// How a destination is written, beyond its format.
#[derive(Debug, Clone)]
pub struct OutputOptions {
    /// When a file is complete and the next begins; `None`: at the end of the run.
    pub rotation: Option<Rotation>,
    /// The wall clock in nanoseconds since the epoch, asked once per file for formats that carry the
    /// time of writing (Zeek's `#open` and `#close`). Libraries have no clock of their own.
    pub wall_clock_ns: fn() -> u64,
    /// Whether the run makes partial records of long flows: a destination that adds up counters
    /// takes those and leaves the final ones, which say the same again.
    pub has_partial_records: bool,
    /// Whether it is known which addresses are internal: Zeek's `local_orig` and `local_resp` are unset
    /// where its `Site::local_nets` is empty.
    pub has_internal_networks: bool,
    /// Whether the records come from an interface, which does not wait: a destination that is slow or
    /// away then loses what does not fit into its buffer, and counts it; else it is waited for.
    pub is_live: bool,
    /// What becomes of a finished file that is there under the name of a destination.
    pub existing: Existing,
    /// The directories into which files are sorted by the time of their records.
    pub partition: Option<Partition>,
    /// Bytes of all files of a partitioned output; with more, the oldest are deleted.
    pub budget: Option<u64>,
    /// The name of this probe among others.
    pub probe: String,
    /// How long a destination over a network is waited for that takes nothing.
    pub timeout: DeliveryTimeout,
    /// Settings of the client of a message broker, by name.
    pub kafka: Vec<(String, String)>,
    /// Settings of the client of Elasticsearch, by name: credentials, certificates, compression.
    pub elasticsearch: Vec<(String, String)>,
    /// A condition ([`linkweir_record::Filter`]) that records must meet to be written.
    pub condition: Option<String>,
    /// How many records are written at most; the destination is complete then, and takes no more.
    pub head: Option<u64>,
    /// The columns of `text`, `jsonl`, `csv` and `spreadsheet`, in this order; none: those of the format.
    pub fields: Vec<String>,
    /// How `table` looks.
    pub table: TableOptions,
    /// Whether standard output is a terminal, on which people read: lines are a `table` there, where nothing else is said.
    pub is_shown: bool,
    /// Whether the user has asked the run to stop: what waits for a destination waits less then.
    pub is_stopping: fn() -> bool,
    /// Tells people something that is not a failure: that files were deleted, that a broker is back.
    pub announce: fn(&str),
}

/// What becomes of a finished file that has the name of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// It stays, and the destination is refused: who reads files can say what is to happen.
    #[default]
    Refuse,
    /// It stays, and the new file takes the first free name of `NAME.1`, `NAME.2` and so on: what comes
    /// from an interface cannot be had again.
    Keep,
    /// It is replaced when the new file is complete.
    Replace,
}

impl Existing {
    /// What goes for a run: `overwrite` is the user's word, `is_live` as of [`OutputOptions::is_live`].
    #[must_use]
    pub const fn of(overwrite: bool, is_live: bool) -> Self {
        match (overwrite, is_live) {
            (true, _) => Self::Replace,
            (false, true) => Self::Keep,
            (false, false) => Self::Refuse,
        }
    }
}

/// The length of time that one directory of files is for, by UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// `date=2026-11-22/hour=07`.
    Hour,
    /// `date=2026-11-22`.
    Day,
}

impl OutputOptions {
    /// Whether the span of a file is over by the clock: that of an interface goes on where no record comes.
    pub(crate) fn is_over(&self, period: &mut Period) -> bool {
        match self.rotation {
            Some(Rotation::Every(span)) if self.is_live => {
                period.passes((self.wall_clock_ns)(), span)
            }
            _ => false,
        }
    }
}

impl Default for OutputOptions {
    /// No rotation; the epoch as the time of writing.
    fn default() -> Self {
        Self {
            rotation: None,
            wall_clock_ns: || 0,
            has_partial_records: false,
            has_internal_networks: false,
            is_live: false,
            existing: Existing::default(),
            partition: None,
            budget: None,
            probe: String::new(),
            timeout: DeliveryTimeout::of_run(false),
            kafka: Vec::new(),
            elasticsearch: Vec::new(),
            condition: None,
            head: None,
            fields: Vec::new(),
            table: TableOptions::default(),
            is_shown: false,
            is_stopping: || false,
            announce: |_| {},
        }
    }
}
