//! What a segment says by itself: which message begins with it, and how much of it matters.

use linkweir_proto::http1::{
    Outcome, RequestHead, ResponseHead, Start, classify, empty_lines, parse_request, parse_response,
};
use linkweir_wire::TcpFlags;

use crate::halves::{request_rest, response_rest};

/// The message that begins with a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    /// Whether it is a request or a response; nothing where neither begins here.
    pub(super) is_request: Option<bool>,
    /// Whether there is nothing else to the segment: a whole head, and at most the body behind it.
    pub(super) is_plain: bool,
    /// How long the message is, where that is known.
    pub(super) len: Option<u32>,
    /// Bytes of payload that matter.
    pub(super) keep: usize,
}

impl Message {
    /// A segment of which all that is there may matter.
    pub(super) const fn whole(payload: &[u8], is_request: Option<bool>) -> Self {
        Self {
            is_request,
            is_plain: false,
            len: None,
            keep: payload.len(),
        }
    }

    /// Reads the first message of a payload that had `payload_len` bytes on the wire.
    pub(super) fn read(payload: &[u8], payload_len: u32, flags: TcpFlags) -> Self {
        // A request on a SYN, or without an acknowledgment number, has no match number of its own.
        let has_link = flags.contains(TcpFlags::ACK) && !flags.contains(TcpFlags::SYN);
        let (is_request, alone) = match classify(payload) {
            Start::Request => (true, plain_request(payload)),
            Start::Response => (false, plain_response(payload)),
            Start::Unsure | Start::Neither => return Self::whole(payload, None),
        };
        match alone {
            Some(alone) if has_link && !alone.ends_before(payload_len) => Self {
                is_request: Some(is_request),
                is_plain: true,
                len: alone.len.and_then(|len| u32::try_from(len).ok()),
                keep: alone.keep,
            },
            _ => Self::whole(payload, Some(is_request)),
        }
    }
}

/// A message with a whole head.
struct Alone {
    /// Its length with its body, below 2^31.
    len: Option<usize>,
    keep: usize,
}

impl Alone {
    /// `rest` is the length of the body behind a head of `head` bytes.
    fn new(payload: &[u8], head: usize, rest: Option<usize>, is_chunked: bool) -> Self {
        // Of chunks that are all here the lengths are read.
        let is_read = is_chunked && rest.is_some();
        Self {
            len: rest
                .and_then(|rest| head.checked_add(rest))
                .filter(|len| *len < 1 << 31),
            keep: if is_read { payload.len() } else { head },
        }
    }

    fn ends_before(&self, payload_len: u32) -> bool {
        self.len.is_some_and(|len| len < payload_len as usize)
    }
}

fn plain_request(payload: &[u8]) -> Option<Alone> {
    let Outcome::Complete(head, len) = parse_request(payload) else {
        return None;
    };
    let RequestHead {
        method, chunked, ..
    } = head;
    // What follows `CONNECT` is a tunnel.
    (method != b"CONNECT").then(|| {
        let rest = request_rest(&head, payload.get(len..).unwrap_or_default());
        Alone::new(payload, len, rest, chunked)
    })
}

fn plain_response(payload: &[u8]) -> Option<Alone> {
    let Outcome::Complete(head, len) = parse_response(payload) else {
        return None;
    };
    let ResponseHead { chunked, .. } = head;
    let body = payload.get(len..).unwrap_or_default();
    // The request may have been `HEAD`: then the next message begins right behind the head.
    let is_alone = classify(body) == Start::Neither && empty_lines(body) == 0;
    (!head.is_interim() && is_alone)
        .then(|| Alone::new(payload, len, response_rest(&head, body), chunked))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: TcpFlags = TcpFlags(0x18);

    fn read(payload: &str) -> Message {
        Message::read(
            payload.as_bytes(),
            u32::try_from(payload.len()).unwrap(),
            DATA,
        )
    }

    #[test]
    fn a_body_is_left_away() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        let message = read(&format!("{head}123456"));
        assert_eq!((message.is_request, message.is_plain), (Some(false), true));
        assert_eq!(message.keep, head.len());
        assert_eq!(message.len, Some(u32::try_from(head.len()).unwrap() + 9));
        let get = read("GET / HTTP/1.1\r\n\r\n");
        assert_eq!((get.is_plain, get.len, get.keep), (true, Some(18), 18));
    }

    #[test]
    fn chunks_stay_where_their_end_is_there() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let whole = format!("{head}3\r\nabc\r\n0\r\n\r\n");
        assert_eq!(read(&whole).keep, whole.len());
        assert!(read(&whole).is_plain);
        let part = read(&format!("{head}ff\r\nabc"));
        assert_eq!(
            (part.keep, part.len, part.is_plain),
            (head.len(), None, true)
        );
    }

    #[test]
    fn what_is_more_than_one_message_is_not_plain() {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        for payload in [
            format!("{ok}{ok}"),
            format!("{ok}x"),
            // Perhaps the answer to `HEAD`, with the next one behind it.
            format!("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{ok}"),
            "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n".to_owned(),
            "\r\nGET / HTTP/1.1\r\n\r\n".to_owned(),
            "HTTP/1.1 100 Continue\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nHost: a".to_owned(),
            "CONNECT a:1 HTTP/1.1\r\n\r\n".to_owned(),
            "body".to_owned(),
        ] {
            let message = read(&payload);
            assert!(!message.is_plain, "{payload}");
            assert_eq!(message.keep, payload.len());
        }
        let syn = Message::read(b"GET / HTTP/1.1\r\n\r\n", 18, TcpFlags::SYN);
        assert!(!syn.is_plain);
    }
}
