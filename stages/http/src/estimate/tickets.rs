//! What servers send before their first response: the lengths of their session tickets (RFC 8446 sec. 4.6.1), learned from
//! their connections.

use linkweir_engine::hash::Endpoint;
use linkweir_table::Table;

use crate::key::{Connection, ConnectionHash, Meaning};

/// Servers that are remembered.
const MAX_SERVERS: usize = 4096;
/// Records of these lengths, header left out, may be tickets: with an id of 32 bytes or with a session in them.
pub(super) const LENGTHS: std::ops::RangeInclusive<u16> = 70..=1000;

/// What is known of a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Server {
    end: Endpoint,
    /// Lengths of its tickets; zero: none. The oldest is replaced.
    lengths: [u16; 4],
    at: u8,
    /// The most tickets that it sent in a connection before its first response: in new sessions, and in resumed ones.
    most: [u8; 2],
    /// New and resumed sessions in which its first response came without a ticket before it.
    without: [u8; 2],
}

impl Server {
    /// Whether its records of this length are tickets.
    pub(super) fn has(&self, len: u16) -> bool {
        len > 0 && self.lengths.contains(&len)
    }

    /// Whether so many tickets in a connection are all that it sends.
    pub(super) fn has_sent_all(&self, count: u8, is_resumed: bool) -> bool {
        let most = self.most.get(usize::from(is_resumed));
        most.is_some_and(|most| (1..=count).contains(most))
    }

    /// So many tickets came before its first response.
    pub(super) fn count(&mut self, count: u8, is_resumed: bool) {
        if let Some(most) = self.most.get_mut(usize::from(is_resumed)) {
            *most = count.max(*most);
        }
    }

    /// Its first response came without a ticket before it, and was none.
    pub(super) fn count_without(&mut self, is_resumed: bool) {
        if let Some(without) = self.without.get_mut(usize::from(is_resumed)) {
            *without = without.saturating_add(1);
        }
    }

    /// Whether it is known to send no tickets before its first response.
    pub(super) fn sends_none(&self, is_resumed: bool) -> bool {
        let without = self.without.get(usize::from(is_resumed));
        self.at == 0 && without.is_some_and(|without| *without > 1)
    }

    /// Its records of this length are tickets.
    pub(super) fn learn(&mut self, len: u16) {
        if self.has(len) {
            return;
        }
        if let Some(place) = self.lengths.get_mut(usize::from(self.at % 4)) {
            *place = len;
        }
        // Above zero for ever, and the next place.
        self.at = if self.at >= 8 { 5 } else { self.at + 1 };
    }
}

/// The servers that were heard last.
#[derive(Debug)]
pub(super) struct Servers {
    seed: u64,
    table: Table<Server>,
}

impl Servers {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            table: Table::with_capacity(MAX_SERVERS),
        }
    }

    /// What is known of a connection's server, to be read and written.
    pub(super) fn of(&mut self, connection: &Connection) -> Option<&mut Server> {
        let end = connection.server;
        let alone = Connection {
            client: end,
            server: end,
        };
        let hash = ConnectionHash::new(self.seed, &alone).with(Meaning::Direction, 0);
        let hash = u32::try_from(hash >> 32).unwrap_or_default();
        let id = match self.table.find(hash, |server| server.end == end) {
            Some(id) => id,
            None => {
                if self.table.is_full()
                    && let Some((oldest, _)) = self.table.oldest()
                {
                    self.table.remove(oldest);
                }
                let server = Server {
                    end,
                    lengths: [0; 4],
                    at: 0,
                    most: [0; 2],
                    without: [0; 2],
                };
                self.table.insert(hash, server).ok()?
            }
        };
        self.table.refresh(id);
        self.table.get_mut(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_remembered_and_the_oldest_leaves() {
        let mut servers = Servers::new(7);
        let of = |port: u16| {
            let end = (std::net::IpAddr::from([10, 0, 0, 1]), port);
            Connection {
                client: (std::net::IpAddr::from([10, 0, 0, 2]), 1),
                server: end,
            }
        };
        let first = servers.of(&of(443)).unwrap();
        assert!(!first.has(250) && !first.has(0) && !first.sends_none(false));
        first.learn(250);
        for len in [266, 282, 298, 314] {
            servers.of(&of(443)).unwrap().learn(len);
        }
        let first = servers.of(&of(443)).unwrap();
        assert!(first.has(314) && first.has(266) && !first.has(250));
        assert!(!first.has_sent_all(2, false));
        first.count(2, false);
        assert!(first.has_sent_all(2, false) && !first.has_sent_all(1, false));
        assert!(!first.has_sent_all(2, true));
        for port in 1000..1000 + 4096 {
            servers.of(&of(port)).unwrap().count_without(false);
        }
        assert!(!servers.of(&of(443)).unwrap().has(314));
    }
}
