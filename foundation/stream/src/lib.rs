//! One direction of a TCP connection, in order: for protocols that cannot be read from single segments.
//!
//! [`InOrder`] gives each byte once, at its first copy, and says where bytes are missing. It never waits for ever: a
//! gap is given up as soon as its receiver has acknowledged it and the capture had time to bring it, when it has lasted
//! too long, or when too much waits behind it. What waits lies in a pool that all directions share.
#![forbid(unsafe_code)]

use linkweir_table::{Chain, Chunks};
use linkweir_wire::SeqNumber;
use std::collections::VecDeque;

/// Segments behind a gap that wait, of one direction: what a sender at 1 Gbit/s sends in 45 ms.
pub const MAX_LATE: usize = 4096;
/// The same while those that come have no bytes, and take no room in the pool.
const MAX_EMPTY: usize = 128;
/// How far the two directions of a capture may be apart, nanoseconds: what a receiver has acknowledged may still be to
/// come for so long.
const ORDER_NS: u64 = 200_000_000;
/// How long a gap is waited for, nanoseconds of capture time: a sender's longest pauses are not much longer.
const GAP_NS: u64 = 10_000_000_000;
/// What begins further away is of another connection with the same ports.
const FAR: u32 = 1 << 24;

/// A segment with payload.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// Sequence number of its first byte.
    pub seq: SeqNumber,
    /// What was captured of the payload.
    pub bytes: &'a [u8],
    /// Bytes of payload on the wire.
    pub len: u32,
    /// When it was seen, nanoseconds since the epoch.
    pub ts_ns: u64,
}

/// What comes next of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes, and when they were seen.
    Bytes(&'a [u8], u64),
    /// So many bytes are missing: lost, not captured, or cut off. The time is that of what comes behind them.
    Gap(u32, u64),
}

/// What became of the segments of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InOrderCounters {
    /// Segments of which nothing was new.
    pub repeated: u64,
    /// Segments that came before one in front of them.
    pub late: u64,
    /// Gaps that were given up.
    pub gaps: u64,
    /// Bytes in them, and bytes that were cut off.
    pub missing_bytes: u64,
    /// Segments too far away to be of this connection.
    pub foreign: u64,
}

#[derive(Debug)]
struct Late {
    seq: SeqNumber,
    len: u32,
    ts_ns: u64,
    text: Chain,
}

/// The reader of one direction.
///
/// Shape: up to [`MAX_LATE`] segments in a pool of the caller, nothing else; give them back with [`InOrder::release`].
/// Cost: a segment that comes in order is passed on without a copy.
#[derive(Debug)]
pub struct InOrder {
    next: SeqNumber,
    /// What waits, in the order of sequence numbers; no two begin at the same.
    late: VecDeque<Late>,
    counters: InOrderCounters,
}

impl InOrder {
    /// From the byte with this number on.
    #[must_use]
    pub const fn new(next: SeqNumber) -> Self {
        Self {
            next,
            late: VecDeque::new(),
            counters: InOrderCounters {
                repeated: 0,
                late: 0,
                gaps: 0,
                missing_bytes: 0,
                foreign: 0,
            },
        }
    }

    /// The number of the byte that is due.
    #[must_use]
    pub const fn next(&self) -> SeqNumber {
        self.next
    }

    /// What became of the segments.
    #[must_use]
    pub const fn counters(&self) -> InOrderCounters {
        self.counters
    }

    /// A segment. What is in order by now is given to `deliver`; `scratch` is for what waited.
    pub fn take(
        &mut self,
        segment: &Segment<'_>,
        pool: &mut Chunks,
        scratch: &mut Vec<u8>,
        mut deliver: impl FnMut(Piece<'_>),
    ) {
        let ahead = segment.seq - self.next;
        if ahead.unsigned_abs() > FAR {
            self.counters.foreign += 1;
            return;
        }
        if ahead <= 0 {
            self.pass(segment, &mut deliver);
        } else if !self.keep(segment, pool) {
            // No room: the gap is given up for it, and then all that waits is before it or behind it.
            self.give_up_to(segment.seq, pool, scratch, &mut deliver);
            self.close_gap(segment.seq, segment.ts_ns, &mut deliver);
            self.pass(segment, &mut deliver);
        }
        self.pass_late(pool, scratch, &mut deliver);
        let waits_since = self.late.front().map(|late| late.ts_ns);
        if waits_since.is_some_and(|since| segment.ts_ns.saturating_sub(since) > GAP_NS) {
            self.give_up_first(pool, scratch, &mut deliver);
        }
    }

    /// The receiver has everything before `ack`: gaps before it will not be filled any more.
    pub fn acknowledged(
        &mut self,
        ack: SeqNumber,
        now_ns: u64,
        pool: &mut Chunks,
        scratch: &mut Vec<u8>,
        mut deliver: impl FnMut(Piece<'_>),
    ) {
        while let Some(first) = self.late.front()
            && !ack.before(first.seq)
            && now_ns.saturating_sub(first.ts_ns) > ORDER_NS
        {
            self.give_up_first(pool, scratch, &mut deliver);
        }
    }

    /// Nothing more comes: gives what waits, and the gaps before it.
    pub fn finish(
        &mut self,
        pool: &mut Chunks,
        scratch: &mut Vec<u8>,
        mut deliver: impl FnMut(Piece<'_>),
    ) {
        while !self.late.is_empty() {
            self.give_up_first(pool, scratch, &mut deliver);
        }
    }

    /// Gives back what waits, unread.
    pub fn release(&mut self, pool: &mut Chunks) {
        for late in self.late.drain(..) {
            pool.release(late.text);
        }
    }

    /// Passes on what is new of a segment that begins at the byte that is due or before it.
    fn pass(&mut self, segment: &Segment<'_>, deliver: &mut impl FnMut(Piece<'_>)) {
        let known = (self.next - segment.seq).unsigned_abs();
        let Some(new) = segment.len.checked_sub(known).filter(|new| *new > 0) else {
            self.counters.repeated += 1;
            return;
        };
        self.next = SeqNumber(self.next.0.wrapping_add(new));
        let bytes = segment.bytes.get(known as usize..).unwrap_or_default();
        if !bytes.is_empty() {
            deliver(Piece::Bytes(bytes, segment.ts_ns));
        }
        let cut = new.saturating_sub(u32::try_from(bytes.len()).unwrap_or(new));
        if cut > 0 {
            self.counters.missing_bytes += u64::from(cut);
            deliver(Piece::Gap(cut, segment.ts_ns));
        }
    }

    /// Keeps a segment until the gap before it is filled; `false` if the pool or the list is full.
    fn keep(&mut self, segment: &Segment<'_>, pool: &mut Chunks) -> bool {
        let at = self
            .late
            .partition_point(|late| late.seq.before(segment.seq));
        let same = self.late.get(at).filter(|late| late.seq == segment.seq);
        if same.is_some_and(|late| late.len >= segment.len) {
            self.counters.repeated += 1;
            return true;
        }
        let most = if segment.bytes.is_empty() {
            MAX_EMPTY
        } else {
            MAX_LATE
        };
        if self.late.len() >= most || !pool.has_room(segment.bytes.len()) {
            return false;
        }
        let mut text = Chain::new();
        pool.append(&mut text, segment.bytes);
        let late = Late {
            seq: segment.seq,
            len: segment.len,
            ts_ns: segment.ts_ns,
            text,
        };
        self.counters.late += 1;
        // A longer one replaces it: its bytes are the same, or nobody knows which the receiver took.
        match self.late.get_mut(at).filter(|other| other.seq == late.seq) {
            Some(place) => pool.release(std::mem::replace(place, late).text),
            None => self.late.insert(at, late),
        }
        true
    }

    /// Passes on what waited and is in order by now.
    fn pass_late(
        &mut self,
        pool: &mut Chunks,
        scratch: &mut Vec<u8>,
        deliver: &mut impl FnMut(Piece<'_>),
    ) {
        while let Some(late) = self.late.pop_front_if(|first| !self.next.before(first.seq)) {
            scratch.clear();
            pool.copy_to(&late.text, scratch);
            pool.release(late.text);
            let segment = Segment {
                seq: late.seq,
                bytes: scratch,
                len: late.len,
                ts_ns: late.ts_ns,
            };
            self.pass(&segment, deliver);
        }
    }

    /// The bytes before `seq` will not come any more.
    fn close_gap(&mut self, seq: SeqNumber, ts_ns: u64, deliver: &mut impl FnMut(Piece<'_>)) {
        let Ok(missing @ 1..) = u32::try_from(seq - self.next) else {
            return;
        };
        self.next = seq;
        self.counters.gaps += 1;
        self.counters.missing_bytes += u64::from(missing);
        deliver(Piece::Gap(missing, ts_ns));
    }

    /// Gives up the first gap, and passes on what waited behind it.
    fn give_up_first(
        &mut self,
        pool: &mut Chunks,
        scratch: &mut Vec<u8>,
        deliver: &mut impl FnMut(Piece<'_>),
    ) {
        if let Some((seq, ts_ns)) = self.late.front().map(|first| (first.seq, first.ts_ns)) {
            self.close_gap(seq, ts_ns, deliver);
            self.pass_late(pool, scratch, deliver);
        }
    }

    /// Gives up all gaps before what waits before `seq`.
    fn give_up_to(
        &mut self,
        seq: SeqNumber,
        pool: &mut Chunks,
        scratch: &mut Vec<u8>,
        deliver: &mut impl FnMut(Piece<'_>),
    ) {
        while self.late.front().is_some_and(|first| first.seq.before(seq)) {
            self.give_up_first(pool, scratch, deliver);
        }
    }
}

#[cfg(test)]
mod tests;
