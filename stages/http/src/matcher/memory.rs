//! What the stage remembers of messages that have left the table: by this it knows retransmissions
//! and finds the way for requests that come after the answers of those before them.

use linkweir_proto::http1::{Start, classify};
use linkweir_table::Id;
use linkweir_wire::SeqNumber;

use super::Matcher;
use crate::halves::after;
use crate::key::{Connection, ConnectionHash, Meaning};
use crate::pending::WaitingRequest;
use crate::seen::Seen;
use crate::segment::Place;

/// What begins at most so far before the last answered message of its connection is an old one, even
/// where its own note is forgotten. A sender repeats what is within a window; and the numbers of
/// another connection with the same ports begin elsewhere, nearly always.
const PAST: u32 = 1 << 20;

/// How far behind the request the note of an interim response is: further than that of an answer.
const PASSED_BY: u32 = 1 << 30;

/// Whether `note` is that of an interim response, to a request at `seq`.
pub(crate) const fn is_passed_by(note: u32, seq: SeqNumber) -> bool {
    seq.0.wrapping_sub(note) > PASSED_BY / 2
}

/// Whether `number` is `last` or lies shortly before it.
const fn is_past(number: u32, last: u32) -> bool {
    last.wrapping_sub(number) < PAST
}

/// Whether `number` lies shortly before `end`.
const fn is_before(number: u32, end: u32) -> bool {
    is_past(number, end.wrapping_sub(1))
}

/// What the last messages of its connection tell of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// Nothing: it was sent behind the last response, as far as anybody knows.
    Nothing,
    /// It was seen before.
    Known,
    /// It may have been sent when only a part of the last response had come, so that its answer does not
    /// begin at its match number; where that is noted ([`Matcher::note_early`]).
    SentEarly(u32),
}

/// A request that is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    /// Its acknowledgment number: the match number where its pipeline began.
    pub(crate) origin: u32,
    pub(crate) seq: SeqNumber,
    /// The length of all of it, if that is known.
    pub(crate) bytes: Option<u64>,
}

impl Sent {
    /// One that has waited.
    pub(crate) const fn of(request: &WaitingRequest, bytes: Option<u64>) -> Self {
        Self {
            origin: request.origin,
            seq: request.seq,
            bytes,
        }
    }
}

impl Matcher {
    /// Notes a new request as the last of its connection.
    #[inline]
    pub(crate) fn remember_request(&mut self, hash: ConnectionHash, seq: SeqNumber) {
        let second = self
            .recall(hash, Meaning::Last, 0)
            .and_then(|last| last.second);
        self.note_last(
            hash,
            Seen {
                note: seq.0,
                second,
            },
        );
    }

    #[inline]
    fn note_last(&mut self, hash: ConnectionHash, last: Seen) {
        self.seen.put(
            hash.home(),
            hash.fingerprint(Meaning::Last, 0),
            self.now_ms(),
            last,
        );
    }

    /// What the last messages of the connection tell of a request: whether it is the last, or an older one
    /// that was answered (a retransmission may acknowledge more than the first time did), or came early.
    #[inline]
    pub(crate) fn last_tells(&self, hash: ConnectionHash, place: &Place) -> Last {
        let Some(last) = self.recall(hash, Meaning::Last, 0) else {
            return Last::Nothing;
        };
        if last.note == place.seq.0 {
            return Last::Known;
        }
        let Some(end) = last.second else {
            return Last::Nothing;
        };
        if is_past(place.seq.0, last.note) && is_before(place.ack, end) {
            return Last::Known;
        }
        if end == place.ack || !self.may_follow {
            return Last::Nothing;
        }
        self.is_early(hash, place.ack, end)
    }

    /// Whether a request that acknowledges `ack` may have been sent before the response that ends at `end`,
    /// or somewhere behind it, was over.
    #[cold]
    fn is_early(&self, hash: ConnectionHash, ack: u32, end: u32) -> Last {
        let mark = end.wrapping_sub(1);
        if is_before(ack, end) || self.recall(hash, Meaning::MatchSeq, mark).is_some() {
            Last::SentEarly(mark)
        } else {
            Last::Nothing
        }
    }

    /// Notes at `mark`, the last byte that is known of the last response, the match number of a request that was
    /// sent when that had perhaps not come as a whole.
    #[cold]
    pub(crate) fn note_early(&mut self, hash: ConnectionHash, mark: u32, place: &Place) {
        let note = self
            .recall(hash, Meaning::MatchSeq, mark)
            .map_or_else(|| place.seq.0.wrapping_sub(1), |seen| seen.note);
        let second = Some(place.ack);
        self.note(hash, mark, Seen { note, second });
    }

    /// A request that was sent early and waits for a response that begins at `place`: the server had all of
    /// it, and nothing else, when it sent that.
    #[cold]
    pub(crate) fn early_request(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        place: &Place,
    ) -> Option<Id> {
        let last = self.recall(hash, Meaning::Last, 0)?;
        let mark = last.second?.wrapping_sub(1);
        let match_seq = self.recall(hash, Meaning::MatchSeq, mark)?.second?;
        if place.seq - SeqNumber(match_seq) <= 0 || !self.may_follow {
            return None;
        }
        let id = self.pending.find_leader(connection, hash, match_seq)?;
        let waiting = self.pending.get(id)?;
        let bytes = u32::try_from(waiting.bytes?).ok()?;
        let end = waiting.request_seq().0.wrapping_add(bytes);
        (place.has_ack && place.ack == end && waiting.origin() == match_seq).then_some(id)
    }

    /// Where the response to a pipeline that waits at `match_seq` begins: `None` where only a part of the one
    /// before it had come and it is unknown where that ends.
    pub(crate) fn begin_of_answers(&self, hash: ConnectionHash, match_seq: u32) -> Option<u32> {
        let end = self
            .recall(hash, Meaning::Last, 0)
            .and_then(|last| last.second);
        match end {
            Some(end) if is_before(match_seq, end) => Some(end),
            Some(end) if match_seq != end => self
                .recall(hash, Meaning::MatchSeq, end.wrapping_sub(1))
                .map_or(Some(match_seq), |_| None),
            _ => Some(match_seq),
        }
    }

    /// Notes that all messages of a connection up to the request that was last, and to where a response ends,
    /// have been seen.
    pub(crate) fn note_seen(&mut self, hash: ConnectionHash, end: u32) {
        if let Some(last) = self.recall(hash, Meaning::Last, 0) {
            let second = Some(end);
            self.note_last(hash, Seen { second, ..last });
        }
    }

    /// Notes where the response at `match_seq` ends, now that it is known.
    pub(crate) fn note_end(&mut self, hash: ConnectionHash, match_seq: u32, end: u32) {
        if let Some(seen) = self.recall(hash, Meaning::MatchSeq, match_seq) {
            let second = Some(end);
            self.note(hash, match_seq, Seen { second, ..seen });
        }
        if let Some(last) = self.recall(hash, Meaning::Last, 0)
            && last.second == Some(match_seq.wrapping_add(1))
        {
            let second = Some(end);
            self.note_last(hash, Seen { second, ..last });
        }
    }

    /// Notes that the request with this sequence number was answered at `match_seq`, and where the
    /// next response begins.
    ///
    /// The same is noted at the match number where its pipeline began, by which a request finds
    /// the way that is sent behind it without having seen the answers.
    #[inline]
    pub(crate) fn remember(
        &mut self,
        hash: ConnectionHash,
        match_seq: u32,
        sent: Sent,
        next: Option<u32>,
    ) {
        let seq = sent.seq;
        let seen = Seen {
            note: seq.0,
            second: next,
        };
        if sent.origin != match_seq {
            self.note(hash, sent.origin, seen);
        }
        if let (Some(bytes), Some(next)) = (sent.bytes, next) {
            self.reach.note(hash, after(seq.0, 0, bytes), next);
        } else {
            self.reach.forget(hash);
        }
        self.note(hash, match_seq, seen);
        let last = self.recall(hash, Meaning::Last, 0);
        // What is known of the response: all of it, or its first byte. (A stage that does not see whole connections may
        // take it for the answer to a request with another method, and so be wrong about its end.)
        let end = next
            .filter(|_| self.has_whole_connections)
            .unwrap_or_else(|| match_seq.wrapping_add(1));
        let second = last
            .and_then(|last| last.second)
            .filter(|last| is_past(end, *last));
        self.note_last(
            hash,
            Seen {
                note: last.map_or(seq.0, |last| last.note),
                second: second.or(Some(end)),
            },
        );
    }

    #[inline]
    pub(crate) fn note(&mut self, hash: ConnectionHash, match_seq: u32, seen: Seen) {
        self.seen.put(
            hash.home(),
            hash.fingerprint(Meaning::MatchSeq, match_seq),
            self.now_ms(),
            seen,
        );
    }

    /// What is remembered of a number of a connection.
    #[inline]
    pub(crate) fn recall(
        &self,
        hash: ConnectionHash,
        meaning: Meaning,
        number: u32,
    ) -> Option<Seen> {
        self.seen.get(
            hash.home(),
            hash.fingerprint(meaning, number),
            self.now_ms(),
        )
    }

    /// Notes that what waited at `match_seq` left without an answer: a request that was pipelined behind
    /// it must not take its place.
    pub(crate) fn give_up_match(&mut self, hash: ConnectionHash, match_seq: u32) {
        let seen = Seen {
            note: match_seq,
            second: None,
        };
        self.seen.put(
            hash.home(),
            hash.fingerprint(Meaning::Hidden, match_seq),
            self.now_ms(),
            seen,
        );
    }

    /// Notes that an interim response went by at `match_seq`: the final one begins at `next`. No request
    /// is answered yet, so the note is far behind what the client sends (the response's `ack`).
    pub(crate) fn pass_by(&mut self, hash: ConnectionHash, match_seq: u32, ack: u32, next: u32) {
        let seen = Seen {
            note: ack.wrapping_sub(PASSED_BY),
            second: Some(next),
        };
        self.seen.put(
            hash.home(),
            hash.fingerprint(Meaning::MatchSeq, match_seq),
            self.now_ms(),
            seen,
        );
    }

    /// Whether the response at `match_seq` was seen before: it waits, or its request was answered.
    pub(crate) fn is_answered(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        match_seq: u32,
    ) -> bool {
        self.pending
            .find_response(connection, hash, match_seq)
            .is_some()
            || self.recall(hash, Meaning::MatchSeq, match_seq).is_some()
            || self
                .recall(hash, Meaning::Last, 0)
                .and_then(|last| last.second)
                .is_some_and(|end| is_before(match_seq, end))
    }

    /// Whether the head that begins at `place` was seen before.
    pub(crate) fn is_retransmitted(&self, place: &Place, bytes: &[u8]) -> bool {
        match classify(bytes) {
            Start::Request => {
                let hash = ConnectionHash::new(self.seed, &place.direction);
                self.spot_of(&place.direction, hash, place).is_known
            }
            Start::Response => {
                let connection = place.direction.reversed();
                let hash = ConnectionHash::new(self.seed, &connection);
                let is_awaited = self
                    .pending
                    .find_leader(&connection, hash, place.seq.0)
                    .is_some();
                !is_awaited && self.is_answered(&connection, hash, place.seq.0)
            }
            Start::Unsure | Start::Neither => false,
        }
    }
}
