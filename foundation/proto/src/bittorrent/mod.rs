//! BitTorrent between peers: handshake and frames (BEP 3), extensions (BEP 10), and the metadata of a
//! torrent as peers give it to each other (BEP 9).

mod bencode;

pub use bencode::{Entries, Items, Value};

/// What a peer sends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// SHA-1 of the info dictionary, which names the torrent.
    pub info_hash: [u8; 20],
    /// What the peer calls itself.
    pub peer_id: [u8; 20],
}

impl Handshake {
    /// How a handshake begins: the length of the protocol's name, and the name.
    pub const START: &[u8; 20] = b"\x13BitTorrent protocol";
    /// Bytes of the rest.
    pub const REST: usize = 48;

    /// Reads what follows the start.
    #[must_use]
    pub const fn parse(rest: &[u8; Self::REST]) -> Option<Self> {
        let Some((_reserved, rest)) = rest.split_first_chunk::<8>() else {
            return None;
        };
        match (rest.first_chunk(), rest.last_chunk()) {
            (Some(info_hash), Some(peer_id)) => Some(Self {
                info_hash: *info_hash,
                peer_id: *peer_id,
            }),
            _ => None,
        }
    }
}

/// The identifier of messages of extensions (BEP 10).
pub const EXTENDED: u8 = 20;

// Messages of extensions: the handshake (BEP 10) and pieces of the metadata (BEP 9).

/// Bytes of every piece of the metadata but the last.
pub const PIECE_LEN: usize = 16 * 1024;

/// What a peer understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionHandshake {
    /// The identifier that messages about metadata are to have when they are sent to this peer; `None`
    /// where it does not want them.
    pub metadata_id: Option<u8>,
}

impl ExtensionHandshake {
    /// Reads the payload of such a handshake, behind its identifier 0.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let (value, _) = Value::take(payload)?;
        let names = value.dictionary()?.get(b"m").and_then(Value::dictionary);
        let metadata_id = names
            .and_then(|names| names.get(b"ut_metadata"))
            .and_then(Value::number)
            .and_then(|id| u8::try_from(id).ok())
            // 0 takes an extension back.
            .filter(|id| *id != 0);
        Some(Self { metadata_id })
    }
}

/// A part of the info dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataPiece<'a> {
    /// Which one, from 0.
    pub index: u64,
    /// Length of the whole dictionary, bytes.
    pub total: Option<u64>,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl<'a> MetadataPiece<'a> {
    /// Reads the payload of a message about metadata; `None` where it carries no piece.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        /// What the message does: gives data.
        const DATA: u64 = 1;
        let (value, bytes) = Value::take(payload)?;
        let head: Entries<'_> = value.dictionary()?;
        let number = |key: &[u8]| head.get(key).and_then(Value::number);
        (number(b"msg_type")? == DATA).then_some(Self {
            index: number(b"piece")?,
            total: number(b"total_size"),
            bytes,
        })
    }
}

// The info dictionary: what the torrent is called and which files it has.

/// What the beginning of an info dictionary says. Keys are in order, so that what is wanted comes
/// before the long list of hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TorrentInfo<'a> {
    /// Name of the file, or of the directory of the files.
    pub name: &'a [u8],
    /// Length of the file; `None` of a directory.
    pub length: Option<u64>,
    files: Option<Items<'a>>,
}

/// A file of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TorrentFile<'a> {
    /// Its name without its directories.
    pub name: &'a [u8],
    /// Its length.
    pub length: Option<u64>,
}

impl<'a> TorrentInfo<'a> {
    /// Reads the first bytes of an info dictionary; `None` where the name is not among them.
    #[must_use]
    pub fn of_prefix(bytes: &'a [u8]) -> Option<Self> {
        let mut length = None;
        let mut files = None;
        for (key, value) in Entries::of_prefix(bytes)? {
            match key {
                b"length" => length = value.number(),
                b"files" => files = value.list(),
                b"name" => {
                    let name = value.bytes()?;
                    return Some(Self {
                        name,
                        length,
                        files,
                    });
                }
                _ => {}
            }
        }
        None
    }

    /// The files of a torrent with several.
    pub fn files(&self) -> impl Iterator<Item = TorrentFile<'a>> + use<'a> {
        self.files.into_iter().flatten().filter_map(|file| {
            let file = file.dictionary()?;
            let path = file.get(b"path").and_then(Value::list)?;
            Some(TorrentFile {
                name: path.filter_map(Value::bytes).last()?,
                length: file.get(b"length").and_then(Value::number),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_handshake_has_the_hash() {
        let mut rest = [0; Handshake::REST];
        rest[8..28].fill(0x33);
        rest[28..].copy_from_slice(b"-TR3000-abcdefghijkl");
        let handshake = Handshake::parse(&rest).unwrap();
        assert_eq!(handshake.info_hash, [0x33; 20]);
        assert_eq!(&handshake.peer_id, b"-TR3000-abcdefghijkl");
    }

    #[test]
    fn values_are_read_where_they_lie() {
        let (value, rest) = Value::take(b"d1:ai-7e1:bl4:spami3eee!").unwrap();
        assert_eq!(rest, b"!");
        let entries = value.dictionary().unwrap();
        assert_eq!(entries.get(b"a"), Some(Value::Integer(-7)));
        let items: Vec<_> = entries.get(b"b").unwrap().list().unwrap().collect();
        assert_eq!(items, [Value::Bytes(b"spam"), Value::Integer(3)]);
        assert_eq!(entries.get(b"c"), None);
        assert_eq!(Value::Integer(-7).number(), None);
    }

    #[test]
    fn what_is_broken_or_cut_is_no_value() {
        let cases: [&[u8]; 13] = [
            b"",
            b"i",
            b"ie",
            b"i1",
            b"i99999999999999999999e",
            b"4:abc",
            b":",
            b"-1:",
            b"+1:a",
            b"l",
            b"li1e",
            b"d1:a",
            b"e",
        ];
        for bytes in cases {
            assert_eq!(Value::take(bytes), None, "{}", bytes.escape_ascii());
        }
        let deep = [vec![b'l'; 65], vec![b'e'; 65]].concat();
        assert_eq!(Value::take(&deep), None);
        assert!(Value::take(&deep[1..129]).is_some());
    }

    #[test]
    fn extension_messages() {
        let id = |payload: &[u8]| ExtensionHandshake::parse(payload).map(|h| h.metadata_id);
        let hello = b"d1:ei0e1:md11:ut_metadatai2e6:ut_pexi1ee13:metadata_sizei31235e1:v2:xxe";
        assert_eq!(id(hello), Some(Some(2)));
        assert_eq!(id(b"d1:mdee"), Some(None));
        assert_eq!(id(b"d1:md11:ut_metadatai0eee"), Some(None));
        assert_eq!(id(b"i1e"), None);
        let piece =
            MetadataPiece::parse(b"d8:msg_typei1e5:piecei3e10:total_sizei34256eexxxx").unwrap();
        assert_eq!(
            (piece.index, piece.total, piece.bytes),
            (3, Some(34256), &b"xxxx"[..])
        );
        assert_eq!(
            MetadataPiece::parse(b"d8:msg_typei0e5:piecei0ee"),
            None,
            "a request"
        );
    }

    #[test]
    fn the_name_is_read_from_the_beginning() {
        let single = b"d6:lengthi99e4:name8:some.iso12:piece lengthi16384e6:pieces20:";
        let info = TorrentInfo::of_prefix(single).unwrap();
        assert_eq!((info.name, info.length), (&b"some.iso"[..], Some(99)));
        assert_eq!(info.files().count(), 0);
        assert_eq!(
            TorrentInfo::of_prefix(&single[..26]),
            None,
            "cut in the name"
        );
        let several =
            b"d5:filesld6:lengthi5e4:pathl3:sub5:a.txteed6:lengthi7e4:pathl5:b.txteee4:name3:dire";
        let info = TorrentInfo::of_prefix(several).unwrap();
        assert_eq!((info.name, info.length), (&b"dir"[..], None));
        let files: Vec<_> = info.files().map(|file| (file.name, file.length)).collect();
        assert_eq!(files, [(&b"a.txt"[..], Some(5)), (b"b.txt", Some(7))]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some((_, rest)) = Value::take(&bytes) {
                prop_assert!(rest.len() < bytes.len());
            }
            std::hint::black_box((ExtensionHandshake::parse(&bytes), MetadataPiece::parse(&bytes)));
        }

        #[test]
        fn anything_like_a_value_is_read_without_panic(text in "[dlie0-9:a-c]{0,60}") {
            if let Some((value, _)) = Value::take(text.as_bytes()) {
                std::hint::black_box(value.list().map(Iterator::count));
                std::hint::black_box(value.dictionary().map(Iterator::count));
            }
            if let Some(info) = TorrentInfo::of_prefix(text.as_bytes()) {
                prop_assert!(info.files().count() <= text.len());
            }
        }
    }
}
