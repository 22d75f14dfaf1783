//! One direction of a connection: what comes next, what waits, and what its receiver has.

use super::relay::Relay;
use linkweir_engine::effect::{Answer, Ticket, Verdict};
use linkweir_wire::{SeqNumber, Timestamp};
use std::collections::VecDeque;

use super::{Ahead, Budget, Source, Unacked};

mod relayed;

/// Place of the first byte that is known: there is room before it.
const FIRST: u64 = 1 << 32;

/// A segment of the stream, as the packet has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment<'a> {
    /// The packet's number.
    pub(crate) id: u32,
    /// The packet's mark.
    pub(crate) mark: u32,
    /// Number of its first byte; of a SYN that of the byte behind.
    pub(crate) seq: SeqNumber,
    pub(crate) payload: &'a [u8],
    pub(crate) is_fin: bool,
}

impl Segment<'_> {
    fn end(&self) -> SeqNumber {
        let len = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        self.seq + len.wrapping_add(u32::from(self.is_fin))
    }
}

/// Where a segment stands in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// It takes no sequence space: an acknowledgment.
    Control,
    /// All of it was released before: a retransmission, which its receiver answers.
    Old,
    /// All of it is held: a retransmission of what has not been released.
    Held,
    /// It brings what comes next, behind this many bytes that were seen before.
    Next(usize),
    /// Something before it is missing.
    Ahead,
}

/// A segment that waits, with what it brings.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) id: u32,
    pub(crate) mark: u32,
    seq: SeqNumber,
    payload: Box<[u8]>,
    is_fin: bool,
}

impl Queued {
    pub(crate) const fn segment(&self) -> Segment<'_> {
        Segment {
            id: self.id,
            mark: self.mark,
            seq: self.seq,
            payload: &self.payload,
            is_fin: self.is_fin,
        }
    }
}

/// A packet that was delivered and waits for its verdict.
#[derive(Debug, Clone, Copy)]
struct Delivered {
    id: u32,
    mark: u32,
    /// What its receiver can read when it has this one.
    end: SeqNumber,
    /// The last scan of what that is.
    scan: Option<Ticket>,
    since: Timestamp,
}

/// What came ahead of a gap that is filled now.
#[derive(Debug)]
pub(crate) struct Readable {
    run: Vec<u8>,
    skip: usize,
    /// Whether the stream ends behind it.
    pub(crate) is_fin: bool,
}

impl Readable {
    /// The bytes that were not seen before.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.run.get(self.skip..).unwrap_or_default()
    }
}

/// One direction of a TCP connection.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Next byte for the inspector; nothing before the first segment.
    next: Option<SeqNumber>,
    /// Its place.
    next_at: u64,
    /// Next byte that its receiver can read: all before was released.
    released: SeqNumber,
    delivered: VecDeque<Delivered>,
    queue: VecDeque<Queued>,
    ahead: Ahead,
    unacked: Unacked,
    /// Bytes of memory for all of it.
    memory: usize,
    /// Whose share of the budget that is.
    source: Source,
    /// Whether the last packet waits for the next one.
    holds_last: bool,
    /// What the gateway brings itself, while it does.
    relay: Option<Box<Relay>>,
    /// Whether the end of the stream was delivered.
    pub(crate) is_finished: bool,
}

impl Stream {
    /// A stream whose first byte has this number.
    pub(crate) fn starting_at(first: SeqNumber) -> Self {
        let mut stream = Self::default();
        stream.start(first);
        stream
    }

    fn start(&mut self, first: SeqNumber) {
        self.next = Some(first);
        self.next_at = FIRST;
        self.released = first;
        self.unacked = Unacked::at(FIRST);
    }

    /// Whether it is known where the stream is.
    pub(crate) const fn is_known(&self) -> bool {
        self.next.is_some()
    }

    /// The next byte for the inspector, where it is known.
    pub(crate) const fn next(&self) -> Option<SeqNumber> {
        self.next
    }

    /// The next byte that the receiver expects, as far as it was released.
    pub(crate) const fn released(&self) -> SeqNumber {
        self.released
    }

    /// Whether a packet waits for anything.
    pub(crate) fn holds_any(&self) -> bool {
        !self.delivered.is_empty() || !self.queue.is_empty() || self.relay.is_some()
    }

    /// Whether the gateway brings to the receiver itself what comes.
    pub(crate) const fn is_relayed(&self) -> bool {
        self.relay.is_some()
    }

    /// Whether the receiver has bytes behind a gap.
    pub(crate) fn has_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Whether segments wait in the queue.
    pub(crate) fn has_queue(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The place of a number.
    fn place_of(&self, seq: SeqNumber) -> u64 {
        let from_next = self.next.map_or(0, |next| i64::from(seq - next));
        self.next_at.saturating_add_signed(from_next)
    }

    /// Where a segment stands. The first one of a stream that was picked up midstream stands next.
    pub(crate) fn place(&mut self, segment: &Segment<'_>) -> Position {
        if self.next.is_none() && (!segment.payload.is_empty() || segment.is_fin) {
            self.start(segment.seq);
        }
        self.place_now(segment)
    }

    fn place_now(&self, segment: &Segment<'_>) -> Position {
        let Some(next) = self.next else {
            return Position::Control;
        };
        if segment.payload.is_empty() && !segment.is_fin {
            return Position::Control;
        }
        let end = segment.end();
        if !end.after(next) {
            return if end.after(self.released) {
                Position::Held
            } else {
                Position::Old
            };
        }
        if segment.seq.after(next) {
            return Position::Ahead;
        }
        Position::Next(usize::try_from(next - segment.seq).unwrap_or(0))
    }

    /// Whether a segment begins before the first byte that is known.
    pub(crate) fn begins_before(&self, segment: &Segment<'_>) -> bool {
        self.is_known() && !segment.payload.is_empty() && self.place_of(segment.seq) < FIRST
    }

    /// Whether a segment brings other bytes than one before it in the same place, as far as that is kept.
    pub(crate) fn differs(&self, segment: &Segment<'_>) -> bool {
        if self.next.is_none() {
            return false;
        }
        let at = self.place_of(segment.seq);
        self.unacked.differs(at, segment.payload)
            || !self.ahead.is_empty() && self.ahead.differs(at, segment.payload, segment.is_fin)
    }

    /// Whether a segment lies in the queue already.
    pub(crate) fn is_queued(&self, segment: &Segment<'_>) -> bool {
        let mut queued = self.queue.iter().map(Queued::segment);
        queued.any(|other| {
            (other.seq, other.payload, other.is_fin)
                == (segment.seq, segment.payload, segment.is_fin)
        })
    }

    /// The receiver has all before `ack`. Returns whether that can be: it cannot have what is ahead of a gap
    /// without the gap.
    pub(crate) fn acknowledge(&mut self, ack: SeqNumber, budget: &mut Budget) -> bool {
        let Some(next) = self.next else { return true };
        let to = self.place_of(ack);
        let freed = self.unacked.acknowledge(to);
        self.memory -= freed;
        budget.give_back(self.source, freed);
        // An end that acknowledges what was never sent says nothing of the other.
        !ack.after(next) || self.ahead.first().is_none_or(|first| to <= first)
    }

    /// Whether its receiver has all that was read of it.
    pub(crate) const fn is_acknowledged(&self) -> bool {
        self.unacked.len() == 0
    }

    /// A segment that stands next has been delivered: it waits until [`Stream::release`]. The first `skip` of
    /// its bytes were there before; the next `unread` ones are not read.
    pub(crate) fn deliver(
        &mut self,
        segment: &Segment<'_>,
        (skip, unread): (usize, u64),
        now: Timestamp,
        budget: &mut Budget,
    ) {
        let end = segment.end();
        self.go_on(
            segment.payload.get(skip..).unwrap_or_default(),
            unread,
            segment.is_fin,
            budget,
        );
        budget.hold(self.source);
        self.delivered.push_back(Delivered {
            id: segment.id,
            mark: segment.mark,
            end,
            scan: None,
            since: now,
        });
    }

    /// The packet that was delivered last goes when this scan is done, and with it the one before that waited for it
    /// alone.
    pub(crate) fn wait_for(&mut self, scan: Option<Ticket>) {
        let count = if self.holds_last { 2 } else { 1 };
        for packet in self.delivered.iter_mut().rev().take(count) {
            packet.scan = scan;
        }
    }

    /// These bytes come next, and the end of the stream maybe.
    fn go_on(&mut self, bytes: &[u8], unread: u64, is_fin: bool, budget: &mut Budget) {
        let len = bytes.len() + usize::from(is_fin);
        self.next = self
            .next
            .map(|next| next + u32::try_from(len).unwrap_or(u32::MAX));
        self.next_at += len as u64;
        self.is_finished |= is_fin;
        // What the gateway brings itself is needed, read or not.
        let unread = if self.relay.is_some() { 0 } else { unread };
        let unread = usize::try_from(unread).unwrap_or(usize::MAX);
        let (unread, read) = bytes.split_at_checked(unread).unwrap_or((bytes, &[]));
        self.unacked.skip(unread.len());
        self.unacked.push(read);
        self.memory += read.len();
        budget.take(self.source, read.len());
    }

    /// What came ahead of a gap that is filled now, a part at a time: its receiver reads it with the packet
    /// that was delivered last.
    pub(crate) fn take_readable(&mut self, budget: &mut Budget) -> Option<Readable> {
        if self.ahead.is_empty() || self.is_finished {
            return None;
        }
        let before = self.ahead.memory();
        let (run, skip) = self.ahead.pop(self.next_at).unwrap_or_default();
        let bytes = run.get(skip..).unwrap_or_default();
        let is_fin = self.ahead.ends_at(self.next_at + bytes.len() as u64);
        if is_fin {
            self.ahead = Ahead::default();
        }
        let freed = before - self.ahead.memory();
        self.memory -= freed;
        budget.give_back(self.source, freed);
        if bytes.is_empty() && !is_fin {
            return None;
        }
        self.go_on(bytes, 0, is_fin, budget);
        let next = self.next.unwrap_or_default();
        match self.delivered.back_mut() {
            Some(last) => last.end = next,
            None => self.released = next,
        }
        Some(Readable { run, skip, is_fin })
    }

    /// Releases what was delivered, but for the last `keep` packets and those that wait for the scan `awaited` or a later
    /// one; each gets `mark` over its own.
    pub(crate) fn release(
        &mut self,
        (keep, awaited): (usize, Option<Ticket>),
        budget: &mut Budget,
        answers: &mut Vec<Answer>,
        mark: impl Fn(u32) -> Option<u32>,
    ) {
        let is_done = |packet: &mut Delivered| {
            awaited.is_none_or(|awaited| packet.scan.is_none_or(|scan| scan < awaited))
        };
        self.holds_last = keep > 0;
        while self.delivered.len() > keep {
            let Some(packet) = self.delivered.pop_front_if(is_done) else {
                return;
            };
            budget.release(self.source);
            self.released = packet.end;
            answers.push(Answer {
                id: packet.id,
                verdict: Verdict::Accept,
                mark: mark(packet.mark),
            });
        }
    }

    /// Whether what a segment brings finds room, with this bound for the stream.
    pub(crate) fn has_room(&self, bytes: usize, max_bytes: usize, budget: &Budget) -> bool {
        self.memory.saturating_add(bytes) <= max_bytes && budget.has_room(self.source, bytes)
    }

    /// Keeps a segment behind what waits. Returns whether there was room.
    pub(crate) fn enqueue(
        &mut self,
        segment: &Segment<'_>,
        (max_packets, max_bytes): (usize, usize),
        budget: &mut Budget,
    ) -> bool {
        let bytes = segment.payload.len();
        if self.delivered.len() + self.queue.len() >= max_packets
            || !self.has_room(bytes, max_bytes, budget)
        {
            return false;
        }
        budget.hold(self.source);
        budget.take(self.source, bytes);
        self.memory += bytes;
        self.queue.push_back(Queued {
            id: segment.id,
            mark: segment.mark,
            seq: segment.seq,
            payload: segment.payload.into(),
            is_fin: segment.is_fin,
        });
        true
    }

    /// Whether the first segment of the queue comes next.
    pub(crate) fn is_next_queued(&self) -> bool {
        let place = self
            .queue
            .front()
            .map(|queued| self.place_now(&queued.segment()));
        matches!(place, Some(Position::Next(_)))
    }

    /// The first segment of the queue.
    pub(crate) fn dequeue(&mut self, budget: &mut Budget) -> Option<Queued> {
        let first = self.queue.pop_front()?;
        self.memory -= first.payload.len();
        budget.release(self.source);
        budget.give_back(self.source, first.payload.len());
        Some(first)
    }

    /// Keeps what a segment ahead of a gap brings, which passes. Returns whether there was room.
    pub(crate) fn copy(
        &mut self,
        segment: &Segment<'_>,
        max_bytes: usize,
        budget: &mut Budget,
    ) -> bool {
        let before = self.ahead.memory();
        let need = self.ahead.memory_with(segment.payload.len()) - before;
        if !self.has_room(need, max_bytes, budget) {
            return false;
        }
        let at = self.place_of(segment.seq);
        self.ahead.insert(at, segment.payload, segment.is_fin);
        let used = self.ahead.memory() - before;
        self.memory += used;
        budget.take(self.source, used);
        true
    }

    /// Since when the packet that was delivered first waits to be released, or the receiver has nothing new of what the gateway
    /// brings.
    pub(crate) fn delivered_since(&self) -> Option<Timestamp> {
        let relay = self.relay.as_ref().map(|relay| relay.since);
        self.delivered.front().map(|packet| packet.since).or(relay)
    }

    /// What is missing has passed unseen: the stream goes on behind it.
    pub(crate) fn skip_gap(&mut self, budget: &mut Budget) {
        let Some(first) = self.ahead.first() else {
            return;
        };
        let gap = first.saturating_sub(self.next_at);
        self.next = self
            .next
            .map(|next| next + u32::try_from(gap).unwrap_or(u32::MAX));
        self.next_at = first;
        let freed = self.unacked.len();
        self.unacked = Unacked::at(first);
        self.memory -= freed;
        budget.give_back(self.source, freed);
    }

    /// The stream takes its share of the budget from this address.
    pub(crate) fn join(&mut self, source: Source) {
        self.source = source;
    }

    /// Whose share of the budget it takes.
    pub(crate) const fn source(&self) -> Source {
        self.source
    }

    /// Answers everything that waits with one verdict, and keeps nothing any more.
    pub(crate) fn answer_all(
        &mut self,
        verdict: Verdict,
        budget: &mut Budget,
        answers: &mut Vec<Answer>,
        mark: impl Fn(u32) -> Option<u32>,
    ) {
        let mut answer = |id, old| {
            answers.push(Answer {
                id,
                verdict,
                mark: mark(old),
            });
        };
        while let Some(packet) = self.delivered.pop_front() {
            budget.release(self.source);
            answer(packet.id, packet.mark);
            if verdict == Verdict::Accept {
                self.released = packet.end;
            }
        }
        while let Some(queued) = self.dequeue(budget) {
            answer(queued.id, queued.mark);
        }
        self.ahead = Ahead::default();
        self.relay = None;
        self.unacked = Unacked::default();
        budget.give_back(self.source, std::mem::take(&mut self.memory));
    }
}
