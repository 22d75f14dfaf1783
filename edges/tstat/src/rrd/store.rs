//! Where round-robin files are: in a directory, made by the `rrdtool` program, or behind `rrdcached`.
//!
//! Both speak lines over a socket: `rrdtool -` on its standard input and output (rrdtool(1), remote
//! control), `rrdcached` on its UNIX socket (rrdcached(1), protocol). Nothing is linked.
//!
//! Cost: a round trip per [`CHUNK`] commands. Each wait is bounded by [`PATIENCE`].

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linkweir_engine::{SinkError, SinkLosses};

/// Tstat's ladder: steps per row and rows of each archive in a file. With steps of five minutes: 50
/// hours of 5 minutes, 14 days of 30 minutes, 64 days of 2 hours, 797 days of days.
const LADDER: [(u32, u32); 4] = [(1, 600), (6, 700), (24, 775), (288, 797)];

/// Commands that are on their way at a time: their answers fit the buffer of a socket, so neither
/// side waits for the other to read.
const CHUNK: usize = 200;

/// The longest wait for an answer. A disk that is slow is no fault; a program that hangs is.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest line that is read from the other side.
const MAX_LINE: u64 = 4_096;

#[derive(Debug)]
enum Order {
    /// Make a file, unless it is there.
    Create(String),
    /// Write a value: the file, `time:value`.
    Update { file: String, value: String },
}

impl Order {
    /// Values that are lost with it.
    const fn values(&self) -> u64 {
        match self {
            Self::Create(_) => 0,
            Self::Update { .. } => 1,
        }
    }
}

/// A round-robin file to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct RrdFile<'a> {
    /// Its name, in the directory or in that of the daemon.
    pub(super) name: &'a str,
    /// Name of its one data source, a gauge: at most 19 letters, digits and `_`.
    pub(super) source: &'a str,
    /// Before its first value, seconds since the epoch.
    pub(super) start_s: u64,
    /// Length of a step, seconds.
    pub(super) step_s: u64,
    /// The longest time that one value stands for, seconds.
    pub(super) heartbeat_s: u64,
}

#[derive(Debug)]
enum Place {
    /// A directory, and the program that works in it.
    Directory(Child),
    /// The socket of the daemon.
    Daemon(PathBuf),
}

/// A way to write round-robin files.
///
/// Orders are collected and carried out by [`RrdStore::commit`]. What the other side refuses is
/// counted ([`RrdStore::losses`]), and the run goes on; a daemon that went away is looked for once in
/// each commit.
#[derive(Debug)]
pub(super) struct RrdStore {
    destination: String,
    place: Place,
    /// `None` after a failure.
    stream: Option<BufReader<UnixStream>>,
    orders: VecDeque<Order>,
    losses: SinkLosses,
}

impl RrdStore {
    /// Opens `unix:SOCKET` (rrdcached) or a directory, which is made where only it is missing. The
    /// program is started here and not later, when starting programs may be forbidden.
    ///
    /// # Errors
    /// [`SinkError::Refused`] where rrdtool is not installed; [`SinkError::Io`] where the system
    /// refuses.
    pub(super) fn open(destination: &str) -> Result<Self, SinkError> {
        let io = |source| SinkError::Io {
            destination: destination.to_owned(),
            source,
        };
        let (place, stream) = if let Some(socket) = destination.strip_prefix("unix:") {
            let stream = connect(Path::new(socket)).map_err(io)?;
            (Place::Daemon(PathBuf::from(socket)), stream)
        } else {
            let directory = Path::new(destination);
            if !directory.is_dir() {
                std::fs::create_dir(directory).map_err(io)?;
            }
            let (child, stream) = start(directory).map_err(|error| match error.kind() {
                ErrorKind::NotFound => SinkError::Refused {
                    destination: destination.to_owned(),
                    message: "the program rrdtool is not there; install it (Debian: rrdtool)"
                        .to_owned(),
                },
                _ => io(error),
            })?;
            (Place::Directory(child), stream)
        };
        Ok(Self {
            destination: destination.to_owned(),
            place,
            stream: Some(BufReader::new(stream)),
            orders: VecDeque::new(),
            losses: SinkLosses::default(),
        })
    }

    /// Orders a file with one gauge and Tstat's archives of averages, unless it exists.
    pub(super) fn create(&mut self, file: &RrdFile<'_>) {
        use std::fmt::Write as _;
        let RrdFile {
            name,
            source,
            start_s,
            step_s,
            heartbeat_s,
        } = file;
        let mut line =
            format!("{name} -O -b {start_s} -s {step_s} DS:{source}:GAUGE:{heartbeat_s}:U:U");
        for (steps, rows) in LADDER {
            // Writing to a string does not fail.
            write!(line, " RRA:AVERAGE:0.5:{steps}:{rows}").ok();
        }
        self.orders.push_back(Order::Create(line));
    }

    /// Orders a value of the time that ends at `at_s`, seconds since the epoch; `None` is "unknown".
    pub(super) fn update(&mut self, file: &str, at_s: u64, value: Option<f64>) {
        let value = match value.filter(|value| value.is_finite()) {
            Some(value) => format!("{at_s}:{value}"),
            None => format!("{at_s}:U"),
        };
        self.orders.push_back(Order::Update {
            file: file.to_owned(),
            value,
        });
    }

    /// Carries out what was ordered; says whether the other side is there. What it refuses is
    /// counted.
    pub(super) fn commit(&mut self) -> bool {
        let mut may_reconnect = true;
        while !self.orders.is_empty() {
            let Some(stream) = &mut self.stream else {
                if may_reconnect && self.reconnect() {
                    may_reconnect = false;
                    continue;
                }
                self.losses.count += self.orders.iter().map(Order::values).sum::<u64>();
                self.orders.clear();
                return false;
            };
            let count = self.orders.len().min(CHUNK);
            let all: &[Order] = self.orders.make_contiguous();
            let chunk = all.get(..count).unwrap_or(all);
            let done = match &self.place {
                Place::Directory(_) => by_tool(stream, chunk),
                Place::Daemon(_) => by_daemon(stream, chunk),
            };
            match done {
                Ok(refusals) => {
                    self.orders.drain(..count);
                    self.count(refusals);
                }
                Err(error) => {
                    let destination = &self.destination;
                    self.losses
                        .first
                        .get_or_insert_with(|| format!("{destination}: {error}"));
                    self.stream = None;
                }
            }
        }
        true
    }

    fn count(&mut self, refusals: Refusals) {
        self.losses.count += refusals.count;
        if let (None, Some(first)) = (&self.losses.first, refusals.first) {
            self.losses.first = Some(format!("{}: {first}", self.destination));
        }
    }

    /// A daemon may have been started again; a program that ended stays so.
    fn reconnect(&mut self) -> bool {
        let Place::Daemon(socket) = &self.place else {
            return false;
        };
        self.stream = connect(socket).ok().map(BufReader::new);
        self.stream.is_some()
    }

    /// Values that were not written, and the first reason.
    #[must_use]
    pub(super) fn losses(&self) -> SinkLosses {
        self.losses.clone()
    }

    /// Commits, and ends the program where there is one.
    pub(super) fn finish(&mut self) {
        self.commit();
        self.end();
    }

    fn end(&mut self) {
        let mut has_ended = false;
        if let Some(mut stream) = self.stream.take() {
            // The end of its input ends the program; the end of its output says that it has.
            stream.get_ref().shutdown(Shutdown::Write).ok();
            if let Place::Directory(_) = self.place {
                let mut rest = [0; 512];
                has_ended = loop {
                    match stream.read(&mut rest) {
                        Ok(0) => break true,
                        Ok(_) => {}
                        Err(_) => break false,
                    }
                };
            }
        }
        if let Place::Directory(child) = &mut self.place {
            if !has_ended {
                child.kill().ok();
            }
            child.wait().ok();
        }
    }
}

impl Drop for RrdStore {
    fn drop(&mut self) {
        self.end();
    }
}

fn with_timeouts(stream: UnixStream) -> io::Result<UnixStream> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    with_timeouts(UnixStream::connect(socket)?)
}

/// Starts `rrdtool -` in a directory, with a socket as its input and output: unlike a pipe it can be
/// waited for with a limit.
fn start(directory: &Path) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let output = theirs.try_clone()?;
    let child = Command::new("rrdtool")
        .arg("-")
        .current_dir(directory)
        // Numbers have a point, whatever the user speaks.
        .env("LC_ALL", "C")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(OwnedFd::from(output)))
        .stderr(Stdio::null())
        // An interrupt from the terminal is for the run, which still has values to write.
        .process_group(0)
        .spawn()?;
    Ok((child, with_timeouts(ours)?))
}

/// What the other side did not do.
#[derive(Debug, Default)]
struct Refusals {
    count: u64,
    first: Option<String>,
}

impl Refusals {
    fn add(&mut self, order: Option<&Order>, answer: &str) {
        let (file, is_none) = match order {
            Some(Order::Create(line)) => (
                line.split(' ').next().unwrap_or_default(),
                answer.contains("File exists"),
            ),
            Some(Order::Update { file, .. }) => (file.as_str(), false),
            None => ("", false),
        };
        if is_none {
            return;
        }
        self.count += order.map_or(1, Order::values).max(1);
        self.first.get_or_insert_with(|| {
            let answer: String = answer.chars().filter(|c| !c.is_control()).collect();
            if answer.contains(file) {
                answer
            } else {
                format!("{file}: {answer}")
            }
        });
    }
}

fn read_line(stream: &mut BufReader<UnixStream>) -> io::Result<String> {
    let mut line = Vec::new();
    stream.take(MAX_LINE).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::Error::new(
            ErrorKind::UnexpectedEof,
            "the other side ended before its answer was complete",
        ));
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// rrdtool answers each command with any lines, then `OK` and times, or `ERROR:` and a reason.
fn by_tool(stream: &mut BufReader<UnixStream>, orders: &[Order]) -> io::Result<Refusals> {
    let mut lines = String::new();
    for order in orders {
        match order {
            Order::Create(line) => lines.extend(["create ", line, "\n"]),
            Order::Update { file, value } => lines.extend(["update ", file, " ", value, "\n"]),
        }
    }
    stream.get_mut().write_all(lines.as_bytes())?;
    let mut refusals = Refusals::default();
    for order in orders {
        loop {
            let line = read_line(stream)?;
            if line.starts_with("OK ") {
                break;
            }
            if let Some(reason) = line.strip_prefix("ERROR: ") {
                refusals.add(Some(order), reason);
                break;
            }
        }
    }
    Ok(refusals)
}

/// rrdcached answers `N text` and N more lines, N below zero being an error. Between `BATCH` and `.`
/// it is silent, then says how many orders failed and which.
fn by_daemon(stream: &mut BufReader<UnixStream>, orders: &[Order]) -> io::Result<Refusals> {
    let mut lines = String::from("BATCH\n");
    for order in orders {
        match order {
            Order::Create(line) => lines.extend(["CREATE ", line, "\n"]),
            Order::Update { file, value } => lines.extend(["UPDATE ", file, " ", value, "\n"]),
        }
    }
    lines.push_str(".\n");
    stream.get_mut().write_all(lines.as_bytes())?;
    let status = |line: &str| -> io::Result<i64> {
        let number = line.split(' ').next().and_then(|word| word.parse().ok());
        number.ok_or_else(|| io::Error::other(format!("no rrdcached: it says {line:?}")))
    };
    let begin = read_line(stream)?;
    if status(&begin)? < 0 {
        return Err(io::Error::other(begin));
    }
    let mut refusals = Refusals::default();
    for _ in 0..status(&read_line(stream)?)? {
        let line = read_line(stream)?;
        let (number, reason) = line.split_once(' ').unwrap_or(("", &line));
        // Orders are numbered from 1.
        let at = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let order = at.and_then(|at| orders.get(at));
        refusals.add(order, reason);
    }
    Ok(refusals)
}
