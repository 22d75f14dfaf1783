//! What packets and visits need, loaded before they come to it, so that the cache misses of several overlap.
//!
//! Prefetch instructions would need `unsafe`; plain loads whose results nobody waits for do the same.

use std::hint::black_box;

use linkweir_wire::Transport;

use crate::stage::{FlowsStage, GROUP, Prepared};

impl Prepared<'_> {
    /// Whether there is something for layer 7.
    #[inline]
    const fn has_payload(&self) -> bool {
        match &self.packet.transport {
            Transport::Tcp(tcp) => tcp.payload_len > 0,
            _ => true,
        }
    }
}

impl FlowsStage {
    /// Loads what the packets of a group will need; the loads of a pass do not wait for one another.
    #[inline]
    pub(crate) fn touch(&self, group: &[Option<Prepared<'_>>]) {
        let mut sum = 0;
        for one in group.iter().flatten() {
            sum ^= self.index.touch(one.hash);
        }
        // A short loop each: what the processor can look ahead decides how many loads overlap.
        let mut flows = [None; GROUP];
        for (flow, one) in flows.iter_mut().zip(group) {
            let slot = one.as_ref().and_then(|one| self.index.guess(one.hash));
            *flow = slot.and_then(|slot| self.flows.get(slot));
        }
        for flow in flows.iter().flatten() {
            sum ^= flow.touch();
        }
        // Which of its other lines, and what layer 7 keeps, the first one tells.
        let both = || flows.iter().zip(group);
        for (flow, one) in both() {
            if let (Some(flow), Some(one)) = (flow, one) {
                sum ^= flow.touch_side(flow.side(one.is_low), one.has_payload());
            }
        }
        for (flow, one) in both() {
            if let (Some(flow), Some(one)) = (flow, one)
                && one.has_payload()
            {
                sum ^= self.layer7.touch(flow.layer7);
            }
        }
        black_box(sum);
    }

    /// Loads what the flows that are visited next will need; the loads of a pass do not wait for one
    /// another. Gives how many flows that are.
    pub(crate) fn touch_due(&self) -> usize {
        let mut sum = 0;
        let due = self.wheel.ahead();
        let flows = || due.iter().filter_map(|slot| self.flows.get(*slot));
        for flow in flows() {
            sum ^= flow.touch_all();
        }
        for flow in flows() {
            sum ^= self.index.touch(flow.key.hash(self.seed)) ^ self.layer7.touch(flow.layer7);
        }
        black_box(sum);
        due.len()
    }
}
