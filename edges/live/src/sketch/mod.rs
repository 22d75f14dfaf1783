//! Live statistics of many probes as one: sketches on the wire.
//!
//! ```text
//! probe: run ─► LiveOf ─► Publisher ─► message ┐
//! probe: run ─► LiveOf ─► Publisher ─► message ┴─► broker ─► Merger ─► LiveOf ─► page, terminal, alerts
//! ```
//! A probe sends what closes: at each interval its sums and histograms, at each part (five seconds) the
//! largest keys of its tables. Merging is addition, so the statistics of all probes are those of one run
//! over all records: counts, codes, methods and histograms exactly, tables with the guarantees of
//! [`TopK`](linkweir_sketch::TopK).
//!
//! A message is one JSON object of at most [`MAX_BYTES`]: `linkweir_sketch` (the version), `subject`,
//! `probe`, `run` (when the run began, which names it), `seq` (from 0, for each message of the run),
//! `start_ns`, `end_ns`, and a part to add: `interval`, `distributions`, `series`, `tables`. What is larger
//! is cut into several messages, which is no special case: addition takes them one by one. A message
//! that comes twice is told by (`probe`, `run`, `seq`).
//!
//! Whoever can write to the topic can send anything: what is read is bounded and checked, and what is
//! no sketch is counted by [`Cause`].

mod encode;
mod flow;
mod http;
mod merge;
mod mergeable;
mod probes;
mod publish;
mod read;
mod wire;

#[cfg(test)]
mod tests;

pub use self::merge::{MergeOptions, Merger};
pub use self::mergeable::Mergeable;
pub use self::publish::{Carrier, Publisher, PublisherOptions, Sent};

/// The version of the messages that are written, and the only one that is read.
pub const VERSION: u32 = 1;

/// Bytes of a message at most.
pub const MAX_BYTES: usize = 256 * 1024;

/// Largest count of a message: more than any probe sees in an interval, and small enough that sums of
/// what a stranger makes up stay in their range for long.
const MAX_COUNT: u64 = 1 << 48;

/// Longest name of a probe, bytes.
const MAX_NAME: usize = 128;

/// Why a message is none that can be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// More than [`MAX_BYTES`].
    #[error("too large")]
    TooLarge,
    /// No JSON, or not the fields of a sketch.
    #[error("malformed")]
    Malformed,
    /// A version of the format that this program does not know.
    #[error("another version")]
    Version,
    /// A sketch of another kind of record.
    #[error("another kind")]
    Subject,
    /// Numbers that contradict one another.
    #[error("contradictory")]
    Contradictory,
    /// Of one probe more than can be told apart.
    #[error("too many probes")]
    TooManyProbes,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::TooLarge,
        Self::Malformed,
        Self::Version,
        Self::Subject,
        Self::Contradictory,
        Self::TooManyProbes,
    ];

    /// The word in the API and in `/metrics`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Malformed => "malformed",
            Self::Version => "version",
            Self::Subject => "other_kind",
            Self::Contradictory => "contradictory",
            Self::TooManyProbes => "too_many_probes",
        }
    }
}
