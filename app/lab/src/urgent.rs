//! Programs that go before all others of the machine.

use std::process::Stdio;
use std::thread::available_parallelism;

use linkweir_testkit::gateway::Place;

use crate::testbed::Testbed;

/// Lets a process go before all others, as if it had a machine of its own: what is measured is then its
/// time and not that of a compiler next door. On one core it would keep the other parts of the laboratory
/// from theirs, and ordinary users may not; then nothing changes, and what the machine did to the
/// run is in the tables.
pub(crate) fn go_first(testbed: &Testbed<'_>, process: u32) {
    let has_room = available_parallelism().is_ok_and(|cores| cores.get() > 1);
    if !has_room || testbed.net.is_unprivileged() {
        return;
    }
    // Round robin: two of them share a core fairly.
    let words = ["--rr", "--all-tasks", "--pid", "1", &process.to_string()].map(str::to_owned);
    let mut chrt = testbed.command(Place::Server, "chrt");
    chrt.args(words).stdout(Stdio::null()).stderr(Stdio::null());
    // Where it may not, in a container for example, the run is like that of an ordinary user.
    drop(chrt.status());
}
