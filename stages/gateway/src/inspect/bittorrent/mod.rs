//! BitTorrent: the torrent's hash, and its names where peers give each other its metadata.
//!
//! Connections to a tracker belong to this application too, but speak HTTP: the first byte tells. Where
//! that is a random one, of peers that disguise themselves, it may tell the wrong thing (3 in 256);
//! then the names are lost and nothing else.

mod peers;

use linkweir_proto::bittorrent::{MetadataPiece, PIECE_LEN, TorrentInfo};

use self::peers::Peers;
use super::http::HttpInspector;
use super::{Found, Side};

/// State of the connection.
#[derive(Debug, Default)]
pub struct BitTorrentInspector {
    kind: Kind,
}

#[derive(Debug, Default)]
enum Kind {
    /// Nothing came yet.
    #[default]
    Unknown,
    Peers(Box<Peers>),
    Tracker(Box<HttpInspector>),
}

impl BitTorrentInspector {
    /// The next bytes of a side.
    pub fn feed<F: Found>(&mut self, sender: Side, bytes: &[u8], found: &mut F) {
        if matches!(self.kind, Kind::Unknown) {
            self.kind = match bytes.first() {
                None => return,
                // `GET`, and what else HTTP may begin with.
                Some(b'G' | b'H' | b'P') => Kind::Tracker(Box::default()),
                Some(_) => Kind::Peers(Box::default()),
            };
        }
        match &mut self.kind {
            Kind::Unknown => {}
            Kind::Peers(peers) => peers.feed(sender, bytes, found),
            Kind::Tracker(http) => http.feed(sender, bytes, found),
        }
    }

    /// A side has sent all it will.
    pub fn finish<F: Found>(&mut self, sender: Side, found: &mut F) {
        if let Kind::Tracker(http) = &mut self.kind {
            http.finish(sender, found);
        }
    }
}

// The beginning of a torrent's info dictionary, put together from pieces (BEP 9).

/// Pieces that are kept: names come before the hashes, which are most of it.
const MAX_PIECES: usize = 4;

/// The pieces that came, until they give a name.
#[derive(Debug, Default)]
struct Metadata {
    pieces: [Vec<u8>; MAX_PIECES],
    is_read: bool,
}

impl Metadata {
    /// A piece came. Where the name is known now, calls `on_file` with it, and with those of the files
    /// of a torrent that has several; once.
    fn on_piece(&mut self, piece: &MetadataPiece<'_>, mut on_file: impl FnMut(&[u8], Option<u64>)) {
        let index = usize::try_from(piece.index).unwrap_or(usize::MAX);
        let Some(place) = self.pieces.get_mut(index).filter(|place| place.is_empty()) else {
            return;
        };
        if self.is_read {
            return;
        }
        let bytes = piece.bytes.get(..PIECE_LEN).unwrap_or(piece.bytes);
        place.extend_from_slice(bytes);
        let beginning = self.beginning();
        if let Some(info) = TorrentInfo::of_prefix(&beginning) {
            on_file(info.name, info.length);
            for file in info.files() {
                on_file(file.name, file.length);
            }
            self.is_read = true;
            self.pieces = Default::default();
        }
    }

    /// What is there without a gap.
    fn beginning(&self) -> Vec<u8> {
        let mut beginning = Vec::new();
        for piece in &self.pieces {
            beginning.extend_from_slice(piece);
            // A short piece is the last one.
            if piece.len() < PIECE_LEN {
                break;
            }
        }
        beginning
    }
}

#[cfg(test)]
mod tests;
