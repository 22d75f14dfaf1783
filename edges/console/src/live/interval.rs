//! An interval that is still open.

use std::collections::BTreeMap;

use linkweir_record::{HttpRow, HttpState};
use linkweir_sketch::{BoundedCounts, LogLinear};

use crate::alert::ScopeNumbers;
use crate::api::{Dropped, ResponseTimes, TableState};
use crate::text::clean;

/// Methods with a counter of their own.
const MAX_METHODS: usize = 32;
/// Status codes; larger ones count as 0.
const CODES: usize = 1000;

/// Counts of an interval, or of a run.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) all: ScopeNumbers,
    pub(super) dropped: Dropped,
    pub(super) table: TableState,
    /// By code; allocated with the first.
    codes: Vec<u64>,
    methods: BoundedCounts,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            packets: 0,
            bytes: 0,
            all: ScopeNumbers::default(),
            dropped: Dropped::default(),
            table: TableState::default(),
            codes: Vec::new(),
            methods: BoundedCounts::new(MAX_METHODS),
        }
    }
}

impl Counts {
    pub(super) fn record(&mut self, row: &HttpRow, method: &[u8], response_time: Option<u64>) {
        record_scope(&mut self.all, row, response_time);
        if let Some(code) = row.status_code {
            if self.codes.is_empty() {
                self.codes.resize(CODES, 0);
            }
            let at = usize::from(code);
            let at = if at < CODES { at } else { 0 };
            if let Some(count) = self.codes.get_mut(at) {
                *count += 1;
            }
        }
        if row.state != HttpState::Orphan {
            self.methods.record(method);
        }
    }

    /// Adds the counts of an interval to those of a run.
    pub(super) fn merge(&mut self, other: &Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.dropped.add(&other.dropped);
        self.table = other.table;
        let (mine, theirs) = (&mut self.all, &other.all);
        mine.requests += theirs.requests;
        mine.responses += theirs.responses;
        mine.unanswered += theirs.unanswered;
        mine.orphans += theirs.orphans;
        mine.retransmissions += theirs.retransmissions;
        mine.errors_4xx += theirs.errors_4xx;
        mine.errors_5xx += theirs.errors_5xx;
        mine.response_time.merge(&theirs.response_time);
        if !other.codes.is_empty() {
            self.codes.resize(CODES, 0);
            for (mine, theirs) in self.codes.iter_mut().zip(&other.codes) {
                *mine += theirs;
            }
        }
        self.methods.merge(&other.methods);
    }

    pub(super) fn codes(&self) -> BTreeMap<u16, u64> {
        (0..)
            .zip(&self.codes)
            .filter(|(_, count)| **count > 0)
            .map(|(code, count)| (code, *count))
            .collect()
    }

    pub(super) fn methods(&self) -> BTreeMap<String, u64> {
        let mut methods = BTreeMap::new();
        for (method, count) in self.methods.iter() {
            *methods.entry(clean(method)).or_insert(0) += count;
        }
        if self.methods.other() > 0 {
            *methods.entry("other".to_owned()).or_insert(0) += self.methods.other();
        }
        methods
    }
}

/// Counts a transaction in a scope.
pub(super) fn record_scope(scope: &mut ScopeNumbers, row: &HttpRow, response_time: Option<u64>) {
    match row.state {
        HttpState::Complete => {
            scope.requests += 1;
            scope.responses += 1;
        }
        HttpState::Unanswered => {
            scope.requests += 1;
            scope.unanswered += 1;
        }
        HttpState::Orphan => {
            scope.responses += 1;
            scope.orphans += 1;
        }
    }
    scope.retransmissions += u64::from(row.retransmissions);
    match row.status_code {
        Some(400..=499) => scope.errors_4xx += 1,
        Some(500..=599) => scope.errors_5xx += 1,
        _ => {}
    }
    if let Some(time) = response_time {
        scope.response_time.record(time);
    }
}

/// The figures of a histogram, `None` of an empty one.
pub(super) fn response_times(times: &LogLinear) -> Option<ResponseTimes> {
    Some(ResponseTimes {
        count: times.count(),
        min: times.min()?,
        mean: times.mean()?,
        p50: times.quantile(0.5)?,
        p90: times.quantile(0.9)?,
        p95: times.quantile(0.95)?,
        p99: times.quantile(0.99)?,
        p999: times.quantile(0.999)?,
        max: times.max()?,
    })
}

/// An interval between two moments of capture time.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) counts: Counts,
    /// One per scope of the rules.
    pub(super) scoped: Vec<ScopeNumbers>,
}
