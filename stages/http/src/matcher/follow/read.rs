//! How the messages of a followed pipeline are read in their order.

use linkweir_proto::http1::{
    BodyLength, ChunkPiece, ChunkedDecoder, Outcome, RequestHead, ResponseHead, Start, classify,
    empty_lines, parse_request, parse_response, request_body,
};
use linkweir_record::HttpBatch;
use linkweir_wire::SeqNumber;
use memchr::memmem;

use super::{FIRST_TURN, Lost};
use crate::halves::request_rest;
use crate::key::{Connection, ConnectionHash, Meaning};
use crate::matcher::Matcher;
use crate::pending::{NO_TURN, Waiting};
use crate::reach::SHORTEST;
use crate::segment::Segment;
use crate::segment::{Place, Standing};
use crate::watch::{Gap, Next, Stream};

/// A longer body is not followed: what has a number within it counts as a part of it, and may be of another
/// connection with the same ports.
const MAX_BODY: u64 = 1 << 26;
/// The end of chunks without trailer fields (RFC 9112 sec. 7.1), and how a response begins.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const VERSION: &[u8] = b"HTTP/1.";

fn plus(seq: SeqNumber, bytes: usize) -> SeqNumber {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    SeqNumber(seq.0.wrapping_add(bytes))
}

/// The part of a segment before `end`.
fn part_before<'a>(segment: &Segment<'a>, end: SeqNumber) -> Option<Segment<'a>> {
    let len = usize::try_from(end - segment.seq)
        .ok()
        .filter(|len| *len > 0)?;
    let payload = segment.payload.get(..len).unwrap_or(segment.payload);
    Some(Segment {
        payload,
        payload_len: u32::try_from(payload.len()).unwrap_or(u32::MAX),
        ..*segment
    })
}

impl Matcher {
    /// Reads what a segment has that is due; what begins behind a gap waits.
    pub(super) fn read_in_order(
        &mut self,
        stream: &mut Stream,
        segment: &Segment<'_>,
        out: &mut HttpBatch,
    ) -> Result<(), Lost> {
        let next = stream.next_seq;
        if segment.seq.before(next) {
            if stream.is_client && segment.seq.before(stream.base) {
                self.rewind(stream, segment);
            }
            self.read_again(stream, segment, next, out);
        }
        loop {
            let next = stream.next_seq;
            if let Some((begin, end)) = stream.islands.front().copied()
                && next - begin > -SHORTEST
            {
                self.pass_island(stream, &segment.direction, (begin, end));
                continue;
            }
            let Ok(offset) = usize::try_from(next - segment.seq) else {
                let is_behind_body = stream.behind_body == Some(segment.seq)
                    && classify(segment.payload) == Start::Response;
                let is_before =
                    || stream.next == Next::Unknown && self.is_of_response_before(segment);
                if is_behind_body || is_before() {
                    stream.behind_body = None;
                    stream.next_seq = segment.seq;
                    continue;
                }
                return match self.watch.keep_late(stream, segment) {
                    Gap::Waits => Ok(()),
                    Gap::GivenUp => Err(Lost),
                };
            };
            if offset >= segment.payload_len as usize {
                break;
            }
            let bytes = segment.payload.get(offset..).unwrap_or_default();
            if bytes.is_empty() {
                // The capture has cut it.
                return Err(Lost);
            }
            match stream.next {
                Next::Message => self.read_message(stream, segment, offset, bytes, out)?,
                Next::Head => self.read_head_on(stream, segment, bytes, out)?,
                Next::Chunks(decoder) => self.read_chunks(stream, segment, decoder, bytes)?,
                Next::Unknown => look_for_end(stream, segment, offset, bytes),
            }
            self.take_up_answers(stream, &segment.direction.reversed(), out);
        }
        Ok(())
    }

    /// Whether what a server sends still belongs to the response before those that are waited for: it had none
    /// of the requests when it sent that.
    fn is_of_response_before(&self, segment: &Segment<'_>) -> bool {
        let connection = segment.direction.reversed();
        let hash = ConnectionHash::new(self.seed, &connection);
        let first = self.pending.find_followed(&connection, hash);
        first.is_some_and(|first| !self.has_seen(first, &Place::new(segment, 0)))
    }

    /// A message, or the first part of one.
    fn read_message(
        &mut self,
        stream: &mut Stream,
        segment: &Segment<'_>,
        offset: usize,
        bytes: &[u8],
        out: &mut HttpBatch,
    ) -> Result<(), Lost> {
        if let Some(behind) = stream.behind_body.take()
            && classify(bytes) == Start::Neither
        {
            stream.next_seq = behind;
            return Ok(());
        }
        let place = Place::new(segment, offset);
        let is_part = match (classify(bytes), stream.is_client) {
            (Start::Request, true) => match parse_request(bytes) {
                Outcome::Complete(head, len) => {
                    return self.next_request(stream, place, &head, len, out);
                }
                Outcome::Partial(_) => true,
                Outcome::Invalid => false,
            },
            (Start::Response, false) => match parse_response(bytes) {
                Outcome::Complete(head, len) => {
                    let body = bytes.get(len..).unwrap_or_default();
                    return self.next_response(stream, place, &head, len, body, out);
                }
                Outcome::Partial(_) => true,
                Outcome::Invalid => false,
            },
            (Start::Unsure, _) => true,
            (Start::Neither, _) => {
                let lines = empty_lines(bytes);
                stream.next_seq = plus(place.seq, lines);
                return if lines > 0 { Ok(()) } else { Err(Lost) };
            }
            (Start::Request, false) | (Start::Response, true) => false,
        };
        if !is_part || segment.is_cut() {
            return Err(Lost);
        }
        stream.head = self.watch.begin_in(place, bytes);
        if stream.head.is_none() {
            return Err(Lost);
        }
        (stream.next, stream.next_seq) = (Next::Head, segment.end());
        Ok(())
    }

    /// The next part of a head.
    fn read_head_on(
        &mut self,
        stream: &mut Stream,
        segment: &Segment<'_>,
        bytes: &[u8],
        out: &mut HttpBatch,
    ) -> Result<(), Lost> {
        let mut head = stream.head.take().ok_or(Lost)?;
        let gathered = self.watch.gather_in(&mut head, segment, bytes);
        let Ok(Some(taken)) = gathered else {
            stream.head = Some(head);
            stream.next_seq = segment.end();
            return match gathered {
                Ok(None) if !segment.is_cut() => Ok(()),
                _ => Err(Lost),
            };
        };
        let body = bytes.get(taken..).unwrap_or_default();
        let mut text = std::mem::take(&mut self.head);
        self.watch.read_head(&head, &mut text);
        let place = head.place();
        self.watch.release(head);
        let read = if stream.is_client {
            match parse_request(&text) {
                Outcome::Complete(head, len) => self.next_request(stream, place, &head, len, out),
                _ => Err(Lost),
            }
        } else {
            match parse_response(&text) {
                Outcome::Complete(head, len) => {
                    self.next_response(stream, place, &head, len, body, out)
                }
                _ => Err(Lost),
            }
        };
        self.head = text;
        read
    }

    /// The next request of the pipeline.
    fn next_request(
        &mut self,
        stream: &mut Stream,
        place: Place,
        head: &RequestHead<'_>,
        len: usize,
        out: &mut HttpBatch,
    ) -> Result<(), Lost> {
        let turn = stream.turn;
        let standing = if self.has_come_alone(&place) {
            Standing::Again
        } else {
            Standing::InTurn(turn)
        };
        let place = Place { standing, ..place };
        if standing == Standing::Again {
            self.on_request(&place, head, len, true, out);
            return go_behind(stream, plus(place.seq, len), request_body(head));
        }
        let is_answered = stream.unasked.front().is_some_and(|(of, _)| *of == turn);
        self.answer = is_answered
            .then(|| stream.unasked.pop_front())
            .flatten()
            .map(|(_, match_seq)| match_seq);
        stream.note_start(place.seq);
        stream.turn += 1;
        stream.last_ack = place.ack;
        self.on_request(&place, head, len, true, out);
        self.answer = None;
        go_behind(stream, plus(place.seq, len), request_body(head))
    }

    /// Whether a request was seen before those in front of it, and waits by its number or was answered so.
    fn has_come_alone(&self, place: &Place) -> bool {
        let connection = place.direction;
        let hash = ConnectionHash::new(self.seed, &connection);
        let there = self.pending.find_leader(&connection, hash, place.ack);
        let answered = self.recall(hash, Meaning::MatchSeq, place.ack);
        self.pending.in_queue(there, place.seq).is_some()
            || answered.is_some_and(|answered| answered.note == place.seq.0)
    }

    /// The next response of the pipeline.
    fn next_response(
        &mut self,
        stream: &mut Stream,
        place: Place,
        head: &ResponseHead<'_>,
        len: usize,
        body: &[u8],
        out: &mut HttpBatch,
    ) -> Result<(), Lost> {
        let place = Place {
            standing: Standing::InTurn(stream.turn),
            ..place
        };
        stream.note_start(place.seq);
        let mut is_asked = true;
        if !head.is_interim() {
            is_asked = self.take_turn(stream, &place);
            stream.last_match_seq = Some(place.seq.0);
        }
        let rule = match self.on_response(&place, head, len, body, true, out) {
            Some(length) => BodyLength::Known(length as u64),
            None if head.chunked => BodyLength::Chunked,
            None => BodyLength::UntilClose,
        };
        go_behind(stream, plus(place.seq, len), rule)?;
        if !is_asked && matches!(rule, BodyLength::Known(1..)) {
            stream.behind_body = Some(stream.next_seq);
            stream.next_seq = plus(place.seq, len);
        }
        Ok(())
    }

    /// Whose turn it is after a final response at `place`: of the next one, unless it was not requested. Returns
    /// whether its request is known.
    fn take_turn(&mut self, stream: &mut Stream, place: &Place) -> bool {
        let connection = place.direction.reversed();
        let hash = ConnectionHash::new(self.seed, &connection);
        if let Some(first) = self.pending.find_followed(&connection, hash) {
            let its = self.pending.get(first).and_then(|waiting| waiting.turn());
            if self.answers(first, stream.turn, place) {
                stream.turn += 1;
                return true;
            }
            if its != Some(NO_TURN) {
                // Of another turn where the request that it answers has timed out.
                stream.turn += u32::from(its != Some(stream.turn));
                return false;
            }
        }
        self.wait_for_turn(
            stream,
            &connection,
            place.seq,
            place.has_ack.then_some(place.ack),
        );
        false
    }

    /// Chunks, up to the end of the segment or theirs.
    fn read_chunks(
        &mut self,
        stream: &mut Stream,
        segment: &Segment<'_>,
        mut decoder: ChunkedDecoder,
        bytes: &[u8],
    ) -> Result<(), Lost> {
        let mut rest = bytes;
        loop {
            match decoder.next(&mut rest) {
                Ok(ChunkPiece::Data(_) | ChunkPiece::Text(_)) => {}
                Ok(ChunkPiece::More) => break,
                Ok(ChunkPiece::End) => {
                    let missing = segment.payload_len as usize - segment.payload.len();
                    let left = rest.len() + missing;
                    let end = SeqNumber(segment.end().0.wrapping_sub(plus(SeqNumber(0), left).0));
                    (stream.next, stream.next_seq) = (Next::Message, end);
                    if let Some(match_seq) = stream.last_match_seq {
                        let connection = segment.direction.reversed();
                        let hash = ConnectionHash::new(self.seed, &connection);
                        self.note_end(hash, match_seq, end.0);
                    }
                    return Ok(());
                }
                Err(_) => return Err(Lost),
            }
        }
        // Data that is still to come need not be looked at.
        let end = plus(segment.seq, segment.payload.len());
        let skipped = decoder.pass_data();
        stream.next = Next::Chunks(decoder);
        stream.next_seq = SeqNumber(end.0.wrapping_add(small(skipped)?));
        Ok(())
    }

    /// What was there before, or comes before what was there first.
    fn read_again(
        &mut self,
        stream: &mut Stream,
        segment: &Segment<'_>,
        next: SeqNumber,
        out: &mut HttpBatch,
    ) {
        if let Some(part) = part_before(segment, stream.base) {
            self.read_before(stream, &part, out);
        }
        let end = if next.before(segment.end()) {
            next
        } else {
            segment.end()
        };
        let is_in = |start: &SeqNumber| !start.before(segment.seq) && start.before(end);
        for at in 0..stream.starts.len() {
            let Some(start) = stream.starts.get(at).copied().filter(is_in) else {
                continue;
            };
            let offset = usize::try_from(start - segment.seq).unwrap_or(0);
            let place = Place {
                standing: Standing::Again,
                ..Place::new(segment, offset)
            };
            let bytes = segment.payload.get(offset..).unwrap_or_default();
            if stream.is_client {
                if let Outcome::Complete(head, len) = parse_request(bytes) {
                    self.on_request(&place, &head, len, true, out);
                }
            } else if let Outcome::Complete(head, len) = parse_response(bytes) {
                let body = bytes.get(len..).unwrap_or_default();
                self.on_response(&place, &head, len, body, true, out);
            }
        }
    }

    /// Messages from before the first of a stream: they were sent before it, and have come late or again.
    fn read_before(&mut self, stream: &mut Stream, segment: &Segment<'_>, out: &mut HttpBatch) {
        let mut offset = 0;
        while let Some(bytes) = segment
            .payload
            .get(offset..)
            .filter(|rest| !rest.is_empty())
        {
            let mut place = Place {
                standing: Standing::Alone { is_whole: false },
                ..Place::new(segment, offset)
            };
            if stream.answered.is_some_and(|last| !last.before(place.seq)) {
                place.standing = Standing::Again;
            }
            let length = if stream.is_client {
                let Outcome::Complete(head, len) = parse_request(bytes) else {
                    return;
                };
                self.on_request(&place, &head, len, true, out);
                request_rest(&head, bytes.get(len..).unwrap_or_default())
                    .map(|rest| len.saturating_add(rest))
            } else {
                let Outcome::Complete(head, len) = parse_response(bytes) else {
                    return;
                };
                let body = bytes.get(len..).unwrap_or_default();
                self.on_response(&place, &head, len, body, true, out)
                    .map(|rest| len.saturating_add(rest))
            };
            let Some(length) = length else {
                return;
            };
            offset = offset.saturating_add(length);
        }
    }

    /// A request from before the first of a pipeline leads it, if nothing of the pipeline is answered and it
    /// waits for the same response: the stream begins there then, and passes over what it has.
    fn rewind(&mut self, stream: &mut Stream, segment: &Segment<'_>) {
        let connection = segment.direction;
        let hash = ConnectionHash::new(self.seed, &connection);
        let Outcome::Complete(..) = parse_request(segment.payload) else {
            return;
        };
        let place = Place {
            standing: Standing::Alone { is_whole: false },
            ..Place::new(segment, 0)
        };
        let spot = self.spot_of(&connection, hash, &place);
        let Some(leader) = self.pending.find_followed(&connection, hash) else {
            return;
        };
        let origin = self.pending.get(leader).map(Waiting::origin);
        let server = self.watch.stream_mut(&connection.reversed());
        let is_fresh = server.is_some_and(|server| server.turn == FIRST_TURN);
        let is_old = stream.answered.is_some_and(|last| !last.before(place.seq));
        let is_old = is_old || stream.next != Next::Message || !is_fresh;
        if is_old || spot.is_known || spot.is_answered() || origin != Some(place.ack) {
            return;
        }
        self.pending
            .each_in_queue(leader, |_, _, turn| *turn = NO_TURN);
        stream.islands.push_front((stream.base, stream.next_seq));
        stream.turn = FIRST_TURN;
        (stream.base, stream.next_seq) = (place.seq, place.seq);
    }

    /// What was read before is reached: its requests take their turns.
    fn pass_island(
        &mut self,
        stream: &mut Stream,
        connection: &Connection,
        (begin, end): (SeqNumber, SeqNumber),
    ) {
        stream.islands.pop_front();
        let hash = ConnectionHash::new(self.seed, connection);
        if let Some(leader) = self.pending.find_followed(connection, hash) {
            self.pending.each_in_queue(leader, |seq, _, turn| {
                if *turn == NO_TURN && !seq.before(begin) && seq.before(end) {
                    *turn = stream.turn;
                    stream.turn += 1;
                }
            });
        }
        stream.next_seq = end;
    }
}

/// A length by which sequence numbers can be moved on.
fn small(length: u64) -> Result<u32, Lost> {
    let fits = u32::try_from(length).ok().filter(|_| length <= MAX_BODY);
    fits.ok_or(Lost)
}

/// What is read behind a head that ends at `end`.
fn go_behind(stream: &mut Stream, end: SeqNumber, body: BodyLength) -> Result<(), Lost> {
    match body {
        BodyLength::Known(length) => {
            stream.next = Next::Message;
            stream.next_seq = SeqNumber(end.0.wrapping_add(small(length)?));
        }
        BodyLength::Chunked => {
            stream.next = Next::Chunks(ChunkedDecoder::default());
            stream.next_seq = end;
        }
        BodyLength::UntilClose => {
            // Nothing is known of what follows.
            (stream.next, stream.next_seq) = (Next::Unknown, end);
            return Err(Lost);
        }
    }
    Ok(())
}

/// Looks for the end of chunks of which only a part has been seen, and the response behind it.
fn look_for_end(stream: &mut Stream, segment: &Segment<'_>, offset: usize, bytes: &[u8]) {
    let here = segment.seq_at(offset);
    let is_start = offset == 0 && matches!(classify(bytes), Start::Response);
    let mut ends = memmem::find_iter(bytes, LAST_CHUNK).map(|at| at + LAST_CHUNK.len());
    let behind = ends.find(|end| {
        let rest = bytes.get(*end..).unwrap_or_default();
        !rest.is_empty() && (rest.starts_with(VERSION) || VERSION.starts_with(rest))
    });
    match behind {
        _ if is_start => stream.next = Next::Message,
        Some(at) => (stream.next, stream.next_seq) = (Next::Message, plus(here, at)),
        None => stream.next_seq = segment.end(),
    }
}
