//! The traits that join the floors: what gives frames, what works on them, what takes records.
//!
//! A source of one batch, a stage that makes a record of each frame, and a sink that counts them:
//!
//! ```
//! use std::{cell::Cell, rc::Rc};
//! use linkweir_engine::{
//!     Batch, Directive, FrameRef, Limit, Outputs, Run, Sink, SinkError, Source, SourceError, SourceEvent, Stage,
//! };
//! use linkweir_record::{HttpBatch, HttpKind, HttpRow, RecordBatch as _, http::Text};
//! use linkweir_wire::{LinkType, Timestamp};
//!
//! struct Twice { frames: Vec<FrameRef>, is_done: bool }
//!
//! impl Source for Twice {
//!     fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
//!         if std::mem::replace(&mut self.is_done, true) {
//!             return Ok(SourceEvent::End);
//!         }
//!         Ok(SourceEvent::Batch(Batch::new(b"framewire", &self.frames)))
//!     }
//! }
//!
//! struct EachFrame;
//!
//! impl Stage for EachFrame {
//!     type Record = HttpKind;
//!     type Handoff = std::convert::Infallible;
//!     fn accept(&mut self, handoff: Self::Handoff, _: &mut HttpBatch) { match handoff {} }
//!     fn on_batch(&mut self, batch: &Batch<'_>, out: &mut HttpBatch) {
//!         for frame in batch.frames() {
//!             let time = Some(frame.timestamp.as_nanos());
//!             let row = HttpRow { request_ts_ns: time, ..HttpRow::default() };
//!             out.push(row, &Text { uri: frame.bytes, ..Text::default() });
//!         }
//!     }
//!     fn on_tick(&mut self, _: Timestamp, _: &mut HttpBatch) {}
//!     fn next_deadline(&self) -> Option<Timestamp> { None }
//!     fn finish(&mut self, _: &mut HttpBatch) -> bool { true }
//! }
//!
//! struct Count(Rc<Cell<usize>>);
//!
//! impl Sink<HttpKind> for Count {
//!     fn write(&mut self, batch: &HttpBatch) -> Result<(), SinkError> {
//!         self.0.set(self.0.get() + batch.len());
//!         Ok(())
//!     }
//!     fn flush(&mut self) -> Result<(), SinkError> { Ok(()) }
//!     fn finish(&mut self) -> Result<(), SinkError> { Ok(()) }
//! }
//!
//! let frame = |offset, captured_len| FrameRef {
//!     timestamp: Timestamp::ZERO, offset, captured_len, wire_len: 60, link: LinkType::ETHERNET, interface: 0,
//! };
//! let source = Twice { frames: vec![frame(0, 5), frame(5, 4)], is_done: false };
//! let count = Rc::default();
//! let mut outputs = Outputs::default();
//! outputs.add("count", Box::new(Count(Rc::clone(&count))));
//! let mut stage = EachFrame;
//! let run = Run::new(&mut stage, &mut outputs, Limit::default());
//! let (report, ended) = run.drive(source, |_, _| Directive::Continue);
//! ended?;
//! assert_eq!((report.packets, report.bytes, count.get()), (2, 120, 2));
//! # Ok::<(), linkweir_engine::RunError>(())
//! ```

use linkweir_record::RecordKind;
use linkweir_wire::Timestamp;
use thiserror::Error;

use crate::Batch;

/// What a source has next.
#[derive(Debug)]
pub enum SourceEvent<'a> {
    /// Frames, in capture order; at least one.
    Batch(Batch<'a>),
    /// Nothing has come for a while; ask again.
    Idle,
    /// Part of the input is lost, and where; the run goes on with what follows.
    Fault(Fault),
    /// Nothing more will come.
    End,
}

/// Why and where a part of the input could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file or interface, as the user named it.
    pub input: String,
    /// Byte offset in the (decompressed) input where reading stopped, if there is one.
    pub offset: Option<u64>,
    /// Whether nothing at all could be read, or the rest was lost.
    pub kind: FaultKind,
    /// What was wrong, in one sentence without a full stop.
    pub message: String,
}

/// How much a [`Fault`] costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The input gave nothing: it cannot be opened or is no capture (exit code 3).
    Unusable,
    /// The input gave frames up to the offset (exit code 1).
    Damaged,
    /// An interface went away, came back or changed: nothing that was captured is lost, and the
    /// capture goes on by itself (no exit code of its own).
    Interrupted,
    /// Files of a directory that are no captures were passed over: nothing is lost (no exit code of
    /// its own).
    Skipped,
}

/// A source that cannot go on at all.
#[derive(Debug, Error)]
#[error("{input}: {message}")]
pub struct SourceError {
    /// The file or interface, as the user named it.
    pub input: String,
    /// What was wrong.
    pub message: String,
}

/// How far a source has come, for progress bars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the (possibly compressed) inputs consumed so far.
    pub consumed_bytes: u64,
    /// Bytes of all inputs, where known.
    pub total_bytes: Option<u64>,
}

impl std::ops::AddAssign for Drops {
    fn add_assign(&mut self, other: Self) {
        self.kernel += other.kernel;
        self.ring += other.ring;
        self.unusable_records += other.unusable_records;
    }
}

/// Packets that were there and did not reach the stage, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Dropped by the kernel before the ring.
    pub kernel: u64,
    /// Dropped because a ring was full.
    pub ring: u64,
    /// Records of a capture whose frame could not be used (over-long, unknown interface).
    pub unusable_records: u64,
}

/// What came through one of several inputs that are read at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputCounts {
    /// The interface, as the user named it.
    pub name: String,
    /// Packets it gave.
    pub packets: u64,
    /// Bytes those had on the wire.
    pub bytes: u64,
    /// What it lost.
    pub drops: Drops,
}

impl InputCounts {
    /// Adds what another part of a run took from its inputs, each to the one of its name.
    pub fn add_all(all: &mut Vec<Self>, others: &[Self]) {
        for other in others {
            match all.iter_mut().find(|one| one.name == other.name) {
                Some(one) => {
                    one.packets += other.packets;
                    one.bytes += other.bytes;
                    one.drops += other.drops;
                }
                None => all.push(other.clone()),
            }
        }
    }
}

/// Gives frames in batches: a capture file, a list of them, an interface, a feed.
pub trait Source {
    /// The next frames, fault or end. After `End` it keeps saying `End`.
    ///
    /// # Errors
    /// Where nothing more can come and no [`Fault`] can say so.
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError>;

    /// How far the source has come.
    fn progress(&self) -> Progress {
        Progress::default()
    }

    /// Losses so far, by cause. Asked after every batch: a source keeps the numbers at hand.
    fn drops(&self) -> Drops {
        Drops::default()
    }

    /// Each of several interfaces that are read at once; empty for any other source. Asked once, at the end.
    fn inputs(&self) -> Vec<InputCounts> {
        Vec::new()
    }

    /// Whether the frames are a share of what somebody distributed: not every packet of a connection comes here, and
    /// IP fragments were reassembled before, so that one which still comes is the start of a packet whose rest
    /// is lost.
    fn is_distributed(&self) -> bool {
        false
    }

    /// The time now by the clock of the capture, for a source whose time goes on without packets:
    /// an interface. A file has none: its time is that of its packets.
    fn now(&self) -> Option<Timestamp> {
        None
    }

    /// Every record of the frames given so far is written: nothing of them is lost if this process
    /// ends now. For a source that is asked what became of its frames.
    fn on_written(&mut self) {}
}

/// A source of which others read what comes next while it is asked what came before.
pub trait ReadAhead: Source {
    /// What they read into.
    type Piece: Default + Send;

    /// Claims what comes behind all that is claimed, by whoever has just supplied or been refused. False where the source itself
    /// must read on.
    fn claim(&mut self, piece: &mut Self::Piece) -> bool;

    /// Reads what was claimed, beside the source. A failure is kept for it.
    fn read(piece: &mut Self::Piece);

    /// Takes what was read, in the order of the claims; the next event is made of it. False where it is not wanted, because the input
    /// was another than it seemed when it was claimed.
    fn supply(&mut self, piece: &mut Self::Piece) -> bool;

    /// Whether something was supplied of which no event is made yet.
    fn is_supplied(&self) -> bool;

    /// Whether anything claimed is still to be supplied.
    fn is_ahead(&self) -> bool;
}

/// How full the main table of a stage is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableFill {
    /// Entries now.
    pub entries: u64,
    /// Entries at most.
    pub capacity: u64,
    /// Entries that had to leave so far because it was full.
    pub evicted: u64,
}

impl std::ops::AddAssign for TableFill {
    fn add_assign(&mut self, other: Self) {
        self.entries += other.entries;
        self.capacity += other.capacity;
        self.evicted += other.evicted;
    }
}

/// A pure state machine over packets: bytes and time come in, records go out.
///
/// Inside a batch "now" is packet time, so a result never depends on where a batch was cut.
pub trait Stage {
    /// What it produces.
    type Record: RecordKind;

    /// What one shard of the stage hands to another: state whose counterpart will turn up there.
    /// [`std::convert::Infallible`] for a stage that has none.
    type Handoff: Send + 'static;

    /// The next handoff for another shard, and its number. Asked after every batch.
    fn take_handoff(&mut self) -> Option<(usize, Self::Handoff)> {
        None
    }

    /// Takes a handoff of another shard; appends what it completes to `out`.
    fn accept(&mut self, handoff: Self::Handoff, out: &mut <Self::Record as RecordKind>::Batch);

    /// No record to come is older than this, so that records can be sorted.
    fn watermark(&self) -> Timestamp {
        Timestamp::ZERO
    }

    /// How full its table is.
    fn fill(&self) -> TableFill {
        TableFill::default()
    }

    /// Takes a batch; appends finished records to `out`.
    fn on_batch(&mut self, batch: &Batch<'_>, out: &mut <Self::Record as RecordKind>::Batch);

    /// Time has come to `now` without packets; appends what timed out.
    fn on_tick(&mut self, now: Timestamp, out: &mut <Self::Record as RecordKind>::Batch);

    /// When it wants [`Stage::on_tick`] at the latest.
    fn next_deadline(&self) -> Option<Timestamp>;

    /// The trace has ended; appends what is still held, at most about a thousand records.
    ///
    /// Returns whether that was all: else it is called again, with `out` emptied.
    fn finish(&mut self, out: &mut <Self::Record as RecordKind>::Batch) -> bool;
}

/// What a sink could not do.
#[derive(Debug, Error)]
pub enum SinkError {
    /// The reader of a pipe has gone; not a failure (the run ends quietly).
    #[error("the reader of the output has gone")]
    ClosedPipe,
    /// It is complete: it has all records that it was to have; not a failure.
    #[error("the output has all records that it was to have")]
    Complete,
    /// Writing failed.
    #[error("{destination}: {source}")]
    Io {
        /// The destination as the user named it.
        destination: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The output cannot take this.
    #[error("{destination}: {message}")]
    Refused {
        /// The destination as the user named it.
        destination: String,
        /// What was wrong and what to do.
        message: String,
    },
}

/// What a sink could not deliver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SinkLosses {
    /// Records or values that did not arrive, as far as the sink can know.
    pub count: u64,
    /// The first cause, as a sentence for the user without a full stop; none where a call gave it as its
    /// error.
    pub first: Option<String>,
}

/// Takes batches of records. After a call that failed only [`Sink::miss`] and [`Sink::losses`] are called.
pub trait Sink<K: RecordKind> {
    /// Takes all records of a batch.
    ///
    /// # Errors
    /// Where the destination refuses them.
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError>;

    /// Called about ten times a second and on request: let what is buffered be seen.
    ///
    /// # Errors
    /// Where the destination refuses it.
    fn flush(&mut self) -> Result<(), SinkError>;

    /// Start a new file now (SIGHUP); sinks without files do nothing.
    ///
    /// # Errors
    /// Where the destination refuses it.
    fn rotate(&mut self) -> Result<(), SinkError> {
        self.flush()
    }

    /// Counts the records of a batch that it does not get, since a call has failed.
    fn miss(&mut self, _batch: &K::Batch) {}

    /// What could not be delivered so far: because the destination is away, or since a call failed (its
    /// own batch and what was buffered included). Asked now and then, and after [`Sink::finish`]: a first
    /// cause that turns up is reported once, the count is a loss of the run.
    fn losses(&self) -> SinkLosses {
        SinkLosses::default()
    }

    /// Records that it was given and was not to have: those that a condition left out.
    fn left_out(&self) -> u64 {
        0
    }

    /// Nothing more comes, and [`Sink::finish`] follows: a sink whose destination is waited for begins to wait, so that several do at
    /// the same time.
    fn close(&mut self) {}

    /// Everything has been written: complete the output (rename temporary files, write footers).
    ///
    /// # Errors
    /// Where the destination refuses it.
    fn finish(&mut self) -> Result<(), SinkError>;
}
