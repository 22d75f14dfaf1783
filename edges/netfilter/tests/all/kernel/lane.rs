//! Three namespaces: a client, a gateway in which the test runs, a server.

use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};

use super::peer::Peer;

/// Set where a test runs in a namespace of its own.
const INSIDE: &str = "LINKWEIR_TEST_NAMESPACE";
/// Where Debian keeps programs of the administrator.
const SBIN: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// The version of IP a test uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

impl Version {
    pub(crate) const BOTH: [Self; 2] = [Self::V4, Self::V6];

    pub(crate) const fn iptables(self) -> &'static str {
        match self {
            Self::V4 => "iptables",
            Self::V6 => "ip6tables",
        }
    }

    /// An endpoint at the server.
    pub(crate) fn server(self, port: u16) -> SocketAddr {
        let ip: IpAddr = match self {
            Self::V4 => [10, 81, 2, 2].into(),
            Self::V6 => [0xfd00, 0x81, 2, 0, 0, 0, 0, 2].into(),
        };
        (ip, port).into()
    }

    /// An endpoint at the client.
    pub(crate) fn client(self, port: u16) -> SocketAddr {
        let ip: IpAddr = match self {
            Self::V4 => [10, 81, 1, 2].into(),
            Self::V6 => [0xfd00, 0x81, 1, 0, 0, 0, 0, 2].into(),
        };
        (ip, port).into()
    }
}

/// Whether the caller runs in a namespace of its own. If not, the test of this name (with its module)
/// is run there, and its failure is that of the caller.
pub(crate) fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let can = tool("unshare").args(["--net", "iptables", "-L"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: {test} needs root, unshare and iptables");
        return false;
    }
    let output = tool("unshare")
        .arg("--net")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{test} failed in its namespace");
    assert!(text.contains("1 passed"), "{test} was not run");
    false
}

/// A client and a server with the test between them.
pub(crate) struct Lane {
    client: Holder,
    server: Holder,
}

impl Lane {
    pub(crate) fn new() -> Self {
        let lane = Self {
            client: Holder::start(),
            server: Holder::start(),
        };
        run("ip", "link set lo up");
        for (side, near, net) in [(&lane.client, "cli0", 1), (&lane.server, "srv0", 2)] {
            let id = side.0.id();
            run(
                "ip",
                &format!("link add {near} type veth peer name eth0 netns {id}"),
            );
            run("ip", &format!("addr add 10.81.{net}.1/24 dev {near}"));
            run(
                "ip",
                &format!("addr add fd00:81:{net}::1/64 dev {near} nodad"),
            );
            run("ip", &format!("link set {near} up"));
            for words in [
                "link set lo up".to_owned(),
                format!("addr add 10.81.{net}.2/24 dev eth0"),
                format!("addr add fd00:81:{net}::2/64 dev eth0 nodad"),
                "link set eth0 up".to_owned(),
                format!("route add default via 10.81.{net}.1"),
                format!("-6 route add default via fd00:81:{net}::1"),
            ] {
                side.run("ip", &words);
            }
        }
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        lane
    }

    /// A scripted program at the client.
    pub(crate) fn client(&self) -> Peer {
        Peer::start(self.client.command())
    }

    /// A scripted program at the server.
    pub(crate) fn server(&self) -> Peer {
        Peer::start(self.server.command())
    }
}

/// Appends a rule to a chain of the table mangle, of both versions.
pub(crate) fn rule(words: &str) {
    for version in Version::BOTH {
        run(version.iptables(), &format!("-w -t mangle -A {words}"));
    }
}

/// How many packets each rule of a chain of the table mangle has matched, in order.
pub(crate) fn matched(version: Version, chain: &str) -> Vec<u64> {
    let words = format!("-w -t mangle -L {chain} -v -x -n");
    let output = tool(version.iptables())
        .args(words.split(' '))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // A line for the chain and one of headings.
    let rules = text.lines().skip(2).filter(|line| !line.is_empty());
    let count = |line: &str| line.split_whitespace().next()?.parse().ok();
    rules.map(|line| count(line).expect(line)).collect()
}

/// Runs a command in the namespace of the test.
pub(crate) fn run(program: &str, words: &str) {
    must(tool(program).args(words.split(' ')));
}

fn must(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

fn tool(program: &str) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:{SBIN}"));
    command
}

/// A process that does nothing but keep a namespace; it goes when its input ends.
struct Holder(Child);

impl Holder {
    fn start() -> Self {
        let mut child = tool("unshare")
            .args(["--net", "sh", "-c", "echo; exec cat >/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        let mut out = child.stdout.take().unwrap();
        std::io::Read::read_exact(&mut out, &mut ready).expect("unshare makes a namespace");
        Self(child)
    }

    /// A command that runs in the namespace; it is killed when the thread that started it ends.
    fn command(&self) -> Command {
        let mut command = tool("nsenter");
        command
            .args(["--net", "--target", &self.0.id().to_string(), "--"])
            .args(["setpriv", "--pdeathsig", "KILL", "--"]);
        command
    }

    fn run(&self, program: &str, words: &str) {
        must(self.command().arg(program).args(words.split(' ')));
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}
