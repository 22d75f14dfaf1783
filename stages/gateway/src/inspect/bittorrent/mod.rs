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
mod tests {
    use linkweir_proto::application::Application;
    use proptest::prelude::*;

    use crate::inspect::Side::{self, Client, Server};
    use crate::inspect::recorder::{Event, File, Recorder};

    fn handshake(hash: u8) -> Vec<u8> {
        let mut bytes = b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x05".to_vec();
        bytes.extend([hash; 20]);
        bytes.extend(b"-TR3000-abcdefghijkl");
        bytes
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 1)
            .expect("a short body")
            .to_be_bytes();
        [&length[..], &[kind], body].concat()
    }

    fn extended(id: u8, head: &str, bytes: &[u8]) -> Vec<u8> {
        message(20, &[&[id], head.as_bytes(), bytes].concat())
    }

    /// The info dictionary of a torrent with several files and a long list of hashes.
    fn info() -> Vec<u8> {
        let mut info = b"d5:filesl".to_vec();
        for number in 100..500 {
            info.extend(
                format!("d6:lengthi{number}e4:pathl6:folder11:file {number}.xx").as_bytes(),
            );
            info.extend(b"ee");
        }
        info.extend(b"e4:name11:many things12:piece lengthi16384e6:pieces40000:");
        info.extend([7; 40_000]);
        info.push(b'e');
        info
    }

    /// Two peers: the client asks for the metadata with its number 3, the server has it and sends the
    /// pieces, the second one first.
    fn conversation() -> Vec<(Side, Vec<u8>)> {
        let info = info();
        let piece = |index: usize| {
            let bytes = info.chunks(16 * 1024).nth(index).expect("a piece");
            let head = format!(
                "d8:msg_typei1e5:piecei{index}e10:total_sizei{}ee",
                info.len()
            );
            (Server, extended(3, &head, bytes))
        };
        vec![
            (Client, handshake(0x33)),
            (Server, handshake(0x33)),
            (Client, extended(0, "d1:md11:ut_metadatai3eee", b"")),
            (
                Server,
                extended(0, "d1:md11:ut_metadatai1ee13:metadata_sizei60000ee", b""),
            ),
            (Server, message(5, &[0xFF; 100])),
            (Server, vec![0, 0, 0, 0]),
            (Client, message(2, &[])),
            (Client, extended(1, "d8:msg_typei0e5:piecei0ee", b"")),
            piece(1),
            piece(0),
            piece(2),
            (Server, message(7, &[9; 16_393])),
        ]
    }

    fn named(sender: Side, name: &str, size: Option<u64>) -> Event {
        let file = File {
            name: name.to_owned(),
            size,
            identifier: "33".repeat(20),
            ..File::default()
        };
        Event::Named(sender, file)
    }

    #[test]
    fn a_torrent_is_named_by_its_hash_and_then_by_its_metadata() {
        let found = Recorder::of(Application::BitTorrent, &conversation());
        assert_eq!(found.events.len(), 402);
        assert_eq!(
            found.events[..3],
            [
                named(Client, "", None),
                named(Server, "many things", None),
                named(Server, "file 100.xx", Some(100)),
            ]
        );
        assert_eq!(found.events[401], named(Server, "file 499.xx", Some(499)));
        assert_eq!(found.texts[0], Recorder::sent(&conversation(), Client));
        assert_eq!(found.texts[1], Recorder::sent(&conversation(), Server));
    }

    #[test]
    fn a_single_file_has_a_length() {
        let head = "d8:msg_typei1e5:piecei0e10:total_sizei99ee";
        let info =
            b"d6:lengthi12345e4:name8:some.iso12:piece lengthi16384e6:pieces20:aaaaaaaaaaaaaaaaaaaae";
        let connection = [
            (Client, handshake(0x33)),
            (Client, extended(0, "d1:md11:ut_metadatai3eee", b"")),
            (Server, handshake(0x33)),
            // With a number that the receiver did not choose it is another extension's.
            (Server, extended(4, head, info)),
            (Server, extended(3, head, info)),
            (Server, extended(3, head, info)),
        ];
        assert_eq!(
            Recorder::of(Application::BitTorrent, &connection).events,
            [
                named(Client, "", None),
                named(Server, "some.iso", Some(12_345))
            ]
        );
    }

    #[test]
    fn pieces_beyond_the_bound_are_not_kept() {
        let mut connection = conversation();
        connection.truncate(4);
        for index in [4_u64, 5, 1 << 40, u64::MAX / 2] {
            let head = format!("d8:msg_typei1e5:piecei{index}ee");
            connection.push((Server, extended(3, &head, &[0; 16 * 1024])));
        }
        let found = Recorder::of(Application::BitTorrent, &connection);
        assert_eq!(found.events, [named(Client, "", None)]);
    }

    #[test]
    fn what_is_not_bittorrent_is_malformed_once_and_text() {
        let mut wrong = handshake(1).repeat(40);
        wrong.iter_mut().step_by(20).for_each(|byte| *byte = b'?');
        wrong[0] = 1;
        let long = [handshake(0x33), b"\x7F\xFF\xFF\xFFxyz".to_vec()].concat();
        let cases = [
            (wrong, "no handshake of BitTorrent"),
            (long, "a message of BitTorrent is too long"),
        ];
        for (bytes, why) in cases {
            let connection = [(Client, bytes), (Server, handshake(0x33))];
            let found = Recorder::of(Application::BitTorrent, &connection);
            let malformed: Vec<_> = found
                .events
                .iter()
                .filter(|event| matches!(event, Event::Malformed(..)))
                .collect();
            assert_eq!(malformed, [&Event::Malformed(Client, why)]);
            assert_eq!(found.texts[0], connection[0].1);
            assert_eq!(found.texts[1], connection[1].1);
        }
    }

    /// Keys are exchanged, then both agree on plain text, as aria2 does with itself.
    #[test]
    fn a_handshake_may_come_behind_an_exchange_of_keys() {
        let mut noise: Vec<u8> = (0..900_u32).map(|at| (at * 151 % 251) as u8).collect();
        noise[400..411].copy_from_slice(b"\x13BitTorrent");
        noise.extend(b"\x13\x13Bit");
        let connection: Vec<_> = [Client, Server]
            .into_iter()
            .map(|side| (side, [&noise[..], &handshake(0x33)].concat()))
            .collect();
        let found = Recorder::of(Application::BitTorrent, &connection);
        assert_eq!(found.events, [named(Client, "", None)]);
        assert_eq!(found.texts[0], connection[0].1);
    }

    #[test]
    fn a_tracker_speaks_http() {
        let request =
            b"GET /announce?info_hash=%33 HTTP/1.1\r\nHost: tracker.test\r\n\r\n".to_vec();
        let found = Recorder::of(Application::BitTorrent, &[(Client, request.clone())]);
        assert_eq!(found.texts[0], request);
        assert!(
            !found
                .events
                .iter()
                .any(|event| matches!(event, Event::Malformed(..)))
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn how_it_is_cut_changes_nothing(pieces in proptest::collection::vec(1_usize..900, 1..20)) {
            let whole = Recorder::of(Application::BitTorrent, &conversation());
            let cut = Recorder::default().watch(Application::BitTorrent, &conversation(), &pieces);
            prop_assert_eq!(cut, whole);
        }

        #[test]
        fn any_bytes_are_text(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            id in 0_u8..4,
        ) {
            let hello = extended(0, "d1:md11:ut_metadatai3eee", b"");
            let theirs = [handshake(0x33), hello].concat();
            let ours = [handshake(0x33), extended(id, "", &bytes), bytes].concat();
            let connection = [(Client, theirs), (Server, ours)];
            let found = Recorder::of(Application::BitTorrent, &connection);
            prop_assert_eq!(&found.texts[0], &Recorder::sent(&connection, Client));
            prop_assert_eq!(&found.texts[1], &Recorder::sent(&connection, Server));
        }
    }
}
