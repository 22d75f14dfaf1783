//! Locks on files, which end with the process that holds them.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

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
