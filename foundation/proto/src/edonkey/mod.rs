//! eDonkey2000 and eMule over TCP: frames, and the messages that name files or people.
//!
//! Source: Kulbak and Bickson, "The eMule Protocol Specification" (2005); the compact tags as eMule
//! introduced them in 2004. All numbers have their lowest byte first.

mod tag;

use tag::{number, text};

use crate::tls::reader::Reader;

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

// Bodies of messages that name files or people. Of a body that is cut, what is there is read.

/// Bytes of a hash (MD4).
const HASH: usize = 16;

/// The name in a hello (with the size of the hash in front, or without it as to a server) and in the
/// answer.
#[must_use]
pub fn hello_name(body: &[u8]) -> Option<&[u8]> {
    /// Hash, identifier, port.
    const BEFORE_TAGS: usize = HASH + 4 + 2;
    // A hash that begins with 16 and has no size in front is rare; then the tags do not fit.
    let with_size = body
        .strip_prefix(&[16])
        .and_then(|rest| rest.get(BEFORE_TAGS..));
    let without = body.get(BEFORE_TAGS..);
    let mut tags = [with_size, without].into_iter().flatten();
    tags.find_map(|tags| {
        Tags::read(Reader::new(tags))?.find_map(|tag| match (tag.name, tag.value) {
            (TagName::NAME, TagValue::Text(name)) => Some(name),
            _ => None,
        })
    })
}

/// Hash and name of a file that was asked for.
#[must_use]
pub fn offered_name(body: &[u8]) -> Option<(&[u8; HASH], &[u8])> {
    let (hash, name) = body.split_first_chunk()?;
    Some((hash, text(&mut Reader::new(name))?))
}

/// The same of eMule's answer in several parts: the hash, then parts, each with its opcode.
#[must_use]
pub fn multi_packet_name(body: &[u8]) -> Option<(&[u8; HASH], &[u8])> {
    let (hash, parts) = body.split_first_chunk()?;
    let mut reader = Reader::new(parts);
    loop {
        match reader.u8()? {
            opcode::FILE_NAME => return Some((hash, text(&mut reader)?)),
            // Which parts of the file there are: their number, then a bit for each.
            0x50 => {
                let parts = u16::from_le_bytes(reader.array()?);
                reader.take(usize::from(parts).div_ceil(8))?;
            }
            // The root hash of the file.
            0x9D => drop(reader.take(20)?),
            _ => return None,
        }
    }
}

/// The text of a chat message.
#[must_use]
pub fn chat_text(body: &[u8]) -> Option<&[u8]> {
    text(&mut Reader::new(body))
}

/// A file of a list. Absent texts are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEntry<'a> {
    /// What identifies it.
    pub hash: &'a [u8; HASH],
    /// Its name.
    pub name: &'a [u8],
    /// Its length, bytes.
    pub size: Option<u64>,
}

/// The files of an offer or a result: an iterator that ends where the list does or is broken.
#[derive(Debug, Clone, Copy)]
pub struct FileList<'a> {
    reader: Reader<'a>,
    left: u32,
}

impl<'a> FileList<'a> {
    /// The list in a body: the number of files, then each with hash, identifier and port of who has
    /// it, and tags.
    #[must_use]
    pub fn new(body: &'a [u8]) -> Self {
        let mut reader = Reader::new(body);
        let left = number(&mut reader).unwrap_or(0);
        Self { reader, left }
    }
}

impl<'a> Iterator for FileList<'a> {
    type Item = FileEntry<'a>;

    fn next(&mut self) -> Option<FileEntry<'a>> {
        self.left = self.left.checked_sub(1)?;
        let hash = self.reader.take(HASH)?.first_chunk()?;
        let _who = self.reader.array::<6>()?;
        let mut tags = Tags::read(self.reader)?;
        let mut entry = FileEntry {
            hash,
            name: &[],
            size: None,
        };
        let mut high = 0;
        for tag in &mut tags {
            match (tag.name, tag.value) {
                (TagName::NAME, TagValue::Text(name)) => entry.name = name,
                (TagName::FILE_SIZE, TagValue::Number(size)) => entry.size = Some(size),
                (TagName::FILE_SIZE_HIGH, TagValue::Number(size)) => high = size << 32,
                _ => {}
            }
        }
        entry.size = entry.size.map(|low| low | high);
        if let Some(rest) = tags.rest() {
            self.reader = rest;
        } else {
            // What was read of it counts, what follows is lost.
            self.left = 0;
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
