//! The socket by which `status` and `reload` talk to a running gateway: one line asks, one line
//! answers. Only who owns the gateway may connect (mode 0600).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, anyhow};
use linkweir_live::gateway::GatewayStatus;

use crate::exit::Wrong;

/// Bytes of the longest line that asks.
const MAX_LINE: u64 = 1 << 20;
/// Who is answered in one go: each may take its time, and events wait meanwhile.
const MAX_SERVED: usize = 4;
/// How long one side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was asked.
#[derive(Debug)]
pub(super) enum Asked {
    Status,
    /// Whether it could take the policy as its file is now.
    Offer(Offer),
    Reload(BTreeMap<String, u16>),
}

/// Who wants a policy loaded again.
#[derive(Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Offer {
    /// The file, with its whole path.
    pub(super) config: PathBuf,
    /// The network namespace, as `/proc/self/ns/net` shows it.
    pub(super) namespace: PathBuf,
    /// Numbers of the rules.
    pub(super) numbers: BTreeMap<String, u16>,
}

impl Offer {
    /// That of this process.
    pub(super) fn of(config: &Path, numbers: BTreeMap<String, u16>) -> Self {
        Self {
            config: config.canonicalize().unwrap_or_else(|_| config.to_owned()),
            namespace: std::fs::read_link("/proc/self/ns/net").unwrap_or_default(),
            numbers,
        }
    }
}

/// Refuses to run beside a gateway that answers there. Whoever asks must be allowed to talk to any.
pub(super) fn must_be_free(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    match connect(path) {
        Ok(_) => Err(anyhow!("a gateway is already running: {shown} answers")),
        // What a gateway left that was killed, or what is not a socket.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::ConnectionRefused | ErrorKind::NotFound
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(anyhow!(
            "{shown}: {error}: it may be the socket of another program; `control` names another path"
        )),
    }
}

/// Connects to a socket whose owner may have stopped with a full backlog.
fn connect(path: &Path) -> std::io::Result<UnixStream> {
    let (sender, connected) = channel();
    let path = path.to_owned();
    // A call of its own thread is all that ends in time.
    let thread = std::thread::spawn(move || sender.send(UnixStream::connect(path)).is_ok());
    let stream = connected
        .recv_timeout(PATIENCE)
        .map_err(|_| std::io::Error::from(ErrorKind::TimedOut))?;
    thread.join().ok();
    stream
}

/// The socket of a running gateway; gone when dropped.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Listens, in a directory that is there; the socket of a gateway that was killed is replaced.
    pub(super) fn listen(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
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
        let listener = UnixListener::bind(path)
            .with_context(|| format!("{shown} (the gateway needs root)"))?;
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
        for _ in 0..MAX_SERVED {
            let Ok((stream, _)) = self.listener.accept() else {
                return;
            };
            // Who asks and goes away before the answer has no need of it.
            serve_one(&stream, &mut answer).ok();
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
        ("offer", offer) => serde_json::from_str(offer)
            .map(Asked::Offer)
            .map_err(|error| error.to_string()),
        ("reload", numbers) => serde_json::from_str(numbers)
            .map(Asked::Reload)
            .map_err(|error| error.to_string()),
        _ => Err("it knows status, offer and reload".to_owned()),
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
    let stream = connect(path).with_context(|| {
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
pub(super) fn status(socket: &Path) -> anyhow::Result<GatewayStatus> {
    let text = ask(socket, "status")?;
    serde_json::from_str(&text).context("the gateway's answer")
}

/// Asks the running gateway whether it could take a policy; nothing changes.
pub(super) fn offer(socket: &Path, offer: &Offer) -> anyhow::Result<()> {
    ask(socket, &format!("offer {}", serde_json::to_string(offer)?))?;
    Ok(())
}

/// Has the running gateway load its policy again, with the numbers that the kernel has for its rules.
pub(super) fn reload(socket: &Path, numbers: &BTreeMap<String, u16>) -> anyhow::Result<()> {
    ask(
        socket,
        &format!("reload {}", serde_json::to_string(numbers)?),
    )?;
    Ok(())
}
