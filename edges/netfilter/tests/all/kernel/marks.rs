//! How the mark of a verdict becomes the mark of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use linkweir_engine::Verdict;
use linkweir_netfilter::conntrack::{clear_marks, count_marks};
use linkweir_testkit::netns::until;

use super::lane::{Lane, Version, is_inside, matched, rule};
use super::peer::Peer;
use super::service::Service;

/// The bits that are ours in these tests.
const MASK: u32 = 0x0fff_0000;
const DECIDED: u32 = 0x000a_0000;

/// Opens a connection on which each end has sent something.
fn say_hello(client: &mut Peer, server: &mut Peer, to: SocketAddr) {
    server.must(&format!("listen {to}"));
    server.tell("accept");
    client.must(&format!("connect {to}"));
    assert_eq!(server.hear(), "ok");
    client.must("send hello");
    assert_eq!(server.ask("receive"), "hello");
    server.must("send welcome");
    assert_eq!(client.ask("receive"), "welcome");
}

#[test]
fn an_accepted_packet_takes_its_mark_to_the_connection() {
    if !is_inside("kernel::marks::an_accepted_packet_takes_its_mark_to_the_connection") {
        return;
    }
    let lane = Lane::new();
    rule("FORWARD -j CONNMARK --restore-mark");
    rule("FORWARD -p tcp -m mark --mark 0/0x0fff0000 -j NFQUEUE --queue-num 7");
    rule("POSTROUTING -m mark ! --mark 0/0x0fff0000 -j CONNMARK --save-mark");
    let (mut client, mut server) = (lane.client(), lane.server());
    for version in Version::BOTH {
        let service = Service::start(7, |seen| {
            let is_last = seen.payload == b"decide";
            Some((Verdict::Accept, is_last.then_some(DECIDED)))
        });
        say_hello(&mut client, &mut server, version.server(80));
        assert_eq!(count_marks(MASK).unwrap().get(&DECIDED), None);
        client.must("send decide");
        assert_eq!(server.ask("receive"), "decide");
        assert_eq!(count_marks(MASK).unwrap().get(&DECIDED), Some(&1));
        while service.next().payload != b"decide" {}
        // From now on the kernel asks no more, in either direction.
        for _ in 0..3 {
            client.must("send more");
            assert_eq!(server.ask("receive"), "more");
            server.must("send answer");
            assert_eq!(client.ask("receive"), "answer");
        }
        assert!(service.is_quiet(), "{version:?}");
        service.end();
        clear_marks(MASK).unwrap();
    }
}

#[test]
fn a_repeated_packet_meets_the_rules_again_with_its_new_mark() {
    if !is_inside("kernel::marks::a_repeated_packet_meets_the_rules_again_with_its_new_mark") {
        return;
    }
    let lane = Lane::new();
    // Only where the packet has no mark of its own: that of a verdict is to stay.
    rule("FORWARD -m mark --mark 0/0x0fff0000 -j CONNMARK --restore-mark");
    rule("FORWARD -m mark ! --mark 0/0x0fff0000 -j CONNMARK --save-mark");
    rule("FORWARD -m mark ! --mark 0/0x0fff0000 -j DROP");
    rule("FORWARD -p tcp -j NFQUEUE --queue-num 7");
    let (mut client, mut server) = (lane.client(), lane.server());
    for (version, decided) in Version::BOTH.into_iter().zip(1..) {
        let service = Service::start(7, |seen| {
            Some(if seen.payload.starts_with(b"drop") {
                (Verdict::Repeat, Some(DECIDED))
            } else {
                (Verdict::Accept, None)
            })
        });
        say_hello(&mut client, &mut server, version.server(80));
        assert_eq!(matched(version, "FORWARD")[1..3], [0, 0]);
        client.must("send drop me");
        while service.next().payload != b"drop me" {}
        // The first is the packet itself, the others are its retransmissions; none is queued again.
        assert_eq!(server.ask("receive-nothing"), "error WouldBlock");
        let [saved, dropped] = matched(version, "FORWARD")[1..3] else {
            panic!("four rules");
        };
        assert!(saved >= 1 && dropped >= 1, "{saved} {dropped}");
        assert_eq!(count_marks(MASK).unwrap().get(&DECIDED), Some(&decided));
        assert!(service.is_quiet(), "{version:?}");
        service.end();
    }
}

#[test]
fn a_first_packet_that_is_dropped_leaves_no_mark() {
    if !is_inside("kernel::marks::a_first_packet_that_is_dropped_leaves_no_mark") {
        return;
    }
    let lane = Lane::new();
    rule("FORWARD -m mark ! --mark 0/0x0fff0000 -j CONNMARK --save-mark");
    rule("FORWARD -m mark ! --mark 0/0x0fff0000 -j DROP");
    rule("FORWARD -p udp -j NFQUEUE --queue-num 7");
    let mut client = lane.client();
    for version in Version::BOTH {
        client.must(&format!("bind {}", version.client(5000)));
        let service = Service::start(7, |_| Some((Verdict::Repeat, Some(DECIDED))));
        for round in 1..=2 {
            // The kernel keeps a connection once its first packet has passed, and this one does not:
            // the next packet is the first again.
            client.must(&format!("datagram {} text", version.server(5001)));
            assert_eq!(service.next().mark, 0);
            let is_dropped = || matched(version, "FORWARD")[1] == round;
            assert!(until(Duration::from_secs(10), is_dropped));
            assert_eq!(count_marks(MASK).unwrap().get(&DECIDED), None);
        }
        service.end();
    }
}
