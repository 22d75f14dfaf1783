//! A command of linkweir that runs beside the others, and what its summary says.
//!
//! A command that looks at the wire behind the gateway.
//!
//! Records of linkweir's commands, as JSON lines.

use crate::error::LabError;
use crate::testbed::Testbed;
use linkweir_testkit::gateway::{Place, WAN};
use linkweir_testkit::netns::{Running, until};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a program may take to end once it was asked to.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Program {
    name: String,
    running: Running,
    summary: PathBuf,
    said: PathBuf,
    /// Where its page is.
    pub(crate) console: Option<SocketAddr>,
}

/// The name says which program wrote a file: `NAME.json` is the summary, `NAME.err` what was
/// said.
impl Program {
    /// Starts a command of linkweir. `words` begin with its name; what they do not say is `-q` and the
    /// summary.
    pub(crate) fn start(
        testbed: &Testbed<'_>,
        place: Place,
        name: &str,
        words: &[&str],
    ) -> Result<Self, LabError> {
        Self::start_with(testbed, name, testbed.linkweir(place, words), false)
    }

    /// The same for a part of the laboratory.
    pub(crate) fn start_part(
        testbed: &Testbed<'_>,
        place: Place,
        name: &str,
        words: &[&str],
    ) -> Result<Self, LabError> {
        Self::start_with(testbed, name, testbed.part(place, words), false)
    }

    /// The same for one that has a page, where pages are wanted.
    pub(crate) fn start_seen(
        testbed: &Testbed<'_>,
        place: Place,
        name: &str,
        words: &[&str],
    ) -> Result<Self, LabError> {
        let command = testbed.linkweir(place, words);
        Self::start_with(testbed, name, command, testbed.order.has_consoles)
    }

    /// The generator of load where the clients are; its records are in `NAME.jsonl`, what it does beside is
    /// in `more`.
    pub(crate) fn load(
        testbed: &Testbed<'_>,
        name: &str,
        url: &str,
        (clients, arrivals): (&str, &str),
        seed: u64,
        more: &[&str],
    ) -> Result<Self, LabError> {
        let (seed, records) = (seed.to_string(), format!("{name}.jsonl"));
        let words = [
            "load",
            url,
            "-i",
            testbed.clients,
            "--gateway",
            "10.88.1.1",
            "--clients",
            clients,
            "--arrivals",
            arrivals,
            "--seed",
            &seed,
            "-w",
            &records,
        ];
        Self::start(testbed, Place::Client, name, &[&words, more].concat())
    }

    fn start_with(
        testbed: &Testbed<'_>,
        name: &str,
        mut command: Command,
        has_console: bool,
    ) -> Result<Self, LabError> {
        let summary = testbed.path(&format!("{name}.json"));
        let said = testbed.path(&format!("{name}.err"));
        command.arg("-q").arg("--summary").arg(&summary);
        let console = if has_console {
            Some(inherit_console(&mut command).map_err(|error| LabError::program(name, error))?)
        } else {
            None
        };
        let file = File::create(&said).map_err(LabError::file(&said))?;
        command.stdout(Stdio::null()).stderr(file);
        let running =
            Running::start(&mut command).map_err(|error| LabError::program(name, error))?;
        Ok(Self {
            name: name.to_owned(),
            running,
            summary,
            said,
            console,
        })
    }

    /// Its process id.
    pub(crate) const fn id(&self) -> u32 {
        self.running.id()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.running.ended(), Ok(None))
    }

    /// Sends it a signal by name, as `KILL`. One that has ended hears nothing.
    pub(crate) fn signal(&self, name: &str) {
        drop(self.running.signal(name));
    }

    /// An error with its last words, where it has ended that should run.
    pub(crate) fn must_run(&mut self) -> Result<(), LabError> {
        if self.has_ended() {
            return Err(self.failed());
        }
        Ok(())
    }

    /// Waits until it ends by itself; asks it to end when the run is to finish early.
    pub(crate) fn wait(self, testbed: &Testbed<'_>, timeout: Duration) -> Result<Ended, LabError> {
        self.wait_and(testbed, timeout, || {})
    }

    /// The same, and does something again and again while it runs.
    pub(crate) fn wait_and(
        self,
        testbed: &Testbed<'_>,
        timeout: Duration,
        mut meanwhile: impl FnMut(),
    ) -> Result<Ended, LabError> {
        let mut program = self;
        let mut is_asked = false;
        let has_ended = until(timeout + TIMEOUT, || {
            meanwhile();
            if testbed.is_stopped() && !is_asked {
                is_asked = true;
                program.signal("INT");
            }
            program.has_ended()
        });
        if !has_ended {
            return Err(LabError::program(&program.name, "does not end"));
        }
        match program.ended() {
            // One that had not begun fails when it is asked to end.
            Err(_) if is_asked => Err(LabError::Stopped),
            Ok(ended) if ended.was_interrupted() && !is_asked => Err(LabError::program(
                format!("linkweir {}", ended.name),
                "somebody ended it early",
            )),
            ended => ended,
        }
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn finish(self) -> Result<Ended, LabError> {
        let mut program = self;
        program.signal("INT");
        if !until(TIMEOUT, || program.has_ended()) {
            return Err(LabError::program(&program.name, "does not end"));
        }
        program.ended()
    }

    fn ended(mut self) -> Result<Ended, LabError> {
        let status = self.running.ended();
        let code = status.ok().flatten().and_then(|status| status.code());
        // 1: done, but something was lost or failed; the summary says what.
        if !matches!(code, Some(0 | 1)) {
            return Err(self.failed());
        }
        let summary = read_json(&self.summary)?;
        Ok(Ended {
            name: self.name,
            summary,
        })
    }

    /// How it ended, and its last words.
    fn failed(&mut self) -> LabError {
        let said = fs::read_to_string(&self.said).unwrap_or_default();
        let how = match self.running.ended() {
            Ok(Some(status)) => status.to_string(),
            _ => "it still runs".to_owned(),
        };
        let why = match said.trim() {
            "" => how,
            said => format!("{how}: {said}"),
        };
        LabError::program(format!("linkweir {}", self.name), why)
    }
}

/// Runs a command of linkweir that ends by itself: what it wrote.
pub(crate) fn output(
    testbed: &Testbed<'_>,
    place: Place,
    words: &[&str],
) -> Result<Vec<u8>, LabError> {
    let words_shown = words.iter().take(2).copied().collect::<Vec<_>>();
    let name = format!("linkweir {}", words_shown.join(" "));
    let output = testbed.linkweir(place, words).output();
    let output = output.map_err(|error| LabError::program(&*name, error))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(LabError::program(
            name,
            String::from_utf8_lossy(&output.stderr),
        )),
    }
}

/// What a command found.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The name under which it was started.
    pub(crate) name: String,
    /// Its whole summary.
    pub(crate) summary: Value,
}

impl Ended {
    /// Whether a generator was asked to end before its schedule did.
    fn was_interrupted(&self) -> bool {
        self.summary.pointer("/interrupted") == Some(&Value::Bool(true))
    }

    /// A count; parts of the way are separated by slashes. One that is not there is none: a cause that
    /// did not occur.
    pub(crate) fn count(&self, way: &str) -> u64 {
        let value = self.summary.pointer(&format!("/{way}"));
        value.and_then(Value::as_u64).unwrap_or(0)
    }

    /// A number, if it is there.
    pub(crate) fn number(&self, way: &str) -> Option<f64> {
        self.summary.pointer(&format!("/{way}"))?.as_f64()
    }

    /// The sum of all counts of an object, and of the objects in it.
    pub(crate) fn sum(&self, way: &str) -> u64 {
        let object = self.summary.pointer(&format!("/{way}"));
        object.map_or(0, sum_of)
    }
}

fn sum_of(value: &Value) -> u64 {
    let object = value.as_object();
    let counts = object.into_iter().flat_map(serde_json::Map::values);
    value.as_u64().unwrap_or(0) + counts.map(sum_of).sum::<u64>()
}

fn read_json(path: &Path) -> Result<Value, LabError> {
    let text = fs::read(path).map_err(LabError::file(path))?;
    serde_json::from_slice(&text)
        .map_err(|error| LabError::file(path)(std::io::Error::new(ErrorKind::InvalidData, error)))
}

/// Gives a command a listening socket as its standard input. The socket belongs to the network that we
/// are in, so a browser reaches the page of a command that lives in another.
fn inherit_console(command: &mut Command) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    command.args(["--console", "stdin"]);
    command.stdin(Stdio::from(OwnedFd::from(listener)));
    Ok(address)
}

/// How long it may take until it captures.
const CAPTURE_TIMEOUT: Duration = Duration::from_secs(20);

/// Starts `linkweir COMMAND` under a name, and waits until it captures. Its records are in
/// `NAME.jsonl`.
pub(crate) fn watch(testbed: &Testbed<'_>, name: &str, command: &str) -> Result<Program, LabError> {
    watch_with(testbed, name, command, &[])
}

/// The same with other words behind.
pub(crate) fn watch_with(
    testbed: &Testbed<'_>,
    name: &str,
    command: &str,
    others: &[&str],
) -> Result<Program, LabError> {
    let records = format!("{name}.jsonl");
    let words = [&[command, "-i", WAN, "-w", &records], others].concat();
    let mut program = Program::start_seen(testbed, Place::Gateway, name, &words)?;
    is_capturing(testbed, &mut program)?;
    Ok(program)
}

/// Waits until a command captures.
pub(crate) fn is_capturing(testbed: &Testbed<'_>, program: &mut Program) -> Result<(), LabError> {
    let id = program.id();
    testbed.wait("the capture", CAPTURE_TIMEOUT, || {
        program.has_ended() || testbed.net.packet_sockets_of(Place::Gateway, id) > 0
    })?;
    program.must_run()
}

/// Fields of `load_session`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Session {
    pub(crate) client_ip: IpAddr,
    pub(crate) client_port: Option<u16>,
    pub(crate) started_ts_ns: Option<u64>,
    pub(crate) first_byte_ns: Option<u64>,
}

/// Fields of `http_transaction`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Transaction {
    pub(crate) client_ip: IpAddr,
    pub(crate) client_port: u16,
    pub(crate) request_ts_ns: Option<u64>,
    pub(crate) response_time_ns: Option<u64>,
}

/// Fields of `tcp_flow`, as Tstat names and measures them: times in milliseconds since the flow began.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Flow {
    pub(crate) c_ip: IpAddr,
    pub(crate) c_port: u16,
    /// First payload of the client, milliseconds from the flow's first segment; none where it sent none.
    pub(crate) c_first: Option<f64>,
    /// The same of the server.
    pub(crate) s_first: Option<f64>,
}

/// Reads the records of a file one by one.
pub(crate) fn each<R: DeserializeOwned>(
    path: &Path,
    mut take: impl FnMut(R),
) -> Result<(), LabError> {
    let file = File::open(path).map_err(LabError::file(path))?;
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(LabError::file(path))?;
        let record = serde_json::from_str(&line).map_err(|error| LabError::Program {
            what: format!("{}, line {}", path.display(), number + 1),
            why: error.to_string(),
        })?;
        take(record);
    }
    Ok(())
}

/// All records of a file.
pub(crate) fn all<R: DeserializeOwned>(path: &Path) -> Result<Vec<R>, LabError> {
    let mut all = Vec::new();
    each(path, |record| all.push(record))?;
    Ok(all)
}
