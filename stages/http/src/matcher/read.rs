//! The way from a segment's payload to messages.

use linkweir_proto::http1::{Outcome, Start, classify, empty_lines, parse_request, parse_response};
use linkweir_proto::http2::PREFACE;
use linkweir_record::HttpBatch;
use linkweir_wire::{Network, Tcp};

use super::Matcher;
use crate::halves::{request_rest, response_rest};
use crate::key::ConnectionHash;
use crate::segment::{Place, Relevance, Segment};
use crate::watch::{Found, PartialHead};

impl Matcher {
    /// Everything a segment with payload can do.
    #[inline]
    pub(crate) fn on_segment(
        &mut self,
        network: &Network<'_>,
        tcp: &Tcp<'_>,
        ts_ns: u64,
        vlan: Option<u16>,
        out: &mut HttpBatch,
    ) -> Relevance {
        let mut relevance = Relevance::Irrelevant;
        if self.watch.watches(tcp.src_port(), tcp.dst_port()) {
            let segment = Segment::new(network, tcp, ts_ns, vlan);
            let is_estimated =
                !self.estimates.is_empty() && self.on_estimated(&segment, tcp.flags(), out);
            let is_done = (!self.output.web.is_empty() && self.on_web(&segment, out))
                || is_estimated
                || self.on_watched(&segment, &mut relevance, out);
            if is_done {
                return relevance;
            }
        }
        match classify(tcp.payload) {
            Start::Neither => {
                if let Some(offset) = self.watch.unasked_in(tcp) {
                    let segment = Segment::new(network, tcp, ts_ns, vlan);
                    self.on_messages(&segment, offset, Start::Response, out);
                    return Relevance::Other;
                }
                if is_control(tcp.payload) {
                    let segment = Segment::new(network, tcp, ts_ns, vlan);
                    if empty_lines(tcp.payload) > 0 {
                        self.on_messages(&segment, 0, Start::Neither, out);
                        return Relevance::Other;
                    }
                    let is_estimated = self.begin_estimates(&segment, out);
                    if self.on_beginning(&segment, out) || is_estimated {
                        return Relevance::Other;
                    }
                }
                // Perhaps the rest of a request head that overtook its beginning.
                let is_to_server = self.is_to_server(tcp.src_port(), tcp.dst_port());
                let may_be_preface = tcp.payload.first() == PREFACE.first();
                if (is_to_server || may_be_preface) && is_text(tcp.payload) {
                    let segment = Segment::new(network, tcp, ts_ns, vlan);
                    if may_be_preface && self.on_beginning(&segment, out) {
                        return Relevance::Other;
                    }
                    if is_to_server && self.watch.keep_out_of_order(&segment) {
                        return relevance.max(Relevance::OutOfOrder);
                    }
                }
                relevance
            }
            start @ (Start::Request | Start::Response) => {
                self.on_messages(&Segment::new(network, tcp, ts_ns, vlan), 0, start, out);
                relevance.max(Relevance::Start)
            }
            Start::Unsure => {
                self.on_messages(
                    &Segment::new(network, tcp, ts_ns, vlan),
                    0,
                    Start::Unsure,
                    out,
                );
                Relevance::Other
            }
        }
    }

    /// Reads message after message from `offset` on, where one of kind `start` begins.
    pub(crate) fn on_messages(
        &mut self,
        segment: &Segment<'_>,
        mut offset: usize,
        mut start: Start,
        out: &mut HttpBatch,
    ) {
        while let Some(bytes) = segment.payload.get(offset..) {
            let after = match start {
                Start::Request => self.read_request(segment, offset, bytes, out),
                Start::Response => self.read_response(segment, offset, bytes, out),
                Start::Unsure => {
                    if !segment.is_cut() && !bytes.is_empty() {
                        self.begin_head(segment, offset, out);
                    }
                    None
                }
                Start::Neither => Some(empty_lines(bytes)).filter(|lines| *lines > 0),
            };
            if self.has_begun {
                return self.on_followed(segment, out);
            }
            let Some(after) = after else { return };
            offset = offset.saturating_add(after);
            let Some(next) = segment
                .payload
                .get(offset..)
                .filter(|next| !next.is_empty())
            else {
                return;
            };
            start = classify(next);
        }
    }

    /// Reads a request; says where the next message begins, where that is known.
    #[inline]
    fn read_request(
        &mut self,
        segment: &Segment<'_>,
        offset: usize,
        bytes: &[u8],
        out: &mut HttpBatch,
    ) -> Option<usize> {
        let place = Place::new(segment, offset);
        match parse_request(bytes) {
            Outcome::Complete(head, len) => {
                self.on_request(&place, &head, len, true, out);
                let rest = request_rest(&head, bytes.get(len..).unwrap_or_default());
                self.expect_behind(segment, offset.saturating_add(len), rest);
                message_end(len, rest)
            }
            Outcome::Partial(head) if segment.is_cut() => {
                self.on_request(&place, &head, bytes.len(), false, out);
                None
            }
            Outcome::Partial(_) => {
                self.begin_head(segment, offset, out);
                None
            }
            Outcome::Invalid => {
                self.output.records.stats.malformed_heads += 1;
                None
            }
        }
    }

    /// Reads a response; says where the next message begins, where that is known.
    #[inline]
    fn read_response(
        &mut self,
        segment: &Segment<'_>,
        offset: usize,
        bytes: &[u8],
        out: &mut HttpBatch,
    ) -> Option<usize> {
        let place = Place::new(segment, offset);
        match parse_response(bytes) {
            Outcome::Complete(head, len) => {
                if head.status_code == 101 {
                    let head = bytes.get(..len).unwrap_or_default();
                    if self.on_switch(segment, offset, head, out) {
                        return None;
                    }
                }
                let body = bytes.get(len..).unwrap_or_default();
                let connection = place.direction.reversed();
                if offset > 0
                    && let Some(shard) = self.other_shard(&connection, place.seq.0)
                {
                    // Its request is there, or goes there.
                    let rest = response_rest(&head, body);
                    let chunks = rest.filter(|_| head.chunked).unwrap_or(0);
                    let copy = bytes.get(..len.saturating_add(chunks)).unwrap_or(bytes);
                    if self.send_response(shard, &place, copy) {
                        return message_end(len, rest);
                    }
                }
                let rest = self.on_response(&place, &head, len, body, true, out);
                message_end(len, rest)
            }
            Outcome::Partial(head) if segment.is_cut() => {
                // All that the segment had on the wire: right for an interim response, which has no body.
                let len = (segment.payload_len as usize).saturating_sub(offset);
                if head.status_code > 0 {
                    self.on_response(&place, &head, len, &[], false, out);
                }
                None
            }
            Outcome::Partial(_) => {
                self.begin_head(segment, offset, out);
                None
            }
            Outcome::Invalid => {
                self.output.records.stats.malformed_heads += 1;
                None
            }
        }
    }

    /// The next request may begin inside a segment to come: behind a body from `offset` on that is
    /// longer than the rest of this one.
    fn expect_behind(&mut self, segment: &Segment<'_>, offset: usize, body: Option<usize>) {
        if let Some(end) = body.and_then(|body| offset.checked_add(body))
            && end > segment.payload_len as usize
            && end < 1 << 31
        {
            self.watch
                .expect_start(segment.direction, segment.seq_at(end), self.now_ns);
        }
    }

    /// Gathers a head that goes on in another segment.
    fn begin_head(&mut self, segment: &Segment<'_>, offset: usize, out: &mut HttpBatch) {
        let place = Place::new(segment, offset);
        self.advance(segment.ts_ns, out);
        if self.watch.gathers(&place) {
            // All of it is known, with what comes before it.
            return;
        }
        let bytes = segment.payload.get(offset..).unwrap_or_default();
        if self.is_retransmitted(&place, bytes) {
            // Its first part says what there is to say: another head may be coming just now.
            return self.on_part(&place, bytes, out);
        }
        if !bytes.starts_with(b"HTTP") && self.is_pipelined_head(&place, out) {
            return;
        }
        while self.watch.lacks_room(segment.payload.len()) {
            match self.watch.evict() {
                Some(gone) => self.on_gone(gone, out),
                None => return,
            }
        }
        if let Some(old) = self.watch.begin(segment, offset) {
            self.on_partial(old, out);
        }
        if segment
            .payload
            .get(offset..)
            .is_some_and(|head| head.starts_with(b"HTTP"))
        {
            // The request waits for this head, however long that takes.
            let connection = segment.direction.reversed();
            let hash = ConnectionHash::new(self.seed, &connection);
            if let Some(id) = self.pending.find_leader(&connection, hash, place.seq.0) {
                self.pending.touch(id, self.now_ns);
            }
        }
        self.take_up_out_of_order(segment, out);
    }

    /// Whether the head of a request that begins at `place` is that of one of several, which are followed.
    fn is_pipelined_head(&mut self, place: &Place, out: &mut HttpBatch) -> bool {
        let hash = ConnectionHash::new(self.seed, &place.direction);
        let spot = self.spot_of(&place.direction, hash, place);
        let is_pipelined = !spot.is_known && self.is_pipelined(hash, place, &spot);
        if is_pipelined {
            self.begin_following(place, &spot, hash, out);
        }
        is_pipelined
    }

    /// Parts of a head that came before the one in `segment`.
    fn take_up_out_of_order(&mut self, segment: &Segment<'_>, out: &mut HttpBatch) {
        while let Some(kept) = self.watch.take_out_of_order(&segment.direction) {
            let bytes = std::mem::take(&mut self.scratch);
            let bytes = self.watch.read_out_of_order(kept, bytes);
            let piece = Segment {
                seq: kept.seq,
                payload: &bytes,
                payload_len: kept.len,
                ts_ns: kept.ts_ns,
                ..*segment
            };
            let found = self.watch.on_segment(&piece);
            self.on_found(found, &piece, out);
            self.scratch = bytes;
        }
    }

    /// A segment of a direction that may be watched; whether that was all there was to it.
    pub(crate) fn on_watched(
        &mut self,
        segment: &Segment<'_>,
        relevance: &mut Relevance,
        out: &mut HttpBatch,
    ) -> bool {
        let watched = self.watch.len();
        let found = self.watch.on_segment(segment);
        *relevance = match found {
            Found::Nothing if self.watch.len() == watched => Relevance::Irrelevant,
            Found::Start(0) => Relevance::Start,
            _ => Relevance::Other,
        };
        let was_taken = matches!(found, Found::Taken);
        let is_done = self.on_found(found, segment, out);
        if was_taken {
            self.take_up_out_of_order(segment, out);
        }
        is_done
    }

    fn on_found(&mut self, found: Found, segment: &Segment<'_>, out: &mut HttpBatch) -> bool {
        match found {
            Found::Nothing => false,
            Found::Taken => true,
            Found::Followed => {
                self.on_followed(segment, out);
                true
            }
            Found::Start(offset) => {
                let bytes = segment.payload.get(offset..).unwrap_or_default();
                self.on_messages(segment, offset, classify(bytes), out);
                true
            }
            Found::Whole(partial, offset) => {
                let rest = self.on_whole(partial, segment, offset, out);
                if let Some(rest) = rest.and_then(|rest| offset.checked_add(rest))
                    && let Some(bytes) = segment.payload.get(rest..)
                {
                    self.on_messages(segment, rest, classify(bytes), out);
                }
                true
            }
            Found::Broken(partial) => {
                self.on_partial(partial, out);
                false
            }
        }
    }

    /// A gathered head is whole; its last byte is before `offset` of `segment`.
    fn on_whole(
        &mut self,
        partial: PartialHead,
        segment: &Segment<'_>,
        offset: usize,
        out: &mut HttpBatch,
    ) -> Option<usize> {
        let mut bytes = std::mem::take(&mut self.head);
        self.watch.read_head(&partial, &mut bytes);
        let place = partial.place();
        let body = segment.payload.get(offset..).unwrap_or_default();
        let is_response = partial.is_response(&bytes);
        let rest = if is_response {
            match parse_response(&bytes) {
                Outcome::Complete(head, len) => {
                    self.on_response(&place, &head, len, body, true, out)
                }
                _ => None,
            }
        } else {
            match parse_request(&bytes) {
                Outcome::Complete(head, len) => {
                    self.on_request(&place, &head, len, true, out);
                    let rest = request_rest(&head, body);
                    self.expect_behind(segment, offset, rest);
                    rest
                }
                _ => None,
            }
        };
        let rest = if self.has_begun {
            if place.direction == segment.direction && !is_response {
                self.on_followed(&place.piece(&bytes), out);
            }
            self.on_followed(segment, out);
            None
        } else {
            rest
        };
        self.head = bytes;
        self.watch.release(partial);
        rest
    }

    /// A gathered head will not become whole: what is there of it counts.
    pub(crate) fn on_partial(&mut self, partial: PartialHead, out: &mut HttpBatch) {
        let mut bytes = std::mem::take(&mut self.head);
        self.watch.read_head(&partial, &mut bytes);
        self.on_part(&partial.place(), &bytes, out);
        self.head = bytes;
        self.watch.release(partial);
    }

    /// The first part of a head, without the rest.
    fn on_part(&mut self, place: &Place, bytes: &[u8], out: &mut HttpBatch) {
        if bytes.starts_with(b"HTTP") {
            if let Outcome::Partial(head) = parse_response(bytes)
                && head.status_code > 0
            {
                self.on_response(place, &head, bytes.len(), &[], false, out);
            }
        } else if classify(bytes) == Start::Request
            && let Outcome::Partial(head) = parse_request(bytes)
            && !head.target.is_empty()
        {
            self.on_request(place, &head, bytes.len(), false, out);
        }
    }
}

/// Whether a payload begins with a control character other than a tab, which may begin the rest of a field: an empty
/// line, the type of a TLS record, the length of a frame.
#[inline]
fn is_control(payload: &[u8]) -> bool {
    payload
        .first()
        .is_some_and(|first| *first < b' ' && *first != b'\t')
}

/// Whether a payload may be in the middle of a head: fields are text, most other protocols' bytes
/// are not.
#[inline]
fn is_text(payload: &[u8]) -> bool {
    let first = payload.first_chunk::<4>();
    first
        .map_or(payload, |first| first.as_slice())
        .iter()
        .all(|byte| matches!(byte, b'\t' | b'\r' | b'\n' | b' '..=b'~'))
}

/// Where the next message begins, where that is known.
fn message_end(head_len: usize, body_len: Option<usize>) -> Option<usize> {
    head_len.checked_add(body_len?)
}
