//! The end of a ring that frames come out of: a [`Source`].

use std::time::Duration;

use linkweir_engine::{
    Batch, Drops, Fault, FaultKind, FrameRef, Progress, Source, SourceError, SourceEvent,
};
use linkweir_sys::shm::{FINISHED, RUNNING, RingReader};
use linkweir_wire::Timestamp;

use crate::frame::{decode, room};
use crate::producer::notes;

/// Bytes of a batch at most: what stays in a second-level cache between two passes over it.
const BATCH_BYTES: usize = 256 << 10;
/// Frames of a batch at most.
const BATCH_FRAMES: usize = 2048;
/// After this long without a frame the caller is notified.
const IDLE: Duration = Duration::from_millis(100);

/// What there is to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// `pending` bytes are indexed in `frames`.
    Frames,
    /// Nothing came for a while.
    Idle,
    /// Everything was read.
    End,
    /// Nothing more will come, though it should have.
    Broken(&'static str),
}

/// Takes frames out of a ring. The frames of a batch borrow from the ring; their space goes back to
/// the producer with the next call.
///
/// A consumer that ends between two calls leaves the frames of its last batch to the next one.
#[derive(Debug)]
pub struct Consumer {
    name: String,
    reader: RingReader,
    frames: Vec<FrameRef>,
    /// Bytes of the ring that the last batch borrows.
    pending: usize,
    /// Frames done with, by this consumer and those before it on this ring.
    taken: u64,
    /// What the producer had dropped when this consumer came.
    dropped_before: u64,
    /// The producer's clock when the ring was last looked at.
    clock: u64,
    has_ended: bool,
}

impl Consumer {
    pub(crate) fn new(reader: RingReader, name: String) -> Self {
        Self {
            name,
            frames: Vec::with_capacity(BATCH_FRAMES),
            pending: 0,
            taken: reader.note(notes::TAKEN),
            dropped_before: reader.writer_note(notes::DROPPED),
            clock: 0,
            has_ended: false,
            reader,
        }
    }

    /// Gives back what the last batch borrowed.
    pub(crate) fn give_back(&mut self) {
        if self.pending > 0 {
            self.taken += self.frames.len() as u64;
            // First the number, then the space: the number is never less than the space says.
            self.reader.set_note(notes::TAKEN, self.taken);
            self.reader.release(self.pending);
            self.pending = 0;
        }
        self.frames.clear();
    }

    /// Finds what is next, waiting up to `limit` for it.
    pub(crate) fn step(&mut self, limit: Duration) -> Step {
        self.give_back();
        if self.has_ended {
            return Step::End;
        }
        let mut may_wait = true;
        loop {
            // In this order: frames captured before this time, or before the end, are there.
            self.clock = self.reader.writer_note(notes::CLOCK);
            let state = self.reader.state();
            match self.index() {
                Err(()) => {
                    self.has_ended = true;
                    return Step::Broken(
                        "the ring holds something other than a frame; the rest of the feed is lost",
                    );
                }
                Ok(()) if self.pending > 0 => return Step::Frames,
                Ok(()) => {}
            }
            if state != RUNNING {
                self.has_ended = true;
                return if state == FINISHED {
                    Step::End
                } else {
                    Step::Broken("the feeder ended before its input did")
                };
            }
            if !may_wait {
                return Step::Idle;
            }
            may_wait = false;
            if self.reader.wait_for_data(limit).is_err() {
                // The next look says so.
            }
        }
    }

    /// Indexes what is readable, up to a batch.
    fn index(&mut self) -> Result<(), ()> {
        let position = self.reader.position();
        let bytes = self.reader.readable().map_err(|_| ())?;
        let mut rest = bytes;
        let mut offset = 0;
        while offset < BATCH_BYTES && self.frames.len() < BATCH_FRAMES && !rest.is_empty() {
            let Some(header) = decode(rest, position + offset as u64) else {
                // What came before it is good.
                break;
            };
            let len = room(header.captured_len as usize);
            self.frames.push(FrameRef {
                timestamp: header.timestamp,
                offset: u32::try_from(offset + crate::frame::HEADER).map_err(|_| ())?,
                captured_len: header.captured_len,
                wire_len: header.wire_len,
                link: header.link,
                interface: header.interface,
            });
            offset += len;
            rest = rest.get(len..).ok_or(())?;
        }
        self.pending = offset;
        if offset == 0 && !bytes.is_empty() {
            return Err(());
        }
        Ok(())
    }

    /// The batch that [`Step::Frames`] announced.
    pub(crate) fn batch(&mut self) -> SourceEvent<'_> {
        match self.reader.readable() {
            Ok(bytes) => SourceEvent::Batch(Batch::new(bytes, &self.frames)),
            Err(_) => SourceEvent::Idle,
        }
    }

    pub(crate) fn fault(&self, message: &str) -> Fault {
        Fault {
            input: self.name.clone(),
            offset: None,
            kind: FaultKind::Damaged,
            message: message.to_owned(),
        }
    }

    /// Nothing more is wanted or will come.
    pub(crate) const fn end(&mut self) {
        self.has_ended = true;
    }
}

impl Source for Consumer {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        Ok(match self.step(IDLE) {
            Step::Frames => self.batch(),
            Step::Idle => SourceEvent::Idle,
            Step::End => SourceEvent::End,
            Step::Broken(message) => SourceEvent::Fault(self.fault(message)),
        })
    }

    fn progress(&self) -> Progress {
        Progress {
            consumed_bytes: self.reader.position() + self.pending as u64,
            total_bytes: None,
        }
    }

    fn drops(&self) -> Drops {
        let dropped = self.reader.writer_note(notes::DROPPED);
        Drops {
            ring: dropped.saturating_sub(self.dropped_before),
            ..Drops::default()
        }
    }

    fn is_distributed(&self) -> bool {
        true
    }

    fn now(&self) -> Option<Timestamp> {
        (self.clock > 0).then(|| Timestamp::from_nanos(self.clock))
    }

    fn on_written(&mut self) {
        // Whoever comes after this one is not to see them again.
        self.give_back();
        self.reader.set_note(notes::WRITTEN, self.taken);
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
impl Consumer {
    /// Whether frames came within `limit`.
    pub(crate) fn step_for_tests(&mut self, limit: Duration) -> bool {
        self.step(limit) == Step::Frames
    }
}
