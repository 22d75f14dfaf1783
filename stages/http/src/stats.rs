//! What a run counted: the `http` key of the summary.

use linkweir_keys::ConnectionCounters;
use linkweir_record::Source;
use linkweir_sketch::{BoundedCounts, LogLinear};

use crate::events::StreamStats;

/// Methods that are counted by name; further ones are counted together.
const MAX_METHODS: usize = 64;

/// Methods that are nearly all of all traffic: counted without a search.
const COMMON: [&[u8]; 5] = [b"GET", b"POST", b"HEAD", b"PUT", b"OPTIONS"];

/// Counters that stand for themselves.
const COUNTERS: usize = 31;

/// Exact counters of all traffic, whatever the filters let through. Everything merges by addition.
#[derive(Debug, Clone)]
pub struct HttpStats {
    /// Requests, each counted once.
    pub requests: u64,
    /// Responses, interim ones included, each counted once.
    pub responses: u64,
    /// Requests paired with their final response.
    pub transactions: u64,
    /// Requests that left without a response.
    pub unanswered: u64,
    /// Final responses that left without a request.
    pub orphans: u64,
    /// 1xx responses other than 101.
    pub interim_responses: u64,
    /// Requests seen again.
    pub retransmitted_requests: u64,
    /// Responses seen again.
    pub retransmitted_responses: u64,
    /// Heads of which a part is missing.
    pub truncated_heads: u64,
    /// What began like a head and is none: a broken start line, or text that looks like one.
    pub malformed_heads: u64,
    /// Messages that left early because the table was full.
    pub table_full: u64,
    /// Records that the filters held back.
    pub filtered: u64,
    /// Connections of HTTP/2 and TLS that were followed.
    pub followed: u64,
    /// Of these, connections that left early because there were too many, or they held too much.
    pub followed_evicted: u64,
    /// Gaps in them that were not filled.
    pub followed_gaps: u64,
    /// Records of TLS and packets of QUIC that were not decrypted, of connections of which others were: their secret is
    /// missing or another.
    pub refused_records: u64,
    /// Frames and header blocks of HTTP/2 that no receiver takes.
    pub bad_frames: u64,
    /// Connections of TLS without a secret that opens them.
    pub undecrypted: u64,
    /// Transactions of which names may be unknown: they were joined late, or bytes of them are missing.
    pub unknown_names: u64,
    /// Records of HTTP/1.0.
    pub of_http_1_0: u64,
    /// Records of HTTP/1.1, and of further versions that begin with 1.
    pub of_http_1_1: u64,
    /// Records of HTTP/2.
    pub of_http_2: u64,
    /// Records of HTTP/3.
    pub of_http_3: u64,
    /// Records that were read in clear.
    pub of_clear: u64,
    /// Records that were read in TLS with keys.
    pub of_keys: u64,
    /// Connections of TLS of which transactions were estimated.
    pub estimated_connections: u64,
    /// Of these, connections that left early because there were too many.
    pub estimates_evicted: u64,
    /// Estimates without a doubt.
    pub estimated_exact: u64,
    /// Estimates that are likely.
    pub estimated_likely: u64,
    /// Estimates without a response time: more than one thing may have happened.
    pub estimated_cannot_tell: u64,
    /// Records that were estimated.
    pub of_estimate: u64,
    /// Requests of the most common methods, in the order of [`COMMON`].
    common: [u64; COMMON.len()],
    /// Requests of other methods.
    methods: BoundedCounts,
    /// Responses by status code, 0 to 999.
    status_codes: Box<[u64; 1000]>,
    /// Response times of all transactions, nanoseconds.
    pub response_time: LogLinear,
    /// Response times that were estimated, nanoseconds.
    pub estimated_time: LogLinear,
    /// Responses that are streams of events.
    pub streams: StreamStats,
}

impl Default for HttpStats {
    fn default() -> Self {
        Self {
            requests: 0,
            responses: 0,
            transactions: 0,
            unanswered: 0,
            orphans: 0,
            interim_responses: 0,
            retransmitted_requests: 0,
            retransmitted_responses: 0,
            truncated_heads: 0,
            malformed_heads: 0,
            table_full: 0,
            filtered: 0,
            followed: 0,
            followed_evicted: 0,
            followed_gaps: 0,
            refused_records: 0,
            bad_frames: 0,
            undecrypted: 0,
            unknown_names: 0,
            of_http_1_0: 0,
            of_http_1_1: 0,
            of_http_2: 0,
            of_http_3: 0,
            of_clear: 0,
            of_keys: 0,
            estimated_connections: 0,
            estimates_evicted: 0,
            estimated_exact: 0,
            estimated_likely: 0,
            estimated_cannot_tell: 0,
            of_estimate: 0,
            common: [0; COMMON.len()],
            methods: BoundedCounts::new(MAX_METHODS),
            status_codes: Box::new([0; 1000]),
            response_time: LogLinear::default(),
            estimated_time: LogLinear::default(),
            streams: StreamStats::default(),
        }
    }
}

impl HttpStats {
    /// Adds what became of the records of a connection with TLS.
    pub(crate) const fn count_secrets(&mut self, counters: ConnectionCounters) {
        let unopened = counters.without_secret + counters.refused;
        if counters.opened > 0 {
            self.refused_records += unopened;
        } else if unopened > 0 {
            self.undecrypted += 1;
        }
    }

    /// Adds what another shard counted.
    pub fn merge(&mut self, other: &Self) {
        for ((_, mine), (_, theirs)) in self.counters_mut().into_iter().zip(other.counters()) {
            *mine = mine.saturating_add(theirs);
        }
        for (mine, theirs) in self.common.iter_mut().zip(other.common) {
            *mine = mine.saturating_add(theirs);
        }
        self.methods.merge(&other.methods);
        for (mine, theirs) in self.status_codes.iter_mut().zip(*other.status_codes) {
            *mine = mine.saturating_add(theirs);
        }
        self.response_time.merge(&other.response_time);
        self.estimated_time.merge(&other.estimated_time);
        self.streams.merge(&other.streams);
    }

    /// How many of the counters, the first ones, were there from the first version on.
    pub const FIRST_COUNTERS: usize = 12;

    /// The plain counters by the names of their fields; later ones stand behind those that were there before.
    #[must_use]
    pub const fn counters(&self) -> [(&'static str, u64); COUNTERS] {
        [
            ("requests", self.requests),
            ("responses", self.responses),
            ("transactions", self.transactions),
            ("unanswered", self.unanswered),
            ("orphans", self.orphans),
            ("interim_responses", self.interim_responses),
            ("retransmitted_requests", self.retransmitted_requests),
            ("retransmitted_responses", self.retransmitted_responses),
            ("truncated_heads", self.truncated_heads),
            ("malformed_heads", self.malformed_heads),
            ("table_full", self.table_full),
            ("filtered", self.filtered),
            ("followed", self.followed),
            ("followed_evicted", self.followed_evicted),
            ("followed_gaps", self.followed_gaps),
            ("refused_records", self.refused_records),
            ("bad_frames", self.bad_frames),
            ("undecrypted", self.undecrypted),
            ("unknown_names", self.unknown_names),
            ("of_http_1_0", self.of_http_1_0),
            ("of_http_1_1", self.of_http_1_1),
            ("of_http_2", self.of_http_2),
            ("of_clear", self.of_clear),
            ("of_keys", self.of_keys),
            ("of_http_3", self.of_http_3),
            ("estimated_connections", self.estimated_connections),
            ("estimates_evicted", self.estimates_evicted),
            ("estimated_exact", self.estimated_exact),
            ("estimated_likely", self.estimated_likely),
            ("estimated_cannot_tell", self.estimated_cannot_tell),
            ("of_estimate", self.of_estimate),
        ]
    }

    /// The same in the same order, to be written.
    pub const fn counters_mut(&mut self) -> [(&'static str, &mut u64); COUNTERS] {
        [
            ("requests", &mut self.requests),
            ("responses", &mut self.responses),
            ("transactions", &mut self.transactions),
            ("unanswered", &mut self.unanswered),
            ("orphans", &mut self.orphans),
            ("interim_responses", &mut self.interim_responses),
            ("retransmitted_requests", &mut self.retransmitted_requests),
            ("retransmitted_responses", &mut self.retransmitted_responses),
            ("truncated_heads", &mut self.truncated_heads),
            ("malformed_heads", &mut self.malformed_heads),
            ("table_full", &mut self.table_full),
            ("filtered", &mut self.filtered),
            ("followed", &mut self.followed),
            ("followed_evicted", &mut self.followed_evicted),
            ("followed_gaps", &mut self.followed_gaps),
            ("refused_records", &mut self.refused_records),
            ("bad_frames", &mut self.bad_frames),
            ("undecrypted", &mut self.undecrypted),
            ("unknown_names", &mut self.unknown_names),
            ("of_http_1_0", &mut self.of_http_1_0),
            ("of_http_1_1", &mut self.of_http_1_1),
            ("of_http_2", &mut self.of_http_2),
            ("of_clear", &mut self.of_clear),
            ("of_keys", &mut self.of_keys),
            ("of_http_3", &mut self.of_http_3),
            ("estimated_connections", &mut self.estimated_connections),
            ("estimates_evicted", &mut self.estimates_evicted),
            ("estimated_exact", &mut self.estimated_exact),
            ("estimated_likely", &mut self.estimated_likely),
            ("estimated_cannot_tell", &mut self.estimated_cannot_tell),
            ("of_estimate", &mut self.of_estimate),
        ]
    }

    /// Counts a record of this version (major and minor), from here.
    #[inline]
    pub(crate) fn count_record(&mut self, version: (u8, u8), source: Source) {
        match version {
            (1, 0) => self.of_http_1_0 += 1,
            (1, _) => self.of_http_1_1 += 1,
            (3, _) => self.of_http_3 += 1,
            (2, _) => self.of_http_2 += 1,
            // Of what was estimated it may be unknown.
            _ => {}
        }
        let source = match source {
            Source::Clear => &mut self.of_clear,
            Source::Keys => &mut self.of_keys,
            Source::Estimate => &mut self.of_estimate,
        };
        *source += 1;
    }

    /// Counts a request with this method.
    #[inline]
    pub fn count_method(&mut self, method: &[u8]) {
        self.count_methods(method, 1);
    }

    /// Counts `times` requests with this method.
    #[inline]
    pub fn count_methods(&mut self, method: &[u8], times: u64) {
        for (name, count) in COMMON.iter().zip(&mut self.common) {
            if method == *name {
                *count = count.saturating_add(times);
                return;
            }
        }
        self.methods.record_n(method, times);
    }

    /// Counts `times` requests whose methods are not distinguished.
    pub const fn count_other_methods(&mut self, times: u64) {
        self.methods.record_other(times);
    }

    /// Methods that occurred with their counts; those beyond the bound are left out.
    pub fn methods(&self) -> impl Iterator<Item = (&[u8], u64)> + '_ {
        let common = COMMON
            .iter()
            .copied()
            .zip(self.common)
            .filter(|(_, count)| *count > 0);
        common.chain(self.methods.iter())
    }

    /// Requests whose methods were not counted by name.
    #[must_use]
    pub const fn other_methods(&self) -> u64 {
        self.methods.other()
    }

    /// Counts a response with this code.
    #[inline]
    pub fn count_status(&mut self, code: u16) {
        self.count_statuses(code, 1);
    }

    /// Counts `times` responses with this code; whether it is one of three digits at most, which alone
    /// are counted.
    #[inline]
    pub fn count_statuses(&mut self, code: u16, times: u64) -> bool {
        let count = self.status_codes.get_mut(usize::from(code));
        let is_code = count.is_some();
        if let Some(count) = count {
            *count = count.saturating_add(times);
        }
        is_code
    }

    /// Status codes that occurred, rising, with their counts.
    pub fn status_codes(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        (0_u16..)
            .zip(self.status_codes.iter().copied())
            .filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_its_name_and_is_merged() {
        let mut stats = HttpStats::default();
        for ((_, counter), value) in stats.counters_mut().into_iter().zip(1..) {
            *counter = value;
        }
        stats.count_methods(b"GET", 3);
        stats.count_methods(b"BREW", 4);
        stats.count_other_methods(5);
        assert!(stats.count_statuses(999, 6) && !stats.count_statuses(1000, 1));
        // The names are those of the fields.
        let shown = format!("{stats:?}");
        for (name, value) in stats.counters() {
            assert!(shown.contains(&format!("{name}: {value},")), "{name}");
        }
        let mut twice = stats.clone();
        twice.merge(&stats);
        for ((_, sum), (name, value)) in twice.counters().into_iter().zip(stats.counters()) {
            assert_eq!(sum, 2 * value, "{name}");
        }
        let methods: Vec<_> = twice.methods().collect();
        assert_eq!(methods, [(&b"GET"[..], 6), (&b"BREW"[..], 8)]);
        assert_eq!(twice.other_methods(), 10);
        assert_eq!(twice.status_codes().collect::<Vec<_>>(), [(999, 12)]);
    }
}
