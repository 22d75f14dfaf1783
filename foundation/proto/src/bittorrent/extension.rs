//! Messages of extensions: the handshake (BEP 10) and pieces of the metadata (BEP 9).

use super::{Entries, Value};

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
