//! Start lines: of HTTP, and those that FastTrack and Gnutella put in their place.

use linkweir_proto::http1::{
    MAX_METHOD, Outcome, RequestHead, ResponseHead, byte_fault, parse_request, parse_response,
};

/// What a head that begins otherwise is called.
pub(super) const FAULT: &str = "no start line of HTTP/1";

/// What the preface of HTTP/2 (RFC 9113 sec. 3.4) is called.
const HTTP2: &str = "HTTP/2, which is not inspected";

/// A head, by its start line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start<'a> {
    /// A request.
    Request(RequestHead<'a>),
    /// A response.
    Response(ResponseHead<'a>),
    /// The line of a push or a place in a queue: `GIVE`, `GIV`, `QUEUE`. No message of HTTP; a request
    /// of the other side follows.
    Push(&'a [u8]),
    /// A handshake of Gnutella.
    Gnutella(Handshake),
}

/// The heads before the messages of Gnutella ("Gnutella 0.6", Klingberg and Manfredi 2002, sec. 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handshake {
    /// `GNUTELLA CONNECT/0.6`: its sender has to answer the answer.
    Connect,
    /// The last head of a side that says yes: messages follow.
    Accepted,
    /// No.
    Refused,
}

impl<'a> Start<'a> {
    /// Reads a head, or as much of it as is there with the whole of its start line, or says why it is none. A side that does
    /// not ask sends no request.
    pub(super) fn of(head: &'a [u8], asks: bool) -> Result<Self, &'static str> {
        let end = memchr::memchr(b'\n', head);
        let line = end.and_then(|end| head.get(..end)).ok_or(FAULT)?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // A line that comes whole must not be more than one that comes in pieces.
        match fault_in(line, true, asks) {
            Some(why) => Err(why),
            None => Self::read(head, line).ok_or(match line {
                b"PRI * HTTP/2.0" => HTTP2,
                _ => FAULT,
            }),
        }
    }

    fn read(head: &'a [u8], line: &'a [u8]) -> Option<Self> {
        if line.starts_with(b"HTTP/") {
            return match parse_response(head) {
                Outcome::Complete(head, _) | Outcome::Partial(head) => Some(Self::Response(head)),
                Outcome::Invalid => None,
            };
        }
        if let Some(rest) = line.strip_prefix(b"GNUTELLA") {
            return handshake(rest).map(Self::Gnutella);
        }
        if [&b"GIVE "[..], b"GIV ", b"QUEUE "]
            .iter()
            .any(|word| line.starts_with(word))
        {
            return Some(Self::Push(line));
        }
        match parse_request(head) {
            Outcome::Complete(head, _) | Outcome::Partial(head) => Some(Self::Request(head)),
            Outcome::Invalid => None,
        }
    }
}

/// What follows `GNUTELLA` in a start line.
fn handshake(rest: &[u8]) -> Option<Handshake> {
    if let Some(version) = rest.strip_prefix(b" CONNECT/") {
        // 0.4 has no second answer.
        return Some(if version.starts_with(b"0.4") {
            Handshake::Accepted
        } else {
            Handshake::Connect
        });
    }
    if rest == b" OK" {
        return Some(Handshake::Accepted);
    }
    let version = rest.strip_prefix(b"/")?;
    let blank = memchr::memchr(b' ', version)?;
    let code = version.get(blank + 1..)?;
    Some(if code.starts_with(b"200") {
        Handshake::Accepted
    } else {
        Handshake::Refused
    })
}

/// What is wrong with a start line without its end, or with the beginning of one. The first fault counts.
pub(super) fn fault_in(line: &[u8], is_whole: bool, asks: bool) -> Option<&'static str> {
    if may_begin(line, asks) {
        byte_fault(line, is_whole)
    } else {
        Some(FAULT)
    }
}

/// Whether bytes without a line end may become a start line: a word of at most [`MAX_METHOD`] bytes
/// and a blank; of a side that does not ask one of the others. Else what a client takes for the body of a response without
/// a head, or behind a status that has none, would pass as a head that does not end.
fn may_begin(bytes: &[u8], asks: bool) -> bool {
    const OTHERS: [&[u8]; 5] = [b"HTTP/", b"GNUTELLA", b"GIVE ", b"GIV ", b"QUEUE "];
    let begins = |word: &&[u8]| word.iter().zip(bytes).all(|(one, other)| one == other);
    if !asks && !OTHERS.iter().any(begins) {
        return false;
    }
    let word = bytes
        .iter()
        .take(MAX_METHOD + 1)
        .take_while(|byte| byte.is_ascii_graphic())
        .count();
    let ends_well = match bytes.get(word) {
        None => true,
        Some(&byte) => byte == b' ' && word > 0,
    };
    ends_well && word <= MAX_METHOD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_begin_a_head() {
        for (bytes, may) in [
            (&b"G"[..], true),
            (b"GET /", true),
            (b"HTTP/1.1 2", true),
            (b"GNUTELLA/0.6 ", true),
            (b" GET", false),
            (b"\0", false),
            (b"\x16\x03\x01", false),
            (b"AMETHODOF23BYTESISLONG.", true),
            (b"AMETHODOF23BYTESISLONG. ", true),
            (b"AMETHODOF24BYTESISTOOBIG", false),
            (b"AMETHODOF24BYTESISTOOBIG /", false),
        ] {
            assert_eq!(may_begin(bytes, true), may, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn lines_of_every_kind() {
        assert!(matches!(
            Start::of(b"GET / HTTP/1.1\r\n", true),
            Ok(Start::Request(_))
        ));
        assert!(matches!(
            Start::of(b"HTTP/1.0 200 OK\n", true),
            Ok(Start::Response(_))
        ));
        assert_eq!(
            Start::of(b"GIVE 123456789\r\n", true),
            Ok(Start::Push(b"GIVE 123456789"))
        );
        for (line, want) in [
            (&b"GNUTELLA CONNECT/0.6\r\n"[..], Some(Handshake::Connect)),
            (b"GNUTELLA CONNECT/0.4\n", Some(Handshake::Accepted)),
            (b"GNUTELLA OK\n", Some(Handshake::Accepted)),
            (b"GNUTELLA/0.6 200 OK\r\n", Some(Handshake::Accepted)),
            (b"GNUTELLA/0.6 503 Full\r\n", Some(Handshake::Refused)),
            (b"GNUTELLAS\r\n", None),
            (b"GNUTELLA/0.6-and-so-on-and-on 200 OK\r\n", None),
        ] {
            assert_eq!(
                Start::of(line, true),
                want.map(Start::Gnutella).ok_or(FAULT)
            );
        }
        for line in [
            &b"GET /\r\n"[..],
            b"HTTP/2 200\r\n",
            b"hello\n",
            b"\n",
            b"GET / HTTP/1.1",
        ] {
            assert_eq!(Start::of(line, true), Err(FAULT), "{}", line.escape_ascii());
        }
    }
}
