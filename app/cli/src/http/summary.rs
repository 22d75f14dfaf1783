//! The totals of a run: as JSON for programs, on one screen for people.

use std::time::Duration;

use linkweir_engine::RunReport;
use linkweir_http::{HttpStats, PayloadSample};
use linkweir_wire::{DecodeFaults, FragmentStats};
use serde_json::{Map, Value, json};

use linkweir_sink::human::{counted, percent, thousands};

use crate::screen::{listed, lost, quantiles, rows};
use crate::totals;

/// The quantiles of the summary, by their names.
const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
];

/// Everything a summary is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals<'a> {
    pub(crate) report: &'a RunReport,
    pub(crate) stats: &'a HttpStats,
    pub(crate) faults: &'a DecodeFaults,
    pub(crate) fragments: &'a FragmentStats,
    pub(crate) payload: &'a PayloadSample,
    pub(crate) elapsed: Duration,
    /// The share of each worker, where there were several.
    pub(crate) workers: &'a [WorkerTotals],
}

/// What one of several workers did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerTotals {
    packets: u64,
    bytes: u64,
    requests: u64,
    transactions: u64,
    dropped: u64,
}

impl WorkerTotals {
    pub(crate) fn new(report: &RunReport, stats: &HttpStats) -> Self {
        Self {
            packets: report.packets,
            bytes: report.bytes,
            requests: stats.requests,
            transactions: stats.transactions,
            dropped: report.drops.kernel + report.drops.ring,
        }
    }

    fn to_json(self) -> Value {
        json!({
            "packets": self.packets,
            "bytes": self.bytes,
            "requests": self.requests,
            "transactions": self.transactions,
            "dropped": self.dropped,
        })
    }
}

impl Totals<'_> {
    /// Losses by cause, without those of outputs; every cause is there, also with zero.
    pub(crate) fn drops(&self) -> [(&'static str, u64); 4] {
        let drops = self.report.drops;
        [
            ("kernel", drops.kernel),
            ("ring", drops.ring),
            ("unusable_records", drops.unusable_records),
            ("table_full", self.stats.table_full),
        ]
    }

    /// Inputs of which a part could not be read. An interface that went and came back is none: what
    /// passed meanwhile was never there to be counted.
    pub(crate) fn damaged(&self) -> u64 {
        totals::damaged(self.report)
    }

    /// What was lost, for people.
    fn lost(&self) -> Vec<(String, u64)> {
        totals::lost(self.report, &self.drops(), self.faults, self.fragments)
    }

    /// Whether anything was lost.
    pub(crate) fn is_lossy(&self) -> bool {
        !self.lost().is_empty() || totals::unread(self.report).next().is_some()
    }

    /// The JSON object of `--summary`.
    pub(crate) fn to_json(self) -> Value {
        let mut json = totals::common(self.report, self.elapsed, &self.drops(), self.faults);
        let workers: Vec<Value> = self.workers.iter().map(|worker| worker.to_json()).collect();
        json.insert("workers".to_owned(), workers.into());
        json.insert(
            "fragments".to_owned(),
            totals::fragments_json(self.fragments),
        );
        json.insert("http".to_owned(), self.http());
        Value::Object(json)
    }

    fn http(&self) -> Value {
        let stats = self.stats;
        let times = &stats.response_time;
        let mut response_time = Map::new();
        response_time.insert("count".into(), times.count().into());
        response_time.insert("min".into(), times.min().into());
        response_time.insert("mean".into(), times.mean().into());
        for (name, q) in QUANTILES {
            response_time.insert(name.into(), times.quantile(q).into());
        }
        response_time.insert("max".into(), times.max().into());
        let methods: Map<String, Value> = self
            .methods()
            .into_iter()
            .map(|(name, n)| (name, n.into()))
            .collect();
        let codes: Map<String, Value> = stats
            .status_codes()
            .map(|(code, n)| (code.to_string(), n.into()))
            .collect();
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
            "unsorted": self.report.unsorted,
            "methods": methods,
            "status_codes": codes,
            "response_time_ns": response_time,
        })
    }

    fn methods(&self) -> Vec<(String, u64)> {
        let named = self
            .stats
            .methods()
            .map(|(name, count)| (name.escape_ascii().to_string(), count));
        let other = self.stats.other_methods();
        named
            .chain((other > 0).then(|| ("(other)".to_owned(), other)))
            .collect()
    }

    /// One screen for people; what was lost comes first.
    pub(crate) fn to_screen(self) -> String {
        let (report, stats) = (self.report, self.stats);
        let mut lines = vec![
            ("lost", lost(self.lost(), 6)),
            totals::read(report, self.elapsed),
        ];
        lines.extend(totals::not_read(report));
        totals::tell_undecoded(self.faults, report.packets, &mut lines);
        lines.extend(totals::fragments(self.fragments));
        if let Some(row) = self.no_http() {
            lines.insert(0, row);
        }
        lines.extend([
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
                    counted(stats.truncated_heads, "cut head"),
                    thousands(stats.malformed_heads)
                ),
            ),
            ("methods", listed(self.methods(), 8)),
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
            (
                "response time",
                quantiles(
                    &stats.response_time,
                    &[("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)],
                ),
            ),
        ]);
        if stats.filtered > 0 {
            lines.push((
                "not written",
                format!("{}, by --host or --url", counted(stats.filtered, "record")),
            ));
        }
        if !self.workers.is_empty() {
            lines.push(("workers", self.shares()));
        }
        rows(&lines)
    }

    /// What the payload is where none of it is HTTP, and most of it on one port.
    fn no_http(self) -> Option<(&'static str, String)> {
        let most = self.payload.most()?;
        let is_without = self.stats.requests + self.stats.responses == 0;
        is_without.then(|| {
            let share = percent(most.bytes, most.of);
            let kind = most.kind.unwrap_or("unknown");
            let text = format!("{share} of the TCP payload is {kind} on port {}", most.port);
            ("no HTTP", text)
        })
    }

    /// Each worker's share of packets and transactions.
    fn shares(self) -> String {
        let shares: Vec<String> = self
            .workers
            .iter()
            .map(|worker| {
                format!(
                    "{} ({})",
                    percent(worker.packets, self.report.packets),
                    percent(worker.transactions, self.stats.transactions)
                )
            })
            .collect();
        format!("packets (transactions): {}", shares.join("  "))
    }
}
