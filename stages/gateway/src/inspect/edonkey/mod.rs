//! eDonkey and eMule: names of files, chat messages.
//!
//! Every byte is text, the parts of files too, which come in any order. Of messages that name
//! something at most 64 KiB are kept and read when they are whole; packed ones are unpacked within a
//! bound.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use linkweir_proto::edonkey::{
    Dialect, FileList, FrameHeader, chat_text, hello_name, multi_packet_name, offered_name, opcode,
};

use super::gather::{MAX_KEPT, Message};

use crate::inspect::gather::{bounded, hexadecimal};
use crate::inspect::{ChatMessage, FileInfo, Found, Side};

/// Longest message; eMule refuses those over 2 MB.
const MAX_BODY: u32 = 4 * 1024 * 1024;

/// State of the connection.
#[derive(Debug, Default)]
pub struct EDonkeyInspector {
    client: Direction,
    server: Direction,
    is_opaque: bool,
}

/// What is coming from one side.
#[derive(Debug, Default)]
struct Direction {
    /// The header, or the body where there is one.
    message: Message,
    /// The header of the body that is coming.
    frame: Option<FrameHeader>,
    /// What the user of this side calls himself.
    name: Vec<u8>,
}

impl EDonkeyInspector {
    /// The next bytes of a side.
    pub fn feed<F: Found>(&mut self, sender: Side, mut bytes: &[u8], found: &mut F) {
        while !bytes.is_empty() {
            if self.is_opaque {
                found.text(sender, bytes);
                return;
            }
            let direction = self.direction(sender);
            if direction.message.is_whole() {
                direction
                    .message
                    .begin(FrameHeader::LEN as u64, FrameHeader::LEN);
            }
            let (taken, rest) = direction.message.take(bytes);
            found.text(sender, taken);
            if direction.message.is_whole() {
                self.on_whole(sender, found);
            }
            bytes = rest;
        }
    }

    const fn direction(&mut self, sender: Side) -> &mut Direction {
        match sender {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// A header or a body is whole.
    fn on_whole<F: Found>(&mut self, sender: Side, found: &mut F) {
        let direction = self.direction(sender);
        if let Some(frame) = direction.frame.take() {
            let mut body = std::mem::take(&mut direction.message);
            self.on_body(sender, frame, body.bytes(), found);
            body.begin(0, 0);
            self.direction(sender).message = body;
            return;
        }
        let header = direction.message.bytes().first_chunk().copied();
        match header.and_then(FrameHeader::parse) {
            None => self.give_up(sender, "not a message of eDonkey", found),
            Some(frame) if frame.body_len > MAX_BODY => {
                self.give_up(sender, "a message of eDonkey is too long", found);
            }
            Some(frame) if frame.body_len > 0 => {
                let keep = if is_read(frame) { MAX_KEPT } else { 0 };
                direction.message.begin(u64::from(frame.body_len), keep);
                direction.frame = Some(frame);
            }
            Some(_) => {}
        }
    }

    fn give_up<F: Found>(&mut self, sender: Side, why: &'static str, found: &mut F) {
        *self = Self {
            is_opaque: true,
            ..Self::default()
        };
        found.malformed(sender, why);
    }
}

/// Whether a message names something.
const fn is_read(frame: FrameHeader) -> bool {
    match frame.dialect {
        Dialect::EDonkey => matches!(
            frame.opcode,
            opcode::HELLO
                | opcode::HELLO_ANSWER
                | opcode::OFFER_FILES
                | opcode::SEARCH_RESULT
                | opcode::SHARED_FILES
                | opcode::MESSAGE
                | opcode::FILE_NAME
        ),
        Dialect::EMule => frame.opcode == opcode::MULTI_PACKET_ANSWER,
        Dialect::Packed => matches!(
            frame.opcode,
            opcode::OFFER_FILES
                | opcode::SEARCH_RESULT
                | opcode::SHARED_FILES
                | opcode::MULTI_PACKET_ANSWER
        ),
    }
}

// What the messages of eDonkey say.

/// Most that a packed message is unpacked to, bytes; a list of names shrinks to a third or so.
const MAX_UNPACKED: u64 = 256 * 1024;

impl EDonkeyInspector {
    /// A message is whole, or as much of it as is kept.
    fn on_body<F: Found>(&mut self, sender: Side, frame: FrameHeader, body: &[u8], found: &mut F) {
        // Nothing was kept of others.
        if body.is_empty() {
            return;
        }
        if frame.dialect == Dialect::Packed {
            self.on_plain(sender, frame.opcode, &unpacked(body), found);
        } else {
            self.on_plain(sender, frame.opcode, body, found);
        }
    }

    fn on_plain<F: Found>(&mut self, sender: Side, opcode: u8, body: &[u8], found: &mut F) {
        match opcode {
            opcode::HELLO | opcode::HELLO_ANSWER => {
                if let Some(name) = hello_name(body) {
                    self.direction(sender).name = bounded(name).to_vec();
                }
            }
            opcode::FILE_NAME => {
                if let Some((hash, name)) = offered_name(body) {
                    self.on_file(sender, hash, name, None, found);
                }
            }
            opcode::MULTI_PACKET_ANSWER => {
                if let Some((hash, name)) = multi_packet_name(body) {
                    self.on_file(sender, hash, name, None, found);
                }
            }
            opcode::OFFER_FILES | opcode::SEARCH_RESULT | opcode::SHARED_FILES => {
                for file in FileList::new(body).filter(|file| !file.name.is_empty()) {
                    self.on_file(sender, file.hash, file.name, file.size, found);
                }
            }
            opcode::MESSAGE => {
                if let Some(text) = chat_text(body) {
                    let (from, to) = self.names(sender);
                    found.message(sender, &ChatMessage { from, to, text });
                }
            }
            _ => {}
        }
    }

    fn on_file<F: Found>(
        &self,
        sender: Side,
        hash: &[u8],
        name: &[u8],
        size: Option<u64>,
        found: &mut F,
    ) {
        let (from, to) = self.names(sender);
        let file = FileInfo {
            name: bounded(name),
            announced_size: size,
            identifier: &hexadecimal(hash),
            from,
            to,
            ..FileInfo::default()
        };
        found.file_named(sender, &file);
    }

    /// What the users of the sending side and of the other call themselves.
    fn names(&self, sender: Side) -> (&[u8], &[u8]) {
        match sender {
            Side::Client => (&self.client.name, &self.server.name),
            Side::Server => (&self.server.name, &self.client.name),
        }
    }
}

/// The body of a packed message (RFC 1950). Of one that is broken, or longer than the bound, what
/// could be unpacked.
fn unpacked(body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut packed = ZlibDecoder::new(body).take(MAX_UNPACKED);
    match packed.read_to_end(&mut plain) {
        Ok(_) | Err(_) => plain,
    }
}

#[cfg(test)]
mod tests;
