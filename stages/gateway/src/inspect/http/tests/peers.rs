//! FastTrack and Gnutella.

use super::{Event, File, faults, files, inspect, text};
use crate::inspect::Side::{Client, Server};

const HASH: &str = "bd7e6b3f2a1c4d5e6f708192a3b4c5d6e7f80912";

#[test]
fn kazaa_sends_a_song() {
    let request = format!(
        "GET /.hash={HASH} HTTP/1.1\r\nHost: 10.1.2.3:1214\r\nUserAgent: KazaaClient Nov  3 2002 20:29:03\r\n\
         X-Kazaa-Username: alice\r\nX-Kazaa-Network: KaZaA\r\nX-Kazaa-IP: 10.9.8.7:1214\r\nRange: bytes=0-4\r\nConnection: close\r\n\r\n"
    );
    let response = b"HTTP/1.1 206 Partial Content\nContent-Range: bytes 0-4/4000000\nContent-Length: 5\n\
        Accept-Ranges: bytes\nServer: KazaaClient Nov  3 2002 20:29:03\nConnection: close\nX-Kazaa-Username: bob\n\
        X-Kazaa-Network: KaZaA\nX-Kazaa-IP: 10.1.2.3:1214\nX-KazaaTag: 5=215\nX-KazaaTag: 4=A Song\nX-KazaaTag: 6=An Artist\n\
        X-KazaaTag: 3==vX5rPyocTV5vcIGSo7TF1uf4CRI=\nContent-Type: audio/mpeg\n\nID3..";
    let found = inspect(&[(Client, request.as_bytes()), (Server, response)]);
    assert_eq!(faults(&found), []);
    let asked = File {
        identifier: HASH.to_owned(),
        to: "alice".to_owned(),
        ..File::new("", "10.1.2.3")
    };
    assert!(found.client.contains(&Event::Named(Server, asked.clone())));
    let song = File {
        name: "A Song".to_owned(),
        announced_size: Some(4_000_000),
        from: "bob".to_owned(),
        ..asked
    };
    assert_eq!(files(&found.server), [(song, b"ID3..".to_vec(), true)]);
    // Where it is asked for by its place, the hash is that of the response's tag.
    let request = b"GET /12/a_song.mp3 HTTP/1.1\r\nHost: 10.1.2.3:1214\r\n\r\n";
    let found = inspect(&[(Client, request), (Server, response)]);
    assert_eq!(
        files(&found.server)[0].0.identifier,
        "vX5rPyocTV5vcIGSo7TF1uf4CRI="
    );
}

#[test]
fn a_push_of_fasttrack_turns_the_roles() {
    let request = format!("GET /.hash={HASH}/a%20b.avi HTTP/1.0\nX-Kazaa-Username: bob\n\n");
    let found = inspect(&[
        (Client, b"GIVE 1234567890\r\n\r\n"),
        (Server, request.as_bytes()),
        (
            Client,
            b"HTTP/1.0 200 OK\nX-Kazaa-Username: alice\nContent-Length: 3\n\nabc",
        ),
    ]);
    assert_eq!(faults(&found), []);
    let file = File {
        identifier: HASH.to_owned(),
        to: "bob".to_owned(),
        ..File::new("a b.avi", "")
    };
    assert_eq!(
        found.server.last(),
        Some(&Event::Named(Client, file.clone()))
    );
    let file = File {
        from: "alice".to_owned(),
        announced_size: Some(3),
        ..file
    };
    assert_eq!(files(&found.client), [(file, b"abc".to_vec(), true)]);
    assert!(text(&found.client).starts_with(b"GIVE 1234567890\r\n\r\nHTTP/1.0"));
}

#[test]
fn gtk_gnutella_by_name_and_by_hash() {
    let found = inspect(&[
        (
            Client,
            b"GET /get/33/some%20film.avi HTTP/1.1\r\nHost: 10.0.0.1:6346\r\nUser-Agent: gtk-gnutella/0.96.6\r\nX-Queue: 0.1\r\n\r\n\
              GET /uri-res/N2R?urn:sha1:PLSTHIPQGSSZTS5FJUPAKUZWUGYQYPFB HTTP/1.1\r\nHost: 10.0.0.1:6346\r\n\r\n",
        ),
        (
            Server,
            b"HTTP/1.1 503 Queued\r\nServer: gtk-gnutella/0.96.6\r\nX-Queue: position=2\r\nContent-Length: 0\r\n\r\n\
              HTTP/1.1 200 OK\r\nServer: gtk-gnutella/0.96.6\r\nContent-Type: application/binary\r\n\
              X-Gnutella-Content-URN: urn:sha1:PLSTHIPQGSSZTS5FJUPAKUZWUGYQYPFB\r\n\
              Content-Disposition: inline; filename=\"some film.avi\"\r\nContent-Length: 2\r\n\r\nAV",
        ),
    ]);
    assert_eq!(faults(&found), []);
    let urn = "urn:sha1:PLSTHIPQGSSZTS5FJUPAKUZWUGYQYPFB";
    let by_hash = File {
        identifier: urn.to_owned(),
        ..File::new("", "10.0.0.1")
    };
    let named = [
        Event::Named(Server, File::new("some film.avi", "10.0.0.1")),
        Event::Named(Server, by_hash),
    ];
    assert!(named.iter().all(|event| found.client.contains(event)));
    let file = File {
        identifier: urn.to_owned(),
        announced_size: Some(2),
        ..File::new("some film.avi", "10.0.0.1")
    };
    assert_eq!(files(&found.server), [(file, b"AV".to_vec(), true)]);
}

#[test]
fn a_push_of_gnutella_names_the_file() {
    let found = inspect(&[
        (
            Client,
            b"GIV 33:0123456789abcdef0123456789ABCDEF/a film.avi\n\n",
        ),
        (Server, b"GET /get/33/a%20film.avi HTTP/1.1\r\n\r\n"),
        (Client, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nA"),
    ]);
    assert_eq!(faults(&found), []);
    let file = File::new("a film.avi", "");
    assert_eq!(found.client[1], Event::Named(Client, file.clone()));
    assert_eq!(found.server[1], Event::Named(Client, file));
    assert_eq!(files(&found.client).len(), 1);
    let found = inspect(&[(Client, b"GIV 0:0123456789abcdef0123456789ABCDEF/\n\n")]);
    assert_eq!(found.client.len(), 1);
}

fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0x11; 16];
    message.extend_from_slice(&[kind, 3, 1]);
    message.extend_from_slice(&u32::try_from(payload.len()).expect("short").to_le_bytes());
    message.extend_from_slice(payload);
    message
}

fn hit(files: &[(&str, u32, &str)]) -> Vec<u8> {
    let mut payload = vec![u8::try_from(files.len()).expect("few")];
    payload.extend_from_slice(&[0xCA, 0x18, 10, 0, 0, 1, 0, 0, 0, 0]);
    for (name, size, extension) in files {
        payload.extend_from_slice(&[7, 0, 0, 0]);
        payload.extend_from_slice(&size.to_le_bytes());
        payload.extend_from_slice(format!("{name}\0{extension}\0").as_bytes());
    }
    payload.extend_from_slice(&[0x22; 16]);
    message(0x81, &payload)
}

#[test]
fn messages_between_servents() {
    let connect =
        b"GNUTELLA CONNECT/0.6\r\nUser-Agent: gtk-gnutella/0.96.6\r\nX-Ultrapeer: False\r\n\r\n";
    let accept = b"GNUTELLA/0.6 200 OK\r\nUser-Agent: LimeWire/4.9\r\n\r\n";
    let messages = [
        message(0, b""),
        message(0x80, b"\0\0blue song\0urn:\0"),
        message(0x30, &[9; 300]),
        message(0x80, b"\0\0    \0"),
    ]
    .concat();
    let client = [&accept[..], &messages].concat();
    let hits = [
        hit(&[
            ("blue song.mp3", 4_000_000, "urn:sha1:ABC"),
            ("b.ogg", 5, "x\x1Curn:sha1:DEF"),
        ]),
        message(1, &[0; 14]),
        hit(&[("cut", 1, "")])[..40].to_vec(),
    ]
    .concat();
    let server = [&accept[..], &hits].concat();
    let found = inspect(&[(Client, connect), (Server, &server), (Client, &client)]);
    assert_eq!(faults(&found), []);
    let named = |events: &[Event]| -> Vec<Event> {
        let named = events
            .iter()
            .filter(|event| matches!(event, Event::Named(..)));
        named.cloned().collect()
    };
    assert_eq!(
        named(&found.client),
        [Event::Named(Server, File::new("blue song", ""))]
    );
    let file = |name: &str, size: u64, urn: &str| {
        let file = File {
            announced_size: Some(size),
            identifier: urn.to_owned(),
            ..File::new(name, "")
        };
        Event::Named(Server, file)
    };
    assert_eq!(
        named(&found.server),
        [
            file("blue song.mp3", 4_000_000, "urn:sha1:ABC"),
            file("b.ogg", 5, "urn:sha1:DEF")
        ]
    );
    assert_eq!(text(&found.client), [&connect[..], &client].concat());
    assert_eq!(text(&found.server), server);
}

#[test]
fn messages_that_are_closed_or_endless() {
    let compressed = b"GNUTELLA/0.6 200 OK\r\nContent-Encoding: deflate\r\n\r\n\x78\x9C\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
    let found = inspect(&[(Server, compressed)]);
    assert_eq!(faults(&found), []);
    assert_eq!(text(&found.server), compressed);
    let mut endless = message(0x81, b"");
    endless[19..23].copy_from_slice(&70_000_u32.to_le_bytes());
    let stream = [&b"GNUTELLA CONNECT/0.4\n\n"[..], &endless, b"rest"].concat();
    let found = inspect(&[(Client, &stream)]);
    assert_eq!(faults(&found), [(Client, "Gnutella message beyond 64 KiB")]);
    assert_eq!(text(&found.client), stream);
    let refused = b"GNUTELLA/0.6 503 Full\r\nX-Try: 10.0.0.2:6346\r\n\r\n";
    assert_eq!(
        inspect(&[(Server, refused)]).server,
        [Event::Text(refused.to_vec())]
    );
}
