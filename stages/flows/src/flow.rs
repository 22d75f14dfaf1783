//! The state of one flow.

use linkweir_record::flow::{Event, FlowState, History, Protocol};
use linkweir_table::{NONE, Pieces, Slab};
use linkweir_wire::{Side, TcpFlags};

use crate::config::FlowsConfig;
use crate::key::FlowKey;
use crate::layer7::{Ends, Handle};
use crate::step::L7Class;
use crate::tcp::direction::{Direction, flag};
use crate::tcp::mark;

/// No VLAN tag: a value that is not an identifier (12 bits).
const NO_VLAN: u16 = u16::MAX;

/// However long the round trips: 10 s.
const MAX_LINGER: u64 = 10_000_000_000;

/// Bits of [`Flow::flags`].
mod bit {
    pub(super) const USED: u8 = 1;
    pub(super) const CLIENT_IS_LOW: u8 = 2;
    pub(super) const HAS_SYN: u8 = 4;
    pub(super) const CLOSED: u8 = 8;
    pub(super) const RESET: u8 = 16;
    pub(super) const CLIENT_IS_INTERNAL: u8 = 32;
    pub(super) const SERVER_IS_INTERNAL: u8 = 64;
}

/// One flow, TCP or UDP.
///
/// Shape: 512 bytes, eight cache lines in the order in which they stand here: the first finds and ages it,
/// and tells which of the others a packet needs; the client's direction, the server's; what changes
/// seldom. A UDP flow uses the counters of its directions and leaves the rest.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub(crate) key: FlowKey,
    /// Last packet, nanoseconds since the epoch.
    pub(crate) last_ns: u64,
    pub(crate) layer7: Handle,
    vlan: u16,
    flags: u8,
    /// Tstat's class of its application, for the bit rates of steps.
    pub(crate) class: L7Class,
    /// First packet, nanoseconds since the epoch.
    pub(crate) start_ns: u64,
    /// Client, server.
    pub(crate) directions: [Direction; 2],
    /// The first SYN-ACK, nanoseconds since the epoch; 0: none.
    pub(crate) syn_ack_at: u64,
    /// What happened, in Zeek's letters.
    pub(crate) history: History,
    /// Entry of the pool of partial records.
    pub(crate) partial: u32,
    /// Bits of what classified its segments.
    pub(crate) evidence: u8,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            key: FlowKey::default(),
            start_ns: 0,
            last_ns: 0,
            syn_ack_at: 0,
            layer7: Handle::default(),
            partial: NONE,
            history: History::default(),
            vlan: NO_VLAN,
            flags: 0,
            class: L7Class::UNKNOWN,
            evidence: 0,
            directions: [Direction::default(), Direction::default()],
        }
    }
}

impl Flow {
    pub(crate) fn new(key: FlowKey, now: u64, vlan: Option<u16>, client_is_low: bool) -> Self {
        Self {
            key,
            start_ns: now,
            last_ns: now,
            vlan: vlan.unwrap_or(NO_VLAN),
            flags: bit::USED | if client_is_low { bit::CLIENT_IS_LOW } else { 0 },
            ..Self::default()
        }
    }

    /// Marks the slot as free.
    pub(crate) const fn clear(&mut self) {
        self.flags = 0;
    }

    /// Whether there is a flow in this slot.
    pub(crate) const fn is_used(&self) -> bool {
        self.flags & bit::USED != 0
    }

    pub(crate) const fn protocol(&self) -> Protocol {
        self.key.protocol()
    }

    pub(crate) const fn vlan(&self) -> Option<u16> {
        if self.vlan == NO_VLAN {
            None
        } else {
            Some(self.vlan)
        }
    }

    pub(crate) const fn client_is_low(&self) -> bool {
        self.flags & bit::CLIENT_IS_LOW != 0
    }

    pub(crate) const fn has_syn(&self) -> bool {
        self.flags & bit::HAS_SYN != 0
    }

    pub(crate) const fn set_has_syn(&mut self) {
        self.flags |= bit::HAS_SYN;
    }

    /// Whether client and server are internal.
    #[inline]
    pub(crate) const fn internal(&self) -> (bool, bool) {
        (
            self.flags & bit::CLIENT_IS_INTERNAL != 0,
            self.flags & bit::SERVER_IS_INTERNAL != 0,
        )
    }

    pub(crate) const fn set_internal(&mut self, client: bool, server: bool) {
        if client {
            self.flags |= bit::CLIENT_IS_INTERNAL;
        }
        if server {
            self.flags |= bit::SERVER_IS_INTERNAL;
        }
    }

    /// Its ends, as layer 7 knows them.
    #[inline]
    pub(crate) fn ends(&self) -> Ends {
        Ends {
            client: self.key.end(self.client_is_low()),
            server: self.key.end(!self.client_is_low()),
            start_ns: self.start_ns,
        }
    }

    /// Reads a word of its first line, so that it is in the cache when it is needed.
    #[inline]
    pub(crate) const fn touch(&self) -> u64 {
        self.last_ns
    }

    /// Reads a word of each of the lines that a segment of `side` needs.
    #[inline]
    pub(crate) const fn touch_side(&self, side: Side, has_payload: bool) -> u64 {
        let [client, server] = &self.directions;
        let (me, peer) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        me.touch_sent(has_payload) ^ peer.touch_acked()
    }

    /// Reads a word of each of its lines.
    #[inline]
    pub(crate) fn touch_all(&self) -> u64 {
        let [client, server] = &self.directions;
        [client, server].into_iter().fold(self.touch(), |sum, one| {
            sum ^ one.touch_sent(true) ^ one.touch_acked()
        })
    }

    /// Keeps what a segment of `side` did for the first time.
    #[cold]
    pub(crate) fn note(&mut self, side: Side, flags: TcpFlags, marks: u8) {
        let is_client = side == Side::Client;
        let [client, server] = &self.directions;
        let me = if is_client { client } else { server };
        let history = &mut self.history;
        if flags.contains(TcpFlags::SYN) && me.syn == 1 {
            let event = if flags.contains(TcpFlags::ACK) {
                Event::SynAck
            } else {
                Event::Syn
            };
            history.push(event, is_client);
        }
        if flags.contains(TcpFlags::FIN) && me.fin == 1 {
            history.push(Event::Fin, is_client);
        }
        if flags.contains(TcpFlags::RST) {
            history.push_once(Event::Rst, is_client);
        }
        for (bit, event) in [(mark::ACK, Event::Ack), (mark::DATA, Event::Data)] {
            if marks & bit != 0 {
                history.push(event, is_client);
            }
        }
        for (bit, event, is_client) in [
            (mark::RETRANSMISSION, Event::Retransmission, is_client),
            (mark::ZERO_WINDOW, Event::ZeroWindow, is_client),
            (mark::GAP_OF_PEER, Event::Gap, !is_client),
        ] {
            if marks & bit != 0 {
                history.push_once(event, is_client);
            }
        }
    }

    /// The side that the lower or higher end of the key is.
    #[inline]
    pub(crate) fn side(&self, is_low: bool) -> Side {
        if is_low == self.client_is_low() {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// The direction that `side` sends, and the other.
    #[inline]
    pub(crate) const fn both(&mut self, side: Side) -> (&mut Direction, &mut Direction) {
        let [client, server] = &mut self.directions;
        match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        }
    }

    /// Both FINs were acknowledged.
    pub(crate) const fn set_closed(&mut self) {
        self.flags |= bit::CLOSED;
    }

    pub(crate) const fn set_reset(&mut self) {
        self.flags |= bit::RESET;
    }

    /// Whether it is over and only waits for what still comes of it.
    #[inline]
    pub(crate) const fn is_over(&self) -> bool {
        self.flags & (bit::CLOSED | bit::RESET) != 0
    }

    /// Whether it has ended by `now`, where nothing more came.
    #[inline]
    pub(crate) fn has_ended_by(&self, now: u64, timeouts: &Timeouts) -> bool {
        // Nearly always the shortest timeout has not passed, and nothing else needs to be looked at.
        now > self.last_ns.saturating_add(timeouts.least) && now > self.deadline(timeouts)
    }

    /// When it has ended if nothing more comes, nanoseconds since the epoch.
    #[inline]
    pub(crate) fn deadline(&self, timeouts: &Timeouts) -> u64 {
        let timeout = if self.is_over() {
            self.linger(timeouts)
        } else if matches!(self.protocol(), Protocol::Udp) {
            let [a, b] = &self.directions;
            if a.pkts_all + b.pkts_all > 1 {
                timeouts.udp
            } else {
                timeouts.single
            }
        } else if self.is_only_syns() {
            timeouts.single
        } else {
            timeouts.tcp
        };
        self.last_ns.saturating_add(timeout)
    }

    /// How long what still comes of a flow that is over may take: two round trips, after RST ten
    /// times as long as after FIN.
    #[inline]
    fn linger(&self, timeouts: &Timeouts) -> u64 {
        let [a, b] = &self.directions;
        let mean = |one: &Direction| one.rtt_sum.checked_div(u64::from(one.rtt_count));
        let trips = 2 * (mean(a).unwrap_or(0).saturating_add(mean(b).unwrap_or(0)));
        // A reset takes effect at the other end only later: what is under way still comes.
        let least = if self.flags & bit::RESET != 0 {
            timeouts.linger.saturating_mul(10)
        } else {
            timeouts.linger
        };
        least.max(trips.min(MAX_LINGER))
    }

    /// Whether one side sent SYNs and nothing else came.
    #[inline]
    pub(crate) fn is_only_syns(&self) -> bool {
        let [a, b] = &self.directions;
        let only = |one: &Direction, other: &Direction| {
            one.has(flag::SYN) && one.pkts_all == u64::from(one.syn) && other.pkts_all == 0
        };
        only(a, b) || only(b, a)
    }

    /// How it ended, as seen at `now`.
    pub(crate) fn state_at(&self, now: u64, timeouts: &Timeouts) -> FlowState {
        if self.flags & bit::RESET != 0 {
            FlowState::Reset
        } else if self.flags & bit::CLOSED != 0 {
            FlowState::Closed
        } else if now <= self.deadline(timeouts) {
            FlowState::Open
        } else if matches!(self.protocol(), Protocol::Tcp) && self.is_only_syns() {
            FlowState::Unanswered
        } else {
            FlowState::Idle
        }
    }
}

/// The flows, by slot.
pub(crate) type Flows = Slab<Flow, Pieces<Flow>>;

/// The timeouts in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    tcp: u64,
    udp: u64,
    single: u64,
    linger: u64,
    /// The shortest of them.
    least: u64,
}

impl Timeouts {
    pub(crate) fn new(config: &FlowsConfig) -> Self {
        let [tcp, udp, single, linger] = [
            config.tcp_idle,
            config.udp_idle,
            config.syn_timeout,
            config.linger,
        ]
        .map(linkweir_wire::nanos);
        Self {
            tcp,
            udp,
            single,
            linger,
            least: tcp.min(udp).min(single).min(linger),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_stays_small() {
        assert!(size_of::<Direction>() <= 208, "{}", size_of::<Direction>());
        assert!(size_of::<Flow>() <= 512, "{}", size_of::<Flow>());
    }
}
