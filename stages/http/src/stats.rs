//! What a run counted: the `http` key of the summary.

use linkweir_sketch::{BoundedCounts, LogLinear};

/// Methods that are counted by name; further ones are counted together.
const MAX_METHODS: usize = 64;

/// Methods that are nearly all of all traffic: counted without a search.
const COMMON: [&[u8]; 5] = [b"GET", b"POST", b"HEAD", b"PUT", b"OPTIONS"];

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
    /// Requests of the most common methods, in the order of [`COMMON`].
    common: [u64; COMMON.len()],
    /// Requests of other methods.
    methods: BoundedCounts,
    /// Responses by status code, 0 to 999.
    status_codes: Box<[u64; 1000]>,
    /// Response times of all transactions, nanoseconds.
    pub response_time: LogLinear,
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
            common: [0; COMMON.len()],
            methods: BoundedCounts::new(MAX_METHODS),
            status_codes: Box::new([0; 1000]),
            response_time: LogLinear::default(),
        }
    }
}

impl HttpStats {
    /// Adds what another shard counted.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.responses += other.responses;
        self.transactions += other.transactions;
        self.unanswered += other.unanswered;
        self.orphans += other.orphans;
        self.interim_responses += other.interim_responses;
        self.retransmitted_requests += other.retransmitted_requests;
        self.retransmitted_responses += other.retransmitted_responses;
        self.truncated_heads += other.truncated_heads;
        self.malformed_heads += other.malformed_heads;
        self.table_full += other.table_full;
        self.filtered += other.filtered;
        for (mine, theirs) in self.common.iter_mut().zip(other.common) {
            *mine += theirs;
        }
        self.methods.merge(&other.methods);
        for (mine, theirs) in self.status_codes.iter_mut().zip(*other.status_codes) {
            *mine += theirs;
        }
        self.response_time.merge(&other.response_time);
    }

    /// Counts a request with this method.
    #[inline]
    pub fn count_method(&mut self, method: &[u8]) {
        for (name, count) in COMMON.iter().zip(&mut self.common) {
            if method == *name {
                *count += 1;
                return;
            }
        }
        self.methods.record(method);
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
        if let Some(count) = self.status_codes.get_mut(usize::from(code)) {
            *count += 1;
        }
    }

    /// Status codes that occurred, rising, with their counts.
    pub fn status_codes(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        (0_u16..)
            .zip(self.status_codes.iter().copied())
            .filter(|(_, count)| *count > 0)
    }
}
