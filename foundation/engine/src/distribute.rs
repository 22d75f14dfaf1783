//! One reader, many workers: frames distributed by hash.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use linkweir_wire::Timestamp;

use crate::batch::Limit;
use crate::route::{Parts, Router};
use crate::seams::{Drops, Fault, Progress, Source, SourceError, SourceEvent};
use crate::split::{Splitter, shard_of};
use crate::{Batch, Frame};

/// Where a dispatcher puts the frames of one shard.
pub trait Port {
    /// Takes a frame; waits where there is no room. False where it will not be read any more.
    fn push(&mut self, frame: &Frame<'_>) -> bool;

    /// Lets the reader see what was pushed.
    fn flush(&mut self);
}

/// What a dispatcher and its observers have in common.
#[derive(Debug, Default)]
pub struct DispatchState {
    stop: AtomicBool,
    /// Copies of frames that went to more than one shard, and their bytes.
    copies: AtomicU64,
    copied_bytes: AtomicU64,
    /// Latest capture time of what was distributed, nanoseconds since the epoch.
    latest: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    progress: Progress,
    drops: Drops,
    parts: Parts,
    faults: Vec<Fault>,
    error: Option<SourceError>,
}

impl DispatchState {
    /// Asks the dispatcher to read no more.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Copies beyond the first of frames that went to all shards, and their bytes.
    #[must_use]
    pub fn copies(&self) -> (u64, u64) {
        (
            self.copies.load(Ordering::Relaxed),
            self.copied_bytes.load(Ordering::Relaxed),
        )
    }

    /// Latest capture time of what was distributed; complete when the ports were dropped.
    #[must_use]
    pub fn latest(&self) -> Timestamp {
        Timestamp::from_nanos(self.latest.load(Ordering::Acquire))
    }

    fn with<R>(&self, then: impl FnOnce(&mut Seen) -> R) -> R {
        then(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How far the reading has come.
    pub fn progress(&self) -> Progress {
        self.with(|seen| seen.progress)
    }

    /// What the source lost.
    pub fn drops(&self) -> Drops {
        self.with(|seen| seen.drops)
    }

    /// What came in IP fragments: the frames of these are not those that were distributed.
    pub fn parts(&self) -> Parts {
        self.with(|seen| seen.parts)
    }

    /// Faults of the input since the last call.
    pub fn take_faults(&self) -> Vec<Fault> {
        self.with(|seen| std::mem::take(&mut seen.faults))
    }

    /// Adds what a worker says of its own source.
    pub(crate) fn add_fault(&self, fault: Fault) {
        self.with(|seen| seen.faults.push(fault));
    }

    /// What ended the reading before its time, if anything.
    pub fn take_error(&self) -> Option<SourceError> {
        self.with(|seen| seen.error.take())
    }
}

/// Reads `source` to its end, its limit or until stopped, and distributes its frames to `ports` by the
/// hash that `splitter` gives them, IP fragments as the packets they make. Dropping the ports tells
/// their readers that this was all.
pub fn distribute<S: Source, P: Port>(
    mut source: S,
    splitter: &mut impl Splitter,
    ports: &mut [P],
    limit: &Limit,
    state: &DispatchState,
) {
    let mut router = Router::new(splitter, source.is_distributed());
    let mut is_read = true;
    while is_read && !limit.is_used_up() && !state.stop.load(Ordering::Relaxed) {
        match source.next_event() {
            Ok(SourceEvent::Batch(batch)) => {
                is_read = distribute_batch(&limit.apply(batch), &mut router, ports, state);
            }
            Ok(SourceEvent::Idle) => {
                if let Some(now) = source.now() {
                    Outlets::new(ports, state).give_up(&mut router, Some(now));
                }
            }
            Ok(SourceEvent::Fault(fault)) => state.with(|seen| seen.faults.push(fault)),
            Ok(SourceEvent::End) => is_read = false,
            Err(error) => {
                state.with(|seen| seen.error = Some(error));
                is_read = false;
            }
        }
        let (progress, drops, parts) = (source.progress(), source.drops(), router.parts());
        state.with(|seen| (seen.progress, seen.drops, seen.parts) = (progress, drops, parts));
    }
    Outlets::new(ports, state).give_up(&mut router, None);
    state.with(|seen| seen.parts = router.parts());
}

/// False when no port is read any more.
fn distribute_batch<P: Port>(
    batch: &Batch<'_>,
    router: &mut Router<'_, impl Splitter>,
    ports: &mut [P],
    state: &DispatchState,
) -> bool {
    let mut outlets = Outlets::new(ports, state);
    let mut latest = 0;
    for frame in batch.frames() {
        latest = latest.max(frame.timestamp.as_nanos());
        let is_distributed = router.take(&frame, |frame, hash| outlets.push(frame, hash));
        // Whether there is a reader shows in what goes.
        outlets.is_read |= !is_distributed;
    }
    state.latest.fetch_max(latest, Ordering::AcqRel);
    outlets.ports.iter_mut().for_each(Port::flush);
    outlets.is_read
}

/// The ports of all shards.
struct Outlets<'p, P> {
    ports: &'p mut [P],
    state: &'p DispatchState,
    shards: u32,
    is_read: bool,
}

impl<'p, P: Port> Outlets<'p, P> {
    fn new(ports: &'p mut [P], state: &'p DispatchState) -> Self {
        Self {
            shards: u32::try_from(ports.len()).unwrap_or(u32::MAX),
            ports,
            state,
            is_read: false,
        }
    }

    #[inline]
    fn push(&mut self, frame: &Frame<'_>, hash: Option<u32>) {
        let Some(hash) = hash else {
            return self.push_to_all(frame);
        };
        let shard = shard_of(hash, self.shards);
        if let Some(port) = self.ports.get_mut(shard as usize) {
            self.is_read |= port.push(frame);
        }
    }

    fn push_to_all(&mut self, frame: &Frame<'_>) {
        for port in self.ports.iter_mut() {
            self.is_read |= port.push(frame);
        }
        let others = u64::from(self.shards.saturating_sub(1));
        let bytes = others.saturating_mul(u64::from(frame.wire_len));
        self.state.copies.fetch_add(others, Ordering::Relaxed);
        self.state.copied_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What there is of packets of which parts are missing, as of [`Router::give_up`].
    fn give_up(&mut self, router: &mut Router<'_, impl Splitter>, now: Option<Timestamp>) {
        router.give_up(now, |frame, hash| self.push(frame, hash));
        self.ports.iter_mut().for_each(Port::flush);
    }
}
