//! The stage: decode, classify, keep time.

use std::collections::VecDeque;

use linkweir_engine::{Batch, Frame, Stage, TableFill};
use linkweir_record::{HttpBatch, HttpKind, RecordBatch};
use linkweir_table::Chunks;
use linkweir_wire::{
    DecodeError, DecodeFaults, FragmentStats, Fragments, Joined, LinkType, Network, Packet, Tcp,
    TcpFlags, Timestamp, Transport, decode, decode_plain,
};

use crate::config::{HttpConfig, PortSet, Shard};
use crate::emit::Output;
use crate::handoff::Handoff;
use crate::key::{Connection, ConnectionHash};
use crate::payload::PayloadSample;
use crate::pending::{Half, Pending};
use crate::reach::Reach;
use crate::seen::SeenCache;
use crate::stats::HttpStats;
use crate::watch::WatchList;

/// Records that leave at a time.
const PIECE: usize = 1024;

/// Bytes of heads that may be gathered at once.
const GATHERED_BYTES: usize = 8 << 20;

/// Measures HTTP/1.x transactions.
///
/// Memory: at most about 430 bytes a pending message and 20 MiB besides. Texts share a pool of 252
/// bytes a message: where they are longer on average, fewer messages may wait.
#[derive(Debug)]
pub struct HttpStage {
    pub(crate) seed: u64,
    pub(crate) keep_duplicates: bool,
    ports: Option<PortSet>,
    timeout_ns: u64,
    /// The latest capture time of any message.
    pub(crate) now_ns: u64,
    /// Before this nothing times out.
    deadline_ns: u64,
    pub(crate) pending: Pending,
    pub(crate) texts: Chunks,
    pub(crate) seen: SeenCache,
    pub(crate) watch: WatchList,
    /// Whether every segment of a connection comes here.
    pub(crate) has_whole_connections: bool,
    /// Whether pipelines may be followed from here on.
    pub(crate) may_follow: bool,
    /// Whether the request at hand has begun a pipeline that is followed, and goes there.
    pub(crate) has_begun: bool,
    /// Where a response begins that came before the next request of a followed pipeline, which it answers.
    pub(crate) answer: Option<u32>,
    /// How far connections have come.
    pub(crate) reach: Reach,
    /// Requests that acknowledge this are behind a gap that nobody will fill: which responses are theirs
    /// nobody knows.
    pub(crate) behind_gap: Option<u32>,
    /// Ports of servers though they may be the higher ones.
    pub(crate) server_ports: PortSet,
    pub(crate) output: Output,
    faults: DecodeFaults,
    fragments: Fragments,
    is_reassembled: bool,
    payload: PayloadSample,
    pub(crate) scratch: Vec<u8>,
    pub(crate) head: Vec<u8>,
    /// Values of fields that went on in further lines.
    pub(crate) unfolded: Vec<u8>,
    /// Set where shards hand over to one another.
    pub(crate) shard: Option<Shard>,
    pub(crate) handoffs: VecDeque<(usize, Handoff)>,
}

impl HttpStage {
    /// A stage with these settings.
    #[must_use]
    pub fn new(config: &HttpConfig) -> Self {
        let capacity = config.max_pending.max(16);
        let timeout_ns = linkweir_wire::nanos(config.timeout);
        let has_whole_connections =
            config.has_whole_connections && config.shard.is_none_or(|shard| shard.count < 2);
        let window_ms = u32::try_from(config.timeout.as_millis()).unwrap_or(u32::MAX / 2);
        Self {
            seed: config.hash_seed,
            keep_duplicates: config.keep_duplicates,
            ports: config.ports.clone(),
            timeout_ns,
            now_ns: 0,
            deadline_ns: 0,
            pending: Pending::new(capacity, timeout_ns),
            texts: Chunks::with_capacity(capacity.max(1024)),
            seen: SeenCache::new((capacity / 2).max(config.remembered), window_ms),
            watch: WatchList::new(
                (capacity / 16).clamp(64, 8192),
                GATHERED_BYTES,
                config.hash_seed,
            ),
            has_whole_connections,
            may_follow: has_whole_connections,
            has_begun: false,
            answer: None,
            reach: Reach::default(),
            behind_gap: None,
            server_ports: [80, 81, 3128, 8000, 8008, 8080, 8081, 8888]
                .into_iter()
                .collect(),
            output: Output::new(config),
            faults: DecodeFaults::default(),
            fragments: Fragments::default(),
            is_reassembled: config.is_reassembled,
            payload: PayloadSample::default(),
            scratch: Vec::new(),
            head: Vec::new(),
            unfolded: Vec::new(),
            shard: config.shard.filter(|shard| shard.count > 1),
            handoffs: VecDeque::new(),
        }
    }

    /// What was counted so far.
    #[must_use]
    pub const fn stats(&self) -> &HttpStats {
        &self.output.stats
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
        self.pending.len()
    }

    /// Capture time in milliseconds, modulo 2^32.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 by design")]
    pub(crate) const fn now_ms(&self) -> u32 {
        (self.now_ns / 1_000_000) as u32
    }

    /// Moves time on to a message at `ts_ns`; what is due leaves first.
    #[inline]
    pub(crate) fn advance(&mut self, ts_ns: u64, out: &mut HttpBatch) {
        self.now_ns = self.now_ns.max(ts_ns);
        if self.now_ns >= self.deadline_ns {
            self.expire(out);
        }
        self.pending.set_time(ts_ns);
    }

    #[cold]
    fn expire(&mut self, out: &mut HttpBatch) {
        let Some(limit) = self.now_ns.checked_sub(self.timeout_ns) else {
            self.deadline_ns = self.timeout_ns;
            return;
        };
        // What a cut head does moves time on too, but what it may still answer leaves after it.
        self.deadline_ns = u64::MAX;
        while let Some(gone) = self.watch.expire(limit) {
            self.on_gone(gone, out);
        }
        // What is due counts as gone at once, see `Pending`; the records of many follow piece by piece.
        let mut left = PIECE;
        let mut is_behind = false;
        while let Some((id, waiting)) = self.pending.oldest() {
            if waiting.changed_ns > limit {
                break;
            }
            if left == 0 {
                is_behind = true;
                break;
            }
            left -= 1;
            self.drop_pending(id, out);
        }
        if let Some(bodies) = &mut self.output.bodies {
            bodies.expire(limit);
        }
        self.release_bodies(out);
        // Entries made from now on are due a timeout from now; those there by the oldest of them.
        let oldest = self
            .pending
            .oldest()
            .map_or(self.now_ns, |(_, waiting)| waiting.changed_ns);
        let slack = if self.output.bodies.is_some() {
            self.timeout_ns / 8
        } else {
            self.timeout_ns
        };
        self.deadline_ns = oldest
            .saturating_add(self.timeout_ns)
            .min(self.now_ns.saturating_add(slack))
            .max(self.now_ns.saturating_add(1));
        if is_behind {
            self.deadline_ns = 0;
        }
    }

    /// A message leaves without its counterpart; what waited behind it can no longer be found.
    fn drop_pending(&mut self, id: linkweir_table::Id, out: &mut HttpBatch) {
        let Some((waiting, follower)) = self.pending.remove(id) else {
            return;
        };
        let hash = ConnectionHash::new(self.seed, &waiting.connection);
        match follower {
            Some(follower) if waiting.turn().is_some() => {
                self.pending.file_followed(follower, hash);
            }
            // Its response begins where that of the one that left ends, which nobody will know.
            Some(follower) => self.pending.hide(follower, hash),
            None => {}
        }
        if matches!(waiting.half, Half::Request(_)) {
            self.give_up_link(hash, waiting.link);
            self.give_up_link(hash, waiting.origin());
        }
        self.give_up(waiting, out);
    }

    /// Sees to it that a message with `text_len` bytes of text fits; whether something had to go.
    #[inline]
    pub(crate) fn make_room(&mut self, text_len: usize, out: &mut HttpBatch) -> bool {
        let mut gone = false;
        while self.pending.is_full() || !self.texts.has_room(text_len) {
            let Some((id, _)) = self.pending.oldest() else {
                break;
            };
            self.output.stats.table_full += 1;
            self.drop_pending(id, out);
            gone = true;
        }
        gone
    }

    /// Writes the records whose bodies have ended.
    #[inline]
    pub(crate) fn release_bodies(&mut self, out: &mut HttpBatch) {
        if self
            .output
            .bodies
            .as_ref()
            .is_some_and(crate::body::Bodies::has_spilled)
        {
            self.release_spilled(out);
        }
    }

    #[cold]
    fn release_spilled(&mut self, out: &mut HttpBatch) {
        let Some(mut batch) = self
            .output
            .bodies
            .as_mut()
            .map(crate::body::Bodies::take_spilled)
        else {
            return;
        };
        for view in batch.views() {
            self.output.record(*view.row, &view.text, out);
        }
        batch.clear();
        if let Some(bodies) = &mut self.output.bodies {
            bodies.give_back(batch);
        }
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

    pub(crate) fn on_decoded(
        &mut self,
        decoded: Result<Packet<'_>, DecodeError>,
        timestamp: Timestamp,
        out: &mut HttpBatch,
    ) {
        match decoded {
            Ok(packet) => {
                if let Some(fault) = &packet.fault {
                    self.faults.note(fault);
                }
                self.on_packet(&packet, timestamp, out);
            }
            Err(fault) => self.faults.record(&fault),
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
        if !self.send_packet(joined) {
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

    #[expect(
        clippy::inline_always,
        reason = "a data segment must be passed over without a call"
    )]
    #[inline(always)]
    fn on_packet(&mut self, packet: &Packet<'_>, timestamp: Timestamp, out: &mut HttpBatch) {
        let Transport::Tcp(tcp) = &packet.transport else {
            return;
        };
        if let Some(ports) = &self.ports
            && !ports.contains(tcp.src_port())
            && !ports.contains(tcp.dst_port())
        {
            return;
        }
        if self.output.bodies.is_some() {
            self.watch_bodies(packet, tcp, timestamp.as_nanos(), out);
        }
        if !tcp.payload.is_empty() {
            self.on_segment(&packet.network, tcp, timestamp.as_nanos(), packet.vlan, out);
        } else if tcp.flags().contains(TcpFlags::SYN | TcpFlags::ACK) {
            self.on_accepted(&packet.network, tcp);
        }
    }

    /// A connection is accepted: both first numbers are known.
    fn on_accepted(&mut self, network: &Network<'_>, tcp: &Tcp<'_>) {
        let connection = Connection::sent_by_client(network, tcp).reversed();
        let hash = ConnectionHash::new(self.seed, &connection);
        self.reach
            .begin(hash, tcp.ack().0, tcp.seq().0.wrapping_add(1));
    }

    /// With time to last byte every segment of a connection whose body is awaited counts.
    #[cold]
    fn watch_bodies(
        &mut self,
        packet: &Packet<'_>,
        tcp: &Tcp<'_>,
        ts_ns: u64,
        out: &mut HttpBatch,
    ) {
        let Some(bodies) = &mut self.output.bodies else {
            return;
        };
        let connection = Connection::sent_by_client(&packet.network, tcp).reversed();
        bodies.on_segment(
            &connection,
            tcp.seq(),
            tcp.payload,
            tcp.payload_len,
            tcp.flags(),
            ts_ns,
        );
        self.release_bodies(out);
    }
}

impl Stage for HttpStage {
    type Record = HttpKind;
    type Handoff = Handoff;

    fn take_handoff(&mut self) -> Option<(usize, Handoff)> {
        self.next_handoff()
    }

    fn accept(&mut self, handoff: Handoff, out: &mut HttpBatch) {
        self.unpack(handoff, out);
    }

    /// The oldest message that still waits. Held records (`--ttlb`) are not older by more than the
    /// timeout.
    fn watermark(&self) -> Timestamp {
        let waits = if self.output.bodies.is_some() {
            self.timeout_ns.saturating_mul(2)
        } else {
            self.timeout_ns
        };
        Timestamp::from_nanos(self.now_ns.saturating_sub(waits))
    }

    fn fill(&self) -> TableFill {
        TableFill {
            entries: self.pending.len() as u64,
            capacity: self.pending.capacity() as u64,
            evicted: self.output.stats.table_full,
        }
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
        let stats = &self.output.stats;
        if stats.requests == 0 && stats.responses == 0 {
            self.payload.observe(batch);
        }
    }

    fn on_tick(&mut self, now: Timestamp, out: &mut HttpBatch) {
        self.give_up_fragments(Some(now), out);
        self.advance(now.as_nanos(), out);
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        (!self.pending.is_empty()).then(|| Timestamp::from_nanos(self.deadline_ns))
    }

    fn finish(&mut self, out: &mut HttpBatch) -> bool {
        // The other shards are finishing too: nobody takes a handoff any more.
        self.shard = None;
        self.give_up_fragments(None, out);
        let full = out.len() + PIECE;
        self.may_follow = false;
        while let Some(gone) = self.watch.evict() {
            self.on_gone(gone, out);
        }
        while let Some((id, _)) = self.pending.oldest() {
            if out.len() >= full {
                return false;
            }
            self.drop_pending(id, out);
        }
        if let Some(bodies) = &mut self.output.bodies {
            bodies.expire(u64::MAX);
        }
        self.release_bodies(out);
        true
    }
}
