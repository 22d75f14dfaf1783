//! Cutting an IP packet into fragments.

use super::put;
use crate::checksum;

/// The fragments of an IP packet without options or extension headers, each with at most `piece` bytes of
/// data (rounded down to whole units of 8); what is no IP packet comes back as it is.
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
