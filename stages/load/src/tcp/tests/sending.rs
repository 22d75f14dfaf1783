//! Data to the server: windows, loss, timers.

use super::super::TcpSettings;
use super::harness::{ACK, Bench, Event, Seg, options, settings};
use crate::seam::CloseReason;
use linkweir_wire::{SeqNumber, TcpFlags};

/// Places of segments, relative to `base`.
fn places(sent: &[Seg], base: SeqNumber) -> Vec<(i32, usize)> {
    sent.iter()
        .map(|seg| (seg.seq - base, seg.payload.len()))
        .collect()
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| u8::try_from(n % 251).unwrap()).collect()
}

#[test]
fn slow_start_begins_with_ten_segments_and_grows() {
    let mut bench = Bench::plain();
    let base = bench.ack;
    assert!(bench.send(&bytes(40_000)));
    let first = bench.sent();
    assert_eq!(first.len(), 10, "RFC 6928");
    let joined: Vec<u8> = first.iter().flat_map(|seg| seg.payload.clone()).collect();
    assert_eq!(joined, bytes(10_000));
    bench.pass(10);
    bench.acknowledge(base + 2000);
    assert_eq!(
        places(&bench.sent(), base),
        [(10_000, 1000), (11_000, 1000), (12_000, 1000)]
    );
    assert_eq!(bench.events(), []);
    let mut last = None;
    while bench.events() != [Event::Sent] {
        bench.pass(10);
        bench.acknowledge(bench.ack + 1000);
        last = bench.sent().pop().or(last);
    }
    let last = last.unwrap();
    assert_eq!(last.seq + last.len() - base, 40_000);
    assert!(last.has(TcpFlags::PSH));
    assert_eq!(bench.ack - base, 40_000);
    assert_eq!(bench.tcp.in_flight(), 0);
    assert_eq!(bench.counts().retransmissions, 0);
}

#[test]
fn the_window_of_the_server_is_kept() {
    let mut bench = Bench::plain();
    let base = bench.ack;
    bench.window = 2500;
    bench.hear(ACK, b"");
    bench.send(&bytes(4000));
    assert_eq!(
        places(&bench.sent(), base),
        [(0, 1000), (1000, 1000)],
        "no silly third"
    );
    bench.acknowledge(base + 1000);
    assert_eq!(places(&bench.sent(), base), [(2000, 1000)]);
}

#[test]
fn the_window_is_scaled_by_what_the_server_said() {
    let mut bench = Bench::established_with(settings(), options(Some(1000), Some(2), false, None));
    bench.sent();
    let base = bench.ack;
    bench.window = 1000;
    bench.hear(ACK, b"");
    bench.send(&bytes(9000));
    assert_eq!(bench.sent().len(), 4);
    // A segment from before what was heard last does not set it back.
    bench.seq += 5;
    bench.hear(ACK, b"x");
    bench.seq = bench.seq - 5;
    bench.sent();
    bench.window = 10;
    bench.acknowledge(base + 1000);
    assert_eq!(places(&bench.sent(), base), [(4000, 1000)]);
}

#[test]
fn a_closed_window_is_probed_with_backoff_as_long_as_it_is_answered() {
    let mut bench = Bench::plain();
    let base = bench.ack;
    bench.window = 0;
    bench.hear(ACK, b"");
    bench.send(&bytes(1500));
    assert_eq!(bench.sent(), []);
    let mut gaps = Vec::new();
    let mut last = bench.now;
    for _ in 0..30 {
        while bench.wire.0.is_empty() {
            bench.pass(1);
        }
        assert_eq!(places(&bench.sent(), base), [(0, 1)]);
        gaps.push(bench.now.nanos_since(last) / 1_000_000);
        last = bench.now;
        bench.hear(ACK, b"");
        assert_eq!(bench.sent(), [], "the same again is no loss");
    }
    assert!(
        gaps[0] <= 211 && gaps[1] >= 420 && gaps[29] >= 59_000,
        "{gaps:?}"
    );
    assert_eq!(bench.counts().window_probes, 30);
    bench.window = 4000;
    bench.hear(ACK, b"");
    assert_eq!(places(&bench.sent(), base), [(0, 1000), (1000, 500)]);
    bench.acknowledge(base + 1500);
    assert_eq!(bench.events(), [Event::Sent]);
}

#[test]
fn probes_that_nobody_answers_end_the_connection() {
    let mut bench = Bench::established_with(
        TcpSettings {
            retries: 3,
            ..settings()
        },
        options(Some(1000), None, false, None),
    );
    bench.window = 0;
    bench.hear(ACK, b"");
    bench.send(b"x");
    bench.events();
    bench.sent();
    bench.pass(60_000);
    assert_eq!(bench.events(), [Event::Closed(CloseReason::SendTimeout)]);
    assert_eq!(bench.sent().len(), 4, "three probes and a RST");
    bench.assert_empty();
}

#[test]
fn a_timeout_begins_anew_with_one_segment_and_doubles() {
    let mut bench = Bench::plain();
    let base = bench.ack;
    bench.send(&bytes(10_000));
    assert_eq!(bench.sent().len(), 10);
    // The round trip was 10 ms, and 200 ms are waited beyond it.
    bench.pass(209);
    assert_eq!(bench.sent(), []);
    bench.pass(2);
    assert_eq!(places(&bench.sent(), base), [(0, 1000)]);
    bench.pass(418);
    assert_eq!(bench.sent(), []);
    bench.pass(4);
    assert_eq!(places(&bench.sent(), base), [(0, 1000)]);
    assert_eq!(bench.counts().timeouts, 2);
    bench.acknowledge(base + 1000);
    assert_eq!(
        places(&bench.sent(), base),
        [(1000, 1000), (2000, 1000)],
        "slow start"
    );
    // Karn: what was sent again gives no sample, and the timeout stays doubled.
    assert_eq!(bench.counts().rtt_samples, 1);
    bench.pass(700);
    assert_eq!(bench.sent(), []);
    bench.acknowledge(base + 10_000);
    assert_eq!(bench.events(), [Event::Sent]);
    assert_eq!(bench.tcp.in_flight(), 0);
}

#[test]
fn data_that_is_never_acknowledged_ends_the_connection() {
    let mut bench = Bench::established_with(
        TcpSettings {
            retries: 2,
            ..settings()
        },
        options(Some(1000), None, false, None),
    );
    bench.send(b"x");
    bench.events();
    bench.sent();
    bench.pass(5000);
    let sent = bench.sent();
    assert_eq!(sent.len(), 3);
    assert!(sent[2].has(TcpFlags::RST));
    assert_eq!(bench.events(), [Event::Closed(CloseReason::SendTimeout)]);
    bench.assert_empty();
}

#[test]
fn three_duplicates_send_the_first_segment_again() {
    let mut bench = Bench::plain();
    let base = bench.ack;
    bench.send(&bytes(12_000));
    bench.sent();
    bench.pass(10);
    bench.hear(ACK, b"");
    bench.hear(ACK, b"");
    // Limited transmit: each duplicate says that a segment has left the network (RFC 3042).
    assert_eq!(
        places(&bench.sent(), base),
        [(10_000, 1000), (11_000, 1000)]
    );
    bench.hear(ACK, b"");
    assert_eq!(places(&bench.sent(), base), [(0, 1000)]);
    assert_eq!(
        (
            bench.counts().fast_retransmits,
            bench.counts().duplicate_acks
        ),
        (1, 3)
    );
    // A partial acknowledgment shows the next hole (RFC 6582).
    bench.acknowledge(base + 4000);
    assert_eq!(places(&bench.sent()[..1], base), [(4000, 1000)]);
    bench.acknowledge(base + 12_000);
    assert_eq!(bench.events(), [Event::Sent]);
    assert_eq!(bench.counts().timeouts, 0);
}

fn sack(base: SeqNumber, blocks: &[(u32, u32)]) -> Vec<u8> {
    let mut out = vec![1, 1, 5, u8::try_from(2 + 8 * blocks.len()).unwrap()];
    for (from, to) in blocks {
        out.extend_from_slice(&(base + *from).0.to_be_bytes());
        out.extend_from_slice(&(base + *to).0.to_be_bytes());
    }
    out
}

#[test]
fn selective_acknowledgments_send_the_holes_again_and_nothing_else() {
    let mut bench = Bench::with_sack();
    let base = bench.ack;
    bench.send(&bytes(10_000));
    bench.sent();
    bench.pass(10);
    // Lost: the first and the third.
    bench.hear_with(ACK, b"", sack(base, &[(1000, 2000)]));
    bench.hear_with(ACK, b"", sack(base, &[(3000, 4000), (1000, 2000)]));
    assert_eq!(bench.sent(), []);
    bench.hear_with(ACK, b"", sack(base, &[(3000, 5000), (1000, 2000)]));
    assert_eq!(places(&bench.sent(), base), [(0, 1000)]);
    for to in [6000, 7000, 8000, 9000, 10_000] {
        bench.hear_with(ACK, b"", sack(base, &[(3000, to), (1000, 2000)]));
    }
    assert_eq!(places(&bench.sent(), base), [(2000, 1000)]);
    assert_eq!(bench.counts().retransmissions, 2);
    bench.acknowledge(base + 10_000);
    assert_eq!(bench.events(), [Event::Sent]);
}

#[test]
fn selective_acknowledgments_of_what_was_never_sent_are_ignored() {
    let mut bench = Bench::with_sack();
    let base = bench.ack;
    bench.send(&bytes(4000));
    bench.sent();
    for blocks in [
        [(1000, 9000)],
        [(3000, 2000)],
        [(0, 1000)],
        [(0x8000_0000, 0x8000_1000)],
    ] {
        bench.hear_with(ACK, b"", sack(base, &blocks));
    }
    assert_eq!(bench.counts().duplicate_acks, 0);
    assert_eq!(bench.sent(), []);
}

#[test]
fn a_timeout_forgets_selective_acknowledgments() {
    let mut bench = Bench::with_sack();
    let base = bench.ack;
    bench.send(&bytes(3000));
    bench.sent();
    bench.hear_with(ACK, b"", sack(base, &[(1000, 2000)]));
    bench.pass(212);
    assert_eq!(places(&bench.sent(), base), [(0, 1000)]);
    bench.acknowledge(base + 1000);
    assert_eq!(places(&bench.sent(), base), [(1000, 1000), (2000, 1000)]);
}

#[test]
fn a_timestamp_tells_the_round_trip_of_what_was_sent_again() {
    let mut bench =
        Bench::established_with(settings(), options(Some(1000), None, false, Some((5, 1))));
    bench.sent();
    bench.send(b"x");
    bench.sent();
    bench.pass(212);
    let again = bench.one();
    bench.pass(30);
    bench.ack += 1;
    let echo = again.timestamps().unwrap().0;
    bench.hear_with(ACK, b"", options(None, None, false, Some((6, echo))));
    assert_eq!(bench.counts().rtt_samples, 1, "it is not exact");
    // But the timeout is no longer doubled.
    bench.send(b"y");
    bench.sent();
    // 200 ms beyond 7/8 of 10 ms and 1/8 of 30 ms.
    bench.pass(214);
    assert_eq!(bench.one().payload, b"y");
}

#[test]
fn a_full_pool_takes_nothing() {
    let mut bench = Bench::established_with(
        TcpSettings {
            send_pool: 10_000,
            ..settings()
        },
        options(Some(1000), None, false, None),
    );
    assert!(!bench.send(&bytes(11_000)));
    assert_eq!(
        (bench.counts().send_pool_full, bench.tcp.in_flight()),
        (1, 0)
    );
    assert!(bench.send(&bytes(9000)));
    assert!(!bench.send(&bytes(9000)));
    bench.acknowledge(bench.ack + 9000);
    assert!(bench.send(&bytes(9000)));
}
