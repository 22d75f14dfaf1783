//! The captures of a line: where the clients are, in front of the server, and between that and the origin.

use crate::error::LabError;
use crate::program::output;
use crate::testbed::Testbed;
use linkweir_testkit::gateway::{Place, SERVER, WAN};
use linkweir_testkit::netns::{Running, until};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// How long it may take until it captures.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long the last packets may take.
const SETTLE: Duration = Duration::from_millis(1500);

/// Captures that run.
pub(super) struct Captures {
    line: &'static str,
    captures: Vec<(Running, PathBuf)>,
}

/// What was captured over a line, and the secrets of all clients.
#[derive(Debug)]
pub(super) struct Traces {
    /// At the clients.
    pub(super) clients: PathBuf,
    /// In front of the server.
    pub(super) server: PathBuf,
    /// Between the server and the origin, in clear.
    pub(super) origin: PathBuf,
    pub(super) keys: PathBuf,
}

/// Begins.
pub(super) fn start(testbed: &Testbed<'_>, line: &'static str) -> Result<Captures, LabError> {
    let mut captures = Vec::new();
    for (place, interface, name) in [
        (Place::Client, testbed.clients, "clients"),
        (Place::Gateway, WAN, "server"),
        (Place::Server, "lo", "origin"),
    ] {
        let path = testbed.path(&format!("{line}-{name}.pcap"));
        let said = testbed.path(&format!("{line}-{name}.err"));
        let file = File::create(&said).map_err(LabError::file(&said))?;
        let mut command = testbed.command(place, "tcpdump");
        command.args(["-i", interface, "-s", "0", "-B", "65536", "-Z", "root"]);
        command
            .args(["--time-stamp-precision=nano", "-w"])
            .arg(&path);
        command
            .args(["tcp", "or", "udp"])
            .stdout(Stdio::null())
            .stderr(file);
        let mut running =
            Running::start(&mut command).map_err(|error| LabError::program("tcpdump", error))?;
        let id = running.id();
        testbed.wait("the capture", TIMEOUT, || {
            !matches!(running.ended(), Ok(None)) || testbed.net.packet_sockets_of(place, id) > 0
        })?;
        captures.push((running, path));
    }
    Ok(Captures { line, captures })
}

impl Captures {
    /// Ends them when the last packets have passed, and collects the secrets.
    pub(super) fn finish(self, testbed: &Testbed<'_>) -> Result<Traces, LabError> {
        until(SETTLE, || testbed.is_stopped());
        let mut paths = Vec::new();
        for (running, path) in self.captures {
            let ended = running
                .finish()
                .map_err(|error| LabError::program("tcpdump", error))?;
            if !ended.status.success() {
                return Err(LabError::program("tcpdump", ended.status));
            }
            paths.push(path);
        }
        let [clients, server, origin] = <[PathBuf; 3]>::try_from(paths)
            .map_err(|_| LabError::program("tcpdump", "there are three captures"))?;
        let keys = testbed.path(&format!("{}.keys", self.line));
        let mut secrets = Vec::new();
        let directory = testbed.path("");
        let entries = fs::read_dir(&directory).map_err(LabError::file(&directory))?;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&format!("{}-client-", self.line)) && name.ends_with(".keys") {
                secrets.extend(fs::read(entry.path()).map_err(LabError::file(&entry.path()))?);
            }
        }
        fs::write(&keys, secrets).map_err(LabError::file(&keys))?;
        Ok(Traces {
            clients,
            server,
            origin,
            keys,
        })
    }
}

/// What of a capture is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reader<'a> {
    /// Everything, with these secrets.
    Keys(&'a Path),
    /// Everything, without secrets.
    Estimates,
    /// What the clients send, without secrets.
    OneWay,
}

/// The records of `linkweir http` over a capture.
pub(super) fn records(
    testbed: &Testbed<'_>,
    capture: &Path,
    reader: Reader<'_>,
) -> Result<PathBuf, LabError> {
    let (ending, more) = match reader {
        Reader::Keys(keys) => ("keyed.jsonl", Some(("--keys", keys.display().to_string()))),
        Reader::Estimates => ("estimated.jsonl", None),
        Reader::OneWay => (
            "one-way.jsonl",
            Some(("--filter", format!("dst host {SERVER}"))),
        ),
    };
    let out = capture.with_extension(ending);
    let (capture, written) = (capture.display().to_string(), out.display().to_string());
    let mut words = vec!["http", "-q", "--ttlb", "-r", &capture, "-w", &written];
    if let Some((flag, value)) = &more {
        words.extend([flag, value.as_str()]);
    }
    output(testbed, Place::Gateway, &words)?;
    Ok(out)
}
