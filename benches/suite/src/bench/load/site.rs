//! The two namespaces, nginx in one of them, and what loads it in the other.

use super::Plan;
use crate::bench::harness::proc::{Clock, memory};
use anyhow::{Context as _, Result};
use linkweir_testkit::gateway::Links;
use linkweir_testkit::load::{GENERATOR, Net, Nginx, Place, SERVER, SERVING, Settings, most_files};
use linkweir_testkit::netns::Running;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The core of the server, and that of what loads it.
pub(super) const SERVER_CORE: usize = 0;
pub(super) const CLIENT_CORE: usize = 1;
/// Connections that nginx may hold.
const CONNECTIONS: u32 = 300_000;
/// Files of a server that are no connections.
const OTHER_FILES: u64 = 64;
/// Between two looks at what runs.
const LOOK: Duration = Duration::from_millis(20);

/// Where it is measured.
#[derive(Debug)]
pub(super) struct Site {
    // Ends before its namespace.
    nginx: Nginx,
    net: Net,
    dir: PathBuf,
    settings: Settings,
    is_urgent: bool,
}

/// Parts of one core.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Busy {
    /// The server's core, with what interrupts do there.
    pub(super) server: f64,
    /// The other.
    pub(super) client: f64,
    /// The server's process, wherever it ran.
    pub(super) process: f64,
}

/// How a program ended, and what it took.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    /// Its exit code.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// The cores while it ran.
    pub(super) busy: Busy,
    /// Its peak resident memory, bytes.
    pub(super) memory: u64,
}

impl Site {
    /// Makes the namespaces, so many of generators, and starts nginx; `dir` is in memory, `work` is what nginx has
    /// to do for an answer of `/work`.
    pub(super) fn new(plan: &Plan, dir: &Path, work: u32, generators: u8) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        let links = Links {
            has_offloads: !plan.is_cable,
            ..Links::default()
        };
        let net = Net::with(generators, links)?;
        // The kernel's default cuts every backlog to 4,096.
        net.set("net.core.somaxconn=65535")?;
        if plan.is_steered {
            net.steer(Place::Server, SERVING, SERVER_CORE)?;
            net.steer(Place::Generator(0), GENERATOR, CLIENT_CORE)?;
        }
        let settings = Settings {
            has_log: false,
            core: Some(u16::try_from(SERVER_CORE)?),
            is_urgent: plan.is_urgent,
            connections: CONNECTIONS,
            shares_ports: true,
            work,
        };
        let nginx = Nginx::start(&net, dir, &settings).context("start nginx")?;
        Ok(Self {
            settings,
            nginx,
            net,
            dir: dir.to_path_buf(),
            is_urgent: plan.is_urgent,
        })
    }

    pub(super) const fn net(&self) -> &Net {
        &self.net
    }

    /// Servers beside the first, on its core and at its ports, so that all together can hold so many
    /// connections: a process may not open more files than its limit.
    pub(super) fn more_servers(&self, connections: u64) -> Result<Vec<Nginx>> {
        // The kernel distributes connections by a hash: a tenth more than one's share is never reached.
        let each = most_files().saturating_sub(OTHER_FILES).max(1);
        let servers = (connections + connections / 10).div_ceil(each);
        let start = |number: u64| {
            let dir = self.dir.join(format!("server{number}"));
            Nginx::start(&self.net, &dir, &self.settings).context("start another nginx")
        };
        (1..servers).map(start).collect()
    }

    /// For what belongs to it; in memory.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The address of something on the server.
    pub(super) fn url(path: &str) -> String {
        format!("http://{SERVER}{path}")
    }

    /// A command at the generator, on the core for it.
    pub(super) fn client(&self, program: impl AsRef<OsStr>) -> Command {
        self.client_at(0, CLIENT_CORE, program)
    }

    fn client_at(&self, number: u8, core: usize, program: impl AsRef<OsStr>) -> Command {
        let generator = Place::Generator(number);
        let core = core.to_string();
        let mut command = if self.is_urgent && !self.net.is_unprivileged() {
            // Not with real-time priority: the kernel takes such a program off its core for a
            // twentieth of each second, and a schedule cannot be kept meanwhile.
            let mut nice = self.net.command(generator, "nice");
            nice.args(["-n", "-20", "taskset"]);
            nice
        } else {
            self.net.command(generator, "taskset")
        };
        command.args(["-c", &core]).arg(program);
        command
    }

    /// `linkweir load` with a URL; the interface is said.
    pub(super) fn linkweir(&self, binary: &Path, url: &str) -> Command {
        self.linkweir_at(0, CLIENT_CORE, binary, url)
    }

    /// The same at one of several generators, on a core.
    pub(super) fn linkweir_at(&self, number: u8, core: usize, binary: &Path, url: &str) -> Command {
        let mut command = self.client_at(number, core, binary);
        command.args(["load", url, "--interface", GENERATOR, "-q"]);
        command
    }

    /// Runs a command until it ends; one that takes longer than `timeout` is an error.
    pub(super) fn run(&self, command: &mut Command, timeout: Duration) -> Result<Ended> {
        let ended = self.run_within(command, timeout)?;
        ended.with_context(|| format!("{command:?} does not end"))
    }

    /// The same; one that takes longer is killed and gives nothing.
    pub(super) fn run_within(
        &self,
        command: &mut Command,
        timeout: Duration,
    ) -> Result<Option<Ended>> {
        let (out, err) = (self.path("stdout"), self.path("stderr"));
        command
            .stdout(File::create(&out)?)
            .stderr(File::create(&err)?);
        let before = Clock::now(&[self.nginx.id()])?;
        let mut running = Running::start(command).context("start what loads")?;
        let mut peak = 0;
        let begin = std::time::Instant::now();
        let status = loop {
            peak = memory(running.id()).map_or(peak, |(_, most)| most.max(peak));
            if let Some(status) = running.ended()? {
                break status;
            }
            if begin.elapsed() > timeout {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        };
        let used = Clock::now(&[self.nginx.id()])?.since(&before);
        let busy = Busy {
            server: used.core(SERVER_CORE),
            client: used.core(CLIENT_CORE),
            process: used.processes_of(SERVER_CORE),
        };
        Ok(Some(Ended {
            code: status.code(),
            stdout: fs::read_to_string(&out)?,
            stderr: fs::read_to_string(&err)?,
            busy,
            memory: peak,
        }))
    }
}
