//! A message that waits, as the table keeps it.

use linkweir_table::{Chain, Id};
use linkweir_wire::SeqNumber;

use crate::key::Connection;
use crate::segment::Place;

/// A message in the table.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The connection, client first.
    pub(crate) connection: Connection,
    /// The number that both halves share.
    pub(crate) match_seq: u32,
    /// Time of its first packet, nanoseconds.
    pub(crate) ts_ns: u64,
    /// Time of the last change, never falling, nanoseconds: the order of leaving.
    pub(crate) changed_ns: u64,
    /// Time of the last change by the packet's own clock: what a counterpart's time is compared to,
    /// so that it does not matter which other packets the stage sees.
    pub(crate) packet_ns: u64,
    /// Texts, one after the other.
    pub(crate) text: Chain,
    /// Head and declared body.
    pub(crate) bytes: Option<u64>,
    /// Outermost VLAN id.
    pub(crate) vlan: Option<u16>,
    /// HTTP minor version.
    pub(crate) minor: u8,
    /// Times it was seen again.
    pub(crate) retransmissions: u16,
    /// What it is.
    pub(crate) half: Half,
}

impl Waiting {
    /// The sequence number of a request; of a response, its match number.
    pub(crate) const fn request_seq(&self) -> SeqNumber {
        match &self.half {
            Half::Request(request) => request.seq,
            Half::Response(_) => SeqNumber(self.match_seq),
        }
    }

    /// Which request of a followed pipeline it is.
    pub(crate) const fn turn(&self) -> Option<u32> {
        match &self.half {
            Half::Request(request) if request.turn > 0 => Some(request.turn),
            _ => None,
        }
    }

    /// Taken out of a queue, it is of no pipeline any more.
    pub(crate) const fn stand_alone(&mut self) {
        if let Half::Request(request) = &mut self.half {
            request.turn = 0;
            request.leads = true;
            (request.behind, request.before, request.last) = (None, None, None);
            request.followers = 0;
        }
    }

    /// The match number at which the pipeline of a request began; of a response, its own.
    pub(crate) const fn origin(&self) -> u32 {
        match &self.half {
            Half::Request(request) => request.origin,
            Half::Response(_) => self.match_seq,
        }
    }
}

/// Which half of a transaction an entry is, with what only that half has.
#[derive(Debug)]
pub(crate) enum Half {
    /// A request.
    Request(WaitingRequest),
    /// A final response that came before its request, or without one.
    Response(WaitingResponse),
}

/// What is kept of a request.
#[derive(Debug)]
pub(crate) struct WaitingRequest {
    /// Sequence number of its first byte.
    pub(crate) seq: SeqNumber,
    /// Its acknowledgment number: the match number at which its pipeline began.
    pub(crate) origin: u32,
    /// Interim responses so far.
    pub(crate) interim_responses: u16,
    /// Lengths of method, target, host and agent in the text; kept header fields are the rest.
    pub(crate) lens: [u16; 4],
    /// Whether it came on a SYN, without an acknowledgment number (RFC 7413).
    pub(crate) on_syn: bool,
    /// Which request of a followed pipeline it is; 0: of none.
    pub(super) turn: u32,
    /// Whether it is the one that the next response answers.
    pub(super) leads: bool,
    /// The request behind it.
    pub(super) behind: Option<Id>,
    /// The request before it.
    pub(super) before: Option<Id>,
    /// Of a leader: the last of its queue and how many follow.
    pub(super) last: Option<Id>,
    pub(super) followers: u32,
}

impl WaitingRequest {
    /// Whether no other waits with it.
    pub(crate) const fn is_alone(&self) -> bool {
        self.leads && self.behind.is_none()
    }

    /// A request that stands alone.
    pub(crate) fn new(place: &Place, lens: [u16; 4]) -> Self {
        Self {
            turn: place.standing.turn().unwrap_or(0),
            seq: place.seq,
            origin: place.ack,
            interim_responses: 0,
            lens,
            on_syn: !place.has_ack,
            leads: true,
            behind: None,
            before: None,
            last: None,
            followers: 0,
        }
    }
}

impl WaitingResponse {
    /// Whether the server had seen a request that begins at `seq` when it sent this.
    pub(crate) fn acknowledges(&self, seq: SeqNumber) -> bool {
        self.ack.is_none_or(|ack| seq.before(ack))
    }
}

/// What is kept of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingResponse {
    /// The sequence number after the segment in which its head ended.
    pub(crate) seen_to: SeqNumber,
    /// Time of that segment, nanoseconds.
    pub(crate) seen_ns: u64,
    /// Its acknowledgment number: it answers no request from there on.
    pub(crate) ack: Option<SeqNumber>,
    /// Status code.
    pub(crate) status_code: u16,
    /// Length of the reason phrase in the text.
    pub(crate) reason_len: u16,
    /// Length of the content type behind it; kept header fields are the rest.
    pub(crate) type_len: u16,
    /// Bytes of the head.
    pub(crate) head_len: u32,
    /// `Content-Length`.
    pub(crate) content_length: Option<u64>,
    /// Whether the body is chunked; and its length where it was all in the segment.
    pub(crate) chunked: bool,
    /// Length of a chunked body that was seen whole.
    pub(crate) chunked_len: Option<u32>,
}
