//! `--pcap-out`: the packets of records and around alerts are those that another computation chooses.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_wire::{LinkType, Transport, decode};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::common::{demo, demo_frames, frames_of, http, http_stdin, installed, plain, run};

const SECOND: u64 = 1_000_000_000;

fn records(capture: &Path) -> Vec<(String, Value)> {
    let text = http(capture, &["--format", "jsonl"]).exits(0).stdout;
    let parse = |line: &str| (line.to_owned(), serde_json::from_str(line).unwrap());
    text.lines().map(parse).collect()
}

/// Both ends of a record, or of a packet, in an order that does not depend on the direction.
fn ends(record: &Value) -> [(IpAddr, u64); 2] {
    let end = |side: &str| {
        let address = record[format!("{side}_ip")].as_str().unwrap();
        let port = record[format!("{side}_port")].as_u64().unwrap();
        (address.parse().unwrap(), port)
    };
    let mut both = [end("client"), end("server")];
    both.sort();
    both
}

fn ends_of(frame: &CapturedFrame) -> Option<[(IpAddr, u64); 2]> {
    let packet = decode(LinkType::ETHERNET, &frame.bytes, frame.wire_len).unwrap();
    let Transport::Tcp(tcp) = packet.transport else {
        return None;
    };
    let mut both = [
        (packet.network.src(), u64::from(tcp.src_port())),
        (packet.network.dst(), u64::from(tcp.dst_port())),
    ];
    both.sort();
    Some(both)
}

/// The time of the request, and that of the next one of its connection.
fn window(record: &Value, all: &[(String, Value)]) -> (u64, u64) {
    let time = |record: &Value| record["request_ts_ns"].as_u64().unwrap();
    let from = time(record);
    let same = all.iter().filter(|(_, other)| ends(other) == ends(record));
    let later = same.map(|(_, other)| time(other)).filter(|at| *at > from);
    (from, later.min().unwrap_or(u64::MAX))
}

/// The frames of the bundled capture that belong to records, by connection and time.
fn expected(chosen: &[&Value], all: &[(String, Value)]) -> Vec<CapturedFrame> {
    let windows: Vec<_> = chosen
        .iter()
        .map(|record| (ends(record), window(record, all)))
        .collect();
    let is_in = |frame: &CapturedFrame| {
        let ends = ends_of(frame);
        windows.iter().any(|(of, (from, until))| {
            Some(*of) == ends && (*from..*until).contains(&frame.timestamp_ns)
        })
    };
    demo_frames().into_iter().filter(is_in).collect()
}

fn out() -> (TempDir, PathBuf) {
    let directory = tempdir().unwrap();
    let path = directory.path().join("out.pcapng");
    (directory, path)
}

#[track_caller]
fn assert_same(written: &Path, want: &[CapturedFrame]) {
    let key = |frame: &CapturedFrame| (frame.timestamp_ns, frame.wire_len, frame.bytes.clone());
    let have: Vec<_> = frames_of(written).iter().map(key).collect();
    let want: Vec<_> = want.iter().map(key).collect();
    assert_eq!(have.len(), want.len());
    assert!(have == want);
}

#[test]
fn the_packets_of_a_record_are_found_in_the_capture() {
    let all = records(&demo());
    // One in the middle of a connection, and the last of one.
    let next = |at: usize| window(&all[at].1, &all).1;
    let middle = (300..).find(|at| next(*at) != u64::MAX).unwrap();
    let last = (300..).find(|at| next(*at) == u64::MAX).unwrap();
    for at in [middle, last] {
        let (line, record) = &all[at];
        let (_directory, path) = out();
        let ran = http(
            &demo(),
            &["--packets-of", line, "--pcap-out", path.to_str().unwrap()],
        );
        assert_eq!(ran.exits(0).stdout, "");
        assert_same(&path, &expected(&[record], &all));
        agrees_with_tshark(&path, record, window(record, &all));
    }
    // Several of them from a file.
    let (directory, path) = out();
    let file = directory.path().join("records.jsonl");
    std::fs::write(&file, format!("{}\n\n{}\n", all[last].0, all[middle].0)).unwrap();
    let from_file = format!("@{}", file.display());
    let ran = run(&[
        "http".as_ref(),
        "--packets-of".as_ref(),
        from_file.as_ref(),
        "-r".as_ref(),
        demo().as_os_str(),
        "--pcap-out".as_ref(),
        path.as_os_str(),
    ]);
    assert_same(&path, &expected(&[&all[middle].1, &all[last].1], &all));
    ran.exits(0).says("packets of 2 records");
}

/// What tshark selects by addresses, ports and time; the file opens there, and in capinfos.
fn agrees_with_tshark(written: &Path, record: &Value, (from, until): (u64, u64)) {
    if !installed("tshark") {
        return;
    }
    let seconds = |ns: u64| format!("{}.{:09}", ns / SECOND, ns % SECOND);
    let address = record["client_ip"].as_str().unwrap();
    let family = if address.contains(':') { "ipv6" } else { "ip" };
    let mut filter = format!(
        "{family}.addr == {address} && tcp.port == {} && frame.time_epoch >= {}",
        record["client_port"],
        seconds(from)
    );
    if until != u64::MAX {
        filter.push_str(&format!(" && frame.time_epoch < {}", seconds(until)));
    }
    let times = |capture: &Path, filter: &str| {
        let ran = Command::new("tshark")
            .args([
                "-n",
                "-T",
                "fields",
                "-e",
                "frame.time_epoch",
                "-e",
                "frame.len",
                "-Y",
                filter,
                "-r",
            ])
            .arg(capture)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        String::from_utf8(ran.stdout).unwrap()
    };
    let want = times(&demo(), &filter);
    assert!(want.lines().count() >= 2, "{want}");
    assert_eq!(times(written, "frame"), want);
    let info = Command::new("capinfos").arg("-T").arg(written).output();
    let info = info.unwrap();
    assert!(info.status.success());
    assert!(String::from_utf8_lossy(&info.stdout).contains("nanoseconds"));
}

#[test]
fn a_filter_chooses_the_same_from_files_from_a_pipe_and_with_workers() {
    let all = records(&demo());
    let is_chosen = |record: &&Value| record["status_code"] == 404 && record["method"] == "GET";
    let chosen: Vec<&Value> = all
        .iter()
        .map(|(_, record)| record)
        .filter(is_chosen)
        .collect();
    assert!(chosen.len() > 5);
    let want = expected(&chosen, &all);
    let filter = "status = 404 and method = GET";
    let capture = plain(&demo_frames());
    for (words, is_piped) in [
        (&[][..], false),
        (&["--workers", "3"], false),
        (&[], true),
        (&["--workers", "2"], true),
    ] {
        let (_directory, path) = out();
        let to = path.to_str().unwrap();
        let mut all_words = vec![
            "-w",
            "/dev/null",
            "--pcap-out",
            to,
            "--pcap-filter",
            filter,
            "--summary",
            "-",
        ];
        all_words.extend(words);
        let ran = if is_piped {
            http_stdin(&capture, &all_words)
        } else {
            http(&demo(), &all_words)
        };
        let summary: Value = serde_json::from_str(&ran.exits(0).stdout).unwrap();
        assert_same(&path, &want);
        let counts = &summary["pcap_out"];
        assert_eq!(counts["packets"], want.len());
        assert_eq!(counts["chosen"], chosen.len());
        assert_eq!(counts["incomplete"], 0);
        assert_eq!(summary["dropped"]["sink"][to], 0);
    }
    // Not the packets behind -c.
    let (_directory, path) = out();
    let to = path.to_str().unwrap();
    for is_piped in [false, true] {
        let words = [
            "-w",
            "/dev/null",
            "--overwrite",
            "-c",
            "500",
            "--pcap-out",
            to,
            "--pcap-filter",
            "host",
        ];
        if is_piped {
            http_stdin(&capture, &words).exits(0);
        } else {
            http(&demo(), &words).exits(0);
        }
        let last = demo_frames()[499].timestamp_ns;
        let written = frames_of(&path);
        assert!(written.len() > 100 && written.iter().all(|frame| frame.timestamp_ns <= last));
    }
}

#[test]
fn a_ring_that_is_too_small_is_counted() {
    let (_directory, path) = out();
    let to = path.to_str().unwrap();
    let words = [
        "-w",
        "/dev/null",
        "--pcap-out",
        to,
        "--pcap-filter",
        "status_code = 404",
        "--pcap-ring",
        "3kB",
        "--summary",
        "-",
    ];
    let ran = http_stdin(&plain(&demo_frames()), &words).exits(1);
    let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
    let counts = &summary["pcap_out"];
    let incomplete = counts["incomplete"].as_u64().unwrap();
    assert!(
        incomplete > 5 && incomplete <= counts["chosen"].as_u64().unwrap(),
        "{counts}"
    );
    assert_eq!(summary["dropped"]["sink"][to], counts["incomplete"]);
    ran.says("lack packets that had left the ring");
}

#[test]
fn the_packets_of_flows() {
    let (_directory, path) = out();
    let frames = demo_frames();
    let port = |frame: &&CapturedFrame| {
        let ends = ends_of(frame);
        ends.map(|ends| ends.map(|(_, port)| port))
    };
    let client = port(&&frames[0]).unwrap();
    let client = client.into_iter().max().unwrap();
    let filter = format!("protocol = tcp and c_port = {client}");
    let demo = demo();
    let words = [
        "flows",
        "-w",
        "/dev/null",
        "-q",
        "--pcap-filter",
        &filter,
        "--pcap-out",
        path.to_str().unwrap(),
        "-r",
        demo.to_str().unwrap(),
    ];
    run(&words).exits(0);
    let is_in = |frame: &&CapturedFrame| port(frame).is_some_and(|ports| ports.contains(&client));
    let want: Vec<CapturedFrame> = frames.iter().filter(is_in).cloned().collect();
    assert!(want.len() > 10);
    assert_same(&path, &want);
}

/// A transaction a second for half a minute; those from second 10 to 14 fail.
fn failing_for_a_while() -> Vec<CapturedFrame> {
    let mut talk = Conversation::v4(40_000);
    talk.handshake();
    for second in 0..30 {
        talk.client_sends("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let code = if (10..15).contains(&second) {
            "503"
        } else {
            "200"
        };
        talk.server_sends(format!("HTTP/1.1 {code} x\r\nContent-Length: 0\r\n\r\n"));
        talk.wait(Duration::from_secs(1));
    }
    talk.fin(Side::Client).fin(Side::Server);
    talk.frames()
}

#[test]
fn the_packets_around_an_alert() {
    let frames = failing_for_a_while();
    let capture = plain(&frames);
    let (directory, path) = out();
    let file = directory.path().join("in.pcap");
    std::fs::write(&file, &capture).unwrap();
    let to = path.to_str().unwrap();
    let words = [
        "-w",
        "/dev/null",
        "--overwrite",
        "--alert",
        "5xx share > 50 % min 1 sample",
        // Time must be seen to pass: the clock of a file is that of its reads.
        "--read-size",
        "1KiB",
        "--pcap-around",
        "3s",
        "--pcap-out",
        to,
    ];
    let start = frames[0].timestamp_ns;
    let errors: Vec<u64> = frames
        .iter()
        .filter(|frame| frame.bytes.windows(4).any(|bytes| bytes == b" 503"))
        .map(|frame| frame.timestamp_ns)
        .collect();
    let (first, last) = (errors[0], errors[4]);
    for is_piped in [false, true] {
        let ran = if is_piped {
            http_stdin(&capture, &words)
        } else {
            http(&file, &words)
        };
        ran.exits(0).says("alert firing");
        let written: Vec<u64> = frames_of(&path)
            .iter()
            .map(|frame| frame.timestamp_ns)
            .collect();
        // The alert begins at the end of the interval with the first error and ends with that of the first
        // without: an interval is a second.
        let must = frames.iter().map(|frame| frame.timestamp_ns);
        let must = must
            .filter(|at| (first - 2 * SECOND..=last).contains(at))
            .count();
        assert!(must >= 10);
        let inside = written
            .iter()
            .filter(|at| (first - 2 * SECOND..=last).contains(at));
        assert_eq!(inside.count(), must);
        let times: Vec<u64> = written.iter().map(|at| (at - start) / 1_000_000).collect();
        assert!(
            written
                .iter()
                .all(|at| (first - 3 * SECOND..last + 3 * SECOND).contains(at)),
            "{times:?}"
        );
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let (directory, path) = out();
    let to = path.to_str().unwrap();
    let key = path.with_file_name("key");
    std::fs::write(&key, [7; 32]).unwrap();
    let key = key.to_str().unwrap();
    let record = &records(&demo())[0].0;
    let no_port = record.replace("\"client_port\"", "\"other_port\"");
    for (words, says) in [
        (
            &["--pcap-filter", "status_code >"][..],
            "column 14: expected a value",
        ),
        (&["--pcap-filter", "stat = 1"], "column 1: no column `stat`"),
        (&[], "--pcap-out: say which packets"),
        (
            &["--pcap-filter", "host", "--anonymize", key],
            "not with --anonymize",
        ),
        (
            &["--alert", "drops > 0", "--pcap-around", "drops > 1=3s"],
            "no --alert `drops > 1`",
        ),
        (
            &["--packets-of", "{\"a\": 1} x"],
            "line 1, column 10: not a record: give a line of `--format jsonl`, or @FILE for a file of them: trailing characters",
        ),
        (&["--packets-of", "[]"], "line 1, column 0: not a record"),
        (
            &["--packets-of", &no_port],
            "line 1: no valid `client_port`",
        ),
        (&["--packets-of", ""], "holds no record"),
        (
            &["--packets-of", "@/nowhere/at/all"],
            "/nowhere/at/all: No such file",
        ),
        (
            &["--packets-of", record, "--pcap-filter", "host"],
            "cannot be used with",
        ),
    ] {
        let all: Vec<&str> = ["--pcap-out", to].iter().chain(words).copied().collect();
        http(&demo(), &all).exits(2).says(says);
    }
    http(&demo(), &["--pcap-filter", "host"])
        .exits(2)
        .says("--pcap-out");
    assert!(!path.exists());
    // A record of another capture.
    let other = record.replacen("\"client_port\":", "\"client_port\":1", 1);
    let other = other.replacen("\"client_port\":1", "\"client_port\":1,\"x\":", 1);
    http(&demo(), &["--packets-of", &other, "--pcap-out", to])
        .exits(1)
        .says("no packet of the record is in the captures: ");
    assert!(frames_of(&path).is_empty());
    let both = directory.path().join("both.jsonl");
    std::fs::write(&both, format!("{record}\n{other}\n")).unwrap();
    let of = format!("@{}", both.display());
    http(
        &demo(),
        &["--packets-of", &of, "--pcap-out", to, "--overwrite"],
    )
    .exits(1)
    .says("no packet of 1 of 2 records is in the captures: ");
    assert!(!frames_of(&path).is_empty());
    std::fs::write(&path, "").unwrap();
    // A finished file is not replaced.
    http(
        &demo(),
        &["-w", "/dev/null", "--pcap-filter", "host", "--pcap-out", to],
    )
    .exits(3)
    .says("exists");
}

#[test]
fn a_disk_that_is_full_costs_the_packets_alone() {
    let (line, _) = &records(&demo())[0];
    let to = ["--pcap-out", "/dev/full"];
    let words = ["-w", "/dev/null", "--summary", "-", "--pcap-filter", "host"];
    let ran = http(&demo(), &[&to[..], &words].concat()).exits(1);
    let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(summary["dropped"]["sink"]["/dev/full"].is_u64());
    assert_eq!(summary["records"], 800);
    ran.says("No space left");
    let words = ["--packets-of", line.as_str()];
    http(&demo(), &[&to[..], &words].concat())
        .exits(3)
        .says("No space left");
}
