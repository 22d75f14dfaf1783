//! The gateway of a scenario: its policy, its rules in the kernel, and its process.

use std::net::SocketAddr;
use std::time::Duration;

use linkweir_testkit::gateway::Place;

use crate::error::LabError;
use crate::program::{Ended, Program, output};
use crate::testbed::Testbed;

/// Kernel queues, a thread each.
pub(crate) const QUEUES: usize = 1;
/// Its events, in the directory of the run.
pub(crate) const EVENTS: &str = "events.jsonl";
/// Its policy, in the directory of the run.
const POLICY: &str = "gateway.toml";
/// How long it may take until it serves its queues.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The beginning of a policy: the table `[gateway]` with what the laboratory decides. Keys of its own
/// may follow before the next table.
pub(crate) fn head(testbed: &Testbed<'_>) -> String {
    format!(
        "[gateway]\ninterfaces = [\"lan0\", \"wan0\"]\nqueues = {QUEUES}\ncontrol = \"{}\"\n",
        testbed.path("gateway.sock").display()
    )
}

/// A gateway that runs.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// Its process.
    pub(crate) program: Program,
}

impl Gateway {
    /// Installs the rules of a policy and starts it; returns when it serves its queues.
    pub(crate) fn start(testbed: &Testbed<'_>, policy: &str) -> Result<Self, LabError> {
        Self::start_as(testbed, policy, "gateway", EVENTS)
    }

    /// The same under another name, with its events elsewhere.
    pub(crate) fn start_as(
        testbed: &Testbed<'_>,
        policy: &str,
        name: &str,
        events: &str,
    ) -> Result<Self, LabError> {
        testbed.put(POLICY, policy.as_bytes())?;
        command(testbed, &["up", "--config", POLICY])?;
        Self::run(testbed, name, events)
    }

    /// Starts the process alone, where the rules are there; `events` is where its events go.
    pub(crate) fn run(testbed: &Testbed<'_>, name: &str, events: &str) -> Result<Self, LabError> {
        let words = ["gateway", "run", "--config", POLICY, "-w", events];
        let mut program = Program::start_seen(testbed, Place::Gateway, name, &words)?;
        // It answers once its queues are open. The kernel's own list of queues is for root alone to read.
        let status = ["status", "--config", POLICY];
        testbed.wait("the gateway's queues", TIMEOUT, || {
            program.has_ended() || command(testbed, &status).is_ok()
        })?;
        program.must_run()?;
        Ok(Self { program })
    }

    /// Where its page is.
    pub(crate) fn console(&self) -> Option<(&'static str, SocketAddr)> {
        Some(("the gateway", self.program.console?))
    }

    /// Ends it and takes its rules away.
    pub(crate) fn finish(self, testbed: &Testbed<'_>) -> Result<Ended, LabError> {
        let ended = self.program.finish()?;
        command(testbed, &["down"])?;
        Ok(ended)
    }
}

/// Packets that passed unseen because a queue was full, as a tolerance: on a machine that does other things too.
#[expect(clippy::cast_precision_loss, reason = "a count")]
pub(crate) fn unseen(gateway: &Ended) -> f64 {
    gateway.count("gateway/unseen") as f64
}

/// A command that ends, as `linkweir gateway up`.
pub(crate) fn command(testbed: &Testbed<'_>, words: &[&str]) -> Result<(), LabError> {
    output(testbed, Place::Gateway, &[&["gateway"], words].concat()).map(drop)
}
