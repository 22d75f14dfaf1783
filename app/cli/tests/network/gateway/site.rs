//! A gateway between clients and servers, all of them real programs in namespaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use linkweir_testkit::gateway::{Net, Nginx, Place, SERVER, client};
use linkweir_testkit::netns::{Running, until};
use linkweir_testkit::peers;
use linkweir_testkit::ran::installed;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::skipped;

/// How long anything may take that takes a moment.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The words of a peer, apart by [`APART`]; see [`a_peer`].
const PEER: &str = "LINKWEIR_TEST_PEER";
const APART: &str = "\u{1f}";
/// curl's code for a connection that was reset while it received.
pub(crate) const CURL_RESET: i32 = 56;
/// curl's code for its own time limit.
pub(crate) const CURL_TIME: i32 = 28;
/// Programs that every test needs.
const NEEDED: [&str; 5] = ["nginx", "curl", "iptables", "ip6tables", "tc"];

/// The three namespaces, with nginx on the server.
pub(crate) struct Site {
    pub net: Net,
    pub nginx: Nginx,
    directory: TempDir,
}

impl Site {
    /// Opens one, or says loudly why not; `more` are programs that the test needs too.
    pub(crate) fn open(more: &[&str]) -> Option<Self> {
        if let Some(missing) = NEEDED
            .iter()
            .chain(more)
            .find(|program| installed(program).is_none())
        {
            skipped(&format!("{missing} is not installed"));
            return None;
        }
        let net = Net::new()
            .map_err(|error| skipped(&error.to_string()))
            .ok()?;
        let probe = ["-t", "mangle", "-A", "FORWARD", "-j", "NFQUEUE"];
        if let Err(error) = net.must(Place::Gateway, "iptables", &probe) {
            skipped(&format!("packet queues: {error}"));
            return None;
        }
        let probe = ["-t", "mangle", "-D", "FORWARD", "-j", "NFQUEUE"];
        net.must(Place::Gateway, "iptables", &probe).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let nginx = Nginx::start(&net, directory.path()).unwrap();
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

    /// A directory of that name, without what was in one before.
    pub(crate) fn empty(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Writes a file that peers may send.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// curl at a client's address; what comes goes to `NAME` in the directory, which it gives.
    pub(crate) fn curl(&self, number: u8, url: &str, name: &str, words: &[&str]) -> (i32, PathBuf) {
        let out = self.path(name);
        let mut curl = self.curl_command(number, url, &out);
        let status = curl.args(words).status().unwrap();
        (status.code().unwrap(), out)
    }

    pub(crate) fn curl_command(&self, number: u8, url: &str, out: &Path) -> Command {
        drop(fs::remove_file(out));
        let mut curl = self.net.command(Place::Client, "curl");
        curl.args(["-s", "-f", "-g", "-k", "-m", "15", "-o"])
            .arg(out)
            .stdout(Stdio::null());
        if !url.contains('[') {
            curl.args(["--interface", &client(number).to_string()]);
        }
        curl.arg(url);
        curl
    }

    /// A peer of `linkweir_testkit::peers`. It is this test program, called once more.
    pub(crate) fn peer(&self, place: Place, words: &[&str]) -> Command {
        let mut command = self.net.command(place, std::env::current_exe().unwrap());
        command
            .args(["--exact", "gateway::site::a_peer", "--nocapture"])
            .env(PEER, words.join(APART))
            .current_dir(self.directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// A peer that runs beside the test.
    pub(crate) fn serve(&self, place: Place, words: &[&str]) -> Running {
        Running::start(&mut self.peer(place, words)).unwrap()
    }

    /// A peer at the client, until it ends; gives its code and what it said.
    pub(crate) fn fetch(&self, words: &[&str]) -> (u8, String) {
        ended(&self.start(words).output().unwrap())
    }

    /// A peer at the client whose code and words are wanted later.
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        let mut peer = self.peer(Place::Client, words);
        Running::start(peer.stdout(Stdio::piped())).unwrap()
    }

    /// `linkweir gateway` with words, in the gateway.
    pub(crate) fn linkweir(&self, words: &[&str]) -> Command {
        let mut command = self
            .net
            .command(Place::Gateway, env!("CARGO_BIN_EXE_linkweir"));
        command
            .arg("gateway")
            .args(words)
            .env("LC_ALL", "C")
            .current_dir(self.directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Writes a configuration: these rules, what else `more` has, and where everything is.
    pub(crate) fn configure(&self, name: &str, policy: &str) -> String {
        let at = self.directory.path().display();
        for directory in ["record", "quarantine"] {
            fs::create_dir_all(self.path(directory)).unwrap();
        }
        // What a test says of [gateway] itself comes first in its text.
        let (own, rest) = policy.split_once('[').map_or((policy, ""), |(own, _)| {
            (own, policy.get(own.len()..).unwrap_or_default())
        });
        let text = format!(
            "[gateway]\nqueues = 2\ninterfaces = [\"lan0\", \"wan0\"]\n\
             control = \"{at}/gateway.sock\"\n{own}\n\
             [record]\ndirectory = \"{at}/record\"\nquarantine = \"{at}/quarantine\"\n{rest}\n"
        );
        let path = self.put(name, text.as_bytes());
        path.display().to_string()
    }

    /// Installs the rules and starts the gateway; returns when its queues are bound.
    pub(crate) fn gateway(&self, policy: &str) -> Gateway<'_> {
        self.gateway_with(policy, &[])
    }

    /// The same with more words for `run`.
    pub(crate) fn gateway_with(&self, policy: &str, words: &[&str]) -> Gateway<'_> {
        self.gateway_changed(policy, |text| text, words)
    }

    /// The same with the text of the configuration changed once it is whole.
    pub(crate) fn gateway_changed(
        &self,
        policy: &str,
        change: impl FnOnce(String) -> String,
        words: &[&str],
    ) -> Gateway<'_> {
        let config = self.configure("gateway.toml", policy);
        let text = change(fs::read_to_string(&config).unwrap());
        fs::write(&config, text).unwrap();
        let up = self.linkweir(&["up", "--config", &config]).output();
        succeeded("up", &up.unwrap());
        let mut gateway = Gateway {
            site: self,
            running: self.run(&config, "events.jsonl", words),
            config,
        };
        gateway.wait();
        gateway
    }

    pub(crate) fn run(&self, config: &str, events: &str, words: &[&str]) -> Running {
        drop(fs::remove_file(self.path(events)));
        let first = ["run", "--config", config, "-q", "-w", events];
        Running::start(self.linkweir(&first).args(words)).unwrap()
    }
}

/// A gateway that runs.
pub(crate) struct Gateway<'a> {
    site: &'a Site,
    pub running: Running,
    pub config: String,
}

impl Gateway<'_> {
    fn wait(&mut self) {
        let mut has_ended = false;
        let is_bound = until(PATIENCE, || {
            has_ended = !matches!(self.running.ended(), Ok(None));
            has_ended || self.site.net.queues().len() >= 2
        });
        assert!(!has_ended, "{:?}", self.running);
        assert!(
            is_bound,
            "{}",
            self.site.net.table("netfilter/nfnetlink_queue")
        );
    }

    /// How many packets the kernel has queued so far.
    pub(crate) fn queued(&self) -> u64 {
        let queues = self.site.net.queues();
        queues.iter().map(|queue| queue.packets).sum()
    }

    /// Its policy is another one from now on.
    pub(crate) fn reload(&self, policy: &str) {
        self.site.configure("gateway.toml", policy);
        let words = ["reload", "--config", &self.config];
        succeeded("reload", &self.site.linkweir(&words).output().unwrap());
    }

    /// What `status` says.
    pub(crate) fn status(&self) -> String {
        self.status_with(&[])
    }

    /// The same with more words.
    pub(crate) fn status_with(&self, words: &[&str]) -> String {
        let first = ["status", "--config", &self.config];
        let output = self.site.linkweir(&first).args(words).output().unwrap();
        succeeded("status", &output);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Ends it and takes its rules out; gives its events. No packet was lost to the queue.
    pub(crate) fn end(self) -> Events {
        for queue in self.site.net.queues() {
            assert_eq!((queue.dropped, queue.user_dropped), (0, 0), "{queue:?}");
        }
        let (code, said, events) = self.ended();
        assert_eq!(code, 0, "gateway run: {said}");
        events
    }

    /// Ends it and takes its rules out; gives its exit code, what it said and its events.
    pub(crate) fn ended(self) -> (i32, String, Events) {
        let output = self.running.finish().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let words = ["down", "--config", &self.config];
        succeeded("down", &self.site.linkweir(&words).output().unwrap());
        let text = fs::read_to_string(self.site.path("events.jsonl")).unwrap_or_default();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let code = output.status.code().unwrap_or(-1);
        (code, said, Events(events.collect()))
    }
}

/// The records of a run.
pub(crate) struct Events(pub Vec<Value>);

impl Events {
    /// Those of a kind.
    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        let is_it = |event: &&Value| event["event"] == kind;
        self.0.iter().filter(is_it).collect()
    }

    /// Exactly one of a kind where a field has this value.
    #[track_caller]
    pub(crate) fn one(&self, kind: &str, field: &str, value: &str) -> &Value {
        let events = self.of(kind);
        let mut found = events.iter().filter(|event| event[field] == value);
        let (first, second) = (found.next(), found.next());
        assert!(
            second.is_none(),
            "two {kind} with {field} {value}: {events:#?}"
        );
        first.unwrap_or_else(|| panic!("no {kind} with {field} {value}: {:#?}", self.0))
    }

    /// The application and the action of every decision.
    pub(crate) fn decisions(&self) -> Vec<(&str, &str)> {
        let text = |event: &'static str| event;
        let [application, action] = ["application", "action"].map(text);
        self.of("decided")
            .iter()
            .map(|event| {
                let text = |field: &str| event[field].as_str().unwrap_or_default();
                (text(application), text(action))
            })
            .collect()
    }
}

#[track_caller]
fn succeeded(what: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert_eq!(code, Some(0), "gateway {what}: {said}");
}

/// The code and the words of a peer.
pub(crate) fn ended(output: &Output) -> (u8, String) {
    let code = output
        .status
        .code()
        .and_then(|code| u8::try_from(code).ok());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (code.unwrap_or(u8::MAX), said)
}

/// The address of a port of the server.
pub(crate) fn at(port: u16) -> String {
    format!("{SERVER}:{port}")
}

/// The URL of something on the server.
pub(crate) fn url(path: &str) -> String {
    format!("http://{SERVER}/{path}")
}

/// Bytes without a pattern that a scanner or a codec would like; the same every time.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[track_caller]
pub(crate) fn same(out: &Path, bytes: &[u8]) {
    let came = fs::read(out).unwrap_or_default();
    let common = came.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    let (came, sent) = (came.len(), bytes.len());
    assert!(
        came == sent && common == sent,
        "{}: {came} bytes of {sent}, the first {common} are the same",
        out.display()
    );
}

/// The SHA-256 of bytes in hexadecimal digits, as another program has it.
pub(crate) fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().next().unwrap().to_owned()
}

/// How long something takes.
#[expect(clippy::disallowed_methods, reason = "programs take time of the clock")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begin = Instant::now();
    let result = work();
    (begin.elapsed(), result)
}

/// Lets others go on.
#[expect(
    clippy::disallowed_methods,
    reason = "another process has no clock of ours"
)]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// The tests run peers in namespaces as processes of their own; this one, with words for it, is such a
/// process. Without, it is a test that wrong words have a code of their own.
#[test]
fn a_peer() {
    let words = std::env::var(PEER).unwrap_or_default();
    let words: Vec<String> = words.split(APART).map(str::to_owned).collect();
    let code = peers::run(&words);
    if words.len() > 1 {
        #[expect(clippy::exit, reason = "the code is what the test wants to know")]
        std::process::exit(code.into());
    }
    assert_eq!(code, peers::USAGE);
}
