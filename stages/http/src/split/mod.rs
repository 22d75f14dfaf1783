//! Sub-connection load balancing that is exact: one connection's transactions go to many shards,
//! and the records of all shards together are those of one.
//!
//! Eq. (3) of Vega et al. 2017 (sec. 2.1.4), computed for every packet by itself
//! ([`linkweir_engine::TransactionSplitter`]), sends both halves of a plain transaction to one shard.
//! It parts what belongs together where a head spans segments, where requests are pipelined, where
//! an interim response moves a request on, and where bodies and retransmissions are to be counted.
//!
//! Here the connections are followed instead ([`flow`]). A connection's packets stay together until
//! a request comes at a *settled* point: all before it is answered, whole and seen in order, so that
//! [`crate::HttpStage`] keeps nothing of the connection that a later packet could ask for. From that
//! request on they go where Eq. (3) of the request points. Packets of earlier transactions that come
//! again or late go where those went. Whatever is unclear stays where it is: that is always right,
//! only less even.
//!
//! Cost: one look-up a packet; a parse a head. Memory: about 320 bytes a connection, of which there
//! are at most as many as [`GroupsConfig::connections`], and 1 MiB of heads that span segments.

mod even;
mod flow;
mod stream;

pub use even::EvenConnections;

use linkweir_engine::Splitter;
use linkweir_engine::hash::{Endpoint, eq3_balance, flow_hash, mixed_balance};
use linkweir_table::{Chunks, Id, Table};
use linkweir_wire::{Network, Packet, Tcp, TcpFlags, Transport};

use crate::key::{Connection, ConnectionHash, Meaning};
use flow::{Flow, Side};
use stream::Bytes;

/// Chunks of 252 bytes for heads that span segments, of all connections.
const HEAD_CHUNKS: usize = 4096;

/// The hash of a group of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Balance {
    /// Eq. (3): its low bits follow those of addresses, ports and message lengths.
    Paper,
    /// The same parts, mixed: even whatever they are.
    #[default]
    Mixed,
}

impl Balance {
    #[inline]
    const fn hash(self, src: Endpoint, dst: Endpoint, match_seq: u32) -> u32 {
        match self {
            Self::Paper => eq3_balance(src, dst, match_seq),
            Self::Mixed => mixed_balance(src, dst, match_seq),
        }
    }
}

/// Settings of [`TransactionGroups`].
#[derive(Debug, Clone, Copy)]
pub struct GroupsConfig {
    /// Connections that are followed at once; with more, the one without requests for longest is
    /// forgotten, and goes on as a new one.
    pub connections: usize,
    /// How a group's shard is chosen.
    pub balance: Balance,
    /// Seed of the table's hash; where packets go does not depend on it.
    pub hash_seed: u64,
}

impl Default for GroupsConfig {
    fn default() -> Self {
        Self {
            connections: 131_072,
            balance: Balance::default(),
            hash_seed: 0x6c69_6e6b_7765_6972,
        }
    }
}

/// What was decided, for the curious. Requests are those that came as new ones in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// Connections that were taken up.
    pub connections: u64,
    /// Of these, those that were forgotten, because the table was full, with requests unanswered:
    /// their halves may part.
    pub forgotten: u64,
    /// Requests seen.
    pub requests: u64,
    /// Requests with which a group began, besides the first of each connection.
    pub groups: u64,
    /// Requests that stayed with the one before because that was not answered.
    pub pipelined: u64,
    /// Requests that stayed because the end of the response before them was not seen or not known.
    pub unfinished: u64,
    /// Requests that stayed because of loss, reordering or odd messages before them.
    pub unclear: u64,
}

/// Distributes packets to shards by groups of transactions.
#[derive(Debug)]
pub struct TransactionGroups {
    balance: Balance,
    seed: u64,
    table: Table<Flow>,
    texts: Chunks,
    scratch: Vec<u8>,
    counts: GroupCounts,
}

impl Default for TransactionGroups {
    fn default() -> Self {
        Self::new(&GroupsConfig::default())
    }
}

impl TransactionGroups {
    /// A splitter with these settings.
    #[must_use]
    pub fn new(config: &GroupsConfig) -> Self {
        Self {
            balance: config.balance,
            seed: config.hash_seed,
            table: Table::with_capacity(config.connections),
            texts: Chunks::with_capacity(HEAD_CHUNKS),
            scratch: Vec::new(),
            counts: GroupCounts::default(),
        }
    }

    /// What was decided so far.
    #[must_use]
    pub const fn counts(&self) -> &GroupCounts {
        &self.counts
    }

    #[inline]
    fn hash_packet(&mut self, packet: &Packet<'_>) -> u32 {
        let network = &packet.network;
        match &packet.transport {
            Transport::Tcp(tcp) => self.hash_segment(network, tcp),
            Transport::Udp(udp) => flow_hash(
                (network.src(), udp.src_port()),
                (network.dst(), udp.dst_port()),
            ),
            _ => flow_hash((network.src(), 0), (network.dst(), 0)),
        }
    }

    #[inline]
    fn hash_segment(&mut self, network: &Network<'_>, tcp: &Tcp<'_>) -> u32 {
        let sent = Connection::sent_by_client(network, tcp);
        let (key, side) = if sent.client <= sent.server {
            (sent, Side::Low)
        } else {
            (sent.reversed(), Side::High)
        };
        let hash = ConnectionHash::new(self.seed, &key).with(Meaning::Direction, 0);
        let file = u32::try_from(hash >> 32).unwrap_or_default();
        let found = self.table.find(file, |flow| flow.key == key);
        if tcp.payload_len == 0 {
            return self.hash_empty(found, &key, side, tcp);
        }
        let Some(id) = found.or_else(|| self.begin(file, &key)) else {
            return self.stateless(&sent, tcp);
        };
        let Some(flow) = self.table.get_mut(id) else {
            return 0;
        };
        if flow.passes(side, tcp) {
            return flow.route(side, tcp.seq().0);
        }
        let mut bytes = Bytes {
            texts: &mut self.texts,
            scratch: &mut self.scratch,
        };
        let seen = flow.on_data(side, tcp, self.balance, &mut bytes, &mut self.counts);
        if seen.is_request {
            self.table.refresh(id);
        }
        seen.hash
    }

    /// A segment without payload says nothing to the stage, but for the end of a connection.
    fn hash_empty(
        &mut self,
        found: Option<Id>,
        key: &Connection,
        side: Side,
        tcp: &Tcp<'_>,
    ) -> u32 {
        let is_opening =
            tcp.flags().contains(TcpFlags::SYN) && !tcp.flags().contains(TcpFlags::ACK);
        if let Some(flow) = found.and_then(|id| self.table.get_mut(id)) {
            if is_opening {
                flow.on_syn(side, tcp.seq().0, &mut self.texts);
            }
            if let Some(hash) = flow.current() {
                return hash;
            }
        }
        // Before the first request: with it, as far as can be told.
        self.stateless(key, tcp)
    }

    /// The hash of a packet by itself, where its connection has no group yet.
    fn stateless(&self, connection: &Connection, tcp: &Tcp<'_>) -> u32 {
        let is_syn = tcp.flags().contains(TcpFlags::SYN);
        let match_seq = match (is_syn, tcp.src_port() < tcp.dst_port()) {
            (true, _) => tcp.seq().0.wrapping_add(1),
            (false, true) => tcp.seq().0,
            (false, false) => tcp.ack().0,
        };
        self.balance
            .hash(connection.client, connection.server, match_seq)
    }

    fn begin(&mut self, file: u32, key: &Connection) -> Option<Id> {
        while self.table.is_full() {
            let (oldest, _) = self.table.oldest()?;
            if let Some(flow) = self.table.remove(oldest) {
                self.counts.forgotten += u64::from(flow.owes());
                flow.release(&mut self.texts);
            }
        }
        self.counts.connections += 1;
        self.table.insert(file, Flow::new(*key)).ok()
    }
}

impl Splitter for TransactionGroups {
    #[inline]
    fn packet(&mut self, packet: &Packet<'_>) -> Option<u32> {
        let hash = self.hash_packet(packet);
        // All groups of a connection need the round trip that its handshake shows.
        (!is_handshake(packet)).then_some(hash)
    }
}

/// Whether a packet is of the handshake of TCP, and nothing else.
#[inline]
fn is_handshake(packet: &Packet<'_>) -> bool {
    matches!(&packet.transport, Transport::Tcp(tcp)
        if tcp.payload_len == 0 && tcp.flags().contains(TcpFlags::SYN))
}
