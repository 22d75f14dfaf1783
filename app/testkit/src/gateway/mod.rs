//! Three network namespaces in a row, for tests and benches of a gateway, and real programs in them.
//!
//! ```text
//! clients                 gateway                        server
//! cli0 10.88.1.11 to .18  lan0 10.88.1.1   wan0 10.88.2.1   srv0 10.88.2.2
//!      fd00:88:1::11 ..        fd00:88:1::1     fd00:88:2::1     fd00:88:2::2
//! ```
//! The gateway forwards, and nothing else until a test puts something there. The namespaces have no
//! names; as those of [`netns`](crate::netns) they go with the [`Net`] and with the program.

mod programs;

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use crate::namespace::Namespace;
pub use crate::namespace::Unavailable;
pub use programs::{Nginx, Torrent};

/// The server's IPv4 address.
pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 88, 2, 2));
/// The server's IPv6 address.
pub const SERVER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0x88, 2, 0, 0, 0, 0, 2));
/// How many addresses of each kind the clients have.
pub const CLIENTS: u8 = 8;
/// The gateway's interface towards the clients.
pub const LAN: &str = "lan0";
/// The gateway's interface towards the server.
pub const WAN: &str = "wan0";

/// The IPv4 address of a client, of [`CLIENTS`].
#[must_use]
pub const fn client(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 88, 1, 11 + number % CLIENTS))
}

/// The IPv6 address of a client, of [`CLIENTS`].
#[must_use]
pub const fn client_v6(number: u8) -> IpAddr {
    let last = 0x11 + (number % CLIENTS) as u16;
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x88, 1, 0, 0, 0, 0, last))
}

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// Where the clients are.
    Client,
    /// What is between them.
    Gateway,
    /// Where the servers are.
    Server,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Client, Self::Gateway, Self::Server];

    /// Its interfaces.
    #[must_use]
    pub const fn interfaces(self) -> &'static [&'static str] {
        match self {
            Self::Client => &["cli0"],
            Self::Gateway => &[LAN, WAN],
            Self::Server => &["srv0"],
        }
    }

    /// The gateway's IPv4 address as it is seen from here.
    const fn router(self) -> &'static str {
        match self {
            Self::Client | Self::Gateway => "10.88.1.1",
            Self::Server => "10.88.2.1",
        }
    }

    fn addresses(self) -> Vec<(&'static str, IpAddr)> {
        let router = |net: u16| {
            let [.., low] = net.to_be_bytes();
            [
                IpAddr::V4(Ipv4Addr::new(10, 88, low, 1)),
                IpAddr::V6(Ipv6Addr::new(0xfd00, 0x88, net, 0, 0, 0, 0, 1)),
            ]
        };
        match self {
            Self::Client => (0..CLIENTS)
                .flat_map(|number| [client(number), client_v6(number)])
                .map(|address| ("cli0", address))
                .collect(),
            Self::Gateway => [(LAN, 1), (WAN, 2)]
                .into_iter()
                .flat_map(|(interface, net)| router(net).map(|address| (interface, address)))
                .collect(),
            Self::Server => vec![("srv0", SERVER), ("srv0", SERVER_V6)],
        }
    }
}

/// What the links are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Links {
    /// Whether segmentation is left to the interfaces, as on a real host: the gateway then sees packets
    /// of up to 64 KiB. Without, it sees them as on a cable.
    pub has_offloads: bool,
    /// Longest IP packet of a link, bytes.
    pub mtu: u16,
}

impl Default for Links {
    fn default() -> Self {
        Self {
            has_offloads: true,
            mtu: 1500,
        }
    }
}

/// The interfaces of a place that a line stands before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineEnds {
    /// What has the addresses.
    pub host: &'static str,
    /// The end of the line at the host.
    pub near: &'static str,
    /// The end of the line at the cable to the gateway.
    pub far: &'static str,
}

/// The three namespaces and the cables between them.
#[derive(Debug)]
pub struct Net {
    client: Namespace,
    gateway: Namespace,
    server: Namespace,
}

impl Net {
    /// Makes the namespaces with links as on a real host.
    ///
    /// # Errors
    /// A program is missing, or the kernel does not allow it.
    pub fn new() -> Result<Self, Unavailable> {
        Self::with(Links::default())
    }

    /// Makes the namespaces, their interfaces, addresses and routes.
    ///
    /// # Errors
    /// A program is missing, or the kernel does not allow it.
    pub fn with(links: Links) -> Result<Self, Unavailable> {
        let gateway = Namespace::new()?;
        let net = Self {
            client: gateway.beside()?,
            server: gateway.beside()?,
            gateway,
        };
        for (near, far, place) in [(LAN, "cli0", Place::Client), (WAN, "srv0", Place::Server)] {
            let peer = net.namespace(place).id().to_string();
            let words = ["link", "add", near, "type", "veth", "peer", "name", far];
            net.must(Place::Gateway, "ip", &words)?;
            net.must(Place::Gateway, "ip", &["link", "set", far, "netns", &peer])?;
        }
        for place in Place::ALL {
            net.set_up(place, links)?;
        }
        for (place, number) in [(Place::Client, 1), (Place::Server, 2)] {
            let four = place.router();
            let six = format!("fd00:88:{number}::1");
            net.must(place, "ip", &["route", "add", "default", "via", four])?;
            net.must(place, "ip", &["-6", "route", "add", "default", "via", &six])?;
        }
        Ok(net)
    }

    fn set_up(&self, place: Place, links: Links) -> Result<(), Unavailable> {
        // Addresses are ours alone: nobody needs to be asked whether they are free.
        let mut settings = vec!["net.ipv6.conf.all.accept_dad=0"];
        // A new namespace has the machine's setting: on a router, what is for emulated clients would be
        // sent back and go round until its time to live is over.
        settings.extend(match place {
            Place::Gateway => ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"],
            _ => ["net.ipv4.ip_forward=0", "net.ipv6.conf.all.forwarding=0"],
        });
        for setting in settings {
            self.must(place, "sysctl", &["-q", "-w", setting])?;
        }
        self.must(place, "ip", &["link", "set", "lo", "up"])?;
        let mtu = links.mtu.to_string();
        for interface in place.interfaces() {
            if !links.has_offloads {
                self.namespace(place).switch_offloads_off(interface)?;
            }
            // The kernel takes the larger of this and that of all.
            let setting = format!("net.ipv6.conf.{interface}.accept_dad=0");
            self.must(place, "sysctl", &["-q", "-w", &setting])?;
            let words = ["link", "set", interface, "mtu", &mtu, "up"];
            self.must(place, "ip", &words)?;
        }
        for (interface, address) in place.addresses() {
            let (length, more) = match address {
                IpAddr::V4(_) => (24, None),
                IpAddr::V6(_) => (64, Some("nodad")),
            };
            let address = format!("{address}/{length}");
            let mut words = vec!["addr", "add", &address, "dev", interface];
            words.extend(more);
            self.must(place, "ip", &words)?;
        }
        Ok(())
    }

    /// Moves the IPv4 addresses of a place in front of a line that is to be laid between two interfaces
    /// there: a program gives the frames of each to the other.
    ///
    /// The kernel is kept from answering behind the line: it would find its own addresses from there, and
    /// nothing would pass.
    ///
    /// # Errors
    /// The kernel does not allow it, or the place has several interfaces.
    pub fn put_before_line(&self, place: Place) -> Result<LineEnds, Unavailable> {
        let [far] = place.interfaces() else {
            return Err(Unavailable::new("a line needs a place with one interface"));
        };
        let ends = LineEnds {
            host: "host0",
            near: "host1",
            far,
        };
        let ip = |words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            self.must(place, "ip", &words)
        };
        let LineEnds { host, near, far } = ends;
        ip(&format!("link add {host} type veth peer name {near}"))?;
        ip(&format!("addr flush dev {far}"))?;
        for interface in [host, near] {
            self.switch_offloads_off(place, interface)?;
        }
        for interface in [near, far] {
            let setting = format!("net.ipv6.conf.{interface}.disable_ipv6=1");
            self.must(place, "sysctl", &["-q", "-w", &setting])?;
            ip(&format!("link set {interface} arp off up"))?;
        }
        ip(&format!("link set {host} up"))?;
        let addresses = place.addresses();
        let addresses = addresses.iter().map(|(_, address)| address);
        for address in addresses.filter(|address| address.is_ipv4()) {
            ip(&format!("addr add {address}/24 dev {host}"))?;
        }
        ip(&format!("route replace default via {}", place.router()))?;
        Ok(ends)
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

    /// Whether the namespaces belong to an ordinary user.
    #[must_use]
    pub const fn is_unprivileged(&self) -> bool {
        self.gateway.has_own_users()
    }

    /// A table of the kernel as the gateway sees it, below `/proc/net`; empty where there is none.
    #[must_use]
    pub fn table(&self, name: &str) -> String {
        let path = format!("/proc/{}/net/{name}", self.gateway.id());
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// Makes an interface send frames as they are on a cable, as [`Links::has_offloads`] does for those
    /// of the net.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn switch_offloads_off(&self, place: Place, interface: &str) -> Result<(), Unavailable> {
        self.namespace(place).switch_offloads_off(interface)
    }

    /// A counter that the kernel of a place keeps for TCP and IP, as `TcpRetransSegs` or
    /// `TcpExtTCPSynRetrans`.
    #[must_use]
    pub fn counter(&self, place: Place, name: &str) -> Option<u64> {
        self.namespace(place).counter(name)
    }

    /// Frames that were sent at a place and lost on the cable: the kernel had no room for them at its other
    /// end, because the machine is busier than it can be.
    #[must_use]
    pub fn undelivered(&self, place: Place) -> u64 {
        self.namespace(place).undelivered()
    }

    /// How many TCP connections a kernel has that may still send something of their own accord: those
    /// that neither wait for the first segment nor out the last.
    #[must_use]
    pub fn open_connections(&self, place: Place) -> usize {
        self.namespace(place).open_connections()
    }

    /// How many packet sockets of a process are open in a namespace and take packets: a capture that
    /// has begun.
    #[must_use]
    pub fn packet_sockets_of(&self, place: Place, process: u32) -> usize {
        self.namespace(place).packet_sockets_of(process)
    }

    /// The gateway's packet queues, as the kernel counts them.
    #[must_use]
    pub fn queues(&self) -> Vec<QueueCounters> {
        let table = self.table("netfilter/nfnetlink_queue");
        table.lines().filter_map(QueueCounters::read).collect()
    }

    const fn namespace(&self, place: Place) -> &Namespace {
        match place {
            Place::Client => &self.client,
            Place::Gateway => &self.gateway,
            Place::Server => &self.server,
        }
    }
}

/// What the kernel counts of a packet queue that a program has bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueCounters {
    /// Its number.
    pub number: u16,
    /// Packets that wait for a verdict.
    pub waiting: u64,
    /// Packets dropped because too many waited.
    pub dropped: u64,
    /// Packets dropped because the program's socket had no room.
    pub user_dropped: u64,
    /// Number of the last packet: how many there were.
    pub packets: u64,
}

impl QueueCounters {
    /// queue, port, waiting, copy mode, copy range, dropped, user dropped, last number, 1.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let number = fields.next()?.parse().ok()?;
        let mut field = |skip| fields.nth(skip)?.parse().ok();
        Some(Self {
            number,
            waiting: field(1)?,
            dropped: field(2)?,
            user_dropped: field(0)?,
            packets: field(0)?,
        })
    }
}

#[cfg(test)]
mod tests;
