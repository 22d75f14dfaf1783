//! The key of a transaction: what both halves have in common.
//!
//! Eq. (2) of Vega et al. 2017 (sec. 2.1.3) hashes the 4-tuple together with the acknowledgment
//! number of a request or the sequence number of a response. These are one number, because a client
//! that sends a request has acknowledged all that came before the response. [`Connection`] and that
//! number, the *match number*, are the key here; the hash of them is a keyed one instead of the XOR
//! ([`linkweir_engine::hash::eq2_transaction`]), which anybody could make collide.

use std::net::IpAddr;

use linkweir_engine::hash::{Endpoint, flow_hash, mix};
use linkweir_record::HttpRow;
use linkweir_wire::{Network, Side, Tcp};

/// The two sides of a TCP connection, in the order in which the holder uses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Connection {
    /// The client; of a direction, the sender.
    pub(crate) client: Endpoint,
    /// The server; of a direction, the receiver.
    pub(crate) server: Endpoint,
}

impl Connection {
    /// From a segment that its first side sent.
    #[inline]
    pub(crate) const fn sent_by_client(network: &Network<'_>, tcp: &Tcp<'_>) -> Self {
        Self {
            client: (network.src(), tcp.src_port()),
            server: (network.dst(), tcp.dst_port()),
        }
    }

    /// That of a record.
    pub(crate) const fn of_row(row: &HttpRow) -> Self {
        Self {
            client: (row.client_ip, row.client_port),
            server: (row.server_ip, row.server_port),
        }
    }

    /// The same connection from the other side.
    #[inline]
    pub(crate) const fn reversed(self) -> Self {
        Self {
            client: self.server,
            server: self.client,
        }
    }

    /// A keyed hash that is the same for both directions: for tables of connections.
    pub(crate) fn file_under(&self, seed: u64) -> u32 {
        let ordered = match self.client <= self.server {
            true => *self,
            false => self.reversed(),
        };
        let hash = ConnectionHash::new(seed, &ordered).with(Meaning::Direction, 0);
        u32::try_from(hash >> 32).unwrap_or_default()
    }

    /// Who of this connection, client first, sent what goes in `direction`; nothing where that is of another one.
    pub(crate) fn sender(&self, direction: &Self) -> Option<Side> {
        match *direction {
            of_client if of_client == *self => Some(Side::Client),
            of_server if of_server.reversed() == *self => Some(Side::Server),
            _ => None,
        }
    }

    /// A 32-bit hash that is the same for both directions.
    #[inline]
    pub(crate) const fn flow_hash(&self) -> u32 {
        flow_hash(self.client, self.server)
    }
}

/// The part of a hash that all numbers of one connection share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionHash {
    /// For tables that must not be filled on purpose.
    keyed: u64,
    /// For what may be forgotten.
    plain: u64,
}

/// 2^64 divided by the golden ratio: multiplication spreads low bits over the high ones.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a number hashed with a connection means; keeps the kinds apart.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(crate) enum Meaning {
    /// Acknowledgment number of a request, sequence number of its response: Eq. (2).
    MatchSeq = 0,
    /// No number: the last request of the connection and the last match number that was answered.
    Last = 0x8565_9e37_79b9_7f4b,
    /// No number: the request of a followed pipeline that has waited longest.
    Followed = 0x6c62_272e_07bb_0142,
    /// A match number that is never looked up.
    Hidden = 0x517c_c1b7_2722_0a95,
    /// No number: the connection itself, in one direction.
    Direction = 0x2545_f491_4f6c_dd1d,
}

impl ConnectionHash {
    /// Mixes addresses and ports, with `seed` and without. Not symmetric.
    #[inline]
    pub(crate) const fn new(seed: u64, connection: &Connection) -> Self {
        let (client, server) = (connection.client, connection.server);
        let ports = (client.1 as u64) << 48 | (server.1 as u64) << 32;
        match (client.0, server.0) {
            (IpAddr::V4(c), IpAddr::V4(s)) => {
                let addresses = (c.to_bits() as u64) << 32 | s.to_bits() as u64;
                let spread = addresses.wrapping_mul(GOLDEN);
                // All of an address in both halves: ports, which are in one, do not make up for it.
                let plain = spread ^ (spread >> 32) ^ ports;
                Self {
                    keyed: mix(seed ^ addresses) ^ ports,
                    plain,
                }
            }
            (c, s) => {
                let plain = wide(wide(0, c), s) ^ ports;
                Self {
                    keyed: wide(wide(seed, c), s) ^ ports,
                    plain,
                }
            }
        }
    }

    /// A hash of the connection alone, without the seed.
    #[inline]
    pub(crate) const fn home(self) -> u32 {
        (self.plain.wrapping_mul(GOLDEN) >> 32) as u32
    }

    /// The hash of the connection together with a number, under the seed.
    #[inline]
    pub(crate) const fn with(self, meaning: Meaning, number: u32) -> u64 {
        mix(self.keyed ^ meaning as u64 ^ number as u64)
    }

    /// The same without the seed: for what is remembered, so that what is forgotten, and with it
    /// every record, is the same in every run.
    #[inline]
    pub(crate) const fn fingerprint(self, meaning: Meaning, number: u32) -> u64 {
        mix(self.plain ^ meaning as u64 ^ number as u64)
    }
}

#[cold]
const fn wide(seed: u64, address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => mix(seed ^ v4.to_bits() as u64),
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            #[expect(
                clippy::cast_possible_truncation,
                reason = "both halves of 128 bits are used"
            )]
            {
                mix(mix(seed ^ (bits >> 64) as u64) ^ bits as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    /// As in rewritten traces: every connection has the same numbers, and addresses differ in few bytes.
    #[test]
    fn connections_of_the_same_numbers_have_fingerprints_of_their_own() {
        let server = (Ipv4Addr::new(192, 0, 2, 1).into(), 80);
        let mut all = BTreeSet::new();
        for client in 0..=255 {
            for port in 2000..2300 {
                let client = (Ipv4Addr::new(10, client, 0, 1).into(), port);
                let hash = ConnectionHash::new(7, &Connection { client, server });
                all.insert(hash.fingerprint(Meaning::MatchSeq, 1));
            }
        }
        assert_eq!(all.len(), 256 * 300);
    }
}
