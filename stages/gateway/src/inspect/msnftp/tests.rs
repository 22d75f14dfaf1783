use linkweir_proto::application::Application;
use proptest::prelude::*;

use super::*;
use crate::inspect::recorder::{Event, File, Recorder};
use Side::{Client, Server};

/// The receiver has connected; the sender, who listened, sends this file in blocks of this length.
fn transfer(file: &[u8], announced: usize, block: usize) -> Vec<(Side, Vec<u8>)> {
    let mut connection = vec![
        (Client, b"VER MSNFTP\r\n".to_vec()),
        (Server, b"VER MSNFTP\r\n".to_vec()),
        (Client, b"USR anna@example.test 93301\r\n".to_vec()),
        (Server, format!("FIL {announced}\r\n").into_bytes()),
        (Client, b"TFR\r\n".to_vec()),
    ];
    for data in file.chunks(block) {
        let length = u16::try_from(data.len())
            .expect("a short block")
            .to_le_bytes();
        connection.push((Server, [&[0], &length[..], data].concat()));
    }
    connection.push((Server, vec![1, 0, 0]));
    connection.push((Client, b"BYE 16777989\r\n".to_vec()));
    connection
}

fn file(name: &str, size: u64) -> File {
    File {
        name: name.to_owned(),
        size: Some(size),
        identifier: "93301".to_owned(),
        to: "anna@example.test".to_owned(),
        ..File::default()
    }
}

#[test]
fn blocks_are_taken_apart() {
    let found = Recorder::of(Application::MsnFtp, &transfer(b"hello world", 11, 4));
    assert_eq!(found.data[1], b"hello world");
    assert_eq!(
        found.events,
        [Event::Begin(Server, file("", 11)), Event::End(Server, true)]
    );
    assert_eq!(
        found.texts[0],
        b"VER MSNFTP\r\nUSR anna@example.test 93301\r\nTFR\r\nBYE 16777989\r\n"
    );
    assert_eq!(found.texts[1], b"VER MSNFTP\r\nFIL 11\r\n");
}

#[test]
fn the_sender_may_be_the_one_who_connected() {
    let swapped: Vec<_> = transfer(b"hello world", 11, 2045)
        .into_iter()
        .map(|(side, bytes)| (side.other(), bytes))
        .collect();
    let found = Recorder::of(Application::MsnFtp, &swapped);
    assert_eq!(found.data[0], b"hello world");
    assert_eq!(found.events.last(), Some(&Event::End(Client, true)));
}

#[test]
fn the_invitation_knows_the_name() {
    let mut recorder = Recorder::default();
    let offered = File {
        from: "bob@example.test".to_owned(),
        ..file("a.txt", 5)
    };
    recorder.offers.push(("93301".to_owned(), offered.clone()));
    let found = recorder.watch(Application::MsnFtp, &transfer(b"hello", 5, 5), &[]);
    assert_eq!(found.events[0], Event::Begin(Server, offered));
}

#[test]
fn the_end_is_where_the_last_byte_is() {
    let connection = transfer(b"hello", 5, 5);
    let until_last_byte = &connection[..6];
    let found = Recorder::of(Application::MsnFtp, until_last_byte);
    assert_eq!(found.events.last(), Some(&Event::End(Server, true)));
    let empty = Recorder::of(Application::MsnFtp, &transfer(b"", 0, 5));
    assert_eq!(
        empty.events,
        [Event::Begin(Server, file("", 0)), Event::End(Server, true)]
    );
}

#[test]
fn what_ends_early_is_incomplete() {
    let mut cancelled = transfer(b"hello", 10, 5);
    cancelled.truncate(6);
    let cut = Recorder::of(Application::MsnFtp, &cancelled);
    cancelled.push((Client, b"CCL\r\n".to_vec()));
    let by_receiver = Recorder::of(Application::MsnFtp, &cancelled);
    let by_sender = Recorder::of(Application::MsnFtp, &transfer(b"hello", 10, 5));
    for found in [cut, by_receiver, by_sender] {
        assert_eq!(
            found.events,
            [
                Event::Begin(Server, file("", 10)),
                Event::End(Server, false)
            ]
        );
        assert_eq!(found.data[1], b"hello");
    }
}

#[test]
fn bytes_beyond_the_file_are_text() {
    let found = Recorder::of(Application::MsnFtp, &transfer(b"hello world", 5, 11));
    assert_eq!(found.data[1], b"hello");
    assert_eq!(
        found.events[1..],
        [
            Event::End(Server, true),
            Event::Malformed(Server, "more bytes than the file has"),
        ]
    );
    assert!(found.texts[1].ends_with(b" world\x01\0\0"));
}

#[test]
fn what_is_not_msnftp_is_malformed_once_and_text() {
    let connection = [
        (Client, b"VER MSNFTP\r\nHELO\r\nmore".to_vec()),
        (Server, vec![0; 100]),
    ];
    let found = Recorder::of(Application::MsnFtp, &connection);
    assert_eq!(
        found.events,
        [Event::Malformed(Client, "not a command of MSNFTP")]
    );
    assert_eq!(found.texts[0], Recorder::sent(&connection, Client));
    assert_eq!(found.texts[1], Recorder::sent(&connection, Server));
}

proptest! {
    #[test]
    fn how_it_is_cut_changes_nothing(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        block in 1_usize..90,
        pieces in proptest::collection::vec(1_usize..50, 1..20),
    ) {
        let connection = transfer(&bytes, bytes.len(), block);
        let found = Recorder::default().watch(Application::MsnFtp, &connection, &pieces);
        prop_assert_eq!(&found.data[1], &bytes);
        prop_assert_eq!(found, Recorder::of(Application::MsnFtp, &connection));
    }

    #[test]
    fn any_bytes_are_found_at_most_once(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        pieces in proptest::collection::vec(1_usize..50, 1..20),
    ) {
        let connection = [(Server, [b"FIL 200\r\n", &bytes[..]].concat()), (Client, bytes.clone())];
        let found = Recorder::default().watch(Application::MsnFtp, &connection, &pieces);
        prop_assert!(found.data[1].len() + found.texts[1].len() <= bytes.len() + 9);
        let ends = found.events.iter().filter(|event| matches!(event, Event::End(..)));
        let begins = found.events.iter().filter(|event| matches!(event, Event::Begin(..)));
        prop_assert_eq!(ends.count(), begins.count());
        prop_assert_eq!(found, Recorder::of(Application::MsnFtp, &connection));
    }
}
