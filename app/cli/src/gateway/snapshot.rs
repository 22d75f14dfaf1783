//! The state of a running gateway, gathered from its parts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use linkweir_console::gateway::{
    ApplicationStatus, GatewayStatus, Held, QueueStatus, ScannerStatus, VaultStatus,
};
use linkweir_gateway::Stats;
use linkweir_netfilter::stats::kernel_queues;
use linkweir_record::GatewayEventKind;
use linkweir_scan::Scanner;
use linkweir_sketch::LogLinear;
use linkweir_vault::Vault;

use super::config::GatewayConfig;
use super::kernel::counts_by_rule;
use super::shared::Shared;
use crate::progress;

/// Where the numbers come from.
pub(super) struct Snapshot {
    config: String,
    scanner_address: String,
    is_fail_open: bool,
    first_queue: u16,
    began: Instant,
    reloads: AtomicU64,
    shared: Arc<Shared>,
    scanner: Option<Scanner>,
    vault: Option<Vault>,
    /// Connections without a decision when it began.
    undecided: u64,
}

impl Snapshot {
    pub(super) fn new(
        config: &GatewayConfig,
        shared: Arc<Shared>,
        scanner: Option<Scanner>,
        vault: Option<Vault>,
        undecided: u64,
    ) -> Self {
        Self {
            config: config.path.display().to_string(),
            scanner_address: config
                .scanner
                .as_ref()
                .map(|scanner| scanner.address.to_string())
                .unwrap_or_default(),
            is_fail_open: config.settings.is_fail_open,
            first_queue: config.settings.first_queue,
            began: progress::now(),
            reloads: AtomicU64::new(0),
            shared,
            scanner,
            vault,
            undecided,
        }
    }

    pub(super) fn count_reload(&self) {
        self.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Files that are being written are completed.
    pub(super) fn finish(&mut self) {
        // A vault that is dropped has written what it was given.
        if let Some(vault) = self.vault.as_mut() {
            vault.finish();
        }
    }

    /// What the vault has to say.
    pub(super) fn take_notices(&self) -> Vec<String> {
        self.vault
            .as_ref()
            .map(Vault::take_notices)
            .unwrap_or_default()
    }

    /// The state now.
    pub(super) fn take(&self) -> GatewayStatus {
        let mut stats = Stats::default();
        let mut events_lost = 0;
        let mut counts = BTreeMap::new();
        let mut add = |name: &str, count: u64| {
            *counts.entry(name.to_owned()).or_insert(0) += count;
        };
        add("undecided_at_start", self.undecided);
        for worker in &self.shared.workers {
            let report = worker.report();
            stats.merge(&report.stats);
            events_lost += report.events_lost;
            add("queue_overruns", report.queue.overruns);
            add("queue_malformed", report.queue.malformed);
            add("answers_refused", report.queue.refused_answers);
            add("answers_not_sent", report.queue.send_errors);
            add("resets_sent", report.resets.sent);
            add("resets_failed", report.resets.failed);
        }
        for (name, count) in [
            ("neither_tcp_nor_udp", stats.strangers),
            ("undecoded", stats.undecoded),
            ("bad_checksum", stats.bad_checksums),
            ("out_of_order", stats.out_of_order),
            ("duplicate", stats.duplicates),
            ("retransmitted_while_held", stats.retransmitted_while_held),
            ("over_limit", stats.over_limit),
            ("implausible", stats.implausible),
            ("rewritten", stats.rewritten),
            ("gap", stats.gaps),
            ("resumed_connections", stats.resumed),
            ("scan_timeouts", stats.scan_timeouts),
        ] {
            add(name, count);
        }
        let events = GatewayEventKind::ALL.iter();
        GatewayStatus {
            program: concat!("linkweir ", env!("CARGO_PKG_VERSION")).to_owned(),
            pid: std::process::id(),
            uptime_s: self.began.elapsed().as_secs_f64(),
            config: self.config.clone(),
            reloads: self.reloads.load(Ordering::Relaxed),
            fail: if self.is_fail_open { "open" } else { "closed" }.to_owned(),
            applications: applications(&stats),
            rules: counts_by_rule(),
            packets: stats.packets,
            bytes: stats.bytes,
            connections: stats.connections,
            evicted: stats.evicted,
            held: Held {
                packets: stats.held_packets,
                bytes: stats.held_bytes,
                peak_packets: stats.peak_held_packets,
            },
            counts,
            events: events
                .map(|event| (event.as_str().to_owned(), stats.events_of(*event)))
                .collect(),
            events_lost,
            queues: self.queues(),
            scanner: self
                .scanner
                .as_ref()
                .map(|scanner| self.scanner(scanner, &stats)),
            vault: self.vault.as_ref().map(vault),
        }
    }

    /// The kernel's own numbers, where they can be read.
    fn queues(&self) -> Vec<QueueStatus> {
        let last = usize::from(self.first_queue) + self.shared.workers.len();
        let is_ours =
            |number: u16| (self.first_queue..).contains(&number) && usize::from(number) < last;
        let queues = kernel_queues().unwrap_or_default();
        queues
            .into_iter()
            .filter(|queue| is_ours(queue.number))
            .map(|queue| QueueStatus {
                number: queue.number,
                waiting: queue.waiting.into(),
                dropped: queue.queue_dropped.into(),
                user_dropped: queue.user_dropped.into(),
                total: queue.last_id.into(),
            })
            .collect()
    }

    fn scanner(&self, scanner: &Scanner, stats: &Stats) -> ScannerStatus {
        let status = scanner.status();
        ScannerStatus {
            address: self.scanner_address.clone(),
            is_reachable: status.is_reachable,
            version: status.version,
            scans: status.scans,
            infected: status.infected,
            failed: status
                .failed
                .iter()
                .map(|(cause, count)| (cause.as_str().to_owned(), count))
                .collect(),
            bytes: status.bytes,
            waiting: status.waiting as u64,
            latency_us: latency(&stats.scan_wait_ns),
            last_error: status.last_error,
        }
    }
}

fn applications(stats: &Stats) -> BTreeMap<String, ApplicationStatus> {
    let all = stats.applications.iter();
    all.map(|(name, one)| {
        let status = ApplicationStatus {
            connections: one.connections,
            packets: one.packets,
            bytes: one.bytes,
            allowed: one.allowed,
            dropped: one.dropped,
            rejected: one.rejected,
            inspected: one.inspected,
            blocked: one.blocked,
        };
        (name.clone(), status)
    })
    .collect()
}

/// What packets waited for scans, microseconds.
fn latency(wait: &LogLinear) -> BTreeMap<String, u64> {
    let quantiles = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];
    let quantiles = quantiles
        .into_iter()
        .filter_map(|(name, q)| Some((name.to_owned(), wait.quantile(q)? / 1000)));
    quantiles.collect()
}

fn vault(vault: &Vault) -> VaultStatus {
    let status = vault.status();
    VaultStatus {
        kept: status.kept,
        parts: status.parts,
        quarantined: status.quarantined,
        bytes: status.total_bytes,
        open: status.open as u64,
        dropped_bytes: status
            .lost
            .iter()
            .map(|(cause, loss)| (cause.as_str().to_owned(), loss.bytes))
            .collect(),
        last_error: status.last_error,
    }
}
