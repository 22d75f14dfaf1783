//! Packets in parts: in every order, doubled, overlapping, cut, missing, and more than there is room for.

use std::net::SocketAddr;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::emit::wrap::{self, Gre};
use crate::emit::{TcpFrame, UdpFrame, fragments};
use crate::{SeqNumber, TcpFlags, Transport};

const PAYLOAD: &[u8] = b"GET /fragments HTTP/1.1\r\nHost: a.example\r\nUser-Agent: test\r\n\r\n";

fn addr(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn segment(is_v6: bool) -> TcpFrame<'static> {
    let (src, dst) = if is_v6 {
        (addr("[2001:db8::1]:40000"), addr("[2001:db8::2]:80"))
    } else {
        (addr("192.0.2.1:40000"), addr("198.51.100.2:80"))
    };
    TcpFrame {
        seq: SeqNumber(7),
        ack: SeqNumber(9),
        flags: TcpFlags::ACK | TcpFlags::PSH,
        payload: PAYLOAD,
        ..TcpFrame::new(src, dst)
    }
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_nanos(1_000_000_000_000 + ms * 1_000_000)
}

/// A packet as it was given: payload, its length on the wire, whether it is a part, and when.
type Given = (Vec<u8>, u32, bool, Timestamp);

fn seen(joined: &Joined<'_>) -> Given {
    let packet = joined.packet.expect("decodes");
    let (payload, len) = match packet.transport {
        Transport::Tcp(tcp) => (tcp.payload, tcp.payload_len),
        Transport::Udp(udp) => (udp.payload, udp.payload_len),
        other => panic!("neither: {other:?}"),
    };
    (payload.to_vec(), len, packet.is_fragment, joined.timestamp)
}

#[derive(Default)]
struct Bench {
    fragments: Fragments,
    given: Vec<Given>,
}

impl Bench {
    fn put(&mut self, frame: &[u8], now: Timestamp) {
        let len = u32::try_from(frame.len()).expect("short");
        self.put_cut(frame, len, now);
    }

    fn put_cut(&mut self, frame: &[u8], wire_len: u32, now: Timestamp) {
        let given = &mut self.given;
        self.fragments
            .on_frame((LinkType::RAW, frame, wire_len), now, |joined| {
                given.push(seen(&joined));
            });
    }

    fn finish(&mut self) {
        let given = &mut self.given;
        self.fragments.finish(|joined| {
            given.push(seen(&joined));
        });
    }

    fn whole(&self, payload: &[u8], now: Timestamp) {
        let len = u32::try_from(payload.len()).expect("short");
        assert_eq!(self.given, [(payload.to_vec(), len, false, now)]);
    }
}

#[test]
fn a_packet_in_parts_is_whole_in_every_order() {
    for is_v6 in [false, true] {
        let packet = segment(is_v6).to_packet();
        let parts = fragments(&packet, 77, 32);
        assert_eq!(parts.len(), 3);
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let mut bench = Bench::default();
            for (turn, place) in order.into_iter().enumerate() {
                assert_eq!(bench.given, []);
                let part = decode(LinkType::RAW, &parts[place], 0).expect("decodes");
                assert!(part.is_fragment);
                bench.put(&parts[place], at(turn as u64));
            }
            bench.whole(PAYLOAD, at(2));
            bench.finish();
            assert_eq!(bench.given.len(), 1);
            let stats = bench.fragments.stats();
            let expected = FragmentStats {
                fragments: 3,
                packets: 1,
                ..FragmentStats::default()
            };
            assert_eq!(stats, expected);
        }
    }
}

#[test]
fn packets_whole_at_once_are_no_fragments() {
    let packet = segment(true).to_packet();
    assert!(
        !decode(LinkType::RAW, &packet, 0)
            .expect("decodes")
            .is_fragment
    );
    // An atomic fragment (RFC 6946).
    let atomic = &fragments(&packet, 1, 1000)[0];
    assert!(
        !decode(LinkType::RAW, atomic, 0)
            .expect("decodes")
            .is_fragment
    );
    let whole = segment(false).to_vec();
    assert!(
        !decode(LinkType::ETHERNET, &whole, 0)
            .expect("decodes")
            .is_fragment
    );
}

#[test]
fn packets_are_told_apart() {
    let (one, mut other) = (segment(false), segment(false));
    other.payload = b"HEAD /another HTTP/1.1\r\nHost: b.example\r\n\r\n......";
    let parts = |frame: &TcpFrame<'_>, id| fragments(&frame.to_packet(), id, 24);
    let mut bench = Bench::default();
    for (a, b) in parts(&one, 1).iter().zip(&parts(&other, 2)) {
        bench.put(b, at(0));
        bench.put(a, at(0));
    }
    assert_eq!(bench.given.len(), 1, "the longer one has a part more");
    bench.put(&parts(&one, 1)[3], at(1));
    assert_eq!(
        (&bench.given[0].0[..], &bench.given[1].0[..]),
        (other.payload, one.payload)
    );
}

#[test]
fn the_first_bytes_win_and_overlaps_are_counted() {
    for is_v6 in [false, true] {
        let packet = segment(is_v6).to_packet();
        let header = if is_v6 { 40 } else { 20 };
        let parts = fragments(&packet, 5, 40);
        let mut forged = packet.clone();
        forged[header + 20..].fill(b'X');
        let forged = fragments(&forged, 5, 64);
        let mut bench = Bench::default();
        // The forged one has bytes 0 to 64; those from 40 on are not there yet.
        bench.put(&parts[0], at(0));
        bench.put(&parts[0], at(0));
        bench.put(&forged[0], at(1));
        bench.put(&parts[2], at(2));
        bench.put(&parts[1], at(3));
        let mut expected = PAYLOAD.to_vec();
        expected[20..44].fill(b'X');
        bench.whole(&expected, at(3));
        let stats = bench.fragments.stats();
        assert_eq!((stats.overlapping, stats.packets), (3, 1));
    }
}

#[test]
fn what_no_packet_can_have_is_counted_and_left_out() {
    let parts = fragments(&segment(false).to_packet(), 9, 24);
    let changed = |at: usize, bytes: [u8; 2]| {
        let mut part = parts[1].clone();
        part[at..at + 2].copy_from_slice(&bytes);
        part
    };
    let mut bench = Bench::default();
    bench.put(&parts[3], at(0));
    // 23 bytes and more to come; beyond 65,535; behind the last; another end.
    bench.put(&changed(2, [0, 43]), at(0));
    bench.put(&changed(6, [0x1f, 0xff]), at(0));
    bench.put(&changed(6, [0x20, 0x20]), at(0));
    bench.put(&changed(6, [0, 3]), at(0));
    assert_eq!(bench.fragments.stats().malformed, 4);
    for part in &parts {
        bench.put(part, at(1));
    }
    bench.whole(PAYLOAD, at(1));
}

#[test]
fn what_never_comes_is_given_up_and_the_start_is_given() {
    let parts = fragments(&segment(false).to_packet(), 9, 24);
    let start = &PAYLOAD[..28];
    for is_end in [true, false] {
        let mut bench = Bench::default();
        bench.put(&parts[1], at(0));
        bench.put(&parts[0], at(10));
        bench.put(&parts[3], at(20));
        let other = fragments(&segment(true).to_packet(), 1, 24);
        bench.put(&other[1], at(29_999));
        assert_eq!(bench.given, []);
        if is_end {
            bench.finish();
        } else {
            bench.put(&other[2], at(30_001));
        }
        assert_eq!(bench.given, [(start.to_vec(), 28, true, at(20))]);
        let stats = bench.fragments.stats();
        // The first two are in the packet that was given.
        let (lost, incomplete) = if is_end { (2, 2) } else { (1, 1) };
        assert_eq!(
            (stats.incomplete, stats.lost),
            (incomplete, lost),
            "{stats:?}"
        );
        // The part that was missing comes alone.
        bench.put(&parts[2], at(30_002));
        assert_eq!(bench.given.len(), 1);
    }
    let mut bench = Bench::default();
    bench.put(&fragments(&segment(true).to_packet(), 9, 24)[0], at(0));
    bench.finish();
    assert_eq!(bench.given, [(PAYLOAD[..4].to_vec(), 4, true, at(0))]);
}

#[test]
fn a_datagram_and_a_tunnel_in_parts() {
    let datagram = UdpFrame {
        payload: &[7; 4000],
        ..UdpFrame::new(addr("192.0.2.1:5000"), addr("198.51.100.2:53"))
    };
    let mut bench = Bench::default();
    for part in fragments(&datagram.to_packet(), 1, 1480) {
        bench.put(&part, at(0));
    }
    bench.whole(&[7; 4000], at(0));

    // A packet in parts, in GRE, whose packets are in parts again.
    let (a, b) = (addr("203.0.113.1:0").ip(), addr("203.0.113.2:0").ip());
    let mut bench = Bench::default();
    for (id, part) in (1..).zip(fragments(&segment(false).to_packet(), 3, 40)) {
        let carrier = wrap::ip(a, b, 47, &wrap::gre(0x0800, Gre::default(), &part));
        for outer in fragments(&carrier, id, 32) {
            bench.put(&outer, at(u64::from(id)));
        }
    }
    bench.whole(PAYLOAD, at(3));
    // The last carrier is short enough to be whole.
    assert_eq!(bench.fragments.stats().packets, 3);

    let (mut tunnels, mut all) = (Vec::new(), Fragments::default());
    for part in fragments(&segment(false).to_packet(), 3, 40) {
        let carrier = wrap::ip(a, b, 47, &wrap::gre(0x0800, Gre::default(), &part));
        all.on_frame((LinkType::RAW, &carrier, 0), at(0), |joined| {
            tunnels.push(joined.packet.expect("decodes").tunnels);
        });
    }
    assert_eq!(tunnels, [1]);
}

#[test]
fn the_tag_of_the_frame_stays() {
    for (is_v6, has_tag, is_whole) in [
        (false, true, true),
        (false, true, false),
        (true, true, true),
        (true, true, false),
        (true, false, true),
        (false, false, false),
    ] {
        let mut parts = fragments(&segment(is_v6).to_packet(), 3, 40);
        if !is_whole {
            parts.pop();
        }
        let ethertype = if is_v6 { 0x86dd } else { 0x0800 };
        let vlan = has_tag.then_some(7);
        let mut given = 0;
        let mut look = |joined: Joined<'_>| {
            let packet = joined.packet.expect("decodes");
            assert_eq!((packet.vlan, packet.is_fragment), (vlan, !is_whole));
            let (link, bytes, wire_len) = joined.frame;
            assert!(bytes.len() == wire_len as usize && bytes.ends_with(joined.bytes));
            assert_eq!(decode(link, bytes, wire_len), Ok(packet));
            given += 1;
        };
        let mut all = Fragments::default();
        for part in parts {
            let mut frame = wrap::ethernet(ethertype, &part);
            if has_tag {
                frame = wrap::vlan(0x8100, 7, &frame);
            }
            all.on_frame((LinkType::ETHERNET, &frame, 0), at(0), &mut look);
        }
        all.finish(&mut look);
        assert_eq!(given, 1);
    }
}

#[test]
fn cut_parts_keep_the_length() {
    let parts = fragments(&segment(false).to_packet(), 9, 48);
    let mut bench = Bench::default();
    for part in &parts {
        let len = u32::try_from(part.len()).expect("short");
        bench.put_cut(&part[..50.min(part.len())], len, at(0));
    }
    let len = u32::try_from(PAYLOAD.len()).expect("short");
    assert_eq!(bench.given, [(PAYLOAD[..10].to_vec(), len, false, at(0))]);
}

#[test]
fn memory_is_bounded() {
    let mut bench = Bench::default();
    let packet = segment(false).to_packet();
    for id in 0..5000 {
        bench.put(&fragments(&packet, id, 24)[0], at(0));
        assert!(bench.fragments.waiting.len() <= MAX_PACKETS);
    }
    assert_eq!(bench.given.len(), 5000 - MAX_PACKETS);
    assert_eq!(bench.fragments.stats().evicted, 5000 - MAX_PACKETS as u64);
    let mut far = fragments(&packet, 0, 24)[1].clone();
    // Data from 65,000 on.
    far[6..8].copy_from_slice(&[0x3f, 0xbd]);
    for id in 0..2000_u16 {
        far[4..6].copy_from_slice(&id.to_be_bytes());
        far[16] = 9;
        bench.put(&far, at(0));
        assert!(bench.fragments.bytes <= MAX_BYTES + 70_000);
        let held: usize = bench
            .fragments
            .waiting
            .values()
            .map(|one| one.buffer.len())
            .sum();
        assert_eq!(held, bench.fragments.bytes);
        assert!(bench.fragments.order.len() <= 2 * MAX_PACKETS);
    }
    // Runs that never meet.
    let mut bench = Bench::default();
    for place in (0..8000_u16).step_by(2) {
        let mut one = fragments(&packet, 0, 8)[1].clone();
        one[6..8].copy_from_slice(&(0x2000 | place).to_be_bytes());
        bench.put(&one, at(0));
    }
    assert_eq!(
        bench
            .fragments
            .waiting
            .values()
            .next()
            .map(|one| one.runs.len()),
        Some(MAX_RUNS)
    );
    // No fault of theirs.
    let stats = bench.fragments.stats();
    let expected = FragmentStats {
        scattered: 4000 - MAX_RUNS as u64,
        ..FragmentStats::default()
    };
    assert_eq!(stats, expected);
    // Many packets that are whole leave nothing behind.
    let mut bench = Bench::default();
    for id in 0..u32::try_from(3 * MAX_PACKETS).expect("few") {
        for part in fragments(&packet, id, 40) {
            bench.put(&part, at(0));
        }
    }
    assert_eq!(bench.given.len(), 3 * MAX_PACKETS);
    assert!(bench.fragments.order.len() <= 2 * MAX_PACKETS);
    assert_eq!(
        (bench.fragments.bytes, bench.fragments.waiting.len()),
        (0, 0)
    );
}

proptest! {
    #[test]
    fn in_any_order_and_doubled_a_packet_is_what_was_sent(
        payload in vec(any::<u8>(), 1..3000),
        piece in 8..700_usize,
        is_v6: bool,
        order in vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let packet = TcpFrame { payload: &payload, ..segment(is_v6) }.to_packet();
        let parts = fragments(&packet, 1, piece);
        prop_assume!(parts.len() > 1 && parts.len() <= MAX_RUNS);
        let mut bench = Bench::default();
        let mut turn = order.iter().map(|index| index.index(parts.len())).chain(0..parts.len());
        while bench.given.is_empty() {
            bench.put(&parts[turn.next().expect("all came")], at(0));
        }
        bench.whole(&payload, at(0));
    }

    #[test]
    fn arbitrary_parts_never_panic(
        parts in vec((any::<bool>(), 0..4_u16, any::<[u8; 2]>(), vec(any::<u8>(), 0..80), 0..60_000_u64), 0..40),
    ) {
        let mut all = Fragments::default();
        let mut count = 0;
        for (is_v6, id, place, data, ms) in parts {
            let mut packet = TcpFrame { payload: &data, ..segment(is_v6) }.to_packet();
            packet = fragments(&packet, u32::from(id), 65_000).remove(0);
            let field = if is_v6 { 42 } else { 6 };
            packet[field..field + 2].copy_from_slice(&place);
            all.on_frame((LinkType::RAW, &packet, 0), at(ms), |_| count += 1);
        }
        all.finish(|_| count += 1);
        prop_assert_eq!((all.bytes, all.waiting.len()), (0, 0));
        let stats = all.stats();
        prop_assert!(count <= stats.packets + stats.incomplete + stats.evicted);
    }
}
