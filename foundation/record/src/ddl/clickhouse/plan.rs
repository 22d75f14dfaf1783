//! What ClickHouse is told about each kind beyond the types of its columns: what a row is sorted by,
//! which texts repeat, and what is added up by the minute.

/// The plan of one kind. Every name is one of its columns.
#[derive(Debug)]
pub(super) struct Plan {
    /// The kind.
    pub(super) kind: &'static str,
    /// Where the moment of a record stands: the first of these that is there.
    pub(super) time: &'static [&'static str],
    /// Columns of the sorting key behind the minute; no record is without them.
    pub(super) ends: &'static [&'static str],
    /// Texts of the network that have few values: kept as numbers of a dictionary.
    pub(super) few: &'static [&'static str],
    /// What is added up by the minute.
    pub(super) rollup: Rollup,
    /// Questions that people ask, each one a statement.
    pub(super) examples: &'static str,
}

/// Totals and quantiles by the minute.
#[derive(Debug)]
pub(super) struct Rollup {
    /// What is counted, as the column of the counts is called.
    pub(super) count: &'static str,
    /// Which records are counted; empty: all.
    pub(super) filter: &'static str,
    /// Columns by which records are grouped.
    pub(super) by: &'static [&'static str],
    /// A further group that is computed: name, type and expression.
    pub(super) class: Option<(&'static str, &'static str, &'static str)>,
    /// Columns of which the sum is kept.
    pub(super) sums: &'static [&'static str],
    /// Columns of which quantiles and the largest value are kept.
    pub(super) quantiles: &'static [&'static str],
    /// Where quantiles are of a part of the records: the condition for the columns that begin so.
    pub(super) measured: &'static [(&'static str, &'static str)],
}

impl Plan {
    /// The plan of this kind.
    pub(super) fn of(kind: &str) -> Option<&'static Self> {
        PLANS.iter().find(|plan| plan.kind == kind)
    }
}

/// Server before client: of a server there are many records in a minute.
const ENDS: &[&str] = &["server_ip", "server_port", "client_ip", "client_port"];

static PLANS: [Plan; 6] = [HTTP, FLOW, TLS, DNS, GATEWAY, LOAD];

const HTTP: Plan = Plan {
    kind: "http_transaction",
    time: &["request_ts_ns", "response_ts_ns"],
    ends: ENDS,
    few: &["reason_phrase", "method", "user_agent", "host", "content_type"],
    rollup: Rollup {
        count: "transactions",
        filter: "",
        by: &["server_ip", "server_port", "host"],
        class: Some((
            "status_class",
            "LowCardinality(String)",
            "if(isNull(t.`status_code`), t.`state`, concat(toString(intDiv(t.`status_code`, 100)), 'xx'))",
        )),
        sums: &["request_bytes", "response_bytes", "interim_responses", "retransmissions"],
        quantiles: &["response_time_ns"],
        measured: &[],
    },
    examples: "\
-- Requests a second and response times (ms) of each server in the last hour.
SELECT server_ip, host, sum(transactions) / 3600 AS per_second,
    sumIf(transactions, status_class = '5xx') / sum(transactions) AS failed,
    arrayMap(ns -> round(ns / 1e6, 3), quantilesDDMerge(0.01, 0.5, 0.9, 0.95, 0.99, 0.999)(response_time_ns_quantiles)) AS p50_p90_p95_p99_p999
FROM http_transaction_per_minute WHERE minute >= now('UTC') - INTERVAL 1 HOUR
GROUP BY server_ip, host ORDER BY sum(transactions) DESC LIMIT 20;

-- The slowest transactions of one client; IPv4 addresses may be written as such.
SELECT time, server_ip_text, host, uri, status_code, response_time_ns / 1e6 AS ms
FROM http_transaction FINAL
WHERE client_ip = toIPv6('10.0.0.7') AND time >= now('UTC') - INTERVAL 1 DAY
ORDER BY response_time_ns DESC NULLS LAST LIMIT 20;
",
};

const FLOW: Plan = Plan {
    kind: "flow",
    time: &["first"],
    ends: &["s_ip", "s_port", "c_ip", "c_port"],
    few: &["s_npnalpn", "c_npnalpn", "quic_UA"],
    rollup: Rollup {
        count: "flows",
        // The final record of a flow has the totals of its partial ones in it.
        filter: "t.`record` = 'final'",
        by: &["protocol", "application", "s_ip", "state"],
        class: None,
        sums: &[
            "c_pkts_all", "s_pkts_all", "c_bytes_all", "s_bytes_all", "c_ip_bytes", "s_ip_bytes",
            "c_pkts_retx", "s_pkts_retx",
        ],
        quantiles: &["durat", "syn_ack", "c_rtt_avg", "s_rtt_avg"],
        // Without a sample the mean is 0.
        measured: &[
            ("c_rtt_avg", "t.`c_rtt_cnt` > 0"),
            ("s_rtt_avg", "t.`s_rtt_cnt` > 0"),
        ],
    },
    examples: "\
-- Applications by volume in the last hour, with the share of packets sent again.
SELECT application, sum(flows) AS flows, formatReadableSize(sum(c_ip_bytes) + sum(s_ip_bytes)) AS volume,
    (sum(c_pkts_retx) + sum(s_pkts_retx)) / (sum(c_pkts_all) + sum(s_pkts_all)) AS retransmitted
FROM flow_per_minute WHERE minute >= now('UTC') - INTERVAL 1 HOUR
GROUP BY application ORDER BY sum(c_ip_bytes) + sum(s_ip_bytes) DESC;

-- Round-trip time to each server by the minute: quantiles and largest of the flows' means (ms).
SELECT minute, s_ip, arrayMap(ns -> ns / 1e6, quantilesDDMerge(0.01, 0.5, 0.9, 0.95, 0.99, 0.999)(c_rtt_avg_ns_quantiles)) AS p50_p90_p95_p99_p999,
    max(c_rtt_avg_ns_max) / 1e6 AS largest
FROM flow_per_minute WHERE minute >= now('UTC') - INTERVAL 1 HOUR
GROUP BY minute, s_ip ORDER BY minute, s_ip;
",
};

const TLS: Plan = Plan {
    kind: "tls_handshake",
    time: &["begin_ts_ns"],
    ends: ENDS,
    few: &["sni", "alpn", "client_alpn", "subject", "issuer", "names"],
    rollup: Rollup {
        count: "handshakes",
        filter: "",
        by: &["server_ip", "server_port", "sni", "tls_version", "cipher"],
        class: None,
        sums: &["established", "ech"],
        quantiles: &["handshake_time_ns"],
        measured: &[],
    },
    examples: "\
-- Handshakes of the last day by version and suite, and how many failed.
SELECT tls_version, cipher, sum(handshakes) AS total, total - sum(established) AS failed
FROM tls_handshake_per_minute WHERE minute >= now('UTC') - INTERVAL 1 DAY
GROUP BY tls_version, cipher ORDER BY total DESC;

-- Certificates that expire within a month.
SELECT subject, issuer, min(not_after_ns) AS expires, uniq(server_ip) AS servers
FROM tls_handshake FINAL WHERE not_after_ns < now() + INTERVAL 30 DAY
GROUP BY subject, issuer ORDER BY expires;
",
};

const DNS: Plan = Plan {
    kind: "dns_query",
    time: &["query_ts_ns", "response_ts_ns"],
    ends: ENDS,
    few: &["query", "answers", "ttls"],
    rollup: Rollup {
        count: "queries",
        filter: "",
        by: &["server_ip", "protocol", "qtype_name", "rcode_name", "state"],
        class: None,
        sums: &["retransmissions", "response_bytes"],
        quantiles: &["response_time_ns"],
        measured: &[],
    },
    examples: "\
-- Resolvers by the minute: queries, those without a response, and response times (ms).
SELECT minute, server_ip, sum(queries) AS total, sumIf(queries, state = 'unanswered') AS unanswered,
    arrayMap(ns -> round(ns / 1e6, 3), quantilesDDMerge(0.01, 0.5, 0.9, 0.95, 0.99, 0.999)(response_time_ns_quantiles)) AS p50_p90_p95_p99_p999
FROM dns_query_per_minute GROUP BY minute, server_ip ORDER BY minute, server_ip;

-- Names that do not exist and are asked for most.
SELECT query, count() AS times FROM dns_query FINAL
WHERE rcode_name = 'NXDOMAIN' GROUP BY query ORDER BY times DESC LIMIT 20;
",
};

const GATEWAY: Plan = Plan {
    kind: "gateway_event",
    time: &["ts_ns"],
    ends: ENDS,
    few: &["application", "rule", "detail"],
    rollup: Rollup {
        count: "events",
        filter: "",
        by: &["event", "application", "rule", "action", "verdict"],
        class: None,
        sums: &["size"],
        quantiles: &["size"],
        measured: &[],
    },
    examples: "\
-- What was blocked in the last day, by application and rule.
SELECT application, rule, sum(events) AS events FROM gateway_event_per_minute
WHERE event = 'blocked' AND minute >= now('UTC') - INTERVAL 1 DAY
GROUP BY application, rule ORDER BY events DESC;

-- Infected files and who got them.
SELECT time, client_ip_text, server_ip_text, application, file_name, detail, sha256
FROM gateway_event FINAL WHERE event = 'infected' ORDER BY time DESC LIMIT 50;
",
};

const LOAD: Plan = Plan {
    kind: "load_session",
    time: &["planned_ts_ns"],
    // A session that never sent a request has no port of the client.
    ends: &["server_ip", "server_port", "client_ip"],
    few: &["client_group"],
    rollup: Rollup {
        count: "sessions",
        filter: "",
        by: &["server_ip", "server_port", "client_group", "state", "failure"],
        class: None,
        sums: &["requests", "responses", "connections", "request_bytes", "response_bytes"],
        quantiles: &["response_time_ns", "lag_ns"],
        measured: &[],
    },
    examples: "\
-- Sessions by the minute, what became of them, and response times (ms) from when they were wanted.
SELECT minute, sum(sessions) AS planned, sumIf(sessions, state = 'failed') AS failed,
    arrayMap(ns -> round(ns / 1e6, 3), quantilesDDMerge(0.01, 0.5, 0.9, 0.95, 0.99, 0.999)(response_time_ns_quantiles)) AS p50_p90_p95_p99_p999
FROM load_session_per_minute GROUP BY minute ORDER BY minute;
",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddl::kind::KindSchema;

    /// Names between backticks.
    fn quoted(text: &str) -> Vec<&str> {
        text.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn plans_name_columns_that_are_there() {
        for schema in KindSchema::all() {
            let plan = Plan::of(schema.name).unwrap();
            let roll = &plan.rollup;
            let class = roll.class.map(|(_, _, expression)| expression);
            let texts = [class.unwrap_or_default(), roll.filter];
            let conditions = roll.measured.iter().map(|(_, condition)| *condition);
            let in_texts = texts.into_iter().chain(conditions).flat_map(quoted);
            let measured = roll.measured.iter().map(|(name, _)| *name);
            let lists = [
                plan.time,
                plan.ends,
                plan.few,
                roll.by,
                roll.sums,
                roll.quantiles,
            ];
            let names = lists.into_iter().flatten().copied();
            for name in names.chain(in_texts).chain(measured) {
                assert!(schema.field(name).is_some(), "{name} of {}", schema.name);
            }
        }
    }

    #[test]
    fn a_kind_has_no_column_that_the_tables_add() {
        for schema in KindSchema::all() {
            for name in [
                "time",
                "probe",
                "record_id",
                "schema_version",
                "minute",
                "kind",
            ] {
                assert!(schema.field(name).is_none(), "{name} of {}", schema.name);
            }
        }
    }
}
