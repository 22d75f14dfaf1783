//! Packets in parts: they belong to their flow when they are whole.

use linkweir_engine::Frame;
use linkweir_engine::hash::flow_hash;
use linkweir_engine::split::shard_of;
use linkweir_record::flow::FlowBatch;
use linkweir_wire::{FragmentStats, Joined, Network, Timestamp, Udp};

use crate::lengths::wire_len;
use crate::stage::{DNS, FlowsStage, Prepared};

impl FlowsStage {
    /// What became of IP fragments that were not reassembled before.
    #[must_use]
    pub const fn fragments(&self) -> FragmentStats {
        self.fragments.stats()
    }

    /// A part of a packet: the packet comes when it is whole.
    #[cold]
    pub(crate) fn on_fragment(&mut self, frame: &Frame<'_>, out: &mut FlowBatch) {
        let mut fragments = std::mem::take(&mut self.fragments);
        let parts = (frame.link, frame.bytes, wire_len(frame));
        fragments.on_frame(parts, frame.timestamp, |joined| {
            self.on_joined(&joined, out);
        });
        self.fragments = fragments;
    }

    fn on_joined(&mut self, joined: &Joined<'_>, out: &mut FlowBatch) {
        let (.., wire_len) = joined.frame;
        if let Some(packet) = self.decoded(joined.packet)
            && let Some(one) = self.place(packet, joined.timestamp, wire_len)
        {
            self.on_packet(&one, out);
        }
    }

    /// Gives up packets of which parts are missing: all, or those that have waited long enough `now`.
    #[cold]
    pub(crate) fn give_up_fragments(&mut self, now: Option<Timestamp>, out: &mut FlowBatch) {
        let mut fragments = std::mem::take(&mut self.fragments);
        let each = |joined: Joined<'_>| self.on_joined(&joined, out);
        match now {
            Some(now) => fragments.expire(now, each),
            None => fragments.finish(each),
        }
        self.fragments = fragments;
    }
}

// What the flows of other workers tell: names of servers.

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
    pub(crate) fn learn_names(&mut self, one: &Prepared<'_>, udp: &Udp<'_>) {
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
            .learn_names(client, port, resolver, udp.payload, is_answer, one.now);
    }
}
