//! What the tests of the whole binary share.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "each test binary uses a part; a helper that fails is a failed test"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::{Source, SourceEvent};
use linkweir_testkit::capture_writer::{CapturedFrame, PcapVariant, pcap};
use linkweir_testkit::ran;
pub use linkweir_testkit::ran::{Ran, ended, skipped};
use linkweir_wire::LinkType;
use serde_json::Value;

/// The binary, with nothing of the surroundings that changes what it prints.
pub fn linkweir() -> Command {
    ran::command(env!("CARGO_BIN_EXE_linkweir"))
}

/// Runs the binary with words; paths and texts alike.
pub fn run<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Ran {
    ended(linkweir().args(words).output().unwrap())
}

/// Runs `linkweir http -q -r PATH` with further words.
pub fn http(path: &Path, words: &[&str]) -> Ran {
    ended(
        linkweir()
            .args(["http", "-q", "-r"])
            .arg(path)
            .args(words)
            .output()
            .unwrap(),
    )
}

/// Runs `linkweir http -q -r -` with these bytes on standard input.
pub fn http_stdin(bytes: &[u8], words: &[&str]) -> Ran {
    let mut child = linkweir()
        .args(["http", "-q", "-r", "-"])
        .args(words)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let ran = ended(child.wait_with_output().unwrap());
    // A run that stops early does not read the rest.
    drop(writer.join().unwrap());
    ran
}

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/captures")
}

/// The bundled capture.
pub fn demo() -> PathBuf {
    captures().join("nginx-demo.pcap.gz")
}

/// What is true of the bundled capture.
pub fn demo_truth() -> Value {
    let text = std::fs::read_to_string(captures().join("nginx-demo.truth.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The frames of the bundled capture.
pub fn demo_frames() -> Vec<CapturedFrame> {
    frames_of(&demo())
}

/// The frames of a capture without faults.
pub fn frames_of(path: &Path) -> Vec<CapturedFrame> {
    let inputs = [Input::from(path)];
    let mut source = CaptureFiles::open(&inputs, ReadOptions::default()).unwrap();
    let mut frames = Vec::new();
    loop {
        match source.next_event().unwrap() {
            SourceEvent::Batch(batch) => frames.extend(batch.frames().map(|f| CapturedFrame {
                timestamp_ns: f.timestamp.as_nanos(),
                interface: 0,
                bytes: f.bytes.to_vec(),
                wire_len: f.wire_len,
            })),
            SourceEvent::Idle => {}
            SourceEvent::Fault(fault) => panic!("{fault:?}"),
            SourceEvent::End => return frames,
        }
    }
}

/// A named pipe in `directory`.
pub fn fifo(directory: &Path) -> PathBuf {
    let path = directory.join("fifo");
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path
}

/// Frames as the pcap that tcpdump would write.
pub fn plain(frames: &[CapturedFrame]) -> Vec<u8> {
    pcap(frames, PcapVariant::usual(LinkType::ETHERNET))
}

/// The summary of a run over a capture, which must end with 0.
pub fn summary(path: &Path, words: &[&str]) -> Value {
    let words: Vec<&str> = words
        .iter()
        .copied()
        .chain(["-w", "/dev/null", "--summary", "-"])
        .collect();
    serde_json::from_str(&http(path, &words).exits(0).stdout).unwrap()
}

/// Whether a program can be started.
pub fn installed(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_err() {
        skipped(&format!("{program} is not installed"));
    }
    found.is_ok()
}

/// Compares with `tests/golden/NAME`; with `LINKWEIR_BLESS=1` writes it.
#[track_caller]
pub fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("LINKWEIR_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if expected != text {
        let at = expected
            .lines()
            .zip(text.lines())
            .take_while(|(a, b)| a == b)
            .count();
        panic!(
            "{name} differs from line {} on (LINKWEIR_BLESS=1 writes it anew):\nexpected: {:?}\n     got: {:?}",
            at + 1,
            expected.lines().nth(at),
            text.lines().nth(at)
        );
    }
}

/// What the kernel says of one thread.
#[derive(Debug, PartialEq, Eq)]
pub struct Thread {
    pub name: String,
    pub uid: u32,
    pub capabilities: u64,
    pub permitted: u64,
    pub no_new_privileges: String,
    pub seccomp: String,
}

/// All threads of a process; none where it has ended.
pub fn threads(process: u32) -> Vec<Thread> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let read = |task: &Path| {
        // One may end meanwhile.
        let text = std::fs::read_to_string(task.join("status")).ok()?;
        let field = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line
                .and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim());
            value.unwrap_or_default().to_owned()
        };
        let uids = field("Uid");
        Some(Thread {
            name: field("Name"),
            uid: uids.split_whitespace().nth(1).unwrap().parse().unwrap(),
            capabilities: u64::from_str_radix(&field("CapEff"), 16).unwrap(),
            permitted: u64::from_str_radix(&field("CapPrm"), 16).unwrap(),
            no_new_privileges: field("NoNewPrivs"),
            seccomp: field("Seccomp"),
        })
    };
    let paths = tasks.filter_map(|task| Some(task.ok()?.path()));
    paths.filter_map(|path| read(&path)).collect()
}
