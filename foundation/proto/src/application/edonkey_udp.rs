//! Datagrams of eDonkey2000 and eMule, and eMule's Kademlia.
//!
//! Source: Kulbak and Bickson, "The eMule Protocol Specification" (2005), for servers and clients;
//! eMule's `opcodes.h` and its Kademlia for the messages of version 2. A datagram is a byte of
//! protocol, an opcode and a body, without a length: what fits in those two bytes and in the size of its
//! body is likely, and needs another message. Few have more: a challenge of a fixed half, a
//! count of contacts that fills the body.

use super::Application;
use super::bytes::{be16, byte, le16};
use super::edonkey::{EDONKEY, EMULE};
use super::udp_memory::Sureness;

const KAD: u8 = 0xE4;
const KAD_PACKED: u8 = 0xE5;
/// Protocol and opcode.
const HEADER: usize = 2;
/// An identifier of a node or a file.
const HASH: usize = 16;
/// A contact: identifier, address, port of UDP, port of TCP, version.
const CONTACT: usize = HASH + 4 + 2 + 2 + 1;
/// An entry of a list: identifier and count of tags.
const ENTRY: usize = HASH + 1;
/// A tag: type, name and value.
const TAG: usize = 4;
/// Versions of nodes, and tags that a message has, stay below.
const SMALL: u8 = 16;

/// A datagram of eDonkey, eMule or Kademlia.
pub(super) fn udp(datagram: &[u8]) -> Sureness {
    let (Some(protocol), Some(opcode)) = (byte(datagram, 0), byte(datagram, 1)) else {
        return Sureness::None;
    };
    let body = datagram.get(HEADER..).unwrap_or_default();
    match protocol {
        EDONKEY if is_challenge(opcode, body) => Sureness::Sure(Application::EDonkey),
        EDONKEY => Sureness::likely(server(opcode, body.len()), Application::EDonkey, opcode),
        EMULE => Sureness::likely(emule(opcode, body.len()), Application::EDonkey, opcode),
        KAD if has_contacts(opcode, body) => Sureness::Sure(Application::Kad),
        KAD => Sureness::likely(kad(opcode, body), Application::Kad, opcode),
        KAD_PACKED => {
            // Packed by zlib: its header (RFC 1950 section 2.2).
            let is_packed = matches!(be16(body, 0), Some(0x78DA | 0x789C | 0x7801 | 0x785E));
            let is_likely = is_packed && body.len() > 10 && is_kad(opcode);
            Sureness::likely(is_likely, Application::Kad, opcode)
        }
        _ => Sureness::None,
    }
}

/// Requests for the state and the description of a server, and the answers: half of the challenge is
/// the same in all clients, so that old servers' answers are distinguished.
fn is_challenge(opcode: u8, body: &[u8]) -> bool {
    let length = body.len();
    match opcode {
        0x96 => length == 4 && le16(body, 2) == Some(0x55AA),
        0x97 => is_state(length) && le16(body, 2) == Some(0x55AA),
        0xA2 => length == 4 && le16(body, 0) == Some(0xF0FF),
        0xA3 => length > 20 && le16(body, 0) == Some(0xF0FF),
        _ => false,
    }
}

/// Lengths of a server's state, which grew.
const fn is_state(length: usize) -> bool {
    matches!(length, 12 | 16 | 24 | 28 | 32 | 40)
}

/// Between a client and a server.
const fn server(opcode: u8, length: usize) -> bool {
    match opcode {
        0x96 => length == 4,
        0x97 => is_state(length),
        0xA2 => matches!(length, 0 | 4),
        0x9A => length > 0 && length.is_multiple_of(HASH),
        0x9B => length >= HASH + 1 + 6,
        0x92 | 0x98 | 0x99 | 0x94 => length > 4,
        0xA3 => length > 20,
        _ => false,
    }
}

/// Between clients.
const fn emule(opcode: u8, length: usize) -> bool {
    match opcode {
        // Asks for its place in the queue: a hash, then parts or a count of sources.
        0x90 => matches!(length, 16 | 18) || length > 18 && length < 128,
        // The place.
        0x91 => matches!(length, 2 | 4) || length > 4 && length < 128,
        0x92 | 0x93 => length == 0,
        0x94 => length > 32,
        0x95 => length == 19,
        _ => false,
    }
}

/// Whether Kademlia has this opcode.
const fn is_kad(opcode: u8) -> bool {
    matches!(
        opcode,
        0x00 | 0x01 | 0x08..=0x09 | 0x10..=0x11 | 0x18..=0x19 | 0x20..=0x21 | 0x28..=0x29
            | 0x30 | 0x32..=0x35 | 0x38 | 0x3A..=0x3B | 0x40 | 0x42..=0x45 | 0x48 | 0x4A..=0x4C
            | 0x50..=0x53 | 0x58..=0x5A | 0x60..=0x62
    )
}

/// Answers with contacts: their count fills the body, and each says its version.
fn has_contacts(opcode: u8, body: &[u8]) -> bool {
    let (contacts, count, least) = match opcode {
        // The target, then a count.
        0x28 | 0x29 => (body.get(HASH + 1..), byte(body, HASH).map(u16::from), 2),
        0x08 => (body.get(2..), le16(body, 0), 2),
        // Identifier, port and version of the answering peer.
        0x09 if byte(body, 18).is_some_and(|version| version < SMALL) => {
            (body.get(HASH + 5..), le16(body, 19), 1)
        }
        _ => return false,
    };
    let (Some(contacts), Some(count)) = (contacts, count) else {
        return false;
    };
    count >= least
        && contacts.len() == CONTACT * usize::from(count)
        && contacts
            .chunks_exact(CONTACT)
            .all(|contact| contact.last().is_some_and(|version| *version < SMALL))
}

/// Between nodes.
fn kad(opcode: u8, body: &[u8]) -> bool {
    let length = body.len();
    let is_small = |at: usize| byte(body, at).is_some_and(|number| number < SMALL);
    // So many tags have room behind these bytes.
    let has_tags = |fixed: usize| match byte(body, fixed - 1) {
        Some(0) => length == fixed,
        Some(tags) => tags < SMALL && length >= fixed + TAG * usize::from(tags),
        None => false,
    };
    // A list of entries whose count stands here.
    let has_entries = |at: usize| {
        le16(body, at).is_some_and(|count| {
            (1..=300).contains(&count) && length >= at + 2 + ENTRY * usize::from(count)
        })
    };
    match opcode {
        0x00 | 0x10 | 0x18 => length == CONTACT && is_small(CONTACT - 1),
        // Identifier, port, version, tags.
        0x11 | 0x19 => is_small(18) && has_tags(20),
        // The kind of search, the target and the receiver.
        0x20 | 0x21 => length == 33 && matches!(byte(body, 0), Some(2 | 4 | 11)),
        // The target and one contact, or none.
        0x28 | 0x29 => byte(body, HASH).is_some_and(|contacts| {
            contacts < 2 && length == HASH + 1 + CONTACT * usize::from(contacts)
        }),
        0x32 => length == 32,
        // The target and where to begin; its high bit says that words of a search follow.
        0x33 => match byte(body, HASH + 1) {
            Some(begin) if begin < 0x80 => length == HASH + 2,
            begin => begin.is_some() && length > HASH + 4,
        },
        0x34 => length == HASH + 2 + 8,
        0x35 => length == HASH + 8,
        // The sender, the target, what was found.
        0x3B => has_entries(2 * HASH),
        0x43 => has_entries(HASH),
        // The target, the source, tags.
        0x44 | 0x45 => has_tags(2 * HASH + 1),
        0x4B => matches!(length, 17 | 18),
        0x50 => length == 2,
        0x51 | 0x52 => length == 2 * HASH + 2,
        0x53 => length == 2 + HASH + 1,
        0x58 => length == 4,
        0x01 | 0x4C | 0x59 | 0x60 => length == 0,
        0x61 => matches!(length, 0 | 2),
        _ => false,
    }
}
