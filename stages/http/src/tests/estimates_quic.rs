//! Transactions of HTTP/3 without keys: from the sizes, the order and the direction of datagrams.

use std::net::SocketAddr;

use linkweir_engine::{Batch, FrameRef, Stage};
use linkweir_record::{Confidence, HttpBatch, HttpState, RecordBatch as _, Source};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::memory::drive;
use linkweir_testkit::quic::initial;
use linkweir_wire::emit::UdpFrame;
use linkweir_wire::{LinkType, Timestamp};

use crate::{HttpConfig, HttpStage};

const MS: u64 = 1_000_000;
const START_NS: u64 = 1_700_000_000_000_000_000;
/// Bytes of a datagram besides frames: to the server, whose ids have four bytes, and to the client, whose have eight.
const TO_SERVER: usize = 22;
const TO_CLIENT: usize = 26;
const HANDSHAKE: u8 = 0xe0;

use Confidence::{CannotTell, Likely};
use HttpState::{Complete, Unanswered};

/// Datagrams of one connection, captured near the client.
#[derive(Debug, Clone)]
struct Talk {
    port: u16,
    now_ns: u64,
    frames: Vec<CapturedFrame>,
}

impl Talk {
    const fn new(port: u16) -> Self {
        Self {
            port,
            now_ns: START_NS,
            frames: Vec::new(),
        }
    }

    /// A connection up to the server's tickets, whose round trip takes 20 ms.
    fn opened(port: u16) -> Self {
        let mut talk = Self::new(port);
        talk.client(initial(), 0)
            .server(answer(), 20)
            .client([long(HANDSHAKE, 8), vec![0; 1100]].concat(), 1);
        talk
    }

    fn datagram(&mut self, is_client: bool, payload: &[u8], ms: u64) -> &mut Self {
        self.now_ns += ms * MS;
        let client = SocketAddr::from(([10, 0, 0, 1], self.port));
        let server = SocketAddr::from(([10, 0, 0, 2], 443));
        let (src, dst) = match is_client {
            true => (client, server),
            false => (server, client),
        };
        let bytes = UdpFrame {
            payload,
            ..UdpFrame::new(src, dst)
        }
        .to_vec();
        let wire_len = u32::try_from(bytes.len()).unwrap();
        self.frames.push(CapturedFrame {
            timestamp_ns: self.now_ns,
            interface: 0,
            bytes,
            wire_len,
        });
        self
    }

    fn client(&mut self, payload: impl AsRef<[u8]>, ms: u64) -> &mut Self {
        self.datagram(true, payload.as_ref(), ms)
    }

    fn server(&mut self, payload: impl AsRef<[u8]>, ms: u64) -> &mut Self {
        self.datagram(false, payload.as_ref(), ms)
    }

    /// A packet of the client with so many bytes of frames, after milliseconds.
    fn asks(&mut self, content: usize, ms: u64) -> &mut Self {
        self.client(short(content + TO_SERVER), ms)
    }

    /// A packet of the server with so many bytes of frames, after milliseconds.
    fn says(&mut self, content: usize, ms: u64) -> &mut Self {
        self.server(short(content + TO_CLIENT), ms)
    }
}

/// A packet with a short header.
fn short(len: usize) -> Vec<u8> {
    [vec![0x41], vec![0xee; len - 1]].concat()
}

/// A packet with a long header whose sender's id has so many bytes.
fn long(first: u8, id: u8) -> Vec<u8> {
    let token = if first & 0x30 == 0 { &[0][..] } else { &[] };
    let ids = [&[0, id][..], &vec![7; usize::from(id)]].concat();
    [&[first, 0, 0, 0, 1][..], &ids, token, &[0x40, 20], &[9; 20]].concat()
}

/// What the server sends first: 1,252 bytes.
fn answer() -> Vec<u8> {
    let mut datagram = [long(0xc0, 4), long(HANDSHAKE, 4)].concat();
    datagram.resize(1252, 0);
    datagram
}

/// Confidence, response and time to last byte in ms, bytes of request and response, state.
type Told = (Confidence, Option<u64>, Option<u64>, u64, u64, HttpState);

fn told(batch: &HttpBatch) -> Vec<Told> {
    let each = batch.views().map(|view| {
        let (row, web) = (view.row, view.web().unwrap());
        assert_eq!(web.source, Source::Estimate);
        assert_eq!(row.version_name(), "3");
        assert_eq!((web.sni, view.text.host), (&b"example.com"[..], web.sni));
        let ja4 = web.ja4.unwrap();
        assert!(ja4.starts_with(b"q13d"), "{ja4:?}");
        let ms = |ns: Option<u64>| ns.map(|ns| ns / MS);
        (
            web.confidence.unwrap(),
            ms(row.response_time_ns()),
            ms(row.ttlb_ns),
            row.request_bytes.unwrap_or_default(),
            row.response_bytes.unwrap_or_default(),
            row.state,
        )
    });
    each.collect()
}

fn run(config: &HttpConfig, frames: &[CapturedFrame]) -> (Vec<Told>, HttpStage) {
    let mut stage = HttpStage::new(config);
    let batch = drive(&mut stage, frames, LinkType::ETHERNET, &[]);
    (told(&batch), stage)
}

fn look(talk: &Talk) -> Vec<Told> {
    run(&HttpConfig::default(), &talk.frames).0
}

#[test]
fn requests_and_responses_and_nothing_else() {
    let mut talk = Talk::opened(40_000);
    // A request; tickets, a packet of 1,352 bytes that asks for nothing, the response, acknowledgments, and the window.
    talk.asks(350, 4)
        .says(8, 17)
        .says(280, 0)
        .server(short(1352), 20)
        .says(900, 30)
        .says(1226, 3)
        .asks(6, 0)
        .asks(16, 1)
        .says(300, 4)
        .asks(6, 0);
    // Another one, with a new connection id before it and a body behind it.
    talk.asks(30, 100)
        .says(6, 20)
        .asks(1178, 10)
        .asks(1178, 0)
        .asks(400, 0)
        .says(14, 20)
        .says(200, 31)
        .asks(6, 1);
    // One that nobody answers, but that the server acknowledges.
    talk.asks(340, 50).says(6, 20).asks(5, 0);
    let of = |content: u64| content + TO_SERVER as u64;
    let (told, stage) = run(&HttpConfig::default(), &talk.frames);
    let response = 900 + 1226 + 300 + 3 * TO_CLIENT as u64;
    assert_eq!(
        told,
        [
            (Likely, Some(67), Some(75), of(350), response, Complete),
            (
                Likely,
                Some(51),
                Some(51),
                2 * of(1178) + of(400),
                200 + TO_CLIENT as u64,
                Complete
            ),
            (Likely, None, None, of(340), 0, Unanswered),
        ]
    );
    assert_eq!(stage.stats().estimated_connections, 1);
    let batch = drive(
        &mut HttpStage::new(&HttpConfig::default()),
        &talk.frames,
        LinkType::ETHERNET,
        &[1],
    );
    let row = batch.get(0).unwrap().row;
    assert_eq!(
        (row.rtt_ns, row.server_time_ns()),
        (Some(20_000_000), Some(47 * MS))
    );
    let off = HttpConfig {
        estimates: false,
        ..HttpConfig::default()
    };
    assert_eq!(run(&off, &talk.frames).0, []);
}

#[test]
fn several_at_a_time_are_not_told_apart_before_a_pause() {
    let mut talk = Talk::opened(40_000);
    talk.says(6, 20).asks(350, 10).says(800, 40);
    talk.asks(350, 20).asks(360, 1).says(700, 25).says(700, 30);
    talk.asks(350, 200).says(700, 30);
    // After a pause one is believed again.
    talk.asks(350, 2100).says(700, 30);
    // The next one is sent while the response goes on: data that came sooner than the server could answer.
    talk.asks(350, 2).says(1000, 3).says(600, 40);
    let told = look(&talk);
    let classes: Vec<_> = told.iter().map(|told| (told.0, told.1)).collect();
    assert_eq!(
        classes,
        [
            (Likely, Some(40)),
            (CannotTell, None),
            (CannotTell, None),
            (Likely, Some(30)),
            (CannotTell, None),
        ]
    );
    assert!(
        told.iter()
            .all(|told| told.5 == Complete && told.2.is_some())
    );
}

#[test]
fn a_request_sent_again_and_data_in_the_handshake() {
    let mut talk = Talk::opened(40_000);
    talk.says(6, 20).asks(350, 10).asks(350, 60).says(800, 25);
    let mut stage = HttpStage::new(&HttpConfig::default());
    let batch = drive(&mut stage, &talk.frames, LinkType::ETHERNET, &[]);
    assert_eq!(told(&batch)[0].1, Some(85));
    assert_eq!(batch.get(0).unwrap().row.retransmissions, 1);

    let mut early = Talk::new(40_001);
    early
        .client(initial(), 0)
        .client([long(0xd0, 8), vec![0; 300]].concat(), 0)
        .server(answer(), 20)
        .client([long(HANDSHAKE, 8), vec![0; 1100]].concat(), 1)
        .says(6, 20)
        .asks(350, 5)
        .says(900, 30);
    assert_eq!(look(&early)[0].0, CannotTell);
}

#[test]
fn a_retry_and_another_connection_between_the_same_ports() {
    let mut talk = Talk::new(40_000);
    talk.client(initial(), 0).server(long(0xf0, 8), 35);
    let mut opened = Talk::opened(40_000);
    opened.says(6, 20).asks(350, 10).says(800, 40);
    for frame in &mut opened.frames {
        frame.timestamp_ns += 36 * MS;
    }
    talk.frames.extend(opened.frames.clone());
    for frame in &mut opened.frames {
        frame.timestamp_ns += 500 * MS;
    }
    talk.frames.extend(opened.frames);
    let (told, stage) = run(&HttpConfig::default(), &talk.frames);
    assert_eq!(
        told.iter().map(|told| told.1).collect::<Vec<_>>(),
        [Some(40); 2]
    );
    assert_eq!(stage.stats().estimated_connections, 2);
    // Datagrams that nobody has begun, and those of another port, are of nobody.
    let mut late = Talk::new(40_002);
    late.asks(350, 10).says(800, 40);
    assert_eq!(look(&late), []);
    let mut moved = Talk::opened(40_003);
    moved.says(6, 20);
    moved.port = 40_004;
    moved.asks(350, 10).says(800, 40);
    assert_eq!(look(&moved), []);
}

#[test]
fn loss_order_and_copies_leave_no_panic_and_little_wrong() {
    let mut whole = Talk::opened(40_000);
    whole.says(6, 20);
    for _ in 0..6 {
        whole
            .asks(350, 30)
            .says(6, 20)
            .says(900, 30)
            .says(1226, 1)
            .asks(6, 0);
    }
    let truth = look(&whole);
    assert_eq!(truth.len(), 6);
    let (mut timed, mut wrong) = (0, 0);
    for at in 0..whole.frames.len() {
        let mut lost = whole.clone();
        lost.frames.remove(at);
        let mut twice = whole.clone();
        twice.frames.insert(at, whole.frames[at].clone());
        for part in [lost, twice] {
            for told in look(&part).iter().filter(|told| told.1.is_some()) {
                timed += 1;
                wrong += usize::from(told.1 != Some(50));
            }
        }
    }
    println!("{timed} timed, {wrong} wrong");
    assert!(timed > 300 && wrong * 20 < timed, "{wrong} of {timed}");
}

#[test]
fn who_is_silent_leaves_and_what_waits_is_written() {
    let mut talk = Talk::opened(40_000);
    talk.says(6, 20).asks(350, 10).says(6, 21);
    let mut stage = HttpStage::new(&HttpConfig::default());
    let mut out = HttpBatch::default();
    for frame in &talk.frames {
        let len = u32::try_from(frame.bytes.len()).unwrap();
        let index = [FrameRef {
            timestamp: Timestamp::from_nanos(frame.timestamp_ns),
            offset: 0,
            captured_len: len,
            wire_len: len,
            link: LinkType::ETHERNET,
            interface: 0,
        }];
        stage.on_batch(&Batch::new(&frame.bytes, &index), &mut out);
    }
    assert_eq!(out.len(), 0);
    assert!(stage.next_deadline().is_some());
    let mut now_ns = talk.now_ns;
    for _ in 0..9 {
        now_ns += 8_000 * MS;
        stage.on_tick(Timestamp::from_nanos(now_ns), &mut out);
    }
    assert_eq!(
        told(&out),
        [(Likely, None, None, 372, 0, Unanswered)],
        "within the timeout and an eighth of it"
    );
    assert_eq!(stage.next_deadline(), None);
}
