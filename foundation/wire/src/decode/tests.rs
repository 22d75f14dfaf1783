//! Every layer by frames that `emit` builds; and what damaged bytes must never do.

use std::net::{IpAddr, SocketAddr};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{decode, decode_plain as plain, walk};
use crate::emit::media::{self, Wlan};
use crate::emit::wrap::{self, Gre};
use crate::emit::{TcpFrame, UdpFrame};
use crate::{
    DecodeError, DecodeErrorKind, DecodeFaults, Layer, LinkType, Network, Packet, SeqNumber, Tcp,
    TcpFlags, TcpOption, Transport, Udp, checksum,
};

const ETHERNET: LinkType = LinkType::ETHERNET;
/// No link type has this number.
const UNKNOWN: LinkType = LinkType(u16::MAX);

fn addr(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn client() -> SocketAddr {
    addr("192.0.2.1:40000")
}

fn server() -> SocketAddr {
    addr("198.51.100.2:80")
}

fn inner() -> TcpFrame<'static> {
    TcpFrame {
        seq: SeqNumber(7),
        ack: SeqNumber(9),
        flags: TcpFlags::ACK | TcpFlags::PSH,
        options: &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        payload: b"GET / HTTP/1.1\r\n\r\n",
        ..TcpFrame::new(client(), server())
    }
}

fn inner6() -> TcpFrame<'static> {
    TcpFrame {
        src: addr("[2001:db8::1]:40000"),
        dst: addr("[2001:db8::2]:80"),
        ..inner()
    }
}

fn whole(link: LinkType, frame: &[u8]) -> Result<Packet<'_>, DecodeError> {
    decode(link, frame, u32::try_from(frame.len()).expect("a frame"))
}

fn tcp_of<'a>(packet: &Packet<'a>) -> Tcp<'a> {
    match packet.transport {
        Transport::Tcp(tcp) => tcp,
        other => panic!("no tcp: {other:?}"),
    }
}

fn udp_of<'a>(packet: &Packet<'a>) -> Udp<'a> {
    match packet.transport {
        Transport::Udp(udp) => udp,
        other => panic!("no udp: {other:?}"),
    }
}

/// The frame decodes to the segment of `sent`, through so many tunnels.
#[track_caller]
fn carries(link: LinkType, frame: &[u8], sent: &TcpFrame<'_>, tunnels: u8) {
    let packet = whole(link, frame).expect("decodes");
    assert_eq!(packet.fault, None);
    assert_eq!(packet.tunnels, tunnels);
    assert_eq!(packet.network.src(), sent.src.ip());
    assert_eq!(packet.network.dst(), sent.dst.ip());
    assert_eq!(packet.network.ttl(), sent.ttl);
    let tcp = tcp_of(&packet);
    assert_eq!(tcp.src_port(), sent.src.port());
    assert_eq!(tcp.dst_port(), sent.dst.port());
    assert_eq!((tcp.seq(), tcp.ack()), (sent.seq, sent.ack));
    assert_eq!((tcp.flags(), tcp.window()), (sent.flags, sent.window));
    assert_eq!(tcp.options, sent.options);
    assert_eq!(tcp.payload, sent.payload);
    assert_eq!(tcp.payload_len as usize, sent.payload.len());
    // Behind extension headers it cannot be told.
    let known = (packet.network.protocol() == 6).then_some(true);
    assert_eq!(checksum::verify_tcp(&packet.network, &tcp), known);
}

/// A stack of headers by name: what it is on, the frame, and the tunnels in it.
#[expect(clippy::too_many_lines, reason = "a table")]
fn stacks() -> Vec<(&'static str, LinkType, Vec<u8>, u8)> {
    let (packet, frame) = (inner().to_packet(), inner().to_vec());
    let (a, b) = (ip("203.0.113.1"), ip("203.0.113.2"));
    let (a6, b6) = (ip("2001:db8:1::1"), ip("2001:db8:1::2"));
    let over_ip =
        |protocol, payload: &[u8]| wrap::ethernet(0x0800, &wrap::ip(a, b, protocol, payload));
    let over_udp = |port: u16, payload: &[u8]| {
        let (src, dst) = (SocketAddr::new(a, 50_000), SocketAddr::new(b, port));
        let udp = UdpFrame {
            payload,
            ..UdpFrame::new(src, dst)
        };
        udp.to_vec()
    };
    let keyed = Gre {
        checksum: true,
        key: Some(5),
        sequence: Some(6),
    };
    let tagged = wrap::vlan(0x8100, 7, &frame);
    let ppp = wrap::ppp(0x21, &packet);
    let mut little_null = wrap::null(2, &packet);
    little_null[..4].reverse();
    vec![
        ("ethernet", ETHERNET, frame.clone(), 0),
        ("vlan", ETHERNET, tagged.clone(), 0),
        ("qinq", ETHERNET, wrap::vlan(0x88a8, 8, &tagged), 0),
        (
            "triple tag",
            ETHERNET,
            wrap::vlan(0x9100, 9, &wrap::vlan(0x9200, 8, &tagged)),
            0,
        ),
        ("802.3", ETHERNET, wrap::ieee_802_3(0x0800, &packet), 0),
        (
            "provider backbone",
            ETHERNET,
            wrap::ethernet(0x88e7, &[&[0, 0, 0, 7], &tagged[..]].concat()),
            0,
        ),
        (
            "vn-tag",
            ETHERNET,
            [&tagged[..12], &[0x89, 0x26, 0, 8, 0, 9], &tagged[12..]].concat(),
            0,
        ),
        (
            "mpls",
            ETHERNET,
            wrap::ethernet(0x8847, &wrap::mpls(&[16, 17], &packet)),
            0,
        ),
        (
            "pseudo-wire",
            ETHERNET,
            wrap::ethernet(0x8847, &wrap::mpls(&[16], &wrap::pseudo_wire(&frame))),
            0,
        ),
        (
            "bare pseudo-wire",
            ETHERNET,
            wrap::ethernet(0x8847, &wrap::mpls(&[16], &tagged)),
            0,
        ),
        (
            "pppoe",
            ETHERNET,
            wrap::ethernet(0x8864, &wrap::pppoe(1, &ppp)),
            0,
        ),
        ("ppp compressed", LinkType::PPP, ppp[1..].to_vec(), 0),
        ("ppp", LinkType::PPP, ppp.clone(), 0),
        (
            "ppp hdlc",
            LinkType::PPP_HDLC,
            wrap::ppp_hdlc(0x21, &packet),
            0,
        ),
        ("ppp ether", LinkType::PPP_ETHER, wrap::pppoe(1, &ppp), 0),
        (
            "cisco hdlc",
            LinkType::CISCO_HDLC,
            wrap::cisco_hdlc(0x0800, &packet),
            0,
        ),
        (
            "cisco in ppp",
            LinkType::PPP_HDLC,
            wrap::cisco_hdlc(0x0800, &packet),
            0,
        ),
        (
            "sll",
            LinkType::LINUX_SLL,
            wrap::linux_sll(0x0800, &packet),
            0,
        ),
        (
            "sll2",
            LinkType::LINUX_SLL2,
            wrap::linux_sll2(0x0800, &packet),
            0,
        ),
        ("null big", LinkType::NULL, wrap::null(2, &packet), 0),
        ("null little", LinkType::NULL, little_null, 0),
        ("loop", LinkType::LOOP, wrap::null(2, &packet), 0),
        ("raw", LinkType::RAW, packet.clone(), 0),
        ("raw bsd", LinkType::RAW_BSD, packet.clone(), 0),
        ("raw openbsd", LinkType::RAW_OPENBSD, packet.clone(), 0),
        ("ipv4", LinkType::IPV4, packet.clone(), 0),
        ("ip in ip", ETHERNET, over_ip(4, &packet), 1),
        ("4in6", LinkType::RAW, wrap::ip(a6, b6, 4, &packet), 1),
        (
            "gre",
            ETHERNET,
            over_ip(47, &wrap::gre(0x0800, Gre::default(), &packet)),
            1,
        ),
        (
            "gre with all",
            ETHERNET,
            over_ip(47, &wrap::gre(0x0800, keyed, &packet)),
            1,
        ),
        (
            "gre bridge",
            ETHERNET,
            over_ip(47, &wrap::gre(0x6558, keyed, &tagged)),
            1,
        ),
        (
            "gre mpls",
            ETHERNET,
            over_ip(
                47,
                &wrap::gre(0x8847, Gre::default(), &wrap::mpls(&[3], &packet)),
            ),
            1,
        ),
        (
            "mpls in ip",
            ETHERNET,
            over_ip(137, &wrap::mpls(&[3], &packet)),
            1,
        ),
        (
            "wccp",
            ETHERNET,
            over_ip(
                47,
                &wrap::gre(0x883e, Gre::default(), &[&[0; 4], &packet[..]].concat()),
            ),
            1,
        ),
        (
            "pptp",
            ETHERNET,
            over_ip(47, &wrap::gre_pptp(3, 4, &ppp)),
            1,
        ),
        (
            "erspan 1",
            ETHERNET,
            over_ip(47, &wrap::erspan_1(&frame)),
            1,
        ),
        (
            "erspan 2",
            ETHERNET,
            over_ip(47, &wrap::erspan_2(1, &frame)),
            1,
        ),
        (
            "erspan 3",
            ETHERNET,
            over_ip(47, &wrap::erspan_3(1, false, &frame)),
            1,
        ),
        (
            "erspan 3 sub",
            ETHERNET,
            over_ip(47, &wrap::erspan_3(1, true, &frame)),
            1,
        ),
        (
            "vxlan",
            ETHERNET,
            over_udp(4789, &wrap::vxlan(5, &frame)),
            1,
        ),
        (
            "vxlan linux",
            ETHERNET,
            over_udp(8472, &wrap::vxlan(5, &frame)),
            1,
        ),
        (
            "geneve",
            ETHERNET,
            over_udp(6081, &wrap::geneve(5, &[[0; 4]; 3], 0x6558, &frame)),
            1,
        ),
        (
            "geneve ip",
            ETHERNET,
            over_udp(6081, &wrap::geneve(5, &[], 0x0800, &packet)),
            1,
        ),
        (
            "gtp-u",
            ETHERNET,
            over_udp(2152, &wrap::gtp_u(5, &[], &packet)),
            1,
        ),
        (
            "gtp-u extended",
            ETHERNET,
            over_udp(
                2152,
                &wrap::gtp_u(5, &[(0x85, [0, 9]), (0xc0, [1, 2])], &packet),
            ),
            1,
        ),
        (
            "ip in ip in gre",
            ETHERNET,
            over_ip(4, &wrap::ip(a, b, 47, &wrap::gre(0x0800, keyed, &packet))),
            2,
        ),
    ]
}

/// The link layers of other media, and the tunnels that came with them.
#[expect(clippy::too_many_lines, reason = "a table")]
fn media_stacks() -> Vec<(&'static str, LinkType, Vec<u8>, u8)> {
    let (packet, frame) = (inner().to_packet(), inner().to_vec());
    let (a, b) = (ip("203.0.113.1"), ip("203.0.113.2"));
    let over_udp = |port: u16, payload: &[u8]| {
        let udp = UdpFrame {
            payload,
            ..UdpFrame::new(SocketAddr::new(a, 50_000), SocketAddr::new(b, port))
        };
        udp.to_vec()
    };
    let over_gre = |ethertype, payload: &[u8]| {
        let gre = wrap::gre(ethertype, Gre::default(), payload);
        wrap::ethernet(0x0800, &wrap::ip(a, b, 47, &gre))
    };
    let llc = media::snap(0x0800, &packet);
    let plain = media::ieee_802_11(Wlan::default(), &llc);
    let qos = Wlan {
        has_qos: true,
        ..Wlan::default()
    };
    let with_qos = media::ieee_802_11(qos, &llc);
    let padded = Wlan {
        is_padded: true,
        ..qos
    };
    let aggregate = Wlan {
        is_aggregate: true,
        has_four_addresses: true,
        ..qos
    };
    let mut swapped = with_qos.clone();
    swapped.swap(0, 1);
    swapped[22..24].copy_from_slice(&[0x76, 0x30]);
    let arcnet_exception = {
        let mut frame = media::arcnet(0xd4, &packet);
        frame.splice(3..3, [0xff, 0xff, 0xff, 0xd4]);
        frame
    };
    let relay = media::frame_relay(0xcc, &packet);
    vec![
        ("802.11", LinkType::IEEE802_11, plain.clone(), 0),
        ("802.11 qos", LinkType::IEEE802_11, with_qos.clone(), 0),
        (
            "802.11 aggregate",
            LinkType::IEEE802_11,
            media::ieee_802_11(aggregate, &llc),
            0,
        ),
        (
            "radiotap",
            LinkType::IEEE802_11_RADIOTAP,
            media::radiotap(0, false, &with_qos),
            0,
        ),
        (
            "radiotap padded",
            LinkType::IEEE802_11_RADIOTAP,
            media::radiotap(0, true, &media::ieee_802_11(padded, &llc)),
            0,
        ),
        (
            "radiotap with more words, padded",
            LinkType::IEEE802_11_RADIOTAP,
            media::radiotap(3, true, &media::ieee_802_11(padded, &llc)),
            0,
        ),
        ("prism", LinkType::IEEE802_11_PRISM, media::prism(&plain), 0),
        (
            "avs as prism",
            LinkType::IEEE802_11_PRISM,
            media::avs(&plain),
            0,
        ),
        ("avs", LinkType::IEEE802_11_AVS, media::avs(&with_qos), 0),
        ("ppi", LinkType::PPI, media::ppi(105, &with_qos), 0),
        ("ppi of ethernet", LinkType::PPI, media::ppi(1, &frame), 0),
        (
            "nflog little",
            LinkType::NFLOG,
            media::nflog(2, 0x0800, true, &packet),
            0,
        ),
        (
            "nflog big",
            LinkType::NFLOG,
            media::nflog(2, 0x0800, false, &packet),
            0,
        ),
        (
            "nflog of a bridge",
            LinkType::NFLOG,
            media::nflog(7, 0x0800, true, &packet),
            0,
        ),
        ("frame relay", LinkType::FRELAY, relay.clone(), 0),
        (
            "frame relay snap",
            LinkType::FRELAY,
            media::frame_relay_snap([0, 0, 0], 0x0800, &packet),
            0,
        ),
        (
            "frame relay bridged",
            LinkType::FRELAY,
            media::frame_relay_snap([0, 0x80, 0xc2], 7, &frame),
            0,
        ),
        (
            "frame relay cisco",
            LinkType::FRELAY,
            media::frame_relay_cisco(0x0800, &packet),
            0,
        ),
        (
            "frame relay, address of four bytes",
            LinkType::FRELAY,
            [&[0x18, 0x40, 0x40, 0x41], &relay[2..]].concat(),
            0,
        ),
        (
            "mfr",
            LinkType::MFR,
            media::multilink_frame_relay(&relay),
            0,
        ),
        ("slip", LinkType::SLIP, media::slip(&packet), 0),
        ("fddi", LinkType::FDDI, media::fddi(&llc), 0),
        (
            "arcnet",
            LinkType::ARCNET_BSD,
            media::arcnet(0xd4, &packet),
            0,
        ),
        (
            "arcnet of rfc 1051",
            LinkType::ARCNET_BSD,
            media::arcnet(0xf0, &packet),
            0,
        ),
        (
            "arcnet exception",
            LinkType::ARCNET_BSD,
            arcnet_exception,
            0,
        ),
        (
            "arcnet linux",
            LinkType::ARCNET_LINUX,
            media::arcnet_linux(0xd4, &packet),
            0,
        ),
        ("fabricpath", ETHERNET, media::fabricpath(&frame), 0),
        ("802.11 in gre", ETHERNET, over_gre(0x8200, &with_qos), 1),
        (
            "802.11 in erspan 2",
            ETHERNET,
            wrap::ethernet(0x0800, &wrap::ip(a, b, 47, &wrap::erspan_2(1, &with_qos))),
            1,
        ),
        (
            "802.11 in erspan 3",
            ETHERNET,
            wrap::ethernet(
                0x0800,
                &wrap::ip(a, b, 47, &wrap::erspan_3(1, true, &with_qos)),
            ),
            1,
        ),
        (
            "802.11 in capwap",
            ETHERNET,
            over_udp(5247, &media::capwap(true, &with_qos)),
            1,
        ),
        (
            "swapped 802.11 in capwap",
            ETHERNET,
            over_udp(5247, &media::capwap(true, &swapped)),
            1,
        ),
        (
            "802.3 in capwap",
            ETHERNET,
            over_udp(5247, &media::capwap(false, &frame)),
            1,
        ),
        (
            "gre in udp",
            ETHERNET,
            over_udp(4754, &wrap::gre(0x0800, Gre::default(), &packet)),
            1,
        ),
        (
            "vxlan-gpe of a packet",
            ETHERNET,
            over_udp(4790, &media::vxlan_gpe(5, 1, &packet)),
            1,
        ),
        (
            "vxlan-gpe of a frame",
            ETHERNET,
            over_udp(4790, &media::vxlan_gpe(5, 3, &frame)),
            1,
        ),
        (
            "vxlan on the port of vxlan-gpe",
            ETHERNET,
            over_udp(4790, &wrap::vxlan(5, &frame)),
            1,
        ),
        (
            "ayiya",
            ETHERNET,
            over_udp(5072, &media::ayiya(4, &packet)),
            1,
        ),
    ]
}

fn stacks6() -> Vec<(&'static str, LinkType, Vec<u8>, u8)> {
    let packet = inner6().to_packet();
    let (a, b) = (ip("203.0.113.1"), ip("203.0.113.2"));
    let teredo = |authentication, origin| {
        let udp = UdpFrame {
            payload: &wrap::teredo(authentication, origin, &packet),
            ..UdpFrame::new(SocketAddr::new(a, 3544), SocketAddr::new(b, 1234))
        };
        udp.to_vec()
    };
    let mut all = vec![
        ("ethernet", ETHERNET, inner6().to_vec(), 0),
        ("ppp", LinkType::PPP, wrap::ppp(0x57, &packet), 0),
        ("ipv6", LinkType::IPV6, packet.clone(), 0),
        ("raw", LinkType::RAW, packet.clone(), 0),
        (
            "mpls",
            ETHERNET,
            wrap::ethernet(0x8847, &wrap::mpls(&[16], &packet)),
            0,
        ),
        (
            "6in4",
            ETHERNET,
            wrap::ethernet(0x0800, &wrap::ip(a, b, 41, &packet)),
            1,
        ),
        ("teredo", ETHERNET, teredo(false, false), 1),
        ("teredo auth", ETHERNET, teredo(true, false), 1),
        ("teredo origin", ETHERNET, teredo(false, true), 1),
        ("teredo both", ETHERNET, teredo(true, true), 1),
        (
            "nflog",
            LinkType::NFLOG,
            media::nflog(10, 0x86dd, true, &packet),
            0,
        ),
        (
            "frame relay",
            LinkType::FRELAY,
            media::frame_relay(0x8e, &packet),
            0,
        ),
        (
            "arcnet",
            LinkType::ARCNET_LINUX,
            media::arcnet_linux(0xc4, &packet),
            0,
        ),
        ("slip", LinkType::SLIP, media::slip(&packet), 0),
    ];
    for family in [10, 24, 28, 30] {
        let big = wrap::null(family, &packet);
        let mut little = big.clone();
        little[..4].reverse();
        all.push(("loop", LinkType::LOOP, big, 0));
        all.push(("null", LinkType::NULL, little, 0));
    }
    all
}

#[test]
fn every_stack_carries_the_segment() {
    for (name, link, frame, tunnels) in stacks().into_iter().chain(media_stacks()) {
        println!("{name}");
        carries(link, &frame, &inner(), tunnels);
    }
    for (name, link, frame, tunnels) in stacks6() {
        println!("{name} 6");
        carries(link, &frame, &inner6(), tunnels);
    }
}

#[test]
fn teredo_is_told_by_its_content_on_any_port() {
    let segment = TcpFrame {
        src: addr("[2001:0:5000::1]:40000"),
        ..inner6()
    };
    let packet = segment.to_packet();
    let over = |payload: &[u8]| {
        let udp = UdpFrame {
            payload,
            ..UdpFrame::new(addr("203.0.113.1:32900"), addr("203.0.113.2:3797"))
        };
        udp.to_vec()
    };
    for (authentication, origin) in [(false, false), (true, false), (false, true)] {
        let frame = over(&wrap::teredo(authentication, origin, &packet));
        carries(ETHERNET, &frame, &segment, 1);
    }
    // Nobody's Teredo address, bytes behind the packet, and what only begins so.
    let padded = [&packet[..], &[0]].concat();
    let quic = [&[0x60; 4], &40_u16.to_be_bytes()[..], &[7; 74]].concat();
    for payload in [&inner6().to_packet()[..], &padded, &quic, &[0; 60]] {
        let frame = over(payload);
        let packet = whole(ETHERNET, &frame).expect("decodes");
        assert_eq!((udp_of(&packet).payload, packet.tunnels), (payload, 0));
    }
}

#[test]
fn what_other_media_carry_besides_packets_is_no_ip() {
    let llc = media::snap(0x0800, &inner().to_packet());
    let encrypted = Wlan {
        is_protected: true,
        ..Wlan::default()
    };
    let data = media::ieee_802_11(Wlan::default(), &llc);
    let changed = |at: usize, value: u8| {
        let mut frame = data.clone();
        frame[at] = value;
        frame
    };
    let relay = media::frame_relay(0xcc, &inner().to_packet());
    for (link, frame) in [
        (LinkType::IEEE802_11, media::ieee_802_11(encrypted, &llc)),
        // A beacon, an acknowledgment of ten bytes, no data, a later fragment.
        (LinkType::IEEE802_11, changed(0, 0x80)),
        (LinkType::IEEE802_11, vec![0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 1]),
        (LinkType::IEEE802_11, changed(0, 0x48)),
        (LinkType::IEEE802_11, changed(22, 0x11)),
        // A token, a later part of a packet, a link integrity report, a middle part.
        (LinkType::FDDI, [&[0x80], &media::fddi(&llc)[1..]].concat()),
        (LinkType::ARCNET_BSD, vec![1, 2, 0xd4, 2, 0, 1, 9, 9]),
        (LinkType::MFR, [&[0xe0, 0], &relay[..]].concat()),
        (LinkType::MFR, [&[0, 1], &relay[..]].concat()),
    ] {
        let packet = whole(link, &frame).expect("decodes");
        assert_eq!(packet.transport, Transport::NotIp(0), "{link} {frame:02x?}");
        assert_eq!(packet.fault, None);
    }
    let other = whole(LinkType::PPI, &media::ppi(195, &data)).expect_err("not decoded");
    assert_eq!(other.kind, DecodeErrorKind::UnsupportedLinkType(195));
    assert!(other.to_string().ends_with("IEEE 802.15.4 is not decoded"));
    let mut nested = data.clone();
    for _ in 0..20 {
        nested = media::ppi(192, &nested);
    }
    let deep = whole(LinkType::PPI, &nested).expect_err("too deep");
    assert_eq!(deep.kind, DecodeErrorKind::TooDeep);
}

#[test]
fn the_outermost_tag_counts() {
    let frame = wrap::vlan(0x88a8, 0xff8, &wrap::vlan(0x8100, 7, &inner().to_vec()));
    assert_eq!(whole(ETHERNET, &frame).expect("decodes").vlan, Some(0xff8));
    let frame = TcpFrame {
        vlans: &[5],
        ..inner()
    };
    assert_eq!(
        whole(ETHERNET, &frame.to_vec()).expect("decodes").vlan,
        Some(5)
    );
}

#[test]
fn padding_is_no_payload_and_offload_takes_the_frame() {
    let ack = TcpFrame::new(client(), server());
    let mut frame = ack.to_vec();
    frame.resize(60, 0xee);
    carries(ETHERNET, &frame, &ack, 0);

    let mut frame = inner().to_vec();
    frame[16..18].fill(0);
    let packet = whole(ETHERNET, &frame).expect("decodes");
    assert_eq!(tcp_of(&packet).payload, inner().payload);
    assert_eq!(packet.fault, None);
    // The capture cut it: the length is that of the wire.
    let packet = decode(ETHERNET, &frame[..70], 3000).expect("decodes");
    assert_eq!(tcp_of(&packet).payload_len, 3000 - 14 - 20 - 32);
    assert_eq!(tcp_of(&packet).payload, &inner().payload[..4]);
}

#[test]
fn a_cut_payload_keeps_its_length() {
    let long = [b'x'; 1000];
    for sent in [inner(), inner6()] {
        let frame = TcpFrame {
            payload: &long,
            vlans: &[3],
            ..sent
        }
        .to_vec();
        let headers = frame.len() - long.len();
        let packet = decode(ETHERNET, &frame[..headers + 10], 4 + 20 + 2000).expect("decodes");
        let tcp = tcp_of(&packet);
        assert_eq!((tcp.payload.len(), tcp.payload_len), (10, 1000));
        assert_eq!(checksum::verify_tcp(&packet.network, &tcp), None);
        // Options cut: as far as they go.
        let packet = decode(ETHERNET, &frame[..headers - 2], 2000).expect("decodes");
        let tcp = tcp_of(&packet);
        assert_eq!(
            (tcp.options.len(), tcp.payload.len(), tcp.payload_len),
            (10, 0, 1000)
        );
        // The header itself cut.
        let error = decode(ETHERNET, &frame[..headers - 13], 2000).expect_err("no header");
        assert_eq!(error.layer, Layer::Tcp);
        assert_eq!(error.offset as usize, headers - 32);
        assert_eq!(error.kind, DecodeErrorKind::Cut { need: 20, have: 19 });
    }
}

/// What a frame is of which only the first bytes are left, and whose record says that it was no longer.
fn rewritten(link: LinkType, frame: &[u8], kept: usize) -> DecodeError {
    let cut = &frame[..kept];
    let whole_len = u32::try_from(frame.len()).expect("a length");
    let honest = decode(link, cut, whole_len).expect("decodes");
    assert_eq!(honest.fault, None);
    let mut packet = whole(link, cut).expect("decodes");
    let fault = packet.fault.take().expect("it is noted");
    assert_eq!(packet, honest, "as if the record had said the truth");
    fault
}

#[test]
fn a_frame_that_was_cut_and_its_record_rewritten_keeps_its_length() {
    for (sent, layer) in [(inner(), Layer::Ipv4), (inner6(), Layer::Ipv6)] {
        let ethertype = if layer == Layer::Ipv4 { 0x0800 } else { 0x86dd };
        let (frame, packet) = (sent.to_vec(), sent.to_packet());
        let fault = rewritten(ETHERNET, &frame, frame.len() - 5);
        let fixed = if layer == Layer::Ipv4 { 0 } else { 40 };
        assert_eq!((fault.layer, fault.offset), (layer, 14 + fixed));
        let need = u16::try_from(packet.len()).expect("a length") - u16::try_from(fixed).unwrap();
        let have = need - 5;
        assert_eq!(fault.kind, DecodeErrorKind::Cut { need, have });

        let raw = rewritten(LinkType::RAW, &packet, packet.len() - 18);
        assert_eq!(raw.offset, fixed);
        let tagged = wrap::vlan(0x8100, 7, &frame);
        assert_eq!(rewritten(ETHERNET, &tagged, tagged.len() - 1).layer, layer);
        let ppp = wrap::ppp(if layer == Layer::Ipv4 { 0x21 } else { 0x57 }, &packet);
        for (framed, layer) in [
            (wrap::ieee_802_3(ethertype, &packet), Layer::Ethernet),
            (wrap::ethernet(0x8864, &wrap::pppoe(1, &ppp)), Layer::Pppoe),
        ] {
            let fault = rewritten(ETHERNET, &framed, framed.len() - 9);
            assert_eq!(fault.layer, layer, "the outermost length tells it");
        }
        let outer = UdpFrame {
            payload: &wrap::vxlan(42, &frame),
            ..UdpFrame::new(client(), addr("198.51.100.2:4789"))
        };
        let tunnelled = outer.to_vec();
        let fault = rewritten(ETHERNET, &tunnelled, tunnelled.len() - 9);
        assert_eq!((fault.layer, fault.offset), (Layer::Ipv4, 14));
    }
}

#[test]
fn a_header_cut_with_its_record_rewritten_is_cut_and_not_too_short() {
    let frame = inner().to_vec();
    let error = whole(ETHERNET, &frame[..14 + 20 + 19]).expect_err("no header");
    assert_eq!((error.layer, error.offset), (Layer::Tcp, 34));
    assert_eq!(error.kind, DecodeErrorKind::Cut { need: 20, have: 19 });
}

#[test]
fn a_length_beyond_the_packet_around_it_is_noted_and_the_packet_stands() {
    let mut packet = inner().to_packet();
    packet[3] += 5;
    let tunnelled = wrap::ip(client().ip(), server().ip(), 4, &packet);
    let packet = whole(LinkType::RAW, &tunnelled).expect("decodes");
    assert_eq!(tcp_of(&packet).payload_len, 18);
    let fault = packet.fault.expect("a fault");
    assert_eq!((fault.layer, fault.offset), (Layer::Ipv4, 20));
    assert_eq!(
        fault.kind,
        DecodeErrorKind::BeyondEnd { need: 75, have: 70 }
    );
}

#[test]
fn located_faults() {
    let frame = inner().to_vec();
    let fault = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = frame.clone();
        change(&mut frame);
        let error = whole(ETHERNET, &frame).expect_err("a fault");
        (error.layer, error.offset, error.kind)
    };
    use DecodeErrorKind as Kind;
    assert_eq!(
        fault(&|f| f[14] = 0x55),
        (Layer::Ipv4, 14, Kind::BadVersion(5))
    );
    assert_eq!(
        fault(&|f| f[14] = 0x44),
        (Layer::Ipv4, 14, Kind::BadHeaderLength(4))
    );
    assert_eq!(
        fault(&|f| f[16..18].copy_from_slice(&[0, 19])),
        (Layer::Ipv4, 14, Kind::BadLength(19))
    );
    let short = Kind::TooShort { need: 20, have: 19 };
    assert_eq!(
        fault(&|f| f[16..18].copy_from_slice(&[0, 39])),
        (Layer::Tcp, 34, short)
    );
    assert_eq!(
        fault(&|f| f[46] = 0x40),
        (Layer::Tcp, 34, Kind::BadHeaderLength(4))
    );
    let long = Kind::TooShort { need: 60, have: 50 };
    assert_eq!(fault(&|f| f[46] = 0xf0), (Layer::Tcp, 34, long));
    assert_eq!(
        fault(&|f| f.truncate(13)),
        (Layer::Ethernet, 0, Kind::TooShort { need: 14, have: 13 })
    );
    let error = whole(LinkType(195), &frame).expect_err("not decoded");
    assert_eq!(error.kind, Kind::UnsupportedLinkType(195));
    let error = whole(LinkType::RAW, &[0x50; 40]).expect_err("no version");
    assert_eq!((error.layer, error.kind), (Layer::Ip, Kind::BadVersion(5)));
}

#[test]
fn other_traffic_is_no_fault() {
    let arp = wrap::ethernet(0x0806, &[0; 28]);
    let packet = whole(ETHERNET, &arp).expect("decodes");
    assert_eq!(packet.transport, Transport::NotIp(0x0806));
    assert_eq!(packet.network, Network::None);
    let icmp = wrap::ethernet(0x0800, &wrap::ip(client().ip(), server().ip(), 1, &[8; 16]));
    assert_eq!(
        whole(ETHERNET, &icmp).expect("decodes").transport,
        Transport::Other(1)
    );
    let stp = wrap::ethernet(38, &[0x42; 46]);
    assert_eq!(
        whole(ETHERNET, &stp).expect("decodes").transport,
        Transport::NotIp(0)
    );
    let udp = UdpFrame {
        payload: b"hello",
        ..UdpFrame::new(client(), server())
    };
    let mut frame = udp.to_vec();
    frame.resize(60, 0);
    let packet = whole(ETHERNET, &frame).expect("decodes");
    let datagram = udp_of(&packet);
    assert_eq!((datagram.payload, datagram.payload_len), (&b"hello"[..], 5));
    assert_eq!(checksum::verify_udp(&packet.network, &datagram), Some(true));
}

#[test]
fn ipv4_options_and_fragments() {
    let mut packet = inner().to_packet();
    packet.splice(20..20, [1, 1, 1, 0]);
    packet[0] = 0x46;
    packet[3] += 4;
    carries(LinkType::RAW, &packet, &inner(), 0);

    let mut later = inner().to_vec();
    later[20..22].copy_from_slice(&[0, 100]);
    let packet = whole(ETHERNET, &later).expect("decodes");
    assert_eq!(packet.transport, Transport::Fragment);
    let mut first = inner().to_vec();
    first[20] = 0x20;
    let packet = whole(ETHERNET, &first).expect("decodes");
    assert_eq!(tcp_of(&packet).payload, inner().payload);
    assert_eq!(
        checksum::verify_tcp(&packet.network, &tcp_of(&packet)),
        None
    );
    // So small that the header goes on in the next one (RFC 1858).
    first[16..18].copy_from_slice(&[0, 28]);
    let packet = whole(ETHERNET, &first).expect("decodes");
    assert_eq!(
        (packet.transport, packet.fault),
        (Transport::Fragment, None)
    );
    // A datagram is longer than its first fragment, and that is not a fault.
    let payload = [0; 100];
    let udp = UdpFrame {
        payload: &payload,
        ..UdpFrame::new(client(), server())
    };
    let mut first = udp.to_packet();
    first[6] = 0x20;
    first[2..4].copy_from_slice(&[0, 68]);
    let packet = whole(LinkType::RAW, &first[..68]).expect("decodes");
    assert_eq!((udp_of(&packet).payload_len, packet.fault), (40, None));
}

#[test]
fn ipv6_extension_headers() {
    let sent = inner6();
    let segment = sent.to_packet().split_off(40);
    let with = |first: u8, extensions: &[u8]| {
        wrap::ip(
            sent.src.ip(),
            sent.dst.ip(),
            first,
            &[extensions, &segment[..]].concat(),
        )
    };
    let pad = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    carries(LinkType::RAW, &with(0, &pad(6)), &sent, 0);
    let all = [
        &pad(60)[..],
        &pad(43),
        &pad(44),
        &[51, 0, 0, 0, 0, 0, 0, 9],
        &[6, 1],
        &[0; 10],
    ]
    .concat();
    carries(LinkType::RAW, &with(0, &all), &sent, 0);

    let packet = with(44, &[6, 0, 0, 0x09, 0, 0, 0, 1]);
    let packet = whole(LinkType::RAW, &packet).expect("decodes");
    assert_eq!(packet.transport, Transport::Fragment);
    let packet = with(44, &[6, 0, 0, 1, 0, 0, 0, 1]);
    let packet = whole(LinkType::RAW, &packet).expect("decodes");
    assert_eq!(tcp_of(&packet).payload, sent.payload);

    let packet = with(60, &pad(60).repeat(40));
    let error = whole(LinkType::RAW, &packet).expect_err("too deep");
    assert_eq!(
        (error.layer, error.kind),
        (Layer::Ipv6Extension, DecodeErrorKind::TooDeep)
    );
    let packet = with(0, &[6, 200, 0, 0]);
    let error = whole(LinkType::RAW, &packet).expect_err("beyond the packet");
    assert_eq!((error.layer, error.offset), (Layer::Ipv6Extension, 40));
    let none = wrap::ip(sent.src.ip(), sent.dst.ip(), 59, &[]);
    assert_eq!(
        whole(LinkType::RAW, &none).expect("decodes").transport,
        Transport::Other(59)
    );
}

#[test]
fn nesting_is_bounded() {
    let mut frame = inner().to_vec();
    for id in 0..17 {
        frame = wrap::vlan(0x8100, id, &frame);
    }
    let error = whole(ETHERNET, &frame).expect_err("too deep");
    assert_eq!(
        (error.layer, error.kind),
        (Layer::Vlan, DecodeErrorKind::TooDeep)
    );
    let frame = wrap::ethernet(0x8847, &wrap::mpls(&[7; 17], &inner().to_packet()));
    assert_eq!(
        whole(ETHERNET, &frame).expect_err("too deep").layer,
        Layer::Mpls
    );

    let mut packet = inner().to_packet();
    for depth in 1..=9_u8 {
        packet = wrap::ip(client().ip(), server().ip(), 4, &packet);
        let decoded = whole(LinkType::RAW, &packet).expect("stands");
        if depth <= 8 {
            assert_eq!((decoded.tunnels, decoded.fault), (depth, None));
            assert_eq!(tcp_of(&decoded).payload, inner().payload);
        } else {
            assert_eq!(decoded.transport, Transport::Other(4));
            let fault = decoded.fault.expect("a fault");
            assert_eq!(
                (fault.kind, fault.offset),
                (DecodeErrorKind::TooDeep, 9 * 20)
            );
        }
    }
}

#[test]
fn a_tunnel_that_does_not_decode_leaves_its_carrier() {
    let carrier = |port: u16, payload: &[u8]| {
        let udp = UdpFrame {
            payload,
            ..UdpFrame::new(client(), SocketAddr::new(server().ip(), port))
        };
        udp.to_vec()
    };
    // No flag, version, type or length of the tunnel: a guess that was wrong, no fault.
    for (port, payload) in [
        (4789, &[0; 40][..]),
        (6081, &[0xc0; 40]),
        (2152, &[0x32, 1, 0, 0, 0, 0, 0, 0]),
        (3544, &[0x60; 44]),
        (4789, &[8]),
    ] {
        let frame = carrier(port, payload);
        let packet = whole(ETHERNET, &frame).expect("stands");
        assert_eq!((packet.tunnels, packet.fault), (0, None), "{port}");
        assert_eq!(udp_of(&packet).payload, payload);
    }
    let broken = wrap::vxlan(5, &wrap::ethernet(0x0800, &[0x45, 0, 0]));
    let frame = carrier(4789, &broken);
    let packet = whole(ETHERNET, &frame).expect("stands");
    assert_eq!(udp_of(&packet).payload, broken);
    let fault = packet.fault.expect("a fault");
    assert_eq!((fault.layer, fault.offset), (Layer::Ipv4, 42 + 8 + 14));
    // ARP in VXLAN: no IP inside, the datagram is the packet.
    let frame = carrier(4789, &wrap::vxlan(5, &wrap::ethernet(0x0806, &[0; 28])));
    let packet = whole(ETHERNET, &frame).expect("stands");
    assert_eq!(
        (udp_of(&packet).dst_port(), packet.tunnels, packet.fault),
        (4789, 0, None)
    );

    let gre = wrap::ip(client().ip(), server().ip(), 47, &[0, 5, 8, 0, 0, 0]);
    let packet = whole(LinkType::RAW, &gre).expect("stands");
    assert_eq!(packet.transport, Transport::Other(47));
    assert_eq!(
        packet.fault.map(|f| f.kind),
        Some(DecodeErrorKind::BadVersion(5))
    );

    // A redirection header that the packet ends in: the fault is where it starts.
    let gre = wrap::gre(0x883e, Gre::default(), &[0, 0, 0]);
    let packet = wrap::ip(client().ip(), server().ip(), 47, &gre);
    let fault = whole(LinkType::RAW, &packet).expect("stands").fault;
    let fault = fault.expect("a fault");
    assert_eq!((fault.layer, fault.offset), (Layer::Gre, 24));
    assert_eq!(fault.kind, DecodeErrorKind::TooShort { need: 4, have: 3 });
}

#[test]
fn a_length_of_udp_beyond_its_packet_is_noted_too() {
    let udp = UdpFrame {
        payload: b"hello",
        ..UdpFrame::new(client(), server())
    };
    let mut frame = udp.to_vec();
    frame[39] = 14;
    let packet = whole(ETHERNET, &frame).expect("decodes");
    assert_eq!(udp_of(&packet).payload, b"hello");
    let fault = packet.fault.expect("a fault");
    assert_eq!((fault.layer, fault.offset), (Layer::Udp, 34));
    frame[39] = 7;
    let error = whole(ETHERNET, &frame).expect_err("below its header");
    assert_eq!(error.kind, DecodeErrorKind::BadLength(7));
    frame[39] = 0;
    let packet = whole(ETHERNET, &frame).expect("decodes");
    assert_eq!((udp_of(&packet).payload_len, packet.fault), (5, None));
    // A packet without a length of its own ends with its frame, in a fragment too.
    frame[16..18].fill(0);
    frame[38] = 200;
    for flags in [0, 0x20] {
        frame[20] = flags;
        let packet = whole(ETHERNET, &frame).expect("decodes");
        assert_eq!(udp_of(&packet).payload_len, 5);
        assert_eq!(packet.fault.is_some(), flags == 0);
    }
}

#[test]
fn lengths_of_the_link_end_what_has_none_itself() {
    // An offloaded packet says no length; the padding behind it is still none of it.
    let sent = TcpFrame {
        payload: b"x",
        ..TcpFrame::new(client(), server())
    };
    let mut packet = sent.to_packet();
    packet[2..4].fill(0);
    let mut pppoe = wrap::ethernet(0x8864, &wrap::pppoe(1, &wrap::ppp(0x21, &packet)));
    pppoe.extend_from_slice(&[0xee; 9]);
    for frame in [wrap::ieee_802_3(0x0800, &packet), pppoe] {
        let decoded = whole(ETHERNET, &frame).expect("decodes");
        assert_eq!(tcp_of(&decoded).payload, b"x");
        assert_eq!(tcp_of(&decoded).payload_len, 1);
    }
}

#[test]
fn first_fragments_of_ipv6_promise_more_than_they_hold() {
    let (src, dst) = (addr("[2001:db8::1]:53"), addr("[2001:db8::2]:40000"));
    let payload = [0; 100];
    let datagram = UdpFrame {
        payload: &payload,
        ..UdpFrame::new(src, dst)
    };
    let datagram = datagram.to_packet().split_off(40);
    let first = [&[17, 0, 0, 1, 0, 0, 0, 9], &datagram[..48]].concat();
    let packet = wrap::ip(src.ip(), dst.ip(), 44, &first);
    let packet = whole(LinkType::RAW, &packet).expect("decodes");
    assert_eq!((udp_of(&packet).payload_len, packet.fault), (40, None));
    assert_eq!(
        checksum::verify_udp(&packet.network, &udp_of(&packet)),
        None
    );
}

#[test]
fn priorities_acknowledgments_and_traffic_class() {
    let mut frame = wrap::vlan(0x8100, 7, &inner().to_vec());
    frame[14] |= 0xe0;
    assert_eq!(whole(ETHERNET, &frame).expect("decodes").vlan, Some(7));
    let mut frame = wrap::vlan(0x88a8, 8, &frame);
    frame[14] |= 0x70;
    assert_eq!(whole(ETHERNET, &frame).expect("decodes").vlan, Some(8));

    // Enhanced GRE with an acknowledgment number behind the sequence number.
    let mut gre = wrap::gre_pptp(3, 4, &wrap::ppp(0x21, &inner().to_packet()));
    gre[1] |= 0x80;
    gre.splice(12..12, [0, 0, 0, 1]);
    let packet = wrap::ip(client().ip(), server().ip(), 47, &gre);
    carries(LinkType::RAW, &packet, &inner(), 1);
    // An acknowledgment alone carries nothing.
    let packet = wrap::ip(
        client().ip(),
        server().ip(),
        47,
        &[0x20, 0x81, 0x88, 0x0b, 0, 0, 0, 3, 0, 0, 0, 1],
    );
    let packet = whole(LinkType::RAW, &packet).expect("decodes");
    assert_eq!(
        (packet.transport, packet.fault),
        (Transport::Other(47), None)
    );

    let mut frame = inner6().to_vec();
    frame[14..16].copy_from_slice(&[0x6b, 0x80]);
    let packet = whole(ETHERNET, &frame).expect("decodes");
    assert_eq!(packet.network.traffic_class(), 0xb8);
    assert_eq!(
        (packet.network.version(), packet.network.identification()),
        (6, None)
    );
    let syn = TcpFrame {
        flags: TcpFlags::SYN | TcpFlags::FIN,
        payload: b"abc",
        ..TcpFrame::new(client(), server())
    };
    let frame = syn.to_vec();
    assert_eq!(
        tcp_of(&whole(ETHERNET, &frame).expect("decodes")).sequence_len(),
        5
    );
}

#[test]
fn a_computed_udp_checksum_of_zero_is_sent_as_ones() {
    let empty = UdpFrame {
        payload: &[0, 0],
        ..UdpFrame::new(client(), server())
    };
    let sum = udp_of(&whole(ETHERNET, &empty.to_vec()).expect("decodes")).checksum();
    let frame = UdpFrame {
        payload: &sum.to_be_bytes(),
        ..empty
    }
    .to_vec();
    let packet = whole(ETHERNET, &frame).expect("decodes");
    assert_eq!(udp_of(&packet).checksum(), 0xffff);
    assert_eq!(
        checksum::verify_udp(&packet.network, &udp_of(&packet)),
        Some(true)
    );
}

/// Reads all there is to read, and holds what every packet must hold.
fn read_all(outcome: Result<Packet<'_>, DecodeError>, frame: &[u8], wire_len: u32) {
    let mut faults = DecodeFaults::default();
    let wire = wire_len.max(u32::try_from(frame.len()).expect("a frame"));
    let mut check = |fault: &DecodeError| {
        faults.record(fault);
        assert!(fault.offset <= wire, "{fault}");
    };
    match outcome {
        Err(error) => check(&error),
        Ok(packet) => {
            if let Some(fault) = &packet.fault {
                check(fault);
            }
            let was_cut = |fault: DecodeError| matches!(fault.kind, DecodeErrorKind::Cut { .. });
            let longest = if packet.fault.is_some_and(was_cut) {
                wire.max(1 << 16)
            } else {
                wire
            };
            assert!(packet.tunnels <= 8);
            assert!(packet.vlan.is_none_or(|id| id < 4096));
            match packet.transport {
                Transport::Tcp(tcp) => {
                    assert!(tcp.payload.len() <= tcp.payload_len as usize);
                    assert!(tcp.payload_len < longest);
                    assert!(tcp.options().count() <= 20);
                    for option in tcp.options() {
                        if let TcpOption::Sack(blocks) = option {
                            assert!(blocks.count() <= 4);
                        }
                    }
                    let known = checksum::verify_tcp(&packet.network, &tcp).is_some();
                    assert!(!known || tcp.payload.len() == tcp.payload_len as usize);
                }
                Transport::Udp(udp) => {
                    assert!(udp.payload.len() <= udp.payload_len as usize);
                    assert!(udp.payload_len < longest);
                    let known = checksum::verify_udp(&packet.network, &udp).is_some();
                    assert!(!known || udp.payload.len() == udp.payload_len as usize);
                }
                Transport::Fragment
                | Transport::Icmp6(_)
                | Transport::Other(_)
                | Transport::NotIp(_) => {}
            }
        }
    }
}

#[test]
fn every_prefix_of_every_stack_is_a_shorter_payload_or_a_fault() {
    let all = stacks().into_iter().chain(media_stacks()).chain(stacks6());
    for (name, link, frame, _) in all {
        let wire_len = u32::try_from(frame.len()).expect("a frame");
        let entire = tcp_of(&decode(link, &frame, wire_len).expect("decodes"));
        for len in 0..frame.len() {
            let cut = &frame[..len];
            let outcome = decode(link, cut, wire_len);
            read_all(outcome, cut, wire_len);
            match outcome {
                Err(error) => assert!(
                    matches!(error.kind, DecodeErrorKind::Cut { .. }),
                    "{name} {error}"
                ),
                Ok(Packet {
                    transport: Transport::Tcp(tcp),
                    ..
                }) => {
                    assert_eq!(tcp.payload_len, entire.payload_len, "{name} {len}");
                    assert!(entire.payload.starts_with(tcp.payload), "{name} {len}");
                }
                // A cut tunnel leaves its carrier, cut labels leave nothing to tell IP by.
                Ok(packet) => assert!(
                    matches!(
                        packet.transport,
                        Transport::Udp(_)
                            | Transport::Other(4 | 41 | 47 | 137)
                            | Transport::NotIp(0x8847)
                    ),
                    "{name} {len} {packet:?}"
                ),
            }
            // The same bytes as a whole frame.
            read_all(whole(link, cut), cut, 0);
        }
    }
}

fn endpoints() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    let port = prop_oneof![Just(80_u16), Just(40_000), 1_u16..2000];
    let pair = (any::<bool>(), any::<[u8; 16]>(), any::<[u8; 16]>());
    (pair, port.clone(), port).prop_map(|((is_v6, src, dst), src_port, dst_port)| {
        let address = |octets: [u8; 16]| match *octets.first_chunk::<4>().expect("four") {
            four if !is_v6 => IpAddr::from(four),
            _ => IpAddr::from(octets),
        };
        (
            SocketAddr::new(address(src), src_port),
            SocketAddr::new(address(dst), dst_port),
        )
    })
}

proptest! {
    #[test]
    fn emit_then_decode_is_the_identity(
        (src, dst) in endpoints(),
        numbers: (u32, u32, u8, u16),
        vlans in vec(0_u16..4096, 0..4),
        option_words in vec(any::<[u8; 4]>(), 0..=10),
        payload in vec(any::<u8>(), 0..2000),
        padding in 0_usize..50,
    ) {
        let (seq, ack, flags, window) = numbers;
        let sent = TcpFrame {
            vlans: &vlans,
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags: TcpFlags(flags),
            window,
            options: option_words.as_flattened(),
            payload: &payload,
            ..TcpFrame::new(src, dst)
        };
        let mut frame = sent.to_vec();
        frame.resize(frame.len() + padding, 0xaa);
        carries(ETHERNET, &frame, &sent, 0);
        prop_assert_eq!(whole(ETHERNET, &frame).expect("decodes").vlan, vlans.first().copied());
    }

    #[test]
    fn emit_then_decode_is_the_identity_for_udp((src, dst) in endpoints(), payload in vec(any::<u8>(), 0..2000)) {
        let sent = UdpFrame { payload: &payload, ..UdpFrame::new(src, dst) };
        let frame = sent.to_vec();
        let packet = whole(ETHERNET, &frame).expect("decodes");
        let udp = udp_of(&packet);
        prop_assert_eq!((udp.src_port(), udp.dst_port()), (src.port(), dst.port()));
        prop_assert_eq!(udp.payload, &payload[..]);
        prop_assert_eq!(checksum::verify_udp(&packet.network, &udp), Some(true));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300), wire_len: u32) {
        for link in LinkType::DECODED.into_iter().chain([UNKNOWN]) {
            read_all(decode(link, &bytes, wire_len), &bytes, wire_len);
            read_all(decode(link, &bytes, 0), &bytes, 0);
        }
    }

    /// Damaged frames reach deeper than random bytes; and both paths agree on all of them.
    #[test]
    fn damaged_frames_never_panic_and_the_paths_agree(
        which: prop::sample::Index,
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut: prop::sample::Index,
        more in 0_u32..100,
    ) {
        let all: Vec<_> = stacks().into_iter().chain(stacks6()).collect();
        let (_, link, mut frame, _) = which.get(&all).clone();
        for (place, value) in damage {
            let place = place.index(frame.len().min(120));
            frame[place] = value;
        }
        let len = cut.index(frame.len() * 2).min(frame.len());
        let captured = &frame[..len];
        let wire_len = u32::try_from(frame.len()).expect("a frame") + more;
        let outcome = decode(link, captured, wire_len);
        read_all(outcome, captured, wire_len);
        if link == ETHERNET && let Some(packet) = plain(captured, wire_len) {
            prop_assert_eq!(walk::walk(link, captured, wire_len), Ok(packet));
        }
    }
}

#[test]
fn what_is_wrong_inside_of_a_part_is_told_of_the_packet() {
    let mut segment = TcpFrame {
        payload: &[7; 100],
        ..TcpFrame::new(client(), server())
    }
    .to_packet();
    // A header of two words.
    segment[32] = 0x20;
    let parts = crate::emit::fragments(&segment, 1, 64);
    for part in &parts {
        let packet = decode(LinkType::RAW, part, 0).expect("a part");
        assert_eq!(packet.transport, Transport::Fragment);
        assert!(packet.is_fragment);
    }
    let mut faults = Vec::new();
    let mut all = crate::Fragments::default();
    for part in &parts {
        all.on_frame((LinkType::RAW, part, 0), crate::Timestamp::ZERO, |joined| {
            faults.push(joined.packet.map(|packet| packet.is_fragment));
        });
    }
    let error = decode(LinkType::RAW, &segment, 0).expect_err("no header");
    assert_eq!(faults, [Err(error)]);
}
