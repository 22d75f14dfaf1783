//! From a captured frame to the innermost IP packet.
//!
//! [`decode()`] first tries the shape that nearly all traffic has, inlined into the caller:
//! Ethernet, at most one VLAN tag, IPv4 without options or IPv6 without extension headers, TCP or
//! UDP, all lengths in order. Whatever differs starts again in the general walk (`walk`), which reads one
//! header per turn: link layers in `link`, `wireless` and `media`, IP in `ip`, transport in `transport`,
//! tunnels in `tunnel`.
//!
//! Cost: a few nanoseconds on the first path, some tens on the second; no allocation. The walk ends
//! because tags, extension headers and tunnels are limited and every header takes bytes.

mod cursor;
mod ip;
mod link;
mod media;
mod state;
mod transport;
mod tunnel;
mod walk;
mod wireless;

#[cfg(test)]
mod tests;

pub(crate) use state::Fragment;

use crate::{DecodeError, LinkType, Network, Packet, Tcp, Transport, Udp};

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// Decodes a captured frame down to the innermost IP packet and its transport header.
///
/// Units: `wire_len` is the length the frame had on the wire, in bytes; where it is below what was
/// captured, the captured length counts. Payload lengths come from the IP headers, so padding is
/// left out and a cut payload keeps its length, also where the record of the frame says that it was no
/// longer (noted in [`Packet::fault`]); an IP length of zero (segmentation offload) takes what the frame
/// had.
///
/// Errors: where a header is malformed or incomplete. Inside a tunnel that is not an error: the tunnel's
/// own packet is given, with the error in [`Packet::fault`]. Frames without IP and protocols other
/// than TCP and UDP are no errors either.
///
/// # Errors
/// [`DecodeError`] says which header was wrong, where it starts, and why.
#[inline]
pub fn decode(link: LinkType, frame: &[u8], wire_len: u32) -> Result<Packet<'_>, DecodeError> {
    if link == LinkType::ETHERNET
        && let Some(packet) = decode_plain(frame, wire_len)
    {
        return Ok(packet);
    }
    walk::walk(link, frame, wire_len)
}

/// Decodes a frame up to its outermost IP packet: what a tunnel carries is its payload.
///
/// For whoever treats packets as the kernel does on their way, which sees the tunnel. Otherwise as
/// [`decode()`].
///
/// # Errors
/// As those of [`decode()`].
pub fn decode_outermost(
    link: LinkType,
    frame: &[u8],
    wire_len: u32,
) -> Result<Packet<'_>, DecodeError> {
    walk::outermost(link, frame, wire_len)
}

/// The first IP fragment on the way of a frame.
pub(crate) fn fragment(link: LinkType, frame: &[u8], wire_len: u32) -> Option<Fragment<'_>> {
    walk::fragment(link, frame, wire_len)
}

/// Decodes an Ethernet frame of the plain shape, or nothing: then [`decode()`] says what it is.
///
/// A caller that tries this first and calls [`decode()`] out of line keeps the packet in registers,
/// which halves the cost of a frame that turns out to be of no interest.
#[expect(
    clippy::inline_always,
    reason = "called once per packet; as a call it copies a packet of 96 bytes"
)]
#[inline(always)]
#[must_use]
pub fn decode_plain(frame: &[u8], wire_len: u32) -> Option<Packet<'_>> {
    let (ethernet, mut rest) = frame.split_first_chunk::<14>()?;
    // The bytes that were on the wire but not captured.
    let uncaptured = (wire_len as usize).saturating_sub(frame.len());
    let mut ethertype = u16::from_be_bytes([ethernet[12], ethernet[13]]);
    let mut vlan = None;
    if ethertype == ETHERTYPE_VLAN {
        let (tag, after) = rest.split_first_chunk::<4>()?;
        vlan = Some(u16::from_be_bytes([tag[0], tag[1]]) & 0x0fff);
        ethertype = u16::from_be_bytes([tag[2], tag[3]]);
        rest = after;
    }
    let on_wire = rest.len().saturating_add(uncaptured);
    let (network, protocol, rest, len) = match ethertype {
        ETHERTYPE_IPV4 => {
            let (ip, rest) = rest.split_first_chunk::<20>()?;
            let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
            // Version 4 without options, neither a fragment nor followed by one.
            let is_plain = ip[0] == 0x45 && (ip[6] & 0x3f) | ip[7] == 0 && total <= on_wire;
            let len = total.checked_sub(20).filter(|_| is_plain)?;
            (Network::V4(ip), ip[9], rest, len)
        }
        ETHERTYPE_IPV6 => {
            let (ip, rest) = rest.split_first_chunk::<40>()?;
            let len = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
            if ip[0] >> 4 != 6 || len == 0 || len.saturating_add(40) > on_wire {
                return None;
            }
            // An extension header is no protocol that matches below.
            (Network::V6(ip), ip[6], rest, len)
        }
        _ => return None,
    };
    let body = rest.get(..len).unwrap_or(rest);
    let transport = match protocol {
        PROTOCOL_TCP => Transport::Tcp(plain_tcp(body, len)?),
        PROTOCOL_UDP => Transport::Udp(plain_udp(body, len)?),
        _ => return None,
    };
    Some(Packet {
        network,
        transport,
        vlan,
        tunnels: 0,
        is_fragment: false,
        is_later_fragment: false,
        fault: None,
    })
}

/// A segment of `len` bytes on the wire, options captured.
#[expect(clippy::inline_always, reason = "a part of `decode_plain`")]
#[inline(always)]
fn plain_tcp(segment: &[u8], len: usize) -> Option<Tcp<'_>> {
    let (header, body) = segment.split_first_chunk::<20>()?;
    let header_len = usize::from(header[12] >> 4) << 2;
    let (options, payload) = body.split_at_checked(header_len.checked_sub(20)?)?;
    Some(Tcp {
        header,
        options,
        payload,
        // Cannot fail: the header lies in the segment, whose length came from 16 bits.
        payload_len: u32::try_from(len.checked_sub(header_len)?).ok()?,
    })
}

/// A datagram in `len` bytes of an IP packet, between ports that no tunnel has.
#[inline(never)]
fn plain_udp(bytes: &[u8], len: usize) -> Option<Udp<'_>> {
    let (header, body) = bytes.split_first_chunk::<8>()?;
    let src = u16::from_be_bytes([header[0], header[1]]);
    let dst = u16::from_be_bytes([header[2], header[3]]);
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if transport::is_tunnel_port(src) || transport::is_tunnel_port(dst) || length > len {
        return None;
    }
    let payload_len = length.checked_sub(8)?;
    if tunnel::may_be_teredo(body, payload_len) {
        return None;
    }
    Some(Udp {
        header,
        payload: body.get(..payload_len).unwrap_or(body),
        payload_len: u32::try_from(payload_len).ok()?,
    })
}
