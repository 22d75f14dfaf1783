//! eDonkey2000 and eMule over TCP: frames, and the messages that name files or people.
//!
//! Source: Kulbak and Bickson, "The eMule Protocol Specification" (2005); the compact tags as eMule
//! introduced them in 2004. All numbers have their lowest byte first.

mod message;
mod tag;

pub use message::{FileEntry, FileList, chat_text, hello_name, multi_packet_name, offered_name};
pub use tag::{Tag, TagName, TagValue, Tags};

/// Whose messages a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// eDonkey.
    EDonkey,
    /// The extensions of eMule.
    EMule,
    /// Either, the body packed by zlib (RFC 1950).
    Packed,
}

/// What is in front of the body of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Whose message it is.
    pub dialect: Dialect,
    /// Which one.
    pub opcode: u8,
    /// Length of the body behind the opcode, bytes.
    pub body_len: u32,
}

impl FrameHeader {
    /// Bytes of a header, the opcode among them.
    pub const LEN: usize = 6;

    /// Reads a header; `None` where the first byte is none of the three, or the length has no room for
    /// the opcode.
    #[must_use]
    pub fn parse([dialect, a, b, c, d, opcode]: [u8; Self::LEN]) -> Option<Self> {
        let dialect = match dialect {
            0xE3 => Dialect::EDonkey,
            0xC5 => Dialect::EMule,
            0xD4 => Dialect::Packed,
            _ => return None,
        };
        Some(Self {
            dialect,
            opcode,
            body_len: u32::from_le_bytes([a, b, c, d]).checked_sub(1)?,
        })
    }
}

/// Opcodes of messages that are read. Clients and servers give some numbers different meanings, but
/// not these.
pub mod opcode {
    /// Hello of a client: to a client (the size of the hash in front), or to a server.
    pub const HELLO: u8 = 0x01;
    /// Files that a client has, for its server.
    pub const OFFER_FILES: u8 = 0x15;
    /// What a server found.
    pub const SEARCH_RESULT: u8 = 0x33;
    /// Files that a client has, for another client that asked.
    pub const SHARED_FILES: u8 = 0x4B;
    /// Answer to the hello of a client.
    pub const HELLO_ANSWER: u8 = 0x4C;
    /// A chat message.
    pub const MESSAGE: u8 = 0x4E;
    /// Name of the file that was asked for.
    pub const FILE_NAME: u8 = 0x59;
    /// eMule: several answers about one file in one message.
    pub const MULTI_PACKET_ANSWER: u8 = 0x93;
}

#[cfg(test)]
mod tests;
