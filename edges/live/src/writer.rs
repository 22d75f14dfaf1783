//! The writing side: one thread's records and counters become intervals and parts.

use std::collections::VecDeque;

use linkweir_engine::RunReport;
use linkweir_sketch::TopK;
use linkweir_wire::Timestamp;

use crate::alert::{Metric, Numbers, Rule, Unjudged, Watch};
use crate::api::{Dropped, TableState, Word as _};
use crate::figures::Counts as _;
use crate::interval::LiveOptions;
use crate::interval::{Open, Sums};
use crate::kind::{Clock, Kind};
use crate::last::Last;
use crate::part::Part;
use crate::scopes::Scopes;
use crate::text::seconds;

/// How long after its end an interval of an interface waits for records: longer than the time
/// between two hand-overs (a tenth of a second).
const GRACE: u64 = 250_000_000;
/// Intervals that may be open at once; with more the oldest is closed, come what may. Only the two or
/// three that records have reached hold more than zeros.
const MAX_OPEN: usize = 3600;
/// A jump in time over more intervals than this starts a new row of intervals where time has gone:
/// one absurd time stamp must not cost a million empty intervals.
const MAX_JUMP: u64 = 3600;
/// Length of a part of the windows, nanoseconds.
const PART: u64 = 5_000_000_000;
/// How often tables of keys are renewed, where intervals are not longer.
pub const TABLES_EVERY: std::time::Duration = std::time::Duration::from_nanos(PART);
/// A rest as long as this has rates of its own, however long intervals are.
const SHORT_REST: u64 = 1_000_000_000;
/// The first parts last one interval each, so that tables show something at once.
const SHORT_PARTS: u32 = 5;

/// What the writer hands out when intervals close.
pub(super) trait Outlet<K: Kind> {
    /// An interval has closed; its counts, its rules, and the losses since the start.
    fn interval(
        &mut self,
        closed: &Open<K>,
        length_ns: u64,
        watches: &[Watch],
        changed: &[usize],
        dropped_total: &Dropped,
    );
    /// A part is full. Called after [`Outlet::interval`] for its last interval.
    fn part(&mut self, part: Part<K>);
    /// The interval again, when the writer needs it no more, with where the run stands.
    fn closed(&mut self, closed: Open<K>, run: &Standing<'_, K>) {
        let _ = (closed, run);
    }
}

/// The last counters of the run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) first: Option<Timestamp>,
    pub(super) last: Option<Timestamp>,
    pub(super) faults: u64,
}

/// Where a run stands when an interval closes.
#[derive(Debug)]
pub(super) struct Standing<'a, K: Kind> {
    pub(super) seen: Seen,
    /// Records that came too late for their interval.
    pub(super) late: u64,
    pub(super) series: &'a K::Series,
}

/// Open intervals, the open part, and sums since the start.
#[derive(Debug)]
pub(super) struct Writer<K: Kind> {
    interval: u64,
    is_live: bool,
    /// Whether ticks come where intervals end: what came between two belongs to one.
    is_cut: bool,
    /// Whether intervals begin at multiples of their length.
    is_aligned: bool,
    max_keys: usize,
    scopes: Scopes<K>,
    /// A rule and the number of its scope.
    watches: Vec<Watch>,
    scope_of: Vec<Option<usize>>,
    /// Contiguous, oldest first.
    open: VecDeque<Open<K>>,
    /// End of the last closed interval, where the next one begins.
    next_start: Option<u64>,
    /// Latest time that records reached, that ticks reached, that ticks had reached at the last flush.
    records_to: u64,
    ticks_to: u64,
    flushed_to: u64,
    part: Option<Part<K>>,
    parts: u32,
    pub(super) started: Option<u64>,
    /// Sums of the closed intervals.
    pub(super) closed: Sums<K>,
    /// What `/metrics` has of the whole run only.
    pub(super) series: K::Series,
    pub(super) seen: Seen,
    pub(super) dropped: Dropped,
    /// Records an output refused: the run's report does not know.
    pub(super) sink_drops: u64,
    pub(super) decode_errors: Vec<(&'static str, &'static str, u64)>,
    pub(super) late: u64,
    pub(super) last: Last<K>,
    scratch: K::Scratch,
    /// What a scope came to that nothing belonged to.
    nothing: K::Counts,
    /// The time of the last tick.
    last_now: u64,
}

impl<K: Kind> Writer<K> {
    pub(super) fn new(options: &LiveOptions) -> Self {
        let rules = &options.alerts;
        let scopes = Scopes::of(rules);
        Self {
            interval: u64::try_from(options.interval.as_nanos())
                .unwrap_or(u64::MAX / 2)
                .clamp(1_000_000, u64::MAX / 1_000_000),
            is_live: options.is_live,
            is_cut: false,
            is_aligned: options.is_aligned,
            max_keys: options.max_keys,
            scope_of: rules
                .iter()
                .map(|rule| scopes.position(&rule.scope))
                .collect(),
            scopes,
            watches: rules.iter().cloned().map(Watch::new).collect(),
            open: VecDeque::new(),
            next_start: None,
            records_to: 0,
            ticks_to: 0,
            flushed_to: 0,
            part: None,
            parts: 0,
            started: None,
            closed: Sums::default(),
            series: K::series(options),
            seen: Seen::default(),
            dropped: Dropped::default(),
            sink_drops: 0,
            decode_errors: Vec::new(),
            late: 0,
            last: Last::default(),
            scratch: K::Scratch::default(),
            nothing: K::Counts::default(),
            last_now: 0,
        }
    }

    /// Nanoseconds of an interval.
    pub(super) const fn interval_ns(&self) -> u64 {
        self.interval
    }

    /// Sums since the start, with what is still open.
    pub(super) fn totals(&self) -> Sums<K> {
        let mut sum = Sums::default();
        sum.merge(&self.closed);
        for open in &self.open {
            sum.merge(&open.sums);
        }
        sum
    }

    /// Takes the counters of the run at `now`.
    pub(super) fn tick(&mut self, report: &RunReport, now: u64, outlet: &mut impl Outlet<K>) {
        let packets = report.packets.saturating_sub(self.seen.packets);
        let bytes = report.bytes.saturating_sub(self.seen.bytes);
        let from = self.ticks_to;
        // The time of a file is its latest packet's: one absurd stamp holds it still for good.
        if now != self.last_now && now > 0 && (now > from || self.open.is_empty()) {
            self.last_now = now;
            self.reach(now, outlet);
            self.ticks_to = self.ticks_to.max(now);
        }
        if self.is_cut {
            if let Some(open) = self.current() {
                open.sums.packets += packets;
                open.sums.bytes += bytes;
            }
        } else {
            self.spread(packets, bytes, from);
        }
        self.seen = Seen {
            packets: report.packets,
            bytes: report.bytes,
            first: report.first,
            last: report.last,
            faults: report.faults.len() as u64,
        };
        let dropped = Dropped {
            kernel: report.drops.kernel,
            ring: report.drops.ring,
            unusable_records: report.drops.unusable_records,
            table_full: report.fill.evicted,
            sink: self.sink_drops.saturating_add(report.lost_records()),
        };
        if let Some(open) = self.open.back_mut() {
            open.sums.dropped.add(&dropped.since(&self.dropped));
            self.dropped = dropped;
        }
        let table = TableState {
            entries: report.fill.entries,
            capacity: report.fill.capacity,
        };
        // What the table had when an interval ended that was cut stays as it is.
        let to = if self.is_cut { self.ticks_to } else { from };
        for open in self.open.iter_mut().rev().take_while(|open| open.end > to) {
            open.sums.table = table;
        }
        self.close_due(outlet);
    }

    /// The open interval that ticks have reached.
    fn current(&mut self) -> Option<&mut Open<K>> {
        let at = place(&self.open, self.ticks_to, self.interval).unwrap_or(0);
        self.open.get_mut(at)
    }

    /// From now on ticks come where intervals end.
    pub(super) const fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Where the interval ends that ticks have reached; 0 before the first one.
    pub(super) fn interval_end(&self) -> u64 {
        let at = place(&self.open, self.ticks_to, self.interval).unwrap_or(0);
        self.open.get(at).map_or(0, |open| open.end)
    }

    /// Gives packets and bytes that came between two ticks to the intervals between them, by time.
    fn spread(&mut self, packets: u64, bytes: u64, from: u64) {
        if packets == 0 && bytes == 0 {
            return;
        }
        let to = self.ticks_to;
        let from = from.max(self.open.front().map_or(0, |open| open.start));
        let in_one = self
            .open
            .back_mut()
            .filter(|last| from >= last.start || to <= from);
        if let Some(last) = in_one {
            last.sums.packets += packets;
            last.sums.bytes += bytes;
            return;
        }
        let span = u128::from(to.saturating_sub(from)).max(1);
        let share = |count: u64, until: u64| {
            let part = u128::from(count) * u128::from(until.saturating_sub(from)).min(span) / span;
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let (mut given_packets, mut given_bytes) = (0, 0);
        let last = self.open.len().saturating_sub(1);
        for (at, open) in self.open.iter_mut().enumerate() {
            let until = if at == last { u64::MAX } else { open.end };
            let (packets_to, bytes_to) = (share(packets, until), share(bytes, until));
            open.sums.packets += packets_to - given_packets;
            open.sums.bytes += bytes_to - given_bytes;
            (given_packets, given_bytes) = (packets_to, bytes_to);
        }
    }

    /// Opens intervals up to the one that holds `time`.
    fn reach(&mut self, time: u64, outlet: &mut impl Outlet<K>) {
        self.started.get_or_insert(time);
        let start = match self.open.back() {
            Some(last) if time < last.end => {
                if is_far(time, last.start, self.interval) {
                    // Time has gone back by more than any disorder of packets.
                    self.restart(time, outlet);
                }
                return;
            }
            Some(last) => last.end,
            None => self.next_start.unwrap_or_else(|| self.start_of(time)),
        };
        if is_far(start, time, self.interval)
            || (self.open.is_empty() && is_far(time, start, self.interval))
        {
            self.restart(time, outlet);
            return;
        }
        let mut start = start;
        loop {
            let end = start.saturating_add(self.interval);
            self.push(start, end);
            if time < end || end == u64::MAX {
                break;
            }
            start = end;
        }
    }

    /// Closes everything and begins anew at `time`.
    fn restart(&mut self, time: u64, outlet: &mut impl Outlet<K>) {
        while !self.open.is_empty() {
            self.close_front(outlet, None);
        }
        self.close_part(outlet);
        (self.records_to, self.ticks_to, self.flushed_to) = (0, time, 0);
        let start = self.start_of(time);
        self.push(start, start.saturating_add(self.interval));
    }

    /// Where an interval begins that is the first one and holds `time`.
    const fn start_of(&self, time: u64) -> u64 {
        if self.is_aligned {
            time - time % self.interval
        } else {
            time
        }
    }

    fn push(&mut self, start: u64, end: u64) {
        let mut open = Open::new(start, end);
        if self.is_cut
            && let Some(before) = self.open.back()
        {
            // Of an interval without a packet nobody asks.
            open.sums.table = before.sums.table;
        }
        self.open.push_back(open);
        self.next_start = Some(end);
    }

    /// Takes records.
    pub(super) fn records(&mut self, batch: &K::Batch, outlet: &mut impl Outlet<K>) {
        for view in K::views(batch) {
            self.record(&view, outlet);
        }
        self.close_due(outlet);
    }

    fn record(&mut self, view: &K::View<'_>, outlet: &mut impl Outlet<K>) {
        let clock = Clock {
            records_to: self.records_to,
            ticks_to: self.ticks_to,
            open_from: self.open.front().map_or(0, |open| open.start),
            is_cut: self.is_cut,
        };
        let time = K::time(view, clock);
        let is_inside = self
            .open
            .back()
            .is_some_and(|last| time >= last.start && time < last.end);
        if !is_inside && (time > 0 || self.open.is_empty()) {
            self.reach(time.max(1), outlet);
        }
        self.records_to = self.records_to.max(time);
        let at = place(&self.open, time, self.interval);
        if at.is_none() {
            self.late += 1;
        }
        let Some(open) = self.open.get_mut(at.unwrap_or(0)) else {
            return;
        };
        if let Some(event) = K::event(view) {
            self.last.push(event);
        }
        let counts = &mut open.sums.counts;
        K::prepare(view, &mut self.series, &mut self.scratch);
        K::count(view, &self.scratch, counts);
        for at in self.scopes.holding(view, &self.scratch) {
            if open.scoped.is_empty() {
                open.scoped
                    .resize_with(self.scopes.len(), K::Counts::default);
            }
            if let Some(counts) = open.scoped.get_mut(at) {
                K::count(view, &self.scratch, counts);
            }
        }
        if K::has_keys(view) {
            let start = open.start;
            let part = self
                .part
                .get_or_insert_with(|| Part::new(start, self.max_keys));
            K::count_keys(view, &mut part.tables, &self.scratch);
        }
    }

    /// Every record of the packets up to the last tick has been taken.
    pub(super) fn flushed(&mut self, outlet: &mut impl Outlet<K>) {
        self.flushed_to = self.ticks_to;
        self.close_due(outlet);
    }

    fn close_due(&mut self, outlet: &mut impl Outlet<K>) {
        while let Some(front) = self.open.front() {
            // Records come in the order of their responses, but for those of other workers.
            let slack = if self.is_live { GRACE } else { 0 };
            let is_due = self.records_to >= front.end.saturating_add(self.interval.max(slack))
                || if self.is_live {
                    self.ticks_to >= front.end.saturating_add(GRACE)
                } else {
                    self.flushed_to >= front.end
                };
            if !is_due && self.open.len() <= MAX_OPEN {
                return;
            }
            self.close_front(outlet, None);
        }
    }

    /// Closes the oldest interval. `rest` is what there is to know of it where the run has ended inside it.
    fn close_front(&mut self, outlet: &mut impl Outlet<K>, rest: Option<&Rest>) {
        let Some(mut front) = self.open.pop_front() else {
            return;
        };
        let entries = front.sums.table.entries;
        K::close(&mut front.sums.counts, &mut self.scratch, entries);
        let Some(rest) = rest else {
            let changed = self.watch(&front, self.interval, front.sums.table);
            return self.hand_out(front, self.interval, &changed, outlet);
        };
        let mut length = rest.until.saturating_sub(front.start);
        let mut changed = Vec::new();
        // Who waits for packets may go on with others: the interval says nothing then.
        if !self.is_live {
            changed = self.watch(&front, length, rest.table);
        }
        // A rate over a very short rest means nothing: it counts as a whole interval.
        if length < (self.interval / 10).min(SHORT_REST) {
            length = self.interval;
        }
        front.end = front.start.saturating_add(length);
        self.hand_out(front, length, &changed, outlet);
    }

    /// Gives a closed interval to the outlet, to the sums and to the open part.
    fn hand_out(
        &mut self,
        front: Open<K>,
        length: u64,
        changed: &[usize],
        outlet: &mut impl Outlet<K>,
    ) {
        let mut total = self.closed.dropped;
        total.add(&front.sums.dropped);
        outlet.interval(&front, length, &self.watches, changed, &total);
        self.closed.merge(&front.sums);
        if let Some(part) = &mut self.part {
            part.take(&front.sums.counts);
            part.end = part.end.max(front.end);
            let length = if self.parts < SHORT_PARTS { 0 } else { PART };
            if part.end.saturating_sub(part.start) >= length {
                self.close_part(outlet);
            }
        } else if front
            .sums
            .counts
            .distributions()
            .iter()
            .any(|values| !values.is_empty())
        {
            // Its tables went with a part that is closed already: only the distributions are left.
            let mut part = Part::new(front.start, self.max_keys);
            part.end = front.end;
            part.take(&front.sums.counts);
            self.part = Some(part);
        }
        let run = Standing {
            seen: self.seen,
            late: self.late,
            series: &self.series,
        };
        outlet.closed(front, &run);
    }

    /// Takes an interval that is complete, as other writers gave it; missing intervals before it
    /// count as empty ones. Each comes after those before it.
    pub(super) fn take(&mut self, whole: Open<K>, outlet: &mut impl Outlet<K>) {
        self.started.get_or_insert(whole.start);
        if let Some(next) = self.next_start.filter(|next| *next < whole.start) {
            if is_far(next, whole.start, self.interval) {
                self.close_part(outlet);
            } else {
                let mut start = next;
                while start < whole.start {
                    let end = start.saturating_add(self.interval);
                    self.take_one(Open::new(start, end.min(whole.start)), outlet);
                    start = end;
                }
            }
        }
        self.take_one(whole, outlet);
    }

    fn take_one(&mut self, whole: Open<K>, outlet: &mut impl Outlet<K>) {
        self.next_start = Some(whole.end);
        self.add_seen(&whole.sums);
        let changed = self.watch(&whole, self.interval, whole.sums.table);
        self.hand_out(whole, self.interval, &changed, outlet);
    }

    fn add_seen(&mut self, sums: &Sums<K>) {
        self.seen.packets = self.seen.packets.saturating_add(sums.packets);
        self.seen.bytes = self.seen.bytes.saturating_add(sums.bytes);
        self.dropped.add(&sums.dropped);
    }

    /// Adds to the sums since the start what came too late for its interval.
    pub(super) fn take_late(&mut self, sums: &Sums<K>) {
        self.add_seen(sums);
        let table = self.closed.table;
        self.closed.merge(sums);
        self.closed.table = table;
    }

    /// Adds a table of another writer to the open part; `start` is where one begins that is the first.
    pub(super) fn take_table(&mut self, by: K::By, table: &TopK<K::Keyed>, start: u64) {
        let start = self.next_start.unwrap_or(start);
        let part = self
            .part
            .get_or_insert_with(|| Part::new(start, self.max_keys));
        if let Some(mine) = part.tables.get_mut(by.position()) {
            mine.merge(table);
        }
    }

    pub(super) fn close_part(&mut self, outlet: &mut impl Outlet<K>) {
        if let Some(part) = self.part.take() {
            self.parts = self.parts.saturating_add(1);
            outlet.part(part);
        }
    }

    /// Shows a closed interval of some length to the rules; gives those that began to fire or were resolved. Of less
    /// than half an interval there are no rates.
    fn watch(&mut self, closed: &Open<K>, length: u64, table: TableState) -> Vec<usize> {
        let has_rates = length >= self.interval / 2;
        let numbers = Numbers {
            interval_s: seconds(length),
            t_ms: closed.end / 1_000_000,
            packets: closed.sums.packets,
            bytes: closed.sums.bytes,
            dropped: &closed.sums.dropped,
            table,
        };
        let mut changed = Vec::new();
        for (at, (watch, scope)) in self.watches.iter_mut().zip(&self.scope_of).enumerate() {
            if !has_rates && matches!(watch.rule().metric, Metric::Rate(_)) {
                continue;
            }
            let scope = match scope {
                None => &closed.sums.counts,
                Some(scope) => closed.scoped.get(*scope).unwrap_or(&self.nothing),
            };
            if watch.interval(scope, &numbers) {
                changed.push(at);
            }
        }
        changed
    }

    #[cfg(test)]
    pub(super) fn open_intervals(&self) -> usize {
        self.open.len()
    }

    /// The run has ended: closes everything. `is_emptied` where all that the table had has come as records.
    pub(super) fn finish(&mut self, is_emptied: bool, outlet: &mut impl Outlet<K>) {
        let end = self.records_to.max(self.ticks_to);
        while self.open.len() > 1 {
            self.close_front(outlet, None);
        }
        if let Some(last) = self.open.front_mut() {
            let rest = Rest {
                until: end.min(last.end),
                table: last.sums.table,
            };
            if is_emptied {
                last.sums.table.entries = 0;
            }
            self.close_front(outlet, Some(&rest));
        }
        self.close_part(outlet);
    }

    /// Rules that were never judged, and why not.
    pub(super) fn unjudged(&self) -> impl Iterator<Item = (&Rule, Unjudged)> {
        let watches = self.watches.iter();
        watches.filter_map(|watch| Some((watch.rule(), watch.unjudged(self.interval)?)))
    }
}

/// The interval in which a run has ended.
#[derive(Debug)]
struct Rest {
    /// Where.
    until: u64,
    /// What the table had before the run emptied it.
    table: TableState,
}

/// Whether `to` lies more intervals after `from` than are worth showing.
const fn is_far(from: u64, to: u64, interval: u64) -> bool {
    to.saturating_sub(from) / interval > MAX_JUMP
}

/// The open interval that holds `time`, `None` where it is closed already.
fn place<K: Kind>(open: &VecDeque<Open<K>>, time: u64, interval: u64) -> Option<usize> {
    let first = open.front()?.start;
    let at = time.checked_sub(first)? / interval;
    usize::try_from(at).ok().map(|at| at.min(open.len() - 1))
}
