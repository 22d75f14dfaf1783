//! A line between the clients and the gateway.
//!
//! ```text
//!  client                                                gateway
//!  load0 10.88.1.11 <veth> load1   the line   cli0 <veth> lan0 10.88.1.1
//!  load
//! ```
//! The address of the clients' namespace moves in front of the line, and the kernel is kept from
//! answering behind it: otherwise it would find its own address from there, and nothing would pass.

use std::time::Duration;

use linkweir_testkit::gateway::{Place, client};

use super::Harm;
use crate::LabError;
use crate::ground::Ground;
use crate::program::{Ended, Program};

/// The interface of the clients without a line, and the far end of one.
const FAR: &str = "cli0";
/// The near end of a line, and where the clients are then.
const NEAR: &str = "load1";
/// Where the clients are in front of a line.
const CLIENTS: &str = "load0";
/// How long it may take until it runs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A line that runs.
pub(crate) struct Line(Program);

impl Line {
    /// Moves the clients in front of a line, and starts it.
    pub(crate) fn lay(ground: &mut Ground<'_>, harm: Harm) -> Result<Self, LabError> {
        move_clients(ground)?;
        let (loss, reorder) = (harm.loss.to_string(), harm.reorder.to_string());
        let delay = format!("{}ns", harm.delay.as_nanos());
        let seed = ground.order.seed.to_string();
        let words = [
            "lab-line",
            "--between",
            NEAR,
            "--and",
            FAR,
            "--loss",
            &loss,
            "--reorder",
            &reorder,
            "--delay",
            &delay,
            "--seed",
            &seed,
        ];
        let mut program = Program::start(ground, Place::Client, "line", &words)?;
        let id = program.id();
        // A socket at each end.
        ground.wait("the line", PATIENCE, || {
            program.has_ended() || ground.net.packet_sockets_of(Place::Client, id) >= 2
        })?;
        program.must_run()?;
        Ok(Self(program))
    }

    /// Ends it.
    pub(crate) fn finish(self) -> Result<Ended, LabError> {
        self.0.finish()
    }
}

fn move_clients(ground: &mut Ground<'_>) -> Result<(), LabError> {
    let ip = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        ground.net.must(Place::Client, "ip", &words)
    };
    ip(&format!("link add {CLIENTS} type veth peer name {NEAR}"))?;
    ip(&format!("addr flush dev {FAR}"))?;
    for interface in [CLIENTS, NEAR] {
        ground.net.switch_offloads_off(Place::Client, interface)?;
    }
    for interface in [NEAR, FAR] {
        ground.set(
            Place::Client,
            &format!("net.ipv6.conf.{interface}.disable_ipv6=1"),
        )?;
        ip(&format!("link set {interface} arp off up"))?;
    }
    ip(&format!("link set {CLIENTS} up"))?;
    ip(&format!("addr add {}/24 dev {CLIENTS}", client(0)))?;
    ip("route replace default via 10.88.1.1")?;
    ground.clients = CLIENTS;
    Ok(())
}
