//! nginx in the namespace of the server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::log::{self, Visit};
use super::{BEHIND, BEHIND_V6, Net, Place, SERVER, SERVER_V6};
use crate::netns::Running;
use crate::web;

/// What `/page` has in it, each once and in this order.
pub const EMBEDDED: [&str; 4] = ["/style.css", "/script.js", "/one.png", "/two.png"];
/// Bytes of the body of `/small`.
pub const SMALL: usize = 100;

/// How it is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Whether it writes a line for each request: that costs it time.
    pub has_log: bool,
    /// The only core that it runs on.
    pub core: Option<u16>,
    /// Whether it goes before all others (nice -20), for what is measured beside the other programs of the
    /// machine. Only root may have that.
    pub is_urgent: bool,
    /// Most connections at a time, as far as the limit of open files allows ([`most_files`]).
    pub connections: u32,
    /// Whether another may listen at the same ports; the kernel then distributes connections.
    pub shares_ports: bool,
    /// Commands that it works off for an answer of `/work`, which is how long that takes: about a
    /// microsecond each.
    pub work: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            has_log: true,
            core: None,
            is_urgent: false,
            connections: 20_480,
            shares_ports: false,
            work: 100,
        }
    }
}

/// A web server with one worker: port 80, both families. Connections stay open for ten minutes and for
/// any number of requests.
///
/// What the paths mean: `/small` is [`SMALL`] bytes from memory, `/page` a page with [`EMBEDDED`]
/// objects, `/NAME` a file that was [put](Self::put), `/chunked/NAME` the same in chunks,
/// `/close/NAME` the same with the connection closed after it, `/slow/NAME` at 20 KB a second;
/// `/moved` and `/broken` have codes of their own; `/work` keeps the worker busy before it answers;
/// `/upload` takes a body of any length.
#[derive(Debug)]
pub struct Nginx {
    directory: PathBuf,
    running: Running,
}

impl Nginx {
    /// Starts it; what it needs and writes is in `directory`. Answers when it listens.
    ///
    /// # Errors
    /// It is not installed, or does not begin to listen.
    pub fn start(net: &Net, directory: &Path, settings: &Settings) -> io::Result<Self> {
        let command = |program: &str| net.command(Place::Server, program);
        let backlog = "backlog=65535";
        let listen = [
            format!("{SERVER}:80 {backlog}"),
            format!("[{SERVER_V6}]:80 {backlog}"),
            format!("{BEHIND}:80"),
            format!("[{BEHIND_V6}]:80"),
        ];
        let settings = Settings {
            is_urgent: settings.is_urgent && !net.is_unprivileged(),
            ..*settings
        };
        Self::start_at(command, &listen, directory, &settings)
    }

    /// The same wherever `command` puts a program, at these addresses: words of `listen`.
    ///
    /// # Errors
    /// It is not installed, or does not begin to listen.
    pub fn start_at(
        command: impl FnOnce(&str) -> Command,
        listen: &[String],
        directory: &Path,
        settings: &Settings,
    ) -> io::Result<Self> {
        let files = directory.join("files");
        fs::create_dir_all(&files)?;
        fs::write(files.join("page"), page())?;
        for (index, name) in EMBEDDED.iter().enumerate() {
            let path = files.join(name.trim_start_matches('/'));
            fs::write(path, vec![b'e'; 300 * (index + 1)])?;
        }
        let busy =
            "<!--# set var=\"a\" value=\"b\" -->".repeat(settings.work.try_into().unwrap_or(0));
        fs::write(files.join("work"), format!("{busy}done\n"))?;
        let mut words = Vec::new();
        if settings.is_urgent {
            words.extend(["nice", "-n", "-20"].map(str::to_owned));
        }
        if let Some(core) = settings.core {
            words.extend(["taskset".to_owned(), "-c".to_owned(), core.to_string()]);
        }
        words.extend(all_files());
        words.push("nginx".to_owned());
        let mut words = words.iter();
        let mut nginx = command(words.next().map_or("nginx", String::as_str));
        nginx.args(words);
        Ok(Self {
            running: web::nginx(&mut nginx, directory, &text(directory, settings, listen))?,
            directory: directory.to_path_buf(),
        })
    }

    /// Puts a file where all paths find it.
    ///
    /// # Errors
    /// The disk's.
    pub fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        fs::write(self.directory.join("files").join(name), bytes)
    }

    /// The requests that it has answered, in the order of their ends.
    #[must_use]
    pub fn visits(&self) -> Vec<Visit> {
        let text = fs::read_to_string(self.directory.join("access.log")).unwrap_or_default();
        log::read(&text)
    }

    /// Its process.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.running.id()
    }
}

/// How many files a process may open that asks for as many as it can have: the hard limit of this one.
#[must_use]
pub fn most_files() -> u64 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let hard = |line: &str| {
        let line = line.strip_prefix("Max open files")?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    limits.lines().find_map(hard).unwrap_or(u64::MAX)
}

/// Words that give the program behind them all files that it may have. nginx's own setting for that is
/// one of its workers, and it runs without.
fn all_files() -> [String; 4] {
    let script = r#"ulimit -n "$(ulimit -H -n)"; exec "$@""#;
    ["sh", "-c", script, "sh"].map(str::to_owned)
}

fn page() -> String {
    let [style, script, one, two] = EMBEDDED;
    format!(
        "<!doctype html>\n<html><head><title>A page</title>\n\
         <link rel=\"stylesheet\" href=\"{style}\">\n<script src=\"{script}\"></script>\n</head>\n\
         <body><p>Text, and <a href=\"/other\">a link that nobody follows</a>.</p>\n\
         <img src=\"{one}\" alt=\"one\"><img src='{two}' alt='two'>\n</body></html>\n"
    )
}

fn text(directory: &Path, settings: &Settings, listen: &[String]) -> String {
    let shared = if settings.shares_ports {
        " reuseport"
    } else {
        ""
    };
    let listen: String = listen
        .iter()
        .map(|at| format!("listen {at}{shared}; "))
        .collect();
    let at = directory.display();
    let log = if settings.has_log {
        format!("access_log {at}/access.log visit")
    } else {
        "access_log off".to_owned()
    };
    let format = log::FORMAT;
    let temporary = web::temporary_paths(directory);
    let connections = settings.connections;
    let small = "s".repeat(SMALL);
    // A server-side include could change the length, so nginx does not announce it.
    format!(
        "user root root; daemon off; master_process off; pid {at}/nginx.pid;
        events {{ worker_connections {connections}; multi_accept on; }}
        http {{
            log_format visit '{format}';
            {log}; sendfile on; tcp_nopush on;
            keepalive_timeout 600; keepalive_requests 1000000000;
            default_type text/html;
            client_header_buffer_size 1k; connection_pool_size 256; request_pool_size 1k;
            {temporary}
            server {{
                {listen}
                root {at}/files;
                location = /small {{ return 200 \"{small}\"; }}
                location = /moved {{ return 302 /small; }}
                location = /broken {{ return 500; }}
                location = /upload {{ client_max_body_size 0; return 200 \"stored\\n\"; }}
                location = /work {{ ssi on; ssi_types *; }}
                location /chunked/ {{ alias {at}/files/; ssi on; ssi_types *; }}
                location /close/ {{ alias {at}/files/; keepalive_timeout 0; }}
                location /slow/ {{ alias {at}/files/; limit_rate 20k; }}
            }}
        }}"
    )
}
