//! Data and FIN of the server. Source: RFC 9293 sec. 3.10.7.4 (seventh and eighth check).

use linkweir_table::NONE;
use linkweir_wire::{TcpFlags, Timestamp};

use super::connection::{Connection, Marks, State};
use super::reassembly::Hold;
use super::run::span;
use super::segment::Segment;
use super::stack::{Context, Stack};
use crate::seam::{Listener, SegmentOut, TcpEvent};

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
