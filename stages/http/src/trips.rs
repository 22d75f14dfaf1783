//! How long a segment takes from here to a server and its acknowledgment back, by the handshake of each connection: from
//! the SYN to the SYN with ACK (RFC 9293 sec. 3.5), which the server's kernel answers at once.

use linkweir_wire::SeqNumber;

use crate::key::{Connection, ConnectionHash};

/// Connections of a set: with 16 bytes each, one cache line.
const WAYS: usize = 4;

/// What is kept of a connection: its hash, zero where there is none; the number of its SYN; the time of that in nanoseconds
/// modulo 2^32; the nanoseconds to the answer, zero before it. All of it is zero in the beginning, so that memory that is
/// not used is not touched.
type Trip = [u32; 4];

/// An answer that may be that of another copy of the SYN (Karn, Partridge 1987).
const AMBIGUOUS: u32 = u32::MAX;

/// The round trips of the connections that were opened last.
///
/// Shape: sets of four; the oldest of a set makes room. Cost: one cache miss at most.
#[derive(Debug)]
pub(crate) struct Trips {
    sets: Vec<[Trip; WAYS]>,
    is_empty: bool,
}

impl Trips {
    /// Room for about so many connections, or for none; memory is reserved, not touched.
    pub(crate) fn new(is_on: bool, connections: usize) -> Self {
        let sets = match is_on {
            true => connections.clamp(4096, 1 << 24).next_power_of_two() / WAYS,
            false => 0,
        };
        Self {
            sets: vec![[[0; 4]; WAYS]; sets],
            is_empty: true,
        }
    }

    fn place(&self, connection: &Connection) -> (usize, u32) {
        let home = ConnectionHash::new(0, connection).home();
        let set = (u64::from(home) * self.sets.len() as u64) >> 32;
        (usize::try_from(set).unwrap_or(0), home | 1)
    }

    /// A SYN of the client.
    pub(crate) fn on_syn(&mut self, connection: &Connection, seq: SeqNumber, ts_ns: u64) {
        let (set, tag) = self.place(connection);
        let Some(set) = self.sets.get_mut(set) else {
            return;
        };
        self.is_empty = false;
        let again = |[of, number, ..]: &&mut Trip| *of == tag && *number == seq.0;
        if let Some([.., took]) = set.iter_mut().find(again) {
            *took = AMBIGUOUS;
            return;
        }
        let own = set.iter().position(|[of, ..]| *of == tag);
        if let Some(older) = set.get_mut(..=own.unwrap_or(WAYS - 1)) {
            older.rotate_right(1);
        }
        let [first, ..] = set;
        *first = [tag, seq.0, low(ts_ns), 0];
    }

    /// The server's answer to the SYN, which acknowledges `ack`.
    pub(crate) fn on_accepted(&mut self, connection: &Connection, ack: SeqNumber, ts_ns: u64) {
        let (set, tag) = self.place(connection);
        let Some(set) = self.sets.get_mut(set) else {
            return;
        };
        let answered = |[of, number, _, took]: &&mut Trip| {
            *of == tag && number.wrapping_add(1) == ack.0 && *took == 0
        };
        if let Some([_, _, sent, took]) = set.iter_mut().find(answered) {
            *took = low(ts_ns).wrapping_sub(*sent).max(1);
        }
    }

    /// The round trip of a connection, nanoseconds, where it was seen.
    #[inline]
    pub(crate) fn of(&self, connection: &Connection) -> Option<u32> {
        if self.is_empty {
            return None;
        }
        let (set, tag) = self.place(connection);
        let trips = self.sets.get(set)?;
        let [.., took] = *trips.iter().find(|[of, ..]| *of == tag)?;
        (took != 0 && took != AMBIGUOUS).then_some(took)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "differences are less than 2^32: a client sends its SYN again after a second"
)]
const fn low(ts_ns: u64) -> u32 {
    ts_ns as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(port: u16) -> Connection {
        let end = |last: u8, port| (std::net::IpAddr::from([10, 0, 0, last]), port);
        Connection {
            client: end(1, port),
            server: end(2, 443),
        }
    }

    #[test]
    fn a_trip_is_from_the_first_and_only_syn() {
        let mut trips = Trips::new(true, 16);
        let (one, other) = (connection(1), connection(2));
        assert_eq!(trips.of(&one), None);
        // The low 32 bits wrap between the two.
        let sent = (7 << 32) - 1000;
        trips.on_syn(&one, SeqNumber(u32::MAX), sent);
        trips.on_syn(&other, SeqNumber(5), sent);
        assert_eq!(trips.of(&one), None);
        trips.on_accepted(&one, SeqNumber(7), sent + 100);
        assert_eq!(trips.of(&one), None, "of another connection");
        trips.on_accepted(&one, SeqNumber(0), sent + 30_000);
        trips.on_accepted(&one, SeqNumber(0), sent + 90_000);
        assert_eq!(trips.of(&one), Some(30_000));
        // Twice: which of them was answered is not known.
        trips.on_syn(&other, SeqNumber(5), sent + 1_000_000);
        trips.on_accepted(&other, SeqNumber(6), sent + 1_030_000);
        assert_eq!(trips.of(&other), None);
        // A new connection between the same ports.
        trips.on_syn(&other, SeqNumber(99), sent + 2_000_000);
        trips.on_accepted(&other, SeqNumber(100), sent + 2_000_010);
        assert_eq!(trips.of(&other), Some(10));
    }

    #[test]
    fn the_oldest_of_a_set_makes_room() {
        let mut trips = Trips::new(true, 0);
        for port in 0..20_000 {
            trips.on_syn(&connection(port), SeqNumber(1), 0);
            trips.on_accepted(&connection(port), SeqNumber(2), 5);
        }
        let known = (0..20_000).filter(|port| trips.of(&connection(*port)).is_some());
        assert!((3000..=4096).contains(&known.count()));
        assert_eq!(trips.of(&connection(19_999)), Some(5));
    }
}
