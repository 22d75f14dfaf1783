//! Those who look at the wire behind the gateway.

use super::part::Part;
use crate::error::LabError;
use crate::program::{Ended, Program};
use crate::testbed::Testbed;
use crate::watch::watch;

/// `linkweir http` and `linkweir flows`.
pub(super) struct Wire {
    http: Program,
    flows: Program,
}

impl Wire {
    /// Starts both, and waits until they capture.
    pub(super) fn watch(testbed: &Testbed<'_>, part: Part) -> Result<Self, LabError> {
        let start = |command: &str| watch(testbed, &part.file(command), command);
        Ok(Self {
            http: start("http")?,
            flows: start("flows")?,
        })
    }

    /// Ends both: what http and flows found.
    pub(super) fn finish(self) -> Result<(Ended, Ended), LabError> {
        Ok((self.http.finish()?, self.flows.finish()?))
    }
}
