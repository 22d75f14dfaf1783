//! Frames on their way: copies, given out again in the order in which they arrive.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use linkweir_table::{Chain, Chunks};
use linkweir_wire::Timestamp;

/// Bytes of a block: most frames of a client (requests, ACKs) take one.
const BLOCK: usize = 512;

/// A frame that waits. Ordered by its time, then by when it was put: frames of one timestamp keep their
/// order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    at: Timestamp,
    number: u64,
    frame: Chain,
}

/// Frames with the time at which each is released.
#[derive(Debug)]
pub struct DelayLine {
    waiting: BinaryHeap<Reverse<Waiting>>,
    blocks: Chunks<BLOCK>,
    most_frames: usize,
    put: u64,
    overflows: u64,
    scratch: Vec<u8>,
}

impl DelayLine {
    /// Room for so many frames of so many bytes (in blocks of 512) at a time.
    #[must_use]
    pub fn new(most_frames: usize, most_bytes: usize) -> Self {
        Self {
            waiting: BinaryHeap::new(),
            blocks: Chunks::with_capacity(most_bytes / BLOCK),
            most_frames,
            put: 0,
            overflows: 0,
            scratch: Vec::new(),
        }
    }

    /// Keeps a copy of a frame until `at`. False where there is no room: the frame is lost, not by the
    /// line that is emulated but by the emulator, and the run is not valid.
    pub fn put(&mut self, at: Timestamp, frame: &[u8]) -> bool {
        let mut kept = Chain::new();
        if self.waiting.len() >= self.most_frames || !self.blocks.append_whole(&mut kept, frame) {
            self.overflows += 1;
            return false;
        }
        self.put += 1;
        self.waiting.push(Reverse(Waiting {
            at,
            number: self.put,
            frame: kept,
        }));
        true
    }

    /// Gives out the frames whose time has come, in order, with that time.
    pub fn pop_due(&mut self, now: Timestamp, mut each: impl FnMut(Timestamp, &[u8])) {
        while self.next_deadline().is_some_and(|at| at <= now)
            && let Some(Reverse(next)) = self.waiting.pop()
        {
            each(next.at, self.blocks.read(&next.frame, &mut self.scratch));
            self.blocks.release(next.frame);
        }
    }

    /// When the next frame is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.waiting.peek().map(|Reverse(next)| next.at)
    }

    /// Frames on their way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes of memory that frames take now.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.blocks.in_use() * BLOCK
    }

    /// Frames that were lost for want of room.
    #[must_use]
    pub const fn overflows(&self) -> u64 {
        self.overflows
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let mut line = DelayLine::new(2, 2048);
        assert!(line.put(at(5), &[1; 1500]));
        assert!(!line.put(at(5), &[2; 600]), "no bytes left");
        assert!(line.put(at(4), &[3; 500]));
        assert!(!line.put(at(6), &[4]), "no place left");
        assert_eq!((line.overflows(), line.len(), line.bytes()), (2, 2, 2048));
        assert_eq!(line.next_deadline(), Some(at(4)));
        let mut came = Vec::new();
        line.pop_due(at(3), |_, _| panic!("before its time"));
        line.pop_due(at(9), |time, frame| {
            came.push((time.as_nanos(), frame.to_vec()));
        });
        assert_eq!(came, [(4, vec![3; 500]), (5, vec![1; 1500])]);
        assert!(line.is_empty() && line.bytes() == 0);
        assert_eq!(line.next_deadline(), None);
    }

    proptest! {
        #[test]
        fn frames_come_in_the_order_of_their_times(times in prop::collection::vec((0_u64..50, 0_u64..50), 0..100)) {
            let mut line = DelayLine::new(1000, 1 << 20);
            let mut expected: Vec<(u64, Vec<u8>)> = Vec::new();
            let mut came = Vec::new();
            let mut now = 0;
            for (number, (step, wait)) in times.into_iter().enumerate() {
                now += step / 10;
                line.pop_due(at(now), |time, frame| came.push((time.as_nanos(), frame.to_vec())));
                let frame = number.to_le_bytes().repeat(1 + number % 80);
                prop_assert!(line.put(at(now + wait), &frame));
                expected.push((now + wait, frame));
            }
            line.pop_due(Timestamp::MAX, |time, frame| came.push((time.as_nanos(), frame.to_vec())));
            // Stable: those of one time in the order in which they were put.
            expected.sort_by_key(|(time, _)| *time);
            prop_assert_eq!(came, expected);
        }
    }
}
