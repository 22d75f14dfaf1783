//! Small questions about bytes that the signatures share.

use super::{Application, Verdict};

/// `Is` where `own` begins with `pattern`, `More` where it may yet.
#[inline]
pub(super) fn begins(own: &[u8], pattern: &[u8], application: Application) -> Verdict {
    if own.starts_with(pattern) {
        Verdict::Is(application)
    } else if pattern.starts_with(own) {
        Verdict::More
    } else {
        Verdict::No
    }
}

#[inline]
pub(super) fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Two bytes in network order.
#[inline]
pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Three bytes in network order.
#[inline]
pub(super) fn be24(bytes: &[u8], at: usize) -> Option<u32> {
    let &[a, b, c] = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes([0, a, b, c]))
}

/// Four bytes in network order.
#[inline]
pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Two bytes, the lowest first.
#[inline]
pub(super) fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Four bytes, the lowest first.
#[inline]
pub(super) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The first line, without its end; `None` where its end is not there.
#[inline]
pub(super) fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let line = bytes.get(..memchr::memchr(b'\n', bytes)?)?;
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

/// The first line, or what there is of it.
#[inline]
pub(super) fn line_so_far(bytes: &[u8]) -> &[u8] {
    first_line(bytes).unwrap_or(bytes)
}

/// Whether `bytes` begin with `pattern` (in upper case) in any case.
#[inline]
pub(super) fn begins_any_case(bytes: &[u8], pattern: &[u8]) -> bool {
    let first = |bytes: &[u8]| bytes.first().map(u8::to_ascii_uppercase);
    // Most differ in their first byte.
    first(bytes) == first(pattern)
        && bytes
            .get(..pattern.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(pattern))
}

/// Whether `pattern` stands somewhere in `bytes`, in any case. For short `bytes`: a banner, a line.
pub(super) fn contains_any_case(bytes: &[u8], pattern: &[u8]) -> bool {
    let Some(first) = pattern.first() else {
        return true;
    };
    memchr::memchr2_iter(
        first.to_ascii_lowercase(),
        first.to_ascii_uppercase(),
        bytes,
    )
    .filter_map(|at| bytes.get(at..at + pattern.len()))
    .any(|window| window.eq_ignore_ascii_case(pattern))
}

/// How many decimal digits `bytes` begin with.
#[inline]
pub(super) fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// Whether all of the bytes are printable ASCII, blanks and tabs.
#[inline]
pub(super) fn is_text(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|b| matches!(b, b' '..=b'~' | b'\t' | b'\r' | b'\n'))
}
