//! The programs that take packets from the interface, and what each says of it.

use super::super::harness::proc::{Clock, Threads, rest};
use super::super::harness::{Row, Words, before, count, ready, row, said};
use crate::shell;
use anyhow::{Context as _, Result, ensure};
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Running, Wire, interface};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The core of what is measured: not the one that sends.
pub(super) const CORE: usize = 0;
/// The kernel's ring of every reader: 64 MiB.
const RING_MIB: &str = "64";
const RING_KIB: &str = "65536";

/// How a program listens.
#[derive(Debug)]
pub(super) struct Listens {
    /// One of ours, or what is looked for on the path.
    program: &'static str,
    /// Its arguments; `{interface}` and `{summary}` are put in.
    args: &'static [&'static str],
    /// At plain priority: two programs that must share the core.
    is_plain: bool,
    /// Whether what it prints is read; else records go to a file in memory as the others' would.
    is_read: bool,
    /// Whether its page is open meanwhile: somebody takes its stream of events.
    has_page: bool,
    /// How long it may go on after the last packet.
    timeout: Duration,
    /// Packets and drops, of what it said and the file of its summary.
    figures: fn(&Output, &Path) -> Result<(u64, u64)>,
}

const fn listens(program: &'static str, args: &'static [&'static str]) -> Listens {
    Listens {
        program,
        args,
        is_plain: false,
        is_read: false,
        has_page: false,
        timeout: Duration::from_secs(10),
        figures: of_libpcap,
    }
}

/// `benches/limits/rxv3.c`.
pub(super) static EMPTY: Row<Listens> = row(
    "empty",
    "empty TPACKET_V3 reader (the limit)",
    Listens {
        is_read: true,
        figures: of_empty,
        ..listens("rxv3", &["{interface}", "--ring", RING_MIB])
    },
);

#[rustfmt::skip]
pub(super) static LINKWEIR: Row<Listens> = row("linkweir", "linkweir http", Listens {
    figures: of_linkweir,
    ..listens("linkweir", &[
        "http", "-q", "--overwrite", "-i", "{interface}", "-B", RING_KIB, "--format", "text",
        "-w", "-", "--summary", "{summary}",
    ])
});

/// Where its page is, in the namespace of the server.
const PAGE: &str = "127.0.0.1:9137";

/// The same with the page open.
#[rustfmt::skip]
pub(super) static WATCHED: Row<Listens> = row("watched", "linkweir http, its page open", Listens {
    figures: of_linkweir,
    has_page: true,
    ..listens("linkweir", &[
        "http", "-q", "--overwrite", "-i", "{interface}", "-B", RING_KIB, "--format", "text",
        "-w", "-", "--summary", "{summary}", "--console", PAGE,
    ])
});

#[rustfmt::skip]
pub(super) static TCPDUMP: Row<Listens> = row("tcpdump", "tcpdump -w /dev/null", listens("tcpdump", &[
    "-i", "{interface}", "-n", "-s", "0", "-B", RING_KIB, "-Z", "root", "-w", "/dev/null",
]));

/// The columns of a record, as far as tshark has them live.
#[rustfmt::skip]
pub(super) static TSHARK: Row<Listens> = row("tshark", "tshark -T fields", Listens {
    is_plain: true,
    // What it has not looked at by then it would look at for minutes.
    timeout: Duration::from_secs(1),
    ..listens("tshark", &[
        "-n", "-i", "{interface}", "-B", RING_MIB, "-Y", "http", "-T", "fields",
        "-e", "frame.time_epoch", "-e", "ip.src", "-e", "tcp.srcport", "-e", "ip.dst",
        "-e", "tcp.dstport", "-e", "http.request.method", "-e", "http.request.uri",
        "-e", "http.host", "-e", "http.user_agent", "-e", "http.response.code",
        "-e", "http.response.phrase", "-e", "http.time",
    ])
});

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
    /// CPU seconds of all programs of the core, without what the kernel receives in interrupts.
    pub(super) core_s: f64,
}

/// Where the programs are.
#[derive(Debug)]
pub(super) struct Readers<'w> {
    pub(super) wire: &'w Wire,
    pub(super) linkweir: PathBuf,
    /// In memory; what was compiled is there too.
    pub(super) dir: PathBuf,
}

impl Readers<'_> {
    /// The path of a reader, where it is installed.
    pub(super) fn path(&self, reader: &Row<Listens>) -> Option<PathBuf> {
        match reader.how.program {
            "linkweir" => Some(self.linkweir.clone()),
            "rxv3" => Some(self.dir.join("rxv3")),
            program => shell::find(program),
        }
    }

    /// Lets a reader listen on the server's side while `send` runs.
    pub(super) fn during<T>(
        &self,
        reader: &Row<Listens>,
        send: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Received)> {
        let running = listening(self.wire, self.command(reader)?, 1)?;
        let id = running.id();
        let page = reader.how.has_page.then(|| self.open_page()).transpose()?;
        let (begin, clock, since) = (Threads::of(id), Clock::now(&[])?, Instant::now());
        let sent = send()?;
        // The kernel hands over a block that is not full once a second to libpcap.
        std::thread::sleep(Duration::from_millis(1200));
        rest(id, reader.how.timeout);
        let cost = Threads::of(id).since(&begin);
        let programs = Clock::now(&[])?.since(&clock).programs(CORE);
        let core_s = programs * since.elapsed().as_secs_f64();
        if let Some(mut page) = page {
            ensure!(page.ended()?.is_none(), "the page was closed meanwhile");
        }
        let output = running.finish()?;
        let (packets, dropped) = (reader.how.figures)(&output, &self.summary_path())?;
        Ok((
            sent,
            Received {
                packets,
                dropped,
                thread_s: cost.busiest().ran,
                waited_s: cost.busiest().waited,
                all_s: cost.all(),
                core_s,
            },
        ))
    }

    /// A program that takes what a page takes, until it is dropped.
    fn open_page(&self) -> Result<Running> {
        let mut command = self.wire.command(Side::Server, "curl");
        command
            .args([
                "--silent",
                "--no-buffer",
                "--retry",
                "5",
                "--retry-connrefused",
            ])
            .arg(format!("http://{PAGE}/api/stream"))
            .stdout(Stdio::null());
        Running::start(&mut command).context("open the page")
    }

    fn summary_path(&self) -> PathBuf {
        self.dir.join("summary.json")
    }

    fn command(&self, reader: &Row<Listens>) -> Result<Command> {
        let path = self.path(reader);
        let path = path.with_context(|| format!("{} is not installed", reader.name))?;
        let mut command = if reader.how.is_plain {
            self.wire.command(Side::Server, "taskset")
        } else {
            self.wire.urgent_command(Side::Server, "taskset")
        };
        command.args(["-c", &CORE.to_string()]).arg(path);
        for word in reader.how.args {
            match *word {
                "{interface}" => command.arg(interface(Side::Server)),
                "{summary}" => command.arg(self.summary_path()),
                word => command.arg(word),
            };
        }
        // tshark's capture file goes to memory.
        command.env("TMPDIR", &self.dir);
        let stdout = if reader.how.is_read {
            Stdio::piped()
        } else {
            std::fs::File::create(self.dir.join("records"))?.into()
        };
        command.stdout(stdout).stderr(Stdio::piped());
        Ok(command)
    }
}

/// What the empty reader prints.
fn of_empty(output: &Output, _: &Path) -> Result<(u64, u64)> {
    let line = String::from_utf8_lossy(&output.stdout);
    let words = Words::of(&line);
    Ok((words.whole("packets")?, words.whole("drops")?))
}

/// Packets and drops of a summary of `linkweir`.
fn of_linkweir(output: &Output, path: &Path) -> Result<(u64, u64)> {
    let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let summary = summary(path).with_context(|| format!("linkweir says: {}", said()))?;
    let dropped = |cause| count(&summary, cause).unwrap_or(0);
    let dropped = dropped("dropped/kernel") + dropped("dropped/ring");
    Ok((count(&summary, "packets")?, dropped))
}

/// What tcpdump and tshark print at the end.
fn of_libpcap(output: &Output, _: &Path) -> Result<(u64, u64)> {
    let said = String::from_utf8_lossy(&output.stderr);
    let packets = before(&said, &[" packets captured", " packet captured"]);
    let packets = packets.with_context(|| format!("no count in: {}", said.trim()))?;
    let phrases = [
        " packets dropped by kernel",
        " packets dropped",
        " packet dropped",
    ];
    Ok((packets, before(&said, &phrases).unwrap_or(0)))
}

/// Starts a program and waits until it has opened that many sockets on the server's side.
pub(super) fn listening(wire: &Wire, mut command: Command, sockets: usize) -> Result<Running> {
    let running = Running::start(&mut command).context("start a reader")?;
    let is_ready = |_| wire.packet_sockets(Side::Server) >= sockets;
    let running = ready(&format!("{command:?}"), running, is_ready, said)?;
    // The socket is there before the first poll.
    std::thread::sleep(Duration::from_millis(200));
    Ok(running)
}

/// Reads a JSON summary.
pub(super) fn summary(path: &Path) -> Result<Value> {
    let text = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("read {}", path.display()))
}
