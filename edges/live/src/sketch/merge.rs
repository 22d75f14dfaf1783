//! The side of the console: sketches of many probes become one row of intervals.
//!
//! Intervals begin at multiples of their length. One closes when every probe that is heard of has reached
//! its end, else when its first sketch has waited long enough; what comes after that goes into the sums
//! of the run and is counted as late. A probe that has been silent for long is not waited for.
//!
//! Memory: intervals that wait hold 64 MiB of histograms at most, then the oldest one closes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use linkweir_wire::Timestamp;

use super::Cause;
use super::probes::Roll;
use super::read::Taken;
use super::series::Mergeable;
use crate::api::{Probes, TableState};
use crate::figures::Counts as _;
use crate::interval::{Open, Sums};
use crate::live::{LiveOf, ToBoard, lock};
use crate::text::clean;
use crate::writer::Writer;

/// Maximum number of intervals that wait.
const MAX_PENDING: usize = 3600;
/// Bytes of the histograms of those.
const MAX_PENDING_BYTES: usize = 64 << 20;
/// Intervals between two that belong to different times: clocks that are wrong, captures of other days.
const FAR: u64 = 3600;
/// How long probes may take to be heard of at the start, beyond an interval.
const HEARING: Duration = Duration::from_secs(2);

/// How long every interval waits: a probe that has just begun may send its first one beside those of
/// others.
const SETTLE: Duration = Duration::from_millis(250);

/// How long to wait for probes. Times are those of the merging side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeOptions {
    /// How long an interval waits, after its first sketch came, for probes that have not sent theirs.
    pub late: Duration,
    /// After how much silence a probe is stale.
    pub stale: Duration,
}

impl Default for MergeOptions {
    fn default() -> Self {
        Self {
            late: Duration::from_secs(10),
            stale: Duration::from_secs(15),
        }
    }
}

/// What has come for an interval.
#[derive(Debug)]
struct Pending<K: Mergeable> {
    sums: Sums<K>,
    /// The tables of the runs that have sent it.
    tables: BTreeMap<(String, u64), TableState>,
    /// When its first sketch came.
    since: u64,
    /// Bytes of its histograms.
    bytes: usize,
}

/// Merges the sketches of all probes into one [`LiveOf`], which it alone writes.
#[derive(Debug)]
pub struct Merger<K: Mergeable> {
    live: LiveOf<K>,
    interval: u64,
    late: u64,
    stale: u64,
    hearing: u64,
    roll: Roll,
    pending: BTreeMap<u64, Pending<K>>,
    bytes: usize,
    /// The number of the interval after the last one that has closed.
    next: Option<u64>,
    /// When the first sketch came.
    started: Option<u64>,
    /// The probes that are merged; all where it is empty.
    only: BTreeSet<String>,
    sketches: u64,
    left_out: u64,
    refused: BTreeMap<&'static str, u64>,
    fault: Option<String>,
}

impl<K: Mergeable> Merger<K> {
    /// Statistics of no probe yet.
    #[must_use]
    pub fn new(live: LiveOf<K>, options: MergeOptions) -> Self {
        let interval = lock(&live.0.writer).interval_ns();
        let late = linkweir_wire::nanos(options.late);
        let merger = Self {
            live,
            interval,
            late,
            stale: linkweir_wire::nanos(options.stale),
            hearing: late.min(interval.saturating_add(linkweir_wire::nanos(HEARING))),
            roll: Roll::default(),
            pending: BTreeMap::new(),
            bytes: 0,
            next: None,
            started: None,
            only: BTreeSet::new(),
            sketches: 0,
            left_out: 0,
            refused: BTreeMap::new(),
            fault: None,
        };
        merger.show(0);
        merger
    }

    /// Merges the sketches of these probes and of no other; of all where there is no name. Others are counted, and not
    /// waited for.
    #[must_use]
    pub fn only<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        let names = names.into_iter().map(|name| clean(name.as_bytes()));
        self.only = names.collect();
        self
    }

    /// Takes a message that came at `now`. Invalid messages are counted by cause.
    pub fn take(&mut self, message: &[u8], now: Timestamp) {
        let now = now.as_nanos();
        if let Err(cause) = self.try_take(message, now) {
            *self.refused.entry(cause.as_str()).or_default() += 1;
        }
    }

    fn try_take(&mut self, message: &[u8], now: u64) -> Result<(), Cause> {
        let taken = Taken::<K>::read(message)?;
        if !self.only.is_empty() && !self.only.contains(&taken.probe) {
            self.left_out += 1;
            return Ok(());
        }
        if !self.roll.note(&taken, now)? {
            return Ok(());
        }
        self.started.get_or_insert(now);
        self.sketches += 1;
        let middle = taken.start + (taken.end - taken.start) / 2;
        let number = middle / self.interval;
        {
            let mut writer = lock(&self.live.0.writer);
            add_at_once(&mut writer, &taken);
        }
        if taken.number.is_none() && taken.sums.is_empty() {
            return Ok(());
        }
        if self.has_closed(number, now) {
            if taken.number.is_some() {
                self.roll.note_late(&taken.probe);
            }
            lock(&self.live.0.writer).take_late(&taken.sums);
            return Ok(());
        }
        let pending = self.pending.entry(number).or_insert_with(|| Pending {
            sums: Sums::default(),
            tables: BTreeMap::new(),
            since: now,
            bytes: 0,
        });
        pending.sums.merge(&taken.sums);
        if taken.number.is_some() {
            let run = (taken.probe, taken.run);
            pending.tables.insert(run, taken.sums.table);
        }
        let bytes = histogram_bytes::<K>(&pending.sums);
        self.bytes = self
            .bytes
            .saturating_sub(pending.bytes)
            .saturating_add(bytes);
        pending.bytes = bytes;
        Ok(())
    }

    /// Whether the interval has closed. Where all that still send are at quite another time than the
    /// last one, a new row of intervals begins.
    fn has_closed(&mut self, number: u64, now: u64) -> bool {
        let Some(next) = self.next.filter(|next| number < *next) else {
            return false;
        };
        let since = now.saturating_sub(self.stale);
        let is_far = |number: u64| next - number.min(next) > FAR;
        let are_all_far = self.pending.is_empty()
            && self
                .roll
                .reached(since)
                .filter(|reached| *reached > 0)
                .all(|reached| is_far(reached / self.interval));
        if !is_far(number) || !are_all_far {
            return true;
        }
        lock(&self.live.0.writer).close_part(&mut ToBoard(&self.live.0));
        self.next = None;
        false
    }

    /// Closes what is due at `now`; wanted about ten times a second.
    pub fn advance(&mut self, now: Timestamp) {
        let now = now.as_nanos();
        while let Some((number, pending)) = self.pending.first_key_value() {
            if !self.is_due(*number, pending.since, now) {
                break;
            }
            self.close_first();
        }
        let since = now.saturating_sub(self.stale);
        if self.pending.is_empty() && self.roll.reached(since).next().is_none() {
            // Nothing is under way that would close it.
            lock(&self.live.0.writer).close_part(&mut ToBoard(&self.live.0));
        }
        self.show(now);
    }

    fn is_due(&self, number: u64, came: u64, now: u64) -> bool {
        if self.pending.len() > MAX_PENDING || self.bytes > MAX_PENDING_BYTES {
            return true;
        }
        let begin = number.saturating_mul(self.interval);
        let end = begin.saturating_add(self.interval);
        let since = now.saturating_sub(self.stale);
        let has_heard = self
            .started
            .is_some_and(|started| now.saturating_sub(started) >= self.hearing);
        let has_settled = now.saturating_sub(came) >= linkweir_wire::nanos(SETTLE).min(self.late);
        if has_heard && has_settled && self.roll.reached(since).all(|reached| reached >= end) {
            return true;
        }
        // A clock that is far ahead must not make all others late for ever.
        let is_far = self
            .next
            .is_some_and(|next| number.saturating_sub(next) > FAR);
        let is_alone = self.roll.reached(since).all(|reached| reached >= begin);
        now.saturating_sub(came) >= self.late && (!is_far || is_alone)
    }

    fn close_first(&mut self) {
        let Some((number, mut pending)) = self.pending.pop_first() else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(pending.bytes);
        self.next = Some(number.saturating_add(1));
        let mut table = TableState::default();
        for one in pending.tables.values() {
            table.entries = table.entries.saturating_add(one.entries);
            table.capacity = table.capacity.saturating_add(one.capacity);
        }
        pending.sums.table = table;
        let start = number.saturating_mul(self.interval);
        let mut open = Open::new(start, start.saturating_add(self.interval));
        open.sums = pending.sums;
        lock(&self.live.0.writer).take(open, &mut ToBoard(&self.live.0));
    }

    /// The error of the connection to the broker; `None` if there is none.
    pub fn set_fault(&mut self, fault: Option<String>) {
        self.fault = fault;
    }

    fn show(&self, now: u64) {
        let probes = Probes {
            probes: self.roll.shown(now.saturating_sub(self.stale)),
            sketches: self.sketches,
            left_out: self.left_out,
            refused: self.refused.clone(),
            fault: self.fault.clone(),
        };
        *lock(&self.live.0.probes) = Some(Arc::new(probes));
    }

    /// No more messages come: closes everything that waits, and the statistics.
    pub fn finish(mut self, now: Timestamp) {
        while !self.pending.is_empty() {
            self.close_first();
        }
        self.show(now.as_nanos());
        self.live.close();
    }
}

/// What does not wait for its interval: tables, series of `/metrics`, first and last packet.
fn add_at_once<K: Mergeable>(writer: &mut Writer<K>, taken: &Taken<K>) {
    for grown in &taken.series {
        // It was tried when the message was read.
        K::take_series(&mut writer.series, grown).ok();
    }
    for (by, table) in &taken.tables {
        writer.take_table(*by, table, taken.start);
    }
    writer.late = writer.late.saturating_add(taken.late_records);
    let (mine, theirs) = (&mut writer.seen, &taken.seen);
    mine.faults = mine.faults.saturating_add(theirs.faults);
    mine.first = mine.first.into_iter().chain(theirs.first).min();
    mine.last = mine.last.max(theirs.last);
}

/// Bytes of the histograms of an interval.
fn histogram_bytes<K: Mergeable>(sums: &Sums<K>) -> usize {
    let all = sums.counts.distributions();
    all.iter().map(|values| values.memory_bytes()).sum()
}

impl<K: Mergeable> Sums<K> {
    /// Whether there is nothing to add in a message without sums of an interval.
    fn is_empty(&self) -> bool {
        let all = self.counts.distributions();
        all.iter().all(|values| values.is_empty())
    }
}
