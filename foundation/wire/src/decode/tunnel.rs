//! Tunnels: GRE, ERSPAN, VXLAN, Geneve, GTP-U, CAPWAP, AYIYA and Teredo headers.

use super::cursor::Cursor;
use super::state::{Next, Step, Walk, WirelessHeader};
use crate::{DecodeError, DecodeErrorKind, Layer, Transport};

type Result<'a> = std::result::Result<Step<'a>, DecodeError>;

/// Extension headers of one GTP-U packet; five types are defined.
const MAX_GTP_EXTENSIONS: usize = 8;

/// GRE version 0 (RFC 2784, RFC 2890) and the enhanced version 1 of PPTP (RFC 2637 sec. 4.1).
pub(super) fn gre<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    let (header, mut rest) = at.take::<4>(Layer::Gre)?;
    let flags = u16::from_be_bytes([header[0], header[1]]);
    let ethertype = u16::from_be_bytes([header[2], header[3]]);
    let [checksum, routing, key, sequence] =
        [0x8000, 0x4000, 0x2000, 0x1000].map(|bit| flags & bit != 0);
    match flags & 7 {
        // Source routing (RFC 1701) was never used and is gone from RFC 2784.
        0 if routing => Ok(Step::Done(Transport::NotIp(ethertype))),
        0 => {
            for _ in [checksum, key, sequence]
                .into_iter()
                .filter(|&is_there| is_there)
            {
                rest = rest.skip_all(Layer::Gre, 4)?;
            }
            carried_by_gre(walk, ethertype, sequence, rest)
        }
        1 => {
            let (key, after) = rest.take::<4>(Layer::Gre)?;
            // Without a sequence number it carries an acknowledgment and nothing else.
            if !sequence {
                return Ok(Step::Done(Transport::NotIp(ethertype)));
            }
            let acknowledgment = flags & 0x0080 != 0;
            let body = after.skip_all(Layer::Gre, if acknowledgment { 8 } else { 4 })?;
            let len = u32::from(u16::from_be_bytes([key[0], key[1]]));
            let body = walk.limit(body, len, Layer::Gre);
            Ok(Step::Into(Next::EtherType(ethertype), body))
        }
        version => {
            let version = u8::try_from(version).unwrap_or(u8::MAX);
            Err(at.error(Layer::Gre, DecodeErrorKind::BadVersion(version)))
        }
    }
}

fn carried_by_gre<'a>(
    walk: &mut Walk<'a>,
    ethertype: u16,
    has_sequence: bool,
    at: Cursor<'a>,
) -> Result<'a> {
    match ethertype {
        // Type I has no header of its own and no sequence number; type II has both.
        0x88be if !has_sequence => Ok(Step::Into(Next::Ethernet, at)),
        0x88be => erspan(walk, 8, at),
        0x22eb => erspan(walk, 12, at),
        // WCCP: IP, behind four bytes of redirection in its version 2.
        0x883e => {
            let (&[first], _) = at.take::<1>(Layer::Gre)?;
            let skipped = if first >> 4 == 4 { 0 } else { 4 };
            Ok(Step::Into(Next::Ipv4, at.skip_all(Layer::Gre, skipped)?))
        }
        // Access points of Aruba: a frame of the air, by the number of its radio.
        0x8200..=0x8370 | 0x9000 if ethertype & 0x0f == 0 => {
            Ok(Step::Into(Next::Ieee80211(WirelessHeader::Plain), at))
        }
        other => Ok(Step::Into(Next::EtherType(other), at)),
    }
}

/// ERSPAN: a mirrored frame behind 8 bytes (type II) or 12 and a sub-header (type III).
///
/// Source: draft-foschiano-erspan-03 sec. 4.2 and 4.3.
fn erspan<'a>(walk: &mut Walk<'a>, header_len: usize, at: Cursor<'a>) -> Result<'a> {
    walk.tag(Layer::Erspan, at)?;
    let (head, _) = at.take::<8>(Layer::Erspan)?;
    let version = head[0] >> 4;
    if version != if header_len == 8 { 1 } else { 2 } {
        return Err(at.error(Layer::Erspan, DecodeErrorKind::BadVersion(version)));
    }
    let rest = at.skip_all(Layer::Erspan, header_len)?;
    let Some(head) = at.peek::<12>().filter(|_| header_len == 12) else {
        return Ok(Step::Into(mirrored(rest), rest));
    };
    let has_subheader = head[11] & 1 == 1;
    let frame_type = (head[10] >> 2) & 0x1f;
    let rest = rest.skip_all(Layer::Erspan, if has_subheader { 8 } else { 0 })?;
    Ok(match frame_type {
        0 => Step::Into(mirrored(rest), rest),
        2 => Step::Into(Next::Ip, rest),
        _ => Step::Done(Transport::NotIp(0x22eb)),
    })
}

/// Access points mirror what they have on the air under the same frame type.
fn mirrored(at: Cursor<'_>) -> Next {
    if super::wireless::is_likely(at) {
        Next::Ieee80211(WirelessHeader::Plain)
    } else {
        Next::Ethernet
    }
}

/// VXLAN: flags and network identifier, then a frame (RFC 7348 sec. 5).
pub(super) fn vxlan(at: Cursor<'_>) -> Result<'_> {
    Ok(Step::Into(Next::Ethernet, at.skip_all(Layer::Vxlan, 8)?))
}

/// VXLAN-GPE: as VXLAN, but with a field for what follows where the P flag says so.
///
/// Source: draft-ietf-nvo3-vxlan-gpe-13 sec. 3.1 and 3.2.
pub(super) fn vxlan_gpe(at: Cursor<'_>) -> Result<'_> {
    let (header, rest) = at.take::<8>(Layer::VxlanGpe)?;
    let has_protocol = header[0] & 0x04 != 0;
    Ok(match header[3] {
        _ if !has_protocol => Step::Into(Next::Ethernet, rest),
        1 => Step::Into(Next::Ipv4, rest),
        2 => Step::Into(Next::Ipv6, rest),
        3 => Step::Into(Next::Ethernet, rest),
        5 => Step::Into(Next::Mpls, rest),
        _ => Step::Done(Transport::NotIp(0)),
    })
}

/// CAPWAP data: a frame of Ethernet, or of the radio it is bound to.
///
/// Source: RFC 5415 sec. 4.3, RFC 5416 sec. 1.
pub(super) fn capwap<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    const IEEE_802_11: u8 = 1;
    let (header, _) = at.take::<8>(Layer::Capwap)?;
    let words = header[1] >> 3;
    if words < 2 {
        return Err(at.error(Layer::Capwap, DecodeErrorKind::BadHeaderLength(words)));
    }
    let rest = at.skip_all(Layer::Capwap, usize::from(words) * 4)?;
    let (binding, is_native) = ((header[2] >> 1) & 0x1f, header[2] & 1 == 1);
    let (is_fragment, is_last) = (header[3] & 0x80 != 0, header[3] & 0x40 != 0);
    let offset = u16::from_be_bytes([header[6], header[7]]) >> 3;
    if is_fragment && offset != 0 {
        return Ok(Step::Done(Transport::NotIp(0)));
    }
    walk.in_fragment |= is_fragment && !is_last;
    Ok(match (is_native, binding) {
        (false, _) => Step::Into(Next::Ethernet, rest),
        (true, IEEE_802_11) => Step::Into(Next::Ieee80211(WirelessHeader::PerhapsSwapped), rest),
        (true, _) => Step::Done(Transport::NotIp(0)),
    })
}

/// AYIYA: identity and signature, whose lengths stand in front, then a packet.
///
/// Source: draft-massar-v6ops-ayiya-02 sec. 3.
pub(super) fn ayiya(at: Cursor<'_>) -> Result<'_> {
    let (header, _) = at.take::<8>(Layer::Ayiya)?;
    let identity_len = 1_usize << (header[0] >> 4);
    let signature_len = usize::from(header[1] >> 4) * 4;
    let rest = at.skip_all(Layer::Ayiya, 8 + identity_len + signature_len)?;
    Ok(match header[3] {
        4 => Step::Into(Next::Ipv4, rest),
        _ => Step::Into(Next::Ipv6, rest),
    })
}

/// Geneve: options in 4-byte units, then what the protocol type says (RFC 8926 sec. 3.4).
pub(super) fn geneve(at: Cursor<'_>) -> Result<'_> {
    let (header, _) = at.take::<8>(Layer::Geneve)?;
    let options_len = usize::from(header[0] & 0x3f) * 4;
    let rest = at.skip_all(Layer::Geneve, 8 + options_len)?;
    let ethertype = u16::from_be_bytes([header[2], header[3]]);
    Ok(Step::Into(Next::EtherType(ethertype), rest))
}

/// GTP-U: optional sequence and N-PDU numbers, extension headers, then a user's packet.
///
/// Source: 3GPP TS 29.281 sec. 5.1 and 5.2.
pub(super) fn gtp_u<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    let (header, rest) = at.take::<8>(Layer::GtpU)?;
    let len = u32::from(u16::from_be_bytes([header[2], header[3]]));
    let mut rest = walk.limit(rest, len, Layer::GtpU);
    if header[0] & 0x07 != 0 {
        let (fields, after) = rest.take::<4>(Layer::GtpU)?;
        rest = after;
        // The type counts only with the E flag.
        let mut extension = if header[0] & 0x04 != 0 { fields[3] } else { 0 };
        for turn in 0.. {
            if extension == 0 {
                break;
            }
            if turn == MAX_GTP_EXTENSIONS {
                return Err(rest.error(Layer::GtpU, DecodeErrorKind::TooDeep));
            }
            let (&[words], _) = rest.take::<1>(Layer::GtpU)?;
            let Some(before_next) = (usize::from(words) * 4).checked_sub(1) else {
                return Err(rest.error(Layer::GtpU, DecodeErrorKind::BadLength(0)));
            };
            let (&[next], after) = rest.skip_all(Layer::GtpU, before_next)?.take(Layer::GtpU)?;
            (extension, rest) = (next, after);
        }
    }
    // Ethernet and unstructured sessions carry no mark of their own; IP shows by its nibble.
    Ok(match rest.peek::<1>() {
        Some([first]) if matches!(first >> 4, 4 | 6) => Step::Into(Next::Ip, rest),
        _ => Step::Done(Transport::NotIp(0)),
    })
}

/// The IPv6 packet of a Teredo datagram, behind authentication and origin indication, if it is one.
///
/// Source: RFC 4380 sec. 5.1.1.
pub(super) fn teredo_packet(at: Cursor<'_>) -> Option<Cursor<'_>> {
    let mut at = at;
    if let Some(&[0, 1, client_id_len, value_len]) = at.peek::<4>() {
        // Identifier, authentication value, nonce and confirmation.
        at = at.skip(4 + u32::from(client_id_len) + u32::from(value_len) + 8 + 1);
    }
    if let Some([0, 0]) = at.peek::<2>() {
        at = at.skip(8);
    }
    let header = at.peek::<40>()?;
    let len = u32::from(u16::from_be_bytes([header[4], header[5]]));
    (header[0] >> 4 == 6 && len.checked_add(40)? <= at.wire).then_some(at)
}

/// Whether a datagram of these bytes, so long on the wire, is worth [`is_teredo_by_content`].
#[inline]
pub(super) fn may_be_teredo(bytes: &[u8], len: usize) -> bool {
    match bytes.first_chunk::<6>() {
        Some(&[0x60..=0x6f, _, _, _, hi, lo]) => {
            usize::from(u16::from_be_bytes([hi, lo])) + 40 == len
        }
        // Authentication and origin indication begin so.
        Some([0, 0 | 1, ..]) => len >= 48,
        _ => false,
    }
}

/// Whether a datagram on any port is a Teredo packet: an IPv6 packet that ends with it, from or to an
/// address that only Teredo has, `2001::/32` (RFC 4380 sec. 2.6).
pub(super) fn is_teredo_by_content(at: Cursor<'_>) -> bool {
    const PREFIX: [u8; 4] = [0x20, 1, 0, 0];
    teredo_packet(at).is_some_and(|packet| {
        packet.peek::<40>().is_some_and(|header| {
            let len = u32::from(u16::from_be_bytes([header[4], header[5]])) + 40;
            let has = |from: usize| header.get(from..from + 4) == Some(&PREFIX[..]);
            len == packet.wire && (has(8) || has(24))
        })
    })
}

pub(super) fn teredo(at: Cursor<'_>) -> Result<'_> {
    match teredo_packet(at) {
        Some(packet) => Ok(Step::Into(Next::Ipv6, packet)),
        None => Err(at.missing(Layer::Teredo, 40)),
    }
}
