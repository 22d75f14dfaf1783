//! One thread for one queue of the kernel: packets to the stage, its effects to the world.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linkweir_engine::Effects;
use linkweir_engine::effect::{QueuedPacket, ScanReport};
use linkweir_files::{FileStore, FileStoreClient};
use linkweir_gateway::{GatewayStage, Invitations};
use linkweir_netfilter::{Queue, QueueError, ResetSender};
use linkweir_record::{GatewayBatch, GatewayKind, RecordBatch as _};
use linkweir_scan::{ScanClient, Scanner};
use linkweir_sys::wait::monotonic_ns;
use linkweir_wire::Timestamp;

use super::shared::{Shared, Watched};
use super::steps::StepTimer;
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
    waits_for_scans: bool,
) -> io::Result<Vec<JoinHandle<()>>> {
    let invitations = Arc::new(Invitations::default());
    let start = |(number, (queue, resets)): (usize, (Queue, ResetSender))| {
        let waker = queue.waker();
        let (ring, bell) = sync_channel(1);
        let ring = waits_for_scans.then_some(ring);
        let wake = move || {
            if let Some(ring) = &ring {
                // One that rings already is enough.
                let _rings = ring.try_send(());
            }
            waker.wake();
        };
        let worker = Worker {
            number,
            queue,
            resets,
            scanner: scanner.map(|scanner| scanner.client(wake)),
            files: files.map(FileStore::client),
            events: events.clone(),
            invitations: Arc::clone(&invitations),
            shared: Arc::clone(shared),
            clock,
            timer: StepTimer::default(),
            reports: Vec::new(),
            events_lost: 0,
            bell: waits_for_scans.then_some(bell),
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
    timer: StepTimer,
    /// Reports of the scanner; kept for its memory.
    reports: Vec<ScanReport>,
    /// Events that found no room.
    events_lost: u64,
    /// Rings when there are reports, where the queue waits for scans.
    bell: Option<Receiver<()>>,
}

/// Gives a packet to the stage, and times it where it is its turn.
fn give(
    packet: &QueuedPacket<'_>,
    received: (u64, Timestamp),
    timer: &mut StepTimer,
    stage: &mut GatewayStage,
    effects: &mut Effects<GatewayKind>,
) {
    if StepTimer::is_timed(packet.id) {
        timer.on_packet(packet, received, stage, effects);
    } else {
        stage.on_packet(packet, received.1, effects);
    }
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
        let mut told = clock::now();
        while !shared.is_stopping() {
            watched.beats.fetch_add(1, Ordering::Relaxed);
            if shared.policy.version() != version {
                version = shared.policy.version();
                stage.set_policy(shared.policy.get());
            }
            let wait = self.wait(&stage);
            if self.bell.is_some() {
                self.take_one_by_one(wait, watched, &mut stage, &mut effects)?;
            } else {
                self.take(wait, &mut stage, &mut effects)?;
            }
            self.go_on(&mut stage, &mut effects)?;
            let asked = shared.asked.load(Ordering::Relaxed);
            let is_asked = asked != watched.answered.load(Ordering::Relaxed);
            if self.timer.is_full() {
                self.timer.count(&mut watched.steps());
            }
            if is_asked || told.elapsed() >= EVERY {
                told = clock::now();
                self.tell(watched, &stage);
                self.timer.count(&mut watched.steps());
                watched.answered.store(asked, Ordering::Release);
            }
        }
        stage.finish(self.clock.now(), &mut effects);
        self.carry_out(&mut effects)?;
        self.tell(watched, &stage);
        self.timer.count(&mut watched.steps());
        Ok(())
    }

    /// Gives the packets that have come to the stage.
    fn take(
        &mut self,
        wait: Duration,
        stage: &mut GatewayStage,
        effects: &mut Effects<GatewayKind>,
    ) -> Result<(), QueueError> {
        // The clock is asked once for the packets that came together.
        let (clock, timer, arrived) = (self.clock, &mut self.timer, Cell::new(None));
        self.queue.receive(wait, |packet| {
            let received = arrived.get().unwrap_or_else(|| {
                let received = (monotonic_ns(), clock.now());
                arrived.set(Some(received));
                received
            });
            give(&packet, received, timer, stage, effects);
        })?;
        Ok(())
    }

    /// The same as a gateway would that knows no waiting packets, as the paper's Fig. 9b: as long as a scan goes
    /// on, the queue waits.
    fn take_one_by_one(
        &mut self,
        wait: Duration,
        watched: &Watched,
        stage: &mut GatewayStage,
        effects: &mut Effects<GatewayKind>,
    ) -> Result<(), QueueError> {
        let mut packets = Vec::new();
        // Their bytes belong to the queue, which is wanted for the answers.
        self.queue.receive(wait, |packet| {
            packets.push((
                packet.bytes.to_vec(),
                QueuedPacket {
                    bytes: &[],
                    ..packet
                },
            ));
        })?;
        let received_ns = monotonic_ns();
        for (bytes, packet) in &packets {
            let packet = QueuedPacket { bytes, ..*packet };
            let received = (received_ns, self.clock.now());
            give(&packet, received, &mut self.timer, stage, effects);
            self.carry_out(effects)?;
            while stage.awaits_scan() && !self.shared.is_stopping() {
                watched.beats.fetch_add(1, Ordering::Relaxed);
                if let Some(bell) = &self.bell {
                    let _is_time_up = bell.recv_timeout(PATIENCE);
                }
                self.go_on(stage, effects)?;
            }
        }
        Ok(())
    }

    /// Tells the stage what the scanner has said, and the time; does what it asks for.
    fn go_on(
        &mut self,
        stage: &mut GatewayStage,
        effects: &mut Effects<GatewayKind>,
    ) -> Result<(), QueueError> {
        if let Some(scanner) = &self.scanner {
            scanner.take_reports(&mut self.reports);
        }
        let now = self.clock.now();
        for report in self.reports.drain(..) {
            stage.on_report(&report, now, effects);
        }
        stage.on_tick(now, effects);
        self.carry_out(effects)
    }

    fn wait(&self, stage: &GatewayStage) -> Duration {
        let Some(deadline) = stage.next_deadline() else {
            return PATIENCE;
        };
        let left = deadline.nanos_since(self.clock.now());
        PATIENCE.min(Duration::from_nanos(left))
    }

    /// Does what the stage asks for.
    fn carry_out(&mut self, effects: &mut Effects<GatewayKind>) -> Result<(), QueueError> {
        if !effects.answers.is_empty() {
            self.timer.on_answers(&effects.answers);
            self.queue.answer(&effects.answers)?;
            self.timer.on_sent();
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
            return Ok(());
        }
        let records = std::mem::take(&mut effects.records);
        if let Err(TrySendError::Full(records) | TrySendError::Disconnected(records)) =
            self.events.try_send(records)
        {
            self.events_lost += records.len() as u64;
        }
        Ok(())
    }

    fn tell(&self, watched: &Watched, stage: &GatewayStage) {
        let (queue, resets) = (self.queue.counts(), self.resets.counts());
        let stats = stage.stats();
        watched.set(|report| {
            report.stats = stats;
            report.queue = queue;
            report.resets = resets;
            report.events_lost = self.events_lost;
        });
    }
}
