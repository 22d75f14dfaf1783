//! HTTP/1 within a flow: requests and responses counted, the first host and status, and the heads
//! themselves where they are asked for.
//!
//! A segment whose first bytes are no start line costs the test of its first bytes. A head that
//! spans segments waits in a buffer of the pool; the count goes up when it begins.

use linkweir_proto::http1::{
    BodyLength, Outcome, RequestHead, ResponseHead, Start, chunked_length, classify, parse_request,
    parse_response, request_body, response_body,
};
use linkweir_record::flow::{FlowBatch, FlowRow, MESSAGE_TEXTS, MessageKind, MessageRow};
use linkweir_wire::Side;

use super::gather::MAX_BYTES;
use super::handle::Handle;
use super::state::State;
use super::texts::Text;
use super::{Ends, Layer7, Segment, Shared};
use crate::step::sites;

/// Heads that are looked for in one segment: pipelining.
const HEADS_PER_SEGMENT: usize = 64;

/// Where heads come from and go to.
struct Heads<'a, 'b> {
    ends: &'a Ends,
    side: Side,
    ts_ns: u64,
    /// Whether the bytes behind these follow in the next segment.
    goes_on: bool,
    out: &'b mut FlowBatch,
}

/// What became of the bytes at the start of a payload.
enum Head {
    /// A whole head, or all that will ever come of one; the message may end behind it, at this
    /// offset, so that another one can follow.
    Whole(Option<usize>),
    /// The head ends in a later segment.
    Waits,
    /// No head.
    Neither,
}

impl Layer7 {
    /// Payload of an HTTP flow in stream order.
    #[inline]
    pub(super) fn on_http(
        &mut self,
        handle: &mut Handle,
        segment: &Segment<'_>,
        out: &mut FlowBatch,
    ) {
        if handle.waits(segment.side) {
            self.on_heads(handle, segment, None, out);
            return;
        }
        // Most segments are the middle of a body: no state is touched.
        if let (Side::Server, Some(first)) = (segment.side, segment.payload.first_chunk())
            && !may_start(first)
        {
            return;
        }
        match classify(segment.payload) {
            Start::Neither => {}
            start => self.on_heads(handle, segment, Some(start), out),
        }
    }

    /// What `start` says begins in the payload; `None` where a head waits for its end.
    #[inline(never)]
    fn on_heads(
        &mut self,
        handle: &mut Handle,
        segment: &Segment<'_>,
        start: Option<Start>,
        out: &mut FlowBatch,
    ) {
        let Some(state) = self.slab.get_mut(*handle) else {
            return;
        };
        let mut heads = Heads {
            ends: segment.ends,
            side: segment.side,
            ts_ns: segment.ts_ns,
            goes_on: segment.missing == 0,
            out,
        };
        let mut rest = segment.payload;
        if start.is_none() {
            handle.set_waits(segment.side, false);
            let Some(behind) = continue_head(state, &mut self.shared, &mut heads, rest) else {
                handle.set_waits(segment.side, true);
                return;
            };
            rest = behind;
        }
        let mut start = start;
        for _ in 0..HEADS_PER_SEGMENT {
            if rest.is_empty() {
                return;
            }
            let start = start.take().unwrap_or_else(|| classify(rest));
            match heads.head(state, &mut self.shared, rest, start) {
                Head::Whole(Some(end)) => rest = rest.get(end..).unwrap_or_default(),
                Head::Whole(None) | Head::Neither => return,
                Head::Waits => {
                    let side = state.side_mut(segment.side);
                    let pool = &mut self.shared.pool;
                    pool.append(&mut side.gather, rest, MAX_BYTES, segment.ts_ns);
                    handle.set_waits(segment.side, side.gather.is_some());
                    return;
                }
            }
        }
    }
}

/// Whether a segment of the server may begin with a head: a status line, or, where the ends of the
/// flow are the wrong way round, one of the usual requests. To look for an unknown method
/// would cost a search through the first line of all text.
#[inline]
const fn may_start(first: &[u8; 4]) -> bool {
    matches!(
        first,
        b"HTTP" | b"GET " | b"POST" | b"HEAD" | b"PUT " | b"DELE" | b"OPTI" | b"PATC" | b"CONN"
    )
}

/// Puts a payload behind the head that waits. Gives what another head may begin in; `None` where the
/// head still waits.
fn continue_head<'a>(
    state: &mut State,
    shared: &mut Shared,
    heads: &mut Heads<'_, '_>,
    payload: &'a [u8],
) -> Option<&'a [u8]> {
    let side = state.side_mut(heads.side);
    let mut id = std::mem::take(&mut side.gather);
    // Bytes behind a gap are not the end of this head.
    let is_next = !std::mem::take(&mut side.is_cut);
    let before = shared.pool.bytes(id).len();
    let fits = is_next && shared.pool.append(&mut id, payload, MAX_BYTES, heads.ts_ns);
    let since_ns = shared.pool.time_ns(id).unwrap_or(heads.ts_ns);
    let bytes = shared.pool.lift(id);
    let mut waiting = Heads {
        ts_ns: since_ns,
        goes_on: fits && heads.goes_on,
        out: &mut *heads.out,
        ..*heads
    };
    let head = waiting.head(state, shared, &bytes, classify(&bytes));
    shared.pool.put_back(id, bytes);
    let rest = match head {
        Head::Waits => {
            state.side_mut(heads.side).gather = id;
            return None;
        }
        Head::Whole(Some(end)) if is_next => payload.get(end.saturating_sub(before)..),
        // The head ends in this payload, and a body follows; or it is too long.
        Head::Whole(None) if is_next => None,
        Head::Whole(_) | Head::Neither => Some(payload),
    };
    shared.pool.release(&mut id);
    Some(rest.unwrap_or_default())
}

/// Counts the head that still waits when a record is written.
pub(super) fn count_waiting(bytes: &[u8], row: &mut FlowRow) {
    match classify(bytes) {
        Start::Request => row.http_requests = row.http_requests.saturating_add(1),
        Start::Response => row.http_responses = row.http_responses.saturating_add(1),
        Start::Unsure | Start::Neither => {}
    }
}

/// The host in the head that still waits when a record is written, as far as it is there.
pub(super) fn host_of_waiting(bytes: &[u8]) -> &[u8] {
    match (classify(bytes), parse_request(bytes)) {
        (Start::Request, Outcome::Partial(head)) => head.host,
        _ => &[],
    }
}

impl Heads<'_, '_> {
    /// A head at the start of `bytes`, which begin with `start`. It is counted when it is whole, or when no
    /// more of it comes.
    fn head(&mut self, state: &mut State, shared: &mut Shared, bytes: &[u8], start: Start) -> Head {
        match start {
            Start::Request => self.request(state, shared, bytes),
            Start::Response => self.response(state, shared, bytes),
            // A few bytes: what they begin is counted when it is known.
            Start::Unsure if self.goes_on && bytes.len() < 16 => Head::Waits,
            Start::Unsure | Start::Neither => Head::Neither,
        }
    }

    fn request(&mut self, state: &mut State, shared: &mut Shared, bytes: &[u8]) -> Head {
        let (head, len) = match parse_request(bytes) {
            Outcome::Complete(head, len) => (head, Some(len)),
            Outcome::Partial(head) => (head, None),
            Outcome::Invalid => return Head::Neither,
        };
        let is_wanted = shared.with_messages || state.texts.get(Text::HttpHost).is_empty();
        if len.is_none() && is_wanted && self.goes_on && bytes.len() < MAX_BYTES {
            return Head::Waits;
        }
        state.http_requests = state.http_requests.saturating_add(1);
        if state.http_type == 0 {
            state.http_type = 1 + sites::http_class(head.method, head.host, head.target);
        }
        state
            .texts
            .set(Text::HttpHost, head.host, &mut shared.budget);
        if shared.with_messages {
            self.push_request(state, &head, bytes, len);
        }
        let after = len.and_then(|len| bytes.get(len..));
        Head::Whole(match (len, after) {
            (Some(len), Some(after)) => behind(request_body(&head), len, after),
            _ => None,
        })
    }

    fn response(&mut self, state: &mut State, shared: &mut Shared, bytes: &[u8]) -> Head {
        let (head, len) = match parse_response(bytes) {
            Outcome::Complete(head, len) => (head, Some(len)),
            Outcome::Partial(head) => (head, None),
            Outcome::Invalid => return Head::Neither,
        };
        let is_wanted = shared.with_messages || head.status_code == 0;
        if len.is_none() && is_wanted && self.goes_on && bytes.len() < MAX_BYTES {
            return Head::Waits;
        }
        state.http_responses = state.http_responses.saturating_add(1);
        if state.http_status == 0 {
            state.http_status = head.status_code;
        }
        if shared.with_messages {
            self.push_response(&head, bytes, len);
        }
        let after = len.and_then(|len| bytes.get(len..));
        Head::Whole(match (len, after) {
            (Some(len), Some(after)) => behind(response_body(&head, b""), len, after),
            _ => None,
        })
    }

    /// Who is client and who is server of a message that this side sends as `kind`: a flow without
    /// SYN may have been opened by the other one.
    const fn row(&self, kind: MessageKind, status: u16) -> MessageRow {
        let is_as_opened = matches!(
            (kind, self.side),
            (MessageKind::Request, Side::Client) | (MessageKind::Response, Side::Server)
        );
        let (client, server) = if is_as_opened {
            (self.ends.client, self.ends.server)
        } else {
            (self.ends.server, self.ends.client)
        };
        MessageRow {
            kind,
            time_ns: self.ts_ns,
            client,
            server,
            status,
        }
    }

    fn push_request(
        &mut self,
        state: &State,
        head: &RequestHead<'_>,
        bytes: &[u8],
        len: Option<usize>,
    ) {
        let [referer, cookie, dnt] = fields(bytes, len, ["referer", "cookie", "dnt"]);
        let texts: [&[u8]; MESSAGE_TEXTS] = [
            head.method,
            head.host,
            head.target,
            referer,
            head.user_agent,
            cookie,
            dnt,
            state.texts.get(Text::Fqdn),
        ];
        self.out
            .push_message(self.row(MessageKind::Request, 0), texts);
    }

    fn push_response(&mut self, head: &ResponseHead<'_>, bytes: &[u8], len: Option<usize>) {
        let names = [
            "content-length",
            "content-type",
            "server",
            "content-range",
            "location",
            "set-cookie",
        ];
        let [length, kind, server, range, location, cookie] = fields(bytes, len, names);
        let texts: [&[u8]; MESSAGE_TEXTS] =
            [length, kind, server, range, location, cookie, &[], &[]];
        self.out
            .push_message(self.row(MessageKind::Response, head.status_code), texts);
    }
}

/// Where the message ends, if it does within the bytes `after` its head of `len` bytes.
fn behind(body: BodyLength, len: usize, after: &[u8]) -> Option<usize> {
    let length = match body {
        BodyLength::Known(length) => usize::try_from(length).ok()?,
        BodyLength::Chunked => chunked_length(after)?,
        BodyLength::UntilClose => return None,
    };
    (length < after.len()).then_some(len + length)
}

/// The first value of each of the fields named (in lower case) in a head of `len` bytes, or in as
/// much of it as is there.
fn fields<'a, const N: usize>(
    bytes: &'a [u8],
    len: Option<usize>,
    names: [&str; N],
) -> [&'a [u8]; N] {
    let mut values: [&[u8]; N] = [&[]; N];
    let head = len.and_then(|len| bytes.get(..len)).unwrap_or(bytes);
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = line.split_at_checked(colon).unwrap_or((line, &[]));
        let name = name.trim_ascii_end();
        for (wanted, found) in names.iter().zip(&mut values) {
            if found.is_empty() && name.eq_ignore_ascii_case(wanted.as_bytes()) {
                *found = value.strip_prefix(b":").unwrap_or(value).trim_ascii();
            }
        }
    }
    values
}
