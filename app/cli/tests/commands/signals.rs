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
    folder: TempDir,
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
    let folder = tempdir().unwrap();
    let path = fifo(folder.path());
    let child = linkweir()
        .current_dir(folder.path())
        .args(["http", "-r", "fifo"])
        .args(words)
        .spawn()
        .unwrap();
    let mut fifo = OpenOptions::new().write(true).open(&path).unwrap();
    fifo.write_all(&plain(&demo_frames()[..PACKETS])).unwrap();
    pause();
    Waiting {
        folder,
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
fn expected(folder: &Path) -> String {
    let path = folder.join("expected.pcap");
    std::fs::write(&path, plain(&demo_frames()[..PACKETS])).unwrap();
    http(&path, &["--format", "jsonl"]).exits(0).stdout
}

#[test]
fn asked_to_end_it_writes_everything() {
    for name in ["-TERM", "-INT"] {
        let Waiting {
            folder,
            child,
            fifo,
        } = start(&["-w", "out.jsonl", "--summary", "s.json"]);
        assert!(
            !folder.path().join("out.jsonl").exists(),
            "not complete yet"
        );
        signal(&child, name);
        let ran = ended(child.wait_with_output().unwrap()).exits(0);
        drop(fifo);
        assert!(ran.stderr.contains("1,500 packets"), "{}", ran.stderr);
        let records = std::fs::read_to_string(folder.path().join("out.jsonl")).unwrap();
        assert!(records == expected(folder.path()), "{name}");
        let summary = std::fs::read_to_string(folder.path().join("s.json")).unwrap();
        assert!(summary.contains("\"packets\": 1500"));
    }
}

#[test]
fn asked_to_end_while_standard_input_stays_open() {
    let folder = tempdir().unwrap();
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
    assert!(ran.stdout == expected(folder.path()));
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

/// What a terminal shows of a run of a second, whose records go to `destination`.
fn on_a_terminal(destination: &str) -> String {
    let folder = tempdir().unwrap();
    let path = fifo(folder.path());
    let line = format!(
        "{} http -r fifo --format text -w {destination}",
        linkweir().get_program().to_str().unwrap()
    );
    let mut child = Command::new("script")
        .current_dir(folder.path())
        .env("TERM", "xterm")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A terminal that nobody reads from takes no more after a while.
    let mut screen = child.stdout.take().unwrap();
    let shown = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        screen.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let bytes = plain(&demo_frames());
    let mut fifo = OpenOptions::new().write(true).open(&path).unwrap();
    for part in bytes.chunks(bytes.len() / 5) {
        fifo.write_all(part).unwrap();
        pause();
    }
    drop(fifo);
    assert!(child.wait().unwrap().success());
    String::from_utf8(shown.join().unwrap()).unwrap()
}

#[test]
fn records_on_a_terminal_have_no_progress_between_them() {
    // What a bar is drawn with.
    assert!(on_a_terminal("records.txt").contains('\u{1b}'));
    let shown = on_a_terminal("-");
    assert_eq!(shown.matches("|GET|").count(), 636, "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn killed_it_leaves_no_finished_file() {
    let Waiting {
        folder,
        mut child,
        fifo,
    } = start(&["-q", "-w", "out.jsonl"]);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "by a signal");
    drop(fifo);
    assert!(!folder.path().join("out.jsonl").exists());
    let partial = std::fs::read_to_string(folder.path().join(".out.jsonl.partial")).unwrap();
    assert!(expected(folder.path()).starts_with(&partial));
    assert!(
        partial.is_empty() || partial.ends_with('\n'),
        "whole records"
    );
}

#[test]
fn records_of_a_slow_input_are_seen_while_it_runs() {
    let Waiting {
        folder,
        mut child,
        fifo,
    } = start(&["-q", "--format", "jsonl"]);
    // The FIFO is still open: these lines come before its end.
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    assert!(expected(folder.path()).starts_with(&first));
    drop(fifo);
    let rest: Vec<String> = stdout.lines().map(Result::unwrap).collect();
    assert_eq!(first + &rest.join("\n") + "\n", expected(folder.path()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn asked_for_a_line_of_progress_and_for_new_files_it_goes_on() {
    let Waiting {
        folder,
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
    let mut records = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            records += std::fs::read_to_string(path).unwrap().lines().count();
        }
    }
    assert_eq!(records, 800);
}
