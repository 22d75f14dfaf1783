//! Building frames: Ethernet, IP, TCP and UDP with correct lengths and checksums.
//!
//! [`TcpFrame`] and [`UdpFrame`] append whole frames to a buffer the caller keeps; [`wrap`] puts
//! packets and frames into tags, link layers and tunnels.

pub mod media;
pub mod wrap;

use std::net::{IpAddr, SocketAddr};

use crate::{SeqNumber, TcpFlags, checksum};

/// A TCP segment in an Ethernet frame.
///
/// Made by [`TcpFrame::new`] and struct update:
///
/// ```
/// use linkweir_wire::emit::TcpFrame;
/// use linkweir_wire::{LinkType, TcpFlags, Transport, decode};
///
/// let (client, server) = ("192.0.2.1:40000".parse()?, "192.0.2.2:80".parse()?);
/// let frame = TcpFrame {
///     flags: TcpFlags::ACK | TcpFlags::PSH,
///     payload: b"GET / HTTP/1.1\r\n\r\n",
///     ..TcpFrame::new(client, server)
/// }
/// .to_vec();
/// let packet = decode(LinkType::ETHERNET, &frame, 72)?;
/// let Transport::Tcp(tcp) = packet.transport else { unreachable!() };
/// assert_eq!((tcp.dst_port(), tcp.payload_len), (80, 18));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpFrame<'a> {
    /// Source address of the frame.
    pub src_mac: [u8; 6],
    /// Destination address of the frame.
    pub dst_mac: [u8; 6],
    /// VLAN identifiers, outermost first (12 bits each, type 0x8100).
    pub vlans: &'a [u16],
    /// Source. Where one of the two is version 6, both are written so (version 4 as mapped).
    pub src: SocketAddr,
    /// Destination.
    pub dst: SocketAddr,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Identification of the IPv4 packet.
    pub identification: u16,
    /// `SEG.SEQ`.
    pub seq: SeqNumber,
    /// `SEG.ACK`.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: TcpFlags,
    /// `SEG.WND`, unscaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent_pointer: u16,
    /// Options; padded with end-of-list to 4 bytes, cut after 40.
    pub options: &'a [u8],
    /// Payload. A packet longer than its length field can say gets length 0, as segmentation
    /// offload shows it.
    pub payload: &'a [u8],
}

impl<'a> TcpFrame<'a> {
    /// An empty ACK segment between two endpoints.
    #[must_use]
    pub const fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        Self {
            src_mac: SRC_MAC,
            dst_mac: DST_MAC,
            vlans: &[],
            src,
            dst,
            ttl: 64,
            identification: 0,
            seq: SeqNumber(0),
            ack: SeqNumber(0),
            flags: TcpFlags::ACK,
            window: 65_535,
            urgent_pointer: 0,
            options: &[],
            payload: &[],
        }
    }

    /// Appends the frame.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        ethernet(
            out,
            self.dst_mac,
            self.src_mac,
            self.vlans,
            ethertype(self.src, self.dst),
        );
        self.append_packet_to(out);
    }

    /// Appends the IP packet without the Ethernet header.
    pub fn append_packet_to(&self, out: &mut Vec<u8>) {
        let options = self.options.get(..40).unwrap_or(self.options);
        let header_len = 20 + options.len().next_multiple_of(4);
        let (src, dst) = one_family(self.src.ip(), self.dst.ip());
        let packet = Header {
            src,
            dst,
            protocol: 6,
            ttl: self.ttl,
            identification: self.identification,
            payload_len: header_len + self.payload.len(),
        };
        packet.append_to(out);
        let start = out.len();
        out.extend_from_slice(&self.src.port().to_be_bytes());
        out.extend_from_slice(&self.dst.port().to_be_bytes());
        out.extend_from_slice(&self.seq.0.to_be_bytes());
        out.extend_from_slice(&self.ack.0.to_be_bytes());
        // At most 60 bytes: 15 words.
        out.push(u8::try_from(header_len / 4).unwrap_or(15) << 4);
        out.push(self.flags.0);
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.urgent_pointer.to_be_bytes());
        out.extend_from_slice(options);
        out.resize(start + header_len, 0);
        out.extend_from_slice(self.payload);
        finish_segment(out, start, 16, &packet);
    }

    /// The frame.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.append_to(&mut out);
        out
    }

    /// The IP packet without the Ethernet header.
    #[must_use]
    pub fn to_packet(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.append_packet_to(&mut out);
        out
    }
}

/// A UDP datagram in an Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpFrame<'a> {
    /// Source address of the frame.
    pub src_mac: [u8; 6],
    /// Destination address of the frame.
    pub dst_mac: [u8; 6],
    /// VLAN identifiers, outermost first (12 bits each, type 0x8100).
    pub vlans: &'a [u16],
    /// Source. Where one of the two is version 6, both are written so (version 4 as mapped).
    pub src: SocketAddr,
    /// Destination.
    pub dst: SocketAddr,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Identification of the IPv4 packet.
    pub identification: u16,
    /// Payload; a datagram longer than its length field can say gets length 0.
    pub payload: &'a [u8],
}

impl<'a> UdpFrame<'a> {
    /// An empty datagram between two endpoints.
    #[must_use]
    pub const fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        Self {
            src_mac: SRC_MAC,
            dst_mac: DST_MAC,
            vlans: &[],
            src,
            dst,
            ttl: 64,
            identification: 0,
            payload: &[],
        }
    }

    /// Appends the frame.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        ethernet(
            out,
            self.dst_mac,
            self.src_mac,
            self.vlans,
            ethertype(self.src, self.dst),
        );
        self.append_packet_to(out);
    }

    /// Appends the IP packet without the Ethernet header.
    pub fn append_packet_to(&self, out: &mut Vec<u8>) {
        let (src, dst) = one_family(self.src.ip(), self.dst.ip());
        let len = 8 + self.payload.len();
        let packet = Header {
            src,
            dst,
            protocol: 17,
            ttl: self.ttl,
            identification: self.identification,
            payload_len: len,
        };
        packet.append_to(out);
        let start = out.len();
        out.extend_from_slice(&self.src.port().to_be_bytes());
        out.extend_from_slice(&self.dst.port().to_be_bytes());
        out.extend_from_slice(&u16::try_from(len).unwrap_or(0).to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(self.payload);
        finish_segment(out, start, 6, &packet);
    }

    /// The frame.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.append_to(&mut out);
        out
    }

    /// The IP packet without the Ethernet header.
    #[must_use]
    pub fn to_packet(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.append_packet_to(&mut out);
        out
    }
}

/// Locally administered addresses for frames that name none.
const SRC_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const DST_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn ethernet(out: &mut Vec<u8>, dst: [u8; 6], src: [u8; 6], vlans: &[u16], ethertype: u16) {
    out.extend_from_slice(&dst);
    out.extend_from_slice(&src);
    for vlan in vlans {
        out.extend_from_slice(&0x8100_u16.to_be_bytes());
        out.extend_from_slice(&(vlan & 0x0fff).to_be_bytes());
    }
    out.extend_from_slice(&ethertype.to_be_bytes());
}

/// Writes the checksum of the segment from `start` on into its field, `field` bytes in.
fn finish_segment(out: &mut [u8], start: usize, field: usize, packet: &Header) {
    let Some(segment) = out.get_mut(start..) else {
        return;
    };
    let checksum = checksum::of_segment(packet.src, packet.dst, packet.protocol, segment);
    put(segment, field, checksum);
}

/// Overwrites the two bytes at `at`.
fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<2>) {
        *field = value.to_be_bytes();
    }
}

// IP headers.

/// What an IP header says; the version is that of the addresses.
#[derive(Debug, Clone, Copy)]
struct Header {
    src: IpAddr,
    dst: IpAddr,
    protocol: u8,
    ttl: u8,
    identification: u16,
    payload_len: usize,
}

impl Header {
    fn append_to(&self, out: &mut Vec<u8>) {
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let start = out.len();
                let total = u16::try_from(self.payload_len + 20).unwrap_or(0);
                out.extend_from_slice(&[0x45, 0]);
                out.extend_from_slice(&total.to_be_bytes());
                out.extend_from_slice(&self.identification.to_be_bytes());
                // Don't fragment, as every TCP sends (RFC 1191).
                out.extend_from_slice(&[0x40, 0, self.ttl, self.protocol, 0, 0]);
                out.extend_from_slice(&src.octets());
                out.extend_from_slice(&dst.octets());
                if let Some(header) = out.get_mut(start..) {
                    put(header, 10, checksum::of(header));
                }
            }
            (src, dst) => {
                let len = u16::try_from(self.payload_len).unwrap_or(0);
                out.extend_from_slice(&[0x60, 0, 0, 0]);
                out.extend_from_slice(&len.to_be_bytes());
                out.extend_from_slice(&[self.protocol, self.ttl]);
                out.extend_from_slice(&checksum::v6_octets(src));
                out.extend_from_slice(&checksum::v6_octets(dst));
            }
        }
    }
}

/// Both addresses in the one family that can hold both.
const fn one_family(src: IpAddr, dst: IpAddr) -> (IpAddr, IpAddr) {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V6(_)) => (IpAddr::V6(src.to_ipv6_mapped()), dst),
        (IpAddr::V6(_), IpAddr::V4(dst)) => (src, IpAddr::V6(dst.to_ipv6_mapped())),
        same => same,
    }
}

const fn ethertype(src: SocketAddr, dst: SocketAddr) -> u16 {
    if src.is_ipv4() && dst.is_ipv4() {
        0x0800
    } else {
        0x86dd
    }
}

// Cutting an IP packet into fragments.

/// The fragments of an IP packet without options or extension headers, each with at most `piece` bytes of
/// data (rounded down to whole units of 8); what is not an IP packet comes back as it is.
///
/// Source: RFC 791 sec. 3.2, RFC 8200 sec. 4.5.
#[must_use]
pub fn fragments(packet: &[u8], identification: u32, piece: usize) -> Vec<Vec<u8>> {
    let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let Some((header, data)) = packet.split_at_checked(if is_v6 { 40 } else { 20 }) else {
        return vec![packet.to_vec()];
    };
    let piece = (piece / 8).max(1) * 8;
    let count = data.len().div_ceil(piece).max(1);
    let cut = |(place, part): (usize, &[u8])| {
        let units = u16::try_from(place * piece / 8).unwrap_or(0);
        let has_more = place + 1 < count;
        if is_v6 {
            v6(header, part, identification, units, has_more)
        } else {
            v4(header, part, identification, units, has_more)
        }
    };
    data.chunks(piece).enumerate().map(cut).collect()
}

fn v4(header: &[u8], part: &[u8], identification: u32, units: u16, has_more: bool) -> Vec<u8> {
    let mut out = [header, part].concat();
    let len = u16::try_from(out.len()).unwrap_or(0);
    put(&mut out, 2, len);
    put(
        &mut out,
        4,
        u16::try_from(identification & 0xffff).unwrap_or(0),
    );
    put(&mut out, 6, units | if has_more { 0x2000 } else { 0 });
    put(&mut out, 10, 0);
    let checksum = checksum::of(out.get(..20).unwrap_or_default());
    put(&mut out, 10, checksum);
    out
}

fn v6(header: &[u8], part: &[u8], identification: u32, units: u16, has_more: bool) -> Vec<u8> {
    let protocol = header.get(6).copied().unwrap_or(59);
    let place = (units << 3 | u16::from(has_more)).to_be_bytes();
    let head = [&[protocol, 0], &place[..], &identification.to_be_bytes()].concat();
    let mut out = [header, &head, part].concat();
    put(&mut out, 4, u16::try_from(8 + part.len()).unwrap_or(0));
    if let Some(next) = out.get_mut(6) {
        *next = 44;
    }
    out
}
