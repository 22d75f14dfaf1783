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

#[cfg(test)]
mod tests;
