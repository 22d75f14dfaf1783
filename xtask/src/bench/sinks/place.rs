//! Where it runs: the folder in memory, the program, the capture, and where each sink writes.

use super::Plan;
use super::row::Row;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};

/// The surroundings of every run.
#[derive(Debug)]
pub(super) struct Place {
    /// In memory.
    pub(super) dir: PathBuf,
    pub(super) linkweir: PathBuf,
    pub(super) capture: String,
    /// Transactions of the capture.
    pub(super) transactions: u64,
}

/// Where a run writes.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) destination: String,
    /// Options that go with it.
    pub(super) words: Vec<String>,
}

impl Place {
    pub(super) fn new(dir: &Path, linkweir: PathBuf, capture: &Path, plan: &Plan) -> Result<Self> {
        Ok(Self {
            dir: dir.to_path_buf(),
            linkweir,
            capture: text(capture)?,
            transactions: plan.transactions,
        })
    }

    /// A file of the folder.
    pub(super) fn path(&self, name: &str) -> Result<String> {
        text(&self.dir.join(name))
    }

    /// Where the next run of a row writes.
    pub(super) fn target(&self, row: Row) -> Result<Target> {
        Ok(Target {
            destination: self.path("records")?,
            words: vec!["--format".to_owned(), row.name().to_owned()],
        })
    }

    /// What the records of a run are in the end; removes them.
    pub(super) fn taken_bytes(&self, target: &Target) -> Result<u64> {
        let length = std::fs::metadata(&target.destination)?.len();
        std::fs::remove_file(&target.destination)?;
        Ok(length)
    }
}

fn text(path: &Path) -> Result<String> {
    Ok(path
        .to_str()
        .context("a path that is not UTF-8")?
        .to_owned())
}
