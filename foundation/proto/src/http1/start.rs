//! Does a payload begin with an HTTP/1 start line? The test that every data segment passes through.

use super::lines::is_tchar;

/// What the first bytes of a payload are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The beginning of a request line.
    Request,
    /// The beginning of a status line.
    Response,
    /// A proper prefix of one of them: too short to tell.
    Unsure,
    /// Neither.
    Neither,
}

const fn word(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes)
}

/// The first four bytes of the methods that are taken without seeing the rest of the line
/// (RFC 9110 sec. 9, RFC 5789 and the common WebDAV ones): with these a request line may span
/// segments. Any other token is a method when its whole line is there.
const KNOWN: [(&[u8], u32); 14] = [
    (b"GET ", word(*b"GET ")),
    (b"POST ", word(*b"POST")),
    (b"HEAD ", word(*b"HEAD")),
    (b"PUT ", word(*b"PUT ")),
    (b"DELETE ", word(*b"DELE")),
    (b"OPTIONS ", word(*b"OPTI")),
    (b"PATCH ", word(*b"PATC")),
    (b"CONNECT ", word(*b"CONN")),
    (b"TRACE ", word(*b"TRAC")),
    (b"PROPFIND ", word(*b"PROP")),
    (b"REPORT ", word(*b"REPO")),
    (b"MKCOL ", word(*b"MKCO")),
    (b"LOCK ", word(*b"LOCK")),
    (b"UNLOCK ", word(*b"UNLO")),
];

const STATUS_LINE: &[u8] = b"HTTP/1.";

/// Decides what a payload begins with.
///
/// Cost: a few compares for a body segment; for an unknown method token also a search for the end
/// of the line, because only a line that ends in `HTTP/1.x` makes it a request.
#[inline]
#[must_use]
pub fn classify(payload: &[u8]) -> Start {
    let Some(first) = payload.first_chunk::<4>() else {
        return classify_short(payload);
    };
    let four = word(*first);
    if four == word(*b"HTTP") {
        return if payload.starts_with(STATUS_LINE) {
            Start::Response
        } else {
            prefix_of(payload, STATUS_LINE)
        };
    }
    if four == word(*b"GET ") || four == word(*b"PUT ") {
        return plausible_target(payload, 4);
    }
    // A body segment ends here: binary, markup, or text without a blank in its first 24 bytes.
    let [leading, ..] = *first;
    if !is_tchar(leading) || !blank_within(payload) {
        return Start::Neither;
    }
    classify_token(payload, four)
}

/// Bytes of the empty lines before a request line at the start of `payload`: none where none are
/// there, or where no request line begins behind them.
///
/// A server passes them over (RFC 9112 sec. 2.2), so the request counts.
#[inline]
#[must_use]
pub fn empty_lines(payload: &[u8]) -> usize {
    match payload.first() {
        Some(b'\r' | b'\n') => lines_before_request(payload),
        _ => 0,
    }
}

#[cold]
fn lines_before_request(payload: &[u8]) -> usize {
    let mut rest = payload;
    while let [b'\n', after @ ..] | [b'\r', b'\n', after @ ..] = rest {
        rest = after;
    }
    let is_request = match classify(rest) {
        Start::Request => true,
        Start::Unsure => !rest.starts_with(b"HT"),
        Start::Response | Start::Neither => false,
    };
    if is_request {
        payload.len() - rest.len()
    } else {
        0
    }
}

/// Whether one of the first 24 bytes (a method and more) is a blank: three words at a time.
#[inline]
fn blank_within(payload: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let Some(head) = payload.first_chunk::<24>() else {
        return true;
    };
    let (words, _) = head.as_chunks::<8>();
    // The classic "has a zero byte" test on each word xored with blanks.
    words.iter().fold(0, |found, bytes| {
        let x = u64::from_le_bytes(*bytes) ^ (ONES * u64::from(b' '));
        found | (x.wrapping_sub(ONES) & !x & HIGH)
    }) != 0
}

#[cold]
#[inline(never)]
fn classify_token(payload: &[u8], four: u32) -> Start {
    for (name, first) in KNOWN {
        if four == first {
            if payload.starts_with(name) {
                return plausible_target(payload, name.len());
            }
            if name.starts_with(payload) {
                return Start::Unsure;
            }
        }
    }
    let line = match memchr::memchr(b'\n', payload) {
        Some(end) => payload.get(..end).unwrap_or_default(),
        None => return Start::Neither,
    };
    if super::head::split_request_line(line).is_some() {
        Start::Request
    } else {
        Start::Neither
    }
}

/// A known method must be followed by what a request target may begin with (RFC 9112 sec. 3.2).
#[inline]
fn plausible_target(payload: &[u8], at: usize) -> Start {
    match payload.get(at) {
        None => Start::Unsure,
        Some(byte) if byte.is_ascii_graphic() || *byte >= 0x80 => Start::Request,
        // Some clients send two blanks.
        Some(b' ') => Start::Request,
        Some(_) => Start::Neither,
    }
}

#[cold]
fn classify_short(payload: &[u8]) -> Start {
    if payload.is_empty() {
        return Start::Neither;
    }
    if KNOWN.iter().any(|(name, _)| name.starts_with(payload)) {
        return Start::Unsure;
    }
    prefix_of(payload, STATUS_LINE)
}

fn prefix_of(payload: &[u8], whole: &[u8]) -> Start {
    if whole.starts_with(payload) {
        Start::Unsure
    } else {
        Start::Neither
    }
}
