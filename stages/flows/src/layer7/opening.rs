//! The first payload of a flow, until it is known what the flow carries.
//!
//! Most flows are decided by the first segment, where it lies. Where more is needed, the bytes of
//! both directions wait in buffers of the pool; when the flow is decided they go, in order, to
//! whatever counts its messages.

use linkweir_proto::application::Verdict;
use linkweir_record::flow::{FlowBatch, Protocol};
use linkweir_wire::Side;

use super::handle::{Handle, Stage};
use super::sessions::SinceStart;
use super::{Datagram, Ends, Layer7, Segment};
use super::{label, media};

/// Packets with payload after which a flow without a label stays without.
const PACKETS: u8 = 8;
/// The same of a flow whose packets have but a few bytes.
const SMALL_PACKETS: u8 = 64;
/// So few.
const FEW_BYTES: usize = 64;
/// Datagrams after which a flow without a label stays without: the signatures end the wait before.
const DATAGRAMS: u8 = 16;
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
        let packets = state.packets;
        let side = state.side_mut(segment.side);
        let before = pool.bytes(side.gather).len();
        let is_behind_gap = side.is_cut;
        let is_first = before == 0 && !is_behind_gap;
        if !is_first && !is_behind_gap {
            side.is_cut = !pool.append(&mut side.gather, segment.payload, BYTES, segment.ts_ns);
        }
        let own = if is_first {
            segment.payload.get(..BYTES).unwrap_or(segment.payload)
        } else {
            pool.bytes(side.gather)
        };
        let other = pool.bytes(state.side(segment.side.other()).gather);
        // Segments of a few bytes each say too little.
        let is_enough = own.len() + other.len() >= FEW_BYTES || state.side(segment.side).is_cut;
        let is_last = packets >= PACKETS && is_enough || packets >= SMALL_PACKETS;
        let is_full = own.len() >= BYTES;
        let mut verdict = label::tcp(segment, own, other);
        let side = state.side_mut(segment.side);
        if is_first && matches!(verdict, Verdict::More | Verdict::Likely(_)) {
            side.is_cut = !pool.append(&mut side.gather, segment.payload, BYTES, segment.ts_ns);
        }
        let is_over = is_last || is_full || side.is_cut || segment.missing > 0;
        if let Verdict::Likely(application) = verdict
            && is_over
        {
            verdict = Verdict::Is(application);
        }
        // Also of a flow that ends before it is sure.
        state.label = match verdict {
            Verdict::Is(application) | Verdict::Likely(application) => Some(application),
            Verdict::More | Verdict::No => None,
        };
        match verdict {
            Verdict::Is(application) => match label::tcp_stage(application) {
                Stage::Settled => self.settle(handle, Stage::Settled),
                stage => {
                    handle.set_stage(stage);
                    // Not where only what waits of this segment was cut: all of it is given on.
                    state.side_mut(segment.side).is_cut = is_behind_gap && before > 0;
                    self.replay(handle, segment, before, out);
                }
            },
            _ if is_last => self.settle(handle, Stage::Settled),
            Verdict::More | Verdict::Likely(_) => {
                state.side_mut(segment.side).is_cut |= segment.missing > 0;
            }
            // Not from its beginning; but where that was not seen, a later message may tell.
            Verdict::No => {
                for side in &mut state.sides {
                    side.is_cut = true;
                    pool.release(&mut side.gather);
                }
            }
        }
    }

    /// A datagram of a UDP flow that has no label yet.
    #[inline(never)]
    pub(super) fn on_udp_opening(
        &mut self,
        handle: &mut Handle,
        ends: &Ends,
        side: Side,
        datagram: &Datagram<'_>,
        out: &mut FlowBatch,
    ) {
        let Datagram { payload, ts_ns, .. } = *datagram;
        let Some(state) = self.slab.take(handle) else {
            return;
        };
        state.packets = state.packets.saturating_add(1);
        if state.packets == 1
            && side == Side::Client
            && let Some(connections) = &self.shared.connections
            && let Some(version) = connections.find(ends.server, ends.client, payload)
        {
            state.continue_quic(version);
            handle.set_stage(Stage::Spin);
            let now = SinceStart::at(ts_ns.saturating_sub(ends.start_ns));
            self.on_spin(*handle, side, payload, now);
            return;
        }
        let is_last = state.packets >= DATAGRAMS;
        let verdict = label::udp(datagram, side, ends, &mut state.udp);
        let is_media = matches!(verdict, Verdict::Is(found) | Verdict::Likely(found)
            if label::udp_stage(found) == Stage::Media);
        if self.shared.media.is_wanted && (is_media || state.udp.may_be_rtp()) {
            media::look(state, &mut self.shared, side, datagram, is_media);
        }
        match verdict {
            // What goes on may add to it; the signatures end the wait.
            Verdict::Likely(application) => state.label = Some(application),
            Verdict::Is(application) => {
                state.label = Some(application);
                match label::udp_stage(application) {
                    Stage::Quic => {
                        handle.set_stage(Stage::Quic);
                        let now = SinceStart::at(datagram.ts_ns.saturating_sub(ends.start_ns));
                        self.on_quic(handle, ends, side, payload, now);
                    }
                    Stage::Media if !self.shared.media.is_wanted => {
                        self.settle(handle, Stage::Settled);
                    }
                    stage => {
                        self.settle(handle, stage);
                        if stage == Stage::Dns {
                            self.on_dns(ends, Protocol::Udp, side, payload, ts_ns, out);
                        }
                    }
                }
            }
            Verdict::More if !is_last => {}
            Verdict::More | Verdict::No => self.settle(handle, Stage::Settled),
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
            if is_cut {
                self.lost(*handle, side, 0);
            }
        }
        self.on_segment(handle, segment, out);
    }

    /// Nothing more is to be learnt of this flow: where there is nothing to say of it but a label,
    /// its state is given back.
    pub(super) fn settle(&mut self, handle: &mut Handle, stage: Stage) {
        handle.set_stage(stage);
        let Some(state) = self.slab.get_mut(*handle) else {
            return;
        };
        for side in &mut state.sides {
            self.shared.pool.release(&mut side.gather);
        }
        if stage != Stage::Media {
            self.shared.media.release(state.media_mut());
        }
        if state.is_blank() {
            let label = state.label;
            self.slab.release(handle, &mut self.shared);
            handle.set_label(label);
        }
    }
}
