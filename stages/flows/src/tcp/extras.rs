//! What only flows in trouble have: losses, resets, closed windows, selective acknowledgments.

use std::collections::VecDeque;

use linkweir_record::flow::{Anomaly, FlowSide};

use super::answers::Answer;
use super::before;

/// Retransmissions that wait for evidence.
const RECENT: usize = 4;
/// Ranges that were acknowledged though they were never seen.
const HOLES: usize = 4;

/// A retransmission whose class may still be corrected by what the receiver says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Recent {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) tsval: u32,
    /// Class plus one; 0: none.
    pub(crate) class: u8,
    /// Whether timestamps can still tell: no acknowledgment has covered it.
    pub(crate) is_pending: bool,
}

/// Counters and memory of a direction in trouble.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extras {
    pub(crate) pkts_retx: u64,
    pub(crate) bytes_retx: u64,
    pub(crate) pkts_ooo: u64,
    /// Sequence numbers that were passed over and have not been seen since.
    pub(crate) missed: u64,
    pub(crate) rst: u64,
    pub(crate) win_0: u64,
    pub(crate) sack: u64,
    pub(crate) dup_acks: u64,
    pub(crate) syn_retx: u64,
    pub(crate) anomalies: [u64; Anomaly::COUNT],
    pub(crate) recent: [Recent; RECENT],
    pub(crate) recent_at: u8,
    /// Class plus one and time of the last retransmission: those that follow within a round trip
    /// are of the same loss.
    pub(crate) last_class: u8,
    pub(crate) last_time: u64,
    /// Where three duplicate acknowledgments last asked for.
    pub(crate) asked: u32,
    pub(crate) was_asked: bool,
    /// When the third of them passed.
    pub(crate) asked_at: u64,
    /// What was sent when a fast retransmission began: until it is acknowledged, each partial
    /// acknowledgment asks for the next hole (RFC 6582).
    pub(crate) recover: u32,
    pub(crate) is_recovering: bool,
    /// Where and when the last segments out of sequence came.
    again: [(u32, u64); RECENT],
    again_at: u8,
    /// Highest right edge of the receiver's selective acknowledgments.
    pub(crate) sacked: u32,
    pub(crate) was_sacked: bool,
    /// When the first of them passed.
    pub(crate) sacked_at: u64,
    /// A SYN-ACK beside the first, with another number.
    pub(crate) other: Answer,
    /// When the SYN-ACK was seen that the peer took, where that is not the first; 0: not known.
    pub(crate) syn_ack_at: Option<u64>,
    holes: [(u32, u32); HOLES],
    hole_at: u8,
}

impl Extras {
    /// Counts a class and remembers the retransmission.
    pub(crate) fn count(&mut self, class: Anomaly) {
        if let Some(count) = self.anomalies.get_mut(class as usize) {
            *count = count.saturating_add(1);
        }
    }

    pub(crate) fn remember(&mut self, recent: Recent) {
        let at = usize::from(self.recent_at) % RECENT;
        if let Some(slot) = self.recent.get_mut(at) {
            *slot = recent;
        }
        self.recent_at = self.recent_at.wrapping_add(1);
    }

    /// Something came out of sequence: what was sent before it and lies behind it waits for it, so
    /// that its acknowledgment is no sample (Karn's rule).
    pub(crate) fn note_again(&mut self, start: u32, time: u64) {
        let at = usize::from(self.again_at) % RECENT;
        if let Some(slot) = self.again.get_mut(at) {
            *slot = (start, time);
        }
        self.again_at = self.again_at.wrapping_add(1);
    }

    /// Whether the acknowledgment of a segment tells how long its way took.
    pub(crate) fn may_sample(&self, start: u32, time: u64) -> bool {
        let waits = |(lower, later): &(u32, u64)| *later > time && before(*lower, start);
        !self.again.iter().any(waits)
    }

    /// A class turns out to be another.
    pub(crate) fn correct(&mut self, from: Anomaly, to: Anomaly) {
        if let Some(count) = self.anomalies.get_mut(from as usize) {
            *count = count.saturating_sub(1);
        }
        self.count(to);
    }

    /// A range was acknowledged that was never seen.
    pub(crate) fn add_hole(&mut self, start: u32, end: u32) {
        let at = usize::from(self.hole_at) % HOLES;
        if let Some(hole) = self.holes.get_mut(at) {
            *hole = (start, end);
        }
        self.hole_at = self.hole_at.wrapping_add(1);
    }

    /// Bytes of `[start, end)` that were never seen though acknowledged; now they are.
    pub(crate) fn fill_holes(&mut self, start: u32, end: u32) -> u32 {
        let mut filled = 0;
        for hole in &mut self.holes {
            let from = if before(start, hole.0) { hole.0 } else { start };
            let to = if before(hole.1, end) { hole.1 } else { end };
            if hole.0 == hole.1 || !before(from, to) {
                continue;
            }
            filled += to.wrapping_sub(from);
            // What is left of it in front or behind; of two parts the larger.
            let (front, behind) = (from.wrapping_sub(hole.0), hole.1.wrapping_sub(to));
            *hole = if front >= behind {
                (hole.0, from)
            } else {
                (to, hole.1)
            };
        }
        filled
    }

    /// Adds its numbers to those of a record.
    pub(crate) fn fill(&self, side: &mut FlowSide) {
        side.pkts_retx = self.pkts_retx;
        side.bytes_retx = self.bytes_retx;
        side.bytes_uniq = side.bytes_all.saturating_sub(self.bytes_retx);
        side.pkts_ooo = self.pkts_ooo;
        side.missed_bytes = self.missed;
        side.rst_cnt = self.rst;
        side.win_0 = self.win_0;
        side.sack_cnt = self.sack;
        side.dup_acks = self.dup_acks;
        side.syn_retx = self.syn_retx;
        side.anomalies = self.anomalies;
    }
}

// Segments in flight, where there is more than one.

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

#[cfg(test)]
mod tests {
    use super::Extras;

    #[test]
    fn holes_are_filled_once() {
        let mut extras = Extras::default();
        let base = u32::MAX - 500;
        extras.add_hole(base, base.wrapping_add(1000));
        assert_eq!(extras.fill_holes(base, base.wrapping_add(400)), 400);
        assert_eq!(extras.fill_holes(base, base.wrapping_add(400)), 0);
        assert_eq!(
            extras.fill_holes(base.wrapping_add(300), base.wrapping_add(2000)),
            600
        );
        assert_eq!(extras.fill_holes(base, base.wrapping_add(2000)), 0);
    }
}
