//! Tables over a span of time, from which every window is merged.
//!
//! Memory: four tables of at most `max_keys` keys with a histogram of 1 KiB each, and one histogram of
//! at most 440 KiB; 1.3 MB for 256 keys where all are in use, less in a small network.

use std::net::{IpAddr, Ipv6Addr};

use linkweir_record::{HttpRow, HttpState};
use linkweir_sketch::{Coarse, LogLinear, Payload, TopEntry, TopK};

use crate::api::{By, Sort, TopRow};
use crate::text::clean;
use crate::url_template::MAX_TEMPLATE_BYTES;

/// Longest host name that is told from others (RFC 1035: 253, a port, and some).
const HOST_BYTES: usize = 128;
const ADDRESS_BYTES: usize = 18;

/// What is kept with a key.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyStats {
    errors_4xx: u64,
    errors_5xx: u64,
    unanswered: u64,
    bytes: u64,
    response_time: Coarse,
}

impl Payload for KeyStats {
    fn merge(&mut self, other: &Self) {
        self.errors_4xx += other.errors_4xx;
        self.errors_5xx += other.errors_5xx;
        self.unanswered += other.unanswered;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.response_time.merge(&other.response_time);
    }

    fn reset(&mut self) {
        (self.errors_4xx, self.errors_5xx) = (0, 0);
        (self.unanswered, self.bytes) = (0, 0);
        self.response_time.reset();
    }
}

impl KeyStats {
    fn record(&mut self, row: &HttpRow, response_time: Option<u64>) {
        match row.status_code {
            Some(400..=499) => self.errors_4xx += 1,
            Some(500..=599) => self.errors_5xx += 1,
            _ => {}
        }
        self.unanswered += u64::from(row.state == HttpState::Unanswered);
        let bytes = row
            .request_bytes
            .unwrap_or(0)
            .saturating_add(row.response_bytes.unwrap_or(0));
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(time) = response_time {
            self.response_time.record(time);
        }
    }
}

/// What was seen in a span of time.
#[derive(Debug)]
pub(super) struct Part {
    /// Nanoseconds since the epoch, capture time.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) response_time: LogLinear,
    hosts: TopK<KeyStats>,
    servers: TopK<KeyStats>,
    urls: TopK<KeyStats>,
    clients: TopK<KeyStats>,
}

/// The texts of a transaction as the tables count them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys<'a> {
    pub(super) host: &'a [u8],
    pub(super) url: &'a [u8],
}

const fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn address_text(key: &[u8]) -> String {
    let Some((octets, port)) = key.split_first_chunk::<16>() else {
        return String::new();
    };
    let address = IpAddr::V6(Ipv6Addr::from(*octets)).to_canonical();
    match port.first_chunk::<2>() {
        Some(port) => std::net::SocketAddr::new(address, u16::from_be_bytes(*port)).to_string(),
        None => address.to_string(),
    }
}

impl Part {
    pub(super) fn new(start: u64, max_keys: usize) -> Self {
        Self {
            start,
            end: start,
            response_time: LogLinear::new(),
            hosts: TopK::new(max_keys, HOST_BYTES),
            servers: TopK::new(max_keys, ADDRESS_BYTES),
            urls: TopK::new(max_keys, MAX_TEMPLATE_BYTES),
            clients: TopK::new(max_keys, ADDRESS_BYTES),
        }
    }

    /// Counts a transaction that has a request. Its response time goes to the keys only: that of all
    /// transactions is merged from the intervals.
    pub(super) fn record(&mut self, row: &HttpRow, keys: Keys<'_>, response_time: Option<u64>) {
        let mut server = [0; ADDRESS_BYTES];
        if let Some((address, port)) = server.split_first_chunk_mut::<16>() {
            *address = octets(row.server_ip);
            port.copy_from_slice(&row.server_port.to_be_bytes());
        }
        for stats in [
            self.hosts.record(keys.host),
            self.urls.record(keys.url),
            self.servers.record(&server),
            self.clients.record(&octets(row.client_ip)),
        ]
        .into_iter()
        .flatten()
        {
            stats.record(row, response_time);
        }
    }

    /// Adds a part of another span; the guarantees of the tables hold for both together.
    pub(super) fn merge(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.response_time.merge(&other.response_time);
        for by in By::ALL {
            self.table_mut(*by).merge(other.table(*by));
        }
    }

    pub(super) const fn table(&self, by: By) -> &TopK<KeyStats> {
        match by {
            By::Host => &self.hosts,
            By::Server => &self.servers,
            By::Url => &self.urls,
            By::Client => &self.clients,
        }
    }

    const fn table_mut(&mut self, by: By) -> &mut TopK<KeyStats> {
        match by {
            By::Host => &mut self.hosts,
            By::Server => &mut self.servers,
            By::Url => &mut self.urls,
            By::Client => &mut self.clients,
        }
    }
}

/// An empty table for merging the tables of `by` into.
pub(super) fn merged(by: By, max_keys: usize) -> TopK<KeyStats> {
    let key_bytes = match by {
        By::Host => HOST_BYTES,
        By::Url => MAX_TEMPLATE_BYTES,
        By::Server | By::Client => ADDRESS_BYTES,
    };
    TopK::new(max_keys, key_bytes)
}

/// The first `n` rows of a table in the order of `sort`; equals in byte order of their keys.
pub(super) fn rows(table: &TopK<KeyStats>, by: By, sort: Sort, n: usize) -> Vec<TopRow> {
    let rank = |entry: &TopEntry<'_, KeyStats>| {
        let stats = entry.payload;
        match sort {
            Sort::Requests => entry.count,
            Sort::Errors => stats.errors_4xx + stats.errors_5xx,
            Sort::P95 => stats.response_time.quantile(950).unwrap_or(0),
            Sort::Bytes => stats.bytes,
            Sort::Unanswered => stats.unanswered,
        }
    };
    let mut entries: Vec<_> = table.entries().map(|entry| (rank(&entry), entry)).collect();
    entries.sort_unstable_by(|(a_rank, a), (b_rank, b)| {
        (b_rank, b.count)
            .cmp(&(a_rank, a.count))
            .then_with(|| a.key.cmp(b.key))
    });
    entries.truncate(n);
    entries
        .into_iter()
        .map(|(_, entry)| row(by, &entry))
        .collect()
}

fn row(by: By, entry: &TopEntry<'_, KeyStats>) -> TopRow {
    let stats = entry.payload;
    let mut key = match by {
        By::Host | By::Url => clean(entry.key),
        By::Server | By::Client => address_text(entry.key),
    };
    if entry.is_truncated {
        key.push_str("...");
    }
    TopRow {
        key,
        requests: entry.count,
        errors_4xx: stats.errors_4xx,
        errors_5xx: stats.errors_5xx,
        unanswered: stats.unanswered,
        bytes: stats.bytes,
        p50: stats.response_time.quantile(500),
        p95: stats.response_time.quantile(950),
        p99: stats.response_time.quantile(990),
        max: stats.response_time.max(),
    }
}
