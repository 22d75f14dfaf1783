//! Requests of the busiest hosts, for `/metrics`: at most `max` hosts have series, all others share `other`.
//!
//! A series of a scraper must not go back, and hosts that are busy now are not those of yesterday. So a host counts from
//! when its series begins: what came before stays in `other`, where it was counted. Once a minute of capture time a host
//! with more than twice the requests of the quietest one that is shown takes its place. The series of the latter ends; its counts are kept,
//! and go on from where they stood if it comes back, so that none ever goes back and each request is in one series only.
//! At most [`EVER`] times `max` hosts have a series in a run: from then on these alone change places.
//!
//! Memory: 300 bytes a host that ever had a series, and a table of [`EVER`] times `max` candidates. Cost: two look-ups by the
//! host of a request, nothing where `max` is 0.

use std::collections::HashMap;

use linkweir_record::{HttpRow, HttpState};
use linkweir_sketch::TopK;

use crate::http::HOST_BYTES;
use crate::text::clean;

/// Hosts with a series in the whole run, for each that is shown at a time.
const EVER: usize = 8;
/// Hosts that may be shown at a time.
pub(crate) const MAX_HOSTS: usize = 1000;
/// Nanoseconds of capture time between two looks at who is busiest.
const RENEWED_EVERY: u64 = 60_000_000_000;
/// Requests between two looks below which a host takes nobody's place.
const FEWEST: u64 = 20;
/// Who shares the series without a name of its own.
const OTHER: &str = "other";

/// What is counted of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HostCounts {
    pub(crate) requests: u64,
    pub(crate) server_errors: u64,
    pub(crate) unanswered: u64,
    pub(crate) bytes: u64,
    /// Transactions with a response time, and the sum of the times, nanoseconds.
    pub(crate) timed: u64,
    pub(crate) time_ns: u64,
}

impl HostCounts {
    fn record(&mut self, row: &HttpRow) {
        let bytes = [row.request_bytes, row.response_bytes];
        let bytes = bytes.into_iter().flatten().fold(0, u64::saturating_add);
        self.requests += 1;
        self.server_errors += u64::from(matches!(row.status_code, Some(500..=599)));
        self.unanswered += u64::from(row.state == HttpState::Unanswered);
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(time) = row.response_time_ns() {
            self.timed += 1;
            self.time_ns = self.time_ns.saturating_add(time);
        }
    }
}

/// A host that has or had a series.
#[derive(Debug, Clone)]
struct Host {
    label: String,
    is_shown: bool,
    counts: HostCounts,
}

/// The busiest hosts of a run.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    max: usize,
    at: HashMap<Vec<u8>, usize>,
    list: Vec<Host>,
    other: HostCounts,
    /// Requests by host since the last look; `None` before the first request.
    recent: Option<TopK>,
    next_look: u64,
}

impl Hosts {
    /// Of at most `max` hosts at a time.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max: max.min(MAX_HOSTS),
            ..Self::default()
        }
    }

    /// Counts a transaction with a request; `host` is in lower case.
    pub(crate) fn record(&mut self, host: &[u8], row: &HttpRow) {
        if self.max == 0 {
            return;
        }
        let host = host.get(..HOST_BYTES).unwrap_or(host);
        self.look(row.request_ts_ns.unwrap_or_default());
        let candidates = self.max * EVER;
        self.recent
            .get_or_insert_with(|| TopK::new(candidates, HOST_BYTES))
            .record(host);
        let at = match self.at.get(host) {
            Some(at) => Some(*at),
            None if self.list.len() < self.max => self.add(host),
            None => None,
        };
        match at.and_then(|at| self.list.get_mut(at)) {
            Some(host) if host.is_shown => host.counts.record(row),
            _ => self.other.record(row),
        }
    }

    /// Gives a host a series where it may have one: a second one of the same name would spoil the whole scrape.
    fn add(&mut self, host: &[u8]) -> Option<usize> {
        let label = clean(host);
        let is_free = !label.is_empty()
            && label != OTHER
            && self.list.len() < self.max * EVER
            && self.list.iter().all(|known| known.label != label);
        if !is_free {
            return None;
        }
        let at = self.list.len();
        self.list.push(Host {
            label,
            is_shown: true,
            counts: HostCounts::default(),
        });
        self.at.insert(host.to_vec(), at);
        Some(at)
    }

    /// Looks who is busiest, where it is time to. A time stamp far ahead delays no look but its own.
    fn look(&mut self, now: u64) {
        let is_due = now >= self.next_look || self.next_look - now > 2 * RENEWED_EVERY;
        if !is_due {
            return;
        }
        self.next_look = now.saturating_add(RENEWED_EVERY);
        let Some(recent) = self.recent.take() else {
            return;
        };
        let mut shown: Vec<(u64, usize)> = Vec::new();
        let mut counts = HashMap::new();
        let candidates = recent.top(self.max);
        for entry in recent.entries() {
            if let Some(at) = self.at.get(entry.key) {
                counts.insert(*at, entry.count);
            }
        }
        for (at, host) in self.list.iter().enumerate() {
            if host.is_shown {
                shown.push((counts.get(&at).copied().unwrap_or(0), at));
            }
        }
        // The quietest last.
        shown.sort_unstable_by(|a, b| b.cmp(a));
        for entry in candidates {
            // No less than this, whatever the table has mistaken.
            let sure = entry.count.saturating_sub(entry.error);
            let known = self.at.get(entry.key).copied();
            let is_shown = known
                .and_then(|at| self.list.get(at))
                .is_some_and(|host| host.is_shown);
            if is_shown || sure < FEWEST {
                continue;
            }
            let Some((least, quietest)) = shown.last().copied() else {
                break;
            };
            if sure <= least.saturating_mul(2) {
                continue;
            }
            let Some(at) = known.or_else(|| self.add(entry.key)) else {
                continue;
            };
            shown.pop();
            for (at, is_shown) in [(quietest, false), (at, true)] {
                if let Some(host) = self.list.get_mut(at) {
                    host.is_shown = is_shown;
                }
            }
        }
    }

    /// The hosts that are shown, by name, then all others; nothing where none are wanted.
    pub(crate) fn sorted(&self) -> Vec<(&str, HostCounts)> {
        if self.max == 0 {
            return Vec::new();
        }
        let shown = self.list.iter().filter(|host| host.is_shown);
        let mut all: Vec<_> = shown
            .map(|host| (host.label.as_str(), host.counts))
            .collect();
        all.sort_unstable_by_key(|(label, _)| *label);
        all.push((OTHER, self.other));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const S: u64 = 1_000_000_000;

    fn at(second: u64) -> HttpRow {
        HttpRow {
            request_ts_ns: Some(second * S),
            response_ts_ns: Some(second * S + 5),
            status_code: Some(503),
            request_bytes: Some(3),
            ..HttpRow::default()
        }
    }

    fn values(hosts: &Hosts) -> BTreeMap<String, u64> {
        let all = hosts.sorted().into_iter();
        all.map(|(name, counts)| (name.to_owned(), counts.requests))
            .collect()
    }

    #[test]
    fn series_are_bounded_and_none_goes_back() {
        let mut hosts = Hosts::new(3);
        let mut before = BTreeMap::<String, u64>::new();
        let mut ever = BTreeMap::new();
        let mut sent = 0;
        let mut counted = 0;
        // Each two minutes other hosts are busy, among many that nobody asks for twice.
        for second in 0..7200_u64 {
            for n in 0..4 {
                let name = match n {
                    0 => format!("once-{second}.test"),
                    n => format!("host-{}-{n}.test", (second / 120) % 12),
                };
                hosts.record(name.as_bytes(), &at(second));
                sent += 1;
            }
            let now = values(&hosts);
            assert!(now.len() <= 4, "{now:?}");
            for (name, value) in &now {
                let last = ever.insert(name.clone(), *value).unwrap_or(0);
                assert!(*value >= last, "{name}: {last} then {value}");
                // What is missing of a series has not grown either.
                counted += value - last;
            }
            before.clone_from(&now);
        }
        assert_eq!(counted, sent, "each request in one series");
        assert!(ever.len() <= 3 * EVER + 1, "{}", ever.len());
        assert!(ever.len() > 4, "others took their places: {ever:?}");
        assert!(before.keys().any(|name| name.starts_with("host-")));
    }

    #[test]
    fn what_is_counted() {
        let mut hosts = Hosts::new(2);
        hosts.record(b"a.test", &at(1));
        hosts.record(b"a.test", &at(2));
        let mut unanswered = at(3);
        (unanswered.state, unanswered.response_ts_ns) = (HttpState::Unanswered, None);
        unanswered.status_code = None;
        hosts.record(b"a.test", &unanswered);
        let want = HostCounts {
            requests: 3,
            server_errors: 2,
            unanswered: 1,
            bytes: 9,
            timed: 2,
            time_ns: 10,
        };
        assert_eq!(hosts.sorted()[0], ("a.test", want));
    }

    /// Two lines of the same name and labels, and Prometheus refuses the whole scrape.
    #[test]
    fn no_two_series_have_one_name() {
        let mut hosts = Hosts::new(10);
        for name in [&b"other"[..], b"", b"a\n", b"a\\x0a", b"\xff", &[b'x'; 500]] {
            hosts.record(name, &at(1));
        }
        let names: Vec<_> = hosts
            .sorted()
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        let long = "x".repeat(HOST_BYTES);
        assert_eq!(names, ["\\xff", "a\\x0a", &long, "other"]);
        assert_eq!(values(&hosts)["other"], 3);
    }

    #[test]
    fn nothing_is_kept_where_none_are_wanted() {
        let mut hosts = Hosts::new(0);
        hosts.record(b"a.test", &at(1));
        assert!(hosts.sorted().is_empty());
        assert!(hosts.recent.is_none());
    }
}
