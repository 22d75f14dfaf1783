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
mod tests;
