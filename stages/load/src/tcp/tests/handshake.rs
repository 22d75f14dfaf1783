//! SYN, SYN ACK, and what goes wrong between them.

use std::time::Duration;

use super::super::{ConnectError, Heard, TcpSettings};
use super::harness::{ACK, Bench, Event, PLAIN, RST, SYN, Seg, opening, options, settings};
use crate::seam::CloseReason;

#[test]
fn a_syn_offers_what_is_set() {
    let bench = Bench::opened(settings());
    let syn = bench.syn.unwrap();
    assert_eq!(syn.flags, SYN);
    assert_eq!(syn.mss(), Some(1460));
    // 256 KiB need a shift of 3; the window of a SYN is not scaled.
    assert_eq!(syn.options[..6], [2, 4, 5, 180, 4, 2]);
    assert_eq!(syn.options[16..], [1, 3, 3, 3]);
    assert!(syn.timestamps().is_some_and(|(_, echo)| echo == 0));
    assert_eq!(syn.window, 0xffff);
    let mut bare = Bench::new(TcpSettings {
        timestamps: false,
        sack: false,
        ..settings()
    });
    let v6 = super::super::Opening {
        local: "2001:db8::4".parse().unwrap(),
        remote: "[2001:db8::1]:80".parse().unwrap(),
        ..opening(true)
    };
    bare.open(&v6).unwrap();
    let syn = bare.one();
    assert_eq!(syn.options, [2, 4, 5, 160, 1, 3, 3, 3], "1440 over IPv6");
}

#[test]
fn a_syn_ack_makes_the_connection_and_is_acknowledged() {
    let mut bench = Bench::established_with(
        settings(),
        options(Some(1460), Some(7), true, Some((900, 1))),
    );
    let ack = bench.one();
    assert_eq!(ack.flags, ACK);
    assert_eq!((ack.seq, ack.ack), (bench.ack, bench.seq));
    assert_eq!(ack.timestamps().map(|(_, echo)| echo), Some(900));
    assert_eq!(ack.window, 1 << 15, "256 KiB, scaled by 3");
    assert_eq!(
        bench.events(),
        [Event::Connected {
            handshake_ns: 10_000_000,
            syn_retransmissions: 0
        }]
    );
    assert_eq!(bench.counts().rtt_min_ns, 10_000_000);
    assert_eq!(bench.tcp.in_flight(), 0, "nothing is under way");
}

#[test]
fn a_server_with_syn_cookies_gets_plain_tcp() {
    let mut bench = Bench::established_with(settings(), PLAIN);
    let ack = bench.one();
    assert!(ack.options.is_empty());
    assert_eq!(ack.window, 0xffff);
    assert!(bench.send(&[7; 600]));
    let sent = bench.sent();
    let lens: Vec<usize> = sent.iter().map(|seg| seg.payload.len()).collect();
    assert_eq!(
        lens,
        [536, 64],
        "without the option a segment has 536 bytes"
    );
}

#[test]
fn a_lost_syn_is_sent_again_with_backoff_and_given_up() {
    let mut bench = Bench::opened(TcpSettings {
        syn_retries: 3,
        ..settings()
    });
    let first = bench.syn.clone().unwrap();
    for (wait, n) in [(1000, 1), (2000, 2), (4000, 3)] {
        bench.pass(wait - 3);
        assert_eq!(bench.sent(), [], "not before {wait} ms");
        bench.pass(4);
        let again = bench.one();
        assert_eq!((again.seq, again.flags), (first.seq, SYN));
        assert_ne!(again.timestamps(), first.timestamps(), "the clock goes on");
        assert_eq!(bench.counts().syn_retransmissions, n);
    }
    bench.pass(9000);
    assert_eq!(bench.sent(), [], "no RST: the server knows nothing");
    assert_eq!(bench.events(), [Event::Closed(CloseReason::ConnectTimeout)]);
    bench.assert_empty();
}

#[test]
fn after_a_lost_syn_the_first_window_is_one_segment_and_the_timeout_3_s() {
    let mut bench = Bench::opened(TcpSettings {
        timestamps: false,
        ..settings()
    });
    bench.pass(1500);
    bench.sent();
    bench.hear_with(SYN | ACK, b"", options(Some(1000), None, false, None));
    bench.seq += 1;
    assert!(matches!(
        bench.events()[..],
        [Event::Connected {
            handshake_ns: 1_500_000_000,
            syn_retransmissions: 1
        }]
    ));
    bench.sent();
    bench.send(&[1; 5000]);
    assert_eq!(bench.one().payload.len(), 1000);
    bench.pass(2990);
    assert_eq!(bench.sent(), [], "RFC 6298 (5.7)");
    bench.pass(20);
    assert_eq!(bench.one().payload.len(), 1000);
}

#[test]
fn a_syn_ack_that_comes_again_is_acknowledged_again() {
    let mut bench = Bench::plain();
    bench.seq = bench.seq - 1;
    bench.hear_with(SYN | ACK, b"", options(Some(1000), None, false, None));
    let again = bench.one();
    assert_eq!((again.flags, again.ack), (ACK, bench.seq + 1));
    assert_eq!(bench.events(), []);
}

#[test]
fn data_with_the_syn_ack_is_left_to_come_again() {
    let mut bench = Bench::opened(settings());
    bench.hear_with(SYN | ACK, b"early", PLAIN);
    assert_eq!(bench.one().ack, bench.seq + 1);
    assert!(matches!(bench.events()[..], [Event::Connected { .. }]));
    bench.seq += 1;
    bench.say(ACK, b"early");
    assert_eq!(bench.events(), [Event::Data(b"early".to_vec())]);
}

#[test]
fn a_request_given_before_goes_with_the_acknowledgment() {
    let mut bench = Bench::opened(settings());
    assert!(bench.send(b"GET"));
    assert_eq!(bench.sent(), []);
    bench.hear_with(SYN | ACK, b"", PLAIN);
    let first = bench.one();
    assert_eq!(
        (first.payload.as_slice(), first.seq),
        (&b"GET"[..], bench.ack)
    );
    assert_eq!(first.ack, bench.seq + 1);
}

#[test]
fn the_acknowledgment_may_wait_for_the_request() {
    let mut bench = Bench::established_with(
        TcpSettings {
            delay_handshake_ack: true,
            ..settings()
        },
        PLAIN,
    );
    assert_eq!(bench.sent(), []);
    bench.pass(41);
    assert_eq!(bench.one().flags, ACK, "but not for long");
}

#[test]
fn closed_before_it_is_made_it_finishes_at_once() {
    let mut bench = Bench::opened(settings());
    bench.send(b"x");
    bench.close();
    assert!(!bench.send(b"y"));
    bench.hear_with(SYN | ACK, b"", PLAIN);
    let only = bench.one();
    assert!(only.has(super::harness::FIN) && only.payload == b"x");
}

#[test]
fn a_reset_refuses_only_with_our_number() {
    let mut bench = Bench::opened(settings());
    bench.hear_with(RST, b"", PLAIN);
    bench.ack += 1;
    bench.hear_with(RST | ACK, b"", PLAIN);
    assert_eq!(bench.events(), []);
    bench.ack = bench.ack - 1;
    bench.hear_with(RST | ACK, b"", PLAIN);
    assert_eq!(bench.events(), [Event::Closed(CloseReason::Refused)]);
    assert_eq!(bench.sent(), []);
    bench.assert_empty();
}

#[test]
fn an_answer_to_another_syn_is_reset_and_a_bare_syn_dropped() {
    let mut bench = Bench::opened(settings());
    bench.ack += 5;
    bench.hear_with(SYN | ACK, b"", PLAIN);
    let reset = bench.one();
    assert_eq!((reset.flags, reset.seq), (RST, bench.ack));
    bench.hear_with(SYN, b"", PLAIN);
    assert_eq!((bench.sent(), bench.events()), (vec![], vec![]));
    assert_eq!(bench.counts().simultaneous_opens, 1);
    assert_eq!(bench.tcp.open(), 1);
}

#[test]
fn two_hosts_make_one_connection() {
    let mut init = Bench::new(settings());
    let mut stat = Bench::new(settings());
    for n in 0..5 {
        let planned = init.now + Duration::from_millis(n * 3);
        let port = init
            .tcp
            .syn_only(&opening(true), planned, &mut init.wire)
            .unwrap();
        // Made ahead of its time.
        stat.conn = stat
            .tcp
            .connect(&opening(false), planned, &mut stat.wire)
            .unwrap();
        assert_eq!(stat.tcp.local_port(stat.conn), port);
        assert_eq!(stat.sent(), [], "the other host sends it");
        let syn = init.one();
        let syn_ack = Seg {
            src: syn.dst,
            dst: syn.src,
            seq: stat.seq,
            ack: syn.seq + 1,
            flags: SYN | ACK,
            window: 1000,
            options: PLAIN,
            payload: vec![],
        };
        stat.now = planned + Duration::from_millis(2);
        assert_eq!(stat.hear_seg(&syn_ack), Heard::Known);
        assert_eq!(stat.one().seq, syn.seq + 1);
        assert_eq!(
            stat.events(),
            [Event::Connected {
                handshake_ns: 2_000_000,
                syn_retransmissions: 0
            }]
        );
    }
    assert_eq!((init.tcp.open(), stat.tcp.open()), (0, 5));
    // The SYN of a connection that is lost on the way is sent again by the second host: the same.
    let planned = stat.now + Duration::from_secs(1);
    init.tcp
        .syn_only(&opening(true), planned, &mut init.wire)
        .unwrap();
    stat.tcp
        .connect(&opening(false), planned, &mut stat.wire)
        .unwrap();
    stat.pass(2010);
    let (first, again) = (init.one(), stat.one());
    assert_eq!(
        (again.seq, again.src, again.flags),
        (first.seq, first.src, SYN)
    );
}

#[test]
fn ports_are_used_in_turn_and_again() {
    let mut bench = Bench::new(TcpSettings {
        first_port: 5000,
        last_port: 5002,
        ..settings()
    });
    let mut ports = Vec::new();
    let mut conns = Vec::new();
    for _ in 0..3 {
        bench.open(&opening(true)).unwrap();
        ports.push(bench.tcp.local_port(bench.conn));
        conns.push(bench.conn);
    }
    ports.sort_unstable();
    assert_eq!(ports, [5000, 5001, 5002]);
    assert_eq!(bench.open(&opening(true)), Err(ConnectError::NoPort));
    // Another client and another server have ports of their own.
    let other = super::super::Opening {
        client: 4,
        local: "10.0.0.5".parse().unwrap(),
        ..opening(true)
    };
    bench.open(&other).unwrap();
    let other = super::super::Opening {
        remote: "192.0.2.1:81".parse().unwrap(),
        ..opening(true)
    };
    bench.open(&other).unwrap();
    assert_eq!(bench.tcp.open(), 5);
    let free = bench.tcp.local_port(conns[1]);
    bench
        .tcp
        .abort(conns[1], bench.now, &mut bench.wire, &mut bench.ear);
    assert_eq!(bench.tcp.local_port(conns[1]), 0);
    bench.open(&opening(true)).unwrap();
    assert_eq!(
        bench.tcp.local_port(bench.conn),
        free,
        "what is open is passed over"
    );
    // Where another host sends the SYN nothing is.
    assert_eq!(bench.open(&opening(false)), Err(ConnectError::NoPort));
    let nobody = super::super::Opening {
        client: 16,
        ..opening(true)
    };
    assert_eq!(bench.open(&nobody), Err(ConnectError::NoPort));
}

#[test]
fn the_most_connections_are_a_bound() {
    let mut bench = Bench::new(TcpSettings {
        max_connections: 2,
        ..settings()
    });
    bench.open(&opening(true)).unwrap();
    bench.open(&opening(true)).unwrap();
    assert_eq!(bench.open(&opening(true)), Err(ConnectError::NoRoom));
    bench
        .tcp
        .abort(bench.conn, bench.now, &mut bench.wire, &mut bench.ear);
    bench.open(&opening(true)).unwrap();
}
