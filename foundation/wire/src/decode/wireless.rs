//! IEEE 802.11 frames, and the headers that captures put in front of them: radiotap, Prism, AVS, PPI.

use super::cursor::Cursor;
use super::link::first;
use super::state::{Next, Step, Walk, WirelessHeader};
use crate::{DecodeError, DecodeErrorKind, Layer, LinkType, Transport};

type Result<'a> = std::result::Result<Step<'a>, DecodeError>;

/// Words of one radiotap header that say which fields there are; namespaces need a few.
const MAX_PRESENT_WORDS: u32 = 32;

/// A frame of IEEE 802.11: of data frames in the clear, their LLC.
///
/// Only the first packet of an aggregate (A-MSDU) is given, and the first fragment of a fragmented one.
/// Source: IEEE 802.11-2020 clauses 9.2.4 and 9.3.2.
pub(super) fn ieee_802_11<'a>(
    walk: &mut Walk<'a>,
    form: WirelessHeader,
    at: Cursor<'a>,
) -> Result<'a> {
    let (head, _) = at.take::<2>(Layer::Ieee80211)?;
    let is_swapped =
        form == WirelessHeader::PerhapsSwapped && is_data(head[1]) && !is_data(head[0]);
    let [control, flags] = match *head {
        [flags, control] if is_swapped => [control, flags],
        as_sent => as_sent,
    };
    if control & 0x03 != 0 {
        let kind = DecodeErrorKind::BadVersion(control & 0x03);
        return Err(at.error(Layer::Ieee80211, kind));
    }
    let is_encrypted = flags & 0x40 != 0;
    let has_body = control & 0x40 == 0;
    if !is_data(control) || !has_body || is_encrypted {
        return Ok(Step::Done(Transport::NotIp(0)));
    }
    let (fixed, _) = at.take::<24>(Layer::Ieee80211)?;
    let place = if is_swapped { fixed[23] } else { fixed[22] };
    if place & 0x0f != 0 {
        return Ok(Step::Done(Transport::NotIp(0)));
    }
    walk.in_fragment |= flags & 0x04 != 0;
    let (qos_at, len) = data_header(control, flags);
    let len = match form {
        WirelessHeader::Padded => len.next_multiple_of(4),
        WirelessHeader::Plain | WirelessHeader::PerhapsSwapped => len,
    };
    let body = at.skip_all(Layer::Ieee80211, len)?;
    let qos = qos_at.and_then(|place| at.bytes.get(place));
    let is_aggregate = qos.is_some_and(|control| control & 0x80 != 0);
    if !is_aggregate {
        return Ok(Step::Into(Next::Llc, body));
    }
    let (subframe, rest) = body.take::<14>(Layer::Ieee80211)?;
    let len = u32::from(u16::from_be_bytes([subframe[12], subframe[13]]));
    let rest = walk.limit(rest, len, Layer::Ieee80211);
    Ok(Step::Into(Next::Llc, rest))
}

/// Version 0, type 2.
const fn is_data(control: u8) -> bool {
    control & 0x0f == 0x08
}

/// Where the header of a data frame has its quality-of-service field, if it has one, and its length.
fn data_header(control: u8, flags: u8) -> (Option<usize>, usize) {
    let addresses = if flags & 0x03 == 0x03 { 30 } else { 24 };
    if control & 0x80 == 0 {
        return (None, addresses);
    }
    let ht_control = if flags & 0x80 != 0 { 4 } else { 0 };
    (Some(addresses), addresses + 2 + ht_control)
}

/// Whether this is a data frame with SNAP in it, rather than an Ethernet frame: for tunnels that carry
/// either and do not say which.
pub(super) fn is_likely(at: Cursor<'_>) -> bool {
    const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
    let Some(&[control, flags]) = at.peek::<2>() else {
        return false;
    };
    let (_, len) = data_header(control, flags);
    is_data(control) && flags & 0x40 == 0 && at.bytes.get(len..len + 6) == Some(&SNAP[..])
}

/// Radiotap: version, length, and fields of which one says whether the header behind it is padded.
///
/// Source: radiotap.org, "Radiotap" and its field "Flags".
pub(super) fn radiotap<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    let (head, after) = at.take::<8>(Layer::Radiotap)?;
    if head[0] != 0 {
        return Err(at.error(Layer::Radiotap, DecodeErrorKind::BadVersion(head[0])));
    }
    let len = u16::from_le_bytes([head[2], head[3]]);
    let rest = length_of_header(Layer::Radiotap, at, len, 8)?;
    let present = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let (has_time, has_flags, mut more) = (present & 1 != 0, present & 2 != 0, present >> 31 == 1);
    let (mut fields, mut words) = (after, 1);
    while more {
        if words == MAX_PRESENT_WORDS {
            return Err(fields.error(Layer::Radiotap, DecodeErrorKind::TooDeep));
        }
        let (word, after) = fields.take::<4>(Layer::Radiotap)?;
        (more, fields, words) = (word[3] & 0x80 != 0, after, words + 1);
    }
    // The time takes 8 bytes and begins at a multiple of 8, behind 4 bytes and the words.
    let unaligned = (4 + 4 * words) % 8;
    let flags_at = if has_time { unaligned + 8 } else { 0 };
    let flags = fields.skip(flags_at).peek::<1>().filter(|_| has_flags);
    let form = match flags {
        Some(&[flags]) if flags & 0x20 != 0 => WirelessHeader::Padded,
        _ => WirelessHeader::Plain,
    };
    ieee_802_11(walk, form, rest)
}

/// What follows a header that says its own length.
fn length_of_header<'a>(
    layer: Layer,
    at: Cursor<'a>,
    len: u16,
    least: u16,
) -> std::result::Result<Cursor<'a>, DecodeError> {
    if len < least {
        return Err(at.error(layer, DecodeErrorKind::BadLength(len)));
    }
    at.skip_all(layer, usize::from(len))
}

/// The header of Prism cards, 144 bytes; some writers put AVS headers under this link type.
///
/// Source: `LINKTYPE_IEEE802_11_PRISM` of the tcpdump group.
pub(super) fn prism<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    if at.peek::<4>().is_some_and(is_avs) {
        return avs(walk, at);
    }
    ieee_802_11(walk, WirelessHeader::Plain, at.skip_all(Layer::Prism, 144)?)
}

const fn is_avs(cookie: &[u8; 4]) -> bool {
    matches!(cookie, [0x80, 0x21, 0x10, 1 | 2])
}

/// The AVS header: version, its length, radio fields.
///
/// Source: `LINKTYPE_IEEE802_11_AVS` of the tcpdump group.
pub(super) fn avs<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    let (head, _) = at.take::<8>(Layer::Avs)?;
    let [cookie @ .., a, b, c, d] = head;
    if !is_avs(cookie) {
        return Err(at.error(Layer::Avs, DecodeErrorKind::BadVersion(cookie[0])));
    }
    let len = u32::from_be_bytes([*a, *b, *c, *d]);
    let len = u16::try_from(len).unwrap_or(u16::MAX);
    let rest = length_of_header(Layer::Avs, at, len, 8)?;
    ieee_802_11(walk, WirelessHeader::Plain, rest)
}

/// Per-packet information: its length and the link type of what follows.
///
/// Source: the PPI header format specification of CACE Technologies, sec. 3.
pub(super) fn ppi<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    walk.tag(Layer::Ppi, at)?;
    let (head, _) = at.take::<8>(Layer::Ppi)?;
    if head[0] != 0 {
        return Err(at.error(Layer::Ppi, DecodeErrorKind::BadVersion(head[0])));
    }
    let rest = length_of_header(Layer::Ppi, at, u16::from_le_bytes([head[2], head[3]]), 8)?;
    let link = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let link = LinkType(u16::try_from(link).unwrap_or(u16::MAX));
    Ok(Step::Into(first(link, rest)?, rest))
}
