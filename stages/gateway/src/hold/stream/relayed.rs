//! A stream of which the gateway brings to the receiver itself what it has acknowledged.

use linkweir_engine::effect::{Answer, Ticket, Verdict};
use linkweir_wire::{SeqNumber, Timestamp};

use super::{Segment, Stream};
use crate::hold::Budget;
use crate::hold::relay::{Relay, SEGMENT};

impl Stream {
    /// Whether the gateway has acknowledged what its receiver does not have, up to this number.
    pub(crate) fn is_relayed_to(&self, seq: SeqNumber) -> bool {
        self.is_relayed() && seq == self.vouched() && seq != self.released
    }

    /// The gateway brings what was delivered from here on itself, and its packets go no further. `edge` stands behind what the
    /// receiver has room for.
    pub(crate) fn relay(
        &mut self,
        edge: SeqNumber,
        now: Timestamp,
        budget: &mut Budget,
        answers: &mut Vec<Answer>,
    ) {
        if self.relay.is_none() {
            let (from, edge) = (self.place_of(self.released), self.place_of(edge));
            self.relay = Some(Box::new(Relay::new(from, edge, now)));
        }
        self.holds_last = false;
        for packet in self.delivered.drain(..) {
            budget.release(self.source);
            answers.push(Answer {
                id: packet.id,
                verdict: Verdict::Drop,
                mark: None,
            });
        }
    }

    /// What the gateway acknowledges of it: all bytes that came. Its end is for the receiver to acknowledge.
    pub(crate) fn vouched(&self) -> SeqNumber {
        let next = self.next.unwrap_or_default();
        SeqNumber(next.0.wrapping_sub(u32::from(self.is_finished)))
    }

    /// The window of its receiver was advertised to the sender.
    pub(crate) fn advertise(&mut self, window: u16) {
        if let Some(relay) = &mut self.relay {
            relay.advertised = window;
        }
    }

    /// The window advertised to the sender last.
    pub(crate) fn advertised(&self) -> Option<u16> {
        self.relay.as_ref().map(|relay| relay.advertised)
    }

    /// Whether a segment without anything in it asks for the window, or whether somebody is there, of whom the gateway
    /// acknowledges for.
    pub(crate) fn asks_what_came(&self, segment: &Segment<'_>) -> bool {
        self.is_relayed() && segment.seq.before(self.vouched())
    }

    /// For how long the sender has brought nothing new and the receiver has acknowledged nothing new of what the gateway
    /// brings, nanoseconds; `None` where it brings nothing.
    pub(crate) fn still_for(&self, now: Timestamp) -> Option<u64> {
        Some(self.relay.as_ref()?.still_for(now))
    }

    /// Whether something that may go has not arrived.
    pub(crate) fn has_let_go(&self) -> bool {
        let relay = self.relay.as_ref();
        relay.is_some_and(|relay| relay.unacked < relay.free)
    }

    /// What came since this was called last has begun this file, if no other had begun before, and this scan was asked for.
    pub(crate) fn note(&mut self, newest: Option<u32>, scan: Option<Ticket>, now: Timestamp) {
        if let Some(relay) = &mut self.relay {
            relay.note_scan(scan);
            relay.note_file(newest, self.next_at, now);
        }
    }

    /// What came before this file may go to the receiver.
    pub(crate) fn free_before(&mut self, oldest: u32) {
        if let Some(relay) = &mut self.relay {
            relay.set_free_before(oldest);
        }
    }

    /// All may go to the receiver, or all but the newest packet.
    pub(crate) fn free(&mut self, but_the_newest: bool) {
        if let Some(relay) = &mut self.relay {
            relay.set_free(but_the_newest);
        }
    }

    /// The receiver has acknowledged `ack`, with room up to `edge`. Returns whether it misses something that is to be sent
    /// again.
    pub(crate) fn on_receiver(
        &mut self,
        ack: SeqNumber,
        edge: SeqNumber,
        is_bare: bool,
        now: Timestamp,
    ) -> bool {
        let (to, edge) = (self.place_of(ack), self.place_of(edge));
        let end = self.next_at;
        let relay = self.relay.as_mut();
        relay.is_some_and(|relay| to <= end && relay.on_ack(to, edge, is_bare, now))
    }

    /// Time has passed, and this scan is the first that is awaited. Returns as [`Stream::on_receiver`].
    pub(crate) fn on_time(
        &mut self,
        now: Timestamp,
        is_held: bool,
        awaited: Option<Ticket>,
    ) -> bool {
        let end = self.next_at;
        self.relay.as_mut().is_some_and(|relay| {
            relay.note_clean(awaited);
            relay.on_time(now, end, is_held)
        })
    }

    /// The next segment for the receiver: its number, its bytes, whether the stream ends with it. `again`: the first one that the
    /// receiver has not acknowledged.
    pub(crate) fn next_own(&mut self, again: bool) -> Option<(SeqNumber, Vec<u8>, bool)> {
        let end = self.next_at;
        let bytes_end = end - u64::from(self.is_finished);
        let relay = self.relay.as_mut()?;
        let (at, most) = if again {
            (relay.unacked, relay.next.saturating_sub(relay.unacked))
        } else {
            relay.due(end)
        };
        if most == 0 {
            return None;
        }
        let most = most.min(SEGMENT);
        let bytes = usize::try_from(most.min(bytes_end.saturating_sub(at))).unwrap_or(0);
        let payload = self.unacked.copy(at, bytes);
        let after = at + payload.len() as u64;
        let is_fin = self.is_finished && after == bytes_end && relay.free == end;
        let after = after + u64::from(is_fin);
        if after == at {
            return None;
        }
        let seq = self.next.unwrap_or_default();
        let back = |place: u64| u32::try_from(end.saturating_sub(place)).unwrap_or(u32::MAX);
        if !again {
            relay.next = after;
            self.released = SeqNumber(seq.0.wrapping_sub(back(after)));
        }
        Some((SeqNumber(seq.0.wrapping_sub(back(at))), payload, is_fin))
    }

    /// The receiver has all that the gateway had to bring: the next packets go as they come.
    pub(crate) fn end_relay(&mut self) {
        let is_done =
            |relay: &mut Box<Relay>| relay.unacked == self.next_at && self.ahead.is_empty();
        if self.relay.take_if(is_done).is_some() {
            self.released = self.next.unwrap_or_default();
        }
    }
}
