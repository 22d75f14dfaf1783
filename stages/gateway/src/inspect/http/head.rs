//! Heads out of a stream: found where they lie, gathered where they are cut.

use linkweir_proto::http1::{MAX_HEAD, SectionEnd, byte_fault};

use super::start;

const BLANK: &str = "an empty line before a response";

/// A head that is under way.
#[derive(Debug, Default)]
pub(super) struct HeadBuffer {
    /// What came of it, where it did not come at once.
    gathered: Vec<u8>,
    end: SectionEnd,
    /// Its start line is there and is one.
    has_start: bool,
    /// Empty lines came before it.
    has_blank: bool,
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
    /// Takes the next bytes; says how many of them belong to the head or to empty lines before it. `asks` says whether it may be
    /// a request: servers pass over empty lines (RFC 9112 sec. 2.2), but clients do or take all that follows for a body.
    pub(super) fn push(&mut self, bytes: &[u8], asks: bool) -> (Gather, usize) {
        if self.gathered.is_empty() {
            let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
            let blank = bytes.iter().take_while(|byte| is_end(byte)).count();
            if blank > 0 {
                self.has_blank = true;
                return (Gather::More, blank);
            }
            if self.has_blank && !asks {
                return (Gather::Fault(BLANK), bytes.len());
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
        let fault = self.fault(bytes.len(), asks);
        (fault.map_or(Gather::More, Gather::Fault), bytes.len())
    }

    /// The head if it was gathered, else nothing. The next one may begin.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self).gathered
    }

    /// What was gathered last, so many bytes, and a CR before them.
    fn newest(&self, bytes: usize) -> &[u8] {
        let from = self.gathered.len() - bytes;
        let cr = from
            .checked_sub(1)
            .filter(|at| self.gathered.get(*at) == Some(&b'\r'));
        self.gathered.get(cr.unwrap_or(from)..).unwrap_or_default()
    }

    /// What is wrong with what was gathered, of which so many bytes are new: what is not a head at all is not gathered up to the
    /// bound, and what follows an odd byte is to some clients the body and would pass as a head that does not end. The first
    /// fault counts, however the head is cut.
    fn fault(&mut self, new: usize, asks: bool) -> Option<&'static str> {
        if !self.has_start {
            let Some(feed) = memchr::memchr(b'\n', &self.gathered) else {
                return start::fault_in(&self.gathered, false, asks);
            };
            let line = self.gathered.get(..=feed).unwrap_or_default();
            if let Err(why) = start::Start::of(line, asks) {
                return Some(why);
            }
            self.has_start = true;
        }
        byte_fault(self.newest(new), false)
    }

    /// Bytes on the heap.
    pub(super) const fn held_bytes(&self) -> usize {
        self.gathered.capacity()
    }
}
