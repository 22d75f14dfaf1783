//! What a report of stored records says of each kind: the columns that it adds up, and what counts as an error.

use linkweir_record::flow::RETRANSMISSION_COLUMNS;

use super::apart::{Apart, ESTIMATES};

/// What the report of a kind is about. Columns and conditions are by the names of the schema.
#[derive(Debug)]
pub struct Subject {
    /// [`RecordKind::NAME`](linkweir_record::RecordKind::NAME).
    pub kind: &'static str,
    /// What a record is, in the plural.
    pub noun: &'static str,
    /// Spans of which distributions are shown: title and column. Tables have the first.
    pub spans: &'static [(&'static str, &'static str)],
    /// Columns of bytes that are added up; their title.
    pub bytes: (&'static str, &'static [&'static str]),
    /// Whether keys are those with the most bytes, not those with the most records.
    pub is_by_bytes: bool,
    /// What counts as an error: title and condition.
    pub error: (&'static str, &'static str),
    /// A share of sums: title, columns of the part, columns of the whole.
    pub share: Option<(
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
    )>,
    /// Columns of few values, which are counted one by one: title and column.
    pub counts: &'static [(&'static str, &'static str)],
    /// Tables that are shown where none are asked for.
    pub by: &'static [&'static str],
    /// Words that mean a column.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Records that say again what others do, by a condition: left out unless the user's own condition names that column.
    pub again: Option<(&'static str, &'static str)>,
    /// Records that have lines of their own.
    pub apart: Option<Apart>,
}

const ENDS: &[(&str, &str)] = &[
    ("client", "client_ip"),
    ("server", "server_ip"),
    ("country", "client_country"),
];

/// All kinds that reports are made of.
pub static SUBJECTS: [Subject; 6] = [
    Subject {
        kind: "http_transaction",
        noun: "transactions",
        spans: &[
            ("response time", "response_time_ns"),
            ("server time", "server_time_ns"),
            ("time to last byte", "ttlb_ns"),
        ],
        bytes: ("bytes", &["request_bytes", "response_bytes"]),
        is_by_bytes: false,
        error: (
            "errors",
            "status_code >= 400 or state = unanswered and not source = estimate",
        ),
        share: None,
        counts: &[
            ("Status codes", "status_code"),
            ("Methods", "method"),
            ("States", "state"),
            ("Versions", "version"),
        ],
        by: &["host", "url", "client", "server"],
        aliases: ENDS,
        again: None,
        apart: Some(ESTIMATES),
    },
    Subject {
        kind: "flow",
        noun: "flows",
        spans: &[
            ("round trip to the server", "c_rtt_avg"),
            ("round trip to the client", "s_rtt_avg"),
            ("QUIC round trip", "quic_rtt_ns"),
            ("duration", "durat"),
        ],
        bytes: ("payload", &["c_bytes_all", "s_bytes_all"]),
        is_by_bytes: true,
        error: ("failed", "conn_state in (S0, REJ, RSTOS0, RSTRH, SH, SHR)"),
        share: Some((
            "retransmitted",
            &RETRANSMISSION_COLUMNS,
            &["c_pkts_data", "s_pkts_data"],
        )),
        counts: &[
            ("Protocols", "protocol"),
            ("Applications", "application"),
            ("Connection states", "conn_state"),
        ],
        by: &["client", "server", "application"],
        aliases: &[
            ("client", "c_ip"),
            ("server", "s_ip"),
            ("country", "client_country"),
        ],
        again: Some(("record", "record = partial")),
        apart: None,
    },
    Subject {
        kind: "gateway_event",
        noun: "events",
        spans: &[],
        bytes: ("file bytes", &["size"]),
        is_by_bytes: false,
        error: (
            "blocked",
            "action in (drop, reject) or event in (blocked, infected) or verdict in (blocked, infected)",
        ),
        share: None,
        counts: &[
            ("Events", "event"),
            ("Actions", "action"),
            ("Verdicts", "verdict"),
        ],
        by: &["rule", "application", "client", "detail"],
        aliases: ENDS,
        again: None,
        apart: None,
    },
    Subject {
        kind: "tls_handshake",
        noun: "handshakes",
        spans: &[("handshake time", "handshake_time_ns")],
        bytes: ("bytes", &[]),
        is_by_bytes: false,
        error: ("failed", "alert or established = 0"),
        share: None,
        counts: &[
            ("Versions", "tls_version"),
            ("Ciphers", "cipher"),
            ("Alerts", "alert"),
        ],
        by: &["sni", "client", "server"],
        aliases: ENDS,
        again: None,
        apart: None,
    },
    Subject {
        kind: "dns_query",
        noun: "queries",
        spans: &[("response time", "response_time_ns")],
        bytes: ("bytes", &["response_bytes"]),
        is_by_bytes: false,
        error: ("errors", "rcode > 0 or state = unanswered"),
        share: None,
        counts: &[
            ("Response codes", "rcode_name"),
            ("Types", "qtype_name"),
            ("States", "state"),
        ],
        by: &["query", "client", "server"],
        aliases: ENDS,
        again: None,
        apart: None,
    },
    Subject {
        kind: "load_session",
        noun: "sessions",
        spans: &[
            ("response time", "response_time_ns"),
            ("duration", "duration_ns"),
            ("schedule lag", "lag_ns"),
        ],
        bytes: ("bytes", &["request_bytes", "response_bytes"]),
        is_by_bytes: false,
        error: ("failed", "failure or status_code >= 400"),
        share: None,
        counts: &[("States", "state"), ("Failures", "failure")],
        by: &["client_group", "server"],
        aliases: ENDS,
        again: None,
        apart: None,
    },
];

impl Subject {
    /// Of the kind of this name.
    #[must_use]
    pub fn named(kind: &str) -> Option<&'static Self> {
        SUBJECTS.iter().find(|subject| subject.kind == kind)
    }
}
