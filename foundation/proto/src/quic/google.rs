//! Google's QUIC before the IETF's: versions `Q0xx`, whose hello is in clear.
//!
//! Source: "QUIC Wire Layout Specification" and "QUIC Crypto" (Google, 2016): a message is its name,
//! a count, and pairs of tag and end offset, all little-endian.

use memchr::memmem;

/// Where the hello begins: behind a header of at most 50 bytes and a hash of 12.
const SEARCHED: usize = 96;
/// Tags that are looked at.
const MOST_TAGS: usize = 64;

/// What the client says. Slices borrow from the datagram; absent ones are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GoogleHello<'a> {
    /// `SNI`.
    pub server_name: &'a [u8],
    /// `UAID`.
    pub user_agent: &'a [u8],
}

/// The version in the public header that the client's first packets have in versions up to Q043, for
/// example `0x51303433`; `None` where it is no such header.
#[must_use]
pub fn public_version(datagram: &[u8]) -> Option<u32> {
    let (flags, rest) = datagram.split_first()?;
    // Version and connection id are there, neither a reset nor a long header, no other bits.
    if flags & 0b1100_1011 != 0b0000_1001 {
        return None;
    }
    let version = *rest.get(8..)?.first_chunk::<4>()?;
    matches!(version, [b'Q', b'0', b'0'..=b'9', b'0'..=b'9']).then(|| u32::from_be_bytes(version))
}

/// Reads a `CHLO` that begins within the first bytes; `None` where there is none.
#[must_use]
pub fn parse_google_hello(bytes: &[u8]) -> Option<GoogleHello<'_>> {
    let searched = bytes.get(..SEARCHED).unwrap_or(bytes);
    let at = memmem::find(searched, b"CHLO")?;
    let rest = bytes.get(at + 4..)?;
    let ([low, high, _, _], rest) = rest.split_first_chunk::<4>()?;
    let count = usize::from(u16::from_le_bytes([*low, *high]));
    if count > MOST_TAGS {
        return None;
    }
    let (tags, values) = rest.split_at_checked(count * 8)?;
    let mut hello = GoogleHello::default();
    let mut from = 0;
    for tag in tags.as_chunks::<8>().0 {
        let [a, b, c, d, end @ ..] = *tag;
        let end = u32::from_le_bytes(end) as usize;
        // The last values may be cut.
        let value = values.get(from..end).unwrap_or_default();
        match &[a, b, c, d] {
            b"SNI\0" => hello.server_name = value,
            b"UAID" => hello.user_agent = value,
            _ => {}
        }
        from = end;
    }
    Some(hello)
}
