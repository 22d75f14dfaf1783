//! Finds the messages in segments and matches requests with their responses.
//!
//! [`read`] goes from segments to messages, [`request`] and [`response`] match them, [`memory`] knows those that
//! have left the table, [`follow`] reads pipelines in order, [`send`] hands over to other shards.

mod follow;
mod memory;
mod read;
mod request;
mod response;
mod send;

use std::collections::VecDeque;

use linkweir_engine::TableFill;
use linkweir_record::{HttpBatch, RecordBatch};
use linkweir_table::{Chunks, Id};
use linkweir_wire::{Network, Packet, Tcp, TcpFlags};

use crate::body::Bodies;
use crate::chosen::Chosen;
use crate::config::{HttpConfig, PortSet, Shard};
use crate::emit::Output;
use crate::estimate::Estimates;
use crate::handoff::Handoff;
use crate::key::{Connection, ConnectionHash};
use crate::pending::{Half, Pending};
use crate::reach::Reach;
use crate::seen::SeenCache;
use crate::watch::WatchList;

/// Records that leave at a time.
const PIECE: usize = 1024;

/// Bytes of heads that may be gathered at once.
const GATHERED_BYTES: usize = 8 << 20;

/// Everything that is known of messages, from their first segment to their record.
#[derive(Debug)]
pub(crate) struct Matcher {
    pub(crate) seed: u64,
    pub(crate) keep_duplicates: bool,
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
    /// Whether connections of HTTP/2 and TLS may be followed.
    pub(crate) may_join: bool,
    /// Whether pipelines may be followed from here on.
    pub(crate) may_follow: bool,
    /// Whether the request at hand has begun a pipeline that is followed, and goes there.
    pub(crate) has_begun: bool,
    /// Where a response begins that came before the next request of a followed pipeline, which it answers.
    pub(crate) answer: Option<u32>,
    /// How far connections have come.
    pub(crate) reach: Reach,
    /// Requests that acknowledge this are behind a gap that will not be filled: which responses are theirs
    /// is unknown.
    pub(crate) behind_gap: Option<u32>,
    /// Ports of servers though they may be the higher ones.
    pub(crate) server_ports: PortSet,
    pub(crate) output: Output,
    /// Connections of TLS and QUIC whose transactions are estimated.
    pub(crate) estimates: Estimates,
    pub(crate) scratch: Vec<u8>,
    pub(crate) head: Vec<u8>,
    /// Values of fields that went on in further lines.
    pub(crate) unfolded: Vec<u8>,
    /// Header fields that are kept.
    pub(crate) chosen: Chosen,
    /// Those of the message at hand.
    pub(crate) fields: Vec<u8>,
    /// Set where shards hand over to one another.
    pub(crate) shard: Option<Shard>,
    pub(crate) handoffs: VecDeque<(usize, Handoff)>,
}

impl Matcher {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let capacity = config.max_pending.max(16);
        let timeout_ns = linkweir_wire::nanos(config.timeout);
        let has_whole_connections =
            config.has_whole_connections && config.shard.is_none_or(|shard| shard.count < 2);
        let window_ms = u32::try_from(config.timeout.as_millis()).unwrap_or(u32::MAX / 2);
        Self {
            seed: config.hash_seed,
            keep_duplicates: config.keep_duplicates,
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
            may_join: config.may_join && config.shard.is_none_or(|shard| shard.count < 2),
            may_follow: has_whole_connections,
            has_begun: false,
            answer: None,
            reach: Reach::default(),
            behind_gap: None,
            server_ports: [80, 81, 3128, 8000, 8008, 8080, 8081, 8888]
                .into_iter()
                .collect(),
            output: Output::new(config),
            estimates: Estimates::new(config),
            scratch: Vec::new(),
            head: Vec::new(),
            unfolded: Vec::new(),
            chosen: Chosen::new(&config.headers),
            fields: Vec::new(),
            shard: config.shard.filter(|shard| shard.count > 1),
            handoffs: VecDeque::new(),
        }
    }

    pub(crate) fn fill(&self) -> TableFill {
        TableFill {
            entries: self.pending.len() as u64,
            capacity: self.pending.capacity() as u64,
            evicted: self.output.records.stats.table_full,
        }
    }

    /// The oldest message that still waits. Held records (`--ttlb`) are not older by more than the
    /// timeout; those of streams come when they have ended, as those of HTTP/2 do.
    pub(crate) const fn watermark_ns(&self) -> u64 {
        let waits = if self.output.holds_all {
            self.timeout_ns.saturating_mul(2)
        } else {
            self.timeout_ns
        };
        self.now_ns.saturating_sub(waits)
    }

    /// When something times out next.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.has_waiting().then_some(self.deadline_ns)
    }

    /// Whether anything may time out.
    fn has_waiting(&self) -> bool {
        !self.pending.is_empty() || self.follows_any() || self.has_streams()
    }

    /// Whether responses of HTTP/1.x that are streams go on.
    #[inline]
    fn has_streams(&self) -> bool {
        let bodies = self.output.bodies.as_ref();
        bodies.is_some_and(Bodies::has_streams)
    }

    /// Whether the end of a body may be in a segment with these ports.
    #[inline]
    pub(crate) fn awaits_body(&self, tcp: &Tcp<'_>) -> bool {
        match &self.output.bodies {
            None => false,
            Some(bodies) => {
                self.output.holds_all
                    || (bodies.has_streams() && self.watch.watches(tcp.src_port(), tcp.dst_port()))
            }
        }
    }

    /// Whether connections are followed, or estimated.
    fn follows_any(&self) -> bool {
        !(self.output.web.follows_none() && self.estimates.follows_none())
    }

    /// Capture time in milliseconds, modulo 2^32.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 by design")]
    pub(crate) const fn now_ms(&self) -> u32 {
        (self.now_ns / 1_000_000) as u32
    }

    /// Whether a segment between these ports seems to go to a server: where nothing else says it.
    #[inline]
    pub(crate) fn is_to_server(&self, from: u16, to: u16) -> bool {
        to < from || self.server_ports.contains(to)
    }

    /// Whether something leaves when time moves on to `ts_ns`.
    #[inline]
    pub(crate) fn is_due(&self, ts_ns: u64) -> bool {
        self.now_ns.max(ts_ns) >= self.deadline_ns
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
        let is_following = self.follows_any();
        if is_following {
            self.expire_estimates(limit, out);
            self.expire_followed(limit, self.timeout_ns, out);
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
        let slack = if self.output.bodies.is_some() || is_following {
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
    fn drop_pending(&mut self, id: Id, out: &mut HttpBatch) {
        let Some((waiting, follower)) = self.pending.remove(id) else {
            return;
        };
        let hash = ConnectionHash::new(self.seed, &waiting.connection);
        match follower {
            Some(follower) if waiting.turn().is_some() => {
                self.pending.file_followed(follower, hash);
            }
            // Its response begins where that of the one that left ends, which remains unknown.
            Some(follower) => self.pending.hide(follower, hash),
            None => {}
        }
        if matches!(waiting.half, Half::Request(_)) {
            self.give_up_match(hash, waiting.match_seq);
            self.give_up_match(hash, waiting.origin());
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
            self.output.records.stats.table_full += 1;
            self.drop_pending(id, out);
            gone = true;
        }
        gone
    }

    /// Writes the records whose bodies have ended.
    #[inline]
    pub(crate) fn release_bodies(&mut self, out: &mut HttpBatch) {
        if self.output.bodies.as_ref().is_some_and(Bodies::has_spilled) {
            self.release_spilled(out);
        }
    }

    #[cold]
    fn release_spilled(&mut self, out: &mut HttpBatch) {
        let spilled = self.output.bodies.as_mut().map(Bodies::take_spilled);
        let Some((mut batch, events)) = spilled else {
            return;
        };
        for (view, content) in batch.views().zip(&events) {
            let fields = view.fields();
            match content {
                None => self.output.record(*view.row, &view.text, fields, out),
                Some(content) => {
                    let (row, events) = (*view.row, &content.events);
                    self.note_stream(&Connection::of_row(&row), false);
                    self.output
                        .record_stream(row, &view.text, fields, events, out);
                }
            }
        }
        batch.clear();
        if let Some(bodies) = &mut self.output.bodies {
            bodies.give_back(batch, events);
        }
    }

    /// Notes that a stream goes on between these ends, or not any more.
    pub(crate) fn note_stream(&mut self, connection: &Connection, goes_on: bool) {
        self.watch.note(connection, goes_on);
        self.watch.note(&connection.reversed(), goes_on);
    }

    /// A client opens a connection.
    pub(crate) fn on_opening(&mut self, network: &Network<'_>, tcp: &Tcp<'_>, ts_ns: u64) {
        let connection = Connection::sent_by_client(network, tcp);
        let trips = &mut self.output.records.trips;
        trips.on_syn(&connection, tcp.seq(), ts_ns);
    }

    /// A connection is accepted: both first numbers are known.
    pub(crate) fn on_accepted(
        &mut self,
        network: &Network<'_>,
        tcp: &Tcp<'_>,
        ts_ns: u64,
        out: &mut HttpBatch,
    ) {
        let connection = Connection::sent_by_client(network, tcp).reversed();
        let trips = &mut self.output.records.trips;
        trips.on_accepted(&connection, tcp.ack(), ts_ns);
        if self.watch.watches(tcp.src_port(), tcp.dst_port()) {
            self.on_accepted_again(&connection, tcp, out);
            self.end_estimates_of(&connection, tcp.ack(), out);
        }
        let hash = ConnectionHash::new(self.seed, &connection);
        self.reach
            .begin(hash, tcp.ack().0, tcp.seq().0.wrapping_add(1));
    }

    /// Every segment of a connection whose body is awaited counts.
    #[cold]
    pub(crate) fn watch_bodies(
        &mut self,
        packet: &Packet<'_>,
        tcp: &Tcp<'_>,
        ts_ns: u64,
        out: &mut HttpBatch,
    ) {
        let direction = Connection::sent_by_client(&packet.network, tcp);
        let connection = direction.reversed();
        // What TLS holds is watched when it is opened.
        let is_followed = self.output.web.find(&connection).is_some();
        let Some(bodies) = self.output.bodies.as_mut().filter(|_| !is_followed) else {
            return;
        };
        bodies.on_segment(
            &connection,
            tcp.seq(),
            tcp.payload,
            tcp.payload_len,
            tcp.flags(),
            ts_ns,
        );
        if bodies.has_streams() && tcp.flags().contains(TcpFlags::ACK) {
            bodies.on_acknowledged(&direction, tcp.ack(), ts_ns);
        }
        self.release_bodies(out);
    }

    /// Writes what still waits, a part at a time. Returns whether that was all.
    pub(crate) fn finish(&mut self, out: &mut HttpBatch) -> bool {
        let full = out.len() + PIECE;
        if !self.close_estimates(full, out) {
            return false;
        }
        self.close_all_followed(out);
        (self.may_follow, self.may_join) = (false, false);
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
