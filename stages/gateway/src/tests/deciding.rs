use linkweir_engine::effect::{Decision, Verdict};
use linkweir_record::gateway::GatewayEventKind;
use linkweir_record::{Place, RecordBatch as _};

use super::bed::{Bed, REQUEST, policy, response};
use crate::inspect::Side;
use crate::policy::{Action, Inspect, Keywords, NamePattern, NamePatterns, OnMatch, Policy, Rule};

#[test]
fn an_allowed_application_is_left_to_the_kernel() {
    let mut bed = Bed::new(policy(Action::Allow, Inspect::default()));
    bed.open();
    assert_eq!(bed.decision(), Decision::Undecided);
    bed.send(Side::Client, 0, REQUEST);
    assert_eq!(bed.decision(), Decision::Pass);
    // Packets that were queued before get the same answer.
    bed.send(Side::Server, 0, b"HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(bed.unanswered(), 0);
    assert_eq!(bed.stage.stats().connections, 0);
    assert_eq!(bed.events_of(GatewayEventKind::Decided), 1);
    assert_eq!(bed.at_server.stream(), REQUEST);
}

#[test]
fn a_rejected_application_is_reset_at_both_ends() {
    for (action, decision, resets) in [
        (Action::Drop, Decision::Drop, 0),
        (Action::Reject, Decision::Reject, 1),
    ] {
        let mut bed = Bed::new(policy(action, Inspect::default()));
        bed.open();
        bed.send(Side::Client, 0, REQUEST);
        assert_eq!(bed.decision(), decision);
        assert_eq!(bed.answers.last().map(|a| a.verdict), Some(Verdict::Repeat));
        assert_eq!(bed.resets.len(), resets);
        assert!(bed.at_server.stream().is_empty());
        if let Some(reset) = bed.resets.first() {
            // Nothing of the request was released.
            assert_eq!(
                reset.client_next.0,
                super::bed::CLIENT_FIRST.wrapping_add(1)
            );
            assert_eq!(reset.server_next.0, super::bed::SERVER_FIRST + 1);
        }
    }
}

#[test]
fn a_keyword_over_two_segments_blocks_what_follows() {
    let keywords = Keywords::new(vec!["secret plan".into()]).expect("keywords");
    for on_match in [OnMatch::Reject, OnMatch::Drop, OnMatch::Event] {
        let inspect = Inspect {
            keywords: Some(keywords.clone()),
            on_match,
            ..Inspect::default()
        };
        let mut bed = Bed::new(policy(Action::Inspect, inspect));
        bed.open();
        bed.send(Side::Client, 0, REQUEST);
        let answer = response(b"here is the Secret Plan, as asked");
        let cut = answer.len() - 20;
        let (head, tail) = answer.split_at(cut);
        bed.send(Side::Server, 0, head);
        assert_eq!(bed.at_client.stream(), head);
        bed.send(Side::Server, cut, tail);
        assert_eq!(bed.events_of(GatewayEventKind::Keyword), 1);
        let passes = on_match == OnMatch::Event;
        assert_eq!(bed.at_client.stream().len() == answer.len(), passes);
        assert_eq!(
            bed.events_of(GatewayEventKind::Blocked),
            usize::from(!passes)
        );
        assert_eq!(bed.resets.len(), usize::from(on_match == OnMatch::Reject));
    }
}

#[test]
fn a_file_name_is_judged_by_the_request() {
    let inspect = Inspect {
        file_names: NamePatterns(vec![NamePattern::new("*.MP3")]),
        ..Inspect::default()
    };
    let mut bed = Bed::new(policy(Action::Inspect, inspect));
    bed.open();
    bed.send(Side::Client, 0, REQUEST);
    assert_eq!(bed.events_of(GatewayEventKind::FileName), 1);
    assert!(
        bed.at_server.stream().is_empty(),
        "the request does not pass"
    );
}

#[test]
fn nothing_known_after_eight_packets_is_unknown() {
    let mut bed = Bed::new(policy(Action::Drop, Inspect::default()));
    bed.open();
    for at in 0..8 {
        assert_eq!(bed.decision(), Decision::Undecided, "after {at}");
        bed.send(Side::Client, at * 16, &[7; 16]);
    }
    // Another rule drops: what decided has to arrive first.
    assert_eq!(bed.events_of(GatewayEventKind::Decided), 1);
    bed.ack(Side::Server, 0, 7 * 16);
    assert_eq!(bed.decision(), Decision::Undecided);
    bed.ack(Side::Server, 0, 8 * 16);
    assert_eq!(bed.decision(), Decision::Pass);
}

#[test]
fn a_wrong_checksum_passes_untouched() {
    let mut bed = Bed::new(policy(Action::Drop, Inspect::default()));
    bed.open();
    let packet = {
        use linkweir_wire::TcpFlags;
        use linkweir_wire::emit::TcpFrame;
        let frame = TcpFrame {
            seq: linkweir_wire::SeqNumber(super::bed::CLIENT_FIRST.wrapping_add(1)),
            flags: TcpFlags::ACK,
            payload: REQUEST,
            ..TcpFrame::new(super::bed::client(), super::bed::server())
        };
        let mut bytes = frame.to_packet();
        *bytes.last_mut().expect("payload") ^= 1;
        bytes
    };
    let queued = linkweir_engine::QueuedPacket {
        id: 99,
        mark: 0,
        bytes: &packet,
        wire_len: u32::try_from(packet.len()).expect("a packet"),
        is_checksum_open: true,
    };
    bed.stage.on_packet(&queued, bed.now, &mut bed.effects);
    assert_eq!(bed.effects.answers.len(), 1);
    assert_eq!(
        bed.effects.answers.pop().map(|a| a.verdict),
        Some(Verdict::Accept)
    );
    assert_eq!(bed.stage.stats().bad_checksums, 1);
    assert_eq!(bed.decision(), Decision::Undecided);
}

/// The clock of this test says one more each time that it is looked at.
#[test]
fn a_timed_packet_says_what_it_took_where() {
    use std::cell::Cell;
    thread_local!(static LOOKS: Cell<u64> = const { Cell::new(0) });
    fn stamp() -> u64 {
        LOOKS.with(|looks| looks.replace(looks.get() + 1))
    }
    let keywords = Keywords::new(vec!["absent".into()]).expect("keywords");
    let inspect = Inspect {
        keywords: Some(keywords),
        ..Inspect::default()
    };
    let mut bed = Bed::new(policy(Action::Inspect, inspect));
    bed.open();
    bed.stamp = Some(stamp);
    bed.send(Side::Client, 0, REQUEST);
    // What was classified is inspected with it.
    assert_eq!(
        (bed.took.classify_ns, bed.took.inspect_ns),
        (Some(1), Some(1))
    );
    bed.send(Side::Server, 0, &response(b"nothing"));
    assert_eq!((bed.took.classify_ns, bed.took.inspect_ns), (None, Some(1)));
    bed.fin(Side::Client, REQUEST.len());
    assert_eq!(bed.took.classify_ns, None);
    let looks = LOOKS.get();
    bed.stamp = None;
    bed.fin(Side::Server, response(b"nothing").len());
    assert_eq!(LOOKS.get(), looks);
}

/// A database that has one address in a country and counts what it is asked.
#[derive(Debug)]
struct Countries {
    known: std::net::IpAddr,
    asked: std::sync::atomic::AtomicU32,
}

impl Countries {
    fn of(known: std::net::IpAddr) -> std::sync::Arc<Self> {
        let asked = std::sync::atomic::AtomicU32::new(0);
        std::sync::Arc::new(Self { known, asked })
    }
}

impl linkweir_record::Places for Countries {
    fn place(&self, address: std::net::IpAddr) -> Place {
        let order = std::sync::atomic::Ordering::Relaxed;
        self.asked.fetch_add(1, order);
        let country = if address == self.known { "NL" } else { "" };
        Place::new(country, 0)
    }
}

/// A policy that drops what goes to a country.
fn dropping(to: [u8; 2], places: std::sync::Arc<Countries>) -> Policy {
    let mut rule = Rule::any("far", 1, Action::Drop);
    rule.server_regions.countries = vec![to];
    Policy {
        rules: vec![std::sync::Arc::new(rule)],
        places: Some(places),
        ..policy(Action::Allow, Inspect::default())
    }
}

#[test]
fn a_country_is_dropped_with_the_first_packet() {
    let server = super::bed::server().ip();
    let places = Countries::of(server);
    let mut bed = Bed::new(dropping(*b"NL", std::sync::Arc::clone(&places)));
    bed.open();
    assert_eq!(bed.decision(), Decision::Drop);
    assert_eq!(bed.events_of(GatewayEventKind::Decided), 1);
    let event = bed.events.get(0).expect("the event");
    assert_eq!(event.row.places, [Place::default(), Place::new("NL", 0)]);
    for (to, known) in [
        // Another country, and an address that the database does not know.
        (*b"DE", server),
        (*b"NL", super::bed::client().ip()),
    ] {
        let places = Countries::of(known);
        let mut bed = Bed::new(dropping(to, std::sync::Arc::clone(&places)));
        bed.open();
        bed.send(Side::Client, 0, REQUEST);
        bed.send(Side::Server, 0, b"HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!(bed.decision(), Decision::Pass, "{to:?} {known}");
        let asked = places.asked.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(asked, 2, "each end is looked up once");
    }
}

#[test]
fn what_is_undecided_at_a_reload_is_decided_by_the_new_database() {
    let server = super::bed::server().ip();
    for (bytes_before, after, decision) in [
        (0, server, Decision::Drop),
        (10, server, Decision::Drop),
        (0, super::bed::client().ip(), Decision::Pass),
        (10, super::bed::client().ip(), Decision::Pass),
    ] {
        // Rules for HTTP: nothing is decided before the request.
        let with = |known| {
            let mut policy = policy(Action::Drop, Inspect::default());
            let mut rule = Rule::clone(&policy.rules[0]);
            rule.server_regions.countries = vec![*b"NL"];
            policy.rules = vec![std::sync::Arc::new(rule)];
            policy.places = Some(Countries::of(known));
            policy
        };
        let mut bed = Bed::new(policy(Action::Drop, Inspect::default()));
        bed.open();
        let (head, rest) = REQUEST.split_at(bytes_before);
        if !head.is_empty() {
            bed.send(Side::Client, 0, head);
        }
        bed.stage.set_policy(std::sync::Arc::new(with(after)));
        bed.send(Side::Client, bytes_before, rest);
        assert_eq!(bed.decision(), decision, "{bytes_before} {after}");
    }
}
