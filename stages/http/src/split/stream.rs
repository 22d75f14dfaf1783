//! One direction of a connection: where its next byte and its next message are expected.

use linkweir_table::{Chain, Chunks};

/// Where heads that span segments are kept, and where they are read.
#[derive(Debug)]
pub(super) struct Bytes<'a> {
    pub(super) texts: &'a mut Chunks,
    pub(super) scratch: &'a mut Vec<u8>,
}

/// Where the message that is being sent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The next message begins at this sequence number.
    At(u32),
    /// Unknown.
    Unknown,
    /// In a chunked body; whether the last segment ended with its last chunk.
    Chunks(bool),
    /// A head is being gathered.
    Head,
}

/// What is known of one direction.
#[derive(Debug)]
pub(super) struct Stream {
    /// The sequence number after all that was seen.
    pub(super) next: u32,
    pub(super) end: End,
    /// Whether anything was seen.
    pub(super) is_known: bool,
    /// The head that is being gathered.
    pub(super) head: Chain,
}

impl Stream {
    pub(super) fn new() -> Self {
        Self {
            next: 0,
            end: End::Unknown,
            is_known: false,
            head: Chain::default(),
        }
    }

    /// A message is expected at `at`.
    pub(super) fn expect(&mut self, at: u32, texts: &mut Chunks) {
        self.drop_head(texts);
        self.is_known = true;
        self.next = at;
        self.end = End::At(at);
    }

    /// Gives up the head that is being gathered.
    pub(super) fn drop_head(&mut self, texts: &mut Chunks) {
        texts.release(std::mem::take(&mut self.head));
        if self.end == End::Head {
            self.end = End::Unknown;
        }
    }

    /// Whether the message that was sent last is known to end where the stream stands.
    pub(super) fn is_at_end(&self) -> bool {
        match self.end {
            End::At(at) => at == self.next,
            End::Chunks(is_last) => is_last,
            End::Unknown | End::Head => false,
        }
    }

    /// Keeps the beginning of a head; whether there is room.
    pub(super) fn gather(&mut self, part: &[u8], texts: &mut Chunks) -> bool {
        let fits = texts.has_room(part.len()) && texts.append(&mut self.head, part);
        if fits {
            self.end = End::Head;
        } else {
            self.drop_head(texts);
            self.end = End::Unknown;
        }
        fits
    }
}

/// `a - b` on the circle of sequence numbers.
pub(super) const fn ahead(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b).cast_signed()
}
