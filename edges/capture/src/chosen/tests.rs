#![allow(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use std::net::SocketAddr;
use std::time::Duration;

use linkweir_engine::FrameRef;
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_wire::emit::{TcpFrame, fragments, wrap};
use linkweir_wire::{LinkType, Timestamp};

use super::*;

/// What was handed over.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    packets: u64,
}

impl Pieces for Written {
    fn piece(&mut self, bytes: &mut Vec<u8>, packets: u64) {
        self.bytes.append(bytes);
        self.packets += packets;
    }
}

const SECOND: u64 = 1_000_000_000;
const CLIENT: &str = "192.0.2.1:40000";
const SERVER: &str = "198.51.100.2:80";

fn end(text: &str) -> (std::net::IpAddr, u16) {
    let end: SocketAddr = text.parse().unwrap();
    (end.ip(), end.port())
}

fn choice(from_ns: u64, until: Until) -> Choice {
    Choice {
        protocol: 6,
        client: end(CLIENT),
        server: end(SERVER),
        from_ns,
        until,
    }
}

fn frame(at_ns: u64, bytes: &[u8]) -> Frame<'_> {
    Frame {
        timestamp: Timestamp::from_nanos(at_ns),
        bytes,
        wire_len: bytes.len() as u32,
        link: LinkType::ETHERNET,
        interface: 0,
    }
}

/// Places of the frames that are taken.
fn taken(selector: &mut Selector, frames: &[CapturedFrame]) -> Vec<usize> {
    let takes = |(at, one): (usize, &CapturedFrame)| {
        selector
            .takes(&frame(one.timestamp_ns, &one.bytes))
            .then_some(at)
    };
    frames.iter().enumerate().filter_map(takes).collect()
}

/// Handshake, two transactions and the end of a connection; the frames, and the times of requests and responses.
fn two_transactions() -> (Vec<CapturedFrame>, [u64; 4]) {
    let mut talk = Conversation::between(CLIENT.parse().unwrap(), SERVER.parse().unwrap());
    talk.handshake();
    let mut times = [0; 4];
    for pair in times.chunks_mut(2) {
        talk.wait(Duration::from_millis(50));
        talk.client_sends("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        pair[0] = talk.segments().last().unwrap().at_ns;
        talk.acknowledges(Side::Server)
            .wait(Duration::from_millis(20));
        talk.server_sends("HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n");
        pair[1] = talk.segments().last().unwrap().at_ns;
        talk.server_sends([b'x'; 4000]).acknowledges(Side::Client);
    }
    talk.fin(Side::Client).fin(Side::Server);
    (talk.frames(), times)
}

#[test]
fn a_transaction_ends_before_the_next_request() {
    let (frames, [first, answered, second, last]) = two_transactions();
    let place = |time| {
        frames
            .iter()
            .position(|one| one.timestamp_ns == time)
            .unwrap()
    };
    let (first_at, second_at) = (place(first), place(second));
    assert!(first_at >= 3 && second_at > first_at + 4);
    let mut selector = Selector::default();
    selector.choose(choice(first, Until::NextRequest(answered)));
    let want: Vec<usize> = (first_at..second_at).collect();
    assert_eq!(taken(&mut selector, &frames), want);
    // The last one has the end of the connection; both together are not doubled.
    let mut selector = Selector::default();
    selector.choose(choice(second, Until::NextRequest(last)));
    selector.choose(choice(first, Until::NextRequest(answered)));
    let want: Vec<usize> = (first_at..frames.len()).collect();
    assert_eq!(taken(&mut selector, &frames), want);
    // A flow has two times, and ends with the second.
    let mut selector = Selector::default();
    selector.choose(choice(first, Until::Time(answered)));
    let want: Vec<usize> = (first_at..=place(answered)).collect();
    assert_eq!(taken(&mut selector, &frames), want);
    // Nothing of another protocol, another port, or the other connection.
    for other in [
        Choice {
            protocol: 17,
            ..choice(0, Until::Time(u64::MAX))
        },
        Choice {
            client: end("192.0.2.1:40001"),
            ..choice(0, Until::Time(u64::MAX))
        },
    ] {
        let mut selector = Selector::default();
        selector.choose(other);
        assert!(taken(&mut selector, &frames).is_empty());
    }
}

#[test]
fn a_retransmitted_request_ends_nothing_and_a_new_connection_does() {
    let (mut frames, [first, answered, ..]) = two_transactions();
    let place = |time| {
        frames
            .iter()
            .position(|one| one.timestamp_ns == time)
            .unwrap()
    };
    let (first_at, end) = (place(first), place(answered) + 1);
    let mut again = frames[first_at].clone();
    again.timestamp_ns = answered + 1;
    let mut opening = frames[0].clone();
    opening.timestamp_ns = answered + 2;
    frames.truncate(end);
    frames.extend([again.clone(), opening, again]);
    let mut selector = Selector::default();
    selector.choose(choice(first, Until::NextRequest(answered)));
    let want: Vec<usize> = (first_at..=end).collect();
    assert_eq!(taken(&mut selector, &frames), want);
    // Nor does it go on behind a minute of silence.
    let mut late = frames[end].clone();
    late.timestamp_ns = answered + SILENCE_NS + SECOND;
    let mut selector = Selector::default();
    selector.choose(choice(first, Until::NextRequest(answered)));
    frames.truncate(end);
    frames.push(late);
    assert_eq!(
        taken(&mut selector, &frames),
        (first_at..end).collect::<Vec<_>>()
    );
}

#[test]
fn fragments_follow_the_first() {
    let (client, server) = (CLIENT.parse().unwrap(), SERVER.parse().unwrap());
    let segment = TcpFrame {
        payload: &[7; 3000],
        ..TcpFrame::new(client, server)
    };
    let parts = |id: u32| -> Vec<Vec<u8>> {
        let parts = fragments(&segment.to_packet(), id, 1000);
        parts
            .iter()
            .map(|part| wrap::ethernet(0x0800, part))
            .collect()
    };
    let mut selector = Selector::default();
    selector.choose(choice(10, Until::Time(20)));
    let (early, mine) = (parts(1), parts(2));
    let all = early.iter().map(|part| (5, part));
    let all = all.chain(mine.iter().map(|part| (15, part)));
    let taken: Vec<bool> = all
        .map(|(at, part)| selector.takes(&frame(at, part)))
        .collect();
    let (before, inside) = taken.split_at(early.len());
    assert!(before.iter().all(|taken| !taken) && inside.iter().all(|taken| *taken));
    assert!(inside.len() > 2);
}

#[test]
fn times_begin_end_and_are_counted() {
    let mut selector = Selector::default();
    assert!(selector.choose_time(10, Some(20)));
    assert!(selector.choose_time(30, None));
    let mut takes = |at| selector.takes(&frame(at, b""));
    assert_eq!(
        [9, 10, 20, 21, 30, 99].map(&mut takes),
        [false, true, true, false, true, true]
    );
    selector.end_time(30, 100);
    assert_eq!(
        [100, 101].map(|at| selector.takes(&frame(at, b""))),
        [true, false]
    );
    // Those that are over make room.
    for n in 0..10_000 {
        let from = 10 * SECOND + n * 10 * SECOND;
        assert!(selector.choose_time(from, Some(from + 1)), "{n}");
        assert!(selector.takes(&frame(from, b"")));
    }
    let mut never_over = (0..10_000).map(|_| selector.choose_time(0, None));
    assert!(never_over.any(|is_chosen| !is_chosen));
}

#[test]
fn what_left_the_ring_unwritten_is_counted() {
    let (frames, [first, answered, ..]) = two_transactions();
    let run = |max_bytes: usize| {
        let mut keeper = Keeper::new(
            Some(Ring::new(max_bytes, u64::MAX)),
            None,
            Written::default(),
        );
        for one in &frames {
            let reference = FrameRef {
                timestamp: Timestamp::from_nanos(one.timestamp_ns),
                offset: 0,
                captured_len: one.bytes.len() as u32,
                wire_len: one.wire_len,
                link: LinkType::ETHERNET,
                interface: 0,
            };
            keeper.batch(&Batch::new(&one.bytes, &[reference]));
        }
        keeper.choose(choice(first, Until::NextRequest(answered)));
        // Another connection is not the poorer for it.
        let mut other = choice(first, Until::NextRequest(answered));
        other.client.1 += 1;
        keeper.choose(other);
        let (written, counts) = keeper.finish();
        assert_eq!(written.packets, counts.packets);
        assert!(written.bytes.len() as u64 > counts.bytes);
        counts
    };
    let whole = run(1 << 20);
    assert_eq!((whole.chosen, whole.incomplete), (2, 0));
    assert!(whole.packets >= 5, "{whole:?}");
    let small = run(2_000);
    assert_eq!((small.chosen, small.incomplete), (2, 1));
    assert!(small.packets < whole.packets, "{small:?}");
}
