//! A load generator as the content of intervals: it has counted already, and gives what came since it last did.
//!
//! Cost: for the generator a copy of its counters each interval; everything else is done by whoever shows them.

use std::convert::Infallible;

use linkweir_record::FilterError;
use linkweir_sketch::{TopEntry, TopK};
use serde::Serialize;

use crate::alert::Scope;
use crate::api::{LoadBy, LoadCounts, LoadFigures, LoadKeyed, LoadOf, LoadSort, LoadTopRow};
use crate::exposition::{Buckets, Family};
use crate::figures::Counts as _;
use crate::kind::{Clock, Fed, KeyTable, Kind, Records};
use crate::load_metrics::{self, LAG_BOUNDS};
use crate::recent::{Found, RecentOrder};
use crate::servers::BOUNDS;

/// Maximum length of the name of a group or a generator in a table, bytes.
const NAME_BYTES: usize = 64;

/// The live statistics of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadRun;

/// What a generator did up to a time, since the step before.
#[derive(Debug, Default)]
pub struct LoadStep {
    /// The interval in which it counts, nanoseconds since the epoch.
    pub at_ns: u64,
    /// Which generator.
    pub generator: String,
    /// All of it.
    pub counts: LoadCounts,
    /// The same by group of clients, where there are groups.
    pub groups: Vec<LoadPart>,
}

/// What the clients of a group did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadPart {
    /// Name of the group.
    pub name: String,
    /// Bytes of responses.
    pub bytes: u64,
    /// Sessions that started.
    pub sessions: u64,
    /// Sessions that completed.
    pub completed: u64,
    /// Sessions that failed.
    pub failed: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Complete responses.
    pub responses: u64,
}

impl LoadPart {
    /// Counts it in a table, unless nothing happened.
    fn count(&self, table: &mut TopK<LoadKeyed>) {
        let happened = [
            self.bytes,
            self.sessions,
            self.completed,
            self.failed,
            self.requests,
            self.responses,
        ];
        if happened.iter().all(|count| *count == 0) {
            return;
        }
        // A key needs a count: sessions that only start have no bytes yet.
        if let Some(keyed) = table.record_n(self.name.as_bytes(), self.bytes.max(1)) {
            for (sum, count) in [
                (&mut keyed.sessions, self.sessions),
                (&mut keyed.completed, self.completed),
                (&mut keyed.failed, self.failed),
                (&mut keyed.requests, self.requests),
                (&mut keyed.responses, self.responses),
            ] {
                *sum = sum.saturating_add(count);
            }
        }
    }
}

impl Fed for LoadRun {
    type View<'a> = &'a LoadStep;
    type Batch = Vec<LoadStep>;
    type Condition = Infallible;
    type Recent = ();
    type Chunks = ();

    fn views(batch: &Vec<LoadStep>) -> impl Iterator<Item = &LoadStep> {
        batch.iter()
    }

    fn condition(text: &str) -> Result<Infallible, FilterError> {
        Err(FilterError {
            filter: text.to_owned(),
            column: 1,
            message: "these statistics are not made of records".to_owned(),
        })
    }

    fn meets(_step: &&LoadStep, condition: &Infallible) -> bool {
        match *condition {}
    }

    fn keep(_recent: &mut (), _batch: &Vec<LoadStep>) {}

    fn share(_recent: &mut ()) {}

    fn find(
        (): &(),
        _condition: &str,
        _is_meant: impl FnMut(&Self::View<'_>) -> bool,
        _order: RecentOrder,
        _most: usize,
    ) -> Result<Found, String> {
        Ok(Found::default())
    }
}

/// What `/metrics` has of the whole run only.
#[derive(Debug, Clone, Default)]
pub struct LoadSeries {
    pub(super) response: Buckets<{ BOUNDS.len() }>,
    pub(super) service: Buckets<{ BOUNDS.len() }>,
    pub(super) connect: Buckets<{ BOUNDS.len() }>,
    pub(super) lag: Buckets<{ LAG_BOUNDS.len() }>,
}

/// Where a generator stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadState {
    /// It waits for others, or to be started.
    #[default]
    Waiting,
    /// It plays its schedule, or lets open sessions end.
    Running,
    /// It was asked to end early and has not ended yet.
    Stopping,
    /// It has ended, and its results are here.
    Ended,
    /// It is gone, and its results are missing.
    Gone,
}

impl LoadState {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Waiting,
        Self::Running,
        Self::Stopping,
        Self::Ended,
        Self::Gone,
    ];

    /// The word in JSON and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Ended => "ended",
            Self::Gone => "gone",
        }
    }
}

/// The run, and each generator of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LoadStatus {
    /// `all`, `init`, `stat`, `controller` or `worker`.
    pub role: &'static str,
    /// What is loaded.
    pub target: String,
    /// The arrival process, as on the command line.
    pub arrivals: String,
    /// Where the run stands.
    pub state: LoadState,
    /// When the schedule began, milliseconds since the epoch.
    pub begun_ms: Option<u64>,
    /// Length of the schedule, seconds, where it has one.
    pub duration_s: Option<f64>,
    /// Sessions that are open.
    pub open: u64,
    /// The most that were open at a time.
    pub peak_open: u64,
    /// Whether the console may start and stop the generators.
    pub may_control: bool,
    /// Each generator.
    pub generators: Vec<GeneratorStatus>,
}

/// One generator.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GeneratorStatus {
    /// Interface, or address of a worker.
    pub name: String,
    /// Where it stands.
    pub state: LoadState,
    /// Sessions that started.
    pub started: u64,
    /// Sessions that completed.
    pub completed: u64,
    /// Sessions that failed.
    pub failed: u64,
    /// Sessions that are open.
    pub open: u64,
    /// Complete responses.
    pub responses: u64,
    /// Sessions that started per second, in its last interval.
    pub sessions_per_s: f64,
    /// Complete responses per second, in its last interval.
    pub responses_per_s: f64,
    /// 99th percentile of the response time in its last interval, nanoseconds.
    pub response_p99_ns: Option<u64>,
    /// 99th percentile of the schedule lag in its last interval, nanoseconds.
    pub lag_p99_ns: Option<u64>,
    /// Why it is gone.
    pub fault: Option<String>,
}

impl Kind for LoadRun {
    const SUBJECT: &'static str = "load";
    const HAS_STATUS: bool = true;
    const HAS_EVENTS: bool = false;
    const TABLES: &'static [KeyTable] = &[
        KeyTable::of_names("groups", NAME_BYTES),
        KeyTable::of_names("generators", NAME_BYTES),
    ];
    const METRICS: &'static [Family<Records<Self>>] = load_metrics::FAMILIES;
    const STATUS_METRICS: &'static [Family<LoadStatus>] = load_metrics::STATUS;
    const STATS: &'static [&'static str] = &[
        "count", "min", "mean", "p50", "p90", "p95", "p99", "p999", "max",
    ];
    type Figures = LoadFigures;
    type Counts = LoadCounts;
    type Keyed = LoadKeyed;
    type Series = LoadSeries;
    type Scratch = ();
    type By = LoadBy;
    type Sort = LoadSort;
    type Of = LoadOf;
    type Row = LoadTopRow;
    type Status = LoadStatus;
    type Event = ();

    /// A step that comes after its interval has closed counts in the oldest that is open: nothing is lost.
    fn time(step: &&LoadStep, clock: Clock) -> u64 {
        step.at_ns.max(clock.open_from)
    }

    fn prepare(step: &&LoadStep, series: &mut LoadSeries, _scratch: &mut ()) {
        let counts = &step.counts;
        series.response.add(&BOUNDS, &counts.response_time_ns);
        series.service.add(&BOUNDS, &counts.service_time_ns);
        series.connect.add(&BOUNDS, &counts.connect_ns);
        series.lag.add(&LAG_BOUNDS, &counts.schedule_lag_ns);
    }

    fn count(step: &&LoadStep, _scratch: &(), counts: &mut LoadCounts) {
        counts.merge(&step.counts);
    }

    /// Rules look at the whole run.
    fn is_in(_step: &&LoadStep, scope: &Scope, _scratch: &()) -> bool {
        *scope == Scope::Run
    }

    fn has_keys(_step: &&LoadStep) -> bool {
        true
    }

    fn count_keys(step: &&LoadStep, tables: &mut [TopK<LoadKeyed>], _scratch: &()) {
        let [groups, generators] = tables else {
            return;
        };
        let counts = &step.counts;
        let whole = LoadPart {
            name: step.generator.clone(),
            bytes: counts.response_bytes,
            sessions: counts.started,
            completed: counts.completed,
            failed: counts.causes.total(),
            requests: counts.requests,
            responses: counts.responses,
        };
        whole.count(generators);
        if step.groups.is_empty() {
            let all = LoadPart {
                name: "all clients".to_owned(),
                ..whole
            };
            all.count(groups);
        }
        step.groups.iter().for_each(|group| group.count(groups));
    }

    fn rank(entry: &TopEntry<'_, LoadKeyed>, sort: LoadSort) -> u64 {
        let keyed = entry.payload;
        match sort {
            LoadSort::Bytes => entry.count,
            LoadSort::Sessions => keyed.sessions,
            LoadSort::Failed => keyed.failed,
            LoadSort::Responses => keyed.responses,
        }
    }
}
