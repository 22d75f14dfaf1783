//! The thread's work: steps become files.

use std::collections::{BTreeSet, HashMap};
use std::io;

use linkweir_engine::effect::{FileEnd, FileOrigin};
use linkweir_sys::wait::wall_clock_ns;

use crate::budget::{Budget, Place};
use crate::directory::Directory;
use crate::file::{OpenFile, isolate, publish};
use crate::options::FileStoreOptions;
use crate::queue::{Key, Step};
use crate::sidecar::Ended;
use crate::status::{FileStoreStatus, LossCause};

/// A file that has not ended.
#[derive(Debug)]
enum Slot {
    Open(OpenFile),
    /// It was not begun, for this cause.
    Lost(LossCause),
}

/// Writes, names, moves and deletes.
#[derive(Debug)]
pub(crate) struct Writer {
    options: FileStoreOptions,
    directory: Directory,
    /// `None` where it is the directory itself.
    quarantine: Option<Directory>,
    budget: Budget,
    files: HashMap<Key, Slot>,
    /// Counters of what is counted here.
    pub(crate) status: FileStoreStatus,
    /// Messages for the user, each given once.
    pub(crate) notices: Vec<String>,
    reported: BTreeSet<LossCause>,
}

impl Writer {
    pub(crate) fn new(
        options: FileStoreOptions,
        directory: Directory,
        quarantine: Option<Directory>,
        interrupted: u64,
    ) -> Self {
        let mut budget = Budget::new(&options);
        budget.count(directory.path(), quarantine.as_ref().map(Directory::path));
        let status = FileStoreStatus {
            interrupted,
            total_bytes: budget.bytes(),
            ..FileStoreStatus::default()
        };
        Self {
            options,
            directory,
            quarantine,
            budget,
            files: HashMap::new(),
            status,
            notices: Vec::new(),
            reported: BTreeSet::new(),
        }
    }

    pub(crate) fn step(&mut self, key: Key, step: Step) {
        match step {
            Step::Begin(origin) => {
                let slot = match self.begin(origin) {
                    Ok(file) => Slot::Open(file),
                    Err((cause, text)) => {
                        self.lost(cause, 1, 0, &text);
                        Slot::Lost(cause)
                    }
                };
                self.files.insert(key, slot);
            }
            Step::Data(bytes) => match self.files.remove(&key) {
                Some(Slot::Open(mut file)) => {
                    self.append(&mut file, &bytes);
                    self.files.insert(key, Slot::Open(file));
                }
                Some(Slot::Lost(cause)) => {
                    self.status.lost.add(cause, 0, bytes.len() as u64);
                    self.files.insert(key, Slot::Lost(cause));
                }
                None => {}
            },
            Step::End { end, is_cut } => {
                if let Some(Slot::Open(file)) = self.files.remove(&key) {
                    self.end(file, end, is_cut);
                }
            }
        }
        self.status.total_bytes = self.budget.bytes();
    }

    /// The run ends: what is open is a part.
    pub(crate) fn finish(&mut self) {
        for (_, slot) in std::mem::take(&mut self.files) {
            if let Slot::Open(file) = slot {
                self.end(file, FileEnd::KeepPart, false);
            }
        }
        self.status.total_bytes = self.budget.bytes();
    }

    fn begin(&mut self, origin: Box<FileOrigin>) -> Result<OpenFile, (LossCause, String)> {
        let refuse = |error: &io::Error, path: &std::path::Path| {
            (LossCause::of(error), format!("{}: {error}", path.display()))
        };
        let dir = self
            .directory
            .now()
            .map_err(|error| refuse(&error, self.directory.path()))?;
        let place = Place {
            dir: &dir,
            directory: self.directory.path(),
            quarantine: self.quarantine.as_ref().map(Directory::path),
        };
        let text = longest_text(&origin);
        if !self
            .budget
            .may_begin(text, &place, &mut self.status.deleted)
        {
            let text = format!("{} has reached its limit", self.directory.path().display());
            return Err((LossCause::TotalLimit, text));
        }
        let file =
            OpenFile::create(dir, origin).map_err(|error| refuse(&error, self.directory.path()))?;
        self.budget.begin();
        self.budget.add(file.total());
        Ok(file)
    }

    fn append(&mut self, file: &mut OpenFile, bytes: &[u8]) {
        let length = bytes.len() as u64;
        if let Some(cause) = file.cut {
            self.status.lost.add(cause, 0, length);
            return;
        }
        let place = Place {
            dir: &file.dir,
            directory: self.directory.path(),
            quarantine: self.quarantine.as_ref().map(Directory::path),
        };
        let fits = length.min(self.options.max_file_bytes.saturating_sub(file.written()));
        let room = self.budget.room(fits, &place, &mut self.status.deleted);
        let part = usize::try_from(room)
            .ok()
            .and_then(|room| bytes.get(..room));
        let (done, outcome) = file.append(part.unwrap_or(bytes));
        self.budget.add(done);
        self.status.bytes += done;
        let cut = match outcome {
            Err(error) => {
                let path = self.directory.path().display();
                Some((LossCause::of(&error), format!("{path}: {error}")))
            }
            Ok(()) if room < fits => {
                let path = self.directory.path().display();
                Some((
                    LossCause::TotalLimit,
                    format!("{path} has reached its limit"),
                ))
            }
            Ok(()) if fits < length => {
                let limit = self.options.max_file_bytes;
                Some((
                    LossCause::FileLimit,
                    format!("a file is longer than the limit of {limit} bytes"),
                ))
            }
            Ok(()) => None,
        };
        if let Some((cause, text)) = cut {
            file.cut = Some(cause);
            self.lost(cause, 1, length - done, &text);
        }
    }

    fn end(&mut self, mut file: OpenFile, end: FileEnd, is_cut: bool) {
        if is_cut {
            file.cut.get_or_insert(LossCause::Buffer);
        }
        // Nothing of it could be written: there is no beginning to keep.
        let is_nothing = file.written() == 0 && file.cut.is_some();
        let ended = match end {
            FileEnd::Discard => {
                self.status.discarded += 1;
                None
            }
            _ if is_nothing => None,
            FileEnd::Quarantine => Some(Ended::Quarantined),
            FileEnd::Keep if file.cut.is_none() => Some(Ended::Kept),
            FileEnd::Keep | FileEnd::KeepPart => Some(Ended::Part),
        };
        let Some(ended) = ended else {
            self.remove(&file);
            return;
        };
        let before = file.total();
        match self.complete(&mut file, ended) {
            Ok(own) => {
                self.budget.settle(before, file.total());
                match ended {
                    Ended::Quarantined => self.status.quarantined += 1,
                    Ended::Part => self.status.parts += 1,
                    Ended::Kept | Ended::Interrupted => self.status.kept += 1,
                }
                if ended != Ended::Quarantined {
                    self.budget.kept(wall_clock_ns(), own, file.total());
                }
                self.recovered();
            }
            Err(error) => {
                let cause = match ended {
                    Ended::Quarantined => LossCause::Quarantine,
                    _ => LossCause::of(&error),
                };
                let text = format!("`{}` cannot be completed: {error}", file.name);
                self.lost(cause, 1, file.written(), &text);
                self.remove(&file);
            }
        }
    }

    fn complete(&mut self, file: &mut OpenFile, ended: Ended) -> io::Result<String> {
        file.conclude(ended, self.options.is_synced)?;
        let to = match &mut self.quarantine {
            Some(quarantine) if ended == Ended::Quarantined => quarantine.now()?,
            _ => file.dir.clone(),
        };
        let own = if ended == Ended::Quarantined {
            isolate(&file.dir, &file.name, &to)?
        } else {
            publish(&file.dir, &file.name, &to)?
        };
        if self.options.is_synced {
            to.sync();
        }
        Ok(own)
    }

    fn remove(&mut self, file: &OpenFile) {
        match file.remove() {
            Ok(()) => self.budget.gone(file.total()),
            // It is still there, and still counts.
            Err(error) => self.status.last_error = Some(format!("`{}`: {error}", file.name)),
        }
    }

    /// Counts a loss, and reports the first of its cause.
    fn lost(&mut self, cause: LossCause, files: u64, bytes: u64, text: &str) {
        self.status.lost.add(cause, files, bytes);
        self.status.last_error = Some(text.to_owned());
        self.notify(cause, text);
    }

    pub(crate) fn notify(&mut self, cause: LossCause, text: &str) {
        if self.reported.insert(cause) {
            self.notices
                .push(format!("recorded files ({}): {text}", cause.as_str()));
        }
    }

    /// A file got its name: trouble with the disk is over, and the next error is reported again.
    fn recovered(&mut self) {
        let before = self.reported.len();
        self.reported.retain(|cause| !cause.is_trouble());
        if self.reported.len() < before {
            self.notices
                .push("recorded files: writing works again".to_owned());
        }
    }
}

/// Room for the text of a file: numbers, addresses, and names of which each byte may take six.
fn longest_text(origin: &FileOrigin) -> u64 {
    512 + 6 * (origin.name.len() + origin.application.len()) as u64
}
