//! What all streams together may hold, and how it is shared.
//!
//! A source may hold as much as is still free: one alone half of all, two a third each (the dynamic threshold
//! of Choudhury and Hahne, IEEE/ACM Trans. Netw. 6(2), 1998). Whoever fills the memory meets the bound himself, and
//! there is always room for others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Bounds of what is held by all streams together, and what is.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    pub(crate) packets: usize,
    pub(crate) bytes: usize,
    pub(crate) max_packets: usize,
    pub(crate) max_bytes: usize,
    /// The most packets that were held at once.
    pub(crate) peak_packets: usize,
    sources: Vec<Share>,
    by_network: HashMap<IpAddr, u32>,
    free: Vec<u32>,
}

/// Whose streams hold it: a place in [`Budget`]; that of nobody at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source(u32);

impl Default for Source {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

/// What the streams of one address hold.
#[derive(Debug)]
struct Share {
    network: IpAddr,
    streams: u32,
    packets: usize,
    bytes: usize,
}

/// The address, or of IPv6 the network of one subscriber: whoever has one has all of it.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => Ipv6Addr::from(u128::from(six) >> 64 << 64).into(),
    }
}

impl Budget {
    /// Nothing is held, and so many packets and bytes may be.
    pub(crate) fn of(max_packets: usize, max_bytes: usize) -> Self {
        Self {
            max_packets,
            max_bytes,
            ..Self::default()
        }
    }

    /// A stream begins that this address sends.
    pub(crate) fn join(&mut self, address: IpAddr) -> Source {
        let network = network(address);
        let sources = &mut self.sources;
        let free = &mut self.free;
        let place = *self.by_network.entry(network).or_insert_with(|| {
            let share = Share {
                network,
                streams: 0,
                packets: 0,
                bytes: 0,
            };
            let place = free.pop().unwrap_or_else(|| len(sources));
            match sources.get_mut(place as usize) {
                Some(unused) => *unused = share,
                None => sources.push(share),
            }
            place
        });
        if let Some(share) = self.sources.get_mut(place as usize) {
            share.streams += 1;
        }
        Source(place)
    }

    /// A stream is over; it holds nothing any more.
    pub(crate) fn leave(&mut self, source: Source) {
        let Some(share) = self.sources.get_mut(source.0 as usize) else {
            return;
        };
        share.streams = share.streams.saturating_sub(1);
        if share.streams == 0 {
            self.by_network.remove(&share.network);
            self.free.push(source.0);
        }
    }

    /// Whether a source finds room for one more packet with so many bytes.
    pub(crate) fn has_room(&self, source: Source, bytes: usize) -> bool {
        let (packets, held) = self
            .sources
            .get(source.0 as usize)
            .map_or((0, 0), |share| (share.packets, share.bytes));
        packets.saturating_add(self.packets) < self.max_packets
            && bytes.saturating_add(held).saturating_add(self.bytes) <= self.max_bytes
    }

    /// A packet is held.
    pub(super) fn hold(&mut self, source: Source) {
        self.packets += 1;
        self.peak_packets = self.peak_packets.max(self.packets);
        if let Some(share) = self.sources.get_mut(source.0 as usize) {
            share.packets += 1;
        }
    }

    /// A packet is held no longer.
    pub(super) fn release(&mut self, source: Source) {
        self.packets = self.packets.saturating_sub(1);
        if let Some(share) = self.sources.get_mut(source.0 as usize) {
            share.packets = share.packets.saturating_sub(1);
        }
    }

    /// Bytes are kept.
    pub(super) fn take(&mut self, source: Source, bytes: usize) {
        self.bytes += bytes;
        if let Some(share) = self.sources.get_mut(source.0 as usize) {
            share.bytes += bytes;
        }
    }

    /// Bytes are kept no longer.
    pub(super) fn give_back(&mut self, source: Source, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(share) = self.sources.get_mut(source.0 as usize) {
            share.bytes = share.bytes.saturating_sub(bytes);
        }
    }
}

/// The place behind the last one.
fn len(sources: &[Share]) -> u32 {
    u32::try_from(sources.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> Budget {
        Budget::of(100, 1000)
    }

    fn four(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// Takes all that a source gets, by tens of bytes.
    fn fill(budget: &mut Budget, source: Source) -> usize {
        let mut taken = 0;
        while budget.has_room(source, 10) {
            budget.take(source, 10);
            taken += 10;
        }
        taken
    }

    #[test]
    fn who_fills_it_leaves_room_for_others() {
        let mut budget = budget();
        let [one, other, last] = [1, 2, 3].map(|number| budget.join(four(number)));
        assert_eq!(fill(&mut budget, one), 500);
        assert_eq!(fill(&mut budget, other), 250);
        assert!(budget.has_room(last, 100));
        assert!(!budget.has_room(one, 1));
        budget.give_back(one, 500);
        assert_eq!((budget.bytes, fill(&mut budget, other)), (250, 250));
    }

    #[test]
    fn addresses_of_one_network_share() {
        let mut budget = budget();
        let six = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, last]);
        let (one, other) = (budget.join(six(1)), budget.join(six(2)));
        assert_eq!(one, other);
        assert_ne!(budget.join(four(1)), budget.join(four(2)));
    }

    #[test]
    fn places_are_used_again() {
        let mut budget = budget();
        let one = budget.join(four(1));
        assert_eq!(budget.join(four(1)), one);
        budget.leave(one);
        assert_ne!(budget.join(four(2)), one, "a stream of it is left");
        budget.leave(one);
        assert_eq!(budget.join(four(3)), one);
        assert!(budget.has_room(Source::default(), 1));
    }
}
