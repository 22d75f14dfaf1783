//! The first payload of a flow, until it is known what the flow carries.
//!
//! Most flows are decided by the first segment, where it lies. Where more is needed, the bytes of
//! both directions wait in buffers of the pool; when the flow is decided they go, in order, to
//! whatever counts its messages.

use linkweir_record::flow::FlowBatch;

use super::label::{self, Verdict};
use super::state::{Handle, Stage};
use super::{Ends, Layer7, Segment};
use crate::side::Side;

/// Packets with payload after which a flow without a label stays without.
const PACKETS: u8 = 8;
/// Bytes of each direction that the label is looked for in.
const BYTES: usize = 2048;

impl Layer7 {
    /// Payload of a TCP flow that has no label yet.
    #[inline(never)]
    pub(super) fn on_opening(
        &mut self,
        handle: &mut Handle,
        segment: &Segment<'_>,
        out: &mut FlowBatch,
    ) {
        if segment.payload.is_empty() {
            return;
        }
        let Some(state) = self.slab.take(handle) else {
            return;
        };
        let pool = &mut self.shared.pool;
        state.packets = state.packets.saturating_add(1);
        let is_last = state.packets >= PACKETS;
        let side = state.side_mut(segment.side);
        let before = pool.bytes(side.gather).len();
        let is_first = before == 0 && !side.is_cut;
        if !is_first && !side.is_cut {
            side.is_cut = !pool.append(&mut side.gather, segment.payload, BYTES, segment.ts_ns);
        }
        let own = if is_first {
            segment.payload.get(..BYTES).unwrap_or(segment.payload)
        } else {
            pool.bytes(side.gather)
        };
        let other = pool.bytes(state.side(segment.side.other()).gather);
        match label::tcp(segment, own, other) {
            Verdict::Is(label, stage) => {
                state.label = label;
                handle.set_stage(stage);
                self.replay(handle, segment, before, out);
            }
            Verdict::More if !is_last => {
                let side = state.side_mut(segment.side);
                if is_first {
                    side.is_cut =
                        !pool.append(&mut side.gather, segment.payload, BYTES, segment.ts_ns);
                }
                side.is_cut |= segment.missing > 0;
            }
            Verdict::More | Verdict::Unknown => self.settle(handle),
        }
    }

    /// A datagram of a UDP flow that has no label yet.
    #[inline(never)]
    pub(super) fn on_udp_opening(
        &mut self,
        handle: &mut Handle,
        ends: &Ends,
        side: Side,
        payload: &[u8],
        ts_ns: u64,
    ) {
        let Some(state) = self.slab.take(handle) else {
            return;
        };
        state.packets = state.packets.saturating_add(1);
        let is_last = state.packets >= PACKETS;
        let _ = ts_ns;
        match label::udp(payload, side, ends) {
            Verdict::Is(label, stage) => {
                state.label = label;
                handle.set_stage(stage);
                match stage {
                    Stage::Quic => self.on_quic(handle, side, payload),
                    _ => self.settle(handle),
                }
            }
            Verdict::More if !is_last => {}
            Verdict::More | Verdict::Unknown => self.settle(handle),
        }
    }

    /// Gives what waited to whatever the flow is, and then the segment that decided it; of this
    /// side only the `before` bytes that came before it waited.
    fn replay(
        &mut self,
        handle: &mut Handle,
        segment: &Segment<'_>,
        before: usize,
        out: &mut FlowBatch,
    ) {
        for side in [segment.side.other(), segment.side] {
            let Some(state) = self.slab.get_mut(*handle) else {
                return;
            };
            let state = state.side_mut(side);
            let mut id = std::mem::take(&mut state.gather);
            let is_cut = std::mem::take(&mut state.is_cut);
            let time_ns = self.shared.pool.time_ns(id);
            let bytes = self.shared.pool.lift(id);
            let is_own = side == segment.side;
            let waited = if is_own { bytes.get(..before) } else { None };
            let waited = Segment {
                side,
                payload: waited.unwrap_or(&bytes),
                missing: 0,
                ts_ns: time_ns.unwrap_or(segment.ts_ns),
                ..*segment
            };
            if !waited.payload.is_empty() {
                self.on_segment(handle, &waited, out);
            }
            self.shared.pool.put_back(id, bytes);
            self.shared.pool.release(&mut id);
            if is_cut && !is_own {
                self.lost(*handle, side, 0);
            }
        }
        self.on_segment(handle, segment, out);
    }

    /// Nothing more is to be learnt of this flow.
    pub(super) fn settle(&mut self, handle: &mut Handle) {
        handle.set_stage(Stage::Settled);
        let Some(state) = self.slab.get_mut(*handle) else {
            return;
        };
        for side in &mut state.sides {
            self.shared.pool.release(&mut side.gather);
        }
        if state.is_blank() {
            self.slab.release(handle, &mut self.shared);
        }
    }
}
