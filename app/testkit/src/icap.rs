//! A real c-icap on a configuration of its own, with its echo service and its virus scanner, which asks a clamd.

use std::fmt;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::clamd::Clamd;
use crate::ran::installed;
use crate::running::{Running, until};
use crate::temporary::TemporaryDirectory;

/// How long it may take until it listens, and until it has ended: the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long it may take to end by itself.
const POLITE: Duration = Duration::from_millis(500);
/// What Debian has each part in.
const PARTS: [(&str, &str); 2] = [
    ("c-icap", "c-icap"),
    ("virus_scan.conf", "libc-icap-mod-virus-scan"),
];

/// Why there is no c-icap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// A package is missing: a test is skipped.
    Missing(&'static str),
    /// It is installed and does not start, with what it said: a test fails.
    Failed(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(package) => {
                write!(f, "no c-icap: not installed (Debian: {package})")
            }
            Self::Failed(said) => write!(f, "c-icap does not start: {said}"),
        }
    }
}

impl std::error::Error for Unavailable {}

impl From<io::Error> for Unavailable {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A c-icap that runs. Dropped, it is ended.
#[derive(Debug)]
pub struct CIcap {
    _directory: TemporaryDirectory,
    running: Running,
}

impl CIcap {
    /// Starts it on a port of 127.0.0.1 and waits until it listens. `command` makes the command for the program, in
    /// the network namespace where it is to be.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn start(
        clamd: &Clamd,
        port: u16,
        command: impl FnOnce(&str) -> Command,
    ) -> Result<Self, Unavailable> {
        let is_there = |part: &str| {
            installed(part).is_some() || fs::exists(format!("/etc/c-icap/{part}")).unwrap_or(false)
        };
        if let Some((_, package)) = PARTS.iter().find(|(part, _)| !is_there(part)) {
            return Err(Unavailable::Missing(package));
        }
        let directory = TemporaryDirectory::new("c-icap-")?;
        let path = |name: &str| directory.path().join(name);
        let configuration = path("c-icap.conf");
        let at = directory.path().display();
        // No `KeepAlive on`, though its manual has it: c-icap 0.5.10 ends at that line. What is not said here is as it
        // was built, such as the directory of its services, which differs by architecture. Without the last two lines, which Debian has too,
        // the scanner answers with the head of the response before it has seen the body.
        let text = format!(
            "PidFile {at}/pid\nCommandsSocket {at}/ctl\nPort 127.0.0.1:{port}\nTmpDir {at}\n\
             ServerLog {at}/server.log\nAccessLog {at}/access.log\nStartServers 1\nMaxServers 1\nThreadsPerChild 8\n\
             MaxKeepAliveRequests 100\nLoadMagicFile /etc/c-icap/c-icap.magic\n\
             Service echo srv_echo.so\nModule common clamd_mod.so\nclamd_mod.ClamdSocket {}\n\
             Service antivirus_module virus_scan.so\nvirus_scan.ScanFileTypes TEXT DATA EXECUTABLE ARCHIVE\n\
             virus_scan.DefaultEngine clamd\nvirus_scan.MaxObjectSize 20M\n\
             virus_scan.SendPercentData 5\nvirus_scan.StartSendPercentDataAfter 2M\n",
            clamd.socket().display()
        );
        fs::write(&configuration, text)?;
        let said = fs::File::create(path("said"))?;
        // In the foreground; faults of the configuration are said on standard output only.
        let mut command = command("c-icap");
        command.args(["-N", "-D", "-f"]).arg(&configuration);
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(said.try_clone()?);
        let mut running = Running::start(command.stderr(said))?;
        let mut has_ended = false;
        let is_ready = until(TIMEOUT, || {
            has_ended = !matches!(running.ended(), Ok(None));
            has_ended || is_listening(running.id(), port)
        });
        if is_ready && !has_ended {
            return Ok(Self {
                _directory: directory,
                running,
            });
        }
        let said = ["said", "server.log"].map(|name| fs::read_to_string(path(name)));
        let said = said.map(Result::unwrap_or_default).concat();
        let how = if has_ended {
            "it ended"
        } else {
            "it does not listen"
        };
        Err(Unavailable::Failed(format!("{how}: {}", said.trim())))
    }
}

/// Its children listen too, and end when it asks them to, but not while a connection is open.
impl Drop for CIcap {
    fn drop(&mut self) {
        let group = format!("-{}", self.running.id());
        for (signal, timeout) in [("TERM", POLITE), ("KILL", TIMEOUT)] {
            let mut kill = Command::new("kill");
            kill.args(["-s", signal, "--", &group])
                .stderr(Stdio::null());
            // One that has ended already is no fault.
            drop(kill.status());
            if until(timeout, || !matches!(self.running.ended(), Ok(None))) {
                return;
            }
        }
    }
}

/// Whether somebody listens on a port of 127.0.0.1 in the network namespace of a process.
fn is_listening(process: u32, port: u16) -> bool {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    // As /proc has it: the address as a number of this machine, state 0A is LISTEN.
    let number = u32::from_ne_bytes(address.ip().octets());
    let wanted = format!(" {number:08X}:{port:04X} 00000000:0000 0A ");
    let table = fs::read_to_string(format!("/proc/{process}/net/tcp"));
    table.is_ok_and(|table| table.contains(&wanted))
}
