//! What is measured in steps of capture time: Tstat's histograms and the cells of the archive.
//!
//! The stage tells a [`Recorder`] of every packet and of every flow that begins or ends; the recorder
//! gives a [`Step`] whenever one has ended. Steps of several shards merge by addition.
//!
//! Per packet only small integer counters move, one place per value; bins and moments are made of them
//! when the step ends. Memory: about 25 kB per direction in use, and 256 kB for each of the five port
//! histograms of a direction once it is used.

mod packets;

use std::time::Duration;

use linkweir_record::flow::{FlowBatch, FlowRow, FlowText, Protocol};
use linkweir_sketch::Step;
use linkweir_wire::Packet;

use packets::PacketCounts;

/// Tstat's class of an application protocol: an index into the bins of `L7_TCP_num_*`,
/// `tcp_bitrate_*` and their likes for UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct L7Class(pub u8);

impl L7Class {
    /// Not recognised.
    pub const UNKNOWN: Self = Self(49);
}

impl Default for L7Class {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

/// Measures the steps of one shard.
#[derive(Debug)]
pub struct Recorder {
    span_ns: u64,
    /// When the current step ends, nanoseconds since the epoch; 0 before the first packet, so that
    /// one comparison per packet is enough.
    end_ns: u64,
    packets: PacketCounts,
    step: Step,
}

impl Recorder {
    /// Steps of length `step` (at least a second), of shard number `shard` of `shards`.
    #[must_use]
    pub fn new(step: Duration, shard: u32, shards: u32) -> Self {
        let span_ns = u64::try_from(step.as_nanos()).unwrap_or(u64::MAX);
        let span_ns = span_ns.max(1_000_000_000);
        Self {
            span_ns,
            end_ns: 0,
            packets: PacketCounts::default(),
            step: Step {
                span_ns,
                shard,
                shards,
                ..Step::default()
            },
        }
    }

    /// Moves time on: the step that has ended meanwhile goes to `out`. Time that goes back counts in
    /// the current step.
    #[inline]
    pub fn advance(&mut self, ts_ns: u64, out: &mut FlowBatch) {
        if ts_ns >= self.end_ns {
            self.next_step(ts_ns, out);
        }
    }

    #[cold]
    fn next_step(&mut self, ts_ns: u64, out: &mut FlowBatch) {
        if self.end_ns > 0 {
            self.close(false, out);
        }
        self.step.number = ts_ns / self.span_ns;
        self.end_ns = self.step.start_ns().saturating_add(self.span_ns);
    }

    /// Gives the current step away and begins an empty one.
    fn close(&mut self, is_last: bool, out: &mut FlowBatch) {
        self.packets.drain(&mut self.step);
        let next = Step {
            number: self.step.number,
            span_ns: self.span_ns,
            shard: self.step.shard,
            shards: self.step.shards,
            ..Step::default()
        };
        let mut ended = std::mem::replace(&mut self.step, next);
        ended.is_last = is_last;
        out.push_step(ended);
    }

    /// Counts an IP packet (others are ignored), after [`Self::advance`]. `ip_len`: bytes of the IP
    /// packet, its header included.
    #[inline]
    pub fn on_packet(
        &mut self,
        packet: &Packet<'_>,
        src_internal: bool,
        dst_internal: bool,
        ip_len: u32,
    ) {
        self.packets
            .count(packet, src_internal, dst_internal, ip_len, &mut self.step);
    }

    /// Counts a packet of a flow for the bit rates of applications: `class` is what is known of the
    /// flow by now.
    #[inline]
    pub fn on_flow_packet(
        &mut self,
        protocol: Protocol,
        class: L7Class,
        src_internal: bool,
        dst_internal: bool,
        ip_len: u32,
    ) {
        self.packets
            .count_class(protocol, class, src_internal, dst_internal, ip_len);
    }

    /// A flow has begun.
    pub fn on_open(&mut self, protocol: Protocol, client_internal: bool, server_internal: bool) {
        let _ = (protocol, client_internal, server_internal, &mut self.step);
    }

    /// A flow has ended: its final record (partial ones are ignored).
    pub fn on_flow(&mut self, row: &FlowRow, text: &FlowText<'_>) {
        let _ = (row, text, &mut self.step);
    }

    /// The input has ended: the last step.
    pub fn finish(&mut self, out: &mut FlowBatch) {
        if self.end_ns > 0 {
            self.close(true, out);
            self.end_ns = 0;
        }
    }
}
