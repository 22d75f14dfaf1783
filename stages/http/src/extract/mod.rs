//! Half-transactions: of a capture, exactly the segments on which a measurement could depend.
//!
//! A trace of many files that no machine reads alone is reduced file by file, wherever the files are, to
//! rows ([`linkweir_record::half`]); an engine sorts the rows and gives each shard of them to an
//! `HttpStage`, as packets ([`crate::HttpStage`] does not change). Records and totals are those of one
//! stage that has read the files one after the other.
//!
//! What to keep is not guessed: the same stage follows the file, and a segment is a row where it did
//! something there ([`Relevance`]). What it cannot know is what came before the file ([`file_start`]); there
//! everything is kept that could matter. A row too many is passed over by the measurement as its packet
//! would have been. Bodies are left away.
//!
//! ```text
//! frame ─ decode ─► HttpStage ─ touched? ─► message alone? ─► row
//!                       └ not, but at the beginning of the file ─┘
//! ```

mod file_start;
pub mod frames;
mod held;
mod message;
pub mod shard;

use std::time::Duration;

use linkweir_engine::hash::eq3_balance;
use linkweir_engine::{Batch, Frame, Stage, TableFill};
use linkweir_record::{HalfBatch, HalfKind, HalfRow, HttpBatch, RecordBatch};
use linkweir_wire::{
    DecodeError, DecodeFaults, FragmentStats, Fragments, Joined, LinkType, Packet, SeqNumber, Tcp,
    TcpFlags, Timestamp, Transport, decode, decode_plain,
};

use crate::config::{HttpConfig, PortSet};
use crate::key::{Connection, ConnectionHash, Meaning};
use crate::matcher::Matcher;
use crate::segment::{Relevance, Segment};
use file_start::FileStart;
use held::HeldRows;
use message::Message;

/// Settings of [`HalfStage`].
#[derive(Debug, Clone)]
pub struct HalvesConfig {
    /// Place of the file in the trace.
    pub file: u32,
    /// Only segments from or to one of these ports; `None`: all.
    pub ports: Option<PortSet>,
    /// Capture time after which a message without its counterpart leaves the table of the measurement.
    pub timeout: Duration,
    /// Messages that are remembered at least, as of [`HttpConfig::remembered`].
    pub remembered: usize,
    /// Seed of the tables' hashes; rows do not depend on it.
    pub hash_seed: u64,
}

impl Default for HalvesConfig {
    fn default() -> Self {
        let http = HttpConfig::default();
        Self {
            file: 0,
            ports: None,
            timeout: http.timeout,
            remembered: http.remembered,
            hash_seed: http.hash_seed,
        }
    }
}

/// Makes half-transactions of packets.
#[derive(Debug)]
pub struct HalfStage {
    file: u32,
    ports: Option<PortSet>,
    timeout_ns: u64,
    seed: u64,
    matcher: Matcher,
    /// Records of the matcher, which are not used.
    unread: HttpBatch,
    /// `None` before the first packet and when the beginning of the file is over.
    file_start: Option<FileStart>,
    held: HeldRows,
    packets: u64,
    order_ns: u64,
    faults: DecodeFaults,
    fragments: Fragments,
    counts: HalfCounts,
}

/// What was kept, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HalfCounts {
    /// Requests that begin with their segment.
    pub requests: u64,
    /// Responses that begin with their segment.
    pub responses: u64,
    /// Of these, those with which nothing else is in the segment.
    pub plain: u64,
    /// Segments that go on with a head, or in which a message begins.
    pub others: u64,
    /// Segments that are kept because of what may have come before the file, or may still come.
    pub possible: u64,
}

impl HalfStage {
    /// A stage with these settings.
    #[must_use]
    pub fn new(config: &HalvesConfig) -> Self {
        Self {
            file: config.file,
            ports: config.ports.clone(),
            timeout_ns: linkweir_wire::nanos(config.timeout),
            seed: config.hash_seed,
            matcher: Matcher::new(&HttpConfig {
                timeout: config.timeout,
                remembered: config.remembered,
                hash_seed: config.hash_seed,
                has_whole_connections: false,
                may_join: false,
                ..HttpConfig::default()
            }),
            unread: HttpBatch::default(),
            file_start: None,
            held: HeldRows::default(),
            packets: 0,
            order_ns: 0,
            faults: DecodeFaults::default(),
            fragments: Fragments::default(),
            counts: HalfCounts::default(),
        }
    }

    /// What was kept so far.
    #[must_use]
    pub const fn counts(&self) -> HalfCounts {
        let (taken, possible) = self.held.counts();
        let mut counts = self.counts;
        counts.others += taken;
        counts.possible += possible;
        counts
    }

    /// Packets that did not decode, by layer and cause.
    #[must_use]
    pub const fn faults(&self) -> &DecodeFaults {
        &self.faults
    }

    /// What became of IP fragments; a packet whose fragments are in two files is reassembled in neither.
    #[must_use]
    pub const fn fragments(&self) -> FragmentStats {
        self.fragments.stats()
    }

    fn on_frame(&mut self, frame: &Frame<'_>, out: &mut HalfBatch) {
        let ts_ns = frame.timestamp.as_nanos();
        if self.packets == 0 {
            // What waits is released at the next packet, hence twice.
            let until = ts_ns.saturating_add(self.timeout_ns.saturating_mul(2));
            self.file_start = Some(FileStart::new(until, self.seed));
        }
        self.packets += 1;
        self.order_ns = self.order_ns.max(ts_ns);
        let plain = (frame.link == LinkType::ETHERNET)
            .then(|| decode_plain(frame.bytes, frame.wire_len))
            .flatten();
        if let Some(packet) = plain {
            return self.on_packet(&packet, frame.timestamp, out);
        }
        match decode(frame.link, frame.bytes, frame.wire_len) {
            Ok(packet) if packet.is_fragment => {
                let mut fragments = std::mem::take(&mut self.fragments);
                let parts = (frame.link, frame.bytes, frame.wire_len);
                fragments.on_frame(parts, frame.timestamp, |joined| self.on_joined(joined, out));
                self.fragments = fragments;
            }
            decoded => self.on_decoded(decoded, frame.timestamp, out),
        }
    }

    fn on_joined(&mut self, joined: Joined<'_>, out: &mut HalfBatch) {
        self.on_decoded(joined.packet, joined.timestamp, out);
    }

    fn on_decoded(
        &mut self,
        decoded: Result<Packet<'_>, DecodeError>,
        timestamp: Timestamp,
        out: &mut HalfBatch,
    ) {
        if let Some(packet) = Packet::counted(decoded, &mut self.faults) {
            self.on_packet(&packet, timestamp, out);
        }
    }

    fn on_packet(&mut self, packet: &Packet<'_>, timestamp: Timestamp, out: &mut HalfBatch) {
        let Transport::Tcp(tcp) = &packet.transport else {
            return;
        };
        if let Some(ports) = &self.ports
            && !ports.contains(tcp.src_port())
            && !ports.contains(tcp.dst_port())
        {
            return;
        }
        let ts_ns = timestamp.as_nanos();
        if self
            .file_start
            .as_ref()
            .is_some_and(|file_start| file_start.is_over(ts_ns))
        {
            self.file_start = None;
        }
        if tcp.flags().contains(TcpFlags::SYN)
            && let Some(file_start) = &mut self.file_start
        {
            file_start.begins(&Connection::sent_by_client(&packet.network, tcp));
        }
        if tcp.payload.is_empty() {
            return;
        }
        let relevance =
            self.matcher
                .on_segment(&packet.network, tcp, ts_ns, packet.vlan, &mut self.unread);
        match relevance {
            Relevance::Irrelevant if self.file_start.is_none() => {}
            Relevance::Irrelevant | Relevance::OutOfOrder => {
                self.on_untouched(relevance == Relevance::OutOfOrder, packet, tcp, ts_ns, out);
            }
            Relevance::Start | Relevance::Other => {
                self.held.settle(&self.matcher.watch, out);
                self.on_touched(relevance == Relevance::Start, packet, tcp, ts_ns, out);
            }
        }
    }

    /// A segment that says something to the stage; first of all by its first byte, where `is_start`.
    fn on_touched(
        &mut self,
        is_start: bool,
        packet: &Packet<'_>,
        tcp: &Tcp<'_>,
        ts_ns: u64,
        out: &mut HalfBatch,
    ) {
        let message = if is_start {
            Message::read(tcp.payload, tcp.payload_len, tcp.flags())
        } else {
            Message::whole(tcp.payload, None)
        };
        let mut row = self.row(packet, tcp, ts_ns);
        row.is_request = message.is_request;
        row.is_plain = message.is_plain;
        row.end_seq = message.len.map(|len| row.seq.wrapping_add(len));
        let match_seq = match message.is_request {
            Some(true) => row.ack,
            _ => row.seq,
        };
        let direction = Connection::sent_by_client(&packet.network, tcp);
        row.eq3 = eq3_balance(direction.client, direction.server, match_seq);
        match message.is_request {
            Some(true) => self.counts.requests += 1,
            Some(false) => self.counts.responses += 1,
            None => self.counts.others += 1,
        }
        self.counts.plain += u64::from(message.is_plain);
        if let Some(file_start) = &mut self.file_start {
            if message.is_request.is_some() {
                file_start.has_message(&direction);
            }
            // Where a message ends is not sure for a response to a request of before the file, so another
            // start line may stand in the segment than the stage has looked for.
            let unread = match message.is_request {
                Some(false) if !message.is_plain => 1,
                None => 0,
                _ => tcp.payload.len(),
            };
            if let Some(bytes) = tcp.payload.get(unread..) {
                let seq = row.seq.wrapping_add(u32::from(unread == 1));
                file_start.look(&direction, SeqNumber(seq), bytes);
            }
        }
        let payload = tcp.payload.get(..message.keep).unwrap_or(tcp.payload);
        self.held.push(row, payload, out);
    }

    /// A segment that says nothing to the stage, or nothing yet where `is_early`.
    fn on_untouched(
        &mut self,
        is_out_of_order: bool,
        packet: &Packet<'_>,
        tcp: &Tcp<'_>,
        ts_ns: u64,
        out: &mut HalfBatch,
    ) {
        let segment = Segment::new(&packet.network, tcp, ts_ns, packet.vlan);
        let may_matter = self.file_start.as_mut().is_some_and(|file_start| {
            file_start.may_matter(&segment.direction, segment.seq, tcp.payload)
        });
        if !may_matter && !is_out_of_order {
            return;
        }
        let mut row = self.row(packet, tcp, ts_ns);
        row.is_plain = true;
        row.eq3 = eq3_balance(segment.direction.client, segment.direction.server, row.seq);
        if may_matter {
            self.counts.possible += 1;
            self.held.push(row, tcp.payload, out);
        } else {
            let number = self.matcher.watch.kept_count().saturating_sub(1);
            self.held.push_undecided(number, row, tcp.payload, out);
        }
    }

    fn row(&self, packet: &Packet<'_>, tcp: &Tcp<'_>, ts_ns: u64) -> HalfRow {
        let sent = Connection::sent_by_client(&packet.network, tcp);
        HalfRow {
            order_ns: self.order_ns,
            ts_ns,
            packet: self.packets,
            connection: connection_hash(&sent),
            src_ip: sent.client.0,
            dst_ip: sent.server.0,
            file: self.file,
            seq: tcp.seq().0,
            ack: tcp.ack().0,
            end_seq: None,
            payload_len: tcp.payload_len,
            captured_len: u32::try_from(tcp.payload.len()).unwrap_or(u32::MAX),
            eq3: 0,
            src_port: sent.client.1,
            dst_port: sent.server.1,
            vlan: packet.vlan,
            flags: tcp.flags().0,
            is_request: None,
            is_plain: false,
        }
    }
}

/// A hash of a connection, the same for both directions and in every run, below 2^63.
fn connection_hash(sent: &Connection) -> u64 {
    let connection = if sent.client <= sent.server {
        *sent
    } else {
        sent.reversed()
    };
    ConnectionHash::new(0, &connection).fingerprint(Meaning::Direction, 0) >> 1
}

impl Stage for HalfStage {
    type Record = HalfKind;
    type Handoff = std::convert::Infallible;

    fn accept(&mut self, handoff: Self::Handoff, _out: &mut HalfBatch) {
        match handoff {}
    }

    fn watermark(&self) -> Timestamp {
        Timestamp::ZERO
    }

    fn fill(&self) -> TableFill {
        self.matcher.fill()
    }

    fn on_batch(&mut self, batch: &Batch<'_>, out: &mut HalfBatch) {
        for frame in batch.frames() {
            self.on_frame(&frame, out);
        }
        self.unread.clear();
    }

    fn on_tick(&mut self, now: Timestamp, out: &mut HalfBatch) {
        let mut fragments = std::mem::take(&mut self.fragments);
        fragments.expire(now, |joined| self.on_joined(joined, out));
        self.fragments = fragments;
        self.matcher.advance(now.as_nanos(), &mut self.unread);
        self.unread.clear();
        // An observer does not wait for what may still turn up.
        self.held.release(0, out);
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        None
    }

    fn finish(&mut self, out: &mut HalfBatch) -> bool {
        let mut fragments = std::mem::take(&mut self.fragments);
        fragments.finish(|joined| self.on_joined(joined, out));
        self.fragments = fragments;
        // The head of what was kept last may begin in the next file.
        self.held.release(0, out);
        true
    }
}
