//! Numbers that follow from the seed and the addresses, so that two hosts with one seed choose the
//! same: where a client's ports begin, initial sequence numbers, offsets of timestamps.
//!
//! The mixing is not cryptographic. RFC 6528 wants that, against strangers who guess; here the
//! numbers need only differ between connections and grow between two of the same ports.
//!
//! Which local port a connection gets.

use crate::seam::Client;
use linkweir_model::Random;
use linkweir_wire::{SeqNumber, Timestamp};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What the numbers are derived with.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    connection: [u64; 2],
    sequence: [u64; 2],
    port: [u64; 2],
    clock: [u64; 2],
    /// Time is counted from here.
    epoch: Timestamp,
}

/// How long before the begin of a schedule its time is counted from: what happens a little early still
/// has a time that grows.
const BEFORE: Duration = Duration::from_secs(3600);

/// The 128-bit product, folded.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let low = u64::try_from(product & u128::from(u64::MAX)).unwrap_or(0);
    low ^ u64::try_from(product >> 64).unwrap_or(0)
}

#[inline]
fn low32(n: u64) -> u32 {
    u32::try_from(n & 0xffff_ffff).unwrap_or(0)
}

impl Keys {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::part(seed, 0x7463_7000);
        // Odd: no product is lost.
        let mut pair = || [random.bits() | 1, random.bits() | 1];
        Self {
            connection: pair(),
            sequence: pair(),
            port: pair(),
            clock: pair(),
            epoch: Timestamp::ZERO,
        }
    }

    /// Counts time from the begin of a schedule: the same on two hosts whose clocks differ.
    pub(super) fn begin(&mut self, begin: Timestamp) {
        self.epoch = begin - BEFORE;
    }

    #[inline]
    fn mix(keys: [u64; 2], a: u64, b: u64) -> u64 {
        let [first, second] = keys;
        fold(fold(a ^ first, second) ^ b, first.rotate_left(29) | 1)
    }

    #[inline]
    fn mix_address(keys: [u64; 2], before: u64, address: IpAddr) -> u64 {
        match address {
            IpAddr::V4(address) => Self::mix(keys, before, u64::from(address.to_bits())),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                let high = u64::try_from(bits >> 64).unwrap_or(0);
                let low = u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(0);
                Self::mix(keys, Self::mix(keys, before, high), low)
            }
        }
    }

    /// The hash of a connection in the index.
    #[inline]
    pub(super) fn connection(&self, client: Client, local_port: u16, remote: SocketAddr) -> u32 {
        let ports = u64::from(client) << 32 | u64::from(local_port) << 16;
        let before = ports | u64::from(remote.port());
        low32(Self::mix_address(self.connection, before, remote.ip()) >> 16)
    }

    /// The initial sequence number: `M + F(4-tuple, key)` of RFC 6528 sec. 3, where `M` counts
    /// 4 microseconds.
    pub(super) fn initial_sequence(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
        now: Timestamp,
    ) -> SeqNumber {
        let ports = u64::from(local.port()) << 16 | u64::from(remote.port());
        let hash = Self::mix_address(self.sequence, ports, local.ip());
        let hash = Self::mix_address(self.sequence, hash, remote.ip());
        let since = now.nanos_since(self.epoch);
        SeqNumber(low32(since / 4000).wrapping_add(low32(hash >> 16)))
    }

    /// How far into its range of `ports` a client begins.
    pub(super) fn first_port(&self, client: Client, ports: u32) -> u32 {
        let hash = Self::mix(self.port, u64::from(client), 0);
        low32((u64::from(low32(hash >> 16)) * u64::from(ports)) >> 32)
    }

    /// The timestamp clock of a client, milliseconds (RFC 7323 sec. 5.4).
    #[inline]
    pub(super) fn clock(&self, client: Client, now: Timestamp) -> u32 {
        let offset = low32(Self::mix(self.clock, u64::from(client), 1) >> 16);
        low32(now.nanos_since(self.epoch) / 1_000_000).wrapping_add(offset)
    }
}

/// How far each client has come in its own sequence of ports: 2 bytes each.
///
/// A client begins at a place that follows from the seed and goes up by one, around the range, so
/// that the port of its n-th connection is a function of seed, client and n, and a port rests for as
/// long as possible before it is used again (as RFC 6056 sec. 3.3.3 does it).
#[derive(Debug)]
pub(super) struct Ports {
    /// Ports taken so far, modulo the size of the range.
    taken: Vec<u16>,
    first: u16,
    /// Ports in the range: 1 to 65,536.
    len: u32,
}

impl Ports {
    pub(super) fn new(clients: u32, first: u16, last: u16) -> Self {
        Self {
            taken: vec![0; clients as usize],
            first: first.max(1),
            len: u32::from(last.saturating_sub(first.max(1))) + 1,
        }
    }

    /// How many clients have them.
    pub(super) fn clients(&self) -> u32 {
        u32::try_from(self.taken.len()).unwrap_or(u32::MAX)
    }

    /// Bytes of memory.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.taken.len() * size_of::<u16>()
    }

    /// The next port of a client; `None` where there is no such client.
    pub(super) fn next(&mut self, keys: &Keys, client: Client) -> Option<u16> {
        let taken = self.taken.get_mut(client as usize)?;
        let offset = (keys.first_port(client, self.len) + u32::from(*taken)) % self.len;
        // Modulo at most 65,536: fits.
        *taken = u16::try_from((u32::from(*taken) + 1) % self.len).unwrap_or(0);
        u16::try_from(u32::from(self.first) + offset).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn hashes_of_neighbours_are_spread() {
        let keys = Keys::new(1);
        let remotes = ["192.0.2.1:80", "[2001:db8::1]:80", "[2001:db8:0:1::1]:80"];
        let mut seen = HashSet::new();
        let mut upper = [0_u32; 256];
        for client in 0..50 {
            for port in 1000..1200 {
                for remote in remotes {
                    let hash = keys.connection(client, port, remote.parse().unwrap());
                    seen.insert(hash);
                    upper[(hash >> 24) as usize] += 1;
                }
            }
        }
        // 30,000 of 2^32: about 0.1 collisions are expected, 117 a place.
        assert!(seen.len() >= 29_998, "{}", seen.len());
        assert!(upper.iter().all(|n| (60..180).contains(n)), "{upper:?}");
    }

    #[test]
    fn sequence_numbers_grow_by_the_clock_and_differ_by_the_addresses() {
        let keys = Keys::new(1);
        let local: SocketAddr = "10.0.0.1:1024".parse().unwrap();
        let remote: SocketAddr = "192.0.2.1:80".parse().unwrap();
        let at = Timestamp::from_nanos(1_000_000_000);
        let first = keys.initial_sequence(local, remote, at);
        let later = keys.initial_sequence(local, remote, Timestamp::from_nanos(2_000_000_000));
        assert_eq!(later - first, 250_000);
        let other: SocketAddr = "10.0.0.2:1024".parse().unwrap();
        assert_ne!(keys.initial_sequence(other, remote, at), first);
        assert_ne!(Keys::new(2).initial_sequence(local, remote, at), first);
        assert_eq!(Keys::new(1).initial_sequence(local, remote, at), first);
    }

    #[test]
    fn each_client_goes_around_the_whole_range() {
        let keys = Keys::new(3);
        for (first, last) in [(1024, u16::MAX), (0, u16::MAX), (5000, 5009), (7, 7)] {
            let mut ports = Ports::new(3, first, last);
            let len = ports.len as usize;
            for client in 0..3 {
                let once: Vec<u16> = (0..len)
                    .map(|_| ports.next(&keys, client).unwrap())
                    .collect();
                assert!(once.iter().all(|port| (first.max(1)..=last).contains(port)));
                assert_eq!(once.iter().collect::<HashSet<_>>().len(), len);
                assert_eq!(
                    ports.next(&keys, client),
                    Some(once[0]),
                    "from the beginning"
                );
            }
            assert_eq!(ports.next(&keys, 3), None);
        }
    }
}
