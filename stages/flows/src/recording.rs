//! What the stage tells the recorder of steps, beside packets of flows.

use linkweir_record::flow::FlowBatch;
use linkweir_wire::{Packet, Side};

use crate::lengths::ip_len;
use crate::stage::FlowsStage;
use crate::tcp::direction::flag;

impl FlowsStage {
    /// A packet of no flow is one of its step.
    #[cold]
    pub(crate) fn no_flow(&mut self, packet: &Packet<'_>, wire_len: u32) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let network = &packet.network;
        let (src, dst) = (network.src(), network.dst());
        let len = ip_len(network, wire_len);
        recorder.on_packet(
            packet,
            self.internal.contains(src),
            self.internal.contains(dst),
            len,
        );
    }

    /// What the last datagram says for the histograms of media.
    #[inline(never)]
    pub(crate) fn record_samples(&mut self, slot: u32) {
        let (Some(recorder), Some(flow)) = (&mut self.recorder, self.flows.get(slot)) else {
            return;
        };
        let (client, server) = flow.internal();
        self.layer7
            .take_samples(|sample| recorder.on_sample(sample, client, server));
    }

    /// What layer 7 made of a payload; `payload` is what was captured, and its length as
    /// sent. The lines of DNS from number `lines` on are its.
    #[inline]
    pub(crate) fn after_payload(
        &mut self,
        slot: u32,
        side: Side,
        payload: (&[u8], u32),
        lines: usize,
        out: &mut FlowBatch,
    ) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        if !self.layer7.wants(flow.layer7, side) {
            flow.both(side).0.flags |= flag::L7_DONE;
        }
        if self.is_followed {
            self.follow(slot, side, payload);
        }
        if out.dns_count() > lines {
            self.finish_dns(slot, lines, out);
        }
    }

    /// A payload that layer 7 has seen.
    #[inline(never)]
    fn follow(&mut self, slot: u32, side: Side, (payload, len): (&[u8], u32)) {
        if self.recorder.is_some() {
            self.note_class(slot);
        }
        if self.listener.is_some() {
            self.listen(slot, side, payload, len);
        }
    }

    /// Keeps the class of a flow's application for the bit rates of steps.
    #[inline]
    fn note_class(&mut self, slot: u32) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        if flow.class.is_open() {
            flow.class = self.layer7.class(flow.layer7);
        }
    }
}
