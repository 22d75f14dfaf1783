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
//! is cut into several messages, and they are added one by one. A duplicate
//! is recognised by (`probe`, `run`, `seq`).
//!
//! Whoever can write to the topic can send anything: what is read is bounded and checked, and invalid
//! messages are counted by [`Cause`].

mod encode;
mod merge;
mod probes;
mod publish;
mod read;
mod series;
pub(crate) mod wire;

#[cfg(test)]
mod tests;

pub use self::merge::{MergeOptions, Merger};
pub use self::publish::{Carrier, Publisher, PublisherOptions, Sent};
pub use self::series::Mergeable;
pub use self::wire::Cause;

/// The version of the messages that are written, and the only one that is read.
pub const VERSION: u32 = 1;

/// Maximum size of a message, bytes.
pub const MAX_BYTES: usize = 256 * 1024;

/// Maximum length of the name of a probe, bytes.
const MAX_NAME: usize = 128;
