//! A TCP segment with payload, where a head stands in it, and what it was to the matcher.

use linkweir_wire::{Network, SeqNumber, Tcp, TcpFlags};

use crate::key::Connection;

/// A segment with payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    /// Sender first.
    pub(crate) direction: Connection,
    pub(crate) seq: SeqNumber,
    /// The acknowledgment number; zero where there is none.
    pub(crate) ack: u32,
    pub(crate) has_ack: bool,
    pub(crate) ts_ns: u64,
    pub(crate) vlan: Option<u16>,
    pub(crate) payload: &'a [u8],
    /// Payload on the wire; more than `payload` where the capture cut the frame.
    pub(crate) payload_len: u32,
}

impl<'a> Segment<'a> {
    #[inline]
    pub(crate) const fn new(
        network: &Network<'_>,
        tcp: &Tcp<'a>,
        ts_ns: u64,
        vlan: Option<u16>,
    ) -> Self {
        // Data on a SYN stands one behind the SYN's own number (RFC 9293 sec. 3.4).
        let syn = tcp.flags().contains(TcpFlags::SYN) as u32;
        let has_ack = tcp.flags().contains(TcpFlags::ACK);
        Self {
            has_ack,
            direction: Connection::sent_by_client(network, tcp),
            seq: SeqNumber(tcp.seq().0.wrapping_add(syn)),
            ack: if has_ack { tcp.ack().0 } else { 0 },
            ts_ns,
            vlan,
            payload: tcp.payload,
            payload_len: tcp.payload_len,
        }
    }

    /// Whether the capture holds less than the wire had.
    pub(crate) const fn is_cut(&self) -> bool {
        self.payload.len() < self.payload_len as usize
    }

    /// The sequence number of the byte at `offset`.
    pub(crate) fn seq_at(&self, offset: usize) -> SeqNumber {
        SeqNumber(
            self.seq
                .0
                .wrapping_add(u32::try_from(offset).unwrap_or(u32::MAX)),
        )
    }

    /// The sequence number after the payload.
    pub(crate) const fn end(&self) -> SeqNumber {
        SeqNumber(self.seq.0.wrapping_add(self.payload_len))
    }
}

/// Where and when a head begins, and the segment in which it ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Sender first.
    pub(crate) direction: Connection,
    pub(crate) seq: SeqNumber,
    /// The acknowledgment number; zero where there is none.
    pub(crate) ack: u32,
    pub(crate) has_ack: bool,
    pub(crate) ts_ns: u64,
    pub(crate) vlan: Option<u16>,
    pub(crate) segment_end: SeqNumber,
    pub(crate) segment_ns: u64,
    pub(crate) standing: Standing,
}

/// What is known of a message beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing: its numbers tell what it belongs to.
    Alone {
        /// Whether all of its segment is at hand, so that the connection can be followed from here on.
        is_whole: bool,
    },
    /// It is the next of its direction in a pipeline that is followed: the request of this turn, or its answer.
    InTurn(u32),
    /// It was seen before.
    Again,
}

impl Standing {
    /// Which request of a followed pipeline it is, or answers.
    #[inline]
    pub(crate) const fn turn(self) -> Option<u32> {
        match self {
            Self::InTurn(turn) => Some(turn),
            Self::Alone { .. } | Self::Again => None,
        }
    }
}

impl Place {
    #[inline]
    pub(crate) fn new(segment: &Segment<'_>, offset: usize) -> Self {
        Self {
            direction: segment.direction,
            seq: segment.seq_at(offset),
            ack: segment.ack,
            has_ack: segment.has_ack,
            ts_ns: segment.ts_ns,
            vlan: segment.vlan,
            segment_end: segment.end(),
            segment_ns: segment.ts_ns,
            standing: Standing::Alone {
                is_whole: !segment.is_cut(),
            },
        }
    }

    /// The segment that a head at this place would have been alone.
    pub(crate) fn piece<'a>(&self, head: &'a [u8]) -> Segment<'a> {
        Segment {
            direction: self.direction,
            seq: self.seq,
            ack: self.ack,
            has_ack: self.has_ack,
            ts_ns: self.ts_ns,
            vlan: self.vlan,
            payload: head,
            payload_len: u32::try_from(head.len()).unwrap_or(u32::MAX),
        }
    }
}

/// What a segment was to the matcher: whether it could as well have been missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relevance {
    /// Nothing.
    Irrelevant,
    /// A copy was kept in case it is the rest of a head yet to come.
    OutOfOrder,
    /// Its first byte was looked at as that of a message, as that of any segment is.
    Start,
    /// What came before it had to do with it.
    Other,
}
