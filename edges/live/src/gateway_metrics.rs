//! A gateway in `/metrics`: its events, and its status.
//!
//! Counters are of the whole run and never go back. The label `application` has the names of the
//! signatures, `rule` those of the policy, `cause` words of the program: none comes from the network.

use std::collections::BTreeMap;

use crate::api::{GatewayFigures, Totals};
use crate::gateway::{ApplicationStatus, GatewayStatus, QueueStatus, ScannerStatus, VaultStatus};
use crate::gateway_kind::GatewaySeries;
use crate::metrics::{Exposition, exact_seconds};

/// Upper bounds of the buckets of file sizes, and as Prometheus writes them, bytes: from a thumbnail to
/// the image of a disk.
pub(super) const SIZE_BOUNDS: [(u64, &str); 10] = [
    (1_000, "1000"),
    (10_000, "10000"),
    (100_000, "100000"),
    (1_000_000, "1e+06"),
    (5_000_000, "5e+06"),
    (10_000_000, "1e+07"),
    (50_000_000, "5e+07"),
    (100_000_000, "1e+08"),
    (1_000_000_000, "1e+09"),
    (10_000_000_000, "1e+10"),
];

/// What the events came to.
pub(super) fn events(
    out: &mut Exposition,
    totals: &Totals<GatewayFigures>,
    series: &GatewaySeries,
) {
    let kinds = linkweir_record::gateway::GatewayEventKind::ALL.iter();
    out.by_label(
        (
            "linkweir_gateway_events_total",
            "counter",
            "Events, by kind.",
        ),
        "event",
        kinds.map(|kind| (kind.as_str(), totals.kind(kind.as_str()))),
    );
    out.by_label(
        (
            "linkweir_gateway_application_events_total",
            "counter",
            "Events, by application.",
        ),
        "application",
        words(&totals.figures.applications),
    );
    out.by_label(
        (
            "linkweir_gateway_rule_events_total",
            "counter",
            "Events, by rule of the policy.",
        ),
        "rule",
        words(&totals.figures.rules),
    );
    out.by_label(
        (
            "linkweir_gateway_stopped_connections_total",
            "counter",
            "Connections that were dropped or rejected, by cause: a rule, or what they carried.",
        ),
        "cause",
        [("rule", totals.refused), ("content", totals.blocked)],
    );
    const SIZE: &str = "linkweir_gateway_file_size_bytes";
    out.family(SIZE, "histogram", "Bytes of a file that passed by.");
    let sizes = &series.file_sizes;
    out.buckets(SIZE, &[], &SIZE_BOUNDS, sizes, sizes.sum);
}

fn words(counts: &BTreeMap<String, u64>) -> impl Iterator<Item = (&str, u64)> {
    counts.iter().map(|(name, count)| (name.as_str(), *count))
}

/// What the gateway says of itself.
pub(super) fn status(out: &mut Exposition, status: &GatewayStatus) {
    out.family(
        "linkweir_gateway_info",
        "gauge",
        "Policy, and what happens to traffic without the program (open or closed); always 1.",
    );
    out.sample(
        "linkweir_gateway_info",
        &[("config", &status.config), ("fail", &status.fail)],
        1,
    );
    out.single(
        "linkweir_gateway_uptime_seconds",
        "gauge",
        "Time since the start.",
        status.uptime_s,
    );
    sums(out, status);
    out.by_label(
        (
            "linkweir_gateway_conditions_total",
            "counter",
            "What was out of the ordinary in packets and connections, by cause.",
        ),
        "cause",
        words(&status.counts),
    );
    applications(out, &status.applications);
    out.by_label(
        (
            "linkweir_gateway_rule_packets_total",
            "counter",
            "Packets that the kernel counted, by rule.",
        ),
        "rule",
        status
            .rules
            .iter()
            .map(|(name, n)| (name.as_str(), n.packets)),
    );
    out.by_label(
        (
            "linkweir_gateway_rule_bytes_total",
            "counter",
            "Bytes of the IP packets that the kernel counted, by rule.",
        ),
        "rule",
        status
            .rules
            .iter()
            .map(|(name, n)| (name.as_str(), n.bytes)),
    );
    queues(out, &status.queues);
    if let Some(scanner) = &status.scanner {
        scans(out, scanner);
    }
    if let Some(vault) = &status.vault {
        files(out, vault);
    }
}

/// Counts that are not by anything.
fn sums(out: &mut Exposition, status: &GatewayStatus) {
    for (name, help, count) in [
        (
            "linkweir_gateway_reloads_total",
            "Policies that were loaded after the first.",
            status.reloads,
        ),
        (
            "linkweir_gateway_packets_total",
            "Packets that came to user space.",
            status.packets,
        ),
        (
            "linkweir_gateway_bytes_total",
            "Bytes of the IP packets that came to user space.",
            status.bytes,
        ),
        (
            "linkweir_gateway_evicted_connections_total",
            "Connections that were forgotten because the table was full.",
            status.evicted,
        ),
        (
            "linkweir_gateway_lost_events_total",
            "Events that found no room, or did not reach an output, of all outputs together.",
            status.events_lost,
        ),
        (
            "linkweir_gateway_unseen_packets_total",
            "Packets that passed unseen because a queue of the kernel was full and fails open.",
            status.unseen,
        ),
    ] {
        out.single(name, "counter", help, count);
    }
    let held = &status.held;
    for (name, help, value) in [
        (
            "linkweir_gateway_connections",
            "Connections that are classified or inspected now.",
            status.connections,
        ),
        (
            "linkweir_gateway_held_packets",
            "Packets that wait for a verdict now.",
            held.packets,
        ),
        (
            "linkweir_gateway_held_bytes",
            "Payload bytes of the packets that wait for a verdict now.",
            held.bytes,
        ),
        (
            "linkweir_gateway_held_peak_packets",
            "The most packets that waited for a verdict at once.",
            held.peak_packets,
        ),
    ] {
        out.single(name, "gauge", help, value);
    }
}

/// A family of counters by application: name, help, and which count.
type ByApplication = (&'static str, &'static str, fn(&ApplicationStatus) -> u64);

fn applications(out: &mut Exposition, applications: &BTreeMap<String, ApplicationStatus>) {
    let families: [ByApplication; 3] = [
        (
            "linkweir_gateway_application_connections_total",
            "Connections that were decided, by application.",
            |one| one.connections,
        ),
        (
            "linkweir_gateway_application_packets_total",
            "Packets that came to user space, by application.",
            |one| one.packets,
        ),
        (
            "linkweir_gateway_application_bytes_total",
            "Bytes of the IP packets that came to user space, by application.",
            |one| one.bytes,
        ),
    ];
    for (name, help, count) in families {
        let values = applications.iter();
        let values = values.map(|(application, one)| (application.as_str(), count(one)));
        out.by_label((name, "counter", help), "application", values);
    }
    const VERDICTS: &str = "linkweir_gateway_verdicts_total";
    out.family(
        VERDICTS,
        "counter",
        "Connections by application and by what became of them: allowed, dropped, rejected or inspected by rule, and blocked, of those inspected, for what they carried.",
    );
    for (application, one) in applications {
        for (verdict, count) in one.by_verdict() {
            let labels = [("application", application.as_str()), ("verdict", verdict)];
            out.sample(VERDICTS, &labels, count);
        }
    }
}

fn queues(out: &mut Exposition, queues: &[QueueStatus]) {
    let named: Vec<(String, &QueueStatus)> = queues
        .iter()
        .map(|queue| (queue.number.to_string(), queue))
        .collect();
    out.by_label(
        (
            "linkweir_gateway_queue_packets_total",
            "counter",
            "Packets that went through a queue of the kernel.",
        ),
        "queue",
        named
            .iter()
            .map(|(name, queue)| (name.as_str(), queue.total)),
    );
    out.by_label(
        (
            "linkweir_gateway_queue_waiting_packets",
            "gauge",
            "Packets in a queue of the kernel now, held ones too.",
        ),
        "queue",
        named
            .iter()
            .map(|(name, queue)| (name.as_str(), queue.waiting)),
    );
    const DROPPED: &str = "linkweir_gateway_queue_dropped_packets_total";
    out.family(
        DROPPED,
        "counter",
        "Packets that the kernel dropped, by queue and cause: the queue was full, or the buffer of the socket.",
    );
    for (name, queue) in &named {
        for (cause, count) in [
            ("queue_full", queue.dropped),
            ("socket_full", queue.user_dropped),
        ] {
            out.sample(DROPPED, &[("queue", name), ("cause", cause)], count);
        }
    }
}

fn scans(out: &mut Exposition, scanner: &ScannerStatus) {
    out.single(
        "linkweir_gateway_scanner_up",
        "gauge",
        "Whether the last try reached the scanner.",
        u8::from(scanner.is_reachable),
    );
    out.by_label(
        (
            "linkweir_gateway_scans_total",
            "counter",
            "Scans that were answered, by result.",
        ),
        "result",
        [
            ("clean", scanner.scans.saturating_sub(scanner.infected)),
            ("infected", scanner.infected),
        ],
    );
    out.by_label(
        (
            "linkweir_gateway_scan_failures_total",
            "counter",
            "Scans without an answer, by cause.",
        ),
        "cause",
        words(&scanner.failed),
    );
    out.single(
        "linkweir_gateway_scanned_bytes_total",
        "counter",
        "Bytes given to the scanner.",
        scanner.bytes,
    );
    out.single(
        "linkweir_gateway_waiting_scans",
        "gauge",
        "Scans that wait for an answer now.",
        scanner.waiting,
    );
    const LATENCY: &str = "linkweir_gateway_scan_latency_seconds";
    out.family(LATENCY, "summary", "From asking the scanner to its answer.");
    for (name, quantile) in [
        ("p50", "0.5"),
        ("p90", "0.9"),
        ("p99", "0.99"),
        ("max", "1"),
    ] {
        if let Some(micros) = scanner.latency_us.get(name) {
            let value = exact_seconds(u128::from(*micros) * 1000);
            out.sample(LATENCY, &[("quantile", quantile)], value);
        }
    }
}

fn files(out: &mut Exposition, vault: &VaultStatus) {
    out.by_label(
        (
            "linkweir_gateway_vault_files_total",
            "counter",
            "Files that were kept: whole, in part, or in the quarantine.",
        ),
        "what",
        [
            ("whole", vault.kept),
            ("part", vault.parts),
            ("quarantined", vault.quarantined),
        ],
    );
    out.single(
        "linkweir_gateway_vault_bytes",
        "gauge",
        "Bytes in the directories of recorded files.",
        vault.bytes,
    );
    out.single(
        "linkweir_gateway_vault_open_files",
        "gauge",
        "Files that are being written.",
        vault.open,
    );
    out.by_label(
        (
            "linkweir_gateway_vault_lost_files_total",
            "counter",
            "Files that were not recorded, or only in part, by cause.",
        ),
        "cause",
        words(&vault.lost_files),
    );
    out.by_label(
        (
            "linkweir_gateway_vault_dropped_bytes_total",
            "counter",
            "Bytes that were not kept, by cause.",
        ),
        "cause",
        words(&vault.dropped_bytes),
    );
}
