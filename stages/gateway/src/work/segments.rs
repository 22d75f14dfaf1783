//! Segments in their stream: which wait, which pass, and what is looked at before they do.

use super::{Fate, Work};
use crate::connection::{Classified, Phase};
use crate::examine::Outcome;
use crate::hold::{Place, Segment, Stream};
use crate::inspect::Side;
use crate::policy::{AtLimit, OnMatch};
use linkweir_wire::SeqNumber;

impl Work<'_, '_> {
    /// A segment of a side.
    pub(crate) fn on_segment(&mut self, side: Side, segment: &Segment<'_>) -> Fate {
        let place = self.conn.stream(side).place(segment);
        if place != Place::Control && self.conn.stream(side).differs(segment) {
            return self.on_rewritten(segment);
        }
        if !self.conn.has_handshake
            && !self.is_inspected()
            && self.conn.stream(side).begins_before(segment)
        {
            return self.let_go_with(segment, "bytes before the first that came");
        }
        // A packet that is let go behind one with a newer timestamp would be dropped by its receiver (RFC 7323
        // sec. 5.3).
        if place == Place::Old {
            self.end_lag(side);
        }
        match place {
            Place::Next(_) | Place::Ahead if self.conn.stream(side).is_finished => {
                self.drop_implausible(segment);
            }
            // What comes behind a wait stays behind it: the receiver gets the packets in the order in which
            // they were sent, as their timestamps say.
            Place::Old | Place::Next(_) | Place::Ahead if self.must_queue(side, place) => {
                return self.enqueue(side, segment);
            }
            _ => return self.place(side, segment, place),
        }
        Fate::Kept
    }

    /// A segment that does not wait for others.
    fn place(&mut self, side: Side, segment: &Segment<'_>, place: Place) -> Fate {
        let most_bytes = self.room.policy.limits.held_bytes;
        match place {
            Place::Control if self.conn.stream(side).asks_what_came(segment) => {
                self.acknowledge_again(side, segment);
                return Fate::Kept;
            }
            Place::Control => {}
            Place::Old | Place::Held if self.conn.stream(side).is_relayed() => {
                self.room.stats.duplicates += 1;
                self.acknowledge_again(side, segment);
                return Fate::Kept;
            }
            Place::Held => {
                self.on_held(side, segment);
                return Fate::Kept;
            }
            Place::Old => self.room.stats.duplicates += 1,
            Place::Ahead => {
                self.room.stats.out_of_order += 1;
                let is_kept_whole = self.keeps_files_whole();
                if is_kept_whole && !self.is_inspected() {
                    // It comes again when what is before it is there, and the connection is decided.
                    self.room.drop(segment.id);
                    return Fate::Kept;
                }
                // What fills the gap must find room too, where it does not pass by itself.
                let most_bytes = if is_kept_whole {
                    most_bytes / 2
                } else {
                    most_bytes
                };
                let stream = self.conn.stream(side);
                if !stream.copy(segment, most_bytes, self.room.budget) && !is_kept_whole {
                    return self.at_limit(segment);
                }
                if is_kept_whole {
                    self.relay(side);
                    self.room.drop(segment.id);
                    return Fate::Kept;
                }
            }
            Place::Next(skip) => {
                let bytes = segment.payload.len();
                let budget = &*self.room.budget;
                if !self.conn.stream(side).has_room(bytes, most_bytes, budget) {
                    let given_up = self.hold_no_longer(side, segment);
                    return given_up.unwrap_or_else(|| self.at_limit(segment));
                }
                return self.deliver(side, segment, skip);
            }
        }
        let mark = self.mark();
        self.room.accept(segment.id, segment.mark, mark);
        Fate::Kept
    }

    /// Whether a segment of a side waits behind others.
    fn must_queue(&mut self, side: Side, place: Place) -> bool {
        self.conn.stream(side).has_queue() || self.must_wait(side, matches!(place, Place::Next(_)))
    }

    /// Whether a segment waits for a scan. One that comes next is looked at meanwhile and goes in its turn; what would pass at
    /// once must not overtake what is held.
    fn must_wait(&mut self, side: Side, is_next: bool) -> bool {
        if is_next {
            self.outcome(side) == Outcome::Wait
        } else {
            self.awaited(side).is_some()
        }
    }

    /// A segment comes again that was not let go: the first one goes.
    fn on_held(&mut self, side: Side, segment: &Segment<'_>) {
        self.room.stats.retransmitted_while_held += 1;
        self.room.drop(segment.id);
        // Its sender waits for an acknowledgment and sends nothing new: what waits for the next packet alone
        // waits no longer.
        self.end_lag(side);
    }

    /// Keeps a segment behind those that wait.
    fn enqueue(&mut self, side: Side, segment: &Segment<'_>) -> Fate {
        let limits = self.room.policy.limits;
        let most = (limits.held_packets, limits.held_bytes);
        let stream = self.conn.stream(side);
        if stream.is_queued(segment) {
            self.on_held(side, segment);
            return Fate::Kept;
        }
        if stream.enqueue(segment, most, self.room.budget) {
            return Fate::Kept;
        }
        self.at_limit(segment)
    }

    /// A packet finds no room.
    fn at_limit(&mut self, segment: &Segment<'_>) -> Fate {
        self.room.stats.over_limit += 1;
        match self.room.policy.limits.at_limit {
            AtLimit::Drop => {
                self.room.drop(segment.id);
                Fate::Kept
            }
            AtLimit::Pass => self.let_go_with(segment, "no more packets can be held"),
        }
    }

    /// A segment brings other bytes than one before it in the same place, and its receiver may have dropped
    /// that one: nobody knows which of them it reads.
    fn on_rewritten(&mut self, segment: &Segment<'_>) -> Fate {
        const WHY: &str = "a segment was sent again with other bytes";
        self.room.stats.rewritten += 1;
        let (ends, is_tcp) = (self.conn.ends, self.conn.key.is_tcp);
        match &mut self.conn.phase {
            Phase::Inspected(exam) => exam.block(WHY, &mut self.room.desk(ends, is_tcp)),
            Phase::Opening(_) | Phase::Allowed(_) => self.room.tell_undecided(ends, true, WHY),
        }
        let fate = self.block(OnMatch::Reject);
        self.answer(segment, fate);
        fate
    }

    /// The receiver of what `side` sends has all before `ack`.
    pub(crate) fn on_ack(&mut self, side: Side, ack: SeqNumber) -> Fate {
        let can_be = self.conn.stream(side).acknowledge(ack, self.room.budget);
        if let Phase::Allowed(mark) = self.conn.phase
            && self.conn.streams.iter().all(Stream::is_acknowledged)
        {
            self.answer_all(mark);
            return Fate::Over(mark);
        }
        if can_be || !self.is_inspected() {
            return Fate::Kept;
        }
        self.room.stats.gaps += 1;
        self.let_go("bytes have passed that the gateway was not given")
    }

    /// Gives a segment that stands next to the classifier or the inspector.
    fn deliver(&mut self, side: Side, segment: &Segment<'_>, skip: usize) -> Fate {
        let now = self.room.now;
        let unread = match &self.conn.phase {
            Phase::Opening(_) => 0,
            Phase::Allowed(_) => u64::MAX,
            Phase::Inspected(exam) => exam.unread(side),
        };
        let parts = (skip, unread);
        self.conn
            .stream(side)
            .deliver(segment, parts, now, self.room.budget);
        let bytes = segment.payload.get(skip..).unwrap_or_default();
        let (ends, is_tcp) = (self.conn.ends, self.conn.key.is_tcp);
        let outcome = match &mut self.conn.phase {
            Phase::Opening(opening) => {
                let classified = if bytes.is_empty() {
                    Classified::More
                } else {
                    opening.on_bytes(side, bytes, ends, self.room.policy)
                };
                match classified {
                    Classified::Is(label, server_name) => {
                        return self.decide(side, label, &server_name, segment.is_fin);
                    }
                    Classified::Hidden(why) => return self.let_go(why),
                    Classified::More => {}
                }
                Outcome::Pass
            }
            Phase::Allowed(_) => Outcome::Pass,
            Phase::Inspected(exam) => {
                let mut desk = self.room.desk(ends, is_tcp);
                let mut outcome = exam.outcome(side);
                if !bytes.is_empty() {
                    outcome = exam.feed(side, bytes, &mut desk);
                }
                if segment.is_fin && !matches!(outcome, Outcome::Block(_)) {
                    outcome = exam.finish(side, &mut desk);
                }
                outcome
            }
        };
        self.read_on(side, outcome)
    }

    /// Looks at what the receiver has behind what was delivered, before that is let go.
    pub(super) fn read_on(&mut self, side: Side, mut outcome: Outcome) -> Fate {
        let (ends, is_tcp) = (self.conn.ends, self.conn.key.is_tcp);
        while matches!(outcome, Outcome::Pass | Outcome::Lag) {
            let Some(readable) = self.conn.stream(side).take_readable(self.room.budget) else {
                break;
            };
            match &mut self.conn.phase {
                Phase::Opening(opening) => {
                    let bytes = readable.bytes();
                    let classified = opening.on_bytes(side, bytes, ends, self.room.policy);
                    match classified {
                        Classified::Is(label, server_name) => {
                            return self.decide(side, label, &server_name, readable.is_fin);
                        }
                        Classified::Hidden(why) => return self.let_go(why),
                        Classified::More => {}
                    }
                }
                Phase::Allowed(_) => {}
                Phase::Inspected(exam) => {
                    let mut desk = self.room.desk(ends, is_tcp);
                    outcome = exam.feed(side, readable.bytes(), &mut desk);
                    if readable.is_fin && !matches!(outcome, Outcome::Block(_)) {
                        outcome = exam.finish(side, &mut desk);
                    }
                }
            }
        }
        if let Phase::Inspected(exam) = &mut self.conn.phase {
            let scan = exam.last_scan(side);
            self.conn.stream(side).wait_for(scan);
        }
        self.apply(side, outcome)
    }

    /// Goes on with what waited, as far as nothing waits for a scan.
    pub(super) fn pump(&mut self, side: Side) -> Fate {
        loop {
            let is_next = self.conn.stream(side).is_next_queued();
            if self.must_wait(side, is_next) {
                break;
            }
            let Some(queued) = self.conn.stream(side).dequeue(self.room.budget) else {
                break;
            };
            let segment = queued.segment();
            let fate = self.on_dequeued(side, &segment);
            if fate != Fate::Kept {
                return fate;
            }
        }
        self.fate()
    }

    fn on_dequeued(&mut self, side: Side, segment: &Segment<'_>) -> Fate {
        let place = self.conn.stream(side).place(segment);
        if self.conn.stream(side).differs(segment) {
            // From one before it in the queue.
            return self.on_rewritten(segment);
        }
        self.place(side, segment, place)
    }

    /// A packet has waited long enough for the next one of its file.
    pub(crate) fn on_lag_timeout(&mut self) -> Fate {
        if let Some(fate) = self.end_still() {
            return fate;
        }
        for side in [Side::Client, Side::Server] {
            self.end_lag(side);
            self.on_relay_time(side);
        }
        self.fate()
    }

    /// What waits for the next packet of its file waits no longer: what came so far is scanned, and then it
    /// goes.
    fn end_lag(&mut self, side: Side) {
        let (ends, is_tcp) = (self.conn.ends, self.conn.key.is_tcp);
        if self.outcome(side) != Outcome::Lag {
            return;
        }
        if let Phase::Inspected(exam) = &mut self.conn.phase {
            exam.scan_now(side, &mut self.room.desk(ends, is_tcp));
            let scan = exam.last_scan(side);
            self.conn.stream(side).wait_for(scan);
            self.release(side, 0);
        }
    }
}
