//! What happens when time has passed: owed acknowledgments, retransmissions, probes, giving up.
//! Sources: RFC 6298 sec. 5, RFC 9293 sec. 3.8.3 and 3.8.6.1.

use linkweir_wire::{SeqNumber, Timestamp};

use super::connection::{Connection, Marks, State};
use super::receive::{TICK_BITS, tick};
use super::run::span;
use super::stack::{Fate, Stack};
use crate::seam::{CloseReason, SegmentOut};

impl Stack {
    /// When a connection wants to be looked at next.
    pub(super) fn deadline(&self, conn: &Connection, now: Timestamp) -> Option<Timestamp> {
        let due = self
            .flights
            .get(conn.flight)
            .map_or(Timestamp::MAX, |flight| flight.due);
        let mut first = due;
        if conn.marks.has(Marks::ACK_OWED) {
            let ticks = SeqNumber(conn.ack_due) - SeqNumber(tick(now));
            let base = now.as_nanos().div_ceil(1 << TICK_BITS);
            let ticks = base.saturating_add_signed(i64::from(ticks));
            first = first.min(Timestamp::from_nanos(ticks << TICK_BITS));
        }
        (first != Timestamp::MAX).then_some(first)
    }

    /// Does what is due of a connection.
    pub(super) fn on_due(
        &mut self,
        conn: &mut Connection,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) -> Fate {
        let is_due = self
            .flights
            .get(conn.flight)
            .is_some_and(|flight| flight.due <= now);
        if is_due {
            let fate = self.on_timeout(conn, now, out);
            if fate != Fate::Open {
                return fate;
            }
        }
        if !Self::is_ack_due(conn, now) {
            return Fate::Open;
        }
        if conn.awaits_fin() {
            // The server does not close: we do.
            conn.state = State::FinWait1;
            self.begin_flight(conn);
            self.transmit(conn, now, out);
        }
        // Where a closed window holds the FIN back, nothing has taken it along.
        if conn.marks.has(Marks::ACK_OWED) {
            let seq = self.snd_max(conn);
            self.sender.ack(conn, seq, &[], now, out);
        }
        Fate::Open
    }

    fn is_ack_due(conn: &Connection, now: Timestamp) -> bool {
        conn.marks.has(Marks::ACK_OWED) && !SeqNumber(conn.ack_due).after(SeqNumber(tick(now)))
    }

    /// The retransmission timer, or what stands in its place, has expired.
    fn on_timeout(
        &mut self,
        conn: &mut Connection,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) -> Fate {
        if conn.state == State::FinWait2 {
            self.sender.counts.fin_wait_2_timeouts += 1;
            self.sender.reset(conn, conn.snd_nxt, now, out);
            return Fate::Ended(CloseReason::Aborted);
        }
        let is_opening = conn.state == State::SynSent;
        let settings = &self.sender.settings;
        let (most, reason) = if is_opening {
            (settings.syn_retries, CloseReason::ConnectTimeout)
        } else {
            (settings.retries, CloseReason::SendTimeout)
        };
        let Some(flight) = self.flights.get_mut(conn.flight) else {
            return Fate::Open;
        };
        if flight.retries >= most {
            let seq = flight.snd_max;
            self.sender.reset(conn, seq, now, out);
            return Fate::Ended(reason);
        }
        flight.retries += 1;
        flight.due = Timestamp::MAX;
        // RFC 6298 (5.5).
        conn.backoff = conn.backoff.saturating_add(1);
        if is_opening {
            self.resend_syn(conn, now, out);
        } else if conn.snd_wnd == 0 {
            self.probe(conn, now, out);
        } else {
            self.resend_all(conn, now, out);
        }
        Fate::Open
    }

    fn resend_syn(&mut self, conn: &Connection, now: Timestamp, out: &mut impl SegmentOut) {
        if let Some(syn) = self.syn_of(conn) {
            self.sender.counts.syn_retransmissions += 1;
            self.sender.syn(&syn, now, out);
        }
        let rto = self.sender.rto(conn);
        if let Some(flight) = self.flights.get_mut(conn.flight) {
            flight.due = now + rto;
        }
    }

    /// One byte, or the FIN, into a closed window.
    fn probe(&mut self, conn: &mut Connection, now: Timestamp, out: &mut impl SegmentOut) {
        self.sender.counts.window_probes += 1;
        let una = conn.snd_una;
        self.send_at(conn, una, 1, now, out);
    }

    /// Begins anew with what is not acknowledged: slow start from one segment (RFC 5681 sec. 3.1).
    fn resend_all(&mut self, conn: &mut Connection, now: Timestamp, out: &mut impl SegmentOut) {
        let mss = u32::from(conn.mss);
        let Some(flight) = self.flights.get_mut(conn.flight) else {
            return;
        };
        self.sender.counts.timeouts += 1;
        if flight.retries == 1 {
            conn.ssthresh = (span(conn.snd_una, flight.snd_max) / 2).max(2 * mss);
        }
        flight.cwnd = mss;
        flight.sacked.clear();
        flight.is_recovering = false;
        flight.duplicate_acks = 0;
        flight.recover = flight.snd_max;
        flight.forget_timing();
        conn.snd_nxt = conn.snd_una;
        self.transmit(conn, now, out);
    }
}
