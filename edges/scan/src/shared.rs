//! What the threads of a scanner and its clients have in common.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linkweir_engine::effect::{ScanOutcome, ScanReport};
use linkweir_sys::wait::monotonic_ns;

use crate::health::Health;
use crate::link::Stop;
use crate::options::ScannerOptions;
use crate::queue::{Job, Key, Limits, Next, Queue};
use crate::status::{Failure, FailureCause, ScannerStatus};

/// Called when there are reports.
pub(crate) type Wake = Box<dyn Fn() + Send>;

/// Where a client's reports go.
pub(crate) struct Mailbox {
    reports: Mutex<Vec<ScanReport>>,
    /// Saves the lock where there is nothing, which is nearly always.
    has_reports: AtomicBool,
    wake: Mutex<Wake>,
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}

impl Mailbox {
    pub(crate) fn new(wake: Wake) -> Self {
        Self {
            reports: Mutex::default(),
            has_reports: AtomicBool::new(false),
            wake: Mutex::new(wake),
        }
    }

    fn put(&self, report: ScanReport) {
        let mut reports = locked(&self.reports);
        reports.push(report);
        self.has_reports.store(true, Ordering::Release);
        drop(reports);
        let wake = locked(&self.wake);
        wake();
    }

    pub(crate) fn take(&self, into: &mut Vec<ScanReport>) {
        if self.has_reports.swap(false, Ordering::Acquire) {
            into.append(&mut locked(&self.reports));
        }
    }
}

/// The lock, also after a thread has panicked with it: every state behind one is whole between calls.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Queue and mailboxes, under one lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) queue: Queue,
    pub(crate) clients: HashMap<u64, Arc<Mailbox>>,
    pub(crate) next_client: u64,
    is_stopped: bool,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: ScannerOptions,
    pub(crate) state: Mutex<State>,
    /// Scans are ready.
    work: Condvar,
    /// Bytes are to be spooled.
    pub(crate) spool: Condvar,
    pub(crate) health: Mutex<Health>,
    /// A check of clamd is wanted.
    pub(crate) check: Condvar,
    pub(crate) stop: Stop,
    /// Counters; what is counted elsewhere is filled in by [`Shared::status`].
    pub(crate) tally: Mutex<ScannerStatus>,
}

/// What a worker is to do.
#[derive(Debug)]
pub(crate) enum Order {
    Scan(Job),
    /// Nothing has come for the time asked.
    Idle,
    Stop,
}

impl Shared {
    pub(crate) fn new(options: ScannerOptions, stop: Stop) -> Self {
        let queue = Queue::new(Limits {
            scan_bytes: options.max_scan_bytes,
            memory_bytes: options.memory_bytes,
            spool_bytes: options.spool_bytes,
            is_spooling: options.spool_dir.is_some(),
        });
        Self {
            options,
            state: Mutex::new(State {
                queue,
                clients: HashMap::new(),
                next_client: 0,
                is_stopped: false,
            }),
            work: Condvar::new(),
            spool: Condvar::new(),
            health: Mutex::default(),
            check: Condvar::new(),
            stop,
            tally: Mutex::default(),
        }
    }

    /// Does what a step of the queue asks for; `state` is let go.
    pub(crate) fn follow(&self, state: MutexGuard<'_, State>, key: Key, next: Next) {
        match next {
            Next::Nothing => drop(state),
            Next::Work if state.is_stopped => {
                drop(state);
                self.stop_all();
            }
            Next::Work => {
                drop(state);
                self.work.notify_one();
            }
            Next::Spool => {
                drop(state);
                self.spool.notify_one();
            }
            Next::Report(failure, last_ns) => {
                let mailbox = state.clients.get(&key.client).cloned();
                drop(state);
                self.report(mailbox, key, Err(failure), 0, last_ns);
            }
        }
    }

    /// Waits for a scan, at most for `patience`.
    pub(crate) fn next(&self, patience: Option<Duration>) -> Order {
        let mut state = locked(&self.state);
        loop {
            if state.is_stopped {
                return Order::Stop;
            }
            if let Some(job) = state.queue.take() {
                return Order::Scan(job);
            }
            let poisoned = PoisonError::into_inner;
            match patience {
                None => state = self.work.wait(state).unwrap_or_else(poisoned),
                Some(patience) => {
                    let (back, waited) = self
                        .work
                        .wait_timeout(state, patience)
                        .unwrap_or_else(|error| error.into_inner());
                    state = back;
                    if waited.timed_out() {
                        return state.queue.take().map_or(Order::Idle, Order::Scan);
                    }
                }
            }
        }
    }

    /// A worker's result, for who waits for it.
    pub(crate) fn finish(&self, job: &Job, outcome: Result<ScanOutcome, Failure>) {
        let mut state = locked(&self.state);
        if !state.queue.done(job.key) {
            return;
        }
        let mailbox = state.clients.get(&job.key.client).cloned();
        drop(state);
        self.report(mailbox, job.key, outcome, job.length, job.last_ns);
    }

    fn report(
        &self,
        mailbox: Option<Arc<Mailbox>>,
        key: Key,
        outcome: Result<ScanOutcome, Failure>,
        length: u64,
        last_ns: u64,
    ) {
        let latency_ns = monotonic_ns().saturating_sub(last_ns);
        let mut tally = locked(&self.tally);
        tally.scans += 1;
        let outcome = match outcome {
            Ok(outcome) => {
                tally.bytes += length;
                tally.infected += u64::from(matches!(outcome, ScanOutcome::Infected(_)));
                tally.latency_ns.record(latency_ns);
                outcome
            }
            Err(failure) => {
                tally.failed.count(failure.cause);
                tally.last_error = Some(failure.text.clone());
                ScanOutcome::Failed(failure.text)
            }
        };
        drop(tally);
        if let Some(mailbox) = mailbox {
            mailbox.put(ScanReport {
                ticket: key.ticket,
                outcome,
                latency_ns,
            });
        }
    }

    /// Ends all waiting; scans that have no report yet get one that says so.
    pub(crate) fn stop_all(&self) {
        self.stop.stop();
        let mut state = locked(&self.state);
        state.is_stopped = true;
        let owed: Vec<(Key, Option<Arc<Mailbox>>)> = state
            .queue
            .drain()
            .into_iter()
            .map(|key| (key, state.clients.get(&key.client).cloned()))
            .collect();
        drop(state);
        self.work.notify_all();
        self.spool.notify_all();
        // The lock makes sure that the prober waits, or has yet to look.
        drop(locked(&self.health));
        self.check.notify_all();
        for (key, mailbox) in owed {
            let failure = Failure::new(FailureCause::Stopped, "the scanner was stopped");
            self.report(mailbox, key, Err(failure), 0, monotonic_ns());
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    pub(crate) fn status(&self) -> ScannerStatus {
        let mut status = locked(&self.tally).clone();
        let health = locked(&self.health);
        status.is_reachable = health.is_reachable();
        status.version.clone_from(&health.version);
        drop(health);
        let state = locked(&self.state);
        status.waiting = state.queue.len();
        status.waiting_bytes = state.queue.memory();
        status.spooled_bytes = state.queue.spooled();
        status
    }
}
