//! `flows --kind`: handshakes of TLS and queries of DNS, as tshark sees them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use linkweir_testkit::capture_writer::CapturedFrame;
use serde_json::Value;

use crate::common::{installed, plain, run};
use crate::flow_streams::frame;

fn web(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testkit/captures/web")
        .join(name)
}

/// Records of a kind, as objects.
fn records(capture: &Path, kind: &str) -> Vec<Value> {
    let words = [
        "flows", "-q", "--kind", kind, "-w", "-", "--format", "jsonl", "-r",
    ];
    let words = words.map(str::to_owned);
    let ran = run(&[&words[..], &[capture.display().to_string()]].concat());
    let ran = ran.exits(0);
    let lines = ran.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What tshark has of the packets of TLS that match: fields by row.
fn tshark(capture: &Path, port: u64, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut tshark = Command::new("tshark");
    tshark.args([
        "-n",
        "-d",
        &format!("tcp.port=={port},tls"),
        "-Y",
        filter,
        "-T",
        "fields",
        "-r",
    ]);
    tshark.arg(capture);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().map(row).collect()
}

#[test]
fn handshakes_are_those_of_tshark() {
    if !installed("tshark") {
        return;
    }
    for name in [
        "chromium-h2",
        "nginx-h1-tls13",
        "nginx-h2-tls12",
        "nginx-h2-tls13",
    ] {
        let capture = web(&format!("{name}.pcap.gz"));
        let ours = records(&capture, "tls");
        let by_client: BTreeMap<u64, &Value> = ours
            .iter()
            .map(|record| (record["client_port"].as_u64().unwrap(), record))
            .collect();
        assert_eq!(by_client.len(), ours.len(), "{name}");
        let port = ours[0]["server_port"].as_u64().unwrap();
        let fields = [
            "tcp.dstport",
            "tls.handshake.ciphersuite",
            "frame.time_epoch",
        ];
        let servers = tshark(&capture, port, "tls.handshake.type == 2", &fields);
        assert!(!servers.is_empty(), "{name}");
        for row in &servers {
            let record = by_client[&row[0].parse().unwrap()];
            let suite = u64::from_str_radix(row[1].trim_start_matches("0x"), 16).unwrap();
            assert_eq!(record["cipher_suite"], suite, "{name}: {record}");
            assert_eq!(record["established"], 1, "{name}: {record}");
        }
        let fields = ["tcp.srcport", "tls.handshake.extensions_server_name"];
        for row in tshark(&capture, port, "tls.handshake.type == 1", &fields) {
            let record = by_client[&row[0].parse().unwrap()];
            assert_eq!(record["sni"].as_str().unwrap_or_default(), row[1], "{name}");
        }
        // Of TLS 1.2 the certificate can be seen where the session is not resumed.
        let fields = ["tcp.dstport", "x509ce.dNSName"];
        for row in tshark(&capture, port, "tls.handshake.type == 11", &fields) {
            let record = by_client[&row[0].parse().unwrap()];
            let names = record["names"].as_str().unwrap_or_default().split(',');
            // tshark has addresses in a field of their own.
            let hosts: Vec<&str> = names
                .filter(|name| name.parse::<IpAddr>().is_err())
                .collect();
            assert_eq!(hosts.join(","), row[1], "{name}: {record}");
            assert!(
                record["subject"].as_str().unwrap().contains("CN="),
                "{record}"
            );
            assert!(record["not_after_ns"].as_u64() > record["begin_ts_ns"].as_u64());
        }
        let is_of_twelve = name.ends_with("tls12");
        let versions = ours
            .iter()
            .map(|record| record["tls_version"].as_str().unwrap());
        assert!(
            versions
                .clone()
                .all(|version| (version == "1.2") == is_of_twelve),
            "{name}"
        );
    }
}

/// The server's first packets open with keys that follow from the client's, and say which suite it has chosen.
#[test]
fn handshakes_of_quic_are_those_of_tshark() {
    if !installed("tshark") {
        return;
    }
    for (name, connections) in [("caddy-h3", 3), ("chromium-h3", 1)] {
        let capture = web(&format!("{name}.pcap.gz"));
        let ours = records(&capture, "tls");
        assert_eq!(ours.len(), connections, "{name}");
        let fields = ["udp.dstport", "tls.handshake.ciphersuite"];
        let servers = tshark(&capture, 1, "tls.handshake.type == 2", &fields);
        assert_eq!(servers.len(), connections, "{name}");
        for row in servers {
            let client: u64 = row[0].parse().unwrap();
            let record = ours
                .iter()
                .find(|record| record["client_port"] == client)
                .unwrap();
            let suite = u64::from_str_radix(row[1].trim_start_matches("0x"), 16).unwrap();
            assert_eq!(record["cipher_suite"], suite, "{name}: {record}");
            assert_eq!(record["sni"], "localhost", "{name}: {record}");
            assert_eq!(
                (&record["established"], &record["protocol"]),
                (&1.into(), &"udp".into())
            );
            assert!(
                record["handshake_time_ns"].as_u64() > Some(0),
                "{name}: {record}"
            );
        }
    }
}

/// The fingerprints of the clients, curl and Chromium among them, as an independent calculation from tshark's fields
/// has them; that of Chromium is also the published one.
#[test]
fn clients_have_their_fingerprints() {
    for (name, wanted) in [
        (
            "nginx-h1-tls13",
            &[
                ("t13d0411h1_16476d049b0b_303c7117418d", 16),
                ("t13d0412h1_16476d049b0b_622f681f1a22", 1),
            ][..],
        ),
        (
            "nginx-h2-tls13",
            &[
                ("t13d0211h2_ec078ce24869_303c7117418d", 1),
                ("t13d0411h1_16476d049b0b_303c7117418d", 1),
                ("t13d0412h2_16476d049b0b_622f681f1a22", 1),
                ("t13d0412h2_16476d049b0b_85302d7e289e", 8),
            ],
        ),
        (
            "chromium-h2",
            &[("t13d1517h2_8daaf6152771_cb7bf5808d99", 1)],
        ),
        (
            "chromium-h3",
            &[("q13d0312h3_55b375c5d22e_178839b6cec1", 1)],
        ),
        (
            "caddy-h3",
            &[
                ("q13d0107h3_0f2cb44170f4_1cecd519fee8", 1),
                ("q13d0107h3_58070c528ac8_1cecd519fee8", 1),
                ("q13d0107h3_ee47968ec53b_1cecd519fee8", 1),
            ],
        ),
    ] {
        let capture = web(&format!("{name}.pcap.gz"));
        for (kind, is_of_tls) in [("tls", "tls_version"), ("flow", "ja4")] {
            let ours = records(&capture, kind);
            let with = ours.iter().filter(|record| !record[is_of_tls].is_null());
            let mut found = BTreeMap::<&str, usize>::new();
            for record in with {
                *found.entry(record["ja4"].as_str().unwrap()).or_default() += 1;
            }
            assert!(
                found
                    .iter()
                    .map(|(ja4, count)| (*ja4, *count))
                    .eq(wanted.iter().copied()),
                "{name} {kind}: {found:?}"
            );
        }
    }
}

/// A message about `name`, with these records behind it.
fn message(id: u16, flags: u16, name: &str, kind: u16, answers: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend([0, 1, 0, u8::try_from(answers.len()).unwrap(), 0, 0, 0, 0]);
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    for (kind, data) in answers {
        bytes.extend([0xC0, 12]);
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0, 1, 0, 0, 1, 44]);
        bytes.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        bytes.extend(data);
    }
    bytes
}

/// Queries: with two addresses, of a name that is not there, sent twice, without a response.
fn resolver() -> Vec<CapturedFrame> {
    let server = SocketAddr::from(([192, 0, 2, 53], 53));
    let client = |port| SocketAddr::from(([10, 0, 0, 1], port));
    let addresses = [(1, vec![192, 0, 2, 1]), (1, vec![192, 0, 2, 2])];
    let text = [(16, b"\x05a,b c".to_vec())];
    vec![
        frame(
            0,
            client(40_000),
            server,
            &message(1, 0x0100, "www.example", 1, &[]),
        ),
        frame(
            2_500,
            server,
            client(40_000),
            &message(1, 0x8180, "www.example", 1, &addresses),
        ),
        frame(
            3_000,
            client(40_001),
            server,
            &message(2, 0x0100, "gone.example", 28, &[]),
        ),
        frame(
            4_000,
            server,
            client(40_001),
            &message(2, 0x8183, "gone.example", 28, &[]),
        ),
        frame(
            5_000,
            client(40_002),
            server,
            &message(3, 0x0100, "text.example", 16, &[]),
        ),
        frame(
            6_000,
            client(40_002),
            server,
            &message(3, 0x0100, "text.example", 16, &[]),
        ),
        frame(
            9_000,
            server,
            client(40_002),
            &message(3, 0x8580, "text.example", 16, &text),
        ),
        frame(
            9_500,
            client(40_003),
            server,
            &message(4, 0x0100, "silent.example", 1, &[]),
        ),
    ]
}

#[test]
fn queries_and_responses_are_one_record() {
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("dns.pcap");
    std::fs::write(&capture, plain(&resolver())).unwrap();
    let ours = records(&capture, "dns");
    let field = |at: usize, name: &str| ours[at][name].clone();
    let states: Vec<&str> = ours
        .iter()
        .map(|one| one["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["complete", "complete", "complete", "unanswered"]);
    assert_eq!(field(0, "response_time_ns"), 2_500_000);
    assert_eq!(field(0, "answers"), "192.0.2.1,192.0.2.2");
    assert_eq!(field(0, "ttls"), "300,300");
    assert_eq!(
        (field(1, "rcode_name"), field(1, "qtype_name")),
        ("NXDOMAIN".into(), "AAAA".into())
    );
    assert_eq!(
        (field(2, "retransmissions"), field(2, "response_time_ns")),
        (1.into(), 4_000_000.into())
    );
    // The comma in the text is escaped in the list, and the list's backslash in the file.
    assert_eq!(field(2, "answers"), "a\\x5cx2cb c");
    assert_eq!(
        (field(3, "query"), field(3, "rcode")),
        ("silent.example".into(), Value::Null)
    );

    // As Zeek's log, by the name of the file.
    let log = directory.path().join("dns.log");
    let words = [
        "flows",
        "-q",
        "--kind",
        "dns",
        "-r",
        capture.to_str().unwrap(),
        "-w",
        log.to_str().unwrap(),
    ];
    run(&words).exits(0);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("#path\tdns\n"), "{text}");
    let first = text.lines().find(|line| !line.starts_with('#')).unwrap();
    let cells: Vec<&str> = first.split('\t').collect();
    let expected = [
        "udp",
        "1",
        "0.002500",
        "www.example",
        "1",
        "C_INTERNET",
        "1",
        "A",
        "0",
        "NOERROR",
        "F",
        "F",
        "T",
        "T",
        "0",
        "192.0.2.1,192.0.2.2",
        "300.000000,300.000000",
        "F",
    ];
    assert_eq!(cells[6..24], expected);

    if installed("tshark") {
        let output = Command::new("tshark")
            .args([
                "-n", "-Y", "dns.time", "-T", "fields", "-e", "dns.time", "-r",
            ])
            .arg(&capture)
            .output()
            .unwrap();
        let times = String::from_utf8(output.stdout).unwrap();
        let theirs: Vec<f64> = times.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(theirs.len(), 3);
        for (at, theirs) in theirs.iter().enumerate() {
            let ours = field(at, "response_time_ns").as_f64().unwrap() * 1e-9;
            assert!((ours - theirs).abs() < 1e-6, "{ours} {theirs}");
        }
    }
}

#[test]
fn what_only_flows_have_is_refused() {
    for (words, why) in [
        (
            &["--format", "tstat", "-w", "tree"][..],
            "--format tstat is of flows",
        ),
        (&["--sample", "1/2"], "--sample is of flows"),
        (&["--no-names"], "--no-names does not inspect payloads"),
    ] {
        let capture = web("chromium-h2.pcap.gz");
        let all = [
            &[
                "flows",
                "-q",
                "--kind",
                "tls",
                "-r",
                capture.to_str().unwrap(),
            ],
            words,
        ]
        .concat();
        let ran = run(&all).exits(2);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
}
