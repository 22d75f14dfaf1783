//! What `linkweir http` counts, in the totals of a run.

use linkweir_http::{HttpStats, PayloadSample, StreamStats};
use linkweir_record::human::{counted, percent, thousands};
use linkweir_sketch::LogLinear;
use serde_json::{Map, Value, json};

use crate::passive::totals::{Counters, Row, Totals, object};
use crate::screen::{listed, quantiles};

/// The quantiles of the summary, by their names.
const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
];

/// Hosts whose streams are buffered, on the screen at most.
const BUFFERED_HOSTS: usize = 8;

/// A distribution of times.
fn times_of(times: &LogLinear) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("count".into(), times.count().into());
    object.insert("min".into(), times.min().into());
    object.insert("mean".into(), times.mean().into());
    for (name, q) in QUANTILES {
        object.insert(name.into(), times.quantile(q).into());
    }
    object.insert("max".into(), times.max().into());
    object
}

/// What stages have counted together.
#[derive(Debug, Default)]
pub(crate) struct HttpCounters {
    pub(crate) stats: HttpStats,
    /// Of what the TCP payload is.
    pub(crate) payload: PayloadSample,
}

impl Counters for HttpCounters {
    const KEY: &'static str = "http";
    const TITLE: &'static str = "HTTP transactions";

    fn evicted(&self) -> Option<u64> {
        let stats = &self.stats;
        Some(stats.table_full + stats.followed_evicted + stats.estimates_evicted)
    }

    fn of_worker(&self) -> Vec<(&'static str, u64)> {
        let stats = &self.stats;
        vec![
            ("requests", stats.requests),
            ("transactions", stats.transactions),
        ]
    }

    fn to_json(totals: &Totals<'_, Self>) -> Value {
        let stats = &totals.counters.stats;
        let codes = stats.status_codes();
        let codes = object(codes.map(|(code, count)| (code.to_string(), count)));
        json!({
            "requests": stats.requests,
            "responses": stats.responses,
            "transactions": stats.transactions,
            "unanswered": stats.unanswered,
            "orphans": stats.orphans,
            "interim_responses": stats.interim_responses,
            "retransmitted_requests": stats.retransmitted_requests,
            "retransmitted_responses": stats.retransmitted_responses,
            "truncated_heads": stats.truncated_heads,
            "malformed_heads": stats.malformed_heads,
            "filtered": stats.filtered,
            "versions": {
                "1.0": stats.of_http_1_0,
                "1.1": stats.of_http_1_1,
                "2": stats.of_http_2,
                "3": stats.of_http_3,
            },
            "sources": {
                "clear": stats.of_clear,
                "keys": stats.of_keys,
                "estimate": stats.of_estimate,
            },
            "estimates": {
                "connections": stats.estimated_connections,
                "evicted": stats.estimates_evicted,
                "exact": stats.estimated_exact,
                "likely": stats.estimated_likely,
                "cannot_tell": stats.estimated_cannot_tell,
                "response_time_ns": times_of(&stats.estimated_time),
            },
            "followed": {
                "connections": stats.followed,
                "evicted": stats.followed_evicted,
                "gaps": stats.followed_gaps,
                "refused_records": stats.refused_records,
                "bad_frames": stats.bad_frames,
            },
            "streams": streams_of(&stats.streams),
            "undecrypted": stats.undecrypted,
            "unknown_names": stats.unknown_names,
            "unsorted": totals.report.unsorted,
            "methods": object(methods(stats).into_iter()),
            "status_codes": codes,
            "response_time_ns": times_of(&stats.response_time),
        })
    }

    fn add_rows(totals: &Totals<'_, Self>, rows: &mut Vec<Row>) {
        let stats = &totals.counters.stats;
        if let Some(row) = no_http(totals.counters) {
            rows.insert(0, row);
        }
        rows.extend([
            (
                "transactions",
                format!(
                    "{} complete, {} unanswered, {} orphan",
                    thousands(stats.transactions),
                    thousands(stats.unanswered),
                    thousands(stats.orphans)
                ),
            ),
            (
                "messages",
                format!(
                    "{}, {} ({} interim), {} retransmitted, {}, {} malformed",
                    counted(stats.requests, "request"),
                    counted(stats.responses, "response"),
                    thousands(stats.interim_responses),
                    thousands(stats.retransmitted_requests + stats.retransmitted_responses),
                    counted(stats.truncated_heads, "truncated head"),
                    thousands(stats.malformed_heads)
                ),
            ),
            ("methods", listed(methods(stats), 8)),
            (
                "status codes",
                listed(
                    stats
                        .status_codes()
                        .map(|(code, n)| (code.to_string(), n))
                        .collect(),
                    10,
                ),
            ),
            ("response time", quantiles(&stats.response_time, &TIMES)),
        ]);
        if stats.followed > 0 {
            rows.push((
                "HTTP/2, 3, TLS",
                format!(
                    "{} read in order, {} of them without secrets; {} not decrypted, {} not filled, {} not valid, {} with unknown names",
                    counted(stats.followed, "connection"),
                    thousands(stats.undecrypted),
                    counted(stats.refused_records, "record"),
                    counted(stats.followed_gaps, "gap"),
                    counted(stats.bad_frames, "frame"),
                    counted(stats.unknown_names, "transaction"),
                ),
            ));
        }
        if stats.estimated_connections > 0 {
            rows.push((
                "without keys",
                format!(
                    "{} of {}: {} exact, {} likely, {} without a response time",
                    counted(stats.of_estimate, "estimate"),
                    counted(stats.estimated_connections, "connection"),
                    thousands(stats.estimated_exact),
                    thousands(stats.estimated_likely),
                    thousands(stats.estimated_cannot_tell),
                ),
            ));
        }
        if !stats.estimated_time.is_empty() {
            let times = quantiles(&stats.estimated_time, &TIMES);
            rows.push(("estimated times", times));
        }
        add_streams(&stats.streams, rows);
        if stats.filtered > 0 {
            rows.push((
                "not written",
                format!("{}, by --host or --url", counted(stats.filtered, "record")),
            ));
        }
    }

    fn notes(totals: &Totals<'_, Self>) -> Vec<(&'static str, u64)> {
        let stats = &totals.counters.stats;
        vec![
            ("truncated heads", stats.truncated_heads),
            ("retransmitted requests", stats.retransmitted_requests),
            ("retransmitted responses", stats.retransmitted_responses),
            ("interim responses", stats.interim_responses),
        ]
    }
}

/// The object of streams: its counters, their hosts and distributions.
fn streams_of(streams: &StreamStats) -> Value {
    let counters = streams.counters().into_iter();
    let mut all: Map<String, Value> = counters
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect();
    let hosts = streams.hosts().into_iter();
    let hosts = hosts.map(|(host, streams, buffered)| {
        let counts = json!({ "streams": streams, "buffered": buffered });
        (host.escape_ascii().to_string(), counts)
    });
    all.insert("hosts".into(), Value::Object(hosts.collect()));
    all.insert(
        "first_event_ns".into(),
        times_of(&streams.first_event).into(),
    );
    all.insert("event_gap_ns".into(), times_of(&streams.event_gap).into());
    Value::Object(all)
}

/// What is said of streams, and of the hosts whose events have waited for one another.
fn add_streams(streams: &StreamStats, rows: &mut Vec<Row>) {
    if streams.streams > 0 {
        let named: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
        rows.push((
            "streams",
            format!(
                "{} ({} estimated), {} ({} coalesced), {}, {} with gaps, {} not measured",
                counted(streams.streams, "stream"),
                thousands(streams.estimated),
                counted(streams.events, "event"),
                thousands(streams.coalesced),
                counted(streams.stalls, "stall"),
                thousands(streams.with_gaps),
                thousands(streams.unmeasured),
            ),
        ));
        if !streams.first_event.is_empty() {
            rows.push(("first event", quantiles(&streams.first_event, &named)));
        }
        if !streams.event_gap.is_empty() {
            rows.push(("event gaps", quantiles(&streams.event_gap, &named)));
        }
    }
    let hosts = streams.hosts();
    let buffered = hosts.iter().filter(|(_, _, buffered)| *buffered > 0);
    for (host, streams, buffered) in buffered.take(BUFFERED_HOSTS) {
        rows.push((
            "buffered",
            format!(
                "a proxy on the path buffers {} of {} of host {}, or the origin: events arrive in bursts",
                thousands(*buffered),
                counted(*streams, "stream"),
                match host.is_empty() {
                    true => "(none)".to_owned(),
                    false => host.escape_ascii().to_string(),
                }
            ),
        ));
    }
}

/// The quantiles of response times that are printed.
const TIMES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

fn methods(stats: &HttpStats) -> Vec<(String, u64)> {
    let named = stats
        .methods()
        .map(|(name, count)| (name.escape_ascii().to_string(), count));
    let other = stats.other_methods();
    let other = (other > 0).then(|| ("(other)".to_owned(), other));
    named.chain(other).collect()
}

/// What the payload is where none of it is HTTP, and most of it on one port.
fn no_http(counters: &HttpCounters) -> Option<Row> {
    let most = counters.payload.most()?;
    let is_without = counters.stats.requests + counters.stats.responses == 0;
    is_without.then(|| {
        let share = percent(most.bytes, most.of);
        let kind = most.kind.unwrap_or("unknown");
        let text = format!("{share} of the TCP payload is {kind} on port {}", most.port);
        ("no HTTP", text)
    })
}
