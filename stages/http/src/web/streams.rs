//! The streams of a connection of HTTP/2 or HTTP/3: each is a transaction.

mod written;

use std::cell::Cell;
use std::collections::VecDeque;

use linkweir_proto::http2::direction::{Headers, Listener};
use linkweir_proto::http2::hpack::Field;
use linkweir_record::{HeaderNames, HttpBatch, Web};
use linkweir_table::{Chain, Chunks};
use linkweir_wire::Side;

use super::grpc::{Call, is_grpc};
use super::head::{First, Head};
use crate::events::{Format, MAX_STREAMS as MAX_EVENT_STREAMS};
use crate::key::Connection;
use crate::records::{Records, RequestParts};
use written::Measured;

/// Streams of one connection that wait; the oldest leaves.
pub(super) const MAX_STREAMS: usize = 4096;
/// Of them, responses that have ended and whose requests may be behind a gap, or come later in the capture.
const MAX_EARLY: usize = 64;

/// A request or response as far as it was seen.
#[derive(Debug, Clone, Copy)]
struct Message {
    /// The packet with the first byte of its header block.
    from_ns: u64,
    bytes: u64,
    /// Whether fields of it are not known.
    is_partial: bool,
}

/// A stream that has not ended.
#[derive(Debug)]
struct Stream {
    id: u32,
    changed_ns: u64,
    /// When its last byte was seen, where its request was not.
    ended_ns: Option<u64>,
    request: Option<Message>,
    response: Option<Message>,
    status: Option<u16>,
    interim: u16,
    vlan: Option<u16>,
    /// Losses of the server's direction before it began.
    losses: u64,
    /// Whether its request was counted by who saw it in HTTP/1.1.
    is_counted: bool,
    /// Method, path, authority, agent and kept header fields of the request one behind the other, and behind them the content
    /// type of the response and its header fields.
    text: Chain,
    lens: [u16; 5],
    /// Length of the content type.
    type_len: u16,
    call: Option<Box<Call>>,
    /// Where its response is a stream of events.
    events: Option<Box<Measured>>,
}

/// All streams of a connection, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Streams {
    waiting: VecDeque<Stream>,
    /// Where the stream stood that was looked for last.
    last: Cell<usize>,
    /// Streams that have ended without their request.
    early: usize,
    /// The first and the last number of a request that was seen: even ones, which a server promises, and odd ones.
    seen: [Option<(u32, u32)>; 2],
    /// Of them, those whose events are found.
    measured: usize,
    /// Whether they may begin in another order than that of their numbers: who reads them knows which are over.
    any_order: bool,
}

/// What streams share with those of other connections.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) texts: Chunks,
    pub(super) head: Head,
    /// Streams that wait, of all connections.
    pub(super) waiting: usize,
    pub(super) max_waiting: usize,
    /// Of them, those whose events are found.
    measured: usize,
    scratch: Vec<u8>,
    /// Header fields of the message at hand.
    fields: Vec<u8>,
}

impl Common {
    pub(super) fn new(max_waiting: usize, headers: &HeaderNames) -> Self {
        Self {
            texts: Chunks::with_capacity(max_waiting.max(1024)),
            head: Head::new(headers),
            fields: Vec::new(),
            waiting: 0,
            max_waiting,
            measured: 0,
            scratch: Vec::new(),
        }
    }
}

/// Who listens to one direction of a connection: where records go, and what stands in each.
#[derive(Debug)]
pub(super) struct Ear<'a> {
    pub(super) streams: &'a mut Streams,
    pub(super) common: &'a mut Common,
    pub(super) records: &'a mut Records,
    pub(super) out: &'a mut HttpBatch,
    pub(super) connection: Connection,
    pub(super) vlan: Option<u16>,
    pub(super) side: Side,
    /// Losses of the server's direction so far.
    pub(super) losses: u64,
    /// The version of HTTP.
    pub(super) version: (u8, u8),
    /// What the connection says of all its streams.
    pub(super) web: &'a Web<'a>,
}

/// An [`Ear`] without its streams.
#[derive(Debug)]
pub(super) struct Listening<'a> {
    pub(super) common: &'a mut Common,
    pub(super) records: &'a mut Records,
    pub(super) out: &'a mut HttpBatch,
    pub(super) connection: Connection,
    pub(super) vlan: Option<u16>,
    pub(super) side: Side,
    pub(super) losses: u64,
    pub(super) version: (u8, u8),
    pub(super) web: &'a Web<'a>,
}

impl<'a> Listening<'a> {
    /// Who listens for these streams.
    pub(super) fn ear(self, streams: &'a mut Streams) -> Ear<'a> {
        Ear {
            streams,
            common: self.common,
            records: self.records,
            out: self.out,
            connection: self.connection,
            vlan: self.vlan,
            side: self.side,
            losses: self.losses,
            version: self.version,
            web: self.web,
        }
    }
}

impl Stream {
    /// Method, path, authority, agent and header fields.
    fn set_text(&mut self, parts: [&[u8]; 5], texts: &mut Chunks) {
        for (len, part) in self.lens.iter_mut().zip(parts) {
            if texts.append_whole(&mut self.text, part) {
                *len = u16::try_from(part.len()).unwrap_or_default();
            }
        }
    }
}

impl Streams {
    /// Of a connection of QUIC.
    pub(super) fn in_any_order() -> Self {
        Self {
            any_order: true,
            ..Self::default()
        }
    }

    /// Bytes that they keep, without their texts.
    pub(super) fn held(&self) -> usize {
        // And the gaps between events, 1 KiB.
        self.waiting.capacity() * size_of::<Stream>()
            + self.measured * (size_of::<Measured>() + 1024)
    }

    fn find(&self, id: u32) -> Result<usize, usize> {
        let stands = |at: usize| self.waiting.get(at).is_some_and(|stream| stream.id == id);
        // Mostly it is the one before, the oldest, or a new one.
        if let Some(at) = [self.last.get(), 0].into_iter().find(|at| stands(*at)) {
            return Ok(at);
        }
        if self.waiting.back().is_none_or(|stream| stream.id < id) {
            return Err(self.waiting.len());
        }
        let found = self.waiting.binary_search_by_key(&id, |stream| stream.id);
        self.last.set(found.unwrap_or_else(|at| at));
        found
    }

    /// Whether what a stream carries is looked at: messages of gRPC, or events.
    pub(super) fn is_of_messages(&self, id: u32) -> bool {
        let stream = self.find(id).ok().and_then(|at| self.waiting.get(at));
        stream.is_some_and(|stream| stream.call.is_some() || stream.events.is_some())
    }

    /// Whether a stream was seen, and is over.
    fn is_over(&self, id: u32) -> bool {
        let seen = self.seen.get(id as usize % 2).copied().flatten();
        !self.any_order && seen.is_some_and(|(first, last)| (first..=last).contains(&id))
    }
}

impl Ear<'_> {
    /// Where the stream of this number stands, which begins here if it is not one that is over.
    fn place(&mut self, id: u32, ts_ns: u64) -> Option<usize> {
        if let Ok(at) = self.streams.find(id) {
            return Some(at);
        }
        if self.streams.is_over(id) {
            return None;
        }
        while self.common.waiting >= self.common.max_waiting
            || self.streams.waiting.len() >= MAX_STREAMS
        {
            self.records.stats.table_full += 1;
            if self.streams.waiting.is_empty() {
                return None;
            }
            self.end(0, None);
        }
        let at = self.streams.find(id).unwrap_or_else(|at| at);
        let stream = Stream {
            id,
            changed_ns: ts_ns,
            ended_ns: None,
            request: None,
            response: None,
            status: None,
            interim: 0,
            vlan: self.vlan,
            losses: self.losses,
            is_counted: false,
            text: Chain::new(),
            lens: [0; 5],
            type_len: 0,
            call: None,
            events: None,
        };
        self.streams.waiting.insert(at, stream);
        self.common.waiting += 1;
        Some(at)
    }

    /// The request of a stream, or what comes behind its content.
    fn request(&mut self, id: u32, headers: &Headers, is_partial: bool) {
        let Some(at) = self.place(id, headers.from_ns) else {
            return;
        };
        if let Some(seen) = self.streams.seen.get_mut(id as usize % 2) {
            let (first, last) = seen.unwrap_or((id, id));
            *seen = Some((first.min(id), last.max(id)));
        }
        let Some(stream) = self.streams.waiting.get_mut(at) else {
            return;
        };
        stream.changed_ns = stream.changed_ns.max(headers.from_ns);
        if let Some(request) = &mut stream.request {
            request.bytes = request.bytes.saturating_add(u64::from(headers.len));
            return;
        }
        stream.request = Some(Message {
            from_ns: headers.from_ns,
            bytes: u64::from(headers.len),
            is_partial,
        });
        let Common {
            texts,
            head,
            scratch,
            fields,
            ..
        } = &mut *self.common;
        fields.clear();
        head.chosen.finish(true, fields);
        if is_grpc(&head.content_type) {
            stream.call.get_or_insert_default().timeout_ns = head.grpc_timeout_ns;
        }
        let target = match (head.path.as_slice(), head.method.as_slice()) {
            ([], b"CONNECT") => &head.authority,
            _ => &head.path,
        };
        // A response that came first has put its texts there.
        scratch.clear();
        texts.copy_to(&stream.text, scratch);
        texts.release(std::mem::take(&mut stream.text));
        let parts = [
            &head.method,
            target,
            &head.authority,
            &head.user_agent,
            fields,
        ];
        let parts = parts.map(|part: &Vec<u8>| part.as_slice());
        stream.set_text(parts, texts);
        texts.append_whole(&mut stream.text, scratch);
        if let Some(ended_ns) = stream.ended_ns {
            self.end(at, Some(ended_ns));
        }
    }

    /// The request of stream 1, which came in HTTP/1.1 and asked for HTTP/2 (RFC 7540 sec. 3.2).
    pub(super) fn upgraded(&mut self, request: &RequestParts<'_>) {
        let Some(at) = self.place(1, request.ts_ns) else {
            return;
        };
        if let Some(seen) = self.streams.seen.get_mut(1) {
            *seen = Some((1, 1));
        }
        let Some(stream) = self.streams.waiting.get_mut(at) else {
            return;
        };
        stream.is_counted = true;
        stream.interim = request.interim_responses.saturating_add(1);
        stream.request = Some(Message {
            from_ns: request.ts_ns,
            bytes: request.bytes.unwrap_or_default(),
            is_partial: false,
        });
        let parts = [
            request.method,
            request.target,
            request.host,
            request.user_agent,
            request.fields,
        ];
        stream.set_text(parts, &mut self.common.texts);
    }

    /// Header fields of a server: interim, final, or behind the content.
    fn response(&mut self, id: u32, headers: &Headers, is_partial: bool) {
        let Some(at) = self.place(id, headers.from_ns) else {
            return;
        };
        let Some(stream) = self.streams.waiting.get_mut(at) else {
            return;
        };
        stream.changed_ns = stream.changed_ns.max(headers.from_ns);
        let Common {
            texts,
            head,
            measured,
            fields,
            ..
        } = &mut *self.common;
        let stats = &mut self.records.stats;
        // What comes behind the content begins with another field and ends the stream. Of a connection that was joined
        // late, or has lost something, that may not be known; what ends a stream is then taken for the response only
        // where it must be: everything since the request was seen.
        let has_seen_all = stream.request.is_some() && stream.losses == self.losses;
        let is_response = match head.first {
            First::Status => true,
            First::Other => false,
            First::Unknown => !headers.ends_stream || (has_seen_all && stream.response.is_none()),
        };
        match (head.status, &mut stream.response) {
            (Some(code @ 100..=199), _) => {
                stream.interim = stream.interim.saturating_add(1);
                stats.responses += 1;
                stats.interim_responses += 1;
                stats.count_status(code);
            }
            // One behind another, whose code is not known, says that the other was interim.
            (code, response) if is_response && (response.is_none() || stream.status.is_none()) => {
                if response.is_none() {
                    if texts.append_whole(&mut stream.text, &head.content_type) {
                        stream.type_len =
                            u16::try_from(head.content_type.len()).unwrap_or_default();
                    }
                    fields.clear();
                    head.chosen.finish(false, fields);
                    texts.append_whole(&mut stream.text, fields);
                }
                *response = Some(Message {
                    from_ns: headers.from_ns,
                    bytes: u64::from(headers.len),
                    is_partial,
                });
                stream.status = code;
                if is_grpc(&head.content_type) {
                    stream.call.get_or_insert_default();
                }
                if let Some(format) = Format::of(&head.content_type, &head.content_encoding)
                    && !headers.ends_stream
                {
                    if *measured < MAX_EVENT_STREAMS {
                        stream.events = Some(Box::new(Measured::new(format, self.losses)));
                        *measured += 1;
                        self.streams.measured += 1;
                    } else {
                        stats.streams.unmeasured += 1;
                    }
                }
            }
            (_, Some(response)) => {
                response.bytes = response.bytes.saturating_add(u64::from(headers.len));
            }
            (_, None) => {}
        }
        if let Some(call) = &mut stream.call
            && let Some(status) = head.grpc_status
        {
            call.set_status(status);
        }
        if headers.ends_stream {
            self.server_ends(at, headers.to_ns);
        }
    }

    /// The server says nothing more on a stream: it is over, unless its request is still to come.
    fn server_ends(&mut self, at: usize, ts_ns: u64) {
        let stream = self.streams.waiting.get_mut(at);
        let Some(stream) = stream.filter(|stream| stream.request.is_none()) else {
            return self.end(at, Some(ts_ns));
        };
        stream.ended_ns = Some(ts_ns);
        self.streams.early += 1;
        if self.streams.early > MAX_EARLY {
            let mut waiting = self.streams.waiting.iter();
            if let Some(first) = waiting.position(|stream| stream.ended_ns.is_some()) {
                self.end(first, None);
            }
        }
    }

    /// A stream is over; its last byte was seen at `end_ns`.
    fn end(&mut self, at: usize, end_ns: Option<u64>) {
        let Some(mut stream) = self.streams.waiting.remove(at) else {
            return;
        };
        if let Some(measured) = &mut stream.events {
            measured.end();
            self.common.measured = self.common.measured.saturating_sub(1);
            self.streams.measured = self.streams.measured.saturating_sub(1);
        }
        self.common.waiting = self.common.waiting.saturating_sub(1);
        let was_early = usize::from(stream.ended_ns.is_some());
        self.streams.early = self.streams.early.saturating_sub(was_early);
        self.write(&stream, end_ns);
        self.common.texts.release(stream.text);
    }

    /// Ends all streams, or those where nothing has happened since `limit_ns`.
    pub(super) fn end_before(&mut self, limit_ns: u64) {
        let mut at = 0;
        while let Some(stream) = self.streams.waiting.get(at) {
            if stream.changed_ns <= limit_ns {
                self.end(at, None);
            } else {
                at += 1;
            }
        }
    }
}

impl Listener for Ear<'_> {
    fn wants(&self) -> fn(&[u8]) -> bool {
        self.common.head.wanted()
    }

    fn field(&mut self, field: Field<'_>) {
        self.common.head.take(field);
    }

    fn headers(&mut self, headers: &Headers) {
        let is_partial = self.common.head.is_partial
            || headers.fields.map_or(true, |decoded| decoded.withheld > 0);
        match (self.side, headers.promised) {
            (Side::Server, Some(promised)) if promised % 2 == 0 => {
                self.request(promised, headers, is_partial);
            }
            (Side::Server, Some(_)) => {}
            (Side::Server, None) => self.response(headers.stream, headers, is_partial),
            (Side::Client, None) => self.request(headers.stream, headers, is_partial),
            // RFC 9113 sec. 8.4: clients promise nothing, and what a server promises has an even number.
            (Side::Client, Some(_)) => {}
        }
        self.common.head.clear();
    }

    fn data(&mut self, id: u32, bytes: &[u8], len: u32, ends_stream: bool, ts_ns: u64) {
        let Ok(at) = self.streams.find(id) else {
            return;
        };
        let Some(stream) = self.streams.waiting.get_mut(at) else {
            return;
        };
        stream.changed_ns = stream.changed_ns.max(ts_ns);
        let from_ns = stream.request.map(|request| request.from_ns);
        let message = match self.side {
            Side::Client => &mut stream.request,
            Side::Server => &mut stream.response,
        };
        if let Some(message) = message {
            message.bytes = message.bytes.saturating_add(u64::from(len));
        }
        if let Some(call) = &mut stream.call {
            call.content(self.side, bytes, len, ts_ns, from_ns);
        }
        if self.side == Side::Server
            && let Some(measured) = &mut stream.events
        {
            measured.content(bytes, len, self.losses, ts_ns);
        }
        if ends_stream && self.side == Side::Server {
            self.server_ends(at, ts_ns);
        }
    }

    fn reset(&mut self, id: u32, error: u32, _ts_ns: u64) {
        let Ok(at) = self.streams.find(id) else {
            return;
        };
        let stream = self.streams.waiting.get_mut(at);
        // Of a client that gives up nobody else knows why.
        if self.side == Side::Server
            && let Some(call) = stream.and_then(|stream| stream.call.as_mut())
        {
            call.reset(error);
        }
        self.end(at, None);
    }

    fn goaway(&mut self, last: u32, _ts_ns: u64) {
        if self.side != Side::Server {
            return;
        }
        // RFC 9113 sec. 6.8: of the client's streams above it the server has looked at none.
        let mut at = self.streams.find(last).map_or_else(|at| at, |at| at + 1);
        while let Some(stream) = self.streams.waiting.get(at) {
            if stream.id % 2 == 1 && stream.response.is_none() {
                self.end(at, None);
            } else {
                at += 1;
            }
        }
    }
}
