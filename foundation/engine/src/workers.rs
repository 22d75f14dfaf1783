//! Several shards of a stage, a thread each, into one set of outputs.
//!
//! ```text
//! reader ─ distribute ─► port 0 ─► worker 0 (source, stage) ─┐
//!                     └► port 1 ─► worker 1 (source, stage) ─┴► records ─► (sorter) ─► outputs
//! ```
//! or, where the kernel distributes, workers with sockets of their own and no reader. Workers share
//! nothing but handoffs: what they produce merges by addition. Of a file, threads take turns instead with one source and one
//! stage: see [`crate::turns`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use linkweir_record::RecordKind;

use crate::batch::Limit;
use crate::distribute::DispatchState;
use crate::exchange::Mailbox;
use crate::outputs::{NoOutput, Outlet, Outputs};
use crate::run::{Directive, Run, RunError, RunReport, write_to};
use crate::seams::{InputCounts, Progress, ReadAhead, Source, SourceError, Stage};
use crate::sort::Sorter;
use crate::turns;

/// Batches of records that wait for the outputs before the workers do.
const QUEUE: usize = 16;
/// How often the caller is asked for a directive where no records come.
const EVERY: Duration = Duration::from_millis(20);

type Batch<T> = <<T as Stage>::Record as RecordKind>::Batch;

/// Reads the input and distributes it to the sources of the shards.
pub type Dispatcher<'d> = Box<dyn FnOnce(&DispatchState) + Send + 'd>;

/// What several workers are to do.
pub struct Workers<'d, S, T> {
    /// A source and a stage for each worker.
    pub shards: Vec<(S, T)>,
    /// Runs on a thread of its own, where the kernel does not distribute.
    pub dispatcher: Option<Dispatcher<'d>>,
    /// At most this many packets are taken by the workers; a dispatcher has its own limit.
    pub limit: Limit,
    /// Whether the records leave in the order of their time.
    pub is_sorted: bool,
}

impl<S, T> std::fmt::Debug for Workers<'_, S, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers")
            .field("shards", &self.shards.len())
            .field("dispatcher", &self.dispatcher.is_some())
            .finish_non_exhaustive()
    }
}

/// What the workers have come to.
#[derive(Debug)]
pub struct WorkersReport<T> {
    /// All of them together.
    pub total: RunReport,
    /// Each of them.
    pub each: Vec<RunReport>,
    /// Their stages.
    pub stages: Vec<T>,
}

/// What a worker and the caller's thread have in common.
#[derive(Debug, Default)]
struct Watch {
    report: Mutex<(RunReport, Progress)>,
    flush: AtomicBool,
    stop: AtomicBool,
}

impl Watch {
    fn with<R>(&self, then: impl FnOnce(&mut (RunReport, Progress)) -> R) -> R {
        then(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Sends the records of a worker to the thread that writes.
struct Outbox<K: RecordKind>(SyncSender<K::Batch>);

impl<K: RecordKind> Outlet<K> for Outbox<K>
where
    K::Batch: Clone,
{
    fn write(&mut self, batch: &K::Batch) -> Result<(), NoOutput> {
        self.0.send(batch.clone()).map_err(|_| NoOutput::ClosedPipe)
    }
}

/// What came of a job.
struct Done<T> {
    report: RunReport,
    /// What each thread has taken, where there were several.
    shares: Vec<RunReport>,
    stage: T,
    outcome: Result<(), RunError>,
}

/// What runs on a thread beside the one that writes.
type Job<'j, T> =
    Box<dyn FnOnce(&Watch, &DispatchState, SyncSender<Batch<T>>) -> Done<T> + Send + 'j>;

/// Runs all shards to the end of their sources, or until `direct` says stop.
///
/// `direct` is asked on the caller's thread, some 50 times a second and after every batch of
/// records, with what all have reached together. Sinks are used on the caller's thread only.
pub fn run_workers<S, T>(
    workers: Workers<'_, S, T>,
    outputs: &mut Outputs<T::Record>,
    mut direct: impl FnMut(&RunReport, Progress) -> Directive,
) -> (WorkersReport<T>, Result<(), RunError>)
where
    S: Source + Send,
    T: Stage + Send,
    Batch<T>: Clone + Send,
{
    let mailboxes = Mailbox::all(workers.shards.len());
    let jobs = workers.shards.into_iter().zip(mailboxes);
    let jobs = jobs.map(|((source, stage), mailbox)| -> Job<'_, T> {
        let limit = workers.limit.clone();
        Box::new(move |watch, state, outbox| {
            work(source, stage, mailbox, (watch, state), outbox, limit)
        })
    });
    supervise(
        jobs.collect(),
        workers.dispatcher,
        workers.is_sorted,
        outputs,
        &mut direct,
    )
}

/// What threads that take turns are to do.
#[derive(Debug)]
pub struct Turns<S, T> {
    /// What they read ahead of.
    pub source: S,
    /// What all packets go through.
    pub stage: T,
    /// How many they are.
    pub threads: usize,
    /// At most this many packets are taken.
    pub limit: Limit,
    /// Whether the records leave in the order of their time.
    pub is_sorted: bool,
}

/// Runs one stage to the end of its source on threads that take turns, or until `direct` says stop: see
/// [`run_workers`]. [`WorkersReport::each`] has the packets and bytes of each thread.
pub fn run_in_turns<S, T>(
    turns: Turns<S, T>,
    outputs: &mut Outputs<T::Record>,
    mut direct: impl FnMut(&RunReport, Progress) -> Directive,
) -> (WorkersReport<T>, Result<(), RunError>)
where
    S: ReadAhead + Send,
    T: Stage + Send,
    Batch<T>: Clone + Send,
{
    let Turns {
        source,
        mut stage,
        threads,
        limit,
        is_sorted,
    } = turns;
    let job: Job<'_, T> = Box::new(move |watch, state, outbox| {
        let mut outbox = Outbox::<T::Record>(outbox);
        let run = Run::new(&mut stage, &mut outbox, limit);
        let (report, shares, outcome) = turns::drive(run, source, threads, watched(watch, state));
        watch.with(|seen| seen.0.clone_from(&report));
        let shares = shares.into_iter().map(|(packets, bytes)| RunReport {
            packets,
            bytes,
            ..RunReport::default()
        });
        Done {
            report,
            shares: shares.collect(),
            stage,
            outcome,
        }
    });
    supervise(vec![job], None, is_sorted, outputs, &mut direct)
}

/// Runs jobs on threads of their own, and writes their records on this one.
fn supervise<T>(
    jobs: Vec<Job<'_, T>>,
    dispatcher: Option<Dispatcher<'_>>,
    is_sorted: bool,
    outputs: &mut Outputs<T::Record>,
    direct: &mut impl FnMut(&RunReport, Progress) -> Directive,
) -> (WorkersReport<T>, Result<(), RunError>)
where
    T: Stage + Send,
    Batch<T>: Clone + Send,
{
    let watches: Vec<Watch> = jobs.iter().map(|_| Watch::default()).collect();
    let state = DispatchState::default();
    let (outbox, inbox) = sync_channel::<Batch<T>>(QUEUE);
    thread::scope(|scope| {
        let dispatcher = dispatcher.map(|dispatcher| scope.spawn(|| dispatcher(&state)));
        let threads: Vec<_> = jobs
            .into_iter()
            .zip(&watches)
            .map(|(job, watch)| {
                let (outbox, state) = (outbox.clone(), &state);
                scope.spawn(move || job(watch, state, outbox))
            })
            .collect();
        drop(outbox);
        let mut writer = Writer {
            inbox,
            watches: &watches,
            state: &state,
            is_distributed: dispatcher.is_some(),
            sorter: is_sorted.then(Sorter::default),
            total: RunReport::default(),
        };
        let mut result = writer.write_all(outputs, direct);
        // A worker that still runs finds that its records are not taken.
        let Writer { mut total, .. } = writer;
        state.stop();
        for watch in &watches {
            watch.stop.store(true, Ordering::Relaxed);
        }
        let mut report = WorkersReport {
            total: RunReport::default(),
            each: Vec::new(),
            stages: Vec::new(),
        };
        let mut reports = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(done) => {
                    if done.shares.is_empty() {
                        report.each.push(done.report.clone());
                    }
                    report.each.extend(done.shares);
                    reports.push(done.report);
                    report.stages.push(done.stage);
                    if result.is_ok() {
                        result = done.outcome;
                    }
                }
                Err(_) => result = result.and_then(|()| Err(failed("a worker"))),
            }
        }
        if dispatcher.is_some_and(|dispatcher| dispatcher.join().is_err()) {
            result = result.and_then(|()| Err(failed("the reader")));
        }
        if let Some(error) = state.take_error() {
            result = result.and_then(|()| Err(error.into()));
        }
        total.faults.extend(state.take_faults());
        merge(&mut total, reports.iter(), &state);
        total.losses = outputs.losses();
        total.sample = outputs.sampled();
        total.left_out = outputs.left_out();
        report.total = total;
        (report, result)
    })
}

fn failed(who: &str) -> RunError {
    RunError::Source(SourceError {
        input: who.to_owned(),
        message: "stopped by a fault of this program; please report it".to_owned(),
    })
}

/// One worker, on its own thread.
fn work<S: Source, T: Stage>(
    source: S,
    mut stage: T,
    mailbox: Mailbox<T::Handoff>,
    (watch, state): (&Watch, &DispatchState),
    outbox: SyncSender<Batch<T>>,
    limit: Limit,
) -> Done<T>
where
    Batch<T>: Clone + Send,
{
    let mut outbox = Outbox::<T::Record>(outbox);
    let (report, outcome) = Run::new(&mut stage, &mut outbox, limit)
        .at(mailbox)
        .until(state)
        .drive(source, watched(watch, state));
    watch.with(|seen| seen.0.clone_from(&report));
    Done {
        report,
        shares: Vec::new(),
        stage,
        outcome,
    }
}

/// Tells the caller's thread what a run has come to, and the run what the caller wants.
fn watched<'w>(
    watch: &'w Watch,
    state: &'w DispatchState,
) -> impl FnMut(&RunReport, Progress) -> Directive + Send + 'w {
    let mut told = 0;
    move |report, progress| {
        for fault in report.faults.iter().skip(told) {
            state.add_fault(fault.clone());
        }
        told = report.faults.len();
        watch.with(|seen| {
            seen.0.clone_from(report);
            seen.1 = progress;
        });
        if watch.stop.load(Ordering::Relaxed) {
            Directive::Stop
        } else if watch.flush.swap(false, Ordering::Relaxed) {
            Directive::Flush
        } else {
            Directive::Continue
        }
    }
}

/// The caller's thread: takes the records of all workers and writes them.
struct Writer<'w, K: RecordKind> {
    inbox: Receiver<K::Batch>,
    watches: &'w [Watch],
    state: &'w DispatchState,
    is_distributed: bool,
    sorter: Option<Sorter<K>>,
    total: RunReport,
}

impl<K: RecordKind> Writer<'_, K> {
    fn write_all(
        &mut self,
        outputs: &mut Outputs<K>,
        direct: &mut impl FnMut(&RunReport, Progress) -> Directive,
    ) -> Result<(), RunError> {
        loop {
            let (batch, is_over) = match self.inbox.recv_timeout(EVERY) {
                Ok(batch) => (Some(batch), false),
                Err(RecvTimeoutError::Timeout) => (None, false),
                Err(RecvTimeoutError::Disconnected) => (None, true),
            };
            // Of packets whose records are written the caller knows.
            let progress = self.refresh();
            let directive = direct(&self.total, progress);
            if let Some(batch) = batch {
                self.take_early(batch, outputs)?;
            }
            self.release(is_over, outputs)?;
            match directive {
                Directive::Continue => {}
                Directive::Flush => {
                    for watch in self.watches {
                        watch.flush.store(true, Ordering::Relaxed);
                    }
                    outputs.flush()?;
                    self.total.losses = outputs.losses();
                }
                Directive::Rotate => outputs.rotate()?,
                Directive::Stop => {
                    // What was distributed is still worked on: the dispatcher's end is that of the workers.
                    self.state.stop();
                    if !self.is_distributed {
                        for watch in self.watches {
                            watch.stop.store(true, Ordering::Relaxed);
                        }
                    }
                }
            }
            if is_over {
                break;
            }
        }
        self.total.is_unread = self.total.left_without_a_packet(true);
        Ok(outputs.finish_after(self.total.is_unread)?)
    }

    fn take(&mut self, mut batch: K::Batch, outputs: &mut Outputs<K>) -> Result<(), NoOutput> {
        match &mut self.sorter {
            Some(sorter) => {
                sorter.take_in(&mut batch);
                Ok(())
            }
            None => write_to(outputs, &mut batch, &mut self.total.records),
        }
    }

    /// Takes records while the workers go on.
    fn take_early(&mut self, batch: K::Batch, outputs: &mut Outputs<K>) -> Result<(), NoOutput> {
        let taken = self.take(batch, outputs);
        self.total.is_complete_early = taken == Err(NoOutput::Complete);
        taken
    }

    /// When sorted, lets those records go before which none can come any more.
    fn release(&mut self, is_over: bool, outputs: &mut Outputs<K>) -> Result<(), NoOutput> {
        if self.sorter.is_none() {
            return Ok(());
        }
        let complete_to = self
            .watches
            .iter()
            .map(|watch| watch.with(|seen| seen.0.complete_to.as_nanos()))
            .min();
        let before = if is_over {
            u64::MAX
        } else {
            complete_to.unwrap_or_default()
        };
        // What was handed over before the workers said so is in the queue.
        while let Ok(batch) = self.inbox.try_recv() {
            self.take(batch, outputs)?;
        }
        let Some(sorter) = &mut self.sorter else {
            return Ok(());
        };
        let mut out = K::Batch::default();
        loop {
            let was_all = sorter.release(before, &mut out);
            write_to(outputs, &mut out, &mut self.total.records)?;
            if was_all {
                self.total.unsorted = sorter.late();
                return Ok(());
            }
        }
    }

    fn refresh(&mut self) -> Progress {
        let reports: Vec<(RunReport, Progress)> = self
            .watches
            .iter()
            .map(|watch| watch.with(|seen| seen.clone()))
            .collect();
        self.total.faults.extend(self.state.take_faults());
        merge(
            &mut self.total,
            reports.iter().map(|(report, _)| report),
            self.state,
        );
        // Of several interfaces none has an end.
        match reports.first() {
            Some((_, progress)) if !self.is_distributed => *progress,
            _ => self.state.progress(),
        }
    }
}

/// Makes `total` the sum of `each`; what only the caller's thread knows stays.
fn merge<'r>(
    total: &mut RunReport,
    each: impl Iterator<Item = &'r RunReport>,
    state: &DispatchState,
) {
    let mut sum = RunReport {
        faults: std::mem::take(&mut total.faults),
        drops: state.drops(),
        inputs: state.inputs(),
        records: total.records,
        unsorted: total.unsorted,
        complete_to: total.complete_to,
        is_complete_early: total.is_complete_early,
        losses: std::mem::take(&mut total.losses),
        ..RunReport::default()
    };
    for report in each {
        sum.packets += report.packets;
        sum.bytes += report.bytes;
        sum.first = match (sum.first, report.first) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        sum.last = sum.last.max(report.last);
        sum.drops += report.drops;
        InputCounts::add_all(&mut sum.inputs, &report.inputs);
        sum.fill += report.fill;
    }
    // A frame that went to all workers is one frame, and the parts of a packet are several.
    let (copies, bytes) = state.copies();
    let parts = state.parts();
    sum.packets = (sum.packets + parts.taken.0).saturating_sub(copies + parts.given.0);
    sum.bytes = (sum.bytes + parts.taken.1).saturating_sub(bytes + parts.given.1);
    sum.first = match (sum.first, parts.first) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    sum.last = sum.last.max(parts.last);
    sum.fragments = parts.stats;
    *total = sum;
}
