//! Pipes and other inputs that may have nothing for a while.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long one wait is: the longest time before a stop is noticed.
const PATIENCE: Duration = Duration::from_millis(100);

/// Bytes that are taken at once: more gains nothing.
const MOST_AT_ONCE: usize = 128 << 10;

/// `O_NONBLOCK` of Linux: a FIFO opens at once, with or without a writer.
const NONBLOCK: i32 = 0o4000;

/// What a pipe and its owner tell one another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manners {
    /// The owner wants no more: the pipe ends.
    pub(crate) stop: Arc<AtomicBool>,
    /// The owner takes `WouldBlock` for an answer (a decompressor does not).
    pub(crate) may_idle: Arc<AtomicBool>,
}

/// A reader that waits in short steps and can be told to end.
#[derive(Debug)]
pub(crate) struct Pipe {
    file: File,
    manners: Manners,
}

impl Pipe {
    /// Standard input, without the buffer of the standard library.
    pub(crate) fn stdin(manners: Manners) -> io::Result<Self> {
        let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        linkweir_sys::widen_pipe(&file);
        Ok(Self { file, manners })
    }

    /// A FIFO or device.
    pub(crate) fn open(path: &Path, manners: Manners) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(NONBLOCK)
            .open(path)?;
        linkweir_sys::widen_pipe(&file);
        Ok(Self { file, manners })
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(MOST_AT_ONCE);
        let buffer = buffer.get_mut(..most).unwrap_or_default();
        loop {
            if self.manners.stop.load(Ordering::Relaxed) {
                return Ok(0);
            }
            if linkweir_sys::wait::readable(&self.file, PATIENCE)? {
                match self.file.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    got => return got,
                }
            } else if self.manners.may_idle.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }
}
