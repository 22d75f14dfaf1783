//! The door: packets, reports and time in, effects out.

mod ticks;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use linkweir_engine::Effects;
use linkweir_engine::effect::{Answer, Decision, Mark, QueuedPacket, Reset, Ticket, Verdict};
use linkweir_record::GatewayKind;
use linkweir_table::{Id, Table};
use linkweir_wire::{
    LinkType, Packet, SeqNumber, Tcp, TcpFlags, Timestamp, Transport, checksum, decode,
};

use crate::connection::{
    Connection, Ends, HalfOpen, Key, Opening, Phase, RecentDecisions, decision_of, side_of_sender,
};
use crate::examine::{Examination, Ids};
use crate::hold::{Budget, Segment};
use crate::inspect::{Inspector, Side};
use crate::invitations::Invitations;
use crate::policy::{Fail, Label, Policy};
use crate::room::Room;
use crate::stats::{Labels, Stats};
use crate::work::{Fate, Work};

/// A scan that packets of a connection wait for.
#[derive(Debug, Clone, Copy)]
struct Asked {
    key: Key,
    hash: u32,
    since: Timestamp,
    until: Timestamp,
}

/// The gateway of one kernel queue. Both directions of a connection must come to the same one.
#[derive(Debug)]
pub struct GatewayStage {
    policy: Arc<Policy>,
    connections: Table<Connection>,
    half_open: Table<HalfOpen>,
    recent: RecentDecisions,
    budget: Budget,
    ids: Ids,
    asked: HashMap<Ticket, Asked>,
    /// When the scans' time is up.
    deadlines: BTreeSet<(Timestamp, Ticket)>,
    /// Connections in which a segment began to wait for another one, oldest first.
    gaps: VecDeque<(Timestamp, Key, u32)>,
    stats: Stats,
    labels: Labels,
    invitations: Arc<Invitations>,
    /// Empty but while a packet is handled.
    tickets: Vec<Ticket>,
    /// Bytes that files under inspection may take now.
    memory: usize,
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
            half_open: Table::with_capacity(limits.half_open),
            recent: RecentDecisions::with_capacity(RECENT),
            budget: Budget {
                most_packets: limits.total_held_packets,
                most_bytes: limits.total_held_bytes,
                ..Budget::default()
            },
            ids: Ids::of_worker(worker),
            asked: HashMap::new(),
            deadlines: BTreeSet::new(),
            gaps: VecDeque::new(),
            stats: Stats::default(),
            labels: Labels::default(),
            invitations,
            tickets: Vec::new(),
            memory: 0,
            policy,
        }
    }

    /// A new policy for the connections that are decided from now on; the others keep their rules.
    /// Bounds of tables stay those of the beginning.
    pub fn set_policy(&mut self, policy: Arc<Policy>) {
        self.labels.keep_own(&self.policy);
        self.budget.most_packets = policy.limits.total_held_packets;
        self.budget.most_bytes = policy.limits.total_held_bytes;
        self.policy = policy;
        // Places of own signatures mean something else now.
        for connection in self.connections_mut() {
            if matches!(connection.label, Label::Own(_)) {
                connection.label = Label::Unknown;
            }
        }
    }

    fn connections_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.connections.values_mut()
    }

    /// The counters so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            applications: self.labels.by_name(&self.policy),
            held_packets: self.budget.packets as u64,
            held_bytes: self.budget.bytes as u64,
            peak_held_packets: self.budget.peak_packets as u64,
            connections: self.connections.len() as u64,
            half_open: self.half_open.len() as u64,
            ..self.stats.clone()
        }
    }

    /// Bytes of memory that files under inspection were given now.
    #[must_use]
    pub const fn inspection_bytes(&self) -> usize {
        self.memory
    }

    /// When [`GatewayStage::on_tick`] is wanted at the latest; nothing where no time is awaited.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let scan = self.deadlines.first().map(|(until, _)| *until);
        let gap = self.gaps.front().map(|(since, _, _)| {
            later(
                *since,
                ticks::LAG_NS.min(self.policy.limits.hold_timeout_ns),
            )
        });
        match (scan, gap) {
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
        self.stats.packets += 1;
        self.stats.bytes += u64::from(packet.wire_len);
        let decoded = decode(LinkType::RAW, packet.bytes, packet.wire_len);
        match decoded {
            // What a tunnel carries is its ends' affair: conntrack sees the tunnel.
            Ok(decoded) if decoded.tunnels == 0 => match decoded.transport {
                Transport::Tcp(tcp) => return self.on_tcp(packet, &decoded, &tcp, now, effects),
                Transport::Udp(udp) => {
                    let src = (decoded.network.src(), udp.src_port());
                    let dst = (decoded.network.dst(), udp.dst_port());
                    return self.on_udp(packet, src, dst, udp.payload, now, effects);
                }
                _ => {}
            },
            _ => {}
        }
        self.stats.strangers += 1;
        let mark = Mark {
            decision: Decision::Pass,
            rule: self.policy.default.number,
        };
        self.room(now, effects)
            .accept(packet.id, packet.mark, Some(mark));
    }

    fn room<'a>(&'a mut self, now: Timestamp, effects: &'a mut Effects<GatewayKind>) -> Room<'a> {
        Room {
            now,
            policy: &self.policy,
            budget: &mut self.budget,
            effects,
            ids: &mut self.ids,
            stats: &mut self.stats,
            labels: &mut self.labels,
            invitations: &self.invitations,
            asked: &mut self.tickets,
            memory: &mut self.memory,
        }
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
        let key = Key::new(src, dst, true);
        let hash = key.hash();
        if packet.is_checksum_open && checksum::verify_tcp(&decoded.network, tcp) == Some(false) {
            // Its receiver will not have it either (paper sec. 3.4).
            self.stats.bad_checksums += 1;
            return self.room(now, effects).accept(packet.id, packet.mark, None);
        }
        let flags = tcp.flags();
        let is_syn = flags.contains(TcpFlags::SYN);
        let is_opening = is_syn && !flags.contains(TcpFlags::ACK);
        let was = self.policy.marks.read(packet.mark);
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
            return self.on_known(id, hash, src, packet, tcp, now, effects);
        }
        if is_opening {
            self.recent.forget(&key, hash);
        } else if let Some(mark) = self.recent.find(&key, hash, now) {
            return self.room(now, effects).answer_decided(packet, mark);
        }
        if is_syn {
            return self.on_handshake(key, hash, src, dst, packet, tcp, now, effects);
        }
        let half = self.half_open.find(hash, |half| half.key == key);
        if let Some(half) = half.and_then(|id| self.half_open.get_mut(id)) {
            let is_client = half.ends.side(src) == Side::Client;
            if is_client && flags.contains(TcpFlags::ACK) && !flags.contains(TcpFlags::RST) {
                half.on_client(tcp.ack());
            } else if !is_client && half.is_disputed() && tcp.payload_len > 0 {
                // Its place is not known, and it comes again.
                self.stats.implausible += 1;
                return self.room(now, effects).drop(packet.id);
            }
        }
        if tcp.payload_len == 0 {
            return self.room(now, effects).accept(packet.id, packet.mark, None);
        }
        let Some(id) = self.open(key, hash, src, dst, was, packet, now, effects) else {
            if was.decision == Decision::Inspect {
                effects.resets.push(cut_in_the_middle(src, dst, tcp));
            }
            return;
        };
        self.on_known(id, hash, src, packet, tcp, now, effects);
    }

    /// Whether a SYN of a connection that is known opens another one between the same ports: the
    /// kernel has no mark of it any more, or nothing was sent yet and the number is another.
    fn begins_anew(&self, id: Id, seq: SeqNumber) -> bool {
        self.connections.get(id).is_some_and(|conn| {
            let [client, _] = &conn.streams;
            let first = SeqNumber(seq.0.wrapping_add(1));
            match conn.phase {
                Phase::Inspected(_) => true,
                Phase::Opening(_) => client.is_known() && client.released() != first,
            }
        })
    }

    /// A SYN, or the answer to one.
    #[expect(clippy::too_many_arguments, reason = "what is known of one packet")]
    fn on_handshake(
        &mut self,
        key: Key,
        hash: u32,
        src: (IpAddr, u16),
        dst: (IpAddr, u16),
        packet: &QueuedPacket<'_>,
        tcp: &Tcp<'_>,
        now: Timestamp,
        effects: &mut Effects<GatewayKind>,
    ) {
        let first = SeqNumber(tcp.seq().0.wrapping_add(1));
        let known = self.half_open.find(hash, |half| half.key == key);
        if tcp.flags().contains(TcpFlags::ACK) {
            let half = known.and_then(|id| self.half_open.get_mut(id));
            let half = half.filter(|half| half.ends.side(src) == Side::Server);
            if half.is_some_and(|half| !half.on_answer(first, tcp.ack())) {
                self.stats.implausible += 1;
                return self.room(now, effects).drop(packet.id);
            }
            return self.room(now, effects).accept(packet.id, packet.mark, None);
        }
        let ends = Ends::opened_by(src, dst, Side::Client);
        let policy = Arc::clone(&self.policy);
        if let Some(rule) = policy.rule_of_any(src.0) {
            let mark = Mark {
                decision: decision_of(rule.action),
                rule: rule.number,
            };
            self.recent.remember(key, hash, mark, now);
            let mut room = self.room(now, effects);
            room.decided(ends, true, Label::Unknown, rule, b"");
            return room.answer_decided(packet, mark);
        }
        if tcp.payload_len > 0 {
            // TCP Fast Open (RFC 7413): without an answer the client goes on without data in its SYN.
            let answer = Answer {
                id: packet.id,
                verdict: Verdict::Drop,
                mark: None,
            };
            return effects.answers.push(answer);
        }
        if let Some(id) = known {
            let half = self.half_open.get(id);
            if half.is_some_and(|half| half.is_repeated_by(first)) {
                // What was answered is still so.
                return self.room(now, effects).accept(packet.id, packet.mark, None);
            }
            self.half_open.remove(id);
        } else if self.half_open.is_full()
            && let Some(oldest) = self.half_open.oldest().map(|(id, _)| id)
        {
            self.half_open.remove(oldest);
        }
        let half = HalfOpen::new(key, ends, first);
        if self.half_open.insert(hash, half).is_err() {
            // There is room: the oldest has left.
        }
        self.room(now, effects).accept(packet.id, packet.mark, None);
    }

    /// A connection from its first packet with payload on. `None` where the packet was answered.
    #[expect(clippy::too_many_arguments, reason = "what is known of one packet")]
    fn open(
        &mut self,
        key: Key,
        hash: u32,
        src: (IpAddr, u16),
        dst: (IpAddr, u16),
        was: Mark,
        packet: &QueuedPacket<'_>,
        now: Timestamp,
        effects: &mut Effects<GatewayKind>,
    ) -> Option<Id> {
        let half = self.half_open.find(hash, |half| half.key == key);
        let half = half.and_then(|id| self.half_open.remove(id));
        let (ends, streams) = half.map_or_else(
            || {
                let side = side_of_sender(src.1, dst.1);
                (Ends::opened_by(src, dst, side), Default::default())
            },
            |half| (half.ends, half.streams()),
        );
        let mut phase = Phase::Opening(Box::<Opening>::default());
        if was.decision == Decision::Inspect {
            // An inspected connection that is not known: this program was started again, or forgot it.
            self.stats.resumed += 1;
            let policy = Arc::clone(&self.policy);
            let rule = policy.numbered(was.rule).unwrap_or(&policy.default);
            if rule.fail == Fail::Closed {
                let mark = Mark {
                    decision: Decision::Reject,
                    rule: was.rule,
                };
                self.recent.remember(key, hash, mark, now);
                self.room(now, effects).answer_decided(packet, mark);
                return None;
            }
            let name = policy.name(Label::Unknown).into();
            let exam = Examination::new(Arc::clone(rule), name, Inspector::opaque(), b"");
            phase = Phase::Inspected(Box::new(exam));
        } else if half.is_none()
            && let Some(rule) = Arc::clone(&self.policy).rule_of_any(ends.client.0)
        {
            let mark = Mark {
                decision: decision_of(rule.action),
                rule: rule.number,
            };
            self.recent.remember(key, hash, mark, now);
            let mut room = self.room(now, effects);
            room.decided(ends, key.is_tcp, Label::Unknown, rule, b"");
            room.answer_decided(packet, mark);
            return None;
        }
        if self.connections.is_full()
            && let Some(oldest) = self.connections.oldest().map(|(id, _)| id)
        {
            self.stats.evicted += 1;
            self.forget(oldest, now, effects);
        }
        let connection = Connection {
            key,
            ends,
            phase,
            label: Label::Unknown,
            streams,
            has_handshake: half.is_some_and(|half| half.is_answered()),
            plausible: Default::default(),
            early_packets: 0,
            early_bytes: 0,
            last: now,
        };
        self.connections.insert(hash, connection).ok()
    }

    /// A segment of a connection that is classified or inspected.
    #[expect(clippy::too_many_arguments, reason = "what is known of one packet")]
    fn on_known(
        &mut self,
        id: Id,
        hash: u32,
        src: (IpAddr, u16),
        packet: &QueuedPacket<'_>,
        tcp: &Tcp<'_>,
        now: Timestamp,
        effects: &mut Effects<GatewayKind>,
    ) {
        let flags = tcp.flags();
        let is_control = flags.intersects(TcpFlags::SYN | TcpFlags::RST);
        let segment = Segment {
            id: packet.id,
            mark: packet.mark,
            seq: tcp.seq(),
            payload: tcp.payload,
            is_fin: flags.contains(TcpFlags::FIN),
        };
        // Bytes that the kernel did not copy cannot be looked at.
        let is_whole = tcp.payload.len() == tcp.payload_len as usize;
        let is_reset = flags.contains(TcpFlags::RST);
        let bytes = u64::from(packet.wire_len);
        self.with(id, hash, now, effects, |work| {
            work.count(bytes);
            let side = work.conn.ends.side(src);
            if is_control || !is_whole {
                return work.on_control(side, &segment, is_reset, is_whole);
            }
            if work.is_inspected() && (segment.is_fin || !segment.payload.is_empty()) {
                if flags.contains(TcpFlags::URG) {
                    return work.let_go_with(&segment, "urgent data, which receivers leave out");
                }
                if !work.takes(side, tcp, &segment) {
                    return Fate::Kept;
                }
            }
            let had_gap = work.conn.stream(side).is_waiting();
            let fate = work.on_segment(side, &segment);
            if fate == Fate::Kept && !had_gap && work.conn.stream(side).is_waiting() {
                work.begins_to_wait = true;
            }
            fate
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
        let key = Key::new(src, dst, false);
        let hash = key.hash();
        let mut found = self.connections.find(hash, |conn| conn.key == key);
        if found.is_none() {
            if let Some(mark) = self.recent.find(&key, hash, now) {
                return self.room(now, effects).answer_decided(packet, mark);
            }
            let was = self.policy.marks.read(packet.mark);
            found = self.open(key, hash, src, dst, was, packet, now, effects);
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
        work: impl FnOnce(&mut Work<'_, '_>) -> Fate,
    ) {
        self.connections.refresh(id);
        let Some(conn) = self.connections.get_mut(id) else {
            return;
        };
        conn.last = now;
        let key = conn.key;
        let mut room = Room {
            now,
            policy: &self.policy,
            budget: &mut self.budget,
            effects: &mut *effects,
            ids: &mut self.ids,
            stats: &mut self.stats,
            labels: &mut self.labels,
            invitations: &self.invitations,
            asked: &mut self.tickets,
            memory: &mut self.memory,
        };
        let mut work_on = Work {
            conn,
            room: &mut room,
            begins_to_wait: false,
        };
        let fate = work(&mut work_on);
        if work_on.begins_to_wait {
            self.gaps.push_back((now, key, hash));
        }
        let timeout = match &work_on.conn.phase {
            Phase::Inspected(exam) => exam.rule.inspect.scan.map_or(0, |scan| scan.timeout_ns),
            Phase::Opening(_) => 0,
        };
        let until = later(now, timeout);
        for ticket in self.tickets.drain(..) {
            let asked = Asked {
                key,
                hash,
                since: now,
                until,
            };
            self.asked.insert(ticket, asked);
            self.deadlines.insert((until, ticket));
        }
        for ticket in &effects.abandoned {
            if let Some(asked) = self.asked.remove(ticket) {
                self.deadlines.remove(&(asked.until, *ticket));
            }
        }
        if let Fate::Over(mark) = fate {
            self.connections.remove(id);
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
            } => Fate::Over(Mark {
                decision: Decision::Undecided,
                rule: 0,
            }),
            mark => Fate::Over(mark),
        });
    }

    /// The run ends: everything that is held is answered as its rule's `fail` says.
    pub fn finish(&mut self, now: Timestamp, effects: &mut Effects<GatewayKind>) {
        while let Some(id) = self.connections.oldest().map(|(id, _)| id) {
            self.forget(id, now, effects);
        }
    }
}

/// `nanos` after `time`.
fn later(time: Timestamp, nanos: u64) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_add(nanos))
}

/// Ends a connection that is met in its middle and may not go on. The kernel's answer to the segment
/// reaches its sender alone; the other end would wait for ever.
fn cut_in_the_middle(src: (IpAddr, u16), dst: (IpAddr, u16), tcp: &Tcp<'_>) -> Reset {
    let side = side_of_sender(src.1, dst.1);
    let ends = Ends::opened_by(src, dst, side);
    let (client_next, server_next) = match side {
        Side::Client => (tcp.seq(), tcp.ack()),
        Side::Server => (tcp.ack(), tcp.seq()),
    };
    Reset {
        client: ends.address(Side::Client),
        server: ends.address(Side::Server),
        client_next,
        server_next,
    }
}
