//! One thread for one queue of the kernel: packets to the stage, its effects to the world.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linkweir_engine::Effects;
use linkweir_files::{FileStore, FileStoreClient};
use linkweir_gateway::{GatewayStage, Invitations};
use linkweir_netfilter::{Queue, QueueError, ResetSender};
use linkweir_record::{GatewayBatch, GatewayKind, RecordBatch as _};
use linkweir_scan::{ScanClient, Scanner};
use linkweir_wire::Timestamp;

use super::shared::{Shared, Watched};
use crate::clock;

/// How long it waits for packets at most.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often it says what it counted.
const EVERY: Duration = Duration::from_millis(200);

/// A clock that never goes back: the wall clock of the start and the time since.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    began_ns: u64,
    began: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self {
            began_ns: clock::wall_clock(),
            began: clock::now(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        let since = clock::now().duration_since(self.began).as_nanos();
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        Timestamp::from_nanos(self.began_ns.saturating_add(since))
    }
}

/// Starts a thread for each queue, with what it answers resets by.
pub(super) fn start(
    queues: impl Iterator<Item = (Queue, ResetSender)>,
    (scanner, files): (Option<&Scanner>, Option<&FileStore>),
    events: &SyncSender<GatewayBatch>,
    shared: &Arc<Shared>,
    clock: Clock,
) -> io::Result<Vec<JoinHandle<()>>> {
    let invitations = Arc::new(Invitations::default());
    let start = |(number, (queue, resets)): (usize, (Queue, ResetSender))| {
        let waker = queue.waker();
        let worker = Worker {
            number,
            queue,
            resets,
            scanner: scanner.map(|scanner| scanner.client(move || waker.wake())),
            files: files.map(FileStore::client),
            events: events.clone(),
            invitations: Arc::clone(&invitations),
            shared: Arc::clone(shared),
            clock,
        };
        let thread = std::thread::Builder::new().name(format!("queue {number}"));
        thread.spawn(move || worker.run())
    };
    queues.enumerate().map(start).collect()
}

/// What a worker works with.
struct Worker {
    number: usize,
    queue: Queue,
    resets: ResetSender,
    scanner: Option<ScanClient>,
    files: Option<FileStoreClient>,
    events: SyncSender<GatewayBatch>,
    invitations: Arc<Invitations>,
    shared: Arc<Shared>,
    clock: Clock,
}

impl Worker {
    /// Serves the queue until the run stops.
    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let Some(watched) = shared.workers.get(self.number) else {
            return;
        };
        if let Err(error) = self.serve(watched) {
            watched.set(|report| report.failed = Some(error.to_string()));
            shared.stop();
        }
    }

    fn serve(&mut self, watched: &Watched) -> Result<(), QueueError> {
        let shared = Arc::clone(&self.shared);
        let number = u8::try_from(self.number).unwrap_or(u8::MAX);
        let mut version = shared.policy.version();
        let mut stage =
            GatewayStage::new(shared.policy.get(), number, Arc::clone(&self.invitations));
        let mut effects = Effects::default();
        let mut reports = Vec::new();
        let mut told = clock::now();
        let mut lost = 0;
        while !shared.is_stopping() {
            watched.beats.fetch_add(1, Ordering::Relaxed);
            if shared.policy.version() != version {
                version = shared.policy.version();
                stage.set_policy(shared.policy.get());
            }
            let wait = self.wait(&stage);
            // The clock is asked once for the packets that came together.
            let (clock, arrived) = (self.clock, Cell::new(None));
            self.queue.receive(wait, |packet| {
                let now = arrived.get().unwrap_or_else(|| {
                    let now = clock.now();
                    arrived.set(Some(now));
                    now
                });
                stage.on_packet(&packet, now, &mut effects);
            })?;
            if let Some(scanner) = &self.scanner {
                scanner.take_reports(&mut reports);
            }
            let now = self.clock.now();
            for report in reports.drain(..) {
                stage.on_report(&report, now, &mut effects);
            }
            stage.on_tick(now, &mut effects);
            lost += self.carry_out(&mut effects)?;
            let asked = shared.asked.load(Ordering::Relaxed);
            let is_asked = asked != watched.answered.load(Ordering::Relaxed);
            if is_asked || told.elapsed() >= EVERY {
                told = clock::now();
                self.tell(watched, &stage, lost);
                watched.answered.store(asked, Ordering::Release);
            }
        }
        stage.finish(self.clock.now(), &mut effects);
        lost += self.carry_out(&mut effects)?;
        self.tell(watched, &stage, lost);
        Ok(())
    }

    fn wait(&self, stage: &GatewayStage) -> Duration {
        let Some(deadline) = stage.next_deadline() else {
            return PATIENCE;
        };
        let left = deadline.nanos_since(self.clock.now());
        PATIENCE.min(Duration::from_nanos(left))
    }

    /// Does what the stage asks for; returns how many events found no room.
    fn carry_out(&mut self, effects: &mut Effects<GatewayKind>) -> Result<u64, QueueError> {
        if !effects.answers.is_empty() {
            self.queue.answer(&effects.answers)?;
            effects.answers.clear();
        }
        for reset in effects.resets.drain(..) {
            self.resets.send(&reset);
        }
        for segment in effects.segments.drain(..) {
            self.resets.send_segment(&segment);
        }
        if let Some(scanner) = &self.scanner {
            effects
                .scans
                .drain(..)
                .for_each(|chunk| scanner.submit(chunk));
            effects
                .abandoned
                .drain(..)
                .for_each(|ticket| scanner.abandon(ticket));
        }
        if let Some(files) = &self.files {
            effects.files.drain(..).for_each(|op| files.submit(op));
        }
        if effects.records.is_empty() {
            return Ok(0);
        }
        let records = std::mem::take(&mut effects.records);
        match self.events.try_send(records) {
            Ok(()) => Ok(0),
            Err(TrySendError::Full(records) | TrySendError::Disconnected(records)) => {
                Ok(records.len() as u64)
            }
        }
    }

    fn tell(&self, watched: &Watched, stage: &GatewayStage, lost: u64) {
        let (queue, resets) = (self.queue.counts(), self.resets.counts());
        let stats = stage.stats();
        watched.set(|report| {
            report.stats = stats;
            report.queue = queue;
            report.resets = resets;
            report.events_lost = lost;
        });
    }
}
