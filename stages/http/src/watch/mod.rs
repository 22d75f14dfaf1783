//! Directions of connections that are watched for a while: a head is still coming, or a message is
//! known to begin inside a segment.
//!
//! All other data segments are passed over after two loads: [`WatchList::watches`] keeps counts by
//! a small hash of the ports.

use linkweir_proto::http1::{MAX_HEAD, Outcome, Start, classify, parse_request, parse_response};
use linkweir_table::{Chain, Chunks, Id, Table};
use linkweir_wire::{SeqNumber, Tcp};

use crate::key::{Connection, ConnectionHash, Meaning};
use crate::segment::Place;
use crate::segment::Segment;

mod follow;
mod head;
mod out_of_order;
mod stream;

pub(crate) use head::PartialHead;
use head::{Late, Refused, scan};
pub(crate) use out_of_order::MAX_KEPT;
use out_of_order::{KeptPiece, OutOfOrder};
pub(crate) use stream::{Gap, Next, Stream};

/// Segments of a head that may wait for an earlier one.
const MAX_LATE: usize = 8;
/// Counters of the filter by ports.
const FILTER: usize = 4096;
/// Ends of responses that are kept by ports.
const ENDS: usize = 1024;

#[derive(Debug)]
enum Purpose {
    Head(PartialHead),
    Start(SeqNumber),
    /// A direction of a pipeline that is followed; nothing while its stream is being read. Few, and large.
    Stream(Option<Box<Stream>>),
}

/// What is no longer watched.
#[derive(Debug)]
pub(crate) enum Gone {
    /// A head that is not whole.
    Head(PartialHead),
    /// A place where a message was to begin, or nothing.
    Start,
    /// A direction of a pipeline that was followed.
    Stream(Connection, Box<Stream>),
}

impl Gone {
    fn new(watched: Watched) -> Self {
        match watched.purpose {
            Purpose::Head(head) => Self::Head(head),
            Purpose::Start(_) | Purpose::Stream(None) => Self::Start,
            Purpose::Stream(Some(stream)) => Self::Stream(watched.direction, stream),
        }
    }
}

#[derive(Debug)]
struct Watched {
    direction: Connection,
    changed_ns: u64,
    purpose: Purpose,
}

/// What a segment was to the list.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing: treat the segment as any other.
    Nothing,
    /// Part of a head; nothing else is in it yet.
    Taken,
    /// It is of a pipeline that is followed.
    Followed,
    /// A message begins at this offset.
    Start(usize),
    /// A head is whole; it ends before this offset.
    Whole(PartialHead, usize),
    /// A head will not become whole; treat the segment as any other.
    Broken(PartialHead),
}

/// The watched directions.
#[derive(Debug)]
pub(crate) struct WatchList {
    seed: u64,
    table: Table<Watched>,
    texts: Chunks,
    filter: Box<[u16; FILTER]>,
    /// Directions in the filter: those in the table, and those that are followed elsewhere.
    noted: u32,
    /// By ports: where the last response ends that no request waits behind.
    ends: Box<[u32; ENDS]>,
    out_of_order: OutOfOrder,
    scratch: Vec<u8>,
}

const fn slot_of(src_port: u16, dst_port: u16) -> usize {
    (((src_port as u32).wrapping_mul(0x9e37_79b1) ^ (dst_port as u32).wrapping_mul(0x85eb_ca77))
        >> 20) as usize
}

const fn end_of(src_port: u16, dst_port: u16) -> usize {
    slot_of(src_port, dst_port) % ENDS
}

fn file_under(seed: u64, direction: &Connection) -> u32 {
    let hash = ConnectionHash::new(seed, direction).with(Meaning::Direction, 0);
    u32::try_from(hash >> 32).unwrap_or_default()
}

impl WatchList {
    /// Room for `capacity` directions and `text_bytes` of heads; `seed` is that of the hash.
    pub(crate) fn new(capacity: usize, text_bytes: usize, seed: u64) -> Self {
        Self {
            seed,
            table: Table::with_capacity(capacity),
            texts: Chunks::with_capacity(text_bytes / 256),
            filter: Box::new([0; FILTER]),
            noted: 0,
            ends: Box::new([0; ENDS]),
            out_of_order: OutOfOrder::new(),
            scratch: Vec::new(),
        }
    }

    /// Whether a segment with these ports may be of a watched direction.
    #[inline]
    pub(crate) fn watches(&self, src_port: u16, dst_port: u16) -> bool {
        self.noted > 0
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

    /// Notes that the ports of a direction are watched, by one more or one less.
    pub(crate) fn note(&mut self, direction: &Connection, up: bool) {
        self.noted = if up {
            self.noted.saturating_add(1)
        } else {
            self.noted.saturating_sub(1)
        };
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

    fn put(&mut self, watched: Watched) {
        let direction = watched.direction;
        match self
            .table
            .insert(file_under(self.seed, &direction), watched)
        {
            Ok(_) => self.note(&direction, true),
            Err(refused) => self.discard(refused),
        }
    }

    fn take(&mut self, id: Id) -> Option<Watched> {
        let watched = self.table.remove(id)?;
        self.note(&watched.direction, false);
        Some(watched)
    }

    fn discard(&mut self, watched: Watched) {
        match watched.purpose {
            Purpose::Head(head) => self.release(head),
            Purpose::Start(_) | Purpose::Stream(None) => {}
            Purpose::Stream(Some(stream)) => self.release_stream(*stream),
        }
    }

    /// Begins to gather the head at `offset`; gives back one that was still being gathered there.
    ///
    /// The caller has seen to it that there is room ([`WatchList::lacks_room`]).
    pub(crate) fn begin(&mut self, segment: &Segment<'_>, offset: usize) -> Option<PartialHead> {
        let old = self.find(&segment.direction).and_then(|id| self.take(id));
        let old = old.and_then(|watched| match watched.purpose {
            Purpose::Head(head) => Some(head),
            Purpose::Start(_) | Purpose::Stream(_) => None,
        });
        let mut head = PartialHead::new(Place::new(segment, offset));
        let bytes = segment.payload.get(offset..).unwrap_or_default();
        // Never whole: it was parsed as far as it goes.
        if self.gather(&mut head, bytes).is_ok() {
            self.put(Watched {
                direction: segment.direction,
                changed_ns: segment.ts_ns,
                purpose: Purpose::Head(head),
            });
        } else {
            self.release(head);
        }
        old
    }

    /// Whether the head that begins at `place` is the one being gathered there.
    pub(crate) fn gathers(&self, place: &Place) -> bool {
        let watched = self
            .find(&place.direction)
            .and_then(|id| self.table.get(id));
        watched.is_some_and(|watched| match &watched.purpose {
            Purpose::Head(head) => head.place.seq == place.seq,
            Purpose::Start(_) | Purpose::Stream(_) => false,
        })
    }

    /// Whether a head of `len` more bytes finds no room.
    pub(crate) fn lacks_room(&self, len: usize) -> bool {
        self.table.is_full() || !self.texts.has_room(len)
    }

    /// Takes out what was watched longest; `None` when nothing is.
    pub(crate) fn evict(&mut self) -> Option<Gone> {
        let (id, _) = self.table.oldest()?;
        self.take(id).map(Gone::new)
    }

    /// Takes out what did not change since `limit_ns`.
    pub(crate) fn expire(&mut self, limit_ns: u64) -> Option<Gone> {
        let (_, watched) = self.table.oldest()?;
        if watched.changed_ns > limit_ns {
            None
        } else {
            self.evict()
        }
    }

    /// Expects a message to begin at `seq`.
    pub(crate) fn expect_start(&mut self, direction: Connection, seq: SeqNumber, now_ns: u64) {
        match self.find(&direction) {
            Some(id) => {
                if let Some(watched) = self.table.get_mut(id)
                    && let Purpose::Start(at) = &mut watched.purpose
                {
                    *at = seq;
                    watched.changed_ns = now_ns;
                    self.table.refresh(id);
                }
            }
            None => self.put(Watched {
                direction,
                changed_ns: now_ns,
                purpose: Purpose::Start(seq),
            }),
        }
    }

    /// The request head that is being gathered and whose response begins at `match_seq`.
    pub(crate) fn take_request(
        &mut self,
        connection: &Connection,
        match_seq: u32,
    ) -> Option<PartialHead> {
        if self.table.is_empty() {
            return None;
        }
        let id = self.find(connection)?;
        let Purpose::Head(head) = &self.table.get(id)?.purpose else {
            return None;
        };
        if head.place.ack != match_seq {
            return None;
        }
        match self.take(id)?.purpose {
            Purpose::Head(head) => Some(head),
            Purpose::Start(_) | Purpose::Stream(_) => None,
        }
    }

    /// Notes where a response ends that no request waits behind.
    #[inline]
    pub(crate) fn expect_unasked(&mut self, direction: &Connection, end: u32) {
        if let Some(at) = self
            .ends
            .get_mut(end_of(direction.client.1, direction.server.1))
        {
            *at = end;
        }
    }

    /// Where in a segment a response ends that no request waits behind, and another one begins.
    #[inline]
    pub(crate) fn unasked_in(&self, tcp: &Tcp<'_>) -> Option<usize> {
        let end = self.ends.get(end_of(tcp.src_port(), tcp.dst_port()))?;
        let offset = end.wrapping_sub(tcp.seq().0) as usize;
        // Few segments go on: the bytes decide.
        let bytes = tcp.payload.get(offset..).filter(|_| offset > 0)?;
        (classify(bytes) == Start::Response).then_some(offset)
    }

    /// Looks at a segment of a direction that may be watched.
    pub(crate) fn on_segment(&mut self, segment: &Segment<'_>) -> Found {
        let Some(id) = self.find(&segment.direction) else {
            return Found::Nothing;
        };
        let Some(watched) = self.table.get(id) else {
            return Found::Nothing;
        };
        match &watched.purpose {
            Purpose::Start(at) => self.on_start(id, *at, segment),
            Purpose::Stream(_) => Found::Followed,
            Purpose::Head(head) => {
                let ahead = segment.seq - head.next_seq;
                if ahead > 0 {
                    self.on_ahead(id, segment, ahead)
                } else {
                    self.on_rest(id, segment, ahead.unsigned_abs() as usize)
                }
            }
        }
    }

    fn on_start(&mut self, id: Id, at: SeqNumber, segment: &Segment<'_>) -> Found {
        let offset = at - segment.seq;
        // Long past: the segment it was in is lost.
        if offset < -1_000_000 {
            self.take(id);
            return Found::Nothing;
        }
        match usize::try_from(offset) {
            Ok(offset) if offset < segment.payload.len() => {
                self.take(id);
                // The response to HEAD has the length of a body which it does not have.
                if offset > 0 && classify(segment.payload) == Start::Response {
                    return Found::Nothing;
                }
                Found::Start(offset)
            }
            _ => Found::Nothing,
        }
    }

    /// A segment behind a gap.
    fn on_ahead(&mut self, id: Id, segment: &Segment<'_>, ahead: i32) -> Found {
        if matches!(classify(segment.payload), Start::Request | Start::Response) {
            // The next message already: the rest of the head was lost.
            return self.break_off(id);
        }
        let room = self.texts.has_room(segment.payload.len());
        if usize::try_from(ahead).is_ok_and(|ahead| ahead <= MAX_HEAD)
            && room
            && segment.payload.len() <= MAX_HEAD
            && let Some(Purpose::Head(head)) =
                self.table.get_mut(id).map(|watched| &mut watched.purpose)
            && head.late.len() < MAX_LATE
            && !head.late.iter().any(|late| late.seq == segment.seq)
        {
            let mut text = Chain::default();
            self.texts.append(&mut text, segment.payload);
            head.late.push(Late {
                seq: segment.seq,
                text,
            });
            return Found::Taken;
        }
        Found::Nothing
    }

    fn break_off(&mut self, id: Id) -> Found {
        match self.take(id).map(|watched| watched.purpose) {
            Some(Purpose::Head(head)) => Found::Broken(head),
            _ => Found::Nothing,
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
        let Some(mut watched) = self.take(id) else {
            return Found::Nothing;
        };
        watched.changed_ns = watched.changed_ns.max(segment.ts_ns);
        let Purpose::Head(head) = &mut watched.purpose else {
            return Found::Nothing;
        };
        head.place.segment_end = segment.end();
        head.place.segment_ns = segment.ts_ns;
        let mut gathered = self.gather(head, fresh);
        let mut end = known;
        if let Ok(Some(taken)) = gathered {
            end += taken;
        } else {
            end = segment.payload.len();
            while let Ok(None) = gathered {
                let Some(bytes) = self.next_late(head) else {
                    break;
                };
                gathered = self.gather(head, &bytes);
                self.scratch = bytes;
            }
        }
        match (gathered, watched.purpose) {
            (Ok(Some(_)), Purpose::Head(head)) => Found::Whole(head, end),
            (Ok(None), Purpose::Head(head)) if segment.is_cut() => Found::Broken(head),
            (Ok(None), purpose) => {
                self.put(Watched { purpose, ..watched });
                Found::Taken
            }
            (Err(Refused::TooLong), Purpose::Head(head)) => Found::Broken(head),
            (Err(Refused::NoHead), Purpose::Head(head)) => {
                self.release(head);
                Found::Nothing
            }
            (_, Purpose::Start(_) | Purpose::Stream(_)) => Found::Nothing,
        }
    }

    /// A piece behind the gap that has just been filled.
    fn next_late(&mut self, head: &mut PartialHead) -> Option<Vec<u8>> {
        let next = head.next_seq;
        let at = head.late.iter().position(|late| !next.before(late.seq))?;
        let late = head.late.swap_remove(at);
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        self.texts.copy_to(&late.text, &mut bytes);
        self.texts.release(late.text);
        let known = usize::try_from(next - late.seq)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        bytes.drain(..known);
        Some(bytes)
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
        for late in head.late {
            self.texts.release(late.text);
        }
    }

    /// Keeps a copy of a segment that may be the rest of a head yet to come; whether it did.
    pub(crate) fn keep_out_of_order(&mut self, segment: &Segment<'_>) -> bool {
        self.out_of_order.keep(segment, &mut self.texts)
    }

    /// Segments that were kept so far in case they are the rest of a head yet to come.
    pub(crate) const fn kept_count(&self) -> u64 {
        self.out_of_order.count()
    }

    /// Whether the kept segment `number` (from 0), one of the last [`MAX_KEPT`], has been taken as the rest of a head.
    pub(crate) fn was_taken(&self, number: u64) -> bool {
        self.out_of_order.was_taken(number)
    }

    /// A kept segment that is the next part of the head being gathered in `direction`.
    pub(crate) fn take_out_of_order(&self, direction: &Connection) -> Option<KeptPiece> {
        let Purpose::Head(head) = &self.table.get(self.find(direction)?)?.purpose else {
            return None;
        };
        self.out_of_order.find(direction, head.next_seq)
    }

    /// The bytes of a kept segment, which is then no longer kept.
    pub(crate) fn read_out_of_order(&mut self, piece: KeptPiece, bytes: Vec<u8>) -> Vec<u8> {
        self.out_of_order.read(piece, &mut self.texts, bytes)
    }

    /// Directions that are watched.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.table.len()
    }
}
