//! The messages of a connection, as far as it takes to know when all is settled.

use linkweir_proto::http1::{
    BodyLength, Outcome, RequestHead, ResponseHead, Start, classify, empty_lines, parse_request,
    parse_response, request_body, response_body,
};

use super::{Data, Flow, MAX_OWED, Side, later};
use crate::halves::measured;
use crate::split::stream::{Bytes, End, ahead};
use crate::split::{Balance, GroupCounts};

impl Flow {
    /// More of a head whose beginning was kept.
    pub(super) fn go_on_with_head(
        &mut self,
        data: &Data<'_>,
        balance: Balance,
        bytes: &mut Bytes<'_>,
        counts: &mut GroupCounts,
    ) {
        let stream = self.stream(data.side);
        let known = stream.head.len();
        if !stream.gather(data.payload, bytes.texts) {
            self.is_unclear = true;
            return;
        }
        let mut whole = std::mem::take(bytes.scratch);
        whole.clear();
        bytes.texts.copy_to(&stream.head, &mut whole);
        stream.drop_head(bytes.texts);
        let known_len = u32::try_from(known).unwrap_or(0);
        let joined = Data {
            seq: data.seq.wrapping_sub(known_len),
            payload: &whole,
            is_next: false,
            ..*data
        };
        if self.client == Some(data.side) {
            // The request was counted when it began: only its end was missing.
            self.end_of_request(&joined, known, bytes);
        } else {
            self.messages(&joined, 0, balance, bytes, counts);
        }
        *bytes.scratch = whole;
    }

    /// The head of a request that began in an earlier segment, of which `known` bytes were seen.
    fn end_of_request(&mut self, joined: &Data<'_>, known: usize, bytes: &mut Bytes<'_>) {
        match parse_request(joined.payload) {
            Outcome::Complete(head, len) if len > known => {
                let body = joined.payload.get(len..).unwrap_or_default();
                let after = request_end(&head, len, body);
                if head.method == b"CONNECT" {
                    self.is_tangled = true;
                }
                let end = match after {
                    Some(after) if after >= joined.len() => End::At(joined.at(after)),
                    // Another one begins in this segment.
                    _ => End::Unknown,
                };
                if end == End::Unknown {
                    self.is_unclear = true;
                    self.is_tangled |= after.is_some();
                }
                self.stream(joined.side).end = end;
            }
            Outcome::Partial(_) if !joined.is_cut => {
                if !self.stream(joined.side).gather(joined.payload, bytes.texts) {
                    self.is_unclear = true;
                }
            }
            _ => {
                self.is_unclear = true;
                self.stream(joined.side).end = End::Unknown;
            }
        }
    }

    /// Reads message after message from `offset` on, as the stage does.
    pub(super) fn messages(
        &mut self,
        data: &Data<'_>,
        mut offset: usize,
        balance: Balance,
        bytes: &mut Bytes<'_>,
        counts: &mut GroupCounts,
    ) {
        while let Some(rest) = data.payload.get(offset..) {
            if rest.is_empty() {
                let end = if data.is_cut {
                    End::Unknown
                } else {
                    End::At(data.end)
                };
                self.is_unclear |= data.is_cut;
                self.set_end(data, end);
                return;
            }
            let after = match classify(rest) {
                Start::Request => self.on_request(data, offset, rest, balance, bytes, counts),
                Start::Response => self.on_response(data, offset, rest, bytes),
                Start::Unsure => {
                    self.is_unclear = true;
                    self.is_tangled = true;
                    None
                }
                Start::Neither if empty_lines(rest) > 0 => Some(empty_lines(rest)),
                Start::Neither => {
                    self.is_unclear = true;
                    self.set_end(data, End::Unknown);
                    None
                }
            };
            let Some(after) = after.and_then(|after| offset.checked_add(after)) else {
                return;
            };
            if after >= data.len() {
                self.set_end(data, End::At(data.at(after)));
                return;
            }
            offset = after;
        }
        // Behind what was captured.
        self.is_unclear = true;
        self.set_end(data, End::Unknown);
    }

    /// Notes where the message ends that a segment at the end of its stream began or went on with.
    fn set_end(&mut self, data: &Data<'_>, end: End) {
        let stream = self.stream(data.side);
        if stream.next == data.end {
            stream.end = end;
        }
    }

    /// A request at `offset`; says how long it is, where that is known and the stage goes on.
    fn on_request(
        &mut self,
        data: &Data<'_>,
        offset: usize,
        rest: &[u8],
        balance: Balance,
        bytes: &mut Bytes<'_>,
        counts: &mut GroupCounts,
    ) -> Option<usize> {
        if *self.client.get_or_insert(data.side) != data.side {
            self.is_unclear = true;
            self.is_tangled = true;
            return None;
        }
        let outcome = parse_request(rest);
        let (head, len) = match outcome {
            Outcome::Complete(head, len) => (head, Some(len)),
            Outcome::Partial(head) => (head, None),
            Outcome::Invalid => {
                self.is_unclear = true;
                self.set_end(data, End::Unknown);
                return None;
            }
        };
        self.ask(data, offset, head.method == b"HEAD", balance, bytes, counts);
        if head.method == b"CONNECT" {
            self.is_tangled = true;
        }
        let Some(len) = len else {
            self.set_end(data, End::Unknown);
            let is_last = self.stream(data.side).next == data.end;
            if data.is_cut || !is_last || !self.stream(data.side).gather(rest, bytes.texts) {
                self.is_unclear = true;
            }
            return None;
        };
        let body = rest.get(len..).unwrap_or_default();
        let end = request_end(&head, len, body);
        if end.is_none() {
            // Chunks in segments to come: the next request is known by its place in a segment.
            self.set_end(data, End::Chunks(false));
        }
        end
    }

    /// A request begins at `offset` of a segment: does a group begin with it?
    fn ask(
        &mut self,
        data: &Data<'_>,
        offset: usize,
        is_head: bool,
        balance: Balance,
        bytes: &mut Bytes<'_>,
        counts: &mut GroupCounts,
    ) {
        self.was_request = true;
        counts.requests += 1;
        let at = data.at(offset);
        let is_plain = offset == 0 && data.is_next && data.has_ack;
        let server = self.other(data.side);
        let is_answered_whole = server.is_known && server.next == data.ack && server.is_at_end();
        let is_early = server.is_known && ahead(server.next, data.ack) > 0;
        let is_inside =
            matches!(server.end, End::At(end) if server.is_known && ahead(end, data.ack) > 0);
        if !data.has_ack || self.owed >= MAX_OWED {
            self.is_tangled = true;
        }
        let is_behind = self.owed > 1 || (self.owed == 1 && ahead(data.ack, self.match_seq) <= 0);
        let is_late = self.owed == 0
            && self.count > 0
            && !self.is_unclear
            && ahead(data.ack, self.match_seq) < 0;
        if is_behind || is_late {
            if self.owed > 1 && ahead(data.ack, self.match_seq) > 0 {
                // Some of those before it may have been moved on to this match number.
                self.is_tangled |= self.has_hole || self.is_unclear;
            }
            counts.pipelined += 1;
            self.heads |= u32::from(is_head) << self.owed.min(MAX_OWED);
            self.owed = self.owed.saturating_add(1).min(MAX_OWED);
            self.last = at;
            if is_late {
                (self.heads, self.first) = (u32::from(is_head), at);
                self.is_unclear = true;
            }
            return;
        }
        if self.count == 0 {
            self.open(balance, at, data.ack, data.ack);
        } else if self.is_unclear || self.is_tangled || !is_plain {
            counts.unclear += 1;
        } else if self.owed > 0 || !is_answered_whole {
            counts.unfinished += 1;
        } else {
            counts.groups += 1;
            let (low, high) = match data.side {
                Side::Low => (at, data.ack),
                Side::High => (data.ack, at),
            };
            self.open(balance, low, high, data.ack);
        }
        self.watched = self.watched.filter(|end| ahead(*end, at) > 0);
        self.watched_answer = self.watched_answer.filter(|end| ahead(*end, data.ack) > 0);
        let is_watched = self.watched.or(self.watched_answer).is_some();
        self.is_unclear = is_watched || !is_plain || self.is_tangled || is_early || is_inside;
        self.has_hole &= self.is_unclear;
        (self.owed, self.heads, self.match_seq) = (1, u32::from(is_head), data.ack);
        (self.first, self.last) = (at, at);
        if !self.is_unclear {
            self.other(data.side).expect(data.ack, bytes.texts);
        }
    }

    /// A response at `offset`; says how long it is, where that is known.
    fn on_response(
        &mut self,
        data: &Data<'_>,
        offset: usize,
        rest: &[u8],
        bytes: &mut Bytes<'_>,
    ) -> Option<usize> {
        let client = match data.side {
            Side::Low => Side::High,
            Side::High => Side::Low,
        };
        if *self.client.get_or_insert(client) != client {
            self.is_unclear = true;
            self.is_tangled = true;
            return None;
        }
        match parse_response(rest) {
            Outcome::Complete(head, len) => {
                let body = rest.get(len..).unwrap_or_default();
                self.answer(data, data.at(offset), &head, len, body)
            }
            Outcome::Partial(_) => {
                self.set_end(data, End::Unknown);
                let is_last = self.stream(data.side).next == data.end;
                if data.is_cut || !is_last || !self.stream(data.side).gather(rest, bytes.texts) {
                    self.is_unclear = true;
                    self.is_tangled |= self.owed > 1;
                }
                None
            }
            Outcome::Invalid => {
                self.is_unclear = true;
                self.set_end(data, End::Unknown);
                None
            }
        }
    }

    /// A whole response head at `at`: takes the first request of the queue.
    fn answer(
        &mut self,
        data: &Data<'_>,
        at: u32,
        head: &ResponseHead<'_>,
        len: usize,
        body: &[u8],
    ) -> Option<usize> {
        let is_matched = self.owed > 0
            && at == self.match_seq
            && (!data.has_ack || ahead(data.ack, self.first) > 0);
        if !is_matched {
            self.is_unclear = true;
        }
        if head.is_interim() {
            if is_matched {
                self.match_seq = at.wrapping_add(u32::try_from(len).unwrap_or(0));
            }
            return Some(len);
        }
        let method: &[u8] = if is_matched && self.heads & 1 == 1 {
            b"HEAD"
        } else {
            b""
        };
        let rule = response_body(head, method);
        let end = measured(rule, body)
            .and_then(|length| usize::try_from(length).ok())
            .and_then(|length| length.checked_add(len));
        if !is_matched && let Some(end) = end {
            let end = at.wrapping_add(u32::try_from(end).unwrap_or(0));
            self.watched_answer = Some(later(self.watched_answer, end));
        }
        if is_matched {
            self.owed -= 1;
            self.heads >>= 1;
            match end {
                Some(end) => self.match_seq = at.wrapping_add(u32::try_from(end).unwrap_or(0)),
                // The rest of the queue is never found again.
                None if self.owed > 0 => {
                    self.owed = 0;
                    self.is_unclear = true;
                }
                None => {}
            }
        }
        if end.is_none() {
            let rest = match rule {
                BodyLength::Chunked => End::Chunks(false),
                _ => End::Unknown,
            };
            self.is_unclear |= rest == End::Unknown;
            self.set_end(data, rest);
        }
        end.filter(|end| *end < 1 << 31)
    }
}

/// Bytes of a request whose head has `len`, where they are known.
fn request_end(head: &RequestHead<'_>, len: usize, body: &[u8]) -> Option<usize> {
    let length = usize::try_from(measured(request_body(head), body)?).ok()?;
    len.checked_add(length).filter(|end| *end < 1 << 31)
}
