//! nginx in the namespace of the server.
//!
//! Real BitTorrent between the client and the server: opentracker and aria2.

use super::{Net, Place, SERVER, SERVER_V6};
use crate::netns::{Running, until};
use crate::web;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A web server for a directory: ports 80 and 8080, both families.
///
/// What the paths mean: `/plain/FILE` with its length, `/chunked/FILE` in chunks, `/gzip/FILE` coded
/// by gzip and in chunks where the client takes that, `/named/FILE` with the name `report.exe` in
/// `Content-Disposition`.
#[derive(Debug)]
pub struct Nginx {
    directory: PathBuf,
    _running: Running,
}

impl Nginx {
    /// Starts it; what it needs and writes is in `directory`. Answers when it listens.
    ///
    /// # Errors
    /// It is not installed, or does not begin to listen.
    pub fn start(net: &Net, directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory.join("files"))?;
        let mut nginx = net.command(Place::Server, "nginx");
        let running = web::nginx(&mut nginx, directory, &text(directory))?;
        Ok(Self {
            directory: directory.to_path_buf(),
            _running: running,
        })
    }

    /// Puts a file where all paths find it.
    ///
    /// # Errors
    /// The disk's.
    pub fn put(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.file(name);
        fs::write(&path, bytes)?;
        Ok(path)
    }

    /// Where a file is that it serves.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join("files").join(name)
    }

    /// The requests it has answered: `address path status bytes` per line. What was `expected` is waited for:
    /// a request is written down when its client has the answer already.
    #[must_use]
    pub fn access_log(&self, expected: &[&str]) -> String {
        let mut log = String::new();
        until(Duration::from_secs(10), || {
            log = fs::read_to_string(self.directory.join("access.log")).unwrap_or_default();
            expected.iter().all(|line| log.contains(line))
        });
        log
    }
}

fn text(directory: &Path) -> String {
    let at = directory.display();
    let temporary = web::temporary_paths(directory);
    // A server-side include could change the length, so nginx does not announce it.
    format!(
        "user root root; daemon off; master_process off; pid {at}/nginx.pid;
        worker_rlimit_nofile 65536;
        events {{ worker_connections 20480; }}
        http {{
            log_format short '$remote_addr $uri $status $body_bytes_sent';
            access_log {at}/access.log short; sendfile on; keepalive_timeout 600;
            default_type application/octet-stream;
            {temporary}
            server {{
                listen {SERVER}:80 backlog=4096; listen {SERVER}:8080;
                listen [{SERVER_V6}]:80; listen [{SERVER_V6}]:8080;
                listen {SERVER}:8002 http2;
                location /plain/ {{ alias {at}/files/; }}
                location /chunked/ {{ alias {at}/files/; ssi on; ssi_types *; }}
                location /gzip/ {{ alias {at}/files/; gzip on; gzip_types *; }}
                location /named/ {{
                    alias {at}/files/;
                    add_header Content-Disposition 'attachment; filename=\"report.exe\"';
                }}
                location /upload {{ client_max_body_size 0; return 200 \"stored\\n\"; }}
            }}
        }}"
    )
}

/// The tracker's port.
const TRACKER: u16 = 6969;

/// A tracker and a peer that has the file, both on the server.
#[derive(Debug)]
pub struct Torrent {
    file: PathBuf,
    _tracker: Running,
    _seed: Running,
}

impl Torrent {
    /// Programs that it needs.
    pub const NEEDED: [&str; 4] = ["opentracker", "aria2c", "mktorrent", "sha1sum"];

    /// Offers a file with these bytes; what is needed and written is in `directory`.
    ///
    /// # Errors
    /// A program is missing or fails.
    pub fn seed(net: &Net, directory: &Path, bytes: &[u8]) -> io::Result<Self> {
        let shared = directory.join("seed");
        fs::create_dir_all(&shared)?;
        let content = shared.join("shared.bin");
        fs::write(&content, bytes)?;
        let file = directory.join("shared.torrent");
        let announce = format!("http://{SERVER}:{TRACKER}/announce");
        let made = Command::new("mktorrent")
            .args(["-a", &announce, "-o"])
            .arg(&file)
            .arg(&content)
            .stdout(Stdio::null())
            .status()?;
        if !made.success() {
            return Err(io::Error::other("mktorrent fails"));
        }
        // Debian builds it to serve only what is on a list.
        let list = directory.join("whitelist");
        fs::write(&list, format!("{}\n", info_hash(&fs::read(&file)?)?))?;
        let mut tracker = tracker(net);
        tracker
            .args(["-i", &SERVER.to_string(), "-p", &TRACKER.to_string()])
            .arg("-w")
            .arg(&list)
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut tracker = Running::start(&mut tracker)?;
        // What is refused once, aria2 asks for again only after a minute.
        let bash = || {
            let mut bash = net.command(Place::Server, "bash");
            bash.args(["-c", &format!("echo > /dev/tcp/{SERVER}/{TRACKER}")]);
            bash.stderr(Stdio::null()).status()
        };
        let listens = until(Duration::from_secs(10), || {
            !matches!(tracker.ended(), Ok(None)) || bash().is_ok_and(|status| status.success())
        });
        if !listens || tracker.ended()?.is_some() {
            return Err(io::Error::other("opentracker does not start"));
        }
        let mut seed = aria2(net, Place::Server, &shared);
        seed.args(["--seed-ratio=0", "-V", "--listen-port=6881"])
            .arg(&file);
        let seed = Running::start(&mut seed)?;
        let log = || fs::read_to_string(shared.join("log")).unwrap_or_default();
        // The tracker's answer to its first announcement.
        let is_known = until(Duration::from_secs(20), || log().contains("HTTP/1.1 200"));
        if !is_known {
            return Err(io::Error::other(format!(
                "the seed is not announced: {}",
                log()
            )));
        }
        Ok(Self {
            file,
            _tracker: tracker,
            _seed: seed,
        })
    }

    /// The command by which a client gets the file into `directory`.
    #[must_use]
    pub fn fetch(&self, net: &Net, directory: &Path) -> Command {
        let mut fetch = aria2(net, Place::Client, directory);
        fetch
            .args(["--seed-time=0", "--listen-port=6882"])
            .arg(&self.file);
        fetch
    }
}

/// It does not want to be root, and becomes nobody, whom a user namespace may not have and who may not
/// read our directories. In a user namespace without any users it is not root, and has our files.
fn tracker(net: &Net) -> Command {
    let mut tracker = net.command(Place::Server, "unshare");
    tracker
        .args(["--user", "--", "setpriv", "--pdeathsig", "KILL", "--"])
        .arg("opentracker");
    tracker
}

/// Without what looks for peers by itself, and with a log.
fn aria2(net: &Net, place: Place, directory: &Path) -> Command {
    let mut aria2 = net.command(place, "aria2c");
    aria2
        .args(["--enable-dht=false", "--enable-dht6=false"])
        .args(["--bt-enable-lpd=false", "--log-level=info", "--no-conf"])
        .arg("--log")
        .arg(directory.join("log"))
        .arg("-d")
        .arg(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    aria2
}

/// The SHA-1 of the value of `info`, which mktorrent writes last (BEP 3; keys are sorted).
fn info_hash(torrent: &[u8]) -> io::Result<String> {
    const KEY: &[u8] = b"4:info";
    let info = torrent
        .windows(KEY.len())
        .position(|window| window == KEY)
        .and_then(|at| torrent.get(at + KEY.len()..))
        .and_then(|rest| rest.strip_suffix(b"e"))
        .ok_or_else(|| io::Error::other("no torrent"))?;
    let mut sum = Command::new("sha1sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = sum.stdin.take() {
        stdin.write_all(info)?;
    }
    let output = sum.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let digits = text.split_whitespace().next().unwrap_or_default();
    Ok(digits.to_ascii_uppercase())
}
