//! IPv4 and IPv6: lengths, fragments, extension headers.

use super::cursor::Cursor;
use super::state::{Fragment, Next, Step, Walk};
use crate::{DecodeError, DecodeErrorKind, Layer, Network, Transport};

type Result<'a> = std::result::Result<Step<'a>, DecodeError>;

/// Extension headers of one IPv6 packet; RFC 8200 sec. 4.1 knows at most eight in order.
const MAX_EXTENSIONS: usize = 16;

/// Version 4 or 6 by the first nibble.
pub(super) fn by_version(at: Cursor<'_>) -> Result<'_> {
    let (&[first], _) = at.take::<1>(Layer::Ip)?;
    match first >> 4 {
        4 => Ok(Step::Into(Next::Ipv4, at)),
        6 => Ok(Step::Into(Next::Ipv6, at)),
        other => Err(at.error(Layer::Ip, DecodeErrorKind::BadVersion(other))),
    }
}

/// IPv4 (RFC 791 sec. 3.1).
pub(super) fn v4<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    let (header, _) = at.take::<20>(Layer::Ipv4)?;
    let (version, words) = (header[0] >> 4, header[0] & 0x0f);
    if version != 4 {
        return Err(at.error(Layer::Ipv4, DecodeErrorKind::BadVersion(version)));
    }
    if words < 5 {
        return Err(at.error(Layer::Ipv4, DecodeErrorKind::BadHeaderLength(words)));
    }
    let header_len = u16::from(words) * 4;
    let total = u16::from_be_bytes([header[2], header[3]]);
    let packet = if total == 0 {
        // Segmentation offload: the card would have set the length.
        at.ended()
    } else if total < header_len {
        return Err(at.error(Layer::Ipv4, DecodeErrorKind::BadLength(total)));
    } else {
        walk.limit(at, u32::from(total), Layer::Ipv4)
    };
    let rest = packet.skip_all(Layer::Ipv4, usize::from(header_len))?;
    walk.network = Network::V4(header);
    let place = u16::from_be_bytes([header[6], header[7]]);
    if place & 0x3fff != 0 {
        let fragment = Fragment {
            network: walk.network,
            protocol: header[9],
            identification: u32::from(u16::from_be_bytes([header[4], header[5]])),
            offset: u32::from(place & 0x1fff) * 8,
            has_more: place & 0x2000 != 0,
            data: rest.bytes,
            len: rest.wire,
            vlan: walk.vlan,
            tunnels: walk.tunnels,
        };
        if is_later(walk, fragment) {
            return Ok(Step::Done(Transport::Fragment));
        }
    }
    Ok(Step::Into(Next::Protocol(header[9]), rest))
}

/// Notes a fragment; whether it is none that a transport header begins.
fn is_later<'a>(walk: &mut Walk<'a>, fragment: Fragment<'a>) -> bool {
    walk.fragment.get_or_insert(fragment);
    walk.in_fragment = true;
    fragment.offset != 0
}

/// IPv6 and its extension headers (RFC 8200 sec. 3 and 4).
pub(super) fn v6<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    let (header, rest) = at.take::<40>(Layer::Ipv6)?;
    let version = header[0] >> 4;
    if version != 6 {
        return Err(at.error(Layer::Ipv6, DecodeErrorKind::BadVersion(version)));
    }
    walk.network = Network::V6(header);
    let mut rest = match u16::from_be_bytes([header[4], header[5]]) {
        // A jumbogram (RFC 2675) or segmentation offload: what the frame had.
        0 => rest.ended(),
        len => walk.limit(rest, u32::from(len), Layer::Ipv6),
    };
    let mut next = header[6];
    for _ in 0..MAX_EXTENSIONS {
        let len = match next {
            // Hop-by-hop, routing, destination, mobility, host identity, shim: 8-byte units after
            // the first (RFC 6564).
            0 | 43 | 60 | 135 | 139 | 140 => {
                let (head, _) = rest.take::<2>(Layer::Ipv6Extension)?;
                next = head[0];
                (usize::from(head[1]) + 1) * 8
            }
            44 => {
                let (head, _) = rest.take::<8>(Layer::Ipv6Extension)?;
                let place = u16::from_be_bytes([head[2], head[3]]);
                // Neither later nor with more to come it is an atomic fragment, a whole packet (RFC 6946).
                if place & 0xfff9 != 0 {
                    let data = rest.skip(8);
                    let fragment = Fragment {
                        network: walk.network,
                        protocol: head[0],
                        identification: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
                        offset: u32::from(place & 0xfff8),
                        has_more: place & 1 != 0,
                        data: data.bytes,
                        len: data.wire,
                        vlan: walk.vlan,
                        tunnels: walk.tunnels,
                    };
                    if is_later(walk, fragment) {
                        return Ok(Step::Done(Transport::Fragment));
                    }
                }
                next = head[0];
                8
            }
            _ => return Ok(Step::Into(Next::Protocol(next), rest)),
        };
        rest = rest.skip_all(Layer::Ipv6Extension, len)?;
    }
    Err(rest.error(Layer::Ipv6Extension, DecodeErrorKind::TooDeep))
}
