//! The statistics in the text format of Prometheus (version 0.0.4).
//!
//! Names follow the conventions of Prometheus: base units, `_total` on counters, one unit per name.
//! Label values from the network are escaped as the format asks.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::api::{AlertState, Totals};
use crate::buckets::Buckets;
use crate::kind::Kind;
use crate::live::{LiveOf, lock};
use crate::probe_metrics;

/// `Content-Type` of the text.
pub const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes families of one text. One without a sample is left out: a name with no value would look like
/// something that is measured.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    /// The lines above the first sample of a family, until it comes.
    head: String,
}

/// Escapes a label value: backslash, quotation mark and line feed.
fn push_escaped(out: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}

impl Exposition {
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.head.clear();
        // Writing to a String cannot fail.
        writeln!(self.head, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
    }

    pub(super) fn sample(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        value: impl std::fmt::Display,
    ) {
        self.text.push_str(&self.head);
        self.head.clear();
        self.text.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            self.text.push_str(label);
            self.text.push_str("=\"");
            push_escaped(&mut self.text, text);
            self.text.push('"');
        }
        let close = if labels.is_empty() { "" } else { "}" };
        writeln!(self.text, "{close} {value}").ok();
    }

    pub(super) fn single(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        value: impl std::fmt::Display,
    ) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    pub(super) fn by_label<'a, V: std::fmt::Display>(
        &mut self,
        (name, kind, help): (&str, &str, &str),
        label: &str,
        values: impl IntoIterator<Item = (&'a str, V)>,
    ) {
        self.family(name, kind, help);
        for (text, value) in values {
            self.sample(name, &[(label, text)], value);
        }
    }

    /// A histogram of nanoseconds, in seconds.
    pub(super) fn histogram<const N: usize>(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        bounds: &[(u64, &'static str); N],
        histogram: &Buckets<N>,
    ) {
        let sum = exact_seconds(histogram.sum);
        self.buckets(name, labels, bounds, histogram, sum);
    }

    /// A histogram of anything; `sum` is in the unit of the texts of the bounds.
    pub(super) fn buckets<const N: usize>(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        bounds: &[(u64, &'static str); N],
        histogram: &Buckets<N>,
        sum: impl std::fmt::Display,
    ) {
        let bucket = format!("{name}_bucket");
        let mut labels_le = labels.to_vec();
        let mut below = 0;
        for (count, (_, le)) in histogram.buckets.iter().zip(bounds) {
            below = u64::saturating_add(below, *count);
            labels_le.truncate(labels.len());
            labels_le.push(("le", le));
            self.sample(&bucket, &labels_le, below);
        }
        labels_le.truncate(labels.len());
        labels_le.push(("le", "+Inf"));
        self.sample(&bucket, &labels_le, histogram.count);
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, histogram.count);
    }
}

/// Seconds with all nine digits of the nanoseconds.
pub(super) fn exact_seconds(nanos: u128) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

impl<K: Kind> LiveOf<K> {
    /// Everything that a scraper wants, in the text format of Prometheus.
    #[must_use]
    pub fn metrics(&self) -> String {
        let totals = self.totals();
        let (series, decode_errors, faults) = {
            let writer = lock(&self.0.writer);
            (
                writer.series.clone(),
                writer.decode_errors.clone(),
                writer.seen.faults,
            )
        };
        let meta = self.meta();
        let mut out = Exposition::default();
        out.family(
            "linkweir_build_info",
            "gauge",
            "Version of the program; always 1.",
        );
        out.sample("linkweir_build_info", &[("version", meta.version)], 1);
        out.family("linkweir_run_info", "gauge", "What is read; always 1.");
        out.sample(
            "linkweir_run_info",
            &[
                ("source", &meta.source),
                ("live", if meta.live { "true" } else { "false" }),
            ],
            1,
        );
        out.single(
            "linkweir_run_finished",
            "gauge",
            "Whether the run has ended.",
            u8::from(meta.finished),
        );
        packets(&mut out, &totals, &decode_errors, faults);
        K::expose(&mut out, &totals, &series);
        if let Some((status, _)) = self.status() {
            K::expose_status(&mut out, &status);
        }
        if let Some(probes) = self.probes() {
            probe_metrics::expose(&mut out, &probes);
        }
        self.alert_metrics(&mut out);
        out.text
    }

    fn alert_metrics(&self, out: &mut Exposition) {
        let alerts = self.alerts();
        out.by_label(
            ("linkweir_alert_firing", "gauge", "Whether the rule fires."),
            "rule",
            unique(&alerts).map(|a| (a.rule.as_str(), u8::from(a.state == AlertState::Firing))),
        );
        out.by_label(
            ("linkweir_alert_value", "gauge",
             "What the rule measured in the last interval: nanoseconds, percent, per second or a count."),
            "rule",
            unique(&alerts).filter_map(|a| Some((a.rule.as_str(), a.value?))),
        );
        let posts = self.webhook_counts();
        out.by_label(
            (
                "linkweir_webhook_posts_total",
                "counter",
                "Alerts posted to a webhook, by outcome.",
            ),
            "outcome",
            [
                ("delivered", &posts.delivered),
                ("failed", &posts.failed),
                ("retried", &posts.retries),
                ("missed", &posts.missed),
            ]
            .map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed))),
        );
    }
}

/// A rule that was given twice has one series.
fn unique(alerts: &[crate::api::AlertStatus]) -> impl Iterator<Item = &crate::api::AlertStatus> {
    alerts
        .iter()
        .enumerate()
        .filter(|(at, alert)| {
            !alerts
                .iter()
                .take(*at)
                .any(|before| before.rule == alert.rule)
        })
        .map(|(_, alert)| alert)
}

fn packets<F>(
    out: &mut Exposition,
    totals: &Totals<F>,
    decode_errors: &[(&'static str, &'static str, u64)],
    faults: u64,
) {
    out.single(
        "linkweir_packets_total",
        "counter",
        "Packets analysed.",
        totals.packets,
    );
    out.single(
        "linkweir_bytes_total",
        "counter",
        "Bytes of the analysed packets on the wire.",
        totals.bytes,
    );
    out.by_label(
        ("linkweir_dropped_total", "counter", "What was lost, by cause: packets (kernel, ring, unusable_records), transactions or flows (table_full), records (sink)."),
        "cause",
        totals.dropped.by_cause(),
    );
    out.family(
        "linkweir_decode_errors_total",
        "counter",
        "Packets that could not be decoded, by layer and cause.",
    );
    for (layer, cause, count) in decode_errors {
        out.sample(
            "linkweir_decode_errors_total",
            &[("layer", layer), ("cause", cause)],
            count,
        );
    }
    out.single(
        "linkweir_input_faults_total",
        "counter",
        "Parts of the input that could not be read.",
        faults,
    );
    if let Some(last) = totals.last_ms {
        out.single(
            "linkweir_last_packet_timestamp_seconds",
            "gauge",
            "Capture time of the latest packet.",
            format_args!("{}.{:03}", last / 1000, last % 1000),
        );
    }
    out.single(
        "linkweir_table_entries",
        "gauge",
        "Entries in the table: messages that wait for their other half, or flows.",
        totals.table.entries,
    );
    out.single(
        "linkweir_table_capacity",
        "gauge",
        "Entries that the table can hold.",
        totals.table.capacity,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        let mut out = Exposition::default();
        out.sample("x", &[("a", "q\"b\\c\nd"), ("b", "")], 1.5);
        out.sample("y", &[], 2);
        assert_eq!(out.text, "x{a=\"q\\\"b\\\\c\\nd\",b=\"\"} 1.5\ny 2\n");
        assert_eq!(exact_seconds(1_000_000_001), "1.000000001");
    }
    #[test]
    fn a_family_without_samples_is_left_out() {
        let mut out = Exposition::default();
        let none: [(&str, u64); 0] = [];
        out.by_label(("a", "counter", "Nothing."), "rule", none);
        out.by_label(("b", "counter", "Two."), "rule", [("x", 1), ("y", 2)]);
        out.family("c", "counter", "Nothing.");
        let want = "# HELP b Two.\n# TYPE b counter\nb{rule=\"x\"} 1\nb{rule=\"y\"} 2\n";
        assert_eq!(out.text, want);
    }
}
