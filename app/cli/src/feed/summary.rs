//! The totals of a feed: as JSON for programs, on one screen for people.

use std::time::Duration;

use linkweir_engine::{Batch, RunReport};
use linkweir_feed::{ConsumerStatus, WhenFull};
use linkweir_wire::{DecodeFaults, Timestamp};
use serde_json::{Value, json};

use super::args::By;
use super::table;
use crate::passive::totals;
use crate::screen::{lost, rows};

/// Everything a summary is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals<'a> {
    pub(crate) report: &'a RunReport,
    pub(crate) status: &'a [ConsumerStatus],
    pub(crate) elapsed: Duration,
    pub(crate) name: &'a str,
    pub(crate) by: By,
    pub(crate) when_full: WhenFull,
}

/// The keys that every summary has.
pub(super) fn common(report: &RunReport, ring: u64, elapsed: Duration) -> Value {
    json!({
        "packets": report.packets,
        "bytes": report.bytes,
        "first_ts_ns": report.first.map(Timestamp::as_nanos),
        "last_ts_ns": report.last.map(Timestamp::as_nanos),
        "elapsed_s": elapsed.as_secs_f64(),
        "dropped": {
            "kernel": report.drops.kernel,
            "ring": ring,
            "unusable_records": report.drops.unusable_records,
        },
        // A feeder looks at headers to distribute by them; what does not decode goes to consumer 0.
        "decode_errors": {},
        "input_faults": totals::faults_json(report),
        "fragments": totals::fragments_json(&report.fragments),
    })
}

impl Totals<'_> {
    /// Packets that did not reach their consumer.
    fn ring_drops(&self) -> u64 {
        self.report.drops.ring + self.status.iter().map(|c| c.dropped).sum::<u64>()
    }

    /// Packets that killed consumers took and perhaps wrote no records of.
    fn unwritten(&self) -> u64 {
        self.status.iter().map(|c| c.unwritten_by_killed).sum()
    }

    /// What was lost, for people.
    fn lost(&self) -> Vec<(String, u64)> {
        let drops = self.report.drops;
        let drops = [
            ("kernel", drops.kernel),
            ("ring", self.ring_drops()),
            ("unusable_records", drops.unusable_records),
            ("unwritten by killed consumers", self.unwritten()),
        ];
        // What does not decode is distributed all the same.
        let faults = DecodeFaults::default();
        totals::lost(self.report, &drops, &faults, &self.report.fragments)
    }

    /// Whether anything was lost.
    pub(crate) fn is_lossy(&self) -> bool {
        !self.lost().is_empty() || totals::unread(self.report).next().is_some()
    }

    /// The JSON object of `--summary`.
    pub(crate) fn to_json(self) -> Value {
        let consumers: Vec<Value> = self
            .status
            .iter()
            .map(|consumer| {
                json!({
                    "packets": consumer.packets,
                    "bytes": consumer.bytes,
                    "dropped": consumer.dropped,
                    "ring_bytes": consumer.ring_bytes,
                    "attached": consumer.attached,
                    "killed": consumer.killed,
                    "taken_by_killed": consumer.taken_by_killed,
                    "unwritten_by_killed": consumer.unwritten_by_killed,
                })
            })
            .collect();
        let mut summary = common(self.report, self.ring_drops(), self.elapsed);
        if let Value::Object(keys) = &mut summary {
            keys.extend(totals::interfaces_json(self.report));
            keys.insert(
                "feed".to_owned(),
                json!({
                    "name": self.name,
                    "by": self.by.as_str(),
                    "when_full": match self.when_full {
                        WhenFull::Drop => "drop",
                        WhenFull::Wait => "wait",
                    },
                    "consumers": consumers,
                }),
            );
        }
        summary
    }

    /// One screen for people; what was lost comes first.
    pub(crate) fn to_screen(self) -> String {
        let report = self.report;
        let mut lines = vec![
            ("lost", lost(self.lost(), 6)),
            totals::read(report, self.elapsed),
        ];
        lines.extend(totals::interfaces(report));
        lines.extend(totals::not_read(report));
        lines.extend(totals::fragments(&report.fragments));
        let mut screen = rows(&lines);
        for line in table::rows(self.status, false) {
            screen.push('\n');
            screen.push_str(&line);
        }
        screen
    }
}

/// Adds a batch to what was read.
pub(super) fn account(report: &mut RunReport, batch: &Batch<'_>) {
    report.packets += batch.len() as u64;
    for frame in batch.index() {
        report.bytes += u64::from(frame.wire_len);
        report.first = Some(
            report
                .first
                .map_or(frame.timestamp, |t| t.min(frame.timestamp)),
        );
        report.last = Some(
            report
                .last
                .map_or(frame.timestamp, |t| t.max(frame.timestamp)),
        );
    }
}
