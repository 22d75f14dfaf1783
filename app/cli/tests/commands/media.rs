//! What packets come in: directories below directories, link types that are not decoded, fragments, and
//! traces without HTTP.

use std::path::Path;

use crate::common::{demo, demo_frames, ended, http, linkweir, plain, run, summary};
use linkweir_testkit::capture_writer::{CapturedFrame, PcapVariant, pcap};
use linkweir_testkit::conversation::Conversation;
use linkweir_wire::LinkType;
use linkweir_wire::emit::fragments;
use tempfile::tempdir;

/// Totals on the screen; records go nowhere.
fn screen(command: &str, path: &Path) -> String {
    let output = linkweir()
        .args([command, "-w", "/dev/null", "-r"])
        .arg(path)
        .output()
        .unwrap();
    ended(output).exits(0).stderr
}

/// The bundled capture, packets in parts of at most so many bytes.
fn in_parts(piece: usize) -> Vec<CapturedFrame> {
    let mut parts = Vec::new();
    for (id, frame) in (1..).zip(demo_frames()) {
        let (ethernet, rest) = frame.bytes.split_at(14);
        let len = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        for part in fragments(&rest[..len.min(rest.len())], id, piece) {
            let bytes = [ethernet, &part].concat();
            parts.push(CapturedFrame {
                wire_len: u32::try_from(bytes.len()).unwrap(),
                bytes,
                ..frame.clone()
            });
        }
    }
    parts
}

#[test]
fn captures_are_found_below_directories_and_other_files_counted() {
    let folder = tempdir().unwrap();
    let frames = demo_frames();
    let (first, second) = frames.split_at(1500);
    std::fs::create_dir_all(folder.path().join("2/deep")).unwrap();
    std::fs::write(folder.path().join("1.pcap"), plain(first)).unwrap();
    std::fs::write(folder.path().join("2/deep/x.pcap"), plain(second)).unwrap();
    std::fs::write(folder.path().join("2/notes.txt"), "not a capture").unwrap();
    let ran = http(folder.path(), &[]).exits(0);
    let ran = ran.says("notes.txt: 1 file of a directory skipped: not a capture");
    assert_eq!(ran.stdout, http(&demo(), &[]).exits(0).stdout);
    let totals = summary(folder.path(), &[]);
    assert_eq!(totals["input_faults"].as_array().unwrap().len(), 1);
}

#[test]
fn link_types_that_are_not_decoded_are_named_and_come_first() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("sensor.pcap");
    let file = pcap(&demo_frames()[..30], PcapVariant::usual(LinkType(195)));
    std::fs::write(&path, file).unwrap();
    for command in ["http", "flows"] {
        let ran = run(&[command, "-w", "/dev/null", "-r", path.to_str().unwrap()]).exits(1);
        let screen = ran.stderr;
        assert!(
            screen.contains("not decoded: IEEE 802.15.4 (195, 30)"),
            "{screen}"
        );
        let first = screen.lines().find(|line| line.starts_with("  ")).unwrap();
        assert!(
            first.contains("not decoded") && first.contains("IEEE 802.15.4 30"),
            "{screen}"
        );
    }
    let ran = http(&path, &["-w", "/dev/null", "--summary", "-"]).exits(1);
    let totals: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(totals["undecoded_link_types"]["IEEE 802.15.4"], 30);
}

#[test]
fn a_trace_without_http_says_what_it_has() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tls.pcap");
    let client = "192.0.2.1:50000".parse().unwrap();
    let server = "198.51.100.2:443".parse().unwrap();
    let mut talk = Conversation::between(client, server);
    talk.handshake()
        .client_sends([&[22, 3, 1, 0, 200][..], &[7; 200]].concat())
        .server_sends([&[22, 3, 3, 16, 0][..], &[7; 9000]].concat());
    std::fs::write(&path, plain(&talk.frames())).unwrap();
    let screen = screen("http", &path);
    let first = screen.lines().find(|line| line.starts_with("  ")).unwrap();
    assert!(
        first.contains("100.0 % of the TCP payload is TLS on port 443"),
        "{screen}"
    );
}

#[test]
fn packets_in_parts_give_the_same_records_with_any_number_of_workers() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("parts.pcap");
    std::fs::write(&path, plain(&in_parts(256))).unwrap();
    let sorted = |path: &Path, words: &[&str]| {
        let ran = http(path, words).exits(0);
        let mut lines: Vec<String> = ran.lines().iter().map(|&line| line.to_owned()).collect();
        lines.sort_unstable();
        lines
    };
    let expected = sorted(&demo(), &[]);
    assert_eq!(sorted(&path, &[]), expected);
    let totals = summary(&path, &[]);
    for workers in ["2", "3"] {
        let words = ["--workers", workers];
        assert_eq!(sorted(&path, &words), expected, "{workers} workers");
        let shared = summary(&path, &words);
        assert_eq!(
            shared["fragments"], totals["fragments"],
            "{workers} workers"
        );
    }
    let count = |name: &str| totals["fragments"][name].as_u64().unwrap();
    assert!(count("fragments") > 2 * count("packets") && count("packets") > 500);
    assert!(screen("flows", &path).contains("packets reassembled"));
}
