//! The SYN ACK. Source: RFC 9293 sec. 3.10.7.3.

use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{SeqNumber, TcpFlags, Timestamp};

use super::connection::{Connection, Marks, State};
use super::emit::{Syn, TIMESTAMPS_LEN};
use super::flight::Flight;
use super::segment::Segment;
use super::stack::{Context, Fate, Stack};
use crate::seam::{CloseReason, Listener, SegmentOut, TcpEvent};

/// The least segment that a server may ask for; below, headers would be nearly all that is sent.
const LEAST_MSS: u16 = 64;

impl Stack {
    /// The SYN of a connection in SYN-SENT; until it is made its `mss` is what we announce.
    pub(super) fn syn_of(&self, conn: &Connection) -> Option<Syn> {
        Some(Syn {
            client: conn.client,
            local: conn.local(),
            remote: self.sender.remotes.get(conn.remote)?,
            seq: conn.snd_una,
            mss: conn.mss,
        })
    }

    /// Puts a connection into SYN-SENT; what is under way is the SYN.
    pub(super) fn begin(&mut self, conn: &mut Connection, iss: SeqNumber, now: Timestamp) -> bool {
        conn.snd_una = iss;
        conn.snd_nxt = iss + 1;
        let mut flight = Flight::at(iss + 1, 0);
        flight.begun = now;
        flight.due = now + self.sender.rto(conn);
        let Some(at) = self.flights.insert(flight) else {
            return false;
        };
        conn.flight = at;
        self.sender.counts.connects += 1;
        true
    }

    /// A connection in SYN-SENT hears a segment. Data and FIN of a SYN ACK are not taken: the server
    /// sends them again.
    pub(super) fn hear_syn_ack(
        &mut self,
        conn: &mut Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) -> Fate {
        let has_ack = segment.has(TcpFlags::ACK);
        let is_reset = segment.has(TcpFlags::RST);
        if has_ack && segment.ack != conn.snd_nxt {
            self.sender.counts.bad_acks += 1;
            if !is_reset {
                self.refuse(conn, segment, cx);
            }
            return Fate::Open;
        }
        if is_reset {
            if !has_ack {
                return Fate::Open;
            }
            self.sender.counts.resets_in += 1;
            return Fate::Ended(CloseReason::Refused);
        }
        if !segment.has(TcpFlags::SYN) {
            return Fate::Open;
        }
        if !has_ack {
            self.sender.counts.simultaneous_opens += 1;
            return Fate::Open;
        }
        self.establish(conn, segment, cx);
        Fate::Open
    }

    /// Answers a segment that acknowledges what we never sent.
    fn refuse(
        &mut self,
        conn: &Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) {
        let Some(remote) = self.sender.remotes.get(conn.remote) else {
            return;
        };
        let frame = TcpFrame {
            seq: segment.ack,
            flags: TcpFlags::RST,
            window: 0,
            ..TcpFrame::new(conn.local(), remote)
        };
        self.sender.counts.resets_out += 1;
        self.sender.bare(conn.client, &frame, cx.now, cx.out);
    }

    fn establish(
        &mut self,
        conn: &mut Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) {
        self.agree(conn, segment);
        conn.rcv_nxt = segment.seq + 1;
        conn.rcv_acked = conn.rcv_nxt;
        conn.snd_una = segment.ack;
        // Never scaled in a SYN ACK.
        conn.snd_wnd = u32::from(segment.window);
        conn.snd_wl1 = segment.seq;
        conn.state = State::Established;
        conn.backoff = 0;
        let (begun, again) = self
            .flights
            .get(conn.flight)
            .map_or((cx.at, 0), |flight| (flight.begun, flight.retries));
        let handshake_ns = cx.at.nanos_since(begun);
        if again == 0 {
            self.sample(conn, handshake_ns);
        } else {
            conn.marks.set(Marks::SYN_LOST);
            self.sample_echo(conn, segment, cx.at);
        }
        self.sender.counts.established += 1;
        let event = TcpEvent::Connected {
            handshake_ns,
            syn_retransmissions: u32::from(again),
        };
        cx.tell(conn, event);
        if conn.marks.has(Marks::CLOSE_ASKED) {
            conn.state = State::FinWait1;
        }
        let has_data = self
            .flights
            .get(conn.flight)
            .is_some_and(|flight| flight.data.end() != conn.snd_nxt);
        if has_data || conn.has_fin() {
            let cwnd = Self::initial_window(conn);
            if let Some(flight) = self.flights.get_mut(conn.flight) {
                flight.cwnd = cwnd;
                flight.due = Timestamp::MAX;
                flight.retries = 0;
            }
        } else {
            self.end_flight(conn);
        }
        if self.sender.settings.delay_handshake_ack {
            self.owe_ack(conn, cx.now);
        } else {
            conn.marks.set(Marks::ACK_NOW);
        }
    }

    /// Takes the options of the SYN ACK; a server that answers with SYN cookies may send none.
    fn agree(&self, conn: &mut Connection, segment: &Segment<'_>) {
        let settings = &self.sender.settings;
        let overhead = match segment.timestamps {
            Some((value, _)) if settings.timestamps => {
                conn.marks.set(Marks::TIMESTAMPS);
                conn.ts_recent = value;
                TIMESTAMPS_LEN
            }
            _ => 0,
        };
        if settings.sack && segment.sack_permitted {
            conn.marks.set(Marks::SACK);
        }
        if let Some(scale) = segment.window_scale {
            conn.marks.set(Marks::SCALED);
            conn.snd_shift = scale;
        }
        // RFC 9293 sec. 3.7.1: without the option 536 or 1220. Until now `mss` is what we announced.
        let default = if conn.local().is_ipv4() { 536 } else { 1220 };
        let theirs = segment.mss.unwrap_or(default).max(LEAST_MSS);
        // RFC 6691: options come off what is announced.
        conn.rcv_mss = conn.mss.saturating_sub(overhead).max(1);
        conn.mss = conn.mss.max(LEAST_MSS).min(theirs) - overhead;
    }

    /// `IW` (RFC 6928); one segment where the SYN was lost (RFC 5681 sec. 3.1).
    pub(super) fn initial_window(conn: &Connection) -> u32 {
        let mss = u32::from(conn.mss);
        if conn.marks.has(Marks::SYN_LOST) {
            return mss;
        }
        (10 * mss).min((2 * mss).max(14_600))
    }
}
