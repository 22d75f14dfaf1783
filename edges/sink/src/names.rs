//! The names of rotated files: `out.jsonl` becomes `out-000001.jsonl`, `out-000002.jsonl` and so on.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::output::folder_of;

/// The file names of an output.
#[derive(Debug)]
pub(crate) struct Names {
    /// The destination itself.
    pub(crate) base: PathBuf,
    /// The number of the file being written, where files are numbered.
    pub(crate) number: Option<u64>,
}

impl Names {
    /// The name of the file being written, once it is complete.
    pub(crate) fn current(&self) -> PathBuf {
        self.number
            .map_or_else(|| self.base.clone(), |number| self.numbered(number))
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
        let mut prefix: OsString = self.base.file_stem().unwrap_or_default().to_owned();
        prefix.push("-");
        let prefix = prefix.to_string_lossy().into_owned();
        let suffix = self
            .base
            .extension()
            .map(|ending| format!(".{}", ending.to_string_lossy()))
            .unwrap_or_default();
        let mut highest = 0;
        for entry in std::fs::read_dir(folder_of(&self.base))? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            let complete = name
                .strip_prefix('.')
                .and_then(|name| name.strip_suffix(".partial"))
                .unwrap_or(&name);
            let number = complete
                .strip_prefix(prefix.as_str())
                .and_then(|rest| rest.strip_suffix(suffix.as_str()))
                .filter(|digits| digits.len() >= 6)
                .and_then(|digits| digits.parse::<u64>().ok());
            highest = highest.max(number.unwrap_or(0));
        }
        Ok(highest.saturating_add(1))
    }
}
