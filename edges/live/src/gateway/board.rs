//! Where a gateway puts its status for those who watch.

use linkweir_engine::RunReport;
use linkweir_engine::seams::{Drops, TableFill};
use linkweir_wire::Timestamp;

use super::GatewayStatus;
use crate::live::GatewayLive;

/// A handle for the thread that knows the status; a clone is another handle on the same.
///
/// Intervals close when a status comes, so that one is wanted about once a second even where nothing
/// happens.
#[derive(Debug, Clone)]
pub struct StatusBoard(GatewayLive);

impl StatusBoard {
    /// A handle on `live`.
    #[must_use]
    pub const fn new(live: GatewayLive) -> Self {
        Self(live)
    }

    /// Shows the status at `now`, by the clock that the events have their times from. Cheap: a few
    /// additions under a lock.
    pub fn show(&self, status: GatewayStatus, now: Timestamp) {
        let report = report(&status, now);
        self.0.set_sink_drops(status.events_lost);
        self.0.tick(&report, now);
        self.0.set_status(status, now);
    }

    /// Shows the last status; the run has ended, and readers are told.
    pub fn finish(&self, status: GatewayStatus, now: Timestamp) {
        self.show(status, now);
        self.0.close();
    }
}

/// The counters that every run has, out of those of a gateway. How many connections the table can hold
/// is not known here: its capacity is 0.
fn report(status: &GatewayStatus, now: Timestamp) -> RunReport {
    RunReport {
        packets: status.packets,
        bytes: status.bytes,
        last: Some(now),
        drops: Drops {
            kernel: status.lost_packets(),
            ..Drops::default()
        },
        fill: TableFill {
            entries: status.connections,
            evicted: status.evicted,
            capacity: 0,
        },
        ..RunReport::default()
    }
}
