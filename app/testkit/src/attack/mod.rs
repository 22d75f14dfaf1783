//! Attacks on what inspects traffic: segments that no honest stack sends, and HTTP that clients read in
//! different ways.
//!
//! [`tcp`] has the rows of `tcp.attacks`, each a script for the hostile end of one connection; the other end
//! is the kernel's TCP. [`play`] is one of the four programs that a run needs:
//!
//! ```text
//! clients                               gateway     server
//! honest client   10.88.1.11      ─────────────►    hostile server 10.88.2.66
//! hostile client  10.88.1.66      ─────────────►    honest server  10.88.2.2
//! ```
//! Each row has a port of its own, so that all of them run at the same time. The addresses of the hostile ends
//! are the kernel's, which answers for them on the link, but it gets nothing of TCP for them; see [`set_up`].

mod coding;
mod honest;
mod hostile;
pub mod http;
mod random;
mod script;

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

pub use random::random;
pub use script::{Families, Row, Wrong, rows};

use crate::conversation::Side;
use crate::gateway::{Net, Place, SERVER, SERVER_V6};
use crate::namespace::Unavailable;

/// What must not pass, beside TLS to `evil.test`: a keyword, and the name of a file that is asked for.
const FORBIDDEN: [&str; 2] = ["project aurora", "GET /evil.exe"];

/// The port of the first row.
const FIRST_PORT: u16 = 9000;
/// Ports of hostile clients are those of the rows and this.
const CLIENT_PORTS: u16 = 20_000;
/// Hosts behind the one where the honest end is would be reached with this time to live only: a segment
/// with less is dropped there, as a router would.
const HOPS: &str = "2";

/// The version of IP of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The address of the hostile end at a side.
    const fn hostile(self, side: Side) -> IpAddr {
        let net = match side {
            Side::Client => 1,
            Side::Server => 2,
        };
        match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::new(10, 88, net, 66)),
            Self::V6 => IpAddr::V6(Ipv6Addr::new(0xfd00, 0x88, net as u16, 0, 0, 0, 0, 0x66)),
        }
    }

    const fn honest_server(self) -> IpAddr {
        match self {
            Self::V4 => SERVER,
            Self::V6 => SERVER_V6,
        }
    }

    /// Name for files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V6 => "v6",
        }
    }
}

/// Who one of the four programs is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// Whether it plays scripts.
    pub is_hostile: bool,
    /// Where it is.
    pub side: Side,
}

impl Role {
    /// All of them, servers first.
    pub const ALL: [Self; 4] = [
        Self::new(false, Side::Server),
        Self::new(true, Side::Server),
        Self::new(false, Side::Client),
        Self::new(true, Side::Client),
    ];

    const fn new(is_hostile: bool, side: Side) -> Self {
        Self { is_hostile, side }
    }

    /// Its name, as `hostile-server`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match (self.is_hostile, self.side) {
            (true, Side::Server) => "hostile-server",
            (true, Side::Client) => "hostile-client",
            (false, Side::Server) => "honest-server",
            (false, Side::Client) => "honest-client",
        }
    }

    /// Its place in the net.
    #[must_use]
    pub const fn place(self) -> Place {
        match self.side {
            Side::Client => Place::Client,
            Side::Server => Place::Server,
        }
    }

    /// Whether it takes part in a row.
    const fn plays(self, row: &Row) -> bool {
        self.is_hostile
            == matches!(
                (row.hostile, self.side),
                (Side::Client, Side::Client) | (Side::Server, Side::Server)
            )
    }
}

/// The rows of the matrix for TCP and IP.
///
/// # Errors
/// The list has a word that is none.
pub fn tcp() -> Result<Vec<Row>, Wrong> {
    rows(include_str!("tcp.attacks"))
}

/// The port of a row.
#[must_use]
pub fn port(row: usize) -> u16 {
    FIRST_PORT.saturating_add(u16::try_from(row).unwrap_or(u16::MAX))
}

/// The port of the client of a row, where that is hostile.
#[must_use]
pub fn client_port(row: usize) -> u16 {
    port(row).saturating_add(CLIENT_PORTS)
}

/// Gives the hostile ends addresses, keeps the kernel out of their connections, and puts a hop behind the
/// gateway on either side.
///
/// # Errors
/// A program is missing.
pub fn set_up(net: &Net) -> Result<(), Unavailable> {
    for (place, side, interface) in [
        (Place::Client, Side::Client, "cli0"),
        (Place::Server, Side::Server, "srv0"),
    ] {
        for (family, length, tables, hops) in [
            (Family::V4, 24, "iptables", ["ttl", "--ttl-lt"]),
            (Family::V6, 64, "ip6tables", ["hl", "--hl-lt"]),
        ] {
            let address = family.hostile(side).to_string();
            let with_length = format!("{address}/{length}");
            let mut add = vec!["addr", "add", &with_length, "dev", interface];
            if family == Family::V6 {
                // Never a source of its own accord.
                add.extend(["nodad", "preferred_lft", "0"]);
            }
            net.must(place, "ip", &add)?;
            let first = ["-t", "raw", "-A", "PREROUTING", "-p", "tcp"];
            let to_it = ["-d", &address, "-j", "DROP"];
            net.must(place, tables, &[&first[..], &to_it].concat())?;
            let [name, below] = hops;
            let late = ["-m", name, below, HOPS, "-j", "DROP"];
            net.must(place, tables, &[&first[..], &late].concat())?;
        }
    }
    Ok(())
}

/// Where the honest end of a row writes what it read.
#[must_use]
pub fn read_by_honest_end(directory: &Path, row: usize, family: Family) -> PathBuf {
    directory.join(format!("{row}.{}", family.name()))
}

/// What a role creates when it is ready for the others.
#[must_use]
pub fn ready(directory: &Path, role: Role) -> PathBuf {
    directory.join(format!("{}.ready", role.name()))
}

/// Plays a role in these rows of a list, or of [`tcp`], until all are over.
///
/// # Errors
/// A file or a socket could not be opened.
pub fn play(
    role: &str,
    list: Option<&Path>,
    numbers: &[usize],
    directory: &Path,
) -> io::Result<()> {
    let role = Role::ALL.into_iter().find(|one| one.name() == role);
    let role = role.ok_or(ErrorKind::InvalidInput)?;
    let rows = match list {
        None => tcp(),
        Some(list) => rows(&fs::read_to_string(list)?),
    };
    let rows = rows.map_err(|wrong| io::Error::new(ErrorKind::InvalidData, wrong))?;
    let mut parts = Vec::new();
    for (number, row) in rows.into_iter().enumerate() {
        if !numbers.contains(&number) || !role.plays(&row) {
            continue;
        }
        for family in Family::BOTH {
            if !row.families.has(family) {
                continue;
            }
            let server = match row.hostile {
                Side::Server => family.hostile(Side::Server),
                Side::Client => family.honest_server(),
            };
            parts.push(Part {
                row: row.clone(),
                family,
                server: SocketAddr::new(server, row.port.unwrap_or_else(|| port(number))),
                client_port: client_port(number),
                out: read_by_honest_end(directory, number, family),
            });
        }
    }
    let is_ready = || fs::write(ready(directory, role), []);
    match (role.is_hostile, role.side) {
        (true, side) => hostile::play(side, &parts, is_ready),
        (false, Side::Client) => honest::ask(&parts, is_ready),
        (false, Side::Server) => honest::serve(&parts, is_ready),
    }
}

/// A row in one version of IP.
#[derive(Debug, Clone)]
struct Part {
    row: Row,
    family: Family,
    /// Where the client connects to.
    server: SocketAddr,
    /// Of a hostile client.
    client_port: u16,
    out: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_rows_of_both_ends_and_what_must_arrive() {
        let rows = tcp().unwrap();
        for side in [Side::Client, Side::Server] {
            let of_every_run = rows
                .iter()
                .filter(|row| row.hostile == side && row.is_of_every_run);
            let (allowed, forbidden): (Vec<_>, Vec<_>) =
                of_every_run.partition(|row| row.expected.is_some());
            assert!(!allowed.is_empty() && !forbidden.is_empty(), "{side:?}");
            assert!(forbidden.len() * 10 < rows.len());
        }
        let names: std::collections::BTreeSet<_> = rows
            .iter()
            .map(|row| (row.hostile == Side::Client, &row.name))
            .collect();
        assert_eq!(names.len(), rows.len(), "two rows of one name");
    }
}
