//! Downloads by HTTP beside the torrent, which nobody shapes.

use std::time::Duration;

use linkweir_testkit::gateway::Place;
use serde::Deserialize;

use super::settings::Settings;
use crate::curves::quantile;
use crate::error::LabError;
use crate::program::{Ended, Program};
use crate::records;
use crate::testbed::Testbed;
use crate::web::url;

/// Who downloads.
pub(super) const CLIENTS: &str = "10.16.0.0/24";
/// What is downloaded.
pub(super) const PATH: &str = "/file";
/// How long the last ones may take when no more begin.
const DRAIN: Duration = Duration::from_secs(10);

/// Starts them; they begin at a constant rate for this time. `name` is where their records go.
pub(super) fn start(
    testbed: &Testbed<'_>,
    settings: &Settings,
    name: &str,
    duration: Duration,
) -> Result<Program, LabError> {
    let (url, arrivals) = (url(PATH), format!("constant:{}", settings.rate));
    let (duration, drain) = (
        format!("{}ms", duration.as_millis()),
        format!("{}s", DRAIN.as_secs()),
    );
    let (seed, out) = (testbed.order.seed.to_string(), format!("{name}.jsonl"));
    let words = [
        "load",
        &url,
        "-i",
        "cli0",
        "--gateway",
        "10.88.1.1",
        "--clients",
        CLIENTS,
        "--arrivals",
        &arrivals,
        "--duration",
        &duration,
        "--drain",
        &drain,
        "--seed",
        &seed,
        "--lag-limit",
        "1s",
        "-w",
        &out,
    ];
    Program::start(testbed, Place::Client, name, &words)
}

/// Fields of `load_session`.
#[derive(Debug, Deserialize)]
struct Session {
    service_time_ns: Option<u64>,
}

/// What came of them.
pub(super) struct Downloads {
    /// What the generator says.
    pub(super) load: Ended,
    /// From the first byte of a request to the last byte of its response, seconds; sorted.
    pub(super) times: Vec<f64>,
}

impl Downloads {
    /// Waits for the last one.
    pub(super) fn end(
        program: Program,
        testbed: &Testbed<'_>,
        duration: Duration,
    ) -> Result<Self, LabError> {
        let load = program.wait(testbed, duration + DRAIN)?;
        let mut times = Vec::new();
        let path = testbed.path(&format!("{}.jsonl", load.name));
        records::each(&path, |session: Session| {
            // Far below 2^53 nanoseconds.
            times.extend(session.service_time_ns.map(|time| time as f64 / 1e9));
        })?;
        times.sort_by(f64::total_cmp);
        Ok(Self { load, times })
    }

    /// The middle one of all times.
    pub(super) fn median(&self) -> Option<f64> {
        quantile(&self.times, 0.5)
    }
}
