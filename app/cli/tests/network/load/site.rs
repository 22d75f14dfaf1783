//! A generator and a server, both real programs in namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use linkweir_testkit::gateway::Links;
use linkweir_testkit::load::hostile::{self, Hostile};
use linkweir_testkit::load::log::Visit;
use linkweir_testkit::load::{GENERATOR, Net, Nginx, Place, SERVER, SERVING, Settings};
use linkweir_testkit::netns::{Running, until};
use linkweir_testkit::ran::installed;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::skipped;

/// How long anything may take that takes a moment.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Tells this test program, called once more, to be the hostile server.
const BE_HOSTILE: &str = "LINKWEIR_TEST_HOSTILE";
/// Programs that every test needs.
const NEEDED: [&str; 3] = ["nginx", "ip", "ethtool"];

/// The namespaces, with nginx on the server.
pub(crate) struct Site {
    pub net: Net,
    pub nginx: Nginx,
    directory: TempDir,
}

impl Site {
    /// Opens one with one generator, or says loudly why not; `more` are programs that the test needs
    /// too.
    pub(crate) fn open(more: &[&str]) -> Option<Self> {
        Self::open_with(1, more)
    }

    /// The same with several generators.
    pub(crate) fn open_with(generators: u8, more: &[&str]) -> Option<Self> {
        if let Some(missing) = NEEDED
            .iter()
            .chain(more)
            .find(|program| installed(program).is_none())
        {
            skipped(&format!("{missing} is not installed"));
            return None;
        }
        let links = Links {
            has_offloads: false,
            ..Links::default()
        };
        let net = Net::with(generators, links)
            .map_err(|error| skipped(&error.to_string()))
            .ok()?;
        let directory = tempfile::tempdir().unwrap();
        let nginx = Nginx::start(&net, directory.path(), &Settings::default()).unwrap();
        Some(Self {
            net,
            nginx,
            directory,
        })
    }

    /// A path in the directory of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file, such as a script.
    pub(crate) fn put(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// `linkweir` with words, in a namespace. It runs in the directory of the test.
    pub(crate) fn linkweir(&self, place: Place, words: &[&str]) -> Command {
        let mut command = self.net.command(place, env!("CARGO_BIN_EXE_linkweir"));
        command
            .args(words)
            .env("LC_ALL", "C")
            .current_dir(self.directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A load at a generator; `words` are separated by blanks. Its records and its summary go to files
    /// that begin with `name`. The schedule may lag as it likes: the machine may be busy.
    pub(crate) fn load_command(&self, number: u8, name: &str, url: &str, words: &str) -> Command {
        let (records, summary) = (format!("{name}.jsonl"), format!("{name}.json"));
        let mut all = vec!["load", url, "-i", GENERATOR, "-q", "--lag-limit", "1h"];
        all.extend(["-w", &records, "--summary", &summary]);
        all.extend(words.split_whitespace());
        self.linkweir(Place::Generator(number), &all)
    }

    /// Runs a load of the first generator until it ends, whatever it ends with.
    pub(crate) fn try_load(&self, name: &str, url: &str, words: &str) -> Load {
        let running = Running::start(&mut self.load_command(0, name, url, words)).unwrap();
        self.loaded(name, running)
    }

    /// The same, where it must end well.
    #[track_caller]
    pub(crate) fn load(&self, name: &str, url: &str, words: &str) -> Load {
        let load = self.try_load(name, url, words);
        assert_eq!(load.code, Some(0), "{}", load.stderr);
        load
    }

    /// Waits for the end of a load.
    #[track_caller]
    pub(crate) fn loaded(&self, name: &str, mut running: Running) -> Load {
        let ends = until(PATIENCE, || !matches!(running.ended(), Ok(None)));
        assert!(ends, "{name}: it does not end");
        self.read(name, &running.output().unwrap())
    }

    /// What a load that has ended left behind.
    pub(crate) fn read(&self, name: &str, output: &Output) -> Load {
        let records = fs::read_to_string(self.path(&format!("{name}.jsonl")));
        let summary = fs::read_to_string(self.path(&format!("{name}.json")));
        let lines = records.unwrap_or_default();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        Load {
            code: output.status.code(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            records: lines.collect(),
            summary: summary
                .ok()
                .map_or(Value::Null, |text| serde_json::from_str(&text).unwrap()),
        }
    }

    /// The lines of nginx, once there are so many.
    #[track_caller]
    pub(crate) fn visits(&self, count: usize) -> Vec<Visit> {
        until(PATIENCE, || self.nginx.visits().len() >= count);
        let visits = self.nginx.visits();
        assert_eq!(visits.len(), count);
        visits
    }

    /// The hostile server, once it listens. It is this test program, called once more.
    pub(crate) fn hostile(&self) -> Running {
        let program = std::env::current_exe().unwrap();
        let mut command = self.net.command(Place::Server, program);
        command
            .args(["--exact", "load::site::a_hostile_server", "--nocapture"])
            .env(BE_HOSTILE, "yes")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let running = Running::start(&mut command).unwrap();
        let last = Hostile::ALL.map(Hostile::port).into_iter().max().unwrap();
        assert!(until(PATIENCE, || self.net.is_listening(last)));
        running
    }

    /// Records what passes the server's interface, as tcpdump does.
    pub(crate) fn record(&self, name: &str) -> Running {
        let mut tcpdump = self.net.command(Place::Server, "tcpdump");
        tcpdump
            .args(["-i", SERVING, "-n", "-s", "0", "-B", "65536", "-Z", "root"])
            .args([
                "--time-stamp-precision=nano",
                "-U",
                "--immediate-mode",
                "-w",
            ])
            .arg(self.path(name))
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let running = Running::start(&mut tcpdump).unwrap();
        // It writes the head of the file once it takes packets.
        let begins = || fs::metadata(self.path(name)).is_ok_and(|file| file.len() >= 24);
        assert!(until(PATIENCE, begins), "tcpdump does not begin");
        running
    }
}

/// What a load left behind.
#[derive(Debug)]
pub(crate) struct Load {
    pub code: Option<i32>,
    pub stderr: String,
    /// Its records, in the order of the file.
    pub records: Vec<Value>,
    summary: Value,
}

impl Load {
    /// Something below the key `load` of the summary; parts of the way are separated by dots.
    #[track_caller]
    pub(crate) fn value(&self, way: &str) -> &Value {
        let pointer = format!("/load/{}", way.replace('.', "/"));
        let value = self.summary.pointer(&pointer);
        value.unwrap_or_else(|| panic!("no {way} in {} {}", self.summary, self.stderr))
    }

    #[track_caller]
    pub(crate) fn count(&self, way: &str) -> u64 {
        let value = self.value(way);
        value.as_u64().unwrap_or_else(|| panic!("{way}: {value}"))
    }

    #[track_caller]
    pub(crate) fn number(&self, way: &str) -> f64 {
        let value = self.value(way);
        value.as_f64().unwrap_or_else(|| panic!("{way}: {value}"))
    }

    /// The causes of failure that occurred, with their numbers.
    #[track_caller]
    pub(crate) fn failures(&self) -> BTreeMap<String, u64> {
        let all = self.value("failed").as_object().unwrap();
        let some = all.iter().filter(|(_, count)| **count != 0);
        some.map(|(cause, count)| (cause.clone(), count.as_u64().unwrap()))
            .collect()
    }

    /// All of so many sessions did what their script says, and the records say so too.
    #[track_caller]
    pub(crate) fn completes(&self, sessions: usize) {
        let count = u64::try_from(sessions).unwrap();
        assert_eq!(self.failures(), BTreeMap::new(), "{}", self.stderr);
        let counts = ["planned", "started", "completed"].map(|way| self.count(way));
        assert_eq!(counts, [count; 3]);
        assert_eq!(self.records.len(), sessions);
        for record in &self.records {
            assert_eq!(record["state"], "completed", "{record}");
        }
        let numbers: BTreeSet<u64> = self
            .records
            .iter()
            .map(|one| number(one, "session"))
            .collect();
        assert_eq!(numbers, (0..count).collect());
    }

    /// Records by the address and port of the client.
    #[track_caller]
    pub(crate) fn by_socket(&self) -> BTreeMap<SocketAddr, &Value> {
        let all: BTreeMap<_, _> = self.records.iter().map(|one| (socket(one), one)).collect();
        assert_eq!(all.len(), self.records.len(), "a socket was used twice");
        all
    }
}

/// A number of a record.
#[track_caller]
pub(crate) fn number(record: &Value, field: &str) -> u64 {
    let value = &record[field];
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no number {field} in {record}"))
}

/// The client's address and port in a record.
#[track_caller]
pub(crate) fn socket(record: &Value) -> SocketAddr {
    let address: IpAddr = record["client_ip"].as_str().unwrap().parse().unwrap();
    let port = u16::try_from(number(record, "client_port")).unwrap();
    SocketAddr::new(address, port)
}

/// The URL of something on the server.
pub(crate) fn url(path: &str) -> String {
    at(SERVER, path)
}

/// The same at another of its addresses.
pub(crate) fn at(server: IpAddr, path: &str) -> String {
    format!("http://{}{path}", SocketAddr::new(server, 80))
}

/// Not a test: the hostile server, when [`Site::hostile`] has called this program once more.
#[test]
fn a_hostile_server() {
    if std::env::var_os(BE_HOSTILE).is_some() {
        hostile::serve(SERVER).unwrap();
    }
}
