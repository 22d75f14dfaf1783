//! Streams of RTP and reports of RTCP: what was put into a capture comes out, and tshark counts the same.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{installed, plain, run, skipped};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_wire::emit::UdpFrame;

const MS: u64 = 1_000_000;
/// 2026-11-25 12:00 UTC.
const START: u64 = 1_795_608_000_000 * MS;

/// A datagram so many microseconds after the start.
pub(crate) fn frame(at_us: u64, from: SocketAddr, to: SocketAddr, payload: &[u8]) -> CapturedFrame {
    let bytes = UdpFrame {
        payload,
        ..UdpFrame::new(from, to)
    }
    .to_vec();
    CapturedFrame {
        timestamp_ns: START + at_us * 1_000,
        interface: 0,
        wire_len: u32::try_from(bytes.len()).unwrap(),
        bytes,
    }
}

/// Packet number `number` of a stream of 20 ms of 8 kHz.
fn media(kind: u8, source: u32, number: u16) -> Vec<u8> {
    let mut bytes = vec![0x80, kind];
    bytes.extend(65_500_u16.wrapping_add(number).to_be_bytes());
    bytes.extend((u32::from(number) * 160 + 7).to_be_bytes());
    bytes.extend(source.to_be_bytes());
    bytes.extend([0xD5; 160]);
    bytes
}

fn report(kind: u8, count: u8, words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0x80 | count, kind];
    bytes.extend(u16::try_from(words.len()).unwrap().to_be_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    bytes
}

fn ends(port: u16) -> (SocketAddr, SocketAddr) {
    (
        SocketAddr::from(([10, 0, 0, 1], port)),
        SocketAddr::from(([192, 0, 2, 1], port + 1_000)),
    )
}

/// A call: of 300 packets of the caller 4 are lost, 3 of them in a row, and one comes late; of the 300 of
/// the other side 2 come twice. Beside it reports every second.
fn call() -> Vec<CapturedFrame> {
    let (caller, callee) = ends(40_000);
    let (caller_rtcp, callee_rtcp) = ends(40_001);
    let mut frames = Vec::new();
    for number in 0..300_u16 {
        let at = u64::from(number) * 20_000;
        // Some way longer than others.
        let jitter = u64::from(number % 5) * 900;
        let late = if number == 77 { 45_000 } else { 0 };
        if ![50, 120, 121, 122].contains(&number) {
            let payload = media(0, 0xA1, number);
            frames.push(frame(at + jitter + late, caller, callee, &payload));
        }
        let payload = media(8, 0xB2, number);
        frames.push(frame(at + 3_000, callee, caller, &payload));
        if number == 10 || number == 200 {
            frames.push(frame(at + 4_000, callee, caller, &payload));
        }
    }
    for second in 0..5_u32 {
        let at = u64::from(second) * 1_000_000 + 500;
        let packets = 50 * second;
        let info = [
            0xA1,
            0x1234_0000 + second,
            0x8000_0000,
            0,
            packets,
            packets * 160,
        ];
        frames.push(frame(at, caller_rtcp, callee_rtcp, &report(200, 0, &info)));
        // 30 ms to the callee and back, of which it held the report for a quarter of a second.
        let clock = second << 16 | 0x8000;
        let block = [
            0xB2,
            0xA1,
            0x1A00_0000 + second,
            0,
            40 + second,
            clock,
            0x4000,
        ];
        let payload = report(201, 1, &block);
        frames.push(frame(at + 280_000, callee_rtcp, caller_rtcp, &payload));
    }
    frames.sort_by_key(|frame| frame.timestamp_ns);
    frames
}

type Row = BTreeMap<String, String>;

/// The lines of `log_mm_complete` by kind and source.
fn measured(capture: &Path, directory: &Path) -> BTreeMap<(String, u32), Row> {
    let words = [
        "flows",
        "-q",
        "--format",
        "tstat",
        "-w",
        directory.to_str().unwrap(),
    ];
    run(&[&words[..], &["-r", capture.to_str().unwrap()]].concat()).exits(0);
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path().join("log_mm_complete")).unwrap();
        let mut lines = text.lines();
        let header = lines.next().unwrap().trim_start_matches('#');
        let names = header
            .split(' ')
            .map(|name| name.split_once(':').unwrap().0);
        let names = names.collect::<Vec<_>>();
        assert_eq!(names.len(), 53);
        for line in lines {
            let cells = line.split(' ').map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(cells.len(), names.len(), "{line}");
            let row = names.iter().map(|name| (*name).to_owned()).zip(cells);
            let row = row.collect::<BTreeMap<_, _>>();
            let source = u32::from_str_radix(row["SSRC"].trim_start_matches("0x"), 16).unwrap();
            all.insert((row["a_proto"].clone(), source), row);
        }
    }
    all
}

/// What a histogram of the run's only step holds.
fn histogram(directory: &Path, name: &str) -> Vec<(u64, u64)> {
    let tree = std::fs::read_dir(directory)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let text = std::fs::read_to_string(tree.path().join("LAST").join(name)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (edge, count) = line.split_once(' ').unwrap();
        (edge.parse().unwrap(), count.parse().unwrap())
    };
    lines.map(pair).collect()
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap()
}

#[test]
fn a_call_has_its_losses_jitter_and_round_trips() {
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("call.pcap");
    std::fs::write(&capture, plain(&call())).unwrap();
    let tree = directory.path().join("tree");
    let rows = measured(&capture, &tree);
    assert_eq!(rows.len(), 4, "{:?}", rows.keys());
    let is = |row: &Row, expected: &[(&str, &str)]| {
        for (column, value) in expected {
            assert_eq!(row[*column], *value, "{column} of {row:?}");
        }
    };
    let caller = &rows[&("R".to_owned(), 0xA1)];
    is(
        caller,
        &[
            ("direction", "C"),
            ("c_ip", "10.0.0.1"),
            ("packets", "296"),
            ("databytes", "47360"),
            ("losses", "4"),
            // Behind two gaps, the late one, and the one that left a gap for it.
            ("oos", "4"),
            ("dup", "0"),
            ("late", "0"),
            ("pt_id", "0"),
            ("pt_counters", "296"),
            ("rtp_max_payload", "160"),
            ("rtp_stdev_payload", "0.000000"),
            ("c_mux_prot", "16"),
            ("ttl_avg", "64.000000"),
        ],
    );
    assert!(number(caller, "jitter_avg") > 0.2 && number(caller, "jitter_max") < 8.0);
    // The clock of the payload type is that of 8 kHz.
    assert_eq!(caller["jitter_avg"], caller["jitter8k_avg"]);
    let callee = &rows[&("R".to_owned(), 0xB2)];
    is(
        callee,
        &[
            ("direction", "S"),
            ("packets", "302"),
            ("losses", "0"),
            ("oos", "0"),
            ("dup", "2"),
            ("ipg", "19.993311"),
            ("jitter_max", "0.000000"),
        ],
    );
    let reports = &rows[&("T".to_owned(), 0xB2)];
    is(
        reports,
        &[
            ("packets", "5"),
            ("ipg", "1000.000000"),
            ("jitter_avg", "42.000000"),
            ("jitter_max", "44.000000"),
            ("pt_id", "201"),
            ("rtcp_losses", "4"),
            ("rtt_avg", "30.000000"),
            ("rtt_samples", "5"),
            ("rtcp_trunc", "0"),
        ],
    );
    assert!((number(reports, "rtcp_fraclost") - 26.0 * 100.0 / 256.0).abs() < 1e-6);
    is(
        &rows[&("T".to_owned(), 0xA1)],
        &[
            ("rtcp_lenpack", "200"),
            ("rtcp_lenbytes", "32000"),
            ("rtt_samples", "0"),
        ],
    );
    // Without `--internal` everything is local.
    for (name, expected) in [
        ("mm_type_loc", vec![(3, 2), (4, 2)]),
        ("mm_burst_loss_loc", vec![(0, 594), (1, 1), (3, 1)]),
        ("mm_p_lost_loc", vec![(0, 1), (13, 1)]),
        ("mm_p_dup_loc", vec![(0, 1), (6, 1)]),
        ("mm_reord_p_n_loc", vec![(0, 1)]),
        ("mm_oos_p_loc", vec![(0, 4)]),
        ("mm_rtp_pt_loc", vec![(0, 1), (8, 1)]),
        ("mm_cl_p_s_loc", vec![(296, 1), (302, 1)]),
        ("rtcp_rtt_loc", vec![(30, 5)]),
        ("rtcp_lost_loc", vec![(1, 4)]),
        ("rtcp_f_lost_loc", vec![(101, 5)]),
        ("rtcp_mm_bt_loc", vec![(64, 4)]),
        ("rtcp_mm_cl_p_loc", vec![(0, 1), (200, 1)]),
        (
            "rtcp_jitter_loc",
            vec![(40, 1), (41, 1), (42, 1), (43, 1), (44, 1)],
        ),
    ] {
        assert_eq!(histogram(&tree, name), expected, "{name}");
    }
}

/// Of each source packets, lost ones, and the largest jitter in milliseconds.
fn by_tshark(capture: &Path, options: &[&str]) -> BTreeMap<u32, (u64, i64, f64)> {
    let output = Command::new("tshark")
        .args(["-n", "-q", "-z", "rtp,streams"])
        .args(options)
        .arg("-r")
        .arg(capture)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut all = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains(" 0x")) {
        let (_, behind) = line.split_once(" 0x").unwrap();
        let (source, behind) = behind.split_once(' ').unwrap();
        let (before, behind) = behind.split_once(" (").unwrap();
        let mut words = before.split_whitespace().rev();
        let lost = words.next().unwrap().parse().unwrap();
        let packets = words.next().unwrap().parse().unwrap();
        let jitter = behind.split_whitespace().nth(6).unwrap().parse().unwrap();
        let source = u32::from_str_radix(source, 16).unwrap();
        all.insert(source, (packets, lost, jitter));
    }
    all
}

#[test]
fn streams_are_those_of_tshark() {
    if !installed("tshark") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("call.pcap");
    // Of packets that come twice tshark makes a negative loss.
    let mut frames = call();
    let mut before = Vec::new();
    frames.retain(|frame| std::mem::replace(&mut before, frame.bytes.clone()) != frame.bytes);
    std::fs::write(&capture, plain(&frames)).unwrap();
    let options = ["-d", "udp.port==40000,rtp"];
    let theirs = by_tshark(&capture, &options);
    let ours = measured(&capture, &directory.path().join("tree"));
    assert_eq!(theirs.len(), 2);
    for (source, (packets, lost, jitter)) in theirs {
        let row = &ours[&("R".to_owned(), source)];
        assert_eq!(row["packets"], packets.to_string(), "{source:x}");
        assert_eq!(row["losses"], lost.to_string(), "{source:x}");
        let difference = number(row, "jitter_max") - jitter;
        assert!(difference.abs() < 0.002, "{source:x}: {jitter} {row:?}");
    }
    let captures = linkweir_testkit::real_captures::directory();
    if !captures.is_dir() {
        skipped("there are no captures beside the repository");
        return;
    }
    // Sources of a packet or two are no streams to us.
    let mut compared = 0;
    for (at, name) in CALLS.iter().enumerate() {
        let capture = captures.join(name);
        let theirs = by_tshark(&capture, &["--enable-heuristic", "rtp_udp"]);
        let ours = measured(&capture, &directory.path().join(format!("real{at}")));
        for (source, (packets, lost, _)) in theirs {
            let Some(row) = ours.get(&("R".to_owned(), source)) else {
                assert!(packets < 3, "{name}: {source:x} with {packets} packets");
                continue;
            };
            let found = (row["packets"].clone(), row["losses"].clone());
            let expected = (packets.to_string(), lost.to_string());
            assert_eq!(found, expected, "{name} {source:x}");
            compared += 1;
        }
    }
    assert!(compared >= CALLS.len(), "{compared}");
}

/// Captures of media in which a source is of one stream only, and that tshark's heuristics read from the first
/// packet on.
const CALLS: [&str; 4] = [
    "arkime__arkime/tests/pcap/gtp-iphone.pcap",
    "ntop__nDPI/tests/cfgs/default/pcap/geforcenow.pcapng",
    "ntop__nDPI/tests/cfgs/default/pcap/skype-conference-call.pcap",
    "ntop__nDPI/tests/cfgs/default/pcap/teams.pcap",
];

/// A message of DNS on `www.example.com`, type A, with these flags and this behind its question.
fn dns(flags: u16, answers: u16, behind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34];
    for word in [flags, 1, answers, 0, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(b"\x03www\x07example\x03com\x00\x00\x01\x00\x01");
    bytes.extend(behind);
    bytes
}

#[test]
fn questions_and_answers_of_dns_have_their_lines() {
    let client = SocketAddr::from(([10, 0, 0, 1], 40_000));
    let resolver = SocketAddr::from(([192, 0, 2, 53], 53));
    let mut records = b"\xC0\x0C\x00\x05\x00\x01\x00\x00\x01\x2C\x00\x06\x03cdn\xC0\x10".to_vec();
    records.extend(b"\xC0\x2D\x00\x01\x00\x01\x00\x00\x00\x3C\x00\x04\xC6\x33\x64\x07");
    let frames = [
        frame(0, client, resolver, &dns(0x0120, 0, &[])),
        frame(20_000, resolver, client, &dns(0x8180, 2, &records)),
        frame(40_000, resolver, client, &dns(0x8403, 0, &[])),
    ];
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("dns.pcap");
    std::fs::write(&capture, plain(&frames)).unwrap();
    let read = |name: &str, more: &[&str]| {
        let tree = directory.path().join(name);
        let words = [
            "flows",
            "-q",
            "--format",
            "tstat",
            "-w",
            tree.to_str().unwrap(),
        ];
        let words = [&words[..], more, &["-r", capture.to_str().unwrap()]].concat();
        run(&words).exits(0);
        let of_run = std::fs::read_dir(&tree).unwrap().next().unwrap().unwrap();
        let text = std::fs::read_to_string(of_run.path().join("log_dns_complete")).unwrap();
        let lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(lines[0].starts_with("#c_ip:1 c_port:2 ") && lines[0].ends_with(" pkt_size:22"));
        lines[1..].to_vec()
    };
    let ends = "10.0.0.1 40000 1 0 192.0.2.53 53 1 0";
    let expected = [
        "1795608000.000000 REQ 0x1234 www.example.com - IN A - 0x0a 1 0 0 0 33",
        "1795608000.020000 RESP 0x1234 www.example.com 300 IN CNAME cdn.example.com 0x0c 1 2 0 0 67",
        "1795608000.020000 RESP 0x1234 cdn.example.com 60 IN A 198.51.100.7 0x0c 1 2 0 0 67",
        "1795608000.040000 RESP_ERR 0x1234 www.example.com - IN A NXDOMAIN 0x20 1 0 0 0 33",
    ];
    let expected = expected.map(|line| format!("{ends} {line}"));
    assert_eq!(read("tree", &[]), expected);
    let internal = directory.path().join("internal");
    std::fs::write(&internal, "10.0.0.0/8\n").unwrap();
    let lines = read("inside", &["--internal", internal.to_str().unwrap()]);
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("10.0.0.1 40000 1 0 192.0.2.53 53 0 0 "))
    );
}
