//! The directories of a partitioned output, named as Hive names them: `date=2026-11-22/hour=07`, UTC;
//! and the budget of their files, of which the oldest are deleted.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use linkweir_record::human;
use linkweir_wire::civil::date_time;

use crate::options::Partition;

const SECOND_NS: u64 = 1_000_000_000;

/// What the files in the directories are called before they are numbered.
pub(crate) const PART: &str = "part.parquet";

/// Length of the time that a directory is for, nanoseconds.
pub(crate) const fn span_ns(partition: Partition) -> u64 {
    match partition {
        Partition::Hour => 3_600 * SECOND_NS,
        Partition::Day => 86_400 * SECOND_NS,
    }
}

/// The directory of the records of a moment, below that of the output.
pub(crate) fn directory(partition: Partition, time_ns: u64) -> PathBuf {
    let seconds = time_ns / SECOND_NS;
    let [year, month, day, hour, ..] = date_time(seconds.cast_signed());
    let mut directory = PathBuf::from(format!("date={year:04}-{month:02}-{day:02}"));
    if partition == Partition::Hour {
        directory.push(format!("hour={hour:02}"));
    }
    directory
}

/// Whether a directory has the name of one for a day.
pub(crate) fn is_date(name: &OsStr) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some(date) = name.to_str().and_then(|name| name.strip_prefix("date=")) else {
        return false;
    };
    let parts: Vec<&str> = date.split('-').collect();
    matches!(parts[..], [year, month, day]
        if year.len() >= 4 && month.len() == 2 && day.len() == 2
            && parts.iter().all(|part| digits(part)))
}

/// Whether a directory has the name of one for an hour.
pub(crate) fn is_hour(name: &OsStr) -> bool {
    let hour = name.to_str().and_then(|name| name.strip_prefix("hour="));
    hour.is_some_and(|hour| hour.len() == 2 && hour.bytes().all(|b| b.is_ascii_digit()))
}

/// The number of a complete file of ours, from its name.
pub(crate) fn part_number(name: &OsStr) -> Option<u64> {
    let number = name
        .to_str()?
        .strip_prefix("part-")?
        .strip_suffix(".parquet")?;
    if number.len() < 6 || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    number.parse().ok()
}

/// Whether a file is one of ours that is not complete.
pub(crate) fn is_partial(name: &OsStr) -> bool {
    let complete = name
        .to_str()
        .and_then(|name| name.strip_prefix('.')?.strip_suffix(".partial"));
    complete.is_some_and(|name| part_number(OsStr::new(name)).is_some())
}

/// Deletes the oldest files of an output once all of them take more than they may.
///
/// Only what the output itself makes is looked at: real directories `date=*` and `date=*/hour=*`, in them
/// real files `part-NNNNNN.parquet`. Nothing behind a symbolic link is followed or deleted. Files that
/// are not complete count, and stay.
#[derive(Debug)]
pub(crate) struct Budget {
    root: PathBuf,
    limit: u64,
    announce: fn(&str),
    /// Whether a failure to delete was reported.
    has_told: bool,
}

/// The complete files of one directory, oldest first.
#[derive(Debug, Default)]
struct Stored {
    directory: PathBuf,
    files: Vec<(u64, PathBuf, u64)>,
    /// Bytes of all files of ours, those that are not complete too.
    bytes: u64,
}

/// What was deleted.
#[derive(Debug, Default)]
struct Deleted {
    files: u64,
    bytes: u64,
    directories: Vec<String>,
}

impl Budget {
    pub(crate) const fn new(root: PathBuf, limit: u64, announce: fn(&str)) -> Self {
        Self {
            root,
            limit,
            announce,
            has_told: false,
        }
    }

    /// Deletes what is too much, file by file: those in the directories of the oldest records first. A directory
    /// without files goes too, unless it is in `open`. Says so in one line; that something cannot be
    /// deleted is said once, and is no failure of the output.
    pub(crate) fn keep(&mut self, open: &HashSet<PathBuf>) {
        let mut deleted = Deleted::default();
        let result = self.delete(open, &mut deleted);
        if deleted.files > 0 {
            (self.announce)(&format!(
                "the files in `{}` took more than {}: deleted {} ({}) of {}",
                self.root.display(),
                human::scaled(to_f64(self.limit), "B"),
                match deleted.files {
                    1 => "1 file".to_owned(),
                    files => format!("{} files", human::thousands(files)),
                },
                human::scaled(to_f64(deleted.bytes), "B"),
                deleted.directories.join(", "),
            ));
        }
        if let Err((path, error)) = result
            && !self.has_told
        {
            self.has_told = true;
            (self.announce)(&format!(
                "`{}` cannot be deleted, and the files in `{}` take more than they may: {error}",
                path.display(),
                self.root.display()
            ));
        }
    }

    fn delete(
        &self,
        open: &HashSet<PathBuf>,
        deleted: &mut Deleted,
    ) -> Result<(), (PathBuf, io::Error)> {
        let stored = self.stored().map_err(|e| (self.root.clone(), e))?;
        let mut total: u64 = stored.iter().map(|part| part.bytes).sum();
        // The newest file stays even if it is too large alone: a budget is for the past.
        let newest = stored
            .iter()
            .rev()
            .find_map(|part| part.files.last())
            .map(|(_, path, _)| path.clone());
        for part in stored {
            if total <= self.limit {
                break;
            }
            let before = deleted.files;
            for (_, path, bytes) in part.files {
                if total <= self.limit || newest.as_ref() == Some(&path) {
                    break;
                }
                fs::remove_file(&path).map_err(|e| (path, e))?;
                total = total.saturating_sub(bytes);
                deleted.files += 1;
                deleted.bytes += bytes;
            }
            if deleted.files > before {
                let name = part
                    .directory
                    .strip_prefix(&self.root)
                    .unwrap_or(&part.directory);
                deleted.directories.push(name.display().to_string());
            }
            if !open.contains(&part.directory) {
                self.remove_empty(&part.directory);
            }
        }
        Ok(())
    }

    /// Removes a directory and the one of its day, where nothing is in them.
    fn remove_empty(&self, directory: &Path) {
        let ours = directory.ancestors().take_while(|path| *path != self.root);
        for directory in ours {
            if fs::remove_dir(directory).is_err() {
                return;
            }
        }
    }

    /// All files of ours by directory, the oldest directory first.
    fn stored(&self) -> io::Result<Vec<Stored>> {
        let mut all = Vec::new();
        for date in subdirectories(&self.root, is_date)? {
            for hour in subdirectories(&date, is_hour)? {
                all.push(Stored::of(hour)?);
            }
            all.push(Stored::of(date)?);
        }
        // By the text of the path, which is by time: years have four digits until the year 2554.
        all.sort_by(|one, other| one.directory.cmp(&other.directory));
        Ok(all)
    }
}

impl Stored {
    fn of(directory: PathBuf) -> io::Result<Self> {
        let mut stored = Self::default();
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = part_number(&name);
            if number.is_none() && !is_partial(&name) {
                continue;
            }
            // Of the entry itself, not of what a link leads to. Another process may have renamed it.
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_file() {
                continue;
            }
            stored.bytes += meta.len();
            if let Some(number) = number {
                stored.files.push((number, entry.path(), meta.len()));
            }
        }
        stored.files.sort();
        stored.directory = directory;
        Ok(stored)
    }
}

/// The real directories in `directory` whose name is one of ours.
fn subdirectories(directory: &Path, is_ours: fn(&OsStr) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if is_ours(&entry.file_name()) && entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
const fn to_f64(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_those_of_the_moment_in_utc() {
        // 2026-11-22 07:59:59.999999999 UTC.
        let time = 1_795_334_399_999_999_999;
        let of = |partition, time| directory(partition, time).to_str().unwrap().to_owned();
        assert_eq!(of(Partition::Hour, time), "date=2026-11-22/hour=07");
        assert_eq!(of(Partition::Hour, time + 1), "date=2026-11-22/hour=08");
        assert_eq!(of(Partition::Day, time), "date=2026-11-22");
        assert_eq!(of(Partition::Day, 0), "date=1970-01-01");
    }

    #[test]
    fn names_of_others_are_not_ours() {
        let os = OsStr::new;
        assert!(is_date(os("date=2026-11-22")) && is_hour(os("hour=07")));
        for name in [
            "date=2026-11",
            "date=x-11-22",
            "2026-11-22",
            "date=",
            "date=--",
        ] {
            assert!(!is_date(os(name)), "{name}");
        }
        for name in ["hour=7", "hour=ab", "hour=007", "07"] {
            assert!(!is_hour(os(name)), "{name}");
        }
        assert_eq!(part_number(os("part-000012.parquet")), Some(12));
        for name in [
            "part-12.parquet",
            "part-+00012.parquet",
            "part-000001.csv",
            "my.parquet",
        ] {
            assert_eq!(part_number(os(name)), None, "{name}");
        }
        assert!(is_partial(os(".part-000012.parquet.partial")));
        assert!(!is_partial(os("part-000012.parquet")) && !is_partial(os(".x.partial")));
    }
}
