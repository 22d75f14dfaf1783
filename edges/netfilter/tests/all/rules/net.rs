//! Three namespaces in a row, for rules on real traffic.
//!
//! ```text
//! client cli0 10.91.1.2, fd91:1::2  <veth>  lan0 gateway wan0  <veth>  srv0 server 10.91.2.2, fd91:2::2
//! ```

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use linkweir_netfilter::rules::Host;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Set to the name of the namespaces where a test runs within the gateway.
const INSIDE: &str = "LINKWEIR_TEST_RULES";

/// Whether the caller runs within the gateway.
pub(crate) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// The namespaces; they go when it is dropped by who made them.
pub(crate) struct Net {
    name: String,
    is_made_here: bool,
}

impl Net {
    /// Makes them; `None`, and a word about it, where that is not possible.
    pub(crate) fn new() -> Option<Self> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let net = Self {
            name: format!("ru{}n{number}", std::process::id()),
            is_made_here: true,
        };
        let name = &net.name;
        let script = format!(
            "set -e
             for side in c g s; do ip netns add {name}$side; ip -n {name}$side link set lo up; done
             ip link add cli0 netns {name}c type veth peer name lan0 netns {name}g
             ip link add srv0 netns {name}s type veth peer name wan0 netns {name}g
             give() {{
                 ip -n {name}$1 addr add $3/24 dev $2
                 ip -n {name}$1 addr add $4/64 dev $2 nodad
                 ip -n {name}$1 link set $2 up
             }}
             give c cli0 10.91.1.2 fd91:1::2
             give g lan0 10.91.1.1 fd91:1::1
             give g wan0 10.91.2.1 fd91:2::1
             give s srv0 10.91.2.2 fd91:2::2
             ip -n {name}c route add default via 10.91.1.1
             ip -n {name}s route add default via 10.91.2.1
             ip -n {name}c -6 route add default via fd91:1::1
             ip -n {name}s -6 route add default via fd91:2::1
             ip netns exec {name}g sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
             iptables --version; ip6tables --version; nft --version; tc -V"
        );
        let output = sh(&script);
        if output.status.success() {
            return Some(net);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        eprintln!("SKIPPED: no namespaces with rules: {}", said.trim());
        None
    }

    /// The namespaces, where the caller runs within the gateway. If it does not, the test of this name
    /// (with its module) is run there, and its failure is that of the caller.
    pub(crate) fn inside(test: &str) -> Option<Self> {
        Self::inside_with(test, &path())
    }

    /// The same with another path for programs.
    pub(crate) fn inside_with(test: &str, path: &str) -> Option<Self> {
        if let Ok(name) = std::env::var(INSIDE) {
            return Some(Self {
                name,
                is_made_here: false,
            });
        }
        let net = Self::new()?;
        let program = std::env::current_exe().expect("this program");
        let script = format!(
            "exec {} --exact {test} --nocapture --test-threads=1",
            program.display()
        );
        let mut command = net.command("g", &script);
        let output = command.env(INSIDE, &net.name).env("PATH", path).output();
        let output = output.expect("ip runs");
        let text = String::from_utf8_lossy(&output.stdout);
        print!("{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{test} failed in the gateway");
        assert!(text.contains("1 passed"), "{test} was not run");
        None
    }

    /// Where the rules are made.
    pub(crate) fn gateway(&self) -> Host {
        Host::namespace(&format!("{}g", self.name))
    }

    /// A shell script in a namespace, `c`, `g` or `s`; gives what it wrote. Its failure is one of the test.
    pub(crate) fn must(&self, side: &str, script: &str) -> String {
        let (is_success, said) = self.try_script(side, script);
        assert!(is_success, "{script}: {said}");
        said
    }

    /// The same where failure is an answer.
    pub(crate) fn try_script(&self, side: &str, script: &str) -> (bool, String) {
        let output = self.command(side, script).output().expect("ip runs");
        let out = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        (output.status.success(), format!("{out}{said}"))
    }

    /// A shell script that is to be started. Its process is the last that it executes.
    pub(crate) fn command(&self, side: &str, script: &str) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &format!("{}{side}", self.name)])
            .args(["sh", "-c", script])
            .env("PATH", path());
        command
    }

    /// All rules of the gateway, without what they count.
    pub(crate) fn snapshot(&self) -> String {
        let script = "iptables-save; ip6tables-save; nft list ruleset; ip rule; ip -6 rule; \
                      ip route show table all | grep 19543; ip -6 route show table all | grep 19543; \
                      tc qdisc show; tc class show dev lan0";
        let text = self.must("g", script);
        let is_said = |line: &&str| !line.starts_with('#');
        let lines = text.lines().filter(is_said).map(without_counters);
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if !self.is_made_here {
            return;
        }
        let name = &self.name;
        // One that could not be made cannot be removed.
        drop(sh(&format!(
            "for side in c g s; do ip netns del {name}$side; done"
        )));
    }
}

fn sh(script: &str) -> std::process::Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("PATH", path());
    command.output().expect("a shell")
}

/// The path, with administrators' programs.
pub(crate) fn path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/sbin:/sbin")
}

/// `[12:34]` and `packets 12 bytes 34` become zeros.
fn without_counters(line: &str) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    for at in 0..words.len() {
        let is_number = at > 0 && ["packets", "bytes"].contains(&words[at - 1].as_str());
        let is_pair = words[at].starts_with('[') && words[at].ends_with(']');
        if is_number || is_pair {
            "0".clone_into(&mut words[at]);
        }
    }
    words.join(" ")
}
