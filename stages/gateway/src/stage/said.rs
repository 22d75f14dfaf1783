//! What the stage says of itself: counters, and connections that went undecided.

use super::{GatewayStage, Shared};
use crate::connection::Undecided;
use crate::stats::Stats;

impl GatewayStage {
    /// From now on, remembers each connection that goes undecided, until they are taken: for a trial, not for a queue.
    pub fn keep_undecided(&mut self) {
        self.shared.undecided.get_or_insert_default();
    }

    /// Connections that went undecided since they were last taken, in the order in which they went; none where they are not
    /// kept ([`GatewayStage::keep_undecided`]).
    pub fn take_undecided(&mut self) -> Vec<Undecided> {
        let kept = self.shared.undecided.as_mut();
        kept.map(std::mem::take).unwrap_or_default()
    }

    /// The counters so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let Shared { budget, .. } = &self.shared;
        Stats {
            applications: self.shared.labels.by_name(&self.shared.policy),
            held_packets: budget.packets as u64,
            held_bytes: budget.bytes as u64,
            peak_held_packets: budget.peak_packets as u64,
            connections: self.connections.len() as u64,
            half_open: self.handshakes.len() as u64,
            ..self.shared.stats.clone()
        }
    }

    /// Bytes of memory that files under inspection were given now.
    #[must_use]
    pub const fn inspection_bytes(&self) -> usize {
        self.shared.memory
    }
}
