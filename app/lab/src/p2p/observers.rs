//! Those who look at the wire: before the gateway, where all is that the clients sent, and behind it,
//! where only that is what it let pass.

use std::net::SocketAddr;

use linkweir_testkit::gateway::{LAN, Place, WAN};

use crate::error::LabError;
use crate::program::{Ended, Program};
use crate::testbed::Testbed;
use crate::watch::is_capturing;

/// Records of `flows` before the gateway.
pub(super) const BEFORE: &str = "flows-before";
/// Records of `flows` behind it.
pub(super) const BEHIND: &str = "flows-behind";
/// How often `flows` writes what was added to a flow: points of the picture.
const PERIOD: &str = "250ms";

/// `linkweir flows` at both sides, and `linkweir http` behind.
pub(super) struct Observers {
    programs: [(&'static str, Program); 3],
}

/// What they found.
pub(super) struct Seen {
    pub(super) before: Ended,
    pub(super) behind: Ended,
    pub(super) http: Ended,
}

impl Observers {
    /// Starts all, and waits until they capture.
    pub(super) fn start(testbed: &Testbed<'_>) -> Result<Self, LabError> {
        let flows = |name: &str, interface: &str| {
            let out = format!("{name}.jsonl");
            let words = ["flows", "-i", interface, "--periodic", PERIOD, "-w", &out];
            Program::start_seen(testbed, Place::Gateway, name, &words)
        };
        let words = ["http", "-i", WAN, "-w", "http.jsonl"];
        let mut observers = Self {
            programs: [
                ("flows before the gateway", flows(BEFORE, LAN)?),
                ("flows behind it", flows(BEHIND, WAN)?),
                (
                    "http",
                    Program::start_seen(testbed, Place::Gateway, "http", &words)?,
                ),
            ],
        };
        for (_, program) in &mut observers.programs {
            is_capturing(testbed, program)?;
        }
        Ok(observers)
    }

    /// Where their pages are.
    pub(super) fn consoles(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> + '_ {
        let pages = self.programs.iter();
        pages.filter_map(|(name, program)| Some((*name, program.console?)))
    }

    /// Ends all.
    pub(super) fn finish(self) -> Result<Seen, LabError> {
        let [before, behind, http] = self.programs.map(|(_, program)| program.finish());
        Ok(Seen {
            before: before?,
            behind: behind?,
            http: http?,
        })
    }
}
