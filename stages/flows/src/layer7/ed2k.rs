//! eDonkey within a TCP flow: its messages, counted by what they are for.
//!
//! A message is a protocol byte, a length of four bytes (little-endian, with the opcode), an opcode
//! and the rest (Kulbak, Bickson 2005, "The eMule Protocol Specification"). All messages of a stream
//! are walked, however they are cut into segments. The classes are Tstat's.

use linkweir_proto::Cut;

use super::handle::Handle;
use super::{Layer7, Segment};

/// Bytes of protocol, length and opcode.
const HEADER: usize = 6;
/// The longest message: eMule's limit.
const LONGEST: u32 = 2_000_000;

const EDONKEY: u8 = 0xe3;
const EMULE: u8 = 0xc5;
const PACKED: u8 = 0xd4;

/// Both kinds of peer begin with this one: it counts for neither.
const HELLO: u8 = 0x01;
const CHAT: u8 = 0x4e;

/// Where the messages of one direction stand.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Messages {
    /// Bytes left of the message.
    left: u32,
    header: Cut<HEADER>,
    /// Whether it is not known where the next message begins.
    is_lost: bool,
}

impl Messages {
    /// Passes over bytes that were not seen.
    pub(super) fn pass(&mut self, bytes: u32) {
        if bytes == 0 {
            return;
        }
        self.is_lost |= bytes > self.left;
        self.left = self.left.saturating_sub(bytes);
        self.header.clear();
    }
}

/// Protocol, opcode, and bytes behind the opcode; `None` where it is not a header.
fn parse(header: [u8; HEADER]) -> Option<(u8, u8, u32)> {
    let [protocol, a, b, c, d, opcode] = header;
    let len = u32::from_le_bytes([a, b, c, d]);
    let is_one = matches!(protocol, EDONKEY | EMULE | PACKED) && (1..=LONGEST).contains(&len);
    is_one.then(|| (protocol, opcode, len - 1))
}

/// Whether a message goes between a client and a server.
const fn is_with_server(protocol: u8, opcode: u8) -> bool {
    match protocol {
        EDONKEY => matches!(
            opcode,
            0x05 | 0x14..=0x16
                | 0x18..=0x1a
                | 0x1c..=0x1f
                | 0x21
                | 0x23
                | 0x32..=0x36
                | 0x38..=0x3d
                | 0x40..=0x44
        ),
        PACKED => opcode == 0x15,
        _ => false,
    }
}

/// Counts a message: data, signalling, client to server, client to client, chat.
const fn count(counts: &mut [u32; 5], protocol: u8, opcode: u8) {
    let [data, signalling, with_server, between_clients, chat] = counts;
    let class = match (protocol, opcode) {
        (EDONKEY, 0x46) | (EMULE | PACKED, 0x40) => data,
        _ => signalling,
    };
    *class = class.saturating_add(1);
    if opcode != HELLO {
        let class = if is_with_server(protocol, opcode) {
            with_server
        } else {
            between_clients
        };
        *class = class.saturating_add(1);
    }
    if protocol == EDONKEY && opcode == CHAT {
        *chat = chat.saturating_add(1);
    }
}

impl Layer7 {
    /// Payload of an eDonkey flow in stream order.
    #[inline]
    pub(super) fn on_ed2k(&mut self, handle: Handle, segment: &Segment<'_>) {
        let Some(state) = self.slab.get_mut(handle) else {
            return;
        };
        let mut messages = *state.side_mut(segment.side).messages();
        let mut rest = segment.payload;
        if messages.is_lost {
            // A segment that begins with a header is where to go on.
            let is_header = |header: &[u8; HEADER]| parse(*header).is_some();
            messages.is_lost = !rest.first_chunk().is_some_and(is_header);
        }
        while !rest.is_empty() && !messages.is_lost {
            if messages.left > 0 {
                let part = rest.len().min(messages.left as usize);
                rest = rest.get(part..).unwrap_or_default();
                // No more than `left`.
                messages.left -= u32::try_from(part).unwrap_or(messages.left);
                continue;
            }
            let Some(header) = messages.header.take(&mut rest) else {
                break;
            };
            match parse(header) {
                Some((protocol, opcode, left)) => {
                    count(state.ed2k.get_or_insert_default(), protocol, opcode);
                    messages.left = left;
                }
                None => messages.is_lost = true,
            }
        }
        messages.pass(segment.missing);
        *state.side_mut(segment.side).messages() = messages;
    }
}
