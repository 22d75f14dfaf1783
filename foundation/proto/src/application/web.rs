//! HTTP, and what looks like it: transfers of FastTrack and Gnutella, trackers of BitTorrent.
//!
//! A target that has a hash of the right size decides alone; of fields it takes two. A head is HTTP for
//! sure where its end is there: a field further down may say that it is another.

use super::bytes::{begins, begins_any_case, first_line};
use super::{Application, Verdict, View, bittorrent, fasttrack, gnutella};
use crate::http1::{Start, classify};
use crate::http2::PREFACE;
use crate::http2::frame::{self, FrameHeader, Kind};
use crate::http2::hpack::{Decoder, Strings};

/// A request or a response (RFC 9112), or the preface of HTTP/2 (RFC 9113 section 3.4).
pub(super) fn http(view: &View<'_>) -> Verdict {
    match classify(view.own) {
        Start::Neither => http2(view.own),
        Start::Unsure => Verdict::More,
        Start::Response => response(view.own),
        Start::Request => request(view.own),
    }
}

/// A connection that begins with the preface of HTTP/2. What its first request carries says whether it is one of gRPC.
fn http2(own: &[u8]) -> Verdict {
    let mut rest = match own.strip_prefix(PREFACE) {
        Some(rest) => rest,
        None if own.starts_with(b"PRI * HTTP/2.0\r\n") => {
            return Verdict::Likely(Application::Http2);
        }
        None => return begins(own, PREFACE, Application::Http2),
    };
    while let Some((header, behind)) = rest.split_first_chunk::<{ frame::HEADER }>() {
        let header = FrameHeader::parse(header);
        let Some((payload, behind)) = behind.split_at_checked(header.length as usize) else {
            break;
        };
        rest = behind;
        if header.kind != Kind::Headers {
            continue;
        }
        let is_grpc = frame::content(&header, payload).is_some_and(carries_grpc);
        return Verdict::Is(match is_grpc {
            true => Application::Grpc,
            false => Application::Http2,
        });
    }
    Verdict::Likely(Application::Http2)
}

/// Whether the first header block of a connection says that it is of gRPC.
fn carries_grpc(block: &[u8]) -> bool {
    let mut is_grpc = false;
    let is_type = |name: &[u8]| name == b"content-type";
    // A block that goes on in other frames says it where it is there.
    let _cut = Decoder::new().decode(block, &mut Strings::default(), is_type, |field| {
        is_grpc |= field.name.is_some_and(is_type)
            && field
                .value
                .is_some_and(|value| value.starts_with(b"application/grpc"));
    });
    is_grpc
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
    if fasttrack::is_target(target) {
        return Verdict::Is(Application::FastTrack);
    }
    if gnutella::is_target(target) {
        return Verdict::Is(Application::Gnutella);
    }
    if bittorrent::is_target(target) {
        return Verdict::Is(Application::BitTorrent);
    }
    let mut signs = Signs::default();
    if gnutella::may_be_target(target) {
        signs.add(Application::Gnutella, b"");
    }
    fields(own, signs)
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
    fields(own, Signs::default())
}

/// What in a head says that it is a transfer of FastTrack or Gnutella.
///
/// Other programs have each of their fields too, so two of different names decide.
#[derive(Debug, Default)]
struct Signs<'a> {
    /// The names of the first field of each; an empty one is the target.
    fasttrack: Option<&'a [u8]>,
    gnutella: Option<&'a [u8]>,
}

impl<'a> Signs<'a> {
    /// Takes one more; says whether there are two now.
    fn add(&mut self, application: Application, name: &'a [u8]) -> bool {
        let first = match application {
            Application::FastTrack => &mut self.fasttrack,
            _ => &mut self.gnutella,
        };
        !first.get_or_insert(name).eq_ignore_ascii_case(name)
    }
}

/// What the fields of the head say about the client: HTTP, where its end is there.
fn fields<'a>(own: &'a [u8], mut signs: Signs<'a>) -> Verdict {
    let mut rest = own;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        rest = rest.get(end + 1..).unwrap_or_default();
        let application = match rest.first() {
            Some(b'X' | b'x') if fasttrack::is_field(rest) => Application::FastTrack,
            Some(b'X' | b'x') if gnutella::is_field(rest) => Application::Gnutella,
            Some(b'U' | b'u' | b'S' | b's') => match agent(rest) {
                Some(value) if fasttrack::is_agent(value) => Application::FastTrack,
                Some(value) if gnutella::is_agent(value) => Application::Gnutella,
                _ => continue,
            },
            Some(b'C' | b'c') if gnutella::is_content(rest) => Application::Gnutella,
            Some(b'\r' | b'\n') => return Verdict::Is(Application::Http),
            None => break,
            _ => continue,
        };
        let name = memchr::memchr(b':', rest).and_then(|colon| rest.get(..colon));
        if signs.add(application, name.unwrap_or(rest)) {
            return Verdict::Is(application);
        }
    }
    Verdict::Likely(Application::Http)
}

/// The program that the field names, where it is `User-Agent`, `UserAgent` (as KaZaA's client has it)
/// or `Server`.
fn agent(line: &[u8]) -> Option<&[u8]> {
    let fields: [&[u8]; 3] = [b"USER-AGENT: ", b"SERVER: ", b"USERAGENT: "];
    let field = fields.iter().find(|field| begins_any_case(line, field))?;
    line.get(field.len()..)
}
