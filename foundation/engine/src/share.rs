//! One reader, many workers, and nothing copied: what was read is shared, and each worker gets the index of its frames.
//!
//! ```text
//! file ─► buffer ─┬► index of worker 0 ─► Pieces ─► worker 0
//!                 └► index of worker 1 ─► Pieces ─► worker 1
//! ```
//! For stages whose analysis takes longer than reading; otherwise threads take turns (`turns`).
//!
//! For sources that own the buffer they read into. Who is last to read a buffer leaves it to the reader, which
//! takes it again; at most as many are under way as the queues of all workers hold.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use linkweir_wire::Timestamp;

use crate::batch::Limit;
use crate::distribute::{DispatchState, FrameOutlet, read};
use crate::route::Router;
use crate::seams::{Source, SourceError, SourceEvent};
use crate::split::{Splitter, shard_of};
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
pub struct Piece {
    buffer: Arc<Vec<u8>>,
    frames: Vec<FrameRef>,
}

/// The dispatcher's end of the queue of a worker.
#[derive(Debug)]
pub struct PieceQueue(SyncSender<Piece>);

/// The worker's end: a source.
#[derive(Debug)]
pub struct Pieces {
    inbox: Receiver<Piece>,
    piece: Option<Piece>,
}

/// A queue of at most so many pieces for each of `workers`.
#[must_use]
pub fn piece_queues(workers: usize, pieces: usize) -> (Vec<PieceQueue>, Vec<Pieces>) {
    let queues = (0..workers).map(|_| {
        let (outbox, inbox) = sync_channel(pieces);
        (PieceQueue(outbox), Pieces { inbox, piece: None })
    });
    queues.unzip()
}

/// As [`distribute`](crate::distribute()), for a source whose buffers can be shared: no frame is copied.
pub fn distribute_shared<S: Detach>(
    source: S,
    splitter: &mut impl Splitter,
    queues: &[PieceQueue],
    limit: &Limit,
    state: &DispatchState,
) {
    read(source, splitter, &mut Sharing::new(queues), limit, state);
}

impl Source for Pieces {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        // Before the wait: the reader may be in need of it.
        self.piece = None;
        match self.inbox.recv_timeout(IDLE) {
            Ok(piece) => {
                let Piece { buffer, frames } = self.piece.insert(piece);
                Ok(SourceEvent::Batch(Batch::new(buffer, frames)))
            }
            Err(RecvTimeoutError::Timeout) => Ok(SourceEvent::Idle),
            Err(RecvTimeoutError::Disconnected) => Ok(SourceEvent::End),
        }
    }

    fn is_distributed(&self) -> bool {
        true
    }
}

/// What waits for the buffer of the batch, for one worker, in order.
#[derive(Debug)]
enum Waiting {
    /// Frames in the buffer.
    There(Vec<FrameRef>),
    /// A packet that came in parts, in a buffer of its own.
    Apart(Piece),
}

/// Distributes by handing over buffers.
#[derive(Debug)]
pub(crate) struct Sharing<'p> {
    queues: &'p [PieceQueue],
    waiting: Vec<Vec<Waiting>>,
    /// Buffers that were given, the oldest first.
    given: VecDeque<Arc<Vec<u8>>>,
    shards: u32,
    has_batch: bool,
}

impl<'p> Sharing<'p> {
    pub(crate) fn new(queues: &'p [PieceQueue]) -> Self {
        Self {
            queues,
            waiting: queues.iter().map(|_| Vec::new()).collect(),
            given: VecDeque::new(),
            shards: u32::try_from(queues.len()).unwrap_or(u32::MAX),
            has_batch: false,
        }
    }

    fn push(
        &mut self,
        frame: &Frame<'_>,
        place: Option<FrameRef>,
        hash: Option<u32>,
        state: &DispatchState,
    ) {
        let Some(hash) = hash else {
            for waiting in &mut self.waiting {
                add(waiting, frame, place);
            }
            return state.add_copies(self.shards.saturating_sub(1), frame.wire_len);
        };
        if let Some(waiting) = self.waiting.get_mut(shard_of(hash, self.shards) as usize) {
            add(waiting, frame, place);
        }
    }

    /// A buffer that all have read; an empty one where there is none.
    fn spare(&mut self) -> Vec<u8> {
        let is_free = self
            .given
            .front()
            .is_some_and(|buffer| Arc::strong_count(buffer) == 1);
        let oldest = if is_free {
            self.given.pop_front()
        } else {
            None
        };
        oldest.and_then(Arc::into_inner).unwrap_or_default()
    }

    /// Sends what waits; false where there was something and nobody takes it.
    fn send(&mut self, buffer: &Arc<Vec<u8>>) -> bool {
        let (mut is_sent, mut is_taken) = (false, false);
        for (queue, waiting) in self.queues.iter().zip(&mut self.waiting) {
            for one in waiting.drain(..) {
                let piece = match one {
                    Waiting::There(frames) => Piece {
                        buffer: Arc::clone(buffer),
                        frames,
                    },
                    Waiting::Apart(piece) => piece,
                };
                is_sent = true;
                is_taken |= queue.0.send(piece).is_ok();
            }
        }
        is_taken || !is_sent
    }
}

/// Puts a frame behind the others of its worker: at its place in the buffer of the batch, or as bytes of its own.
#[inline]
fn add(waiting: &mut Vec<Waiting>, frame: &Frame<'_>, place: Option<FrameRef>) {
    match (place, waiting.last_mut()) {
        (Some(place), Some(Waiting::There(frames))) => frames.push(place),
        (Some(place), _) => waiting.push(Waiting::There(vec![place])),
        (None, _) => waiting.push(Waiting::Apart(Piece {
            frames: vec![FrameRef {
                timestamp: frame.timestamp,
                offset: 0,
                captured_len: u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX),
                wire_len: frame.wire_len,
                link: frame.link,
                interface: frame.interface,
            }],
            buffer: Arc::new(frame.bytes.to_vec()),
        })),
    }
}

impl<S: Detach> FrameOutlet<S> for Sharing<'_> {
    fn batch(
        &mut self,
        batch: &Batch<'_>,
        router: &mut Router<'_, impl Splitter>,
        state: &DispatchState,
    ) {
        self.has_batch = true;
        for (frame, place) in batch.frames().zip(batch.index()) {
            router.take(&frame, |given, hash| {
                // Anything else was made of parts, of which this was the last.
                let place = std::ptr::eq(given, &frame).then_some(*place);
                self.push(given, place, hash, state);
            });
        }
    }

    fn sent(&mut self, source: &mut S) -> bool {
        if !std::mem::take(&mut self.has_batch) {
            return true;
        }
        let spare = self.spare();
        let buffer = Arc::new(source.detach(spare));
        let is_read = self.send(&buffer);
        self.given.push_back(buffer);
        is_read
    }

    fn give_up(
        &mut self,
        router: &mut Router<'_, impl Splitter>,
        now: Option<Timestamp>,
        state: &DispatchState,
    ) {
        router.give_up(now, |frame, hash| self.push(frame, None, hash, state));
        self.send(&Arc::default());
    }
}

impl DispatchState {
    /// Counts the copies beyond the first of a frame that went to all.
    pub(crate) fn add_copies(&self, others: u32, wire_len: u32) {
        let others = u64::from(others);
        self.copies.fetch_add(others, Ordering::Relaxed);
        self.copied_bytes.fetch_add(
            others.saturating_mul(u64::from(wire_len)),
            Ordering::Relaxed,
        );
    }
}
