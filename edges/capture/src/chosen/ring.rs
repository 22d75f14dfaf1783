//! Packets that wait until it is known which of them are wanted.

use std::collections::VecDeque;

use linkweir_engine::{Batch, Frame, FrameRef};

/// Bytes of frames that are stored together: nothing is allocated for one packet.
const SEGMENT_BYTES: usize = 1 << 20;

/// The latest packets, in the order in which they came: at most so many bytes, and of at most such a length of
/// time. What has no place any more leaves at the front.
#[derive(Debug)]
pub struct Ring {
    segments: VecDeque<Segment>,
    /// One that became empty, for the next.
    spare: Option<Segment>,
    bytes: usize,
    max_bytes: usize,
    max_ns: u64,
    /// Latest capture time.
    newest: u64,
}

/// Frames in one buffer.
#[derive(Debug, Default)]
struct Segment {
    bytes: Vec<u8>,
    frames: Vec<FrameRef>,
    /// The first that has not left.
    next: usize,
}

impl Segment {
    fn has_room_for(&self, length: usize) -> bool {
        self.bytes.is_empty() || self.bytes.len().saturating_add(length) <= SEGMENT_BYTES
    }
}

/// What a frame takes of the limit: its bytes and its place in the index.
const fn cost(frame: &FrameRef) -> usize {
    frame.captured_len as usize + size_of::<FrameRef>()
}

impl Ring {
    /// An empty ring of so many bytes and nanoseconds of capture time.
    #[must_use]
    pub const fn new(max_bytes: usize, max_ns: u64) -> Self {
        Self {
            segments: VecDeque::new(),
            spare: None,
            bytes: 0,
            max_bytes,
            max_ns,
            newest: 0,
        }
    }

    /// Takes a frame in; `leaves` gets those that have no place any more.
    pub fn push(&mut self, frame: &Frame<'_>, leaves: &mut impl FnMut(&Frame<'_>)) {
        self.newest = self.newest.max(frame.timestamp.as_nanos());
        let length = frame.bytes.len();
        let has_room = |segment: &Segment| segment.has_room_for(length);
        if !self.segments.back().is_some_and(has_room) {
            let fresh = self.spare.take().unwrap_or_else(|| Segment {
                bytes: Vec::with_capacity(SEGMENT_BYTES),
                ..Segment::default()
            });
            self.segments.push_back(fresh);
        }
        if let Some(segment) = self.segments.back_mut() {
            let kept = FrameRef {
                timestamp: frame.timestamp,
                offset: u32::try_from(segment.bytes.len()).unwrap_or(u32::MAX),
                captured_len: u32::try_from(length).unwrap_or(u32::MAX),
                wire_len: frame.wire_len,
                link: frame.link,
                interface: frame.interface,
            };
            segment.bytes.extend_from_slice(frame.bytes);
            segment.frames.push(kept);
            self.bytes += cost(&kept);
        }
        while self.bytes > self.max_bytes || self.is_front_old() {
            self.pop(leaves);
        }
    }

    /// Lets everything leave.
    pub fn drain(&mut self, leaves: &mut impl FnMut(&Frame<'_>)) {
        while !self.segments.is_empty() {
            self.pop(leaves);
        }
        self.bytes = 0;
    }

    fn is_front_old(&self) -> bool {
        let front = self.segments.front();
        let front = front.and_then(|segment| segment.frames.get(segment.next));
        front.is_some_and(|frame| {
            self.newest.saturating_sub(frame.timestamp.as_nanos()) > self.max_ns
        })
    }

    /// Lets the front leave.
    fn pop(&mut self, leaves: &mut impl FnMut(&Frame<'_>)) {
        let Some(segment) = self.segments.front_mut() else {
            self.bytes = 0;
            return;
        };
        let front = segment.frames.get(segment.next..).unwrap_or_default();
        if let [front, ..] = front {
            self.bytes = self.bytes.saturating_sub(cost(front));
            let front = Batch::new(&segment.bytes, std::slice::from_ref(front));
            front.frames().for_each(|frame| leaves(&frame));
            segment.next += 1;
        }
        if segment.next >= segment.frames.len()
            && let Some(mut empty) = self.segments.pop_front()
        {
            empty.bytes.clear();
            empty.frames.clear();
            empty.next = 0;
            self.spare = Some(empty);
        }
    }
}

#[cfg(test)]
mod tests {
    use linkweir_wire::{LinkType, Timestamp};

    use super::*;

    fn frame(at: u64, bytes: &[u8]) -> Frame<'_> {
        Frame {
            timestamp: Timestamp::from_nanos(at),
            bytes,
            wire_len: 9000,
            link: LinkType::RAW,
            interface: 3,
        }
    }

    #[test]
    fn frames_leave_in_their_order_by_bytes_and_by_time() {
        let bytes = vec![7; 1000];
        let mut ring = Ring::new(10 * (1000 + size_of::<FrameRef>()), 500);
        let mut left: Vec<u64> = Vec::new();
        for at in 0..20 {
            let frame = frame(at, &bytes);
            ring.push(&frame, &mut |front| {
                assert_eq!((front.bytes, front.wire_len), (frame.bytes, 9000));
                left.push(front.timestamp.as_nanos());
            });
        }
        assert_eq!(left, (0..10).collect::<Vec<_>>());
        ring.push(&frame(515, &bytes), &mut |front| {
            left.push(front.timestamp.as_nanos());
        });
        assert_eq!(left.last(), Some(&14));
        ring.drain(&mut |front| left.push(front.timestamp.as_nanos()));
        assert_eq!(left.len(), 21);
        assert_eq!(left.last(), Some(&515));
    }

    #[test]
    fn memory_is_that_of_the_limit_and_used_again() {
        let bytes = vec![7; 60_000];
        let mut ring = Ring::new(8 << 20, u64::MAX);
        for at in 0..2_000 {
            ring.push(&frame(at, &bytes), &mut |_| {});
            let held: usize = ring.segments.iter().map(|one| one.bytes.capacity()).sum();
            assert!(held <= 12 << 20, "{held}");
        }
        // One that is larger than everything passes through.
        let large = vec![7; 9 << 20];
        let mut left = 0;
        ring.push(&frame(9, &large), &mut |_| left += 1);
        assert!(left > 100 && ring.segments.is_empty(), "{left}");
    }
}
