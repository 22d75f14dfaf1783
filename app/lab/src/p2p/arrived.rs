//! Whether files arrived as they were sent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::LabError;

/// The SHA-256 of each file that is there, in hexadecimal digits as records have it.
pub(super) fn hashes<'a>(
    paths: impl Iterator<Item = &'a Path>,
) -> Result<BTreeMap<PathBuf, String>, LabError> {
    let there: Vec<&Path> = paths.filter(|path| path.is_file()).collect();
    if there.is_empty() {
        return Ok(BTreeMap::new());
    }
    let output = Command::new("sha256sum")
        .arg("-b")
        .args(&there)
        .output()
        .map_err(|error| LabError::program("sha256sum", error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| {
        let (hash, path) = line.split_once(" *")?;
        Some((PathBuf::from(path), hash.to_owned()))
    };
    Ok(text.lines().filter_map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_there_have_a_hash() {
        let directory = tempfile::tempdir().unwrap();
        let (there, not) = (directory.path().join("a b"), directory.path().join("c"));
        std::fs::write(&there, "abc").unwrap();
        let hashes = hashes([there.as_path(), not.as_path()].into_iter()).unwrap();
        // Source: FIPS 180-4, example of the Secure Hash Standard.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hashes.get(&there).map(String::as_str), Some(expected));
        assert_eq!(hashes.get(&not), None);
    }
}
