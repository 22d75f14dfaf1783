//! `linkweir lab` leaves nothing behind, however it ends.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use linkweir_testkit::netns::{Running, until};
use linkweir_testkit::ran::skipped;
use tempfile::TempDir;

use crate::MACHINE;

/// How long the start, the load or the end may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Debian's user without rights.
const NOBODY: u32 = 65534;

/// Who runs the laboratory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Whoever runs the tests.
    Us,
    /// An ordinary user, where we may become one.
    Nobody,
}

/// A laboratory that runs. All its processes have the directory for temporary files in their environment.
struct Lab {
    directory: TempDir,
    running: Running,
    /// What the machine had before.
    before: BTreeSet<String>,
}

/// Interfaces and named namespaces of the machine.
fn machine() -> BTreeSet<String> {
    let devices = fs::read_to_string("/proc/net/dev").unwrap();
    let interfaces = devices.lines().filter_map(|line| line.split_once(':'));
    let namespaces = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    interfaces
        .map(|(name, _)| format!("interface {}", name.trim()))
        .chain(namespaces.map(|entry| format!("namespace {}", entry.file_name().display())))
        .collect()
}

impl Lab {
    /// Starts the scenario `web` as the head of a process group, as a shell does. `None`, and a loud
    /// word, where that user cannot run the binary.
    fn start(who: Who, words: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let binary = &crate::linkweir();
        let mut command = match who {
            Who::Us => Command::new(binary),
            Who::Nobody => {
                if !is_root() {
                    skipped("only root may become another user");
                    return None;
                }
                chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
                let probe = as_nobody(binary).arg("--version").output().unwrap();
                if !probe.status.success() {
                    skipped("an ordinary user cannot run the binary where it is");
                    return None;
                }
                as_nobody(binary)
            }
        };
        let write = |name: &str| File::create(directory.path().join(name)).unwrap();
        command
            .args(["lab", "web", "--no-console", "--rate", "100"])
            .args(words)
            .env("TMPDIR", directory.path())
            .env("HOME", directory.path())
            .current_dir(directory.path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(write("stdout"))
            .stderr(write("stderr"));
        let before = machine();
        let running = Running::start(&mut command).unwrap();
        Some(Self {
            directory,
            running,
            before,
        })
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap()
    }

    /// Its processes: number and command line.
    fn processes(&self) -> Vec<String> {
        let mark = format!("TMPDIR={}", self.directory.path().display());
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| {
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let mut variables = environment.split(|byte| *byte == 0);
            variables.find(|one| *one == mark.as_bytes())?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            Some(format!("{}: {line}", entry.file_name().display()))
        })
        .collect()
    }

    /// Waits until sessions begin; `false`, and a loud word, where the laboratory cannot be.
    fn is_under_load(&mut self) -> bool {
        let came = until(TIMEOUT, || {
            self.read("stderr").contains("sessions: ") || !matches!(self.running.ended(), Ok(None))
        });
        let said = self.read("stderr");
        assert!(came, "no sessions: {said}");
        if self.running.ended().unwrap().is_none() {
            return true;
        }
        assert!(cannot_be(&said), "it ended: {said}");
        skipped(said.trim());
        false
    }

    /// Waits until there is something to measure.
    fn has_measured(&self) {
        const ENOUGH: usize = 300;
        let directories = || fs::read_dir(self.directory.path()).unwrap().flatten();
        let came = until(TIMEOUT, || {
            let logs = directories().map(|entry| fs::read(entry.path().join("web/access.log")));
            let lines = |log: Vec<u8>| log.split(|byte| *byte == b'\n').count();
            logs.flatten().map(lines).sum::<usize>() > ENOUGH
        });
        assert!(came, "no requests: {}", self.read("stderr"));
    }

    fn signal_group(&self, name: &str) {
        let group = format!("-{}", self.running.id());
        let kill = Command::new("kill")
            .args(["-s", name, "--", &group])
            .status();
        assert!(kill.unwrap().success());
    }

    /// Waits for its end, and that nothing is left.
    #[track_caller]
    fn leaves_nothing(&mut self) -> ExitStatus {
        let mut status = None;
        until(TIMEOUT, || {
            status = self.running.ended().unwrap();
            status.is_some()
        });
        let status = status.unwrap_or_else(|| panic!("it goes on: {}", self.read("stderr")));
        let mut added = &machine() - &self.before;
        until(Duration::from_secs(10), || {
            // Somebody else's goes in time, and what comes meanwhile is not ours.
            added = &added & &machine();
            self.processes().is_empty() && self.left().is_empty() && added.is_empty()
        });
        assert_eq!(self.processes(), [""; 0], "processes are left");
        assert_eq!(self.left(), [""; 0], "files are left");
        assert_eq!(added, BTreeSet::new(), "of the machine");
        status
    }

    /// What is in the directory for temporary files beside what we put there.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names
            .filter(|name| name != "stdout" && name != "stderr")
            .collect()
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn as_nobody(binary: &Path) -> Command {
    let id = NOBODY.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]);
    command.arg(binary).current_dir(Path::new("/"));
    command
}

/// Whether it says that this machine has no laboratories.
fn cannot_be(said: &str) -> bool {
    ["not installed", "no network namespaces"]
        .iter()
        .any(|why| said.contains(why))
}

#[test]
fn at_its_end() {
    // Every check is to hold, and beside other laboratories an observer may lose a packet.
    let _alone = MACHINE.write();
    for who in [Who::Us, Who::Nobody] {
        let Some(mut lab) = Lab::start(who, &["--duration", "1s"]) else {
            continue;
        };
        if !lab.is_under_load() {
            continue;
        }
        let status = lab.leaves_nothing();
        let (table, said) = (lab.read("stdout"), lab.read("stderr"));
        assert_eq!(status.code(), Some(0), "{who:?}: {table}{said}");
        assert!(table.contains("\nAll "), "{who:?}: {table}");
        // Whatever is installed is at work, for ordinary users too.
        assert!(table.contains("keyword: caught"), "{who:?}: {table}");
        assert!(said.contains("linkweir: took "), "{who:?}: {said}");
    }
}

#[test]
fn when_a_key_ends_it() {
    let _beside = MACHINE.read();
    for who in [Who::Us, Who::Nobody] {
        let Some(mut lab) = Lab::start(who, &["--duration", "10m"]) else {
            continue;
        };
        if !lab.is_under_load() {
            continue;
        }
        lab.has_measured();
        // Everything of the group hears it, as from a terminal.
        lab.signal_group("INT");
        let status = lab.leaves_nothing();
        let (table, said) = (lab.read("stdout"), lab.read("stderr"));
        // Not all that was to be planted was sent: rows may differ, which is nobody's fault.
        assert_eq!(status.code(), Some(0), "{who:?}: {table}{said}");
        let verdict = table.lines().last().unwrap_or_default();
        assert!(verdict.starts_with("Interrupted: "), "{who:?}: {table}");
        assert!(!table.contains("checks failed"), "{who:?}: {table}");
        let requests = table.lines().find(|line| line.starts_with("requests "));
        assert!(
            requests.is_some_and(|line| line.ends_with("ok")),
            "{who:?}: {table}{said}"
        );
        assert!(table.contains("ended early"), "{who:?}: {table}{said}");
    }
}

#[test]
fn when_a_key_ends_it_before_there_is_anything() {
    let _beside = MACHINE.read();
    let Some(mut lab) = Lab::start(Who::Us, &["--duration", "10m"]) else {
        return;
    };
    let begins = |lab: &Lab| lab.read("stderr").contains("the web server");
    until(TIMEOUT, || {
        begins(&lab) || !matches!(lab.running.ended(), Ok(None))
    });
    if cannot_be(&lab.read("stderr")) {
        return skipped(lab.read("stderr").trim());
    }
    lab.signal_group("INT");
    let status = lab.leaves_nothing();
    let said = lab.read("stderr");
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(
        said.contains("ended before anything was measured"),
        "{said}"
    );
}

#[test]
fn when_it_is_killed() {
    let _beside = MACHINE.read();
    for who in [Who::Us, Who::Nobody] {
        let Some(mut lab) = Lab::start(who, &["--duration", "10m"]) else {
            continue;
        };
        if !lab.is_under_load() {
            continue;
        }
        // nginx, the gateway, both observers and the generator, and who keeps the namespaces.
        let has_all = |lab: &Lab| {
            let all = lab.processes().join("\n");
            let named = ["nginx", " gateway run", " http -i", " flows -i", " load "];
            named.iter().all(|name| all.contains(name)) && !lab.left().is_empty()
        };
        assert!(until(TIMEOUT, || has_all(&lab)), "{:?}", lab.processes());
        lab.running.signal("KILL").unwrap();
        let status = lab.leaves_nothing();
        assert_eq!(status.code(), None, "{who:?}");
    }
}
