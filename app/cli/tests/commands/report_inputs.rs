//! Inputs of `linkweir report` that are damaged, pipes, too long, or ended from outside.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::{Ran, ended, fifo, linkweir};

fn start(directory: &Path, words: &[&str]) -> Child {
    let mut command = linkweir();
    command.arg("report").args(words).current_dir(directory);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    pipes.stderr(Stdio::piped()).spawn().unwrap()
}

fn report(directory: &Path, words: &[&str]) -> Ran {
    ended(start(directory, words).wait_with_output().unwrap())
}

fn transactions(ran: &Ran) -> u64 {
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    found["totals"]["transactions"].as_u64().unwrap()
}

const LINES: &str = "{\"request_ts_ns\":1700000000000000000,\"host\":\"a\",\"status_code\":200}
{\"request_ts_ns\":1700000001000000000,\"host\":\"b\",\"status_code\":200}
{\"request_ts_ns\":1700000002000000000,\"host\":\"a\",\"status_code\":500}
";

#[test]
fn a_damaged_file_does_not_end_the_report_of_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir(at("all")).unwrap();
    std::fs::write(at("all/h.jsonl"), LINES).unwrap();
    // A second name of the same file, and files that end in their heads.
    std::fs::hard_link(at("all/h.jsonl"), at("all/link.jsonl")).unwrap();
    std::fs::write(at("all/cut.jsonl.gz"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01").unwrap();
    std::fs::write(at("all/cut.jsonl.zst"), b"\x28\xb5\x2f\xfd\x04").unwrap();
    let ran = report(directory.path(), &["all", "--summary", "-"]).exits(1);
    assert_eq!(transactions(&ran), 3);
    for name in ["all/cut.jsonl.gz: ", "all/cut.jsonl.zst: "] {
        assert!(ran.stderr.contains(name), "{}", ran.stderr);
    }
    assert!(
        ran.stderr.contains("no record of it was read"),
        "{}",
        ran.stderr
    );
    let _alone = report(directory.path(), &["all/cut.jsonl.gz"]).exits(3);

    let words = ["all/h.jsonl", "--kind", "flow"];
    let ran = report(directory.path(), &words);
    let said = "all/h.jsonl: no records of flow, but of http_transaction";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let words = ["all/h.jsonl", "all/link.jsonl"];
    let ran = report(directory.path(), &words).exits(2);
    assert!(ran.stderr.contains("given twice"), "{}", ran.stderr);
}

#[test]
fn tables_are_bounded_and_none_is_made_twice() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("h.jsonl"), LINES).unwrap();
    let mut words = vec!["h.jsonl", "--summary", "-"];
    words.extend(["--by", "host", "--by", " host , status"].repeat(1000));
    let ran = report(directory.path(), &words).exits(0);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    let tables = found["tables"].as_array().unwrap();
    let by: Vec<&str> = tables.iter().map(|t| t["by"].as_str().unwrap()).collect();
    assert_eq!(by, ["host", "host,status"]);
    let many: Vec<String> = (0..33)
        .map(|bits: u8| {
            let parts = (0..6).map(|bit| {
                if bits >> bit & 1 == 1 {
                    "host"
                } else {
                    "method"
                }
            });
            parts.collect::<Vec<_>>().join(",")
        })
        .collect();
    let words = many.iter().flat_map(|by| ["--by", by]);
    let words: Vec<&str> = std::iter::once("h.jsonl").chain(words).collect();
    let ran = report(directory.path(), &words).exits(2);
    assert!(ran.stderr.contains("at most 32 tables"), "{}", ran.stderr);
}

#[test]
fn pipes_are_read_under_every_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = fifo(directory.path());
    for name in ["-", "/dev/stdin", "/dev/fd/0"] {
        let mut child = start(directory.path(), &[name, "--summary", "-"]);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(LINES.as_bytes()).unwrap();
        drop(stdin);
        let ran = ended(child.wait_with_output().unwrap()).exits(0);
        assert_eq!(transactions(&ran), 3, "{name}");
    }
    let child = start(directory.path(), &["fifo", "--summary", "-"]);
    let mut writer = OpenOptions::new().write(true).open(path).unwrap();
    writer.write_all(LINES.as_bytes()).unwrap();
    drop(writer);
    let ran = ended(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(transactions(&ran), 3);
}

/// Lets the child get to what it was sent.
#[expect(
    clippy::disallowed_methods,
    reason = "another process has no clock of ours"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(200));
}

#[test]
fn asked_to_end_it_leaves_complete_files() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["-", "--records", "-w", "out.jsonl"];
    let mut child = start(directory.path(), &words);
    let mut stdin = child.stdin.take().unwrap();
    let lines = LINES.repeat(2000);
    stdin.write_all(lines.as_bytes()).unwrap();
    pause();
    let status = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
    pause();
    // What comes after the signal wakes it; it may have gone by then.
    let _gone = stdin.write_all(lines.as_bytes());
    drop(stdin);
    let ran = ended(child.wait_with_output().unwrap()).exits(0);
    assert!(ran.stderr.contains("ended by a signal"), "{}", ran.stderr);
    let names = std::fs::read_dir(directory.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["out.jsonl"]);
    let written = std::fs::read_to_string(directory.path().join("out.jsonl")).unwrap();
    let count = written.lines().count();
    assert!((1..12_000).contains(&count), "{count}");
}

#[test]
fn long_lines_take_bounded_memory() {
    const RECORDS: u64 = 100;
    let directory = tempfile::tempdir().unwrap();
    let words = ["-", "--by", "host", "--by", "user_agent", "--summary", "-"];
    let mut child = start(directory.path(), &words);
    let mut stdin = child.stdin.take().unwrap();
    let text = "a".repeat(250_000);
    let line = format!(
        "{{\"request_ts_ns\":1700000000000000000,\"host\":\"{text}\",\"uri\":\"/{text}\",\"user_agent\":\"{text}\"}}\n"
    );
    for _ in 0..RECORDS {
        stdin.write_all(line.as_bytes()).unwrap();
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim().trim_end_matches(" kB");
    let peak: usize = peak.parse().unwrap();
    drop(stdin);
    let ran = ended(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(transactions(&ran), RECORDS);
    assert!(peak < 80_000, "{peak} kB");
}
