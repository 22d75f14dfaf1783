//! Captures that nobody here wrote. They are no part of the repository: what compares with them says
//! loudly that it was skipped where there are none.

use std::path::{Path, PathBuf};

/// Where they are: what `LINKWEIR_CAPTURES` names, or the directory beside the repository.
#[must_use]
pub fn directory() -> PathBuf {
    std::env::var_os("LINKWEIR_CAPTURES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures/pcaps"),
        PathBuf::from,
    )
}

/// All of them, by name; none where the directory is not there.
#[must_use]
pub fn all() -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(&directory(), &mut files);
    files.sort();
    files
}

/// All of them for a test; says loudly where there are none.
#[must_use]
pub fn for_test() -> Option<Vec<PathBuf>> {
    let files = all();
    if files.is_empty() {
        crate::ran::skipped(&format!("no captures in {}", directory().display()));
        return None;
    }
    Some(files)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
