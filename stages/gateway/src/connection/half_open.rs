//! Handshakes without payload yet: who opened, where the streams begin, and what both ends have offered.
//!
//! A server can send two answers with different numbers, of which its client takes one: the other may
//! have an option that was not agreed on, for which the client drops it. Where both were seen, the client's
//! acknowledgment tells which it is.

use linkweir_table::Table;
use linkweir_wire::{SeqNumber, Tcp};

use super::plausible::Receiver;
use super::{Ends, Key, Plausible};
use crate::hold::Stream;
use crate::inspect::Side;

/// Where the server's stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// It has not answered.
    Unknown,
    /// As its answer says.
    Said(SeqNumber),
    /// Its answers differ.
    Disputed,
    /// As the client acknowledged.
    Taken(SeqNumber),
}

/// A handshake that was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HalfOpen {
    key: Key,
    pub(crate) ends: Ends,
    client_first: SeqNumber,
    server_first: Beginning,
    /// Of client and server, what identifies segments that their receiver ignores.
    pub(crate) plausible: [Plausible; 2],
}

impl HalfOpen {
    /// A SYN.
    pub(crate) fn new(key: Key, ends: Ends, syn: &Tcp<'_>) -> Self {
        Self {
            key,
            ends,
            client_first: syn.seq() + 1,
            server_first: Beginning::Unknown,
            plausible: [Plausible::opening(syn), Plausible::default()],
        }
    }

    /// Whether a SYN is this one, sent again.
    pub(crate) fn is_repeated_by(&self, syn: &Tcp<'_>) -> bool {
        self.client_first == syn.seq() + 1
    }

    /// The server's answer; whether its client may take it.
    pub(crate) fn on_answer(&mut self, answer: &Tcp<'_>) -> bool {
        // RFC 9293 sec. 3.10.7.3: one that acknowledges another SYN is answered with a reset.
        if answer.ack() != self.client_first {
            return false;
        }
        let first = answer.seq() + 1;
        let [client, server] = &mut self.plausible;
        self.server_first = match self.server_first {
            Beginning::Unknown => {
                *server = Plausible::opening(answer);
                Plausible::agree(client, server);
                client.acknowledges_from(first);
                Beginning::Said(first)
            }
            Beginning::Said(other) if other != first => {
                // What was agreed on is not known.
                self.plausible = Default::default();
                Beginning::Disputed
            }
            Beginning::Taken(other) if other != first => return false,
            same => same,
        };
        true
    }

    /// A segment without payload behind the SYNs. Whether the handshake is complete with it.
    pub(crate) fn on_segment(&mut self, side: Side, tcp: &Tcp<'_>) -> bool {
        let server_first = match self.server_first {
            Beginning::Said(first) | Beginning::Taken(first) => Some(first),
            Beginning::Unknown | Beginning::Disputed => None,
        };
        let [client, server] = &mut self.plausible;
        let (own, other, [next, sent]) = match side {
            Side::Client => (client, server, [Some(self.client_first), server_first]),
            Side::Server => (server, client, [server_first, Some(self.client_first)]),
        };
        let edge = other.edge();
        if !own.takes(tcp, Receiver { sent, next, edge }) || side == Side::Server {
            return false;
        }
        // The client acknowledges the answer that it took.
        let is_answered = matches!(self.server_first, Beginning::Said(_) | Beginning::Disputed);
        if is_answered {
            self.server_first = Beginning::Taken(tcp.ack());
        }
        is_answered
    }

    /// Whether it is not known yet where the server's stream begins, though it has answered.
    pub(crate) fn is_disputed(&self) -> bool {
        self.server_first == Beginning::Disputed
    }

    /// Whether both ends were seen.
    pub(crate) fn is_answered(&self) -> bool {
        self.server_first != Beginning::Unknown
    }

    /// The streams of client and server.
    pub(crate) fn streams(&self) -> [Stream; 2] {
        let server = match self.server_first {
            Beginning::Said(first) | Beginning::Taken(first) => Stream::starting_at(first),
            Beginning::Unknown | Beginning::Disputed => Stream::default(),
        };
        [Stream::starting_at(self.client_first), server]
    }
}

/// Handshakes, a bounded number of each kind: a flood of SYNs pushes out only others that are not complete.
#[derive(Debug)]
pub(crate) struct Handshakes {
    begun: Table<HalfOpen>,
    complete: Table<HalfOpen>,
}

impl Handshakes {
    /// Room for so many of each kind.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            begun: Table::with_capacity(capacity),
            complete: Table::with_capacity(capacity),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.begun.len() + self.complete.len()
    }

    /// The handshake of a connection.
    pub(crate) fn find(&mut self, key: &Key, hash: u32) -> Option<&mut HalfOpen> {
        for table in [&mut self.begun, &mut self.complete] {
            if let Some(id) = table.find(hash, |half| half.key == *key) {
                return table.get_mut(id);
            }
        }
        None
    }

    /// Another one begins; the oldest is evicted when the table is full.
    pub(crate) fn begin(&mut self, hash: u32, half: HalfOpen) {
        self.take(&half.key, hash);
        insert(&mut self.begun, hash, half);
    }

    /// A handshake is complete.
    pub(crate) fn complete(&mut self, key: &Key, hash: u32) {
        if let Some(half) = take(&mut self.begun, key, hash) {
            insert(&mut self.complete, hash, half);
        }
    }

    /// A handshake that is none any more.
    pub(crate) fn take(&mut self, key: &Key, hash: u32) -> Option<HalfOpen> {
        take(&mut self.begun, key, hash).or_else(|| take(&mut self.complete, key, hash))
    }
}

fn take(table: &mut Table<HalfOpen>, key: &Key, hash: u32) -> Option<HalfOpen> {
    let id = table.find(hash, |half| half.key == *key)?;
    table.remove(id)
}

fn insert(table: &mut Table<HalfOpen>, hash: u32, half: HalfOpen) {
    if table.is_full()
        && let Some(oldest) = table.oldest().map(|(id, _)| id)
    {
        table.remove(oldest);
    }
    if table.insert(hash, half).is_err() {
        // There is room: the oldest has left.
    }
}
