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
    /// The list in a body: the number of files, then each with hash, identifier and port of the peer that has
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HASH: [u8; 16] = *b"0123456789abcdef";

    fn le16(value: usize) -> [u8; 2] {
        u16::try_from(value).unwrap().to_le_bytes()
    }

    /// A text as tag, in the long form.
    fn text_tag(id: u8, text: &[u8]) -> Vec<u8> {
        [&[2, 1, 0, id][..], &le16(text.len()), text].concat()
    }

    /// A file with these tags.
    fn entry(tags: &[Vec<u8>]) -> Vec<u8> {
        let count = u32::try_from(tags.len()).unwrap().to_le_bytes();
        [&HASH[..], &[1, 2, 3, 4, 5, 6], &count, &tags.concat()].concat()
    }

    #[test]
    fn headers() {
        let header = FrameHeader::parse([0xE3, 0x0B, 1, 0, 0, 0x59]).unwrap();
        assert_eq!(header.dialect, Dialect::EDonkey);
        assert_eq!((header.opcode, header.body_len), (opcode::FILE_NAME, 0x10A));
        assert_eq!(
            FrameHeader::parse([0xC5, 1, 0, 0, 0, 9]).unwrap().body_len,
            0
        );
        assert_eq!(
            FrameHeader::parse([0xD4, 2, 0, 0, 0, 9]).unwrap().dialect,
            Dialect::Packed
        );
        assert_eq!(
            FrameHeader::parse([0xE3, 0, 0, 0, 0, 1]),
            None,
            "no room for the opcode"
        );
        assert_eq!(FrameHeader::parse([0xE4, 1, 0, 0, 0, 1]), None);
    }

    #[test]
    fn files_of_a_list_have_names_and_sizes_in_every_form() {
        let old = entry(&[
            text_tag(1, b"old form.avi"),
            vec![3, 1, 0, 2, 0, 0, 0, 0x40],
        ]);
        let compact = entry(&[
            // The name of 5 bytes in the type, the size in two bytes.
            [&[0x80 | 0x15, 1][..], b"a.mp3"].concat(),
            vec![0x88, 2, 0xE8, 3],
        ]);
        let long = entry(&[
            text_tag(1, b"long.iso"),
            vec![0x83, 2, 1, 0, 0, 0],
            vec![0x89, 0x3A, 2],
        ]);
        let eight = entry(&[vec![0x8B, 2, 0, 0, 0, 0, 1, 0, 0, 0], text_tag(1, b"x")]);
        let others = entry(&[
            [&[0x81, 9][..], &[7; 16]].concat(),
            vec![0x84, 9, 0, 0, 0x80, 0x3F],
            vec![0x85, 9, 1],
            vec![0x86, 9, 9, 0, 0xFF, 0x01],
            vec![0x87, 9, 3, 0, 0, 0, 1, 2, 3],
            vec![0x8A, 9, 2, 1, 2],
            [&[2, 6, 0][..], b"Artist", &[1, 0], b"A"].concat(),
            text_tag(1, b"behind all kinds"),
        ]);
        let body = [&[5, 0, 0, 0][..], &old, &compact, &long, &eight, &others].concat();
        let files: Vec<_> = FileList::new(&body).map(|f| (f.name, f.size)).collect();
        assert_eq!(
            files,
            [
                (&b"old form.avi"[..], Some(0x4000_0000)),
                (b"a.mp3", Some(1000)),
                (b"long.iso", Some(0x2_0000_0001)),
                (b"x", Some(0x1_0000_0000)),
                (b"behind all kinds", None),
            ]
        );
        assert!(FileList::new(&body).all(|file| *file.hash == HASH));
    }

    #[test]
    fn a_list_that_is_cut_gives_what_is_there() {
        let one = entry(&[text_tag(1, b"one"), text_tag(4, b"format")]);
        let body = [&[2, 0, 0, 0][..], &one, &one].concat();
        let names = |body: &[u8]| FileList::new(body).filter(|f| f.name == b"one").count();
        assert_eq!(names(&body), 2);
        assert_eq!(
            names(&body[..body.len() - 1]),
            2,
            "the name of the second is there"
        );
        assert_eq!(names(&body[..body.len() - one.len()]), 1);
        assert_eq!(FileList::new(&[9]).count(), 0);
        // A kind of tag that is not known ends the list.
        let strange = entry(&[text_tag(1, b"one"), vec![0x8C, 1, 1]]);
        assert_eq!(names(&[&[2, 0, 0, 0][..], &strange, &one].concat()), 1);
    }

    #[test]
    fn hellos_have_a_name() {
        let to_server = entry(&[text_tag(1, b"Joe"), vec![0x83, 0x11, 60, 0, 0, 0]]);
        let to_client = [&[16][..], &to_server, &[127, 0, 0, 1, 0x36, 0x12]].concat();
        assert_eq!(hello_name(&to_server), Some(&b"Joe"[..]));
        assert_eq!(hello_name(&to_client), Some(&b"Joe"[..]));
        assert_eq!(hello_name(&entry(&[])), None);
        assert_eq!(hello_name(&to_client[..20]), None);
    }

    #[test]
    fn answers_name_the_file() {
        let name = [&[8, 0][..], b"test.avi"].concat();
        let answer = [&HASH[..], &name].concat();
        assert_eq!(offered_name(&answer), Some((&HASH, &b"test.avi"[..])));
        assert_eq!(offered_name(&answer[..answer.len() - 1]), None);
        let multi = [
            &HASH[..],
            &[0x50, 9, 0, 0xFF, 1],
            &[0x9D],
            &[7; 20],
            &[0x59],
            &name,
        ]
        .concat();
        assert_eq!(multi_packet_name(&multi), Some((&HASH, &b"test.avi"[..])));
        assert_eq!(multi_packet_name(&[&HASH[..], &[0x99]].concat()), None);
        assert_eq!(chat_text(&[2, 0, b'h', b'i', b'!']), Some(&b"hi"[..]));
        assert_eq!(chat_text(&[3, 0, b'h', b'i']), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            // An entry has at least 26 bytes.
            prop_assert!(FileList::new(&bytes).count() <= bytes.len() / 26 + 1);
            std::hint::black_box((hello_name(&bytes), offered_name(&bytes), chat_text(&bytes)));
            std::hint::black_box(multi_packet_name(&bytes));
        }
    }
}
