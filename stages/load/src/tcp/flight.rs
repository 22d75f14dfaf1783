//! What the server has selectively acknowledged. Sources: RFC 2018, RFC 6675.
//!
//! What is under way to the server: exists while something is unacknowledged or waits to be sent.

use super::run::{Cursor, Run, span};
use linkweir_wire::{SeqNumber, Timestamp};

/// Ranges that are remembered; of more, the highest are forgotten, which costs retransmissions that
/// were not needed and nothing else.
const RANGES: usize = 8;

/// `DupThresh` (RFC 6675 sec. 2).
pub(super) const DUP_THRESH: u32 = 3;

/// A range of sequence numbers, the right edge not in it.
pub(super) type Range = (SeqNumber, SeqNumber);

const EMPTY: Range = (SeqNumber(0), SeqNumber(0));

/// Ranges above the cumulative acknowledgment, in order, not touching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scoreboard {
    ranges: [Range; RANGES],
    len: u8,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            ranges: [EMPTY; RANGES],
            len: 0,
        }
    }
}

impl Scoreboard {
    /// The ranges, lowest first.
    pub(super) fn ranges(&self) -> &[Range] {
        self.ranges.get(..usize::from(self.len)).unwrap_or_default()
    }

    fn set(&mut self, ranges: impl Iterator<Item = Range>) {
        self.len = 0;
        for (place, range) in self.ranges.iter_mut().zip(ranges) {
            *place = range;
            self.len += 1;
        }
    }

    /// Adds a range that the caller has checked to lie in what was sent; whether that was news.
    pub(super) fn add(&mut self, range: Range) -> bool {
        let (mut left, mut right) = range;
        if self
            .ranges()
            .iter()
            .any(|&(from, to)| !left.before(from) && !right.after(to))
        {
            return false;
        }
        let before = *self;
        let mut kept = [EMPTY; RANGES + 1];
        let mut len = 0;
        let mut put = |range: Range| {
            if let Some(place) = kept.get_mut(len) {
                *place = range;
                len += 1;
            }
        };
        let mut placed = false;
        for &(from, to) in self.ranges() {
            if to.before(left) {
                put((from, to));
            } else if from.after(right) {
                if !placed {
                    put((left, right));
                    placed = true;
                }
                put((from, to));
            } else {
                // Touches: they become one.
                left = if from.before(left) { from } else { left };
                right = if to.after(right) { to } else { right };
            }
        }
        if !placed {
            put((left, right));
        }
        self.set(kept.into_iter().take(len));
        *self != before
    }

    /// Forgets what lies before the cumulative acknowledgment.
    pub(super) fn forget_before(&mut self, una: SeqNumber) {
        if self.len == 0 {
            return;
        }
        let before = *self;
        self.set(
            before
                .ranges()
                .iter()
                .filter(|(_, to)| to.after(una))
                .map(|&(from, to)| (if from.before(una) { una } else { from }, to)),
        );
    }

    /// Forgets all: what was acknowledged selectively may be dropped by the receiver (RFC 2018
    /// sec. 8), so a timeout begins anew.
    pub(super) const fn clear(&mut self) {
        self.len = 0;
    }

    /// The number behind the range that holds `seq`; `seq` itself where none does.
    pub(super) fn skip(&self, seq: SeqNumber) -> SeqNumber {
        self.ranges()
            .iter()
            .find(|&&(from, to)| !seq.before(from) && seq.before(to))
            .map_or(seq, |&(_, to)| to)
    }

    /// The left edge of the first range above `seq`.
    pub(super) fn next_above(&self, seq: SeqNumber) -> Option<SeqNumber> {
        self.ranges()
            .iter()
            .map(|&(from, _)| from)
            .find(|from| from.after(seq))
    }

    /// Bytes acknowledged selectively above `seq`.
    fn bytes_above(&self, seq: SeqNumber) -> u32 {
        self.ranges()
            .iter()
            .filter(|(_, to)| to.after(seq))
            .map(|&(from, to)| span(if from.before(seq) { seq } else { from }, to))
            .fold(0, u32::saturating_add)
    }

    /// `IsLost` (RFC 6675 sec. 4): three ranges, or more than two segments, lie above.
    pub(super) fn is_lost(&self, seq: SeqNumber, mss: u32) -> bool {
        let above = self.ranges().iter().filter(|(from, _)| from.after(seq));
        above.count() >= DUP_THRESH as usize || self.bytes_above(seq) > (DUP_THRESH - 1) * mss
    }

    /// `pipe` (RFC 6675 sec. 4): bytes that are still under way of `una` to `nxt`, where what is lost
    /// has been sent again up to `high_rxt`.
    pub(super) fn pipe(
        &self,
        una: SeqNumber,
        nxt: SeqNumber,
        high_rxt: SeqNumber,
        mss: u32,
    ) -> u32 {
        let mut pipe = 0;
        let mut from = una;
        for &(left, right) in self.ranges() {
            if !left.before(nxt) {
                break;
            }
            let hole = span(from, left);
            pipe += if self.is_lost(from, mss) {
                span(from, high_rxt).min(hole)
            } else {
                hole
            };
            from = right;
        }
        pipe + span(from, nxt)
    }
}

/// The sending side of a connection that has something to send.
#[derive(Debug)]
pub(super) struct Flight {
    /// Data from `SND.UNA` on, sent or not; our FIN stands behind it.
    pub(super) data: Run,
    pub(super) cursor: Cursor,
    /// Highest sequence number sent, plus one.
    pub(super) snd_max: SeqNumber,
    /// `cwnd` (RFC 5681), bytes.
    pub(super) cwnd: u32,
    /// `RecoveryPoint` (RFC 6675): what was sent when the last loss was noticed.
    pub(super) recover: SeqNumber,
    /// `HighRxt` (RFC 6675): what was sent again in this recovery lies before it.
    pub(super) high_rxt: SeqNumber,
    pub(super) sacked: Scoreboard,
    /// When the first SYN was sent.
    pub(super) begun: Timestamp,
    /// When the retransmission timer, the probe or the end of FIN-WAIT-2 is due; `MAX`: it is not set.
    pub(super) due: Timestamp,
    /// The segment that is timed (RFC 6298 sec. 3): its end and when it was sent; `ZERO`: none is.
    pub(super) timed_end: SeqNumber,
    pub(super) timed_at: Timestamp,
    pub(super) duplicate_acks: u32,
    /// Timeouts since the server was last heard to go on.
    pub(super) retries: u8,
    /// Whether lost segments are sent again without waiting for the timer.
    pub(super) is_recovering: bool,
}

impl Flight {
    /// Nothing under way: the next byte is `seq`.
    pub(super) fn at(seq: SeqNumber, cwnd: u32) -> Self {
        Self {
            data: Run::at(seq),
            cursor: Cursor::default(),
            snd_max: seq,
            cwnd,
            recover: seq - 1,
            high_rxt: seq,
            sacked: Scoreboard::default(),
            begun: Timestamp::ZERO,
            due: Timestamp::MAX,
            timed_end: seq,
            timed_at: Timestamp::ZERO,
            duplicate_acks: 0,
            retries: 0,
            is_recovering: false,
        }
    }

    /// Stops timing: what is timed was sent again (Karn's algorithm, RFC 6298 sec. 3).
    pub(super) const fn forget_timing(&mut self) {
        self.timed_at = Timestamp::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seq(n: u32) -> SeqNumber {
        // Across the wrap.
        SeqNumber(u32::MAX - 5000) + n
    }

    fn ranges(ranges: &[(u32, u32)]) -> Scoreboard {
        let mut board = Scoreboard::default();
        for &(from, to) in ranges {
            board.add((seq(from), seq(to)));
        }
        board
    }

    #[test]
    fn lost_is_what_has_two_segments_or_three_ranges_above() {
        let board = ranges(&[(2000, 3000), (4000, 5000)]);
        assert!(
            !board.is_lost(seq(1000), 1000),
            "two segments are not more than two"
        );
        assert!(board.is_lost(seq(1000), 999));
        assert!(!board.is_lost(seq(3000), 999));
        let three = ranges(&[(2000, 2001), (4000, 4001), (6000, 6001)]);
        assert!(three.is_lost(seq(1000), 1000));
        assert!(!three.is_lost(seq(2500), 1000));
    }

    #[test]
    fn pipe_leaves_out_what_is_lost_or_has_arrived() {
        let mss = 1000;
        let board = ranges(&[(1000, 4000)]);
        let (una, nxt) = (seq(0), seq(10_000));
        // [0, 1000) is lost, [1000, 4000) has arrived.
        assert_eq!(board.pipe(una, nxt, una, mss), 6000);
        assert_eq!(board.pipe(una, nxt, seq(1000), mss), 7000, "sent again");
        assert_eq!(Scoreboard::default().pipe(una, nxt, una, mss), 10_000);
        assert_eq!(board.skip(seq(1000)), seq(4000));
        assert_eq!(board.skip(seq(4000)), seq(4000));
        assert_eq!(board.next_above(seq(0)), Some(seq(1000)));
    }

    proptest! {
        /// Against a set of bytes; what is remembered is true, and complete while it fits.
        #[test]
        fn ranges_are_a_set(adds in proptest::collection::vec((0_u32..300, 1_u32..40), 1..40), una in 0_u32..100) {
            let mut board = Scoreboard::default();
            let mut model = vec![false; 400];
            let mut full = false;
            for (from, len) in adds {
                let known = (from..from + len).all(|n| board.skip(seq(n)) != seq(n));
                let news = board.add((seq(from), seq(from + len)));
                prop_assert!(!(known && news));
                model[from as usize..(from + len) as usize].fill(true);
                full |= usize::from(board.len) == RANGES;
            }
            board.forget_before(seq(una));
            model[..una as usize].fill(false);
            for (n, sacked) in (0_u32..).zip(&model) {
                let says = board.skip(seq(n)) != seq(n);
                prop_assert!(!says || *sacked);
                prop_assert!(full || says == *sacked, "{}", n);
            }
            let mut last = None;
            for &(from, to) in board.ranges() {
                prop_assert!(from.before(to) && last.is_none_or(|last: SeqNumber| last.before(from)));
                last = Some(to);
            }
        }
    }
}
