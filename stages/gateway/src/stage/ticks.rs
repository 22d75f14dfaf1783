//! What happens without a packet: reports of scanners, and time that is up.

use linkweir_engine::Effects;
use linkweir_engine::effect::{ScanOutcome, ScanReport};
use linkweir_record::GatewayKind;
use linkweir_wire::Timestamp;

use super::{GatewayStage, later};
use crate::hold::Stream;

/// How long a packet waits for the next one of a file that only the end of its connection ends.
pub(super) const HOLD_LAST_NS: u64 = 500_000_000;

impl GatewayStage {
    /// The report of a scanner; reports of scans that are not awaited are ignored.
    pub fn on_report(
        &mut self,
        report: &ScanReport,
        now: Timestamp,
        effects: &mut Effects<GatewayKind>,
    ) {
        let Some(scan) = self.scans.remove(&report.ticket) else {
            return;
        };
        self.deadlines.remove(&(scan.until, report.ticket));
        self.shared
            .stats
            .scan_wait_ns
            .record(now.nanos_since(scan.since));
        let found = self
            .connections
            .find(scan.hash, |conn| conn.key == scan.key);
        if let Some(id) = found {
            self.with(id, scan.hash, now, effects, |work| work.on_report(report));
        }
    }

    /// Time has come to `now`: scans and segments that did not come in time, connections that are
    /// silent.
    pub fn on_tick(&mut self, now: Timestamp, effects: &mut Effects<GatewayKind>) {
        while let Some((_, ticket)) = self.deadlines.first().filter(|(until, _)| *until <= now) {
            let ticket = *ticket;
            self.shared.stats.scan_timeouts += 1;
            effects.abandoned.push(ticket);
            let since = self.scans.get(&ticket).map_or(now, |scan| scan.since);
            let report = ScanReport {
                ticket,
                outcome: ScanOutcome::Failed("the scanner did not answer in time".to_owned()),
                latency_ns: now.nanos_since(since),
            };
            self.on_report(&report, now, effects);
        }
        self.end_last_holds(now, effects);
        self.end_silent(now, effects);
        self.recent.expire(now);
    }

    /// Packets that wait for the next one of their file wait no longer.
    fn end_last_holds(&mut self, now: Timestamp, effects: &mut Effects<GatewayKind>) {
        while let Some((since, key, hash)) = self.waits.front().copied() {
            if later(since, HOLD_LAST_NS) > now {
                return;
            }
            self.waits.pop_front();
            let Some(id) = self.connections.find(hash, |conn| conn.key == key) else {
                continue;
            };
            let oldest = self.connections.get(id).and_then(|conn| {
                let waits = conn.streams.iter().filter_map(Stream::delivered_since);
                waits.min()
            });
            let Some(since) = oldest else { continue };
            // In the order of time, or nearly: it is inspected again then.
            self.waits.push_back((now, key, hash));
            // What waits now may have begun to wait later.
            if later(since, HOLD_LAST_NS) <= now {
                self.with(id, hash, now, effects, |work| work.on_last_hold_timeout());
            }
        }
    }

    fn end_silent(&mut self, now: Timestamp, effects: &mut Effects<GatewayKind>) {
        let timeout = self.shared.policy.limits.idle_timeout_ns;
        // A few at a time: the next tick goes on.
        for _ in 0..256 {
            let Some((id, conn)) = self.connections.oldest() else {
                return;
            };
            if now.nanos_since(conn.last) <= timeout {
                return;
            }
            if conn.holds_any() {
                // What it holds has a time of its own.
                self.connections.refresh(id);
            } else {
                self.forget(id, now, effects);
            }
        }
    }
}
