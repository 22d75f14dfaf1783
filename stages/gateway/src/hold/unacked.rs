//! Bytes of a stream that were delivered, and that their receiver has not acknowledged.

use std::collections::VecDeque;

/// Room that is kept where nothing is unacknowledged any more, bytes.
const ROOM: usize = 4096;

/// The bytes, without a hole. Places are counted from the stream's first byte.
#[derive(Debug, Default)]
pub(super) struct Unacked {
    /// Place of the first one.
    from: u64,
    bytes: VecDeque<u8>,
}

impl Unacked {
    /// Nothing; the next bytes stand at `from`.
    pub(super) const fn at(from: u64) -> Self {
        Self {
            from,
            bytes: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The next bytes were delivered.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// All before `to` is acknowledged. Returns how many bytes are kept no longer.
    pub(super) fn acknowledge(&mut self, to: u64) -> usize {
        let count = usize::try_from(to.saturating_sub(self.from)).unwrap_or(usize::MAX);
        let count = count.min(self.bytes.len());
        if count == self.bytes.len() && self.bytes.capacity() > ROOM {
            self.bytes = VecDeque::new();
        } else {
            self.bytes.drain(..count);
        }
        self.from += count as u64;
        count
    }

    /// Whether one of these bytes at `at` is another than the one that is kept.
    pub(super) fn differs(&self, at: u64, bytes: &[u8]) -> bool {
        let (skip, bytes) = common(self.from, at, bytes);
        let end = skip.saturating_add(bytes.len()).min(self.bytes.len());
        if skip >= end {
            return false;
        }
        let kept = self.bytes.range(skip..end);
        kept.zip(bytes).any(|(kept, byte)| kept != byte)
    }
}

/// Where `bytes` at `at` begin in what begins at `from`, and those of them that are not before it.
pub(super) fn common(from: u64, at: u64, bytes: &[u8]) -> (usize, &[u8]) {
    let gap = |larger: u64, smaller: u64| {
        usize::try_from(larger.saturating_sub(smaller)).unwrap_or(usize::MAX)
    };
    (
        gap(at, from),
        bytes.get(gap(from, at)..).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_again_is_compared_as_far_as_it_is_kept() {
        let mut unacked = Unacked::at(100);
        unacked.push(b"abcdefgh");
        for (at, bytes, differs) in [
            (100, b"abcdefgh".as_slice(), false),
            (97, b"xyzab", false),
            (97, b"xyzaB", true),
            (104, b"efghij", false),
            (104, b"efgHij", true),
            (108, b"whatever", false),
            (90, b"before", false),
            (500, b"behind", false),
            (102, b"", false),
        ] {
            assert_eq!(unacked.differs(at, bytes), differs, "{at}");
        }
    }

    #[test]
    fn what_is_acknowledged_is_kept_no_longer() {
        let mut unacked = Unacked::at(100);
        unacked.push(&[7; 10_000]);
        assert_eq!(unacked.acknowledge(90), 0);
        assert_eq!(unacked.acknowledge(101), 1);
        assert!(!unacked.differs(100, &[8]));
        assert!(unacked.differs(101, &[8]));
        assert_eq!(unacked.acknowledge(1 << 40), 9999);
        assert_eq!((unacked.len(), unacked.bytes.capacity()), (0, 0));
        unacked.push(b"on");
        assert!(unacked.differs(10_100, b"ou"));
    }
}
