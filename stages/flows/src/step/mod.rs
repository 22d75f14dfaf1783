//! What is measured in steps of capture time: Tstat's histograms and the cells of the archive.
//!
//! The stage tells a [`Recorder`] of every packet and of every flow that begins or ends; the recorder
//! gives a [`Step`] whenever one has ended. Steps of several shards merge by addition.
//!
//! Per packet only integer counters move, one place per value; bins and moments are made of them when
//! the step ends. Memory: about 45 kB per direction, and 256 kB for each of the five port histograms
//! of a direction once it is used.
//!
//! What nothing here measures is listed with its reasons in [`linkweir_sketch::step::LEFT_OUT`]; of
//! `profile_tcpdata` also what was missed.
//!
//! Where Tstat counts at another moment: ports of UDP flows and classes of out-of-sequence segments
//! count when their flow ends.
//!
//! Source: Tstat (Rossi, Mellia 2006), its histograms as version 3.3.0 fills them.

mod cells;
mod class;
mod flows;
mod ids;
mod media;
mod packets;
pub(crate) mod sites;
#[cfg(test)]
mod tests;

use std::time::Duration;

use linkweir_record::flow::{Extent, FlowBatch, FlowRow, FlowText, Protocol, StreamRow};
use linkweir_sketch::Step;
use linkweir_sketch::cells::{Direction, SeriesId, Transport};
use linkweir_wire::{Packet, Side};

pub use class::L7Class;
pub use ids::filled;
use ids::ids;
pub use media::{MediaMeasure, MediaSample};
use packets::PacketCounts;

/// Flows of one protocol in the table.
#[derive(Debug, Clone, Copy, Default)]
struct Active {
    now: u64,
    /// Most at once in the current step.
    peak: u64,
    /// Until when they are counted into the mean, nanoseconds since the epoch.
    counted_ns: u64,
    /// Their sum over time that has not made a whole microsecond yet, nanoseconds.
    rest_ns: u64,
}

impl Active {
    /// Counts those there are until `ts_ns` into the mean.
    fn count_until(&mut self, ts_ns: u64, sum_us: &mut u64) {
        let span = ts_ns.saturating_sub(self.counted_ns);
        let sum = self.now.saturating_mul(span).saturating_add(self.rest_ns);
        *sum_us = sum_us.saturating_add(sum / 1_000);
        self.rest_ns = sum % 1_000;
        self.counted_ns = self.counted_ns.max(ts_ns);
    }
}

/// Measures the steps of one shard.
#[derive(Debug)]
pub struct Recorder {
    span_ns: u64,
    /// When the current step ends, nanoseconds since the epoch; 0 before the first packet, so that
    /// one comparison per packet is enough.
    end_ns: u64,
    /// The latest time, nanoseconds since the epoch.
    now_ns: u64,
    packets: PacketCounts,
    in_sequence: flows::InSequence,
    active: [Active; 2],
    step: Step,
}

const fn place(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Tcp => 0,
        Protocol::Udp => 1,
    }
}

const fn transport(protocol: Protocol) -> Transport {
    match protocol {
        Protocol::Tcp => Transport::Tcp,
        Protocol::Udp => Transport::Udp,
    }
}

impl Recorder {
    /// Steps of length `step` (at least a second), of shard number `shard` of `shards`.
    #[must_use]
    pub fn new(step: Duration, shard: u32, shards: u32) -> Self {
        let span_ns = linkweir_wire::nanos(step);
        let span_ns = span_ns.max(1_000_000_000);
        Self {
            span_ns,
            end_ns: 0,
            now_ns: 0,
            packets: PacketCounts::default(),
            in_sequence: flows::InSequence::default(),
            active: [Active::default(); 2],
            step: Step {
                span_ns,
                shard,
                shards,
                ..Step::default()
            },
        }
    }

    /// Moves time on: the step that has ended meanwhile goes to `out`. Time that goes back counts in
    /// the current step. Of steps without anything in them, only the one that ended is given: a step
    /// of a number tells that all before it are complete.
    #[inline]
    pub fn advance(&mut self, ts_ns: u64, out: &mut FlowBatch) {
        self.now_ns = self.now_ns.max(ts_ns);
        if ts_ns >= self.end_ns {
            self.next_step(ts_ns, out);
        }
    }

    #[cold]
    fn next_step(&mut self, ts_ns: u64, out: &mut FlowBatch) {
        if self.end_ns == 0 {
            self.step.from_ns = ts_ns;
            for active in &mut self.active {
                active.counted_ns = ts_ns;
            }
        } else {
            self.close(self.end_ns, false, out);
        }
        self.step.number = ts_ns / self.span_ns;
        let start = self.step.start_ns();
        self.step.from_ns = self.step.from_ns.max(start);
        for active in &mut self.active {
            // What was there in steps that are not given belongs to none.
            active.counted_ns = active.counted_ns.max(start);
        }
        self.end_ns = start.saturating_add(self.span_ns);
    }

    /// Gives the current step away, which ended at `to_ns`, and begins an empty one.
    fn close(&mut self, to_ns: u64, is_last: bool, out: &mut FlowBatch) {
        self.packets.drain(&mut self.step);
        self.in_sequence.drain(&mut self.step.histograms);
        let protocols = [Protocol::Tcp, Protocol::Udp];
        let sums = self.active.iter_mut().zip(&mut self.step.flow_us);
        for (protocol, (active, sum_us)) in protocols.into_iter().zip(sums) {
            active.count_until(to_ns, sum_us);
            if let Some(series) = SeriesId::active(transport(protocol)) {
                self.step.cells.raise(series, active.peak);
            }
            active.peak = active.now;
        }
        let next = Step {
            number: self.step.number,
            span_ns: self.span_ns,
            shard: self.step.shard,
            shards: self.step.shards,
            ..Step::default()
        };
        let mut ended = std::mem::replace(&mut self.step, next);
        ended.to_ns = to_ns.max(ended.from_ns);
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
    /// flow by now ([`L7Class::of`]; look it up when the label changes, not here).
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

    /// The first acknowledgment after data: `bytes` were in flight just before it.
    #[inline]
    pub fn on_flight(&mut self, bytes: u32) {
        self.step
            .histograms
            .add_fine(ids().tcp_cwnd, u64::from(bytes));
    }

    /// A flow has begun.
    pub fn on_open(&mut self, protocol: Protocol, client_internal: bool, server_internal: bool) {
        let direction = Direction::of(client_internal, server_internal);
        if let Some(series) = SeriesId::opened(transport(protocol), direction) {
            self.step.cells.add(series, 1);
        }
        let at = place(protocol);
        self.step.histograms.add(ids().l4_flow_number, at as u64);
        if let (Some(active), Some(sum_us)) =
            (self.active.get_mut(at), self.step.flow_us.get_mut(at))
        {
            active.count_until(self.now_ns, sum_us);
            active.now += 1;
            active.peak = active.peak.max(active.now);
        }
    }

    /// A flow has ended: its final record (partial ones are ignored).
    pub fn on_flow(&mut self, row: &FlowRow, text: &FlowText<'_>) {
        if row.extent == Extent::Partial {
            return;
        }
        flows::add(row, text, &mut self.in_sequence, &mut self.step.histograms);
        cells::add(row, &mut self.step.cells);
        let at = place(row.protocol);
        if let (Some(active), Some(sum_us)) =
            (self.active.get_mut(at), self.step.flow_us.get_mut(at))
        {
            active.count_until(self.now_ns, sum_us);
            active.now = active.now.saturating_sub(1);
        }
    }

    /// A value of a stream of media, of a flow between these ends.
    pub fn on_sample(&mut self, sample: MediaSample, client_internal: bool, server_internal: bool) {
        let direction = match sample.side {
            Side::Client => Direction::of(client_internal, server_internal),
            Side::Server => Direction::of(server_internal, client_internal),
        };
        media::add_sample(sample, direction, &mut self.step.histograms);
    }

    /// A stream of media whose flow has ended.
    pub fn on_stream(&mut self, row: &StreamRow) {
        media::add_stream(row, &mut self.step.histograms);
    }

    /// The input has ended, and all flows with it: the last step.
    pub fn finish(&mut self, out: &mut FlowBatch) {
        if self.end_ns > 0 {
            self.close(self.now_ns.min(self.end_ns), true, out);
            self.end_ns = 0;
        }
    }
}
