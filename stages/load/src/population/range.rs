//! The addresses of the population as ranges: those of the prefixes, without what is left out, cut
//! where a group begins or ends.
//!
//! Addresses of both versions as numbers, and the first and last of a prefix.

use super::{Group, PopulationError};
use crate::seam::Client;
use linkweir_record::{IpNet, Prefix};
use std::net::{IpAddr, Ipv6Addr};

/// Addresses that follow one another, whose clients have numbers that do too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    /// Keys of the first and of the last address.
    pub(super) first: u128,
    pub(super) last: u128,
    /// Number of the first client.
    pub(super) base: Client,
    pub(super) group: u16,
}

impl Range {
    /// The address of a client of this range.
    #[inline]
    pub(super) fn address(&self, client: Client) -> IpAddr {
        address(self.first + u128::from(client.saturating_sub(self.base)))
    }

    /// The client of a key in this range.
    #[inline]
    pub(super) fn client(&self, key: u128) -> Option<Client> {
        let place = u32::try_from(key.checked_sub(self.first)?).ok()?;
        (key <= self.last).then(|| self.base.wrapping_add(place))
    }
}

/// The most clients.
pub(super) const MAX_CLIENTS: u32 = 1 << 31;

/// All ranges in the order of their clients: that of the prefixes, upward within one. And how many
/// clients there are.
pub(super) fn ranges(
    clients: &[Prefix],
    exclude: &[IpAddr],
    groups: &[Group],
) -> Result<(Vec<Range>, u32), PopulationError> {
    refuse_overlaps(clients)?;
    let mut excluded: Vec<u128> = exclude.iter().map(|&one| key(one)).collect();
    excluded.sort_unstable();
    excluded.dedup();
    let cuts = cuts(groups);
    let mut ranges = Vec::new();
    let mut count = 0_u32;
    for &prefix in clients {
        refuse_unusable(prefix)?;
        let (first, last) = client_keys(&prefix);
        if last - first >= u128::from(MAX_CLIENTS) {
            return Err(PopulationError::TooMany(prefix));
        }
        for (first, last) in without(first, last, &excluded) {
            for (first, last) in between(first, last, &cuts) {
                let base = count;
                let held = u32::try_from(last - first + 1).unwrap_or(u32::MAX);
                count = count
                    .checked_add(held)
                    .filter(|&all| all <= MAX_CLIENTS)
                    .ok_or(PopulationError::TooMany(prefix))?;
                ranges.push(Range {
                    first,
                    last,
                    base,
                    group: group_of(address(first), groups),
                });
            }
        }
    }
    if count == 0 {
        return Err(PopulationError::Empty);
    }
    Ok((ranges, count))
}

/// Addresses that no host has: a multicast or broadcast one, none at all, that of the host to itself.
fn refuse_unusable(prefix: Prefix) -> Result<(), PopulationError> {
    const NONE: [&str; 8] = [
        "0.0.0.0/8",
        "127.0.0.0/8",
        "224.0.0.0/4",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:0:0/96",
        "ff00::/8",
    ];
    let overlaps =
        |other: Prefix| other.contains(&prefix.network()) || prefix.contains(&other.network());
    let unusable = NONE
        .iter()
        .filter_map(|text| text.parse().ok())
        .find(|&other| overlaps(other));
    unusable.map_or(Ok(()), |other| {
        Err(PopulationError::Unusable(prefix, other))
    })
}

fn refuse_overlaps(clients: &[Prefix]) -> Result<(), PopulationError> {
    let mut sorted: Vec<Prefix> = clients.to_vec();
    sorted.sort_by_key(|one| keys(one));
    // Of two prefixes that have an address in common one holds the other, and follows it in order.
    for (&one, &next) in sorted.iter().zip(sorted.iter().skip(1)) {
        if keys(&next).0 <= keys(&one).1 {
            return Err(PopulationError::Overlap(one, next));
        }
    }
    Ok(())
}

/// Keys at which the group of an address may change.
fn cuts(groups: &[Group]) -> Vec<u128> {
    let members = groups.iter().flat_map(|group| &group.members);
    let mut cuts: Vec<u128> = members
        .flat_map(|member| {
            let (first, last) = keys(member);
            [Some(first), last.checked_add(1)]
        })
        .flatten()
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// The number of the group of an address: that of the longest prefix that holds it; 0, the rest, where
/// none does. Groups are counted from 1 on.
fn group_of(address: IpAddr, groups: &[Group]) -> u16 {
    let members = (1_u16..).zip(groups).flat_map(|(number, group)| {
        group
            .members
            .iter()
            .filter(|member| member.contains(&address))
            .map(move |member| (member.prefix_len(), number))
    });
    members
        .max_by_key(|&(len, number)| (len, u16::MAX - number))
        .map_or(0, |(_, number)| number)
}

/// The parts of a range without these keys.
fn without(first: u128, last: u128, excluded: &[u128]) -> Vec<(u128, u128)> {
    let mut parts = Vec::new();
    let mut from = first;
    for &key in excluded.iter().filter(|key| (first..=last).contains(key)) {
        if key > from {
            parts.push((from, key - 1));
        }
        from = key + 1;
    }
    if from <= last {
        parts.push((from, last));
    }
    parts
}

/// The parts of a range that begin at these keys.
fn between(first: u128, last: u128, cuts: &[u128]) -> Vec<(u128, u128)> {
    let mut parts = Vec::new();
    let mut from = first;
    for &cut in cuts.iter().filter(|&&cut| cut > first && cut <= last) {
        parts.push((from, cut - 1));
        from = cut;
    }
    parts.push((from, last));
    parts
}

/// First and last address of a prefix as keys (see [`key`]).
pub(super) fn keys(prefix: &IpNet) -> (u128, u128) {
    (key(prefix.network()), key(prefix.broadcast()))
}

/// Keys of the first and the last address that a client may have.
///
/// Left out are the network's own address and the broadcast address of an IPv4 prefix of up to
/// /30 (RFC 1122 sec. 3.2.1.3; a /31 has neither, RFC 3021), and the anycast address of the
/// routers, the first of an IPv6 prefix of up to /126 (RFC 4291 sec. 2.6.1, RFC 6164).
pub(super) fn client_keys(prefix: &IpNet) -> (u128, u128) {
    let (first, last) = keys(prefix);
    match prefix {
        IpNet::V4(prefix) if prefix.prefix_len() <= 30 => (first + 1, last - 1),
        IpNet::V6(prefix) if prefix.prefix_len() <= 126 => (first + 1, last),
        _ => (first, last),
    }
}

/// An address of either version as a number: IPv4 as the mapped address of IPv6 (RFC 4291
/// sec. 2.5.5.2).
pub(super) const fn key(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// The address of a key.
pub(super) const fn address(key: u128) -> IpAddr {
    let v6 = Ipv6Addr::from_bits(key);
    match v6.to_ipv4_mapped() {
        Some(v4) => IpAddr::V4(v4),
        None => IpAddr::V6(v6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    proptest! {
        #[test]
        fn contains_says_what_the_keys_say(a: u32, b: u32, len in 0_u8..=32) {
            let prefix = IpNet::new(Ipv4Addr::from_bits(a).into(), len).unwrap();
            let other = Ipv4Addr::from_bits(b).into();
            let (first, last) = keys(&prefix);
            prop_assert_eq!(prefix.contains(&other), (first..=last).contains(&key(other)));
            prop_assert_eq!(address(key(other)), other);
        }
    }
}
