//! Directions of connections that are watched for a while: a head is still coming, or a message is
//! known to begin inside a segment.
//!
//! All other data segments are passed over after two loads: [`WatchList::watches`] keeps counts by
//! a small hash of the ports.

use std::collections::VecDeque;

use linkweir_proto::http1::{MAX_HEAD, Outcome, Start, classify, parse_request, parse_response};
use linkweir_table::{Id, Table, TextChain, TextPool};
use linkweir_wire::SeqNumber;

use crate::key::{Connection, ConnectionHash, Meaning};
use crate::place::Place;
use crate::segment::Segment;

mod chunks;
mod early;
mod held;

use chunks::Chunks;
pub(crate) use early::EARLY;
use early::EarlySegment;
use held::Held;

/// Counters of the filter by ports.
const FILTER: usize = 4096;

/// What is further back than a window is another connection's.
const WINDOW: i32 = 1 << 20;

/// A head that is being gathered.
#[derive(Debug)]
pub struct PartialHead {
    /// Where it begins.
    place: Place,
    next_seq: SeqNumber,
    text: TextChain,
    /// Whether the bytes so far are known to be a start line.
    sure: bool,
    /// Whether the start line is whole and good.
    first_line: bool,
    /// How far the empty line that ends the head has come: 0, or after LF, or after LF CR.
    line_end: u8,
}

impl PartialHead {
    /// Where and when the head begins.
    pub(crate) const fn place(&self) -> Place {
        self.place
    }

    /// Whether `bytes`, the gathered head, is a response's.
    pub(crate) fn is_response(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(b"HTTP")
    }
}

/// What is expected of a direction.
#[derive(Debug)]
enum Purpose {
    /// Nothing, while a segment is being looked at.
    Idle,
    /// The rest of a head.
    Head(PartialHead),
    /// A message that begins at this number.
    Start(SeqNumber),
    /// The same, and without it nobody knows where the ones behind it begin.
    Answer(SeqNumber),
    /// The rest of a chunked body.
    Chunks(Chunks),
}

impl Purpose {
    /// The next byte that matters.
    const fn expected(&self) -> Option<SeqNumber> {
        match self {
            Self::Idle => None,
            Self::Head(head) => Some(head.next_seq),
            Self::Start(at) | Self::Answer(at) => Some(*at),
            Self::Chunks(chunks) => Some(chunks.next),
        }
    }
}

#[derive(Debug)]
struct Watched {
    direction: Connection,
    changed_ns: u64,
    purpose: Purpose,
    /// Segments behind a gap, in the order of their numbers. Few and rare: the only allocation here.
    held: Vec<Held>,
}

/// What a segment was to the list.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing: treat the segment as any other.
    Nothing,
    /// Part of something that goes on, or held until what is before it comes; nothing else is in it yet.
    Taken,
    /// What was expected does not come; the segment is released with those that waited for it.
    GaveUp(Option<PartialHead>),
    /// A message begins at this offset.
    Start(usize),
    /// A head is whole; it ends before this offset.
    Whole(PartialHead, usize),
    /// The chunked body of the response at this link ends before this offset.
    EndOfChunks(u32, usize),
    /// A head will not become whole; treat the segment as any other.
    Broken(PartialHead),
}

/// The watched directions.
#[derive(Debug)]
pub struct WatchList {
    seed: u64,
    table: Table<Watched>,
    texts: TextPool,
    filter: Box<[u16; FILTER]>,
    early: Vec<EarlySegment>,
    /// How many were kept so far; the slot of the next is the remainder.
    early_count: u64,
    /// Whether all segments of a direction come by here.
    sees_all: bool,
    /// Segments that waited for others and need not wait any more.
    released: VecDeque<Held>,
    scratch: Vec<u8>,
}

const fn slot_of(src_port: u16, dst_port: u16) -> usize {
    (((src_port as u32).wrapping_mul(0x9e37_79b1) ^ (dst_port as u32).wrapping_mul(0x85eb_ca77))
        >> 20) as usize
}

fn file_under(seed: u64, direction: &Connection) -> u32 {
    let hash = ConnectionHash::new(seed, direction).with(Meaning::Direction, 0);
    u32::try_from(hash >> 32).unwrap_or_default()
}

impl WatchList {
    /// Room for `capacity` directions and `text_bytes` of heads; `seed` is that of the hash. Where not all
    /// segments of a direction come by (`sees_all`), only those of a head wait for one another.
    #[must_use]
    pub fn new(capacity: usize, text_bytes: usize, seed: u64, sees_all: bool) -> Self {
        Self {
            seed,
            table: Table::with_capacity(capacity),
            texts: TextPool::with_capacity(text_bytes / 256),
            filter: Box::new([0; FILTER]),
            early: Vec::with_capacity(EARLY),
            early_count: 0,
            sees_all,
            released: VecDeque::new(),
            scratch: Vec::new(),
        }
    }

    /// Whether a segment with these ports may be of a watched direction.
    #[inline]
    #[must_use]
    pub fn watches(&self, src_port: u16, dst_port: u16) -> bool {
        !self.table.is_empty()
            && self
                .filter
                .get(slot_of(src_port, dst_port))
                .is_some_and(|count| *count > 0)
    }

    fn find(&self, direction: &Connection) -> Option<Id> {
        self.table
            .find(file_under(self.seed, direction), |watched| {
                watched.direction == *direction
            })
    }

    fn count(&mut self, direction: &Connection, up: bool) {
        if let Some(count) = self
            .filter
            .get_mut(slot_of(direction.client.1, direction.server.1))
        {
            *count = if up {
                count.saturating_add(1)
            } else {
                count.saturating_sub(1)
            };
        }
    }

    /// Expects something of a direction; whether there is room for that.
    fn expect(&mut self, direction: Connection, purpose: Purpose, now_ns: u64) -> bool {
        if let Some(id) = self.find(&direction) {
            if let Some(watched) = self.table.get_mut(id) {
                watched.changed_ns = watched.changed_ns.max(now_ns);
                let old = std::mem::replace(&mut watched.purpose, purpose);
                self.table.refresh(id);
                self.discard(old);
            }
            return true;
        }
        let watched = Watched {
            direction,
            changed_ns: now_ns,
            purpose,
            held: Vec::new(),
        };
        match self
            .table
            .insert(file_under(self.seed, &direction), watched)
        {
            Ok(_) => {
                self.count(&direction, true);
                true
            }
            Err(refused) => {
                self.discard(refused.purpose);
                false
            }
        }
    }

    fn take(&mut self, id: Id) -> Option<Watched> {
        let watched = self.table.remove(id)?;
        self.count(&watched.direction, false);
        Some(watched)
    }

    fn discard(&mut self, purpose: Purpose) {
        if let Purpose::Head(head) = purpose {
            self.release(head);
        }
    }

    /// Begins to gather the head at `offset`; gives back one that was still being gathered there.
    ///
    /// The caller has seen to it that there is room ([`WatchList::lacks_room`]).
    pub(crate) fn begin(&mut self, segment: &Segment<'_>, offset: usize) -> Option<PartialHead> {
        let place = Place::new(segment, offset);
        let mut head = PartialHead {
            place,
            next_seq: place.seq,
            text: TextChain::default(),
            sure: false,
            first_line: false,
            line_end: 0,
        };
        let bytes = segment.payload.get(offset..).unwrap_or_default();
        // Never whole: it was parsed as far as it goes.
        if self.gather(&mut head, bytes).is_err() {
            self.release(head);
            return None;
        }
        let old = self
            .find(&segment.direction)
            .and_then(|id| self.table.get_mut(id))
            .map(|watched| std::mem::replace(&mut watched.purpose, Purpose::Idle));
        self.expect(segment.direction, Purpose::Head(head), segment.ts_ns);
        match old {
            Some(Purpose::Head(head)) => Some(head),
            _ => None,
        }
    }

    /// Whether the head that begins at `place` is the one being gathered there.
    pub(crate) fn gathers(&self, place: &Place) -> bool {
        let watched = self
            .find(&place.direction)
            .and_then(|id| self.table.get(id));
        watched.is_some_and(|watched| {
            matches!(&watched.purpose, Purpose::Head(head) if head.place.seq == place.seq)
        })
    }

    /// Whether a head is being gathered in a direction.
    pub(crate) fn gathers_head(&self, direction: &Connection) -> bool {
        self.watches(direction.client.1, direction.server.1)
            && self
                .find(direction)
                .and_then(|id| self.table.get(id))
                .is_some_and(|watched| matches!(watched.purpose, Purpose::Head(_)))
    }

    /// Where the head begins that is being gathered and of which the receiver acknowledges a part with
    /// `ack`.
    pub(crate) fn gathers_before(&self, direction: &Connection, ack: SeqNumber) -> Option<u32> {
        if !self.watches(direction.client.1, direction.server.1) {
            return None;
        }
        match &self.table.get(self.find(direction)?)?.purpose {
            Purpose::Head(head) if head.place.seq.before(ack) && !head.next_seq.before(ack) => {
                Some(head.place.seq.0)
            }
            _ => None,
        }
    }

    /// Whether a head of `len` more bytes finds no room.
    pub(crate) fn lacks_room(&self, len: usize) -> bool {
        self.table.is_full() || !self.texts.has_room(len)
    }

    /// Takes out what was watched longest; `None` when nothing is.
    #[expect(
        clippy::option_option,
        reason = "something was taken out; a head only sometimes"
    )]
    pub(crate) fn evict(&mut self) -> Option<Option<PartialHead>> {
        let (id, _) = self.table.oldest()?;
        Some(self.give_up(id))
    }

    /// Takes out what did not change since `limit_ns`.
    #[expect(
        clippy::option_option,
        reason = "something was taken out; a head only sometimes"
    )]
    pub(crate) fn expire(&mut self, limit_ns: u64) -> Option<Option<PartialHead>> {
        let (_, watched) = self.table.oldest()?;
        if watched.changed_ns > limit_ns {
            None
        } else {
            self.evict()
        }
    }

    /// Expects a message to begin at `seq`, unless something else is being followed.
    pub(crate) fn expect_start(&mut self, direction: Connection, seq: SeqNumber, now_ns: u64) {
        if self.may_expect(&direction, seq) {
            self.expect(direction, Purpose::Start(seq), now_ns);
        }
    }

    /// Expects the answer at `seq` to the first of those that wait; what comes behind it waits for it.
    pub(crate) fn expect_answer(&mut self, direction: Connection, seq: SeqNumber, now_ns: u64) {
        if self.may_expect(&direction, seq) {
            let purpose = if self.sees_all {
                Purpose::Answer(seq)
            } else {
                Purpose::Start(seq)
            };
            self.expect(direction, purpose, now_ns);
        }
    }

    fn may_expect(&self, direction: &Connection, seq: SeqNumber) -> bool {
        let watched = self.find(direction).and_then(|id| self.table.get(id));
        match watched.map(|watched| &watched.purpose) {
            None | Some(Purpose::Idle | Purpose::Start(_)) => true,
            // What comes again does not lead back.
            Some(Purpose::Answer(at)) => !(0..WINDOW).contains(&(*at - seq)),
            Some(Purpose::Head(_) | Purpose::Chunks(_)) => false,
        }
    }

    /// The request head that is being gathered and whose response begins at `link`.
    pub(crate) fn take_request(
        &mut self,
        connection: &Connection,
        link: u32,
    ) -> Option<PartialHead> {
        if self.table.is_empty() {
            return None;
        }
        let id = self.find(connection)?;
        let Purpose::Head(head) = &self.table.get(id)?.purpose else {
            return None;
        };
        if head.place.ack != link {
            return None;
        }
        self.give_up(id)
    }

    /// Looks at a segment of a direction that may be watched.
    pub(crate) fn on_segment(&mut self, segment: &Segment<'_>) -> Found {
        let Some(id) = self.find(&segment.direction) else {
            return Found::Nothing;
        };
        let Some(watched) = self.table.get(id) else {
            return Found::Nothing;
        };
        let Some(expected) = watched.purpose.expected() else {
            return Found::Nothing;
        };
        let ahead = segment.seq - expected;
        if ahead > 0 {
            // Behind a body of which the end was not seen, what begins a segment is looked at at once.
            let waits = ahead > WINDOW || !matches!(watched.purpose, Purpose::Start(_));
            return if waits {
                self.hold(id, segment, ahead)
            } else {
                Found::Nothing
            };
        }
        let known = ahead.unsigned_abs() as usize;
        match &watched.purpose {
            Purpose::Head(_) => self.on_rest(id, segment, known),
            _ if known >= segment.payload_len as usize => Found::Nothing,
            Purpose::Chunks(_) => self.on_chunks(id, segment, known),
            Purpose::Start(_) | Purpose::Answer(_) | Purpose::Idle => {
                if let Some(watched) = self.table.get_mut(id) {
                    watched.purpose = Purpose::Idle;
                }
                if known < segment.payload.len() {
                    Found::Start(known)
                } else {
                    Found::Nothing
                }
            }
        }
    }

    /// The next part of a head; the first `known` bytes of the segment were there before.
    fn on_rest(&mut self, id: Id, segment: &Segment<'_>, known: usize) -> Found {
        let Some(fresh) = segment
            .payload
            .get(known..)
            .filter(|fresh| !fresh.is_empty())
        else {
            // All of it was there before, or it is not part of this head.
            let Some(Purpose::Head(head)) = self.table.get(id).map(|watched| &watched.purpose)
            else {
                return Found::Nothing;
            };
            return if segment.seq.before(head.place.seq) {
                Found::Nothing
            } else {
                Found::Taken
            };
        };
        let Some(watched) = self.table.get_mut(id) else {
            return Found::Nothing;
        };
        watched.changed_ns = watched.changed_ns.max(segment.ts_ns);
        let Purpose::Head(mut head) = std::mem::replace(&mut watched.purpose, Purpose::Idle) else {
            return Found::Nothing;
        };
        head.place.segment_end = segment.end();
        head.place.segment_ns = segment.ts_ns;
        match self.gather(&mut head, fresh) {
            Ok(Some(taken)) => Found::Whole(head, known + taken),
            Ok(None) if !segment.is_cut() => {
                self.expect(segment.direction, Purpose::Head(head), segment.ts_ns);
                Found::Taken
            }
            Ok(None) | Err(Refused::TooLong) => Found::Broken(head),
            Err(Refused::NoHead) => {
                self.release(head);
                Found::Nothing
            }
        }
    }

    /// Appends to a head. Says how many bytes were taken where the head is whole with them.
    fn gather(&mut self, head: &mut PartialHead, bytes: &[u8]) -> Result<Option<usize>, Refused> {
        let end = scan(&mut head.line_end, bytes);
        let taken = end.unwrap_or(bytes.len());
        let fresh = bytes.get(..taken).unwrap_or_default();
        if head.text.len() + taken > MAX_HEAD || !self.texts.append(&mut head.text, fresh) {
            return Err(Refused::TooLong);
        }
        head.next_seq = SeqNumber(
            head.next_seq
                .0
                .wrapping_add(u32::try_from(taken).unwrap_or(u32::MAX)),
        );
        if !head.first_line {
            let text = self.texts.read(&head.text, &mut self.scratch);
            if !head.sure {
                match classify(text) {
                    Start::Neither => return Err(Refused::NoHead),
                    Start::Unsure => {}
                    Start::Request | Start::Response => head.sure = true,
                }
            }
            if fresh.contains(&b'\n') {
                head.first_line = true;
                let refused = if text.starts_with(b"HTTP") {
                    parse_response(text) == Outcome::Invalid
                } else {
                    parse_request(text) == Outcome::Invalid
                };
                if refused {
                    return Err(Refused::NoHead);
                }
            }
        }
        Ok(end.map(|_| taken))
    }

    /// The bytes of a head.
    pub(crate) fn read_head(&self, head: &PartialHead, bytes: &mut Vec<u8>) {
        bytes.clear();
        self.texts.copy_to(&head.text, bytes);
    }

    /// Gives the memory of a head back.
    pub(crate) fn release(&mut self, head: PartialHead) {
        self.texts.release(head.text);
    }

    /// Directions that are watched.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.table.len()
    }
}

/// Why bytes were not added to a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// It is no head after all.
    NoHead,
    /// It is longer than [`MAX_HEAD`], or the pool is exhausted.
    TooLong,
}

/// Finds the end of a head: behind the line feed of an empty line. `state` is what the bytes before say.
fn scan(state: &mut u8, bytes: &[u8]) -> Option<usize> {
    for (at, byte) in bytes.iter().enumerate() {
        *state = match (*state, byte) {
            (1 | 2, b'\n') => return Some(at + 1),
            (1, b'\r') => 2,
            (_, b'\n') => 1,
            _ => 0,
        };
    }
    None
}
