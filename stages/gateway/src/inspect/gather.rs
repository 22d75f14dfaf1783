//! Lines and messages, put together from the pieces in which they come.

/// Longest line of a protocol, with its end, bytes.
pub(super) const MAX_LINE: usize = 8 * 1024;
/// Most of a message that is kept, bytes.
pub(super) const MAX_KEPT: usize = 64 * 1024;
/// Longest name that is kept, bytes.
pub(super) const MAX_NAME: usize = 1024;
/// Room that a connection keeps between messages, bytes.
const IDLE_ROOM: usize = 4 * 1024;

/// The beginning of a name, as long as names may be.
pub(super) fn bounded(name: &[u8]) -> &[u8] {
    name.get(..MAX_NAME).unwrap_or(name)
}

/// Whether a line has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineState {
    /// Not yet.
    Partial,
    /// It has.
    Whole,
    /// It is longer than lines may be.
    TooLong,
}

/// The line that is coming.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
    bytes: Vec<u8>,
}

impl LineBuffer {
    /// Takes what belongs to the line: it, the rest, and whether the line has ended.
    pub(super) fn take<'a>(&mut self, input: &'a [u8]) -> (&'a [u8], &'a [u8], LineState) {
        let end = memchr::memchr(b'\n', input).map(|at| at + 1);
        let room = MAX_LINE.saturating_sub(self.bytes.len());
        let length = end.unwrap_or(input.len()).min(room);
        let (taken, rest) = input.split_at_checked(length).unwrap_or((input, &[]));
        self.bytes.extend_from_slice(taken);
        let state = if end == Some(length) {
            LineState::Whole
        } else if self.bytes.len() >= MAX_LINE {
            LineState::TooLong
        } else {
            LineState::Partial
        };
        (taken, rest, state)
    }

    /// The line without its end.
    pub(super) fn line(&self) -> &[u8] {
        let line = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Makes it empty.
    pub(super) fn clear(&mut self) {
        clear(&mut self.bytes);
    }
}

/// A message whose length is known: counted to its end, its beginning kept.
#[derive(Debug, Default)]
pub(super) struct Message {
    kept: Vec<u8>,
    keep: usize,
    left: u64,
}

impl Message {
    /// A message of `length` bytes begins; of it `keep` bytes, at most [`MAX_KEPT`], are wanted.
    pub(super) fn begin(&mut self, length: u64, keep: usize) {
        clear(&mut self.kept);
        self.keep = keep.min(MAX_KEPT);
        self.left = length;
    }

    /// Takes what belongs to it: that, and the rest.
    pub(super) fn take<'a>(&mut self, input: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let length = usize::try_from(self.left).unwrap_or(usize::MAX);
        let (taken, rest) = input.split_at_checked(length).unwrap_or((input, &[]));
        self.left = self.left.saturating_sub(taken.len() as u64);
        let room = self.keep.saturating_sub(self.kept.len());
        self.kept
            .extend_from_slice(taken.get(..room).unwrap_or(taken));
        (taken, rest)
    }

    /// Whether all of it came.
    pub(super) const fn is_whole(&self) -> bool {
        self.left == 0
    }

    /// What is kept of it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.kept
    }
}

/// Makes a buffer empty, and small again where it had grown.
fn clear(bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.shrink_to(IDLE_ROOM);
}

// Identifiers as text.

/// Two hexadecimal digits for each byte.
pub(super) fn hexadecimal(bytes: &[u8]) -> Vec<u8> {
    let digit = |nibble: u8| match nibble {
        0..10 => b'0' + nibble,
        _ => b'a' + nibble - 10,
    };
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_in_pieces() {
        let mut buffer = LineBuffer::default();
        assert_eq!(
            buffer.take(b"AB"),
            (&b"AB"[..], &b""[..], LineState::Partial)
        );
        assert_eq!(
            buffer.take(b"C\r\nnext"),
            (&b"C\r\n"[..], &b"next"[..], LineState::Whole)
        );
        assert_eq!(buffer.line(), b"ABC");
        buffer.clear();
        assert_eq!(buffer.take(b"\n").2, LineState::Whole);
        assert_eq!(buffer.line(), b"");
    }

    #[test]
    fn a_line_may_be_as_long_as_the_bound() {
        let mut longest = vec![b'a'; MAX_LINE - 1];
        longest.push(b'\n');
        assert_eq!(LineBuffer::default().take(&longest).2, LineState::Whole);
        longest.insert(0, b'a');
        let mut buffer = LineBuffer::default();
        let (taken, rest, state) = buffer.take(&longest);
        assert_eq!(
            (taken.len(), rest, state),
            (MAX_LINE, &b"\n"[..], LineState::TooLong)
        );
    }

    #[test]
    fn a_message_is_counted_and_its_beginning_kept() {
        let mut message = Message::default();
        message.begin(5, 3);
        assert_eq!(message.take(b"ab"), (&b"ab"[..], &b""[..]));
        assert!(!message.is_whole());
        assert_eq!(message.take(b"cdefg"), (&b"cde"[..], &b"fg"[..]));
        assert!(message.is_whole());
        assert_eq!(message.bytes(), b"abc");
        message.begin(u64::MAX, usize::MAX);
        for _ in 0..3 {
            message.take(&[0; MAX_KEPT]);
        }
        assert_eq!(message.bytes().len(), MAX_KEPT);
        message.begin(0, 0);
        assert!(message.kept.capacity() <= IDLE_ROOM);
    }

    #[test]
    fn digits_are_those_of_sixteen() {
        assert_eq!(hexadecimal(&[0x00, 0x9a, 0xff]), b"009aff");
    }
}
