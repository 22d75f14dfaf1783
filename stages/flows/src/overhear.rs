//! What the flows of other workers tell: names of servers.

use linkweir_engine::hash::flow_hash;
use linkweir_engine::split::shard_of;
use linkweir_wire::{Network, Udp};

use crate::stage::{DNS, FlowsStage, Prepared};

impl FlowsStage {
    /// Whether the dispatcher gave this flow to another worker, and a copy to this one: what names servers goes
    /// to all.
    #[inline]
    pub(crate) fn is_copy(&self, network: &Network<'_>, udp: &Udp<'_>) -> bool {
        let is_dns = udp.src_port() == DNS || udp.dst_port() == DNS;
        is_dns && self.shard.1 > 1 && !self.is_mine(network, udp)
    }

    fn is_mine(&self, network: &Network<'_>, udp: &Udp<'_>) -> bool {
        let hash = flow_hash(
            (network.src(), udp.src_port()),
            (network.dst(), udp.dst_port()),
        );
        shard_of(hash, self.shard.1) == self.shard.0
    }

    /// Names from the flow of another worker.
    pub(crate) fn overhear(&mut self, one: &Prepared<'_>, udp: &Udp<'_>) {
        if !self.with_names {
            return;
        }
        let network = &one.packet.network;
        let is_answer = udp.src_port() == DNS;
        let ((client, port), resolver) = if is_answer {
            ((network.dst(), udp.dst_port()), network.src())
        } else {
            ((network.src(), udp.src_port()), network.dst())
        };
        self.layer7
            .overhear(client, port, resolver, udp.payload, is_answer, one.now);
    }
}
