//! What happens when time has passed: owed acknowledgments, retransmissions, probes, giving up.
//! Sources: RFC 6298 sec. 5, RFC 9293 sec. 3.8.3 and 3.8.6.1.
//!
//! How long to wait for an acknowledgment. Source: RFC 6298.

use super::connection::{Connection, Marks, State};
use super::receive::{TICK_BITS, tick};
use super::run::span;
use super::stack::{Fate, Stack};
use crate::seam::{CloseReason, SegmentOut};
use linkweir_wire::{SeqNumber, Timestamp, nanos};
use std::time::Duration;

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

/// The smoothed round-trip time of a connection (RFC 6298 sec. 2), microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RoundTrip {
    /// `SRTT`; 0 before the first sample.
    srtt: u32,
    /// `RTTVAR`.
    rttvar: u32,
}

/// Clock granularity `G` of the RFC, microseconds: the tick of the timers.
const GRANULARITY: u64 = 262;

impl RoundTrip {
    /// Takes a sample, nanoseconds.
    pub(super) fn sample(&mut self, ns: u64) {
        // Zero means that there is none; more than an hour is no round trip.
        let r = u32::try_from((ns / 1000).clamp(1, 3_600_000_000)).unwrap_or(u32::MAX);
        if self.srtt == 0 {
            // (2.2)
            self.srtt = r;
            self.rttvar = r / 2;
            return;
        }
        // (2.3) with alpha 1/8 and beta 1/4, the variation first.
        let delta = u64::from(self.srtt.abs_diff(r));
        let rttvar = (3 * u64::from(self.rttvar) + delta) / 4;
        let srtt = (7 * u64::from(self.srtt) + u64::from(r)) / 8;
        self.rttvar = u32::try_from(rttvar).unwrap_or(u32::MAX);
        self.srtt = u32::try_from(srtt.max(1)).unwrap_or(u32::MAX);
    }

    /// Whether there was a sample.
    pub(super) const fn is_known(self) -> bool {
        self.srtt != 0
    }

    /// `RTO` after `backoff` doublings: `initial` before the first sample (2.1), never below `min`
    /// (2.4) or above `max` (2.5).
    pub(super) fn rto(
        self,
        backoff: u8,
        initial: Duration,
        min: Duration,
        max: Duration,
    ) -> Duration {
        let base = if self.is_known() {
            let variation = (4 * u64::from(self.rttvar)).max(GRANULARITY);
            nanos(min).max((u64::from(self.srtt) + variation) * 1000)
        } else {
            nanos(initial)
        };
        let doubled = base.saturating_mul(1 << backoff.min(16));
        Duration::from_nanos(doubled.min(nanos(max)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn rto(round_trip: RoundTrip, backoff: u8) -> Duration {
        round_trip.rto(
            backoff,
            Duration::from_secs(1),
            Duration::ZERO,
            Duration::from_secs(60),
        )
    }

    #[test]
    fn values_of_the_rfc() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(rto(round_trip, 0), Duration::from_secs(1), "(2.1)");
        round_trip.sample(100 * MS);
        // (2.2): SRTT 100, RTTVAR 50, RTO 100 + 4 * 50.
        assert_eq!(rto(round_trip, 0), Duration::from_millis(300));
        round_trip.sample(200 * MS);
        // (2.3): RTTVAR 3/4 * 50 + 1/4 * 100 = 62.5, SRTT 7/8 * 100 + 1/8 * 200 = 112.5.
        assert_eq!(rto(round_trip, 0), Duration::from_micros(362_500));
        assert_eq!(
            rto(round_trip, 2),
            Duration::from_micros(4 * 362_500),
            "(5.5)"
        );
        assert_eq!(rto(round_trip, 30), Duration::from_secs(60), "(2.5)");
        let min = Duration::from_millis(500);
        let bounded = round_trip.rto(0, min, min, Duration::from_secs(60));
        assert_eq!(bounded, min, "(2.4)");
    }

    #[test]
    fn a_steady_round_trip_leaves_the_granularity() {
        let mut round_trip = RoundTrip::default();
        for _ in 0..200 {
            round_trip.sample(10 * MS);
        }
        let rto = rto(round_trip, 0);
        assert!(rto >= Duration::from_millis(10) && rto < Duration::from_micros(10_500));
        round_trip.sample(0);
        round_trip.sample(u64::MAX);
        assert!(round_trip.is_known());
    }
}
