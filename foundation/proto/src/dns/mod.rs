//! DNS messages (RFC 1035 section 4) over UDP and, with their length in front, over TCP.
//!
//! A [`Message`] is read where it lies: the header when it is made, names and records when they are
//! asked for. Nothing is allocated; a name is written into a [`Name`] of the caller. A message that
//! is cut (snap length, TC bit) gives what is there.
//!
//! Cost: a question is one pass over its name; the answers are one pass over the section. Pointers
//! may only lead backwards (RFC 1035 section 4.1.4: "a prior occurrence"), so no name has a loop.

mod name;

use std::net::{Ipv4Addr, Ipv6Addr};

use name::skip_name;

pub use name::{MAX_NAME, Name};

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

    /// The second word of the header as it is: QR, opcode, flags and response code.
    #[inline]
    #[must_use]
    pub const fn flags(&self) -> u16 {
        self.flags
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

    /// The texts of a record, as far as they are whole.
    pub fn texts(&self, at: TextAt) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.bytes.get(at.start..at.end).unwrap_or_default();
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first()?;
            let (text, behind) = behind.split_at_checked(usize::from(*length))?;
            rest = behind;
            Some(text)
        })
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

// Resource records of the answer section (RFC 1035 section 4.1.3).

/// The type of a record or question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordType(pub u16);

impl RecordType {
    /// An IPv4 address (RFC 1035 section 3.4.1).
    pub const A: Self = Self(1);
    /// The name that an alias stands for (RFC 1035 section 3.3.1).
    pub const CNAME: Self = Self(5);
    /// Texts (RFC 1035 section 3.3.14).
    pub const TXT: Self = Self(16);
    /// An IPv6 address (RFC 3596 section 2.1).
    pub const AAAA: Self = Self(28);
    /// How a service is reached (RFC 9460).
    pub const HTTPS: Self = Self(65);

    /// Bytes in front of the name in the data of a record that leads to one: NS, SOA, PTR, MX (RFC 1035 section
    /// 3.3), SRV (RFC 2782), DNAME (RFC 6672).
    const fn before_name(self) -> Option<usize> {
        match self.0 {
            2 | 6 | 12 | 39 => Some(0),
            15 => Some(2),
            33 => Some(6),
            _ => None,
        }
    }

    /// Whether IANA has given the number to a type that is in use.
    const fn is_assigned(self) -> bool {
        matches!(self.0, 1..=66 | 99..=110 | 128 | 249..=262 | 32768..=32769)
    }
}

/// Where in a message a name stands; [`Message::read_name`] reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameAt(usize);

impl NameAt {
    const fn offset(self) -> usize {
        self.0
    }
}

/// Where in a message the texts of a record stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextAt {
    start: usize,
    end: usize,
}

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// The owner is an alias of this name.
    Cname(NameAt),
    /// Another record that leads to a name: NS, SOA (the primary server), PTR, MX, SRV, DNAME.
    Name(RecordType, NameAt),
    /// Texts (RFC 1035 section 3.3.14); [`Message::texts`] reads them.
    Txt(TextAt),
    /// Something else, or one of the above with a length that it cannot have.
    Other(RecordType),
}

/// One record of the answer section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Whose record it is.
    pub owner: NameAt,
    /// Class; 1 is the Internet.
    pub class: u16,
    /// How long it may be kept, seconds.
    pub ttl: u32,
    /// What it says.
    pub data: Data,
}

/// The records of the answer section, in their order; ends at the first that is cut or broken.
#[derive(Debug, Clone)]
pub struct Answers<'a> {
    bytes: &'a [u8],
    at: Option<usize>,
    left: u16,
}

impl<'a> Answers<'a> {
    const fn new(bytes: &'a [u8], at: Option<usize>, left: u16) -> Self {
        Self { bytes, at, left }
    }

    fn take(&mut self) -> Option<Answer> {
        // Whatever ends it, it stays ended.
        let owner = self.at.take()?;
        self.left = self.left.checked_sub(1)?;
        let after = skip_name(self.bytes, owner)?;
        let fixed: &[u8; 10] = self.bytes.get(after..)?.first_chunk()?;
        let &[t1, t2, c1, c2, l1, l2, l3, l4, d1, d2] = fixed;
        let start = after + fixed.len();
        let end = start + usize::from(u16::from_be_bytes([d1, d2]));
        let data = self.bytes.get(start..end)?;
        self.at = Some(end);
        let kind = RecordType(u16::from_be_bytes([t1, t2]));
        let data = match kind {
            RecordType::A => <[u8; 4]>::try_from(data).ok().map(|a| Data::A(a.into())),
            RecordType::AAAA => <[u8; 16]>::try_from(data)
                .ok()
                .map(|a| Data::Aaaa(a.into())),
            RecordType::CNAME => Some(Data::Cname(NameAt(start))),
            RecordType::TXT => Some(Data::Txt(TextAt { start, end })),
            _ => kind
                .before_name()
                .map(|before| Data::Name(kind, NameAt(start + before))),
        };
        Some(Answer {
            owner: NameAt(owner),
            class: u16::from_be_bytes([c1, c2]),
            ttl: u32::from_be_bytes([l1, l2, l3, l4]),
            data: data.unwrap_or(Data::Other(kind)),
        })
    }
}

impl Iterator for Answers<'_> {
    type Item = Answer;

    fn next(&mut self) -> Option<Answer> {
        self.take()
    }
}

impl std::iter::FusedIterator for Answers<'_> {}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    /// www.Example.com A -> CNAME cdn.example.net -> A 192.0.2.7, and an AAAA.
    fn answer() -> Vec<u8> {
        let mut m = vec![0x12, 0x34, 0x81, 0x80, 0, 1, 0, 3, 0, 0, 0, 0];
        m.extend(b"\x03www\x07Example\x03com\x00\x00\x01\x00\x01"); // name at 12, "com" at 24
        m.extend(b"\xC0\x0C\x00\x05\x00\x01\x00\x00\x01\x2C\x00\x11"); // CNAME, ttl 300
        m.extend(b"\x03cdn\x07example\x03net\x00"); // at 45
        m.extend(b"\xC0\x2D\x00\x01\x00\x01\x00\x00\x00\x3C\x00\x04\xC0\x00\x02\x07");
        m.extend(b"\xC0\x2D\x00\x1C\x00\x01\x00\x00\x00\x3C\x00\x10");
        m.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        m
    }

    fn query() -> Vec<u8> {
        let mut m = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        m.extend(b"\x03www\x07example\x03com\x00\x00\x01\x00\x01");
        m
    }

    #[test]
    fn a_question_gives_its_name_in_lower_case() {
        let bytes = answer();
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.id(), 0x1234);
        assert!(message.is_response() && !message.is_truncated());
        let mut name = Name::default();
        let question = message.question(&mut name).unwrap();
        assert_eq!(name.as_bytes(), b"www.example.com");
        assert_eq!((question.kind, question.class), (RecordType::A, 1));
    }

    #[test]
    fn answers_follow_compression() {
        let bytes = answer();
        let message = Message::parse(&bytes).unwrap();
        let answers: Vec<Answer> = message.answers().collect();
        assert_eq!(answers.len(), 3);
        let mut name = Name::default();
        let Data::Cname(target) = answers[0].data else {
            panic!("{:?}", answers[0])
        };
        assert_eq!(answers[0].ttl, 300);
        assert!(message.read_name(target, &mut name));
        assert_eq!(name.as_bytes(), b"cdn.example.net");
        assert_eq!(answers[1].data, Data::A(Ipv4Addr::new(192, 0, 2, 7)));
        assert!(message.read_name(answers[1].owner, &mut name));
        assert_eq!(name.as_bytes(), b"cdn.example.net");
        let v6: Ipv6Addr = "2001:db8::9".parse().unwrap();
        assert_eq!(answers[2].data, Data::Aaaa(v6));
        assert_eq!(answers[2].ttl, 60);
    }

    #[test]
    fn records_that_lead_to_names_and_texts() {
        let mut bytes = vec![0, 1, 0x81, 0x80, 0, 1, 0, 3, 0, 0, 0, 0];
        bytes.extend(b"\x01a\x07example\x00\x00\x0F\x00\x01"); // "example" at 14
        bytes.extend(b"\xC0\x0C\x00\x0F\x00\x01\x00\x00\x00\x3C\x00\x07\x00\x0A\x02mx\xC0\x0E");
        bytes.extend(b"\xC0\x0C\x00\x10\x00\x01\x00\x00\x00\x3C\x00\x07\x03one\x02no");
        bytes.extend(b"\xC0\x0C\x00\x10\x00\x01\x00\x00\x00\x3C\x00\x04\x02ab\x09");
        let message = Message::parse(&bytes).unwrap();
        let data: Vec<Data> = message.answers().map(|answer| answer.data).collect();
        let [
            Data::Name(RecordType(15), at),
            Data::Txt(two),
            Data::Txt(cut),
        ] = data[..]
        else {
            panic!("{data:?}")
        };
        let mut name = Name::default();
        assert!(message.read_name(at, &mut name));
        assert_eq!(name.as_bytes(), b"mx.example");
        assert_eq!(message.texts(two).collect::<Vec<_>>(), [&b"one"[..], b"no"]);
        assert_eq!(message.texts(cut).collect::<Vec<_>>(), [&b"ab"[..]]);
    }

    #[test]
    fn loops_and_forward_pointers_are_no_names() {
        for pointer in [[0xC0, 12], [0xC0, 14], [0xC0, 200], [0xFF, 0xFF]] {
            let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            bytes.extend(pointer);
            bytes.extend([0, 1, 0, 1]);
            let message = Message::parse(&bytes).unwrap();
            let mut name = Name::default();
            assert_eq!(message.question(&mut name), None, "{pointer:?}");
            assert_eq!(name.as_bytes(), b"");
        }
        // a: "x" then a pointer to itself.
        let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        bytes.extend(b"\x01x\xC0\x0C\x00\x01\x00\x01");
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.question(&mut Name::default()), None);
    }

    #[test]
    fn names_are_as_long_as_the_rfc_lets_them_be() {
        let name_of = |labels: &[usize]| {
            let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            for label in labels {
                bytes.push(u8::try_from(*label).unwrap());
                bytes.extend(std::iter::repeat_n(b'a', *label));
            }
            bytes.extend([0, 0, 1, 0, 1]);
            let mut name = Name::default();
            let question = Message::parse(&bytes).unwrap().question(&mut name);
            question.map(|_| name.as_bytes().len())
        };
        assert_eq!(name_of(&[63, 63, 63, 61]), Some(253));
        assert_eq!(name_of(&[63, 63, 63, 62]), None);
        assert_eq!(name_of(&[63; 40]), None);
        assert_eq!(name_of(&[]), Some(0));
    }

    #[test]
    fn a_cut_message_gives_what_is_there() {
        let bytes = answer();
        let cut = &bytes[..bytes.len() - 5];
        let message = Message::parse(cut).unwrap();
        assert_eq!(message.answers().count(), 2);
        assert_eq!(Message::parse(&bytes[..11]), None);
        assert_eq!(Message::parse(&bytes[..12]).unwrap().answers().count(), 0);
    }

    #[test]
    fn a_stream_has_lengths_in_front() {
        let message = query();
        let mut stream = u16::try_from(message.len()).unwrap().to_be_bytes().to_vec();
        stream.extend(&message);
        stream.extend([0, 9, 1]);
        let (first, rest) = take_framed(&stream).unwrap();
        assert_eq!(first, message);
        assert_eq!(rest, [0, 9, 1]);
        assert_eq!(take_framed(rest), None);
        assert_eq!(take_framed(&[0]), None);
    }

    #[test]
    fn certainty_wants_a_sane_question() {
        let certain = |bytes: &[u8]| Message::parse(bytes).is_some_and(|m| m.is_certain());
        assert!(certain(&query()));
        assert!(certain(&answer()));
        let with = |at: usize, value: u8| {
            let mut bytes = query();
            bytes[at] = value;
            bytes
        };
        assert!(!certain(&with(3, 0x40)), "Z bit");
        assert!(!certain(&with(5, 2)), "two questions");
        assert!(!certain(&with(7, 1)), "an answer in a question");
        assert!(!certain(&with(2, 0x19)), "an opcode that is none");
        assert!(!certain(&with(14, 0)), "not text");
        assert!(!certain(&with(31, 9)), "no class");
        let mut longer = query();
        longer.push(0);
        assert!(!certain(&longer), "more than announced");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut name = Name::default();
            if let Some(message) = Message::parse(&bytes) {
                std::hint::black_box(message.is_certain());
                std::hint::black_box(message.question(&mut name));
                for answer in message.answers() {
                    std::hint::black_box(message.read_name(answer.owner, &mut name));
                    match answer.data {
                        Data::Cname(at) | Data::Name(_, at) => {
                            std::hint::black_box(message.read_name(at, &mut name));
                        }
                        Data::Txt(at) => {
                            std::hint::black_box(message.texts(at).count());
                        }
                        _ => {}
                    }
                    prop_assert!(name.as_bytes().len() <= MAX_NAME);
                }
            }
            std::hint::black_box(take_framed(&bytes));
        }

        #[test]
        fn damaged_answers_are_read_without_panic(at in 0_usize..200, value: u8, cut in 0_usize..120) {
            let mut bytes = answer();
            let end = bytes.len();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            bytes.truncate(end.saturating_sub(cut));
            if let Some(message) = Message::parse(&bytes) {
                prop_assert!(message.answers().count() <= usize::from(message.counts()[1]));
                std::hint::black_box(message.question(&mut Name::default()));
            }
        }
    }
}
