//! One direction of a pipeline that is followed: its messages in their order, whatever the path did to its
//! segments.
//!
//! Nothing is kept of bodies: what counts is the byte at which something is to be read next, a head, the
//! size of a chunk. What comes before it is passed over, and a segment that begins behind it waits.

use std::collections::VecDeque;

use linkweir_proto::http1::ChunkedDecoder;
use linkweir_table::Chain;
use linkweir_wire::SeqNumber;

use super::{PartialHead, Purpose, Refused, WatchList, Watched};
use crate::key::Connection;
use crate::place::Place;
use crate::reach::SHORTEST;
use crate::segment::Segment;

/// Segments behind a gap that wait, at most.
const MAX_LATE: usize = 512;
/// How long a gap is waited for, nanoseconds of capture time: a sender's longest pauses are not much longer.
const GAP_NS: u64 = 10_000_000_000;
/// How far the two directions may be apart in a capture, nanoseconds: what a receiver has acknowledged may still
/// be to come for so long.
const ORDER_NS: u64 = 200_000_000;
/// What ends so far before the last message is of another connection.
const PAST: i32 = 1 << 20;
/// What begins further behind a gap is of another connection.
const FAR: i32 = 1 << 24;
/// Messages whose beginnings are known, to count them when they come again.
const STARTS: usize = 64;

/// What is read next of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A message.
    Message,
    /// The rest of a head.
    Head,
    /// Chunks.
    Chunks(ChunkedDecoder),
    /// The end of a response of which nobody saw where its chunks begin.
    Unknown,
}

/// One direction of a pipeline that is followed.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Whether requests are in it.
    pub(crate) is_client: bool,
    /// Where the next thing to read begins.
    pub(crate) next_seq: SeqNumber,
    pub(crate) next: Next,
    /// Which request comes next, or is answered next.
    pub(crate) turn: u32,
    /// Of a server's stream, before a message: where it begins if what is due is the body of a response of
    /// which nobody knows whether it has one. That to HEAD has none.
    pub(crate) behind_body: Option<SeqNumber>,
    /// Of a server's stream: where the last final response begins.
    pub(crate) last_link: Option<u32>,
    /// Where the first of its messages begins.
    pub(crate) base: SeqNumber,
    /// Where its last messages begin, the last last.
    pub(crate) starts: VecDeque<SeqNumber>,
    /// The head that is coming.
    pub(crate) head: Option<PartialHead>,
    /// Of a client's stream: what its last request acknowledges.
    pub(crate) last_ack: u32,
    /// Of a client's stream: where the last request begins that was answered before.
    pub(crate) answered: Option<SeqNumber>,
    /// Of a client's stream: what was read before something before it came, where it begins and ends, in
    /// order; it is passed over.
    pub(crate) islands: VecDeque<(SeqNumber, SeqNumber)>,
    /// Of a client's stream: responses that came before their requests, by turn, and where they begin.
    pub(crate) unasked: VecDeque<(u32, u32)>,
    /// What waits for bytes before it, in the order of sequence numbers.
    late: Vec<Late>,
}

#[derive(Debug)]
struct Late {
    seq: SeqNumber,
    ack: u32,
    has_ack: bool,
    ts_ns: u64,
    vlan: Option<u16>,
    text: Chain,
}

/// What becomes of a segment behind a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// It waits, or is there already, or found no room.
    Waits,
    /// The gap will not be filled any more, or is none: it is another connection's segment.
    GivenUp,
}

impl Stream {
    /// A stream of requests, or of responses, of which the one of this turn begins at `begin`.
    pub(crate) fn new(is_client: bool, begin: SeqNumber, turn: u32) -> Self {
        Self {
            is_client,
            next_seq: begin,
            next: Next::Message,
            turn,
            behind_body: None,
            last_link: None,
            base: begin,
            starts: VecDeque::new(),
            head: None,
            last_ack: 0,
            answered: None,
            islands: VecDeque::new(),
            unasked: VecDeque::new(),
            late: Vec::new(),
        }
    }

    /// Notes where a message begins.
    pub(crate) fn note_start(&mut self, seq: SeqNumber) {
        if self.starts.len() == STARTS {
            self.starts.pop_front();
        }
        self.starts.push_back(seq);
    }

    /// Whether a segment is of another connection with the same ports: it ends long before the last message.
    pub(crate) fn is_foreign(&self, segment: &Segment<'_>) -> bool {
        let last = self.starts.back().copied().unwrap_or(self.base);
        segment.end() - last < -PAST
    }

    /// What the first segment behind a gap acknowledges and where the last one ends, if there is a gap in
    /// which a message may be missing.
    pub(crate) fn gap(&self) -> Option<(u32, SeqNumber)> {
        let (first, last) = (self.late.first()?, self.late.last()?);
        let len = u32::try_from(last.text.len()).unwrap_or(u32::MAX);
        let end = SeqNumber(last.seq.0.wrapping_add(len));
        (first.seq - self.next_seq >= SHORTEST).then_some((first.ack, end))
    }

    /// Where the gap ends that is waited for, if its receiver has `acked` it a while ago.
    pub(crate) fn lost_before(&self, acked: SeqNumber, now_ns: u64) -> Option<SeqNumber> {
        let first = self.late.first()?;
        let is_acked = !acked.before(first.seq);
        (is_acked && now_ns.saturating_sub(first.ts_ns) > ORDER_NS).then_some(first.seq)
    }
}

impl WatchList {
    /// Follows a direction, from now on or again.
    pub(crate) fn follow(&mut self, direction: Connection, stream: Box<Stream>, now_ns: u64) {
        let id = self.find(&direction);
        if let Some(id) = id
            && let Some(watched) = self.table.get_mut(id)
            && let Purpose::Stream(place) = &mut watched.purpose
        {
            *place = Some(stream);
            watched.changed_ns = now_ns;
            return self.table.refresh(id);
        }
        self.put(Watched {
            direction,
            changed_ns: now_ns,
            purpose: Purpose::Stream(Some(stream)),
        });
    }

    /// Follows a direction no longer.
    pub(crate) fn forget(&mut self, direction: &Connection) {
        if let Some(id) = self.find(direction) {
            self.take(id);
        }
    }

    /// Whether two more directions find no room.
    pub(crate) const fn lacks_pair(&self) -> bool {
        self.table.len() + 2 > self.table.capacity()
    }

    /// The stream of a direction that is followed.
    pub(crate) fn stream_mut(&mut self, direction: &Connection) -> Option<&mut Stream> {
        let id = self.find(direction)?;
        match &mut self.table.get_mut(id)?.purpose {
            Purpose::Stream(stream) => stream.as_deref_mut(),
            Purpose::Head(_) | Purpose::Start(_) => None,
        }
    }

    /// Takes the stream of a direction to read on: the direction is followed meanwhile too.
    pub(crate) fn take_stream(&mut self, direction: &Connection) -> Option<Box<Stream>> {
        let id = self.find(direction)?;
        match &mut self.table.get_mut(id)?.purpose {
            Purpose::Stream(stream) => stream.take(),
            Purpose::Head(_) | Purpose::Start(_) => None,
        }
    }

    /// Ends any other watch over a direction; what was gathered of a head waits in its stream.
    pub(crate) fn absorb(&mut self, direction: &Connection, stream: &mut Stream) {
        let watched = self.find(direction).and_then(|id| self.take(id));
        match watched.map(|watched| watched.purpose) {
            Some(Purpose::Head(head)) => {
                let place = head.place;
                let late = head.late.into_iter().map(|late| (late.seq, late.text));
                for (seq, text) in std::iter::once((place.seq, head.text)).chain(late) {
                    stream.late.push(Late {
                        seq,
                        ack: place.ack,
                        has_ack: place.has_ack,
                        ts_ns: place.ts_ns,
                        vlan: place.vlan,
                        text,
                    });
                }
                stream.late.sort_by_key(|late| late.seq - place.seq);
            }
            Some(Purpose::Stream(Some(old))) => self.release_stream(*old),
            Some(Purpose::Start(_) | Purpose::Stream(None)) | None => {}
        }
    }

    /// Keeps a segment that begins behind a gap.
    pub(crate) fn keep_late(&mut self, stream: &mut Stream, segment: &Segment<'_>) -> Gap {
        let waits_since = stream.late.iter().map(|late| late.ts_ns).min();
        if waits_since.is_some_and(|since| segment.ts_ns.saturating_sub(since) > GAP_NS)
            || segment.is_cut()
            || segment.seq - stream.next_seq > FAR
        {
            return Gap::GivenUp;
        }
        let at = stream
            .late
            .partition_point(|late| late.seq.before(segment.seq));
        let is_there = stream.late.get(at).is_some_and(|late| {
            late.seq == segment.seq && late.text.len() >= segment.payload.len()
        });
        if !is_there && stream.late.len() < MAX_LATE && self.texts.has_room(segment.payload.len()) {
            let mut text = Chain::default();
            self.texts.append(&mut text, segment.payload);
            stream.late.insert(
                at,
                Late {
                    seq: segment.seq,
                    ack: segment.ack,
                    has_ack: segment.has_ack,
                    ts_ns: segment.ts_ns,
                    vlan: segment.vlan,
                    text,
                },
            );
        }
        Gap::Waits
    }

    /// The first segment that waited, where the bytes before it are there by now, or where `all` are wanted.
    /// `bytes` is for its payload.
    pub(crate) fn next_segment<'a>(
        &mut self,
        direction: &Connection,
        stream: &mut Stream,
        all: bool,
        bytes: &'a mut Vec<u8>,
    ) -> Option<Segment<'a>> {
        let first = stream.late.first()?;
        let is_due = !stream.next_seq.before(first.seq);
        if !is_due && !all {
            return None;
        }
        let late = stream.late.remove(0);
        bytes.clear();
        self.texts.copy_to(&late.text, bytes);
        self.texts.release(late.text);
        Some(Segment {
            direction: *direction,
            seq: late.seq,
            ack: late.ack,
            has_ack: late.has_ack,
            ts_ns: late.ts_ns,
            vlan: late.vlan,
            payload: bytes,
            payload_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        })
    }

    /// Begins to gather the head at `place`; `None` where `bytes` are none after all.
    pub(crate) fn begin_in(&mut self, place: Place, bytes: &[u8]) -> Option<PartialHead> {
        let mut head = PartialHead::new(place);
        match self.gather(&mut head, bytes) {
            Ok(_) => Some(head),
            Err(_) => {
                self.release(head);
                None
            }
        }
    }

    /// Adds to the head of a stream what `segment` has of it in `bytes`. Says how many of these were taken
    /// where the head is whole with them.
    pub(crate) fn gather_in(
        &mut self,
        head: &mut PartialHead,
        segment: &Segment<'_>,
        bytes: &[u8],
    ) -> Result<Option<usize>, Refused> {
        head.place.segment_end = segment.end();
        head.place.segment_ns = segment.ts_ns;
        self.gather(head, bytes)
    }

    /// Gives the memory of a stream back.
    pub(crate) fn release_stream(&mut self, stream: Stream) {
        if let Some(head) = stream.head {
            self.release(head);
        }
        for late in stream.late {
            self.texts.release(late.text);
        }
    }
}
