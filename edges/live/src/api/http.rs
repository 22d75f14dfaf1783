//! What the statistics say of HTTP transactions.

use crate::figure::{Codes, Derived, Hidden, Names};
use crate::figures::{figures, rows};
use crate::words::words;

figures! {
    /// What the transactions of an interval, or of a run, came to.
    ///
    /// A transaction counts in the interval in which its outcome became known: with its response, or, where
    /// none came, when the request left the table. So `requests` = `complete` + `unanswered` and
    /// `responses` = `complete` + `orphans` in every interval, and shares are between 0 and 1.
    HttpCounts => HttpFigures {
        /// Requests whose outcome became known.
        requests: u64,
        /// Final responses.
        responses: u64,
        /// Pairs of both.
        complete: Derived,
        /// Requests without a response.
        unanswered: u64,
        /// Responses without a request.
        orphans: u64,
        /// Retransmitted heads of those transactions.
        retransmissions: u64,
        /// Responses with 4xx.
        errors_4xx: Hidden,
        /// Responses with 5xx.
        errors_5xx: Hidden,
        /// Final responses by status code.
        codes: Codes,
        /// Requests by method; more than 32 different ones are `other`.
        methods: Names<32, false>,
        /// Transactions by version of HTTP.
        versions: Names<8, false>,
        /// Calls of gRPC by their status, a number.
        grpc_statuses: Names<32, false>,
    }
    distributions {
        /// Response times, of complete transactions. Nanoseconds.
        response_time_ns,
    }
    derive |counts, figures| figures.complete = counts.requests.saturating_sub(counts.unanswered);
    is_sound |counts| counts.unanswered <= counts.requests && counts.orphans <= counts.responses;
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
        /// Country of the client, where a database says where addresses are; its two letters.
        ClientCountry = "client_country",
        /// Country of the server.
        ServerCountry = "server_country",
        /// Autonomous system of the client.
        ClientAsn = "client_asn",
        /// Autonomous system of the server.
        ServerAsn = "server_asn",
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

rows! {
    /// One key of a [`TopTable`](super::TopTable).
    ///
    /// Units: nanoseconds for times, which are at most 12.5 % too large (`max` is exact).
    HttpKeyed => TopRow, HttpWireKeyed {
        /// The host, server, URL template or client.
        key,
        /// Requests; at most [`TopTable::floor`](super::TopTable::floor) too many.
        requests,
        /// Responses with 4xx.
        errors_4xx: count,
        /// Responses with 5xx.
        errors_5xx: count,
        /// Requests without a response.
        unanswered: count,
        /// Declared bytes of requests and responses.
        bytes: bytes,
    }
    /// Response times.
    histogram response_time {
        /// Median response time.
        p50 = |times| times.quantile(500),
        /// 95th percentile.
        p95 = |times| times.quantile(950),
        /// 99th percentile.
        p99 = |times| times.quantile(990),
        /// Longest.
        max = |times| times.max(),
    }
    about about;
}
