//! Responses that came before their requests, or before their connection was followed.

use linkweir_record::HttpBatch;
use linkweir_table::Id;
use linkweir_wire::SeqNumber;

use crate::halves::{after, body_length};
use crate::key::{Connection, ConnectionHash, Meaning};
use crate::matcher::Matcher;
use crate::matcher::memory::is_passed_by;
use crate::pending::{Half, MAX_PIPELINE};
use crate::watch::{Next, Stream};

impl Matcher {
    /// A response at `match_seq` waits for a request that is still missing: the server has it, as `ack` says.
    pub(super) fn wait_for_turn(
        &mut self,
        stream: &mut Stream,
        connection: &Connection,
        match_seq: SeqNumber,
        ack: Option<u32>,
    ) {
        if let Some(client) = self.watch.stream_mut(connection)
            && ack.is_some_and(|ack| client.next_seq.before(SeqNumber(ack)))
            && client.unasked.len() < MAX_PIPELINE as usize
        {
            client.unasked.push_back((stream.turn, match_seq.0));
            stream.turn += 1;
        }
    }

    /// Responses that came before their connection was followed take their turns where these are due.
    pub(super) fn take_up_answers(
        &mut self,
        stream: &mut Stream,
        connection: &Connection,
        out: &mut HttpBatch,
    ) {
        let hash = ConnectionHash::new(self.seed, connection);
        for _ in 0..MAX_PIPELINE {
            if stream.is_client || stream.next != Next::Message {
                return;
            }
            let mut match_seq = stream.next_seq;
            let mut found = self.pending.find_response(connection, hash, match_seq.0);
            if let Some(behind) = stream.behind_body.filter(|_| found.is_none()) {
                found = self.pending.find_response(connection, hash, behind.0);
                match_seq = behind;
            }
            let end = match found {
                Some(id) => {
                    stream.behind_body = None;
                    stream.note_start(match_seq);
                    stream.last_match_seq = Some(match_seq.0);
                    self.take_up_answer(stream, hash, id, out)
                }
                None => match self.end_of_interim(connection, hash, match_seq) {
                    Some(end) => Some(end),
                    None => return,
                },
            };
            match end {
                Some(end) => stream.next_seq = SeqNumber(end),
                None => {
                    (stream.next, stream.next_seq) =
                        (Next::Unknown, SeqNumber(after(match_seq.0, 1, 0)));
                }
            }
        }
    }

    /// Where the interim response ends that went by at `match_seq`.
    fn end_of_interim(
        &mut self,
        connection: &Connection,
        hash: ConnectionHash,
        match_seq: SeqNumber,
    ) -> Option<u32> {
        let seen = self.recall(hash, Meaning::MatchSeq, match_seq.0)?;
        let client = self.watch.stream_mut(connection)?;
        seen.second
            .filter(|end| is_passed_by(seen.note, client.next_seq) && *end != match_seq.0)
    }

    /// A response that has waited answers the request of its turn, or waits for it. Says where it ends, if that
    /// is known.
    fn take_up_answer(
        &mut self,
        stream: &mut Stream,
        hash: ConnectionHash,
        id: Id,
        out: &mut HttpBatch,
    ) -> Option<u32> {
        let waiting = self.pending.get(id)?;
        let (connection, match_seq) = (waiting.connection, waiting.match_seq);
        let Half::Response(response) = waiting.half else {
            return None;
        };
        if let Some(first) = self.pending.find_followed(&connection, hash)
            && let Some(request) = self.pending.get(first)
            && request.turn() == Some(stream.turn)
            && response.acknowledges(request.request_seq())
        {
            stream.turn += 1;
            let (follower, next) = self.answer_waiting(first, id, hash, out)?;
            if let Some(follower) = follower {
                self.pending.touch(follower, self.now_ns);
                self.pending.file_followed(follower, hash);
            }
            return next;
        }
        let ack = response.ack.map(|ack| ack.0);
        self.wait_for_turn(stream, &connection, SeqNumber(match_seq), ack);
        let head_len = response.head_len as usize;
        let length = body_length(&response, b"")?;
        let (bare, behind) = (
            after(match_seq, head_len, 0),
            after(match_seq, head_len, length),
        );
        if bare == behind || response.chunked || response.seen_to.0 != bare {
            return Some(behind);
        }
        stream.behind_body = Some(SeqNumber(behind));
        Some(bare)
    }
}
