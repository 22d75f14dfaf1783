//! Packets in parts: they belong to their flow when they are whole.

use linkweir_engine::Frame;
use linkweir_record::flow::FlowBatch;
use linkweir_wire::{FragmentStats, Joined, Timestamp};

use crate::lengths::wire_len;
use crate::stage::FlowsStage;

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
