//! What the messages of eDonkey say.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use linkweir_proto::edonkey::{
    Dialect, FileList, FrameHeader, chat_text, hello_name, multi_packet_name, offered_name, opcode,
};

use super::EDonkeyInspector;
use crate::inspect::digits::hexadecimal;
use crate::inspect::gather::bounded;
use crate::inspect::{ChatMessage, FileInfo, Found, Side};

/// Most that a packed message is unpacked to, bytes; a list of names shrinks to a third or so.
const MAX_UNPACKED: u64 = 256 * 1024;

impl EDonkeyInspector {
    /// A message is whole, or as much of it as is kept.
    pub(super) fn on_body<F: Found>(
        &mut self,
        sender: Side,
        frame: FrameHeader,
        body: &[u8],
        found: &mut F,
    ) {
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
