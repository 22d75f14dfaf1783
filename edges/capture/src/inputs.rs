//! What the user named: files, directories, standard input.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linkweir_engine::{Fault, FaultKind, SourceError};

/// One input of a trace, as named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file, FIFO or directory.
    Path(PathBuf),
}

impl Input {
    /// Whether its name says that it is in the ERF format, which has no magic number.
    pub(crate) fn is_named_erf(&self) -> bool {
        matches!(self, Self::Path(path)
            if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("erf")))
    }
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

/// Directories below one another that are read (the help of `-r` says so); a tree of captures is a few levels
/// deep.
const MAX_DEPTH: usize = 32;

/// Everything that the inputs name.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// What is to be read, in its order.
    pub(crate) items: Vec<Item>,
    /// What of the directories cannot be looked into.
    pub(crate) faults: Vec<Fault>,
    /// What the directories hold besides.
    pub(crate) others: Others,
    /// Names of the directories that are inputs.
    pub(crate) directories: Vec<String>,
}

/// The fault of directories in which nothing could be read that is a capture.
pub(crate) fn nothing_in(directories: &[String]) -> Option<Fault> {
    (!directories.is_empty()).then(|| Fault {
        input: directories.join(", "),
        offset: None,
        kind: FaultKind::Unusable,
        message: "no capture in it could be read".to_owned(),
    })
}

/// What directories hold and no capture is: counted, and the first few named.
#[derive(Debug, Default)]
pub(crate) struct Others {
    count: u64,
    names: Vec<String>,
}

impl Others {
    /// How many are named.
    const NAMED: usize = 3;

    pub(crate) fn count(&mut self, name: String) {
        self.count += 1;
        if self.names.len() < Self::NAMED {
            self.names.push(name);
        }
    }

    /// What is said of them, where there are any: whether besides them anything `is_read` says how bad it is.
    pub(crate) fn take_fault(&mut self, is_read: bool) -> Option<Fault> {
        let Self { count, names } = std::mem::take(self);
        if count == 0 {
            return None;
        }
        let files = if count == 1 { "file" } else { "files" };
        let unnamed = count.saturating_sub(names.len() as u64);
        let more = match unnamed {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(Fault {
            input: format!("{}{more}", names.join(", ")),
            offset: None,
            kind: if is_read {
                FaultKind::Skipped
            } else {
                FaultKind::Unusable
            },
            message: format!("{count} {files} of a directory skipped: not a capture"),
        })
    }
}

/// Checks that every input exists and puts the files of directories in their place.
pub(crate) fn expand(inputs: &[Input]) -> Result<Listing, SourceError> {
    let mut listing = Listing::default();
    for input in inputs {
        let Input::Path(path) = input else {
            listing.items.push(Item {
                input: Input::Stdin,
                size: None,
                is_listed: false,
            });
            continue;
        };
        let refuse = |message: String| SourceError {
            input: path.display().to_string(),
            message,
        };
        let meta = fs::metadata(path).map_err(|error| refuse(reason(&error)))?;
        if meta.is_dir() {
            let before = listing.items.len() + listing.faults.len();
            let entries = entries(path).map_err(|error| refuse(reason(&error)))?;
            let mut seen = HashSet::from([identity(&meta)]);
            listing.walk(entries, &mut seen, 1);
            if listing.items.len() + listing.faults.len() == before {
                return Err(refuse("the directory has no files".to_owned()));
            }
            listing.directories.push(path.display().to_string());
        } else {
            listing.items.push(Item {
                input: input.clone(),
                size: meta.is_file().then_some(meta.len()),
                is_listed: false,
            });
        }
    }
    Ok(listing)
}

/// The files below a directory that would be read, in their order; of a file none.
#[must_use]
pub fn files_below(path: &Path) -> Vec<PathBuf> {
    let mut listing = Listing::default();
    let (Ok(meta), Ok(entries)) = (fs::metadata(path), entries(path)) else {
        return Vec::new();
    };
    listing.walk(entries, &mut HashSet::from([identity(&meta)]), 1);
    let inputs = listing.items.into_iter().map(|item| item.input);
    inputs
        .filter_map(|input| match input {
            Input::Path(path) => Some(path),
            Input::Stdin => None,
        })
        .collect()
}

impl Listing {
    /// Lists the regular files of a directory and of those in it, in the order of their names. A
    /// directory is read once, so that links among them end.
    fn walk(&mut self, entries: Vec<PathBuf>, seen: &mut HashSet<(u64, u64)>, depth: usize) {
        for path in entries {
            let name = path.display().to_string();
            let mut refuse = |kind, message: String| {
                self.faults.push(Fault {
                    input: name.clone(),
                    offset: None,
                    kind,
                    message,
                });
            };
            let meta = match fs::metadata(&path) {
                Ok(meta) => meta,
                Err(error) => {
                    let is_dangling = error.kind() == io::ErrorKind::NotFound && path.is_symlink();
                    let why = match is_dangling {
                        true => "a link to a file that is not there".to_owned(),
                        false => reason(&error),
                    };
                    refuse(FaultKind::Damaged, why);
                    continue;
                }
            };
            if meta.is_dir() {
                if depth == MAX_DEPTH {
                    let message = format!("more than {MAX_DEPTH} directories deep: not read");
                    refuse(FaultKind::Damaged, message);
                } else if !seen.insert(identity(&meta)) {
                    let message = "a directory that is read already under another name";
                    refuse(FaultKind::Skipped, message.to_owned());
                } else {
                    match self::entries(&path) {
                        Ok(inner) => self.walk(inner, seen, depth + 1),
                        Err(error) => refuse(FaultKind::Damaged, reason(&error)),
                    }
                }
            } else if meta.is_file() {
                self.items.push(Item {
                    input: Input::Path(path),
                    size: Some(meta.len()),
                    is_listed: true,
                });
            } else {
                self.others.count(name);
            }
        }
    }
}

/// What tells a directory from all others, whatever links lead to it.
fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// What is in a directory, in the order of the names.
fn entries(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// What the system said, in the words of the user.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::UnexpectedEof => "ends early".to_owned(),
        _ => error.to_string(),
    }
}
