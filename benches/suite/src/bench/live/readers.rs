//! The programs that take packets from the interface, and what each says of it.

use super::threads::{self, Threads};
use super::words::{Words, before};
use crate::shell;
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Running, Wire, interface, until};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The core of what is measured: not the one that sends.
pub(super) const CORE: usize = 0;
/// The kernel's ring of every reader, MiB.
const RING_MIB: usize = 64;
/// How long a program may take to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// `benches/limits/rxv3.c`: the limit.
    Empty,
    Linkweir,
    Tcpdump,
    Tshark,
}

impl Reader {
    pub(super) const ALL: [Self; 4] = [Self::Empty, Self::Linkweir, Self::Tcpdump, Self::Tshark];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty TPACKET_V3 reader (the limit)",
            Self::Linkweir => "linkweir http",
            Self::Tcpdump => "tcpdump -w /dev/null",
            Self::Tshark => "tshark -T fields",
        }
    }

    /// How long it may go on after the last packet. tshark gets little: what it has not looked at
    /// by then it would look at for minutes.
    const fn patience(self) -> Duration {
        match self {
            Self::Tshark => Duration::from_secs(1),
            _ => Duration::from_secs(10),
        }
    }
}

/// What a reader says it got, and what it cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    pub(super) packets: u64,
    /// What the kernel dropped for it.
    pub(super) dropped: u64,
    /// CPU seconds of its busiest thread, and of all.
    pub(super) thread_s: f64,
    /// Seconds for which that thread was kept from its core by other programs.
    pub(super) waited_s: f64,
    pub(super) all_s: f64,
}

/// Where the programs are.
#[derive(Debug)]
pub(super) struct Readers<'w> {
    pub(super) wire: &'w Wire,
    pub(super) empty: PathBuf,
    pub(super) linkweir: PathBuf,
    pub(super) tcpdump: Option<PathBuf>,
    pub(super) tshark: Option<PathBuf>,
    /// In memory.
    pub(super) dir: PathBuf,
}

impl Readers<'_> {
    pub(super) fn path(&self, reader: Reader) -> Option<&Path> {
        match reader {
            Reader::Empty => Some(&self.empty),
            Reader::Linkweir => Some(&self.linkweir),
            Reader::Tcpdump => self.tcpdump.as_deref(),
            Reader::Tshark => self.tshark.as_deref(),
        }
    }

    /// Lets a reader listen on the server's side while `send` runs.
    pub(super) fn during<T>(
        &self,
        reader: Reader,
        send: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Received)> {
        let listening = Listening::start(self.wire, self.command(reader)?, 1)?;
        let id = listening.running.id();
        let begin = Threads::of(id);
        let sent = send()?;
        // The kernel hands over a block that is not full once a second to libpcap.
        std::thread::sleep(Duration::from_millis(1200));
        threads::rest(id, reader.patience());
        let cost = Threads::of(id).since(&begin);
        let output = listening.running.finish()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let figures = match reader {
            Reader::Empty => {
                let line = String::from_utf8_lossy(&output.stdout);
                let words = Words::of(&line);
                (words.whole("packets")?, words.whole("drops")?)
            }
            Reader::Linkweir => totals(&self.summary_path())
                .with_context(|| format!("linkweir says: {}", said.trim()))?,
            Reader::Tcpdump | Reader::Tshark => {
                let packets = before(&said, &[" packets captured", " packet captured"]);
                let packets = packets.with_context(|| format!("no count in: {}", said.trim()))?;
                let phrases = [
                    " packets dropped by kernel",
                    " packets dropped",
                    " packet dropped",
                ];
                (packets, before(&said, &phrases).unwrap_or(0))
            }
        };
        Ok((
            sent,
            Received {
                packets: figures.0,
                dropped: figures.1,
                thread_s: cost.busiest().ran,
                waited_s: cost.busiest().waited,
                all_s: cost.all(),
            },
        ))
    }

    fn summary_path(&self) -> PathBuf {
        self.dir.join("summary.json")
    }

    fn command(&self, reader: Reader) -> Result<Command> {
        let path = self
            .path(reader)
            .with_context(|| format!("{} is not installed", reader.name()))?;
        let mut command = match reader {
            // It is two programs that must share the core.
            Reader::Tshark => self.wire.command(Side::Server, "taskset"),
            _ => self.wire.urgent_command(Side::Server, "taskset"),
        };
        command.args(["-c", &CORE.to_string()]).arg(path);
        let kib = (RING_MIB * 1024).to_string();
        let mib = RING_MIB.to_string();
        let interface = interface(Side::Server);
        match reader {
            Reader::Empty => command.args([interface, "--ring", &mib]),
            Reader::Linkweir => command
                .args(["http", "-q", "--overwrite", "-i", interface, "-B", &kib])
                .args(["--format", "text", "-w", "-", "--summary"])
                .arg(self.summary_path()),
            Reader::Tcpdump => command.args([
                "-i",
                interface,
                "-n",
                "-s",
                "0",
                "-B",
                &kib,
                "-Z",
                "root",
                "-w",
                "/dev/null",
            ]),
            Reader::Tshark => {
                command.args([
                    "-n", "-i", interface, "-B", &mib, "-Y", "http", "-T", "fields",
                ]);
                for field in FIELDS {
                    command.args(["-e", field]);
                }
                // Its capture file goes to memory.
                command.env("TMPDIR", &self.dir)
            }
        };
        // The limit says on a pipe what it saw; records go to a file in memory as the others' would.
        let stdout = match reader {
            Reader::Empty => Stdio::piped(),
            _ => std::fs::File::create(self.dir.join("records"))?.into(),
        };
        command.stdout(stdout).stderr(Stdio::piped());
        Ok(command)
    }
}

/// What tshark prints: the columns of a record, as far as it has them live.
const FIELDS: [&str; 12] = [
    "frame.time_epoch",
    "ip.src",
    "tcp.srcport",
    "ip.dst",
    "tcp.dstport",
    "http.request.method",
    "http.request.uri",
    "http.host",
    "http.user_agent",
    "http.response.code",
    "http.response.phrase",
    "http.time",
];

/// A program that listens.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) running: Running,
}

impl Listening {
    /// Starts a program and waits until it has opened that many sockets on the server's side.
    pub(super) fn start(wire: &Wire, mut command: Command, sockets: usize) -> Result<Self> {
        let mut running = Running::start(&mut command).context("start a reader")?;
        let mut has_ended = false;
        let is_ready = until(PATIENCE, || {
            has_ended = !matches!(running.ended(), Ok(None));
            has_ended || wire.packet_sockets(Side::Server) >= sockets
        });
        if has_ended || !is_ready {
            let output = running.finish()?;
            bail!(
                "{:?} does not listen: {}",
                command,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        // The socket is there before the first poll.
        std::thread::sleep(Duration::from_millis(200));
        Ok(Self { running })
    }
}

/// Reads a JSON summary.
pub(super) fn summary(path: &Path) -> Result<Value> {
    let text = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("read {}", path.display()))
}

/// Packets and drops of a summary of `linkweir`.
fn totals(path: &Path) -> Result<(u64, u64)> {
    let summary = summary(path)?;
    let packets = summary.get("packets").and_then(Value::as_u64);
    let dropped = |cause: &str| {
        let causes = summary.get("dropped");
        causes
            .and_then(|causes| causes.get(cause)?.as_u64())
            .unwrap_or(0)
    };
    Ok((
        packets.context("no `packets` in the summary")?,
        dropped("kernel") + dropped("ring"),
    ))
}

/// The programs as they are found.
pub(super) fn find<'w>(wire: &'w Wire, linkweir: PathBuf, dir: &Path) -> Readers<'w> {
    Readers {
        wire,
        empty: dir.join("rxv3"),
        linkweir,
        tcpdump: shell::find("tcpdump"),
        tshark: shell::find("tshark"),
        dir: dir.to_path_buf(),
    }
}
