//! The gateway of the scenario: its policy, its rules in the kernel, and its process.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use linkweir_testkit::gateway::Place;

use super::planted::{KEYWORD, Planted};
use super::settings::Settings;
use crate::LabError;
use crate::ground::Ground;
use crate::program::{Ended, Program};

/// Kernel queues, a thread each.
const QUEUES: usize = 1;
/// How long it may take until it serves them.
const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway that runs.
pub(super) struct Gateway {
    program: Program,
}

impl Gateway {
    /// Installs its rules and starts it.
    pub(super) fn start(
        ground: &Ground<'_>,
        settings: &Settings,
        planted: &Planted,
    ) -> Result<Self, LabError> {
        let policy = policy(&ground.path(""), settings, planted);
        ground.put("gateway.toml", policy.as_bytes())?;
        command(ground, "up")?;
        let words = [
            "gateway",
            "run",
            "--config",
            "gateway.toml",
            "-w",
            "events.jsonl",
        ];
        let mut program = Program::start_seen(ground, Place::Gateway, "gateway", &words)?;
        ground.wait("the gateway's queues", PATIENCE, || {
            program.has_ended() || ground.net.queues().len() >= QUEUES
        })?;
        program.must_run()?;
        Ok(Self { program })
    }

    /// Where its page is.
    pub(super) fn console(&self) -> Option<(&'static str, SocketAddr)> {
        Some(("the gateway", self.program.console?))
    }

    /// Ends it and takes its rules away.
    pub(super) fn finish(self, ground: &Ground<'_>) -> Result<Ended, LabError> {
        let ended = self.program.finish()?;
        command(ground, "down")?;
        Ok(ended)
    }
}

/// `linkweir gateway up` or `down`.
fn command(ground: &Ground<'_>, what: &str) -> Result<(), LabError> {
    let words: &[&str] = match what {
        "up" => &["gateway", "up", "--config", "gateway.toml"],
        _ => &["gateway", "down"],
    };
    let mut command = ground.linkweir(Place::Gateway, words);
    let name = format!("linkweir gateway {what}");
    let output = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| LabError::program(&*name, error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(LabError::program(
        name,
        String::from_utf8_lossy(&output.stderr),
    ))
}

/// What is inspected is that of the guests, and of those who carry what is planted.
fn policy(folder: &Path, settings: &Settings, planted: &Planted) -> String {
    let at = folder.display();
    let (scanner, scan) = planted.scanner().map_or_else(Default::default, |socket| {
        let socket = socket.display();
        (
            format!(
                "[scanner.clamd]\naddress = \"{socket}\"\nwindow = \"32KiB\"\ntail = \"1KiB\"\n"
            ),
            "scan = \"clamd\"\n",
        )
    });
    format!(
        "[gateway]\ninterfaces = [\"lan0\", \"wan0\"]\nqueues = {QUEUES}\n\
         control = \"{at}/gateway.sock\"\n{scanner}\n\
         [[rule]]\nname = \"guests\"\napplication = \"http\"\nclients = [\"{}\", \"{}\"]\n\
         action = \"inspect\"\nkeywords = [\"{KEYWORD}\"]\non-match = \"reject\"\n{scan}\
         fail = \"closed\"\n\n\
         [[rule]]\nname = \"web\"\napplication = \"http\"\naction = \"allow\"\n",
        settings.guests,
        super::planted::CLIENTS
    )
}
