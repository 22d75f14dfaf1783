//! What the user named: files, directories, standard input.

use std::fs;
use std::path::{Path, PathBuf};

use linkweir_engine::{FaultKind, SourceError};

/// One input of a trace, as named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file, FIFO or directory.
    Path(PathBuf),
}

impl From<PathBuf> for Input {
    /// `-` is standard input, everything else a path.
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" {
            Self::Stdin
        } else {
            Self::Path(path)
        }
    }
}

impl From<&Path> for Input {
    fn from(path: &Path) -> Self {
        Self::from(path.to_path_buf())
    }
}

impl From<&str> for Input {
    fn from(path: &str) -> Self {
        Self::from(PathBuf::from(path))
    }
}

/// One stream to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) input: Input,
    /// Bytes of a regular file; nothing for pipes.
    pub(crate) size: Option<u64>,
    /// Whether a directory listed it, rather than the user.
    pub(crate) is_listed: bool,
}

impl Item {
    /// How bad it is that nothing of it can be read: a directory may hold other files too.
    pub(crate) const fn unusable(&self) -> FaultKind {
        if self.is_listed {
            FaultKind::Damaged
        } else {
            FaultKind::Unusable
        }
    }

    /// The name for messages.
    pub(crate) fn name(&self) -> String {
        match &self.input {
            Input::Stdin => "standard input".to_owned(),
            Input::Path(path) => path.display().to_string(),
        }
    }
}

/// Checks that every input exists and puts the files of directories in their place.
pub(crate) fn expand(inputs: &[Input]) -> Result<Vec<Item>, SourceError> {
    let mut items = Vec::new();
    for input in inputs {
        let Input::Path(path) = input else {
            items.push(Item {
                input: Input::Stdin,
                size: None,
                is_listed: false,
            });
            continue;
        };
        let refuse = |error: &std::io::Error| SourceError {
            input: path.display().to_string(),
            message: reason(error),
        };
        let meta = fs::metadata(path).map_err(|error| refuse(&error))?;
        if meta.is_dir() {
            let listed = directory(path).map_err(|error| refuse(&error))?;
            if listed.is_empty() {
                return Err(SourceError {
                    input: path.display().to_string(),
                    message:
                        "the directory has no files (those of its subdirectories are not read)"
                            .to_owned(),
                });
            }
            items.extend(listed);
        } else {
            items.push(Item {
                input: input.clone(),
                size: meta.is_file().then_some(meta.len()),
                is_listed: false,
            });
        }
    }
    Ok(items)
}

/// The regular files of a directory in the order of their names.
fn directory(path: &Path) -> std::io::Result<Vec<Item>> {
    let mut items = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?.path();
        // A dangling link is no regular file.
        if let Ok(meta) = fs::metadata(&entry)
            && meta.is_file()
        {
            items.push((entry, meta.len()));
        }
    }
    items.sort();
    Ok(items
        .into_iter()
        .map(|(path, size)| Item {
            input: Input::Path(path),
            size: Some(size),
            is_listed: true,
        })
        .collect())
}

/// What the system said, in the words of the user.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::UnexpectedEof => "ends early".to_owned(),
        _ => error.to_string(),
    }
}
