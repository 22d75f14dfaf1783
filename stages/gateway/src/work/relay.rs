//! Files that are held until their verdict: the gateway acknowledges them to their sender and brings them to their receiver
//! itself.

use super::{Disposition, Work};
use crate::connection::{Phase, Plausible};
use crate::examine::Outcome;
use crate::hold::{Segment, Stream};
use crate::inspect::Side;
use linkweir_engine::effect::{Decision, Mark, OwnSegment};
use linkweir_wire::{SeqNumber, Tcp};

impl Work<'_> {
    /// Whether the gateway brings what a side sends. Also where it brings what the other side sends: the side acknowledges with its
    /// packets what the other end believes to have arrived long ago, and would drop them (RFC 5961 sec. 5.2).
    pub(super) fn must_relay(&mut self, side: Side) -> bool {
        self.conn.streams.iter().any(Stream::is_relayed) || self.holds_file(side)
    }

    fn holds_file(&mut self, side: Side) -> bool {
        match &mut self.conn.phase {
            Phase::Opening(_) | Phase::Allowed(_) | Phase::Answered(_) => false,
            Phase::Inspected(exam) => exam.oldest_held(side).is_some(),
        }
    }

    pub(super) const fn plausible(&mut self, side: Side) -> &mut Plausible {
        let [client, server] = &mut self.conn.plausible;
        match side {
            Side::Client => client,
            Side::Server => server,
        }
    }

    /// Whether files of the connection may have to be held: what is ahead of a gap must not pass then, since the receiver
    /// reads it with the first byte that fills the gap.
    pub(super) fn keeps_files_whole(&self) -> bool {
        match &self.conn.phase {
            Phase::Opening(_) => self.ctx.policy.holds_files(),
            Phase::Allowed(_) | Phase::Answered(_) => false,
            Phase::Inspected(exam) => exam.may_hold_files(),
        }
    }

    /// What was delivered goes no further; what may go is brought.
    pub(super) fn relay(&mut self, side: Side) {
        let now = self.ctx.now;
        let released = self.conn.stream(side).released();
        let edge = self.plausible(side.other()).edge_at(released);
        let answers = &mut self.ctx.effects.answers;
        let [client, server] = &mut self.conn.streams;
        let stream = match side {
            Side::Client => client,
            Side::Server => server,
        };
        stream.relay(edge, now, self.ctx.budget, answers);
        if let Phase::Inspected(exam) = &mut self.conn.phase {
            stream.note(exam.newest_file(side), exam.last_scan(side), now);
        }
        self.acknowledge(side);
        self.bring(side, false);
    }

    /// Acknowledges what a side has sent, in the name of the other.
    pub(super) fn acknowledge(&mut self, side: Side) {
        let ack = self.conn.stream(side).vouched();
        let seq = self.conn.stream(side.other()).released();
        self.plausible(side.other()).acknowledged(ack);
        let window = self.plausible(side.other()).window();
        self.conn.stream(side).advertise(window);
        self.send(side.other(), seq, ack, Vec::new(), false);
    }

    /// Sends what may go of a side's stream, and first what the receiver misses.
    fn bring(&mut self, side: Side, again: bool) {
        let oldest = match &mut self.conn.phase {
            Phase::Opening(_) | Phase::Allowed(_) | Phase::Answered(_) => None,
            Phase::Inspected(exam) => exam.oldest_held(side),
        };
        // A file that is not held waits for its scans as anywhere.
        match (oldest, self.outcome(side)) {
            (Some(oldest), _) => self.conn.stream(side).free_before(oldest),
            (None, Outcome::Pass | Outcome::HoldLast) if self.awaited(side).is_some() => {}
            (None, outcome @ (Outcome::Pass | Outcome::HoldLast)) => {
                self.conn.stream(side).free(outcome == Outcome::HoldLast);
            }
            (None, Outcome::Wait | Outcome::Block(_)) => {}
        }
        let ack = self.own_ack(side);
        let mut again = again;
        while let Some((seq, bytes, is_fin)) = self.conn.stream(side).next_own(again) {
            again = false;
            self.send(side, seq, ack, bytes, is_fin);
        }
        self.conn.stream(side).end_relay();
    }

    /// What segments of the gateway in the name of a side acknowledge: what the side has acknowledged, or the gateway for it.
    fn own_ack(&mut self, side: Side) -> SeqNumber {
        let other = self.conn.stream(side.other());
        let (released, vouched) = (other.released(), other.vouched());
        let is_relayed = other.is_relayed();
        let own = self.plausible(side).newest_ack().unwrap_or(released);
        if is_relayed && vouched.after(own) {
            vouched
        } else {
            own
        }
    }

    pub(super) fn send(
        &mut self,
        from: Side,
        seq: SeqNumber,
        ack: SeqNumber,
        payload: Vec<u8>,
        is_fin: bool,
    ) {
        let own = self.plausible(from).timestamp();
        let timestamps = own.zip(self.plausible(from.other()).timestamp());
        let window = self.plausible(from).window();
        self.ctx.effects.segments.push(OwnSegment {
            from: self.conn.ends.address(from),
            to: self.conn.ends.address(from.other()),
            seq,
            ack,
            window,
            timestamps,
            payload,
            is_fin,
            is_reset: false,
        });
    }

    /// A segment of a receiver to whom the gateway brings something. `None` where it goes on as any other.
    pub(crate) fn on_receiver(
        &mut self,
        side: Side,
        tcp: &Tcp<'_>,
        segment: &Segment<'_>,
    ) -> Option<Disposition> {
        let sender = side.other();
        let is_bare = segment.payload.is_empty() && !segment.is_fin;
        let (ack, now) = (tcp.ack(), self.ctx.now);
        let edge = self.plausible(side).edge_at(ack);
        let misses = self
            .conn
            .stream(sender)
            .on_receiver(ack, edge, is_bare, now);
        let vouched = self.conn.stream(sender).vouched();
        self.bring(sender, misses);
        if !is_bare {
            return None;
        }
        if !ack.before(vouched) {
            if !self.conn.stream(side).is_relayed() {
                return None;
            }
            // Its number is that of bytes which the gateway still has.
            self.ctx.drop(segment.id);
            let seq = self.conn.stream(side).released();
            self.send(side, seq, ack, Vec::new(), false);
            return Some(self.disposition());
        }
        // Its sender has an acknowledgment that says more, but for the window.
        self.ctx.drop(segment.id);
        let window = self.plausible(side).window();
        if self
            .conn
            .stream(sender)
            .advertised()
            .is_some_and(|old| old != window)
        {
            self.acknowledge(sender);
        }
        if self
            .conn
            .stream(side)
            .next()
            .is_some_and(|next| segment.seq.before(next))
        {
            // It asks whether somebody is there (RFC 9293 sec. 3.8.4).
            let seq = self.conn.stream(sender).released();
            let ack = self.conn.stream(side).released();
            self.send(sender, seq, ack, Vec::new(), false);
        }
        Some(self.disposition())
    }

    /// A segment of a side whose stream is relayed brings nothing that comes next.
    pub(super) fn acknowledge_again(&mut self, side: Side, segment: &Segment<'_>) {
        self.ctx.drop(segment.id);
        self.acknowledge(side);
    }

    /// A held file finds no more ctx. `None` where none is held.
    pub(super) fn hold_no_longer(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
    ) -> Option<Disposition> {
        if !self.holds_file(side) {
            return None;
        }
        let Phase::Inspected(exam) = &mut self.conn.phase else {
            return None;
        };
        if exam.awaits_verdict(side) || self.conn.streams.iter().any(Stream::has_let_go) {
            // What fills the room will leave it, or is on its way to the receiver.
            self.ctx.drop(segment.id);
            return Some(Disposition::Kept);
        }
        let outcome = exam.hold_no_longer(side, &mut self.ctx);
        if let Outcome::Block(action) = outcome {
            let disposition = self.block(action);
            self.answer(segment, disposition);
            return Some(disposition);
        }
        // It comes again when there is ctx.
        self.ctx.drop(segment.id);
        self.bring(side, false);
        Some(Disposition::Kept)
    }

    /// Whether a side resets a connection of which the gateway brings something: its own stream, of which the other end has less
    /// than was acknowledged, or what it gets, with its next number or the one that the gateway acknowledges there.
    pub(super) fn resets_relayed(&mut self, side: Side, segment: &Segment<'_>) -> bool {
        self.conn.stream(side).is_relayed_to(segment.seq)
            || self.conn.stream(side.other()).is_relayed()
                && (self.own_ack(side.other()) == segment.seq
                    || self.conn.stream(side).next() == Some(segment.seq))
    }

    /// One end resets a connection whose ends do not have the same of it: the other gets a reset with the number that it expects.
    pub(super) fn end_relayed(&mut self, segment: &Segment<'_>) -> Disposition {
        self.ctx.drop(segment.id);
        let rule = self.mark().map_or(0, |mark| mark.rule);
        let mark = Mark {
            decision: Decision::Reject,
            rule,
        };
        self.close();
        self.answer_all(mark);
        Disposition::Over(mark)
    }

    /// Neither end has moved on for long what the gateway brings. `None` where one has.
    pub(super) fn end_still(&mut self) -> Option<Disposition> {
        let now = self.ctx.now;
        let relays = self
            .conn
            .streams
            .iter()
            .filter_map(|stream| stream.still_for(now));
        let is_still = relays.min()? > self.ctx.policy.limits.idle_timeout_ns;
        is_still.then(|| self.give_up("neither end has gone on with a held file"))
    }

    /// Time has passed for what the gateway brings.
    pub(super) fn on_relay_time(&mut self, side: Side) {
        if !self.conn.stream(side).is_relayed() {
            return;
        }
        let (is_held, now) = (self.holds_file(side), self.ctx.now);
        let awaited = self.awaited(side);
        let misses = self.conn.stream(side).on_time(now, is_held, awaited);
        self.bring(side, misses);
    }
}
