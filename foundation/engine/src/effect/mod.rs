//! What a stage that is inline asks of the world: verdicts for packets that wait, resets, scans,
//! files to keep.
//!
//! A stage never does any of it. It appends to an [`Effects`], and an edge carries it out: the
//! packets' answers by id, so that a packet can be answered long after the ones behind it (the two
//! queues of the P2P Proxy, Tsai 2005 sec. 3.3, without a change to the kernel).

mod file;
mod mark;
mod packet;
mod scan;

pub use file::{FileEnd, FileId, FileOp, FileOrigin};
pub use mark::{Decision, Mark, MarkLayout, MarkLayoutError};
pub use packet::{Answer, OwnSegment, QueuedPacket, Reset, Verdict};
pub use scan::{ScanChunk, ScanOutcome, ScanReport, Ticket};

use linkweir_record::RecordKind;

/// What a stage wants done; emptied by who carried it out.
#[derive(Debug)]
pub struct Effects<K: RecordKind> {
    /// Verdicts, in the order in which they are to be given.
    pub answers: Vec<Answer>,
    /// Connections to be reset at both ends.
    pub resets: Vec<Reset>,
    /// Segments that are sent in the name of an end.
    pub segments: Vec<OwnSegment>,
    /// Bytes to be scanned.
    pub scans: Vec<ScanChunk>,
    /// Scans nobody waits for any more.
    pub abandoned: Vec<Ticket>,
    /// Files to be begun, continued and ended.
    pub files: Vec<FileOp>,
    /// Records.
    pub records: K::Batch,
}

impl<K: RecordKind> Default for Effects<K> {
    fn default() -> Self {
        Self {
            answers: Vec::new(),
            resets: Vec::new(),
            segments: Vec::new(),
            scans: Vec::new(),
            abandoned: Vec::new(),
            files: Vec::new(),
            records: K::Batch::default(),
        }
    }
}
