//! How long to wait for an acknowledgment. Source: RFC 6298.

use std::time::Duration;

use linkweir_wire::nanos;

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

    /// `RTO` after `backoff` doublings: `initial` before the first sample (2.1), never above `max`
    /// (2.5). As Linux does, `min` bounds what is added to the round trip and not the sum (2.4), so
    /// that a server which delays its acknowledgments is waited for also where it is far away.
    pub(super) fn rto(
        self,
        backoff: u8,
        initial: Duration,
        min: Duration,
        max: Duration,
    ) -> Duration {
        let base = if self.is_known() {
            let variation = (4 * u64::from(self.rttvar)).max(GRANULARITY) * 1000;
            u64::from(self.srtt) * 1000 + variation.max(nanos(min))
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
        assert_eq!(bounded, min + Duration::from_micros(112_500), "(2.4)");
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
