//! Packets, reports and time in, effects out.

mod begin;
mod said;
mod ticks;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use linkweir_engine::Effects;
use linkweir_engine::effect::{Decision, Mark, QueuedPacket, Ticket};
use linkweir_record::{GatewayKind, PlaceCache};
use linkweir_table::{Id, Table};
use linkweir_wire::{
    LinkType, Network, Packet, Tcp, TcpFlags, Timestamp, Transport, checksum, decode_outermost,
};

use crate::connection::{Connection, Ends, Handshakes, Key, Phase, RecentDecisions, Undecided};
use crate::context::{Context, Ids};
use crate::hold::{Budget, Segment};
use crate::inspect::Side;
use crate::invitations::Invitations;
use crate::policy::{Label, Policy};
use crate::stats::{Labels, Stats};
use crate::steps::{Took, Watch};
use crate::work::{Disposition, Work};
use begin::cut_in_the_middle;

/// A scan that packets of a connection wait for.
#[derive(Debug, Clone, Copy)]
struct Scan {
    key: Key,
    hash: u32,
    since: Timestamp,
    until: Timestamp,
}

/// A queued packet of a connection.
#[derive(Debug, Clone, Copy)]
struct Arrived<'a> {
    packet: &'a QueuedPacket<'a>,
    src: (IpAddr, u16),
    dst: (IpAddr, u16),
    key: Key,
    hash: u32,
    now: Timestamp,
}

impl<'a> Arrived<'a> {
    fn new(
        packet: &'a QueuedPacket<'a>,
        src: (IpAddr, u16),
        dst: (IpAddr, u16),
        is_tcp: bool,
        now: Timestamp,
    ) -> Self {
        let key = Key::new(src, dst, is_tcp);
        let hash = key.hash();
        Self {
            packet,
            src,
            dst,
            key,
            hash,
            now,
        }
    }
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    policy: Arc<Policy>,
    /// Where addresses are, as the policy's database says.
    places: Option<PlaceCache>,
    budget: Budget,
    ids: Ids,
    stats: Stats,
    labels: Labels,
    invitations: Arc<Invitations>,
    /// Scans that were requested while one packet is handled; empty otherwise.
    requested: Vec<Ticket>,
    /// Bytes of memory that files under inspection use now.
    memory: usize,
    /// What one packet takes, where that is wanted.
    watch: Watch,
    /// Connections that went undecided, where they are wanted.
    undecided: Option<Vec<Undecided>>,
}

impl Shared {
    /// Says where the ends of a connection are, by the database of the present policy, and when in the week it begins.
    fn locate(&mut self, ends: &mut Ends, began: Timestamp) {
        let minute = self.policy.local_minute;
        ends.minute = minute.map_or(0, |minute| minute(began));
        // One that was too many when it began stays so.
        ends.used_up |= self.policy.used_up(ends.client.0, began);
        let addresses = [ends.client.0, ends.server.0];
        let places = self.places.as_mut();
        ends.places = places.map_or_else(Default::default, |places| {
            addresses.map(|address| places.place(address))
        });
    }

    fn context<'a>(
        &'a mut self,
        now: Timestamp,
        effects: &'a mut Effects<GatewayKind>,
    ) -> Context<'a> {
        Context {
            now,
            policy: &self.policy,
            budget: &mut self.budget,
            effects,
            ids: &mut self.ids,
            stats: &mut self.stats,
            labels: &mut self.labels,
            invitations: &self.invitations,
            requested: &mut self.requested,
            memory: &mut self.memory,
            watch: &mut self.watch,
        }
    }
}

/// The gateway of one kernel queue. Both directions of a connection must come to the same one.
#[derive(Debug)]
pub struct GatewayStage {
    shared: Shared,
    connections: Table<Connection>,
    handshakes: Handshakes,
    recent: RecentDecisions,
    scans: HashMap<Ticket, Scan>,
    /// When the scans' time is up.
    deadlines: BTreeSet<(Timestamp, Ticket)>,
    /// Connections in which a packet began to wait, oldest first.
    waits: VecDeque<(Timestamp, Key, u32)>,
    /// When packets that did not decode were last recorded.
    undecoded_at: Option<Timestamp>,
}

/// Entries of the memory of decisions.
const RECENT: usize = 65_536;

impl GatewayStage {
    /// A stage for one queue; `worker` numbers them, `invitations` are shared by all.
    #[must_use]
    pub fn new(policy: Arc<Policy>, worker: u8, invitations: Arc<Invitations>) -> Self {
        let limits = policy.limits;
        Self {
            connections: Table::with_capacity(limits.connections),
            handshakes: Handshakes::with_capacity(limits.half_open),
            recent: RecentDecisions::with_capacity(RECENT),
            scans: HashMap::new(),
            deadlines: BTreeSet::new(),
            waits: VecDeque::new(),
            undecoded_at: None,
            shared: Shared {
                budget: Budget::of(limits.total_held_packets, limits.total_held_bytes),
                ids: Ids::of_worker(worker),
                stats: Stats::default(),
                labels: Labels::default(),
                invitations,
                requested: Vec::new(),
                memory: 0,
                watch: Watch::default(),
                undecided: None,
                places: policy.places.clone().map(PlaceCache::new),
                policy,
            },
        }
    }

    /// A new policy for the connections that are decided from now on; the others keep their rules.
    /// Bounds of tables stay those of the beginning.
    pub fn set_policy(&mut self, policy: Arc<Policy>) {
        let shared = &mut self.shared;
        shared.labels.keep_own(&shared.policy);
        shared.budget.max_packets = policy.limits.total_held_packets;
        shared.budget.max_bytes = policy.limits.total_held_bytes;
        shared.places = policy.places.clone().map(PlaceCache::new);
        shared.policy = policy;
        for connection in self.connections.values_mut() {
            if matches!(connection.phase, Phase::Opening(_)) {
                // It is decided by the new policy, and so by its database and quotas.
                connection.ends.used_up = 0;
                shared.locate(&mut connection.ends, connection.last);
            }
            // Places of own signatures mean something else now.
            if matches!(connection.label, Label::Own(_)) {
                connection.label = Label::Unknown;
            }
        }
    }

    /// When [`GatewayStage::on_tick`] is wanted at the latest; nothing where no time is awaited.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let scan = self.deadlines.first().map(|(until, _)| *until);
        let waits = self.waits.front();
        let lag = waits.map(|(since, _, _)| later(*since, ticks::HOLD_LAST_NS));
        match (scan, lag) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes a packet of the queue at time `now`. Its answer comes with this call or a later one.
    pub fn on_packet(
        &mut self,
        packet: &QueuedPacket<'_>,
        now: Timestamp,
        effects: &mut Effects<GatewayKind>,
    ) {
        self.shared.stats.packets += 1;
        self.shared.stats.bytes += u64::from(packet.wire_len);
        match decode_outermost(LinkType::RAW, packet.bytes, packet.wire_len) {
            Ok(decoded) => match decoded.transport {
                Transport::Tcp(tcp) => self.on_tcp(packet, &decoded, &tcp, now, effects),
                Transport::Udp(udp) => {
                    let src = (decoded.network.src(), udp.src_port());
                    let dst = (decoded.network.dst(), udp.dst_port());
                    self.on_udp(packet, src, dst, udp.payload, now, effects);
                }
                Transport::Icmp6(_) | Transport::Other(_) => {
                    self.shared.stats.strangers += 1;
                    let mark = Mark {
                        decision: Decision::Pass,
                        rule: self.shared.policy.default.number,
                    };
                    self.shared
                        .context(now, effects)
                        .accept(packet.id, packet.mark, Some(mark));
                }
                Transport::Fragment | Transport::NotIp(_) => {
                    self.on_undecoded(packet, now, effects);
                }
            },
            Err(_) => self.on_undecoded(packet, now, effects),
        }
    }

    /// A packet that may be TCP or UDP, with headers that are not followed to their end: whoever gets it may
    /// read it. It never gets a mark, which the kernel would keep with its connection.
    fn on_undecoded(
        &mut self,
        packet: &QueuedPacket<'_>,
        now: Timestamp,
        effects: &mut Effects<GatewayKind>,
    ) {
        /// Whoever sends many gets one event of them all.
        const PAUSE_NS: u64 = 1_000_000_000;
        self.shared.stats.undecoded += 1;
        let is_closed = self.shared.policy.may_fail_closed();
        let last = self.undecoded_at;
        let is_due = last.is_none_or(|last| now.nanos_since(last) >= PAUSE_NS);
        if is_due {
            self.undecoded_at = Some(now);
        }
        let mut ctx = self.shared.context(now, effects);
        if is_due {
            let network = network_of(packet.bytes);
            let ends = Ends::opened_by((network.src(), 0), (network.dst(), 0), Side::Client);
            ctx.record_undecided(
                ends,
                is_closed,
                "headers that are not followed to their end",
            );
        }
        if is_closed {
            ctx.drop(packet.id);
        } else {
            ctx.accept(packet.id, packet.mark, None);
        }
    }

    /// As [`GatewayStage::on_packet`], and says what it took. `stamp` is the time in nanoseconds, by a clock that
    /// does not go back.
    pub fn on_packet_timed(
        &mut self,
        packet: &QueuedPacket<'_>,
        now: Timestamp,
        effects: &mut Effects<GatewayKind>,
        stamp: fn() -> u64,
    ) -> Took {
        self.shared.watch.start(stamp);
        self.on_packet(packet, now, effects);
        self.shared.watch.stop()
    }

    /// Whether a scan is awaited.
    #[must_use]
    pub fn awaits_scan(&self) -> bool {
        !self.scans.is_empty()
    }

    fn on_tcp(
        &mut self,
        packet: &QueuedPacket<'_>,
        decoded: &Packet<'_>,
        tcp: &Tcp<'_>,
        now: Timestamp,
        effects: &mut Effects<GatewayKind>,
    ) {
        let src = (decoded.network.src(), tcp.src_port());
        let dst = (decoded.network.dst(), tcp.dst_port());
        let arrived = Arrived::new(packet, src, dst, true, now);
        let Arrived { key, hash, .. } = arrived;
        if packet.is_checksum_open && checksum::verify_tcp(&decoded.network, tcp) == Some(false) {
            // Its receiver will not have it either (paper sec. 3.4).
            self.shared.stats.bad_checksums += 1;
            return self
                .shared
                .context(now, effects)
                .accept(packet.id, packet.mark, None);
        }
        let flags = tcp.flags();
        let is_syn = flags.contains(TcpFlags::SYN);
        let is_opening = is_syn && !flags.contains(TcpFlags::ACK);
        let was = self.shared.policy.marks.read(packet.mark);
        let mut found = self.connections.find(hash, |conn| conn.key == key);
        if let Some(id) = found
            && is_opening
            && was.decision == Decision::Undecided
            && self.begins_anew(id, tcp.seq())
        {
            self.forget(id, now, effects);
            found = None;
        }
        if let Some(id) = found {
            return self.on_known(id, &arrived, tcp, effects);
        }
        if is_opening {
            self.recent.forget(&key, hash);
        } else if let Some(mark) = self.recent.find(&key, hash, now) {
            return self
                .shared
                .context(now, effects)
                .answer_decided(packet, mark);
        }
        if is_syn {
            return self.on_handshake(&arrived, tcp, effects);
        }
        if let Some(half) = self.handshakes.find(&key, hash) {
            let side = half.ends.side(src);
            let has_payload = tcp.payload_len > 0;
            if side == Side::Server && half.is_disputed() && has_payload {
                // Its place is not known, and it comes again.
                return self.drop_implausible(packet, now, effects);
            }
            let is_reset = flags.contains(TcpFlags::RST);
            let from_client = side == Side::Client;
            if (from_client || !has_payload) && !is_reset && half.on_segment(side, tcp) {
                self.handshakes.complete(&key, hash);
            }
        }
        // The end of a connection that was inspected: what its sender thinks that the other end has, nobody brings.
        let is_end = flags.contains(TcpFlags::FIN) && was.decision == Decision::Inspect;
        if tcp.payload_len == 0 && !is_end {
            return self
                .shared
                .context(now, effects)
                .accept(packet.id, packet.mark, None);
        }
        let Some(id) = self.open(&arrived, effects) else {
            let decision = self.recent.find(&key, hash, now).map(|mark| mark.decision);
            if decision == Some(Decision::Reject) {
                effects.resets.push(cut_in_the_middle(src, dst, tcp));
            }
            return;
        };
        self.on_known(id, &arrived, tcp, effects);
    }

    /// A segment of a connection that is classified or inspected.
    fn on_known(
        &mut self,
        id: Id,
        arrived: &Arrived<'_>,
        tcp: &Tcp<'_>,
        effects: &mut Effects<GatewayKind>,
    ) {
        let (packet, src) = (arrived.packet, arrived.src);
        let flags = tcp.flags();
        let is_control = flags.intersects(TcpFlags::SYN | TcpFlags::RST);
        let segment = Segment {
            id: packet.id,
            mark: packet.mark,
            seq: tcp.seq(),
            payload: tcp.payload,
            is_fin: flags.contains(TcpFlags::FIN),
        };
        // Bytes that the kernel did not copy cannot be inspected.
        let is_whole = tcp.payload.len() == tcp.payload_len as usize;
        let is_reset = flags.contains(TcpFlags::RST);
        let bytes = u64::from(packet.wire_len);
        self.with(id, arrived.hash, arrived.now, effects, |work| {
            work.count(bytes);
            let side = work.conn.ends.side(src);
            if let Some(disposition) = work.on_answered(side, tcp, &segment) {
                return disposition;
            }
            if is_control || !is_whole {
                return work.on_control(side, &segment, is_reset, is_whole);
            }
            if flags.contains(TcpFlags::ACK) {
                let disposition = work.on_ack(side.other(), tcp.ack());
                if disposition != Disposition::Kept {
                    work.answer(&segment, disposition);
                    return disposition;
                }
            }
            let takes = work.takes(side, tcp);
            if takes
                && work.conn.stream(side.other()).is_relayed()
                && let Some(disposition) = work.on_receiver(side, tcp, &segment)
            {
                return disposition;
            }
            if segment.is_fin || !segment.payload.is_empty() {
                if !takes {
                    work.drop_implausible(&segment);
                    return Disposition::Kept;
                }
                if flags.contains(TcpFlags::URG) {
                    return work.give_up_with(&segment, "urgent data, which receivers leave out");
                }
            }
            let had_any = work.conn.stream(side).holds_any();
            let disposition = work.on_segment(side, &segment);
            if disposition == Disposition::Kept && !had_any && work.conn.stream(side).holds_any() {
                work.begins_to_wait = true;
            }
            disposition
        });
    }

    fn on_udp(
        &mut self,
        packet: &QueuedPacket<'_>,
        src: (IpAddr, u16),
        dst: (IpAddr, u16),
        payload: &[u8],
        now: Timestamp,
        effects: &mut Effects<GatewayKind>,
    ) {
        let arrived = Arrived::new(packet, src, dst, false, now);
        let Arrived { key, hash, .. } = arrived;
        let mut found = self.connections.find(hash, |conn| conn.key == key);
        if found.is_none() {
            if let Some(mark) = self.recent.find(&key, hash, now) {
                return self
                    .shared
                    .context(now, effects)
                    .answer_decided(packet, mark);
            }
            found = self.open(&arrived, effects);
        }
        let Some(id) = found else { return };
        let bytes = u64::from(packet.wire_len);
        self.with(id, hash, now, effects, |work| {
            work.count(bytes);
            let side = work.conn.ends.side(src);
            work.on_datagram(side, packet, payload)
        });
    }

    /// Works on one connection, and puts away what came of it.
    fn with(
        &mut self,
        id: Id,
        hash: u32,
        now: Timestamp,
        effects: &mut Effects<GatewayKind>,
        work: impl FnOnce(&mut Work<'_>) -> Disposition,
    ) {
        self.connections.refresh(id);
        let Some(conn) = self.connections.get_mut(id) else {
            return;
        };
        conn.last = now;
        let key = conn.key;
        let mut work_on = Work {
            conn,
            ctx: self.shared.context(now, effects),
            begins_to_wait: false,
        };
        let disposition = work(&mut work_on);
        if work_on.begins_to_wait {
            self.waits.push_back((now, key, hash));
        }
        let timeout = match &work_on.conn.phase {
            Phase::Inspected(exam) => exam.scan_timeout_ns(),
            Phase::Opening(_) | Phase::Allowed(_) | Phase::Answered(_) => 0,
        };
        let until = later(now, timeout);
        for ticket in self.shared.requested.drain(..) {
            let scan = Scan {
                key,
                hash,
                since: now,
                until,
            };
            self.scans.insert(ticket, scan);
            self.deadlines.insert((until, ticket));
        }
        for ticket in &effects.abandoned {
            if let Some(scan) = self.scans.remove(ticket) {
                self.deadlines.remove(&(scan.until, *ticket));
            }
        }
        if let Disposition::Over(mark) = disposition {
            let removed = self.connections.remove(id);
            for stream in removed.iter().flat_map(|conn| &conn.streams) {
                self.shared.budget.leave(stream.source());
            }
            if let Some(kept) = &mut self.shared.undecided
                && let Some(conn) = removed
                && (mark.decision == Decision::Undecided
                    || matches!(conn.phase, Phase::Inspected(_)))
            {
                kept.extend(conn.undecided(&self.shared.policy));
            }
            if mark.decision != Decision::Undecided {
                self.recent.remember(key, hash, mark, now);
            }
        }
    }

    /// Forgets a connection: what it holds is answered.
    fn forget(&mut self, id: Id, now: Timestamp, effects: &mut Effects<GatewayKind>) {
        let Some(hash) = self.connections.get(id).map(|conn| conn.key.hash()) else {
            return;
        };
        self.with(id, hash, now, effects, |work| match work.forget() {
            // What comes later is taken up again, by its mark.
            Mark {
                decision: Decision::Inspect,
                ..
            } => Disposition::Over(Mark {
                decision: Decision::Undecided,
                rule: 0,
            }),
            mark => Disposition::Over(mark),
        });
    }

    /// The run ends: everything that is held is answered as its rule's `fail` says.
    pub fn finish(&mut self, now: Timestamp, effects: &mut Effects<GatewayKind>) {
        while let Some(id) = self.connections.oldest().map(|(id, _)| id) {
            self.forget(id, now, effects);
        }
    }
}

/// The fixed header of an IP packet.
fn network_of(packet: &[u8]) -> Network<'_> {
    let network = match packet.first().map(|first| first >> 4) {
        Some(4) => packet.first_chunk().map(Network::V4),
        Some(6) => packet.first_chunk().map(Network::V6),
        _ => None,
    };
    network.unwrap_or(Network::None)
}

/// `nanos` after `time`.
fn later(time: Timestamp, nanos: u64) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_add(nanos))
}
