//! What a line does to frames, without interfaces.

use super::way::{Counts, Harm, Kind, Way};
use linkweir_load::frames::Frames;
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{TcpFlags, Timestamp};
use std::net::SocketAddr;
use std::time::Duration;

const HARM: Harm = Harm {
    latency: Duration::ZERO,
    loss: 0.1,
    reorder: 0.2,
    delay: Duration::from_millis(2),
};

fn segment(flags: TcpFlags, payload: &[u8]) -> Vec<u8> {
    let end = |text: &str| text.parse::<SocketAddr>().unwrap();
    let frame = TcpFrame {
        flags,
        payload,
        ..TcpFrame::new(end("10.16.0.1:1024"), end("10.88.2.2:80"))
    };
    frame.to_vec()
}

/// Frame number n, told from all others by its payload.
fn numbered(n: u32) -> Vec<u8> {
    segment(TcpFlags::ACK, &n.to_be_bytes())
}

/// What comes out of a way into which 2000 segments go, 10 us apart, and its counts.
fn carried(harm: Harm, seed: u64) -> (Vec<Vec<u8>>, Counts) {
    let mut way = Way::new(harm, seed, 0);
    let mut out = Frames::default();
    for n in 0..2000 {
        let now = Timestamp::from_nanos(u64::from(n) * 10_000);
        way.take(&numbered(n), now, &mut out);
        way.pop_due(now, &mut out);
    }
    way.pop_due(Timestamp::MAX, &mut out);
    (out.iter().map(<[u8]>::to_vec).collect(), way.counts())
}

#[test]
fn each_segment_passes_once_or_is_counted_as_lost() {
    let (came, counts) = carried(HARM, 7);
    assert_eq!((counts.frames, counts.segments.data), (2000, 2000));
    assert_eq!(counts.passed + counts.lost.all(), counts.frames);
    assert_eq!(counts.passed, came.len() as u64);
    assert_eq!(counts.payload_bytes, 8000);
    assert_eq!(counts.lost_bytes, 4 * counts.lost.data);
    // A tenth, and a fifth of the rest: within five standard deviations.
    assert!(counts.lost.data.abs_diff(200) < 70, "{counts:?}");
    assert!(counts.late.data.abs_diff(360) < 90, "{counts:?}");

    // Those that came are those that went in, byte for byte, each once.
    let mut sorted = came.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), came.len());
    assert!(
        sorted
            .iter()
            .all(|frame| (0..2000).any(|n| numbered(n) == *frame))
    );
    // Who comes late is behind some that went in after it.
    let order: Vec<&[u8]> = came.iter().map(|frame| &frame[frame.len() - 4..]).collect();
    assert!(!order.is_sorted());
    let overtaken = order.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(overtaken as u64 <= counts.late.data);
}

#[test]
fn a_seed_names_what_happens() {
    assert_eq!(carried(HARM, 7), carried(HARM, 7));
    assert_ne!(carried(HARM, 7), carried(HARM, 8));
    // What the others suffer does not move the fate of a segment.
    let gentle = Harm {
        reorder: 0.0,
        ..HARM
    };
    assert_eq!(carried(gentle, 7).1.lost, carried(HARM, 7).1.lost);
    let other = Way::new(HARM, 7, 1);
    assert_ne!(format!("{:?}", Way::new(HARM, 7, 0)), format!("{other:?}"));
}

#[test]
fn a_line_without_harm_is_a_cable() {
    let none = Harm {
        loss: 0.0,
        reorder: 0.0,
        ..HARM
    };
    let (came, counts) = carried(none, 7);
    assert!(
        came.iter()
            .enumerate()
            .all(|(n, frame)| { u32::try_from(n).is_ok_and(|n| numbered(n) == *frame) })
    );
    assert_eq!((counts.passed, counts.late.all()), (2000, 0));
    let all = Harm { loss: 1.0, ..HARM };
    assert_eq!(carried(all, 7).1.passed, 0);
}

#[test]
fn late_is_by_the_delay_and_no_less() {
    let all = Harm {
        loss: 0.0,
        reorder: 1.0,
        ..HARM
    };
    let mut way = Way::new(all, 1, 0);
    let mut out = Frames::default();
    let at = |micros: u64| Timestamp::from_nanos(micros * 1000);
    way.take(&numbered(1), at(0), &mut out);
    way.take(&numbered(2), at(500), &mut out);
    way.pop_due(at(1999), &mut out);
    assert!(out.is_empty());
    assert_eq!(way.next_deadline(), Some(at(2000)));
    way.pop_due(at(2000), &mut out);
    assert_eq!(out.iter().collect::<Vec<_>>(), [numbered(1)]);
    way.pop_due(at(2500), &mut out);
    assert_eq!(out.len(), 2);
    assert_eq!(way.next_deadline(), None);
}

#[test]
fn every_frame_is_on_its_way_for_the_latency() {
    let far = Harm {
        latency: Duration::from_millis(10),
        loss: 0.0,
        reorder: 0.0,
        ..HARM
    };
    let mut way = Way::new(far, 1, 0);
    let mut out = Frames::default();
    let at = |micros: u64| Timestamp::from_nanos(micros * 1000);
    way.take(&numbered(1), at(0), &mut out);
    way.take(&[0; 60], at(5), &mut out);
    way.pop_due(at(9_999), &mut out);
    assert!(out.is_empty());
    way.pop_due(at(10_004), &mut out);
    assert_eq!(out.iter().collect::<Vec<_>>(), [numbered(1)]);
    way.pop_due(at(10_005), &mut out);
    assert_eq!((out.len(), way.counts().passed), (2, 2));
    assert_eq!(way.counts().late.all(), 0);
}

#[test]
fn datagrams_are_lost_and_what_is_neither_comes_to_no_harm() {
    let all = Harm { loss: 1.0, ..HARM };
    let mut way = Way::new(all, 1, 0);
    let mut out = Frames::default();
    let mut arp = vec![0xff; 12];
    arp.extend([8, 6]);
    arp.resize(60, 0);
    let [mut udp, mut icmp] = [numbered(1), numbered(1)];
    // The protocol of the IP header.
    (udp[23], icmp[23]) = (17, 1);
    for frame in [&arp, &udp, &icmp] {
        way.take(frame, Timestamp::ZERO, &mut out);
    }
    assert_eq!(out.iter().collect::<Vec<_>>(), [arp, icmp]);
    let counts = way.counts();
    assert_eq!((counts.frames, counts.passed), (3, 2));
    let (all, lost) = (counts.segments, counts.lost);
    assert_eq!((all.all(), lost.all(), lost.datagram), (1, 1, 1));
}

#[test]
fn segments_are_told_apart() {
    let kind = |flags, payload: &[u8]| Kind::of(&segment(flags, payload));
    let (ack, fin) = (TcpFlags::ACK, TcpFlags::FIN);
    assert_eq!(kind(TcpFlags::SYN, b""), (Kind::Syn, 0));
    assert_eq!(kind(TcpFlags::SYN | ack, b""), (Kind::Syn, 0));
    assert_eq!(kind(ack, b""), (Kind::Ack, 0));
    assert_eq!(kind(ack, b"GET"), (Kind::Data, 3));
    assert_eq!(kind(ack | fin, b""), (Kind::Fin, 0));
    assert_eq!(kind(ack | fin, b"end"), (Kind::Data, 3));
    assert_eq!(kind(TcpFlags::RST, b""), (Kind::Rst, 0));
    assert_eq!(Kind::of(&[0; 9]), (Kind::Other, 0));
}
