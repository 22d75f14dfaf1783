//! HTTP/2 in clear: streams as transactions, from whole connections and from parts of them.

use std::collections::BTreeMap;
use std::time::Duration;

use linkweir_proto::http2::PREFACE;
use linkweir_record::{HttpBatch, HttpState, RecordBatch as _};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::Conversation;
use linkweir_testkit::memory::drive;
use linkweir_wire::LinkType;

use super::support::{answer, get, look, look_with};
use crate::{HttpConfig, HttpStage};

pub(super) const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const GOAWAY: u8 = 7;
pub(super) const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Fields of the static table that any encoder names by their index (RFC 7541 appendix A).
const FIXED: [(&str, &str, u8); 4] = [
    (":method", "GET", 2),
    (":status", "200", 8),
    (":status", "404", 13),
    (":status", "500", 14),
];

/// A side's encoder, which names everything that it has said before by its index.
#[derive(Debug, Default)]
pub(super) struct Encoder(Vec<(String, String)>);

impl Encoder {
    fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            let fixed = FIXED.iter().find(|(n, v, _)| n == name && v == value);
            if let Some((_, _, index)) = fixed {
                block.push(0x80 | index);
                continue;
            }
            let known = self
                .0
                .iter()
                .rev()
                .position(|(n, v)| n == name && v == value);
            if let Some(at) = known {
                let index = u8::try_from(62 + at).unwrap();
                assert!(index < 127, "one byte");
                block.push(0x80 | index);
                continue;
            }
            block.push(0x40);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).unwrap());
                block.extend_from_slice(text.as_bytes());
            }
            self.0.push(((*name).to_owned(), (*value).to_owned()));
        }
        block
    }

    pub(super) fn headers(&mut self, stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
        frame(HEADERS, flags | END_HEADERS, stream, &self.block(fields))
    }

    pub(super) fn get(&mut self, stream: u32, path: &str) -> Vec<u8> {
        let fields = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "h.test"),
            (":path", path),
            ("user-agent", "tests/2"),
        ];
        self.headers(stream, END_STREAM, &fields)
    }
}

pub(super) fn opening() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// State, method, target, code and time to the last byte (ms) of all records.
fn told(batch: &HttpBatch) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let lines = batch.views().map(|view| {
        let code = view.row.status_code.map(|code| code.to_string());
        let ttlb = view.row.ttlb_ns.map(|ns| format!("{}ms", ns / 1_000_000));
        let parts = [
            view.row.state.as_str().to_owned(),
            text(view.text.method),
            text(view.text.uri),
            code.unwrap_or_default(),
            ttlb.unwrap_or_default(),
        ];
        parts.join(" ")
    });
    lines.collect()
}

fn batch_of(frames: &[CapturedFrame]) -> HttpBatch {
    let mut stage = HttpStage::new(&HttpConfig::default());
    drive(&mut stage, frames, LinkType::ETHERNET, &[])
}

#[test]
fn a_stream_is_a_transaction() {
    let (mut client, mut server) = (Encoder::default(), Encoder::default());
    let mut talk = Conversation::v4(40_000);
    talk.handshake()
        .client_sends(opening())
        .client_sends([client.get(1, "/one"), client.get(3, "/two")].concat())
        .server_sends(frame(SETTINGS, 0, 0, &[]))
        .wait(Duration::from_millis(100))
        // The second is answered first.
        .server_sends(server.headers(3, 0, &[(":status", "404"), ("content-type", "text/plain")]))
        .server_sends(server.headers(1, 0, &[(":status", "200")]))
        .server_sends(frame(DATA, 0, 3, b"no"))
        .server_sends(frame(DATA, END_STREAM, 1, b"yes"))
        .server_sends(frame(DATA, END_STREAM, 3, b""));
    let frames = talk.frames();
    let batch = batch_of(&frames);
    assert_eq!(
        told(&batch),
        ["complete GET /one 200 105ms", "complete GET /two 404 106ms"]
    );
    let two = batch.get(1).unwrap();
    assert_eq!(two.row.response_time_ns(), Some(102_000_000));
    assert_eq!(
        (two.text.host, two.text.user_agent),
        (&b"h.test"[..], &b"tests/2"[..])
    );
    assert_eq!(two.text.content_type, b"text/plain");
    let web = two.web().unwrap();
    assert_eq!((web.stream_id, web.is_partial), (Some(3), false));
    assert_eq!(two.row.version, (2, 0));
    let outcome = look(&talk);
    assert_eq!(outcome.stats.of_http_2, 2);
    assert_eq!(
        (outcome.stats.followed, outcome.stats.unknown_names),
        (1, 0)
    );
}

#[test]
fn interim_responses_trailers_pushes_and_ends() {
    let (mut client, mut server) = (Encoder::default(), Encoder::default());
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(opening())
        .client_sends(client.get(1, "/page"))
        .server_sends(server.headers(1, 0, &[(":status", "103")]));
    let promise = [
        &2_u32.to_be_bytes()[..],
        &server.block(&[(":method", "GET"), (":path", "/style.css")]),
    ]
    .concat();
    talk.server_sends(frame(PUSH_PROMISE, END_HEADERS, 1, &promise))
        .server_sends(server.headers(1, 0, &[(":status", "200")]))
        .server_sends(server.headers(2, END_STREAM, &[(":status", "304")]))
        .server_sends(server.headers(1, END_STREAM, &[("digest", "x")]))
        // One is given up by the client, one the server has not looked at.
        .client_sends(client.get(3, "/slow"))
        .client_sends(client.get(5, "/late"))
        .client_sends(frame(RST_STREAM, 0, 3, &8_u32.to_be_bytes()))
        .server_sends(frame(GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]));
    assert_eq!(
        told(&batch_of(&talk.frames())),
        [
            "complete GET /style.css 304 2ms",
            "complete GET /page 200 5ms",
            "unanswered GET /slow  ",
            "unanswered GET /late  ",
        ]
    );
    let stats = look(&talk).stats;
    assert_eq!((stats.interim_responses, stats.responses), (1, 3));
}

#[test]
fn a_call_of_grpc() {
    let (mut client, mut server) = (Encoder::default(), Encoder::default());
    let mut talk = Conversation::v4(40_000);
    let call = [
        (":method", "POST"),
        (":path", "/shop.Cart/Add"),
        ("content-type", "application/grpc+proto"),
        ("grpc-timeout", "500m"),
    ];
    let message = [0, 0, 0, 0, 3, 1, 2, 3];
    talk.client_sends(opening())
        .client_sends(client.headers(1, 0, &call))
        .client_sends(frame(DATA, 0, 1, &message[..4]))
        .client_sends(frame(DATA, END_STREAM, 1, &message[4..]))
        .server_sends(server.headers(
            1,
            0,
            &[(":status", "200"), ("content-type", "application/grpc")],
        ))
        .server_sends(frame(DATA, 0, 1, &message))
        .server_sends(frame(DATA, 0, 1, &[message, message].concat()))
        .server_sends(server.headers(1, END_STREAM, &[("grpc-status", "0")]))
        // Trailers alone.
        .client_sends(client.headers(3, END_STREAM, &call))
        .server_sends(server.headers(
            3,
            END_STREAM,
            &[
                (":status", "200"),
                ("content-type", "application/grpc"),
                ("grpc-status", "5"),
            ],
        ))
        .client_sends(client.headers(5, END_STREAM, &call))
        .server_sends(frame(RST_STREAM, 0, 5, &7_u32.to_be_bytes()))
        // Why a client gives up is not on the wire.
        .client_sends(client.headers(7, END_STREAM, &call))
        .client_sends(frame(RST_STREAM, 0, 7, &8_u32.to_be_bytes()));
    let batch = batch_of(&talk.frames());
    let calls: Vec<_> = batch
        .views()
        .map(|view| view.web().unwrap().grpc.unwrap())
        .collect();
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[0].status, Some(0));
    assert_eq!(calls[0].messages, [Some((1, 3)), Some((3, 9))]);
    assert_eq!(calls[0].timeout_ns, Some(500_000_000));
    assert_eq!(calls[0].answered_ns, Some([4_000_000, 5_000_000]));
    assert_eq!((calls[1].status, calls[1].answered_ns), (Some(5), None));
    assert_eq!(calls[2].status, Some(14), "refused");
    assert_eq!(calls[3].status, None);
    assert_eq!(batch.get(2).unwrap().row.state, HttpState::Unanswered);
}

/// A connection of many streams, whose names are mostly said by index.
fn long_talk() -> Conversation {
    let (mut client, mut server) = (Encoder::default(), Encoder::default());
    let mut talk = Conversation::v4(40_000).spaced(100_000);
    talk.handshake()
        .client_sends(opening())
        .server_sends(frame(SETTINGS, 0, 0, &[]));
    let codes = ["200", "404", "302", "500", "201"];
    for round in 0..12_u32 {
        let first = 1 + 6 * round;
        let streams = [first, first + 2, first + 4];
        for stream in streams {
            let path = format!("/path/{}", stream % 7);
            talk.client_sends(client.get(stream, &path));
        }
        for stream in streams.iter().rev() {
            let code = codes[(*stream as usize) % codes.len()];
            talk.server_sends(server.headers(*stream, 0, &[(":status", code)]));
        }
        for stream in streams {
            let content = vec![b'x'; 700 + stream as usize];
            talk.server_sends(frame(DATA, END_STREAM, stream, &content));
        }
    }
    talk
}

/// By stream: method, target, code, times of request and response, and of the last byte.
type Truth = BTreeMap<
    u32,
    (
        Vec<u8>,
        Vec<u8>,
        Option<u16>,
        Option<u64>,
        Option<u64>,
        Option<u64>,
    ),
>;

fn truth_of(batch: &HttpBatch) -> Truth {
    let one = |view: linkweir_record::HttpTransaction<'_>| {
        let row = view.row;
        (
            view.web().unwrap().stream_id.unwrap(),
            (
                view.text.method.to_vec(),
                view.text.uri.to_vec(),
                row.status_code,
                row.request_ts_ns,
                row.response_ts_ns,
                row.ttlb_ns,
            ),
        )
    };
    batch.views().map(one).collect()
}

/// What is said of a part of the traffic is true of all of it, or empty.
fn check_part(whole: &Truth, frames: &[CapturedFrame], what: &str) -> usize {
    let part = truth_of(&batch_of(frames));
    for (stream, said) in &part {
        let truth = &whole[stream];
        assert!(said.0.is_empty() || said.0 == truth.0, "{what}: {stream}");
        assert!(said.1.is_empty() || said.1 == truth.1, "{what}: {stream}");
        assert!(said.2.is_none() || said.2 == truth.2, "{what}: {stream}");
        assert!(said.3.is_none() || said.3 == truth.3, "{what}: {stream}");
        assert!(said.4.is_none() || said.4 == truth.4, "{what}: {stream}");
        assert!(said.5.is_none() || said.5 == truth.5, "{what}: {stream}");
    }
    part.len()
}

#[test]
fn of_a_part_of_the_traffic_nothing_wrong_is_said() {
    let frames = long_talk().frames();
    let whole = truth_of(&batch_of(&frames));
    assert_eq!(whole.len(), 36);
    for at in 1..frames.len() {
        check_part(&whole, &frames[at..], &format!("joined at {at}"));
        check_part(&whole, &frames[..at], &format!("ended at {at}"));
        let mut part = frames.clone();
        part.remove(at);
        check_part(&whole, &part, &format!("without {at}"));
        let mut part = frames.clone();
        part.insert(at, frames[at].clone());
        let found = check_part(&whole, &part, &format!("{at} twice"));
        assert_eq!(found, 36);
        let mut part = frames.clone();
        part.swap(at - 1, at);
        check_part(&whole, &part, &format!("{at} earlier"));
    }
}

#[test]
fn a_connection_that_was_joined_late_has_times_and_codes() {
    let frames = long_talk().frames();
    let whole = truth_of(&batch_of(&frames));
    let half = &frames[frames.len() / 2..];
    let part = truth_of(&batch_of(half));
    let known = part
        .values()
        .filter(|said| said.2.is_some() && said.3.is_some());
    assert!(known.count() >= 9, "{part:?}");
    check_part(&whole, half, "half");
}

#[test]
fn what_comes_behind_the_content_is_no_response() {
    let (mut client, mut server) = (Encoder::default(), Encoder::default());
    let mut talk = Conversation::v4(40_000);
    talk.handshake()
        .client_sends(opening())
        .client_sends(client.get(1, "/one"))
        .server_sends(server.headers(1, 0, &[(":status", "200"), ("digest", "x")]))
        .server_sends(frame(DATA, 0, 1, b"yes"))
        .server_sends(server.headers(1, END_STREAM, &[("digest", "x")]));
    let frames = talk.frames();
    assert_eq!(batch_of(&frames).len(), 1);
    // Its only field is named by an index whose entry was not seen.
    let from_content = &frames[frames.len() - 2..];
    assert_eq!(told(&batch_of(from_content)), Vec::<String>::new());
}

#[test]
fn a_connection_that_goes_on_with_http2() {
    let (mut client, mut server) = (Encoder::default(), Encoder::default());
    let mut talk = Conversation::v4(40_000);
    let asks = "GET /first HTTP/1.1\r\nHost: h.test\r\nConnection: Upgrade, HTTP2-Settings\r\n\
        Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n";
    let switches =
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    let answer = server.headers(1, 0, &[(":status", "200")]);
    talk.handshake()
        .client_sends(asks)
        .server_sends([&switches[..], &frame(SETTINGS, 0, 0, &[]), &answer].concat())
        .client_sends([opening(), client.get(3, "/second")].concat())
        .server_sends(frame(DATA, END_STREAM, 1, b"yes"))
        .server_sends(server.headers(3, END_STREAM, &[(":status", "404")]));
    let batch = batch_of(&talk.frames());
    assert_eq!(
        told(&batch),
        [
            "complete GET /first 200 3ms",
            "complete GET /second 404 2ms"
        ]
    );
    let first = batch.get(0).unwrap();
    assert_eq!(
        (first.row.interim_responses, first.text.host),
        (1, &b"h.test"[..])
    );
    let stats = look(&talk).stats;
    assert_eq!((stats.requests, stats.of_http_2), (2, 2));
    let codes: Vec<_> = stats.status_codes().collect();
    assert_eq!(codes, [(101, 1), (200, 1), (404, 1)]);
}

#[test]
fn streams_that_never_end_are_bounded() {
    let mut client = Encoder::default();
    let mut talk = Conversation::v4(40_000).spaced(1_000);
    talk.client_sends(opening());
    for stream in 0..5_000 {
        talk.client_sends(client.get(1 + 2 * stream, "/"));
    }
    let outcome = look(&talk);
    assert_eq!(outcome.stats.table_full, 5_000 - 4_096);
    assert_eq!(outcome.stats.unanswered, 5_000);
    let few = HttpConfig {
        max_pending: 16,
        ..HttpConfig::default()
    };
    assert_eq!(look_with(&few, &talk).stats.table_full, 5_000 - 16);
}

#[test]
fn peers_that_break_the_rules_cost_little_and_make_nothing_up() {
    // Streams that are reset as soon as they begin (CVE-2023-44487): each is a record, and none waits.
    let mut client = Encoder::default();
    let mut talk = Conversation::v4(40_000).spaced(1_000);
    talk.client_sends(opening());
    for stream in (1..20_000).step_by(2) {
        let reset = frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        talk.client_sends([client.get(stream, "/"), reset].concat());
    }
    let outcome = look(&talk);
    assert_eq!(
        (outcome.stats.unanswered, outcome.stats.table_full),
        (10_000, 0)
    );

    // What a server may not send: an answer to a stream of nobody, content of none, trailers without a response, a second
    // response, fields that ask for 16 MB, a table that is never used.
    let (mut client, mut server) = (Encoder::default(), Encoder::default());
    let ok = server.block(&[(":status", "200")]);
    let filler = server.block(&[("x-filler", &"f".repeat(100))]);
    let bomb = [&ok[..], &filler, &[0xBE; 60_000]].concat();
    let parts: Vec<Vec<u8>> = bomb.chunks(16_000).map(<[u8]>::to_vec).collect();
    let mut talk = Conversation::v4(40_001).spaced(1_000);
    talk.client_sends(opening())
        .client_sends([client.get(1, "/one"), client.get(3, "/three")].concat())
        .server_sends(frame(SETTINGS, 0, 0, &[0, 1, 0, 0xFF, 0xFF, 0xFF]))
        .server_sends(frame(HEADERS, END_HEADERS | END_STREAM, 99, &ok))
        .server_sends(frame(DATA, END_STREAM, 77, b"content"))
        .server_sends(frame(HEADERS, END_HEADERS, 1, &ok))
        .server_sends(frame(HEADERS, END_HEADERS, 1, &[0x8D]))
        .server_sends(frame(HEADERS, 0, 3, &parts[0]));
    for (at, part) in parts.iter().enumerate().skip(1) {
        let flags = if at + 1 == parts.len() {
            END_HEADERS
        } else {
            0
        };
        talk.server_sends(frame(9, flags, 3, part));
    }
    talk.server_sends(frame(DATA, END_STREAM, 1, b"content"))
        .server_sends(frame(DATA, END_STREAM, 3, b"content"));
    let lines = told(&batch_of(&talk.frames()));
    let expected = [
        "complete GET /one 200 ",
        "complete GET /three 200 ",
        "orphan   200 ",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{lines:?}");
    }
}

#[test]
fn a_stream_that_is_silent_times_out_and_the_next_connection_of_the_ports_is_its_own() {
    let (mut client, mut server) = (Encoder::default(), Encoder::default());
    let mut talk = Conversation::v4(40_000);
    talk.handshake()
        .client_sends(opening())
        .client_sends(client.get(1, "/silent"))
        .wait(Duration::from_secs(200))
        .client_sends(client.get(3, "/more"))
        .server_sends(server.headers(3, END_STREAM, &[(":status", "200")]));
    let mut again = Conversation::v4(40_000)
        .numbered(900_000_000, 7_000)
        .starting_at(talk.now_ns());
    again
        .handshake()
        .client_sends(get("/plain"))
        .server_sends(answer(200, 5));
    let outcome = super::support::look_all(&[talk, again]);
    assert_eq!(
        outcome.short(),
        [
            "unanswered /silent",
            "complete /more 200",
            "complete /plain 200"
        ]
    );
    assert_eq!((outcome.stats.of_http_1_1, outcome.stats.of_http_2), (1, 2));
}

/// A connection of which the client's segment `lost` is not captured; the streams that it answers are all answered.
fn talk_without(lost: usize) -> HttpBatch {
    let (mut client, mut server) = (Encoder::default(), Encoder::default());
    let mut talk = Conversation::v4(40_000);
    talk.handshake()
        .client_sends(opening())
        .client_sends(client.get(1, "/one"))
        .server_sends(server.headers(1, END_STREAM, &[(":status", "200")]))
        .client_sends(frame(6, 0, 0, &[0; 8]))
        .client_sends(client.get(3, "/two"))
        .client_sends(client.get(5, "/three"))
        .server_sends(server.headers(3, END_STREAM, &[(":status", "200")]))
        .server_sends(server.headers(5, END_STREAM, &[(":status", "404")]))
        .wait(Duration::from_secs(1))
        .client_sends(client.get(7, "/four"))
        .server_sends(server.headers(7, END_STREAM, &[(":status", "200")]));
    let mut frames = talk.frames();
    frames.remove(lost);
    batch_of(&frames)
}

#[test]
fn requests_behind_a_gap_have_their_responses() {
    // The segment with the PING.
    let batch = talk_without(6);
    let states: Vec<_> = batch.views().map(|view| view.row.state).collect();
    assert_eq!(states, [HttpState::Complete; 4], "{:?}", told(&batch));
    // The segment with the request of stream 3: its response alone is left.
    let batch = talk_without(7);
    let mut states: Vec<_> = batch.views().map(|view| view.row.state.as_str()).collect();
    states.sort_unstable();
    assert_eq!(states, ["complete", "complete", "complete", "orphan"]);
}

#[test]
fn a_response_may_be_captured_before_its_request() {
    let frames = long_talk().frames();
    let whole = batch_of(&frames);
    let mut part = frames;
    // The last request of the first round behind the first response.
    part.swap(7, 8);
    let batch = batch_of(&part);
    let are_complete = |batch: &HttpBatch| {
        let complete =
            |view: &linkweir_record::HttpTransaction<'_>| view.row.state == HttpState::Complete;
        batch.views().filter(complete).count()
    };
    assert_eq!((are_complete(&batch), batch.len()), (36, 36));
    assert_eq!(are_complete(&whole), 36);
}

#[test]
fn what_only_looks_like_a_beginning_takes_nothing_over() {
    let body = [opening(), Encoder::default().get(1, "/smuggled")].concat();
    let head = format!(
        "POST /up HTTP/1.1\r\nHost: h.test\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut talk = Conversation::v4(40_000);
    talk.handshake()
        .client_sends(head)
        .client_sends(&body)
        .server_sends(answer(200, 5))
        .client_sends(get("/next"))
        .server_sends(answer(404, 3));
    assert_eq!(
        look(&talk).short(),
        ["complete /up 200", "complete /next 404"]
    );

    // A stray segment far away, in the middle of a connection of HTTP/2.
    let mut frames = long_talk().frames();
    let stray = Conversation::v4(40_000).numbered(1 << 30, 7);
    let mut stray = stray.starting_at(frames[20].timestamp_ns);
    stray.client_sends(opening());
    frames.insert(20, stray.frames()[0].clone());
    assert_eq!(truth_of(&batch_of(&frames)).len(), 36);
    // Behind HTTP/2, HTTP/1.1 between the same ports, whose SYN was not captured.
    let mut frames = long_talk().frames();
    let next = Conversation::v4(40_000).numbered(1 << 30, 1 << 29);
    let mut next = next.starting_at(frames.last().unwrap().timestamp_ns + 1_000_000);
    next.client_sends(get("/plain"))
        .server_sends(answer(200, 5));
    frames.extend(next.frames());
    let batch = batch_of(&frames);
    assert_eq!(
        batch
            .views()
            .filter(|view| view.text.uri == b"/plain")
            .count(),
        1
    );
}
