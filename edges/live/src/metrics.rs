//! The statistics in the text format of Prometheus (version 0.0.4).
//!
//! Every metric is a [`Family`] of a list; from the lists follow the text and the table in the manual. Names
//! follow the conventions of Prometheus: base units, `_total` on counters, one unit per name. Label values
//! from the network are escaped as the format asks.

use std::fmt::{Display, Write as _};
use std::sync::atomic::Ordering;

use crate::api::{AlertState, AlertStatus, Dropped, Meta, TableState, Totals};
use crate::buckets::Buckets;
use crate::kind::Kind;
use crate::live::{LiveOf, lock};
use crate::posts::WebhookCounts;
use crate::{flow_metrics, gateway_metrics, http_metrics, probe_metrics};

/// `Content-Type` of the text.
pub const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The samples of a family, out of what a `S` says.
pub(crate) type Write<S> = fn(&S, &mut Samples<'_>);

/// A metric: its name, its type, its labels, what it counts, and its samples.
#[derive(Debug)]
pub struct Family<S> {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
    pub(crate) samples: Write<S>,
}

/// Declares a list of metrics: type, name, labels, what it is, and its samples.
macro_rules! families {
    ($visibility:vis $list:ident: $of:ty; $($kind:ident $name:literal [$($label:literal),*] $help:literal => $samples:expr;)+) => {
        $visibility const $list: &[$crate::metrics::Family<$of>] = &[$($crate::metrics::Family {
            name: $name,
            kind: stringify!($kind),
            labels: &[$($label),*],
            help: $help,
            samples: $samples,
        }),+];
    };
}
pub(crate) use families;

/// Takes the samples of a family. One without a sample is left out: a name with no value would look like
/// something that is measured.
#[derive(Debug)]
pub struct Samples<'a> {
    text: &'a mut String,
    /// The lines above the first sample, until it comes.
    head: String,
    name: &'static str,
    labels: &'static [&'static str],
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

impl Samples<'_> {
    /// The value of a family without labels.
    pub(crate) fn one(&mut self, value: impl Display) {
        self.of(&[], value);
    }

    /// The value for these values of the labels.
    pub(crate) fn of(&mut self, values: &[&str], value: impl Display) {
        self.line("", values, None, value);
    }

    /// The values by the one label.
    pub(crate) fn by<N: AsRef<str>, V: Display>(&mut self, all: impl IntoIterator<Item = (N, V)>) {
        for (name, value) in all {
            self.of(&[name.as_ref()], value);
        }
    }

    /// A histogram; `sum` is in the unit of the texts of the bounds.
    pub(crate) fn buckets<const N: usize>(
        &mut self,
        values: &[&str],
        bounds: &[(u64, &'static str); N],
        buckets: &Buckets<N>,
        sum: impl Display,
    ) {
        let mut below = 0;
        for (count, (_, le)) in buckets.buckets.iter().zip(bounds) {
            below = u64::saturating_add(below, *count);
            self.line("_bucket", values, Some(le), below);
        }
        self.line("_bucket", values, Some("+Inf"), buckets.count);
        self.line("_sum", values, None, sum);
        self.line("_count", values, None, buckets.count);
    }

    /// A histogram of nanoseconds, in seconds.
    pub(crate) fn times<const N: usize>(
        &mut self,
        values: &[&str],
        bounds: &[(u64, &'static str); N],
        buckets: &Buckets<N>,
    ) {
        self.buckets(values, bounds, buckets, exact_seconds(buckets.sum));
    }

    fn line(&mut self, suffix: &str, values: &[&str], le: Option<&str>, value: impl Display) {
        self.text.push_str(&self.head);
        self.head.clear();
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let labels = self.labels.iter().copied().zip(values.iter().copied());
        let labels = labels.chain(le.map(|le| ("le", le)));
        let mut open = '{';
        for (label, text) in labels {
            self.text.push(open);
            open = ',';
            self.text.push_str(label);
            self.text.push_str("=\"");
            push_escaped(self.text, text);
            self.text.push('"');
        }
        let close = if open == ',' { "}" } else { "" };
        // Writing to a String cannot fail.
        writeln!(self.text, "{close} {value}").ok();
    }
}

/// Writes the families of a list.
pub(crate) fn expose<S>(text: &mut String, families: &[Family<S>], said: &S) {
    for family in families {
        let Family {
            name, kind, help, ..
        } = family;
        let mut samples = Samples {
            head: format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"),
            text,
            name,
            labels: family.labels,
        };
        (family.samples)(said, &mut samples);
    }
}

/// Seconds with all nine digits of the nanoseconds.
pub(crate) fn exact_seconds(nanos: u128) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// What there is of a run of any kind.
#[derive(Debug)]
pub(crate) struct Run {
    meta: Meta,
    packets: u64,
    bytes: u64,
    dropped: Dropped,
    table: TableState,
    last_ms: Option<u64>,
    decode_errors: Vec<(&'static str, &'static str, u64)>,
    faults: u64,
}

families! {
    RUN: Run;
    gauge "linkweir_build_info" ["version"] "Version of the program; always 1."
        => |run, out| out.of(&[run.meta.version], 1);
    gauge "linkweir_run_info" ["source", "live"] "What is read; always 1."
        => |run, out| {
            let live = if run.meta.live { "true" } else { "false" };
            out.of(&[&run.meta.source, live], 1);
        };
    gauge "linkweir_run_finished" [] "Whether the run has ended."
        => |run, out| out.one(u8::from(run.meta.finished));
    counter "linkweir_packets_total" [] "Packets analysed."
        => |run, out| out.one(run.packets);
    counter "linkweir_bytes_total" [] "Bytes of the analysed packets on the wire."
        => |run, out| out.one(run.bytes);
    counter "linkweir_dropped_total" ["cause"] "What was lost, by cause: packets (kernel, ring, unusable_records), transactions or flows (table_full), records (sink)."
        => |run, out| out.by(run.dropped.by_cause());
    counter "linkweir_decode_errors_total" ["layer", "cause"] "Packets that could not be decoded, by layer and cause."
        => |run, out| {
            for (layer, cause, count) in &run.decode_errors {
                out.of(&[layer, cause], count);
            }
        };
    counter "linkweir_input_faults_total" [] "Parts of the input that could not be read."
        => |run, out| out.one(run.faults);
    gauge "linkweir_last_packet_timestamp_seconds" [] "Capture time of the latest packet."
        => |run, out| {
            if let Some(last) = run.last_ms {
                out.one(format_args!("{}.{:03}", last / 1000, last % 1000));
            }
        };
    gauge "linkweir_table_entries" [] "Entries in the table: messages that wait for their other half, or flows."
        => |run, out| out.one(run.table.entries);
    gauge "linkweir_table_capacity" [] "Entries that the table can hold."
        => |run, out| out.one(run.table.capacity);
}

/// What there is of the records of a run.
#[derive(Debug)]
pub struct Records<K: Kind> {
    pub(crate) totals: Totals<K::Figures>,
    pub(crate) series: K::Series,
}

/// What there is of alerts.
#[derive(Debug)]
pub(crate) struct Alerts {
    /// Rules; one that was given twice is here once.
    rules: Vec<AlertStatus>,
    posts: [(&'static str, u64); 4],
}

families! {
    ALERTS: Alerts;
    gauge "linkweir_alert_firing" ["rule"] "Whether the rule fires."
        => |alerts, out| {
            let rules = alerts.rules.iter();
            out.by(rules.map(|a| (&a.rule, u8::from(a.state == AlertState::Firing))));
        };
    gauge "linkweir_alert_value" ["rule"] "What the rule measured in the last interval: nanoseconds, percent, per second or a count."
        => |alerts, out| {
            let rules = alerts.rules.iter();
            out.by(rules.filter_map(|a| Some((&a.rule, a.value?))));
        };
    counter "linkweir_webhook_posts_total" ["outcome"] "Alerts posted to a webhook, by outcome."
        => |alerts, out| out.by(alerts.posts);
}

impl Alerts {
    fn of(all: &[AlertStatus], posts: &WebhookCounts) -> Self {
        let mut rules: Vec<AlertStatus> = Vec::new();
        for alert in all {
            if rules.iter().all(|before| before.rule != alert.rule) {
                rules.push(alert.clone());
            }
        }
        Self {
            rules,
            posts: [
                ("delivered", &posts.delivered),
                ("failed", &posts.failed),
                ("retried", &posts.retries),
                ("missed", &posts.missed),
            ]
            .map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed))),
        }
    }
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
        let run = Run {
            meta: self.meta(),
            packets: totals.packets,
            bytes: totals.bytes,
            dropped: totals.dropped,
            table: totals.table,
            last_ms: totals.last_ms,
            decode_errors,
            faults,
        };
        let mut text = String::new();
        expose(&mut text, RUN, &run);
        expose(&mut text, K::METRICS, &Records { totals, series });
        if let Some((status, _)) = self.status() {
            expose(&mut text, K::STATUS_METRICS, status.as_ref());
        }
        if let Some(probes) = self.probes() {
            expose(&mut text, probe_metrics::FAMILIES, probes.as_ref());
        }
        let alerts = Alerts::of(&self.alerts(), self.webhook_counts());
        expose(&mut text, ALERTS, &alerts);
        text
    }
}

/// All metrics as a table in Markdown.
#[must_use]
pub fn metrics_markdown() -> String {
    let mut out =
        "| metric | of | type | labels | unit | what it is |\n| --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    rows(&mut out, "all", RUN);
    rows(&mut out, "all", ALERTS);
    rows(&mut out, "http", http_metrics::FAMILIES);
    rows(&mut out, "flows", flow_metrics::FAMILIES);
    rows(&mut out, "gateway", gateway_metrics::EVENTS);
    rows(&mut out, "gateway", gateway_metrics::STATUS);
    rows(&mut out, "many probes", probe_metrics::FAMILIES);
    out
}

fn rows<S>(out: &mut String, of: &str, families: &[Family<S>]) {
    for family in families {
        let name = family.name;
        let labels: Vec<String> = family
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let quantity = name.strip_suffix("_total").unwrap_or(name);
        let unit = match quantity.rsplit('_').next() {
            Some("seconds") => "seconds",
            Some("bytes") => "bytes",
            _ => "",
        };
        let cells = [
            &format!("`{name}`"),
            of,
            family.kind,
            &labels.join(", "),
            unit,
            family.help,
        ];
        writeln!(out, "| {} |", cells.join(" | ")).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        families! {
            LIST: ();
            gauge "x" ["a", "b"] "X." => |(), out| out.of(&["q\"b\\c\nd", ""], 1.5);
            counter "y" [] "Y." => |(), out| out.one(2);
        }
        let mut text = String::new();
        expose(&mut text, LIST, &());
        assert_eq!(
            text,
            "# HELP x X.\n# TYPE x gauge\nx{a=\"q\\\"b\\\\c\\nd\",b=\"\"} 1.5\n\
             # HELP y Y.\n# TYPE y counter\ny 2\n"
        );
        assert_eq!(exact_seconds(1_000_000_001), "1.000000001");
    }

    #[test]
    fn a_family_without_samples_is_left_out() {
        families! {
            LIST: ();
            counter "a" ["rule"] "Nothing." => |(), out| out.by([("", 0); 0]);
            counter "b" ["rule"] "Two." => |(), out| out.by([("x", 1), ("y", 2)]);
        }
        let mut text = String::new();
        expose(&mut text, LIST, &());
        let want = "# HELP b Two.\n# TYPE b counter\nb{rule=\"x\"} 1\nb{rule=\"y\"} 2\n";
        assert_eq!(text, want);
    }

    #[test]
    fn every_metric_is_in_the_table_once_with_its_unit() {
        let table = metrics_markdown();
        let mut names: Vec<_> = table
            .lines()
            .skip(2)
            .map(|line| line.split('`').nth(1))
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(
            table.contains("| `linkweir_flows_payload_bytes_total` | flows | counter |  | bytes |")
        );
    }
}
