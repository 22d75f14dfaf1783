//! What of a run can be added: a sketch. Merging is addition, so order and grouping do not matter.

use std::time::Duration;

use linkweir_engine::{Drops, Fault, Loss, RunReport};
use linkweir_http::HttpStats;
use linkweir_wire::{DecodeFaults, Timestamp};

use crate::clock::wall_clock;

/// The version that is written and read.
pub(super) const VERSION: u64 = 1;
/// The kind of sketch that there is: totals of HTTP transactions, or a part of such.
pub(super) const KIND: &str = "http";

/// The totals of one run, or of several.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sketch {
    /// Start of the first run by the clock of its machine, nanoseconds since the epoch.
    pub(super) started_ns: u64,
    /// End of the last run.
    pub(super) ended_ns: u64,
    /// What was read, where the run read packets.
    pub(super) run: Option<RunTotals>,
    /// What was found, where the run looked for transactions.
    pub(super) http: Option<HttpTotals>,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RunTotals {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) first: Option<Timestamp>,
    pub(super) last: Option<Timestamp>,
    pub(super) drops: Drops,
    pub(super) decode_errors: DecodeFaults,
    pub(super) input_faults: Vec<Fault>,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub(crate) struct HttpTotals {
    pub(super) records: u64,
    pub(super) unsorted: u64,
    /// Records that an output did not deliver.
    pub(super) sink_losses: u64,
    pub(super) stats: HttpStats,
}

impl PartialEq for HttpTotals {
    fn eq(&self, other: &Self) -> bool {
        let plain = |totals: &Self| (totals.records, totals.unsorted, totals.sink_losses);
        let (mine, theirs) = (&self.stats, &other.stats);
        plain(self) == plain(other)
            && mine.counters() == theirs.counters()
            && mine.methods().eq(theirs.methods())
            && mine.other_methods() == theirs.other_methods()
            && mine.status_codes().eq(theirs.status_codes())
            && mine.response_time == theirs.response_time
            && mine.estimated_time == theirs.estimated_time
            && mine.streams == theirs.streams
    }
}

impl RunTotals {
    /// What a run has read.
    pub(crate) fn new(report: &RunReport, decode_errors: &DecodeFaults) -> Self {
        Self {
            packets: report.packets,
            bytes: report.bytes,
            first: report.first,
            last: report.last,
            drops: report.drops,
            decode_errors: decode_errors.clone(),
            input_faults: report.faults.clone(),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = [self.last, other.last].into_iter().flatten().max();
        let (mine, theirs) = (&mut self.drops, other.drops);
        mine.kernel = mine.kernel.saturating_add(theirs.kernel);
        mine.ring = mine.ring.saturating_add(theirs.ring);
        mine.unusable_records = mine
            .unusable_records
            .saturating_add(theirs.unusable_records);
        self.decode_errors.merge(&other.decode_errors);
        self.input_faults.extend_from_slice(&other.input_faults);
    }
}

impl HttpTotals {
    /// What a run has found.
    pub(crate) fn new(report: &RunReport, stats: &HttpStats) -> Self {
        Self {
            records: report.records,
            unsorted: report.unsorted,
            sink_losses: report.lost_records(),
            stats: stats.clone(),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.records = self.records.saturating_add(other.records);
        self.unsorted = self.unsorted.saturating_add(other.unsorted);
        self.sink_losses = self.sink_losses.saturating_add(other.sink_losses);
        self.stats.merge(&other.stats);
    }
}

impl Sketch {
    /// The sketch of a run that has just ended and took `elapsed`.
    pub(crate) fn of_run(
        elapsed: Duration,
        run: Option<RunTotals>,
        http: Option<HttpTotals>,
    ) -> Self {
        let ended_ns = wall_clock();
        let took = linkweir_wire::nanos(elapsed);
        Self {
            started_ns: ended_ns.saturating_sub(took),
            ended_ns,
            run,
            http,
        }
    }

    /// Adds another run.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.started_ns = self.started_ns.min(other.started_ns);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        if let Some(theirs) = &other.run {
            self.run.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.http {
            self.http.get_or_insert_default().merge(theirs);
        }
    }

    /// From the start of the first run to the end of the last.
    pub(crate) const fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.ended_ns.saturating_sub(self.started_ns))
    }

    /// The report that one run over everything would have given.
    pub(crate) fn report(&self) -> RunReport {
        let run = self.run.clone().unwrap_or_default();
        let http = self.http.as_ref();
        RunReport {
            packets: run.packets,
            bytes: run.bytes,
            first: run.first,
            last: run.last,
            faults: run.input_faults,
            drops: run.drops,
            records: http.map_or(0, |http| http.records),
            unsorted: http.map_or(0, |http| http.unsorted),
            losses: http.map_or_else(Vec::new, |http| {
                vec![Loss {
                    // A sketch does not name them.
                    destination: "all".to_owned(),
                    count: http.sink_losses,
                    ..Loss::default()
                }]
            }),
            ..RunReport::default()
        }
    }
}
