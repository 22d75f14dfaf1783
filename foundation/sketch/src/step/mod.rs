//! What was measured in one step of capture time: Tstat's histograms, and the cells of the archive.

mod catalogue;
mod histograms;

pub use catalogue::{HISTOGRAMS, HistogramDef, HistogramId};
pub use histograms::{HistogramSet, Linear};

/// Everything one shard measured in one step. Steps of the same number merge by addition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// Number of the step: its start divided by its length.
    pub number: u64,
    /// Its length, nanoseconds.
    pub span_ns: u64,
    /// Which of the shards of the run measured it, from 0.
    pub shard: u32,
    /// How many there are.
    pub shards: u32,
    /// Whether it was cut short, because the input ended.
    pub is_last: bool,
    /// Tstat's histograms.
    pub histograms: HistogramSet,
    /// The cells of the archive.
    pub cells: crate::CellSet,
}

impl Step {
    /// When it began, nanoseconds since the epoch.
    #[must_use]
    pub const fn start_ns(&self) -> u64 {
        self.number.saturating_mul(self.span_ns)
    }

    /// Adds what another shard measured in the same step.
    pub fn merge(&mut self, other: &Self) {
        self.histograms.merge(&other.histograms);
        self.cells.merge(&other.cells);
        self.is_last |= other.is_last;
    }
}
