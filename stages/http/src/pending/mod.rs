//! Messages that wait for their counterpart.
//!
//! One entry a message, found by connection and match number (Eq. 2). Pipelined requests have the same
//! match number; they stand in a queue behind the one that was sent first, and the queue moves to the match number
//! of the next response as each is answered. The requests of a pipeline that is followed are known by their turn, not by
//! a match number.

use linkweir_table::{Id, Table};
use linkweir_wire::SeqNumber;

use crate::key::{Connection, ConnectionHash, Meaning};

mod waiting;

pub(crate) use waiting::{Half, Waiting, WaitingRequest, WaitingResponse};

/// Requests that may wait behind one another at one match number (Zeek's limit is 100).
pub(crate) const MAX_PIPELINE: u32 = 256;

/// Two messages that are further apart than a day, though the capture was not that long in between:
/// a clock is wrong, and says nothing.
const CLOCK_FAULT_NS: u64 = 86_400_000_000_000;

/// The turn of a request that has come before others which are before it: it is not known yet.
pub(crate) const NO_TURN: u32 = u32::MAX;

/// The table of waiting messages.
#[derive(Debug)]
pub(crate) struct Pending {
    table: Table<Waiting>,
    /// Time of the message at hand.
    packet_ns: u64,
    /// What changed so much before it has timed out, though it may still be here.
    timeout_ns: u64,
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the table takes the low half of the hash"
)]
const fn low(hash: u64) -> u32 {
    hash as u32
}

impl Pending {
    /// A table for `capacity` messages that find their counterparts within `timeout_ns`.
    pub(crate) fn new(capacity: usize, timeout_ns: u64) -> Self {
        Self {
            table: Table::with_capacity(capacity),
            packet_ns: 0,
            timeout_ns,
        }
    }

    /// Messages in the table.
    pub(crate) const fn len(&self) -> usize {
        self.table.len()
    }

    /// Messages at most.
    pub(crate) const fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// Whether nothing waits.
    pub(crate) const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Whether no more fits.
    pub(crate) const fn is_full(&self) -> bool {
        self.table.is_full()
    }

    /// From now on only what has not timed out at `packet_ns` is found.
    #[inline]
    pub(crate) const fn set_time(&mut self, packet_ns: u64) {
        self.packet_ns = packet_ns;
    }

    /// The message that changed longest ago.
    pub(crate) fn oldest(&self) -> Option<(Id, &Waiting)> {
        self.table.oldest()
    }

    /// A message by its id.
    #[inline]
    pub(crate) fn get(&self, id: Id) -> Option<&Waiting> {
        self.table.get(id)
    }

    /// A message by its id.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut Waiting> {
        self.table.get_mut(id)
    }

    #[inline]
    const fn is_overdue(&self, waiting: &Waiting) -> bool {
        let waited = self.packet_ns.saturating_sub(waiting.packet_ns);
        waited >= self.timeout_ns && waited < CLOCK_FAULT_NS
    }

    /// What waits at a match number and has not timed out.
    #[inline]
    fn find(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        match_seq: u32,
        is_wanted: impl Fn(&Half) -> bool,
    ) -> Option<Id> {
        self.table
            .find(low(hash.with(Meaning::MatchSeq, match_seq)), |waiting| {
                waiting.match_seq == match_seq
                    && !self.is_overdue(waiting)
                    && waiting.connection == *connection
                    && is_wanted(&waiting.half)
            })
    }

    /// Whether anything waits at a match number: for most requests nothing does, and one look-up says so.
    #[inline]
    pub(crate) fn is_waited_at(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        match_seq: u32,
    ) -> bool {
        self.find(connection, hash, match_seq, |_| true).is_some()
    }

    /// The request that the next response at a match number answers.
    #[inline]
    pub(crate) fn find_leader(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        match_seq: u32,
    ) -> Option<Id> {
        self.find(
            connection,
            hash,
            match_seq,
            |half| matches!(half, Half::Request(request) if request.leads),
        )
    }

    /// The response that waits at a match number.
    #[inline]
    pub(crate) fn find_response(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        match_seq: u32,
    ) -> Option<Id> {
        self.find(connection, hash, match_seq, |half| {
            matches!(half, Half::Response(_))
        })
    }

    /// The response at a match number to a request that begins at `seq`: one that acknowledges it.
    #[inline]
    pub(crate) fn find_answer(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        match_seq: u32,
        seq: SeqNumber,
    ) -> Option<Id> {
        self.find(
            connection,
            hash,
            match_seq,
            |half| matches!(half, Half::Response(response) if response.acknowledges(seq)),
        )
    }

    /// The request with this sequence number, wherever in the queue of `leader` it stands.
    pub(crate) fn in_queue(&self, leader: Option<Id>, seq: SeqNumber) -> Option<Id> {
        let mut at = leader;
        for _ in 0..=MAX_PIPELINE {
            let request = self.request(at?)?;
            if request.seq == seq {
                return at;
            }
            at = request.behind;
        }
        None
    }

    /// Adds a message that stands alone at its match number.
    ///
    /// # Errors
    /// Gives it back when the table is full.
    #[expect(
        clippy::result_large_err,
        reason = "the message moves either way; the error path is rare"
    )]
    pub(crate) fn insert(&mut self, hash: ConnectionHash, waiting: Waiting) -> Result<Id, Waiting> {
        self.table.insert(
            low(hash.with(Meaning::MatchSeq, waiting.match_seq)),
            waiting,
        )
    }

    /// Adds a request to the queue of `leader`, in the order of sequence numbers.
    ///
    /// # Errors
    /// Gives it back when the table or the queue is full.
    #[expect(
        clippy::result_large_err,
        reason = "the message moves either way; the error path is rare"
    )]
    pub(crate) fn insert_behind(
        &mut self,
        leader: Id,
        hash: ConnectionHash,
        waiting: Waiting,
    ) -> Result<Id, Waiting> {
        let Half::Request(new) = &waiting.half else {
            return Err(waiting);
        };
        let Some(lead) = self.request(leader) else {
            return Err(waiting);
        };
        if lead.followers >= MAX_PIPELINE {
            return Err(waiting);
        }
        let seq = new.seq;
        // Mostly it is the newest; else walk back from the last to what was sent before it.
        let mut previous = lead.last.or(Some(leader));
        while let Some(at) = previous {
            let Some(request) = self.request(at) else {
                break;
            };
            if !seq.before(request.seq) {
                break;
            }
            previous = request.before;
        }
        let table_hash = low(hash.with(Meaning::MatchSeq, waiting.match_seq));
        let id = self.table.insert(table_hash, waiting)?;
        match previous {
            Some(previous) => self.splice_behind(leader, previous, id),
            None => self.splice_before(leader, id),
        }
        Ok(id)
    }

    fn request(&self, id: Id) -> Option<&WaitingRequest> {
        match &self.get(id)?.half {
            Half::Request(request) => Some(request),
            Half::Response(_) => None,
        }
    }

    fn request_mut(&mut self, id: Id) -> Option<&mut WaitingRequest> {
        match &mut self.get_mut(id)?.half {
            Half::Request(request) => Some(request),
            Half::Response(_) => None,
        }
    }

    fn splice_behind(&mut self, leader: Id, previous: Id, id: Id) {
        let after = self
            .request_mut(previous)
            .and_then(|p| p.behind.replace(id));
        if let Some(request) = self.request_mut(id) {
            request.leads = false;
            request.before = Some(previous);
            request.behind = after;
        }
        match after {
            Some(after) => {
                if let Some(request) = self.request_mut(after) {
                    request.before = Some(id);
                }
            }
            None => {
                if let Some(request) = self.request_mut(leader) {
                    request.last = Some(id);
                }
            }
        }
        if let Some(request) = self.request_mut(leader) {
            request.followers += 1;
        }
    }

    /// `id` was sent before the leader: it leads now.
    fn splice_before(&mut self, leader: Id, id: Id) {
        let (last, followers) = match self.request_mut(leader) {
            Some(old) => {
                old.leads = false;
                old.before = Some(id);
                (
                    old.last.take().or(Some(leader)),
                    std::mem::take(&mut old.followers) + 1,
                )
            }
            None => return,
        };
        if let Some(request) = self.request_mut(id) {
            request.behind = Some(leader);
            request.last = last;
            request.followers = followers;
        }
    }

    /// Takes a message out; where it led a queue, the next one leads.
    ///
    /// Returns the message and the new leader, which the caller files with [`Pending::move_to`]:
    /// a follower is not found by its match number.
    pub(crate) fn remove(&mut self, id: Id) -> Option<(Waiting, Option<Id>)> {
        let waiting = self.table.remove(id)?;
        let Half::Request(gone) = &waiting.half else {
            return Some((waiting, None));
        };
        let next = gone.behind;
        if gone.leads {
            if let Some(request) = next.and_then(|next| self.request_mut(next)) {
                request.leads = true;
                request.before = None;
                request.last = gone.last.filter(|last| Some(*last) != next);
                request.followers = gone.followers.saturating_sub(1);
            }
            return Some((waiting, next));
        }
        if let Some(request) = gone.before.and_then(|before| self.request_mut(before)) {
            request.behind = next;
        }
        if let Some(request) = next.and_then(|next| self.request_mut(next)) {
            request.before = gone.before;
        }
        self.shorten_queue(gone.before, next);
        Some((waiting, None))
    }

    /// A follower left from between `before` and `next`: tell the leader.
    fn shorten_queue(&mut self, before: Option<Id>, next: Option<Id>) {
        let mut at = before;
        while let Some(id) = at {
            let Some(request) = self.request_mut(id) else {
                return;
            };
            if request.leads {
                request.followers = request.followers.saturating_sub(1);
                if next.is_none() {
                    request.last = before.filter(|last| *last != id);
                }
                return;
            }
            at = request.before;
        }
    }

    /// Files a leader, and with it its queue, under another match number.
    pub(crate) fn move_to(&mut self, id: Id, hash: ConnectionHash, match_seq: u32) {
        self.table
            .rehash(id, low(hash.with(Meaning::MatchSeq, match_seq)));
        if let Some(waiting) = self.table.get_mut(id) {
            waiting.match_seq = match_seq;
        }
    }

    /// Files a leader, and with it its queue, where no response finds it.
    pub(crate) fn hide(&mut self, id: Id, hash: ConnectionHash) {
        let match_seq = self.get(id).map_or(0, |waiting| waiting.match_seq);
        self.table
            .rehash(id, low(hash.with(Meaning::Hidden, match_seq)));
        if let Some(request) = self.request_mut(id) {
            request.leads = false;
        }
    }

    /// Something happened to a message: its timeout starts anew.
    pub(crate) fn touch(&mut self, id: Id, now_ns: u64) {
        self.table.refresh(id);
        let packet_ns = self.packet_ns;
        if let Some(waiting) = self.table.get_mut(id) {
            waiting.changed_ns = now_ns;
            waiting.packet_ns = packet_ns;
        }
    }

    /// Puts the queue of `first` before that of `second`, which waits at the same match number; where both
    /// are too long together, `second` is hidden.
    pub(crate) fn join(&mut self, first: Id, second: Id, hash: ConnectionHash) {
        let Some((last, followers)) = self
            .request(first)
            .map(|r| (r.last.unwrap_or(first), r.followers))
        else {
            return;
        };
        let more = self.request(second).map_or(0, |request| request.followers);
        if followers + more >= MAX_PIPELINE {
            return self.hide(second, hash);
        }
        let Some((tail, more)) = self.request_mut(second).map(|request| {
            request.leads = false;
            request.before = Some(last);
            (
                request.last.take().unwrap_or(second),
                std::mem::take(&mut request.followers),
            )
        }) else {
            return;
        };
        if let Some(request) = self.request_mut(last) {
            request.behind = Some(second);
        }
        if let Some(request) = self.request_mut(first) {
            request.last = Some(tail);
            request.followers = followers.saturating_add(more).saturating_add(1);
        }
    }

    /// Files a request as one of a pipeline that is followed.
    pub(crate) fn file_followed(&mut self, id: Id, hash: ConnectionHash) {
        self.table.rehash(id, low(hash.with(Meaning::Followed, 0)));
    }

    /// The request of a followed pipeline that has waited longest.
    pub(crate) fn find_followed(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
    ) -> Option<Id> {
        self.table
            .find(low(hash.with(Meaning::Followed, 0)), |waiting| {
                waiting.connection == *connection
                    && waiting.turn().is_some()
                    && matches!(&waiting.half, Half::Request(request) if request.leads)
            })
    }

    /// Does something to the requests of a queue, in their order: where each begins, where it ends if that is
    /// known, and its turn.
    pub(crate) fn each_in_queue(
        &mut self,
        leader: Id,
        mut each: impl FnMut(SeqNumber, Option<SeqNumber>, &mut u32),
    ) {
        let mut at = Some(leader);
        for _ in 0..=MAX_PIPELINE {
            let Some(id) = at else {
                return;
            };
            let bytes = self.get(id).and_then(|waiting| waiting.bytes);
            let Some(request) = self.request_mut(id) else {
                return;
            };
            let end = bytes
                .and_then(|bytes| u32::try_from(bytes).ok())
                .map(|bytes| SeqNumber(request.seq.0.wrapping_add(bytes)));
            each(request.seq, end, &mut request.turn);
            at = request.behind;
        }
    }
}
