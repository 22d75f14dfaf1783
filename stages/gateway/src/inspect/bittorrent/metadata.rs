//! The beginning of a torrent's info dictionary, put together from pieces (BEP 9).

use linkweir_proto::bittorrent::{MetadataPiece, PIECE_LEN, TorrentInfo};

/// Pieces that are kept: names come before the hashes, which are most of it.
const MAX_PIECES: usize = 4;

/// The pieces that came, until they give a name.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pieces: [Vec<u8>; MAX_PIECES],
    is_read: bool,
}

impl Metadata {
    /// A piece came. Where the name is known now, calls `on_file` with it, and with those of the files
    /// of a torrent that has several; once.
    pub(super) fn on_piece(
        &mut self,
        piece: &MetadataPiece<'_>,
        mut on_file: impl FnMut(&[u8], Option<u64>),
    ) {
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
