//! What may be sent now. Sources: RFC 9293 sec. 3.8.6, RFC 5681, RFC 6675.

use super::connection::{Connection, Marks, State};
use super::emit::Parts;
use super::flight::Flight;
use super::run::span;
use super::stack::Stack;
use crate::seam::SegmentOut;
use linkweir_wire::{SeqNumber, TcpFlags, Timestamp};

impl Stack {
    /// Sends what the windows allow, and sees to it that a timer runs for what is not acknowledged.
    pub(super) fn transmit(
        &mut self,
        conn: &mut Connection,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) {
        if conn.state == State::SynSent || conn.state == State::FinWait2 {
            return;
        }
        while let Some((seq, len)) = self.next_lost(conn) {
            let sent = self.send_at(conn, seq, len, now, out);
            if let Some(flight) = self.flights.get_mut(conn.flight) {
                flight.high_rxt = seq + sent;
            }
            if sent == 0 {
                break;
            }
        }
        while let Some((seq, len)) = self.next_new(conn) {
            let sent = self.send_at(conn, seq, len, now, out);
            conn.snd_nxt = seq + sent;
            if sent == 0 {
                break;
            }
        }
        if let Some(flight) = self.flights.get_mut(conn.flight)
            && flight.due == Timestamp::MAX
        {
            // Something is under way, or the server's window is closed: then the timer is that of
            // the probe (RFC 9293 sec. 3.8.6.1).
            flight.due = now + self.sender.rto(conn);
        }
    }

    /// Bytes under way.
    fn pipe(conn: &Connection, flight: &Flight) -> u32 {
        let mss = u32::from(conn.mss);
        if conn.marks.has(Marks::SACK) {
            let high_rxt = if flight.is_recovering {
                flight.high_rxt
            } else {
                conn.snd_nxt
            };
            return flight
                .sacked
                .pipe(conn.snd_una, conn.snd_nxt, high_rxt, mss);
        }
        // Without selective acknowledgments each duplicate says that one segment has arrived.
        span(conn.snd_una, conn.snd_nxt).saturating_sub(flight.duplicate_acks.saturating_mul(mss))
    }

    /// The next segment that is lost, where there is room for it (RFC 6675 sec. 4, `NextSeg` (1)).
    fn next_lost(&self, conn: &Connection) -> Option<(SeqNumber, u32)> {
        let flight = self.flights.get(conn.flight)?;
        if !flight.is_recovering || !conn.marks.has(Marks::SACK) {
            return None;
        }
        let mss = u32::from(conn.mss);
        let from = if flight.high_rxt.before(conn.snd_una) {
            conn.snd_una
        } else {
            flight.high_rxt
        };
        let seq = flight.sacked.skip(from);
        let len = span(seq, flight.sacked.next_above(seq)?).min(mss);
        let has_room = Self::pipe(conn, flight).saturating_add(len) <= flight.cwnd;
        (has_room && flight.sacked.is_lost(seq, mss)).then_some((seq, len))
    }

    /// The next segment at `SND.NXT`, where both windows allow it. After a timeout that is what was
    /// sent before, without what has arrived.
    fn next_new(&self, conn: &Connection) -> Option<(SeqNumber, u32)> {
        let flight = self.flights.get(conn.flight)?;
        let seq = flight.sacked.skip(conn.snd_nxt);
        let end = flight.data.end();
        if !seq.before(end + u32::from(conn.has_fin())) {
            return None;
        }
        let mut want = span(seq, end).min(u32::from(conn.mss));
        if let Some(known) = flight.sacked.next_above(seq) {
            want = want.min(span(seq, known));
        }
        let room = span(seq, conn.snd_una + conn.snd_wnd);
        let len = want.min(room);
        // A part of a segment is sent only where nothing else is under way: no silly windows
        // (RFC 9293 sec. 3.8.6.2.1).
        if room == 0 || (len < want && seq != conn.snd_una) {
            return None;
        }
        let pipe = Self::pipe(conn, flight);
        (pipe == 0 || pipe.saturating_add(len) <= flight.cwnd).then_some((seq, len))
    }

    /// Sends up to `len` bytes from `seq` on, and the FIN where it stands behind them. Gives the
    /// sequence numbers used.
    pub(super) fn send_at(
        &mut self,
        conn: &mut Connection,
        seq: SeqNumber,
        len: u32,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) -> u32 {
        let Some(flight) = self.flights.get_mut(conn.flight) else {
            return 0;
        };
        let end = flight.data.end();
        let len = len.min(span(seq, end)).min(u32::from(conn.mss));
        let is_last = seq + len == end;
        let has_fin = is_last && conn.has_fin();
        let mut flags = TcpFlags::ACK;
        if has_fin {
            flags = flags | TcpFlags::FIN;
        }
        if is_last && len > 0 {
            flags = flags | TcpFlags::PSH;
        }
        let used = len + u32::from(has_fin);
        if used == 0 {
            return 0;
        }
        if seq.before(flight.snd_max) {
            self.sender.counts.retransmissions += 1;
            flight.forget_timing();
        } else if flight.timed_at == Timestamp::ZERO {
            flight.timed_at = now;
            flight.timed_end = seq + used;
        }
        if (seq + used).after(flight.snd_max) {
            flight.snd_max = seq + used;
        }
        if (seq + used).after(conn.snd_nxt) {
            conn.snd_nxt = seq + used;
        }
        if flight.due == Timestamp::MAX {
            flight.due = now + self.sender.rto(conn);
        }
        let payload = flight.data.read(
            &self.outgoing,
            &mut flight.cursor,
            seq,
            len,
            &mut self.scratch,
        );
        let parts = Parts {
            seq,
            flags,
            payload,
            blocks: &[],
        };
        self.sender.segment(conn, &parts, now, out);
        used
    }
}
