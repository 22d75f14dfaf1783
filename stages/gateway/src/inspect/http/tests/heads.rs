//! Heads as servers and clients send them.

use std::ops::Range;

use linkweir_proto::http1::MAX_HEAD;

use super::{Bench, Event, File, HttpInspector, faults, files, inspect, text};
use crate::inspect::Side::{Client, Server};
use crate::inspect::{ChatMessage, Coding, FileInfo, Found, Invitation, Side};

const CURL: &[u8] = b"GET /dl/setup%20one.exe?x=1 HTTP/1.1\r\nHost: files.example:8080\r\n\
    User-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n";

#[test]
fn nginx_sends_a_file() {
    let head = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sun, 22 Nov 2026 06:00:00 GMT\r\n\
        Content-Type: application/octet-stream\r\nContent-Length: 5\r\nLast-Modified: Sun, 22 Nov 2026 05:00:00 GMT\r\n\
        Connection: keep-alive\r\nETag: \"6560-5\"\r\nAccept-Ranges: bytes\r\n\r\n";
    let response = [&head[..], b"12345"].concat();
    let found = inspect(&[(Client, CURL), (Server, &response), (Client, CURL)]);
    let file = File::new("setup one.exe", "files.example");
    let request = [
        Event::Text(CURL.to_vec()),
        Event::Host("files.example".to_owned()),
        Event::Named(Server, file.clone()),
    ];
    assert_eq!(found.client, [&request[..], &request[..]].concat());
    let file = File {
        announced_size: Some(5),
        ..file
    };
    assert_eq!(
        found.server,
        [
            Event::Text(head.to_vec()),
            Event::Begin(file),
            Event::Data(b"12345".to_vec()),
            Event::End(true),
        ]
    );
}

#[test]
fn apache_sends_chunks_of_gzip_and_then_not_modified() {
    let first = b"HTTP/1.1 200 OK\r\nDate: Sun, 22 Nov 2026 06:00:00 GMT\r\nServer: Apache/2.4.57 (Debian)\r\n\
        Vary: Accept-Encoding\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\
        Content-Type: text/html; charset=UTF-8\r\n\r\n3\r\nabc\r\n2;q=1\r\nde\r\n0\r\nX-Sum: 9\r\n\r\n";
    let second = b"HTTP/1.1 304 Not Modified\r\nDate: Sun, 22 Nov 2026 06:00:01 GMT\r\n\
        Content-Length: 77\r\nETag: \"a\"\r\n\r\n";
    let third = b"HTTP/1.1 404 Not Found\r\nServer: Apache/2.4.57 (Debian)\r\nContent-Length: 4\r\n\r\n404!";
    let found = inspect(&[
        (
            Client,
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /style.css HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        (Client, b"GET /none.gif HTTP/1.1\r\nHost: a\r\n\r\n"),
        (Server, first),
        (Server, second),
        (Server, third),
    ]);
    let page = File {
        coding: Coding::Gzip,
        ..File::new("", "a")
    };
    let missing = File {
        announced_size: Some(4),
        ..File::new("none.gif", "a")
    };
    assert_eq!(
        files(&found.server),
        [
            (page, b"abcde".to_vec(), true),
            (missing, b"404!".to_vec(), true)
        ]
    );
    let text = text(&found.server);
    assert!(text.windows(8).any(|bytes| bytes == b";q=1\r\nX-"));
    assert!(text.windows(9).any(|bytes| bytes == b"X-Sum: 9\r"));
    let named = found
        .client
        .iter()
        .filter(|event| matches!(event, Event::Named(..)));
    assert_eq!(named.count(), 2);
}

#[test]
fn a_disposition_names_the_file_and_a_range_its_length() {
    let response =
        b"HTTP/1.1 206 Partial Content\nContent-Range: bytes 2-3/10\nContent-Length: 2\n\
        Content-Disposition: attachment; filename*=UTF-8''%e2%82%ac.pdf; filename=\"x.pdf\"\n\ncd";
    let found = inspect(&[(Client, CURL), (Server, response)]);
    let file = File {
        announced_size: Some(10),
        ..File::new("€.pdf", "files.example")
    };
    assert_eq!(files(&found.server), [(file, b"cd".to_vec(), true)]);
}

#[test]
fn a_body_until_the_end_and_one_that_is_cut() {
    let old = b"HTTP/1.0 200 OK\r\nServer: SimpleHTTP/0.6\r\n\r\nall of it\r\n\r\nHTTP/1.0 200 OK\r\n\r\n";
    let found = inspect(&[(Client, CURL), (Server, old)]);
    let (file, bytes, is_complete) = files(&found.server).remove(0);
    assert!(file.is_until_close && is_complete);
    assert_eq!(bytes, &old[43..]);
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345";
    let found = inspect(&[(Client, CURL), (Server, cut)]);
    assert!(!files(&found.server)[0].2);
    let cut = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n";
    let found = inspect(&[(Client, CURL), (Server, cut)]);
    assert!(!files(&found.server)[0].2);
}

#[test]
fn no_body_where_there_is_none() {
    let found = inspect(&[
        (Client, b"HEAD /a.iso HTTP/1.1\r\nHost: a\r\n\r\n"),
        (Server, b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"),
        (
            Client,
            b"PUT /b.bin HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
        ),
        (
            Server,
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nContent-Length: 3\r\n\r\n",
        ),
        (Client, b"xyz"),
        (
            Server,
            b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
        ),
        (Client, b"\r\nGET /c.txt HTTP/1.1\r\nHost: a\r\n\r\n"),
        (Server, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (Client, b"GET /d.txt HTTP/1.1\r\nHost: a\r\n\r\n"),
        (Server, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nd"),
    ]);
    assert_eq!(faults(&found), []);
    let put = File {
        announced_size: Some(3),
        ..File::new("b.bin", "a")
    };
    assert_eq!(files(&found.client), [(put, b"xyz".to_vec(), true)]);
    let got = File {
        announced_size: Some(1),
        ..File::new("d.txt", "a")
    };
    assert_eq!(files(&found.server), [(got, b"d".to_vec(), true)]);
}

#[test]
fn a_form_names_the_files_in_it() {
    let body = b"--BB\r\nContent-Disposition: form-data; name=\"f\"; filename=\"evil.exe\"\r\n\
        Content-Type: application/x-msdownload\r\n\r\nMZ...\r\n--BB--\r\n";
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=BB\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let found = inspect(&[(Client, head.as_bytes()), (Client, body)]);
    let file = File {
        announced_size: Some(body.len() as u64),
        ..File::new("upload", "a")
    };
    assert_eq!(files(&found.client), [(file, body.to_vec(), true)]);
    let named = Event::Named(Client, File::new("evil.exe", "a"));
    let at = found.client.iter().position(|event| *event == named);
    let before = at.and_then(|at| found.client.get(at - 1));
    let header_end = body.len() - b"MZ...\r\n--BB--\r\n".len();
    assert_eq!(before, Some(&Event::Data(body[..header_end].to_vec())));
}

#[test]
fn tunnels_and_other_protocols_are_text() {
    let connect = b"CONNECT h.example:443 HTTP/1.1\r\nHost: h.example:443\r\n\r\n";
    let found = inspect(&[
        (Client, connect),
        (Client, b"\x16\x03\x01early"),
        (
            Server,
            b"HTTP/1.1 200 Connection established\r\n\r\n\x16\x03\x03",
        ),
        (Client, b"\0more"),
    ]);
    assert_eq!(faults(&found), []);
    assert_eq!(found.client[1], Event::Host("h.example".to_owned()));
    assert_eq!(
        text(&found.client),
        [&connect[..], b"\x16\x03\x01early\0more"].concat()
    );
    let found = inspect(&[
        (Client, connect),
        (Server, b"HTTP/1.1 407 Auth\r\nContent-Length: 2\r\n\r\nno"),
        (
            Client,
            b"GET http://b.example/x.zip HTTP/1.1\r\nHost: other\r\n\r\n",
        ),
        (Server, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
    ]);
    let sent: Vec<_> = files(&found.server)
        .into_iter()
        .map(|file| file.0.name)
        .collect();
    assert_eq!(sent, ["", "x.zip"]);
    assert!(
        found
            .client
            .contains(&Event::Named(Server, File::new("x.zip", "b.example")))
    );
    let found = inspect(&[
        (
            Client,
            b"GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        ),
        (
            Server,
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x05hello",
        ),
        (Client, b"\x81\x85\0\0\0\0hello"),
    ]);
    assert_eq!(faults(&found), []);
    assert!(text(&found.server).ends_with(b"\x81\x05hello"));
    assert!(files(&found.server).is_empty());
}

#[test]
fn a_head_of_any_length_up_to_the_bound() {
    let head = |length: usize| {
        let mut head = b"GET /a.txt HTTP/1.1\r\nHost: a\r\nX: ".to_vec();
        head.resize(length - 4, b'x');
        head.extend_from_slice(b"\r\n\r\n");
        head
    };
    let found = inspect(&[(Client, &head(MAX_HEAD))]);
    assert!(
        found
            .client
            .contains(&Event::Named(Server, File::new("a.txt", "a")))
    );
    let long = head(MAX_HEAD + 1);
    let found = inspect(&[(Client, &long), (Server, b"HTTP/1.1 200 OK\r\n\r\n")]);
    assert_eq!(faults(&found), [(Client, "head beyond 64 KiB")]);
    assert_eq!(text(&found.client), long);
    assert_eq!(text(&found.server), b"HTTP/1.1 200 OK\r\n\r\n");
}

#[test]
fn what_is_no_head_is_not_gathered() {
    for garbage in [
        &b"\x16\x03\x01\x02\0"[..],
        b"<html>\nxx",
        b"GET /\r\n",
        b"AWORDOFMORETHAN23BYTESISNOMETHOD",
    ] {
        let mut bench = Bench::default();
        for _ in 0..100 {
            bench.feed(Client, garbage);
        }
        assert_eq!(
            faults(&bench.findings),
            [(Client, "no start line of HTTP/1")]
        );
        assert_eq!(text(&bench.findings.client), garbage.repeat(100));
        assert_eq!(bench.peak, 0, "{}", garbage.escape_ascii());
    }
}

/// Bytes of files that are not those of the input.
#[derive(Debug, Default)]
struct Copies {
    input: Range<usize>,
    passed: usize,
    copied: usize,
}

fn place(bytes: &[u8]) -> Range<usize> {
    let range = bytes.as_ptr_range();
    range.start.addr()..range.end.addr()
}

impl Found for Copies {
    fn text(&mut self, _: Side, _: &[u8]) {}
    fn host(&mut self, _: &[u8]) {}
    fn message(&mut self, _: Side, _: &ChatMessage<'_>) {}
    fn file_named(&mut self, _: Side, _: &FileInfo<'_>) {}
    fn file_begin(&mut self, _: Side, _: &FileInfo<'_>) {}
    fn file_data(&mut self, _: Side, bytes: &[u8]) {
        let here = place(bytes);
        self.passed += bytes.len();
        if here.start < self.input.start || here.end > self.input.end {
            self.copied += bytes.len();
        }
    }
    fn file_end(&mut self, _: Side, _: bool) {}
    fn invitation(&mut self, _: Side, _: &Invitation<'_>) {}
    fn invited(&mut self, _: &[u8], _: &mut dyn FnMut(&FileInfo<'_>)) {}
    fn malformed(&mut self, _: Side, _: &'static str) {}
}

#[test]
fn bodies_are_not_copied() {
    let page = [b'x'; 5000];
    let known = [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"[..],
        &page,
    ]
    .concat();
    let chunked = [
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n"[..],
        &page,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let endless = [&b"HTTP/1.0 200 OK\r\n\r\n"[..], &page].concat();
    let (mut inspector, mut copies) = (HttpInspector::default(), Copies::default());
    for response in [&known, &chunked, &endless] {
        inspector.feed(Client, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &mut copies);
        for piece in response.chunks(1448) {
            copies.input = place(piece);
            inspector.feed(Server, piece, &mut copies);
        }
    }
    assert_eq!((copies.passed, copies.copied), (3 * page.len(), 0));
}

#[test]
fn state_is_small() {
    assert!(
        size_of::<HttpInspector>() <= 512,
        "{}",
        size_of::<HttpInspector>()
    );
    let mut bench = Bench::default();
    for _ in 0..3 {
        bench.feed(Client, CURL);
        bench.feed(Server, b"HTTP/1.1 200 OK\r\nContent-Le");
        bench.feed(Server, b"ngth: 100000\r\n\r\n");
        bench.feed(Server, &[b'x'; 100_000]);
    }
    // An idle connection keeps its queue and no head.
    assert!(
        bench.inspector.held_bytes() < 512,
        "{}",
        bench.inspector.held_bytes()
    );
}
