//! Segments that somebody else made up: RFC 5961, and those of no connection.

use super::super::{Heard, TcpSettings};
use super::harness::{ACK, Bench, Event, FIN, RST, SYN, options, settings};
use crate::seam::CloseReason;

#[test]
fn a_reset_needs_the_exact_number() {
    let mut bench = Bench::plain();
    let base = bench.seq;
    bench.seq = base + 100;
    bench.hear(RST, b"");
    let challenge = bench.one();
    assert_eq!(
        (challenge.flags, challenge.ack),
        (ACK, base),
        "in the window: challenged"
    );
    bench.seq = base + 70_000;
    bench.hear(RST, b"");
    bench.seq = base - 1;
    bench.hear(RST, b"");
    assert_eq!(
        (bench.sent(), bench.tcp.open()),
        (vec![], 1),
        "outside: dropped"
    );
    assert_eq!(bench.counts().challenge_acks, 1);
    bench.seq = base;
    bench.hear(RST, b"");
    assert_eq!(bench.events(), [Event::Closed(CloseReason::Reset)]);
    assert_eq!((bench.sent(), bench.counts().resets_in), (vec![], 1));
    bench.assert_empty();
}

#[test]
fn a_syn_in_the_window_is_challenged() {
    let mut bench = Bench::plain();
    bench.seq += 10;
    bench.hear(SYN, b"");
    assert_eq!(bench.one().flags, ACK);
    assert_eq!((bench.counts().challenge_acks, bench.tcp.open()), (1, 1));
}

#[test]
fn an_acknowledgment_of_what_was_never_sent_is_challenged_and_dropped() {
    let mut bench = Bench::plain();
    let good = bench.ack;
    bench.ack = good + 1;
    bench.hear(ACK, b"poison");
    assert_eq!(bench.one().ack, bench.seq);
    bench.ack = good - 70_000;
    bench.hear(ACK, b"poison");
    assert_eq!(bench.one().ack, bench.seq);
    assert_eq!(bench.counts().bad_acks, 2);
    assert_eq!(bench.events(), []);
    // One that is old by less than a window may have been on its way.
    bench.ack = good - 1;
    bench.hear(ACK, b"late");
    assert_eq!(bench.events(), [Event::Data(b"late".to_vec())]);
}

#[test]
fn a_segment_without_ack_is_dropped() {
    let mut bench = Bench::plain();
    bench.hear(FIN, b"data");
    assert_eq!((bench.sent(), bench.events()), (vec![], vec![]));
}

#[test]
fn challenges_are_limited() {
    let mut bench = Bench::established_with(
        TcpSettings {
            challenge_acks_per_second: 3,
            ..settings()
        },
        options(Some(1000), None, false, None),
    );
    bench.sent();
    bench.seq += 5;
    for _ in 0..10 {
        bench.hear(RST, b"");
    }
    assert_eq!(bench.sent().len(), 3);
    assert_eq!(bench.counts().challenge_acks_limited, 7);
    bench.pass(1000);
    bench.hear(RST, b"");
    assert_eq!(bench.sent().len(), 1);
}

#[test]
fn keep_alives_are_answered() {
    let mut bench = Bench::plain();
    bench.seq = bench.seq - 1;
    for payload in [&b""[..], b"?"] {
        bench.hear(ACK, payload);
        assert_eq!(bench.one().ack, bench.seq + 1);
    }
    assert_eq!(bench.events(), []);
}

#[test]
fn strays_are_reset() {
    let mut bench = Bench::plain();
    let mut syn = bench.syn.clone().unwrap();
    syn.src.set_port(9);
    bench.syn = Some(syn);
    assert_eq!(bench.hear(ACK, b"data"), Heard::Stray);
    let reset = bench.one();
    assert_eq!(
        (reset.flags, reset.seq),
        (RST, bench.ack),
        "with ACK: at its number"
    );
    assert_eq!(bench.hear(SYN, b"data"), Heard::Stray);
    let reset = bench.one();
    assert_eq!((reset.flags, reset.seq.0), (RST | ACK, 0));
    assert_eq!(reset.ack, bench.seq + 5);
    assert_eq!(bench.hear(RST, b""), Heard::Stray);
    assert_eq!(bench.sent(), []);
    assert_eq!((bench.counts().strays, bench.counts().resets_out), (3, 2));
}

#[test]
fn a_reset_after_both_have_finished_is_no_fault() {
    for (pending, reason) in [
        (&b""[..], CloseReason::Finished),
        (b"lost", CloseReason::Reset),
    ] {
        let mut bench = Bench::plain();
        bench.say(ACK | FIN, b"");
        bench.send(pending);
        bench.close();
        bench.events();
        bench.hear(RST, b"");
        assert_eq!(bench.events(), [Event::Closed(reason)]);
        bench.assert_empty();
    }
}
