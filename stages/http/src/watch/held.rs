//! Segments of a watched direction that came before one that is still missing: they are looked at
//! when it has come, in the order of their numbers.

use linkweir_table::{Id, TextChain};
use linkweir_wire::SeqNumber;

use super::{Found, PartialHead, Purpose, WINDOW, WatchList, Watched};
use crate::key::Connection;
use crate::place::Place;
use crate::segment::Segment;

/// Segments of one direction that wait: the flight behind a loss, for a window of 64 KiB and more.
const MAX_HELD: usize = 64;

/// How long a segment waits for the one before it, nanoseconds: a retransmission comes sooner, but for
/// one that is itself lost several times.
const MAX_WAIT_NS: u64 = 10_000_000_000;

/// A segment that waits for one before it.
#[derive(Debug)]
pub(crate) struct Held {
    /// Where it begins.
    place: Place,
    text: TextChain,
    payload_len: u32,
}

impl WatchList {
    /// Keeps a segment behind a gap. Where too many wait already, or for too long, the bytes in the gap are
    /// taken for lost: nothing is expected any more, and all are looked at as any other segment.
    pub(super) fn hold(&mut self, id: Id, segment: &Segment<'_>, ahead: i32) -> Found {
        let has_room = self.texts.has_room(segment.payload.len());
        let Some(watched) = self.table.get_mut(id) else {
            return Found::Nothing;
        };
        let since = watched
            .held
            .first()
            .map_or(segment.ts_ns, |held| held.place.ts_ns);
        let is_over = ahead > WINDOW
            || watched.held.len() >= MAX_HELD
            || segment.ts_ns.saturating_sub(since) > MAX_WAIT_NS;
        if !has_room {
            return self.give_up(id).map_or(Found::Nothing, Found::Broken);
        }
        let mut text = TextChain::default();
        self.texts.append(&mut text, segment.payload);
        let held = Held {
            place: Place::new(segment, 0),
            text,
            payload_len: segment.payload_len,
        };
        if is_over {
            let head = self.give_up(id);
            self.released.push_back(held);
            return Found::GaveUp(head);
        }
        let at = watched
            .held
            .partition_point(|other| !segment.seq.before(other.place.seq));
        watched.held.insert(at, held);
        Found::Taken
    }

    /// Expects nothing more in a direction. What waits there is released; gives back a head that was being
    /// gathered.
    pub(super) fn give_up(&mut self, id: Id) -> Option<PartialHead> {
        let Watched { purpose, held, .. } = self.take(id)?;
        self.released.extend(held);
        match purpose {
            Purpose::Head(head) => Some(head),
            Purpose::Idle | Purpose::Start(_) | Purpose::Answer(_) | Purpose::Chunks(_) => None,
        }
    }

    /// The receiver of `direction` has acknowledged up to `ack`: what is missing before that did not come
    /// by here, and nothing waits for it any more. Gives back a head that was being gathered.
    pub(crate) fn on_acknowledged(
        &mut self,
        direction: &Connection,
        ack: SeqNumber,
    ) -> Option<PartialHead> {
        if !self.watches(direction.client.1, direction.server.1) {
            return None;
        }
        let id = self.find(direction)?;
        let watched = self.table.get(id)?;
        let is_awaited = matches!(watched.purpose, Purpose::Answer(_) | Purpose::Chunks(_));
        let is_missed = (is_awaited || !watched.held.is_empty())
            && watched
                .purpose
                .expected()
                .is_some_and(|expected| expected.before(ack));
        is_missed.then(|| self.give_up(id)).flatten()
    }

    /// Releases what waits in a direction and is not ahead any more; ends the watch where nothing is
    /// expected.
    pub(crate) fn settle(&mut self, direction: &Connection) {
        let Some(id) = self.find(direction) else {
            return;
        };
        let Some(watched) = self.table.get_mut(id) else {
            return;
        };
        match watched.purpose.expected() {
            Some(expected) => {
                let due = watched
                    .held
                    .partition_point(|held| !expected.before(held.place.seq));
                self.released.extend(watched.held.drain(..due));
            }
            None => {
                self.give_up(id);
            }
        }
    }

    /// Whether released segments are to be looked at.
    #[inline]
    pub(crate) fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// The next segment that was released; its bytes go to `bytes`.
    pub(crate) fn next_released<'a>(&mut self, bytes: &'a mut Vec<u8>) -> Option<Segment<'a>> {
        let Held {
            place,
            text,
            payload_len,
        } = self.released.pop_front()?;
        bytes.clear();
        self.texts.copy_to(&text, bytes);
        self.texts.release(text);
        Some(Segment {
            direction: place.direction,
            seq: place.seq,
            ack: place.ack,
            has_ack: place.has_ack,
            ts_ns: place.ts_ns,
            vlan: place.vlan,
            payload: bytes,
            payload_len,
        })
    }
}
