//! Segments in their stream: which wait, which pass, and what is inspected before they do.

use super::{Disposition, Work};
use crate::connection::{Classified, Phase};
use crate::examine::Outcome;
use crate::hold::{Position, Segment, Stream};
use crate::inspect::Side;
use crate::policy::{AtLimit, Label, OnMatch, Wait};
use linkweir_wire::SeqNumber;

impl Work<'_> {
    /// A segment of a side.
    pub(crate) fn on_segment(&mut self, side: Side, segment: &Segment<'_>) -> Disposition {
        let place = self.conn.stream(side).place(segment);
        if place != Position::Control && self.conn.stream(side).differs(segment) {
            return self.on_rewritten(segment);
        }
        if !self.conn.has_handshake
            && !self.is_inspected()
            && self.conn.stream(side).begins_before(segment)
        {
            return self.give_up_with(segment, "bytes before the first that came");
        }
        // A packet that is released behind one with a newer timestamp would be dropped by its receiver (RFC 7323
        // sec. 5.3).
        if place == Position::Old {
            self.end_last_hold(side);
        }
        match place {
            Position::Next(_) | Position::Ahead if self.conn.stream(side).is_finished => {
                self.drop_implausible(segment);
            }
            // What comes behind a wait stays behind it: the receiver gets the packets in the order in which
            // they were sent, as their timestamps say.
            Position::Old | Position::Next(_) | Position::Ahead if self.must_queue(side, place) => {
                return self.enqueue(side, segment);
            }
            _ => return self.place(side, segment, place),
        }
        Disposition::Kept
    }

    /// A segment that does not wait for others.
    fn place(&mut self, side: Side, segment: &Segment<'_>, place: Position) -> Disposition {
        let max_bytes = self.ctx.policy.limits.held_bytes;
        match place {
            Position::Control if self.conn.stream(side).asks_what_came(segment) => {
                self.acknowledge_again(side, segment);
                return Disposition::Kept;
            }
            Position::Control => {}
            Position::Old | Position::Held if self.conn.stream(side).is_relayed() => {
                self.ctx.stats.duplicates += 1;
                self.acknowledge_again(side, segment);
                return Disposition::Kept;
            }
            Position::Held => {
                self.on_held(side, segment);
                return Disposition::Kept;
            }
            Position::Old => self.ctx.stats.duplicates += 1,
            Position::Ahead => {
                self.ctx.stats.out_of_order += 1;
                let is_kept_whole = self.keeps_files_whole();
                if is_kept_whole && !self.is_inspected() {
                    // It comes again when what is before it is there, and the connection is decided.
                    self.ctx.drop(segment.id);
                    return Disposition::Kept;
                }
                // What fills the gap must find room too, where it does not pass by itself.
                let max_bytes = if is_kept_whole {
                    max_bytes / 2
                } else {
                    max_bytes
                };
                let stream = self.conn.stream(side);
                if !stream.copy(segment, max_bytes, self.ctx.budget) && !is_kept_whole {
                    return self.at_limit(segment);
                }
                if is_kept_whole {
                    self.relay(side);
                    self.ctx.drop(segment.id);
                    return Disposition::Kept;
                }
            }
            Position::Next(skip) => {
                let bytes = segment.payload.len();
                let budget = &*self.ctx.budget;
                if !self.conn.stream(side).has_room(bytes, max_bytes, budget) {
                    let given_up = self.hold_no_longer(side, segment);
                    return given_up.unwrap_or_else(|| self.at_limit(segment));
                }
                return self.deliver(side, segment, skip);
            }
        }
        let mark = self.mark();
        self.ctx.accept(segment.id, segment.mark, mark);
        Disposition::Kept
    }

    /// Whether a segment of a side waits behind others.
    fn must_queue(&mut self, side: Side, place: Position) -> bool {
        self.conn.stream(side).has_queue()
            || self.must_wait(side, matches!(place, Position::Next(_)))
    }

    /// Whether a segment waits for a scan. One that comes next is inspected meanwhile and goes in its turn; what would pass at
    /// once must not overtake what is held.
    fn must_wait(&mut self, side: Side, is_next: bool) -> bool {
        if is_next {
            self.outcome(side) == Outcome::Wait
        } else {
            self.awaited(side).is_some()
        }
    }

    /// A segment comes again that was not released: the first one goes.
    fn on_held(&mut self, side: Side, segment: &Segment<'_>) {
        self.ctx.stats.retransmitted_while_held += 1;
        self.ctx.drop(segment.id);
        // Its sender waits for an acknowledgment and sends nothing new: what waits for the next packet alone
        // waits no longer.
        self.end_last_hold(side);
    }

    /// Keeps a segment behind those that wait.
    fn enqueue(&mut self, side: Side, segment: &Segment<'_>) -> Disposition {
        let limits = self.ctx.policy.limits;
        let most = (limits.held_packets, limits.held_bytes);
        let stream = self.conn.stream(side);
        if stream.is_queued(segment) {
            self.on_held(side, segment);
            return Disposition::Kept;
        }
        if stream.enqueue(segment, most, self.ctx.budget) {
            return Disposition::Kept;
        }
        self.at_limit(segment)
    }

    /// A packet finds no ctx.
    fn at_limit(&mut self, segment: &Segment<'_>) -> Disposition {
        self.ctx.stats.over_limit += 1;
        match self.ctx.policy.limits.at_limit {
            AtLimit::Drop => {
                self.ctx.drop(segment.id);
                Disposition::Kept
            }
            AtLimit::Pass => self.give_up_with(segment, "no more packets can be held"),
        }
    }

    /// A segment brings other bytes than one before it in the same place, and its receiver may have dropped
    /// that one: it is unknown which of them it reads.
    fn on_rewritten(&mut self, segment: &Segment<'_>) -> Disposition {
        const WHY: &str = "a segment was sent again with other bytes";
        self.ctx.stats.rewritten += 1;
        let ends = self.conn.ends;
        match &mut self.conn.phase {
            Phase::Inspected(exam) => exam.block(WHY, &mut self.ctx),
            Phase::Opening(_) | Phase::Allowed(_) | Phase::Answered(_) => {
                self.ctx.record_undecided(ends, true, WHY);
            }
        }
        let disposition = self.block(OnMatch::Reject);
        self.answer(segment, disposition);
        disposition
    }

    /// The receiver of what `side` sends has all before `ack`.
    pub(crate) fn on_ack(&mut self, side: Side, ack: SeqNumber) -> Disposition {
        let can_be = self.conn.stream(side).acknowledge(ack, self.ctx.budget);
        if let Phase::Allowed(mark) = self.conn.phase
            && self.conn.streams.iter().all(Stream::is_acknowledged)
        {
            self.answer_all(mark);
            return Disposition::Over(mark);
        }
        if can_be || !self.is_inspected() {
            return Disposition::Kept;
        }
        self.ctx.stats.gaps += 1;
        self.give_up("bytes have passed that the gateway was not given")
    }

    /// Gives a segment that stands next to the classifier or the inspector.
    fn deliver(&mut self, side: Side, segment: &Segment<'_>, skip: usize) -> Disposition {
        let now = self.ctx.now;
        let unread = match &self.conn.phase {
            Phase::Opening(_) => 0,
            Phase::Allowed(_) | Phase::Answered(_) => u64::MAX,
            Phase::Inspected(exam) => exam.unread(side),
        };
        let parts = (skip, unread);
        self.conn
            .stream(side)
            .deliver(segment, parts, now, self.ctx.budget);
        let bytes = segment.payload.get(skip..).unwrap_or_default();
        let ends = self.conn.ends;
        let outcome = match &mut self.conn.phase {
            Phase::Opening(opening) => {
                let begin = self.ctx.watch.begin().filter(|_| !bytes.is_empty());
                let classified = if bytes.is_empty() {
                    Classified::More(Label::Unknown, Wait::Application)
                } else {
                    opening.on_bytes(side, bytes, ends, self.ctx.policy)
                };
                self.ctx.watch.classified(begin);
                match classified {
                    Classified::Is(label, shown) => {
                        return self.decide(side, label, &shown, segment.is_fin);
                    }
                    Classified::Hidden(why) => return self.give_up(why),
                    Classified::Passes(..) | Classified::More(..) => {}
                }
                Outcome::Pass
            }
            Phase::Allowed(_) | Phase::Answered(_) => Outcome::Pass,
            Phase::Inspected(exam) => {
                let mut outcome = exam.outcome(side);
                if !bytes.is_empty() {
                    outcome = exam.feed(side, bytes, &mut self.ctx);
                }
                if segment.is_fin && !matches!(outcome, Outcome::Block(_)) {
                    outcome = exam.finish(side, &mut self.ctx);
                }
                outcome
            }
        };
        self.read_on(side, outcome)
    }

    /// Looks at what the receiver has behind what was delivered, before that is released.
    pub(super) fn read_on(&mut self, side: Side, mut outcome: Outcome) -> Disposition {
        let ends = self.conn.ends;
        while matches!(outcome, Outcome::Pass | Outcome::HoldLast) {
            let Some(readable) = self.conn.stream(side).take_readable(self.ctx.budget) else {
                break;
            };
            match &mut self.conn.phase {
                Phase::Opening(opening) => {
                    let bytes = readable.bytes();
                    let begin = self.ctx.watch.begin();
                    let classified = opening.on_bytes(side, bytes, ends, self.ctx.policy);
                    self.ctx.watch.classified(begin);
                    match classified {
                        Classified::Is(label, shown) => {
                            return self.decide(side, label, &shown, readable.is_fin);
                        }
                        Classified::Hidden(why) => return self.give_up(why),
                        Classified::Passes(..) | Classified::More(..) => {}
                    }
                }
                Phase::Allowed(_) | Phase::Answered(_) => {}
                Phase::Inspected(exam) => {
                    outcome = exam.feed(side, readable.bytes(), &mut self.ctx);
                    if readable.is_fin && !matches!(outcome, Outcome::Block(_)) {
                        outcome = exam.finish(side, &mut self.ctx);
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
    pub(super) fn pump(&mut self, side: Side) -> Disposition {
        loop {
            let is_next = self.conn.stream(side).is_next_queued();
            if self.must_wait(side, is_next) {
                break;
            }
            let Some(queued) = self.conn.stream(side).dequeue(self.ctx.budget) else {
                break;
            };
            let segment = queued.segment();
            let disposition = self.on_dequeued(side, &segment);
            if disposition != Disposition::Kept {
                return disposition;
            }
        }
        self.disposition()
    }

    fn on_dequeued(&mut self, side: Side, segment: &Segment<'_>) -> Disposition {
        let place = self.conn.stream(side).place(segment);
        if self.conn.stream(side).differs(segment) {
            // From one before it in the queue.
            return self.on_rewritten(segment);
        }
        self.place(side, segment, place)
    }

    /// A packet has waited long enough for the next one of its file.
    pub(crate) fn on_last_hold_timeout(&mut self) -> Disposition {
        if let Some(disposition) = self.end_still() {
            return disposition;
        }
        for side in [Side::Client, Side::Server] {
            self.end_last_hold(side);
            self.on_relay_time(side);
        }
        self.disposition()
    }

    /// What waits for the next packet of its file waits no longer: what came so far is scanned, and then it
    /// goes.
    fn end_last_hold(&mut self, side: Side) {
        if self.outcome(side) != Outcome::HoldLast {
            return;
        }
        if let Phase::Inspected(exam) = &mut self.conn.phase {
            exam.scan_now(side, &mut self.ctx);
            let scan = exam.last_scan(side);
            self.conn.stream(side).wait_for(scan);
            self.release(side, 0);
        }
    }
}
