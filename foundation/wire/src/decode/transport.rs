//! What an IP packet carries: TCP, UDP, another IP packet, or something that is only named.

use super::cursor::Cursor;
use super::state::{Next, Step, Walk};
use crate::{DecodeError, DecodeErrorKind, Layer, Network, Tcp, Transport, Udp};

type Result<'a> = std::result::Result<Step<'a>, DecodeError>;

const IPV4: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ICMP6: u8 = 58;
const AUTHENTICATION: u8 = 51;
const MPLS: u8 = 137;

/// By protocol number.
pub(super) fn protocol<'a>(walk: &mut Walk<'a>, protocol: u8, at: Cursor<'a>) -> Result<'a> {
    let carrier = Transport::Other(protocol);
    match protocol {
        TCP => or_fragment(walk, tcp(at)),
        UDP => {
            let datagram = udp(walk, at);
            or_fragment(walk, datagram)
        }
        AUTHENTICATION => authentication(walk, at),
        IPV4 => {
            walk.tunnel(carrier, Layer::Ipv4, at)?;
            Ok(Step::Into(Next::Ipv4, at))
        }
        IPV6 => {
            walk.tunnel(carrier, Layer::Ipv6, at)?;
            Ok(Step::Into(Next::Ipv6, at))
        }
        GRE => {
            walk.tunnel(carrier, Layer::Gre, at)?;
            Ok(Step::Into(Next::Gre, at))
        }
        MPLS => {
            walk.tunnel(carrier, Layer::Mpls, at)?;
            Ok(Step::Into(Next::Mpls, at))
        }
        ICMP6 => {
            let kind = at.bytes.first();
            Ok(Step::Done(
                kind.map_or(carrier, |kind| Transport::Icmp6(*kind)),
            ))
        }
        _ => Ok(Step::Done(carrier)),
    }
}

/// A first fragment may end in the transport header; that is not a fault of the packet.
fn or_fragment<'a>(walk: &Walk<'a>, result: Result<'a>) -> Result<'a> {
    match result {
        Err(error)
            if walk.in_fragment && matches!(error.kind, DecodeErrorKind::TooShort { .. }) =>
        {
            Ok(Step::Done(Transport::Fragment))
        }
        other => other,
    }
}

/// TCP (RFC 9293 sec. 3.1).
fn tcp(at: Cursor<'_>) -> Result<'_> {
    let (header, rest) = at.take::<20>(Layer::Tcp)?;
    let words = header[12] >> 4;
    let Some(options_len) = (u32::from(words) * 4).checked_sub(20) else {
        return Err(at.error(Layer::Tcp, DecodeErrorKind::BadHeaderLength(words)));
    };
    if options_len > rest.wire {
        return Err(at.missing(Layer::Tcp, usize::from(words) * 4));
    }
    let body = rest.skip(options_len);
    Ok(Step::Done(Transport::Tcp(Tcp {
        header,
        // Cut options are given as far as they go.
        options: rest.limit(options_len).bytes,
        payload: body.bytes,
        payload_len: body.wire,
    })))
}

/// UDP (RFC 768), and the tunnels that are known by their port.
fn udp<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    let (header, rest) = at.take::<8>(Layer::Udp)?;
    let length = u16::from_be_bytes([header[4], header[5]]);
    let body = match u32::from(length).checked_sub(8) {
        Some(len) => {
            if len > rest.wire {
                walk.note(at.beyond_end(Layer::Udp, u32::from(length)));
            }
            rest.limit(len)
        }
        // Jumbograms (RFC 2675 sec. 4) and segmentation offload: to the end of the IP packet.
        None if length == 0 => rest,
        None => return Err(at.error(Layer::Udp, DecodeErrorKind::BadLength(length))),
    };
    let datagram = Udp {
        header,
        payload: body.bytes,
        payload_len: body.wire,
    };
    let carrier = Transport::Udp(datagram);
    if let Some((next, layer)) = tunnel_by_port(walk.network, datagram, body) {
        walk.tunnel(carrier, layer, body)?;
        return Ok(Step::Into(next, body));
    }
    Ok(Step::Done(carrier))
}

/// Linux's number for VXLAN from before RFC 7348 gave one.
const VXLAN_LINUX: u16 = 8472;
const VXLAN: u16 = 4789;
const GENEVE: u16 = 6081;
const GTP_U: u16 = 2152;
const TEREDO: u16 = 3544;
/// GRE in UDP (RFC 8086 sec. 8.1).
const GRE_IN_UDP: u16 = 4754;
/// VXLAN with a field for the protocol it carries.
const VXLAN_GPE: u16 = 4790;
/// AYIYA of `SixXS` and others (draft-massar-v6ops-ayiya-02).
const AYIYA: u16 = 5072;
/// The data channel of CAPWAP (RFC 5415 sec. 3.1).
const CAPWAP: u16 = 5247;

/// Whether a datagram from or to this port may be a tunnel's.
#[inline]
pub(super) const fn is_tunnel_port(port: u16) -> bool {
    matches!(
        port,
        VXLAN | VXLAN_LINUX | VXLAN_GPE | GENEVE | GTP_U | TEREDO | GRE_IN_UDP | AYIYA | CAPWAP
    )
}

/// A port is only a guess: the header behind it must look like the tunnel's.
fn tunnel_by_port(network: Network<'_>, udp: Udp<'_>, body: Cursor<'_>) -> Option<(Next, Layer)> {
    let (src, dst) = (udp.src_port(), udp.dst_port());
    match (src, dst) {
        // The I flag must be set (RFC 7348 sec. 5). The source port is a hash of the inside.
        (_, VXLAN | VXLAN_LINUX) => {
            let head = body.peek::<8>()?;
            (head[0] & 0x08 != 0).then_some((Next::Vxlan, Layer::Vxlan))
        }
        // Version 0 (RFC 8926 sec. 3.4).
        (_, GENEVE) => {
            let head = body.peek::<8>()?;
            (head[0] >> 6 == 0).then_some((Next::Geneve, Layer::Geneve))
        }
        // Version 1, protocol type GTP, message G-PDU (TS 29.281 sec. 5.1 and 6.1).
        (GTP_U, _) | (_, GTP_U) => {
            let head = body.peek::<8>()?;
            (head[0] >> 4 == 0b0011 && head[1] == 255).then_some((Next::GtpU, Layer::GtpU))
        }
        // The I flag and version 0 (draft-ietf-nvo3-vxlan-gpe-13 sec. 3.1).
        (_, VXLAN_GPE) => {
            let head = body.peek::<8>()?;
            (head[0] & 0x38 == 0x08).then_some((Next::VxlanGpe, Layer::VxlanGpe))
        }
        // Version 0, no source routing, and no reserved bits (RFC 8086 sec. 3.2).
        (_, GRE_IN_UDP) => {
            let head = body.peek::<4>()?;
            (head[0] & 0x4f == 0 && head[1] == 0).then_some((Next::Gre, Layer::Gre))
        }
        // Version 0 without encryption (RFC 5415 sec. 4.2), and no keep-alive.
        (CAPWAP, _) | (_, CAPWAP) => {
            let head = body.peek::<8>()?;
            (head[0] == 0 && head[3] & 0x08 == 0).then_some((Next::Capwap, Layer::Capwap))
        }
        // "Forward" of a packet that follows (draft-massar-v6ops-ayiya-02 sec. 3).
        (AYIYA, _) | (_, AYIYA) => {
            let head = body.peek::<8>()?;
            (head[2] & 0x0f == 1 && matches!(head[3], 4 | 41))
                .then_some((Next::Ayiya, Layer::Ayiya))
        }
        // Teredo runs over IPv4 alone (RFC 4380).
        (TEREDO, _) | (_, TEREDO) if matches!(network, Network::V4(_)) => {
            super::tunnel::teredo_packet(body).map(|_| (Next::Teredo, Layer::Teredo))
        }
        // Clients and relays talk to each other on ports of their own.
        _ if matches!(network, Network::V4(_)) => {
            let is_teredo = super::tunnel::is_teredo_by_content(body);
            is_teredo.then_some((Next::Teredo, Layer::Teredo))
        }
        _ => None,
    }
}

/// The authentication header; what it protects is in the clear (RFC 4302 sec. 2).
fn authentication<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    walk.tag(Layer::Authentication, at)?;
    let (head, _) = at.take::<2>(Layer::Authentication)?;
    let len = (usize::from(head[1]) + 2) * 4;
    let rest = at.skip_all(Layer::Authentication, len)?;
    Ok(Step::Into(Next::Protocol(head[0]), rest))
}
