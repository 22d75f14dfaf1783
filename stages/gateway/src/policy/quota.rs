//! What single clients may use under a rule: bytes an hour or a day, new connections a second.
//!
//! A rule with a quota matches a client until that is used up; then the rules behind it decide. The table of clients is shared by all
//! workers and bounded: the client that was seen longest ago is forgotten.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use linkweir_engine::hash::flow_hash;
use linkweir_table::Table;
use linkweir_wire::Timestamp;

/// Rules that may have a quota.
pub const MAX_QUOTAS: usize = 64;
/// Clients and rules that are remembered.
const CLIENTS: usize = 65_536;
const SECOND_NS: u64 = 1_000_000_000;

/// What a client may use under a rule. An IPv6 client is its /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Its place among the quotas of the policy, below [`MAX_QUOTAS`].
    pub index: u8,
    /// IP bytes of both directions, and in how many nanoseconds since the first of them.
    pub bytes: Option<(u64, u64)>,
    /// New connections in a second.
    pub connections: Option<u32>,
}

impl Quota {
    pub(crate) const fn bit(&self) -> u64 {
        1 << (self.index as u64 % MAX_QUOTAS as u64)
    }

    /// Bytes of a connection after which they are counted for its client: what goes beyond a quota is at most so much of each.
    pub(crate) fn step(&self) -> u64 {
        self.bytes
            .map_or(u64::MAX, |(bytes, _)| (bytes / 16).clamp(1, 16 << 10))
    }
}

/// One client under one rule.
#[derive(Debug, Clone, Copy)]
struct Usage {
    rule: u16,
    client: IpAddr,
    /// Since when, and how many bytes.
    since: Timestamp,
    bytes: u64,
    /// The last second in which connections began, and how many.
    second: u64,
    connections: u32,
}

/// What clients have used.
#[derive(Debug)]
pub struct QuotaTable(Mutex<State>);

#[derive(Debug)]
struct State {
    clients: Table<Usage>,
    counts: QuotaCounts,
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaCounts {
    /// Clients that are remembered now, each once for every rule.
    pub clients: u64,
    /// How often a client has used up its bytes.
    pub used_up: u64,
    /// Connections beyond a client's new ones a second.
    pub too_many: u64,
    /// Clients that were forgotten before their time because the table was full.
    pub forgotten: u64,
}

impl Default for QuotaTable {
    fn default() -> Self {
        Self::with_capacity(CLIENTS)
    }
}

impl QuotaTable {
    fn with_capacity(clients: usize) -> Self {
        Self(Mutex::new(State {
            clients: Table::with_capacity(clients),
            counts: QuotaCounts::default(),
        }))
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> QuotaCounts {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        QuotaCounts {
            clients: state.clients.len() as u64,
            ..state.counts
        }
    }

    /// Works on what a client has used under a rule, of this hour or day.
    fn with<T>(
        &self,
        rule: u16,
        client: IpAddr,
        (quota, now): (&Quota, Timestamp),
        work: impl FnOnce(&mut Usage, &mut QuotaCounts) -> T,
    ) -> Option<T> {
        let client = client_network(client);
        let key = (client, rule);
        let hash = flow_hash(key, key);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { clients, counts } = &mut *state;
        let found = clients.find(hash, |usage| (usage.client, usage.rule) == key);
        let id = if let Some(id) = found {
            clients.refresh(id);
            id
        } else {
            if clients.is_full()
                && let Some(oldest) = clients.oldest().map(|(id, _)| id)
            {
                clients.remove(oldest);
                counts.forgotten += 1;
            }
            let usage = Usage {
                rule,
                client,
                since: now,
                bytes: 0,
                second: 0,
                connections: 0,
            };
            clients.insert(hash, usage).ok()?
        };
        let usage = clients.get_mut(id)?;
        if quota
            .bytes
            .is_some_and(|(_, period)| now.nanos_since(usage.since) >= period)
        {
            (usage.since, usage.bytes) = (now, 0);
        }
        Some(work(usage, counts))
    }

    /// Whether a client has used up its bytes.
    pub(crate) fn is_used_up(
        &self,
        rule: u16,
        client: IpAddr,
        quota: &Quota,
        now: Timestamp,
    ) -> bool {
        let Some((most, _)) = quota.bytes else {
            return false;
        };
        let used = self.with(rule, client, (quota, now), |usage, _| usage.bytes >= most);
        used.unwrap_or(false)
    }

    /// Adds bytes of a client; whether it has used up what it may.
    pub(crate) fn add(
        &self,
        rule: u16,
        client: IpAddr,
        (quota, now): (&Quota, Timestamp),
        bytes: u64,
    ) -> bool {
        let Some((most, _)) = quota.bytes else {
            return false;
        };
        let used = self.with(rule, client, (quota, now), |usage, counts| {
            let was_below = usage.bytes < most;
            usage.bytes = usage.bytes.saturating_add(bytes);
            let is_used_up = usage.bytes >= most;
            counts.used_up += u64::from(was_below && is_used_up);
            is_used_up
        });
        used.unwrap_or(false)
    }

    /// A client opens a connection; whether that is one too many in this second.
    pub(crate) fn opens(&self, rule: u16, client: IpAddr, quota: &Quota, now: Timestamp) -> bool {
        let Some(most) = quota.connections else {
            return false;
        };
        let second = now.as_nanos() / SECOND_NS;
        let over = self.with(rule, client, (quota, now), |usage, counts| {
            if usage.second != second {
                (usage.second, usage.connections) = (second, 0);
            }
            usage.connections = usage.connections.saturating_add(1);
            let is_over = usage.connections > most;
            counts.too_many += u64::from(is_over);
            is_over
        });
        over.unwrap_or(false)
    }
}

/// The address that counts for a client: of IPv6 its /64.
#[must_use]
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Quota = Quota {
        index: 0,
        bytes: Some((1000, 3600 * SECOND_NS)),
        connections: Some(2),
    };

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_nanos(seconds * SECOND_NS)
    }

    #[test]
    fn a_client_uses_up_its_hour_and_gets_the_next() {
        let table = QuotaTable::default();
        let (client, other) = (ip("10.0.0.1"), ip("10.0.0.2"));
        assert!(!table.add(1, client, (&HOUR, at(10)), 999));
        assert!(!table.is_used_up(1, client, &HOUR, at(11)));
        assert!(table.add(1, client, (&HOUR, at(12)), 1));
        assert!(table.add(1, client, (&HOUR, at(13)), 500));
        assert!(table.is_used_up(1, client, &HOUR, at(3609)));
        assert!(!table.is_used_up(1, other, &HOUR, at(13)));
        assert!(!table.is_used_up(2, client, &HOUR, at(13)));
        assert!(!table.is_used_up(1, client, &HOUR, at(3610)));
        assert_eq!(table.counts().used_up, 1);
    }

    #[test]
    fn connections_are_counted_by_the_second_and_by_prefix() {
        let table = QuotaTable::default();
        let opens = |client: &str, second| table.opens(1, ip(client), &HOUR, at(second));
        assert!(!opens("2001:db8::1", 5) && !opens("2001:db8::2", 5) && opens("2001:db8::3", 5));
        assert!(!opens("2001:db8:0:1::1", 5) && !opens("2001:db8::1", 6));
        assert_eq!(table.counts().too_many, 1);
    }

    #[test]
    fn the_table_is_bounded() {
        let table = QuotaTable::with_capacity(4);
        for number in 0..100_u32 {
            let client = IpAddr::from(std::net::Ipv4Addr::from(number));
            table.add(1, client, (&HOUR, at(1)), 1);
        }
        let counts = table.counts();
        assert!(
            counts.clients <= 4 && counts.clients + counts.forgotten == 100,
            "{counts:?}"
        );
    }
}
