//! What a stage that is inline asks of the world: verdicts for packets that wait, resets, scans,
//! files to keep.
//!
//! A stage never does any of it. It appends to an [`Effects`], and an edge carries it out: the
//! packets' answers by id, so that a packet can be answered long after the ones behind it (the two
//! queues of the P2P Proxy, Tsai 2005 sec. 3.3, without a change to the kernel).

mod mark;

use std::net::SocketAddr;

use linkweir_record::RecordKind;
use linkweir_wire::{SeqNumber, Timestamp};

pub use mark::{Decision, Mark, MarkLayout, MarkLayoutError};

/// What a stage wants done; emptied by the caller, which carries it out.
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
    /// Scans that are not awaited any more.
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

// Packets that wait for a verdict, and the verdict.

/// A packet that the kernel keeps until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedPacket<'a> {
    /// The kernel's number of it, unique within its queue.
    pub id: u32,
    /// The mark it carries.
    pub mark: u32,
    /// The IP packet, from its header on. With segmentation offload it is longer than any packet of a
    /// link: up to 64 KiB.
    pub bytes: &'a [u8],
    /// Its length in the kernel, at least that of `bytes`.
    pub wire_len: u32,
    /// Whether somebody has to look at its transport checksum: false where the hardware did, or
    /// where the sender is on this machine and leaves it to the hardware.
    pub is_checksum_open: bool,
}

/// What happens to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Accept,
    /// It is gone.
    Drop,
    /// It passes the rules of its hook once more, now with the mark of the answer: the kernel's own
    /// rules drop or reset it, and the rest of its connection.
    Repeat,
}

/// The verdict for one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// [`QueuedPacket::id`].
    pub id: u32,
    /// What happens to it.
    pub verdict: Verdict,
    /// The mark it gets; `None` leaves it as it is.
    pub mark: Option<u32>,
}

/// A segment that the gateway sends itself, in the name of one end to the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSegment {
    /// In whose name.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
    /// Number of its first byte.
    pub seq: SeqNumber,
    /// What it acknowledges.
    pub ack: SeqNumber,
    /// Its window, not shifted.
    pub window: u16,
    /// Its timestamp and the one that it echoes (RFC 7323 sec. 3), where the ends use them.
    pub timestamps: Option<(u32, u32)>,
    /// Its bytes.
    pub payload: Vec<u8>,
    /// Whether the stream ends with it.
    pub is_fin: bool,
    /// Whether it resets the connection at its receiver.
    pub is_reset: bool,
}

/// A TCP connection to be torn down: one RST to each end (RFC 9293 sec. 3.10.7), each with the
/// sequence number that end expects (RFC 5961 sec. 3.2 ignores others).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reset {
    /// Who opened the connection.
    pub client: SocketAddr,
    /// Who accepted it.
    pub server: SocketAddr,
    /// Next sequence number of the client's stream: what the server expects.
    pub client_next: SeqNumber,
    /// Next sequence number of the server's stream: what the client expects.
    pub server_next: SeqNumber,
}

// Files that pass by and are to be kept.

/// Names one file; never used twice by a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// Where a file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOrigin {
    /// When its first byte was seen.
    pub time: Timestamp,
    /// Who sends it.
    pub sender: SocketAddr,
    /// Who gets it.
    pub receiver: SocketAddr,
    /// By which application.
    pub application: String,
    /// The name that the protocol gave it: any bytes, not a path.
    pub name: Vec<u8>,
    /// The name under which it is to be kept in the directory: letters, digits, `.`, `-` and `_` only,
    /// unique in a run.
    pub stored_name: String,
}

/// What becomes of a file that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEnd {
    /// It is kept.
    Keep,
    /// Only a part came by; it is kept and said to be one.
    KeepPart,
    /// It goes to the quarantine.
    Quarantine,
    /// It is deleted.
    Discard,
}

/// A step in the life of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOp {
    /// It begins.
    Begin {
        /// Which file.
        id: FileId,
        /// Where it comes from.
        origin: Box<FileOrigin>,
    },
    /// It goes on.
    Data {
        /// Which file.
        id: FileId,
        /// The bytes that follow.
        bytes: Vec<u8>,
    },
    /// It has ended.
    End {
        /// Which file.
        id: FileId,
        /// What becomes of it.
        end: FileEnd,
    },
}

// Bytes for a virus scanner, and what it says.

/// Names one scan; never used twice by a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A part of what is to be scanned together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanChunk {
    /// Which scan.
    pub ticket: Ticket,
    /// The bytes that follow those of the chunks before.
    pub bytes: Vec<u8>,
    /// Whether it is the last: now the scanner is to say what it finds.
    pub is_last: bool,
}

/// What a scanner found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanOutcome {
    /// Nothing.
    Clean,
    /// Something, by the scanner's name of it.
    Infected(String),
    /// It could not say: not reachable, over its size limit, its queue full, an error of its own. One
    /// sentence without a full stop.
    Failed(String),
}

/// The answer to a scan whose last chunk was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanReport {
    /// Which scan.
    pub ticket: Ticket,
    /// What was found.
    pub outcome: ScanOutcome,
    /// From the last chunk to the answer, nanoseconds.
    pub latency_ns: u64,
}
