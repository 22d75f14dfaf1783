//! What was measured in one step of capture time: Tstat's histograms, and the cells of the archive.

mod catalogue;
mod histograms;
mod left_out;
mod scale;

pub use catalogue::{HISTOGRAMS, HistogramDef, HistogramId};
pub use histograms::{HistogramSet, Linear};
pub use left_out::{LEFT_OUT, LeftOut};
pub use scale::Scale;

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
    /// When the measurement began in it: its start, in the first step of a run the first packet.
    /// Nanoseconds since the epoch.
    pub from_ns: u64,
    /// When the measurement ended in it: its end, in the last step of a run the last packet.
    pub to_ns: u64,
    /// Flows in the table, summed over the time measured: of TCP and of UDP, microseconds.
    pub flow_us: [u64; 2],
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
        self.from_ns = match (self.from_ns, other.from_ns) {
            (0, from) | (from, 0) => from,
            (mine, theirs) => mine.min(theirs),
        };
        self.to_ns = self.to_ns.max(other.to_ns);
        for (mine, theirs) in self.flow_us.iter_mut().zip(other.flow_us) {
            *mine = mine.saturating_add(theirs);
        }
    }
}
