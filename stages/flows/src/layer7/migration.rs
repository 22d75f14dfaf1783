//! QUIC connections whose client has another address or port than before.
//!
//! The ids that servers chose are remembered. A flow whose first packet has a short header and begins with an id
//! that its server chose for another client address or port continues that connection: the address was rebound on
//! the path, without the client's knowledge. A client that migrates on purpose uses an id that was sent to it
//! encrypted (RFC 9000 sec. 9.5), so that this is not to be seen, nor are connections whose server has no id.
//!
//! Bounded: the oldest ids leave. Only the first packet of a UDP flow is looked at, and only once a server has
//! chosen an id.

use std::net::IpAddr;

use linkweir_engine::hash::mix;
use linkweir_table::Table;

/// Connections remembered at once, about 80 bytes each.
const CONNECTIONS: usize = 16_384;
/// Ids have at most so many bytes (RFC 9000 sec. 17.2).
const MAX_ID: usize = 20;
/// A shorter id may be met by chance.
const MIN_ID: usize = 4;

/// A server's address and port.
type Server = (IpAddr, u16);

/// Of each connection, what a packet of it begins with.
#[derive(Debug, Clone)]
struct Connection {
    server: Server,
    client: (IpAddr, u16),
    id: [u8; MAX_ID],
    len: u8,
    version: u32,
}

/// The ids that servers chose.
#[derive(Debug)]
pub(super) struct Connections {
    table: Table<Connection>,
    /// Of each length of ids, how many there are.
    lengths: [u32; MAX_ID + 1],
    seed: u64,
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "folding is what a hash does"
)]
fn hash(seed: u64, server: Server, id: &[u8]) -> u32 {
    let address = match server.0 {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    let mut hash = mix(seed ^ (address >> 64) as u64).wrapping_add(address as u64);
    hash = mix(hash).wrapping_add(u64::from(server.1) << 8 | id.len() as u64);
    for part in id.chunks(8) {
        let word = part
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = mix(hash ^ word);
    }
    (hash ^ hash >> 32) as u32
}

impl Connections {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            table: Table::with_capacity(CONNECTIONS),
            lengths: [0; MAX_ID + 1],
            seed,
        }
    }

    /// A server has chosen an id for its connection with a client.
    pub(super) fn add(&mut self, server: Server, client: (IpAddr, u16), id: &[u8], version: u32) {
        let mut own = [0; MAX_ID];
        let (Some(room), Some(_)) = (own.get_mut(..id.len()), id.get(MIN_ID - 1)) else {
            return;
        };
        room.copy_from_slice(id);
        let hash = hash(self.seed, server, id);
        let known = self
            .table
            .find(hash, |one| one.server == server && one.id() == id);
        if let Some(known) = known {
            // Of a copy of the packet, or of a connection that has moved.
            if let Some(one) = self.table.get_mut(known) {
                one.client = client;
            }
            self.table.refresh(known);
            return;
        }
        let len = u8::try_from(id.len()).unwrap_or_default();
        let mut connection = Connection {
            server,
            client,
            id: own,
            len,
            version,
        };
        while let Err(refused) = self.table.insert(hash, connection) {
            connection = refused;
            let oldest = self.table.oldest().map(|(oldest, _)| oldest);
            let Some(left) = oldest.and_then(|oldest| self.table.remove(oldest)) else {
                return;
            };
            self.count(left.len, |count| count.saturating_sub(1));
        }
        self.count(len, |count| count.saturating_add(1));
    }

    fn count(&mut self, len: u8, change: impl FnOnce(u32) -> u32) {
        if let Some(count) = self.lengths.get_mut(usize::from(len)) {
            *count = change(*count);
        }
    }

    /// The version of the connection that the first packet of a flow, with a short header, continues from another
    /// address or port of the client.
    pub(super) fn find(
        &self,
        server: Server,
        client: (IpAddr, u16),
        datagram: &[u8],
    ) -> Option<u32> {
        let (first, rest) = datagram.split_first()?;
        if first & 0xc0 != 0x40 {
            return None;
        }
        let lengths = self.lengths.iter().enumerate().rev();
        lengths
            .filter(|(_, count)| **count > 0)
            .find_map(|(len, _)| {
                let id = rest.get(..len)?;
                let hash = hash(self.seed, server, id);
                let found = self
                    .table
                    .find(hash, |one| one.server == server && one.id() == id)?;
                let found = self.table.get(found)?;
                (found.client != client).then_some(found.version)
            })
    }
}

impl Connection {
    fn id(&self) -> &[u8] {
        self.id.get(..usize::from(self.len)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const SERVER: Server = (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);

    fn client(port: u16) -> (IpAddr, u16) {
        (Ipv4Addr::new(10, 0, 0, 1).into(), port)
    }

    fn packet(first: u8, id: &[u8]) -> Vec<u8> {
        [&[first], id, &[0x55; 30]].concat()
    }

    #[test]
    fn an_id_is_met_again_from_another_port() {
        let mut known = Connections::new(7);
        assert_eq!(
            known.find(SERVER, client(2), &packet(0x40, b"abcdefgh")),
            None
        );
        known.add(SERVER, client(1), b"abcdefgh", 1);
        known.add(SERVER, client(1), b"wxyz", 0x6b33_43cf);
        let find = |first, id| known.find(SERVER, client(2), &packet(first, id));
        assert_eq!(find(0x40, b"abcdefgh"), Some(1));
        assert_eq!(find(0x7f, b"wxyz"), Some(0x6b33_43cf));
        assert_eq!(find(0x40, b"abcdefgx"), None);
        // Neither a long header nor anything without the fixed bit.
        assert_eq!(find(0xc0, b"abcdefgh"), None);
        assert_eq!(find(0x00, b"abcdefgh"), None);
        assert_eq!(known.find(SERVER, client(2), &[0x40, b'w', b'x']), None);
        // The same client, another server.
        let packet = packet(0x40, b"abcdefgh");
        assert_eq!(known.find(SERVER, client(1), &packet), None);
        assert_eq!(known.find((SERVER.0, 444), client(2), &packet), None);
    }

    #[test]
    fn short_and_long_ids_are_not_kept_and_the_oldest_leave() {
        let mut known = Connections::new(7);
        known.add(SERVER, client(1), b"", 1);
        known.add(SERVER, client(1), b"abc", 1);
        known.add(SERVER, client(1), &[7; 21], 1);
        assert_eq!(known.lengths, [0; MAX_ID + 1]);
        let number = u32::try_from(CONNECTIONS).unwrap();
        for id in 0..number + 2 {
            known.add(SERVER, client(1), &id.to_be_bytes(), 1);
            known.add(SERVER, client(1), &id.to_be_bytes(), 1);
        }
        assert_eq!(known.lengths[4], number);
        let find = |id: u32| known.find(SERVER, client(2), &packet(0x40, &id.to_be_bytes()));
        assert_eq!((find(0), find(1), find(2)), (None, None, Some(1)));
    }
}
