//! Frames on their way: copies, given out again in the order in which they arrive.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use linkweir_wire::Timestamp;

use super::blocks::Blocks;

/// A frame that waits. Ordered by its time, then by when it was put: frames of one moment keep their
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    at: Timestamp,
    number: u64,
    first: u32,
    len: u32,
}

/// Frames that are released at a moment each.
#[derive(Debug, Clone)]
pub struct DelayLine {
    waiting: BinaryHeap<Reverse<Waiting>>,
    blocks: Blocks,
    most_frames: usize,
    put: u64,
    overflows: u64,
    scratch: Vec<u8>,
}

impl DelayLine {
    /// Room for so many frames of so many bytes (in blocks of 512) at a time.
    #[must_use]
    pub const fn new(most_frames: usize, most_bytes: usize) -> Self {
        Self {
            waiting: BinaryHeap::new(),
            blocks: Blocks::new(most_bytes),
            most_frames,
            put: 0,
            overflows: 0,
            scratch: Vec::new(),
        }
    }

    /// Keeps a copy of a frame until `at`. False where there is no room: the frame is lost, not by the
    /// line that is emulated but by the emulator, and the run is not valid.
    pub fn put(&mut self, at: Timestamp, frame: &[u8]) -> bool {
        let len = u32::try_from(frame.len()).ok();
        let room = len.filter(|_| self.waiting.len() < self.most_frames);
        let kept = room.and_then(|len| Some((len, self.blocks.put(frame)?)));
        let Some((len, first)) = kept else {
            self.overflows += 1;
            return false;
        };
        self.put += 1;
        self.waiting.push(Reverse(Waiting {
            at,
            number: self.put,
            first,
            len,
        }));
        true
    }

    /// Gives out the frames whose time has come, in order, with that time.
    pub fn pop_due(&mut self, now: Timestamp, mut each: impl FnMut(Timestamp, &[u8])) {
        while let Some(&Reverse(next)) = self.waiting.peek()
            && next.at <= now
        {
            self.waiting.pop();
            self.scratch.clear();
            let len = usize::try_from(next.len).unwrap_or(0);
            self.blocks.drain(next.first, len, &mut self.scratch);
            each(next.at, &self.scratch);
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
        self.blocks.used_bytes()
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
