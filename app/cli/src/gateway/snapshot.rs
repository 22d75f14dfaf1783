//! The state of a running gateway, gathered from its parts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use linkweir_engine::Loss;
use linkweir_files::{FileStore, LossCause, Losses};
use linkweir_gateway::{Stats, Step, StepTimes};
use linkweir_live::gateway::{
    ApplicationStatus, GatewayStatus, Held, QueueStatus, ScannerStatus, StepStatus, VaultStatus,
};
use linkweir_netfilter::rules::{self, RuleCount};
use linkweir_netfilter::stats::{KernelQueue, QueueTable};
use linkweir_record::GatewayEventKind;
use linkweir_scan::Scanner;
use linkweir_sketch::LogLinear;

use super::config::GatewayConfig;
use super::kernel::counts_by_rule;
use super::shared::Shared;
use super::unseen::{Counted, Spell, Unseen};
use crate::clock;

/// Where the numbers come from.
pub(super) struct Snapshot {
    config: String,
    scanner_address: String,
    is_fail_open: bool,
    first_queue: u16,
    began: Instant,
    reloads: AtomicU64,
    shared: Arc<Shared>,
    /// `None` where it cannot be read.
    queue_table: Option<QueueTable>,
    scanner: Option<Scanner>,
    file_store: Option<FileStore>,
    /// Connections without a decision when it began.
    undecided: u64,
    unseen: Unseen,
    /// Events that reported them.
    unseen_events: u64,
    /// Events that did not reach an output, by output.
    not_written: BTreeMap<String, u64>,
}

impl Snapshot {
    pub(super) fn new(
        config: &GatewayConfig,
        shared: Arc<Shared>,
        queue_table: Option<QueueTable>,
        scanner: Option<Scanner>,
        file_store: Option<FileStore>,
        undecided: u64,
    ) -> Self {
        Self {
            config: config.path.display().to_string(),
            scanner_address: config
                .scanner
                .as_ref()
                .map(|scanner| scanner.address.to_string())
                .unwrap_or_default(),
            is_fail_open: config.settings.is_fail_open(),
            first_queue: config.settings.first_queue,
            began: clock::now(),
            reloads: AtomicU64::new(0),
            shared,
            queue_table,
            scanner,
            file_store,
            undecided,
            unseen: Unseen::default(),
            unseen_events: 0,
            not_written: BTreeMap::new(),
        }
    }

    /// What each output has lost.
    pub(super) fn set_losses(&mut self, losses: &[Loss]) {
        self.not_written.clear();
        for loss in losses {
            // Two may have one name.
            *self
                .not_written
                .entry(loss.destination.clone())
                .or_insert(0) += loss.count;
        }
    }

    /// A time in which packets passed unseen, once it is over; at the end of the run any.
    pub(super) fn take_unseen(&mut self, is_end: bool) -> Option<Spell> {
        self.unseen.take(self.began.elapsed(), is_end)
    }

    /// So many events told of it.
    pub(super) fn count_unseen_events(&mut self, count: u64) {
        self.unseen_events += count;
    }

    /// Files that were not recorded as they should have been, where any were to be. One that is longer than
    /// files may be is cut as the settings say.
    pub(super) fn lost_files(&self) -> Option<Loss> {
        let status = self.file_store.as_ref()?.status();
        let lost = status.lost.iter();
        let lost = lost.filter(|(cause, _)| *cause != LossCause::FileLimit);
        Some(Loss {
            destination: "recorded files".to_owned(),
            count: lost.map(|(_, loss)| loss.files).sum(),
            ..Loss::default()
        })
    }

    pub(super) fn count_reload(&self) {
        self.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Files that are being written are completed.
    pub(super) fn finish(&mut self) {
        // A file store that is dropped has written what it was given.
        if let Some(file_store) = self.file_store.as_mut() {
            file_store.finish();
        }
    }

    /// Messages of the file store.
    pub(super) fn take_notices(&self) -> Vec<String> {
        self.file_store
            .as_ref()
            .map(FileStore::take_notices)
            .unwrap_or_default()
    }

    /// The state now.
    pub(super) fn take(&mut self) -> GatewayStatus {
        // The order matters: see `Counted`.
        let numbered_before = numbered(&self.queues());
        let standing = rules::standing().ok().flatten();
        let queues = self.queues();
        let mut overruns = 0;
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
            overruns += report.queue.overruns;
            add("queue_overruns", report.queue.overruns);
            add("queue_malformed", report.queue.malformed);
            add("answers_refused", report.queue.refused_answers);
            add("answers_not_sent", report.queue.send_errors);
            add("resets_sent", report.resets.sent);
            add("resets_failed", report.resets.failed);
            add("relayed_segments", report.resets.segments);
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
            ("undecided_connections", stats.undecided),
            ("scan_timeouts", stats.scan_timeouts),
        ] {
            add(name, count);
        }
        if let Some(quotas) = &self.shared.policy.get().quotas {
            let counts = quotas.counts();
            add("quota_clients", counts.clients);
            add("quota_used_up", counts.used_up);
            add("quota_too_many_connections", counts.too_many);
            add("quota_forgotten", counts.forgotten);
        }
        // Since `up`, as the kernel counts them; none where no rule has a rate.
        if let Some(standing) = &standing {
            let sum = |counts: &[RuleCount]| counts.iter().map(|count| count.packets).sum();
            add("client_rate_exceeded", sum(&standing.over_rate));
            add("client_rate_table_full", sum(&standing.without_rate));
        }
        // A queue that is closed, as all are at the end, numbers nothing.
        if self.is_fail_open && queues.len() == self.shared.workers.len() {
            let counted = Counted {
                numbered_before,
                queued: standing.as_ref().and_then(|standing| standing.queued),
                numbered: numbered(&queues),
                overruns,
            };
            self.unseen.look(&counted, self.began.elapsed());
        }
        let count_of = |event: GatewayEventKind| match event {
            GatewayEventKind::Unseen => self.unseen_events,
            _ => stats.events_of(event),
        };
        let events = GatewayEventKind::ALL.iter();
        GatewayStatus {
            program: concat!("linkweir ", env!("CARGO_PKG_VERSION")).to_owned(),
            pid: std::process::id(),
            uptime_s: self.began.elapsed().as_secs_f64(),
            config: self.config.clone(),
            reloads: self.reloads.load(Ordering::Relaxed),
            fail: if self.is_fail_open { "open" } else { "closed" }.to_owned(),
            applications: applications(&stats),
            rules: standing.as_ref().map(counts_by_rule).unwrap_or_default(),
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
                .map(|event| (event.as_str().to_owned(), count_of(*event)))
                .collect(),
            unseen: self.unseen.total(),
            events_lost: events_lost + self.not_written.values().sum::<u64>(),
            not_written: self.not_written.clone(),
            queues: queues.iter().map(queue_status).collect(),
            steps: steps(&self.shared, &stats.scan_wait_ns),
            scanner: self
                .scanner
                .as_ref()
                .map(|scanner| self.scanner(scanner, &stats)),
            vault: self.file_store.as_ref().map(file_store),
        }
    }

    /// The kernel's own numbers, where they can be read.
    fn queues(&self) -> Vec<KernelQueue> {
        let last = usize::from(self.first_queue) + self.shared.workers.len();
        let is_ours =
            |number: u16| (self.first_queue..).contains(&number) && usize::from(number) < last;
        let table = self.queue_table.as_ref();
        let mut queues = table
            .and_then(|table| table.read().ok())
            .unwrap_or_default();
        queues.retain(|queue| is_ours(queue.number));
        queues
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

/// What packets took by step, of all workers. Every scan has its time already.
fn steps(shared: &Shared, scan_wait_ns: &LogLinear) -> Vec<StepStatus> {
    let mut all = StepTimes::default();
    for worker in &shared.workers {
        all.merge(&worker.steps());
    }
    let times = all.iter().map(|(step, times)| match step {
        Step::Scan => (step, scan_wait_ns),
        _ => (step, times),
    });
    let times = times.filter_map(|(step, times)| {
        Some(StepStatus {
            step: step.as_str().to_owned(),
            samples: times.count(),
            sum_ns: u64::try_from(times.sum()).unwrap_or(u64::MAX),
            mean_ns: times.mean()?,
            p50_ns: times.quantile(0.5)?,
            p99_ns: times.quantile(0.99)?,
        })
    });
    times.collect()
}

/// How many packets queues have numbered, modulo 2^32.
fn numbered(queues: &[KernelQueue]) -> u32 {
    let last = queues.iter().map(|queue| queue.last_id);
    last.fold(0, u32::wrapping_add)
}

fn queue_status(queue: &KernelQueue) -> QueueStatus {
    QueueStatus {
        number: queue.number,
        waiting: queue.waiting.into(),
        dropped: queue.queue_dropped.into(),
        user_dropped: queue.user_dropped.into(),
        total: queue.last_id.into(),
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

fn file_store(file_store: &FileStore) -> VaultStatus {
    let status = file_store.status();
    VaultStatus {
        kept: status.kept,
        parts: status.parts,
        quarantined: status.quarantined,
        bytes: status.total_bytes,
        open: status.open as u64,
        lost_files: by_cause(&status.lost, |loss| loss.files),
        dropped_bytes: by_cause(&status.lost, |loss| loss.bytes),
        last_error: status.last_error,
    }
}

fn by_cause(lost: &Losses, what: fn(linkweir_files::Loss) -> u64) -> BTreeMap<String, u64> {
    let lost = lost.iter();
    lost.map(|(cause, loss)| (cause.as_str().to_owned(), what(loss)))
        .collect()
}
