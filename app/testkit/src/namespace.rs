//! One network namespace that lives as long as a process that reads from a pipe of ours.
//!
//! It has no name, so it goes when a [`Namespace`] is dropped and also when the program is killed. As
//! root it belongs to the machine; as an ordinary user it lies within a user namespace, which those
//! made [beside](Namespace::beside) it share.

use std::ffi::OsStr;
use std::fmt;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::running::until;

/// Where Debian keeps programs of the administrator, which are not on everybody's path.
const SBIN: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// How long a process may take to end when its input has ended.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Why there are no namespaces: this kernel, this user or this machine does not allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// For a person who reads that a test did not run.
    pub why: String,
}

impl Unavailable {
    pub(crate) fn new(why: impl fmt::Display) -> Self {
        Self {
            why: why.to_string(),
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no network namespaces: {}", self.why)
    }
}

impl std::error::Error for Unavailable {}

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    holder: Holder,
    has_own_users: bool,
}

impl Namespace {
    /// Makes the first one, with users of its own where we are not root.
    pub(crate) fn new() -> Result<Self, Unavailable> {
        let has_own_users = !is_root();
        let mut unshare = tool("unshare");
        if has_own_users {
            // In two steps. What /proc says of a network belongs to the root of its users, who has to
            // be there before it; else an ordinary user cannot read the gateway's queues.
            unshare.args(["--user", "--map-root-user", "--", "unshare"]);
        }
        Ok(Self {
            holder: Holder::start(unshare.arg("--net"))?,
            has_own_users,
        })
    }

    /// Makes another with the same users.
    pub(crate) fn beside(&self) -> Result<Self, Unavailable> {
        let mut unshare = if self.has_own_users {
            let mut inside = tool("nsenter");
            inside
                .args(["--user", "--preserve-credentials", "--target"])
                .arg(self.id().to_string())
                .args(["--", "unshare"]);
            inside
        } else {
            tool("unshare")
        };
        Ok(Self {
            holder: Holder::start(unshare.arg("--net"))?,
            has_own_users: self.has_own_users,
        })
    }

    /// The process that keeps it: `/proc/ID/net` is its view of the network.
    pub(crate) fn id(&self) -> u32 {
        self.holder.0.id()
    }

    /// Whether it belongs to an ordinary user.
    pub(crate) const fn has_own_users(&self) -> bool {
        self.has_own_users
    }

    /// A command that will run in it. Its process id is that of the program.
    ///
    /// It is killed when the thread that starts it ends.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = tool("nsenter");
        if self.has_own_users {
            command.args(["--user", "--preserve-credentials"]);
        }
        command
            .args(["--net", "--target"])
            .arg(self.id().to_string())
            .args(["--", "setpriv", "--pdeathsig", "KILL", "--"])
            .arg(program)
            .stdin(Stdio::null());
        command
    }

    /// Makes an interface send frames as they are on a cable: none longer than its MTU, and every
    /// checksum real.
    pub(crate) fn switch_offloads_off(&self, interface: &str) -> Result<(), Unavailable> {
        let mut words = vec!["-K", interface];
        for offload in ["tx", "rx", "sg", "tso", "gso", "gro"] {
            words.extend([offload, "off"]);
        }
        self.must("ethtool", &words)
    }

    /// The inodes of its packet sockets that are bound to a protocol and an interface: a capture that
    /// has begun is one of them.
    pub(crate) fn packet_sockets(&self) -> Vec<String> {
        let path = format!("/proc/{}/net/packet", self.id());
        let table = std::fs::read_to_string(path).unwrap_or_default();
        // sk RefCnt Type Proto Iface R Rmem User Inode
        let inode = |line: &str| {
            let field = |at| line.split_whitespace().nth(at);
            let takes = field(3) != Some("0000") && field(4) != Some("0");
            takes.then(|| field(8).map(str::to_owned)).flatten()
        };
        table.lines().skip(1).filter_map(inode).collect()
    }

    /// How many of them belong to a process.
    pub(crate) fn packet_sockets_of(&self, process: u32) -> usize {
        let Ok(descriptors) = std::fs::read_dir(format!("/proc/{process}/fd")) else {
            return 0;
        };
        let open: Vec<String> = descriptors
            .flatten()
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .filter_map(|target| {
                let inode = target
                    .to_str()?
                    .strip_prefix("socket:[")?
                    .strip_suffix(']')?;
                Some(inode.to_owned())
            })
            .collect();
        let sockets = self.packet_sockets();
        sockets.iter().filter(|inode| open.contains(inode)).count()
    }

    /// A counter that its kernel keeps for TCP and IP, as `TcpRetransSegs`.
    pub(crate) fn counter(&self, name: &str) -> Option<u64> {
        ["snmp", "netstat"].iter().find_map(|table| {
            let path = format!("/proc/{}/net/{table}", self.id());
            counter_in(&std::fs::read_to_string(path).ok()?, name)
        })
    }

    /// Frames that were sent on its interfaces and for which the other end had no room.
    pub(crate) fn undelivered(&self) -> u64 {
        let path = format!("/proc/{}/net/dev", self.id());
        undelivered_in(&std::fs::read_to_string(path).unwrap_or_default())
    }

    /// How many TCP connections it has that may still send something of their own accord.
    pub(crate) fn open_connections(&self) -> usize {
        let tables = ["tcp", "tcp6"].iter().map(|table| {
            let path = format!("/proc/{}/net/{table}", self.id());
            open_in(&std::fs::read_to_string(path).unwrap_or_default())
        });
        tables.sum()
    }

    /// Lets a core (of the first eight) work off what arrives at an interface of a veth pair, which else is the work of
    /// the core that sent it.
    ///
    /// Source: `Documentation/networking/scaling.rst` of Linux, Receive Packet Steering.
    pub(crate) fn steer(&self, interface: &str, core: usize) -> Result<(), Unavailable> {
        let file = format!("/sys/class/net/{interface}/queues/rx-0/rps_cpus");
        // The interfaces of a namespace are in a sysfs that was mounted inside it.
        let script = format!("mount -t sysfs sysfs /sys && echo {:x} > {file}", 1 << core);
        self.must("unshare", &["--mount", "sh", "-c", &script])
    }

    /// Runs a short command in it; a failure is an error with what it said.
    pub(crate) fn must(&self, program: &str, words: &[&str]) -> Result<(), Unavailable> {
        let output = self
            .command(program)
            .args(words)
            .output()
            .map_err(|error| Unavailable::new(format!("{program}: {error}")))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Unavailable::new(format!(
            "{program} {}: {}",
            words.join(" "),
            said.trim()
        )))
    }
}

/// A process that does nothing but keep a namespace.
#[derive(Debug)]
struct Holder(Child);

impl Holder {
    /// Appends to a command that makes a namespace what keeps it, and waits until it is there.
    fn start(command: &mut Command) -> Result<Self, Unavailable> {
        let mut child = command
            .args(["--", "sh", "-c", "echo; exec cat >/dev/null"])
            // A key pressed for the program is not for it: the namespace would be out of reach.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Unavailable::new(format!("unshare: {error}")))?;
        let mut ready = [0];
        let came = child.stdout.take().map(|mut out| out.read(&mut ready));
        let holder = Self(child);
        if matches!(came, Some(Ok(1))) {
            // What is done in it must not be done to the machine, whatever `unshare` is here.
            return if holder.is_elsewhere() {
                Ok(holder)
            } else {
                Err(Unavailable::new("unshare made none"))
            };
        }
        let mut holder = holder;
        let mut said = String::new();
        if let Some(mut stderr) = holder.0.stderr.take() {
            // What it could not say is not said.
            stderr.read_to_string(&mut said).unwrap_or_default();
        }
        drop(holder);
        Err(Unavailable::new(said.trim()))
    }

    /// Whether its network is another than ours.
    fn is_elsewhere(&self) -> bool {
        let network = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net"));
        match (network("self"), network(&self.0.id().to_string())) {
            (Ok(ours), Ok(its)) => ours != its,
            _ => false,
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // With the end of its input it ends. Where it does not, it is killed; there is nobody to tell.
        if !until(TIMEOUT, || !matches!(self.0.try_wait(), Ok(None))) {
            drop(self.0.kill());
        }
        drop(self.0.wait());
    }
}

/// A program that comes with the system, wherever it keeps it. An empty path would name the directory that
/// we happen to be in.
fn tool(program: &str) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").ok().filter(|path| !path.is_empty());
    let path = path.unwrap_or_else(|| "/usr/bin:/bin".to_owned());
    command.env("PATH", format!("{path}:{SBIN}"));
    command
}

/// Source: proc(5), `/proc/net/snmp` and `/proc/net/netstat`: a line of names, a line of values, each
/// behind the name of the protocol.
fn counter_in(table: &str, name: &str) -> Option<u64> {
    let lines: Vec<&str> = table.lines().collect();
    let (pairs, _) = lines.as_chunks::<2>();
    pairs.iter().find_map(|[names, values]| {
        let (protocol, names) = names.split_once(": ")?;
        let (_, values) = values.split_once(": ")?;
        let wanted = name.strip_prefix(protocol)?;
        let mut pairs = names.split(' ').zip(values.split(' '));
        pairs.find(|pair| pair.0 == wanted)?.1.parse().ok()
    })
}

/// Source: proc(5), `/proc/net/dev`: behind the name eight numbers of what was received, then those of what
/// was sent: bytes, packets, errors, drops. A veth pair counts what its far end drops at the near one.
fn undelivered_in(table: &str) -> u64 {
    let drops = table.lines().filter_map(|line| {
        let (_, numbers) = line.split_once(':')?;
        numbers.split_whitespace().nth(11)?.parse::<u64>().ok()
    });
    drops.sum()
}

/// Source: proc(5), `/proc/net/tcp`: the fourth field is the state. Those left out are `TCP_LISTEN` (0A),
/// `TCP_TIME_WAIT` (06) and `TCP_CLOSE` (07).
fn open_in(table: &str) -> usize {
    let states = table.lines().skip(1);
    let states = states.filter_map(|line| line.split_whitespace().nth(3));
    states
        .filter(|state| !matches!(*state, "0A" | "06" | "07"))
        .count()
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    // Real, effective, saved, of the file system.
    ids.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_protocol_and_name() {
        let table = "Tcp: RetransSegs InErrs\nTcp: 7 0\nTcpExt: TCPSynRetrans\nTcpExt: 3\n";
        assert_eq!(counter_in(table, "TcpRetransSegs"), Some(7));
        assert_eq!(counter_in(table, "TcpExtTCPSynRetrans"), Some(3));
        assert_eq!(counter_in(table, "TcpTCPSynRetrans"), None);
    }

    #[test]
    fn what_was_not_delivered_is_summed_over_interfaces() {
        let table = "Inter-|   Receive  |  Transmit\n\
             face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n\
            lo: 1 2 3 4 5 6 7 8 9 10 11 0 13 14 15 16\n\
            wan0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
            lan0: 1 2 3 4 5 6 7 8 9 10 11 30 13 14 15 16\n";
        assert_eq!(undelivered_in(table), 42);
    }

    #[test]
    fn who_listens_or_waits_out_the_end_is_not_open() {
        let table = "sl local rem st\n\
            0: 0200580A:0050 00000000:0000 0A 0\n\
            1: 0200580A:0050 0101100A:1234 01 0\n\
            2: 0200580A:0050 0201100A:1234 06 0\n\
            3: 0200580A:0050 0301100A:1234 09 0\n";
        assert_eq!(open_in(table), 2);
    }
}
