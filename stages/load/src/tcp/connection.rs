//! What is known of a connection, and the slab of all of them.
//!
//! Endpoints of servers, by small numbers: connections hold the number.

use super::rto::RoundTrip;
use crate::seam::{Client, ConnId};
use linkweir_table::{NONE, Timer, Timers};
use linkweir_wire::SeqNumber;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// States of RFC 9293 sec. 3.3.2 that a client passes. TIME-WAIT has its own table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nobody: the slot is free.
    Closed,
    /// SYN-SENT.
    SynSent,
    /// ESTABLISHED.
    Established,
    /// FIN-WAIT-1.
    FinWait1,
    /// FIN-WAIT-2.
    FinWait2,
    /// CLOSE-WAIT.
    CloseWait,
    /// CLOSING.
    Closing,
    /// LAST-ACK.
    LastAck,
}

/// What was agreed upon, and what is to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks(u8);

impl Marks {
    /// Timestamps are on every segment.
    pub(super) const TIMESTAMPS: u8 = 1;
    /// The server takes and sends selective acknowledgments.
    pub(super) const SACK: u8 = 2;
    /// Our window is scaled.
    pub(super) const SCALED: u8 = 4;
    /// An acknowledgment is owed by `ack_due`.
    pub(super) const ACK_OWED: u8 = 8;
    /// An acknowledgment is owed at once.
    pub(super) const ACK_NOW: u8 = 16;
    /// The user has closed, and our FIN waits: for the handshake, or for the server's FIN.
    pub(super) const CLOSE_ASKED: u8 = 32;
    /// The SYN was lost: the first window is one segment (RFC 5681 sec. 3.1).
    pub(super) const SYN_LOST: u8 = 64;

    pub(super) const fn has(self, mark: u8) -> bool {
        self.0 & mark != 0
    }

    pub(super) const fn set(&mut self, mark: u8) {
        self.0 |= mark;
    }

    pub(super) const fn clear(&mut self, mark: u8) {
        self.0 &= !mark;
    }
}

/// A connection, with what it needs while nothing is under way. The names in capitals are those of
/// RFC 9293 sec. 3.3.1.
///
/// `SND.WL2` is missing: it is never after `SND.UNA`, and acknowledgments before that are not looked
/// at. `RCV.WND` is constant.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    /// The only timer: not after the first thing that is due.
    pub(super) timer: Timer,
    /// Local address, version 4 as mapped.
    local: [u8; 16],
    pub(super) client: Client,
    pub(super) user: u32,
    pub(super) generation: u32,
    pub(super) local_port: u16,
    /// Number of the server's endpoint.
    pub(super) remote: u16,
    /// `SND.UNA`.
    pub(super) snd_una: SeqNumber,
    /// `SND.NXT`; goes back to `SND.UNA` after a timeout.
    pub(super) snd_nxt: SeqNumber,
    /// `SND.WND`, scaled.
    pub(super) snd_wnd: u32,
    /// `SND.WL1`.
    pub(super) snd_wl1: SeqNumber,
    /// `RCV.NXT`.
    pub(super) rcv_nxt: SeqNumber,
    /// `Last.ACK.sent` (RFC 7323).
    pub(super) rcv_acked: SeqNumber,
    /// `TS.Recent` (RFC 7323).
    pub(super) ts_recent: u32,
    /// `ssthresh` (RFC 5681), bytes.
    pub(super) ssthresh: u32,
    pub(super) round_trip: RoundTrip,
    /// When the owed acknowledgment is due, ticks.
    pub(super) ack_due: u32,
    /// What is under way to the server: place in the pool.
    pub(super) flight: u32,
    /// First piece that arrived ahead of a gap: place in the pool.
    pub(super) held: u32,
    /// Most payload of a segment to the server; options are off already.
    pub(super) mss: u16,
    /// Most payload of a segment from the server.
    pub(super) rcv_mss: u16,
    /// `Snd.Wind.Shift` (RFC 7323).
    pub(super) snd_shift: u8,
    /// Doublings of the retransmission timeout.
    pub(super) backoff: u8,
    pub(super) state: State,
    pub(super) marks: Marks,
}

impl Connection {
    fn free() -> Self {
        let zero = SeqNumber(0);
        Self {
            timer: Timer::default(),
            local: [0; 16],
            client: 0,
            user: NONE,
            generation: 0,
            local_port: 0,
            remote: 0,
            snd_una: zero,
            snd_nxt: zero,
            snd_wnd: 0,
            snd_wl1: zero,
            rcv_nxt: zero,
            rcv_acked: zero,
            ts_recent: 0,
            ssthresh: u32::MAX,
            round_trip: RoundTrip::default(),
            ack_due: 0,
            flight: NONE,
            held: NONE,
            mss: 536,
            rcv_mss: 536,
            snd_shift: 0,
            backoff: 0,
            state: State::Closed,
            marks: Marks::default(),
        }
    }

    pub(super) const fn set_local(&mut self, address: IpAddr) {
        self.local = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
    }

    /// Our endpoint.
    pub(super) const fn local(&self) -> SocketAddr {
        let bits = u128::from_be_bytes(self.local);
        let address = Ipv6Addr::from_bits(bits).to_canonical();
        SocketAddr::new(address, self.local_port)
    }

    /// Whether our FIN stands behind the data.
    pub(super) const fn has_fin(&self) -> bool {
        matches!(
            self.state,
            State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck
        )
    }

    /// Whether our FIN waits for the server's.
    pub(super) fn awaits_fin(&self) -> bool {
        self.state == State::Established && self.marks.has(Marks::CLOSE_ASKED)
    }

    /// Whether the server may still send data.
    pub(super) const fn receives(&self) -> bool {
        matches!(
            self.state,
            State::Established | State::FinWait1 | State::FinWait2
        )
    }
}

/// All connections, by slot.
#[derive(Debug)]
pub(super) struct Connections {
    slots: Vec<Connection>,
    capacity: u32,
    /// First free slot; the next stands in its `user`.
    free: u32,
    len: u32,
}

impl Timers for Connections {
    #[inline]
    fn timer(&mut self, id: u32) -> Option<&mut Timer> {
        self.slots.get_mut(id as usize).map(|conn| &mut conn.timer)
    }
}

impl Connections {
    pub(super) fn with_capacity(capacity: u32) -> Self {
        // The numbers of timers are below 2^31.
        let capacity = capacity.clamp(1, (1 << 31) - 1);
        Self {
            slots: Vec::with_capacity(capacity as usize),
            capacity,
            free: NONE,
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    pub(super) const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Bytes of memory that were touched so far.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<Connection>()
    }

    /// A fresh connection in SYN-SENT; `None` where there is no room.
    pub(super) fn take(&mut self) -> Option<(u32, &mut Connection)> {
        let slot = if (self.free as usize) < self.slots.len() {
            self.free
        } else {
            let slot = u32::try_from(self.slots.len()).ok()?;
            if slot >= self.capacity {
                return None;
            }
            self.slots.push(Connection::free());
            slot
        };
        let conn = self.slots.get_mut(slot as usize)?;
        let next = std::mem::replace(&mut conn.user, NONE);
        if self.free == slot {
            self.free = next;
        }
        let generation = conn.generation;
        *conn = Connection::free();
        conn.generation = generation;
        conn.state = State::SynSent;
        self.len += 1;
        Some((slot, conn))
    }

    /// Frees a slot whose timer is not set; its id is valid no more.
    pub(super) fn release(&mut self, slot: u32) {
        if let Some(conn) = self.slots.get_mut(slot as usize)
            && conn.state != State::Closed
        {
            conn.state = State::Closed;
            conn.generation = conn.generation.wrapping_add(1);
            conn.user = std::mem::replace(&mut self.free, slot);
            self.len -= 1;
        }
    }

    /// The connection in a slot, where there is one.
    #[inline]
    pub(super) fn at(&self, slot: u32) -> Option<&Connection> {
        let conn = self.slots.get(slot as usize)?;
        (conn.state != State::Closed).then_some(conn)
    }

    /// The connection in a slot, where there is one.
    #[inline]
    pub(super) fn at_mut(&mut self, slot: u32) -> Option<&mut Connection> {
        let conn = self.slots.get_mut(slot as usize)?;
        (conn.state != State::Closed).then_some(conn)
    }

    /// The connection of an id, where it is still there.
    #[inline]
    pub(super) fn get(&self, id: ConnId) -> Option<&Connection> {
        self.at(id.slot)
            .filter(|conn| conn.generation == id.generation)
    }

    /// The connection of an id, where it is still there.
    #[inline]
    pub(super) fn get_mut(&mut self, id: ConnId) -> Option<&mut Connection> {
        self.at_mut(id.slot)
            .filter(|conn| conn.generation == id.generation)
    }
}

/// The endpoints that were connected to; at most 65,536, and none is forgotten.
#[derive(Debug, Default)]
pub(super) struct Remotes {
    endpoints: Vec<SocketAddr>,
    numbers: HashMap<SocketAddr, u16>,
    last: u16,
}

impl Remotes {
    /// The number of an endpoint; `None` where there are too many.
    pub(super) fn number(&mut self, endpoint: SocketAddr) -> Option<u16> {
        // Without flow label and scope, as packets are compared.
        let endpoint = SocketAddr::new(endpoint.ip(), endpoint.port());
        if self.is(self.last, endpoint) {
            return Some(self.last);
        }
        if let Some(number) = self.numbers.get(&endpoint) {
            self.last = *number;
            return Some(*number);
        }
        let number = u16::try_from(self.endpoints.len()).ok()?;
        self.endpoints.push(endpoint);
        self.numbers.insert(endpoint, number);
        self.last = number;
        Some(number)
    }

    /// The endpoint of a number.
    #[inline]
    pub(super) fn get(&self, number: u16) -> Option<SocketAddr> {
        self.endpoints.get(usize::from(number)).copied()
    }

    /// Whether a number is that of an endpoint.
    #[inline]
    pub(super) fn is(&self, number: u16, endpoint: SocketAddr) -> bool {
        self.endpoints
            .get(usize::from(number))
            .is_some_and(|known| *known == endpoint)
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        // The map: endpoint, number and a control byte.
        (self.endpoints.capacity() + self.numbers.capacity()) * size_of::<SocketAddr>()
            + self.numbers.capacity() * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_and_its_places_in_the_index_are_at_most_128_bytes() {
        // 4/3 places of 8 bytes.
        assert!(size_of::<Connection>() + 11 <= 128);
    }

    #[test]
    fn a_slot_that_is_used_again_has_another_generation() {
        let mut slab = Connections::with_capacity(2);
        let (slot, conn) = slab.take().unwrap();
        let old = ConnId {
            slot,
            generation: conn.generation,
        };
        slab.take().unwrap();
        assert!(slab.take().is_none());
        slab.release(slot);
        slab.release(slot);
        assert_eq!(slab.len(), 1);
        assert_eq!(slab.take().map(|(slot, _)| slot), Some(slot));
        assert!(slab.get(old).is_none());
        assert!(slab.at(slot).is_some());
        slab.release(0);
        slab.release(1);
        assert!(slab.take().is_some() && slab.take().is_some() && slab.take().is_none());
    }

    #[test]
    fn addresses_of_both_versions_come_back() {
        let mut conn = Connection::free();
        for address in ["192.0.2.1", "2001:db8::1"] {
            let address: IpAddr = address.parse().unwrap();
            conn.set_local(address);
            assert_eq!(conn.local(), SocketAddr::new(address, 0));
        }
    }

    #[test]
    fn endpoints_have_one_number_each() {
        let mut remotes = Remotes::default();
        let a: SocketAddr = "192.0.2.1:80".parse().unwrap();
        let b: SocketAddr = "[2001:db8::1]:80".parse().unwrap();
        assert_eq!((remotes.number(a), remotes.number(b)), (Some(0), Some(1)));
        assert_eq!((remotes.number(a), remotes.number(a)), (Some(0), Some(0)));
        assert_eq!((remotes.get(1), remotes.get(2)), (Some(b), None));
        for n in 2..=u16::MAX {
            let endpoint = SocketAddr::new("192.0.2.3".parse().unwrap(), n);
            assert_eq!(remotes.number(endpoint), Some(n));
        }
        let more = SocketAddr::new("192.0.2.4".parse().unwrap(), 1);
        assert_eq!(remotes.number(more), None);
    }
}
