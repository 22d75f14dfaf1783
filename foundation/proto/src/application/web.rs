//! HTTP, and what looks like it: transfers of FastTrack and Gnutella, trackers of BitTorrent.

use super::bytes::{begins, begins_any_case, first_line};
use super::{Application, Verdict, View, bittorrent, fasttrack, gnutella};
use crate::http1::{Start, classify};

/// A request or a response (RFC 9112), or the preface of HTTP/2 (RFC 9113 section 3.4).
pub(super) fn http(view: &View<'_>) -> Verdict {
    match classify(view.own) {
        Start::Neither => begins(view.own, b"PRI * HTTP/2.0\r\n", Application::Http),
        Start::Unsure => Verdict::More,
        Start::Response => response(view.own),
        Start::Request => request(view.own),
    }
}

/// A request whose line is whole or whose target has begun.
fn request(own: &[u8]) -> Verdict {
    let Some(blank) = memchr::memchr(b' ', own) else {
        return Verdict::No;
    };
    let target = own.get(blank + 1..).unwrap_or_default();
    if let Some(line) = first_line(own) {
        // RTSP, SIP and SSDP have the same methods; without a version it is HTTP/0.9, which
        // anything could be.
        let version = memchr::memrchr(b' ', line).and_then(|at| line.get(at + 1..));
        if !version.is_some_and(|version| version.starts_with(b"HTTP/")) {
            return Verdict::No;
        }
    } else if !target.starts_with(b"/") && !target.starts_with(b"http") {
        // CONNECT, and the OPTIONS of other protocols: by the whole line.
        return Verdict::More;
    }
    fasttrack::target(target)
        .or(|| gnutella::target(target))
        .or(|| bittorrent::target(target))
        .or(|| fields(own))
        .or(|| Verdict::Is(Application::Http))
}

/// `HTTP/1.`, a digit, a blank, and a code (RFC 9112 section 4).
fn response(own: &[u8]) -> Verdict {
    let rest = own.get(b"HTTP/1.".len()..).unwrap_or_default();
    let is_status = |rest: &[u8]| {
        let [minor, blank, hundreds, ..] = rest else {
            return false;
        };
        minor.is_ascii_digit() && *blank == b' ' && matches!(hundreds, b'1'..=b'9')
    };
    if rest.len() < 3 {
        return Verdict::More;
    }
    if !is_status(rest) {
        return Verdict::No;
    }
    fields(own).or(|| Verdict::Is(Application::Http))
}

/// What the fields of the head say about who talks.
fn fields(own: &[u8]) -> Verdict {
    let mut rest = own;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        rest = rest.get(end + 1..).unwrap_or_default();
        let verdict = match rest.first() {
            Some(b'X' | b'x') => fasttrack::field(rest).or(|| gnutella::field(rest)),
            Some(b'U' | b'u' | b'S' | b's') => match agent(rest) {
                Some(value) => fasttrack::agent(value).or(|| gnutella::agent(value)),
                None => Verdict::No,
            },
            Some(b'C' | b'c') if rest.get(7) == Some(&b'-') => gnutella::content(rest),
            Some(b'\r' | b'\n') | None => return Verdict::No,
            _ => Verdict::No,
        };
        if verdict != Verdict::No {
            return verdict;
        }
    }
    Verdict::No
}

/// The program that the field names, where it is `User-Agent`, `UserAgent` (as KaZaA's client has it)
/// or `Server`.
fn agent(line: &[u8]) -> Option<&[u8]> {
    let fields: [&[u8]; 3] = [b"USER-AGENT: ", b"SERVER: ", b"USERAGENT: "];
    let field = fields.iter().find(|field| begins_any_case(line, field))?;
    line.get(field.len()..)
}
