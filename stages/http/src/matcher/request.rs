//! What a request does to the table: it waits, or is answered by a response that came before it.

use linkweir_proto::http1::{RequestHead, request_body, unfold};
use linkweir_record::HttpBatch;
use linkweir_table::{Chain, Id};
use linkweir_wire::SeqNumber;

use super::Matcher;
use crate::halves::{body_length, measured, next_match_seq, response_parts, short, stored_end};
use crate::key::{Connection, ConnectionHash, Meaning};
use crate::matcher::memory::{Last, Sent, is_passed_by};
use crate::pending::{Half, MAX_PIPELINE, Waiting, WaitingRequest};
use crate::records::RequestParts;
use crate::segment::{Place, Standing};

/// Where a request belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) match_seq: u32,
    /// The leader of the queue that waits there.
    pub(crate) there: Option<Id>,
    /// The response that came before it.
    answer: Option<Id>,
    /// Whether the request was seen before.
    pub(crate) is_known: bool,
    /// Whether it is unknown where its response begins.
    is_lost: bool,
    /// Interim responses to it that have gone by.
    pub(crate) interim_responses: u16,
    /// Where to note its match number, if it was sent before the response to the one before it was over.
    early: Option<u32>,
}

impl Spot {
    /// Whether its response has come.
    pub(crate) const fn is_answered(&self) -> bool {
        self.answer.is_some()
    }

    const fn at(match_seq: u32) -> Self {
        Self {
            match_seq,
            there: None,
            answer: None,
            is_known: false,
            is_lost: false,
            interim_responses: 0,
            early: None,
        }
    }
}

impl Matcher {
    /// A request whose head begins at `place`.
    #[inline]
    pub(crate) fn on_request(
        &mut self,
        place: &Place,
        head: &RequestHead<'_>,
        head_len: usize,
        whole: bool,
        out: &mut HttpBatch,
    ) {
        if head.is_folded || head.may_be_forwarded || !self.chosen.is_empty() {
            return self.on_longer_request(place, head, head_len, whole, out);
        }
        self.match_request(place, (head, &[]), head_len, whole, out);
    }

    /// As [`Matcher::on_request`], of a head in which no value is folded, with the header fields that are kept.
    fn match_request(
        &mut self,
        place: &Place,
        (head, fields): (&RequestHead<'_>, &[u8]),
        head_len: usize,
        whole: bool,
        out: &mut HttpBatch,
    ) {
        self.advance(place.ts_ns, out);
        let connection = place.direction;
        let hash = ConnectionHash::new(self.seed, &connection);
        // Chunks are not counted: they mostly end in segments to come.
        let bytes = measured(request_body(head), &[])
            .filter(|_| whole)
            .map(|length| length.saturating_add(head_len as u64));
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
            fields,
        };
        let spot = self.spot_of(&connection, hash, place);
        if spot.is_known {
            self.output.records.stats.retransmitted_requests += 1;
            if let Some(id) = self.pending.in_queue(spot.there, place.seq) {
                self.pending.touch(id, self.now_ns);
                if let Some(waiting) = self.pending.get_mut(id) {
                    waiting.retransmissions = waiting.retransmissions.saturating_add(1);
                }
            }
            if self.keep_duplicates {
                self.output.unanswered(
                    &RequestParts {
                        retransmissions: 1,
                        ..parts
                    },
                    out,
                );
            }
            return;
        }
        if whole && self.is_pipelined(hash, place, &spot) {
            // It comes again as the next of the pipeline.
            return self.begin_following(place, &spot, hash, out);
        }
        self.remember_request(hash, place.seq);
        let stats = &mut self.output.records.stats;
        stats.requests += 1;
        stats.count_method(head.method);
        stats.truncated_heads += u64::from(!whole);
        match spot.answer {
            Some(id) => {
                let parts = RequestParts {
                    interim_responses: spot.interim_responses,
                    ..parts
                };
                self.answer_new(&parts, place, id, hash, out);
            }
            None => self.await_response(&parts, hash, place, spot, out),
        }
    }

    /// A request with values over several lines, which are one line in a record, or with fields that are kept.
    #[cold]
    fn on_longer_request(
        &mut self,
        place: &Place,
        head: &RequestHead<'_>,
        head_len: usize,
        whole: bool,
        out: &mut HttpBatch,
    ) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        self.chosen.read(head.section, true, &mut fields);
        if head.is_folded {
            let mut text = std::mem::take(&mut self.unfolded);
            text.clear();
            unfold(head.host, &mut text);
            let host_len = text.len();
            unfold(head.user_agent, &mut text);
            let (host, user_agent) = text.split_at_checked(host_len).unwrap_or_default();
            let head = RequestHead {
                host,
                user_agent,
                ..*head
            };
            self.match_request(place, (&head, &fields), head_len, whole, out);
            self.unfolded = text;
        } else {
            self.match_request(place, (head, &fields), head_len, whole, out);
        }
        self.fields = fields;
    }

    /// Where a request waits, or would wait: usually at its acknowledgment number. Where the
    /// response that begins there has gone by, the request was pipelined behind one that is
    /// answered; its own response begins where that one ends.
    #[inline]
    pub(crate) fn spot_of(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        place: &Place,
    ) -> Spot {
        if !matches!(place.standing, Standing::Alone { .. }) {
            return self.followed_spot(connection, hash, place);
        }
        let mut spot = Spot::at(place.ack);
        spot.is_lost = self.behind_gap == Some(place.ack);
        for _ in 0..=MAX_PIPELINE {
            if spot.is_lost {
                break;
            }
            if self.pending.is_waited_at(connection, hash, spot.match_seq) {
                spot.there = self.pending.find_leader(connection, hash, spot.match_seq);
                spot.answer = self
                    .pending
                    .find_answer(connection, hash, spot.match_seq, place.seq);
            }
            if self.pending.in_queue(spot.there, place.seq).is_some() {
                spot.is_known = true;
                return spot;
            }
            if spot.there.is_some() || spot.answer.is_some() {
                return spot;
            }
            let Some(answered) = self.recall(hash, Meaning::MatchSeq, spot.match_seq) else {
                // The one before it left without an answer, whose length is unknown then.
                spot.is_lost = self.recall(hash, Meaning::Hidden, spot.match_seq).is_some();
                break;
            };
            // All requests with this acknowledgment number up to the noted one are answered.
            if !SeqNumber(answered.note).before(place.seq) {
                spot.is_known = true;
                return spot;
            }
            spot.interim_responses = if is_passed_by(answered.note, place.seq) {
                spot.interim_responses + 1
            } else {
                0
            };
            match answered.second {
                Some(next) if next != spot.match_seq => spot.match_seq = next,
                _ => spot.is_lost = true,
            }
        }
        match self.last_tells(hash, place) {
            Last::Nothing => {}
            Last::Known => spot.is_known = true,
            Last::SentEarly(mark) => spot.early = Some(mark),
        }
        spot
    }

    /// Where a request of a followed pipeline waits: behind those before it.
    #[cold]
    fn followed_spot(&self, connection: &Connection, hash: ConnectionHash, place: &Place) -> Spot {
        let mut spot = Spot::at(place.ack);
        spot.there = self.pending.find_followed(connection, hash);
        match place.standing {
            Standing::InTurn(_) => {
                spot.answer = self.answer.and_then(|match_seq| {
                    self.pending
                        .find_answer(connection, hash, match_seq, place.seq)
                });
            }
            Standing::Alone { .. } | Standing::Again => spot.is_known = true,
        }
        spot
    }

    /// Whether a request is one of several that wait for their answers, of which the first may still be to
    /// come: in loss and reordering numbers alone do not tell then which is whose.
    #[inline]
    pub(crate) fn is_pipelined(&self, hash: ConnectionHash, place: &Place, spot: &Spot) -> bool {
        let is_behind =
            (spot.there.is_some() || spot.match_seq != place.ack) && spot.answer.is_none();
        (is_behind || self.reach.missing_before(hash, place).is_some())
            && !spot.is_lost
            && self.may_follow
            && place.standing == (Standing::Alone { is_whole: true })
    }

    /// Lets a new request wait for its response, behind the one that is `there`.
    #[inline]
    pub(crate) fn await_response(
        &mut self,
        parts: &RequestParts<'_>,
        hash: ConnectionHash,
        place: &Place,
        mut spot: Spot,
        out: &mut HttpBatch,
    ) {
        let text_len = parts.method.len()
            + parts.target.len()
            + parts.host.len()
            + parts.user_agent.len()
            + parts.fields.len();
        if let Some(mark) = spot.early {
            self.note_early(hash, mark, place);
        }
        if spot.match_seq != place.ack {
            self.watch.expect_start(
                place.direction.reversed(),
                SeqNumber(spot.match_seq),
                self.now_ns,
            );
        }
        if self.make_room(text_len, out) {
            // What led the queue may have had to leave.
            spot = self.spot_of(&parts.connection, hash, place);
        }
        let mut text = Chain::default();
        self.texts.append_all(
            &mut text,
            [parts.method, parts.target, parts.host, parts.user_agent],
        );
        self.texts.append(&mut text, parts.fields);
        let lens = [
            short(parts.method.len()),
            short(parts.target.len()),
            short(parts.host.len()),
            short(parts.user_agent.len()),
        ];
        let mut half = WaitingRequest::new(place, lens);
        if spot.there.is_none() {
            half.interim_responses = spot.interim_responses;
        }
        let waiting = Waiting {
            connection: parts.connection,
            match_seq: spot.match_seq,
            ts_ns: parts.ts_ns,
            changed_ns: self.now_ns,
            packet_ns: place.ts_ns,
            text,
            bytes: parts.bytes,
            vlan: parts.vlan,
            minor: parts.minor,
            retransmissions: 0,
            half: Half::Request(half),
        };
        let inserted = match spot.there {
            None => self.pending.insert(hash, waiting),
            Some(leader) => self.pending.insert_behind(leader, hash, waiting),
        };
        match inserted {
            Ok(id) if spot.is_lost => self.pending.hide(id, hash),
            Ok(id) if place.standing.turn().is_some() => self.pending.file_followed(id, hash),
            Ok(id) => {
                if spot.there.is_none()
                    && let Some(shard) = self.other_shard(&parts.connection, spot.match_seq)
                {
                    self.send_queue(shard, id, hash, spot.match_seq, out);
                }
            }
            Err(refused) => {
                // More requests in one pipeline than a server is asked at once.
                self.output.records.stats.table_full += 1;
                self.give_up(refused, out);
            }
        }
    }

    /// The response came before its request.
    pub(crate) fn answer_new(
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
        let next = next_match_seq(&waiting, &response, parts.method);
        let sent = Sent {
            origin: place.ack,
            seq: place.seq,
            bytes: parts.bytes,
        };
        self.remember(hash, waiting.match_seq, sent, next);
        let text = self.texts.read(&waiting.text, &mut self.scratch);
        let answer = response_parts(
            &waiting,
            &response,
            text,
            body_length(&response, parts.method),
        );
        self.output.complete_late(
            parts,
            &answer,
            stored_end(&waiting, &response, parts.method),
            out,
        );
        self.texts.release(waiting.text);
        if let Some(leader) = self
            .pending
            .find_leader(&parts.connection, hash, waiting.match_seq)
        {
            // It was sent behind this one.
            self.relocate(&parts.connection, hash, leader, next, out);
        }
        self.release_bodies(out);
    }
}
