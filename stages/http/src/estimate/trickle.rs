//! Responses of TLS without keys that come in small records over time: most likely streams of events.
//!
//! A server that streams writes each event at once, and each write is a record, or a few right behind one another. Of a response in the making only the
//! number of its records is kept, until one comes after a pause while there were few before it.

use linkweir_record::{Confidence, Events};
use linkweir_table::Slab;

use super::lengths::{KEY_UPDATE, SETTINGS_ACK};
use super::turn::{Estimate, TOGETHER_NS};
use crate::events::Times;

/// No event is longer than this, in one record.
const LONGEST: u16 = 4096;
/// Between the events of a stream half of the gaps are at least this long, nanoseconds.
const PAUSE_NS: u64 = 5_000_000;
/// Records of a response before the first pause: its head, and events that were written with it.
const MAX_AT_ONCE: u8 = 3;
/// Of fewer events no stream is made,
const MIN_EVENTS: u32 = 5;
/// nor of those that have come within this time, nanoseconds.
const MIN_TIME_NS: u64 = 100_000_000;
/// This response is no stream.
const NONE: u8 = u8::MAX;
/// Responses at once of which times are kept, 1.2 KiB each: of more none is taken for a stream.
const MAX_SLOTS: u32 = 16_384;
/// Beyond all of a [`Pool`].
const NO_SLOT: u16 = u16::MAX;

/// What the record at hand is by its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Size {
    #[default]
    Small,
    /// The last chunk, or an empty DATA frame: they end the content.
    End,
    Large,
}

/// The times of responses that may be streams, of all connections.
#[derive(Debug)]
pub(super) struct Pool(Slab<Option<Box<Times>>>);

impl Default for Pool {
    fn default() -> Self {
        Self(Slab::with_capacity(MAX_SLOTS))
    }
}

impl Pool {
    /// A place for the times of another one, where there is one.
    fn take(&mut self) -> Option<u16> {
        let slot = self.0.insert(Some(Box::default()))?;
        u16::try_from(slot).ok()
    }

    fn times(&mut self, slot: u16) -> Option<&mut Times> {
        self.0.value_mut(u32::from(slot)).map(Box::as_mut)
    }

    fn give_back(&mut self, slot: u16) -> Option<Box<Times>> {
        self.0.remove(u32::from(slot))
    }
}

/// The records of a response so far: few bytes, for each connection has them.
#[derive(Debug)]
pub(super) struct Trickle {
    /// Where the times of its events are, or [`NO_SLOT`].
    slot: u16,
    size: Size,
    records: u8,
}

impl Default for Trickle {
    fn default() -> Self {
        Self {
            slot: NO_SLOT,
            size: Size::Small,
            records: 0,
        }
    }
}

impl Trickle {
    /// A record of the server begins.
    pub(super) const fn begin(&mut self, content: u16) {
        self.size = match content {
            KEY_UPDATE | SETTINGS_ACK => Size::End,
            0..=LONGEST => Size::Small,
            _ => Size::Large,
        };
    }

    /// It has ended, and is one of the response; the one before it did at `before_ns`. `has_begun` says that the head was
    /// in an earlier one that was not known then to be of the response.
    pub(super) fn end(&mut self, before_ns: u64, ts_ns: u64, has_begun: bool, pool: &mut Pool) {
        if self.records == NONE || self.size == Size::End {
            return;
        }
        if self.records == 0 && has_begun {
            self.records = 1;
        }
        if self.size == Size::Large {
            pool.give_back(std::mem::replace(&mut self.slot, NO_SLOT));
            self.records = NONE;
            return;
        }
        if let Some(times) = pool.times(self.slot) {
            // Servers write a frame in two records, or an event in several frames.
            if ts_ns.saturating_sub(before_ns) > TOGETHER_NS {
                times.event(ts_ns);
            }
            return;
        }
        let has_event_before = self.records > 1;
        self.records += 1;
        let is_after_pause = ts_ns.saturating_sub(before_ns) >= PAUSE_NS;
        if self.records > 1
            && is_after_pause
            && let Some(slot) = pool.take()
        {
            self.slot = slot;
            if let Some(times) = pool.times(slot) {
                if has_event_before {
                    times.event(before_ns);
                }
                times.event(ts_ns);
            }
        } else if self.records > MAX_AT_ONCE {
            self.records = NONE;
        }
    }

    /// Records of the server were missed.
    pub(super) fn miss(&mut self, pool: &mut Pool) {
        match pool.times(self.slot) {
            Some(times) => times.miss(),
            None => self.records = NONE,
        }
    }

    /// A transaction has ended: what it was, as far as the records of the server say it.
    pub(super) fn finish(&mut self, estimate: Estimate, pool: &mut Pool) -> Estimate {
        let times = pool.give_back(std::mem::replace(&mut self.slot, NO_SLOT));
        self.records = 0;
        let events = times.and_then(|times| found(&times, &estimate));
        Estimate {
            confidence: match events {
                Some(_) => estimate.confidence.max(Confidence::Likely),
                None => estimate.confidence,
            },
            events,
            ..estimate
        }
    }
}

/// The columns of what is most likely a stream.
fn found(times: &Times, estimate: &Estimate) -> Option<Events> {
    let is_stream = estimate.confidence != Confidence::CannotTell
        && times.count() >= MIN_EVENTS
        && times.took_ns() >= MIN_TIME_NS
        && times.gap(500).is_some_and(|median| median >= PAUSE_NS);
    // Events that a proxy has kept look like any other response.
    is_stream.then(|| times.columns(Some(estimate.request_ns), false))
}
