//! Runs that are ended from outside.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{demo_frames, ended, fifo, http, linkweir, plain};
use tempfile::{TempDir, tempdir};

/// A run that has read some packets from a FIFO that stays open.
struct Waiting {
    directory: TempDir,
    child: Child,
    fifo: std::fs::File,
}

const PACKETS: usize = 1500;

/// Lets the child get to what it was sent.
#[expect(
    clippy::disallowed_methods,
    reason = "another process has no clock of ours"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(300));
}

fn start(words: &[&str]) -> Waiting {
    let directory = tempdir().unwrap();
    let path = fifo(directory.path());
    let child = linkweir()
        .current_dir(directory.path())
        .args(["http", "-r", "fifo"])
        .args(words)
        .spawn()
        .unwrap();
    let mut fifo = OpenOptions::new().write(true).open(&path).unwrap();
    fifo.write_all(&plain(&demo_frames()[..PACKETS])).unwrap();
    pause();
    Waiting {
        directory,
        child,
        fifo,
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .arg(name)
        .arg(child.id().to_string())
        .status();
    assert!(status.unwrap().success());
}

/// The records of the packets that were sent.
fn expected(directory: &Path) -> String {
    let path = directory.join("expected.pcap");
    std::fs::write(&path, plain(&demo_frames()[..PACKETS])).unwrap();
    http(&path, &["--format", "jsonl"]).exits(0).stdout
}

#[test]
fn asked_to_end_it_writes_everything() {
    for name in ["-TERM", "-INT"] {
        let Waiting {
            directory,
            child,
            fifo,
        } = start(&["-w", "out.jsonl", "--summary", "s.json"]);
        assert!(
            !directory.path().join("out.jsonl").exists(),
            "not complete yet"
        );
        signal(&child, name);
        let ran = ended(child.wait_with_output().unwrap()).exits(0);
        drop(fifo);
        assert!(ran.stderr.contains("1,500 packets"), "{}", ran.stderr);
        let records = std::fs::read_to_string(directory.path().join("out.jsonl")).unwrap();
        assert!(records == expected(directory.path()), "{name}");
        let summary = std::fs::read_to_string(directory.path().join("s.json")).unwrap();
        assert!(summary.contains("\"packets\": 1500"));
    }
}

#[test]
fn asked_to_end_while_standard_input_stays_open() {
    let directory = tempdir().unwrap();
    let mut child = linkweir()
        .args(["http", "-q", "-r", "-", "--format", "jsonl"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&plain(&demo_frames()[..PACKETS])).unwrap();
    pause();
    signal(&child, "-TERM");
    let ran = ended(child.wait_with_output().unwrap()).exits(0);
    drop(stdin);
    assert!(ran.stdout == expected(directory.path()));
}

#[test]
fn asked_to_end_before_anything_came() {
    let mut child = linkweir()
        .args(["http", "-q", "-r", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    pause();
    signal(&child, "-INT");
    let ran = ended(child.wait_with_output().unwrap()).exits(0);
    drop(stdin);
    assert_eq!(ran.stdout, "");
}

/// A pseudo-terminal in which a command line of the shell runs, and what it shows until it is closed.
struct Terminal {
    script: Child,
    shown: std::thread::JoinHandle<Vec<u8>>,
}

impl Terminal {
    fn open(directory: &Path, line: &str) -> Self {
        let mut script = Command::new("script")
            .current_dir(directory)
            .env("TERM", "xterm")
            .args(["-qec", line, "/dev/null"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // A terminal that nobody reads from takes no more after a while.
        let mut screen = script.stdout.take().unwrap();
        let shown = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            screen.read_to_end(&mut bytes).unwrap();
            bytes
        });
        Self { script, shown }
    }

    /// What it has shown when the command has ended.
    fn shown(mut self) -> String {
        assert!(self.script.wait().unwrap().success());
        String::from_utf8(self.shown.join().unwrap()).unwrap()
    }

    /// Its window is closed.
    fn hang_up(mut self) {
        self.script.kill().unwrap();
        self.script.wait().unwrap();
        self.shown.join().unwrap();
    }
}

/// What a terminal shows of a command that runs for a second, whose records go to `destination`.
fn on_a_terminal(command: &str, destination: &str) -> String {
    let directory = tempdir().unwrap();
    let path = fifo(directory.path());
    let program = linkweir();
    let program = program.get_program().to_str().unwrap();
    let line = format!("{program} {command} -r fifo -w {destination}");
    let terminal = Terminal::open(directory.path(), &line);
    let bytes = plain(&demo_frames());
    let mut fifo = OpenOptions::new().write(true).open(&path).unwrap();
    for part in bytes.chunks(bytes.len() / 5) {
        fifo.write_all(part).unwrap();
        pause();
    }
    drop(fifo);
    terminal.shown()
}

/// The records in the files of a directory.
fn records_in(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .map(|path| std::fs::read_to_string(path).unwrap().lines().count())
        .sum()
}

/// A run with the live view, and these words, whose terminal has gone away after some packets: its
/// process, directory and the FIFO it reads.
fn without_its_terminal(words: &str) -> (u32, TempDir, std::fs::File) {
    let directory = tempdir().unwrap();
    let path = fifo(directory.path());
    let program = linkweir();
    let program = program.get_program().to_str().unwrap();
    let line = format!("echo $$ > pid; exec {program} http -r fifo --top {words}");
    let terminal = Terminal::open(directory.path(), &line);
    let mut fifo = OpenOptions::new().write(true).open(&path).unwrap();
    fifo.write_all(&plain(&demo_frames()[..PACKETS])).unwrap();
    pause();
    terminal.hang_up();
    let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap();
    (pid.trim().parse().unwrap(), directory, fifo)
}

/// State of a process that is not a child of ours, and the ticks of a processor it has used.
pub(crate) fn state_of(pid: u32) -> Option<(String, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| -> Option<u64> { fields.get(at)?.parse().ok() };
    Some(((*fields.first()?).to_owned(), ticks(11)? + ticks(12)?))
}

/// Whether a process ends in some seconds; one that does not is killed.
fn ends(pid: u32) -> bool {
    for _ in 0..40 {
        match state_of(pid) {
            None => return true,
            // Nobody may be there to ask how it ended.
            Some((state, _)) if state == "Z" => return true,
            Some(_) => pause(),
        }
    }
    Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status()
        .unwrap();
    false
}

#[test]
fn a_view_ends_with_its_terminal_and_the_run_with_it() {
    let (pid, _directory, fifo) = without_its_terminal("");
    // The FIFO is still open: the input has not ended.
    assert!(ends(pid));
    drop(fifo);
}

#[test]
fn a_run_that_writes_goes_on_without_its_terminal() {
    let (pid, directory, mut fifo) = without_its_terminal("-w out.jsonl");
    pause();
    let before = state_of(pid).unwrap().1;
    for _ in 0..4 {
        pause();
    }
    let (state, after) = state_of(pid).unwrap();
    assert_ne!(state, "Z", "it has ended");
    // Of 120: a view that reads from a terminal that is gone uses a processor alone.
    assert!(after - before < 30, "{} ticks", after - before);
    let rest = plain(&demo_frames()[PACKETS..]);
    fifo.write_all(&rest[24..]).unwrap();
    drop(fifo);
    assert!(ends(pid));
    assert_eq!(records_in(directory.path()), 800);
}

#[test]
fn records_on_a_terminal_have_no_progress_between_them() {
    // What a bar is drawn with.
    assert!(on_a_terminal("http", "records.txt").contains('\u{1b}'));
    let shown = on_a_terminal("http --format text", "-");
    assert_eq!(shown.matches("|GET|").count(), 636, "{shown}");
    for shown in [
        shown,
        on_a_terminal("flows --format text", "-"),
        on_a_terminal("halves", "-"),
    ] {
        assert!(shown.contains("10.80.0."), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}

#[test]
fn records_on_a_terminal_are_a_table() {
    let shown = on_a_terminal("http", "-");
    assert!(shown.contains("client → server"), "{shown}");
    assert!(shown.contains("\u{1b}[32m200\u{1b}[0m"), "{shown}");
    assert_eq!(shown.matches("  GET      ").count(), 636, "{shown}");
    assert!(!shown.contains('|'), "{shown}");
}

#[test]
fn the_page_of_a_file_stays_until_it_is_asked_to_end() {
    let directory = tempdir().unwrap();
    let mut child = linkweir()
        .current_dir(directory.path())
        .args(["http", "-w", "out.jsonl", "--summary", "s.json", "-r"])
        .arg(crate::common::demo())
        .args(["--console", "127.0.0.1:0"])
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let stays = said.map(Result::unwrap);
    let stays = stays.skip_while(|line| !line.contains("stays at"));
    let line = stays.take(1).next().unwrap();
    // Everything is there by then.
    assert_eq!(records_in(directory.path()), 800);
    assert!(directory.path().join("s.json").exists());
    pause();
    let address = line.split("http://").nth(1).unwrap();
    let address = address.split('/').next().unwrap();
    assert!(std::net::TcpStream::connect(address).is_ok(), "{line}");
    assert_eq!(child.try_wait().unwrap(), None);
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn killed_it_leaves_no_finished_file() {
    let Waiting {
        directory,
        mut child,
        fifo,
    } = start(&["-q", "-w", "out.jsonl"]);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "by a signal");
    drop(fifo);
    assert!(!directory.path().join("out.jsonl").exists());
    let partial = std::fs::read_to_string(directory.path().join(".out.jsonl.partial")).unwrap();
    assert!(expected(directory.path()).starts_with(&partial));
    assert!(
        partial.is_empty() || partial.ends_with('\n'),
        "whole records"
    );
}

#[test]
fn records_of_a_slow_input_are_seen_while_it_runs() {
    let Waiting {
        directory,
        mut child,
        fifo,
    } = start(&["-q", "--format", "jsonl"]);
    // The FIFO is still open: these lines come before its end.
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    assert!(expected(directory.path()).starts_with(&first));
    drop(fifo);
    let rest: Vec<String> = stdout.lines().map(Result::unwrap).collect();
    assert_eq!(first + &rest.join("\n") + "\n", expected(directory.path()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn asked_for_a_line_of_progress_and_for_new_files_it_goes_on() {
    let Waiting {
        directory,
        child,
        mut fifo,
    } = start(&["-w", "out.jsonl"]);
    signal(&child, "-USR1");
    signal(&child, "-HUP");
    pause();
    let all = demo_frames();
    let rest = plain(&all[PACKETS..]);
    // Behind the header, which was sent.
    fifo.write_all(&rest[24..]).unwrap();
    drop(fifo);
    let ran = ended(child.wait_with_output().unwrap()).exits(0);
    assert!(ran.stderr.contains("packets"), "{}", ran.stderr);
    assert_eq!(records_in(directory.path()), 800);
}
