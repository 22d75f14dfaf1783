//! Link layers of other media: FDDI, ARCnet, Frame Relay, SLIP; and the kernel's log (NFLOG).

use super::cursor::{Cursor, len32};
use super::state::{Arcnet, Next, Step, Walk};
use crate::{DecodeError, DecodeErrorKind, Layer, Transport};

type Result<'a> = std::result::Result<Step<'a>, DecodeError>;

/// FDDI: frame control, addresses, then LLC in asynchronous frames of that class (ISO 9314-2).
pub(super) fn fddi(at: Cursor<'_>) -> Result<'_> {
    let (head, rest) = at.take::<13>(Layer::Fddi)?;
    Ok(match head[0] & 0xf0 {
        0x50 => Step::Into(Next::Llc, rest),
        _ => Step::Done(Transport::NotIp(0)),
    })
}

/// ARCnet: two addresses of one byte, a system code, and of RFC 1201 how the packet is split.
///
/// Source: RFC 1051, RFC 1201 sec. 2; `LINKTYPE_ARCNET_BSD` and `LINKTYPE_ARCNET_LINUX`.
pub(super) fn arcnet<'a>(walk: &mut Walk<'a>, form: Arcnet, at: Cursor<'a>) -> Result<'a> {
    let addresses = match form {
        Arcnet::Bsd => 2,
        Arcnet::Linux => 4,
    };
    let (&[code], behind) = at.skip_all(Layer::Arcnet, addresses)?.take(Layer::Arcnet)?;
    let next = match code {
        0xf0 => return Ok(Step::Into(Next::Ipv4, behind)),
        0xd4 => Next::Ipv4,
        0xc4 => Next::Ipv6,
        _ => return Ok(Step::Done(Transport::NotIp(0))),
    };
    let (&[mut split, ..], mut rest) = behind.take::<3>(Layer::Arcnet)?;
    if form == Arcnet::Bsd && split == 0xff {
        // The header proper follows, with its code again.
        let (&[_, flag, ..], after) = rest.take::<4>(Layer::Arcnet)?;
        (split, rest) = (flag, after);
    }
    // Zero is a whole packet, an odd number the first part, an even one a later part.
    Ok(match (split, split & 1) {
        (0, _) => Step::Into(next, rest),
        (_, 1) => {
            walk.in_fragment = true;
            Step::Into(next, rest)
        }
        _ => Step::Done(Transport::NotIp(0)),
    })
}

/// SLIP: direction, kind of header compression, then the packet as it was before compression.
///
/// Source: `LINKTYPE_SLIP` of the tcpdump group.
pub(super) fn slip(at: Cursor<'_>) -> Result<'_> {
    Ok(Step::Into(Next::Ip, at.skip_all(Layer::Slip, 16)?))
}

/// Frame Relay: an address of 2 to 4 bytes, then RFC 2427's protocol identifier or Cisco's Ethernet type.
///
/// Source: ITU-T Q.922 sec. 3.2, RFC 2427 sec. 3 and 4.
pub(super) fn frame_relay<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    const MAX_ADDRESS: usize = 4;
    walk.tag(Layer::FrameRelay, at)?;
    let mut address = at.bytes.iter().take(MAX_ADDRESS);
    let Some(last) = address.position(|byte| byte & 1 == 1) else {
        return Err(if at.bytes.len() < MAX_ADDRESS {
            at.missing(Layer::FrameRelay, MAX_ADDRESS)
        } else {
            at.error(Layer::FrameRelay, DecodeErrorKind::BadHeaderLength(4))
        });
    };
    let body = at.skip(len32(last + 1));
    let (&[control, second], rest) = body.take::<2>(Layer::FrameRelay)?;
    if control != 3 {
        let ethertype = u16::from_be_bytes([control, second]);
        return Ok(Step::Into(Next::EtherType(ethertype), rest));
    }
    // A byte of padding may stand before the identifier.
    let (identifier, rest) = match second {
        0 => {
            let (&[identifier], rest) = rest.take(Layer::FrameRelay)?;
            (identifier, rest)
        }
        identifier => (identifier, rest),
    };
    Ok(match identifier {
        0xcc => Step::Into(Next::Ipv4, rest),
        0x8e => Step::Into(Next::Ipv6, rest),
        // RFC 1973.
        0xcf => Step::Into(Next::Ppp, rest),
        0x80 => Step::Into(Next::Snap, rest),
        _ => Step::Done(Transport::NotIp(0)),
    })
}

/// Multilink Frame Relay: two bytes that say which part of a frame this is (FRF.16.1 sec. 3).
pub(super) fn multilink_frame_relay<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    let (&[bits, _], rest) = at.take::<2>(Layer::FrameRelay)?;
    // Begin, end, control.
    Ok(
        match (bits & 0x80 != 0, bits & 0x40 != 0, bits & 0x20 != 0) {
            (true, is_end, false) => {
                walk.in_fragment |= !is_end;
                Step::Into(Next::FrameRelay, rest)
            }
            _ => Step::Done(Transport::NotIp(0)),
        },
    )
}

/// The kernel's log: family, version, then attributes, one of which is the packet.
///
/// Numbers are in the byte order of the machine that wrote them; the first attribute tells it, for types
/// are small. Source: `LINKTYPE_NFLOG` of the tcpdump group.
pub(super) fn nflog<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    const PACKET_HEADER: u16 = 1;
    const PAYLOAD: u16 = 9;
    const MAX_ATTRIBUTES: usize = 64;
    let (&[family, version, ..], mut rest) = at.take::<4>(Layer::Nflog)?;
    if version != 0 {
        return Err(at.error(Layer::Nflog, DecodeErrorKind::BadVersion(version)));
    }
    let is_little = rest.peek::<4>().is_some_and(|head| head[2] != 0);
    let number = |bytes: [u8; 2]| match is_little {
        true => u16::from_le_bytes(bytes),
        false => u16::from_be_bytes(bytes),
    };
    let mut ethertype = 0;
    for _ in 0..MAX_ATTRIBUTES {
        if rest.wire == 0 {
            return Ok(Step::Done(Transport::NotIp(ethertype)));
        }
        let (&[a, b, c, d], body) = rest.take::<4>(Layer::Nflog)?;
        let (len, kind) = (number([a, b]), number([c, d]) & 0x3fff);
        let Some(body_len) = len.checked_sub(4).map(u32::from) else {
            return Err(rest.error(Layer::Nflog, DecodeErrorKind::BadLength(len)));
        };
        match kind {
            PACKET_HEADER => {
                let (protocol, _) = body.take::<2>(Layer::Nflog)?;
                ethertype = u16::from_be_bytes(*protocol);
            }
            PAYLOAD => {
                let packet = walk.limit(body, body_len, Layer::Nflog);
                return Ok(match family {
                    2 => Step::Into(Next::Ipv4, packet),
                    10 => Step::Into(Next::Ipv6, packet),
                    _ => Step::Into(Next::EtherType(ethertype), packet),
                });
            }
            _ => {}
        }
        rest = body.skip(body_len.next_multiple_of(4));
    }
    Err(rest.error(Layer::Nflog, DecodeErrorKind::TooDeep))
}
