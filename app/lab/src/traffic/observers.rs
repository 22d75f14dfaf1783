//! Those who look at the wire behind the gateway.

use std::net::SocketAddr;
use std::time::Duration;

use linkweir_testkit::gateway::{Place, WAN};

use crate::error::LabError;
use crate::program::{Ended, Program};
use crate::testbed::Testbed;

/// How long they may take until they capture.
const PATIENCE: Duration = Duration::from_secs(20);

/// `linkweir http` and `linkweir flows`.
pub(super) struct Observers {
    http: Program,
    flows: Program,
}

/// What they found.
pub(super) struct Seen {
    pub(super) http: Ended,
    pub(super) flows: Ended,
}

impl Observers {
    /// Starts both, and waits until they capture.
    pub(super) fn start(testbed: &Testbed<'_>) -> Result<Self, LabError> {
        let words = ["http", "-i", WAN, "-w", "http.jsonl"];
        let http = Program::start_seen(testbed, Place::Gateway, "http", &words)?;
        let words = ["flows", "-i", WAN, "-w", "flows.jsonl"];
        let flows = Program::start_seen(testbed, Place::Gateway, "flows", &words)?;
        let mut observers = Self { http, flows };
        let both = [&mut observers.http, &mut observers.flows];
        for program in both {
            let id = program.id();
            testbed.wait("the capture", PATIENCE, || {
                program.has_ended() || testbed.net.packet_sockets_of(Place::Gateway, id) > 0
            })?;
            program.must_run()?;
        }
        Ok(observers)
    }

    /// Where their pages are.
    pub(super) fn consoles(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> + use<> {
        let pages = [("http", self.http.console), ("flows", self.flows.console)];
        pages
            .into_iter()
            .filter_map(|(name, console)| Some((name, console?)))
    }

    /// Ends both.
    pub(super) fn finish(self) -> Result<Seen, LabError> {
        Ok(Seen {
            http: self.http.finish()?,
            flows: self.flows.finish()?,
        })
    }
}
