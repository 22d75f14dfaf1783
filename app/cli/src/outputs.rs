//! What the commands have in common about what they write, and the rights that writing needs.

use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, anyhow};
use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::RecordKind;
use linkweir_sys::privileges::Restrict;

use crate::exit::{Wrong, warn};

/// An output that is refused is wrong usage; one that fails is not.
pub(crate) fn refused(error: SinkError) -> anyhow::Error {
    match error {
        SinkError::Refused { .. } => anyhow!(Wrong(error.to_string())),
        other => other.into(),
    }
}

/// What outputs did not deliver, for commands that write to them outside a run of the engine.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    is_told: bool,
}

impl Losses {
    /// What was lost so far; says why when it is first seen.
    pub(crate) fn look<K: RecordKind>(&mut self, sinks: &[Box<dyn Sink<K>>]) -> SinkLosses {
        let losses = SinkLosses::of(sinks);
        if let Some(why) = losses.first.as_ref().filter(|_| !self.is_told) {
            self.is_told = true;
            warn(why);
        }
        losses
    }
}

/// Where records go: what `-w` names, or standard output, unless the terminal shows the live view.
pub(crate) fn destinations(named: &[String], has_top: bool) -> Vec<String> {
    match named {
        [] if has_top => Vec::new(),
        [] => vec!["-".to_owned()],
        named => named.to_vec(),
    }
}

/// Whether the records that go where `-w` names are shown on a terminal: no progress belongs between them.
pub(crate) fn are_shown(named: &[String]) -> bool {
    let is_stdout = |name: &String| matches!(name.as_str(), "-" | "/dev/stdout");
    (named.is_empty() || named.iter().any(is_stdout)) && std::io::stdout().is_terminal()
}

/// The folders in which files will be made, and the devices and pipes that are written to.
pub(crate) fn written_folders<'a>(outputs: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = outputs
        .filter(|path| path.as_os_str() != "-" && !path.to_string_lossy().contains("://"))
        .map(|path| match path.parent() {
            _ if path.exists() && !path.is_file() => path.to_owned(),
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        })
        .collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Gives up everything but `keep`, and says what could not be done.
pub(crate) fn give_up_privileges(keep: &Restrict) -> anyhow::Result<()> {
    for undone in keep.apply().context("give up privileges")? {
        warn(&undone);
    }
    Ok(())
}

/// What a capture needs once its interface is open: the right to open it again.
pub(crate) fn of_capture(interface: Option<&str>, writable: Vec<PathBuf>) -> Restrict {
    Restrict {
        writable,
        keep_net: interface.is_some(),
        keep_bpf: interface.is_some_and(|name| name.starts_with("xdp:")),
        ..Restrict::default()
    }
}

/// A report as one of the sinks and, after the run, as a page.
#[derive(Debug, Default)]
pub(crate) struct SharedReport<R>(pub(crate) Rc<RefCell<R>>);

impl<R> Clone for SharedReport<R> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<K: RecordKind, R: Sink<K>> Sink<K> for SharedReport<R> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        self.0.borrow_mut().write(batch)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
