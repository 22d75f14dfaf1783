//! Data and FIN of the server. Source: RFC 9293 sec. 3.10.7.4 (seventh and eighth check).
//!
//! Acknowledgments: what has arrived, what is lost, how fast to go on. Sources: RFC 9293
//! sec. 3.10.7.4 (fifth check), RFC 5681, RFC 6298, RFC 6582, RFC 6675.

use super::connection::{Connection, Marks, State};
use super::flight::{DUP_THRESH, Flight};
use super::reassembly::Hold;
use super::run::span;
use super::segment::Segment;
use super::stack::{Context, Stack};
use crate::seam::{Listener, SegmentOut, TcpEvent};
use linkweir_table::NONE;
use linkweir_wire::{SeqNumber, TcpFlags, Timestamp};

/// Bits of a tick, as the wheel has them: 262 microseconds.
pub(super) const TICK_BITS: u32 = 18;

/// The tick of a time, rounded up, modulo 2^32.
pub(super) fn tick(at: Timestamp) -> u32 {
    let ticks = at.as_nanos().div_ceil(1 << TICK_BITS);
    u32::try_from(ticks & 0xffff_ffff).unwrap_or(0)
}

impl Stack {
    /// Takes what a segment brings of the stream; whether the server's FIN is reached. In order,
    /// data goes to the listener straight from the packet.
    pub(super) fn receive(
        &mut self,
        conn: &mut Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) -> bool {
        if segment.len() == 0 {
            return false;
        }
        if !conn.receives() {
            // Behind its FIN a server has nothing to say.
            conn.marks.set(Marks::ACK_NOW);
            return false;
        }
        if segment.payload.len() as u64 != u64::from(segment.payload_len) {
            self.sender.counts.cut += 1;
            return false;
        }
        if segment.seq.after(conn.rcv_nxt) {
            self.hold(conn, segment);
            return false;
        }
        let window = self.sender.receive_window(conn) as usize;
        let skip = span(segment.seq, conn.rcv_nxt) as usize;
        let new = segment.payload.get(skip..).unwrap_or_default();
        let fits = new.len() <= window;
        let new = new.get(..window).unwrap_or(new);
        self.deliver(conn, new, cx);
        let mut has_fin =
            fits && segment.has(TcpFlags::FIN) && segment.seq + segment.payload_len == conn.rcv_nxt;
        if conn.held != NONE {
            has_fin |= self.deliver_held(conn, cx);
            // A gap is filled, or a part of it (RFC 5681 sec. 4.2).
            conn.marks.set(Marks::ACK_NOW);
        }
        if has_fin {
            conn.rcv_nxt += 1;
            self.incoming.forget(&mut conn.held);
            if conn.state == State::Established {
                // Our FIN nearly always follows at once and takes the acknowledgment along, as it
                // does with Linux.
                self.owe_ack(conn, cx.now);
            } else {
                conn.marks.set(Marks::ACK_NOW);
            }
            cx.tell(conn, TcpEvent::PeerFinished);
            return true;
        }
        // At least every second full segment (RFC 9293 sec. 3.8.6.3).
        if span(conn.rcv_acked, conn.rcv_nxt) >= 2 * u32::from(conn.rcv_mss) {
            conn.marks.set(Marks::ACK_NOW);
        } else {
            self.owe_ack(conn, cx.now);
        }
        false
    }

    fn deliver(
        &mut self,
        conn: &mut Connection,
        bytes: &[u8],
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) {
        if !bytes.is_empty() {
            // At most the window.
            conn.rcv_nxt += u32::try_from(bytes.len()).unwrap_or(0);
            self.sender.counts.payload_in += bytes.len() as u64;
            cx.tell(conn, TcpEvent::Data(bytes));
        }
    }

    /// Delivers what has become next; whether the FIN stands behind it.
    fn deliver_held(
        &mut self,
        conn: &mut Connection,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) -> bool {
        let before = conn.rcv_nxt;
        let (id, user, at) = (cx.id, conn.user, cx.at);
        let (nxt, has_fin) = self.incoming.take_ready(&mut conn.held, before, |bytes| {
            cx.to.on_event(id, user, TcpEvent::Data(bytes), at);
        });
        conn.rcv_nxt = nxt;
        self.sender.counts.payload_in += u64::from(span(before, nxt));
        has_fin
    }

    /// Holds a segment ahead of a gap.
    fn hold(&mut self, conn: &mut Connection, segment: &Segment<'_>) {
        conn.marks.set(Marks::ACK_NOW);
        let counts = &mut self.sender.counts;
        counts.out_of_order += 1;
        let settings = &self.sender.settings;
        let most = settings.held_per_connection.min(settings.receive_window);
        if span(conn.rcv_nxt, segment.seq + segment.payload_len) > most {
            counts.not_held += 1;
            return;
        }
        let has_fin = segment.has(TcpFlags::FIN);
        match self
            .incoming
            .hold(&mut conn.held, segment.seq, segment.payload, has_fin)
        {
            Hold::Held => {}
            Hold::Known => counts.duplicates += 1,
            Hold::NoRoom => counts.not_held += 1,
        }
    }

    /// An acknowledgment is owed, after a while.
    pub(super) fn owe_ack(&self, conn: &mut Connection, now: Timestamp) {
        if !conn.marks.has(Marks::ACK_OWED) {
            conn.marks.set(Marks::ACK_OWED);
            conn.ack_due = tick(now + self.sender.settings.delayed_ack);
        }
    }
}

/// What an acknowledgment has settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Acked {
    /// With it all data that was given to us; it was not so before.
    pub(super) all_data: bool,
    /// Our FIN.
    pub(super) fin: bool,
}

impl Stack {
    /// Takes acknowledgment and window of a segment; `None` where they cannot be true and the
    /// segment is to be dropped.
    pub(super) fn acknowledge(
        &mut self,
        conn: &mut Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) -> Option<Acked> {
        let ack = segment.ack;
        let snd_max = self.snd_max(conn);
        let is_old = ack.before(conn.snd_una);
        // RFC 5961 sec. 5.2; for the largest window that the server ever had stands the largest that
        // it can have.
        let widest = 0xffff_u32 << conn.snd_shift.min(14);
        if ack.after(snd_max) || (is_old && span(ack, conn.snd_una) > widest) {
            self.sender.counts.bad_acks += 1;
            self.sender.challenge(conn, snd_max, cx.now, cx.out);
            return None;
        }
        if is_old {
            return Some(Acked::default());
        }
        let same_window = self.take_window(conn, segment);
        let Some(flight) = self.flights.get_mut(conn.flight) else {
            return Some(Acked::default());
        };
        let news = Self::take_sack(conn, flight, segment);
        if ack.after(conn.snd_una) {
            let acked = self.advance(conn, segment, cx);
            self.notice_loss(conn, cx);
            return Some(acked);
        }
        // A probe of a closed window is answered in the same way; that is not a loss.
        if flight.snd_max != conn.snd_una && conn.snd_wnd > 0 {
            let is_empty = segment.payload_len == 0 && !segment.has(TcpFlags::FIN);
            let is_duplicate = if conn.marks.has(Marks::SACK) {
                news
            } else {
                is_empty && same_window
            };
            if is_duplicate {
                flight.duplicate_acks = flight.duplicate_acks.saturating_add(1);
                self.sender.counts.duplicate_acks += 1;
                self.notice_loss(conn, cx);
            }
        }
        Some(Acked::default())
    }

    /// Takes the server's window; whether it is the same as before.
    fn take_window(&mut self, conn: &mut Connection, segment: &Segment<'_>) -> bool {
        let window = u32::from(segment.window) << conn.snd_shift.min(14);
        let before = conn.snd_wnd;
        if segment.seq.before(conn.snd_wl1) {
            return window == before;
        }
        conn.snd_wl1 = segment.seq;
        conn.snd_wnd = window;
        if let Some(flight) = self.flights.get_mut(conn.flight) {
            if window == 0 {
                // It answers: the connection stays (RFC 9293 sec. 3.8.6.1).
                flight.retries = 0;
            } else if before == 0 {
                // What was sent into the closed window is gone.
                conn.backoff = 0;
                conn.snd_nxt = segment.ack;
                flight.due = Timestamp::MAX;
            }
        }
        window == before
    }

    /// Takes selective acknowledgments; whether they brought news.
    fn take_sack(conn: &Connection, flight: &mut Flight, segment: &Segment<'_>) -> bool {
        let Some(blocks) = segment.sack.filter(|_| conn.marks.has(Marks::SACK)) else {
            return false;
        };
        let mut news = false;
        for (from, to) in blocks {
            // Blocks below the acknowledgment report duplicates (RFC 2883).
            let is_sane = from.before(to) && from.after(segment.ack) && !to.after(flight.snd_max);
            if is_sane {
                news |= flight.sacked.add((from, to));
            }
        }
        news
    }

    /// The server acknowledges something new.
    fn advance(
        &mut self,
        conn: &mut Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) -> Acked {
        let ack = segment.ack;
        let una = conn.snd_una;
        self.take_sample(conn, segment, cx.at);
        let Some(flight) = self.flights.get_mut(conn.flight) else {
            return Acked::default();
        };
        Self::adjust_window(conn, flight, ack);
        conn.snd_una = ack;
        if conn.snd_nxt.before(ack) {
            conn.snd_nxt = ack;
        }
        let end = flight.data.end();
        let acked = Acked {
            all_data: una.before(end) && !ack.before(end),
            fin: conn.has_fin() && ack.after(end),
        };
        flight.retries = 0;
        flight.due = Timestamp::MAX;
        flight.sacked.forget_before(ack);
        flight
            .data
            .forget_before(&mut self.outgoing, &mut flight.cursor, ack);
        if ack == end + u32::from(conn.has_fin()) {
            self.end_flight(conn);
            return acked;
        }
        let is_partial = flight.is_recovering && !conn.marks.has(Marks::SACK);
        if ack != flight.snd_max {
            // RFC 6298 (5.3).
            flight.due = cx.now + self.sender.rto(conn);
        }
        if is_partial {
            // The next one is lost too (RFC 6582 sec. 3.2, step 3).
            self.resend_first(conn, cx.now, cx.out);
        }
        acked
    }

    /// A round-trip time, where the acknowledgment tells one.
    fn take_sample(&mut self, conn: &mut Connection, segment: &Segment<'_>, at: Timestamp) {
        let Some(flight) = self.flights.get_mut(conn.flight) else {
            return;
        };
        if flight.timed_at == Timestamp::ZERO {
            // Something was sent again, so only the echoed timestamp can tell for which segment this
            // is.
            self.sample_echo(conn, segment, at);
        } else if !segment.ack.before(flight.timed_end) {
            let ns = at.nanos_since(flight.timed_at);
            flight.forget_timing();
            self.sample(conn, ns);
        }
    }

    /// A round-trip time from the timestamp that the server echoes (RFC 7323 sec. 4).
    pub(super) fn sample_echo(&self, conn: &mut Connection, segment: &Segment<'_>, at: Timestamp) {
        if !conn.marks.has(Marks::TIMESTAMPS) {
            return;
        }
        if let Some((_, echo)) = segment.timestamps
            && echo != 0
        {
            let clock = self.sender.keys.clock(conn.client, at);
            let ms = SeqNumber(clock) - SeqNumber(echo);
            // More than a minute is no round trip of ours.
            if let Ok(ms) = u64::try_from(ms)
                && ms <= 60_000
            {
                // Good enough for the timeout; it is not counted, because it is in milliseconds, and
                // after a loss on the way back the wait of the server is in it.
                conn.round_trip.sample(ms * 1_000_000);
                conn.backoff = 0;
            }
        }
    }

    /// Takes a sample; the timeout is no longer doubled.
    pub(super) fn sample(&mut self, conn: &mut Connection, ns: u64) {
        conn.round_trip.sample(ns);
        conn.backoff = 0;
        self.sender.counts.round_trip(ns);
    }

    /// Slow start, congestion avoidance, and the end of a recovery.
    fn adjust_window(conn: &mut Connection, flight: &mut Flight, ack: SeqNumber) {
        let mss = u32::from(conn.mss);
        let acked = span(conn.snd_una, ack);
        let outstanding = span(conn.snd_una, flight.snd_max);
        if flight.is_recovering {
            if ack.before(flight.recover) {
                // A partial acknowledgment: these have left the network.
                flight.duplicate_acks = flight.duplicate_acks.saturating_sub(acked / mss);
                return;
            }
            flight.is_recovering = false;
            flight.duplicate_acks = 0;
            // RFC 6582 sec. 3.2, step 3: no burst.
            let left = span(ack, flight.snd_max).max(mss) + mss;
            flight.cwnd = conn.ssthresh.min(left);
            return;
        }
        flight.duplicate_acks = 0;
        // A window that was not used says nothing about the network (RFC 7661).
        if outstanding.saturating_mul(2) < flight.cwnd {
            return;
        }
        let more = acked.min(mss);
        let step = if flight.cwnd < conn.ssthresh {
            more
        } else {
            // RFC 5681 sec. 3.1 (3).
            let share = u64::from(mss) * u64::from(more) / u64::from(flight.cwnd.max(1));
            u32::try_from(share).unwrap_or(0).max(1)
        };
        flight.cwnd = flight.cwnd.saturating_add(step).min(1 << 30);
    }

    /// Begins a recovery where three duplicates, or the scoreboard, say that the first segment is
    /// lost (RFC 5681 sec. 3.2, RFC 6675 sec. 5).
    fn notice_loss(
        &mut self,
        conn: &mut Connection,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) {
        let mss = u32::from(conn.mss);
        let Some(flight) = self.flights.get_mut(conn.flight) else {
            return;
        };
        let una = conn.snd_una;
        let (is_after, is_lost) = if conn.marks.has(Marks::SACK) {
            let is_lost = flight.sacked.is_lost(una, mss);
            (!una.before(flight.recover), is_lost)
        } else {
            // What is sent again after a loss makes duplicates too: RFC 6582 sec. 3.2, step 2.
            (una.after(flight.recover), false)
        };
        let is_lost = is_lost || flight.duplicate_acks >= DUP_THRESH;
        if flight.is_recovering || !is_after || !is_lost || flight.snd_max == una {
            return;
        }
        self.sender.counts.fast_retransmits += 1;
        // RFC 5681 (4).
        conn.ssthresh = (span(una, flight.snd_max) / 2).max(2 * mss);
        flight.cwnd = conn.ssthresh;
        flight.is_recovering = true;
        flight.recover = flight.snd_max;
        flight.high_rxt = una;
        flight.due = Timestamp::MAX;
        self.resend_first(conn, cx.now, cx.out);
    }

    /// Sends the first segment that is not acknowledged again, whatever the windows say.
    fn resend_first(&mut self, conn: &mut Connection, now: Timestamp, out: &mut impl SegmentOut) {
        let una = conn.snd_una;
        let Some(flight) = self.flights.get(conn.flight) else {
            return;
        };
        let mut len = span(una, flight.snd_max);
        if let Some(known) = flight.sacked.next_above(una) {
            len = len.min(span(una, known));
        }
        let sent = self.send_at(conn, una, len, now, out);
        if let Some(flight) = self.flights.get_mut(conn.flight) {
            flight.high_rxt = una + sent;
        }
    }
}
