//! Packets that would have the gateway read what their receiver does not.

use std::net::SocketAddr;
use std::sync::Arc;

use linkweir_engine::effect::{Decision, Verdict};
use linkweir_record::gateway::GatewayEventKind;
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{SeqNumber, TcpFlags};

use super::bed::{
    Bed, CLIENT_FIRST, REQUEST, SERVER_FIRST, VIRUS, policy, response, scanning, segment, server,
};
use crate::inspect::Side;
use crate::policy::{Action, Fail, Inspect, Policy, Rule};

/// Kind, length and value of timestamps.
fn timestamps(value: u32) -> Vec<u8> {
    let mut option = vec![1, 1, 8, 10];
    option.extend(value.to_be_bytes());
    option.extend([0; 4]);
    option
}

/// HTTP is rejected; what is unknown passes.
fn rejecting(rule_fail: Fail, fail: Fail) -> Policy {
    let with = |rule: &Rule, fail| {
        Arc::new(Rule {
            fail,
            ..rule.clone()
        })
    };
    let mut policy = policy(Action::Reject, Inspect::default());
    policy.rules = vec![with(&policy.rules[0], rule_fail)];
    policy.default = with(&policy.default, fail);
    policy
}

fn open_with_timestamps(bed: &mut Bed) {
    let [of_client, of_server] = [timestamps(1000), timestamps(5000)];
    let syn = TcpFrame {
        seq: SeqNumber(CLIENT_FIRST),
        flags: TcpFlags::SYN,
        options: &of_client,
        ..segment(Side::Client)
    };
    bed.segment(Side::Client, &syn);
    let answer = TcpFrame {
        seq: SeqNumber(SERVER_FIRST),
        flags: TcpFlags::SYN | TcpFlags::ACK,
        options: &of_server,
        ..segment(Side::Server)
    };
    bed.segment(Side::Server, &answer);
    // An acknowledgment with a high one, behind which nothing older is taken.
    let high = timestamps(2000);
    let ack = TcpFrame {
        options: &high,
        ..segment(Side::Client)
    };
    bed.segment(Side::Client, &ack);
}

#[test]
fn a_first_segment_that_the_server_ignores_does_not_choose_the_application() {
    const SSH: &[u8] = b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n";
    const MD5: &[u8] = &[1, 1, 19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let old = timestamps(1500);
    let now = timestamps(2000);
    let first = TcpFrame {
        payload: SSH,
        options: &now,
        ..segment(Side::Client)
    };
    let decoys = [
        (
            "no ACK",
            TcpFrame {
                flags: TcpFlags::PSH,
                ..first
            },
        ),
        (
            "no flags",
            TcpFrame {
                flags: TcpFlags(0),
                ..first
            },
        ),
        (
            "MD5",
            TcpFrame {
                options: MD5,
                ..first
            },
        ),
        (
            "an old timestamp",
            TcpFrame {
                options: &old,
                ..first
            },
        ),
        (
            "an acknowledgment of what was not sent",
            TcpFrame {
                ack: first.ack + 90_000,
                ..first
            },
        ),
        (
            "an acknowledgment before the first byte",
            TcpFrame {
                ack: first.ack - 90_000,
                ..first
            },
        ),
    ];
    for (what, decoy) in decoys {
        let mut bed = Bed::new(rejecting(Fail::Open, Fail::Open));
        open_with_timestamps(&mut bed);
        bed.segment(Side::Client, &decoy);
        assert_eq!(bed.stage.stats().implausible, 1, "{what}");
        assert_eq!(bed.decision(), Decision::Undecided, "{what}");
        let request = TcpFrame {
            payload: REQUEST,
            options: &now,
            ..segment(Side::Client)
        };
        bed.segment(Side::Client, &request);
        assert_eq!(bed.decision(), Decision::Reject, "{what}");
    }
}

#[test]
fn an_urgent_byte_before_the_decision() {
    for (rule, passes) in [(Fail::Open, true), (Fail::Closed, false)] {
        let mut bed = Bed::new(rejecting(rule, Fail::Open));
        bed.open();
        let urgent = TcpFrame {
            payload: REQUEST,
            flags: TcpFlags::ACK | TcpFlags::URG,
            urgent_pointer: 3,
            ..segment(Side::Client)
        };
        bed.segment(Side::Client, &urgent);
        let told = if passes {
            GatewayEventKind::Limit
        } else {
            GatewayEventKind::Blocked
        };
        assert_eq!(bed.events_of(told), 1);
        assert_eq!(bed.decision() == Decision::Pass, passes);
        assert_eq!(bed.at_server.stream().is_empty(), !passes);
    }
}

#[test]
fn a_server_that_answers_with_a_syn_does_not_become_the_client() {
    let mut bed = Bed::new(rejecting(Fail::Open, Fail::Open));
    bed.packet(Side::Client, CLIENT_FIRST, TcpFlags::SYN, &[]);
    bed.packet(Side::Server, SERVER_FIRST, TcpFlags::SYN, &[]);
    assert_eq!(bed.answers.last().map(|a| a.verdict), Some(Verdict::Drop));
    let answer = TcpFlags::SYN | TcpFlags::ACK;
    bed.packet(Side::Server, SERVER_FIRST, answer, b"early");
    assert_eq!(bed.answers.last().map(|a| a.verdict), Some(Verdict::Drop));
    bed.packet(Side::Server, SERVER_FIRST, answer, &[]);
    assert_eq!(bed.answers.last().map(|a| a.verdict), Some(Verdict::Accept));
    assert_eq!(bed.stage.stats().implausible, 2);
}

#[test]
fn without_its_beginning_a_connection_is_what_fail_says() {
    for (fail, decision) in [
        (Fail::Open, Decision::Undecided),
        (Fail::Closed, Decision::Reject),
    ] {
        let mut bed = Bed::new(rejecting(Fail::Open, fail));
        bed.send(Side::Client, 0, b"in the middle");
        assert_eq!(bed.decision(), decision);
        assert_eq!(bed.resets.len(), usize::from(fail == Fail::Closed));
        assert_eq!(bed.stage.stats().resumed, 1);
        let limits = usize::from(fail == Fail::Open);
        assert_eq!(bed.events_of(GatewayEventKind::Limit), limits);
        assert_eq!(bed.events_of(GatewayEventKind::Blocked), 1 - limits);
    }
}

#[test]
fn both_ends_of_a_download_that_is_met_midstream_are_reset() {
    let mut policy = rejecting(Fail::Open, Fail::Open);
    let default = Arc::get_mut(&mut policy.default).expect("nobody else has it");
    default.action = Action::Reject;
    let mut bed = Bed::new(policy);
    let body = [0x5a; 1000];
    for at in 0..8 {
        bed.send(Side::Server, at * body.len(), &body);
    }
    let [reset] = bed.resets.as_slice() else {
        panic!("{:?}", bed.resets);
    };
    // Nothing of the client came: what the server acknowledges is what it expects.
    assert_eq!(reset.client_next.0, CLIENT_FIRST.wrapping_add(1));
    assert!(reset.server_next.0 > SERVER_FIRST, "{reset:?}");
}

#[test]
fn what_comes_before_the_first_bytes_is_not_old() {
    for (rule, events) in [(Fail::Open, (2, 0)), (Fail::Closed, (1, 1))] {
        let mut bed = Bed::new(rejecting(rule, Fail::Open));
        // The tail of a request, and then its head, of a connection whose handshake was pushed out.
        let (head, tail) = REQUEST.split_at(20);
        bed.send(Side::Client, head.len(), tail);
        bed.send(Side::Client, 0, head);
        assert_eq!(bed.at_server.stream() == REQUEST, rule == Fail::Open);
        let limits = bed.events_of(GatewayEventKind::Limit);
        assert_eq!((limits, bed.events_of(GatewayEventKind::Blocked)), events);
    }
}

#[test]
fn a_flood_of_syns_pushes_out_no_handshake_that_is_complete() {
    let mut policy = rejecting(Fail::Open, Fail::Closed);
    policy.limits.half_open = 16;
    let mut bed = Bed::new(policy);
    bed.open();
    for port in 1..1000 {
        let syn = TcpFrame {
            flags: TcpFlags::SYN,
            ..TcpFrame::new(SocketAddr::from(([10, 0, 0, 9], port)), server())
        };
        bed.segment(Side::Client, &syn);
    }
    assert_eq!(bed.stage.stats().half_open, 17);
    bed.send(Side::Client, 0, REQUEST);
    assert_eq!(bed.stage.stats().resumed, 0);
    assert_eq!(bed.events_of(GatewayEventKind::Decided), 1);
}

/// A TCP segment in IPv6, behind so many headers of destination options.
fn behind_options(count: usize) -> Vec<u8> {
    let frame = TcpFrame {
        payload: b"SSH-2.0-x\r\n",
        ..TcpFrame::new(
            "[2001:db8::1]:40000".parse().expect("an address"),
            "[2001:db8::2]:80".parse().expect("an address"),
        )
    };
    let mut bytes = frame.to_packet();
    let options = [[60, 0, 1, 4, 0, 0, 0, 0]; 32];
    let mut headers = options[..count].concat();
    if let Some(last) = count.checked_sub(1) {
        headers[last * 8] = std::mem::replace(&mut bytes[6], 60);
    }
    let length =
        u16::from_be_bytes([bytes[4], bytes[5]]) + u16::try_from(headers.len()).expect("small");
    bytes[4..6].copy_from_slice(&length.to_be_bytes());
    bytes.splice(40..40, headers);
    bytes
}

#[test]
fn a_packet_that_is_not_decoded_gets_no_mark() {
    for (fail, verdict, told) in [
        (Fail::Open, Verdict::Accept, GatewayEventKind::Limit),
        (Fail::Closed, Verdict::Drop, GatewayEventKind::Blocked),
    ] {
        let mut bed = Bed::new(rejecting(fail, Fail::Open));
        for _ in 0..3 {
            let answer = bed.raw(&behind_options(17)).expect("an answer");
            assert_eq!((answer.verdict, answer.mark), (verdict, None));
        }
        assert_eq!(bed.stage.stats().undecoded, 3);
        assert_eq!(bed.events_of(told), 1, "one in a second");
        bed.advance(1_000_000_000);
        bed.raw(&behind_options(17));
        assert_eq!(bed.events_of(told), 2);
        bed.raw(&behind_options(15));
        assert_eq!(bed.stage.stats().undecoded, 4);
    }
}

#[test]
fn a_tunnel_is_what_its_outer_ports_say() {
    let mut policy = rejecting(Fail::Open, Fail::Open);
    policy.default = Arc::new(Rule::any("default", 0, Action::Drop));
    let mut bed = Bed::new(policy);
    let inner = TcpFrame {
        payload: b"x",
        ..segment(Side::Server)
    };
    let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &inner.to_vec()].concat();
    let length = u16::try_from(vxlan.len()).expect("small");
    let mut bytes = vec![0x45, 0];
    bytes.extend((length + 28).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(4000_u16.to_be_bytes());
    bytes.extend(4789_u16.to_be_bytes());
    bytes.extend((length + 8).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(vxlan);
    let marks = linkweir_engine::effect::MarkLayout::default();
    let answers = (0..8).filter_map(|_| bed.raw(&bytes));
    let marks = answers
        .filter_map(|answer| answer.mark)
        .map(|mark| marks.read(mark).decision);
    assert_eq!(marks.collect::<Vec<_>>().first(), Some(&Decision::Drop));
    assert_eq!(bed.stage.stats().strangers, 0);
}

/// The decoy stands in the gateway's stream, the real bytes come behind it.
#[test]
fn a_decoy_that_looks_right_is_found_out_by_what_replaces_it() {
    let mut bed = Bed::new(policy(Action::Inspect, scanning(1 << 20)));
    bed.open();
    bed.send(Side::Client, 0, REQUEST);
    let virus = response(VIRUS);
    let clean = response(&[b'.'; VIRUS.len()]);
    // It has too low a time to live for the way to the client.
    bed.send(Side::Server, 0, &clean);
    bed.scan();
    bed.send(Side::Server, 0, &virus);
    assert_eq!(bed.decision(), Decision::Reject);
    assert_eq!(bed.stage.stats().rewritten, 1);
    assert_eq!(bed.events_of(GatewayEventKind::Blocked), 1);
}

#[test]
fn a_decoy_decides_nothing_for_good() {
    for side in [Side::Client, Side::Server] {
        let mut bed = Bed::new(rejecting(Fail::Open, Fail::Open));
        bed.open();
        // It has too low a time to live for its way.
        bed.send(side, 0, b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
        assert_eq!(bed.events_of(GatewayEventKind::Decided), 1);
        assert_eq!(bed.decision(), Decision::Undecided);
        bed.send(side, 0, REQUEST);
        assert_eq!(bed.decision(), Decision::Reject);
        assert_eq!(bed.stage.stats().rewritten, 1);
        // One that arrives does.
        let mut bed = Bed::new(rejecting(Fail::Open, Fail::Open));
        bed.open();
        let banner = b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n";
        bed.send(side, 0, banner);
        bed.send(side, banner.len(), b"more");
        assert_eq!(bed.decision(), Decision::Undecided);
        bed.ack(side.other(), 0, banner.len());
        assert_eq!((bed.decision(), bed.unanswered()), (Decision::Pass, 0));
    }
}
