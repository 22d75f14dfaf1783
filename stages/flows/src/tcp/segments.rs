//! Segments in flight, where there is more than one.

use std::collections::VecDeque;

use super::before;

/// A segment that was seen and not yet acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Segment {
    /// When its last copy was seen, nanoseconds since the epoch.
    pub(crate) time: u64,
    /// First sequence number.
    pub(crate) start: u32,
    /// One past its last sequence number.
    pub(crate) end: u32,
    /// `TSval` of its last copy; 0 without timestamps.
    pub(crate) tsval: u32,
    /// Identification field of its last copy; 0: none.
    pub(crate) ip_id: u16,
    /// Class plus one where it was out of sequence; 0: in sequence.
    pub(crate) class: u8,
    /// Whether more than one copy was seen (Karn's rule: no sample).
    pub(crate) was_sent_again: bool,
}

/// Longest list: bytes in flight of a 10 Gb/s path with 10 ms, in full segments. What is in front
/// then counts as acknowledged.
pub(crate) const MAX_SEGMENTS: usize = 8192;

/// Capacity that a list keeps when it is given back.
const KEPT: usize = 64;

/// Segments in the order of their sequence numbers, without overlap.
#[derive(Debug, Clone, Default)]
pub(crate) struct SegmentList(pub(crate) VecDeque<Segment>);

impl SegmentList {
    /// Empties it for the next user.
    pub(crate) fn reset(&mut self) {
        self.0.clear();
        if self.0.capacity() > KEPT {
            self.0.shrink_to(KEPT);
        }
    }

    /// Place of the first segment that ends after `seq`.
    pub(crate) fn first_after(&self, seq: u32) -> usize {
        self.0.partition_point(|segment| !before(seq, segment.end))
    }
}
