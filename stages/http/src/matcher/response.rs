//! What a response does to the table: it answers a request, moves it on, or waits for it.

use linkweir_proto::http1::{BodyLength, ResponseHead, chunked_length, response_body, unfold};
use linkweir_record::HttpBatch;
use linkweir_stream::Segment as Begun;
use linkweir_table::{Chain, Id};
use linkweir_wire::SeqNumber;

use super::Matcher;
use crate::events::Format;
use crate::halves::{
    after, body_end, body_length, measured, next_match_seq, request_parts, response_parts, short,
    stored_end,
};
use crate::key::{Connection, ConnectionHash};
use crate::matcher::memory::Sent;
use crate::pending::{Half, MAX_PIPELINE, Waiting, WaitingResponse};
use crate::records::ResponseParts;
use crate::segment::{Place, Standing};

/// What the events of a response look like, where it is a stream.
#[inline]
fn streamed(head: &ResponseHead<'_>, rule: BodyLength) -> Option<Format> {
    if head.is_websocket {
        return Some(Format::WebSocket);
    }
    Format::of(head.content_type, head.content_encoding).filter(|_| rule != BodyLength::Known(0))
}

/// The content of a response that is in the segment of its head, from `begin` on.
fn begun<'a>(place: &Place, begin: u32, body: &'a [u8]) -> Begun<'a> {
    let seq = SeqNumber(begin);
    Begun {
        seq,
        bytes: body,
        len: u32::try_from(place.segment_end - seq).unwrap_or(0),
        ts_ns: place.segment_ns,
    }
}

impl Matcher {
    /// A response whose head begins at `place`; `body` is what follows it in the segment.
    ///
    /// Returns the length of the body where it is known.
    #[inline]
    pub(crate) fn on_response(
        &mut self,
        place: &Place,
        head: &ResponseHead<'_>,
        head_len: usize,
        body: &[u8],
        whole: bool,
        out: &mut HttpBatch,
    ) -> Option<usize> {
        if head.is_folded || !self.chosen.is_empty() {
            return self.on_longer_response(place, head, head_len, body, whole, out);
        }
        self.match_response(place, (head, &[]), head_len, body, whole, out)
    }

    /// As [`Matcher::on_response`], of a head in which no value is folded, with the header fields that are kept.
    fn match_response(
        &mut self,
        place: &Place,
        (head, fields): (&ResponseHead<'_>, &[u8]),
        head_len: usize,
        body: &[u8],
        whole: bool,
        out: &mut HttpBatch,
    ) -> Option<usize> {
        self.advance(place.ts_ns, out);
        let connection = place.direction.reversed();
        let hash = ConnectionHash::new(self.seed, &connection);
        let match_seq = place.seq.0;
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
            fields,
        };
        let mut request = self.request_at(&connection, hash, place, out);
        let is_known = match place.standing {
            Standing::Alone { .. } => {
                request.is_none() && self.is_answered(&connection, hash, match_seq)
            }
            Standing::InTurn(_) => false,
            Standing::Again => true,
        };
        if is_known {
            if let Some(id) = self.pending.find_response(&connection, hash, match_seq) {
                self.pending.touch(id, self.now_ns);
                if let Some(waiting) = self.pending.get_mut(id) {
                    waiting.retransmissions = waiting.retransmissions.saturating_add(1);
                }
            }
            return self.on_response_again(&answer, head, body, out);
        }
        if request.is_none() && place.standing.turn().is_none() {
            request = self.early_request(&connection, hash, place);
        }
        let stats = &mut self.output.records.stats;
        stats.responses += 1;
        stats.count_status(head.status_code);
        stats.truncated_heads += u64::from(!whole);
        if head.is_interim() {
            self.on_interim(&connection, hash, place, head_len, request, out);
            return Some(0);
        }
        let Some(id) = request else {
            let length = measured(response_body(head, b""), body).filter(|_| whole);
            answer.bytes = length.map(|length| length.saturating_add(head_len as u64));
            self.await_request(&answer, head, place, head_len, body, out);
            if let Some(length) = length {
                self.expect_start(place, after(match_seq, head_len, length));
            }
            return length.and_then(|length| usize::try_from(length).ok());
        };
        let (request, follower) = self.pending.remove(id)?;
        let Half::Request(half) = &request.half else {
            return None;
        };
        let text = self.texts.read(&request.text, &mut self.scratch);
        let parts = request_parts(&request, half, text);
        let sent = Sent::of(half, request.bytes);
        let rule = response_body(head, parts.method);
        let length = measured(rule, body).filter(|_| whole);
        let next = length.map(|length| after(match_seq, head_len, length));
        answer.bytes = length.map(|length| length.saturating_add(head_len as u64));
        let seen = (place.segment_end, place.segment_ns);
        let end = body_end(rule, length, (match_seq, head_len), seen);
        let content = streamed(head, rule).and_then(|format| {
            let begun = begun(place, after(match_seq, head_len, 0), body);
            let web = &self.output.web;
            let is_whole = self.has_whole_connections || web.find(&connection).is_some();
            self.output.begin_stream(format, rule, &begun, is_whole)
        });
        let goes_on = self.output.complete(&parts, &answer, end, content, out);
        if goes_on {
            self.note_stream(&connection, true);
        }
        self.texts.release(request.text);
        self.remember(hash, match_seq, sent, next);
        match follower {
            Some(follower) if place.standing.turn().is_some() => {
                self.pending.touch(follower, self.now_ns);
                self.pending.file_followed(follower, hash);
            }
            Some(follower) => {
                self.pending.touch(follower, self.now_ns);
                self.relocate(&connection, hash, follower, next, out);
                if let Some(next) = next {
                    self.expect_start(place, next);
                }
            }
            None => self.expect_unasked(place, next),
        }
        self.release_bodies(out);
        length.and_then(|length| usize::try_from(length).ok())
    }

    /// A response with values over several lines, which are one line in a record, or with fields that are kept.
    #[cold]
    fn on_longer_response(
        &mut self,
        place: &Place,
        head: &ResponseHead<'_>,
        head_len: usize,
        body: &[u8],
        whole: bool,
        out: &mut HttpBatch,
    ) -> Option<usize> {
        let mut text = std::mem::take(&mut self.unfolded);
        text.clear();
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        if !self.chosen.is_empty() {
            self.chosen.read(head.section, false, &mut fields);
        }
        let mut head = *head;
        if head.is_folded {
            unfold(head.content_type, &mut text);
            head.content_type = &text;
        }
        let length = self.match_response(place, (&head, &fields), head_len, body, whole, out);
        self.unfolded = text;
        self.fields = fields;
        length
    }

    /// The request that waits for the response at `match_seq`; one whose head is still being gathered
    /// is taken as far as it goes.
    pub(crate) fn request_at(
        &mut self,
        connection: &Connection,
        hash: ConnectionHash,
        place: &Place,
        out: &mut HttpBatch,
    ) -> Option<Id> {
        match place.standing {
            Standing::Alone { .. } => {}
            Standing::InTurn(turn) => {
                let Some(id) = self.pending.find_followed(connection, hash) else {
                    // One that came before those in front of it waits by its number.
                    let id = self.pending.find_leader(connection, hash, place.seq.0)?;
                    return self.has_seen(id, place).then_some(id);
                };
                return self.answers(id, turn, place).then_some(id);
            }
            Standing::Again => return None,
        }
        let match_seq = place.seq.0;
        let mut found = self.pending.find_leader(connection, hash, match_seq);
        if found.is_none()
            && let Some(partial) = self.watch.take_request(connection, match_seq)
        {
            self.on_partial(partial, out);
            self.pending.set_time(place.ts_ns);
            found = self.pending.find_leader(connection, hash, match_seq);
        }
        let id = found.or_else(|| self.request_on_syn(connection, hash))?;
        self.has_seen(id, place).then_some(id)
    }

    /// Whether the server had seen a request when it sent what is at `place`. What it has not seen it does not
    /// answer: the request it answers was lost or is late.
    pub(crate) fn has_seen(&self, id: Id, place: &Place) -> bool {
        let ack = place.has_ack.then_some(SeqNumber(place.ack));
        self.pending.get(id).is_some_and(|waiting| {
            matches!(waiting.half, Half::Request(_))
                && ack.is_none_or(|ack| waiting.request_seq().before(ack))
        })
    }

    /// Whether a response of this turn at `place` answers the request of a followed pipeline.
    pub(crate) fn answers(&self, id: Id, turn: u32, place: &Place) -> bool {
        let its = self.pending.get(id).and_then(Waiting::turn);
        its == Some(turn) && self.has_seen(id, place)
    }

    /// A request that came with the SYN knows no match number: the first response is its.
    fn request_on_syn(&self, connection: &Connection, hash: ConnectionHash) -> Option<Id> {
        let id = self.pending.find_leader(connection, hash, 0)?;
        match &self.pending.get(id)?.half {
            Half::Request(request) if request.on_syn => Some(id),
            _ => None,
        }
    }

    pub(crate) fn on_response_again(
        &mut self,
        answer: &ResponseParts<'_>,
        head: &ResponseHead<'_>,
        body: &[u8],
        out: &mut HttpBatch,
    ) -> Option<usize> {
        self.output.records.stats.retransmitted_responses += 1;
        if self.keep_duplicates && !head.is_interim() {
            self.output.orphan(
                &ResponseParts {
                    retransmissions: 1,
                    ..*answer
                },
                out,
            );
        }
        measured(response_body(head, b""), body).and_then(|length| usize::try_from(length).ok())
    }

    /// An interim response: its request goes on waiting, for the response that begins behind it
    /// (RFC 9110 sec. 15.2).
    pub(crate) fn on_interim(
        &mut self,
        connection: &Connection,
        hash: ConnectionHash,
        place: &Place,
        head_len: usize,
        request: Option<Id>,
        out: &mut HttpBatch,
    ) {
        self.output.records.stats.interim_responses += 1;
        let next = after(place.seq.0, head_len, 0);
        // A request that comes later than this finds the way.
        self.pass_by(hash, place.seq.0, place.ack, next);
        let Some(id) = request else {
            return;
        };
        self.pending.touch(id, self.now_ns);
        if let Some(Half::Request(request)) =
            self.pending.get_mut(id).map(|waiting| &mut waiting.half)
        {
            request.interim_responses = request.interim_responses.saturating_add(1);
        }
        if place.standing.turn().is_none() {
            self.relocate(connection, hash, id, Some(next), out);
            self.release_bodies(out);
        }
    }

    /// Lets a leader and its queue wait at another match number; what waits there already is met.
    ///
    /// Without a match number it is unknown where the next response begins: the queue stays until it times
    /// out, where no response finds it.
    pub(crate) fn relocate(
        &mut self,
        connection: &Connection,
        hash: ConnectionHash,
        mut leader: Id,
        mut match_seq: Option<u32>,
        out: &mut HttpBatch,
    ) {
        for _ in 0..=MAX_PIPELINE {
            let Some(at) = match_seq else {
                return self.pending.hide(leader, hash);
            };
            if let Some(shard) = self.other_shard(connection, at) {
                return self.send_queue(shard, leader, hash, at, out);
            }
            let answer = self.pending.get(leader).and_then(|waiting| {
                self.pending
                    .find_answer(connection, hash, at, waiting.request_seq())
            });
            if let Some(id) = answer {
                match self.answer_waiting(leader, id, hash, out) {
                    Some((Some(follower), next)) => (leader, match_seq) = (follower, next),
                    _ => return,
                }
                continue;
            }
            match self
                .pending
                .find_leader(connection, hash, at)
                .filter(|id| *id != leader)
            {
                Some(id) => {
                    self.pending.move_to(leader, hash, at);
                    return self.pending.join(leader, id, hash);
                }
                None => return self.pending.move_to(leader, hash, at),
            }
        }
    }

    /// Both halves are in the table. Returns the next of the queue and where the next response begins.
    pub(crate) fn answer_waiting(
        &mut self,
        leader: Id,
        response: Id,
        hash: ConnectionHash,
        out: &mut HttpBatch,
    ) -> Option<(Option<Id>, Option<u32>)> {
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
        let next = next_match_seq(&stored, &answered, parts.method);
        let answer = response_parts(
            &stored,
            &answered,
            &answer_text,
            body_length(&answered, parts.method),
        );
        self.output.complete_late(
            &parts,
            &answer,
            stored_end(&stored, &answered, parts.method),
            out,
        );
        let sent = Sent::of(half, request.bytes);
        self.remember(hash, stored.match_seq, sent, next);
        self.head = answer_text;
        self.texts.release(request.text);
        self.texts.release(stored.text);
        Some((follower, next))
    }

    /// A response without a request so far.
    pub(crate) fn await_request(
        &mut self,
        answer: &ResponseParts<'_>,
        head: &ResponseHead<'_>,
        place: &Place,
        head_len: usize,
        body: &[u8],
        out: &mut HttpBatch,
    ) {
        let text_len = answer.reason_phrase.len() + answer.content_type.len() + answer.fields.len();
        self.make_room(text_len, out);
        let mut text = Chain::default();
        self.texts
            .append_all(&mut text, [answer.reason_phrase, answer.content_type]);
        self.texts.append(&mut text, answer.fields);
        let chunked_len = if head.chunked {
            chunked_length(body)
        } else {
            None
        };
        let waiting = Waiting {
            connection: answer.connection,
            match_seq: place.seq.0,
            ts_ns: answer.ts_ns,
            changed_ns: self.now_ns,
            packet_ns: place.ts_ns,
            text,
            bytes: answer.bytes,
            vlan: answer.vlan,
            minor: answer.minor,
            retransmissions: 0,
            half: Half::Response(WaitingResponse {
                ack: place.has_ack.then_some(SeqNumber(place.ack)),
                seen_to: place.segment_end,
                seen_ns: place.segment_ns,
                status_code: answer.status_code,
                reason_len: short(answer.reason_phrase.len()),
                type_len: short(answer.content_type.len()),
                head_len: u32::try_from(head_len).unwrap_or(u32::MAX),
                content_length: head.content_length,
                chunked: head.chunked,
                chunked_len: chunked_len.and_then(|len| u32::try_from(len).ok()),
            }),
        };
        let hash = ConnectionHash::new(self.seed, &answer.connection);
        if let Err(refused) = self.pending.insert(hash, waiting) {
            self.output.records.stats.table_full += 1;
            self.give_up(refused, out);
        }
    }

    /// A message leaves the table without its counterpart.
    pub(crate) fn give_up(&mut self, waiting: Waiting, out: &mut HttpBatch) {
        let text = self.texts.read(&waiting.text, &mut self.scratch);
        match &waiting.half {
            Half::Request(request) => {
                self.output.records.stats.unanswered += 1;
                self.output
                    .unanswered(&request_parts(&waiting, request, text), out);
            }
            Half::Response(response) => {
                self.output.records.stats.orphans += 1;
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

    /// Where no request waits behind a response, another one may still begin inside the segment in which it ends.
    #[inline]
    fn expect_unasked(&mut self, place: &Place, next: Option<u32>) {
        if let Some(next) = next
            && self.may_follow
            && place.segment_end.before(SeqNumber(next))
        {
            self.watch.expect_unasked(&place.direction, next);
        }
    }

    /// The next response may begin inside a segment to come.
    pub(crate) fn expect_start(&mut self, place: &Place, next: u32) {
        if place.segment_end.before(SeqNumber(next)) {
            self.watch
                .expect_start(place.direction, SeqNumber(next), self.now_ns);
        }
    }
}
