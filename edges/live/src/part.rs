//! Tables over a part of the run, from which every window is merged.
//!
//! Memory: four tables of at most `max_keys` keys with a histogram of 1 KiB each, and histograms of
//! at most 440 KiB; 1.3 MB for 256 keys where all are in use, less in a small network.

use std::net::{IpAddr, Ipv6Addr};

use linkweir_sketch::{LogLinear, TopEntry, TopK};

use crate::api::Word as _;
use crate::figures::{Counts as _, Keyed as _};
use crate::kind::{ADDRESS_BYTES, KeyTable, Kind};
use crate::text::clean;

/// What was seen from `start` to `end`.
#[derive(Debug)]
pub(super) struct Part<K: Kind> {
    /// Nanoseconds since the epoch, capture time.
    pub(super) start: u64,
    pub(super) end: u64,
    /// In the order of [`Kind::Of`].
    pub(super) distributions: Vec<LogLinear>,
    /// In the order of [`Kind::By`].
    pub(super) tables: Vec<TopK<K::Keyed>>,
}

/// An address as a key: IPv4 and IPv6 in one form.
pub(super) const fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// An address and a port as a key.
pub(super) fn socket_key(address: IpAddr, port: u16) -> [u8; ADDRESS_BYTES] {
    let mut key = [0; ADDRESS_BYTES];
    if let Some((first, last)) = key.split_first_chunk_mut::<16>() {
        *first = octets(address);
        last.copy_from_slice(&port.to_be_bytes());
    }
    key
}

/// The text of a key of [`octets`] or [`socket_key`].
pub(super) fn address_text(key: &[u8]) -> String {
    let Some((octets, port)) = key.split_first_chunk::<16>() else {
        return String::new();
    };
    let address = IpAddr::V6(Ipv6Addr::from(*octets)).to_canonical();
    match port.first_chunk::<2>() {
        Some(port) => std::net::SocketAddr::new(address, u16::from_be_bytes(*port)).to_string(),
        None => address.to_string(),
    }
}

impl<K: Kind> Part<K> {
    pub(super) fn new(start: u64, max_keys: usize) -> Self {
        Self {
            start,
            end: start,
            distributions: K::Of::ALL.iter().map(|_| LogLinear::new()).collect(),
            tables: K::By::ALL
                .iter()
                .map(|by| merged::<K>(*by, max_keys))
                .collect(),
        }
    }

    /// Takes in the distributions of an interval; its records are in the tables already.
    pub(super) fn take(&mut self, counts: &K::Counts) {
        for (mine, values) in self.distributions.iter_mut().zip(counts.distributions()) {
            mine.merge(values);
        }
    }

    /// Adds another part; the guarantees of the tables hold for both together.
    pub(super) fn merge(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        for (mine, theirs) in self.distributions.iter_mut().zip(&other.distributions) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.tables.iter_mut().zip(&other.tables) {
            mine.merge(theirs);
        }
    }

    pub(super) fn table(&self, by: K::By) -> Option<&TopK<K::Keyed>> {
        self.tables.get(by.position())
    }
}

/// What is to be known of the tables of `by`.
pub(super) fn table<K: Kind>(by: K::By) -> Option<&'static KeyTable> {
    K::TABLES.get(by.position())
}

/// An empty table for merging the tables of `by` into.
pub(super) fn merged<K: Kind>(by: K::By, max_keys: usize) -> TopK<K::Keyed> {
    TopK::new(max_keys, table::<K>(by).map_or(0, |table| table.key_bytes))
}

/// The first `n` rows of a table in the order of `sort`; equals in byte order of their keys.
pub(super) fn rows<K: Kind>(
    table: &TopK<K::Keyed>,
    by: K::By,
    sort: K::Sort,
    n: usize,
) -> Vec<K::Row> {
    let mut entries: Vec<(u64, TopEntry<'_, K::Keyed>)> = table
        .entries()
        .map(|entry| (K::rank(&entry, sort), entry))
        .collect();
    entries.sort_unstable_by(|(a_rank, a), (b_rank, b)| {
        (b_rank, b.count)
            .cmp(&(a_rank, a.count))
            .then_with(|| a.key.cmp(b.key))
    });
    entries.truncate(n);
    entries
        .into_iter()
        .map(|(_, entry)| K::Keyed::row(key::<K>(by, &entry), &entry))
        .collect()
}

/// The text of a key.
fn key<K: Kind>(by: K::By, entry: &TopEntry<'_, K::Keyed>) -> String {
    let mut key = if table::<K>(by).is_some_and(|table| table.has_addresses) {
        address_text(entry.key)
    } else {
        clean(entry.key)
    };
    if entry.is_truncated {
        key.push_str("...");
    }
    key
}
