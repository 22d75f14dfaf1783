//! Messages that wait for their counterpart.
//!
//! One entry a message, found by connection and link (Eq. 2). Pipelined requests have the same
//! link; they stand in a queue behind the one that was sent first, and the queue moves to the link
//! of the next response as each is answered.

use linkweir_table::{Chain, Id, Table};
use linkweir_wire::SeqNumber;

use crate::key::{Connection, ConnectionHash, Meaning};
use crate::place::Place;

mod followed;

pub(crate) use followed::NO_TURN;

/// Requests that may wait behind one another at one link (Zeek's limit is 100).
pub const MAX_PIPELINE: u32 = 256;

/// Two messages that are further apart than a day, though the capture was not that long in between:
/// a clock is wrong, and says nothing.
const CLOCK_FAULT_NS: u64 = 86_400_000_000_000;

/// A message in the table.
#[derive(Debug)]
pub struct Waiting {
    /// The connection, client first.
    pub connection: Connection,
    /// The number that both halves share.
    pub link: u32,
    /// Time of its first packet, nanoseconds.
    pub ts_ns: u64,
    /// Time of the last change, never falling, nanoseconds: the order of leaving.
    pub changed_ns: u64,
    /// Time of the last change by the packet's own clock: what a counterpart's time is compared to,
    /// so that it does not matter which other packets the stage sees.
    pub packet_ns: u64,
    /// Texts, one after the other.
    pub text: Chain,
    /// Head and declared body.
    pub bytes: Option<u64>,
    /// Outermost VLAN id.
    pub vlan: Option<u16>,
    /// HTTP minor version.
    pub minor: u8,
    /// Times it was seen again.
    pub retransmissions: u16,
    /// What it is.
    pub half: Half,
}

impl Waiting {
    /// The sequence number of a request; of a response, its link.
    #[must_use]
    pub const fn request_seq(&self) -> SeqNumber {
        match &self.half {
            Half::Request(request) => request.seq,
            Half::Response(_) => SeqNumber(self.link),
        }
    }

    /// Which request of a followed pipeline it is.
    #[must_use]
    pub const fn turn(&self) -> Option<u32> {
        match &self.half {
            Half::Request(request) if request.turn > 0 => Some(request.turn),
            _ => None,
        }
    }

    /// Taken out of a queue, it is of no pipeline any more.
    pub(crate) const fn stand_alone(&mut self) {
        if let Half::Request(request) = &mut self.half {
            request.turn = 0;
            request.leads = true;
            (request.behind, request.before, request.last) = (None, None, None);
            request.followers = 0;
        }
    }

    /// The link at which the pipeline of a request began; of a response, its own.
    #[must_use]
    pub const fn origin(&self) -> u32 {
        match &self.half {
            Half::Request(request) => request.origin,
            Half::Response(_) => self.link,
        }
    }
}

/// Which half of a transaction an entry is, with what only that half has.
#[derive(Debug)]
pub enum Half {
    /// A request.
    Request(WaitingRequest),
    /// A final response that came before its request, or without one.
    Response(WaitingResponse),
}

/// What is kept of a request.
#[derive(Debug)]
pub struct WaitingRequest {
    /// Sequence number of its first byte.
    pub seq: SeqNumber,
    /// Its acknowledgment number: the link at which its pipeline began.
    pub origin: u32,
    /// Interim responses so far.
    pub interim_responses: u16,
    /// Lengths of method, target and host in the text; the agent is the rest.
    pub lens: [u16; 3],
    /// Whether it came on a SYN, without an acknowledgment number (RFC 7413).
    pub on_syn: bool,
    /// Which request of a followed pipeline it is; 0: of none.
    turn: u32,
    /// Whether it is the one that the next response answers.
    leads: bool,
    /// The request behind it.
    behind: Option<Id>,
    /// The request before it.
    before: Option<Id>,
    /// Of a leader: the last of its queue and how many follow.
    last: Option<Id>,
    followers: u32,
}

impl WaitingRequest {
    /// A request that stands alone.
    #[must_use]
    pub(crate) fn new(place: &Place, lens: [u16; 3]) -> Self {
        Self {
            turn: place.standing.turn().unwrap_or(0),
            seq: place.seq,
            origin: place.ack,
            interim_responses: 0,
            lens,
            on_syn: !place.has_ack,
            leads: true,
            behind: None,
            before: None,
            last: None,
            followers: 0,
        }
    }
}

impl WaitingResponse {
    /// Whether the server had seen a request that begins at `seq` when it sent this.
    #[must_use]
    pub fn acknowledges(&self, seq: SeqNumber) -> bool {
        self.ack.is_none_or(|ack| seq.before(ack))
    }
}

/// What is kept of a response.
#[derive(Debug, Clone, Copy)]
pub struct WaitingResponse {
    /// The sequence number after the segment in which its head ended.
    pub seen_to: SeqNumber,
    /// Time of that segment, nanoseconds.
    pub seen_ns: u64,
    /// Its acknowledgment number: it answers no request from there on.
    pub ack: Option<SeqNumber>,
    /// Status code.
    pub status_code: u16,
    /// Length of the reason phrase in the text; the content type is the rest.
    pub reason_len: u16,
    /// Bytes of the head.
    pub head_len: u32,
    /// `Content-Length`.
    pub content_length: Option<u64>,
    /// Whether the body is chunked; and its length where it was all in the segment.
    pub chunked: bool,
    /// Length of a chunked body that was seen whole.
    pub chunked_len: Option<u32>,
}

/// The table of waiting messages.
#[derive(Debug)]
pub struct Pending {
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
    #[must_use]
    pub fn new(capacity: usize, timeout_ns: u64) -> Self {
        Self {
            table: Table::with_capacity(capacity),
            packet_ns: 0,
            timeout_ns,
        }
    }

    /// Messages in the table.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.table.len()
    }

    /// Messages at most.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// Whether nothing waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Whether no more fits.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.table.is_full()
    }

    /// From now on only what has not timed out at `packet_ns` is found.
    #[inline]
    pub const fn set_time(&mut self, packet_ns: u64) {
        self.packet_ns = packet_ns;
    }

    /// The message that changed longest ago.
    #[must_use]
    pub fn oldest(&self) -> Option<(Id, &Waiting)> {
        self.table.oldest()
    }

    /// A message by its id.
    #[inline]
    #[must_use]
    pub fn get(&self, id: Id) -> Option<&Waiting> {
        self.table.get(id)
    }

    /// A message by its id.
    #[inline]
    pub fn get_mut(&mut self, id: Id) -> Option<&mut Waiting> {
        self.table.get_mut(id)
    }

    #[inline]
    const fn is_overdue(&self, waiting: &Waiting) -> bool {
        let waited = self.packet_ns.saturating_sub(waiting.packet_ns);
        waited >= self.timeout_ns && waited < CLOCK_FAULT_NS
    }

    /// What waits at a link and has not timed out.
    #[inline]
    fn find(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        link: u32,
        is_wanted: impl Fn(&Half) -> bool,
    ) -> Option<Id> {
        self.table
            .find(low(hash.with(Meaning::Link, link)), |waiting| {
                waiting.link == link
                    && !self.is_overdue(waiting)
                    && waiting.connection == *connection
                    && is_wanted(&waiting.half)
            })
    }

    /// Whether anything waits at a link: for most requests nothing does, and one look-up says so.
    #[inline]
    pub(crate) fn is_waited_at(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        link: u32,
    ) -> bool {
        self.find(connection, hash, link, |_| true).is_some()
    }

    /// The request that the next response at a link answers.
    #[inline]
    pub fn find_leader(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        link: u32,
    ) -> Option<Id> {
        self.find(
            connection,
            hash,
            link,
            |half| matches!(half, Half::Request(request) if request.leads),
        )
    }

    /// The response that waits at a link.
    #[inline]
    pub fn find_response(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        link: u32,
    ) -> Option<Id> {
        self.find(connection, hash, link, |half| {
            matches!(half, Half::Response(_))
        })
    }

    /// The response at a link to a request that begins at `seq`: one that acknowledges it.
    #[inline]
    pub fn find_answer(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
        link: u32,
        seq: SeqNumber,
    ) -> Option<Id> {
        self.find(
            connection,
            hash,
            link,
            |half| matches!(half, Half::Response(response) if response.acknowledges(seq)),
        )
    }

    /// The request with this sequence number, wherever in the queue of `leader` it stands.
    #[must_use]
    pub fn in_queue(&self, leader: Option<Id>, seq: SeqNumber) -> Option<Id> {
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

    /// Adds a message that stands alone at its link.
    ///
    /// # Errors
    /// Gives it back when the table is full.
    #[expect(
        clippy::result_large_err,
        reason = "the message moves either way; the error path is rare"
    )]
    pub fn insert(&mut self, hash: ConnectionHash, waiting: Waiting) -> Result<Id, Waiting> {
        self.table
            .insert(low(hash.with(Meaning::Link, waiting.link)), waiting)
    }

    /// Adds a request to the queue of `leader`, in the order of sequence numbers.
    ///
    /// # Errors
    /// Gives it back when the table or the queue is full.
    #[expect(
        clippy::result_large_err,
        reason = "the message moves either way; the error path is rare"
    )]
    pub fn insert_behind(
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
        let link_hash = low(hash.with(Meaning::Link, waiting.link));
        let id = self.table.insert(link_hash, waiting)?;
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
    /// a follower is not found by its link.
    pub fn remove(&mut self, id: Id) -> Option<(Waiting, Option<Id>)> {
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

    /// Files a leader, and with it its queue, under another link.
    pub fn move_to(&mut self, id: Id, hash: ConnectionHash, link: u32) {
        self.table.rehash(id, low(hash.with(Meaning::Link, link)));
        if let Some(waiting) = self.table.get_mut(id) {
            waiting.link = link;
        }
    }

    /// Files a leader, and with it its queue, where no response finds it.
    pub fn hide(&mut self, id: Id, hash: ConnectionHash) {
        let link = self.get(id).map_or(0, |waiting| waiting.link);
        self.table.rehash(id, low(hash.with(Meaning::Hidden, link)));
        if let Some(request) = self.request_mut(id) {
            request.leads = false;
        }
    }

    /// Something happened to a message: its timeout starts anew.
    pub fn touch(&mut self, id: Id, now_ns: u64) {
        self.table.refresh(id);
        let packet_ns = self.packet_ns;
        if let Some(waiting) = self.table.get_mut(id) {
            waiting.changed_ns = now_ns;
            waiting.packet_ns = packet_ns;
        }
    }

    /// Puts the queue of `first` before that of `second`, which waits at the same link; where both
    /// are too long together, `second` is hidden.
    pub fn join(&mut self, first: Id, second: Id, hash: ConnectionHash) {
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
}
