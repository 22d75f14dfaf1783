//! The ends of connections, in every order.

use super::super::{Heard, TcpSettings};
use super::harness::{ACK, Bench, Event, FIN, RST, opening, settings};
use crate::seam::CloseReason;

const FINISHED: Event = Event::Closed(CloseReason::Finished);

#[test]
fn the_server_first() {
    let mut bench = Bench::plain();
    bench.say(ACK | FIN, b"bye");
    assert_eq!(
        bench.sent(),
        [],
        "the acknowledgment may go with what follows"
    );
    assert_eq!(
        bench.events(),
        [Event::Data(b"bye".to_vec()), Event::PeerFinished]
    );
    // Half closed: we may still send.
    bench.send(b"more");
    let more = bench.one();
    assert_eq!(
        (more.payload.as_slice(), more.ack),
        (&b"more"[..], bench.seq)
    );
    bench.acknowledge(bench.ack + 4);
    bench.close();
    let fin = bench.one();
    assert!(fin.has(FIN) && fin.payload.is_empty());
    bench.acknowledge(fin.seq + 1);
    assert_eq!(bench.events(), [Event::Sent, FINISHED]);
    bench.assert_empty();
    assert_eq!(bench.tcp.in_time_wait(), 0, "the server waits, not we");
    assert_eq!(bench.hear(ACK, b""), Heard::Stray);
}

#[test]
fn a_fin_is_acknowledged_after_a_while_or_with_ours() {
    let mut bench = Bench::plain();
    bench.say(ACK | FIN, b"");
    bench.pass(41);
    assert_eq!(
        (bench.one().ack, bench.events()),
        (bench.seq, vec![Event::PeerFinished])
    );
    let mut bench = Bench::plain();
    bench.say(ACK | FIN, b"");
    bench.close();
    let only = bench.one();
    assert!(only.has(FIN) && only.ack == bench.seq);
}

#[test]
fn we_first_and_time_wait() {
    let mut bench = Bench::plain();
    bench.send(b"last");
    bench.close();
    assert!(!bench.send(b"too late"));
    let sent = bench.sent();
    assert_eq!(
        (sent[0].payload.as_slice(), sent[0].has(FIN)),
        (&b"last"[..], false)
    );
    assert!(sent[1].has(FIN), "the data was on its way already");
    bench.acknowledge(sent[1].seq + 1);
    assert_eq!(bench.events(), [Event::Sent]);
    // FIN-WAIT-2: data still comes.
    bench.say(ACK, b"answer");
    bench.say(ACK | FIN, b"");
    assert_eq!(
        bench.events(),
        [
            Event::Data(b"answer".to_vec()),
            Event::PeerFinished,
            FINISHED
        ]
    );
    let last = bench.one();
    assert_eq!((last.ack, last.seq), (bench.seq, sent[1].seq + 1));
    bench.assert_empty();
    assert_eq!(bench.tcp.in_time_wait(), 1);
    // Our last ACK was lost.
    bench.pass(800);
    bench.seq = bench.seq - 1;
    assert_eq!(bench.hear(ACK | FIN, b""), Heard::TimeWait);
    let again = bench.one();
    assert_eq!(
        (again.seq, again.ack, again.flags),
        (last.seq, last.ack, ACK)
    );
    bench.hear(RST | ACK, b"");
    assert_eq!(
        (bench.tcp.in_time_wait(), bench.sent()),
        (1, vec![]),
        "RFC 1337"
    );
    bench.pass(800);
    assert_eq!(bench.tcp.in_time_wait(), 1, "it began anew");
    bench.pass(300);
    assert_eq!(bench.tcp.in_time_wait(), 0);
    assert_eq!(bench.hear(ACK | FIN, b""), Heard::Stray);
}

#[test]
fn both_at_once() {
    let mut bench = Bench::plain();
    bench.close();
    let fin = bench.one();
    // Their FIN does not acknowledge ours: CLOSING.
    bench.say(ACK | FIN, b"");
    assert_eq!(bench.events(), [Event::PeerFinished]);
    assert_eq!(bench.one().ack, bench.seq);
    bench.acknowledge(fin.seq + 1);
    assert_eq!(bench.events(), [FINISHED]);
    assert_eq!(bench.tcp.in_time_wait(), 1);
    bench.assert_empty();
}

#[test]
fn both_in_one_segment() {
    let mut bench = Bench::plain();
    bench.close();
    bench.ack = bench.one().seq + 1;
    bench.say(ACK | FIN, b"end");
    assert_eq!(
        bench.events(),
        [Event::Data(b"end".to_vec()), Event::PeerFinished, FINISHED]
    );
    assert_eq!(bench.one().ack, bench.seq);
    bench.assert_empty();
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut bench = Bench::plain();
    bench.say(ACK | FIN, b"");
    bench.sent();
    bench.close();
    let fin = bench.one();
    bench.pass(212);
    let again = bench.one();
    assert_eq!((again.seq, again.has(FIN)), (fin.seq, true));
    assert_eq!(bench.counts().retransmissions, 1);
    // The server's FIN again, as our ACK was lost too.
    bench.seq = bench.seq - 1;
    bench.hear(ACK | FIN, b"");
    bench.sent();
    bench.seq += 1;
    bench.acknowledge(fin.seq + 1);
    assert!(bench.events().contains(&FINISHED));
    bench.assert_empty();
}

#[test]
fn a_fin_that_waits_for_the_servers_acknowledges_it() {
    let mut bench = Bench::plain();
    bench.say(ACK, b"all of it");
    bench.close_after_peer();
    assert!(!bench.send(b"too late"));
    assert_eq!(bench.sent(), [], "nothing but the FIN is still to say");
    bench.say(ACK | FIN, b"");
    let only = bench.one();
    assert!(only.has(FIN) && only.payload.is_empty());
    assert_eq!((only.seq, only.ack), (bench.ack, bench.seq));
    bench.acknowledge(only.seq + 1);
    let data = Event::Data(b"all of it".to_vec());
    assert_eq!(bench.events(), [data, Event::PeerFinished, FINISHED]);
    bench.assert_empty();
    assert_eq!(bench.tcp.in_time_wait(), 0, "the server waits, not we");
}

#[test]
fn a_fin_does_not_wait_for_longer_than_an_acknowledgment() {
    let mut bench = Bench::plain();
    bench.close_after_peer();
    // What is acknowledged meanwhile does not stop the clock.
    bench.pass(20);
    bench.say(ACK, &[7; 3000]);
    assert!(!bench.one().has(FIN));
    bench.pass(21);
    let fin = bench.one();
    assert!(fin.has(FIN) && fin.ack == bench.seq);
    bench.acknowledge(fin.seq + 1);
    bench.say(ACK | FIN, b"");
    assert_eq!(bench.tcp.in_time_wait(), 1, "we were first");
    bench.assert_empty();
}

#[test]
fn a_fin_that_waits_for_a_window_is_no_hurry() {
    let mut bench = Bench::plain();
    bench.window = 0;
    bench.say(ACK, b"no room");
    bench.close_after_peer();
    bench.pass(41);
    let only = bench.one();
    assert!(
        !only.has(FIN) && only.ack == bench.seq,
        "only the acknowledgment"
    );
    bench.pass(300);
    assert_eq!(bench.counts().window_probes, 1);
    assert!(bench.one().has(FIN));
}

#[test]
fn where_the_server_has_closed_nothing_is_waited_for() {
    let mut bench = Bench::plain();
    bench.say(ACK | FIN, b"");
    bench.close_after_peer();
    assert!(bench.one().has(FIN));
    let mut bench = Bench::opened(settings());
    bench.close_after_peer();
    bench.hear(super::harness::SYN | ACK, b"");
    bench.seq += 1;
    assert!(bench.one().has(FIN), "it was never used");
}

#[test]
fn a_fin_waits_for_the_data_before_it() {
    let mut bench = Bench::plain();
    bench.send(&[1; 15_000]);
    bench.close();
    assert!(bench.sent().iter().all(|seg| !seg.has(FIN)));
    bench.acknowledge(bench.ack + 5000);
    bench.acknowledge(bench.ack + 5000);
    let sent = bench.sent();
    assert!(sent.last().unwrap().has(FIN), "with the last data");
    assert_eq!(sent.iter().filter(|seg| seg.has(FIN)).count(), 1);
}

#[test]
fn a_server_that_never_finishes_is_given_up() {
    let mut bench = Bench::plain();
    bench.close();
    bench.ack = bench.one().seq + 1;
    bench.hear(ACK, b"");
    bench.pass(59_000);
    assert_eq!(bench.events(), []);
    bench.pass(1100);
    assert_eq!(bench.events(), [Event::Closed(CloseReason::Aborted)]);
    assert_eq!(bench.counts().fin_wait_2_timeouts, 1);
    assert!(bench.one().has(RST));
    bench.assert_empty();
}

#[test]
fn abort_resets_at_once() {
    let mut bench = Bench::plain();
    bench.send(&[1; 100]);
    bench.sent();
    bench
        .tcp
        .abort(bench.conn, bench.now, &mut bench.wire, &mut bench.ear);
    let reset = bench.one();
    assert_eq!((reset.flags, reset.seq), (RST | ACK, bench.ack + 100));
    assert_eq!(bench.events(), [Event::Closed(CloseReason::Aborted)]);
    bench.assert_empty();
    // An id that is old does nothing, to nobody.
    bench.open(&opening(true)).unwrap();
    let new = std::mem::replace(
        &mut bench.conn,
        crate::seam::ConnId {
            slot: 0,
            generation: 0,
        },
    );
    assert_eq!(new.slot, 0);
    assert!(!bench.send(b"x"));
    bench.close();
    bench
        .tcp
        .abort(bench.conn, bench.now, &mut bench.wire, &mut bench.ear);
    assert_eq!((bench.tcp.open(), bench.events()), (1, vec![]));
}

#[test]
fn a_connection_being_opened_is_aborted_silently() {
    let mut bench = Bench::opened(settings());
    bench
        .tcp
        .abort(bench.conn, bench.now, &mut bench.wire, &mut bench.ear);
    assert_eq!(bench.sent(), []);
    assert_eq!(bench.events(), [Event::Closed(CloseReason::Aborted)]);
    bench.assert_empty();
    // The SYN ACK that comes now is a stray.
    assert_eq!(bench.hear(super::harness::SYN | ACK, b""), Heard::Stray);
    assert_eq!((bench.one().seq, bench.counts().strays), (bench.ack, 1));
}

#[test]
fn a_port_in_time_wait_is_passed_over_and_then_used_again() {
    let mut bench = Bench::established_with(
        TcpSettings {
            first_port: 6000,
            last_port: 6001,
            ..settings()
        },
        vec![],
    );
    let (client_end, old) = (bench.syn.clone().unwrap().src, bench.conn);
    bench.close();
    bench.ack += 1;
    bench.say(ACK | FIN, b"");
    assert_eq!(bench.tcp.in_time_wait(), 1);
    bench.sent();
    bench.ear.0.clear();
    bench.open(&opening(true)).unwrap();
    let other = bench.one().src;
    assert_ne!(other, client_end);
    assert!(
        bench.open(&opening(true)).is_err(),
        "one is open, one waits"
    );
    bench.pass(1100);
    bench.sent();
    bench.open(&opening(true)).unwrap();
    let again = bench.one();
    assert_eq!(again.src, client_end);
    assert!(
        again.seq.after(bench.syn.clone().unwrap().seq),
        "numbers go on"
    );
    assert_ne!(bench.conn, old);
}
