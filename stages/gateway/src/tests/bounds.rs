use linkweir_engine::effect::QueuedPacket;
use linkweir_record::GatewayEventKind;
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{SeqNumber, TcpFlags};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::bed::{Bed, REQUEST, policy, response, scanning};
use crate::inspect::Side;
use crate::policy::{Action, Fail, Inspect, Limits, Rule};

#[test]
fn what_is_held_is_bounded() {
    let mut small = policy(Action::Inspect, scanning(1000));
    small.limits = Limits {
        held_packets: 10,
        held_bytes: 4096,
        ..Limits::default()
    };
    let mut bed = Bed::new(small);
    bed.open();
    bed.send(Side::Client, 0, REQUEST);
    // A window is full: what comes now waits, also ahead of a gap.
    let answer = response(&[b'z'; 1 << 20]);
    bed.send(Side::Server, 0, &answer[..2000]);
    for at in 0..300 {
        bed.send(Side::Server, 3000 + at * 200, &[b'z'; 200]);
    }
    let stats = bed.stage.stats();
    assert_eq!(stats.held_packets, 10);
    assert_eq!(stats.over_limit, 291);
    assert_eq!(
        bed.unanswered(),
        10,
        "the others were dropped, to come again"
    );
    bed.finish();
    assert_eq!(bed.unanswered(), 0);
    assert_eq!(bed.stage.stats().held_packets, 0);
    assert_eq!(bed.stage.stats().held_bytes, 0);
}

#[test]
fn what_is_kept_ahead_of_gaps_is_bounded_for_whoever_fills_it() {
    let mut small = policy(Action::Inspect, scanning(1 << 20));
    small.limits.total_held_bytes = 100_000;
    let mut bed = Bed::new(small);
    bed.open();
    bed.send(Side::Client, 0, REQUEST);
    for at in 0..5000 {
        bed.send(Side::Server, 3000 + at * 9, &[b'z'; 8]);
    }
    assert_eq!(bed.unanswered(), 0);
    let stats = bed.stage.stats();
    assert!((49_000..=50_100).contains(&stats.held_bytes), "{stats:?}");
    assert!(stats.over_limit > 4000);
    // The other end is somebody else, and has room.
    bed.send(Side::Client, REQUEST.len() + 1, &[b'z'; 20_000]);
    assert_eq!(bed.stage.stats().over_limit, stats.over_limit);
    assert_eq!(bed.at_client.stream(), b"");
}

#[test]
fn a_million_half_open_connections_stay_bounded() {
    let mut small = policy(Action::Drop, Inspect::default());
    small.limits.half_open = 1024;
    small.limits.connections = 1024;
    let mut bed = Bed::new(small);
    for number in 0..1_000_000_u32 {
        let src = SocketAddr::from((
            Ipv4Addr::from(0x0a00_0000 + (number >> 4)),
            1024 + u16::try_from(number & 15).expect("four bits"),
        ));
        let bytes = TcpFrame {
            seq: SeqNumber(number),
            flags: TcpFlags::SYN,
            ..TcpFrame::new(src, super::bed::server())
        }
        .to_packet();
        let packet = QueuedPacket {
            id: number,
            mark: 0,
            bytes: &bytes,
            wire_len: 40,
            is_checksum_open: false,
        };
        bed.stage.on_packet(&packet, bed.now, &mut bed.effects);
        assert_eq!(bed.effects.answers.len(), 1);
        bed.effects.answers.clear();
    }
    assert_eq!(bed.stage.stats().connections, 0);
    assert_eq!(bed.stage.stats().half_open, 1024);
}

#[test]
fn a_full_table_forgets_the_oldest() {
    let mut small = policy(Action::Inspect, scanning(1 << 20));
    small.limits.connections = 4;
    let mut bed = Bed::new(small);
    for number in 0..100_u16 {
        let src = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 2000 + number));
        let bytes = TcpFrame {
            flags: TcpFlags::ACK,
            payload: REQUEST,
            ..TcpFrame::new(src, super::bed::server())
        }
        .to_packet();
        let packet = QueuedPacket {
            id: number.into(),
            mark: 0,
            bytes: &bytes,
            wire_len: u32::try_from(bytes.len()).expect("a packet"),
            is_checksum_open: false,
        };
        bed.stage.on_packet(&packet, bed.now, &mut bed.effects);
    }
    let stats = bed.stage.stats();
    assert_eq!((stats.connections, stats.evicted), (4, 96));
    assert_eq!(bed.effects.answers.len(), 100);
}

#[test]
fn memory_for_files_is_bounded() {
    let mut small = policy(Action::Inspect, scanning(4096));
    small.limits.inspect_bytes = 5_000;
    let mut bed = Bed::new(small);
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n".to_vec();
    answer.resize(answer.len() + 1000, b'.');
    for number in 0..10_u16 {
        let client = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 2000 + number));
        for (src, dst, payload) in [
            (client, super::bed::server(), REQUEST),
            (super::bed::server(), client, answer.as_slice()),
        ] {
            let bytes = TcpFrame {
                flags: TcpFlags::ACK,
                payload,
                ..TcpFrame::new(src, dst)
            }
            .to_packet();
            let packet = QueuedPacket {
                id: 0,
                mark: 0,
                bytes: &bytes,
                wire_len: u32::try_from(bytes.len()).expect("a packet"),
                is_checksum_open: false,
            };
            bed.stage.on_packet(&packet, bed.now, &mut bed.effects);
        }
    }
    let unscanned = GatewayEventKind::Unscanned;
    assert_eq!(
        bed.stage.stats().events_of(unscanned),
        5,
        "what came of five fits"
    );
    bed.stage.finish(bed.now, &mut bed.effects);
    assert_eq!(bed.stage.inspection_bytes(), 0);
}

#[test]
fn heads_that_are_not_whole_are_in_the_bound_of_memory() {
    for (fail, reset) in [(Fail::Open, 0), (Fail::Closed, 1)] {
        let mut small = policy(Action::Inspect, scanning(4096));
        small.limits.inspect_bytes = 20_000;
        let mut rule = Rule::clone(&small.rules[0]);
        rule.fail = fail;
        small.rules = vec![Arc::new(rule)];
        let mut bed = Bed::new(small);
        bed.open();
        bed.send(Side::Client, 0, REQUEST);
        let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
        head.extend(b"X-Much: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(1000));
        for (at, part) in head.chunks(1000).enumerate() {
            bed.send(Side::Server, at * 1000, part);
            assert!(bed.stage.inspection_bytes() <= 20_000);
        }
        assert_eq!(bed.events_of(GatewayEventKind::Limit), 1);
        assert_eq!(bed.resets.len(), reset);
        bed.finish();
        assert_eq!(bed.stage.inspection_bytes(), 0);
    }
}
