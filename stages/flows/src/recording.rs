//! What the stage tells the recorder of steps, beside packets of flows.

use linkweir_wire::Packet;

use crate::lengths::ip_len;
use crate::stage::FlowsStage;

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

    /// Keeps the class of a flow's application for the bit rates of steps.
    #[inline]
    pub(crate) fn note_class(&mut self, slot: u32) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        if flow.class.is_open() {
            flow.class = self.layer7.class(flow.layer7);
        }
    }
}
