//! The head of a request or response: start line and the fields that a measurement needs.

use super::lengths::Lengths;
use super::lines::{Lines, is_tchar};
use super::{MAX_HEAD, MAX_METHOD};

/// What became of an attempt to parse a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The head is whole; its length in bytes with the empty line.
    Complete(T, usize),
    /// The bytes end before the head does. What was read so far: the start line may be cut.
    Partial(T),
    /// Not a head (or longer than [`MAX_HEAD`]).
    Invalid,
}

/// A request head. Slices borrow from the payload; absent fields are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestHead<'a> {
    /// Method token.
    pub method: &'a [u8],
    /// Request target in the form it was sent.
    pub target: &'a [u8],
    /// `Host` field value, or the authority of an absolute-form target (RFC 9112 sec. 3.2.2).
    pub host: &'a [u8],
    /// `User-Agent` field value.
    pub user_agent: &'a [u8],
    /// `Content-Length`, where it is a number and no other one is there.
    pub content_length: Option<u64>,
    /// Whether the last transfer coding is `chunked`.
    pub chunked: bool,
    /// Whether the length of the body is undefined: values of `Content-Length` that contradict or
    /// are no number, or a transfer coding that does not end in `chunked` (RFC 9112 sec. 6.3 rules 4
    /// and 5).
    pub is_length_unclear: bool,
    /// Minor version: HTTP/1.`minor`.
    pub minor: u8,
    /// Whether values go on in further lines (`obs-fold`, RFC 9112 sec. 5.2): the line ends are in them
    /// then, and stand for blanks; see [`unfold`].
    pub is_folded: bool,
    /// Whether it may have a `traceparent` or an `X-Forwarded-For`: one of its names begins like these.
    pub may_be_forwarded: bool,
    /// The field lines that are whole, for [`super::Fields::of_section`].
    pub section: &'a [u8],
}

/// A response head. Slices borrow from the payload; absent fields are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResponseHead<'a> {
    /// Status code, 100 to 999.
    pub status_code: u16,
    /// Reason phrase.
    pub reason_phrase: &'a [u8],
    /// `Content-Type` field value.
    pub content_type: &'a [u8],
    /// `Content-Encoding` field value.
    pub content_encoding: &'a [u8],
    /// `Content-Length`, where it is a number, no other one is there, and a transfer coding does not
    /// override it.
    pub content_length: Option<u64>,
    /// Whether the last transfer coding is `chunked`.
    pub chunked: bool,
    /// Minor version: HTTP/1.`minor`.
    pub minor: u8,
    /// Whether values go on in further lines, as of [`RequestHead::is_folded`].
    pub is_folded: bool,
    /// Whether the connection goes on with WebSocket: 101, and the `Upgrade` field says so (RFC 6455 sec. 4.2.2).
    pub is_websocket: bool,
    /// The field lines that are whole, as of [`RequestHead::section`].
    pub section: &'a [u8],
}

impl ResponseHead<'_> {
    /// Whether another response to the same request follows (RFC 9110 sec. 15.2).
    ///
    /// `101 Switching Protocols` is interim by class but the last thing HTTP says.
    #[must_use]
    pub const fn is_interim(&self) -> bool {
        self.status_code < 200 && self.status_code != 101
    }
}

/// Splits `METHOD SP target SP HTTP/1.x`; `None` where the line is not one.
///
/// The version is searched from the end, so that a target with blanks stays whole.
#[inline]
pub(super) fn split_request_line(line: &[u8]) -> Option<(&[u8], &[u8], u8)> {
    let line = trim_end(line);
    let method_len = line
        .iter()
        .take(MAX_METHOD + 1)
        .position(|&b| !is_tchar(b))?;
    let (method, rest) = line.split_at_checked(method_len)?;
    let (target, version) = rest.split_last_chunk::<9>()?;
    let [
        b' ',
        b'H',
        b'T',
        b'T',
        b'P',
        b'/',
        b'1',
        b'.',
        minor @ b'0'..=b'9',
    ] = version
    else {
        return None;
    };
    let target = trim(target.strip_prefix(b" ")?);
    (!method.is_empty() && !target.is_empty()).then_some((method, target, minor - b'0'))
}

/// Splits `HTTP/1.x SP code [SP reason]`.
fn split_status_line(line: &[u8]) -> Option<(u16, &[u8], u8)> {
    let line = trim_end(line);
    let (first, rest) = line.split_first_chunk::<12>()?;
    let [
        b'H',
        b'T',
        b'T',
        b'P',
        b'/',
        b'1',
        b'.',
        minor @ b'0'..=b'9',
        b' ',
        a,
        b,
        c,
    ] = first
    else {
        return None;
    };
    if !(matches!(a, b'1'..=b'9') && b.is_ascii_digit() && c.is_ascii_digit()) {
        return None;
    }
    let code = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
    match rest {
        [] => Some((code, rest, minor - b'0')),
        [b' ', reason @ ..] => Some((code, reason.trim_ascii_start(), minor - b'0')),
        _ => None,
    }
}

#[inline]
fn trim_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The fields that are read, by the first eight bytes of their lines in lower case.
const HOST: u64 = lower8(b"host    ");
const USER_AGENT: u64 = lower8(b"user-age");
const CONTENT: u64 = lower8(b"content-");
const TRANSFER: u64 = lower8(b"transfer");
const TRACE: u64 = lower8(b"tracepar");
const FORWARDED: u64 = lower8(b"x-forwar");

/// Eight bytes with the bit set that makes letters lower case: a first sieve, not yet a match.
const fn lower8(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes) | 0x2020_2020_2020_2020
}

/// Walks over the field lines of a head: `on_field` gets the sieve and the line of each. It asks for
/// those that continue a line it reads; others begin with white space, which no sieve lets pass.
///
/// Says whether the empty line at the end was there.
#[inline]
fn fields<'a>(
    lines: &mut Lines<'a>,
    mut on_field: impl FnMut(&mut Lines<'a>, u64, &'a [u8]),
) -> bool {
    while let Some(line) = lines.next() {
        let line = trim_end(line);
        match line.first_chunk::<8>() {
            Some(first) => on_field(lines, lower8(first), line),
            None if line.is_empty() => return true,
            // Only `Host` has room for a name, a colon and a value in less.
            None => on_field(lines, HOST, line),
        }
    }
    false
}

/// Parses a request head at the start of `bytes`.
///
/// A partial head gives the fields of its whole lines, and of a cut request line as much of the
/// target as is there.
#[inline]
#[must_use]
pub fn parse_request(bytes: &[u8]) -> Outcome<RequestHead<'_>> {
    let mut lines = Lines::new(bytes);
    let Some(line) = lines.next() else {
        return cut_request_line(bytes);
    };
    let Some((method, target, minor)) = split_request_line(line) else {
        return Outcome::Invalid;
    };
    let mut head = RequestHead {
        method,
        target,
        minor,
        ..RequestHead::default()
    };
    let mut lengths = Lengths::default();
    let first = lines.passed();
    let whole = fields(&mut lines, |lines, sieve, line| match sieve {
        USER_AGENT if head.user_agent.is_empty() => {
            if let Some(value) = field(lines.whole(line), b"user-agent") {
                head.user_agent = value;
            }
        }
        CONTENT => {
            if let Some(value) = field(lines.whole(line), b"content-length") {
                lengths.add_length(value);
            }
        }
        TRANSFER => {
            if let Some(value) = field(lines.whole(line), b"transfer-encoding") {
                lengths.add_codings(value);
            }
        }
        TRACE | FORWARDED => head.may_be_forwarded = true,
        // `Host:` or, as some write it, `Host :`
        _ if sieve & 0xffff_ffff == HOST & 0xffff_ffff && head.host.is_empty() => {
            if let Some(value) = field(lines.whole(line), b"host") {
                head.host = value;
            }
        }
        _ => {}
    });
    head.is_folded = lines.is_folded();
    head.section = bytes.get(first..lines.passed()).unwrap_or_default();
    let told = lengths.told();
    head.content_length = told.length;
    head.chunked = told.chunked;
    head.is_length_unclear = told.is_unclear;
    if head.host.is_empty() {
        head.host = authority(method, target);
    }
    finish(head, bytes, lines.passed(), whole)
}

/// Parses a response head at the start of `bytes`.
#[inline]
#[must_use]
pub fn parse_response(bytes: &[u8]) -> Outcome<ResponseHead<'_>> {
    let mut lines = Lines::new(bytes);
    let Some(line) = lines.next() else {
        return cut_status_line(bytes);
    };
    let Some((status_code, reason_phrase, minor)) = split_status_line(line) else {
        return Outcome::Invalid;
    };
    let mut head = ResponseHead {
        status_code,
        reason_phrase,
        minor,
        ..ResponseHead::default()
    };
    let mut lengths = Lengths::default();
    let first = lines.passed();
    let whole = fields(&mut lines, |lines, sieve, line| match sieve {
        CONTENT => {
            let line = lines.whole(line);
            if let Some(value) = field(line, b"content-length") {
                lengths.add_length(value);
            } else if let Some(value) = field(line, b"content-type") {
                head.content_type = value;
            } else if let Some(value) = field(line, b"content-encoding") {
                head.content_encoding = value;
            }
        }
        TRANSFER => {
            if let Some(value) = field(lines.whole(line), b"transfer-encoding") {
                lengths.add_codings(value);
            }
        }
        _ => {}
    });
    head.is_folded = lines.is_folded();
    head.section = bytes.get(first..lines.passed()).unwrap_or_default();
    let told = lengths.told();
    // It ends with the connection then, as one does that says nothing (RFC 9112 sec. 6.3 rule 8).
    head.content_length = told.length.filter(|_| !told.is_unclear);
    head.chunked = told.chunked;
    if status_code == 101 && whole {
        head.is_websocket = names_websocket(bytes.get(..lines.passed()).unwrap_or_default());
    }
    finish(head, bytes, lines.passed(), whole)
}

/// Whether a head names WebSocket as what the connection goes on with.
#[cold]
fn names_websocket(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n');
    lines.any(|line| {
        let value = field(trim_end(line), b"upgrade");
        value.is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"))
    })
}

#[inline]
fn finish<T>(head: T, bytes: &[u8], len: usize, whole: bool) -> Outcome<T> {
    match whole {
        true if len <= MAX_HEAD => Outcome::Complete(head, len),
        false if bytes.len() <= MAX_HEAD => Outcome::Partial(head),
        _ => Outcome::Invalid,
    }
}

/// A request line without its end: the method is one that [`super::classify`] knows.
#[cold]
fn cut_request_line(bytes: &[u8]) -> Outcome<RequestHead<'_>> {
    if bytes.len() > MAX_HEAD || bytes.contains(&0) {
        return Outcome::Invalid;
    }
    let mut head = RequestHead {
        minor: 1,
        ..RequestHead::default()
    };
    if let Some(blank) = bytes.iter().take(MAX_METHOD + 1).position(|&b| b == b' ')
        && let Some((method, target)) = bytes.split_at_checked(blank)
    {
        head.method = method;
        let target = target.trim_ascii_start();
        let end = target
            .iter()
            .position(|&b| b == b' ')
            .unwrap_or(target.len());
        let (target, tail) = target.split_at_checked(end).unwrap_or((target, &[]));
        // What follows a blank must be the beginning of a version: else it is text.
        let is_version = |version: &[u8]| version.starts_with(tail.get(1..).unwrap_or_default());
        if !tail.is_empty() && !is_version(b"HTTP/1.1\r") && !is_version(b"HTTP/1.0\r") {
            return Outcome::Invalid;
        }
        head.target = target;
        head.host = authority(head.method, head.target);
    }
    Outcome::Partial(head)
}

#[cold]
fn cut_status_line(bytes: &[u8]) -> Outcome<ResponseHead<'_>> {
    if bytes.len() > MAX_HEAD {
        return Outcome::Invalid;
    }
    match split_status_line(bytes) {
        Some((status_code, reason_phrase, minor)) => Outcome::Partial(ResponseHead {
            status_code,
            reason_phrase,
            minor,
            ..ResponseHead::default()
        }),
        None if bytes.len() < 13 => Outcome::Partial(ResponseHead::default()),
        None => Outcome::Invalid,
    }
}

/// Appends a value without its line ends: each, with the white space around it, is one blank then
/// (RFC 9112 sec. 5.2).
pub fn unfold(value: &[u8], into: &mut Vec<u8>) {
    let mut parts = value.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    into.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts.filter(|part| !part.is_empty()) {
        into.push(b' ');
        into.extend_from_slice(part);
    }
}

/// Without the white space around it; mostly there is one blank before it.
#[inline]
fn trim(value: &[u8]) -> &[u8] {
    match value {
        [b'!'..=b'~', .., b'!'..=b'~'] => value,
        [b' ', rest @ ..] if matches!(rest, [b'!'..=b'~', .., b'!'..=b'~']) => rest,
        _ => value.trim_ascii(),
    }
}

/// Whether `bytes` is `name` (given in lower case) in letters of any case: one step for all bytes.
#[inline]
fn is_name<const N: usize>(bytes: &[u8; N], name: &[u8; N]) -> bool {
    let mut differs = 0;
    for (byte, name) in bytes.iter().zip(name) {
        let case = if name.is_ascii_lowercase() { 0x20 } else { 0 };
        differs |= (byte ^ name) & !case;
    }
    differs == 0
}

/// The value of `line` if its field name is `name` (given in lower case; names are case-insensitive).
#[inline]
fn field<'a, const N: usize>(line: &'a [u8], name: &[u8; N]) -> Option<&'a [u8]> {
    let (key, rest) = line.split_first_chunk::<N>()?;
    let value = match rest {
        [b':', value @ ..] => value,
        _ => rest.trim_ascii_start().strip_prefix(b":")?,
    };
    is_name(key, name).then(|| trim(value))
}

/// The authority of an absolute-form target (`http://host/...`) or of CONNECT's authority-form, with
/// its port; empty where the target has none.
#[must_use]
pub fn authority<'a>(method: &[u8], target: &'a [u8]) -> &'a [u8] {
    if target.first() == Some(&b'/') {
        return &[];
    }
    let scheme = target.windows(3).take(16).position(|w| w == b"://");
    let after = match scheme {
        Some(scheme) => target.get(scheme + 3..).unwrap_or_default(),
        // No more than an authority is due (RFC 9112 sec. 3.2.3), but some send a URL's rest with it.
        None if method == b"CONNECT" => target,
        None => return &[],
    };
    let end = after
        .iter()
        .position(|b| matches!(b, b'/' | b'?' | b'#'))
        .unwrap_or(after.len());
    let authority = after.get(..end).unwrap_or_default();
    // userinfo is not part of the host (RFC 9110 sec. 4.2.4)
    authority.rsplit(|&b| b == b'@').next().unwrap_or(authority)
}
