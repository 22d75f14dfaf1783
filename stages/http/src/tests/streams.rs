//! Streams: events in segments of any shape, and what becomes of those that are missing.

use std::time::Duration;

use linkweir_record::{Events, HttpBatch, RecordBatch as _};
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_testkit::memory::drive;
use linkweir_wire::LinkType;

use super::http2::{DATA, END_STREAM, Encoder, SETTINGS, frame, opening};
use super::support::{check_counters, get};
use crate::{HttpConfig, HttpStage, HttpStats};

const MS: u64 = 1_000_000;
const SSE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n";
const CHUNKED: &str = "Transfer-Encoding: chunked\r\n\r\n";

fn run(config: &HttpConfig, talk: &Conversation) -> (Vec<Option<Events>>, HttpStats, HttpBatch) {
    let mut stage = HttpStage::new(config);
    let batch: HttpBatch = drive(&mut stage, &talk.frames(), LinkType::ETHERNET, &[1]);
    let stats = stage.stats().clone();
    check_counters(&stats);
    let events = batch
        .views()
        .map(|view| view.web().and_then(|web| web.events));
    (events.collect(), stats, batch)
}

/// The events of the only transaction, which are the same with time to last byte.
fn only(talk: &Conversation) -> (Events, HttpStats) {
    let (events, stats, _) = run(&HttpConfig::default(), talk);
    let ttlb = HttpConfig {
        ttlb: true,
        ..HttpConfig::default()
    };
    assert_eq!(run(&ttlb, talk).0, events);
    let [Some(events)] = events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(stats.streams.streams, 1);
    assert_eq!(stats.streams.events, u64::from(events.count));
    (events, stats)
}

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

fn ask(port: u16) -> Conversation {
    let mut talk = Conversation::v4(port);
    talk.handshake().client_sends(get("/stream"));
    talk
}

/// Sends each text after a pause, at these times after the request; a segment each.
fn at_times(talk: &mut Conversation, parts: &[(u64, String)]) {
    let from_ns = talk.segments().last().unwrap().at_ns;
    for (at_ms, part) in parts {
        let pause = (from_ns + at_ms * MS).saturating_sub(talk.now_ns());
        talk.wait(Duration::from_nanos(pause)).server_sends(part);
    }
}

fn near(value: u64, expected_ms: u64) -> bool {
    (expected_ms * MS..=expected_ms * MS * 9 / 8).contains(&value)
}

#[test]
fn a_chunk_is_not_an_event() {
    let mut talk = ask(40_000);
    let parts = [
        (10, [SSE, CHUNKED].concat()),
        (50, chunk(": wait\n\n")),
        // An event in two chunks in two segments, two in one chunk, and what looks like the last chunk.
        (100, chunk("data: a\n")),
        (130, chunk("\n")),
        (160, chunk("data: b\n\ndata: 0\r\n\r\n")),
        (190, chunk("event: none\n\ndata: c\r\rdata")),
        (250, chunk(": 4\r\n\r\n") + "0\r\n\r\n"),
    ];
    at_times(&mut talk, &parts);
    let (events, stats) = only(&talk);
    assert_eq!((events.count, events.coalesced, events.stalls), (5, 1, 0));
    assert_eq!(events.first_ns, Some(130 * MS));
    let [p50, p99, max] = events.gaps_ns.unwrap();
    assert!(near(p50, 30), "{p50}");
    assert_eq!((p99, max), (60 * MS, 60 * MS));
    assert_eq!(events.is_buffered, Some(false));
    assert_eq!((stats.streams.with_gaps, stats.streams.unmeasured), (0, 0));
    assert_eq!(stats.streams.event_gap.count(), 4);
    let (_, _, batch) = run(&HttpConfig::default(), &talk);
    assert_eq!(batch.get(0).unwrap().row.ttlb_ns, Some(250 * MS));
}

#[test]
fn however_it_is_cut() {
    let text: String = (0..6)
        .map(|n| chunk(&format!("data: {n}\r\n\r\n")))
        .collect();
    let whole = [SSE, CHUNKED, &text, "0\r\n\r\n"].concat();
    for size in 1..=whole.len() {
        let mut talk = ask(40_000).mss(size);
        talk.server_sends(&whole);
        let (events, _) = only(&talk);
        assert_eq!(events.count, 6, "{size}");
    }
}

#[test]
fn a_length_ends_a_stream_before_the_next_response() {
    let content = "data: a\n\ndata: b\n\n";
    let head = format!("{SSE}Content-Length: {}\r\n\r\n", content.len());
    let mut talk = ask(40_000);
    talk.client_sends(get("/next"));
    let next =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\ndata: c\n\n";
    let (begun, rest) = content.split_at(5);
    talk.server_sends(head + begun)
        .server_sends([rest, next].concat());
    let (events, stats, batch) = run(&HttpConfig::default(), &talk);
    assert_eq!(batch.len(), 2);
    let found: Vec<_> = events.iter().flatten().map(|one| one.count).collect();
    assert_eq!((found, stats.streams.streams), (vec![2], 1));
}

#[test]
fn a_close_ends_a_stream_and_silence_too() {
    let mut talk = ask(40_000);
    at_times(
        &mut talk,
        &[
            (10, format!("{SSE}\r\n")),
            (20, "data: a\n\n".into()),
            (40, "data: b\n\n".into()),
        ],
    );
    talk.fin(Side::Server);
    let mut other = Conversation::v4(40_001).starting_at(Conversation::START_NS + 120_000 * MS);
    other.client_sends(get("/later"));
    let (events, _) = only(&talk);
    assert_eq!((events.count, events.gaps_ns.unwrap()[2]), (2, 20 * MS));
    // Without the end, the record comes when the timeout has passed.
    let mut silent = talk.clone();
    silent.segments_mut().pop();
    let mut frames = silent.frames();
    frames.extend(other.frames());
    let mut stage = HttpStage::new(&HttpConfig::default());
    let batch: HttpBatch = drive(&mut stage, &frames, LinkType::ETHERNET, &[]);
    let first = batch.get(0).unwrap();
    assert_eq!(first.text.uri, b"/stream");
    assert_eq!(first.web().unwrap().events.unwrap().count, 2);
}

#[test]
fn out_of_order_is_not_lost() {
    let mut talk = ask(40_000);
    let mut parts = vec![(10, [SSE, CHUNKED].concat())];
    parts.extend((1..=6).map(|n| (n * 30, chunk(&format!("data: {n}\n\n")))));
    parts.push((200, "0\r\n\r\n".into()));
    at_times(&mut talk, &parts);
    let (all, _) = only(&talk);
    assert_eq!((all.count, all.gaps_ns.unwrap()[2]), (6, 30 * MS));
    // The third event comes again behind the fourth, the first copy is lost.
    let third = talk.segments().len() - 5;
    let mut late = talk.clone();
    late.delay(third, 45 * MS);
    let (events, stats) = only(&late);
    assert_eq!((events.count, events.coalesced), (6, 1));
    assert_eq!(
        (events.gaps_ns.unwrap()[2], stats.streams.with_gaps),
        (75 * MS, 0)
    );
    // It comes twice.
    let mut twice = talk.clone();
    twice.repeat(third, 10 * MS);
    assert_eq!(only(&twice).0, all);
}

#[test]
fn a_lost_segment_makes_no_gap() {
    let mut talk = ask(40_000);
    let mut parts = vec![(10, [SSE, CHUNKED].concat())];
    parts.extend((1..=9).map(|n| (n * 30, chunk(&format!("data: {n}\n\n")))));
    at_times(&mut talk, &parts);
    talk.acknowledges(Side::Client)
        .wait(Duration::from_millis(300));
    talk.acknowledges(Side::Client).fin(Side::Server);
    // The whole of a chunk: where the next one begins is unknown.
    let fourth = talk.segments().len() - 9;
    assert!(
        talk.segments()[fourth]
            .payload
            .ends_with(b"data: 4\n\n\r\n")
    );
    talk.lose(fourth);
    let (events, stats) = only(&talk);
    assert_eq!((events.count, events.gaps_ns.unwrap()[2]), (3, 30 * MS));
    assert_eq!((events.is_buffered, stats.streams.with_gaps), (None, 1));
    // Without chunks the events behind it are found again, and no gap stands for what is missing.
    let mut talk = ask(40_001);
    let mut parts = vec![(10, format!("{SSE}\r\n"))];
    parts.extend((1..=9).map(|n| (n * 30, format!("data: {n}\n\n"))));
    at_times(&mut talk, &parts);
    talk.fin(Side::Server);
    let fourth = talk.segments().len() - 7;
    talk.lose(fourth);
    let (events, stats) = only(&talk);
    // Of the event behind it nobody knows that nothing of it is missing.
    assert_eq!((events.count, events.gaps_ns.unwrap()[2]), (7, 30 * MS));
    assert_eq!(stats.streams.with_gaps, 1);
}

#[test]
fn a_proxy_that_buffers() {
    let parts = |at: &dyn Fn(u64) -> u64| -> Vec<(u64, String)> {
        let events = (1..=10).map(|n| (at(n), chunk(&format!("data: {n}\n\n"))));
        [(at(0), [SSE, CHUNKED].concat())]
            .into_iter()
            .chain(events)
            .collect()
    };
    let mut direct = ask(40_000);
    at_times(&mut direct, &parts(&|n| 5 + n * 30));
    direct.server_sends("0\r\n\r\n");
    let (events, stats) = only(&direct);
    assert_eq!(
        (events.is_buffered, stats.streams.buffered),
        (Some(false), 0)
    );
    let mut buffered = ask(40_000).spaced(10_000);
    at_times(&mut buffered, &parts(&|_| 310));
    buffered.server_sends("0\r\n\r\n");
    let (events, stats) = only(&buffered);
    assert_eq!(
        (events.is_buffered, stats.streams.buffered),
        (Some(true), 1)
    );
    let hosts: Vec<(&[u8], u64, u64)> = vec![(b"www.example.test", 1, 1)];
    assert_eq!(stats.streams.hosts(), hosts);
    // In one segment with its head.
    let mut whole = ask(40_000);
    let text: String = parts(&|_| 0).into_iter().map(|(_, part)| part).collect();
    at_times(&mut whole, &[(310, text + "0\r\n\r\n")]);
    let (events, _) = only(&whole);
    assert_eq!((events.count, events.coalesced), (10, 9));
    assert_eq!(
        (events.first_ns, events.is_buffered),
        (Some(310 * MS), Some(true))
    );
    assert_eq!(events.gaps_ns, Some([0; 3]));
}

#[test]
fn lines_of_json_and_messages_of_websocket() {
    let mut talk = ask(40_000);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n";
    at_times(
        &mut talk,
        &[
            (10, [head, CHUNKED].concat()),
            (50, chunk("{\"response\":\"a\"}\n")),
            (90, chunk("{\"response\":")),
            (120, chunk("\"b\"}\n{\"done\":true}\n")),
            (121, "0\r\n\r\n".into()),
        ],
    );
    let (events, _) = only(&talk);
    assert_eq!((events.count, events.coalesced), (3, 1));
    assert_eq!(events.gaps_ns.unwrap()[2], 70 * MS);

    let mut talk = Conversation::v4(40_001);
    talk.client_sends(get("/socket").replace("\r\n\r\n", "\r\nUpgrade: websocket\r\n\r\n"));
    let from_ns = talk.segments()[0].at_ns;
    talk.server_sends("HTTP/1.1 101 Switching\r\nUPGRADE: WebSocket\r\n\r\n")
        .wait(Duration::from_millis(100))
        .server_sends([0x81, 2, b'h', b'i', 0x89, 0])
        .client_sends([0x8a, 0x80, 1, 2, 3, 4])
        .wait(Duration::from_millis(100));
    // A message of two segments, and two at once.
    talk = talk.mss(100);
    talk.server_sends([&[0x82, 126, 0, 150][..], &[7; 150], &[0x81, 0]].concat());
    let first_ns = talk.segments()[2].at_ns - from_ns;
    let last = talk.segments().len() - 1;
    let gap_ns = talk.segments()[last].at_ns - talk.segments()[2].at_ns;
    let (events, _) = only(&talk);
    assert_eq!((events.count, events.coalesced), (3, 1));
    assert_eq!(
        (events.first_ns, events.gaps_ns.unwrap()[2]),
        (Some(first_ns), gap_ns)
    );
    assert_eq!(events.is_buffered, None);
}

#[test]
fn what_is_no_stream_has_no_events() {
    for (head, body) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n",
            "data: a\n\n",
        ),
        (
            "HTTP/1.1 204 No\r\nContent-Type: text/event-stream\r\n\r\n",
            "",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n",
            "a\nb",
        ),
        ("HTTP/1.1 101 Switching\r\nUpgrade: other\r\n\r\n", ""),
    ] {
        let mut talk = ask(40_000);
        talk.server_sends([head, body].concat());
        let (events, stats, _) = run(&HttpConfig::default(), &talk);
        assert_eq!((events, stats.streams.streams), (vec![None], 0), "{head}");
    }
}

#[test]
fn in_http2() {
    let (mut client, mut server) = (Encoder::default(), Encoder::default());
    let mut talk = Conversation::v4(40_000);
    talk.handshake()
        .client_sends(opening())
        .client_sends([client.get(1, "/chat"), client.get(3, "/page")].concat())
        .server_sends(frame(SETTINGS, 0, 0, &[]));
    let from_ns = talk.segments()[4].at_ns;
    let head = server.headers(
        1,
        0,
        &[(":status", "200"), ("content-type", "text/event-stream")],
    );
    talk.server_sends(head).server_sends(server.headers(
        3,
        0,
        &[(":status", "200"), ("content-type", "text/css")],
    ));
    let mut at_ns = Vec::new();
    for n in 0..6 {
        talk.wait(Duration::from_millis(30));
        at_ns.push(talk.now_ns());
        let event = frame(DATA, 0, 1, format!("data: {n}\n\n").as_bytes());
        talk.server_sends([event, frame(DATA, 0, 3, b"data: x\n\n")].concat());
    }
    talk.server_sends(
        [
            frame(DATA, END_STREAM, 1, b""),
            frame(DATA, END_STREAM, 3, b""),
        ]
        .concat(),
    );
    let (events, stats, _) = run(&HttpConfig::default(), &talk);
    let [Some(events), None] = events[..] else {
        panic!("{events:?}");
    };
    assert_eq!((events.count, events.coalesced), (6, 0));
    assert_eq!(events.first_ns, Some(at_ns[0] - from_ns));
    assert_eq!(events.gaps_ns.unwrap()[2], 31 * MS);
    assert_eq!(
        (events.is_buffered, stats.streams.with_gaps),
        (Some(false), 0)
    );
    // A segment is lost that the client has received.
    let third = talk.segments().len() - 5;
    talk.lose(third);
    talk.acknowledges(Side::Client)
        .wait(Duration::from_millis(500))
        .acknowledges(Side::Client);
    let (events, stats, _) = run(&HttpConfig::default(), &talk);
    let gaps: Vec<_> = events
        .iter()
        .flatten()
        .map(|one| one.gaps_ns.unwrap()[2])
        .collect();
    assert_eq!((gaps, stats.streams.with_gaps), (vec![31 * MS], 1));
}

#[test]
fn there_are_not_more_than_so_many() {
    let count = u16::try_from(crate::events::MAX_STREAMS + 10).unwrap();
    let mut frames = Vec::new();
    for port in 1..=count {
        let mut talk = Conversation::v4(port).spaced(0);
        talk.client_sends(get("/stream"))
            .server_sends([SSE, CHUNKED].concat());
        frames.extend(talk.frames());
    }
    let mut stage = HttpStage::new(&HttpConfig::default());
    let batch: HttpBatch = drive(&mut stage, &frames, LinkType::ETHERNET, &[]);
    assert_eq!(batch.len(), usize::from(count));
    let stats = &stage.stats().streams;
    assert_eq!(
        (stats.streams, stats.unmeasured),
        (u64::from(count) - 10, 10)
    );
}
