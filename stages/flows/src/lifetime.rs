//! How flows begin and end: the table, the wheel, eviction.

use linkweir_record::RecordBatch;
use linkweir_record::flow::{Event, FlowBatch, FlowState};
use linkweir_table::NONE;

use crate::flow::Flow;
use crate::partial::PartialState;
use crate::stage::{FlowsStage, Prepared};

/// Flows that leave at a time when they are due, for a group of packets: what is due longer waits a
/// little, and records do not pile up.
const DUE: usize = 64;

/// Flows among which the one idle longest leaves when the table is full.
const SAMPLE: u32 = 16;

impl FlowsStage {
    /// A new flow.
    #[inline(never)]
    pub(crate) fn open(
        &mut self,
        one: &Prepared<'_>,
        src_is_client: bool,
        out: &mut FlowBatch,
    ) -> u32 {
        if self.flows.len() >= self.max_flows {
            self.evict(out);
        }
        let slot = self.flows.take().unwrap_or(NONE);
        let client_is_low = src_is_client == one.is_low;
        let mut flow = Flow::new(one.key, one.now, one.packet.vlan, client_is_low);
        if !src_is_client {
            flow.history.push(Event::Flipped, true);
        }
        let due = flow.deadline(&self.timeouts);
        if let Some(place) = self.flows.get_mut(slot) {
            *place = flow;
            if self.periodic_ns.is_some() {
                place.partial = self.partial.take().unwrap_or(NONE);
                if let Some(part) = self.partial.get_mut(place.partial) {
                    *part = PartialState::begin(one.now);
                }
            }
            let ends = place.ends();
            let (client, server) = (
                self.internal.contains(ends.client.0),
                self.internal.contains(ends.server.0),
            );
            place.set_internal(client, server);
            if let Some(recorder) = &mut self.recorder {
                recorder.on_open(place.protocol(), client, server);
            }
            if self.with_names {
                self.layer7.opened(&mut place.layer7, &ends);
            }
        }
        self.index.insert(one.hash, slot);
        let due = self.soonest(due, one.now);
        self.wheel.file(slot, due);
        self.stats.peak_flows = self.stats.peak_flows.max(self.flows.len() as u64);
        slot
    }

    /// A due moment, or that of the next partial record.
    pub(crate) fn soonest(&self, due: u64, since: u64) -> u64 {
        self.periodic_ns
            .map_or(due, |period| due.min(since.saturating_add(period)))
    }

    /// Files a flow again whose deadline has changed.
    pub(crate) fn file_anew(&mut self, slot: u32) {
        let Some(flow) = self.flows.get(slot) else {
            return;
        };
        let since = self
            .partial
            .get(flow.partial)
            .map_or(u64::MAX, |part| part.since);
        let due = self.soonest(flow.deadline(&self.timeouts), since);
        self.wheel.file(slot, due);
    }

    /// Ends the flows that are due, and files the others anew.
    #[cold]
    pub(crate) fn look_at_wheel(&mut self, out: &mut FlowBatch) {
        let now = self.now;
        let full = out.len() + DUE;
        let mut touched = 0;
        while out.len() < full {
            if touched == 0 {
                touched = self.touch_due();
            }
            touched = touched.saturating_sub(1);
            let Some(slot) = self.wheel.visit(now) else {
                self.due = self.wheel.next_ns();
                return;
            };
            let Some(flow) = self.flows.get(slot) else {
                continue;
            };
            if now > flow.deadline(&self.timeouts) {
                self.end(slot, None, out);
                continue;
            }
            if let Some(period) = self.periodic_ns {
                self.tell_if_due(slot, period, now, out);
            }
            self.file_anew(slot);
        }
    }

    /// The flow that was idle longest, of a sample, leaves. Flows that never were answered go first:
    /// a flood of SYNs does not push out what is established.
    #[cold]
    pub(crate) fn evict(&mut self, out: &mut FlowBatch) {
        let used = self.flows.used();
        let mut worst: Option<(bool, u64, u32)> = None;
        let mut tries = 0;
        while tries < SAMPLE * 8 && worst.is_none() || tries < SAMPLE {
            tries += 1;
            // xorshift64 (Marsaglia 2003).
            self.sample_rng ^= self.sample_rng << 13;
            self.sample_rng ^= self.sample_rng >> 7;
            self.sample_rng ^= self.sample_rng << 17;
            let slot = u32::try_from((self.sample_rng >> 16) % u64::from(used.max(1))).unwrap_or(0);
            let Some(flow) = self.flows.get(slot).filter(|flow| flow.is_used()) else {
                continue;
            };
            let candidate = (!flow.is_only_syns(), flow.last_ns, slot);
            worst = Some(worst.map_or(candidate, |worst| worst.min(candidate)));
        }
        if let Some((_, _, slot)) = worst {
            self.stats.evicted += 1;
            self.end(slot, Some(FlowState::Evicted), out);
        }
    }

    /// Writes the record of a flow and forgets it.
    pub(crate) fn end(&mut self, slot: u32, state: Option<FlowState>, out: &mut FlowBatch) {
        self.write(slot, state, out);
        self.wheel.remove(slot);
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        self.index.remove(flow.key.hash(self.seed), slot);
        self.layer7.release(flow.layer7);
        if flow.partial != NONE {
            self.partial.give_back(flow.partial);
        }
        for direction in &mut flow.directions {
            self.pools.release(direction);
        }
        flow.clear();
        self.flows.give_back(slot);
    }
}
