//! Captures: recorded by `benches/record_http.sh`, kept in memory.

use super::harness::{Words, compile, record};
use crate::shell::{self, root};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Plan {
    /// Packets of each recorded capture.
    pub(super) packets: u64,
    /// Where captures go and what is written meanwhile.
    pub(super) dir: PathBuf,
    /// Whether the directory stays.
    pub(super) keep: bool,
}

/// A capture and what the walk found in it.
#[derive(Debug, Clone)]
pub(super) struct Capture {
    pub(super) path: PathBuf,
    pub(super) packets: u64,
    pub(super) wire_bytes: u64,
    pub(super) requests: u64,
    pub(super) responses: u64,
}

impl Capture {
    /// Where the key log of its TLS connections is, if it has any.
    pub(super) fn keys(&self) -> PathBuf {
        self.path.with_extension("keys")
    }
}

/// Compiles the limit, `benches/limits/pcapwalk.c`.
///
/// # Errors
/// It does not compile.
pub(super) fn walk(dir: &Path) -> Result<PathBuf> {
    let walk = dir.join("pcapwalk");
    compile(&root().join("benches/limits/pcapwalk.c"), &walk)?;
    Ok(walk)
}

/// Records traffic, unless it is there or a capture is given.
///
/// # Errors
/// It could not be recorded, or is not a classic little-endian pcap file.
pub(super) fn recorded(
    plan: &Plan,
    walk: &Path,
    mode: &str,
    given: Option<&Path>,
) -> Result<Capture> {
    if let Some(path) = given {
        return examine(walk, path);
    }
    let path = plan.dir.join(format!("{mode}-{}.pcap", plan.packets));
    if !path.is_file() {
        record(&path, plan.packets, mode)?;
    }
    examine(walk, &path)
}

/// Lets the walk count a capture.
///
/// # Errors
/// It is not a classic little-endian pcap file.
pub(super) fn examine(walk: &Path, path: &Path) -> Result<Capture> {
    let line = String::from_utf8(shell::output(Command::new(walk).arg(path))?)?;
    let words = Words::of(&line);
    Ok(Capture {
        path: path.to_path_buf(),
        packets: words.whole("packets")?,
        wire_bytes: words.whole("wire_bytes")?,
        requests: words.whole("requests")?,
        responses: words.whole("responses")?,
    })
}
