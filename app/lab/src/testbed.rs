//! The testbed: namespaces of the clients, the gateway and the server, and a directory for everything that
//! is written.
//!
//! ```text
//!  client                 gateway                     server
//!  cli0 10.88.1.11 <veth> lan0 10.88.1.1
//!                         wan0 10.88.2.1 <veth> srv0 10.88.2.2   nginx
//!  load                   gateway; http and flows on wan0
//! ```
//! The addresses of emulated clients are on no interface: the gateway sends what is for them to
//! 10.88.1.11, which the kernel at `cli0` has and answers for. Where a [line](crate::line) is between,
//! the clients and that address are in front of it.
//!
//! Programs that go before all others of the machine.

use crate::error::LabError;
use linkweir_testkit::gateway::{Links, Net, Place, client};
use linkweir_testkit::netns::until;
use linkweir_testkit::ran::installed;
use linkweir_testkit::temporary::TemporaryDirectory;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

/// What is wanted of a run.
#[derive(Debug, Clone)]
pub struct Order {
    /// The program whose commands are at work: `linkweir`.
    pub linkweir: PathBuf,
    /// The laboratory's own program, which has a command for each part that is a process of its own.
    pub lab: PathBuf,
    /// Names all random numbers of the run.
    pub seed: u64,
    /// Whether the commands serve their pages on loopback while they run.
    pub has_consoles: bool,
    /// Where everything is written and stays; none is a directory that goes with the run.
    pub keep: Option<PathBuf>,
    /// Set when the run is to finish early.
    pub stop: Arc<AtomicBool>,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step<'a> {
    /// In words.
    pub what: &'a str,
    /// How long it takes, where that is known.
    pub takes: Option<Duration>,
}

/// Where everything happens.
pub(crate) struct Testbed<'a> {
    /// The namespaces.
    pub(crate) net: Net,
    pub(crate) order: &'a Order,
    /// The interface where the clients are.
    pub(crate) clients: &'static str,
    directory: Directory,
    tell: &'a mut dyn FnMut(Step<'_>),
}

impl<'a> Testbed<'a> {
    /// Makes the namespaces, with links as on a cable: no offloads.
    pub(crate) fn new(
        order: &'a Order,
        tell: &'a mut dyn FnMut(Step<'_>),
    ) -> Result<Self, LabError> {
        need(&["ip", "ethtool", "sysctl", "iptables", "ip6tables", "nginx"])?;
        let directory = Directory::new(order.keep.as_deref())?;
        let links = Links {
            has_offloads: false,
            ..Links::default()
        };
        let net = Net::with(links)?;
        let testbed = Self {
            net,
            order,
            clients: "cli0",
            directory,
            tell,
        };
        // Thousands of connections may arrive at once.
        for setting in [
            "net.core.somaxconn=65535",
            "net.ipv4.tcp_max_syn_backlog=65535",
        ] {
            testbed.set(Place::Server, setting)?;
        }
        Ok(testbed)
    }

    /// Says what is done next.
    pub(crate) fn tell(&mut self, what: &str) {
        (self.tell)(Step { what, takes: None });
    }

    /// The same for what takes a time that is known.
    pub(crate) fn tell_of(&mut self, what: &str, takes: Duration) {
        let takes = Some(takes);
        (self.tell)(Step { what, takes });
    }

    /// A path in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file in the directory.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, LabError> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(LabError::file(&path))?;
        Ok(path)
    }

    /// Leads what is for these emulated clients to the namespace of the clients.
    pub(crate) fn route(&self, cidr: &str) -> Result<(), LabError> {
        let via = client(0).to_string();
        let words = ["route", "add", cidr, "via", &via];
        Ok(self.net.must(Place::Gateway, "ip", &words)?)
    }

    /// A setting of a namespace's kernel, as `net.core.somaxconn=65535`.
    pub(crate) fn set(&self, place: Place, setting: &str) -> Result<(), LabError> {
        Ok(self.net.must(place, "sysctl", &["-q", "-w", setting])?)
    }

    /// A program in a namespace. A key pressed for the laboratory is not for it.
    pub(crate) fn command(&self, place: Place, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.net.command(place, program);
        command.current_dir(self.directory.path()).process_group(0);
        command
    }

    /// A command of linkweir in a namespace.
    pub(crate) fn linkweir(&self, place: Place, words: &[&str]) -> Command {
        self.ours(place, &self.order.linkweir, words)
    }

    /// A part of the laboratory as a process in a namespace.
    pub(crate) fn part(&self, place: Place, words: &[&str]) -> Command {
        self.ours(place, &self.order.lab, words)
    }

    fn ours(&self, place: Place, program: &Path, words: &[&str]) -> Command {
        let mut command = self.command(place, program);
        command.args(words).env("LC_ALL", "C");
        command
    }

    /// Waits until something is so.
    pub(crate) fn wait(
        &self,
        what: &str,
        timeout: Duration,
        mut is_so: impl FnMut() -> bool,
    ) -> Result<(), LabError> {
        let stop = Arc::clone(&self.order.stop);
        let mut is_there = false;
        until(timeout, || {
            is_there = is_so();
            is_there || stop.load(Ordering::Relaxed)
        });
        match is_there {
            true => Ok(()),
            false if self.is_stopped() => Err(LabError::Stopped),
            false => Err(LabError::program(what, format!("not in {timeout:?}"))),
        }
    }

    /// Whether the run is to finish early.
    pub(crate) fn is_stopped(&self) -> bool {
        self.order.stop.load(Ordering::Relaxed)
    }
}

/// Debian's packages of the programs that the laboratory uses.
const PACKAGES: [(&str, &str); 16] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("sysctl", "procps"),
    ("ethtool", "ethtool"),
    ("iptables", "iptables"),
    ("ip6tables", "iptables"),
    ("nft", "nftables"),
    ("nginx", "nginx-light"),
    ("clamd", "clamav-daemon"),
    ("aria2c", "aria2"),
    ("opentracker", "opentracker"),
    ("mktorrent", "mktorrent"),
    ("tcpdump", "tcpdump"),
    ("openssl", "openssl"),
    ("curl", "curl"),
    ("caddy", "caddy"),
];

/// That these programs are installed.
pub(crate) fn need(programs: &[&str]) -> Result<(), LabError> {
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|name| installed(name).is_none())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let package = |program: &str| {
        let known = PACKAGES.iter().find(|(name, _)| *name == program);
        known.map_or(program, |(_, package)| package).to_owned()
    };
    let mut packages: Vec<String> = missing.iter().map(|name| package(name)).collect();
    packages.sort();
    packages.dedup();
    Err(LabError::Missing {
        programs: missing.iter().map(|name| (*name).to_owned()).collect(),
        packages,
    })
}

/// Longest path of the directory: sockets in it have paths of at most 107 bytes (unix(7)).
const LONGEST: usize = 75;

/// That a directory's path can stand in the configurations of nginx, clamd and the gateway as it is.
fn fits(path: &Path) -> Result<(), LabError> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+@,".contains(byte);
    let bytes = path.as_os_str().as_encoded_bytes();
    let why = if bytes.len() > LONGEST {
        format!("the path is longer than {LONGEST} bytes, and sockets are made in it")
    } else if !bytes.iter().all(is_plain) {
        "the path has more than letters, digits and / . _ - + @ , in it, which configurations of other programs cannot have".to_owned()
    } else {
        return Ok(());
    };
    Err(LabError::File {
        path: path.to_path_buf(),
        source: std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            format!("{why}: choose another TMPDIR or --keep"),
        ),
    })
}

/// A directory that goes with the run, however that ends, or one that stays.
enum Directory {
    Goes(TemporaryDirectory),
    Stays(PathBuf),
}

impl Directory {
    fn new(keep: Option<&Path>) -> Result<Self, LabError> {
        let Some(path) = keep else {
            let temporary = std::env::temp_dir();
            fits(&temporary)?;
            let made =
                TemporaryDirectory::new("linkweir-lab-").map_err(LabError::file(&temporary))?;
            return Ok(Self::Goes(made));
        };
        // Nobody else may look into it, or change what is read from it.
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        made.map_err(LabError::file(path))?;
        let path = path.canonicalize().map_err(LabError::file(path))?;
        fits(&path)?;
        Ok(Self::Stays(path))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Goes(directory) => directory.path(),
            Self::Stays(path) => path,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_would_be_read_as_something_else_is_refused() {
        assert!(fits(Path::new("/tmp/linkweir-lab-x")).is_ok());
        for path in ["/tmp/a b", "/tmp/a;b", "/tmp/\"", "/tmp/a\nb", "/tmp/%s$x"] {
            let said = fits(Path::new(path)).unwrap_err().to_string();
            assert!(said.contains("--keep"), "{said}");
        }
        assert!(fits(Path::new(&"/long".repeat(20))).is_err());
    }

    #[test]
    fn a_directory_goes_and_one_that_is_kept_stays() {
        let directory = Directory::new(None).unwrap();
        let path = directory.path().to_owned();
        fs::write(path.join("x"), "x").unwrap();
        drop(directory);
        assert!(!path.exists());

        let kept = tempfile::tempdir().unwrap();
        let at = kept.path().join("new");
        let directory = Directory::new(Some(&at)).unwrap();
        fs::write(directory.path().join("x"), "x").unwrap();
        drop(directory);
        assert!(at.join("x").exists());
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        assert!(need(&["sh"]).is_ok());
        let error = need(&["sh", "no-such-program"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "not installed: no-such-program; on Debian: apt-get install no-such-program"
        );
    }
}
