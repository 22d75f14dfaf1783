//! What a sender of RTP and one of RTCP have in common.

use linkweir_record::flow::{
    FlowRow, FlowState, Jitter, StreamEnd, StreamKinds, StreamPart, StreamRow,
};
use linkweir_wire::Side;

use super::Samples;
use crate::step::{MediaMeasure, MediaSample};

/// A source on one side of a flow, and what it sent.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) side: Side,
    source: u32,
    pub(super) packets: u64,
    kinds: StreamKinds,
    bytes: u64,
    first_ns: u64,
    last_ns: u64,
    gap_sum_ns: u64,
    gaps: u64,
    ttl_sum: u64,
    ttl_max: u8,
    ttl_min: u8,
}

impl Sender {
    /// One that has sent nothing yet and will at `now_ns`.
    pub(super) fn new(side: Side, source: u32, now_ns: u64) -> Self {
        Self {
            side,
            source,
            packets: 0,
            kinds: StreamKinds::default(),
            bytes: 0,
            first_ns: now_ns,
            last_ns: now_ns,
            gap_sum_ns: 0,
            gaps: 0,
            ttl_sum: 0,
            ttl_max: 0,
            ttl_min: u8::MAX,
        }
    }

    #[inline]
    pub(super) fn is(&self, side: Side, source: u32) -> bool {
        self.source == source && self.side == side
    }

    /// Counts a packet of a type; `bytes` are those that count as its own.
    pub(super) fn count(&mut self, kind: u8, bytes: u32, ttl: u8) {
        self.packets += 1;
        self.kinds.add(kind);
        self.bytes += u64::from(bytes);
        self.ttl_sum += u64::from(ttl);
        self.ttl_max = self.ttl_max.max(ttl);
        self.ttl_min = self.ttl_min.min(ttl);
    }

    /// Counts the time since the packet before.
    pub(super) const fn gap(&mut self, now_ns: u64) {
        self.gap_sum_ns += now_ns.saturating_sub(self.last_ns);
        self.gaps += 1;
    }

    /// Something of it was seen.
    pub(super) fn seen_at(&mut self, now_ns: u64) {
        self.last_ns = self.last_ns.max(now_ns);
    }

    /// A value for the histograms of its side.
    pub(super) fn sample(&self, samples: &mut Samples, measure: MediaMeasure, value: u64) {
        samples.push(MediaSample {
            side: self.side,
            measure,
            value,
        });
    }

    /// Its row.
    pub(super) fn row(
        &self,
        flow: &FlowRow,
        (client, server): (StreamEnd, StreamEnd),
        jitter: Jitter,
        part: StreamPart,
    ) -> StreamRow {
        StreamRow {
            flow_id: flow.flow_id,
            flow_kind: flow.con_t,
            end_ns: flow.last_ns,
            is_open: flow.state == FlowState::Open,
            client,
            server,
            is_from_client: self.side == Side::Client,
            source: self.source,
            packets: self.packets,
            kinds: self.kinds,
            bytes: self.bytes,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            gap_sum_ns: self.gap_sum_ns,
            gaps: self.gaps,
            ttl_sum: self.ttl_sum,
            ttl_max: self.ttl_max,
            ttl_min: self.ttl_min,
            jitter,
            part,
        }
    }
}
