//! How long is the body that follows a head? (RFC 9112 sec. 6.3)

use memchr::memchr;

use super::{RequestHead, ResponseHead};

/// The length of a message body as far as the head tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// This many bytes.
    Known(u64),
    /// Framed by chunks: [`chunked_length`] finds the end where all of it is at hand.
    Chunked,
    /// Until the connection closes, or no longer HTTP (after `CONNECT` and `101`).
    UntilClose,
}

/// The body of a request: RFC 9112 sec. 6.3 rules 4 to 7.
///
/// Until the connection closes where the length cannot be told: a server ends it then.
#[must_use]
pub const fn request_body(head: &RequestHead<'_>) -> BodyLength {
    if head.chunked {
        return BodyLength::Chunked;
    }
    if head.is_length_unclear {
        return BodyLength::UntilClose;
    }
    match head.content_length {
        Some(length) => BodyLength::Known(length),
        None => BodyLength::Known(0),
    }
}

/// The body of a response to a request with this method (empty: unknown): RFC 9112 sec. 6.3.
#[must_use]
pub fn response_body(head: &ResponseHead<'_>, method: &[u8]) -> BodyLength {
    match head.status_code {
        101 => return BodyLength::UntilClose,
        100..=199 | 204 | 304 => return BodyLength::Known(0),
        200..=299 if method == b"CONNECT" => return BodyLength::UntilClose,
        _ => {}
    }
    if method == b"HEAD" {
        return BodyLength::Known(0);
    }
    if head.chunked {
        return BodyLength::Chunked;
    }
    head.content_length
        .map_or(BodyLength::UntilClose, BodyLength::Known)
}

/// The bytes of a chunked body (with its last chunk and trailer) at the start of `bytes`, where
/// all of it is there (RFC 9112 sec. 7.1).
///
/// Cost: one step a chunk, at most 4,096 of them.
#[must_use]
pub fn chunked_length(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    for _ in 0..4096 {
        let end = memchr(b'\n', rest)?;
        let (line, after) = rest.split_at_checked(end)?;
        let after = after.get(1..)?;
        let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let text = str::from_utf8(line.get(..digits)?).ok()?;
        let size = usize::from_str_radix(text, 16).ok()?;
        if size == 0 {
            return trailer_end(after).map(|left| bytes.len() - left.len());
        }
        rest = after.get(size..)?;
        rest = rest
            .strip_prefix(b"\r\n")
            .or_else(|| rest.strip_prefix(b"\n"))?;
    }
    None
}

/// What follows the empty line after the trailer fields.
fn trailer_end(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let end = memchr(b'\n', rest)?;
        let (line, after) = rest.split_at_checked(end)?;
        rest = after.get(1..)?;
        if line.is_empty() || line == b"\r" {
            return Some(rest);
        }
    }
}
