//! Files that a command writes once, beside its records; standard output may be one of them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use clap::Args;
use linkweir_engine::SinkError;
use linkweir_sink::{Document, Existing};

use crate::exit::{Wrong, warn};

/// What becomes of files that exist.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct OverwriteArgs {
    /// Replace existing output files [default: a run over files refuses to; a run on live traffic, and
    /// `load`, write to `NAME.1`, `NAME.2` and so on].
    #[arg(long, help_heading = "Output")]
    pub overwrite: bool,
}

impl OverwriteArgs {
    /// What goes for the outputs of a run; `is_live` where it cannot be repeated.
    pub const fn existing(self, is_live: bool) -> Existing {
        Existing::of(self.overwrite, is_live)
    }
}

/// An output that is refused is wrong usage; one that fails is not.
pub fn refused(error: SinkError) -> anyhow::Error {
    match error {
        SinkError::Refused { .. } => anyhow!(Wrong(error.to_string())),
        other => other.into(),
    }
}

/// Opens a document that is the work of a command.
///
/// # Errors
/// It cannot be made, or is there already and may not be replaced.
pub fn document(destination: &str, existing: Existing) -> anyhow::Result<Document> {
    Document::open(destination, existing, warn).map_err(refused)
}

/// The same for a path.
///
/// # Errors
/// As [`document`]; the name is not valid UTF-8.
pub fn document_at(path: &Path, existing: Existing) -> anyhow::Result<Document> {
    let name = path.to_str();
    let name =
        name.ok_or_else(|| anyhow!(Wrong(format!("{path:?}: the name is not valid UTF-8"))))?;
    document(name, existing)
}

/// Reads a text file of at most `most` bytes (a device says nothing of its length); `-` is standard input.
///
/// # Errors
/// It cannot be read, is not UTF-8, or is larger. The error does not name the file.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(most + 1).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("larger than {} MiB", most >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("no text (UTF-8)"))
}

/// Writes a text to standard output; that nobody reads it any more is no failure.
///
/// # Errors
/// Standard output fails.
pub fn print(text: &str) -> anyhow::Result<()> {
    let out = document("-", Existing::Refuse)?;
    out.write_whole(text.as_bytes()).context("standard output")
}

/// Whether a destination is standard output.
pub fn is_stdout(destination: &str) -> bool {
    matches!(destination, "-" | "/dev/stdout")
}

/// The words of the command line; long lists are cut.
pub fn command_line() -> String {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(500) {
        Some((end, _)) => format!("{} ...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
