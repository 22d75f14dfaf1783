//! A broker on this machine, and a topic for each run.

use anyhow::{Context as _, Result};
use linkweir_testkit::kafka::Broker;
use std::cell::Cell;

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
