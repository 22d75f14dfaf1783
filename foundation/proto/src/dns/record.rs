//! Resource records of the answer section (RFC 1035 section 4.1.3).

use std::net::{Ipv4Addr, Ipv6Addr};

use super::name::skip_name;

/// The type of a record or question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordType(pub u16);

impl RecordType {
    /// An IPv4 address (RFC 1035 section 3.4.1).
    pub const A: Self = Self(1);
    /// The name that an alias stands for (RFC 1035 section 3.3.1).
    pub const CNAME: Self = Self(5);
    /// An IPv6 address (RFC 3596 section 2.1).
    pub const AAAA: Self = Self(28);
    /// How a service is reached (RFC 9460).
    pub const HTTPS: Self = Self(65);

    /// Whether IANA has given the number to a type that is in use.
    pub(super) const fn is_assigned(self) -> bool {
        matches!(self.0, 1..=66 | 99..=110 | 128 | 249..=262 | 32768..=32769)
    }
}

/// Where in a message a name stands; [`super::Message::read_name`] reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameAt(usize);

impl NameAt {
    pub(super) const fn offset(self) -> usize {
        self.0
    }
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
    pub(super) const fn new(bytes: &'a [u8], at: Option<usize>, left: u16) -> Self {
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
            _ => None,
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
