//! A command that looks at the wire behind the gateway.

use std::time::Duration;

use linkweir_testkit::gateway::{Place, WAN};

use crate::error::LabError;
use crate::program::Program;
use crate::testbed::Testbed;

/// How long it may take until it captures.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts `linkweir COMMAND` under a name, and waits until it captures. Its records are in
/// `NAME.jsonl`.
pub(crate) fn watch(testbed: &Testbed<'_>, name: &str, command: &str) -> Result<Program, LabError> {
    watch_with(testbed, name, command, &[])
}

/// The same with other words behind.
pub(crate) fn watch_with(
    testbed: &Testbed<'_>,
    name: &str,
    command: &str,
    others: &[&str],
) -> Result<Program, LabError> {
    let records = format!("{name}.jsonl");
    let words = [&[command, "-i", WAN, "-w", &records], others].concat();
    let mut program = Program::start_seen(testbed, Place::Gateway, name, &words)?;
    is_capturing(testbed, &mut program)?;
    Ok(program)
}

/// Waits until a command captures.
pub(crate) fn is_capturing(testbed: &Testbed<'_>, program: &mut Program) -> Result<(), LabError> {
    let id = program.id();
    testbed.wait("the capture", PATIENCE, || {
        program.has_ended() || testbed.net.packet_sockets_of(Place::Gateway, id) > 0
    })?;
    program.must_run()
}
