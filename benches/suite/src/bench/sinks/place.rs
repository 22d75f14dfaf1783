//! Where it runs: the folder in memory, the program, the capture, and where each sink writes.

use super::row::Row;
use super::topics::Topics;
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
    /// Where a row wants it.
    topics: Option<Topics>,
}

/// Where a run writes.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) destination: String,
    /// Options that go with it.
    pub(super) words: Vec<String>,
    /// The topic, where it is no file.
    topic: Option<String>,
}

impl Place {
    /// Starts a broker where one is wanted.
    pub(super) fn new(
        dir: &Path,
        linkweir: PathBuf,
        capture: &Path,
        transactions: u64,
        rows: &[Row],
    ) -> Result<Self> {
        let needs_broker = rows.contains(&Row::Kafka);
        Ok(Self {
            dir: dir.to_path_buf(),
            linkweir,
            capture: text(capture)?,
            transactions,
            topics: needs_broker.then(Topics::open).transpose()?,
        })
    }

    /// A file of the folder.
    pub(super) fn path(&self, name: &str) -> Result<String> {
        text(&self.dir.join(name))
    }

    /// Where the next run of a row writes.
    pub(super) fn target(&self, row: Row) -> Result<Target> {
        if row == Row::Kafka {
            let topics = self.topics.as_ref().context("no broker")?;
            let topic = topics.next();
            return Ok(Target {
                destination: topics.broker.url(&topic),
                words: ["--kafka", "compression.codec=lz4"]
                    .map(str::to_owned)
                    .to_vec(),
                topic: Some(topic),
            });
        }
        Ok(Target {
            destination: self.path("records")?,
            words: vec!["--format".to_owned(), row.name().to_owned()],
            topic: None,
        })
    }

    /// What the records of a run are in the end, in bytes; a file is removed.
    pub(super) fn taken_bytes(&self, target: &Target) -> Result<u64> {
        if let (Some(topic), Some(topics)) = (&target.topic, &self.topics) {
            return topics
                .broker
                .stored_bytes(topic)
                .context("the broker's log");
        }
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
