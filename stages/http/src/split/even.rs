//! For a dispatcher that must not cost more than the workers: connections go whole to whoever has the least, and are
//! followed only while there are few.
//!
//! Following a connection ([`TransactionGroups`]) takes a look-up a packet and a parse a head, which is most of what the
//! stage does itself: a dispatcher that follows everything keeps one worker busy, not several. Only few connections are
//! hard to divide. So the first ones, some for each worker, are followed, and may keep all workers busy alone. Every
//! other one goes whole to the worker that has had the fewest packets when it begins, which takes one look at a table
//! in the second-level cache. Both are exact: a worker sees what a single one would see of the connection, or the groups of a
//! connection that was followed from its first packet on.
//!
//! What is remembered is not connections but cells, that is values of a hash: each is followed or belongs to a worker, for good.

use linkweir_engine::Splitter;
use linkweir_engine::hash::flow_hash;
use linkweir_engine::split::shard_of;
use linkweir_wire::{Packet, Transport};

use super::{GroupCounts, GroupsConfig, TransactionGroups, is_handshake};

/// Cells: 128 KiB.
const CELLS: usize = 1 << 16;
/// A cell that nothing has come to.
const NEW: u16 = u16::MAX;
/// A cell whose connections are followed.
const FOLLOWED: u16 = u16::MAX - 1;
/// Cells that are followed at once, for each worker: with so many to divide, whole ones are even enough.
const FOLLOWED_EACH: u32 = 4;
/// After so many packets the followed cells that had none of them count no longer: as many new ones are followed.
const LOOK_EVERY: u64 = 1 << 18;

/// Distributes connections whole, and transactions while there are few connections. The hash of a packet is the number of its
/// shard; the handshake of a connection that is divided goes to all.
#[derive(Debug)]
pub struct EvenConnections {
    groups: TransactionGroups,
    cells: Box<[u16]>,
    /// Packets of each shard.
    loads: Vec<u64>,
    shards: u32,
    packets: u64,
    /// The followed cells that count.
    followed: Vec<Followed>,
}

#[derive(Debug, Clone, Copy)]
struct Followed {
    cell: u16,
    packets: u64,
}

impl EvenConnections {
    /// A splitter for so many shards; `config` is for what it follows.
    #[must_use]
    pub fn new(config: &GroupsConfig, shards: usize) -> Self {
        let shards = shards.clamp(1, usize::from(FOLLOWED));
        Self {
            groups: TransactionGroups::new(config),
            cells: vec![NEW; CELLS].into(),
            loads: vec![0; shards],
            shards: u32::try_from(shards).unwrap_or(1),
            packets: 0,
            followed: Vec::new(),
        }
    }

    /// What was decided of the connections that are followed.
    #[must_use]
    pub const fn counts(&self) -> &GroupCounts {
        self.groups.counts()
    }

    /// Whose a new cell is.
    #[cold]
    fn assign(&mut self, cell: u16, is_tcp: bool) -> u16 {
        let limit = self.shards.saturating_mul(FOLLOWED_EACH);
        let owner = if is_tcp && self.followed.len() < limit as usize {
            self.followed.push(Followed { cell, packets: 0 });
            FOLLOWED
        } else {
            let loads = self.loads.iter().zip(0_u16..);
            let least = loads.min_by_key(|(load, _)| **load);
            least.map_or(0, |(_, shard)| shard)
        };
        if let Some(place) = self.cells.get_mut(usize::from(cell)) {
            *place = owner;
        }
        owner
    }

    #[cold]
    fn look(&mut self) {
        self.followed.retain(|one| one.packets > 0);
        self.followed.iter_mut().for_each(|one| one.packets = 0);
    }

    fn follow(&mut self, cell: u16, packet: &Packet<'_>) -> u32 {
        if let Some(one) = self.followed.iter_mut().find(|one| one.cell == cell) {
            one.packets += 1;
        }
        shard_of(self.groups.hash_packet(packet), self.shards)
    }
}

impl Splitter for EvenConnections {
    #[inline]
    fn packet(&mut self, packet: &Packet<'_>) -> Option<u32> {
        self.packets += 1;
        if self.packets.is_multiple_of(LOOK_EVERY) {
            self.look();
        }
        let network = &packet.network;
        let (src, dst) = match &packet.transport {
            Transport::Tcp(tcp) => (tcp.src_port(), tcp.dst_port()),
            Transport::Udp(udp) => (udp.src_port(), udp.dst_port()),
            _ => (0, 0),
        };
        let [.., high, low] = flow_hash((network.src(), src), (network.dst(), dst)).to_be_bytes();
        let cell = u16::from_be_bytes([high, low]);
        let owner = match self.cells.get(usize::from(cell)) {
            Some(&NEW) | None => self.assign(cell, matches!(packet.transport, Transport::Tcp(_))),
            Some(&owner) => owner,
        };
        let shard = match owner {
            FOLLOWED => self.follow(cell, packet),
            shard => u32::from(shard),
        };
        if let Some(load) = self.loads.get_mut(shard as usize) {
            *load += 1;
        }
        (owner != FOLLOWED || !is_handshake(packet)).then_some(shard)
    }
}
