//! What shards hand to one another where every packet is distributed by itself, by Eq. (3).
//!
//! A plain request and its response have one match number and meet in one shard. But a request moves on to
//! another match number when an interim response goes by, and those that were pipelined behind it when it is
//! answered: then they belong to the shard of that match number, and go there as a [`Handoff`]. So does a
//! response that begins inside a segment, and a packet whose IP fragments met in the shard of its
//! addresses. Either half may come first.
//!
//! What this does not mend is what a shard never sees: the rest of a response head that goes on in
//! another segment, a response that begins inside a segment behind the end of a longer body, the
//! bodies (time to last byte), and retransmissions of what was handed over (they are counted, not
//! noted in the record). [`crate::TransactionGroups`] has none of these limits.

use linkweir_wire::{LinkType, Timestamp};

use crate::segment::Place;

/// A request in a handoff.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) place: Place,
    pub(crate) bytes: Option<u64>,
    pub(crate) minor: u8,
    pub(crate) retransmissions: u16,
    pub(crate) interim_responses: u16,
    pub(crate) lens: [u16; 4],
    pub(crate) text: Box<[u8]>,
}

/// Messages that belong to another shard.
#[derive(Debug)]
pub struct Handoff(pub(crate) Content);

/// What is in a handoff.
#[derive(Debug)]
pub(crate) enum Content {
    Messages(Messages),
    /// A packet that came in parts, as a frame.
    Packet {
        timestamp: Timestamp,
        link: LinkType,
        wire_len: u32,
        bytes: Box<[u8]>,
    },
}

#[derive(Debug)]
pub(crate) enum Messages {
    /// Requests that wait for the response at this match number, the first first.
    Requests {
        match_seq: u32,
        requests: Vec<Request>,
    },
    /// A response: its whole head, and its body where that is chunked and whole.
    Response { place: Place, bytes: Box<[u8]> },
}
