//! [`LiveOf`]: one run writes, many read.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use linkweir_engine::{IntervalEnd, RunReport, Sink, SinkError};
use linkweir_record::{FlowKind, GatewayKind, HttpKind, RecordKind};
use linkweir_wire::Timestamp;

use crate::alert::{AlertEvent, MAX_RULES, Unjudged, Watch, WebhookCounts};
use crate::api::{
    AlertStatus, Ccdf, Dropped, Meta, Now, Probes, Snapshot, Tick, TopTable, Totals, Window,
    Word as _,
};
use crate::day::{Day, DayReader};
use crate::export::ExportCounts;
use crate::figures::Counts as _;
use crate::history::History;
use crate::interval::{LiveOptions, Open};
use crate::kind::{Kind, OfRecords};
use crate::load::LoadRun;
use crate::part::{Part, merged, rows};
use crate::text::{clean, seconds};
use crate::windows::{Windows, ccdf, join};
use crate::writer::{Outlet, Standing, Writer};

/// Closed intervals that are kept.
pub const MAX_TICKS: usize = 3600;
/// Closed intervals in a [`Snapshot`].
pub const SNAPSHOT_TICKS: usize = 900;
/// Alert events that are kept for readers that are behind.
const MAX_EVENTS: usize = 1024;

/// What readers see.
#[derive(Debug)]
pub(crate) struct Board<K: Kind> {
    source: String,
    max_keys: usize,
    ticks: VecDeque<Arc<Tick<K::Figures>>>,
    last_id: u64,
    started_ms: u64,
    pub(crate) windows: Windows<K>,
    alerts: Vec<AlertStatus>,
    events: VecDeque<(u64, AlertEvent)>,
    last_event: u64,
    is_finished: bool,
}

/// The last status of the process, and when it was set, milliseconds since the epoch.
type Stated<K> = (Arc<<K as Kind>::Status>, u64);

#[derive(Debug)]
pub(crate) struct Shared<K: Kind> {
    pub(crate) options: LiveOptions,
    pub(crate) writer: Mutex<Writer<K>>,
    pub(crate) board: Mutex<Board<K>>,
    /// Tables of the whole run: locked by the writer when a part closes, by a reader for one table.
    pub(crate) whole: Mutex<Part<K>>,
    /// The whole run in few intervals.
    history: Mutex<History<K>>,
    /// The last day in a file, where one was named; and how it is read.
    pub(crate) day: Mutex<Option<Day<K>>>,
    pub(crate) past: OnceLock<Arc<DayReader>>,
    /// The last records, where somebody may ask for them.
    pub(crate) recent: Mutex<Option<K::Recent>>,
    pub(crate) status: Mutex<Option<Stated<K>>>,
    /// Receives closed intervals and parts themselves.
    pub(crate) tap: Mutex<Option<Box<dyn Tap<K>>>>,
    /// The probes whose sketches these statistics are merged from.
    pub(crate) probes: Mutex<Option<Arc<Probes>>>,
    changed: Condvar,
    webhook: WebhookCounts,
    export: ExportCounts,
}

/// The live statistics of one run over records of one kind. A clone is another handle on the same.
#[derive(Debug)]
pub struct LiveOf<K: Kind>(pub(crate) Arc<Shared<K>>);

/// Live statistics of HTTP transactions.
pub type Live = LiveOf<HttpKind>;

/// Live statistics of TCP and UDP flows.
pub type FlowLive = LiveOf<FlowKind>;

/// Live statistics of a gateway.
pub type GatewayLive = LiveOf<GatewayKind>;

/// Live statistics of a load generator, or of several.
pub type LoadLive = LiveOf<LoadRun>;

impl<K: Kind> Clone for LiveOf<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A panic elsewhere must not take the statistics with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes closed intervals and parts on: called in the middle of the run, so it does no work of its own.
pub(crate) trait Tap<K: Kind>: Debug + Send {
    fn interval(&mut self, closed: Open<K>, run: &Standing<'_, K>);
    fn part(&mut self, part: &Arc<Part<K>>);
}

/// Hands closed intervals to the board.
pub(crate) struct ToBoard<'a, K: Kind>(pub(crate) &'a Shared<K>);

impl<K: Kind> Outlet<K> for ToBoard<'_, K> {
    fn interval(
        &mut self,
        closed: &Open<K>,
        length_ns: u64,
        watches: &[Watch],
        changed: &[usize],
        dropped_total: &Dropped,
    ) {
        let sums = &closed.sums;
        let mut tick = Tick {
            id: 0,
            t_ms: closed.end / 1_000_000,
            interval_s: seconds(length_ns),
            packets: sums.packets,
            bytes: sums.bytes,
            figures: sums.counts.figures(),
            dropped: sums.dropped,
            dropped_total: *dropped_total,
            table: sums.table,
            alerts: watches.iter().map(Watch::status).collect(),
        };
        let mut guard = lock(&self.0.board);
        let board = &mut *guard;
        board.last_id += 1;
        tick.id = board.last_id;
        if board.last_id == 1 {
            board.started_ms = closed.start / 1_000_000;
        }
        for at in changed {
            if let Some(status) = tick.alerts.get(*at) {
                board.last_event += 1;
                let event = AlertEvent {
                    source: board.source.clone(),
                    status: status.clone(),
                    t_ms: tick.t_ms,
                };
                board.events.push_back((board.last_event, event));
            }
        }
        while board.events.len() > MAX_EVENTS {
            board.events.pop_front();
        }
        board.alerts.clone_from(&tick.alerts);
        let tick = Arc::new(tick);
        board.ticks.push_back(Arc::clone(&tick));
        while board.ticks.len() > MAX_TICKS {
            board.ticks.pop_front();
        }
        self.0.changed.notify_all();
        drop(guard);
        lock(&self.0.history).push(&tick, &sums.counts);
        if let Some(day) = lock(&self.0.day).as_mut() {
            day.push(closed, length_ns, dropped_total);
        }
    }

    fn part(&mut self, part: Part<K>) {
        let part = Arc::new(part);
        if let Some(tap) = lock(&self.0.tap).as_mut() {
            tap.part(&part);
        }
        lock(&self.0.whole).merge(&part);
        // What is to be merged is taken out and put back: readers do not wait for it.
        let max_keys = self.0.options.max_keys;
        let old = lock(&self.0.board).windows.push(part);
        if let Some(old) = old {
            let joined = join(&old, max_keys);
            lock(&self.0.board).windows.replace(old.len(), joined);
        }
    }

    fn closed(&mut self, closed: Open<K>, run: &Standing<'_, K>) {
        if let Some(tap) = lock(&self.0.tap).as_mut() {
            tap.interval(closed, run);
        }
    }
}

impl<K: Kind> LiveOf<K> {
    /// Statistics of nothing yet.
    #[must_use]
    pub fn new(mut options: LiveOptions) -> Self {
        options.alerts.truncate(MAX_RULES);
        options.max_keys = options.max_keys.clamp(1, 65_536);
        let writer = Writer::new(&options);
        let board = Board {
            source: clean(options.source.as_bytes()),
            max_keys: options.max_keys,
            ticks: VecDeque::new(),
            last_id: 0,
            started_ms: 0,
            windows: Windows::default(),
            alerts: options
                .alerts
                .iter()
                .map(|rule| Watch::new(rule.clone()).status())
                .collect(),
            events: VecDeque::new(),
            last_event: 0,
            is_finished: false,
        };
        let whole = Part::new(u64::MAX, options.max_keys.saturating_mul(4));
        Self(Arc::new(Shared {
            options,
            writer: Mutex::new(writer),
            board: Mutex::new(board),
            whole: Mutex::new(whole),
            history: Mutex::default(),
            day: Mutex::default(),
            past: OnceLock::new(),
            recent: Mutex::default(),
            status: Mutex::default(),
            tap: Mutex::default(),
            probes: Mutex::default(),
            changed: Condvar::new(),
            webhook: WebhookCounts::default(),
            export: ExportCounts::default(),
        }))
    }

    /// A sink that counts the records of the run. It never fails.
    #[must_use]
    pub fn sink(&self) -> Box<dyn Sink<K> + Send>
    where
        K: OfRecords,
    {
        Box::new(LiveSink(self.clone()))
    }

    /// Counts a batch: what a [sink](LiveOf::sink) does with records.
    pub fn take(&self, batch: &K::Batch) {
        lock(&self.0.writer).records(batch, &mut ToBoard(&self.0));
        if let Some(recent) = lock(&self.0.recent).as_mut() {
            K::keep(recent, batch);
        }
    }

    /// Takes the counters of the run at `now`: the clock of an interface, the latest packet of a
    /// file. Cheap (a lock and a few additions), so that it may be called after every batch; the
    /// more often, the more exactly packets fall into intervals.
    pub fn tick(&self, report: &RunReport, now: Timestamp) {
        lock(&self.0.writer).tick(report, now.as_nanos(), &mut ToBoard(&self.0));
    }

    /// Where the interval of the last tick ends; time zero before the first one. From now on every tick, and the
    /// records before it, are of one interval: what comes between two ticks is not spread over the time between them.
    #[must_use]
    pub fn interval_end(&self) -> IntervalEnd
    where
        K: 'static,
    {
        lock(&self.0.writer).cut();
        let shared = Arc::clone(&self.0);
        Box::new(move || Timestamp::from_nanos(lock(&shared.writer).interval_end()))
    }

    /// Records that an output refused since the start of the run. Takes effect with the next tick.
    pub fn set_sink_drops(&self, records: u64) {
        lock(&self.0.writer).sink_drops = records;
    }

    /// Packets that could not be decoded, since the start of the run: layer, cause, count. For
    /// [`Live::metrics`].
    pub fn set_decode_errors(
        &self,
        errors: impl IntoIterator<Item = (&'static str, &'static str, u64)>,
    ) {
        let mut writer = lock(&self.0.writer);
        writer.decode_errors.clear();
        writer
            .decode_errors
            .extend(errors.into_iter().filter(|(_, _, count)| *count > 0));
    }

    /// The run has ended, and all that its table had has come as records: closes what is open and notifies readers.
    pub fn finish(&self, report: &RunReport) {
        let now = report.last.map_or(0, Timestamp::as_nanos);
        lock(&self.0.writer).tick(report, now, &mut ToBoard(&self.0));
        self.end(true);
    }

    /// The run has ended with the state of the last tick: closes what is open and notifies readers.
    pub fn close(&self) {
        self.end(false);
    }

    fn end(&self, is_emptied: bool) {
        lock(&self.0.writer).finish(is_emptied, &mut ToBoard(&self.0));
        // The receiver of intervals learns that there are no more.
        *lock(&self.0.tap) = None;
        if let Some(day) = lock(&self.0.day).as_mut() {
            day.flush();
        }
        lock(&self.0.board).is_finished = true;
        self.0.changed.notify_all();
    }

    /// The rules that were never judged: the text of each, and why not.
    #[must_use]
    pub fn unjudged(&self) -> Vec<(String, Unjudged)> {
        let writer = lock(&self.0.writer);
        let rules = writer.unjudged();
        rules.map(|(rule, why)| (rule.text.clone(), why)).collect()
    }

    /// Sets the status of the process at `now`. Readers see the last one.
    pub fn set_status(&self, status: K::Status, now: Timestamp) {
        let stated = (Arc::new(status), now.as_nanos() / 1_000_000);
        *lock(&self.0.status) = Some(stated);
    }

    /// The last status of the process, and when it was set, milliseconds since the epoch.
    #[must_use]
    pub fn status(&self) -> Option<(Arc<K::Status>, u64)> {
        lock(&self.0.status).clone()
    }

    /// What there is beside the intervals.
    #[must_use]
    pub fn now(&self) -> Now<K::Status, K::Event> {
        let (status, status_ms) = self.status().unzip();
        Now {
            status,
            status_ms: status_ms.unwrap_or_default(),
            events: lock(&self.0.writer).last.all(),
        }
    }

    /// The probes whose sketches these statistics are merged from; `None` where they are of one run.
    #[must_use]
    pub fn probes(&self) -> Option<Arc<Probes>> {
        lock(&self.0.probes).clone()
    }

    /// Whether [`Live::finish`] was called.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        lock(&self.0.board).is_finished
    }

    /// Id of the last closed interval; 0 before the first.
    #[must_use]
    pub fn last_id(&self) -> u64 {
        lock(&self.0.board).last_id
    }

    /// The closed intervals after `id` that are still kept, oldest first.
    #[must_use]
    pub fn ticks_after(&self, id: u64) -> Vec<Arc<Tick<K::Figures>>> {
        ticks_after(&lock(&self.0.board), id)
    }

    /// The whole run: intervals that are not kept any more in coarser ones (without rules and methods,
    /// quantiles at most 12.5 % too large), then those that are kept.
    #[must_use]
    pub fn series(&self) -> Vec<Arc<Tick<K::Figures>>> {
        let kept = self.ticks_after(0);
        let first = kept.first().map_or(0, |tick| tick.id);
        let mut series: Vec<Arc<Tick<K::Figures>>> = lock(&self.0.history)
            .before(first)
            .into_iter()
            .map(Arc::new)
            .collect();
        series.extend(kept);
        series
    }

    /// Waits until there is an interval after `id` or the run has ended, at most `timeout`; gives
    /// the intervals after `id`.
    #[must_use]
    pub fn wait_tick(&self, id: u64, timeout: Duration) -> Vec<Arc<Tick<K::Figures>>> {
        let (board, _) = self
            .0
            .changed
            .wait_timeout_while(lock(&self.0.board), timeout, |board| {
                board.last_id <= id && !board.is_finished
            })
            .unwrap_or_else(PoisonError::into_inner);
        ticks_after(&board, id)
    }

    /// The alert events after number `after` that are still kept, with their numbers.
    #[must_use]
    pub fn events_after(&self, after: u64) -> Vec<(u64, AlertEvent)> {
        events_after(&lock(&self.0.board), after)
    }

    /// Waits until there is an alert event after number `after` or the run has ended, at most
    /// `timeout`; gives the events after it.
    #[must_use]
    pub fn wait_event(&self, after: u64, timeout: Duration) -> Vec<(u64, AlertEvent)> {
        let (board, _) = self
            .0
            .changed
            .wait_timeout_while(lock(&self.0.board), timeout, |board| {
                board.last_event <= after && !board.is_finished
            })
            .unwrap_or_else(PoisonError::into_inner);
        events_after(&board, after)
    }

    /// Where every rule stands.
    #[must_use]
    pub fn alerts(&self) -> Vec<AlertStatus> {
        lock(&self.0.board).alerts.clone()
    }

    /// Alerts that the webhook did not deliver, and why the first attempt that failed did: also where it is
    /// tried again. The address is not in it, since it may hold a secret.
    #[must_use]
    pub fn webhook_losses(&self) -> (u64, Option<&str>) {
        self.webhook_counts().losses()
    }

    /// Counters of the webhook.
    pub fn webhook_counts(&self) -> &WebhookCounts {
        &self.0.webhook
    }

    /// Counters of what is sent elsewhere: metrics and spans.
    pub fn export_counts(&self) -> &ExportCounts {
        &self.0.export
    }

    /// What the run is.
    #[must_use]
    pub fn meta(&self) -> Meta {
        let interval = lock(&self.0.writer).interval_ns();
        let is_merged = lock(&self.0.probes).is_some();
        // Of probes, some of which may know.
        let has_places = is_merged && lock(&self.0.whole).has_places();
        let board = lock(&self.0.board);
        Meta {
            kind: K::SUBJECT,
            version: env!("CARGO_PKG_VERSION"),
            source: board.source.clone(),
            live: self.0.options.is_live,
            interval_s: seconds(interval),
            started_ms: board.started_ms,
            finished: board.is_finished,
            merged: is_merged,
            archive: self.0.options.has_archive,
            history: self.0.past.get().is_some(),
            places: self.0.options.has_places || has_places,
        }
    }

    /// Sums since the start, with what is not in a closed interval yet.
    #[must_use]
    pub fn totals(&self) -> Totals<K::Figures> {
        let writer = lock(&self.0.writer);
        let sums = writer.totals();
        let (seen, dropped, late_records) = (writer.seen, writer.dropped, writer.late);
        drop(writer);
        let millis = |time: Timestamp| time.as_nanos() / 1_000_000;
        Totals {
            packets: seen.packets,
            bytes: seen.bytes,
            first_ms: seen.first.map(millis),
            last_ms: seen.last.map(millis),
            figures: sums.counts.figures(),
            dropped,
            table: sums.table,
            late_records,
        }
    }

    /// The run, its sums, and the last [`SNAPSHOT_TICKS`] intervals.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K::Figures> {
        let ticks = {
            let board = lock(&self.0.board);
            let skip = board.ticks.len().saturating_sub(SNAPSHOT_TICKS);
            board.ticks.iter().skip(skip).cloned().collect()
        };
        Snapshot {
            meta: self.meta(),
            ticks,
            totals: self.totals(),
        }
    }

    /// The `n` largest keys of a window. A window ends with the last closed part, at most five
    /// seconds or one interval ago.
    #[must_use]
    pub fn top(
        &self,
        by: K::By,
        sort: K::Sort,
        window: Window,
        n: usize,
    ) -> TopTable<K::By, K::Row> {
        let (rows, floor) = if window == Window::All {
            let whole = lock(&self.0.whole);
            whole.table(by).map_or_else(Default::default, |table| {
                (rows::<K>(table, by, sort, n), table.floor())
            })
        } else {
            let (parts, max_keys) = {
                let board = lock(&self.0.board);
                (board.windows.parts(window), board.max_keys)
            };
            let mut table = merged::<K>(by, max_keys.saturating_mul(2));
            for part in parts.iter().filter_map(|part| part.table(by)) {
                table.merge(part);
            }
            (rows::<K>(&table, by, sort, n), table.floor())
        };
        TopTable {
            by,
            window,
            rows,
            floor,
        }
    }

    /// The complementary distribution of a quantity over a window, at most 300 points.
    #[must_use]
    pub fn ccdf_of(&self, of: K::Of, window: Window) -> Ccdf {
        if window == Window::All {
            let sums = lock(&self.0.writer).totals();
            let all = sums.counts.distributions();
            return all
                .get(of.position())
                .map_or_else(Ccdf::default, |values| ccdf(values));
        }
        let parts = lock(&self.0.board).windows.parts(window);
        let mut values = linkweir_sketch::LogLinear::new();
        for part in &parts {
            if let Some(part) = part.distributions.get(of.position()) {
                values.merge(part);
            }
        }
        ccdf(&values)
    }
}

impl Live {
    /// The complementary distribution of the response time over a window, at most 300 points.
    #[must_use]
    pub fn ccdf(&self, window: Window) -> Ccdf {
        self.ccdf_of(crate::api::HttpOf::ResponseTime, window)
    }
}

fn ticks_after<K: Kind>(board: &Board<K>, id: u64) -> Vec<Arc<Tick<K::Figures>>> {
    let behind = usize::try_from(board.last_id.saturating_sub(id)).unwrap_or(usize::MAX);
    let skip = board.ticks.len().saturating_sub(behind);
    board.ticks.iter().skip(skip).cloned().collect()
}

fn events_after<K: Kind>(board: &Board<K>, after: u64) -> Vec<(u64, AlertEvent)> {
    board
        .events
        .iter()
        .filter(|(number, _)| *number > after)
        .cloned()
        .collect()
}

/// Counts the records of a run.
#[derive(Debug)]
struct LiveSink<K: Kind>(LiveOf<K>);

impl<K: OfRecords> Sink<K> for LiveSink<K> {
    fn write(&mut self, batch: &<K as RecordKind>::Batch) -> Result<(), SinkError> {
        self.0.take(batch);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        let shared = &self.0.0;
        lock(&shared.writer).flushed(&mut ToBoard(shared));
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
