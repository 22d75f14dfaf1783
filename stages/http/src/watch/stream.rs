//! One direction of a pipeline that is followed: its messages in their order, whatever the path did to its
//! segments.
//!
//! Nothing is kept of bodies: what counts is the byte at which something is to be read next, a head, the
//! size of a chunk. What comes before it is passed over, and a segment that begins behind it waits.

use std::collections::VecDeque;

use linkweir_proto::http1::ChunkedDecoder;
use linkweir_table::Chain;
use linkweir_wire::SeqNumber;

use super::head::PartialHead;
use crate::reach::SHORTEST;
use crate::segment::Segment;

/// How far the two directions may be apart in a capture, nanoseconds: what a receiver has acknowledged may still
/// be to come for so long.
const ORDER_NS: u64 = 200_000_000;
/// What ends so far before the last message is of another connection.
const PAST: i32 = 1 << 20;
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
    /// The end of a response whose first chunk was not seen.
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
    /// which it is unknown whether it has one. That to HEAD has none.
    pub(crate) behind_body: Option<SeqNumber>,
    /// Of a server's stream: where the last final response begins.
    pub(crate) last_match_seq: Option<u32>,
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
    pub(super) late: Vec<Late>,
}

#[derive(Debug)]
pub(super) struct Late {
    pub(super) seq: SeqNumber,
    pub(super) ack: u32,
    pub(super) has_ack: bool,
    pub(super) ts_ns: u64,
    pub(super) vlan: Option<u16>,
    pub(super) text: Chain,
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
            last_match_seq: None,
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
