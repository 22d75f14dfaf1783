//! The info dictionary: what the torrent is called and which files it has.

use super::{Entries, Items, Value};

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
