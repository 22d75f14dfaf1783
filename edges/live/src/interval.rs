//! An interval that is still open.

use linkweir_sketch::LogLinear;

use crate::api::{Dropped, Percentiles, TableState};
use crate::figures::Counts as _;
use crate::kind::Kind;

/// Counts of an interval, or of a run.
#[derive(Debug)]
pub(super) struct Sums<K: Kind> {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) dropped: Dropped,
    pub(super) table: TableState,
    /// What the records came to.
    pub(super) counts: K::Counts,
}

impl<K: Kind> Default for Sums<K> {
    fn default() -> Self {
        Self {
            packets: 0,
            bytes: 0,
            dropped: Dropped::default(),
            table: TableState::default(),
            counts: K::Counts::default(),
        }
    }
}

impl<K: Kind> Sums<K> {
    /// Adds the counts of an interval to those of a run.
    pub(super) fn merge(&mut self, other: &Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.dropped.add(&other.dropped);
        self.table = other.table;
        self.counts.merge(&other.counts);
    }
}

/// The figures of a histogram, `None` of an empty one.
pub(super) fn percentiles(values: &LogLinear) -> Option<Percentiles> {
    Some(Percentiles {
        count: values.count(),
        min: values.min()?,
        mean: values.mean()?,
        p50: values.quantile(0.5)?,
        p90: values.quantile(0.9)?,
        p95: values.quantile(0.95)?,
        p99: values.quantile(0.99)?,
        p999: values.quantile(0.999)?,
        max: values.max()?,
    })
}

/// An interval between two moments of capture time.
#[derive(Debug)]
pub(super) struct Open<K: Kind> {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) sums: Sums<K>,
    /// One per scope of the rules.
    pub(super) scoped: Vec<K::Counts>,
}

impl<K: Kind> Open<K> {
    pub(super) fn new(start: u64, end: u64) -> Self {
        Self {
            start,
            end,
            sums: Sums::default(),
            scoped: Vec::new(),
        }
    }
}
