//! Where bytes go: standard output, a special file, or a file that appears under its name only when
//! it is complete.
//!
//! A regular file is written as `.NAME.partial` in the directory of its destination, synchronised and
//! renamed. Invariant: whatever happens, a file under a destination's own name is complete, and a
//! partial file holds whole records as far as the program itself could see to it (a write the system
//! refuses half-way is cut back to the last whole record). What a killed run left is kept: [`adopt`].

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linkweir_engine::SinkError;

use crate::names::{directory_of, partial_name, with_number};

/// What a destination names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Standard output.
    Stdout,
    /// A device, a FIFO, an open descriptor: written as it is.
    Special(PathBuf),
    /// A file that need not exist yet, in a directory that does.
    File(PathBuf),
}

/// Finds out what `destination` names, and refuses what cannot become an output.
pub(crate) fn place(destination: &str) -> Result<Place, SinkError> {
    let refuse = |message: String| {
        Err(SinkError::Refused {
            destination: destination.to_owned(),
            message,
        })
    };
    if matches!(destination, "-" | "/dev/stdout") {
        return Ok(Place::Stdout);
    }
    if destination.is_empty() {
        return refuse("the name is empty; `-` is standard output".to_owned());
    }
    let path = Path::new(destination);
    if path.starts_with("/dev/fd") || path.starts_with("/proc") || destination == "/dev/stderr" {
        return Ok(Place::Special(path.to_owned()));
    }
    match path.metadata() {
        Ok(meta) if meta.is_dir() => refuse("is a directory; name a file in it".to_owned()),
        Ok(meta) if meta.is_file() => match path.canonicalize() {
            // The file behind a link is meant, not the link.
            Ok(real) => Ok(Place::File(real)),
            Err(source) => Err(io_error(destination, source)),
        },
        Ok(_) => Ok(Place::Special(path.to_owned())),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let directory = directory_of(path);
            match directory.metadata() {
                Ok(meta) if meta.is_dir() && path.file_name().is_some() => {
                    Ok(Place::File(path.to_owned()))
                }
                Ok(_) => refuse(format!("`{}` is not a directory", directory.display())),
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    let message = format!(
                        "the directory `{}` does not exist; create it first",
                        directory.display()
                    );
                    Err(io_error(destination, io::Error::new(e.kind(), message)))
                }
                Err(source) => Err(io_error(destination, source)),
            }
        }
        Err(source) => Err(io_error(destination, source)),
    }
}

/// The error of writing to a destination, of which a reader that has gone is a case of its own.
#[must_use]
pub fn io_error(destination: &str, source: io::Error) -> SinkError {
    if source.kind() == ErrorKind::BrokenPipe {
        return SinkError::ClosedPipe;
    }
    SinkError::Io {
        destination: destination.to_owned(),
        source,
    }
}

/// Gives what a killed run left of `target` that name, or the first free one behind it: from `NAME.first` on.
/// Returns it; `None` where there is nothing of a file, or another run writes it.
pub(crate) fn adopt(target: &Path, first: u64) -> io::Result<Option<PathBuf>> {
    let partial = partial_name(target);
    let left = match partial.symlink_metadata() {
        Ok(there) if there.is_file() && there.len() > 0 => File::open(&partial),
        Ok(_) => return Ok(None),
        Err(error) => Err(error),
    };
    match left {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // Its lock is ours until it has its name: nobody else takes it for his own.
        Ok(left) if holds(&left, &partial)? => name_new(&partial, target, first).map(Some),
        Ok(_) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives a file the first name of `NAME.first` and so on (`NAME` itself is number 0) that is free.
fn name_new(partial: &Path, target: &Path, first: u64) -> io::Result<PathBuf> {
    let mut number = first;
    loop {
        let name = with_number(target, number);
        match linkweir_sys::rename_new(partial, &name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            done => return done.map(|()| name),
        }
    }
}

/// Removes what is under a partial name; `false` where another run writes it.
fn remove_left(partial: &Path) -> io::Result<bool> {
    let there = match partial.symlink_metadata() {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(true),
        other => other?,
    };
    // Whoever writes a partial file holds its lock; what a killed run left has none. Its lock is ours
    // until it is gone, so what is removed is never what another run has put there meanwhile.
    let left = if there.is_file() {
        match File::open(partial) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
            // What cannot be read may be replaced all the same.
            other => other.ok(),
        }
    } else {
        None
    };
    if let Some(left) = &left
        && !holds(left, partial)?
    {
        return Ok(false);
    }
    std::fs::remove_file(partial)?;
    Ok(true)
}

/// Takes the lock of a file; whether it is ours now, and the file still has this name.
fn holds(file: &File, path: &Path) -> io::Result<bool> {
    Ok(linkweir_sys::try_lock(file)? && is_at(file, path)?)
}

/// Whether a file has this name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match path.symlink_metadata() {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// An open output.
#[derive(Debug)]
pub(crate) struct Output {
    destination: String,
    file: File,
    /// The name it has until it is complete; `None` where it is written as it is.
    partial: Option<PathBuf>,
    written: u64,
}

/// What a format that changes what it has written needs.
#[cfg(feature = "parquet")]
impl Output {
    /// Whether it is a file: bytes can be written at any place of it, and it can be cut.
    pub(crate) const fn is_file(&self) -> bool {
        self.partial.is_some()
    }

    /// The destination as messages name it.
    pub(crate) fn destination(&self) -> &str {
        &self.destination
    }

    /// Writes `bytes` into a file at `offset`. What [`Output::write`] writes does not follow it.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), SinkError> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset)
            .map_err(|e| io_error(&self.destination, e))
    }

    /// Makes a file `len` bytes long.
    pub(crate) fn set_len(&mut self, len: u64) -> Result<(), SinkError> {
        self.file
            .set_len(len)
            .map_err(|e| io_error(&self.destination, e))?;
        self.written = len;
        Ok(())
    }
}

impl Output {
    /// Standard output, unbuffered.
    pub(crate) fn stdout() -> Result<Self, SinkError> {
        let file = io::stdout()
            .as_fd()
            .try_clone_to_owned()
            .map_err(|e| io_error("-", e))?;
        Ok(Self {
            destination: "-".to_owned(),
            file: File::from(file),
            partial: None,
            written: 0,
        })
    }

    /// A device, FIFO or descriptor. Opening a FIFO waits for its reader.
    pub(crate) fn special(destination: &str, path: &Path) -> Result<Self, SinkError> {
        let file = OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(|e| io_error(destination, e))?;
        Ok(Self {
            destination: destination.to_owned(),
            file,
            partial: None,
            written: 0,
        })
    }

    /// A file that will be `target`. What is left under its partial name is replaced: see [`adopt`].
    pub(crate) fn partial(destination: &str, target: &Path) -> Result<Self, SinkError> {
        let partial = partial_name(target);
        let refuse = || SinkError::Refused {
            destination: destination.to_owned(),
            message: format!("another run writes `{}`", partial.display()),
        };
        let failed = |e| io_error(destination, e);
        // What stands there is not the destination: it has a name of its own.
        let in_the_way = |e| io_error(&partial.display().to_string(), e);
        if !remove_left(&partial).map_err(in_the_way)? {
            return Err(refuse());
        }
        // `create_new` follows no link that someone may have put there.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&partial)
            .map_err(|e| match e.kind() {
                // It came into being just now.
                ErrorKind::AlreadyExists => refuse(),
                _ => failed(e),
            })?;
        // Before it had a lock it may have been taken for what a killed run left.
        if !holds(&file, &partial).map_err(failed)? {
            return Err(refuse());
        }
        Ok(Self {
            destination: destination.to_owned(),
            file,
            partial: Some(partial),
            written: 0,
        })
    }

    /// Bytes written so far.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    /// Writes `bytes`, which end at the end of a record. Where only a part can be written, only what
    /// `whole` finds of it counts as written: a file is cut back to the last whole record.
    pub(crate) fn write(
        &mut self,
        bytes: &[u8],
        whole: impl FnOnce(&[u8]) -> usize,
    ) -> Result<(), SinkError> {
        let mut done = 0;
        let error = loop {
            let rest = bytes.get(done..).unwrap_or_default();
            if rest.is_empty() {
                self.written += bytes.len() as u64;
                return Ok(());
            }
            match self.file.write(rest) {
                Ok(0) => break io::Error::from(ErrorKind::WriteZero),
                Ok(count) => done += count,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // A non-blocking pipe that is full: what it is connected to decides when we go on.
                Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(e) => break e,
            }
        };
        self.written += whole(bytes.get(..done).unwrap_or_default()) as u64;
        if self.partial.is_some() {
            // The first error is the one to report; a partial file with a torn end is still partial.
            let _already_failed = self.file.set_len(self.written);
        }
        Err(io_error(&self.destination, error))
    }

    /// Completes the output: a file gets its own name, after its bytes have reached the disk, or the first
    /// free one behind it where the name is taken and may not be. Returns it.
    pub(crate) fn complete(self, target: &Path, replaces: bool) -> Result<PathBuf, SinkError> {
        let Some(partial) = &self.partial else {
            return Ok(target.to_owned());
        };
        let failed = |e| io_error(&self.destination, e);
        self.file.sync_all().map_err(failed)?;
        if !is_at(&self.file, partial).map_err(failed)? {
            return Err(SinkError::Refused {
                destination: self.destination,
                message: format!("another run writes `{}`", partial.display()),
            });
        }
        let name = if replaces {
            std::fs::rename(partial, target).map(|()| target.to_owned())
        } else {
            name_new(partial, target, 0)
        };
        let name = name.map_err(failed)?;
        // The name itself survives a power cut only when the directory is synchronised too; some file
        // systems cannot do that, and the file is complete either way.
        if let Ok(directory) = File::open(directory_of(target)) {
            let _best_effort = directory.sync_all();
        }
        Ok(name)
    }

    /// Gives a file up: nothing stays under any name.
    pub(crate) fn discard(self) -> Result<(), SinkError> {
        match &self.partial {
            Some(partial) => {
                std::fs::remove_file(partial).map_err(|e| io_error(&self.destination, e))
            }
            None => Ok(()),
        }
    }

    /// Where the bytes are as long as the output is not complete.
    pub(crate) fn partial_path(&self) -> Option<&Path> {
        self.partial.as_deref()
    }
}
