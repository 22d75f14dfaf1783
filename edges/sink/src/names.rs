//! The names of rotated files: `out.jsonl` becomes `out-000001.jsonl`, `out-000002.jsonl` and so on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `NAME.N`, or `NAME` itself for 0.
#[must_use]
pub fn with_number(target: &Path, number: u64) -> PathBuf {
    if number == 0 {
        return target.to_owned();
    }
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    target.with_file_name(name)
}

/// The directory a file is in; `.` for a bare name.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// The name under which a file is written until it is complete: `.NAME.partial`.
#[must_use]
pub fn partial_name(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".partial");
    target.with_file_name(name)
}

/// The name that a file has once it is complete, from that of its partial file.
pub(crate) fn own_name(partial: &str) -> Option<&str> {
    partial.strip_prefix('.')?.strip_suffix(".partial")
}

/// The file names of an output.
#[derive(Debug)]
pub(crate) struct Names {
    /// The destination itself.
    pub(crate) base: PathBuf,
    /// The number of the file being written, where files are numbered.
    pub(crate) number: Option<u64>,
    /// The number behind the name of a file that has none, where others of its name are there.
    pub(crate) again: u64,
}

impl Names {
    /// The name of the file being written, once it is complete.
    pub(crate) fn current(&self) -> PathBuf {
        match self.number {
            Some(number) => self.numbered(number),
            None => with_number(&self.base, self.again),
        }
    }

    /// The own names of partial files in the directory that belong to this output, by name.
    pub(crate) fn left(&self) -> std::io::Result<Vec<PathBuf>> {
        let mut left = Vec::new();
        for entry in std::fs::read_dir(directory_of(&self.base))? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            if let Some(own) = own_name(&name)
                && (self.number_of(own).is_some() || self.is_base_or_again(own))
            {
                left.push(self.base.with_file_name(own));
            }
        }
        left.sort();
        Ok(left)
    }

    /// Whether a name is `NAME` or `NAME.1` and so on.
    fn is_base_or_again(&self, name: &str) -> bool {
        let base = self.base.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(&*base).is_some_and(|rest| {
            let digits = rest.strip_prefix('.');
            rest.is_empty() || digits.is_some_and(|rest| rest.parse::<u64>().is_ok())
        })
    }

    /// The number of a rotated file of this output.
    fn number_of(&self, name: &str) -> Option<u64> {
        let stem = self.base.file_stem().unwrap_or_default().to_string_lossy();
        let rest = name.strip_prefix(&*stem)?.strip_prefix('-')?;
        let digits = match self.base.extension() {
            Some(ending) => rest
                .strip_suffix(&*ending.to_string_lossy())?
                .strip_suffix('.')?,
            None => rest,
        };
        (digits.len() >= 6).then(|| digits.parse().ok()).flatten()
    }

    fn numbered(&self, number: u64) -> PathBuf {
        let mut name = self.base.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{number:06}"));
        if let Some(ending) = self.base.extension() {
            name.push(".");
            name.push(ending);
        }
        self.base.with_file_name(name)
    }

    /// The first number above all that are there, complete or partial.
    pub(crate) fn next_free(&self) -> std::io::Result<u64> {
        let mut highest = 0;
        for entry in std::fs::read_dir(directory_of(&self.base))? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            let complete = own_name(&name).unwrap_or(&name);
            highest = highest.max(self.number_of(complete).unwrap_or(0));
        }
        Ok(highest.saturating_add(1))
    }
}
