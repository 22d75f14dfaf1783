//! The seams of the data path and the run loop that joins them.
//!
//! ```text
//! Source::next ─► Batch of frames ─► Stage::on_batch ─► records ─► Sink::write
//! ```
//! Pure but for what a [`Source`] and a [`Sink`] do inside: no clock, no files, no threads here.
#![forbid(unsafe_code)]

pub mod batch;
pub mod hash;
pub mod run;
pub mod seams;
pub mod split;

pub use batch::{Batch, Frame, FrameRef};
pub use run::{Directive, Run, RunError, RunReport};
pub use seams::{
    Drops, Fault, FaultKind, Progress, Sink, SinkError, Source, SourceError, SourceEvent, Stage,
    TableFill,
};
pub use split::{FlowSplitter, Splitter, TransactionSplitter};
