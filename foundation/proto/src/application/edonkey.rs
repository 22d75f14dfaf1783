//! eDonkey2000 and eMule over TCP and UDP, and eMule's Kademlia.
//!
//! Source: Kulbak and Bickson, "The eMule Protocol Specification" (2005). A TCP frame is one byte of
//! protocol, the length of what follows (lowest byte first), and an opcode; a datagram lacks the
//! length. With 5 bytes fixed of a random frame that fits by chance, one frame must fit in its body
//! or a second one must follow.

use super::bytes::{be16, byte, le32};
use super::{Application, Verdict, View};

const EDONKEY: u8 = 0xE3;
const EMULE: u8 = 0xC5;
const PACKED: u8 = 0xD4;
const HEADER: usize = 5;
/// Longest body of a frame that opens a connection: a hello with its tags, or a list of servers.
const LONGEST: usize = 8 * 1024;

/// The frames of one side, and where they alone are not sure, those of the other.
pub(super) fn tcp(view: &View<'_>) -> Verdict {
    if view.own.len() <= HEADER {
        return Verdict::More;
    }
    let Some(frame) = Frame::read(view.own) else {
        return Verdict::No;
    };
    if frame.is_hello() || frame.is_whole() && Frame::read(frame.rest).is_some() {
        return Verdict::Is(Application::EDonkey);
    }
    if Frame::read(view.other).is_some() {
        return Verdict::Is(Application::EDonkey);
    }
    let has_spoken = view.other.len() > HEADER;
    if has_spoken && frame.is_whole() {
        Verdict::No
    } else {
        Verdict::More
    }
}

struct Frame<'a> {
    protocol: u8,
    opcode: u8,
    /// Behind the opcode, as far as it is there.
    body: &'a [u8],
    /// Length of the body that the header says.
    length: usize,
    rest: &'a [u8],
}

impl<'a> Frame<'a> {
    /// A frame with an opcode that exists.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let protocol = byte(bytes, 0)?;
        let length = le32(bytes, 1)? as usize;
        let opcode = byte(bytes, HEADER)?;
        let is_known = match protocol {
            EDONKEY => matches!(
                opcode,
                0x01 | 0x05 | 0x14..=0x16 | 0x18..=0x1C | 0x20..=0x21 | 0x32..=0x36 | 0x38
                    | 0x40..=0x44 | 0x46..=0x5F
            ),
            EMULE => matches!(opcode, 0x01 | 0x02 | 0x40 | 0x60..=0x64 | 0x81..=0x87 | 0x90..=0xA8),
            PACKED => matches!(opcode, 0x15 | 0x33 | 0x34 | 0x40 | 0x42),
            _ => false,
        };
        if !is_known || !(1..=LONGEST).contains(&length) {
            return None;
        }
        let length = length - 1;
        let body = bytes.get(HEADER + 1..)?;
        let (body, rest) = body.split_at_checked(length).unwrap_or((body, &[]));
        Some(Self {
            protocol,
            opcode,
            body,
            length,
            rest,
        })
    }

    const fn is_whole(&self) -> bool {
        self.body.len() == self.length
    }

    /// The hello of a client to a client (which gives the size of the hash, 16), to a server, and the
    /// answer; of eMule: its version and a list of tags.
    fn is_hello(&self) -> bool {
        match (self.protocol, self.opcode) {
            (EDONKEY, 0x01) => {
                self.body
                    .strip_prefix(&[16])
                    .is_some_and(|body| has_identity(body, self.length.saturating_sub(1)))
                    || has_identity(self.body, self.length)
            }
            (EDONKEY, 0x4C) => has_identity(self.body, self.length),
            // Version of eMule, version of the protocol (always 1), tags.
            (EMULE, 0x01 | 0x02) => {
                byte(self.body, 1) == Some(1)
                    && le32(self.body, 2).is_some_and(|tags| (1..=32).contains(&tags))
            }
            // The hash of a file, and nothing else.
            _ => false,
        }
    }
}

/// Hash (16), identifier (4), port (2), count of tags (4) and the first tag, in a body that has room
/// for them.
fn has_identity(body: &[u8], length: usize) -> bool {
    const FIXED: usize = 26;
    let Some(tags) = le32(body, 22) else {
        return false;
    };
    let is_tag = match byte(body, FIXED) {
        // The types of tags; the high bit says that the name is one byte.
        Some(kind) => matches!(kind & 0x7F, 1..=0x20),
        None => true,
    };
    if tags == 0 {
        // A server's address may follow.
        return matches!(length.checked_sub(FIXED), Some(0 | 6));
    }
    // A tag has at least a type, a name and a value.
    tags <= 32 && is_tag && length >= FIXED + 4 * tags as usize
}

/// Datagrams: those of a fixed length are sure, the others count as half.
pub(super) enum Sureness {
    /// One is enough.
    Sure(Application),
    /// Two of them are.
    Likely(Application),
    /// It is none.
    None,
}

/// A datagram of eDonkey, eMule or Kademlia.
pub(super) fn udp(datagram: &[u8]) -> Sureness {
    let (Some(protocol), Some(opcode)) = (byte(datagram, 0), byte(datagram, 1)) else {
        return Sureness::None;
    };
    let body = datagram.len() - 2;
    match protocol {
        EDONKEY => server(opcode, body),
        EMULE => emule(opcode, body),
        0xE4 => kad(opcode, body, datagram),
        // Packed by zlib: its header (RFC 1950 section 2.2).
        0xE5 => match be16(datagram, 2) {
            Some(0x78DA | 0x789C | 0x7801 | 0x785E) if body > 10 && is_kad(opcode) => {
                Sureness::Sure(Application::Kad)
            }
            _ => Sureness::None,
        },
        _ => Sureness::None,
    }
}

/// Between a client and a server.
const fn server(opcode: u8, body: usize) -> Sureness {
    let is_fixed = match opcode {
        0x96 => body == 4,
        0x97 => matches!(body, 12 | 16 | 24 | 28 | 32 | 40),
        0xA2 => body == 4 || body == 0,
        _ => false,
    };
    if is_fixed {
        return Sureness::Sure(Application::EDonkey);
    }
    let is_likely = match opcode {
        0x9A => body > 0 && body.is_multiple_of(16),
        0x9B => body >= 17 + 6,
        0x92 | 0x98 | 0x99 | 0x94 => body > 4,
        0xA3 => body > 20,
        _ => false,
    };
    if is_likely {
        Sureness::Likely(Application::EDonkey)
    } else {
        Sureness::None
    }
}

/// Between clients.
const fn emule(opcode: u8, body: usize) -> Sureness {
    let is_likely = match opcode {
        // Asks for its place in the queue: a hash, then parts or a count of sources.
        0x90 => matches!(body, 16 | 18) || body > 18 && body < 128,
        // The place.
        0x91 => matches!(body, 2 | 4) || body > 4 && body < 128,
        0x92 | 0x93 => body == 0,
        0x94 => body > 32,
        0x95 => body == 19,
        _ => false,
    };
    if is_likely {
        Sureness::Likely(Application::EDonkey)
    } else {
        Sureness::None
    }
}

/// Whether Kademlia has this opcode.
const fn is_kad(opcode: u8) -> bool {
    matches!(
        opcode,
        0x00 | 0x01 | 0x08..=0x09 | 0x10..=0x11 | 0x18..=0x19 | 0x20..=0x22 | 0x28..=0x29
            | 0x30 | 0x32..=0x35 | 0x38 | 0x3A..=0x3B | 0x40 | 0x42..=0x45 | 0x48 | 0x4A..=0x4C
            | 0x50..=0x53 | 0x58..=0x5A | 0x60..=0x62
    )
}

/// Between nodes: identifiers have 16 bytes, contacts 25.
fn kad(opcode: u8, body: usize, datagram: &[u8]) -> Sureness {
    let is_fixed = match opcode {
        0x00 | 0x10 | 0x18 => body == 25,
        // The kind of search (2, 4 or 11), the target and the receiver.
        0x20 | 0x21 => body == 33 && byte(datagram, 2).is_some_and(|kind| kind & 0x1F != 0),
        // Target, count of contacts, contacts.
        0x28 | 0x29 => {
            byte(datagram, 18).is_some_and(|contacts| body == 17 + 25 * usize::from(contacts))
        }
        0x09 => be16(datagram, 2 + 19)
            .is_some_and(|contacts| body == 21 + 25 * usize::from(contacts.swap_bytes())),
        0x32 => body == 32,
        0x52 => body == 34,
        0x53 => body == 19,
        _ => false,
    };
    if is_fixed {
        return Sureness::Sure(Application::Kad);
    }
    let is_likely = match opcode {
        0x01 | 0x60 => body == 0,
        0x61 => body == 0 || body == 2,
        // Identifier, port, version, count of tags.
        0x11 | 0x19 => body == 20 || body > 22 && byte(datagram, 20).is_some_and(|v| v < 16),
        0x22 => body >= 17,
        0x33..=0x35 => (18..200).contains(&body),
        0x3B | 0x43..=0x45 => body >= 33,
        0x4B => body == 17,
        0x50 => body == 2,
        0x58 => body == 4,
        0x59 | 0x4C => body == 0,
        _ => false,
    };
    if is_likely {
        Sureness::Likely(Application::Kad)
    } else {
        Sureness::None
    }
}
