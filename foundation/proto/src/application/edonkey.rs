//! eDonkey2000 and eMule over TCP.
//!
//! Source: Kulbak and Bickson, "The eMule Protocol Specification" (2005). A frame is one byte of
//! protocol, the length of what follows (lowest byte first), and an opcode. With 5 bytes fixed of a
//! random frame that fits by chance, one frame must fit in its body or a second one must follow.

use super::bytes::{byte, le32};
use super::{Application, Verdict, View};

pub(super) const EDONKEY: u8 = 0xE3;
pub(super) const EMULE: u8 = 0xC5;
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
