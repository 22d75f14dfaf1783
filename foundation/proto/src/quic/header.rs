//! Long headers (RFC 9000 sec. 17.2; what all versions have in common RFC 8999).

use crate::tls::reader::Reader;

/// Connection ids of version 1 have at most 20 bytes.
const MAX_ID: usize = 20;

/// The versions whose Initial packets can be read, by what distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Version 1 and drafts 33 and 34; also the reserved numbers by which a client asks for a list
    /// of versions (RFC 9000 sec. 15), whose keys it may as well take from [`Version::Draft29`].
    One,
    /// Version 2.
    Two,
    /// Drafts 29 to 32.
    Draft29,
    /// Drafts 23 to 28.
    Draft23,
    /// Draft 22.
    Draft22,
    /// Google's Q050: its own hello.
    Q050,
    /// Google's T050.
    T050,
    /// Google's T051.
    T051,
}

impl Version {
    /// Whether a number is one of those that no version has: `0x?a?a?a?a`.
    #[must_use]
    pub const fn is_reserved(number: u32) -> bool {
        number & 0x0f0f_0f0f == 0x0a0a_0a0a
    }

    /// The version with this number; `None` where it is not known.
    #[must_use]
    pub const fn of(number: u32) -> Option<Self> {
        Some(match number {
            1 | 0xff00_0021 | 0xff00_0022 => Self::One,
            0x6b33_43cf => Self::Two,
            0xff00_001d..=0xff00_0020 => Self::Draft29,
            // Facebook's names of drafts 27 and 22 among them.
            0xff00_0017..=0xff00_001c | 0xface_b002 | 0xface_b00e => Self::Draft23,
            0xff00_0016 | 0xface_b001 => Self::Draft22,
            0x5130_3530 => Self::Q050,
            0x5430_3530 => Self::T050,
            0x5430_3531 => Self::T051,
            _ if Self::is_reserved(number) => Self::One,
            _ => return None,
        })
    }
}

/// What a packet with a long header is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first ones, with the hellos.
    Initial,
    /// Data before the handshake has ended.
    ZeroRtt,
    /// The encrypted part of the handshake.
    Handshake,
    /// The server asks for another Initial.
    Retry,
    /// The server names the versions it has (RFC 9000 sec. 17.2.1).
    VersionNegotiation,
    /// Of a version that is not known.
    Unknown,
}

/// A long header and where its packet ends. Slices borrow from the datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongHeader<'a> {
    /// What it is.
    pub kind: Kind,
    /// Number of the version, as on the wire.
    pub version: u32,
    /// Connection id of the receiver.
    pub destination_id: &'a [u8],
    /// Connection id of the sender.
    pub source_id: &'a [u8],
    /// Offset of the protected packet number; zero where there is none.
    pub number_at: usize,
    /// Bytes of the packet: what follows is another one (RFC 9000 sec. 12.2).
    pub len: usize,
}

impl<'a> LongHeader<'a> {
    /// Reads the packet at the start of a datagram, or of what is left of it.
    ///
    /// `None` where it has no long header, or one that does not fit its datagram. Of a version that
    /// is not known only what all versions have in common is read (RFC 8999 sec. 5.1), and the
    /// packet is all that is left.
    #[must_use]
    pub fn parse(datagram: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(datagram);
        let first = reader.u8()?;
        if first & 0x80 == 0 {
            return None;
        }
        let version = reader.u32()?;
        let destination_id = reader.vector8()?;
        let source_id = reader.vector8()?;
        let mut header = Self {
            kind: Kind::Unknown,
            version,
            destination_id,
            source_id,
            number_at: 0,
            len: datagram.len(),
        };
        if version == 0 {
            // At least one version, each of four bytes.
            let list = reader.rest().len();
            header.kind = Kind::VersionNegotiation;
            return (list >= 4 && list.is_multiple_of(4)).then_some(header);
        }
        let Some(known) = Version::of(version) else {
            return Some(header);
        };
        // The bit behind the first may be either where the receiver has said so (RFC 9287 sec. 3).
        if destination_id.len() > MAX_ID || source_id.len() > MAX_ID {
            return None;
        }
        // RFC 9369 sec. 3.2: the numbers of the types are turned by one.
        let bits = (first >> 4 & 3).wrapping_sub(u8::from(known == Version::Two)) & 3;
        header.kind = match bits {
            0 => Kind::Initial,
            1 => Kind::ZeroRtt,
            2 => Kind::Handshake,
            _ => {
                header.kind = Kind::Retry;
                return Some(header);
            }
        };
        if header.kind == Kind::Initial {
            let token = usize::try_from(reader.varint()?).ok()?;
            reader.take(token)?;
        }
        let len = usize::try_from(reader.varint()?).ok()?;
        header.number_at = datagram.len() - reader.rest().len();
        // A cut datagram (snap length) has a packet that is longer than what is there.
        header.len = header.number_at.checked_add(len)?;
        Some(header)
    }
}
