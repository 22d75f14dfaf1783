//! BitTorrent between peers: handshake and frames (BEP 3), extensions (BEP 10), and the metadata of a
//! torrent as peers give it to each other (BEP 9).

mod bencode;
mod extension;
mod metadata;

pub use bencode::{Entries, Items, Value};
pub use extension::{ExtensionHandshake, MetadataPiece, PIECE_LEN};
pub use metadata::{TorrentFile, TorrentInfo};

/// What a peer sends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// SHA-1 of the info dictionary, which names the torrent.
    pub info_hash: [u8; 20],
    /// What the peer calls itself.
    pub peer_id: [u8; 20],
}

impl Handshake {
    /// Bytes of a handshake.
    pub const LEN: usize = 68;

    /// Reads one; `None` where it is of no such protocol.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let rest = bytes.strip_prefix(b"\x13BitTorrent protocol")?;
        let (_reserved, rest) = rest.split_first_chunk::<8>()?;
        let (info_hash, rest) = rest.split_first_chunk()?;
        Some(Self {
            info_hash: *info_hash,
            peer_id: *rest.first_chunk()?,
        })
    }
}

/// The identifier of messages of extensions (BEP 10).
pub const EXTENDED: u8 = 20;

#[cfg(test)]
mod tests;
