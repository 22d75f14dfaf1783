//! The thread's work: steps become files.

use std::collections::{BTreeSet, HashMap};
use std::io;

use linkweir_engine::effect::{FileEnd, FileOrigin};
use linkweir_sys::wait::wall_clock_ns;

use crate::budget::{Budget, Place};
use crate::directory::Directory;
use crate::file::Writing;
use crate::intake::{Key, Step};
use crate::options::VaultOptions;
use crate::publish::{isolate, publish};
use crate::sidecar::Ended;
use crate::status::{LossCause, VaultStatus};

/// A file that has not ended.
#[derive(Debug)]
enum Slot {
    Writing(Writing),
    /// It was not begun, for this cause.
    Lost(LossCause),
}

/// Writes, names, moves and deletes.
#[derive(Debug)]
pub(crate) struct Keeper {
    options: VaultOptions,
    directory: Directory,
    /// `None` where it is the directory itself.
    quarantine: Option<Directory>,
    budget: Budget,
    files: HashMap<Key, Slot>,
    /// Counters of what is counted here.
    pub(crate) status: VaultStatus,
    /// What is to be said to a person, each once.
    pub(crate) notices: Vec<String>,
    said: BTreeSet<LossCause>,
}

impl Keeper {
    pub(crate) fn new(
        options: VaultOptions,
        directory: Directory,
        quarantine: Option<Directory>,
        interrupted: u64,
    ) -> Self {
        let mut budget = Budget::new(&options);
        budget.count(directory.path(), quarantine.as_ref().map(Directory::path));
        let status = VaultStatus {
            interrupted,
            total_bytes: budget.bytes(),
            ..VaultStatus::default()
        };
        Self {
            options,
            directory,
            quarantine,
            budget,
            files: HashMap::new(),
            status,
            notices: Vec::new(),
            said: BTreeSet::new(),
        }
    }

    pub(crate) fn step(&mut self, key: Key, step: Step) {
        match step {
            Step::Begin(origin) => {
                let slot = match self.begin(origin) {
                    Ok(file) => Slot::Writing(file),
                    Err((cause, text)) => {
                        self.lost(cause, 1, 0, &text);
                        Slot::Lost(cause)
                    }
                };
                self.files.insert(key, slot);
            }
            Step::Data(bytes) => match self.files.remove(&key) {
                Some(Slot::Writing(mut file)) => {
                    self.append(&mut file, &bytes);
                    self.files.insert(key, Slot::Writing(file));
                }
                Some(Slot::Lost(cause)) => {
                    self.status.lost.add(cause, 0, bytes.len() as u64);
                    self.files.insert(key, Slot::Lost(cause));
                }
                None => {}
            },
            Step::End { end, is_cut } => {
                if let Some(Slot::Writing(file)) = self.files.remove(&key) {
                    self.end(file, end, is_cut);
                }
            }
        }
        self.status.total_bytes = self.budget.bytes();
    }

    /// The run ends: what is open is a part.
    pub(crate) fn finish(&mut self) {
        for (_, slot) in std::mem::take(&mut self.files) {
            if let Slot::Writing(file) = slot {
                self.end(file, FileEnd::KeepPart, false);
            }
        }
        self.status.total_bytes = self.budget.bytes();
    }

    fn begin(&mut self, origin: Box<FileOrigin>) -> Result<Writing, (LossCause, String)> {
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
            let text = format!(
                "{} holds as much as it may",
                self.directory.path().display()
            );
            return Err((LossCause::TotalLimit, text));
        }
        let file =
            Writing::create(dir, origin).map_err(|error| refuse(&error, self.directory.path()))?;
        self.budget.begin();
        self.budget.add(file.total());
        Ok(file)
    }

    fn append(&mut self, file: &mut Writing, bytes: &[u8]) {
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
                    format!("{path} holds as much as it may"),
                ))
            }
            Ok(()) if fits < length => {
                let most = self.options.max_file_bytes;
                Some((
                    LossCause::FileLimit,
                    format!("a file is longer than {most} bytes"),
                ))
            }
            Ok(()) => None,
        };
        if let Some((cause, text)) = cut {
            file.cut = Some(cause);
            self.lost(cause, 1, length - done, &text);
        }
    }

    fn end(&mut self, mut file: Writing, end: FileEnd, is_cut: bool) {
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
                let text = format!("`{}` gets no name: {error}", file.name);
                self.lost(cause, 1, file.written(), &text);
                self.remove(&file);
            }
        }
    }

    fn complete(&mut self, file: &mut Writing, ended: Ended) -> io::Result<String> {
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

    fn remove(&mut self, file: &Writing) {
        match file.remove() {
            Ok(()) => self.budget.gone(file.total()),
            // It is still there, and still counts.
            Err(error) => self.status.last_error = Some(format!("`{}`: {error}", file.name)),
        }
    }

    /// Counts a loss, and says the first of its kind.
    fn lost(&mut self, cause: LossCause, files: u64, bytes: u64, text: &str) {
        self.status.lost.add(cause, files, bytes);
        self.status.last_error = Some(text.to_owned());
        self.say(cause, text);
    }

    pub(crate) fn say(&mut self, cause: LossCause, text: &str) {
        if self.said.insert(cause) {
            self.notices
                .push(format!("recorded files ({}): {text}", cause.as_str()));
        }
    }

    /// A file got its name: trouble with the disk is over, and the next one is said again.
    fn recovered(&mut self) {
        let before = self.said.len();
        self.said.retain(|cause| !cause.is_trouble());
        if self.said.len() < before {
            self.notices
                .push("recorded files: they are written again".to_owned());
        }
    }
}

/// Room for the text of a file: numbers, addresses, and names of which each byte may take six.
fn longest_text(origin: &FileOrigin) -> u64 {
    512 + 6 * (origin.name.len() + origin.application.len()) as u64
}
