//! What a request or response does to the table: pairing in either order, pipelines, interim
//! responses, retransmissions.

use linkweir_proto::http1::{BodyLength, RequestHead, ResponseHead, chunked_length, response_body};
use linkweir_proto::http1::{Start, classify};
use linkweir_record::HttpBatch;
use linkweir_table::{Id, Seen, TextChain};
use linkweir_wire::SeqNumber;

use crate::body::{BodyEnd, EndRule};
use crate::emit::{RequestParts, ResponseParts};
use crate::key::{Connection, ConnectionHash, Meaning};
use crate::pending::{Half, MAX_PIPELINE, Waiting, WaitingRequest, WaitingResponse};
use crate::segment::Segment;
use crate::stage::HttpStage;

/// Where and when a head begins, and the segment in which it ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Sender first.
    pub(crate) direction: Connection,
    pub(crate) seq: SeqNumber,
    pub(crate) ack: u32,
    pub(crate) ts_ns: u64,
    pub(crate) vlan: Option<u16>,
    pub(crate) segment_end: SeqNumber,
    pub(crate) segment_ns: u64,
}

impl Place {
    #[inline]
    pub(crate) fn new(segment: &Segment<'_>, offset: usize) -> Self {
        Self {
            direction: segment.direction,
            seq: segment.seq_at(offset),
            ack: segment.ack,
            ts_ns: segment.ts_ns,
            vlan: segment.vlan,
            segment_end: segment.end(),
            segment_ns: segment.ts_ns,
        }
    }
}

/// Where a request belongs.
#[derive(Debug, Clone, Copy)]
struct Spot {
    link: u32,
    /// What waits there: the leader of a queue, or the response.
    there: Option<Id>,
    /// Whether the request was seen before.
    is_known: bool,
}

/// A text part's length as entries keep it; heads are at most 64 KiB.
#[inline]
fn short(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

/// The link after a response: where the next response to the same connection begins.
const fn after(link: u32, head_len: usize, body_len: u64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "sequence numbers count modulo 2^32"
    )]
    link.wrapping_add(head_len as u32)
        .wrapping_add(body_len as u32)
}

impl HttpStage {
    /// A request whose head begins at `place`.
    pub(crate) fn on_request(
        &mut self,
        place: &Place,
        head: &RequestHead<'_>,
        head_len: usize,
        whole: bool,
        out: &mut HttpBatch,
    ) {
        self.advance(place.ts_ns, out);
        let connection = place.direction;
        let hash = ConnectionHash::new(self.seed, &connection);
        let bytes = (whole && !head.chunked)
            .then(|| (head_len as u64).saturating_add(head.content_length.unwrap_or(0)));
        let parts = RequestParts {
            connection,
            ts_ns: place.ts_ns,
            vlan: place.vlan,
            bytes,
            minor: head.minor,
            interim_responses: 0,
            retransmissions: 0,
            method: head.method,
            target: head.target,
            host: head.host,
            user_agent: head.user_agent,
        };
        let spot = self.spot_of(&connection, hash, place);
        if spot.is_known {
            self.output.stats.retransmitted_requests += 1;
            let found = self
                .pending
                .find_request(&connection, hash, spot.link, place.seq);
            if let Some(id) = found {
                self.pending.touch(id, self.now_ns);
                if let Some(waiting) = self.pending.get_mut(id) {
                    waiting.retransmissions = waiting.retransmissions.saturating_add(1);
                }
            }
            if self.keep_duplicates {
                self.output.unanswered(&parts, out);
            }
            return;
        }
        let last = Seen {
            note: place.seq.0,
            second: None,
        };
        self.seen.put(
            hash.home(),
            hash.with(Meaning::LastRequest, 0),
            self.now_ms(),
            last,
        );
        self.server_ports.insert(connection.server.1);
        let stats = &mut self.output.stats;
        stats.requests += 1;
        stats.count_method(head.method);
        stats.truncated_heads += u64::from(!whole);
        match spot.there {
            Some(id) if self.is_response(id) => self.answer_new(&parts, place, id, hash, out),
            there => self.await_response(&parts, hash, place, spot.link, there, out),
        }
    }

    /// Where a request waits, or would wait: usually at its acknowledgment number. Where the
    /// response that begins there has gone by, the request was pipelined behind one that is
    /// answered; its own response begins where that one ends.
    #[inline]
    fn spot_of(&self, connection: &Connection, hash: ConnectionHash, place: &Place) -> Spot {
        let mut link = place.ack;
        for _ in 0..=MAX_PIPELINE {
            let there = self.pending.find(connection, hash, link);
            if let Some(id) = there {
                let is_known = self.pending.queue_has(id, place.seq);
                return Spot {
                    link,
                    there,
                    is_known,
                };
            }
            let Some(answered) =
                self.seen
                    .get(hash.home(), hash.with(Meaning::Link, link), self.now_ms())
            else {
                break;
            };
            // All requests with this acknowledgment number up to the noted one are answered.
            if !SeqNumber(answered.note).before(place.seq) {
                return Spot {
                    link,
                    there: None,
                    is_known: true,
                };
            }
            match answered.second {
                Some(next) if next != link => link = next,
                _ => break,
            }
        }
        // A retransmission may acknowledge more than the first time: a FIN, say.
        let last = self.seen.get(
            hash.home(),
            hash.with(Meaning::LastRequest, 0),
            self.now_ms(),
        );
        let is_known = last.is_some_and(|last| last.note == place.seq.0);
        Spot {
            link,
            there: None,
            is_known,
        }
    }

    /// Lets a new request wait for its response, behind the one that is `there`.
    #[inline]
    fn await_response(
        &mut self,
        parts: &RequestParts<'_>,
        hash: ConnectionHash,
        place: &Place,
        link: u32,
        mut there: Option<Id>,
        out: &mut HttpBatch,
    ) {
        let text_len =
            parts.method.len() + parts.target.len() + parts.host.len() + parts.user_agent.len();
        if link != place.ack {
            self.watch
                .expect_start(place.direction.reversed(), SeqNumber(link), self.now_ns);
        }
        if self.make_room(text_len, out) {
            // What led the queue may have had to leave.
            there = self.pending.find(&parts.connection, hash, link);
        }
        let mut text = TextChain::default();
        self.texts.append_all(
            &mut text,
            [parts.method, parts.target, parts.host, parts.user_agent],
        );
        let lens = [
            short(parts.method.len()),
            short(parts.target.len()),
            short(parts.host.len()),
        ];
        let waiting = Waiting {
            connection: parts.connection,
            link,
            ts_ns: parts.ts_ns,
            changed_ns: self.now_ns,
            text,
            bytes: parts.bytes,
            vlan: parts.vlan,
            minor: parts.minor,
            retransmissions: 0,
            half: Half::Request(WaitingRequest::new(place.seq, place.ack, lens)),
        };
        let inserted = match there {
            None => self.pending.insert(hash, waiting),
            Some(leader) => self.pending.insert_behind(leader, hash, waiting),
        };
        if let Err(refused) = inserted {
            // More requests in one pipeline than a server is asked at once.
            self.output.stats.table_full += 1;
            self.give_up(refused, out);
        }
    }

    fn is_response(&self, id: Id) -> bool {
        self.pending
            .get(id)
            .is_some_and(|waiting| matches!(waiting.half, Half::Response(_)))
    }

    /// The response came before its request.
    fn answer_new(
        &mut self,
        parts: &RequestParts<'_>,
        place: &Place,
        id: Id,
        hash: ConnectionHash,
        out: &mut HttpBatch,
    ) {
        let Some((waiting, _)) = self.pending.remove(id) else {
            return;
        };
        let Half::Response(response) = waiting.half else {
            return;
        };
        let next = next_link(&waiting, &response, parts.method);
        self.remember(hash, waiting.link, (place.ack, place.seq), next);
        let text = self.texts.read(&waiting.text, &mut self.scratch);
        let answer = response_parts(
            &waiting,
            &response,
            text,
            body_length(&response, parts.method),
        );
        self.output
            .complete(parts, &answer, stored_end(&waiting, &response, next), out);
        self.texts.release(waiting.text);
        self.release_bodies(out);
    }

    /// A response whose head begins at `place`; `body` is what follows it in the segment.
    ///
    /// Returns the length of the body where it is known.
    pub(crate) fn on_response(
        &mut self,
        place: &Place,
        head: &ResponseHead<'_>,
        head_len: usize,
        body: &[u8],
        whole: bool,
        out: &mut HttpBatch,
    ) -> Option<usize> {
        self.advance(place.ts_ns, out);
        let connection = place.direction.reversed();
        let hash = ConnectionHash::new(self.seed, &connection);
        let link = place.seq.0;
        let mut answer = ResponseParts {
            connection,
            ts_ns: place.ts_ns,
            vlan: place.vlan,
            bytes: None,
            minor: head.minor,
            retransmissions: 0,
            status_code: head.status_code,
            reason_phrase: head.reason_phrase,
            content_type: head.content_type,
        };
        let request = self.request_at(&connection, hash, link, out);
        if request.is_none() && self.is_answered(&connection, hash, link) {
            return self.on_response_again(&answer, head, body, out);
        }
        self.server_ports.insert(connection.server.1);
        let stats = &mut self.output.stats;
        stats.responses += 1;
        stats.count_status(head.status_code);
        stats.truncated_heads += u64::from(!whole);
        if head.is_interim() {
            self.on_interim(&connection, hash, (link, place.ack), head_len, request, out);
            return Some(0);
        }
        let Some(id) = request else {
            let length = measured(response_body(head, b""), body).filter(|_| whole);
            answer.bytes = length.map(|length| length.saturating_add(head_len as u64));
            self.await_request(&answer, head, link, head_len, body, out);
            if let Some(length) = length {
                self.expect_start(place, after(link, head_len, length));
            }
            return length.and_then(|length| usize::try_from(length).ok());
        };
        let (request, follower) = self.pending.remove(id)?;
        let Half::Request(half) = &request.half else {
            return None;
        };
        let text = self.texts.read(&request.text, &mut self.scratch);
        let (parts, sent) = (request_parts(&request, half, text), (half.origin, half.seq));
        let rule = response_body(head, parts.method);
        let length = measured(rule, body).filter(|_| whole);
        let next = length.map(|length| after(link, head_len, length));
        answer.bytes = length.map(|length| length.saturating_add(head_len as u64));
        let end = BodyEnd {
            rule: end_rule(rule, next),
            seen_to: place.segment_end,
            seen_ns: place.segment_ns,
        };
        self.output.complete(&parts, &answer, end, out);
        self.texts.release(request.text);
        self.remember(hash, link, sent, next);
        if let Some(follower) = follower {
            self.pending.touch(follower, self.now_ns);
            self.relocate(&connection, hash, follower, next, out);
            if let Some(next) = next {
                self.expect_start(place, next);
            }
        }
        self.release_bodies(out);
        length.and_then(|length| usize::try_from(length).ok())
    }

    /// The request that waits for the response at `link`; one whose head is still being gathered
    /// is taken as far as it goes.
    fn request_at(
        &mut self,
        connection: &Connection,
        hash: ConnectionHash,
        link: u32,
        out: &mut HttpBatch,
    ) -> Option<Id> {
        let mut found = self.pending.find(connection, hash, link);
        if found.is_none()
            && let Some(partial) = self.watch.take_request(connection, link)
        {
            self.on_partial(partial, out);
            found = self.pending.find(connection, hash, link);
        }
        found.filter(|id| !self.is_response(*id))
    }

    fn on_response_again(
        &mut self,
        answer: &ResponseParts<'_>,
        head: &ResponseHead<'_>,
        body: &[u8],
        out: &mut HttpBatch,
    ) -> Option<usize> {
        self.output.stats.retransmitted_responses += 1;
        if self.keep_duplicates && !head.is_interim() {
            self.output.orphan(answer, out);
        }
        measured(response_body(head, b""), body).and_then(|length| usize::try_from(length).ok())
    }

    /// An interim response: its request goes on waiting, for the response that begins behind it
    /// (RFC 9110 sec. 15.2).
    fn on_interim(
        &mut self,
        connection: &Connection,
        hash: ConnectionHash,
        (link, ack): (u32, u32),
        head_len: usize,
        request: Option<Id>,
        out: &mut HttpBatch,
    ) {
        self.output.stats.interim_responses += 1;
        let next = after(link, head_len, 0);
        let Some(id) = request else {
            // A request that comes later than this finds the way.
            return self.pass_by(hash, link, ack, next);
        };
        self.pass_by(hash, link, ack, next);
        self.pending.touch(id, self.now_ns);
        if let Some(Half::Request(request)) =
            self.pending.get_mut(id).map(|waiting| &mut waiting.half)
        {
            request.interim_responses = request.interim_responses.saturating_add(1);
        }
        self.relocate(connection, hash, id, Some(next), out);
        self.release_bodies(out);
    }

    /// Lets a leader and its queue wait at another link; what waits there already is met.
    ///
    /// Without a link nobody knows where the next response begins: the queue stays until it times
    /// out, where no response finds it.
    fn relocate(
        &mut self,
        connection: &Connection,
        hash: ConnectionHash,
        mut leader: Id,
        mut link: Option<u32>,
        out: &mut HttpBatch,
    ) {
        for _ in 0..=MAX_PIPELINE {
            let Some(at) = link else {
                return self.pending.hide(leader, hash);
            };
            let there = self
                .pending
                .find(connection, hash, at)
                .filter(|id| *id != leader);
            match there {
                Some(id) if self.is_response(id) => {
                    match self.answer_waiting(leader, id, hash, out) {
                        Some((follower, next)) => (leader, link) = (follower, next),
                        None => return,
                    }
                }
                Some(id) => {
                    self.pending.move_to(leader, hash, at);
                    return self.pending.join(leader, id);
                }
                None => return self.pending.move_to(leader, hash, at),
            }
        }
    }

    /// Both halves are in the table. Returns the next of the queue and the link it waits at.
    fn answer_waiting(
        &mut self,
        leader: Id,
        response: Id,
        hash: ConnectionHash,
        out: &mut HttpBatch,
    ) -> Option<(Id, Option<u32>)> {
        let (stored, _) = self.pending.remove(response)?;
        let Half::Response(answered) = stored.half else {
            return None;
        };
        let (request, follower) = self.pending.remove(leader)?;
        let Half::Request(half) = &request.half else {
            return None;
        };
        let mut answer_text = std::mem::take(&mut self.head);
        answer_text.clear();
        self.texts.copy_to(&stored.text, &mut answer_text);
        let text = self.texts.read(&request.text, &mut self.scratch);
        let parts = request_parts(&request, half, text);
        let next = next_link(&stored, &answered, parts.method);
        let answer = response_parts(
            &stored,
            &answered,
            &answer_text,
            body_length(&answered, parts.method),
        );
        self.output
            .complete(&parts, &answer, stored_end(&stored, &answered, next), out);
        self.remember(hash, stored.link, (half.origin, half.seq), next);
        self.head = answer_text;
        self.texts.release(request.text);
        self.texts.release(stored.text);
        follower.map(|follower| (follower, next))
    }

    /// A response without a request so far.
    fn await_request(
        &mut self,
        answer: &ResponseParts<'_>,
        head: &ResponseHead<'_>,
        link: u32,
        head_len: usize,
        body: &[u8],
        out: &mut HttpBatch,
    ) {
        self.make_room(answer.reason_phrase.len() + answer.content_type.len(), out);
        let mut text = TextChain::default();
        self.texts
            .append_all(&mut text, [answer.reason_phrase, answer.content_type]);
        let chunked_len = if head.chunked {
            chunked_length(body)
        } else {
            None
        };
        let waiting = Waiting {
            connection: answer.connection,
            link,
            ts_ns: answer.ts_ns,
            changed_ns: self.now_ns,
            text,
            bytes: answer.bytes,
            vlan: answer.vlan,
            minor: answer.minor,
            retransmissions: 0,
            half: Half::Response(WaitingResponse {
                status_code: answer.status_code,
                reason_len: short(answer.reason_phrase.len()),
                head_len: u32::try_from(head_len).unwrap_or(u32::MAX),
                content_length: head.content_length,
                chunked: head.chunked,
                chunked_len: chunked_len.and_then(|len| u32::try_from(len).ok()),
            }),
        };
        let hash = ConnectionHash::new(self.seed, &answer.connection);
        if let Err(refused) = self.pending.insert(hash, waiting) {
            self.output.stats.table_full += 1;
            self.give_up(refused, out);
        }
    }

    /// A message leaves the table without its counterpart.
    pub(crate) fn give_up(&mut self, waiting: Waiting, out: &mut HttpBatch) {
        let text = self.texts.read(&waiting.text, &mut self.scratch);
        match &waiting.half {
            Half::Request(request) => {
                self.output.stats.unanswered += 1;
                self.output
                    .unanswered(&request_parts(&waiting, request, text), out);
            }
            Half::Response(response) => {
                self.output.stats.orphans += 1;
                let parts = response_parts(&waiting, response, text, waiting.bytes.map(|_| 0));
                self.output.orphan(
                    &ResponseParts {
                        bytes: waiting.bytes,
                        ..parts
                    },
                    out,
                );
            }
        }
        self.texts.release(waiting.text);
    }

    /// The next response may begin inside a segment to come.
    fn expect_start(&mut self, place: &Place, next: u32) {
        if place.segment_end.before(SeqNumber(next)) {
            self.watch
                .expect_start(place.direction, SeqNumber(next), self.now_ns);
        }
    }

    /// Notes that the request with this sequence number was answered at `link`, and where the
    /// next response begins.
    ///
    /// The same is noted at the link where its pipeline began (`origin`), by which a request finds
    /// the way that is sent behind it without having seen the answers.
    #[inline]
    fn remember(
        &mut self,
        hash: ConnectionHash,
        link: u32,
        (origin, seq): (u32, SeqNumber),
        next: Option<u32>,
    ) {
        let seen = Seen {
            note: seq.0,
            second: next,
        };
        if origin != link {
            self.note(hash, origin, seen);
        }
        self.note(hash, link, seen);
    }

    #[inline]
    fn note(&mut self, hash: ConnectionHash, link: u32, seen: Seen) {
        self.seen.put(
            hash.home(),
            hash.with(Meaning::Link, link),
            self.now_ms(),
            seen,
        );
    }

    /// Notes that an interim response went by at `link`: the final one begins at `next`. No request
    /// is answered yet, so the note is far behind what the client sends (the response's `ack`).
    fn pass_by(&mut self, hash: ConnectionHash, link: u32, ack: u32, next: u32) {
        let seen = Seen {
            note: ack.wrapping_sub(1 << 30),
            second: Some(next),
        };
        self.seen.put(
            hash.home(),
            hash.with(Meaning::Link, link),
            self.now_ms(),
            seen,
        );
    }

    /// Whether the response at `link` was seen before: it waits, or its request was answered.
    fn is_answered(&self, connection: &Connection, hash: ConnectionHash, link: u32) -> bool {
        self.pending.find(connection, hash, link).is_some()
            || self
                .seen
                .get(hash.home(), hash.with(Meaning::Link, link), self.now_ms())
                .is_some()
    }

    /// Whether the head that begins at `place` was seen before; counts it then.
    pub(crate) fn count_if_retransmitted(&mut self, place: &Place, bytes: &[u8]) -> bool {
        match classify(bytes) {
            Start::Request => {
                let hash = ConnectionHash::new(self.seed, &place.direction);
                let is_known = self.spot_of(&place.direction, hash, place).is_known;
                self.output.stats.retransmitted_requests += u64::from(is_known);
                is_known
            }
            Start::Response => {
                let connection = place.direction.reversed();
                let hash = ConnectionHash::new(self.seed, &connection);
                let is_known = !self
                    .pending
                    .find(&connection, hash, place.seq.0)
                    .is_some_and(|id| !self.is_response(id))
                    && self.is_answered(&connection, hash, place.seq.0);
                self.output.stats.retransmitted_responses += u64::from(is_known);
                is_known
            }
            Start::Unsure | Start::Neither => false,
        }
    }
}

/// The length of a body as the head and the segment tell it.
fn measured(rule: BodyLength, body: &[u8]) -> Option<u64> {
    match rule {
        BodyLength::Known(length) => Some(length),
        BodyLength::Chunked => chunked_length(body).map(|len| len as u64),
        BodyLength::UntilClose => None,
    }
}

fn end_rule(rule: BodyLength, next: Option<u32>) -> EndRule {
    match (rule, next) {
        (_, Some(next)) => EndRule::At(SeqNumber(next)),
        (BodyLength::Chunked, None) => EndRule::LastChunk,
        (_, None) => EndRule::Close,
    }
}

fn stored_rule(response: &WaitingResponse, method: &[u8]) -> BodyLength {
    let head = ResponseHead {
        status_code: response.status_code,
        content_length: response.content_length,
        chunked: response.chunked,
        ..ResponseHead::default()
    };
    response_body(&head, method)
}

/// The body length of a response in the table, now that the method is known.
fn body_length(response: &WaitingResponse, method: &[u8]) -> Option<u64> {
    match stored_rule(response, method) {
        BodyLength::Known(length) => Some(length),
        BodyLength::Chunked => response.chunked_len.map(u64::from),
        BodyLength::UntilClose => None,
    }
}

fn next_link(waiting: &Waiting, response: &WaitingResponse, method: &[u8]) -> Option<u32> {
    body_length(response, method)
        .map(|length| after(waiting.link, response.head_len as usize, length))
}

/// The end of a body whose head waited in the table: segments since then were not watched.
fn stored_end(waiting: &Waiting, response: &WaitingResponse, next: Option<u32>) -> BodyEnd {
    let seen_to = SeqNumber(waiting.link.wrapping_add(response.head_len));
    let rule = if response.chunked {
        BodyLength::Chunked
    } else {
        BodyLength::UntilClose
    };
    BodyEnd {
        rule: end_rule(rule, next),
        seen_to,
        seen_ns: waiting.ts_ns,
    }
}

fn request_parts<'a>(
    waiting: &Waiting,
    request: &WaitingRequest,
    text: &'a [u8],
) -> RequestParts<'a> {
    let mut rest = text;
    let [method, target, host] = request.lens.map(|len| {
        let (part, after) = rest.split_at(usize::from(len).min(rest.len()));
        rest = after;
        part
    });
    RequestParts {
        connection: waiting.connection,
        ts_ns: waiting.ts_ns,
        vlan: waiting.vlan,
        bytes: waiting.bytes,
        minor: waiting.minor,
        interim_responses: request.interim_responses,
        retransmissions: waiting.retransmissions,
        method,
        target,
        host,
        user_agent: rest,
    }
}

fn response_parts<'a>(
    waiting: &Waiting,
    response: &WaitingResponse,
    text: &'a [u8],
    body: Option<u64>,
) -> ResponseParts<'a> {
    let (reason_phrase, content_type) =
        text.split_at(usize::from(response.reason_len).min(text.len()));
    ResponseParts {
        connection: waiting.connection,
        ts_ns: waiting.ts_ns,
        vlan: waiting.vlan,
        bytes: body.map(|length| length.saturating_add(u64::from(response.head_len))),
        minor: waiting.minor,
        retransmissions: waiting.retransmissions,
        status_code: response.status_code,
        reason_phrase,
        content_type,
    }
}
