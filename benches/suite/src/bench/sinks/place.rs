//! Where it runs: the directory in memory, the program, the capture, and where each sink writes.

use super::super::harness::text;
use super::rows::{Row, Sink};
use anyhow::{Context as _, Result};
use linkweir_testkit::kafka::Broker;
use std::cell::Cell;
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
    /// The topic, where it is not a file.
    topic: Option<String>,
}

impl Place {
    /// Starts a broker where one is wanted.
    pub(super) fn new(
        dir: &Path,
        linkweir: PathBuf,
        capture: &Path,
        transactions: u64,
        rows: &[&Row],
    ) -> Result<Self> {
        let needs_broker = rows.iter().any(|row| row.how == Sink::Broker);
        Ok(Self {
            dir: dir.to_path_buf(),
            linkweir,
            capture: text(capture)?,
            transactions,
            topics: needs_broker.then(Topics::open).transpose()?,
        })
    }

    /// A file of the directory.
    pub(super) fn path(&self, name: &str) -> Result<String> {
        text(&self.dir.join(name))
    }

    /// Where the next run of a row writes.
    pub(super) fn target(&self, row: &Row) -> Result<Target> {
        let words = match row.how {
            // Everything is analysed and counted; no host has a blank, so no record is written.
            Sink::Nowhere => ["--format", "text", "--host", " "].as_slice(),
            Sink::File => &["--format", row.name],
            Sink::TwoCores => &["--format", "parquet"],
            Sink::Broker => &["--kafka", "compression.codec=lz4"],
        };
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        if row.how == Sink::Broker {
            let topics = self.topics.as_ref().context("no broker")?;
            let topic = topics.next();
            return Ok(Target {
                destination: topics.broker.url(&topic),
                words,
                topic: Some(topic),
            });
        }
        Ok(Target {
            destination: self.path("records")?,
            words,
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

/// The broker, and how many topics it has been given.
#[derive(Debug)]
pub(super) struct Topics {
    pub(super) broker: Broker,
    count: Cell<u32>,
}

impl Topics {
    pub(super) fn open() -> Result<Self> {
        Ok(Self {
            broker: Broker::start().context("start a broker")?,
            count: Cell::new(0),
        })
    }

    /// A topic that nobody has written to.
    pub(super) fn next(&self) -> String {
        self.count.set(self.count.get() + 1);
        format!("run-{}", self.count.get())
    }
}
