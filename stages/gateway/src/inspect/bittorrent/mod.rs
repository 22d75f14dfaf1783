//! BitTorrent: the torrent's hash, and its names where peers give each other its metadata.
//!
//! Connections to a tracker belong to this application too, but speak HTTP: the first byte tells. Where
//! that is a random one, of peers that disguise themselves, it may tell the wrong thing (3 in 256);
//! then the names are lost and nothing else.

mod metadata;
mod peers;

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

#[cfg(test)]
mod tests;
