//! Bytes of a stream that were delivered, and that their receiver has not acknowledged.

use std::collections::VecDeque;

/// Bytes after which a run of bytes goes on in another one.
const MAX_KEPT: usize = 16 * 1024;

/// The bytes that were read of it, in runs by place, from the stream's first byte on. Not in one ring: what is
/// acknowledged is freed, and what comes next is written where the processor's cache still has it.
#[derive(Debug, Default)]
pub(super) struct Unacked {
    /// What is behind the last byte.
    end: u64,
    /// What is before it is acknowledged.
    acknowledged: u64,
    runs: VecDeque<(u64, Vec<u8>)>,
    /// Bytes of all runs.
    len: usize,
}

impl Unacked {
    /// Nothing; the next bytes stand at `from`.
    pub(super) fn at(from: u64) -> Self {
        Self {
            end: from,
            ..Self::default()
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The next bytes were delivered, and were not read: whatever they are, nothing rests on them.
    pub(super) const fn skip(&mut self, bytes: usize) {
        self.end += bytes as u64;
    }

    /// The next bytes were delivered.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match self.runs.back_mut() {
            Some((from, run))
                if *from + run.len() as u64 == self.end
                    && run.capacity() - run.len() >= bytes.len() =>
            {
                run.extend_from_slice(bytes);
            }
            _ => {
                let mut run = Vec::with_capacity(bytes.len().max(self.len.min(MAX_KEPT)));
                run.extend_from_slice(bytes);
                self.runs.push_back((self.end, run));
            }
        }
        self.end += bytes.len() as u64;
        self.len += bytes.len();
    }

    /// All before `to` is acknowledged. Returns how many bytes are kept no longer.
    pub(super) fn acknowledge(&mut self, to: u64) -> usize {
        let before = self.len;
        self.acknowledged = self.acknowledged.max(to);
        while let Some((_, run)) = self
            .runs
            .pop_front_if(|(from, run)| *from + run.len() as u64 <= to)
        {
            self.len -= run.len();
        }
        before - self.len
    }

    /// At most `most` of the bytes from `at` on, as far as they are kept in one piece or several.
    pub(super) fn copy(&self, at: u64, most: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(most);
        for (from, run) in &self.runs {
            let place = at + out.len() as u64;
            if *from > place || out.len() >= most {
                break;
            }
            let skip = usize::try_from(place - from).unwrap_or(usize::MAX);
            let rest = run.get(skip..).unwrap_or_default();
            let more = most - out.len();
            out.extend_from_slice(rest.get(..more).unwrap_or(rest));
        }
        out
    }

    /// Whether one of these bytes at `at` is another than the one that is kept and not acknowledged.
    pub(super) fn differs(&self, at: u64, bytes: &[u8]) -> bool {
        if at >= self.end {
            return false;
        }
        let (_, bytes) = common(self.acknowledged, at, bytes);
        let at = at.max(self.acknowledged);
        let end = at.saturating_add(bytes.len() as u64);
        let runs = self.runs.iter().take_while(|(from, _)| *from < end);
        runs.into_iter().any(|(from, run)| {
            let (skip, bytes) = common(*from, at, bytes);
            let kept = run.get(skip..).unwrap_or_default();
            let both = kept.len().min(bytes.len());
            kept.get(..both) != bytes.get(..both)
        })
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
        assert_eq!(unacked.acknowledge(101), 0, "a part of a run");
        assert!(!unacked.differs(100, &[8]));
        assert!(unacked.differs(101, &[8]));
        assert_eq!(unacked.acknowledge(10_100), 10_000);
        assert_eq!((unacked.len(), unacked.runs.len()), (0, 0));
        unacked.push(b"on");
        assert!(unacked.differs(10_100, b"ou"));
    }

    #[test]
    fn what_nobody_read_is_not_compared() {
        let mut unacked = Unacked::at(100);
        unacked.push(b"head");
        unacked.skip(1000);
        unacked.push(b"next");
        assert_eq!(unacked.len(), 8);
        assert!(!unacked.differs(104, &[7; 1000]));
        assert!(!unacked.differs(1104, b"next") && unacked.differs(1104, b"nexT"));
        assert!(unacked.differs(100, b"heaD"));
    }
}
