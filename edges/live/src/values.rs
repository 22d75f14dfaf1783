//! Values that intervals and runs of every kind have.

use linkweir_sketch::LogLinear;
use serde::{Deserialize, Serialize};

/// A distribution in a few figures: response times, round-trip times, durations, rates.
///
/// Units: nanoseconds, of rates bits per second. Quantiles are at most 0.1 % too large.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: u64,
    /// Median.
    pub p50: u64,
    /// 90 % were at most this.
    pub p90: u64,
    /// 95 % were at most this.
    pub p95: u64,
    /// 99 % were at most this.
    pub p99: u64,
    /// 99.9 % were at most this.
    pub p999: u64,
    /// Largest.
    pub max: u64,
}

impl Percentiles {
    /// The figures of a histogram, `None` of an empty one.
    pub(crate) fn of(values: &LogLinear) -> Option<Self> {
        Some(Self {
            count: values.count(),
            min: values.min()?,
            mean: values.mean()?,
            p50: values.quantile(0.5)?,
            p90: values.quantile(0.9)?,
            p95: values.quantile(0.95)?,
            p99: values.quantile(0.99)?,
            p999: values.quantile(0.999)?,
            max: values.max()?,
        })
    }

    /// A figure by its name; `None` of a name that it does not have.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        Some(match name {
            "count" => self.count,
            "min" => self.min,
            "mean" => self.mean,
            "p50" => self.p50,
            "p90" => self.p90,
            "p95" => self.p95,
            "p99" => self.p99,
            "p999" => self.p999,
            "max" => self.max,
            _ => return None,
        })
    }
}

/// What was lost, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    /// Packets the kernel dropped before the ring.
    pub kernel: u64,
    /// Packets dropped because a ring was full.
    pub ring: u64,
    /// Records of a capture whose frame could not be used.
    pub unusable_records: u64,
    /// Transactions or flows evicted from a full table.
    pub table_full: u64,
    /// Records an output refused.
    pub sink: u64,
}

impl Dropped {
    /// Causes and counts, by the names of the summary.
    #[must_use]
    pub const fn by_cause(&self) -> [(&'static str, u64); 5] {
        [
            ("kernel", self.kernel),
            ("ring", self.ring),
            ("unusable_records", self.unusable_records),
            ("table_full", self.table_full),
            ("sink", self.sink),
        ]
    }

    /// All causes together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_cause()
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// What was lost since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            kernel: self.kernel.saturating_sub(earlier.kernel),
            ring: self.ring.saturating_sub(earlier.ring),
            unusable_records: self
                .unusable_records
                .saturating_sub(earlier.unusable_records),
            table_full: self.table_full.saturating_sub(earlier.table_full),
            sink: self.sink.saturating_sub(earlier.sink),
        }
    }

    /// Adds the losses of another interval.
    pub const fn add(&mut self, other: &Self) {
        self.kernel = self.kernel.saturating_add(other.kernel);
        self.ring = self.ring.saturating_add(other.ring);
        self.unusable_records = self.unusable_records.saturating_add(other.unusable_records);
        self.table_full = self.table_full.saturating_add(other.table_full);
        self.sink = self.sink.saturating_add(other.sink);
    }
}

/// How full the table of transactions or flows is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableState {
    /// Entries now.
    pub entries: u64,
    /// Maximum number of entries.
    pub capacity: u64,
}
