//! Building frames: Ethernet, IP, TCP and UDP with correct lengths and checksums.
//!
//! [`TcpFrame`] and [`UdpFrame`] append whole frames to a buffer the caller keeps; [`wrap`] puts
//! packets and frames into tags, link layers and tunnels.

mod fragments;
mod ip;
pub mod media;
pub mod wrap;

use std::net::SocketAddr;

pub use fragments::fragments;

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
            ip::ethertype(self.src, self.dst),
        );
        self.append_packet_to(out);
    }

    /// Appends the IP packet without the Ethernet header.
    pub fn append_packet_to(&self, out: &mut Vec<u8>) {
        let options = self.options.get(..40).unwrap_or(self.options);
        let header_len = 20 + options.len().next_multiple_of(4);
        let (src, dst) = ip::one_family(self.src.ip(), self.dst.ip());
        let packet = ip::Header {
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
            ip::ethertype(self.src, self.dst),
        );
        self.append_packet_to(out);
    }

    /// Appends the IP packet without the Ethernet header.
    pub fn append_packet_to(&self, out: &mut Vec<u8>) {
        let (src, dst) = ip::one_family(self.src.ip(), self.dst.ip());
        let len = 8 + self.payload.len();
        let packet = ip::Header {
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
fn finish_segment(out: &mut [u8], start: usize, field: usize, packet: &ip::Header) {
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
