//! What the stage remembers of messages that have left the table: by this it knows retransmissions
//! and finds the way for requests that come after the answers of those before them.

use linkweir_proto::http1::{Start, classify};
use linkweir_table::Seen;
use linkweir_wire::SeqNumber;

use crate::key::{Connection, ConnectionHash, Meaning};
use crate::place::Place;
use crate::stage::HttpStage;

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

impl HttpStage {
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

    /// Whether a request is the last of its connection, or an older one that was answered: a
    /// retransmission may acknowledge more than the first time did.
    #[inline]
    pub(crate) fn is_past_request(&self, hash: ConnectionHash, place: &Place) -> bool {
        self.recall(hash, Meaning::Last, 0).is_some_and(|last| {
            last.note == place.seq.0
                || (is_past(place.seq.0, last.note)
                    && last.second.is_some_and(|link| is_past(place.ack, link)))
        })
    }

    /// Notes that the request with this sequence number was answered at `link`, and where the
    /// next response begins.
    ///
    /// The same is noted at the link where its pipeline began (`origin`), by which a request finds
    /// the way that is sent behind it without having seen the answers.
    #[inline]
    pub(crate) fn remember(
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
        let last = self.recall(hash, Meaning::Last, 0);
        let is_older = |last: u32| is_past(link, last);
        let second = last
            .and_then(|last| last.second)
            .filter(|last| is_older(*last));
        self.note_last(
            hash,
            Seen {
                note: last.map_or(seq.0, |last| last.note),
                second: second.or(Some(link)),
            },
        );
    }

    #[inline]
    pub(crate) fn note(&mut self, hash: ConnectionHash, link: u32, seen: Seen) {
        self.seen.put(
            hash.home(),
            hash.fingerprint(Meaning::Link, link),
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

    /// Notes that what waited at `link` left without an answer: a request that was pipelined behind
    /// it must not take its place.
    pub(crate) fn give_up_link(&mut self, hash: ConnectionHash, link: u32) {
        let seen = Seen {
            note: link,
            second: None,
        };
        self.seen.put(
            hash.home(),
            hash.fingerprint(Meaning::Hidden, link),
            self.now_ms(),
            seen,
        );
    }

    /// Notes that an interim response went by at `link`: the final one begins at `next`. No request
    /// is answered yet, so the note is far behind what the client sends (the response's `ack`).
    pub(crate) fn pass_by(&mut self, hash: ConnectionHash, link: u32, ack: u32, next: u32) {
        let seen = Seen {
            note: ack.wrapping_sub(PASSED_BY),
            second: Some(next),
        };
        self.seen.put(
            hash.home(),
            hash.fingerprint(Meaning::Link, link),
            self.now_ms(),
            seen,
        );
    }

    /// Whether the response at `link` was seen before: it waits, or its request was answered.
    pub(crate) fn is_answered(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        link: u32,
    ) -> bool {
        self.pending.find_response(connection, hash, link).is_some()
            || self.recall(hash, Meaning::Link, link).is_some()
            || self
                .recall(hash, Meaning::Last, 0)
                .and_then(|last| last.second)
                .is_some_and(|last| is_past(link, last))
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
