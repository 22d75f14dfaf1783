//! Many workers, no reader, and nothing copied: whoever has nothing else to do reads on, and each worker gets the index of its
//! frames.
//!
//! ```text
//! file ─► buffer ─► keys ─► places ─┬► index of worker 0 ─► worker 0
//!  one at a time │ all at once │ in order └► index of worker 1 ─► worker 1
//! ```
//! A thread that only reads would be one more than there are cores, would copy all bytes from the page cache on one of them, and would
//! leave every buffer in the cache of a core that does not work on it. So the workers take turns: one reads a buffer and lets
//! the next one read; what can be computed of its frames without memory ([`Splitter::key`]) is computed while the next one reads;
//! only where they go ([`Splitter::by_key`]) is decided buffer by buffer in the order of the trace, so that it does not depend
//! on who is faster.
//!
//! For sources that own the buffer they read into. Who is last to read a buffer leaves it to the next who reads; at most so many
//! are under way as were agreed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linkweir_wire::Timestamp;

use crate::batch::Limit;
use crate::distribute::DispatchState;
use crate::route::Router;
use crate::seams::{Source, SourceError, SourceEvent};
use crate::split::{Splitter, key_of, shard_of};
use crate::{Batch, Frame, FrameRef};

/// After this long without a frame the caller is notified.
const IDLE: Duration = Duration::from_millis(100);

/// A source that can give away the buffer in which its frames lie.
pub trait Detach: Source {
    /// Gives the buffer of the last batch and reads on into `spare`, one that was given before, or into a new one where that
    /// does not have its size.
    fn detach(&mut self, spare: Vec<u8>) -> Vec<u8>;
}

/// Frames for one worker, and the buffer in which they lie.
#[derive(Debug)]
struct Piece {
    buffer: Arc<Vec<u8>>,
    frames: Vec<FrameRef>,
}

/// What one worker gets of a trace that is shared: a source.
#[derive(Debug)]
pub struct Pieces<S, P> {
    trace: Arc<Trace<S, P>>,
    worker: usize,
    piece: Option<Piece>,
    /// Whether it has taken something out of the trace that all others wait for.
    is_needed: bool,
}

/// A trace that its workers read.
#[derive(Debug)]
struct Trace<S, P> {
    hub: Mutex<Hub<S, P>>,
    has_changed: Condvar,
    state: Arc<DispatchState>,
    /// Pieces that a worker leaves for later while it reads on.
    ahead: usize,
}

/// What is held only to take something out or to put it in.
#[derive(Debug)]
struct Hub<S, P> {
    /// Nothing while somebody reads, and after the end.
    reader: Option<Box<Reader<S>>>,
    /// Nothing while somebody distributes.
    order: Option<Box<Order<P>>>,
    /// How much was read and distributed, in events of the source.
    read: u64,
    distributed: u64,
    /// What was read and waits for what comes before it, by number.
    waiting: BTreeMap<u64, Event>,
    /// The pieces of each worker; nothing where it takes no more.
    inboxes: Vec<Option<VecDeque<Piece>>>,
    has_ended: bool,
    /// Workers that wait for a change.
    sleeping: usize,
}

/// An event of the source.
#[derive(Debug)]
enum Event {
    Frames {
        buffer: Arc<Vec<u8>>,
        frames: Vec<FrameRef>,
        /// The key of each frame, where it has one.
        keys: Vec<Option<u32>>,
    },
    Idle(Option<Timestamp>),
    Nothing,
    End,
}

/// Shares a trace among so many workers, with which each worker gets the frames that `splitter` gives it, IP fragments as the packets
/// they make. Of `limit` packets no more are read. A worker reads on while at most `ahead` buffers wait for it. When all was
/// distributed, `on_end` gets the splitter.
#[must_use]
pub fn share<S: Detach, P: Splitter>(
    source: S,
    splitter: P,
    workers: usize,
    limit: Limit,
    ahead: usize,
    on_end: fn(&P),
) -> (Arc<DispatchState>, Vec<Pieces<S, P>>) {
    let state = Arc::new(DispatchState::default());
    let ahead = ahead.max(1);
    let hub = Hub {
        order: Some(Box::new(Order {
            router: Router::new(splitter, source.is_distributed()),
            waiting: (0..workers).map(|_| Vec::new()).collect(),
            shards: u32::try_from(workers).unwrap_or(u32::MAX),
            on_end,
        })),
        reader: Some(Box::new(Reader {
            source,
            limit,
            given: Vec::new(),
            most_given: workers.saturating_mul(ahead).saturating_add(1),
        })),
        read: 0,
        distributed: 0,
        waiting: BTreeMap::new(),
        inboxes: (0..workers).map(|_| Some(VecDeque::new())).collect(),
        has_ended: false,
        sleeping: 0,
    };
    let trace = Arc::new(Trace {
        hub: Mutex::new(hub),
        has_changed: Condvar::new(),
        state: Arc::clone(&state),
        ahead,
    });
    let pieces = (0..workers).map(|worker| Pieces {
        trace: Arc::clone(&trace),
        worker,
        piece: None,
        is_needed: false,
    });
    (state, pieces.collect())
}

impl<S: Detach, P: Splitter> Source for Pieces<S, P> {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        // Before anything is read: that needs the buffer.
        self.piece = None;
        let trace = Arc::clone(&self.trace);
        let mut hub = trace.hub();
        let mut is_idle = false;
        loop {
            if let Some((order, event)) = hub.next_to_distribute() {
                hub = self.distribute(&trace, hub, order, event);
                continue;
            }
            let own = hub.inboxes.get_mut(self.worker).and_then(Option::as_mut);
            let at_hand = own.map_or(0, |own| own.len());
            // Reading first keeps the others busy; where nothing comes, what waits here does not wait any longer.
            let may_read = at_hand < trace.ahead && !is_idle;
            if may_read && let Some(reader) = hub.reader.take_if(|reader| reader.has_room()) {
                (hub, is_idle) = self.read(&trace, hub, reader);
                continue;
            }
            if let Some(piece) = hub.next_piece(self.worker) {
                drop(hub);
                let Piece { buffer, frames } = self.piece.insert(piece);
                return Ok(SourceEvent::Batch(Batch::new(buffer, frames)));
            }
            if hub.has_ended {
                return Ok(SourceEvent::End);
            }
            if is_idle {
                return Ok(SourceEvent::Idle);
            }
            (hub, is_idle) = trace.wait(hub);
        }
    }

    fn is_distributed(&self) -> bool {
        true
    }
}

impl<S: Detach, P: Splitter> Pieces<S, P> {
    /// Reads the next event; says whether nothing has come for a while.
    fn read<'t>(
        &mut self,
        trace: &'t Trace<S, P>,
        mut hub: MutexGuard<'t, Hub<S, P>>,
        mut reader: Box<Reader<S>>,
    ) -> (MutexGuard<'t, Hub<S, P>>, bool) {
        let number = hub.read;
        hub.read += 1;
        self.is_needed = true;
        drop(hub);
        let mut event = reader.read(&trace.state);
        let is_idle = matches!(event, Event::Idle(_));
        if !matches!(event, Event::End) {
            let mut hub = trace.hub();
            hub.reader = Some(reader);
            trace.wake(hub);
        }
        event.find_keys::<P>();
        hub = trace.hub();
        hub.waiting.insert(number, event);
        self.is_needed = false;
        (hub, is_idle)
    }

    /// Distributes what is next in order.
    fn distribute<'t>(
        &mut self,
        trace: &'t Trace<S, P>,
        mut hub: MutexGuard<'t, Hub<S, P>>,
        mut order: Box<Order<P>>,
        event: Event,
    ) -> MutexGuard<'t, Hub<S, P>> {
        self.is_needed = true;
        drop(hub);
        let is_end = matches!(event, Event::End);
        let buffer = order.take(event, &trace.state);
        hub = trace.hub();
        for (inbox, waiting) in hub.inboxes.iter_mut().zip(&mut order.waiting) {
            let pieces = waiting.drain(..).map(|one| one.into_piece(&buffer));
            let pieces = pieces.filter(|piece| !piece.frames.is_empty());
            if let Some(inbox) = inbox {
                inbox.extend(pieces);
            }
        }
        hub.order = Some(order);
        hub.distributed += 1;
        hub.has_ended |= is_end;
        self.is_needed = false;
        trace.wake(hub);
        trace.hub()
    }
}

impl<S, P> Drop for Pieces<S, P> {
    /// Who takes no more must not be waited for.
    fn drop(&mut self) {
        self.piece = None;
        let mut hub = self.trace.hub();
        if let Some(inbox) = hub.inboxes.get_mut(self.worker) {
            *inbox = None;
        }
        hub.has_ended |= self.is_needed;
        self.trace.wake(hub);
    }
}

impl<S, P> Trace<S, P> {
    fn hub(&self) -> MutexGuard<'_, Hub<S, P>> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the hub, in which something has changed.
    fn wake(&self, hub: MutexGuard<'_, Hub<S, P>>) {
        let has_waiting = hub.sleeping > 0;
        drop(hub);
        if has_waiting {
            self.has_changed.notify_all();
        }
    }

    /// Waits for a change; says whether there was none for a while.
    fn wait<'t>(&'t self, mut hub: MutexGuard<'t, Hub<S, P>>) -> (MutexGuard<'t, Hub<S, P>>, bool) {
        hub.sleeping += 1;
        let (mut hub, timeout) = self
            .has_changed
            .wait_timeout(hub, IDLE)
            .unwrap_or_else(PoisonError::into_inner);
        hub.sleeping -= 1;
        (hub, timeout.timed_out())
    }
}

impl<S, P> Hub<S, P> {
    fn next_piece(&mut self, worker: usize) -> Option<Piece> {
        self.inboxes.get_mut(worker)?.as_mut()?.pop_front()
    }

    fn next_to_distribute(&mut self) -> Option<(Box<Order<P>>, Event)> {
        self.order.as_ref()?;
        let event = self.waiting.remove(&self.distributed)?;
        Some((self.order.take()?, event))
    }
}

/// Reads the source.
#[derive(Debug)]
struct Reader<S> {
    source: S,
    limit: Limit,
    /// Buffers that were given.
    given: Vec<Arc<Vec<u8>>>,
    most_given: usize,
}

impl<S> Reader<S> {
    fn has_room(&self) -> bool {
        self.given.len() < self.most_given || self.free().is_some()
    }

    /// A buffer that all have read, the last one that was given: most of it may be in a cache.
    fn free(&self) -> Option<usize> {
        self.given
            .iter()
            .rposition(|buffer| Arc::strong_count(buffer) == 1)
    }
}

impl<S: Detach> Reader<S> {
    fn read(&mut self, state: &DispatchState) -> Event {
        let event = if self.limit.is_used_up() || state.is_stopped() {
            Event::End
        } else {
            self.next_event(state)
        };
        state.set_progress(self.source.progress(), self.source.drops());
        if matches!(event, Event::End) {
            state.set_inputs(self.source.inputs());
        }
        event
    }

    fn next_event(&mut self, state: &DispatchState) -> Event {
        let frames = match self.source.next_event() {
            Ok(SourceEvent::Batch(batch)) => {
                let batch = self.limit.apply(batch);
                state.add_latest(&batch);
                batch.index().to_vec()
            }
            Ok(SourceEvent::Idle) => return Event::Idle(self.source.now()),
            Ok(SourceEvent::Fault(fault)) => {
                state.add_fault(fault);
                return Event::Nothing;
            }
            Ok(SourceEvent::End) => return Event::End,
            Err(error) => {
                state.set_error(error);
                return Event::End;
            }
        };
        let spare = self.free().map(|place| self.given.remove(place));
        let spare = spare.and_then(Arc::into_inner).unwrap_or_default();
        let buffer = Arc::new(self.source.detach(spare));
        self.given.push(Arc::clone(&buffer));
        Event::Frames {
            buffer,
            frames,
            keys: Vec::new(),
        }
    }
}

impl Event {
    /// Computes what needs no memory, while others read on.
    fn find_keys<P: Splitter>(&mut self) {
        if let Self::Frames {
            buffer,
            frames,
            keys,
        } = self
        {
            keys.extend(Batch::new(buffer, frames).frames().map(key_of::<P>));
        }
    }
}

/// Distributes what was read, in order.
#[derive(Debug)]
struct Order<P> {
    router: Router<P>,
    /// What goes to each worker.
    waiting: Vec<Vec<Waiting>>,
    shards: u32,
    on_end: fn(&P),
}

/// What waits for the buffer of the batch, for one worker, in order.
#[derive(Debug)]
enum Waiting {
    /// Frames in the buffer.
    There(Vec<FrameRef>),
    /// A packet that came in parts, in a buffer of its own.
    Apart(Piece),
}

impl Waiting {
    fn into_piece(self, buffer: &Arc<Vec<u8>>) -> Piece {
        match self {
            Self::There(frames) => Piece {
                buffer: Arc::clone(buffer),
                frames,
            },
            Self::Apart(piece) => piece,
        }
    }
}

impl<P: Splitter> Order<P> {
    /// Distributes an event; gives the buffer in which its frames lie.
    fn take(&mut self, event: Event, state: &DispatchState) -> Arc<Vec<u8>> {
        let Self {
            router,
            waiting,
            shards,
            on_end,
        } = self;
        let give_up = |frame: &Frame<'_>, hash| {
            push(waiting, *shards, (frame, None), hash, state);
        };
        let buffer = match event {
            Event::Frames {
                buffer,
                frames,
                keys,
            } => {
                for waiting in waiting.iter_mut() {
                    waiting.push(Waiting::There(Vec::with_capacity(frames.len())));
                }
                for (place, key) in frames.iter().zip(keys) {
                    if let Some(hash) = key.and_then(|key| router.by_key(key)) {
                        let shard = shard_of(hash, *shards) as usize;
                        if let Some(waiting) = waiting.get_mut(shard) {
                            add_place(waiting, *place);
                        }
                        continue;
                    }
                    for frame in Batch::new(&buffer, std::slice::from_ref(place)).frames() {
                        router.take(&frame, |given, hash| {
                            // Anything else was made of parts, of which this was the last.
                            let place = std::ptr::eq(given, &frame).then_some(*place);
                            push(waiting, *shards, (given, place), hash, state);
                        });
                    }
                }
                buffer
            }
            Event::Idle(Some(now)) => {
                router.give_up(Some(now), give_up);
                Arc::default()
            }
            Event::End => {
                router.give_up(None, give_up);
                on_end(router.splitter());
                Arc::default()
            }
            Event::Idle(None) | Event::Nothing => Arc::default(),
        };
        state.set_parts(router.parts());
        buffer
    }
}

/// Puts a frame behind the others of its worker: at its place in the buffer of the batch, or as bytes of its own.
#[inline]
fn push(
    waiting: &mut [Vec<Waiting>],
    shards: u32,
    (frame, place): (&Frame<'_>, Option<FrameRef>),
    hash: Option<u32>,
    state: &DispatchState,
) {
    let Some(hash) = hash else {
        for waiting in waiting {
            add(waiting, frame, place);
        }
        return state.add_copies(shards.saturating_sub(1), frame.wire_len);
    };
    if let Some(waiting) = waiting.get_mut(shard_of(hash, shards) as usize) {
        add(waiting, frame, place);
    }
}

fn add(waiting: &mut Vec<Waiting>, frame: &Frame<'_>, place: Option<FrameRef>) {
    if let Some(place) = place {
        return add_place(waiting, place);
    }
    waiting.push(Waiting::Apart(Piece {
        frames: vec![FrameRef {
            timestamp: frame.timestamp,
            offset: 0,
            captured_len: u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX),
            wire_len: frame.wire_len,
            link: frame.link,
            interface: frame.interface,
        }],
        buffer: Arc::new(frame.bytes.to_vec()),
    }));
}

#[inline]
fn add_place(waiting: &mut Vec<Waiting>, place: FrameRef) {
    match waiting.last_mut() {
        Some(Waiting::There(frames)) => frames.push(place),
        _ => waiting.push(Waiting::There(vec![place])),
    }
}
