//! A command of linkweir that runs beside the others, and what its summary says.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use linkweir_testkit::gateway::Place;
use linkweir_testkit::netns::{Running, until};
use serde_json::Value;

use crate::error::LabError;
use crate::testbed::Testbed;

/// How long a program may take to end once it was asked to.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// What is written by whom is told apart by its name: `NAME.json` is the summary, `NAME.err` what was
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
    pub(crate) fn wait(self, testbed: &Testbed<'_>, patience: Duration) -> Result<Ended, LabError> {
        let mut program = self;
        let mut is_asked = false;
        let has_ended = until(patience + PATIENCE, || {
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
        if !until(PATIENCE, || program.has_ended()) {
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
