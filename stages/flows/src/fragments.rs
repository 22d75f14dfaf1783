//! Packets in parts: they belong to their flow when they are whole.

use linkweir_engine::Frame;
use linkweir_record::flow::FlowBatch;
use linkweir_wire::{FragmentStats, Fragments, Joined, Timestamp};

use crate::lengths::wire_len;
use crate::stage::FlowsStage;

impl FlowsStage {
    /// What became of IP fragments.
    #[must_use]
    pub fn fragments(&self) -> FragmentStats {
        self.fragments
            .as_ref()
            .map(|fragments| fragments.stats())
            .unwrap_or_default()
    }

    /// A part of a packet: the packet comes when it is whole.
    #[cold]
    pub(crate) fn on_fragment(&mut self, frame: &Frame<'_>, out: &mut FlowBatch) {
        let is_one_of_several = self.shard.1 > 1;
        let mut fragments = self
            .fragments
            .take()
            .unwrap_or_else(|| Box::new(Fragments::new(is_one_of_several)));
        let parts = (frame.link, frame.bytes, wire_len(frame));
        fragments.on_frame(parts, frame.timestamp, |joined| {
            self.on_joined(&joined, out);
        });
        self.fragments = Some(fragments);
    }

    fn on_joined(&mut self, joined: &Joined<'_>, out: &mut FlowBatch) {
        let len = u32::try_from(joined.bytes.len()).unwrap_or(u32::MAX);
        if let Some(packet) = self.decoded(joined.packet)
            && let Some(one) = self.place(packet, joined.timestamp, len)
        {
            self.on_packet(&one, out);
        }
    }

    /// Gives up packets of which parts are missing: all, or those that have waited long enough `now`.
    #[cold]
    pub(crate) fn give_up_fragments(&mut self, now: Option<Timestamp>, out: &mut FlowBatch) {
        let Some(mut fragments) = self.fragments.take() else {
            return;
        };
        let each = |joined: Joined<'_>| self.on_joined(&joined, out);
        match now {
            Some(now) => fragments.expire(now, each),
            None => fragments.finish(each),
        }
        self.fragments = Some(fragments);
    }
}
