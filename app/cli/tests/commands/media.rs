//! What packets come in: directories below directories, link types that are not decoded, fragments, and
//! traces without HTTP.

use std::path::Path;
use std::time::Duration;

use crate::common::{demo, demo_frames, ended, http, linkweir, plain, run, summary};
use linkweir_testkit::capture_writer::{CapturedFrame, PcapVariant, pcap};
use linkweir_testkit::conversation::Conversation;
use linkweir_testkit::parts::{Trouble, in_parts, suffer};
use linkweir_wire::LinkType;
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

#[test]
fn a_single_packet_is_no_packets() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("one.pcap");
    std::fs::write(&path, plain(&demo_frames()[..1])).unwrap();
    for command in ["http", "flows", "halves"] {
        let screen = screen(command, &path);
        assert!(screen.contains(" 1 packet, "), "{screen}");
        assert!(!screen.contains(" 1 packets"), "{screen}");
    }
    let file = pcap(&demo_frames()[..1], PcapVariant::usual(LinkType(195)));
    std::fs::write(&path, file).unwrap();
    let ran = http(&path, &["-w", "/dev/null"]).exits(1);
    ran.says("1 packet of a link type that is not decoded: IEEE 802.15.4");
}

#[test]
fn one_time_has_no_percentiles() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("one.pcap");
    let client = "192.0.2.1:50000".parse().unwrap();
    let server = "198.51.100.2:80".parse().unwrap();
    let mut talk = Conversation::between(client, server);
    talk.handshake()
        .client_sends("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .wait(Duration::from_millis(5))
        .server_sends("HTTP/1.1 204 No Content\r\n\r\n");
    std::fs::write(&path, plain(&talk.frames())).unwrap();
    let screen = screen("http", &path);
    let row = screen.lines().find(|line| line.contains("response time"));
    let row = row.unwrap_or_else(|| panic!("{screen}"));
    assert!(
        row.ends_with(" ms") && !row.contains(" p") && !row.contains("max"),
        "{row}"
    );
}

#[test]
fn packets_of_which_a_fragment_is_missing_are_lost() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("parts.pcap");
    let mut parts = in_parts(&demo_frames(), 256);
    // The first packet that has several.
    let second = parts
        .windows(2)
        .position(|two| two[0].timestamp_ns == two[1].timestamp_ns);
    parts.remove(second.unwrap() + 1);
    std::fs::write(&path, plain(&parts)).unwrap();
    let name = format!("media-{}", std::process::id());
    let feed = format!("feed --consumers 1 --when-full drop --name {name}");
    for command in [
        "http -w /dev/null",
        "flows -w /dev/null",
        "halves -w /dev/null",
        &feed,
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let ran = run(&[&words[..], &["-r", path.to_str().unwrap()]].concat()).exits(1);
        let lost = ran.stderr.lines().find(|line| line.starts_with("  lost "));
        let lost = lost.unwrap_or_else(|| panic!("{}", ran.stderr));
        assert!(
            lost.ends_with(" packets with missing fragments 1"),
            "{lost}"
        );
    }
}

#[test]
fn a_tree_too_deep_is_no_input() {
    let directory = tempdir().unwrap();
    let deep = directory.path().join("d/".repeat(32));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("x.pcap"), plain(&demo_frames())).unwrap();
    http(directory.path(), &[])
        .exits(3)
        .says("32 directories deep")
        .says("no capture in it could be read");
    std::os::unix::fs::symlink("gone.pcap", directory.path().join("link.pcap")).unwrap();
    std::fs::write(directory.path().join("y.pcap"), plain(&demo_frames())).unwrap();
    let ran = http(directory.path(), &[]).exits(1);
    let ran = ran.says("link.pcap: a link to a file that is not there");
    assert_eq!(ran.lines().len(), 800);
}

#[test]
fn captures_are_found_below_directories_and_other_files_counted() {
    let directory = tempdir().unwrap();
    let frames = demo_frames();
    let (first, second) = frames.split_at(1500);
    std::fs::create_dir_all(directory.path().join("2/deep")).unwrap();
    std::fs::write(directory.path().join("1.pcap"), plain(first)).unwrap();
    std::fs::write(directory.path().join("2/deep/x.pcap"), plain(second)).unwrap();
    std::fs::write(directory.path().join("2/notes.txt"), "not a capture").unwrap();
    let ran = http(directory.path(), &[]).exits(0);
    let ran = ran.says("notes.txt: 1 file of a directory skipped: not a capture");
    assert_eq!(ran.stdout, http(&demo(), &[]).exits(0).stdout);
    let totals = summary(directory.path(), &[]);
    assert_eq!(totals["input_faults"].as_array().unwrap().len(), 1);
}

#[test]
fn link_types_that_are_not_decoded_are_named_and_come_first() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("sensor.pcap");
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
        let lost = screen
            .lines()
            .find(|line| line.starts_with("  lost "))
            .unwrap();
        assert!(lost.ends_with(" not decoded 30"), "{screen}");
    }
    let ran = http(&path, &["-w", "/dev/null", "--summary", "-"]).exits(1);
    let totals: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(totals["undecoded_link_types"]["IEEE 802.15.4"], 30);
}

#[test]
fn packets_that_stand_with_a_note_are_decoded() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("note.pcap");
    let mut frames = demo_frames()[..30].to_vec();
    // The IP header says more than the frame has.
    frames[3].bytes[16] += 1;
    let row = |frames: &[CapturedFrame]| {
        std::fs::write(&path, plain(frames)).unwrap();
        let screen = screen("flows", &path);
        let row = screen.lines().find(|line| line.contains("not decoded "));
        row.map(str::to_owned)
    };
    assert_eq!(row(&frames), None);
    frames[4].bytes.truncate(20);
    let row = row(&frames).unwrap();
    assert!(
        row.ends_with("not decoded      ipv4 cut_by_capture 1"),
        "{row}"
    );
}

#[test]
fn a_trace_without_http_says_what_it_has() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("tls.pcap");
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
    let directory = tempdir().unwrap();
    let path = directory.path().join("parts.pcap");
    std::fs::write(&path, plain(&in_parts(&demo_frames(), 256))).unwrap();
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

/// Parts that overlap, are forged, come again, are lost, are impossible, too many, or too scattered.
fn mistreated() -> Vec<CapturedFrame> {
    let mut frames = Vec::new();
    for port in 40_000..40_040 {
        let mut talk = Conversation::v4(port);
        talk.handshake();
        for turn in 0..5 {
            talk.client_sends(format!(
                "GET /{port}/{turn} HTTP/1.1\r\nHost: a.example\r\n\r\n"
            ))
            .server_sends("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
        frames.extend(talk.frames());
    }
    frames.sort_by_key(|frame| frame.timestamp_ns);
    // So small that the first one ends within the TCP header.
    let mut frames = in_parts(&frames, 16);
    let kinds = [
        Trouble::Again(3),
        Trouble::Forged,
        Trouble::Late(2),
        Trouble::Lost,
        Trouble::Early,
        Trouble::Odd,
        Trouble::Again(900),
    ];
    let troubles = (0..).step_by(31).zip(kinds.into_iter().cycle());
    suffer(&mut frames, &troubles.take(200).collect::<Vec<_>>());
    let other = |client: &str| {
        Conversation::between(client.parse().unwrap(), "198.51.100.9:80".parse().unwrap())
    };
    let mut long = other("192.0.2.101:41000");
    long.client_sends(vec![b'x'; 1400]);
    let every_other = |(place, frame)| (place % 2 == 0).then_some(frame);
    let parts = in_parts(&long.frames(), 8).into_iter().enumerate();
    frames.extend(parts.filter_map(every_other));
    // More at once than there is room for.
    let mut crowd = other("192.0.2.102:42000");
    for _ in 0..1200 {
        crowd.client_sends([b'x'; 100]);
    }
    let starts = in_parts(&crowd.frames(), 48).into_iter().step_by(3);
    frames.extend(starts);
    let last = frames.iter().map(|frame| frame.timestamp_ns).max();
    let mut after =
        other("192.0.2.103:43000").starting_at(last.unwrap_or_default() + 31_000_000_000);
    after.client_sends("GET /after HTTP/1.1\r\n\r\n");
    frames.extend(in_parts(&after.frames(), 16));
    let mut times: Vec<u64> = frames.iter().map(|frame| frame.timestamp_ns).collect();
    times.sort_unstable();
    for (frame, time) in frames.iter_mut().zip(times) {
        frame.timestamp_ns = time;
    }
    frames
}

#[test]
fn mistreated_parts_are_counted_alike_by_any_number_of_workers() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("parts.pcap");
    std::fs::write(&path, plain(&mistreated())).unwrap();
    let file = path.to_str().unwrap();
    for command in ["http", "flows"] {
        let measured = |workers: &str| {
            let totals = directory.path().join("totals.json");
            let words = [command, "-q", "-r", file, "--workers", workers];
            let summary = ["--overwrite", "--summary", totals.to_str().unwrap()];
            let output = linkweir().args(words).args(summary).output().unwrap();
            let records = String::from_utf8(output.stdout).unwrap();
            let mut records: Vec<String> = records.lines().map(str::to_owned).collect();
            records.sort_unstable();
            let totals = std::fs::read_to_string(totals).unwrap();
            let totals: serde_json::Value = serde_json::from_str(&totals).unwrap();
            (records, totals, output.status.code())
        };
        let (records, totals, code) = measured("1");
        assert!(records.len() >= 40, "{command}: {}", records.len());
        let causes = totals["fragments"].as_object().unwrap();
        assert_eq!(causes.len(), 8, "{command}: {causes:?}");
        for workers in ["2", "3", "4"] {
            let (shared, sum, shared_code) = measured(workers);
            assert_eq!(shared, records, "{command}, {workers} workers");
            assert_eq!(shared_code, code);
            for key in [
                "fragments",
                "decode_errors",
                "packets",
                "bytes",
                "first_ts_ns",
                "last_ts_ns",
                "dropped",
            ] {
                assert_eq!(sum[key], totals[key], "{key}, {command}, {workers} workers");
            }
        }
    }
}

#[test]
fn packets_that_stand_with_a_fault_are_not_frames_that_did_not_decode() {
    let directory = tempdir().unwrap();
    let capture = directory.path().join("short.pcap");
    let mut talk = Conversation::v4(40_000);
    for _ in 0..5 {
        talk.client_sends("GET / HTTP/1.1\r\n\r\n");
    }
    let mut frames = talk.frames();
    for frame in &mut frames[..3] {
        // The IP header promises more than the record says of the frame.
        frame.wire_len -= 5;
        frame.bytes.truncate(frame.wire_len as usize);
    }
    // Not even the header is there.
    frames[3].bytes.truncate(20);
    std::fs::write(&capture, plain(&frames)).unwrap();
    for command in ["http", "flows"] {
        let page = directory.path().join("page.html");
        let words = ["-q", "-w", "/dev/null", "-r", capture.to_str().unwrap()];
        let totals = [
            "--summary",
            "-",
            "--overwrite",
            "--report",
            page.to_str().unwrap(),
        ];
        let ran = run(&[&[command], &words[..], &totals[..]].concat()).exits(0);
        let totals: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let causes = totals["decode_errors"].as_object().unwrap().values();
        let causes = causes.flat_map(|layer| layer.as_object().unwrap().values());
        let all: u64 = causes.filter_map(serde_json::Value::as_u64).sum();
        assert_eq!(all, 4, "{command}: {totals}");
        let page = std::fs::read_to_string(page).unwrap();
        assert!(
            page.contains("<b>1</b><span>frames that did not decode</span>"),
            "{command}"
        );
    }
}
