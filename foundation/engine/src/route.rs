//! Packets are distributed, not their parts: what comes in IP fragments is reassembled before it goes.
//!
//! Whoever distributes sees all fragments in their order, as a single worker would, and a packet's ports, by which
//! it is distributed, are known when it is whole: so its flow, the bytes that win where fragments overlap, what is
//! given up, and what is counted are those of one worker.

use linkweir_wire::{FragmentStats, Fragments, Joined, Timestamp};

use crate::Frame;
use crate::split::{Route, Splitter};

/// What of a distributed trace came in parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// What became of them.
    pub stats: FragmentStats,
    /// Frames that were parts, and their bytes on the wire.
    pub taken: (u64, u64),
    /// Frames that were made of them, and their bytes.
    pub given: (u64, u64),
    /// Earliest and latest capture time of a part.
    pub first: Option<Timestamp>,
    /// See `first`.
    pub last: Option<Timestamp>,
}

/// Says where the frames of a trace go.
#[derive(Debug)]
pub struct Router<'s, S> {
    splitter: &'s mut S,
    is_reassembled: bool,
    fragments: Fragments,
    parts: Parts,
}

impl<'s, S: Splitter> Router<'s, S> {
    /// Distributes by `splitter` what a source gives of which [`crate::Source::is_distributed`] is known.
    pub fn new(splitter: &'s mut S, is_reassembled: bool) -> Self {
        Self {
            splitter,
            is_reassembled,
            fragments: Fragments::default(),
            parts: Parts::default(),
        }
    }

    /// What came in parts so far.
    #[must_use]
    pub const fn parts(&self) -> Parts {
        Parts {
            stats: self.fragments.stats(),
            ..self.parts
        }
    }

    /// Takes a frame; `each` gets what there is to distribute now, and its hash, or nothing where it goes to all
    /// shards. Says whether that was the frame itself.
    #[inline]
    pub fn take(
        &mut self,
        frame: &Frame<'_>,
        mut each: impl FnMut(&Frame<'_>, Option<u32>),
    ) -> bool {
        match self.splitter.route(frame) {
            Route::To(hash) => each(frame, Some(hash)),
            Route::All => each(frame, None),
            // The start of a packet whose rest is lost.
            Route::Part if self.is_reassembled => each(frame, Some(self.splitter.hash(frame))),
            Route::Part => {
                self.on_part(frame, &mut each);
                return false;
            }
        }
        true
    }

    #[cold]
    fn on_part(&mut self, frame: &Frame<'_>, each: &mut impl FnMut(&Frame<'_>, Option<u32>)) {
        let first = self.parts.first.unwrap_or(frame.timestamp);
        self.parts.first = Some(first.min(frame.timestamp));
        self.parts.last = self.parts.last.max(Some(frame.timestamp));
        add(&mut self.parts.taken, frame.wire_len);
        let Self {
            splitter,
            fragments,
            parts,
            ..
        } = self;
        let part = (frame.link, frame.bytes, frame.wire_len);
        fragments.on_frame(part, frame.timestamp, |joined| {
            give(*splitter, parts, &joined, each);
        });
    }

    /// Gives up packets of which parts are missing: all, or those that have waited long enough `now`.
    pub fn give_up(
        &mut self,
        now: Option<Timestamp>,
        mut each: impl FnMut(&Frame<'_>, Option<u32>),
    ) {
        let Self {
            splitter,
            fragments,
            parts,
            ..
        } = self;
        let each = |joined: Joined<'_>| give(*splitter, parts, &joined, &mut each);
        match now {
            Some(now) => fragments.expire(now, each),
            None => fragments.finish(each),
        }
    }
}

/// Distributes a packet that was in parts.
fn give(
    splitter: &mut impl Splitter,
    parts: &mut Parts,
    joined: &Joined<'_>,
    each: &mut impl FnMut(&Frame<'_>, Option<u32>),
) {
    let (link, bytes, wire_len) = joined.frame;
    let frame = Frame {
        timestamp: joined.timestamp,
        bytes,
        wire_len,
        link,
        interface: 0,
    };
    add(&mut parts.given, wire_len);
    let hash = match &joined.packet {
        Ok(packet) => splitter.packet(packet),
        Err(_) => Some(0),
    };
    each(&frame, hash);
}

fn add(total: &mut (u64, u64), wire_len: u32) {
    *total = (total.0 + 1, total.1 + u64::from(wire_len));
}
