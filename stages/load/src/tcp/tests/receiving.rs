//! Data from the server: order, windows, when it is acknowledged.
//!
//! Acknowledgments across the wrap of our own numbers.

use super::super::TcpSettings;
use super::harness::{ACK, Bench, Event, FIN, RST, Seg, options, settings};
use linkweir_wire::{LinkType, Timestamp, decode};
use std::time::Duration;

fn data(events: &[Event]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|event| match event {
            Event::Data(bytes) => bytes.clone(),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn every_second_full_segment_is_acknowledged_and_the_last_after_a_while() {
    let mut bench = Bench::plain();
    bench.say(ACK, &[1; 1460]);
    assert_eq!(bench.sent(), []);
    bench.say(ACK, &[2; 1460]);
    assert_eq!(bench.one().ack, bench.seq);
    bench.say(ACK, &[3; 1460]);
    bench.pass(39);
    assert_eq!(bench.sent(), []);
    bench.pass(2);
    assert_eq!(bench.one().ack, bench.seq);
    // A segment as offload makes it is many.
    bench.say(ACK, &[4; 60_000]);
    assert_eq!(bench.one().ack, bench.seq);
    assert_eq!(data(&bench.events()).len(), 3 * 1460 + 60_000);
    assert_eq!(bench.counts().payload_in, 3 * 1460 + 60_000);
    // Data of ours takes the acknowledgment along.
    bench.say(ACK, b"x");
    bench.send(b"y");
    assert_eq!(bench.one().ack, bench.seq);
    bench.acknowledge(bench.ack + 1);
    bench.pass(100);
    assert_eq!(bench.sent(), []);
}

#[test]
fn segments_out_of_order_come_in_order() {
    let mut bench = Bench::with_sack();
    let base = bench.seq;
    bench.say(ACK, b"one.");
    for (at, bytes) in [
        (8, &b"three."[..]),
        (18, b"five."),
        (14, b"four"),
        (8, b"three."),
    ] {
        bench.seq = base + at;
        bench.hear(ACK, bytes);
    }
    let sent = bench.sent();
    assert_eq!(sent.len(), 4, "each is answered at once");
    assert!(sent.iter().all(|seg| seg.ack == base + 4));
    assert_eq!(sent[0].sack(), [(base + 8, base + 14)]);
    assert_eq!(
        sent[1].sack(),
        [(base + 18, base + 23), (base + 8, base + 14)]
    );
    assert_eq!(sent[2].sack(), [(base + 8, base + 23)]);
    assert_eq!(data(&bench.events()), b"one.");
    bench.seq = base + 4;
    bench.hear(ACK, b"two.");
    assert_eq!(data(&bench.events()), b"two.three.fourfive.");
    let filled = bench.one();
    assert_eq!((filled.ack, filled.sack()), (base + 23, vec![]));
    assert_eq!(
        (bench.counts().out_of_order, bench.counts().duplicates),
        (4, 1)
    );
    assert_eq!(bench.tcp.in_flight(), 0);
}

#[test]
fn what_comes_again_is_delivered_once_and_acknowledged() {
    let mut bench = Bench::plain();
    bench.say(ACK, b"abcdef");
    bench.seq = bench.seq - 4;
    bench.hear(ACK, b"cdefgh");
    assert_eq!(data(&bench.events()), b"abcdefgh");
    bench.sent();
    bench.hear(ACK, b"cdef");
    assert_eq!(bench.one().ack, bench.seq + 6);
    assert_eq!(bench.counts().duplicates, 1);
    assert_eq!(bench.events(), []);
}

#[test]
fn a_fin_ahead_of_a_gap_waits_for_it() {
    for ahead in [&b"def"[..], b""] {
        let mut bench = Bench::plain();
        let base = bench.seq;
        bench.seq = base + 3;
        bench.hear(ACK | FIN, ahead);
        bench.hear(ACK | FIN, ahead);
        assert_eq!(bench.events(), []);
        bench.seq = base;
        bench.hear(ACK, b"abc");
        let mut events = bench.events();
        assert_eq!(events.pop(), Some(Event::PeerFinished));
        assert_eq!(data(&events), [b"abc", ahead].concat());
        let len = u32::try_from(ahead.len()).unwrap();
        assert_eq!(bench.sent().last().unwrap().ack, base + 4 + len);
        assert_eq!(bench.tcp.in_flight(), 0);
    }
}

#[test]
fn what_lies_outside_the_window_is_not_taken() {
    let mut bench = Bench::plain();
    let base = bench.seq;
    // Without scaling the window is 65,535.
    bench.seq = base + 65_535;
    bench.hear(ACK, b"x");
    assert_eq!(bench.one().ack, base);
    bench.seq = base + 65_534;
    bench.hear(ACK, b"x");
    assert_eq!(bench.counts().out_of_order, 1);
    bench.sent();
    // Of a segment that goes beyond, the part within is.
    bench.seq = base - 4000;
    bench.hear(ACK, &[5; 8000]);
    assert_eq!(data(&bench.events()).len(), 4000);
}

#[test]
fn pools_are_bounds_and_what_finds_no_room_comes_again() {
    let mut bench = Bench::established_with(
        TcpSettings {
            held_per_connection: 5000,
            receive_pool: 3000,
            ..settings()
        },
        options(Some(1000), None, true, None),
    );
    bench.sent();
    bench.events();
    let base = bench.seq;
    bench.seq = base + 4500;
    bench.hear(ACK, &[1; 1000]);
    assert_eq!(
        bench.counts().not_held,
        1,
        "more than a connection may hold"
    );
    bench.seq = base + 100;
    bench.hear(ACK, &[1; 4000]);
    assert_eq!(bench.counts().not_held, 2, "more than all may hold");
    bench.hear(ACK, &[1; 1000]);
    assert_eq!(bench.counts().not_held, 2);
    bench.seq = base;
    bench.hear(ACK, &[1; 100]);
    assert_eq!(data(&bench.events()).len(), 1100);
    bench.hear(ACK, &[1; 5500]);
    assert_eq!(data(&bench.events()).len(), 4400);
    assert_eq!(bench.tcp.in_flight(), 0);
}

#[test]
fn a_segment_that_was_cut_on_the_way_is_not_acknowledged() {
    let mut bench = Bench::plain();
    let syn = bench.syn.clone().unwrap();
    let seg = Seg {
        src: syn.dst,
        dst: syn.src,
        seq: bench.seq,
        ack: bench.ack,
        flags: ACK,
        window: 1000,
        options: vec![],
        payload: vec![1; 500],
    };
    let frame = seg.to_frame();
    let packet = decode(LinkType::ETHERNET, &frame[..200], 554).unwrap();
    bench.tcp.on_segment(
        &packet,
        3,
        bench.now,
        bench.now,
        &mut bench.wire,
        &mut bench.ear,
    );
    bench.pass(100);
    assert_eq!(
        (bench.counts().cut, bench.sent(), bench.events()),
        (1, vec![], vec![])
    );
    bench.say(ACK, &[1; 500]);
    assert_eq!(data(&bench.events()).len(), 500);
}

/// RFC 7323 sec. 5.
#[test]
fn old_timestamps_are_dropped_and_answered() {
    let start = u32::MAX - 10;
    let mut bench = Bench::established_with(
        settings(),
        options(Some(1000), None, false, Some((start, 1))),
    );
    bench.sent();
    bench.events();
    bench.ts = Some(start + 5);
    bench.say(ACK, b"a");
    // After the wrap.
    bench.ts = Some(3);
    bench.say(ACK, b"b");
    bench.pass(41);
    assert_eq!(
        bench.one().timestamps().map(|(_, echo)| echo),
        Some(start + 5),
        "of the first"
    );
    bench.say(ACK, b"c");
    bench.sent();
    bench.ts = Some(start + 6);
    bench.hear(ACK, b"d");
    let answer = bench.one();
    assert_eq!(
        (answer.ack, answer.timestamps().map(|(_, echo)| echo)),
        (bench.seq, Some(3))
    );
    assert_eq!(bench.counts().paws, 1);
    assert_eq!(data(&bench.events()), b"abc");
    // Without the option it is dropped silently; a RST needs none.
    bench.ts = None;
    bench.hear(ACK, b"d");
    assert_eq!((bench.counts().no_timestamp, bench.sent()), (1, vec![]));
    bench.hear(RST, b"");
    assert_eq!(bench.tcp.open(), 0);
}

#[test]
fn our_numbers_wrap_in_the_middle_of_an_upload() {
    // The initial sequence number is a clock of 4 us: turn it to just before the wrap.
    let bench = Bench::opened(settings());
    let left = u32::MAX - bench.syn.unwrap().seq.0;
    let mut bench = Bench::new(settings());
    bench.now = bench.now + Duration::from_micros(4 * (u64::from(left) - 4000));
    bench.open(&super::harness::opening(true)).unwrap();
    let first_port = bench.one();
    assert!(first_port.seq.0 > u32::MAX - 5000, "{}", first_port.seq);
    bench.ack = first_port.seq + 1;
    bench.syn = Some(first_port);
    bench.hear_with(
        super::harness::SYN | ACK,
        b"",
        options(Some(1000), None, false, None),
    );
    bench.seq += 1;
    bench.sent();
    bench.events();
    let bytes: Vec<u8> = (0..20_000_u32)
        .map(|n| u8::try_from(n % 253).unwrap())
        .collect();
    assert!(bench.send(&bytes));
    bench.close();
    let mut got: Vec<u8> = Vec::new();
    let mut lost = 0;
    let mut has_fin = false;
    for _ in 0..2000 {
        for seg in bench.sent() {
            lost += 1;
            // Every fifth is lost.
            if lost % 5 == 0 || seg.seq != bench.ack {
                continue;
            }
            got.extend_from_slice(&seg.payload);
            bench.ack += seg.len();
            has_fin |= seg.has(FIN);
        }
        bench.hear(ACK, b"");
        if has_fin {
            break;
        }
        bench.pass(500);
    }
    assert!(got == bytes, "{} bytes", got.len());
    assert!(has_fin);
    assert_eq!(bench.events(), [Event::Sent]);
    assert_ne!(bench.now, Timestamp::ZERO);
}
