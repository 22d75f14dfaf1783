//! A gateway in `/metrics`: its events, and its status.
//!
//! Counters are of the whole run and never go back. The label `application` has the names of the
//! signatures, `rule` those of the policy, `cause` words of the program: none comes from the network.

use std::fmt::Display;

use linkweir_record::GatewayKind;
use linkweir_record::gateway::GatewayEventKind;

use crate::exposition::{Samples, families};
use crate::gateway::{ApplicationStatus, GatewayStatus, QueueStatus, ScannerStatus, VaultStatus};
use crate::kind::Records;
use linkweir_record::human::exact_seconds;

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

// What the events came to.
families! {
    pub(crate) EVENTS: Records<GatewayKind>;
    counter "linkweir_gateway_events_total" ["event"] "Events, by kind."
        => |all, out| {
            let kinds = GatewayEventKind::ALL.iter().map(|kind| kind.as_str());
            out.by(kinds.map(|kind| (kind, all.totals.kind(kind))));
        };
    counter "linkweir_gateway_application_events_total" ["application"] "Events, by application."
        => |all, out| out.by(&all.totals.applications);
    counter "linkweir_gateway_rule_events_total" ["rule"] "Events, by rule of the policy."
        => |all, out| out.by(&all.totals.rules);
    counter "linkweir_gateway_stopped_connections_total" ["cause"] "Connections that were dropped or rejected, by cause: a rule, or what they carried."
        => |all, out| {
            out.by([
                ("rule", all.totals.refused),
                ("content", all.totals.blocked),
            ]);
        };
    histogram "linkweir_gateway_file_size_bytes" [] "Bytes of a file that passed by."
        => |all, out| {
            let sizes = &all.series.file_sizes;
            out.buckets(&[], &SIZE_BOUNDS, sizes, sizes.sum);
        };
}

fn by_application(
    status: &GatewayStatus,
    out: &mut Samples<'_>,
    count: fn(&ApplicationStatus) -> u64,
) {
    let all = status.applications.iter();
    out.by(all.map(|(name, one)| (name, count(one))));
}

fn by_queue(status: &GatewayStatus, out: &mut Samples<'_>, count: fn(&QueueStatus) -> u64) {
    let all = status.queues.iter();
    out.by(all.map(|queue| (queue.number.to_string(), count(queue))));
}

/// A figure of the scanner, where there is one.
fn of_scanner<V: Display>(
    status: &GatewayStatus,
    out: &mut Samples<'_>,
    value: fn(&ScannerStatus) -> V,
) {
    if let Some(scanner) = &status.scanner {
        out.one(value(scanner));
    }
}

/// A figure of the recorded files, where any are kept.
fn of_files(status: &GatewayStatus, out: &mut Samples<'_>, value: fn(&VaultStatus) -> u64) {
    if let Some(files) = &status.vault {
        out.one(value(files));
    }
}

// What the gateway says of itself.
families! {
    pub(crate) STATUS: GatewayStatus;
    gauge "linkweir_gateway_info" ["config", "fail"] "Policy, and what happens to traffic without the program (open or closed); always 1."
        => |status, out| out.of(&[&status.config, &status.fail], 1);
    gauge "linkweir_gateway_uptime_seconds" [] "Time since the start."
        => |status, out| out.one(status.uptime_s);
    counter "linkweir_gateway_reloads_total" [] "Policies that were loaded after the first."
        => |status, out| out.one(status.reloads);
    counter "linkweir_gateway_packets_total" [] "Packets that came to user space."
        => |status, out| out.one(status.packets);
    counter "linkweir_gateway_bytes_total" [] "Bytes of the IP packets that came to user space."
        => |status, out| out.one(status.bytes);
    counter "linkweir_gateway_evicted_connections_total" [] "Connections that were forgotten because the table was full."
        => |status, out| out.one(status.evicted);
    counter "linkweir_gateway_lost_events_total" [] "Events that found no room, or did not reach an output, of all outputs together."
        => |status, out| out.one(status.events_lost);
    counter "linkweir_gateway_unseen_packets_total" [] "Packets that passed unseen because a queue of the kernel was full and fails open."
        => |status, out| out.one(status.unseen);
    gauge "linkweir_gateway_connections" [] "Connections that are classified or inspected now."
        => |status, out| out.one(status.connections);
    gauge "linkweir_gateway_held_packets" [] "Packets that wait for a verdict now."
        => |status, out| out.one(status.held.packets);
    gauge "linkweir_gateway_held_bytes" [] "Payload bytes of the packets that wait for a verdict now."
        => |status, out| out.one(status.held.bytes);
    gauge "linkweir_gateway_held_peak_packets" [] "The most packets that waited for a verdict at once."
        => |status, out| out.one(status.held.peak_packets);
    counter "linkweir_gateway_conditions_total" ["cause"] "What was out of the ordinary in packets and connections, by cause."
        => |status, out| out.by(&status.counts);
    counter "linkweir_gateway_application_connections_total" ["application"] "Connections that were decided, by application."
        => |status, out| by_application(status, out, |one| one.connections);
    counter "linkweir_gateway_application_packets_total" ["application"] "Packets that came to user space, by application."
        => |status, out| by_application(status, out, |one| one.packets);
    counter "linkweir_gateway_application_bytes_total" ["application"] "Bytes of the IP packets that came to user space, by application."
        => |status, out| by_application(status, out, |one| one.bytes);
    counter "linkweir_gateway_verdicts_total" ["application", "verdict"] "Connections by application and by what became of them: allowed, dropped, rejected or inspected by rule, and blocked, of those inspected, for what they carried."
        => |status, out| {
            for (application, one) in &status.applications {
                for (verdict, count) in one.by_verdict() {
                    out.of(&[application, verdict], count);
                }
            }
        };
    counter "linkweir_gateway_rule_packets_total" ["rule"] "Packets that the kernel counted, by rule."
        => |status, out| out.by(status.rules.iter().map(|(name, one)| (name, one.packets)));
    counter "linkweir_gateway_rule_bytes_total" ["rule"] "Bytes of the IP packets that the kernel counted, by rule."
        => |status, out| out.by(status.rules.iter().map(|(name, one)| (name, one.bytes)));
    counter "linkweir_gateway_queue_packets_total" ["queue"] "Packets that went through a queue of the kernel."
        => |status, out| by_queue(status, out, |queue| queue.total);
    gauge "linkweir_gateway_queue_waiting_packets" ["queue"] "Packets in a queue of the kernel now, held ones too."
        => |status, out| by_queue(status, out, |queue| queue.waiting);
    counter "linkweir_gateway_queue_dropped_packets_total" ["queue", "cause"] "Packets that the kernel dropped, by queue and cause: the queue was full, or the buffer of the socket."
        => |status, out| {
            for queue in &status.queues {
                let name = queue.number.to_string();
                out.of(&[&name, "queue_full"], queue.dropped);
                out.of(&[&name, "socket_full"], queue.user_dropped);
            }
        };
    summary "linkweir_gateway_step_seconds" ["step", "quantile"] "What a packet took at a step of its way through the gateway, of one packet in 61: queue, track, classify, inspect, hold, verdict, total; and of all scans."
        => |status, out| {
            for step in &status.steps {
                let quantiles = [("0.5", step.p50_ns), ("0.99", step.p99_ns)];
                out.summary(&step.step, &quantiles, step.sum_ns, step.samples);
            }
        };
    gauge "linkweir_gateway_scanner_up" [] "Whether the last try reached the scanner."
        => |status, out| of_scanner(status, out, |scanner| u8::from(scanner.is_reachable));
    counter "linkweir_gateway_scans_total" ["result"] "Scans that were answered, by result."
        => |status, out| {
            if let Some(scanner) = &status.scanner {
                let clean = scanner.scans.saturating_sub(scanner.infected);
                out.by([("clean", clean), ("infected", scanner.infected)]);
            }
        };
    counter "linkweir_gateway_scan_failures_total" ["cause"] "Scans without an answer, by cause."
        => |status, out| out.by(status.scanner.iter().flat_map(|scanner| &scanner.failed));
    counter "linkweir_gateway_scanned_bytes_total" [] "Bytes given to the scanner."
        => |status, out| of_scanner(status, out, |scanner| scanner.bytes);
    gauge "linkweir_gateway_waiting_scans" [] "Scans that wait for an answer now."
        => |status, out| of_scanner(status, out, |scanner| scanner.waiting);
    summary "linkweir_gateway_scan_latency_seconds" ["quantile"] "From asking the scanner to its answer."
        => |status, out| {
            let latency = status.scanner.iter().flat_map(|scanner| {
                let quantiles = [
                    ("p50", "0.5"),
                    ("p90", "0.9"),
                    ("p99", "0.99"),
                    ("max", "1"),
                ];
                let known = quantiles.map(|(name, q)| Some((q, *scanner.latency_us.get(name)?)));
                known.into_iter().flatten()
            });
            out.by(latency.map(|(q, micros)| (q, exact_seconds(u128::from(micros) * 1000))));
        };
    counter "linkweir_gateway_vault_files_total" ["what"] "Files that were kept: whole, in part, or in the quarantine."
        => |status, out| {
            if let Some(files) = &status.vault {
                out.by([
                    ("whole", files.kept),
                    ("part", files.parts),
                    ("quarantined", files.quarantined),
                ]);
            }
        };
    gauge "linkweir_gateway_vault_bytes" [] "Bytes in the directories of recorded files."
        => |status, out| of_files(status, out, |files| files.bytes);
    gauge "linkweir_gateway_vault_open_files" [] "Files that are being written."
        => |status, out| of_files(status, out, |files| files.open);
    counter "linkweir_gateway_vault_lost_files_total" ["cause"] "Files that were not recorded, or only in part, by cause."
        => |status, out| out.by(status.vault.iter().flat_map(|files| &files.lost_files));
    counter "linkweir_gateway_vault_dropped_bytes_total" ["cause"] "Bytes that were not kept, by cause."
        => |status, out| out.by(status.vault.iter().flat_map(|files| &files.dropped_bytes));
}
