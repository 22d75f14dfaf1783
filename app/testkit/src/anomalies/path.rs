//! Two hosts and a capture point in the middle of the path between them.
//!
//! The sender is scripted: which bytes pass the capture point when, and what happens to them
//! behind it. The receiver is a model: it keeps what arrived and answers with the acknowledgments
//! that RFC 9293, 2018, 2883 and 7323 ask for, so that what the capture shows is consistent.
//! Times are microseconds; a packet takes [`HALF`] from a host to the capture point.

use super::options::{IpId, Options};
use crate::conversation::Side;
use linkweir_wire::TcpFlags;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// From a host to the capture point, microseconds.
pub(super) const HALF: u64 = 5_000;
/// Every time gets this much, so that no host begins before zero.
const LEAD: u64 = 2_000_000;
const WINDOW: u16 = 60_000;

/// What the script says of one packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    /// When it passes the capture point, since the start of the case.
    pub(super) at: u64,
    pub(super) from: Side,
    pub(super) flags: TcpFlags,
    /// First byte, counted from the one behind the SYN; a SYN stands at -1.
    pub(super) offset: i64,
    pub(super) len: u32,
    /// Lost behind the capture point.
    pub(super) lost: bool,
    /// So much longer on the way to the capture point: sent earlier.
    pub(super) late: u64,
    /// So much longer on the way behind it.
    pub(super) held: u64,
    /// The network made it of an earlier packet, by its place in the script.
    pub(super) copy_of: Option<usize>,
}

/// A packet on its way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Packet {
    pub(super) from_client: bool,
    pub(super) flags: u8,
    pub(super) offset: i64,
    pub(super) len: u32,
    /// Bytes of the other side that it acknowledges, its SYN not counted; none before there was one.
    pub(super) ack: Option<i64>,
    pub(super) window: u16,
    pub(super) identification: u16,
    /// Value and echo of the timestamps.
    pub(super) timestamps: (u32, u32),
    /// Selective acknowledgments, offsets of the other side.
    pub(super) blocks: Vec<(i64, i64)>,
    pub(super) lost: bool,
    pub(super) held: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive(Packet),
    Pass(Option<usize>, Packet),
    Send(usize),
    AckTimer(bool, u64),
}

/// One of the two.
#[derive(Debug, Clone)]
struct Host {
    from_client: bool,
    /// Next byte expected, from -1, the other's SYN; none before anything arrived.
    expected: Option<i64>,
    /// What came too early, and when it came last: a running number.
    early: Vec<(i64, i64, u64)>,
    arrivals: u64,
    /// A duplicate to be told with the next acknowledgment.
    duplicate: Option<(i64, i64)>,
    recent: u32,
    identification: u16,
    random: u64,
    /// Next byte of its own.
    next: i64,
    /// In-order segments that wait for an acknowledgment, and the number of the timer.
    pending: u32,
    timer: u64,
}

impl Host {
    const fn new(from_client: bool) -> Self {
        Self {
            from_client,
            expected: None,
            early: Vec::new(),
            arrivals: 0,
            duplicate: None,
            recent: 0,
            identification: if from_client { 100 } else { 10_000 },
            random: if from_client { 0x9e37 } else { 0x79b9 },
            next: -1,
            pending: 0,
            timer: 0,
        }
    }

    fn identification(&mut self, ip_id: IpId) -> u16 {
        match ip_id {
            IpId::Zero => 0,
            IpId::Increasing => {
                self.identification = self.identification.wrapping_add(1);
                self.identification
            }
            IpId::Random => {
                // Multiplicative congruence (Knuth); the upper bits are good enough.
                self.random = self
                    .random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                u16::try_from(self.random >> 48).unwrap_or(0)
            }
        }
    }

    /// Takes what arrived; whether it is in order and fills no hole.
    fn take(&mut self, from: i64, to: i64) -> bool {
        let expected = self.expected.unwrap_or(-1);
        self.arrivals += 1;
        let early = self.early.iter().find(|e| e.0 <= from && to <= e.1);
        if to <= expected {
            self.duplicate = Some((from, to));
            return false;
        }
        if early.is_some() {
            self.duplicate = Some((from, to));
        }
        if from > expected {
            let mut merged = (from, to, self.arrivals);
            self.early.retain(|e| {
                let touches = e.0 <= merged.1 && merged.0 <= e.1;
                if touches {
                    merged = (merged.0.min(e.0), merged.1.max(e.1), merged.2);
                }
                !touches
            });
            self.early.push(merged);
            return false;
        }
        let mut end = to;
        let had_hole = !self.early.is_empty();
        self.early.sort_unstable();
        self.early.retain(|e| {
            let joins = e.0 <= end;
            if joins {
                end = end.max(e.1);
            }
            !joins
        });
        self.expected = Some(end);
        !had_hole
    }

    fn blocks(&mut self) -> Vec<(i64, i64)> {
        let mut early = self.early.clone();
        // The latest first (RFC 2018 sec. 4), a duplicate before all (RFC 2883 sec. 4).
        early.sort_unstable_by_key(|e| Reverse(e.2));
        let duplicate = self.duplicate.take();
        let blocks = duplicate
            .into_iter()
            .chain(early.iter().map(|e| (e.0, e.1)));
        blocks.take(3).collect()
    }
}

/// The script and its parameters.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) options: Options,
    pub(super) orders: Vec<Order>,
    /// The receiver waits this long for a second segment (RFC 1122 sec. 4.2.3.2).
    pub(super) ack_delay: u64,
    /// From when on, host time, the receiver announces which window.
    pub(super) windows: Vec<(u64, u16)>,
}

impl Path {
    /// What passes the capture point: time, place in the script, packet.
    pub(super) fn run(&self) -> Vec<(u64, Option<usize>, Packet)> {
        // At one time, what arrives comes before what is sent.
        let mut queue: BinaryHeap<Reverse<(u64, bool, u64, Event)>> = BinaryHeap::new();
        let mut number = 0;
        let mut put = |queue: &mut BinaryHeap<_>, at: u64, event: Event| {
            number += 1;
            let is_arrival = matches!(event, Event::Arrive(_));
            queue.push(Reverse((at, !is_arrival, number, event)));
        };
        for (index, order) in self.orders.iter().enumerate() {
            if order.copy_of.is_none() {
                let at = LEAD + order.at - HALF - order.late;
                put(&mut queue, at, Event::Send(index));
            }
        }
        let mut hosts = (Host::new(true), Host::new(false));
        let mut passed = Vec::new();
        while let Some(Reverse((now, _, _, event))) = queue.pop() {
            match event {
                Event::Send(index) => {
                    let Some(order) = self.orders.get(index) else {
                        continue;
                    };
                    let host = host(&mut hosts, order.from == Side::Client);
                    host.pending = 0;
                    let packet = self.packet(host, order, now);
                    for (copy, other) in self.orders.iter().enumerate() {
                        if other.copy_of == Some(index) {
                            let copied = Packet {
                                lost: other.lost,
                                held: other.held,
                                ..packet.clone()
                            };
                            let at = LEAD + other.at;
                            put(&mut queue, at, Event::Pass(Some(copy), copied));
                        }
                    }
                    put(
                        &mut queue,
                        LEAD + order.at,
                        Event::Pass(Some(index), packet),
                    );
                }
                Event::Pass(index, packet) => {
                    if !packet.lost {
                        let at = now + HALF + packet.held;
                        put(&mut queue, at, Event::Arrive(packet.clone()));
                    }
                    passed.push((now - LEAD, index, packet));
                }
                Event::Arrive(packet) => {
                    let receiver = host(&mut hosts, !packet.from_client);
                    match self.arrive(receiver, &packet, now) {
                        Answer::None => {}
                        Answer::Now => {
                            let ack = self.ack(receiver, now);
                            put(&mut queue, now + HALF, Event::Pass(None, ack));
                        }
                        Answer::Later => {
                            receiver.timer += 1;
                            let timer = Event::AckTimer(receiver.from_client, receiver.timer);
                            put(&mut queue, now + self.ack_delay, timer);
                        }
                    }
                }
                Event::AckTimer(from_client, timer) => {
                    let receiver = host(&mut hosts, from_client);
                    if receiver.pending > 0 && receiver.timer == timer {
                        let ack = self.ack(receiver, now);
                        put(&mut queue, now + HALF, Event::Pass(None, ack));
                    }
                }
            }
        }
        passed
    }

    fn arrive(&self, receiver: &mut Host, packet: &Packet, now: u64) -> Answer {
        let flags = TcpFlags(packet.flags);
        let from = packet.offset;
        let length = i64::from(packet.len)
            + i64::from(flags.contains(TcpFlags::SYN))
            + i64::from(flags.contains(TcpFlags::FIN));
        // RFC 7323 sec. 4.3: only of what begins at or before the last acknowledgment sent.
        if receiver.expected.is_none_or(|expected| from <= expected) {
            receiver.recent = packet.timestamps.0;
        }
        if length == 0 {
            // Old empty segments are keep-alives and probes (RFC 9293 sec. 3.8.4).
            let is_old = receiver.expected.is_some_and(|expected| from < expected);
            return if is_old { Answer::Now } else { Answer::None };
        }
        let is_new = receiver.expected.is_some_and(|expected| from >= expected);
        if is_new && self.window(receiver, now) == 0 && packet.len > 0 {
            return Answer::Now;
        }
        let in_order = receiver.take(from, from + length);
        if flags.contains(TcpFlags::SYN) {
            // The script answers a SYN; one with ACK is answered by it too.
            return Answer::None;
        }
        receiver.pending += 1;
        if self.ack_delay == 0 || !in_order || receiver.pending > 1 {
            Answer::Now
        } else {
            Answer::Later
        }
    }

    fn window(&self, host: &Host, now: u64) -> u16 {
        if host.from_client == (self.options.sender == Side::Client) {
            return WINDOW;
        }
        let changed = self.windows.iter().rev().find(|w| w.0 + LEAD <= now);
        changed.map_or(WINDOW, |w| w.1)
    }

    fn packet(&self, host: &mut Host, order: &Order, now: u64) -> Packet {
        let is_first_syn = order.flags == TcpFlags::SYN;
        let length = i64::from(order.len) + i64::from(order.flags.contains(TcpFlags::FIN));
        host.next = host.next.max(order.offset.max(0) + length);
        Packet {
            offset: order.offset,
            len: order.len,
            flags: order.flags.0,
            lost: order.lost,
            held: order.held,
            ack: if is_first_syn { None } else { host.expected },
            ..self.ack(host, now)
        }
    }

    fn ack(&self, host: &mut Host, now: u64) -> Packet {
        host.pending = 0;
        // Two clocks that have nothing in common.
        let base = if host.from_client {
            7_000_000
        } else {
            91_000_000
        };
        Packet {
            from_client: host.from_client,
            flags: TcpFlags::ACK.0,
            offset: host.next,
            len: 0,
            ack: host.expected,
            window: self.window(host, now),
            identification: host.identification(self.options.ip_id),
            timestamps: (base + u32::try_from(now / 1000).unwrap_or(0), host.recent),
            blocks: if self.options.sack {
                host.blocks()
            } else {
                Vec::new()
            },
            lost: false,
            held: 0,
        }
    }
}

enum Answer {
    None,
    Now,
    Later,
}

const fn host(hosts: &mut (Host, Host), client: bool) -> &mut Host {
    if client { &mut hosts.0 } else { &mut hosts.1 }
}
