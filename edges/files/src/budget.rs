//! How much is in the directories, and what may go to make room.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use linkweir_sys::wait::monotonic_ns;

use crate::directory::{Dir, READ_ONLY};
use crate::name::{JSON, json};
use crate::options::{FileStoreOptions, WhenFull};

/// Break between two counts of what is there, for files that others delete, nanoseconds.
const RECOUNT: u64 = 10_000_000_000;

/// Sums over both directories.
#[derive(Debug)]
pub(crate) struct Budget {
    max_bytes: u64,
    max_files: usize,
    when_full: WhenFull,
    bytes: u64,
    files: usize,
    /// What may be deleted: when it was written (nanoseconds since the epoch) and its name; its length
    /// and that of its text.
    oldest: BTreeMap<(u64, String), u64>,
    counted_ns: u64,
}

impl Budget {
    pub(crate) fn new(options: &FileStoreOptions) -> Self {
        Self {
            max_bytes: options.max_total_bytes,
            max_files: options.max_files.max(1),
            when_full: options.when_full,
            bytes: 0,
            files: 0,
            oldest: BTreeMap::new(),
            counted_ns: 0,
        }
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts what is there. A directory that cannot be read counts as empty.
    pub(crate) fn count(&mut self, directory: &Path, quarantine: Option<&Path>) {
        self.counted_ns = monotonic_ns();
        self.bytes = 0;
        self.files = 0;
        self.oldest.clear();
        // What cannot be counted now is counted later.
        self.count_in(directory, true).ok();
        if let Some(quarantine) = quarantine {
            self.count_in(quarantine, false).ok();
        }
    }

    fn count_in(&mut self, path: &Path, may_go: bool) -> io::Result<()> {
        // Length, when it was written, and whether it is infected.
        let mut seen: HashMap<String, (u64, u64, bool)> = HashMap::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            // One that has gone meanwhile does not count.
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_file() {
                continue;
            }
            self.bytes += meta.len();
            let written = meta.modified().ok().and_then(|time| {
                let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
                u64::try_from(since.as_nanos()).ok()
            });
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_infected = meta.permissions().mode() & 0o777 == READ_ONLY.as_raw_mode();
            seen.insert(name, (meta.len(), written.unwrap_or_default(), is_infected));
        }
        for (name, (length, written, is_infected)) in &seen {
            let text = seen.get(&json(name));
            let is_text = name.ends_with(JSON) || name.ends_with(".json.partial");
            // A recorded file may be called `*.json` itself; then it has a text too.
            if is_text && text.is_none() {
                continue;
            }
            self.files += 1;
            // Only what has a text beside it is ours.
            if let Some((more, ..)) = text
                && may_go
                && !is_infected
                && self.when_full == WhenFull::DeleteOldest
            {
                self.oldest.insert((*written, name.clone()), length + more);
            }
        }
        Ok(())
    }

    /// How many of `bytes` there is room for, after making some.
    pub(crate) fn room(&mut self, bytes: u64, place: &Place<'_>, deleted: &mut u64) -> u64 {
        self.make_room(bytes, 0, place, deleted);
        self.max_bytes.saturating_sub(self.bytes).min(bytes)
    }

    /// Whether one more file, with a text of this length, may begin, after making room.
    pub(crate) fn may_begin(&mut self, text: u64, place: &Place<'_>, deleted: &mut u64) -> bool {
        self.make_room(text, 1, place, deleted);
        !self.is_over(text, 1)
    }

    fn is_over(&self, bytes: u64, files: usize) -> bool {
        self.bytes.saturating_add(bytes) > self.max_bytes || self.files + files > self.max_files
    }

    fn make_room(&mut self, bytes: u64, files: usize, place: &Place<'_>, deleted: &mut u64) {
        if self.is_over(bytes, files) && monotonic_ns().saturating_sub(self.counted_ns) > RECOUNT {
            self.count(place.directory, place.quarantine);
        }
        while self.is_over(bytes, files) {
            let Some(((_, name), length)) = self.oldest.pop_first() else {
                return;
            };
            // One that cannot be deleted is not tried again; the next count finds it.
            if place.dir.remove(&name).is_ok() {
                place.dir.remove(&json(&name)).ok();
                self.bytes = self.bytes.saturating_sub(length);
                self.files = self.files.saturating_sub(1);
                *deleted += 1;
            }
        }
    }

    /// Bytes more.
    pub(crate) const fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// A file has its last length: not `before`, but `now`.
    pub(crate) const fn settle(&mut self, before: u64, now: u64) {
        self.bytes = self.bytes.saturating_sub(before).saturating_add(now);
    }

    /// A file has begun.
    pub(crate) const fn begin(&mut self) {
        self.files += 1;
    }

    /// A file is gone, with its text.
    pub(crate) const fn gone(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.files = self.files.saturating_sub(1);
    }

    /// A file of the directory has its own name now, and may go one day.
    pub(crate) fn kept(&mut self, written_ns: u64, name: String, bytes: u64) {
        if self.when_full == WhenFull::DeleteOldest {
            self.oldest.insert((written_ns, name), bytes);
        }
    }
}

/// Where room can be made.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) dir: &'a Dir,
    pub(crate) directory: &'a Path,
    /// `None` where it is the directory itself.
    pub(crate) quarantine: Option<&'a Path>,
}
