//! Heads out of a stream: found where they lie, gathered where they are cut.

use linkweir_proto::http1::{MAX_HEAD, SectionEnd};

use super::start;

/// A head that is under way.
#[derive(Debug, Default)]
pub(super) struct HeadBuffer {
    /// What came of it, where it did not come at once.
    gathered: Vec<u8>,
    end: SectionEnd,
    /// Its start line is there and is one.
    has_start: bool,
}

/// What became of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gather {
    /// The head goes on.
    More,
    /// The head ends with these bytes. [`HeadBuffer::take`] has it; where that is empty, these bytes
    /// are all of it.
    Whole,
    /// This is no head, or one beyond [`MAX_HEAD`].
    Fault(&'static str),
}

impl HeadBuffer {
    /// Takes the next bytes; says how many of them belong to the head or to empty lines before it
    /// (RFC 9112 sec. 2.2).
    pub(super) fn push(&mut self, bytes: &[u8]) -> (Gather, usize) {
        if self.gathered.is_empty() {
            let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
            let blank = bytes.iter().take_while(|byte| is_end(byte)).count();
            if blank > 0 {
                return (Gather::More, blank);
            }
        }
        let room = MAX_HEAD - self.gathered.len();
        let within = bytes.get(..room).unwrap_or(bytes);
        if let Some(end) = self.end.find(within) {
            if !self.gathered.is_empty() {
                self.gathered
                    .extend_from_slice(bytes.get(..end).unwrap_or_default());
            }
            return (Gather::Whole, end);
        }
        if within.len() < bytes.len() {
            return (Gather::Fault("head beyond 64 KiB"), bytes.len());
        }
        self.gathered.extend_from_slice(bytes);
        let gather = if self.may_become_head(bytes) {
            Gather::More
        } else {
            Gather::Fault(start::FAULT)
        };
        (gather, bytes.len())
    }

    /// The head if it was gathered, else nothing. The next one may begin.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self).gathered
    }

    /// Looks at the start line, so that what is no head at all is not gathered up to the bound.
    fn may_become_head(&mut self, new: &[u8]) -> bool {
        if self.has_start {
            return true;
        }
        let Some(feed) = memchr::memchr(b'\n', new) else {
            return start::may_begin(&self.gathered);
        };
        let end = self.gathered.len() - new.len() + feed + 1;
        let line = self.gathered.get(..end).unwrap_or_default();
        self.has_start = start::Start::of(line).is_some();
        self.has_start
    }

    /// Bytes on the heap.
    pub(super) const fn held_bytes(&self) -> usize {
        self.gathered.capacity()
    }
}
