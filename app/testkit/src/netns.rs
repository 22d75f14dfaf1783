//! Two network namespaces joined by a veth pair, for tests and benches of live traffic.
//!
//! ```text
//! namespace of the server            namespace of the clients
//! srv0 10.80.0.1, fd00:80::1  <veth>  cli0 10.80.0.11 to .18, fd00:80::11
//! ```
//! As root these are network namespaces of the machine; as an ordinary user they lie within a user
//! namespace of their own, where the kernel allows that. They have no names: each lives as long as a
//! process that reads from a pipe of ours, so they go when a [`Wire`] is dropped and also when the
//! program is killed. What runs in them is distinguished by process id and gets a signal when the thread
//! that started it ends.
//!
//! Frames are as they are on a cable: offloads are off, checksums are real, the MTU is 1500.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use crate::conversation::Side;
use crate::namespace::Namespace;
pub use crate::namespace::Unavailable;
pub use crate::running::{Running, until, wall_clock_ns};

/// The server's address.
pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 80, 0, 1));
/// How many addresses the clients have.
pub const CLIENTS: u8 = 8;

/// The address of a client, of [`CLIENTS`].
#[must_use]
pub const fn client(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 80, 0, 11 + number % CLIENTS))
}

/// The interface of a side.
#[must_use]
pub const fn interface(side: Side) -> &'static str {
    match side {
        Side::Client => "cli0",
        Side::Server => "srv0",
    }
}

/// Two namespaces and the cable between them.
#[derive(Debug)]
pub struct Wire {
    server: Namespace,
    client: Namespace,
}

impl Wire {
    /// Makes the namespaces, the interfaces and their addresses.
    ///
    /// # Errors
    /// A program is missing, or the kernel does not allow it.
    pub fn new() -> Result<Self, Unavailable> {
        let server = Namespace::new()?;
        let client = server.beside()?;
        let wire = Self { server, client };
        wire.connect()?;
        wire.give_addresses()?;
        Ok(wire)
    }

    /// Makes the veth pair; also again, after an interface was deleted.
    ///
    /// # Errors
    /// The kernel does not allow it.
    pub fn connect(&self) -> Result<(), Unavailable> {
        self.connect_too(interface(Side::Server), interface(Side::Client))
    }

    /// Makes another pair, `near` at the server and `far` at the clients, without addresses.
    ///
    /// # Errors
    /// The kernel does not allow it.
    pub fn connect_too(&self, near: &str, far: &str) -> Result<(), Unavailable> {
        let peer = self.client.id().to_string();
        let words = ["link", "add", near, "type", "veth", "peer", "name", far];
        self.must(Side::Server, "ip", &words)?;
        self.must(Side::Server, "ip", &["link", "set", far, "netns", &peer])?;
        self.set_up(Side::Server, near)?;
        self.set_up(Side::Client, far)
    }

    /// Gives the interfaces their addresses.
    ///
    /// # Errors
    /// The kernel does not allow it.
    pub fn give_addresses(&self) -> Result<(), Unavailable> {
        let addresses = |side| match side {
            Side::Server => vec![SERVER],
            Side::Client => (0..CLIENTS).map(client).collect(),
        };
        for side in [Side::Server, Side::Client] {
            let interface = interface(side);
            for address in addresses(side) {
                let words = ["addr", "add", &format!("{address}/24"), "dev", interface];
                self.must(side, "ip", &words)?;
            }
        }
        Ok(())
    }

    fn set_up(&self, side: Side, interface: &str) -> Result<(), Unavailable> {
        // Nobody asks for routers or neighbours of his own accord: what is counted is what was sent.
        let quiet = "net.ipv6.conf.all.disable_ipv6=1";
        self.must(side, "sysctl", &["-q", "-w", quiet])?;
        self.namespace(side).switch_offloads_off(interface)?;
        self.must(side, "ip", &["link", "set", "lo", "up"])?;
        let words = ["link", "set", interface, "mtu", "1500", "up"];
        self.must(side, "ip", &words)
    }

    /// Lets a core (of the first eight) work off what arrives at a side, whichever core sent it.
    ///
    /// # Errors
    /// The kernel does not allow it.
    pub fn steer(&self, side: Side, core: usize) -> Result<(), Unavailable> {
        self.namespace(side).steer(interface(side), core)
    }

    /// Runs a short command in a namespace; a failure is an error with what it said.
    ///
    /// # Errors
    /// It could not be run, or it failed.
    pub fn must(&self, side: Side, program: &str, words: &[&str]) -> Result<(), Unavailable> {
        self.namespace(side).must(program, words)
    }

    /// A command that will run in the namespace of a side. Its process id is that of the program.
    ///
    /// It is killed when the thread that starts it ends, so start it on the thread that waits for it.
    #[must_use]
    pub fn command(&self, side: Side, program: impl AsRef<OsStr>) -> Command {
        self.namespace(side).command(program)
    }

    /// The same with real-time priority, for what is measured beside the other programs of the
    /// machine; an ordinary user may not have that, and gets a plain command.
    ///
    /// Threads of the program do not take turns on a core: it must leave the core now and then.
    #[must_use]
    pub fn urgent_command(&self, side: Side, program: impl AsRef<OsStr>) -> Command {
        if self.is_unprivileged() {
            return self.command(side, program);
        }
        let mut command = self.command(side, "chrt");
        command.args(["--fifo", "10"]).arg(program);
        command
    }

    /// Whether the namespaces belong to an ordinary user.
    #[must_use]
    pub const fn is_unprivileged(&self) -> bool {
        self.server.has_own_users()
    }

    /// How many packet sockets are open in the namespace of a side and take packets: a capture that
    /// has begun is one of them.
    #[must_use]
    pub fn packet_sockets(&self, side: Side) -> usize {
        self.namespace(side).packet_sockets().len()
    }

    /// How many of them belong to a process.
    #[must_use]
    pub fn packet_sockets_of(&self, side: Side, process: u32) -> usize {
        self.namespace(side).packet_sockets_of(process)
    }

    /// The kernel's counters of an interface: packets received, packets sent, packets dropped on the
    /// way in.
    #[must_use]
    pub fn link_counters(&self, side: Side) -> Option<LinkCounters> {
        let path = format!("/proc/{}/net/dev", self.namespace(side).id());
        let table = std::fs::read_to_string(path).ok()?;
        let own = |line: &str| {
            line.trim()
                .strip_prefix(interface(side))?
                .strip_prefix(':')
                .map(str::to_owned)
        };
        let line = table.lines().find_map(own)?;
        let mut fields = line.split_whitespace().map(str::parse);
        let mut field = |at| fields.nth(at)?.ok();
        // bytes packets errs drop fifo frame compressed multicast | bytes packets
        let (received, dropped, sent) = (field(1)?, field(1)?, field(5)?);
        Some(LinkCounters {
            received,
            dropped,
            sent,
        })
    }

    const fn namespace(&self, side: Side) -> &Namespace {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

/// What an interface has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets received.
    pub received: u64,
    /// Packets that came and were dropped before anybody saw them.
    pub dropped: u64,
    /// Packets sent.
    pub sent: u64,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A wire, or a word about why there is none.
    fn wire() -> Option<Wire> {
        Wire::new()
            .map_err(|error| eprintln!("SKIPPED: {error}"))
            .ok()
    }

    #[test]
    fn the_two_sides_hear_each_other() {
        let Some(wire) = wire() else { return };
        let before = wire.link_counters(Side::Server).unwrap();
        // A datagram, and the question for the address before it.
        let say = format!("echo hello > /dev/udp/{SERVER}/9");
        wire.must(Side::Client, "bash", &["-c", &say]).unwrap();
        let heard = || wire.link_counters(Side::Server).unwrap().received >= before.received + 2;
        assert!(until(Duration::from_secs(5), heard));
        assert_eq!(wire.packet_sockets(Side::Server), 0);
    }

    #[test]
    fn nothing_of_it_is_seen_outside_or_stays() {
        let Some(wire) = wire() else { return };
        let ours = std::fs::read_to_string("/proc/self/net/dev").unwrap();
        assert!(!ours.contains("srv0") && !ours.contains("cli0"));
        let namespaces = [wire.server.id(), wire.client.id()];
        let mut sleeper = wire.command(Side::Client, "sleep");
        let mut sleeper = Running::start(sleeper.arg("60")).unwrap();
        assert!(sleeper.ended().unwrap().is_none());
        let sleeping = sleeper.id();
        drop(sleeper);
        drop(wire);
        for id in namespaces.into_iter().chain([sleeping]) {
            let path = format!("/proc/{id}/ns/net");
            assert!(std::fs::read_link(path).is_err(), "{id} is still there");
        }
    }
}
