//! eDonkey and eMule: names of files, chat messages.
//!
//! Every byte is text, the parts of files too, which come in any order. Of messages that name
//! something at most 64 KiB are kept and read when they are whole; packed ones are unpacked within a
//! bound.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use linkweir_proto::edonkey::{
    Dialect, FileList, FrameHeader, chat_text, hello_name, multi_packet_name, offered_name, opcode,
};

use super::gather::{MAX_KEPT, Message};

use crate::inspect::gather::{bounded, hexadecimal};
use crate::inspect::{ChatMessage, FileInfo, Found, Side};

/// Longest message; eMule refuses those over 2 MB.
const MAX_BODY: u32 = 4 * 1024 * 1024;

/// State of the connection.
#[derive(Debug, Default)]
pub struct EDonkeyInspector {
    client: Direction,
    server: Direction,
    is_opaque: bool,
}

/// What is coming from one side.
#[derive(Debug, Default)]
struct Direction {
    /// The header, or the body where there is one.
    message: Message,
    /// The header of the body that is coming.
    frame: Option<FrameHeader>,
    /// What the user of this side calls himself.
    name: Vec<u8>,
}

impl EDonkeyInspector {
    /// The next bytes of a side.
    pub fn feed<F: Found>(&mut self, sender: Side, mut bytes: &[u8], found: &mut F) {
        while !bytes.is_empty() {
            if self.is_opaque {
                found.text(sender, bytes);
                return;
            }
            let direction = self.direction(sender);
            if direction.message.is_whole() {
                direction
                    .message
                    .begin(FrameHeader::LEN as u64, FrameHeader::LEN);
            }
            let (taken, rest) = direction.message.take(bytes);
            found.text(sender, taken);
            if direction.message.is_whole() {
                self.on_whole(sender, found);
            }
            bytes = rest;
        }
    }

    const fn direction(&mut self, sender: Side) -> &mut Direction {
        match sender {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// A header or a body is whole.
    fn on_whole<F: Found>(&mut self, sender: Side, found: &mut F) {
        let direction = self.direction(sender);
        if let Some(frame) = direction.frame.take() {
            let mut body = std::mem::take(&mut direction.message);
            self.on_body(sender, frame, body.bytes(), found);
            body.begin(0, 0);
            self.direction(sender).message = body;
            return;
        }
        let header = direction.message.bytes().first_chunk().copied();
        match header.and_then(FrameHeader::parse) {
            None => self.give_up(sender, "not a message of eDonkey", found),
            Some(frame) if frame.body_len > MAX_BODY => {
                self.give_up(sender, "a message of eDonkey is too long", found);
            }
            Some(frame) if frame.body_len > 0 => {
                let keep = if is_read(frame) { MAX_KEPT } else { 0 };
                direction.message.begin(u64::from(frame.body_len), keep);
                direction.frame = Some(frame);
            }
            Some(_) => {}
        }
    }

    fn give_up<F: Found>(&mut self, sender: Side, why: &'static str, found: &mut F) {
        *self = Self {
            is_opaque: true,
            ..Self::default()
        };
        found.malformed(sender, why);
    }
}

/// Whether a message names something.
const fn is_read(frame: FrameHeader) -> bool {
    match frame.dialect {
        Dialect::EDonkey => matches!(
            frame.opcode,
            opcode::HELLO
                | opcode::HELLO_ANSWER
                | opcode::OFFER_FILES
                | opcode::SEARCH_RESULT
                | opcode::SHARED_FILES
                | opcode::MESSAGE
                | opcode::FILE_NAME
        ),
        Dialect::EMule => frame.opcode == opcode::MULTI_PACKET_ANSWER,
        Dialect::Packed => matches!(
            frame.opcode,
            opcode::OFFER_FILES
                | opcode::SEARCH_RESULT
                | opcode::SHARED_FILES
                | opcode::MULTI_PACKET_ANSWER
        ),
    }
}

// What the messages of eDonkey say.

/// Most that a packed message is unpacked to, bytes; a list of names shrinks to a third or so.
const MAX_UNPACKED: u64 = 256 * 1024;

impl EDonkeyInspector {
    /// A message is whole, or as much of it as is kept.
    fn on_body<F: Found>(&mut self, sender: Side, frame: FrameHeader, body: &[u8], found: &mut F) {
        // Nothing was kept of others.
        if body.is_empty() {
            return;
        }
        if frame.dialect == Dialect::Packed {
            self.on_plain(sender, frame.opcode, &unpacked(body), found);
        } else {
            self.on_plain(sender, frame.opcode, body, found);
        }
    }

    fn on_plain<F: Found>(&mut self, sender: Side, opcode: u8, body: &[u8], found: &mut F) {
        match opcode {
            opcode::HELLO | opcode::HELLO_ANSWER => {
                if let Some(name) = hello_name(body) {
                    self.direction(sender).name = bounded(name).to_vec();
                }
            }
            opcode::FILE_NAME => {
                if let Some((hash, name)) = offered_name(body) {
                    self.on_file(sender, hash, name, None, found);
                }
            }
            opcode::MULTI_PACKET_ANSWER => {
                if let Some((hash, name)) = multi_packet_name(body) {
                    self.on_file(sender, hash, name, None, found);
                }
            }
            opcode::OFFER_FILES | opcode::SEARCH_RESULT | opcode::SHARED_FILES => {
                for file in FileList::new(body).filter(|file| !file.name.is_empty()) {
                    self.on_file(sender, file.hash, file.name, file.size, found);
                }
            }
            opcode::MESSAGE => {
                if let Some(text) = chat_text(body) {
                    let (from, to) = self.names(sender);
                    found.message(sender, &ChatMessage { from, to, text });
                }
            }
            _ => {}
        }
    }

    fn on_file<F: Found>(
        &self,
        sender: Side,
        hash: &[u8],
        name: &[u8],
        size: Option<u64>,
        found: &mut F,
    ) {
        let (from, to) = self.names(sender);
        let file = FileInfo {
            name: bounded(name),
            announced_size: size,
            identifier: &hexadecimal(hash),
            from,
            to,
            ..FileInfo::default()
        };
        found.file_named(sender, &file);
    }

    /// What the users of the sending side and of the other call themselves.
    fn names(&self, sender: Side) -> (&[u8], &[u8]) {
        match sender {
            Side::Client => (&self.client.name, &self.server.name),
            Side::Server => (&self.server.name, &self.client.name),
        }
    }
}

/// The body of a packed message (RFC 1950). Of one that is broken, or longer than the bound, what
/// could be unpacked.
fn unpacked(body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut packed = ZlibDecoder::new(body).take(MAX_UNPACKED);
    match packed.read_to_end(&mut plain) {
        Ok(_) | Err(_) => plain,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use linkweir_proto::application::Application;
    use proptest::prelude::*;

    use super::*;
    use crate::inspect::recorder::{Event, File, Recorder};
    use Side::{Client, Server};

    const HASH: [u8; 16] = [0x22; 16];

    fn frame(protocol: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 1)
            .expect("a short body")
            .to_le_bytes();
        [&[protocol], &length[..], &[opcode], body].concat()
    }

    fn packed(opcode: u8, body: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(body).expect("a buffer takes all");
        frame(0xD4, opcode, &encoder.finish().expect("a buffer takes all"))
    }

    fn text(bytes: &str) -> Vec<u8> {
        let length = u16::try_from(bytes.len())
            .expect("a short text")
            .to_le_bytes();
        [&length[..], bytes.as_bytes()].concat()
    }

    /// Hash, identifier, port, and tags: a name, and in the compact form a number.
    fn identity(name: &str, number: u32) -> Vec<u8> {
        let mut bytes = HASH.to_vec();
        bytes.extend([1, 2, 3, 4, 0x36, 0x12, 2, 0, 0, 0]);
        bytes.extend([2, 1, 0, 1]);
        bytes.extend(text(name));
        bytes.extend([0x83, 2]);
        bytes.extend(number.to_le_bytes());
        bytes
    }

    fn list(names: &[String]) -> Vec<u8> {
        let mut body = u32::try_from(names.len())
            .expect("a short list")
            .to_le_bytes()
            .to_vec();
        for name in names {
            body.extend(identity(name, 1000));
        }
        body
    }

    /// Two clients: hellos, a file is asked for, a chat message, a part of the file; the second one answers
    /// with eMule's message in parts, and shows what it has.
    fn conversation() -> Vec<(Side, Vec<u8>)> {
        let name = text("test.avi");
        let hello = [&[16][..], &identity("Joe", 60)].concat();
        let answer = [&identity("Ann", 60)[..], &[127, 0, 0, 1, 0x36, 0x12]].concat();
        vec![
            (Client, frame(0xE3, 0x01, &hello)),
            (Server, frame(0xE3, 0x4C, &answer)),
            (Client, frame(0xE3, 0x58, &HASH)),
            (Server, frame(0xE3, 0x59, &[&HASH[..], &name].concat())),
            (
                Server,
                frame(0xC5, 0x93, &[&HASH[..], &[0x59], &name].concat()),
            ),
            (Client, frame(0xE3, 0x4E, &text("hello there"))),
            (Server, frame(0xE3, 0x46, &vec![7; 10_000])),
            (Client, frame(0xE3, 0x55, &[])),
            (
                Server,
                frame(0xE3, 0x4B, &list(&["a.mp3".to_owned(), "b.mp3".to_owned()])),
            ),
            (Client, packed(0x15, &list(&["c.iso".to_owned()]))),
        ]
    }

    fn named(sender: Side, name: &str, size: Option<u64>) -> Event {
        let (from, to) = if sender == Client {
            ("Joe", "Ann")
        } else {
            ("Ann", "Joe")
        };
        let file = File {
            name: name.to_owned(),
            size,
            identifier: "22".repeat(16),
            from: from.to_owned(),
            to: to.to_owned(),
        };
        Event::Named(sender, file)
    }

    #[test]
    fn a_conversation_is_understood() {
        let found = Recorder::of(Application::EDonkey, &conversation());
        assert_eq!(
            found.events,
            [
                named(Server, "test.avi", None),
                named(Server, "test.avi", None),
                Event::Message {
                    sender: Client,
                    from: "Joe".to_owned(),
                    to: "Ann".to_owned(),
                    text: "hello there".to_owned(),
                },
                named(Server, "a.mp3", Some(1000)),
                named(Server, "b.mp3", Some(1000)),
                named(Client, "c.iso", Some(1000)),
            ]
        );
        assert_eq!(found.texts[0], Recorder::sent(&conversation(), Client));
        assert_eq!(found.texts[1], Recorder::sent(&conversation(), Server));
    }

    #[test]
    fn a_list_beyond_the_bounds_gives_its_beginning() {
        let names: Vec<String> = (0..20_000)
            .map(|number| format!("file {number}.mp3"))
            .collect();
        let body = list(&names);
        let count = |frame: Vec<u8>| {
            let after = (Client, frame_of_message());
            let found = Recorder::of(Application::EDonkey, &[(Client, frame), after]);
            assert!(
                matches!(found.events.last(), Some(Event::Message { .. })),
                "still in step"
            );
            found.events.len() - 1
        };
        let plain = count(frame(0xE3, 0x33, &body));
        assert!((1000..1500).contains(&plain), "{plain} in 64 KiB");
        let unpacked = count(packed(0x33, &body));
        assert!((4000..6000).contains(&unpacked), "{unpacked} in 256 KiB");
        // One that is broken gives what is before the fault.
        let mut broken = packed(0x33, &body);
        let middle = broken.len() / 2;
        broken[middle..].fill(0xFF);
        assert!(count(broken) > 0);
    }

    fn frame_of_message() -> Vec<u8> {
        frame(0xE3, 0x4E, &text("x"))
    }

    #[test]
    fn what_is_not_edonkey_is_malformed_once_and_text() {
        let cases: [(&[u8], &str); 3] = [
            (b"GET / HTTP/1.1\r\n", "not a message of eDonkey"),
            (b"\xE3\0\0\0\0\x01", "not a message of eDonkey"),
            (
                b"\xE3\xFF\xFF\xFF\x7F\x01xx",
                "a message of eDonkey is too long",
            ),
        ];
        for (bytes, why) in cases {
            let connection = [(Client, bytes.to_vec()), (Server, frame_of_message())];
            let found = Recorder::of(Application::EDonkey, &connection);
            assert_eq!(found.events, [Event::Malformed(Client, why)]);
            assert_eq!(found.texts[0], bytes);
            assert_eq!(found.texts[1], frame_of_message());
        }
    }

    proptest! {
        #[test]
        fn how_it_is_cut_changes_nothing(pieces in proptest::collection::vec(1_usize..60, 1..20)) {
            let whole = Recorder::of(Application::EDonkey, &conversation());
            let cut = Recorder::default().watch(Application::EDonkey, &conversation(), &pieces);
            prop_assert_eq!(cut, whole);
        }

        #[test]
        fn any_bytes_are_text(
            opcode: u8,
            protocol in prop_oneof![Just(0xE3_u8), Just(0xC5), Just(0xD4), any::<u8>()],
            body in proptest::collection::vec(any::<u8>(), 0..200),
            behind in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let bytes = [frame(protocol, opcode, &body), behind].concat();
            let connection = [(Client, bytes.clone()), (Server, bytes)];
            let found = Recorder::of(Application::EDonkey, &connection);
            prop_assert_eq!(&found.texts[0], &Recorder::sent(&connection, Client));
            prop_assert_eq!(&found.texts[1], &Recorder::sent(&connection, Server));
        }
    }
}
