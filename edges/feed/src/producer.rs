//! The end of a ring that frames go in at.

use std::io;
use std::time::Duration;

use linkweir_engine::Frame;
use linkweir_sys::shm::{FINISHED, RingKeeper, RingReader, RingWriter};
use linkweir_wire::Timestamp;
use thiserror::Error;

use crate::frame::{encode, room};

/// Frames that become visible together to a reader that is awake: enough to share the cost of the cache line that
/// says so and of what the reader does once a batch. One that sleeps is woken by [`Producer::flush`], or where the
/// ring is full: to be woken for a few frames costs both sides more than the frames.
const SHOW_EVERY: u32 = 64;
/// How long a blocked producer sleeps before it looks whether its consumer is still there.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Counters of the producer that the consumer sees.
pub(crate) mod notes {
    pub(crate) const PACKETS: usize = 0;
    pub(crate) const BYTES: usize = 1;
    pub(crate) const DROPPED: usize = 2;
    pub(crate) const CLOCK: usize = 3;
    /// Of the consumer: packets it has done with.
    pub(crate) const TAKEN: usize = 0;
    /// Of the consumer: of those, the packets whose records are written.
    pub(crate) const WRITTEN: usize = 1;
}

/// Why a frame did not go in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// No room now.
    #[error("the ring is full")]
    Full,
    /// The frame is larger than the ring.
    #[error("the frame is larger than the ring")]
    TooLarge,
    /// Nobody reads, and there is no room.
    #[error("the consumer has gone")]
    NoConsumer,
    /// The other side wrote what cannot be; the ring is of no further use.
    #[error("the consumer wrote nonsense into the ring")]
    Corrupt,
}

/// What went into a ring since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingCounters {
    /// Frames that went in.
    pub packets: u64,
    /// Bytes those had on the wire.
    pub bytes: u64,
    /// Frames counted by [`Producer::count_drop`].
    pub dropped: u64,
    /// Frames the consumer has done with, as it says; at most `packets`.
    pub taken: u64,
}

/// Puts frames into a ring. Dropped without [`Producer::finish`], it tells the consumer that it ended
/// before its time.
#[derive(Debug)]
pub struct Producer {
    writer: RingWriter,
    unshown: u32,
    packets: u64,
    bytes: u64,
    dropped: u64,
}

impl Producer {
    pub(crate) fn create(capacity: usize) -> io::Result<Self> {
        Ok(Self {
            writer: RingWriter::create(capacity)?,
            unshown: 0,
            packets: 0,
            bytes: 0,
            dropped: 0,
        })
    }

    pub(crate) fn reader(&self) -> io::Result<RingReader> {
        self.writer.reader()
    }

    pub(crate) fn keeper(&self) -> io::Result<RingKeeper> {
        self.writer.keeper()
    }

    /// Puts a frame in. The consumer sees it after [`Self::flush`], and with the next 64 if it is awake.
    ///
    /// # Errors
    /// [`Refused`] where it did not go in; what went in before is then visible. Nothing is counted as
    /// dropped: that is the caller's choice ([`Self::count_drop`]).
    #[inline]
    pub fn push(&mut self, frame: &Frame<'_>) -> Result<(), Refused> {
        let len = room(frame.bytes.len());
        let position = self.writer.position();
        match self.writer.reserve(len) {
            Ok(Some(place)) => {
                encode(frame, position, place).ok_or(Refused::TooLarge)?;
                self.writer.commit(len);
            }
            Ok(None) => {
                self.flush();
                return Err(if len > self.writer.capacity() {
                    Refused::TooLarge
                } else {
                    Refused::Full
                });
            }
            Err(_) => return Err(Refused::Corrupt),
        }
        self.packets += 1;
        self.bytes += u64::from(frame.wire_len);
        self.unshown += 1;
        if self.unshown >= SHOW_EVERY {
            self.unshown = 0;
            self.note();
            self.writer.show();
        }
        Ok(())
    }

    /// Puts a frame in, waiting for room as long as somebody reads.
    ///
    /// # Errors
    /// As of [`Self::push`], but never [`Refused::Full`].
    #[inline]
    pub fn push_wait(&mut self, frame: &Frame<'_>) -> Result<(), Refused> {
        loop {
            match self.push(frame) {
                Err(Refused::Full) => {}
                other => return other,
            }
            if !self.wait_for_room(frame, LOOK_EVERY)? && !self.has_consumer() {
                return Err(Refused::NoConsumer);
            }
        }
    }

    /// Waits for room for a frame; false where there is none after `limit` at the latest (or sooner).
    ///
    /// # Errors
    /// [`Refused::Corrupt`].
    pub fn wait_for_room(&mut self, frame: &Frame<'_>, limit: Duration) -> Result<bool, Refused> {
        self.flush();
        self.writer
            .wait_for_room(room(frame.bytes.len()), limit)
            .map_err(|_| Refused::Corrupt)
    }

    /// Waits until the consumer has done with everything; false where it has not after `limit` at the
    /// latest (or sooner).
    pub(crate) fn wait_until_empty(&mut self, limit: Duration) -> Result<bool, Refused> {
        self.flush();
        let everything = self.writer.capacity();
        self.writer
            .wait_for_room(everything, limit)
            .map_err(|_| Refused::Corrupt)
    }

    /// Counts a frame that is not put in; the consumer sees the number.
    #[inline]
    pub fn count_drop(&mut self) {
        self.dropped += 1;
        self.writer.set_note(notes::DROPPED, self.dropped);
    }

    /// Lets the consumer see everything that was put in.
    #[inline]
    pub fn flush(&mut self) {
        self.unshown = 0;
        self.note();
        self.writer.publish();
    }

    #[inline]
    fn note(&self) {
        self.writer.set_note(notes::PACKETS, self.packets);
        self.writer.set_note(notes::BYTES, self.bytes);
    }

    /// As [`Self::flush`]; and the time of the capture has come to `now`, for a consumer that asks
    /// while nothing comes.
    pub fn flush_at(&mut self, now: Timestamp) {
        self.flush();
        // After the frames: who sees this time has seen what was captured before it.
        self.writer.set_note(notes::CLOCK, now.as_nanos());
    }

    /// Everything was put in: the consumer ends when it has read it.
    pub fn finish(&mut self) {
        self.flush();
        self.writer.close(FINISHED);
    }

    /// Whether somebody reads.
    #[must_use]
    pub fn has_consumer(&self) -> bool {
        self.writer.has_reader()
    }

    /// Bytes the ring holds.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.writer.capacity()
    }

    /// Bytes the consumer has not done with.
    ///
    /// # Errors
    /// [`Refused::Corrupt`].
    pub fn queued(&mut self) -> Result<u64, Refused> {
        self.writer.queued().map_err(|_| Refused::Corrupt)
    }

    /// What went in so far.
    #[must_use]
    pub fn counters(&self) -> RingCounters {
        RingCounters {
            packets: self.packets,
            bytes: self.bytes,
            dropped: self.dropped,
            taken: self.writer.reader_note(notes::TAKEN).min(self.packets),
        }
    }
}
