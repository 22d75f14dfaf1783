//! What the threads of a running gateway share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linkweir_gateway::policy::Policy;
use linkweir_gateway::{Stats, StepTimes};
use linkweir_netfilter::QueueCounts;
use linkweir_netfilter::reset::ResetCounts;

/// What a worker last said of itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Report {
    pub(super) stats: Stats,
    pub(super) queue: QueueCounts,
    pub(super) resets: ResetCounts,
    /// Events for which the writer had no room.
    pub(super) events_lost: u64,
    /// Why it ended, if it has.
    pub(super) failed: Option<String>,
}

/// One worker, as the others see it.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Counts up whenever it goes round.
    pub(super) beats: AtomicU64,
    /// The last question ([`Shared::ask`]) that its report is an answer to.
    pub(super) answered: AtomicU64,
    pub(super) report: Mutex<Report>,
    /// What packets took; not in the report, which is copied.
    pub(super) steps: Mutex<StepTimes>,
}

impl Watched {
    pub(super) fn report(&self) -> Report {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.clone()
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut Report)) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut report);
    }

    pub(super) fn steps(&self) -> MutexGuard<'_, StepTimes> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The policy in force, and whether a newer one is there.
#[derive(Debug)]
pub(super) struct PolicyBoard {
    version: AtomicU64,
    policy: Mutex<Arc<Policy>>,
}

impl PolicyBoard {
    pub(super) const fn new(policy: Arc<Policy>) -> Self {
        Self {
            version: AtomicU64::new(0),
            policy: Mutex::new(policy),
        }
    }

    pub(super) fn set(&self, policy: Arc<Policy>) {
        *self.policy.lock().unwrap_or_else(PoisonError::into_inner) = policy;
        self.version.fetch_add(1, Ordering::Release);
    }

    /// How often it was set.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn get(&self) -> Arc<Policy> {
        let policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&policy)
    }
}

/// Everything together.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) policy: PolicyBoard,
    pub(super) workers: Vec<Watched>,
    pub(super) stop: AtomicBool,
    /// How often the workers were asked to report at once.
    pub(super) asked: AtomicU64,
}

impl Shared {
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks all workers to report now; the number of the question.
    pub(super) fn ask(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether all of them have.
    pub(super) fn is_answered(&self, question: u64) -> bool {
        let mut workers = self.workers.iter();
        workers.all(|worker| worker.answered.load(Ordering::Acquire) >= question)
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
