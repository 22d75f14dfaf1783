//! The stage: decode, find the flow, measure, keep time.
//!
//! A batch is taken in groups of [`GROUP`] packets and three passes: decode and hash; touch the places
//! of the index and the lines of the flows that the packets need, so that their cache misses overlap; then
//! one packet after the other.

use linkweir_engine::{Batch, Frame, Stage, TableFill};
use linkweir_record::flow::{FlowBatch, FlowKind, FlowState, Protocol};
use linkweir_record::{Anonymizer, PlaceCache, RecordBatch};
use linkweir_table::{Index, Pieces, Slab};
use linkweir_wire::{
    DecodeError, DecodeFaults, Fragments, LinkType, Packet, Side, Tcp, TcpFlags, Timestamp,
    Transport, Udp, decode, decode_plain,
};

use crate::config::FlowsConfig;
use crate::config::Subnets;
use crate::flow::{Flow, Flows, Timeouts};
use crate::key::FlowKey;
use crate::layer7::{Datagram, Layer7};
use crate::lengths::{ip_len, tcp_len, wire_len};
use crate::partial::PartialState;
use crate::stats::FlowsStats;
use crate::step::Recorder;
use crate::tcp::direction::flag;
use crate::tcp::{self, Arrival, Pools};
use crate::unknown::Listener;
use crate::wheel::Wheel;

/// Packets whose cache misses overlap.
pub(crate) const GROUP: usize = 32;

/// Records that leave at a time when the input has ended.
const PIECE: usize = 512;

/// Port of the domain name system.
pub(crate) const DNS: u16 = 53;

/// Measures TCP and UDP flows.
///
/// Memory: 512 bytes a flow and 16 for its place in the index; at most about 400 more for a flow in
/// trouble, 24 for each segment in flight beyond the first, and what layer 7 keeps of a flow.
#[derive(Debug)]
pub struct FlowsStage {
    pub(crate) flows: Flows,
    pub(crate) index: Index,
    pub(crate) wheel: Wheel,
    pub(crate) pools: Pools,
    pub(crate) layer7: Layer7,
    pub(crate) partial: Slab<PartialState, Pieces<PartialState>>,
    pub(crate) internal: Subnets,
    pub(crate) anonymizer: Option<Anonymizer>,
    pub(crate) places: Option<PlaceCache>,
    pub(crate) timeouts: Timeouts,
    pub(crate) periodic_ns: Option<u64>,
    pub(crate) stats: FlowsStats,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) listener: Option<Box<Listener>>,
    /// Whether recorder or listener want to know what a payload was: one test for both.
    pub(crate) is_followed: bool,
    pub(crate) max_flows: usize,
    pub(crate) with_names: bool,
    pub(crate) seed: u64,
    pub(crate) shard: (u32, u32),
    /// The last packet or tick, nanoseconds since the epoch.
    pub(crate) now: u64,
    /// The latest packet or tick.
    pub(crate) latest: u64,
    /// When the wheel is to be looked at.
    pub(crate) due: u64,
    /// State of the generator that picks the sample of an eviction.
    pub(crate) sample_rng: u64,
    faults: DecodeFaults,
    pub(crate) fragments: Fragments,
    is_reassembled: bool,
    /// Set by a frame that is a fragment.
    has_fragment: bool,
    /// Next slot of [`Stage::finish`].
    finished: u32,
}

/// A packet with the place of its flow.
#[derive(Clone, Copy)]
pub(crate) struct Prepared<'a> {
    pub(crate) packet: Packet<'a>,
    pub(crate) now: u64,
    pub(crate) key: FlowKey,
    pub(crate) is_low: bool,
    pub(crate) hash: u32,
}

impl FlowsStage {
    /// A stage with these settings.
    #[must_use]
    pub fn new(config: &FlowsConfig) -> Self {
        Self {
            flows: Slab::with_capacity(u32::MAX),
            index: Index::growing(),
            wheel: Wheel::new(),
            pools: Pools::new(config.classifier),
            layer7: Layer7::new(config),
            partial: Slab::with_capacity(u32::MAX),
            internal: config.internal.clone(),
            anonymizer: config.anonymizer.clone(),
            places: config.places.clone().map(PlaceCache::new),
            timeouts: Timeouts::new(config),
            periodic_ns: config
                .periodic
                .map(|period| linkweir_wire::nanos(period).max(1)),
            stats: FlowsStats::default(),
            recorder: config
                .step
                .map(|step| Recorder::new(step, config.shard.0, config.shard.1)),
            listener: config.unknown.map(|rows| Box::new(Listener::new(rows))),
            is_followed: config.step.is_some() || config.unknown.is_some(),
            max_flows: config.max_flows.max(16),
            with_names: config.with_names,
            seed: config.hash_seed,
            shard: config.shard,
            now: 0,
            latest: 0,
            due: 0,
            sample_rng: config.hash_seed | 1,
            faults: DecodeFaults::default(),
            fragments: Fragments::default(),
            is_reassembled: config.is_reassembled,
            has_fragment: false,
            finished: 0,
        }
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> FlowsStats {
        let layer7 = self.layer7.counters();
        FlowsStats {
            impossible_sequences: self.pools.impossible,
            forgotten_segments: self.pools.forgotten,
            layer7_refused: layer7.states_refused,
            queries_evicted: layer7.queries_evicted,
            fragments: self.fragments().lost,
            ..self.stats
        }
    }

    /// Packets that did not decode, by layer and cause.
    #[must_use]
    pub const fn faults(&self) -> &DecodeFaults {
        &self.faults
    }

    /// Flows in the table now.
    #[must_use]
    pub fn active(&self) -> usize {
        self.flows.len()
    }

    /// Decodes a frame and finds the place of its flow.
    #[inline]
    fn prepare<'a>(&mut self, frame: &Frame<'a>) -> Option<Prepared<'a>> {
        self.latest = self.latest.max(frame.timestamp.as_nanos());
        let wire_len = wire_len(frame);
        let plain = (frame.link == LinkType::ETHERNET).then(|| decode_plain(frame.bytes, wire_len));
        let packet = match plain.flatten() {
            Some(packet) => packet,
            None => self.unusual(frame, wire_len)?,
        };
        self.place(packet, frame.timestamp, frame.wire_len)
    }

    /// Finds the place of a packet's flow.
    #[expect(
        clippy::inline_always,
        reason = "called once per packet; as a call it copies a packet of 96 bytes"
    )]
    #[inline(always)]
    pub(crate) fn place<'a>(
        &mut self,
        packet: Packet<'a>,
        timestamp: Timestamp,
        wire_len: u32,
    ) -> Option<Prepared<'a>> {
        let (protocol, src, dst) = match &packet.transport {
            Transport::Tcp(tcp) => (Protocol::Tcp, tcp.src_port(), tcp.dst_port()),
            Transport::Udp(udp) => (Protocol::Udp, udp.src_port(), udp.dst_port()),
            // The start of a packet whose rest never came.
            Transport::Fragment => {
                self.no_flow(&packet, wire_len);
                return None;
            }
            Transport::Icmp6(_) | Transport::Other(_) | Transport::NotIp(_) => {
                self.stats.other += 1;
                self.no_flow(&packet, wire_len);
                return None;
            }
        };
        let (key, is_low) = FlowKey::of(&packet.network, protocol, src, dst);
        Some(Prepared {
            packet,
            now: timestamp.as_nanos(),
            key,
            is_low,
            hash: key.hash(self.seed),
        })
    }

    /// A packet of a flow.
    #[inline]
    fn record_packet(&mut self, slot: u32, side: Side, one: &Prepared<'_>, len: u32) {
        let (Some(recorder), Some(flow)) = (&mut self.recorder, self.flows.get(slot)) else {
            return;
        };
        let (client, server) = flow.internal();
        let (src, dst) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        recorder.on_packet(&one.packet, src, dst, len);
        recorder.on_flow_packet(flow.protocol(), flow.class, src, dst, len);
    }

    /// A frame that is not of the plain shape: tags, tunnels, faults, or nothing of interest.
    #[inline(never)]
    fn unusual<'a>(&mut self, frame: &Frame<'a>, wire_len: u32) -> Option<Packet<'a>> {
        let decoded = decode(frame.link, frame.bytes, wire_len);
        if decoded.is_ok_and(|packet| packet.is_fragment) && !self.is_reassembled {
            // It comes with the packet that it makes whole.
            self.has_fragment = true;
            return None;
        }
        self.decoded(decoded)
    }

    /// Counts what was wrong with a packet.
    pub(crate) fn decoded<'a>(
        &mut self,
        decoded: Result<Packet<'a>, DecodeError>,
    ) -> Option<Packet<'a>> {
        match decoded {
            Ok(packet) => {
                if let Some(fault) = &packet.fault
                    && !matches!(&packet.transport, Transport::Udp(udp) if self.is_copy(&packet.network, udp))
                {
                    self.faults.note(fault);
                }
                Some(packet)
            }
            Err(fault) => {
                self.faults.record(&fault);
                None
            }
        }
    }

    /// Takes one packet.
    #[inline]
    pub(crate) fn on_packet(&mut self, one: &Prepared<'_>, out: &mut FlowBatch) {
        // A capture of several may go back and forth: only the end is judged by the latest time.
        self.now = one.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.advance(one.now, out);
        }
        match &one.packet.transport {
            Transport::Tcp(tcp) => self.on_tcp(one, tcp, out),
            Transport::Udp(udp) => self.on_udp(one, udp, out),
            _ => {}
        }
    }

    #[inline]
    fn on_tcp(&mut self, one: &Prepared<'_>, tcp: &Tcp<'_>, out: &mut FlowBatch) {
        let flags = tcp.flags();
        let is_first = flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK);
        let slot = match self.lookup(one, out) {
            Some(slot) if is_first && self.is_new_connection(slot, one.is_low, tcp) => {
                self.end(slot, Some(FlowState::Reused), out);
                self.open(one, is_client_first(tcp), out)
            }
            Some(slot) => slot,
            None => self.open(one, is_client_first(tcp), out),
        };
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let side = flow.side(one.is_low);
        let now = flow.last_ns.max(one.now);
        flow.last_ns = now;
        if flags.contains(TcpFlags::SYN) {
            if is_first && side == Side::Client {
                flow.set_has_syn();
            } else if side == Side::Server && flow.syn_ack_at == 0 {
                flow.syn_ack_at = now;
            }
        }
        let (me, peer) = flow.both(side);
        let arrival = Arrival {
            tcp,
            // The clock of a flow does not go back, whatever the capture says.
            now,
            ip_len: ip_len(&one.packet.network, tcp_len(tcp)),
            ttl: one.packet.network.ttl(),
            ip_id: one.packet.network.identification(),
        };
        let outcome = tcp::on_segment(me, peer, &arrival, &mut self.pools);
        let is_done = me.has(flag::L7_DONE);
        if outcome.evidence != 0 {
            flow.evidence |= outcome.evidence;
        }
        if self.pools.marks != 0 {
            flow.note(side, flags, std::mem::take(&mut self.pools.marks));
        }
        let is_reset = flags.contains(TcpFlags::RST);
        let has_ended = (is_reset || outcome.is_closed) && !flow.is_over();
        if has_ended {
            if is_reset {
                flow.set_reset();
            } else {
                flow.set_closed();
            }
        }
        if self.recorder.is_some() {
            self.record_packet(slot, side, one, arrival.ip_len);
        }
        if let Some(recorder) = &mut self.recorder
            && outcome.flight > 0
        {
            recorder.on_flight(outcome.flight);
        }
        if self.with_names && !is_done && outcome.fresh > 0 {
            self.on_fresh(slot, side, tcp, &outcome, now, out);
        }
        if has_ended {
            self.file_anew(slot);
        }
    }

    /// New payload in order, for layer 7.
    fn on_fresh(
        &mut self,
        slot: u32,
        side: Side,
        tcp: &Tcp<'_>,
        outcome: &tcp::Outcome,
        now: u64,
        out: &mut FlowBatch,
    ) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let ends = flow.ends();
        if outcome.lost > 0 {
            self.layer7.lost(flow.layer7, side, outcome.lost);
            if let Some(listener) = &mut self.listener {
                listener.stop(slot, side);
            }
        }
        let fresh = tcp
            .payload
            .get(outcome.known as usize..)
            .unwrap_or_default();
        let messages = out.message_count();
        let lines = out.dns_count();
        self.layer7.on_tcp(
            &mut flow.layer7,
            &ends,
            side,
            fresh,
            outcome.fresh,
            now,
            out,
        );
        self.hide_messages(messages, out);
        self.after_payload(slot, side, (fresh, outcome.fresh), lines, out);
    }

    fn on_udp(&mut self, one: &Prepared<'_>, udp: &Udp<'_>, out: &mut FlowBatch) {
        if self.is_copy(&one.packet.network, udp) {
            self.learn_names(one, udp);
            return;
        }
        let slot = match self.lookup(one, out) {
            Some(slot) => slot,
            None => self.open(one, true, out),
        };
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let side = flow.side(one.is_low);
        flow.last_ns = flow.last_ns.max(one.now);
        let (me, _) = flow.both(side);
        let network = &one.packet.network;
        me.pkts_all += 1;
        me.bytes_all += u64::from(udp.payload_len);
        let len = ip_len(network, udp.payload_len.saturating_add(8));
        me.ip_bytes += u64::from(len);
        if me.first_data == 0 {
            me.first_data = one.now;
        }
        me.last_data = me.last_data.max(one.now);
        let ttl = network.ttl();
        me.ttl_max = me.ttl_max.max(ttl);
        me.ttl_min = if me.ttl_min == 0 {
            ttl
        } else {
            me.ttl_min.min(ttl)
        };
        if self.with_names && !me.has(flag::L7_DONE) && !udp.payload.is_empty() {
            let ends = flow.ends();
            let handle = &mut flow.layer7;
            let datagram = Datagram {
                payload: udp.payload,
                len: udp.payload_len,
                ttl,
                ts_ns: one.now,
            };
            let lines = out.dns_count();
            self.layer7.on_udp(handle, &ends, side, &datagram, out);
            self.after_payload(slot, side, (udp.payload, udp.payload_len), lines, out);
            if self.layer7.has_samples() {
                self.record_samples(slot);
            }
        }
        if self.recorder.is_some() {
            self.record_packet(slot, side, one, len);
        }
    }

    /// The flow of a packet; one that has ended meanwhile leaves first.
    #[inline]
    fn lookup(&mut self, one: &Prepared<'_>, out: &mut FlowBatch) -> Option<u32> {
        let flows = &self.flows;
        let slot = self.index.find(one.hash, |slot| {
            flows.get(slot).is_some_and(|flow| flow.key == one.key)
        })?;
        let flow = flows.get(slot)?;
        if flow.has_ended_by(one.now, &self.timeouts) {
            self.end(slot, None, out);
            return None;
        }
        if let Some(period) = self.periodic_ns {
            self.tell_if_due(slot, period, one.now, out);
        }
        Some(slot)
    }

    /// Whether a first SYN opens another connection between the same ports: the flow is over, or
    /// the SYN has another initial sequence number.
    fn is_new_connection(&self, slot: u32, is_low: bool, tcp: &Tcp<'_>) -> bool {
        let Some(flow) = self.flows.get(slot) else {
            return false;
        };
        let [client, server] = &flow.directions;
        let me = match flow.side(is_low) {
            Side::Client => client,
            Side::Server => server,
        };
        if me.has(flag::SYN) {
            return me.isn != tcp.seq().0;
        }
        // A flow that was met in the middle, or a simultaneous open (RFC 9293 fig. 8).
        let is_simultaneous = client.has(flag::SYN) && server.pkts_all == 0;
        !is_simultaneous
    }
}

/// Whether the sender of a flow's first segment is its client: of a SYN-ACK it is not; of a flow met
/// in the middle it is who has the higher port, where the other's is a service's.
fn is_client_first(tcp: &Tcp<'_>) -> bool {
    let flags = tcp.flags();
    if flags.contains(TcpFlags::SYN) {
        return !flags.contains(TcpFlags::ACK);
    }
    let (src, dst) = (tcp.src_port(), tcp.dst_port());
    // Below the ports that systems give to clients (RFC 6335 sec. 6: from 49152; Linux: from 32768).
    !(src < dst && (src < 1024 || (src < 32768 && dst >= 32768)))
}

impl Stage for FlowsStage {
    type Record = FlowKind;
    type Handoff = std::convert::Infallible;

    fn accept(&mut self, handoff: std::convert::Infallible, _: &mut FlowBatch) {
        match handoff {}
    }

    fn fill(&self) -> TableFill {
        TableFill {
            entries: self.flows.len() as u64,
            capacity: self.max_flows as u64,
            evicted: self.stats.evicted,
        }
    }

    fn on_batch(&mut self, batch: &Batch<'_>, out: &mut FlowBatch) {
        let mut frames = batch.frames();
        let mut group: [Option<Prepared<'_>>; GROUP] = [None; GROUP];
        while frames.len() > 0 {
            let count = frames.len().min(GROUP);
            let Some(group) = group.get_mut(..count) else {
                return;
            };
            let mut fragment = None;
            let mut filled = 0;
            for (place, frame) in group.iter_mut().zip(&mut frames) {
                *place = self.prepare(&frame);
                filled += 1;
                if place.is_none() && std::mem::take(&mut self.has_fragment) {
                    // What it makes whole comes after the packets before it.
                    fragment = Some(frame);
                    break;
                }
            }
            let group = group.get(..filled).unwrap_or_default();
            self.touch(group);
            if self.now >= self.due {
                self.look_at_wheel(out);
            }
            for one in group.iter().flatten() {
                self.on_packet(one, out);
            }
            if let Some(frame) = fragment {
                self.on_fragment(&frame, out);
            }
        }
    }

    fn on_tick(&mut self, now: Timestamp, out: &mut FlowBatch) {
        self.give_up_fragments(Some(now), out);
        self.now = self.now.max(now.as_nanos());
        self.latest = self.latest.max(self.now);
        if let Some(recorder) = &mut self.recorder
            && now.as_nanos() > 0
        {
            recorder.advance(now.as_nanos(), out);
        }
        self.layer7.end_queries(Some(self.now), out);
        if self.now >= self.due {
            self.look_at_wheel(out);
        }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let flows = (!self.flows.is_empty()).then_some(self.due);
        let due = flows.into_iter().chain(self.layer7.queries_due()).min();
        due.map(Timestamp::from_nanos)
    }

    fn finish(&mut self, out: &mut FlowBatch) -> bool {
        let full = out.len() + PIECE;
        self.give_up_fragments(None, out);
        self.now = self.latest;
        while self.finished < self.flows.used() {
            if out.len() >= full {
                return false;
            }
            let slot = self.finished;
            self.finished += 1;
            if self.flows.get(slot).is_some_and(Flow::is_used) {
                self.end(slot, None, out);
            }
        }
        self.layer7.end_queries(None, out);
        if let Some(recorder) = &mut self.recorder {
            recorder.finish(out);
        }
        true
    }
}
