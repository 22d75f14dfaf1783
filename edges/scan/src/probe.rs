//! The thread that asks clamd how it is: now and then while it is up, again and again while it is not.

use std::net::ToSocketAddrs;
use std::sync::PoisonError;
use std::time::Duration;

use linkweir_sys::wait::monotonic_ns;

use crate::link::{LinkError, Until};
use crate::options::Address;
use crate::session::{connect, version};
use crate::shared::{Shared, locked};
use crate::worker::unreachable;

/// Checks until the scanner ends.
pub(crate) fn run(shared: &Shared) {
    // The first check is at once.
    let mut patience = Duration::ZERO;
    while wait(shared, patience) {
        check(shared);
        patience = locked(&shared.health).next_check(shared.options.probe_interval);
    }
}

/// Waits, unless somebody wants a check; says whether to go on.
fn wait(shared: &Shared, patience: Duration) -> bool {
    let health = locked(&shared.health);
    let (mut health, _) = shared
        .check
        .wait_timeout_while(health, patience, |health| {
            !health.take_check() && !shared.is_stopped()
        })
        .unwrap_or_else(PoisonError::into_inner);
    // A wish that came with the end of the wait is granted too.
    health.take_check();
    !shared.is_stopped()
}

fn check(shared: &Shared) {
    let began_ns = monotonic_ns();
    let timeout = linkweir_wire::nanos(shared.options.timeout);
    let until = Until {
        deadline_ns: began_ns.saturating_add(timeout),
        stop: &shared.stop,
    };
    match ask(shared, until) {
        Ok(version) => {
            let mut health = locked(&shared.health);
            health.version = version;
            health.up();
        }
        Err(LinkError::Stopped) => {}
        Err(error) => {
            let why = unreachable(&shared.options.address.to_string(), &error);
            locked(&shared.health).check_failed(why.clone(), began_ns);
            let mut tally = locked(&shared.tally);
            tally.connect_failures += 1;
            tally.last_error = Some(why);
        }
    }
}

fn ask(shared: &Shared, until: Until<'_>) -> Result<String, LinkError> {
    let address = &shared.options.address;
    if let Address::Tcp { host, port } = address {
        // Here and not by the workers: a look-up has no deadline.
        let addresses = (host.as_str(), *port).to_socket_addrs()?.collect();
        locked(&shared.health).addresses = addresses;
    }
    let resolved = locked(&shared.health).addresses.clone();
    version(&connect(address, &resolved, until)?, until)
}
