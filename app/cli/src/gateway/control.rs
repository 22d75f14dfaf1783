//! The socket by which `status` and `reload` talk to a running gateway: one line asks, one line
//! answers. Only who owns the gateway may connect (mode 0600).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use linkweir_console::gateway::GatewayStatus;

use super::config::GatewayConfig;
use crate::exit::Wrong;

/// Bytes of the longest line that asks.
const MAX_LINE: u64 = 1 << 20;
/// How long one side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was asked.
#[derive(Debug)]
pub(super) enum Asked {
    Status,
    Reload(BTreeMap<String, u16>),
}

/// The socket of a running gateway; gone when dropped.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Listens; the socket of a gateway that was killed is replaced.
    pub(super) fn listen(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        if UnixStream::connect(path).is_ok() {
            return Err(anyhow!("a gateway runs already: {shown} answers"));
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        match std::fs::symlink_metadata(path) {
            Ok(there) if there.file_type().is_socket() => {
                std::fs::remove_file(path).with_context(|| shown.to_string())?;
            }
            Ok(_) => {
                let what = format!("{shown} is there and no socket; `control` names another path");
                return Err(anyhow!(Wrong(what)));
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).with_context(|| shown.to_string())?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .with_context(|| shown.to_string())?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }

    /// Answers who asks now, if anybody.
    pub(super) fn serve(&self, mut answer: impl FnMut(Asked) -> Result<String, String>) {
        while let Ok((stream, _)) = self.listener.accept() {
            if let Err(error) = serve_one(&stream, &mut answer) {
                crate::exit::warn(&format!("control socket: {error:#}"));
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if std::fs::remove_file(&self.path).is_err() {
            // The next gateway replaces it.
        }
    }
}

fn serve_one(
    stream: &UnixStream,
    answer: &mut impl FnMut(Asked) -> Result<String, String>,
) -> anyhow::Result<()> {
    // Who connects and says nothing holds nobody up for long.
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    stream.set_write_timeout(Some(Duration::from_millis(200)))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE)).read_line(&mut line)?;
    let line = line.trim_end();
    let asked = match line.split_once(' ').unwrap_or((line, "")) {
        ("status", _) => Ok(Asked::Status),
        ("reload", numbers) => serde_json::from_str(numbers)
            .map(Asked::Reload)
            .map_err(|error| error.to_string()),
        _ => Err("it knows status and reload".to_owned()),
    };
    let said = match asked.and_then(answer) {
        Ok(text) => format!("ok {text}\n"),
        Err(what) => format!("error {}\n", what.replace('\n', " ")),
    };
    (&*stream).write_all(said.as_bytes())?;
    Ok(())
}

/// Asks a running gateway.
fn ask(path: &Path, line: &str) -> anyhow::Result<String> {
    let shown = path.display();
    let stream = UnixStream::connect(path).with_context(|| {
        format!("no gateway answers at {shown} (is `linkweir gateway run` up?)")
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    (&stream)
        .write_all(format!("{line}\n").as_bytes())
        .with_context(|| shown.to_string())?;
    let mut said = String::new();
    BufReader::new(&stream)
        .read_line(&mut said)
        .with_context(|| format!("{shown}: the gateway does not answer"))?;
    match said.trim_end_matches('\n').split_once(' ') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("error", what)) => Err(anyhow!("{what}")),
        _ => Err(anyhow!("{shown}: no answer of a gateway")),
    }
}

/// The state of the running gateway.
pub(super) fn status(config: &GatewayConfig) -> anyhow::Result<GatewayStatus> {
    let text = ask(&config.settings.control, "status")?;
    serde_json::from_str(&text).context("the gateway's answer")
}

/// Has the running gateway load its policy again, with the numbers that the kernel has for its rules.
pub(super) fn reload(
    config: &GatewayConfig,
    numbers: &BTreeMap<String, u16>,
) -> anyhow::Result<()> {
    let numbers = serde_json::to_string(numbers)?;
    ask(&config.settings.control, &format!("reload {numbers}"))?;
    Ok(())
}
