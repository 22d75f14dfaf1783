//! Files of several processes: locks, which end with the process that holds them, new names, and FIFOs.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, open, renameat_with};
use rustix::io::Errno;

/// Gives a file another name, which nobody has yet.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`], and what the system says.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system that cannot see to it by itself.
        Err(Errno::INVAL | Errno::NOSYS) if to.symlink_metadata().is_err() => {
            std::fs::rename(from, to)
        }
        Err(Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::AlreadyExists.into()),
        done => done.map_err(io::Error::from),
    }
}

/// Opens a file to be read; of a FIFO neither this nor reading waits for a writer.
///
/// # Errors
/// What the system says.
pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

/// Takes the lock of a file for as long as it is open; whether nobody else had it.
///
/// # Errors
/// What the system says, but for a file system without locks, where everybody gets them.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
