//! What is watched, and an interval that is still open.

use std::time::Duration;

use crate::alert::Rule;
use crate::figures::Counts as _;
use crate::kind::Kind;
use crate::values::{Dropped, TableState};

/// What is watched, and how.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// Length of an interval of capture time; at least a millisecond.
    pub interval: Duration,
    /// The input, as the user named it.
    pub source: String,
    /// Whether it is an interface: intervals follow the clock, with or without packets.
    pub is_live: bool,
    /// Alert rules; those after the first `MAX_RULES` are left out.
    pub alerts: Vec<Rule>,
    /// Whether intervals begin at multiples of their length since the epoch, so that those of several
    /// probes can be added.
    pub is_aligned: bool,
    /// Keys that each table of a part keeps (four times as many for the whole run): every key with
    /// more than one in `max_keys` of the requests is among them.
    pub max_keys: usize,
    /// Whether the console of the run also has pages of its archive.
    pub has_archive: bool,
    /// Whether records say where addresses are.
    pub has_places: bool,
    /// Hosts with series of their own in the metrics of HTTP, at a time; at most 1,000.
    pub metrics_hosts: usize,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            source: String::new(),
            is_live: true,
            alerts: Vec::new(),
            is_aligned: false,
            max_keys: 256,
            has_archive: false,
            has_places: false,
            metrics_hosts: 0,
        }
    }
}

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

/// An interval between two timestamps of capture time.
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
