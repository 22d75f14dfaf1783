//! A file that is being written: two hidden ones, its bytes and its text.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use linkweir_engine::effect::FileOrigin;
use rustix::fs::fchmod;

use crate::directory::{Dir, READ_ONLY};
use crate::name::{candidates, json, partial, sanitise};
use crate::sidecar::{Ended, padded, text};
use crate::status::LossCause;

/// What the text may grow by until the end: a length of 20 digits and a cause.
const GROWTH: u64 = 32;

/// Neither of them has its own name before [`publish`](crate::publish::publish) gives it one.
#[derive(Debug)]
pub(crate) struct Writing {
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

impl Writing {
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
