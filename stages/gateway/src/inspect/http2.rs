//! HTTP/2 in clear (RFC 9113): streams that go on at the same time, each with a request and a response.
//!
//! Header blocks are decoded, and go on as heads in the form of HTTP/1: keywords are looked for in what was meant, and
//! the fields that name a file are read by the same rules. Content passes through as slices of what came in.
//!
//! Nothing is guessed: what cannot be read ends the parsing of the connection, as with HTTP/1.

use std::collections::HashMap;

use linkweir_proto::http1::{BodyLength, Fields, without_port};
use linkweir_proto::http2::direction::{Direction, Headers, Listener};
use linkweir_proto::http2::hpack::{Field, Strings};

use super::http::body::Body;
use super::http::facts::Facts;
use super::http::multipart::Multipart;
use super::http::pending::{Asked, Kind, Waiting};
use super::http::request::{asked_for, known, tell_others};
use super::{Coding, FileInfo, Found, RequestInfo, Side};

/// Streams of a connection that are followed at once.
const MAX_STREAMS: usize = 1024;
/// What a stream that is not there costs, about.
const STREAM_BYTES: usize = 256;

/// State of a connection.
#[derive(Debug)]
pub struct Http2Inspector {
    client: Direction,
    server: Direction,
    strings: Strings,
    streams: Streams,
    /// Something malformed has come: nothing more is parsed.
    is_opaque: bool,
}

/// The streams, and what is read of a header block.
#[derive(Debug, Default)]
struct Streams {
    open: HashMap<u32, Stream>,
    head: Head,
}

/// A request and its response.
#[derive(Debug)]
struct Stream {
    asked: Waiting,
    /// What client and server send behind their heads.
    bodies: [Option<Body>; 2],
    /// Whether the final head of the server was there.
    is_answered: bool,
}

/// A header block: its pseudo-header fields, and the others as lines.
#[derive(Debug, Default)]
struct Head {
    method: Vec<u8>,
    path: Vec<u8>,
    authority: Vec<u8>,
    status: Vec<u8>,
    lines: Vec<u8>,
    fault: Option<&'static str>,
}

impl Head {
    fn clear(&mut self) {
        for part in [
            &mut self.method,
            &mut self.path,
            &mut self.authority,
            &mut self.status,
            &mut self.lines,
        ] {
            part.clear();
        }
        self.fault = None;
    }

    fn take(&mut self, field: Field<'_>) {
        let (Some(name), Some(value)) = (field.name, field.value) else {
            self.fault = Some("a field that was said before the connection was seen");
            return;
        };
        // RFC 9113 sec. 8.2.1: they would end the line for whoever passes it on in HTTP/1.
        let is_bad = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
        if name.iter().chain(value).any(is_bad) {
            self.fault = Some("a line end or NUL in a field");
            return;
        }
        let part = match name {
            b":method" => &mut self.method,
            b":path" => &mut self.path,
            b":authority" => &mut self.authority,
            b":status" => &mut self.status,
            _ => {
                self.lines.extend_from_slice(name);
                self.lines.extend_from_slice(b": ");
                self.lines.extend_from_slice(value);
                self.lines.extend_from_slice(b"\r\n");
                return;
            }
        };
        part.clear();
        part.extend_from_slice(value);
    }

    /// In the form of HTTP/1.
    fn text(&self) -> Vec<u8> {
        let first: [&[u8]; 3] = match self.status.as_slice() {
            [] => [&self.method, &self.path, b"HTTP/2"],
            status => [b"HTTP/2", status, b""],
        };
        let mut text = first.join(&b' ');
        text.extend_from_slice(b"\r\n");
        if !self.authority.is_empty() {
            text.extend_from_slice(b"host: ");
            text.extend_from_slice(&self.authority);
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(&self.lines);
        text.extend_from_slice(b"\r\n");
        text
    }
}

const fn place(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

impl Default for Http2Inspector {
    fn default() -> Self {
        Self {
            client: Direction::of_client(),
            server: Direction::of_server(),
            strings: Strings::default(),
            streams: Streams::default(),
            is_opaque: false,
        }
    }
}

impl Http2Inspector {
    /// The next bytes of a side.
    pub fn feed<F: Found>(&mut self, sender: Side, bytes: &[u8], found: &mut F) {
        if self.is_opaque {
            return found.text(sender, bytes);
        }
        let direction = match sender {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        };
        let mut ear = Ear {
            streams: &mut self.streams,
            sender,
            found,
            fault: None,
        };
        direction.push(bytes, 0, &mut self.strings, &mut ear);
        let counters = direction.counters();
        let fault = ear.fault.or(match counters.bad_blocks {
            0 if counters.lost == 0 => None,
            0 => Some("no frames of HTTP/2"),
            _ => Some("a header block that is too long or cannot be decoded"),
        });
        if let Some(why) = fault {
            self.cut(found);
            found.malformed(sender, why);
        }
    }

    /// A side has sent all it will.
    pub fn finish<F: Found>(&mut self, sender: Side, found: &mut F) {
        for (id, stream) in &mut self.streams.open {
            let body = stream.bodies.get_mut(place(sender));
            if body.and_then(Option::take).is_some() {
                found.stream(sender, *id);
                found.file_end(sender, false);
            }
        }
    }

    /// Nothing more is parsed.
    fn cut<F: Found>(&mut self, found: &mut F) {
        for side in [Side::Client, Side::Server] {
            self.finish(side, found);
        }
        self.is_opaque = true;
        self.streams = Streams::default();
        (self.client, self.server) = (Direction::joined_late(), Direction::joined_late());
    }

    /// Bytes that wait for the rest of what they belong to.
    pub(super) fn gathered(&self) -> usize {
        let streams = self.streams.open.len() * STREAM_BYTES;
        self.client.held() + self.server.held() + streams
    }
}

/// Who listens to one side.
struct Ear<'a, F> {
    streams: &'a mut Streams,
    sender: Side,
    found: &'a mut F,
    fault: Option<&'static str>,
}

impl<F: Found> Ear<'_, F> {
    /// The head of a request: what is asked for, of whom, and what is sent along.
    fn request(&mut self, id: u32, sender: Side, ends_stream: bool) {
        let head = std::mem::take(&mut self.streams.head);
        let text = head.text();
        self.found.text(self.sender, &text);
        let facts = Facts::of(&text);
        let (name, identifier) = asked_for(&head.path);
        let host = without_port(&head.authority);
        let asked = Asked {
            name: &name,
            host,
            identifier,
            user: b"",
        };
        if !host.is_empty() {
            self.found.host(host);
        }
        let user_agent = Fields::of_head(&text).find(|field| field.is(b"user-agent"));
        let info = RequestInfo {
            method: &head.method,
            target: &head.path,
            host,
            user_agent: user_agent.map_or(&[][..], |field| field.value),
            head: &[],
            is_multiplexed: true,
        };
        self.found.request(sender, &info);
        let kind = match head.method.as_slice() {
            b"HEAD" => Kind::Head,
            b"CONNECT" => Kind::Connect,
            _ => Kind::Ordinary,
        };
        let has_name = !name.is_empty() || !identifier.is_empty();
        if has_name && matches!(head.method.as_slice(), b"GET" | b"HEAD") {
            let file = FileInfo {
                name: &name,
                host,
                identifier,
                ..FileInfo::default()
            };
            self.found.file_named(sender.other(), &file);
        }
        if self.streams.open.len() >= MAX_STREAMS {
            self.fault = Some("more streams at once than are followed");
            return;
        }
        let mut stream = Stream {
            asked: Waiting::new(kind, &asked),
            bodies: [None, None],
            is_answered: false,
        };
        if kind == Kind::Connect {
            self.found
                .not_followed("what goes through a tunnel (CONNECT)");
        } else if !ends_stream {
            let form = match facts.coding() {
                Coding::Identity => Multipart::new(&facts.form_boundary(), host),
                _ => None,
            };
            self.begin_file(id, &mut stream, &facts, &asked, (form, false));
        }
        self.streams.open.insert(id, stream);
        self.streams.head = head;
    }

    /// The head of a response, or what stands behind the content of either side.
    fn response(&mut self, id: u32, ends_stream: bool) {
        let head = std::mem::take(&mut self.streams.head);
        let text = head.text();
        self.found.text(self.sender, &text);
        let is_interim = matches!(head.status.as_slice(), [b'1', ..]);
        let Some(mut stream) = self.streams.open.remove(&id) else {
            // RFC 9113 sec. 5.1: of a stream that nobody has opened.
            self.fault = Some("a response that nobody asked for");
            return;
        };
        let has_body = !ends_stream
            && !stream.is_answered
            && !is_interim
            && stream.asked.kind == Kind::Ordinary
            && !matches!(head.status.as_slice(), b"204" | b"304");
        stream.is_answered |= !is_interim;
        if has_body {
            let asked = std::mem::take(&mut stream.asked);
            let facts = Facts::of(&text);
            let is_range = head.status == b"206";
            self.begin_file(id, &mut stream, &facts, &asked.asked(), (None, is_range));
            stream.asked = asked;
        }
        self.streams.open.insert(id, stream);
        self.streams.head = head;
        if ends_stream {
            self.end(id, true);
        }
    }

    fn begin_file(
        &mut self,
        id: u32,
        stream: &mut Stream,
        facts: &Facts<'_>,
        asked: &Asked<'_>,
        (form, is_range): (Option<Box<Multipart>>, bool),
    ) {
        let announced = facts.framing.response(1).ok().and_then(known);
        let mut names = facts.names().into_iter();
        let name = names
            .next()
            .unwrap_or(std::borrow::Cow::Borrowed(asked.name));
        self.found.stream(self.sender, id);
        tell_others(self.sender, names, asked.host, self.found);
        let total = facts.range_total().filter(|_| is_range);
        let file = FileInfo {
            name: &name,
            announced_size: total.or(announced),
            host: asked.host,
            identifier: asked.identifier,
            coding: facts.coding(),
            is_part: is_range && total.is_none(),
            ..FileInfo::default()
        };
        self.found.file_begin(self.sender, &file);
        if let Some(body) = stream.bodies.get_mut(place(self.sender)) {
            *body = Body::new(BodyLength::UntilClose, form);
        }
    }

    /// A side says nothing more on a stream, or has given it up.
    fn end(&mut self, id: u32, is_complete: bool) {
        let Some(stream) = self.streams.open.get_mut(&id) else {
            return;
        };
        let body = stream.bodies.get_mut(place(self.sender));
        if body.and_then(Option::take).is_some() {
            self.found.stream(self.sender, id);
            self.found.file_end(self.sender, is_complete);
        }
        if self.sender == Side::Server {
            if let Some(Some(_)) = stream.bodies.first() {
                // RFC 9113 sec. 8.1: a server may have answered before it has read everything.
                self.found.stream(Side::Client, id);
                self.found.file_end(Side::Client, false);
            }
            self.streams.open.remove(&id);
        }
    }
}

impl<F: Found> Listener for Ear<'_, F> {
    fn field(&mut self, field: Field<'_>) {
        self.streams.head.take(field);
    }

    fn headers(&mut self, headers: &Headers) {
        let is_whole = headers.fields.is_ok_and(|decoded| decoded.withheld == 0);
        if !is_whole {
            self.fault = Some("a header block that is too long or cannot be decoded");
        }
        self.fault = self.fault.or(self.streams.head.fault);
        if self.fault.is_none() {
            match (self.sender, headers.promised) {
                // What a server promises is a request of the client that nobody sent.
                (Side::Server, Some(promised)) => self.request(promised, Side::Client, true),
                (_, None) if self.streams.head.status.is_empty() => {
                    if self.streams.open.contains_key(&headers.stream) {
                        self.trailers(headers);
                    } else if self.sender == Side::Client {
                        self.request(headers.stream, Side::Client, headers.ends_stream);
                    } else {
                        self.fault = Some("a response without a status");
                    }
                }
                (Side::Server, None) => self.response(headers.stream, headers.ends_stream),
                (Side::Client, _) => self.fault = Some("a response of the client"),
            }
        }
        self.streams.head.clear();
    }

    fn data(&mut self, id: u32, bytes: &[u8], _len: u32, ends_stream: bool, _ts_ns: u64) {
        let stream = self.streams.open.get_mut(&id);
        let body = stream.and_then(|stream| stream.bodies.get_mut(place(self.sender)));
        match body.and_then(Option::as_mut) {
            Some(body) => {
                self.found.stream(self.sender, id);
                body.feed(self.sender, bytes, self.found);
            }
            None => self.found.text(self.sender, bytes),
        }
        if ends_stream {
            self.end(id, true);
        }
    }

    fn reset(&mut self, id: u32, _error: u32, _ts_ns: u64) {
        let Some(mut stream) = self.streams.open.remove(&id) else {
            return;
        };
        for side in [Side::Client, Side::Server] {
            let body = stream.bodies.get_mut(place(side)).and_then(Option::take);
            if body.is_some() {
                self.found.stream(side, id);
                self.found.file_end(side, false);
            }
        }
    }

    fn goaway(&mut self, _last: u32, _ts_ns: u64) {}
}

impl<F: Found> Ear<'_, F> {
    /// Fields behind the content.
    fn trailers(&mut self, headers: &Headers) {
        let text = self.streams.head.text();
        self.found.text(self.sender, &text);
        if headers.ends_stream {
            self.end(headers.stream, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use linkweir_proto::application::Application;
    use linkweir_proto::http2::PREFACE;

    use super::super::recorder::{Event, File, Recorder};
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let [_, len @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut bytes = len.to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    /// HEADERS with fields that are not indexed; whether they end the stream.
    fn headers(stream: u32, ends: bool, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).unwrap());
                block.extend(text.bytes());
            }
        }
        frame(1, 4 | u8::from(ends), stream, &block)
    }

    fn get(stream: u32, path: &str) -> Vec<u8> {
        let fields = [
            (":method", "GET"),
            (":path", path),
            (":authority", "a.example:8080"),
            ("cookie", "secret=1"),
        ];
        headers(stream, true, &fields)
    }

    fn file(name: &str, size: Option<u64>) -> File {
        File {
            name: name.to_owned(),
            size,
            ..File::default()
        }
    }

    /// Two downloads at the same time; the second ends first.
    fn downloads() -> Vec<(Side, Vec<u8>)> {
        let asked = [
            PREFACE.to_vec(),
            frame(4, 0, 0, &[]),
            get(1, "/a/one.zip"),
            get(3, "/two.bin"),
        ];
        let ok = |stream, length| {
            let fields = [(":status", "200"), ("content-length", length)];
            headers(stream, false, &fields)
        };
        let answered = [
            frame(4, 0, 0, &[]),
            ok(1, "6"),
            ok(3, "2"),
            frame(0, 0, 1, b"abc"),
            frame(0, 1, 3, b"XY"),
            frame(0, 8, 1, &[2, b'd', b'e', 0, 0]),
            frame(0, 1, 1, b"f"),
        ];
        vec![
            (Side::Client, asked.concat()),
            (Side::Server, answered.concat()),
        ]
    }

    #[test]
    fn files_of_streams_that_go_on_at_the_same_time() {
        let expected = [
            Event::Named(Side::Server, file("one.zip", None)),
            Event::Named(Side::Server, file("two.bin", None)),
            Event::Stream(Side::Server, 1),
            Event::Begin(Side::Server, file("one.zip", Some(6))),
            Event::Stream(Side::Server, 3),
            Event::Begin(Side::Server, file("two.bin", Some(2))),
            Event::Stream(Side::Server, 1),
            Event::Stream(Side::Server, 3),
            Event::End(Side::Server, true),
            Event::Stream(Side::Server, 1),
            Event::End(Side::Server, true),
        ];
        for pieces in [&[][..], &[1], &[7, 3]] {
            let seen = Recorder::default().watch(Application::Http2, &downloads(), pieces);
            assert_eq!(seen.events, expected, "{pieces:?}");
            let [asked, answered] = &seen.texts;
            let asked = String::from_utf8_lossy(asked);
            assert!(
                asked.contains(
                    "GET /a/one.zip HTTP/2\r\nhost: a.example:8080\r\ncookie: secret=1\r\n"
                )
            );
            assert!(
                String::from_utf8_lossy(answered).contains("HTTP/2 200 \r\ncontent-length: 6\r\n")
            );
            assert_eq!(seen.data[1], b"abcXYdef");
        }
    }

    #[test]
    fn what_is_reset_or_cut_is_not_whole() {
        let mut connection = downloads();
        let mut answers = connection.pop().unwrap().1;
        answers.truncate(answers.len() - 10);
        answers.extend(frame(3, 0, 1, &[0, 0, 0, 8]));
        connection.push((Side::Server, answers));
        let seen = Recorder::of(Application::Http2, &connection);
        assert_eq!(seen.events.last(), Some(&Event::End(Side::Server, false)));
    }

    #[test]
    fn an_upload_is_a_file_of_the_client() {
        let fields = [
            (":method", "POST"),
            (":path", "/up/report.pdf"),
            (":authority", "a.example"),
        ];
        let asked = [
            PREFACE.to_vec(),
            frame(4, 0, 0, &[]),
            headers(1, false, &fields),
            frame(0, 1, 1, b"%PDF"),
        ];
        let answered = [frame(4, 0, 0, &[]), headers(1, true, &[(":status", "201")])];
        let connection = [
            (Side::Client, asked.concat()),
            (Side::Server, answered.concat()),
        ];
        let seen = Recorder::of(Application::Grpc, &connection);
        let expected = [
            Event::Stream(Side::Client, 1),
            Event::Begin(Side::Client, file("report.pdf", None)),
            Event::End(Side::Client, true),
        ];
        assert_eq!(seen.events, expected);
        assert_eq!(seen.data[0], b"%PDF");
    }

    #[test]
    fn what_cannot_be_read_is_malformed_once() {
        let begin = [PREFACE.to_vec(), frame(4, 0, 0, &[])].concat();
        for (rest, why) in [
            (
                frame(1, 4, 1, &[0x80]),
                "a header block that is too long or cannot be decoded",
            ),
            (
                frame(1, 4, 1, &[0xBE]),
                "a field that was said before the connection was seen",
            ),
            (frame(9, 4, 1, &[1]), "no frames of HTTP/2"),
            (get(1, "/a\r\nb"), "a line end or NUL in a field"),
        ] {
            let connection = [(
                Side::Client,
                [begin.clone(), rest, get(3, "/x.zip")].concat(),
            )];
            let seen = Recorder::of(Application::Http2, &connection);
            assert_eq!(seen.events, [Event::Malformed(Side::Client, why)]);
        }
    }
}
