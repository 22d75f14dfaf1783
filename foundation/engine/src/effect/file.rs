//! Files that pass by and are to be kept.

use std::net::SocketAddr;

use linkweir_wire::Timestamp;

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
