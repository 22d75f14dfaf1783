//! What the statistics say of HTTP transactions.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Serialize;

use super::{Percentiles, UnknownWord, Word};

/// What the transactions of an interval, or of a run, came to.
///
/// A transaction counts in the interval in which its fate was known: with its response, or, where
/// none came, when the request left the table. So `requests` = `complete` + `unanswered` and
/// `responses` = `complete` + `orphans` in every interval, and shares are between 0 and 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HttpFigures {
    /// Requests whose fate became known.
    pub requests: u64,
    /// Final responses.
    pub responses: u64,
    /// Pairs of both.
    pub complete: u64,
    /// Requests without a response.
    pub unanswered: u64,
    /// Responses without a request.
    pub orphans: u64,
    /// Retransmitted heads of those transactions.
    pub retransmissions: u64,
    /// Final responses by status code.
    pub codes: BTreeMap<u16, u64>,
    /// Requests by method; more than 32 different ones are `other`.
    pub methods: BTreeMap<String, u64>,
    /// Response times, `None` where no transaction was complete.
    pub response_time_ns: Option<Percentiles>,
}

words! {
    /// What requests are grouped by.
    By {
        /// `Host` field, lower case.
        Host = "host",
        /// Address and port of the server.
        Server = "server",
        /// Host and path with identifiers folded: [`url_template`](fn@crate::url_template).
        Url = "url",
        /// Address of the client.
        Client = "client",
    }
}

words! {
    /// What a table is sorted by, largest first.
    Sort {
        /// Requests.
        Requests = "requests",
        /// 4xx and 5xx responses.
        Errors = "errors",
        /// 95th percentile of the response time.
        P95 = "p95",
        /// Declared bytes of the responses.
        Bytes = "bytes",
        /// Requests without a response.
        Unanswered = "unanswered",
    }
}

words! {
    /// What there is a distribution of.
    HttpOf {
        /// From request to response.
        ResponseTime = "response_time",
    }
}

/// One key of a [`TopTable`](super::TopTable).
///
/// Units: nanoseconds for times, which are at most 12.5 % too large (`max` is exact).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopRow {
    /// The host, server, URL template or client.
    pub key: String,
    /// Requests; at most [`TopTable::floor`](super::TopTable::floor) too many.
    pub requests: u64,
    /// Responses with 4xx.
    pub errors_4xx: u64,
    /// Responses with 5xx.
    pub errors_5xx: u64,
    /// Requests without a response.
    pub unanswered: u64,
    /// Declared bytes of requests and responses.
    pub bytes: u64,
    /// Median response time.
    pub p50: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// Longest.
    pub max: Option<u64>,
}
