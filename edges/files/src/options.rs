//! Where files go, and how much of them.

use std::path::PathBuf;

/// What to do when the directories hold as much as they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// New files are refused, and those that are open are cut.
    #[default]
    Refuse,
    /// The oldest recorded files are deleted: those with a `.json` beside them, never what is in the
    /// quarantine.
    DeleteOldest,
}

/// What to do with the open files of a run that was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stale {
    /// They are kept, as interrupted ones.
    #[default]
    Keep,
    /// They are deleted, unless they were on their way to the quarantine.
    Delete,
}

/// How a [`FileStore`](crate::FileStore) works.
#[derive(Debug, Clone)]
pub struct FileStoreOptions {
    /// Directory of recorded files. It is made if it is not there, with mode 0700.
    pub directory: PathBuf,
    /// Directory of infected ones; on the same file system if moving is to be quick. It may be `directory`
    /// itself, where nothing else is recorded: then only their mode tells them apart.
    pub quarantine: PathBuf,
    /// Longest file, bytes; what follows is cut off.
    pub max_file_bytes: u64,
    /// Bound on the bytes in both directories together, by the lengths of the files. What is there when
    /// the store starts counts.
    pub max_total_bytes: u64,
    /// Bound on the files in both directories together, without their `.json`.
    pub max_files: usize,
    /// What to do at these two bounds.
    pub when_full: WhenFull,
    /// Bound on the files that are open at the same time.
    pub max_open: usize,
    /// Bound on the bytes that wait for the disk, with what each step costs by itself.
    pub buffer_bytes: usize,
    /// Whether a file has reached the disk before it gets its name. Without it a power cut may leave
    /// files that are shorter than their `.json` says.
    pub is_synced: bool,
    /// What to do with the open files of a run that was killed.
    pub stale: Stale,
}

impl FileStoreOptions {
    /// Files up to 1 GiB, 10 GiB and 100,000 files in all, then refused; 256 open, 64 MiB waiting; not
    /// synced; interrupted files are kept.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>, quarantine: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            quarantine: quarantine.into(),
            max_file_bytes: 1 << 30,
            max_total_bytes: 10 << 30,
            max_files: 100_000,
            when_full: WhenFull::Refuse,
            max_open: 256,
            buffer_bytes: 64 << 20,
            is_synced: false,
            stale: Stale::Keep,
        }
    }
}
