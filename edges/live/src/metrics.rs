//! Everything in `/metrics`, and the table of it in the manual.
//!
//! Names follow the conventions of Prometheus: base units, `_total` on counters, one unit per name. What is
//! special of a kind of record is a list beside the kind.

use std::fmt::{Display, Write as _};
use std::sync::atomic::Ordering;

use crate::alert::WebhookCounts;
use crate::api::{AlertState, AlertStatus, Dropped, Meta, Probe, Probes, TableState};
use crate::export;
use crate::exposition::{Family, Samples, collect, expose, families};
use crate::kind::{Kind, Records};
use crate::live::{LiveOf, lock};
use crate::points::Metric;
use crate::text::to_f64;
use crate::{flow_metrics, gateway_metrics, http, load_metrics};

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

fn by_probe<V: Display>(probes: &Probes, out: &mut Samples<'_>, value: fn(&Probe) -> V) {
    let all = probes.probes.iter();
    out.by(all.map(|probe| (&probe.name, value(probe))));
}

families! {
    PROBES: Probes;
    counter "linkweir_sketches_total" [] "Sketches that were merged."
        => |probes, out| out.one(probes.sketches);
    counter "linkweir_sketches_refused_total" ["cause"] "Messages that were not sketches of this kind, by cause."
        => |probes, out| out.by(&probes.refused);
    gauge "linkweir_probe_up" ["probe"] "Whether the probe sends sketches: neither ended nor stale."
        => |probes, out| by_probe(probes, out, |probe| { f64::from(u8::from(!probe.has_ended && !probe.is_stale)) });
    gauge "linkweir_probe_last_seen_timestamp_seconds" ["probe"] "When the last sketch of the probe came."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.last_seen_ms) / 1000.0);
    counter "linkweir_probe_runs_total" ["probe"] "Runs under the name of the probe."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.runs));
    counter "linkweir_probe_packets_total" ["probe"] "Packets that the probe analysed."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.packets));
    counter "linkweir_probe_bytes_total" ["probe"] "Bytes of the packets of the probe on the wire."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.bytes));
    counter "linkweir_probe_dropped_total" ["probe"] "What the probe lost, whatever the cause."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.dropped.total()));
    counter "linkweir_probe_missing_intervals_total" ["probe"] "Intervals of the probe that never came."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.missing_intervals));
    counter "linkweir_probe_late_intervals_total" ["probe"] "Intervals of the probe that came too late for the merged ones, and are in the sums only."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.late_intervals));
    counter "linkweir_probe_duplicates_total" ["probe"] "Sketches of the probe that came more than once, and were counted once."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.duplicates));
}

impl<K: Kind> LiveOf<K> {
    /// Everything for a scraper, in the text format of Prometheus.
    #[must_use]
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        self.describe(&mut text);
        text
    }

    /// The same as values, for other formats.
    #[must_use]
    pub fn metric_values(&self) -> Vec<Metric> {
        let mut all = Vec::new();
        self.describe(&mut all);
        all
    }

    fn describe(&self, to: &mut impl Taker) {
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
        to.take(RUN, &run);
        to.take(K::METRICS, &Records { totals, series });
        if let Some((status, _)) = self.status() {
            to.take(K::STATUS_METRICS, status.as_ref());
        }
        if let Some(probes) = self.probes() {
            to.take(PROBES, probes.as_ref());
        }
        let alerts = Alerts::of(&self.alerts(), self.webhook_counts());
        to.take(ALERTS, &alerts);
        to.take(export::FAMILIES, &self.export_counts().exported());
    }
}

/// Takes families one list after the other.
trait Taker {
    fn take<S>(&mut self, families: &[Family<S>], said: &S);
}

impl Taker for String {
    fn take<S>(&mut self, families: &[Family<S>], said: &S) {
        expose(self, families, said);
    }
}

impl Taker for Vec<Metric> {
    fn take<S>(&mut self, families: &[Family<S>], said: &S) {
        collect(self, families, said);
    }
}

/// What is declared of a family, whatever its samples are taken from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// Families that have something in common, and what: `all` are those of every run.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) of: &'static str,
    pub(crate) families: Vec<Declared>,
}

fn section<S>(of: &'static str, families: &[Family<S>]) -> Section {
    let families = families.iter().map(|family| Declared {
        name: family.name,
        kind: family.kind,
        labels: family.labels,
        help: family.help,
    });
    Section {
        of,
        families: families.collect(),
    }
}

/// Every family of every program: the table of the manual and the dashboards are made of this.
pub(crate) fn sections() -> [Section; 10] {
    [
        section("all", RUN),
        section("all", ALERTS),
        section("all", export::FAMILIES),
        section("http", http::FAMILIES),
        section("flows", flow_metrics::FAMILIES),
        section("gateway", gateway_metrics::EVENTS),
        section("gateway", gateway_metrics::STATUS),
        section("load", load_metrics::FAMILIES),
        section("load", load_metrics::STATUS),
        section(MANY_PROBES, PROBES),
    ]
}

/// What the families of merged probes are of.
pub(crate) const MANY_PROBES: &str = "many probes";

/// All metrics as a table in Markdown.
#[must_use]
pub fn metrics_markdown() -> String {
    let mut out =
        "| metric | of | type | labels | unit | what it is |\n| --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for Section { of, families } in sections() {
        for family in families {
            let labels: Vec<String> = family
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            let cells = [
                &format!("`{}`", family.name),
                of,
                family.kind,
                &labels.join(", "),
                family.unit(),
                family.help,
            ];
            writeln!(out, "| {} |", cells.join(" | ")).ok();
        }
    }
    out
}

impl Declared {
    pub(crate) fn unit(&self) -> &'static str {
        unit_of_name(self.name)
    }
}

/// The unit of a metric, by the convention of Prometheus at the end of the name; empty for counts and states.
pub(crate) fn unit_of_name(name: &str) -> &'static str {
    let quantity = name.strip_suffix("_total").unwrap_or(name);
    match quantity.rsplit('_').next() {
        Some("seconds") => "seconds",
        Some("bytes") => "bytes",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
