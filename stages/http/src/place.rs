//! Where a head stands.

use linkweir_wire::SeqNumber;

use crate::key::Connection;
use crate::segment::Segment;

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
}
