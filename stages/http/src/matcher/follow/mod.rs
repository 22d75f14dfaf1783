//! Pipelines that are followed: several requests of a connection wait at once, and where a path loses or
//! reorders segments their numbers alone do not tell which response is whose.
//!
//! From the second request on, both directions of such a connection are read in their order ([`Stream`]), and
//! the n-th response answers the n-th request (RFC 9112 sec. 9.3.2). That ends with the connection, or where
//! the order is lost: with a gap that is not filled, with bytes that are not a message where one is due, with a
//! body that lasts until the connection closes. Then the numbers count again, as for all other traffic.

use linkweir_proto::http1::classify;
use linkweir_record::HttpBatch;
use linkweir_table::Id;
use linkweir_wire::SeqNumber;

use crate::key::{Connection, ConnectionHash, Meaning};
use crate::matcher::Matcher;
use crate::matcher::request::Spot;
use crate::reach::SHORTEST;
use crate::seen::Seen;
use crate::segment::Place;
use crate::segment::Segment;
use crate::watch::{Gone, Next, Stream};

mod early;
mod read;

/// The turn of the first request: one that comes late may be before it.
const FIRST_TURN: u32 = 1 << 16;

/// The order of a stream is lost.
#[derive(Debug)]
struct Lost;

/// The part of a segment from `offset` on.
fn rest_of<'a>(segment: &Segment<'a>, offset: usize) -> Option<Segment<'a>> {
    let payload = segment
        .payload
        .get(offset..)
        .filter(|rest| !rest.is_empty())?;
    Some(Segment {
        seq: segment.seq_at(offset),
        payload,
        payload_len: segment
            .payload_len
            .saturating_sub(u32::try_from(offset).unwrap_or(u32::MAX)),
        ..*segment
    })
}

impl Matcher {
    /// Follows the connection of a request at `place`. The segment it is in comes next
    /// ([`Matcher::on_followed`]); the request itself has not been taken.
    #[cold]
    pub(crate) fn begin_following(
        &mut self,
        place: &Place,
        spot: &Spot,
        hash: ConnectionHash,
        out: &mut HttpBatch,
    ) {
        self.make_room_to_follow(out);
        let (asked, answers) = (place.direction, place.direction.reversed());
        // The request that was evicted for it may have been waiting there.
        let leader = self.pending.find_leader(&asked, hash, spot.match_seq);
        let missing = self.reach.missing_before(hash, place);
        let begin = missing.filter(|_| leader.is_none()).unwrap_or(place.seq);
        let mut client = Stream::new(true, begin, FIRST_TURN);
        client.last_ack = place.ack;
        let answered = self.recall(hash, Meaning::MatchSeq, place.ack);
        client.answered = answered.map(|seen| SeqNumber(seen.note));
        if let Some(leader) = leader {
            self.begin_with(leader, hash, &mut client);
        }
        // Where the answers before it are known, the next one begins there.
        let begin = if spot.match_seq == place.ack {
            self.begin_of_answers(hash, spot.match_seq)
        } else {
            Some(spot.match_seq)
        };
        let mut server = Stream::new(
            false,
            SeqNumber(begin.unwrap_or(spot.match_seq)),
            FIRST_TURN,
        );
        if begin.is_none() {
            server.next = Next::Unknown;
        }
        self.watch.absorb(&asked, &mut client);
        self.watch.absorb(&answers, &mut server);
        self.watch.follow(asked, Box::new(client), self.now_ns);
        self.has_begun = true;
        self.take_up_answers(&mut server, &asked, out);
        self.read_late(&answers, Box::new(server), out);
    }

    fn make_room_to_follow(&mut self, out: &mut HttpBatch) {
        while self.watch.lacks_pair() {
            match self.watch.evict() {
                Some(gone) => self.on_gone(gone, out),
                None => break,
            }
        }
    }

    /// Makes the requests that wait already, the first of them `leader`, the beginning of a stream.
    fn begin_with(&mut self, leader: Id, hash: ConnectionHash, client: &mut Stream) {
        let next = client.base;
        let (mut first, mut last) = (None, None);
        self.pending.each_in_queue(leader, |begin, end, turn| {
            first = first.or(Some(begin));
            last = Some(end.unwrap_or(next));
            *turn = client.turn;
            client.turn += 1;
            client.note_start(begin);
        });
        self.pending.file_followed(leader, hash);
        let (Some(first), Some(last)) = (first, last) else {
            return;
        };
        client.base = first;
        // Less than a request in between is none.
        if !(0..SHORTEST).contains(&(next - last)) {
            client.next_seq = last;
        }
    }

    /// A segment of a connection that is followed.
    #[cold]
    pub(crate) fn on_followed(&mut self, segment: &Segment<'_>, out: &mut HttpBatch) {
        let has_begun = std::mem::take(&mut self.has_begun);
        self.advance(segment.ts_ns, out);
        let direction = segment.direction;
        let Some(mut stream) = self.watch.take_stream(&direction) else {
            // It has just ended.
            let may_follow = std::mem::take(&mut self.may_follow);
            self.read_alone(segment, out);
            self.may_follow = may_follow;
            return;
        };
        if stream.is_foreign(segment) {
            return self.end_following(&direction, stream, Some(*segment), out);
        }
        let offset_of = |stream: &Stream, segment: &Segment<'_>| {
            usize::try_from(stream.next_seq - segment.seq).unwrap_or(0)
        };
        // What it begins behind in the same segment has not come again.
        let begun = (has_begun && !segment.seq.before(stream.base))
            .then(|| rest_of(segment, offset_of(&stream, segment)))
            .flatten();
        let segment = begun.as_ref().unwrap_or(segment);
        if let Err(Lost) = self.read_in_order(&mut stream, segment, out) {
            let offset = offset_of(&stream, segment);
            let rest = rest_of(segment, offset);
            return self.end_following(&direction, stream, rest, out);
        }
        let acked = segment.has_ack.then_some(SeqNumber(segment.ack));
        self.read_late(&direction, stream, out);
        if let Some(acked) = acked {
            self.pass_gap(&direction.reversed(), acked, segment.ts_ns, out);
        }
    }

    /// The receiver of a stream has what is before `acked`, so a gap before that will not be filled here any
    /// more.
    fn pass_gap(
        &mut self,
        direction: &Connection,
        acked: SeqNumber,
        now_ns: u64,
        out: &mut HttpBatch,
    ) {
        let Some(stream) = self.watch.stream_mut(direction) else {
            return;
        };
        let Some(behind) = stream.lost_before(acked, now_ns) else {
            return;
        };
        // Where a message was due that will not be seen, those behind it are not its answers.
        let is_lost = stream.next != Next::Unknown;
        if !is_lost {
            stream.next_seq = behind;
        }
        let Some(stream) = self.watch.take_stream(direction) else {
            return;
        };
        if is_lost {
            self.end_following(direction, stream, None, out);
        } else {
            self.read_late(direction, stream, out);
        }
    }

    /// Reads what has waited in a stream and is due, and goes on following it.
    fn read_late(&mut self, direction: &Connection, mut stream: Box<Stream>, out: &mut HttpBatch) {
        let mut bytes = Vec::new();
        while let Some(late) = self
            .watch
            .next_segment(direction, &mut stream, false, &mut bytes)
        {
            if self.read_in_order(&mut stream, &late, out).is_err() {
                let offset = usize::try_from(stream.next_seq - late.seq).unwrap_or(0);
                let rest = rest_of(&late, offset);
                return self.end_following(direction, stream, rest, out);
            }
        }
        self.watch.follow(*direction, stream, self.now_ns);
    }
}

/// The connection of a stream in `direction`, client first.
fn connection_of(direction: &Connection, stream: &Stream) -> Connection {
    if stream.is_client {
        *direction
    } else {
        direction.reversed()
    }
}

impl Matcher {
    /// Something is no longer watched.
    pub(crate) fn on_gone(&mut self, gone: Gone, out: &mut HttpBatch) {
        match gone {
            Gone::Head(head) => self.on_partial(head, out),
            Gone::Start => {}
            Gone::Stream(direction, stream) => self.end_following(&direction, stream, None, out),
        }
    }

    /// Lets the numbers count again for a connection of which `stream` is one direction; `rest` is what was
    /// not read of a segment.
    fn end_following(
        &mut self,
        direction: &Connection,
        mut stream: Box<Stream>,
        rest: Option<Segment<'_>>,
        out: &mut HttpBatch,
    ) {
        let may_follow = std::mem::take(&mut self.may_follow);
        let mut peer = self.watch.take_stream(&direction.reversed());
        self.watch.forget(direction);
        self.watch.forget(&direction.reversed());
        let connection = connection_of(direction, &stream);
        self.end_head(&mut stream, out);
        let mut next = (!stream.is_client).then(|| Answers::of(&stream));
        if let Some(peer) = &mut peer {
            self.end_head(peer, out);
            if !peer.is_client {
                next = Some(Answers::of(peer));
            }
        }
        let answers = next.unwrap_or_default();
        self.end_queue(&connection, answers, out);
        let client = if stream.is_client {
            Some(&mut stream)
        } else {
            peer.as_mut()
        };
        if let Some(client) = client {
            self.give_up_gap(&connection, client, answers, out);
        }
        if let Some(rest) = rest {
            self.read_alone(&rest, out);
        }
        let mut bytes = Vec::new();
        while let Some(late) = self
            .watch
            .next_segment(direction, &mut stream, true, &mut bytes)
        {
            self.read_alone(&late, out);
        }
        if let Some(peer) = &mut peer {
            let other = direction.reversed();
            while let Some(late) = self.watch.next_segment(&other, peer, true, &mut bytes) {
                self.read_alone(&late, out);
            }
        }
        self.release_bodies(out);
        if self.behind_gap.take().is_some()
            && let Some((_, next)) = answers.next
        {
            self.note_seen(ConnectionHash::new(self.seed, &connection), next.0);
        }
        self.may_follow = may_follow;
    }

    /// Where requests of a client's stream are missing, those behind them wait for nothing: it is unknown which
    /// of the responses, from the first without a request on, are theirs.
    fn give_up_gap(
        &mut self,
        connection: &Connection,
        client: &mut Stream,
        answers: Answers,
        out: &mut HttpBatch,
    ) {
        let Some((ack, end)) = client.gap() else {
            return;
        };
        if SeqNumber(client.last_ack).before(SeqNumber(ack)) {
            // It was sent when the client had answers to those before it, and waits by its number.
            return;
        }
        let hash = ConnectionHash::new(self.seed, connection);
        let note = client.next_seq.0.wrapping_sub(1);
        for (_, match_seq) in client.unasked.drain(..) {
            self.note(hash, match_seq, Seen { note, second: None });
            if let Some(id) = self.pending.find_response(connection, hash, match_seq)
                && let Some((response, _)) = self.pending.remove(id)
            {
                self.give_up(response, out);
            }
        }
        if let Some((_, next)) = answers.next {
            self.give_up_match(hash, next.0);
            self.reach.note(hash, end.0, next.0);
        }
        self.behind_gap = Some(ack);
    }

    /// The requests of a pipeline wait by their numbers again: where the next response begins, if that is
    /// known, or where a later one does, if they acknowledge what came before that.
    fn end_queue(&mut self, connection: &Connection, answers: Answers, out: &mut HttpBatch) {
        let Answers { next, last } = answers;
        let hash = ConnectionHash::new(self.seed, connection);
        let mut at = self.pending.find_followed(connection, hash);
        let mut match_seqs: Vec<u32> = Vec::new();
        let mut due = next.map(|(turn, _)| turn);
        while let Some(id) = at {
            let Some((mut waiting, follower)) = self.pending.remove(id) else {
                break;
            };
            at = follower;
            let turn = waiting.turn();
            // Behind one that is missing it is unknown whose response comes.
            due = due.filter(|due| turn == Some(*due));
            let here = next.filter(|_| due.is_some());
            due = due.map(|due| due.saturating_add(1));
            let origin = waiting.origin();
            let here_or_last = next.map(|(_, here)| here).or(last);
            let is_later = here_or_last.is_none_or(|at| at.before(SeqNumber(origin)));
            let match_seq = match here {
                Some((_, here)) if !is_later => Some(here.0),
                // Of those with this number none before it may be missing.
                _ if self.recall(hash, Meaning::Hidden, origin).is_some() => None,
                _ => Some(origin).filter(|_| is_later),
            };
            waiting.stand_alone();
            waiting.match_seq = match_seq.unwrap_or(origin);
            let there = match_seq
                .and_then(|match_seq| self.pending.find_leader(connection, hash, match_seq));
            let inserted = match there {
                Some(leader) => self.pending.insert_behind(leader, hash, waiting),
                None => self.pending.insert(hash, waiting),
            };
            match inserted {
                Ok(id) if match_seq.is_none() => self.pending.hide(id, hash),
                Ok(_) => {
                    match_seqs.extend(match_seq.filter(|one| !match_seqs.contains(one)));
                }
                Err(refused) => self.give_up(refused, out),
            }
        }
        for match_seq in match_seqs {
            if let Some(leader) = self.pending.find_leader(connection, hash, match_seq) {
                self.relocate(connection, hash, leader, Some(match_seq), out);
            }
        }
        if let Some((_, seq)) = next {
            self.watch
                .expect_start(connection.reversed(), seq, self.now_ns);
        }
    }

    /// What is there of a head that was coming counts.
    fn end_head(&mut self, stream: &mut Stream, out: &mut HttpBatch) {
        let Some(mut head) = stream.head.take() else {
            return;
        };
        head.set_turn(stream.turn);
        stream.note_start(head.place().seq);
        stream.turn += 1;
        stream.next = Next::Unknown;
        self.on_partial(head, out);
    }

    /// A segment as that of any connection.
    fn read_alone(&mut self, segment: &Segment<'_>, out: &mut HttpBatch) {
        let (from, to) = (segment.direction.client.1, segment.direction.server.1);
        let mut relevance = crate::segment::Relevance::Irrelevant;
        if self.watch.watches(from, to) && self.on_watched(segment, &mut relevance, out) {
            return;
        }
        self.on_messages(segment, 0, classify(segment.payload), out);
    }
}

/// What is known of a stream of responses.
#[derive(Debug, Clone, Copy, Default)]
struct Answers {
    /// The turn of the next one and where it begins.
    next: Option<(u32, SeqNumber)>,
    /// Where the last one begins.
    last: Option<SeqNumber>,
}

impl Answers {
    fn of(stream: &Stream) -> Self {
        let is_known = stream.next == Next::Message && stream.behind_body.is_none();
        Self {
            next: is_known.then_some((stream.turn, stream.next_seq)),
            last: stream.starts.back().copied(),
        }
    }
}
