//! What the connections share, and how one of them hears a segment: RFC 9293 sec. 3.10.7.

use super::connection::{Connection, Marks, State};
use super::emit::Sender;
use super::flight::Flight;
use super::reassembly::Reassembly;
use super::run::Pool;
use super::segment::Segment;
use crate::seam::{CloseReason, ConnId, Listener, SegmentOut, TcpEvent};
use linkweir_table::{NONE, Slab};
use linkweir_wire::{SeqNumber, TcpFlags, Timestamp};

/// What a connection becomes by what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes on.
    Open,
    /// It is in TIME-WAIT: for everybody but the table of those it has finished.
    TimeWait,
    /// It is no more.
    Ended(CloseReason),
}

/// What goes with a segment that is heard.
pub(super) struct Context<'a, O, L> {
    pub(super) id: ConnId,
    /// When the segment arrived.
    pub(super) at: Timestamp,
    pub(super) now: Timestamp,
    pub(super) out: &'a mut O,
    pub(super) to: &'a mut L,
}

impl<O, L: Listener> Context<'_, O, L> {
    pub(super) fn tell(&mut self, conn: &Connection, event: TcpEvent<'_>) {
        self.to.on_event(self.id, conn.user, event, self.at);
    }
}

/// What the connections share.
#[derive(Debug)]
pub(super) struct Stack {
    pub(super) sender: Sender,
    pub(super) flights: Slab<Flight>,
    /// Data to the servers.
    pub(super) outgoing: Pool,
    /// Data from the servers, ahead of gaps.
    pub(super) incoming: Reassembly,
    /// For payload that does not lie in one chunk.
    pub(super) scratch: Vec<u8>,
}

impl Stack {
    /// The number that goes into a segment without data: all that was sent lies before it.
    pub(super) fn snd_max(&self, conn: &Connection) -> SeqNumber {
        self.flights
            .get(conn.flight)
            .map_or(conn.snd_nxt, |flight| flight.snd_max)
    }

    /// Gives back what a connection holds of the pools.
    pub(super) fn forget(&mut self, conn: &mut Connection) {
        self.end_flight(conn);
        self.incoming.forget(&mut conn.held);
    }

    /// Nothing is under way to the server any more.
    pub(super) fn end_flight(&mut self, conn: &mut Connection) {
        if let Some(flight) = self.flights.get_mut(conn.flight) {
            flight.data.release(&mut self.outgoing);
            self.flights.give_back(conn.flight);
            conn.flight = NONE;
        }
    }

    /// A connection hears a segment.
    pub(super) fn hear(
        &mut self,
        conn: &mut Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) -> Fate {
        let fate = if conn.state == State::SynSent {
            self.hear_syn_ack(conn, segment, cx)
        } else {
            self.hear_synchronized(conn, segment, cx)
        };
        if matches!(fate, Fate::Ended(_)) || conn.state == State::SynSent {
            return fate;
        }
        self.transmit(conn, cx.now, cx.out);
        if conn.marks.has(Marks::ACK_NOW) {
            let seq = self.snd_max(conn);
            let (blocks, len) = if conn.marks.has(Marks::SACK) && conn.held != NONE {
                self.incoming.blocks(conn.held, segment.seq)
            } else {
                ([(seq, seq); 3], 0)
            };
            let blocks = blocks.get(..len).unwrap_or_default();
            self.sender.ack(conn, seq, blocks, cx.now, cx.out);
        }
        fate
    }

    /// A connection that is made hears a segment (RFC 9293 sec. 3.10.7.4).
    fn hear_synchronized(
        &mut self,
        conn: &mut Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) -> Fate {
        if !self.is_acceptable(conn, segment, cx) {
            return Fate::Open;
        }
        let is_reset = segment.has(TcpFlags::RST);
        if is_reset && segment.seq == conn.rcv_nxt {
            self.sender.counts.resets_in += 1;
            return Fate::Ended(self.reset_reason(conn));
        }
        if is_reset || segment.has(TcpFlags::SYN) {
            // RFC 5961 sec. 3.2 and 4.2: only who knows the exact number may end a connection.
            let seq = self.snd_max(conn);
            self.sender.challenge(conn, seq, cx.now, cx.out);
            return Fate::Open;
        }
        if !segment.has(TcpFlags::ACK) {
            return Fate::Open;
        }
        let Some(acked) = self.acknowledge(conn, segment, cx) else {
            return Fate::Open;
        };
        if acked.all_data {
            cx.tell(conn, TcpEvent::Sent);
        }
        if acked.fin {
            match conn.state {
                State::FinWait1 => self.enter_fin_wait_2(conn, cx.now),
                State::Closing => return Fate::TimeWait,
                State::LastAck => return Fate::Ended(CloseReason::Finished),
                _ => {}
            }
        }
        if self.receive(conn, segment, cx) {
            match conn.state {
                State::Established if conn.awaits_fin() => {
                    conn.state = State::LastAck;
                    self.begin_flight(conn);
                }
                State::Established => conn.state = State::CloseWait,
                State::FinWait1 => conn.state = State::Closing,
                State::FinWait2 => return Fate::TimeWait,
                _ => {}
            }
        }
        Fate::Open
    }

    /// Whether timestamp and sequence number say that the segment is of now (RFC 7323 sec. 5.3,
    /// RFC 9293 sec. 3.10.7.4, first check). What is not is answered where the server wants it.
    fn is_acceptable(
        &mut self,
        conn: &mut Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) -> bool {
        let counts = &mut self.sender.counts;
        let is_reset = segment.has(TcpFlags::RST);
        if conn.marks.has(Marks::TIMESTAMPS) && !is_reset {
            match segment.timestamps {
                Some((value, _)) if SeqNumber(value).before(SeqNumber(conn.ts_recent)) => {
                    counts.paws += 1;
                    self.answer_old(conn, segment, cx);
                    return false;
                }
                Some(_) => {}
                None => {
                    counts.no_timestamp += 1;
                    return false;
                }
            }
        }
        let window = self.sender.receive_window(conn);
        let len = segment.len();
        let last = segment.seq + len.saturating_sub(1);
        if !segment.seq.in_window(conn.rcv_nxt, window) && !last.in_window(conn.rcv_nxt, window) {
            if !is_reset {
                self.answer_old(conn, segment, cx);
            }
            return false;
        }
        if conn.marks.has(Marks::TIMESTAMPS)
            && let Some((value, _)) = segment.timestamps
            && !segment.seq.after(conn.rcv_acked)
            && !is_reset
        {
            // Not older, as checked above.
            conn.ts_recent = value;
        }
        true
    }

    /// Answers a segment that brings nothing: the ACK that the server may have missed. Empty ones
    /// are answered within the limit, so that two ends never do so forever.
    fn answer_old(
        &mut self,
        conn: &mut Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) {
        if segment.len() > 0 {
            self.sender.counts.duplicates += 1;
            conn.marks.set(Marks::ACK_NOW);
        } else {
            let seq = self.snd_max(conn);
            self.sender.challenge(conn, seq, cx.now, cx.out);
        }
    }

    /// How a connection ends that was reset: quietly where only our FIN was not acknowledged
    /// (RFC 9293 sec. 3.10.7.4, CLOSING and LAST-ACK).
    fn reset_reason(&self, conn: &Connection) -> CloseReason {
        let is_delivered = self
            .flights
            .get(conn.flight)
            .is_none_or(|flight| !conn.snd_una.before(flight.data.end()));
        match conn.state {
            State::Closing | State::LastAck if is_delivered => CloseReason::Finished,
            _ => CloseReason::Reset,
        }
    }

    /// Our side is closed and acknowledged; the server's time runs.
    fn enter_fin_wait_2(&mut self, conn: &mut Connection, now: Timestamp) {
        conn.state = State::FinWait2;
        let due = now + self.sender.settings.fin_wait_2;
        let mut flight = Flight::at(conn.snd_nxt, 0);
        flight.due = due;
        conn.flight = self.flights.insert(flight).unwrap_or(NONE);
    }
}
