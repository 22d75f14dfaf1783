//! DNS messages (RFC 1035 section 4) over UDP and, with their length in front, over TCP.
//!
//! A [`Message`] is read where it lies: the header when it is made, names and records when they are
//! asked for. Nothing is allocated; a name is written into a [`Name`] of the caller. A message that
//! is cut (snap length, TC bit) gives what is there.
//!
//! Cost: a question is one pass over its name; the answers are one pass over the section. Pointers
//! may only lead backwards (RFC 1035 section 4.1.4: "a prior occurrence"), so no name has a loop.

mod name;
mod record;

pub use name::{MAX_NAME, Name};
pub use record::{Answer, Answers, Data, NameAt, RecordType};

use name::skip_name;

/// Bytes of a header.
pub const HEADER: usize = 12;
/// The port of DNS.
pub const PORT: u16 = 53;

/// A message whose header is whole.
///
/// Source: RFC 1035 section 4.1.1; the opcodes of RFC 6895 section 2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    bytes: &'a [u8],
    flags: u16,
    counts: [u16; 4],
}

/// What a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// QTYPE.
    pub kind: RecordType,
    /// QCLASS; the highest bit is not part of it in multicast DNS (RFC 6762 section 5.4).
    pub class: u16,
}

impl<'a> Message<'a> {
    /// The message that `bytes` (the payload of a datagram, or what [`take_framed`] gave) begin with.
    ///
    /// `None`: shorter than a header, or a header that DNS does not have.
    #[inline]
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let &[_, _, f1, f2, q1, q2, a1, a2, n1, n2, x1, x2] = bytes.first_chunk::<HEADER>()?;
        let pair = |high, low| u16::from_be_bytes([high, low]);
        let message = Self {
            bytes,
            flags: pair(f1, f2),
            counts: [pair(q1, q2), pair(a1, a2), pair(n1, n2), pair(x1, x2)],
        };
        // QUERY, IQUERY, STATUS, NOTIFY, UPDATE, DSO.
        matches!(message.opcode(), 0..=2 | 4..=6).then_some(message)
    }

    /// What the question and its answer have in common.
    #[inline]
    #[must_use]
    pub fn id(&self) -> u16 {
        self.bytes
            .first_chunk()
            .map_or(0, |id| u16::from_be_bytes(*id))
    }

    /// Whether it is an answer (QR).
    #[inline]
    #[must_use]
    pub const fn is_response(&self) -> bool {
        self.flags & 0x8000 != 0
    }

    /// What kind of question: 0 is a standard query.
    #[inline]
    #[must_use]
    pub const fn opcode(&self) -> u16 {
        self.flags >> 11 & 0xF
    }

    /// Whether the answer was cut to fit in the datagram (TC).
    #[inline]
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.flags & 0x0200 != 0
    }

    /// How the answer came out (RCODE): 0 without fault, 3 there is no such name.
    #[inline]
    #[must_use]
    pub const fn response_code(&self) -> u16 {
        self.flags & 0xF
    }

    /// Entries in the question, answer, authority and additional sections, as the header has them.
    #[inline]
    #[must_use]
    pub const fn counts(&self) -> [u16; 4] {
        self.counts
    }

    /// The first question; its name is written into `name`.
    ///
    /// `None`: there is none, it is cut, or its name is broken. `name` is then empty.
    #[must_use]
    pub fn question(&self, name: &mut Name) -> Option<Question> {
        name.clear();
        let [questions, ..] = self.counts;
        if questions == 0 {
            return None;
        }
        let after = skip_name(self.bytes, HEADER)?;
        let question = self.question_at(after)?;
        name.read(self.bytes, HEADER).then_some(question)
    }

    /// The answers, as far as they are there.
    #[must_use]
    pub fn answers(&self) -> Answers<'a> {
        let [questions, answers, ..] = self.counts;
        let mut at = Some(HEADER);
        for _ in 0..questions {
            let Some(from) = at else { break };
            // A name and four bytes.
            at = skip_name(self.bytes, from).map(|after| after + 4);
        }
        Answers::new(self.bytes, at, answers)
    }

    /// Writes the name that a record refers to into `name`; `false` where it is broken.
    #[must_use]
    pub fn read_name(&self, at: NameAt, name: &mut Name) -> bool {
        name.clear();
        name.read(self.bytes, at.offset())
    }

    /// Whether the bytes are DNS beyond doubt, for a classifier: counts that a question or an answer
    /// has, a question that is whole with a name of host-name characters, a type and a class that
    /// exist.
    ///
    /// Stricter than [`Message::parse`]: multicast DNS announcements without question and other rare
    /// messages are not certain.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        let [questions, answers, authorities, additional] = self.counts;
        // One question, as everybody sends; the Z bit is zero (RFC 1035 section 4.1.1).
        if questions != 1 || self.flags & 0x0040 != 0 || !matches!(self.opcode(), 0 | 4 | 5) {
            return false;
        }
        // A question carries no answers (but SOA in NOTIFY) and has no response code.
        let is_sane = if self.is_response() {
            self.response_code() <= 11 && answers <= 256 && authorities <= 256 && additional <= 256
        } else {
            self.response_code() == 0 && answers <= 1 && authorities <= 64 && additional <= 64
        };
        if !is_sane || self.opcode() == 0 && !self.is_response() && answers + authorities > 0 {
            return false;
        }
        let Some(after) = skip_name(self.bytes, HEADER) else {
            return false;
        };
        let Some(question) = self.question_at(after) else {
            return false;
        };
        let mut name = Name::default();
        question.kind.is_assigned()
            && matches!(question.class, 1 | 3 | 4 | 254 | 255)
            && name.read(self.bytes, HEADER)
            && name.as_bytes().iter().all(u8::is_ascii_graphic)
            // Nothing behind the question where nothing is announced.
            && (answers | authorities | additional != 0 || self.bytes.len() == after + 4)
    }

    fn question_at(&self, at: usize) -> Option<Question> {
        let &[t1, t2, c1, c2] = self.bytes.get(at..)?.first_chunk()?;
        Some(Question {
            kind: RecordType(u16::from_be_bytes([t1, t2])),
            class: u16::from_be_bytes([c1, c2]),
        })
    }
}

/// The first message of a TCP stream and what follows it (RFC 1035 section 4.2.2: two bytes of
/// length in front).
///
/// `None`: not yet whole.
#[must_use]
pub fn take_framed(stream: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = stream.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests;
