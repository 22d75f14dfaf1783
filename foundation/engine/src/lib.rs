//! The seams of the data path and the run loop that joins them.
//!
//! ```text
//! Source::next ─► Batch of frames ─► Stage::on_batch ─► records ─► Sink::write
//! ```
//! Pure but for what a [`Source`] and a [`Sink`] do inside: no clock and no files here. Threads are
//! started in one place, [`workers`].
#![forbid(unsafe_code)]

pub mod batch;
pub mod delivery;
pub mod distribute;
pub mod effect;
mod exchange;
pub mod hash;
pub mod outputs;
pub mod route;
pub mod run;
pub mod seams;
pub mod share;
pub mod sort;
pub mod split;
mod turns;
pub mod workers;

pub use batch::Limit;
pub use batch::{Batch, Frame, FrameRef};
pub use delivery::{DeliveryTimeout, Failures};
pub use distribute::{DispatchState, Port, distribute};
pub use effect::{Answer, Effects, OwnSegment, QueuedPacket, Reset, Verdict};
pub use outputs::{Loss, NoOutput, Outlet, Outputs, SampleCounts};
pub use route::{Parts, Router};
pub use run::{Directive, IntervalEnd, Run, RunError, RunReport};
pub use seams::{
    Drops, Fault, FaultKind, InputCounts, Progress, ReadAhead, Sink, SinkError, SinkLosses, Source,
    SourceError, SourceEvent, Stage, TableFill,
};
pub use share::{Detach, PieceQueue, Pieces, distribute_shared, piece_queues};
pub use sort::Sorter;
pub use split::{FlowSplitter, NamedFlowSplitter, Route, Splitter, TransactionSplitter};
pub use workers::{Dispatcher, Turns, Workers, WorkersReport, run_in_turns, run_workers};
