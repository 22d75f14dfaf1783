//! What goes wrong: everything before it is written, the message says where, the exit code which
//! kind.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{demo, demo_frames, demo_truth, ended, http, http_stdin, linkweir, plain, run};
use linkweir_testkit::capture_writer::{
    ByteOrder, CapturedFrame, PacketBlock, PcapngInterface, pcapng,
};
use linkweir_wire::LinkType;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

fn written(bytes: &[u8]) -> (TempDir, PathBuf) {
    let directory = tempdir().unwrap();
    let path = directory.path().join("input");
    std::fs::write(&path, bytes).unwrap();
    (directory, path)
}

/// The first packets of the bundled capture.
fn some() -> Vec<CapturedFrame> {
    let mut frames = demo_frames();
    frames.truncate(600);
    frames
}

/// The records of these frames alone.
fn records(frames: &[CapturedFrame]) -> String {
    let (_directory, path) = written(&plain(frames));
    http(&path, &[]).exits(0).stdout
}

/// The input ends with 1, names its place, and gives the records of these frames.
fn loses_the_rest(bytes: &[u8], frames: &[CapturedFrame]) {
    let (_directory, path) = written(bytes);
    let ran = http(&path, &[]).exits(1).says("input: at byte ");
    assert!(!ran.stdout.is_empty());
    assert_eq!(ran.stdout, records(frames));
    let ran = http_stdin(bytes, &[]).exits(1);
    assert_eq!(ran.stdout, records(frames), "from standard input too");
}

#[test]
fn inputs_that_give_nothing() {
    run(&["http", "-q", "-r", "/no/such/file.pcap"])
        .exits(3)
        .says("/no/such/file.pcap");
    for bytes in [
        &b""[..],
        b"not a capture, but some text",
        &[0; 500],
        &plain(&some())[..10],
    ] {
        let (_directory, path) = written(bytes);
        let ran = http(&path, &[]).exits(3).says("linkweir: ").says("input");
        assert_eq!(ran.stdout, "");
        assert_eq!(http_stdin(bytes, &[]).exits(3).stdout, "");
    }
    let directory = tempdir().unwrap();
    http(directory.path(), &[]).exits(3);
}

#[test]
fn an_input_that_is_no_capture_is_not_read_and_nothing_is_lost_of_it() {
    let (_directory, path) = written(b"not a capture, but some text");
    for command in ["http", "flows", "halves"] {
        let words = [command, "-w", "/dev/null", "-r", path.to_str().unwrap()];
        let screen = run(&words).exits(3).stderr;
        let row = |label: &str| {
            let row = screen
                .lines()
                .find(|line| line.trim_start().starts_with(label));
            row.unwrap_or_else(|| panic!("{screen}"))
        };
        assert!(row("lost").contains("nothing"), "{screen}");
        assert!(
            row("not read").contains("input: not a capture: "),
            "{screen}"
        );
    }
}

#[test]
fn a_file_without_packets_is_no_fault() {
    let (_directory, path) = written(&plain(&[]));
    assert_eq!(http(&path, &[]).exits(0).stdout, "");
}

#[test]
fn a_bad_file_among_good_ones_costs_only_itself() {
    let (_bad_directory, bad) = written(b"no capture at all");
    let mut command = linkweir();
    command
        .args(["http", "-q"])
        .arg("-r")
        .arg(demo())
        .arg("-r")
        .arg(&bad);
    let ran = ended(command.output().unwrap()).exits(3).says("input");
    assert_eq!(ran.lines().len(), 800);
    let mut command = linkweir();
    command
        .args(["http", "-q"])
        .arg("-r")
        .arg(&bad)
        .arg("-r")
        .arg(demo());
    let ran = ended(command.output().unwrap()).exits(3);
    assert_eq!(ran.lines().len(), 800);
}

#[test]
fn a_record_that_is_cut() {
    let frames = some();
    let file = plain(&frames);
    let last = frames.last().unwrap().bytes.len();
    let before = &frames[..frames.len() - 1];
    for cut in [1, last / 2, last, last + 1, last + 15] {
        loses_the_rest(&file[..file.len() - cut], before);
    }
}

#[test]
fn an_absurd_record_length() {
    let frames = some();
    let before = &frames[..frames.len() - 1];
    let mut file = plain(before);
    let at = file.len();
    file.extend_from_slice(&plain(&frames)[at..]);
    for length in [u32::MAX, 0x7fff_ffff, 100_000_000] {
        let mut bad = file.clone();
        bad[at + 8..at + 12].copy_from_slice(&length.to_le_bytes());
        loses_the_rest(&bad, before);
    }
}

#[test]
fn a_gzip_that_ends_early() {
    let packed = std::fs::read(demo()).unwrap();
    let (_directory, path) = written(&packed[..packed.len() / 2]);
    let ran = http(&path, &[]).exits(1).says("input");
    let whole = http(&demo(), &[]).exits(0).stdout;
    // All but the requests that were open when it ended.
    let complete: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| !line.contains("||||"))
        .collect();
    assert!(complete.len() > 100);
    assert!(whole.lines().zip(&complete).all(|(a, b)| a == *b));
}

#[test]
fn a_corrupt_block_of_pcapng() {
    let frames = some();
    let interface = PcapngInterface::usual(LinkType::ETHERNET);
    let file = |frames| {
        pcapng(
            frames,
            ByteOrder::Little,
            &[interface],
            PacketBlock::Enhanced,
        )
    };
    let before = &frames[..400];
    // Without the statistics block of 24 bytes at the end.
    let at = file(before).len() - 24;
    for length in [0_u32, 3, 11, 13, u32::MAX, 0x4000_0000] {
        let mut bad = file(&frames);
        bad[at + 4..at + 8].copy_from_slice(&length.to_le_bytes());
        loses_the_rest(&bad, before);
    }
}

#[test]
fn wrong_usage() {
    let demo = demo();
    let demo = demo.to_str().unwrap();
    run(&["http", "--nope", "-r", demo]).exits(2).says("--nope");
    run(&["http"]).exits(2).says("-r, an interface with -i");
    run(&["nope"]).exits(2);
    let nothing: [&str; 0] = [];
    run(&nothing).exits(2);
    for (flag, value) in [
        ("--timeout", "0s"),
        ("--timeout", "60"),
        ("--max-pending", "3"),
        ("--read-size", "0"),
        ("--ports", "80-70"),
        ("--format", "xml"),
        ("--rotate", "often"),
        ("-c", "many"),
    ] {
        let ran = run(&["http", "-r", demo, flag, value]).exits(2).says(value);
        assert_eq!(ran.stdout, "", "{flag} {value}");
    }
}

#[test]
fn a_bad_filter() {
    let ran = http(&demo(), &["-f", "tcp prt 80"]).exits(2);
    assert_eq!(ran.stdout, "");
}

#[test]
fn outputs_that_cannot_be_written() {
    // The same mistake, whatever it is that is to be written.
    let outputs: [(&str, &[&str]); 12] = [
        ("http", &["-w", "/no/such/directory/out.jsonl"]),
        ("http", &["-w", "/no/such/directory/out.parquet"]),
        (
            "http",
            &["-w", "/dev/null", "--summary", "/no/such/directory/s.json"],
        ),
        (
            "http",
            &["-w", "/dev/null", "--report", "/no/such/directory/r.html"],
        ),
        (
            "http",
            &["-w", "/dev/null", "--sketch", "/no/such/directory/s.json"],
        ),
        ("halves", &["-w", "/no/such/directory/halves.parquet"]),
        ("flows", &["-w", "/no/such/directory/out.jsonl"]),
        (
            "flows",
            &["--format", "tstat", "-w", "/no/such/directory/tree"],
        ),
        (
            "flows",
            &["--no-output", "--histograms", "/no/such/directory/tree"],
        ),
        (
            "flows",
            &["--no-output", "--archive", "/no/such/directory/archive"],
        ),
        ("flows", &["--no-output", "--rrd", "/no/such/directory/rrd"]),
        (
            "flows",
            &["--no-output", "--summary", "/no/such/directory/s.json"],
        ),
    ];
    for (command, words) in outputs {
        let ran = linkweir()
            .arg(command)
            .arg("-qr")
            .arg(demo())
            .args(words)
            .output();
        ended(ran.unwrap()).exits(3).says("/no/such/directory");
    }
    let directory = tempdir().unwrap();
    http(&demo(), &["-w", directory.path().to_str().unwrap()]).exits(2);
    http(&demo(), &["-w", "/dev/full"])
        .exits(3)
        .says("/dev/full");
    // All records are whole.
    http(&demo(), &["-w", "/dev/null", "--summary", "/dev/full"])
        .exits(1)
        .says("--summary: /dev/full");
}

/// Records for each output, as a summary has them.
fn lost(summary: &Path) -> Value {
    let text = std::fs::read_to_string(summary).unwrap();
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(summary["packets"], demo_truth()["packets"], "all was read");
    summary["dropped"]["sink"].clone()
}

#[test]
fn an_output_that_fails_fails_alone() {
    let demo = demo();
    let all = http(&demo, &["--format", "jsonl"]).exits(0).stdout;
    let records = all.lines().count();
    for workers in ["1", "2"] {
        let directory = tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let (healthy, summary) = (at("healthy.jsonl"), at("summary.json"));
        let demo = demo.to_str().unwrap();
        let ran = run(&[
            "http",
            "--sort",
            "--workers",
            workers,
            "-r",
            demo,
            "-w",
            "/dev/full",
            "-w",
            &healthy,
            "--summary",
            &summary,
        ])
        .exits(1)
        .says("/dev/full: No space left on device")
        .says(&format!(
            "lost           not written to /dev/full {records}\n"
        ));
        assert_eq!(
            ran.stderr.matches("No space left").count(),
            1,
            "{}",
            ran.stderr
        );
        let text = std::fs::read_to_string(&healthy).unwrap();
        assert_eq!(text.lines().count(), records);
        assert_eq!(
            lost(summary.as_ref()),
            json!({"/dev/full": records, (healthy): 0})
        );
    }
}

#[test]
fn what_a_full_file_has_lost_is_counted_exactly() {
    let demo = demo();
    let all = http(&demo, &["--format", "jsonl"]).exits(0).stdout;
    for ending in ["jsonl", "csv", "parquet", "arrow"] {
        let directory = tempdir().unwrap();
        let (small, summary) = (
            format!("small.{ending}"),
            directory.path().join("summary.json"),
        );
        // No file may be longer than 32 blocks of 512 bytes; a pipe may.
        let script = "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\"";
        let ran = Command::new("sh")
            .args([
                "-c",
                script,
                env!("CARGO_BIN_EXE_linkweir"),
                "http",
                "-q",
                "-r",
            ])
            .arg(&demo)
            .args(["-w", &small, "-w", "/dev/stdout", "--format"])
            .arg(ending)
            .arg("--summary")
            .arg(&summary)
            .current_dir(directory.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{ending}: {said}");
        assert!(said.contains(&format!("{small}: File too large")), "{said}");
        let lost = lost(&summary);
        assert_eq!(lost["/dev/stdout"], 0);
        let partial = std::fs::read(directory.path().join(format!(".{small}.partial"))).unwrap();
        if ending == "jsonl" {
            assert_eq!(ran.stdout, all.as_bytes());
            let kept = partial.iter().filter(|byte| **byte == b'\n').count();
            assert!(kept > 0 && partial.ends_with(b"\n"));
            assert_eq!(lost[&small], all.lines().count() - kept);
        }
        assert!(lost[&small].as_u64().unwrap() > 0, "{lost}");
    }
}

#[test]
fn a_webhook_that_fails_is_told_and_counted() {
    let directory = tempdir().unwrap();
    let summary = directory.path().join("summary.json");
    // Nobody listens on the port of `discard`.
    let hook = "http://127.0.0.1:9/hook/secret";
    let alert = ["--alert", "requests rate > 0 /s", "--webhook", hook];
    let words = [
        &alert[..],
        &["-w", "/dev/null", "--summary", summary.to_str().unwrap()],
    ]
    .concat();
    let ran = http(&demo(), &words)
        .exits(1)
        .says("UTC  alert firing: requests rate > 0 /s")
        .says("linkweir: webhook: alerts not delivered: 1\n");
    let said = ran
        .stderr
        .matches("webhook: alerts cannot be delivered: ")
        .count();
    assert_eq!(said, 1, "{}", ran.stderr);
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
    assert_eq!(lost(&summary), json!({"/dev/null": 0, "webhook": 1}));
}

#[test]
fn a_reader_that_goes_leaves_the_other_outputs_alone() {
    let directory = tempdir().unwrap();
    let healthy = directory.path().join("healthy.csv");
    let mut child = linkweir()
        .args(["http", "-q", "-r"])
        .arg(demo())
        .args(["-w", "-", "-w"])
        .arg(&healthy)
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = ended(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(ran.stderr, "");
    let records = http(&demo(), &["--format", "csv"]).exits(0).stdout;
    assert_eq!(std::fs::read_to_string(&healthy).unwrap(), records);
}

#[test]
fn a_closed_pipe_ends_quietly_and_its_summary_is_written() {
    let directory = tempdir().unwrap();
    let summary = directory.path().join("summary.json");
    let mut child = linkweir()
        .args(["http", "-r"])
        .arg(demo())
        .arg("--summary")
        .arg(&summary)
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.starts_with("10.80.0."));
    drop(stdout);
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(stderr, "");
    let summary: Value = serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap();
    assert!(summary["packets"].as_u64().unwrap() > 0, "{summary}");
}

#[test]
fn random_bytes_behind_a_good_header() {
    let mut state = 7_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(100_000)
    .collect();
    let interface = PcapngInterface::usual(LinkType::ETHERNET);
    let ng = pcapng(&[], ByteOrder::Big, &[interface], PacketBlock::Enhanced);
    for header in [plain(&[]), ng, b"snoop\0\0\0\0\0\0\x02\0\0\0\x04".to_vec()] {
        let (_directory, path) = written(&[header, noise.clone()].concat());
        http(&path, &[]).exits(1).says("at byte");
    }
}
