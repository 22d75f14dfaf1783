//! What the stage remembers of messages that have left the table: by this it knows retransmissions
//! and finds the way for requests that come after the answers of those before them.

use linkweir_proto::http1::{Start, classify};
use linkweir_table::Seen;
use linkweir_wire::SeqNumber;

use crate::key::{Connection, ConnectionHash, Meaning};
use crate::place::Place;
use crate::stage::HttpStage;

impl HttpStage {
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
            note: ack.wrapping_sub(1 << 30),
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
    }

    /// Whether the head that begins at `place` was seen before; counts it then.
    ///
    /// Where duplicates are kept it must be gathered all the same, for its record.
    pub(crate) fn count_if_retransmitted(&mut self, place: &Place, bytes: &[u8]) -> bool {
        if self.keep_duplicates {
            return false;
        }
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
                let is_awaited = self
                    .pending
                    .find_leader(&connection, hash, place.seq.0)
                    .is_some();
                let is_known = !is_awaited && self.is_answered(&connection, hash, place.seq.0);
                self.output.stats.retransmitted_responses += u64::from(is_known);
                is_known
            }
            Start::Unsure | Start::Neither => false,
        }
    }
}
