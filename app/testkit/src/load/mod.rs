//! Namespaces for tests and benches of load: a server, and one generator or several.
//!
//! ```text
//! generator 0                         server
//! gen0 172.31.0.11, fd00:31::11 <veth> srv0 172.31.0.1, fd00:31::1
//!                                      lo   172.31.9.1, fd00:31:9::1   reached through 172.31.0.1
//! ```
//! With several generators `srv0` is a bridge, as the switch of the paper's Fig. 1.
//!
//! The addresses of emulated clients are on no interface. The server knows two ways to them:
//! - [`ON_LINK`]: it asks for each of them (ARP, neighbour discovery). The kernel's table of neighbours
//!   is one for the whole machine and holds about a thousand, so this is for hundreds of clients.
//! - [`routed`]: it sends to the address that a generator's kernel has, and asks for that one alone.
//!   This is for any number of clients.
//!
//! As those of [`netns`](crate::netns) the namespaces have no names and go with the [`Net`].

pub mod hostile;
pub mod log;
mod nginx;

use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use crate::gateway::Links;
use crate::namespace::Namespace;
pub use crate::namespace::Unavailable;
pub use nginx::{EMBEDDED, Nginx, SMALL, Settings, most_files};

/// The server's IPv4 address.
pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(172, 31, 0, 1));
/// The server's IPv6 address.
pub const SERVER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0x31, 0, 0, 0, 0, 0, 1));
/// Another address of the server, which is not on the link: reached through [`SERVER`].
pub const BEHIND: IpAddr = IpAddr::V4(Ipv4Addr::new(172, 31, 9, 1));
/// The same for IPv6: reached through [`SERVER_V6`].
pub const BEHIND_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0x31, 9, 0, 0, 0, 0, 1));
/// An address of the link that nobody has.
pub const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(172, 31, 0, 99));
/// An address that is not private (TEST-NET-3, RFC 5737, which no host has).
pub const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1));
/// The generators' interface.
pub const GENERATOR: &str = "gen0";
/// The server's interface.
pub const SERVING: &str = "srv0";
/// Clients whose addresses the server asks for one by one.
pub const ON_LINK: &str = "10.1.0.0/16";
/// The same for IPv6.
pub const ON_LINK_V6: &str = "fd00:1::/64";
/// Most generators.
pub const GENERATORS: u8 = 8;

/// The address that the kernel of a generator has, for programs that are no generator of ours.
#[must_use]
pub const fn generator(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(172, 31, 0, 11 + number % GENERATORS))
}

/// The same for IPv6.
#[must_use]
pub const fn generator_v6(number: u8) -> IpAddr {
    let last = 0x11 + (number % GENERATORS) as u16;
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x31, 0, 0, 0, 0, 0, last))
}

/// A million client addresses that the server reaches through a generator.
#[must_use]
pub fn routed(number: u8) -> String {
    format!("10.{}.0.0/12", 128 + 16 * u16::from(number % GENERATORS))
}

/// The same for IPv6, and more of them.
#[must_use]
pub fn routed_v6(number: u8) -> String {
    format!("fd00:2:{}::/64", number % GENERATORS)
}

/// One of the namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A generator, from 0 on.
    Generator(u8),
    /// The server.
    Server,
}

/// The namespaces and the cables between them.
#[derive(Debug)]
pub struct Net {
    first: Namespace,
    others: Vec<Namespace>,
    server: Namespace,
}

impl Net {
    /// Makes a server and one generator with links as on a cable: no offloads.
    ///
    /// # Errors
    /// A program is missing, or the kernel does not allow it.
    pub fn new() -> Result<Self, Unavailable> {
        let links = Links {
            has_offloads: false,
            ..Links::default()
        };
        Self::with(1, links)
    }

    /// Makes a server and so many generators, at least one and at most [`GENERATORS`].
    ///
    /// # Errors
    /// A program is missing, or the kernel does not allow it.
    pub fn with(generators: u8, links: Links) -> Result<Self, Unavailable> {
        let count = generators.clamp(1, GENERATORS);
        let server = Namespace::new()?;
        let others: Result<_, _> = (1..count).map(|_| server.beside()).collect();
        let net = Self {
            first: server.beside()?,
            others: others?,
            server,
        };
        net.must_all(
            Place::Server,
            &["sysctl -q -w net.ipv6.conf.all.accept_dad=0"],
        )?;
        if count > 1 {
            net.must_all(
                Place::Server,
                &["ip link add srv0 type bridge forward_delay 0"],
            )?;
        }
        for number in 0..count {
            net.connect(number, links)?;
        }
        net.serve(links)?;
        for number in 0..count {
            let six = routed_v6(number);
            net.must_all(
                Place::Server,
                &[
                    &format!("ip route add {} via {}", routed(number), generator(number)),
                    &format!("ip -6 route add {six} via {}", generator_v6(number)),
                ],
            )?;
        }
        Ok(net)
    }

    /// The cable of a generator, and its end there.
    fn connect(&self, number: u8, links: Links) -> Result<(), Unavailable> {
        let place = Place::Generator(number);
        let peer = self.namespace(place).id();
        let is_only = self.others.is_empty();
        let port = if is_only {
            SERVING.to_owned()
        } else {
            format!("port{number}")
        };
        self.must_all(
            Place::Server,
            &[
                &format!("ip link add {port} type veth peer name {GENERATOR}"),
                &format!("ip link set {GENERATOR} netns {peer}"),
                &format!("ip link set {port} mtu {}", links.mtu),
            ],
        )?;
        self.offloads(Place::Server, &port, links)?;
        if !is_only {
            let join = format!("ip link set {port} master {SERVING} up");
            self.must_all(Place::Server, &[&join])?;
        }
        let (four, six) = (generator(number), generator_v6(number));
        self.offloads(place, GENERATOR, links)?;
        self.must_all(
            place,
            &[
                "sysctl -q -w net.ipv6.conf.all.accept_dad=0",
                // Whatever the machine's setting is, which a new namespace has.
                "sysctl -q -w net.ipv4.ip_forward=0",
                "sysctl -q -w net.ipv6.conf.all.forwarding=0",
                "ip link set lo up",
                &format!("ip link set {GENERATOR} mtu {} up", links.mtu),
                &format!("ip addr add {four}/24 dev {GENERATOR}"),
                &format!("ip addr add {six}/64 dev {GENERATOR} nodad"),
                &format!("ip route add {BEHIND} via {SERVER}"),
                &format!("ip -6 route add {BEHIND_V6} via {SERVER_V6}"),
            ],
        )
    }

    /// The server's end.
    fn serve(&self, links: Links) -> Result<(), Unavailable> {
        self.offloads(Place::Server, SERVING, links)?;
        self.must_all(
            Place::Server,
            &[
                "ip link set lo up",
                &format!("ip link set {SERVING} mtu {} up", links.mtu),
                &format!("ip addr add {SERVER}/24 dev {SERVING}"),
                &format!("ip addr add {SERVER_V6}/64 dev {SERVING} nodad"),
                &format!("ip addr add {BEHIND}/32 dev lo"),
                &format!("ip addr add {BEHIND_V6}/128 dev lo nodad"),
                &format!("ip route add {ON_LINK} dev {SERVING}"),
                &format!("ip -6 route add {ON_LINK_V6} dev {SERVING}"),
                // Thousands of connections may arrive at once.
                "sysctl -q -w net.core.somaxconn=65535",
                "sysctl -q -w net.ipv4.tcp_max_syn_backlog=65535",
            ],
        )
    }

    fn offloads(&self, place: Place, interface: &str, links: Links) -> Result<(), Unavailable> {
        if links.has_offloads {
            return Ok(());
        }
        self.namespace(place).switch_offloads_off(interface)
    }

    fn must_all(&self, place: Place, lines: &[&str]) -> Result<(), Unavailable> {
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [program, words @ ..] = words.as_slice() {
                self.must(place, program, words)?;
            }
        }
        Ok(())
    }

    /// Runs a short command in a namespace; a failure is an error with what it said.
    ///
    /// # Errors
    /// It could not be run, or it failed.
    pub fn must(&self, place: Place, program: &str, words: &[&str]) -> Result<(), Unavailable> {
        self.namespace(place).must(program, words)
    }

    /// A command that will run in a namespace. Its process id is that of the program.
    ///
    /// It is killed when the thread that starts it ends, so start it on the thread that waits for it.
    #[must_use]
    pub fn command(&self, place: Place, program: impl AsRef<OsStr>) -> Command {
        self.namespace(place).command(program)
    }

    /// Lets a core (of the first eight) work off what arrives at an interface, whichever core sent it.
    ///
    /// # Errors
    /// The kernel does not allow it.
    pub fn steer(&self, place: Place, interface: &str, core: usize) -> Result<(), Unavailable> {
        self.namespace(place).steer(interface, core)
    }

    /// Whether the namespaces belong to an ordinary user.
    #[must_use]
    pub const fn is_unprivileged(&self) -> bool {
        self.server.has_own_users()
    }

    /// Loses this part of the TCP segments that arrive at the server, at random. (Those that it sends
    /// cannot be lost so: its kernel hears of that and does not take them for sent.)
    ///
    /// # Errors
    /// There are no rules of this kind.
    pub fn lose(&self, part: f64) -> Result<(), Unavailable> {
        let rule = format!(
            "iptables -A INPUT -p tcp -m statistic --mode random --probability {part} -j DROP"
        );
        self.must_all(Place::Server, &[&rule])
    }

    /// Drops every TCP segment to a port of the server that has all of these flags set, as
    /// `iptables --tcp-flags` names them: `SYN`, `PSH`.
    ///
    /// # Errors
    /// There are no rules of this kind.
    pub fn swallow(&self, port: u16, flag: &str) -> Result<(), Unavailable> {
        let rule =
            format!("iptables -A INPUT -p tcp --dport {port} --tcp-flags {flag} {flag} -j DROP");
        self.must_all(Place::Server, &[&rule])
    }

    /// A setting of the server's kernel, as `net.ipv4.tcp_syncookies=2`.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn set(&self, setting: &str) -> Result<(), Unavailable> {
        self.must(Place::Server, "sysctl", &["-q", "-w", setting])
    }

    /// A counter that the kernel of a place keeps for TCP and IP, as `TcpExtSyncookiesRecv` or
    /// `TcpOutRsts`.
    #[must_use]
    pub fn counter(&self, place: Place, name: &str) -> Option<u64> {
        self.namespace(place).counter(name)
    }

    /// Whether anybody listens on a TCP port of the server.
    #[must_use]
    pub fn is_listening(&self, port: u16) -> bool {
        let id = self.server.id();
        let tables = ["tcp", "tcp6"].map(|table| format!("/proc/{id}/net/{table}"));
        // Number: local address and port, remote ones, state; 0A is LISTEN.
        let listens = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().and_then(|local| local.rsplit_once(':'));
            let is_it = local.is_some_and(|(_, hex)| u16::from_str_radix(hex, 16) == Ok(port));
            is_it && words.nth(1) == Some("0A")
        };
        tables.iter().any(|path| {
            let table = fs::read_to_string(path).unwrap_or_default();
            table.lines().skip(1).any(listens)
        })
    }

    /// A number that no generator has is that of the first.
    fn namespace(&self, place: Place) -> &Namespace {
        match place {
            Place::Generator(number) => {
                let other = usize::from(number).checked_sub(1);
                let other = other.and_then(|index| self.others.get(index));
                other.unwrap_or(&self.first)
            }
            Place::Server => &self.server,
        }
    }
}

#[cfg(test)]
mod tests;
