//! The MSN inspector on a capture of real conversations (of 2005, from the tests of nDPI), where the
//! captures are beside the repository. What it must find is what tshark 4.0 shows.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails is a failed test"
)]

use std::collections::{BTreeMap, BTreeSet};

use linkweir_gateway::inspect::{ChatMessage, FileInfo, Found, Inspector, Invitation, Side};
use linkweir_proto::application::Application;

/// Port of the servers.
const SERVER_PORT: u16 = 1863;

/// Bytes of all messages together.
const SAID: usize = 2608;

/// What was found in one connection.
#[derive(Debug, Default)]
struct Seen {
    /// Bytes that came, and bytes that were given as text.
    fed: usize,
    text: usize,
    /// Messages of the client and of the server.
    messages: [usize; 2],
    /// Who sent them, and what they say together, bytes.
    senders: BTreeSet<String>,
    said: usize,
}

impl Found for Seen {
    fn text(&mut self, _sender: Side, bytes: &[u8]) {
        self.text += bytes.len();
    }

    fn host(&mut self, _host: &[u8]) {}

    fn message(&mut self, sender: Side, message: &ChatMessage<'_>) {
        self.messages[usize::from(sender == Side::Server)] += 1;
        self.said += message.text.len();
        let from = String::from_utf8_lossy(message.from).into_owned();
        self.senders.insert(from);
    }

    fn file_named(&mut self, _sender: Side, file: &FileInfo<'_>) {
        panic!("a file: {file:?}");
    }

    fn file_begin(&mut self, _sender: Side, file: &FileInfo<'_>) {
        panic!("a file: {file:?}");
    }

    fn file_data(&mut self, _sender: Side, _bytes: &[u8]) {}

    fn file_end(&mut self, _sender: Side, _is_complete: bool) {}

    fn invitation(&mut self, _sender: Side, invitation: &Invitation<'_>) {
        panic!("an invitation: {invitation:?}");
    }

    fn invited(&mut self, _cookie: &[u8], _use_it: &mut dyn FnMut(&FileInfo<'_>)) {}

    fn malformed(&mut self, sender: Side, why: &'static str) {
        panic!("{sender:?}: {why}");
    }
}

fn le32(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The payloads of a little-endian capture of IPv4 over Ethernet: port of the client, who sends,
/// bytes. The capture has no segment twice or out of order.
fn payloads(capture: &[u8]) -> Vec<(u16, Side, Vec<u8>)> {
    const FILE_HEADER: usize = 24;
    const RECORD_HEADER: usize = 16;
    const ETHERNET: usize = 14;
    let mut payloads = Vec::new();
    let mut rest = &capture[FILE_HEADER..];
    while !rest.is_empty() {
        let (record, behind) = rest.split_at(RECORD_HEADER + le32(rest, 8));
        rest = behind;
        let packet = &record[RECORD_HEADER + ETHERNET..];
        // The frame may be longer than the packet.
        let packet = &packet[..usize::from(be16(packet, 2))];
        let segment = &packet[usize::from(packet[0] & 15) * 4..];
        let payload = &segment[usize::from(segment[12] >> 4) * 4..];
        let (source, destination) = (be16(segment, 0), be16(segment, 2));
        if !payload.is_empty() {
            let (client, side) = match source {
                SERVER_PORT => (destination, Side::Server),
                _ => (source, Side::Client),
            };
            payloads.push((client, side, payload.to_vec()));
        }
    }
    payloads
}

#[test]
fn conversations_of_2005_are_understood() {
    let directory = linkweir_testkit::real_captures::directory();
    let Ok(capture) = std::fs::read(directory.join("ntop__nDPI/tests/pcap/msnms.pcap")) else {
        eprintln!("SKIPPED: there are no captures beside the repository");
        return;
    };
    for piece in [usize::MAX, 7, 1] {
        let mut connections: BTreeMap<u16, (Inspector, Seen)> = BTreeMap::new();
        for (client, side, payload) in payloads(&capture) {
            let (inspector, seen) = connections
                .entry(client)
                .or_insert_with(|| (Inspector::of(Some(Application::Msn)), Seen::default()));
            seen.fed += payload.len();
            for bytes in payload.chunks(piece) {
                inspector.feed(side, bytes, seen);
            }
        }
        let messages: Vec<_> = connections
            .iter()
            .map(|(client, (_, seen))| (*client, seen.messages))
            .collect();
        // tshark -Y 'msnms contains "text/plain"' -T fields -e tcp.srcport -e tcp.dstport
        assert_eq!(
            messages,
            [
                (1037, [0, 0]),
                (1176, [1, 0]),
                (1208, [4, 7]),
                (1217, [2, 4]),
                (1220, [0, 3]),
                (1221, [7, 6]),
            ]
        );
        for (_, seen) in connections.values() {
            assert_eq!(seen.text, seen.fed);
        }
        // Two people, one at each end.
        let senders: BTreeSet<_> = connections
            .values()
            .flat_map(|(_, seen)| &seen.senders)
            .collect();
        assert_eq!(senders.len(), 2);
        let said: usize = connections.values().map(|(_, seen)| seen.said).sum();
        assert_eq!(said, SAID);
    }
}
