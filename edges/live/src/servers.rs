//! Response-time histograms by server and status code, for `/metrics`.
//!
//! A scraper needs series that never go back, so a server keeps its series for the whole run: the
//! first [`MAX_SERVERS`] servers have their own, all others share `other`; likewise the first
//! [`MAX_CODES`] codes of a server. Memory: at most 65 * 13 histograms of 160 bytes, 140 KiB.
//!
//! Cost: a hash look-up and a walk over a few codes and bounds per response.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use crate::exposition::Buckets;

/// A histogram of response times.
pub(super) type Histogram = Buckets<16>;

/// Servers with series of their own.
pub(crate) const MAX_SERVERS: usize = 64;
/// Codes of a server with series of their own.
const MAX_CODES: usize = 12;

/// Upper bounds of the buckets, nanoseconds, and as Prometheus writes them in seconds.
pub(super) const BOUNDS: [(u64, &str); 16] = [
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
];

/// The histograms of one server; the code 0 stands for all codes without one of their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Codes(Vec<(u16, Histogram)>);

impl Codes {
    fn record(&mut self, code: u16, nanos: u64) {
        if let Some((_, histogram)) = self.0.iter_mut().find(|(known, _)| *known == code) {
            return histogram.record(&BOUNDS, nanos);
        }
        let own = self.0.iter().filter(|(code, _)| *code != 0).count();
        if code != 0 && own >= MAX_CODES {
            return self.record(0, nanos);
        }
        let mut histogram = Histogram::default();
        histogram.record(&BOUNDS, nanos);
        self.0.push((code, histogram));
    }

    fn merge(&mut self, code: u16, theirs: &Histogram) {
        let own = self.0.iter().filter(|(code, _)| *code != 0).count();
        let is_known = self.0.iter().any(|(known, _)| *known == code);
        let code = if is_known || own < MAX_CODES { code } else { 0 };
        match self.0.iter_mut().find(|(known, _)| *known == code) {
            Some((_, histogram)) => histogram.merge(theirs),
            None => self.0.push((code, *theirs)),
        }
    }

    /// Codes whose histograms have grown since `earlier`, and by what.
    fn grown<'a>(
        &'a self,
        earlier: Option<&'a Self>,
    ) -> impl Iterator<Item = (u16, Histogram)> + 'a {
        self.0.iter().filter_map(move |(code, now)| {
            let mut known = earlier.into_iter().flat_map(|codes| &codes.0);
            let before = known.find(|(known, _)| known == code);
            let grown = before.map_or(*now, |(_, before)| now.since(before));
            (grown.count > 0).then_some((*code, grown))
        })
    }

    /// Codes and their histograms, in the order of the codes.
    pub(crate) fn sorted(&self) -> Vec<(u16, &Histogram)> {
        let mut all: Vec<_> = self.0.iter().map(|(code, h)| (*code, h)).collect();
        all.sort_unstable_by_key(|(code, _)| *code);
        all
    }
}

/// The histograms of all servers.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    at: HashMap<(IpAddr, u16), usize>,
    list: Vec<(SocketAddr, Codes)>,
    other: Codes,
    /// The server of the last response, and its place.
    last: Option<((IpAddr, u16), usize)>,
}

impl Servers {
    /// Counts a response time.
    pub(crate) fn record(&mut self, server: (IpAddr, u16), code: u16, nanos: u64) {
        if let Some((last, at)) = self.last
            && last == server
            && let Some((_, codes)) = self.list.get_mut(at)
        {
            return codes.record(code, nanos);
        }
        let at = match self.at.get(&server) {
            Some(at) => *at,
            None if self.list.len() < MAX_SERVERS => {
                let address = SocketAddr::new(server.0.to_canonical(), server.1);
                self.list.push((address, Codes::default()));
                self.at.insert(server, self.list.len() - 1);
                self.list.len() - 1
            }
            None => return self.other.record(code, nanos),
        };
        self.last = Some((server, at));
        if let Some((_, codes)) = self.list.get_mut(at) {
            codes.record(code, nanos);
        }
    }

    /// Adds the histogram of a server and code of another run; `None` are servers without their own.
    pub(super) fn merge(&mut self, server: Option<SocketAddr>, code: u16, theirs: &Histogram) {
        let Some(server) = server else {
            return self.other.merge(code, theirs);
        };
        let key = (server.ip().to_canonical(), server.port());
        let at = match self.at.get(&key) {
            Some(at) => *at,
            None if self.list.len() < MAX_SERVERS => {
                self.list
                    .push((SocketAddr::new(key.0, key.1), Codes::default()));
                self.at.insert(key, self.list.len() - 1);
                self.list.len() - 1
            }
            None => return self.other.merge(code, theirs),
        };
        if let Some((_, codes)) = self.list.get_mut(at) {
            codes.merge(code, theirs);
        }
    }

    /// Histograms that have grown since `earlier`, an older state of the same run, and by what.
    pub(super) fn since(&self, earlier: &Self) -> Vec<(Option<SocketAddr>, u16, Histogram)> {
        let mut grown = Vec::new();
        for (at, (server, codes)) in self.list.iter().enumerate() {
            let before = earlier.list.get(at).map(|(_, codes)| codes);
            let codes = codes.grown(before);
            grown.extend(codes.map(|(code, histogram)| (Some(*server), code, histogram)));
        }
        let others = self.other.grown(Some(&earlier.other));
        grown.extend(others.map(|(code, histogram)| (None, code, histogram)));
        grown
    }

    /// Servers, by address, and `None` for all others together.
    pub(crate) fn sorted(&self) -> Vec<(Option<SocketAddr>, &Codes)> {
        let mut all: Vec<_> = self
            .list
            .iter()
            .map(|(address, codes)| (Some(*address), codes))
            .collect();
        all.sort_unstable_by_key(|(address, _)| *address);
        if !self.other.0.is_empty() {
            all.push((None, &self.other));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn bounds_are_inclusive_and_what_they_say() {
        let mut histogram = Histogram::default();
        for nanos in [
            0,
            100_000,
            100_001,
            10_000_000_000,
            10_000_000_001,
            u64::MAX,
        ] {
            histogram.record(&BOUNDS, nanos);
        }
        assert_eq!(histogram.buckets[0], 2);
        assert_eq!(histogram.buckets[1], 1);
        assert_eq!(histogram.buckets[15], 1);
        assert_eq!(histogram.count, 6);
        for (nanos, seconds) in BOUNDS {
            let seconds: f64 = seconds.parse().unwrap();
            assert!((seconds * 1e9 - nanos as f64).abs() < 1e-3);
        }
    }

    #[test]
    fn servers_and_codes_are_bounded_and_nothing_is_lost() {
        let mut servers = Servers::default();
        for n in 0..1000_u32 {
            for code in 200..230 {
                servers.record((Ipv4Addr::from(n).into(), 80), code, 1000);
            }
        }
        let all = servers.sorted();
        assert_eq!(all.len(), MAX_SERVERS + 1);
        assert!(
            all.iter()
                .all(|(_, codes)| codes.sorted().len() == MAX_CODES + 1)
        );
        let count: u64 = all
            .iter()
            .flat_map(|(_, codes)| codes.sorted())
            .map(|(_, h)| h.count)
            .sum();
        assert_eq!(count, 30_000);
    }
}
