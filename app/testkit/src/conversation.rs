//! Scripted TCP conversations: who sends what and when, and what the network does to it.
//!
//! A [`Conversation`] keeps both sequence spaces and a clock. What was sent stands in a list of
//! [`Segment`]s that a test may drop, repeat, delay, exchange or change; [`Conversation::frames`]
//! writes them as a capture in the order of their times.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use linkweir_wire::emit::{TcpFrame, UdpFrame, media, wrap};
use linkweir_wire::{LinkType, SeqNumber, TcpFlags};

use crate::capture_writer::CapturedFrame;

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Who opened it.
    Client,
    /// Who was asked.
    Server,
}

/// One segment of a conversation; everything may be changed before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Capture time, nanoseconds since the epoch.
    pub at_ns: u64,
    /// Who sent it.
    pub from: Side,
    /// `SEG.SEQ`.
    pub seq: SeqNumber,
    /// `SEG.ACK`.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: TcpFlags,
    /// Payload.
    pub payload: Vec<u8>,
}

/// What the segments are wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encapsulation {
    /// Ethernet and IP, nothing else.
    Plain,
    /// One 802.1Q tag.
    Vlan(u16),
    /// Two tags, the outer one of 802.1ad.
    QinQ(u16, u16),
    /// Two MPLS labels.
    Mpls,
    /// PPP over Ethernet.
    Pppoe,
    /// GRE with a key.
    Gre,
    /// ERSPAN type II.
    Erspan,
    /// VXLAN.
    Vxlan,
    /// Geneve with one option.
    Geneve,
    /// GTP-U.
    GtpU,
    /// IP in IP.
    IpInIp,
    /// Linux cooked capture, version 2.
    LinuxSll2,
    /// IP without a link layer.
    RawIp,
    /// IEEE 802.11 with radiotap.
    Radiotap,
    /// IEEE 802.11 and nothing before it.
    Wlan,
    /// IEEE 802.11 with the header of Prism cards.
    Prism,
    /// IEEE 802.11 with AVS.
    Avs,
    /// IEEE 802.11 in PPI.
    Ppi,
    /// The log of netfilter.
    Nflog,
    /// Frame Relay.
    FrameRelay,
    /// Multilink Frame Relay.
    MultilinkFrameRelay,
    /// SLIP.
    Slip,
    /// FDDI.
    Fddi,
    /// ARCnet as BSD writes it.
    Arcnet,
    /// ARCnet as Linux writes it.
    ArcnetLinux,
    /// Cisco FabricPath.
    FabricPath,
    /// GRE in UDP.
    GreInUdp,
    /// VXLAN-GPE with a packet in it.
    VxlanGpe,
    /// IEEE 802.11 in GRE, as access points of Aruba send it.
    WlanInGre,
    /// IEEE 802.11 in CAPWAP.
    Capwap,
    /// AYIYA.
    Ayiya,
}

impl Encapsulation {
    /// One of each.
    pub const ALL: [Self; 31] = [
        Self::Plain,
        Self::Vlan(7),
        Self::QinQ(100, 200),
        Self::Mpls,
        Self::Pppoe,
        Self::Gre,
        Self::Erspan,
        Self::Vxlan,
        Self::Geneve,
        Self::GtpU,
        Self::IpInIp,
        Self::LinuxSll2,
        Self::RawIp,
        Self::Radiotap,
        Self::Wlan,
        Self::Prism,
        Self::Avs,
        Self::Ppi,
        Self::Nflog,
        Self::FrameRelay,
        Self::MultilinkFrameRelay,
        Self::Slip,
        Self::Fddi,
        Self::Arcnet,
        Self::ArcnetLinux,
        Self::FabricPath,
        Self::GreInUdp,
        Self::VxlanGpe,
        Self::WlanInGre,
        Self::Capwap,
        Self::Ayiya,
    ];

    /// The link type of what [`Encapsulation::wrap`] gives.
    #[must_use]
    pub const fn link(self) -> LinkType {
        match self {
            Self::LinuxSll2 => LinkType::LINUX_SLL2,
            Self::RawIp => LinkType::RAW,
            Self::Radiotap => LinkType::IEEE802_11_RADIOTAP,
            Self::Wlan => LinkType::IEEE802_11,
            Self::Prism => LinkType::IEEE802_11_PRISM,
            Self::Avs => LinkType::IEEE802_11_AVS,
            Self::Ppi => LinkType::PPI,
            Self::Nflog => LinkType::NFLOG,
            Self::FrameRelay => LinkType::FRELAY,
            Self::MultilinkFrameRelay => LinkType::MFR,
            Self::Slip => LinkType::SLIP,
            Self::Fddi => LinkType::FDDI,
            Self::Arcnet => LinkType::ARCNET_BSD,
            Self::ArcnetLinux => LinkType::ARCNET_LINUX,
            _ => LinkType::ETHERNET,
        }
    }

    /// The outermost VLAN id.
    #[must_use]
    pub const fn vlan(self) -> Option<u16> {
        match self {
            Self::Vlan(id) | Self::QinQ(id, _) => Some(id),
            _ => None,
        }
    }

    /// A frame of this kind around a segment.
    #[must_use]
    pub fn wrap(self, tcp: &TcpFrame<'_>) -> Vec<u8> {
        let is_v4 = tcp.src.is_ipv4() && tcp.dst.is_ipv4();
        let ethertype = if is_v4 { 0x0800 } else { 0x86dd };
        let (frame, packet) = (tcp.to_vec(), tcp.to_packet());
        let tunnel = |protocol, payload: &[u8]| {
            wrap::ethernet(0x0800, &wrap::ip(OUTER_SRC, OUTER_DST, protocol, payload))
        };
        let udp = |port, payload: &[u8]| {
            let (src, dst) = (
                SocketAddr::new(OUTER_SRC, 50_000),
                SocketAddr::new(OUTER_DST, port),
            );
            UdpFrame {
                payload,
                ..UdpFrame::new(src, dst)
            }
            .to_vec()
        };
        let air = || {
            let form = media::Wlan {
                has_qos: true,
                ..media::Wlan::default()
            };
            media::ieee_802_11(form, &media::snap(ethertype, &packet))
        };
        // Protocol identifiers of Frame Relay, system codes of ARCnet.
        let (relay, code) = if is_v4 { (0xcc, 0xd4) } else { (0x8e, 0xc4) };
        match self {
            Self::Plain => frame,
            Self::Vlan(id) => wrap::vlan(0x8100, id, &frame),
            Self::QinQ(outer, inner) => {
                wrap::vlan(0x88a8, outer, &wrap::vlan(0x8100, inner, &frame))
            }
            Self::Mpls => wrap::ethernet(0x8847, &wrap::mpls(&[16, 17], &packet)),
            Self::Pppoe => {
                let protocol = if is_v4 { 0x0021 } else { 0x0057 };
                wrap::ethernet(0x8864, &wrap::pppoe(9, &wrap::ppp(protocol, &packet)))
            }
            Self::Gre => {
                let fields = wrap::Gre {
                    key: Some(5),
                    ..wrap::Gre::default()
                };
                tunnel(47, &wrap::gre(ethertype, fields, &packet))
            }
            Self::Erspan => tunnel(47, &wrap::erspan_2(1, &frame)),
            Self::Vxlan => udp(4789, &wrap::vxlan(42, &frame)),
            Self::Geneve => udp(6081, &wrap::geneve(42, &[[1; 4]], 0x6558, &frame)),
            Self::GtpU => udp(2152, &wrap::gtp_u(77, &[], &packet)),
            Self::IpInIp => tunnel(if is_v4 { 4 } else { 41 }, &packet),
            Self::LinuxSll2 => wrap::linux_sll2(ethertype, &packet),
            Self::RawIp => packet,
            Self::Radiotap => media::radiotap(1, false, &air()),
            Self::Wlan => air(),
            Self::Prism => media::prism(&air()),
            Self::Avs => media::avs(&air()),
            Self::Ppi => media::ppi(105, &air()),
            Self::Nflog => media::nflog(if is_v4 { 2 } else { 10 }, ethertype, true, &packet),
            Self::FrameRelay => media::frame_relay(relay, &packet),
            Self::MultilinkFrameRelay => {
                media::multilink_frame_relay(&media::frame_relay(relay, &packet))
            }
            Self::Slip => media::slip(&packet),
            Self::Fddi => media::fddi(&media::snap(ethertype, &packet)),
            Self::Arcnet => media::arcnet(code, &packet),
            Self::ArcnetLinux => media::arcnet_linux(code, &packet),
            Self::FabricPath => media::fabricpath(&frame),
            Self::GreInUdp => {
                let gre = wrap::gre(ethertype, wrap::Gre::default(), &packet);
                udp(4754, &gre)
            }
            Self::VxlanGpe => udp(
                4790,
                &media::vxlan_gpe(42, if is_v4 { 1 } else { 2 }, &packet),
            ),
            Self::WlanInGre => tunnel(47, &wrap::gre(0x8200, wrap::Gre::default(), &air())),
            Self::Capwap => udp(5247, &media::capwap(true, &air())),
            Self::Ayiya => udp(5072, &media::ayiya(if is_v4 { 4 } else { 41 }, &packet)),
        }
    }
}

const OUTER_SRC: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1));
const OUTER_DST: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 2));

/// A connection that is being told.
///
/// Nobody acknowledges on his own account: each segment acknowledges all that the other side has
/// sent before it, so requests sent one after the other are pipelined.
#[derive(Debug, Clone)]
pub struct Conversation {
    client: SocketAddr,
    server: SocketAddr,
    client_next: SeqNumber,
    server_next: SeqNumber,
    now_ns: u64,
    spacing_ns: u64,
    mss: usize,
    encapsulation: Encapsulation,
    snaplen: usize,
    segments: Vec<Segment>,
}

impl Conversation {
    /// When a conversation begins that says nothing else, nanoseconds since the epoch.
    pub const START_NS: u64 = 1_700_000_000_000_000_000;
    /// Time between two segments that says nothing else, nanoseconds.
    pub const SPACING_NS: u64 = 1_000_000;

    /// A conversation between two endpoints.
    #[must_use]
    pub const fn between(client: SocketAddr, server: SocketAddr) -> Self {
        Self {
            client,
            server,
            client_next: SeqNumber(1001),
            server_next: SeqNumber(500_001),
            now_ns: Self::START_NS,
            spacing_ns: Self::SPACING_NS,
            mss: 1460,
            encapsulation: Encapsulation::Plain,
            snaplen: usize::MAX,
            segments: Vec::new(),
        }
    }

    /// From a port of 192.0.2.1 to port 80 of 198.51.100.2.
    #[must_use]
    pub const fn v4(port: u16) -> Self {
        Self::between(
            SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), port),
            SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2)), 80),
        )
    }

    /// From a port of `2001:db8::1` to port 80 of `2001:db8:1::2`.
    #[must_use]
    pub const fn v6(port: u16) -> Self {
        let client = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let server = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);
        Self::between(
            SocketAddr::new(IpAddr::V6(client), port),
            SocketAddr::new(IpAddr::V6(server), 80),
        )
    }

    /// The numbers of the first bytes that the two sides send (initial sequence numbers plus one).
    #[must_use]
    pub const fn numbered(mut self, client: u32, server: u32) -> Self {
        self.client_next = SeqNumber(client);
        self.server_next = SeqNumber(server);
        self
    }

    /// Begins at another time, nanoseconds since the epoch.
    #[must_use]
    pub const fn starting_at(mut self, ns: u64) -> Self {
        self.now_ns = ns;
        self
    }

    /// Puts this much time between two segments.
    #[must_use]
    pub const fn spaced(mut self, ns: u64) -> Self {
        self.spacing_ns = ns;
        self
    }

    /// Cuts what is sent after this many bytes.
    #[must_use]
    pub fn mss(mut self, bytes: usize) -> Self {
        self.mss = bytes.max(1);
        self
    }

    /// Wraps all segments.
    #[must_use]
    pub const fn within(mut self, encapsulation: Encapsulation) -> Self {
        self.encapsulation = encapsulation;
        self
    }

    /// Captures only the first bytes of each frame.
    #[must_use]
    pub const fn snaplen(mut self, bytes: usize) -> Self {
        self.snaplen = bytes;
        self
    }

    /// The clock, nanoseconds since the epoch.
    #[must_use]
    pub const fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Nothing is sent for a while.
    pub fn wait(&mut self, span: Duration) -> &mut Self {
        self.now_ns += linkweir_wire::nanos(span);
        self
    }

    /// SYN, SYN with ACK, ACK.
    pub fn handshake(&mut self) -> &mut Self {
        let before = |seq: SeqNumber| SeqNumber(seq.0.wrapping_sub(1));
        let (client, server) = (self.client_next, self.server_next);
        self.put(
            Side::Client,
            before(client),
            SeqNumber(0),
            TcpFlags::SYN,
            &[],
        );
        self.put(
            Side::Server,
            before(server),
            client,
            TcpFlags::SYN | TcpFlags::ACK,
            &[],
        );
        self.put(Side::Client, client, server, TcpFlags::ACK, &[]);
        self
    }

    /// The client sends bytes, in segments of at most the maximum size.
    pub fn client_sends(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.sends(Side::Client, bytes.as_ref(), &[])
    }

    /// The server sends bytes, in segments of at most the maximum size.
    pub fn server_sends(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.sends(Side::Server, bytes.as_ref(), &[])
    }

    /// A side sends bytes in segments that end at the offsets `cuts` (rising), and at most the
    /// maximum size apart.
    pub fn sends(&mut self, from: Side, bytes: &[u8], cuts: &[usize]) -> &mut Self {
        let mut done = 0;
        for end in cuts.iter().copied().chain([bytes.len()]) {
            let end = end.min(bytes.len());
            let part = bytes.get(done..end).unwrap_or_default();
            done = done.max(end);
            for payload in part.chunks(self.mss) {
                let (seq, ack) = self.numbers(from);
                self.put(from, seq, ack, TcpFlags::ACK | TcpFlags::PSH, payload);
                self.pass(from, payload.len());
            }
        }
        self
    }

    /// The client opens with data on its SYN (RFC 7413).
    pub fn opens_with(&mut self, bytes: &[u8]) -> &mut Self {
        let (seq, _) = self.numbers(Side::Client);
        let syn = SeqNumber(seq.0.wrapping_sub(1));
        self.put(Side::Client, syn, SeqNumber(0), TcpFlags::SYN, bytes);
        self.pass(Side::Client, bytes.len());
        self
    }

    /// A side acknowledges without data.
    pub fn acknowledges(&mut self, from: Side) -> &mut Self {
        let (seq, ack) = self.numbers(from);
        self.put(from, seq, ack, TcpFlags::ACK, &[]);
        self
    }

    /// A side has nothing more to send.
    pub fn fin(&mut self, from: Side) -> &mut Self {
        let (seq, ack) = self.numbers(from);
        self.put(from, seq, ack, TcpFlags::FIN | TcpFlags::ACK, &[]);
        self.pass(from, 1);
        self
    }

    /// A side breaks off.
    pub fn rst(&mut self, from: Side) -> &mut Self {
        let (seq, ack) = self.numbers(from);
        self.put(from, seq, ack, TcpFlags::RST | TcpFlags::ACK, &[]);
        self
    }

    /// A side's next bytes are not seen: the capture lost them.
    pub fn skips(&mut self, from: Side, bytes: usize) -> &mut Self {
        self.pass(from, bytes);
        self
    }

    /// What was sent so far.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// What was sent so far, to be changed.
    pub const fn segments_mut(&mut self) -> &mut Vec<Segment> {
        &mut self.segments
    }

    /// Loses segment `at`.
    pub fn lose(&mut self, at: usize) -> &mut Self {
        if at < self.segments.len() {
            self.segments.remove(at);
        }
        self
    }

    /// Sends segment `at` once more, `after_ns` later.
    pub fn repeat(&mut self, at: usize, after_ns: u64) -> &mut Self {
        if let Some(segment) = self.segments.get(at) {
            let mut again = segment.clone();
            again.at_ns = again.at_ns.saturating_add(after_ns);
            self.segments.push(again);
        }
        self
    }

    /// Lets segment `at` come later.
    pub fn delay(&mut self, at: usize, by_ns: u64) -> &mut Self {
        if let Some(segment) = self.segments.get_mut(at) {
            segment.at_ns = segment.at_ns.saturating_add(by_ns);
        }
        self
    }

    /// Lets two segments come each at the other's time.
    pub fn exchange(&mut self, one: usize, other: usize) -> &mut Self {
        if let (Some(a), Some(b)) = (self.segments.get(one), self.segments.get(other)) {
            let (a, b) = (a.at_ns, b.at_ns);
            for (at, ns) in [(one, b), (other, a)] {
                if let Some(segment) = self.segments.get_mut(at) {
                    segment.at_ns = ns;
                }
            }
        }
        self
    }

    /// The link type of the frames.
    #[must_use]
    pub const fn link(&self) -> LinkType {
        self.encapsulation.link()
    }

    /// The capture, in the order of times.
    #[must_use]
    pub fn frames(&self) -> Vec<CapturedFrame> {
        let mut frames = self.frames_as_listed();
        frames.sort_by_key(|frame| frame.timestamp_ns);
        frames
    }

    /// The capture in the order of the list, whatever the times say.
    #[must_use]
    pub fn frames_as_listed(&self) -> Vec<CapturedFrame> {
        self.segments
            .iter()
            .map(|segment| self.frame(segment))
            .collect()
    }

    fn frame(&self, segment: &Segment) -> CapturedFrame {
        let (src, dst) = match segment.from {
            Side::Client => (self.client, self.server),
            Side::Server => (self.server, self.client),
        };
        let tcp = TcpFrame {
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            payload: &segment.payload,
            ..TcpFrame::new(src, dst)
        };
        let mut bytes = self.encapsulation.wrap(&tcp);
        let wire_len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        bytes.truncate(self.snaplen);
        CapturedFrame {
            timestamp_ns: segment.at_ns,
            interface: 0,
            bytes,
            wire_len,
        }
    }

    const fn numbers(&self, from: Side) -> (SeqNumber, SeqNumber) {
        match from {
            Side::Client => (self.client_next, self.server_next),
            Side::Server => (self.server_next, self.client_next),
        }
    }

    fn pass(&mut self, from: Side, bytes: usize) {
        let next = match from {
            Side::Client => &mut self.client_next,
            Side::Server => &mut self.server_next,
        };
        next.0 = next
            .0
            .wrapping_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    fn put(&mut self, from: Side, seq: SeqNumber, ack: SeqNumber, flags: TcpFlags, bytes: &[u8]) {
        self.segments.push(Segment {
            at_ns: self.now_ns,
            from,
            seq,
            ack,
            flags,
            payload: bytes.to_vec(),
        });
        self.now_ns += self.spacing_ns;
    }
}

#[cfg(test)]
mod tests {
    use linkweir_wire::{Transport, decode};

    use super::*;

    #[test]
    fn numbers_run_and_every_encapsulation_decodes() {
        for encapsulation in Encapsulation::ALL {
            for start in [Conversation::v4(4000), Conversation::v6(4000)] {
                let mut talk = start
                    .within(encapsulation)
                    .mss(4)
                    .numbered(u32::MAX - 1, 70);
                talk.handshake()
                    .client_sends("abcdef")
                    .server_sends("xy")
                    .fin(Side::Server);
                let frames = talk.frames();
                assert_eq!(frames.len(), 7);
                let read: Vec<_> = frames
                    .iter()
                    .map(|f| {
                        let packet = decode(talk.link(), &f.bytes, f.wire_len).unwrap();
                        assert_eq!(packet.vlan, encapsulation.vlan());
                        let Transport::Tcp(tcp) = packet.transport else {
                            panic!("{encapsulation:?}")
                        };
                        (tcp.seq().0, tcp.ack().0, tcp.payload.to_vec())
                    })
                    .collect();
                assert_eq!(
                    read[3],
                    (u32::MAX - 1, 70, b"abcd".to_vec()),
                    "{encapsulation:?}"
                );
                assert_eq!(read[4], (2, 70, b"ef".to_vec()));
                assert_eq!(read[5], (70, 4, b"xy".to_vec()));
                assert_eq!(read[6].0, 72);
            }
        }
    }

    #[test]
    fn the_network_loses_repeats_and_reorders() {
        let mut talk = Conversation::v4(4000);
        talk.sends(Side::Client, b"abc", &[1, 2]);
        talk.exchange(0, 1).repeat(2, 10);
        let payloads = |talk: &Conversation| {
            let mut segments = talk.segments().to_vec();
            segments.sort_by_key(|s| s.at_ns);
            segments
                .iter()
                .flat_map(|s| s.payload.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(payloads(&talk), b"bacc");
        talk.lose(0).snaplen = 50;
        assert_eq!(payloads(&talk), b"bcc");
        assert!(
            talk.frames()
                .iter()
                .all(|f| f.bytes.len() == 50 && f.wire_len == 55)
        );
    }
}
