//! A file that is being written: two hidden ones, its bytes and its text.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use linkweir_engine::effect::FileOrigin;
use rustix::fs::fchmod;
use rustix::io::Errno;

use crate::directory::{Dir, READ_ONLY};
use crate::name::{candidates, json, partial, sanitise};
use crate::sidecar::{Ended, padded, text};
use crate::status::LossCause;

/// What the text may grow by until the end: a length of 20 digits and a cause.
const GROWTH: u64 = 32;

/// Neither of them has its own name before [`publish`] gives it one.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) dir: Arc<Dir>,
    /// What the hidden names stand for.
    pub(crate) name: String,
    origin: Box<FileOrigin>,
    file: File,
    written: u64,
    text_length: usize,
    /// Room taken for the text.
    text_room: u64,
    /// Why nothing more is written.
    pub(crate) cut: Option<LossCause>,
}

impl OpenFile {
    /// Makes both. The text says from the start where the file comes from, for the case that the run
    /// is killed.
    pub(crate) fn create(dir: Arc<Dir>, origin: Box<FileOrigin>) -> io::Result<Self> {
        let text = text(&origin, Ended::Interrupted, None, None);
        for name in candidates(&sanitise(&origin.stored_name)) {
            let file = match dir.create(&partial(&name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => File::from(other?),
            };
            let beside = dir
                .create(&partial(&json(&name)))
                .and_then(|beside| File::from(beside).write_all(text.as_bytes()));
            match beside {
                Ok(()) => {
                    return Ok(Self {
                        dir,
                        name,
                        origin,
                        file,
                        written: 0,
                        text_length: text.len(),
                        text_room: text.len() as u64 + GROWTH,
                        cut: None,
                    });
                }
                // The name of the text is taken, by a file called `*.json`. It is not ours.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    dir.remove(&partial(&name))?;
                }
                Err(error) => {
                    dir.remove(&partial(&name)).ok();
                    dir.remove(&partial(&json(&name))).ok();
                    return Err(error);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Appends; gives how much of it is written, also where that is not all.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> (u64, io::Result<()>) {
        let mut rest = bytes;
        let outcome = loop {
            if rest.is_empty() {
                break Ok(());
            }
            match self.file.write(rest) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        let done = (bytes.len() - rest.len()) as u64;
        self.written += done;
        (done, outcome)
    }

    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    /// Bytes of both, with room for the end of the text.
    pub(crate) const fn total(&self) -> u64 {
        self.written + self.text_room
    }

    /// Writes down how it ended, before it gets its name.
    pub(crate) fn conclude(&mut self, ended: Ended, is_synced: bool) -> io::Result<()> {
        if ended == Ended::Quarantined {
            // First of all: it tells a later run where the file belongs.
            fchmod(&self.file, READ_ONLY)?;
        }
        let text = text(&self.origin, ended, Some(self.written), self.cut);
        let text = padded(text, self.text_length);
        let beside = File::from(self.dir.reopen(&partial(&json(&self.name)), true)?);
        beside.write_all_at(text.as_bytes(), 0)?;
        self.text_room = text.len() as u64;
        if is_synced {
            self.file.sync_data()?;
            beside.sync_data()?;
        }
        Ok(())
    }

    /// Deletes both.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let text = self.dir.remove(&partial(&json(&self.name)));
        self.dir.remove(&partial(&self.name)).and(text)
    }
}

/// Gives the hidden files of `name` in `from` their own names in `to`; the first that is free, which it
/// returns. The text comes first: a file never has its name without one.
pub(crate) fn publish(from: &Dir, name: &str, to: &Dir) -> io::Result<String> {
    let (hidden, hidden_text) = (partial(name), partial(&json(name)));
    for own in candidates(name) {
        if to.has(&own) {
            continue;
        }
        match from.rename(&hidden_text, to, &json(&own)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            other => other?,
        }
        match from.rename(&hidden, to, &own) {
            Ok(()) => return Ok(own),
            // Somebody was faster, or the file is gone: the text goes back.
            Err(error) => {
                to.rename(&json(&own), from, &hidden_text)?;
                if error.kind() != io::ErrorKind::AlreadyExists {
                    return Err(error);
                }
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// [`publish`] to the quarantine, which may be on another file system: then the file is copied.
pub(crate) fn isolate(from: &Dir, name: &str, to: &Dir) -> io::Result<String> {
    match publish(from, name, to) {
        Err(error) if error.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => {}
        other => return other,
    }
    let copy = candidates(name)
        .find(|copy| !to.has(&partial(copy)) && !to.has(&partial(&json(copy))))
        .ok_or(io::ErrorKind::AlreadyExists)?;
    let copied = copy_one(from, &partial(name), to, &partial(&copy))
        .and_then(|()| copy_one(from, &partial(&json(name)), to, &partial(&json(&copy))))
        .and_then(|()| {
            let file = to.reopen(&partial(&copy), false)?;
            Ok(fchmod(file, READ_ONLY)?)
        })
        .and_then(|()| publish(to, &copy, to));
    match copied {
        Ok(own) => {
            from.remove(&partial(name))?;
            from.remove(&partial(&json(name)))?;
            Ok(own)
        }
        Err(error) => {
            to.remove(&partial(&copy)).ok();
            to.remove(&partial(&json(&copy))).ok();
            Err(error)
        }
    }
}

fn copy_one(from: &Dir, name: &str, to: &Dir, new_name: &str) -> io::Result<()> {
    let mut source = File::from(from.reopen(name, false)?);
    let mut copy = File::from(to.create(new_name)?);
    io::copy(&mut source, &mut copy)?;
    copy.sync_data()
}
