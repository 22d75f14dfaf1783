//! The stage: frames are decoded, TCP segments go to the matcher.

use linkweir_engine::{Batch, Frame, Stage, TableFill};
use linkweir_record::{HttpBatch, HttpKind};
use linkweir_wire::{
    DecodeError, DecodeFaults, FragmentStats, Fragments, Joined, LinkType, Packet, TcpFlags,
    Timestamp, Transport, Udp, decode, decode_plain,
};

use crate::config::{HttpConfig, PortSet};
use crate::handoff::{Content, Handoff};
use crate::key::Connection;
use crate::matcher::Matcher;
use crate::payload::PayloadSample;
use crate::stats::HttpStats;

/// Measures HTTP/1.x transactions.
///
/// Memory: at most about 430 bytes a pending message and 20 MiB besides. Texts share a pool of 252
/// bytes a message: where they are longer on average, fewer messages may wait.
#[derive(Debug)]
pub struct HttpStage {
    ports: Option<PortSet>,
    faults: DecodeFaults,
    fragments: Fragments,
    is_reassembled: bool,
    payload: PayloadSample,
    matcher: Matcher,
}

impl HttpStage {
    /// A stage with these settings.
    #[must_use]
    pub fn new(config: &HttpConfig) -> Self {
        Self {
            ports: config.ports.clone(),
            faults: DecodeFaults::default(),
            fragments: Fragments::default(),
            is_reassembled: config.is_reassembled,
            payload: PayloadSample::default(),
            matcher: Matcher::new(config),
        }
    }

    /// What was counted so far.
    #[must_use]
    pub const fn stats(&self) -> &HttpStats {
        &self.matcher.output.records.stats
    }

    /// Packets that did not decode, by layer and cause.
    #[must_use]
    pub const fn faults(&self) -> &DecodeFaults {
        &self.faults
    }

    /// What the TCP payload was before there was any HTTP.
    #[must_use]
    pub const fn payload(&self) -> &PayloadSample {
        &self.payload
    }

    /// What became of IP fragments that were not reassembled before.
    #[must_use]
    pub const fn fragments(&self) -> FragmentStats {
        self.fragments.stats()
    }

    /// Messages that wait now.
    #[must_use]
    pub const fn pending(&self) -> usize {
        self.matcher.pending.len()
    }

    /// A frame that is not of the plain shape: tags, tunnels, faults, or nothing of interest.
    #[inline(never)]
    fn on_unusual(&mut self, frame: &Frame<'_>, out: &mut HttpBatch) {
        match decode(frame.link, frame.bytes, frame.wire_len) {
            Ok(packet) if packet.is_fragment && !self.is_reassembled => {
                self.on_fragment(frame, out);
            }
            decoded => self.on_decoded(decoded, frame.timestamp, out),
        }
    }

    fn on_decoded(
        &mut self,
        decoded: Result<Packet<'_>, DecodeError>,
        timestamp: Timestamp,
        out: &mut HttpBatch,
    ) {
        if let Some(packet) = Packet::counted(decoded, &mut self.faults) {
            self.on_packet(&packet, timestamp, out);
        }
    }

    /// A part of a packet: the packet comes when it is whole.
    #[cold]
    fn on_fragment(&mut self, frame: &Frame<'_>, out: &mut HttpBatch) {
        let mut fragments = std::mem::take(&mut self.fragments);
        let parts = (frame.link, frame.bytes, frame.wire_len);
        fragments.on_frame(parts, frame.timestamp, |joined| {
            self.on_joined(&joined, out);
        });
        self.fragments = fragments;
    }

    fn on_joined(&mut self, joined: &Joined<'_>, out: &mut HttpBatch) {
        if !self.matcher.send_packet(joined) {
            self.on_decoded(joined.packet, joined.timestamp, out);
        }
    }

    /// Gives up packets of which parts are missing: all, or those that have waited long enough `now`.
    #[cold]
    fn give_up_fragments(&mut self, now: Option<Timestamp>, out: &mut HttpBatch) {
        let mut fragments = std::mem::take(&mut self.fragments);
        let each = |joined: Joined<'_>| self.on_joined(&joined, out);
        match now {
            Some(now) => fragments.expire(now, each),
            None => fragments.finish(each),
        }
        self.fragments = fragments;
    }

    /// A datagram of UDP, perhaps of QUIC.
    #[cold]
    fn on_datagram(
        &mut self,
        packet: &Packet<'_>,
        udp: &Udp<'_>,
        timestamp: Timestamp,
        out: &mut HttpBatch,
    ) {
        let (from, to) = (udp.src_port(), udp.dst_port());
        if let Some(ports) = &self.ports
            && !ports.contains(from)
            && !ports.contains(to)
        {
            return;
        }
        let direction = Connection {
            client: (packet.network.src(), from),
            server: (packet.network.dst(), to),
        };
        let now_ns = timestamp.as_nanos();
        let matcher = &mut self.matcher;
        if matcher.reads_datagrams() {
            matcher.on_datagram(direction, udp.payload, now_ns, packet.vlan, out);
        }
        if matcher.estimates_from(udp) {
            matcher.on_estimated_datagram(direction, udp, now_ns, packet.vlan, out);
        }
    }

    #[expect(
        clippy::inline_always,
        reason = "a data segment must be passed over without a call"
    )]
    #[inline(always)]
    fn on_packet(&mut self, packet: &Packet<'_>, timestamp: Timestamp, out: &mut HttpBatch) {
        let Transport::Tcp(tcp) = &packet.transport else {
            if let Transport::Udp(udp) = &packet.transport
                && (self.matcher.reads_datagrams() || self.matcher.estimates_from(udp))
            {
                self.on_datagram(packet, udp, timestamp, out);
            }
            return;
        };
        if let Some(ports) = &self.ports
            && !ports.contains(tcp.src_port())
            && !ports.contains(tcp.dst_port())
        {
            return;
        }
        let matcher = &mut self.matcher;
        if matcher.awaits_body(tcp) {
            matcher.watch_bodies(packet, tcp, timestamp.as_nanos(), out);
        }
        if !tcp.payload.is_empty() {
            matcher.on_segment(&packet.network, tcp, timestamp.as_nanos(), packet.vlan, out);
        } else if tcp.flags().contains(TcpFlags::SYN) {
            let now_ns = timestamp.as_nanos();
            match tcp.flags().contains(TcpFlags::ACK) {
                true => matcher.on_accepted(&packet.network, tcp, now_ns, out),
                false => matcher.on_opening(&packet.network, tcp, now_ns),
            }
        } else if matcher.estimates_any(tcp) {
            matcher.on_bare(&packet.network, tcp, timestamp.as_nanos(), packet.vlan, out);
        }
    }
}

impl Stage for HttpStage {
    type Record = HttpKind;
    type Handoff = Handoff;

    fn take_handoff(&mut self) -> Option<(usize, Handoff)> {
        self.matcher.next_handoff()
    }

    fn accept(&mut self, handoff: Handoff, out: &mut HttpBatch) {
        match handoff.0 {
            Content::Messages(messages) => self.matcher.unpack(messages, out),
            Content::Packet {
                timestamp,
                link,
                wire_len,
                bytes,
            } => self.on_decoded(decode(link, &bytes, wire_len), timestamp, out),
        }
    }

    fn watermark(&self) -> Timestamp {
        Timestamp::from_nanos(self.matcher.watermark_ns())
    }

    fn fill(&self) -> TableFill {
        self.matcher.fill()
    }

    fn on_batch(&mut self, batch: &Batch<'_>, out: &mut HttpBatch) {
        for frame in batch.frames() {
            let plain = (frame.link == LinkType::ETHERNET)
                .then(|| decode_plain(frame.bytes, frame.wire_len));
            match plain.flatten() {
                Some(packet) => self.on_packet(&packet, frame.timestamp, out),
                None => self.on_unusual(&frame, out),
            }
        }
        let stats = &self.matcher.output.records.stats;
        if stats.requests == 0 && stats.responses == 0 {
            self.payload.observe(batch);
        }
    }

    fn on_tick(&mut self, now: Timestamp, out: &mut HttpBatch) {
        self.give_up_fragments(Some(now), out);
        self.matcher.advance(now.as_nanos(), out);
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.matcher.deadline_ns().map(Timestamp::from_nanos)
    }

    fn finish(&mut self, out: &mut HttpBatch) -> bool {
        // The other shards are finishing too: handoffs are not taken any more.
        self.matcher.shard = None;
        self.give_up_fragments(None, out);
        self.matcher.finish(out)
    }
}
