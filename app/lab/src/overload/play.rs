//! One run of the generator against the server, and what the server's core was doing meanwhile.

use std::time::Duration;

use linkweir_testkit::gateway::Place;

use super::core::Core;
use crate::error::LabError;
use crate::program::{Ended, Program};
use crate::testbed::Testbed;
use crate::urgent::go_first;
use crate::web::{Web, url};

/// Where all clients are.
pub(super) const CLIENTS: &str = "10.16.0.0/12";
/// How long the server may be behind: every session is to end by itself.
const DRAIN: Duration = Duration::from_secs(60);

/// What is to be run.
#[derive(Debug)]
pub(super) struct Job {
    /// Name of the run and of its files.
    pub(super) name: String,
    /// As the generator takes them.
    pub(super) arrivals: String,
    /// When it ends, and other words for the generator.
    pub(super) words: Vec<String>,
    /// How long it takes without the drain, at most.
    pub(super) duration: Duration,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Played {
    /// Name of the run.
    pub(super) name: String,
    /// What the generator says.
    pub(super) load: Ended,
    /// What the server had of its core; `None` where the kernel does not count.
    pub(super) core: Option<Core>,
    /// Number of the run, which is in the addresses of its clients.
    number: u8,
}

/// All runs, each with clients of its own, so that every observer can tell them apart.
pub(super) struct Player<'a, 'b> {
    pub(super) testbed: &'a mut Testbed<'b>,
    pub(super) web: &'a Web,
    runs: u8,
}

impl<'a, 'b> Player<'a, 'b> {
    pub(super) const fn new(testbed: &'a mut Testbed<'b>, web: &'a Web) -> Self {
        Self {
            testbed,
            web,
            runs: 0,
        }
    }

    /// Runs one to its end.
    pub(super) fn play(&mut self, job: Job) -> Result<Played, LabError> {
        let number = self.runs;
        self.runs = (self.runs + 1) % 16;
        let (clients, drain) = (
            format!("10.{}.0.0/16", 16 + number),
            format!("{}s", DRAIN.as_secs()),
        );
        let (records, seed) = (
            format!("{}.jsonl", job.name),
            self.testbed.order.seed.to_string(),
        );
        let url = url("/work");
        let mut words = vec![
            "load",
            &url,
            "-i",
            "cli0",
            "--gateway",
            "10.88.1.1",
            "--clients",
            &clients,
            "--arrivals",
            &job.arrivals,
            "--seed",
            &seed,
            "--timeout",
            "120s",
            "--drain",
            &drain,
            "--close",
            "--lag-limit",
            "20ms",
            "-w",
            &records,
        ];
        words.extend(job.words.iter().map(String::as_str));
        let before = Core::of(self.web.id());
        let load = Program::start(self.testbed, Place::Client, &job.name, &words)?;
        go_first(self.testbed, load.id());
        let load = load.wait(self.testbed, job.duration + DRAIN)?;
        let core = Core::of(self.web.id());
        Ok(Played {
            name: job.name,
            load,
            core: core.zip(before).map(|(now, before)| now.since(before)),
            number,
        })
    }
}

impl Played {
    /// Whether a client is one of this run.
    pub(super) const fn is_of(&self, client: std::net::IpAddr) -> bool {
        match client {
            std::net::IpAddr::V4(address) => {
                let [a, b, _, _] = address.octets();
                a == 10 && b == 16 + self.number
            }
            std::net::IpAddr::V6(_) => false,
        }
    }

    /// Sessions that the schedule had.
    pub(super) fn planned(&self) -> u64 {
        self.load.count("load/planned")
    }

    /// Part of the run in which the server was kept from its core.
    pub(super) fn denied(&self) -> Option<f64> {
        let elapsed = self.load.number("elapsed_s")?;
        Some(self.core?.denied.as_secs_f64() / elapsed)
    }

    /// Part of the run in which the server ran.
    pub(super) fn busy(&self) -> Option<f64> {
        let elapsed = self.load.number("elapsed_s")?;
        Some(self.core?.ran.as_secs_f64() / elapsed)
    }
}
