//! Counters of the file store: what it has done, and what was lost by cause.

use std::io;

use rustix::io::Errno;

/// Why a file, or a part of it, was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossCause {
    /// More bytes waited for the disk than the options allow.
    Buffer,
    /// More files were open than the options allow.
    OpenLimit,
    /// Bytes of files that were not begun, for one of the two causes above.
    NotBegun,
    /// The file is longer than the options allow.
    FileLimit,
    /// The directories hold as much as the options allow.
    TotalLimit,
    /// The disk is full.
    NoSpace,
    /// The directory is not there.
    NoDirectory,
    /// The system does not allow it.
    NoPermission,
    /// Another error of the system.
    Io,
    /// An infected file could not be moved to the quarantine, and was deleted.
    Quarantine,
}

impl LossCause {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Buffer,
        Self::OpenLimit,
        Self::NotBegun,
        Self::FileLimit,
        Self::TotalLimit,
        Self::NoSpace,
        Self::NoDirectory,
        Self::NoPermission,
        Self::Io,
        Self::Quarantine,
    ];

    /// The name for summaries, metrics and the `cut` of a `.json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buffer => "buffer",
            Self::OpenLimit => "open_limit",
            Self::NotBegun => "not_begun",
            Self::FileLimit => "file_limit",
            Self::TotalLimit => "total_limit",
            Self::NoSpace => "no_space",
            Self::NoDirectory => "no_folder",
            Self::NoPermission => "no_permission",
            Self::Io => "io",
            Self::Quarantine => "quarantine",
        }
    }

    /// Whether the disk is the cause, and not a limit of the options.
    pub(crate) const fn is_trouble(self) -> bool {
        matches!(
            self,
            Self::NoSpace | Self::NoDirectory | Self::NoPermission | Self::Io | Self::Quarantine
        )
    }

    pub(crate) fn of(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC | Errno::DQUOT) => Self::NoSpace,
            Some(Errno::NOENT | Errno::NOTDIR | Errno::STALE) => Self::NoDirectory,
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Self::NoPermission,
            _ => Self::Io,
        }
    }
}

/// Files and bytes lost for one cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// Files that were not recorded, or cut.
    pub files: u64,
    /// Bytes that are not there.
    pub bytes: u64,
}

/// Files and bytes lost, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses([Loss; LossCause::ALL.len()]);

impl Losses {
    /// What was lost for this cause.
    #[must_use]
    pub fn of(&self, cause: LossCause) -> Loss {
        let found = self.iter().find(|(of, _)| *of == cause);
        found.map_or_else(Loss::default, |(_, loss)| loss)
    }

    /// Every cause with what was lost for it.
    pub fn iter(&self) -> impl Iterator<Item = (LossCause, Loss)> + '_ {
        LossCause::ALL.into_iter().zip(self.0)
    }

    pub(crate) fn add(&mut self, cause: LossCause, files: u64, bytes: u64) {
        for (of, loss) in LossCause::ALL.into_iter().zip(&mut self.0) {
            if of == cause {
                loss.files += files;
                loss.bytes += bytes;
            }
        }
    }
}

/// Counters of a file store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileStoreStatus {
    /// Whole files recorded.
    pub kept: u64,
    /// Beginnings of files recorded.
    pub parts: u64,
    /// Files moved to the quarantine, whole or not.
    pub quarantined: u64,
    /// Files deleted at the request of the stage.
    pub discarded: u64,
    /// Files deleted to make room.
    pub deleted: u64,
    /// Files of an earlier run that were completed when this one started.
    pub interrupted: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Files that are open.
    pub open: usize,
    /// Steps that wait for the disk; the counters here are those of the steps before.
    pub waiting_steps: usize,
    /// Bytes of them, with what each step costs by itself.
    pub waiting_bytes: usize,
    /// Bytes in both directories.
    pub total_bytes: u64,
    /// What was lost, by cause.
    pub lost: Losses,
    /// Message of the last error.
    pub last_error: Option<String>,
}
