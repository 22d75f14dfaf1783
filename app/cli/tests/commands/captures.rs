//! The same capture in every shape gives the same records, and they are true.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{
    demo, demo_frames, demo_truth, http, http_stdin, installed, linkweir, plain, run, skipped,
    summary,
};
use linkweir_testkit::capture_writer::{
    ByteOrder, PacketBlock, PcapVariant, PcapngInterface, erf, pcap, pcapng, snoop,
};
use linkweir_wire::LinkType;
use serde_json::Value;
use tempfile::tempdir;

fn expected() -> String {
    http(&demo(), &["--format", "jsonl"]).exits(0).stdout
}

fn check(name: &str, bytes: &[u8], expected: &str) {
    let directory = tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let ran = http(&path, &["--format", "jsonl"]).exits(0);
    assert!(ran.stdout == expected, "{name} gives other records");
}

#[test]
fn every_count_is_that_of_the_log_of_the_server() {
    let (truth, found) = (demo_truth(), summary(&demo(), &[]));
    for key in [
        "requests",
        "responses",
        "interim_responses",
        "transactions",
        "unanswered",
        "orphans",
        "methods",
        "status_codes",
    ] {
        assert_eq!(found["http"][key], truth[key], "{key}");
    }
    assert_eq!(found["packets"], truth["packets"]);
    let mut counts: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    for line in expected().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let word = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
        assert_eq!(word("state"), "complete");
        let pair = format!("{} {}", word("method"), record["status_code"]);
        let interim = record["interim_responses"].as_u64().unwrap();
        for (key, value, n) in [
            ("methods_and_codes", pair, 1),
            ("hosts", word("host"), 1),
            ("user_agents", word("user_agent"), 1),
            ("interim", "all".to_owned(), interim),
        ] {
            *counts.entry(key).or_default().entry(value).or_default() += n;
        }
    }
    for key in ["methods_and_codes", "hosts", "user_agents"] {
        assert_eq!(
            serde_json::to_value(&counts[key]).unwrap(),
            truth[key],
            "{key}"
        );
    }
    assert_eq!(
        counts["interim"]["all"],
        truth["interim_responses"].as_u64().unwrap()
    );
}

#[test]
fn every_line_of_text_has_thirteen_fields() {
    let text = http(&demo(), &[]).exits(0).stdout;
    assert_eq!(text.lines().count(), 800);
    assert!(text.lines().all(|line| line.split('|').count() == 13));
    assert!(
        text.contains(r"monitor probe \x7c every 5 s")
            || text.contains(r"monitor probe \x7C every 5 s")
    );
}

#[test]
fn any_read_size() {
    let expected = expected();
    for size in ["1KiB", "1500", "4KiB", "64KiB", "1MiB"] {
        let ran = http(&demo(), &["--format", "jsonl", "--read-size", size]).exits(0);
        assert!(ran.stdout == expected, "{size}");
    }
}

#[test]
fn every_format_of_captures() {
    let (frames, expected) = (demo_frames(), expected());
    let link = LinkType::ETHERNET;
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for (has_nanos, modified) in [(false, false), (true, false), (false, true)] {
            let variant = PcapVariant {
                order,
                has_nanos,
                modified,
                ..PcapVariant::usual(link)
            };
            check("a.pcap", &pcap(&frames, variant), &expected);
        }
        let nanos = PcapngInterface {
            resolution: Some(9),
            ..PcapngInterface::usual(link)
        };
        for interface in [PcapngInterface::usual(link), nanos] {
            for packing in [PacketBlock::Enhanced, PacketBlock::Obsolete] {
                let file = pcapng(&frames, order, &[interface], packing);
                check("a.pcapng", &file, &expected);
            }
        }
    }
    check("a.erf", &erf(&frames, link), &expected);
    check("a.snoop", &snoop(&frames), &expected);
    check("a-wrong-name.txt", &plain(&frames), &expected);
}

/// What a program makes of bytes.
fn through(program: &str, words: &[&str], bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{program}");
    output.stdout
}

#[test]
fn every_compression() {
    let (file, expected) = (plain(&demo_frames()), expected());
    for (program, words) in [
        ("gzip", ["-c", "-1"]),
        ("zstd", ["-c", "-q"]),
        ("xz", ["-c", "-1"]),
        ("lz4", ["-c", "-q"]),
    ] {
        if installed(program) {
            let packed = through(program, &words, &file);
            assert!(packed.len() < file.len());
            check("packed", &packed, &expected);
            // Two members, one after the other, are one stream.
            let (first, second) = file.split_at(file.len() / 3);
            let members = [
                through(program, &words, first),
                through(program, &words, second),
            ];
            check("members", &members.concat(), &expected);
        }
    }
}

#[test]
fn standard_input() {
    let expected = expected();
    let packed = std::fs::read(demo()).unwrap();
    for bytes in [&packed, &plain(&demo_frames())] {
        let ran = http_stdin(bytes, &["--format", "jsonl"]).exits(0);
        assert!(ran.stdout == expected);
    }
}

#[test]
fn several_files_and_a_directory_are_one_trace() {
    let (frames, expected) = (demo_frames(), expected());
    let directory = tempdir().unwrap();
    // Cut between requests and responses, in different formats.
    let (a, rest) = frames.split_at(701);
    let (b, c) = rest.split_at(1203);
    let ng = |frames| {
        let interface = PcapngInterface::usual(LinkType::ETHERNET);
        pcapng(frames, ByteOrder::Big, &[interface], PacketBlock::Enhanced)
    };
    for (name, bytes) in [
        ("1.pcap", plain(a)),
        ("2.pcapng", ng(b)),
        ("3.snoop", snoop(c)),
    ] {
        std::fs::write(directory.path().join(name), bytes).unwrap();
    }
    assert!(
        http(directory.path(), &["--format", "jsonl"])
            .exits(0)
            .stdout
            == expected
    );
    let mut command = linkweir();
    command.args(["http", "-q", "--format", "jsonl"]);
    for name in ["1.pcap", "2.pcapng", "3.snoop"] {
        command.arg("-r").arg(directory.path().join(name));
    }
    let ran = crate::common::ended(command.output().unwrap()).exits(0);
    assert!(ran.stdout == expected);
}

#[test]
fn several_outputs_at_once() {
    let directory = tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (jsonl, csv, json) = (at("a.jsonl"), at("a.csv"), at("s.json"));
    let words = ["-w", &jsonl, "-w", &csv, "--summary", &json];
    let ran = http(&demo(), &words).exits(0);
    assert_eq!(ran.stdout, "");
    assert!(std::fs::read_to_string(&jsonl).unwrap() == expected());
    assert_eq!(std::fs::read_to_string(&csv).unwrap().lines().count(), 801);
    let summary: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(summary["records"], 800);
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        3,
        "nothing partial is left"
    );
}

#[test]
fn a_finished_file_stays() {
    let directory = tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (old, new) = (at("old.jsonl"), at("new.parquet"));
    std::fs::write(&old, "old").unwrap();
    // The other destination is opened before that is found.
    http(&demo(), &["-w", &new, "-w", &old])
        .exits(3)
        .says("old.jsonl: exists; --overwrite replaces it");
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "old");
    let lines = at("lines.csv");
    http(&demo(), &["-w", &lines, "-w", &old]).exits(3);
    let left = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(
        left, 1,
        "nothing of the others is left, also no partial file"
    );
    let ran = http(&demo(), &["-w", &new, "-w", &old, "--overwrite"]).exits(0);
    assert_eq!(
        ran.stderr.matches("killed run").count(),
        0,
        "{}",
        ran.stderr
    );
    assert!(std::fs::read_to_string(&old).unwrap() == expected());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    // An input that is not a capture gives no records: the existing file stays.
    let text = at("text.pcap");
    std::fs::write(&text, "no packets here").unwrap();
    for words in [
        &["-w", &old, "--overwrite"][..],
        &["-w", &old, "--overwrite", "--workers", "2"],
    ] {
        http(text.as_ref(), words).exits(3).says("not a capture");
        assert!(std::fs::read_to_string(&old).unwrap() == expected());
    }
    http_stdin(b"no packets here", &["-w", &old, "--overwrite"]).exits(3);
    assert!(std::fs::read_to_string(&old).unwrap() == expected());
    // A capture that is cut before its first packet gives nothing either; one without packets is whole.
    let header = plain(&[]);
    for (bytes, stays) in [
        (&header[..10], true),
        (&[&header[..], &[7; 9]].concat(), true),
        (&header[..], false),
    ] {
        std::fs::write(&text, bytes).unwrap();
        http(text.as_ref(), &["-w", &old, "--overwrite"]);
        assert_eq!(std::fs::read_to_string(&old).unwrap() == expected(), stays);
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3);
}

#[test]
fn a_run_without_input_replaces_nothing_but_the_summary() {
    let directory = tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (page, sketch, packets, summary) = (
        at("page.html"),
        at("sketch.json"),
        at("packets.pcapng"),
        at("summary.json"),
    );
    let text = at("text.pcap");
    std::fs::write(&text, "no packets here").unwrap();
    let picture = at("spread.svg");
    let all = [&page, &sketch, &packets, &summary, &picture];
    for file in all {
        std::fs::write(file, "old").unwrap();
    }
    let measure = |input: &str| {
        run(&[
            "http",
            "-q",
            "-r",
            input,
            "--no-output",
            "--overwrite",
            "--report",
            &page,
            "--sketch",
            &sketch,
            "--pcap-out",
            &packets,
            "--pcap-filter",
            "status == 200",
            "--summary",
            &summary,
        ])
    };
    let spread = |input: &str| {
        let words = ["feed", "-q", "-r", input, "--overwrite", "--histogram"];
        run(&[&words[..], &[picture.as_str()]].concat())
    };
    let replaced = || all.map(|file| std::fs::read(file).unwrap() != b"old");
    measure(&text).exits(3);
    spread(&text).exits(3);
    // Nor do the other commands that read captures replace records.
    let policy = at("policy.toml");
    std::fs::write(&policy, "[gateway]\ndefault = \"allow\"\n").unwrap();
    for words in [
        &["halves", "-q", "-r", &text, "-w", &sketch][..],
        &[
            "gateway", "check", "--config", &policy, "-r", &text, "-w", &sketch,
        ],
    ] {
        run(&[words, &["--overwrite"]].concat()).exits(3);
        assert_eq!(std::fs::read(&sketch).unwrap(), b"old");
    }
    std::fs::remove_file(&policy).unwrap();
    assert_eq!(replaced(), [false, false, false, true, false]);
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        6,
        "no partial file is left"
    );
    measure(demo().to_str().unwrap()).exits(0);
    spread(demo().to_str().unwrap()).exits(0);
    assert_eq!(replaced(), [true; 5]);
}

#[test]
fn only_the_first_packets() {
    let frames = demo_frames();
    for count in [1, 100, 1000, 2868] {
        let found = summary(&demo(), &["-c", &count.to_string()]);
        assert_eq!(found["packets"], count);
        let directory = tempdir().unwrap();
        let path = directory.path().join("first.pcap");
        std::fs::write(&path, plain(&frames[..count])).unwrap();
        let ran = http(&demo(), &["-c", &count.to_string()]).exits(0);
        assert_eq!(ran.stdout, http(&path, &[]).exits(0).stdout);
    }
}

#[test]
fn filters_of_libpcap() {
    let probe = http(&demo(), &["-f", "tcp", "-w", "/dev/null"]);
    if probe.code != Some(0) && probe.stderr.contains("libpcap") {
        return skipped(&format!("-f needs libpcap: {}", probe.stderr));
    }
    let all = summary(&demo(), &["-f", "tcp port 80"]);
    assert_eq!(all["http"]["transactions"], 800);
    let six = http(&demo(), &["-f", "ip6"]).exits(0).stdout;
    assert!(!six.is_empty() && six.lines().all(|line| line.starts_with("fd00:80::11|")));
    let four = http(&demo(), &["-f", "not ip6"]).exits(0).stdout;
    assert_eq!(six.lines().count() + four.lines().count(), 800);
    let none = summary(&demo(), &["-f", "udp"]);
    assert_eq!((&none["packets"], &none["records"]), (&0.into(), &0.into()));
}

#[test]
fn options_of_the_stage() {
    let lines = |words: &[&str]| http(&demo(), words).exits(0).lines().len();
    let truth = demo_truth();
    let www = usize::try_from(truth["hosts"]["www.example.test"].as_u64().unwrap()).unwrap();
    assert_eq!(lines(&["--host", "www."]), www);
    assert_eq!(lines(&["--url", "nowhere"]), 0);
    assert_eq!(lines(&["--ports", "80"]), 800);
    assert_eq!(lines(&["--ports", "1-79,81-1000"]), 0);
    let ttlb = http(&demo(), &["--ttlb", "--format", "jsonl"])
        .exits(0)
        .stdout;
    for line in ttlb.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        assert!(
            record["ttlb_ns"].as_u64() >= record["response_time_ns"].as_u64(),
            "{line}"
        );
    }
    let sorted = http(&demo(), &["--sort"]).exits(0).stdout;
    let times: Vec<&str> = sorted
        .lines()
        .map(|line| line.split('|').nth(4).unwrap())
        .collect();
    assert!(times.is_sorted(), "equally long, so as texts too");
    let mut unsorted: Vec<String> = expected().lines().map(str::to_owned).collect();
    unsorted.sort();
    let sorted = http(&demo(), &["--sort", "--format", "jsonl"])
        .exits(0)
        .stdout;
    let mut sorted: Vec<String> = sorted.lines().map(str::to_owned).collect();
    sorted.sort();
    assert!(sorted == unsorted, "the same records");
}

#[test]
fn anonymised_addresses() {
    let directory = tempdir().unwrap();
    let key = directory.path().join("key");
    let run = |key: &Path| {
        http(
            &demo(),
            &["--anonymize", key.to_str().unwrap(), "--format", "jsonl"],
        )
    };
    std::fs::write(&key, [9; 32]).unwrap();
    let raw = run(&key).exits(0).stdout;
    std::fs::write(&key, "09".repeat(32) + "\n").unwrap();
    assert!(
        run(&key).exits(0).stdout == raw,
        "hexadecimal digits say the same"
    );
    for address in ["10.80.0.", "fd00:80:"] {
        assert!(!raw.contains(address), "{address}");
    }
    let hashes = |text: &str| -> std::collections::BTreeSet<u64> {
        let hash = |line| serde_json::from_str::<Value>(line).unwrap()["flow_hash"].as_u64();
        text.lines().map(|line| hash(line).unwrap()).collect()
    };
    assert!(
        hashes(&raw).is_disjoint(&hashes(&expected())),
        "no hash of a real address"
    );
    std::fs::write(&key, "too short").unwrap();
    run(&key).exits(2).says("32 bytes");
    run(&directory.path().join("missing")).exits(2);
}

#[test]
fn rotated_files_hold_every_record_once() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    http(&demo(), &["-w", path.to_str().unwrap(), "--rotate", "50kB"]).exits(0);
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    assert!(names.len() > 3);
    let all: String = names
        .iter()
        .map(|name| std::fs::read_to_string(name).unwrap())
        .collect();
    assert!(all == expected());
}

#[test]
fn the_report_needs_no_network() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("r.html");
    http(
        &demo(),
        &["-w", "/dev/null", "--report", path.to_str().unwrap()],
    )
    .exits(0);
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.contains("<svg") && page.contains("www.example.test"));
    // A size has its unit already.
    assert!(page.contains(" MB</b><span>in packets</span>"));
    for outside in ["src=\"http", "href=\"http", "<link", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside}");
    }
}
