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
