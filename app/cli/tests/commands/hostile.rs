//! Text and packets that nobody is to be trusted with.

use std::path::{Path, PathBuf};

use crate::common::{demo_frames, http, linkweir, plain, summary};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::Conversation;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

const AGENT: &[u8] = b"a|b\\c\"d,e\x1b[31m\xff\xfe\x7f\x07 'f' =cmd() <script>alert(1)</script>";

fn capture(frames: &[CapturedFrame]) -> (TempDir, PathBuf) {
    let directory = tempdir().unwrap();
    let path = directory.path().join("input.pcap");
    std::fs::write(&path, plain(frames)).unwrap();
    (directory, path)
}

fn hostile() -> (TempDir, PathBuf) {
    let mut talk = Conversation::v4(40_000);
    let request = [
        b"G<b>\x20/?".as_slice(),
        AGENT,
        b" HTTP/1.1\r\nHost: <img src=x onerror=alert(1)>\r\nUser-Agent: ",
    ];
    talk.client_sends([request.concat().as_slice(), AGENT, b"\r\n\r\n"].concat());
    let get = [
        b"GET /x".as_slice(),
        AGENT,
        b" HTTP/1.1\r\nHost: <img src=x onerror=alert(1)>\r\nUser-Agent: ",
    ];
    talk.client_sends([get.concat().as_slice(), AGENT, b"\r\n\r\n"].concat());
    talk.server_sends(
        [
            b"HTTP/1.1 200 ".as_slice(),
            AGENT,
            b"\r\nContent-Length: 0\r\n\r\n",
        ]
        .concat(),
    );
    capture(&talk.frames())
}

fn raw(path: &Path, words: &[&str]) -> Vec<u8> {
    let output = linkweir()
        .args(["http", "-r"])
        .arg(path)
        .args(words)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let screen = String::from_utf8(output.stderr).unwrap();
    assert!(
        !screen.contains(|c: char| c.is_control() && c != '\n'),
        "{screen:?}"
    );
    output.stdout
}

#[test]
fn no_output_carries_control_characters() {
    let (_directory, path) = hostile();
    // CSV is for programs: byte for byte, quoted.
    for format in ["text", "jsonl", "zeek"] {
        let bytes = raw(&path, &["--format", format]);
        let is_clean = |byte: &u8| matches!(byte, b'\n' | b'\t') || *byte >= b' ' && *byte != 0x7f;
        let dirty: Vec<_> = bytes.iter().filter(|byte| !is_clean(byte)).collect();
        assert!(
            dirty.is_empty(),
            "{format}: {}",
            String::from_utf8_lossy(&bytes)
        );
    }
}

#[test]
fn fields_stay_where_they_are() {
    let (_directory, path) = hostile();
    let text = String::from_utf8(raw(&path, &["--format", "text"])).unwrap();
    assert!(text.is_ascii());
    for line in text.lines() {
        assert_eq!(line.split('|').count(), 13, "{line}");
        assert!(
            line.contains(r"a\x7cb\x5cc") || line.contains(r"a\x7Cb\x5Cc"),
            "{line}"
        );
    }
    let json = String::from_utf8(raw(&path, &["--format", "jsonl"])).unwrap();
    assert_eq!(json.lines().count(), text.lines().count());
    for line in json.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        assert!(
            record["user_agent"]
                .as_str()
                .unwrap()
                .starts_with("a|b\\c\"d,e"),
            "{line}"
        );
        assert_eq!(record.as_object().unwrap().len(), 30);
    }
    let zeek = String::from_utf8(raw(&path, &["--format", "zeek"])).unwrap();
    let names = zeek.lines().find_map(|line| line.strip_prefix("#fields\t"));
    let columns = names.unwrap().split('\t').count();
    for line in zeek.lines().filter(|line| !line.starts_with('#')) {
        assert_eq!(line.split('\t').count(), columns, "{line}");
    }
}

#[test]
fn the_report_runs_no_script_of_others() {
    let (directory, path) = hostile();
    let report = directory.path().join("r.html");
    raw(
        &path,
        &["-w", "/dev/null", "--report", report.to_str().unwrap()],
    );
    let page = String::from_utf8(std::fs::read(&report).unwrap()).unwrap();
    assert!(
        !page.contains("<script>alert") && !page.contains("<img src=x"),
        "escaped"
    );
}

#[test]
fn a_full_table_is_a_loss_and_every_record_is_written() {
    let frames: Vec<_> = (0..40)
        .flat_map(|n| {
            let at = Conversation::START_NS + u64::from(n) * 1_000_000;
            let mut talk = Conversation::v4(40_000 + n).starting_at(at);
            talk.client_sends(format!("GET /{n} HTTP/1.1\r\n\r\n"));
            talk.frames()
        })
        .collect();
    let (_directory, path) = capture(&frames);
    let words = ["--max-pending", "16", "--summary", "/dev/stderr"];
    let ran = http(&path, &words).exits(1).says("\"table_full\": 24");
    assert_eq!(ran.lines().len(), 40);
    assert_eq!(http(&path, &[]).exits(0).lines().len(), 40);
}

#[test]
fn short_captures_are_read_as_far_as_they_go() {
    let mut frames = demo_frames();
    for frame in &mut frames {
        frame.bytes.truncate(128);
    }
    let (_directory, path) = capture(&frames);
    let found = summary(&path, &[]);
    assert_eq!(found["http"]["requests"], 800);
    assert_eq!(found["http"]["transactions"], 800);
    assert!(found["http"]["truncated_heads"].as_u64().unwrap() > 1000);
}

#[test]
fn packets_that_do_not_decode_are_counted_by_layer_and_cause() {
    let mut frames = demo_frames();
    let count = frames.len();
    for (n, frame) in frames.iter_mut().enumerate() {
        match n % 4 {
            // No such IP header length; a TCP header beyond the packet; cut in the IP header.
            0 => frame.bytes[14] = (frame.bytes[14] & 0xf0) | 1,
            1 => frame.bytes.truncate(20),
            2 => frame.bytes.truncate(3),
            _ => {}
        }
    }
    let (_directory, path) = capture(&frames);
    let found = summary(&path, &[]);
    assert_eq!(found["packets"], count);
    let errors = found["decode_errors"].as_object().unwrap();
    let total: u64 = errors
        .values()
        .flat_map(|causes| causes.as_object().unwrap().values())
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert!(total > count as u64 / 2, "{errors:?}");
    assert!(errors.len() >= 2, "{errors:?}");
}
