//! A line between the clients and the gateway.
//!
//! ```text
//!  client                                                gateway
//!  host0 10.88.1.11 <veth> host1   the line   cli0 <veth> lan0 10.88.1.1
//!  load
//! ```
//! The addresses of the clients' namespace move in front of the line (`Net::put_before_line`).

use std::time::Duration;

use linkweir_testkit::gateway::Place;

use super::way::Harm;
use crate::error::LabError;
use crate::program::{Ended, Program};
use crate::testbed::Testbed;

/// How long it may take until it runs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A line that runs.
pub(crate) struct Line(Program);

impl Line {
    /// Moves the clients in front of a line, and starts it.
    pub(crate) fn lay(testbed: &mut Testbed<'_>, harm: Harm) -> Result<Self, LabError> {
        let ends = testbed.net.put_before_line(Place::Client)?;
        testbed.clients = ends.host;
        let (loss, reorder) = (harm.loss.to_string(), harm.reorder.to_string());
        let delay = format!("{}ns", harm.delay.as_nanos());
        let seed = testbed.order.seed.to_string();
        let words = [
            "line",
            "--between",
            ends.near,
            "--and",
            ends.far,
            "--loss",
            &loss,
            "--reorder",
            &reorder,
            "--delay",
            &delay,
            "--seed",
            &seed,
        ];
        let mut program = Program::start_part(testbed, Place::Client, "line", &words)?;
        let id = program.id();
        // A socket at each end.
        testbed.wait("the line", PATIENCE, || {
            program.has_ended() || testbed.net.packet_sockets_of(Place::Client, id) >= 2
        })?;
        program.must_run()?;
        Ok(Self(program))
    }

    /// Ends it.
    pub(crate) fn finish(self) -> Result<Ended, LabError> {
        self.0.finish()
    }
}
