//! Tables over a part of the run, from which every window is merged.
//!
//! Memory: four tables (with a database of countries and AS numbers, eight) of at most `max_keys` keys with a histogram of 1 KiB each, and histograms of
//! at most 440 KiB; 1.3 MB for 256 keys where all are in use, less in a small network.

use std::net::{IpAddr, Ipv6Addr};

use linkweir_record::Place;
use linkweir_sketch::{LogLinear, Payload, TopEntry, TopK};

use crate::api::Word as _;
use crate::figures::{Counts as _, Keyed as _};
use crate::kind::{ADDRESS_BYTES, KeyShape, KeyTable, Kind};
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

/// The text of a key of an autonomous system: `AS64500`.
fn system_text(key: &[u8]) -> String {
    let number = key
        .first_chunk::<4>()
        .map(|bytes| u32::from_be_bytes(*bytes));
    number.map_or_else(String::new, |number| format!("AS{number}"))
}

/// Counts `times` under the countries and systems of client and server, in tables in the order client's country, server's
/// country, client's system, server's system; gives what is kept with those that are known.
pub(super) fn count_places<P: Payload>(
    places: Option<&[Place; 2]>,
    tables: &mut [TopK<P>],
    times: u64,
    mut count: impl FnMut(&mut P),
) {
    let (
        Some([client, server]),
        [
            client_countries,
            server_countries,
            client_systems,
            server_systems,
        ],
    ) = (places, tables)
    else {
        return;
    };
    for (place, countries, systems) in [
        (client, client_countries, client_systems),
        (server, server_countries, server_systems),
    ] {
        let country = place.country_code();
        let country = country.and_then(|code| countries.record_n(&code, times));
        let number = place.as_number();
        let system = number.and_then(|asn| systems.record_n(&asn.to_be_bytes(), times));
        country.into_iter().chain(system).for_each(&mut count);
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

    /// Whether it is known of an address where it is.
    pub(super) fn has_places(&self) -> bool {
        let mut tables = K::TABLES.iter().zip(&self.tables);
        tables.any(|(about, table)| about.needs_places() && !table.is_empty())
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
    let mut key = match table::<K>(by).map(|table| table.shape) {
        Some(KeyShape::Address) => address_text(entry.key),
        Some(KeyShape::System) => system_text(entry.key),
        Some(KeyShape::Name | KeyShape::Country) | None => clean(entry.key),
    };
    if entry.is_truncated {
        key.push_str("...");
    }
    key
}
