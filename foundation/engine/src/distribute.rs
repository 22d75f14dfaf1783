//! One reader, many workers: frames distributed by hash.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use linkweir_wire::Timestamp;

use crate::batch::Limit;
use crate::route::{Parts, Router};
use crate::seams::{Drops, Fault, InputCounts, Progress, Source, SourceError, SourceEvent};
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
    pub(crate) copies: AtomicU64,
    pub(crate) copied_bytes: AtomicU64,
    /// Latest capture time of what was distributed, nanoseconds since the epoch.
    latest: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    progress: Progress,
    drops: Drops,
    inputs: Vec<InputCounts>,
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

    /// What each of several interfaces gave and lost; known at the end.
    pub fn inputs(&self) -> Vec<InputCounts> {
        self.with(|seen| seen.inputs.clone())
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
    source: S,
    splitter: &mut impl Splitter,
    ports: &mut [P],
    limit: &Limit,
    state: &DispatchState,
) {
    read(source, splitter, &mut Ports::new(ports), limit, state);
}

/// Where the frames of a source go.
pub(crate) trait FrameOutlet<S> {
    /// Takes the frames of a batch.
    fn batch(
        &mut self,
        batch: &Batch<'_>,
        router: &mut Router<'_, impl Splitter>,
        state: &DispatchState,
    );

    /// Called after each event of the source; false when nobody reads any more.
    fn sent(&mut self, source: &mut S) -> bool;

    /// Takes what there is of packets of which parts are missing, as of [`Router::give_up`].
    fn give_up(
        &mut self,
        router: &mut Router<'_, impl Splitter>,
        now: Option<Timestamp>,
        state: &DispatchState,
    );
}

/// Reads a source to its end, or to a limit.
pub(crate) fn read<S: Source>(
    mut source: S,
    splitter: &mut impl Splitter,
    outlet: &mut impl FrameOutlet<S>,
    limit: &Limit,
    state: &DispatchState,
) {
    let mut router = Router::new(splitter, source.is_distributed());
    let mut is_read = true;
    while is_read && !limit.is_used_up() && !state.stop.load(Ordering::Relaxed) {
        let mut has_more = true;
        match source.next_event() {
            Ok(SourceEvent::Batch(batch)) => {
                let batch = limit.apply(batch);
                let times = batch.index().iter().map(|frame| frame.timestamp.as_nanos());
                let latest = times.max().unwrap_or_default();
                state.latest.fetch_max(latest, Ordering::AcqRel);
                outlet.batch(&batch, &mut router, state);
            }
            Ok(SourceEvent::Idle) => {
                if let Some(now) = source.now() {
                    outlet.give_up(&mut router, Some(now), state);
                }
            }
            Ok(SourceEvent::Fault(fault)) => state.with(|seen| seen.faults.push(fault)),
            Ok(SourceEvent::End) => has_more = false,
            Err(error) => {
                state.with(|seen| seen.error = Some(error));
                has_more = false;
            }
        }
        is_read = outlet.sent(&mut source) && has_more;
        let (progress, drops, parts) = (source.progress(), source.drops(), router.parts());
        state.with(|seen| (seen.progress, seen.drops, seen.parts) = (progress, drops, parts));
    }
    outlet.give_up(&mut router, None, state);
    let inputs = source.inputs();
    state.with(|seen| (seen.parts, seen.inputs) = (router.parts(), inputs));
}

/// The ports of all shards.
struct Ports<'p, P> {
    ports: &'p mut [P],
    shards: u32,
    is_read: bool,
}

impl<'p, P: Port> Ports<'p, P> {
    fn new(ports: &'p mut [P]) -> Self {
        Self {
            shards: u32::try_from(ports.len()).unwrap_or(u32::MAX),
            ports,
            is_read: true,
        }
    }

    #[inline]
    fn push(&mut self, frame: &Frame<'_>, hash: Option<u32>, state: &DispatchState) {
        let Some(hash) = hash else {
            for port in self.ports.iter_mut() {
                self.is_read |= port.push(frame);
            }
            return state.add_copies(self.shards.saturating_sub(1), frame.wire_len);
        };
        let shard = shard_of(hash, self.shards);
        if let Some(port) = self.ports.get_mut(shard as usize) {
            self.is_read |= port.push(frame);
        }
    }
}

impl<S, P: Port> FrameOutlet<S> for Ports<'_, P> {
    fn batch(
        &mut self,
        batch: &Batch<'_>,
        router: &mut Router<'_, impl Splitter>,
        state: &DispatchState,
    ) {
        self.is_read = false;
        for frame in batch.frames() {
            let is_distributed = router.take(&frame, |frame, hash| self.push(frame, hash, state));
            // Whether there is a reader shows in what goes.
            self.is_read |= !is_distributed;
        }
        self.ports.iter_mut().for_each(Port::flush);
    }

    fn sent(&mut self, _: &mut S) -> bool {
        self.is_read
    }

    fn give_up(
        &mut self,
        router: &mut Router<'_, impl Splitter>,
        now: Option<Timestamp>,
        state: &DispatchState,
    ) {
        router.give_up(now, |frame, hash| self.push(frame, hash, state));
        self.ports.iter_mut().for_each(Port::flush);
    }
}
