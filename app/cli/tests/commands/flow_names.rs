//! The names that flow records give, against those that tshark reads from the same hellos, and their labels
//! of several applications, against the protocols that it sees.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{ended, installed, linkweir, plain, run, skipped};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_wire::emit::UdpFrame;
use serde_json::Value;

/// Captures of TLS and of every version of QUIC whose hellos are whole and outside of tunnels.
const CAPTURES: [&str; 14] = [
    "DanieleDeSensi__peafowl/test/pcaps/quic-039.pcap",
    "DanieleDeSensi__peafowl/test/pcaps/quic-043.pcap",
    "DanieleDeSensi__peafowl/test/pcaps/quic-050.pcap",
    "DanieleDeSensi__peafowl/test/pcaps/quic-draft29.pcap",
    "OISF__suricata-verify/tests/quic-frag-wait/input.pcap",
    "OISF__suricata-verify/tests/quic-retry/input.pcap",
    "ntop__nDPI/tests/cfgs/default/pcap/quic-33.pcapng",
    "ntop__nDPI/tests/cfgs/default/pcap/quic-mvfst-exp.pcap",
    "ntop__nDPI/tests/cfgs/default/pcap/quic-v2.pcapng",
    "ntop__nDPI/tests/cfgs/default/pcap/quic_frags_ch_in_multiple_packets.pcapng",
    "ntop__nDPI/tests/cfgs/default/pcap/quic_interop_V.pcapng",
    "ntop__nDPI/tests/cfgs/default/pcap/quic_q50.pcap",
    "stanford-esrg__retina/traces/quic_kyber.pcapng",
    "zeek__zeek/testing/btest/Traces/quic/quic-multiple-initial-fragmented-crypto.pcap",
];

/// Client, its port, and the name that it asked for.
type Names = BTreeSet<(String, u64, String)>;

fn by_tshark(capture: &Path) -> Names {
    let fields = [
        "ip.src",
        "ipv6.src",
        "tcp.srcport",
        "udp.srcport",
        "tls.handshake.extensions_server_name",
        "gquic.tag.sni",
    ];
    let output = Command::new("tshark")
        .args(["-n", "-Y", "tls.handshake.type==1 || gquic.tag.sni", "-r"])
        .arg(capture)
        .args(["-T", "fields", "-E", "occurrence=f"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            let either = |at: usize| [cells[at], cells[at + 1]].concat();
            let name = either(4);
            (!name.is_empty()).then(|| (either(0), either(2).parse().unwrap(), name))
        })
        .collect()
}

fn by_flows(capture: &Path) -> Names {
    let output = linkweir()
        .args(["flows", "-q", "--format", "jsonl", "-w", "-", "-r"])
        .arg(capture)
        .output()
        .unwrap();
    ended(output)
        .exits(0)
        .lines()
        .into_iter()
        .filter_map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            let name = record["c_tls_SNI"]
                .as_str()
                .or_else(|| record["quic_SNI"].as_str())?;
            let client = record["c_ip"].as_str().unwrap().to_owned();
            Some((client, record["c_port"].as_u64().unwrap(), name.to_owned()))
        })
        .collect()
}

#[test]
fn the_names_in_hellos_are_those_that_tshark_reads() {
    let directory = linkweir_testkit::real_captures::directory();
    if !directory.is_dir() {
        skipped("there are no captures beside the repository");
        return;
    }
    if !installed("tshark") {
        return;
    }
    let mut count = 0;
    for name in CAPTURES {
        let capture = directory.join(name);
        let expected = by_tshark(&capture);
        assert_eq!(by_flows(&capture), expected, "{name}");
        count += expected.len();
    }
    assert!(count > 60, "{count}");
}

/// Captures of flows that begin with STUN: WebRTC, calls, relays.
const OPENED_BY_STUN: [&str; 6] = [
    "ntop__nDPI/tests/cfgs/default/pcap/stun_dtls_rtp_unidir.pcapng",
    "ntop__nDPI/tests/cfgs/default/pcap/stun_dtls_unidirectional_server.pcap",
    "ntop__nDPI/tests/cfgs/default/pcap/stun_msteams_unidir.pcapng",
    "ntop__nDPI/tests/cfgs/default/pcap/stun_signal.pcapng",
    "ntop__nDPI/tests/cfgs/default/pcap/teams.pcap",
    "zeek__zeek/testing/btest/Traces/tls/webrtc-stun.pcap",
];

/// Both ends of a flow, whoever opened it.
type Pair = [(String, String); 2];

fn pair(a: (&str, &str), b: (&str, &str)) -> Pair {
    let mut ends = [a, b].map(|(address, port)| (address.to_owned(), port.to_owned()));
    ends.sort();
    ends
}

/// What tshark sees in each UDP flow, in the order of its packets, by its heuristics.
fn protocols(capture: &Path) -> BTreeMap<Pair, Vec<String>> {
    let output = Command::new("tshark")
        .args([
            "-n",
            "--enable-heuristic",
            "rtp_udp",
            "-Y",
            "udp && !icmp",
            "-r",
        ])
        .arg(capture)
        .args(["-T", "fields"])
        .args(
            [
                "ip.src",
                "udp.srcport",
                "ip.dst",
                "udp.dstport",
                "frame.protocols",
            ]
            .map(|f| ["-e", f])
            .concat(),
        )
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut flows: BTreeMap<Pair, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let (_, above) = cells[4].split_once(":udp").unwrap();
        let above = above.trim_start_matches(':').split(':').next().unwrap();
        let ends = pair((cells[0], cells[1]), (cells[2], cells[3]));
        flows.entry(ends).or_default().push(above.to_owned());
    }
    flows
}

#[test]
fn what_follows_stun_is_what_tshark_sees() {
    let directory = linkweir_testkit::real_captures::directory();
    if !directory.is_dir() {
        skipped("there are no captures beside the repository");
        return;
    }
    if !installed("tshark") {
        return;
    }
    let mut counts = BTreeMap::from([("stun", 0), ("dtls", 0), ("rtp", 0)]);
    for name in OPENED_BY_STUN {
        let capture = directory.join(name);
        let theirs = protocols(&capture);
        let output = linkweir()
            .args(["flows", "-q", "--format", "jsonl", "-w", "-", "-r"])
            .arg(&capture)
            .output()
            .unwrap();
        for line in ended(output).exits(0).lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| record[key].to_string().trim_matches('"').to_owned();
            let [client, server] =
                ["c", "s"].map(|side| (text(&format!("{side}_ip")), text(&format!("{side}_port"))));
            let ends = pair((&client.0, &client.1), (&server.0, &server.1));
            let theirs = theirs.get(&ends).filter(|_| record["protocol"] == "udp");
            let Some(theirs) = theirs.filter(|theirs| theirs[0] == "stun") else {
                continue;
            };
            let label = text("application");
            for (word, count) in &mut counts {
                // Packets of media that agree, and perhaps one that comes alone.
                let least = if *word == "rtp" { 4 } else { 1 };
                let is_seen = theirs.iter().filter(|other| other == word).count() >= least;
                let is_ours = label.split(',').any(|ours| ours == *word);
                assert_eq!(is_ours, is_seen, "{name} {ends:?} {label}: {theirs:?}");
                *count += usize::from(is_ours);
            }
        }
    }
    assert!(
        counts["stun"] > 30 && counts["dtls"] > 1 && counts["rtp"] > 1,
        "{counts:?}"
    );
}

#[test]
fn several_applications_are_one_cell_in_every_format() {
    let (client, server) = ("10.0.0.1:40000", "192.0.2.1:50000");
    let (client, server) = (client.parse().unwrap(), server.parse().unwrap());
    let media = |sequence: u8| {
        let header = [0x80, 111, 0, sequence, 0, 0, 0, sequence, 0, 0, 0xCA, 0xFE];
        [&header[..], &[0xD5; 40]].concat()
    };
    let datagrams = [
        [&[0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42][..], &[5; 12]].concat(),
        [&[22, 0xFE, 0xFD][..], &[0; 9], &[20, 1], &[0; 19]].concat(),
        media(1),
        media(2),
        media(3),
    ];
    let frames = (1..).zip(&datagrams).map(|(number, payload)| {
        let bytes = UdpFrame {
            payload,
            ..UdpFrame::new(client, server)
        }
        .to_vec();
        CapturedFrame {
            timestamp_ns: number * 1_000_000_000,
            interface: 0,
            wire_len: u32::try_from(bytes.len()).unwrap(),
            bytes,
        }
    });
    let frames: Vec<CapturedFrame> = frames.collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("call.pcap");
    std::fs::write(&path, plain(&frames)).unwrap();
    for (format, cell) in [
        ("text", "|stun,dtls,rtp|"),
        ("jsonl", r#""application":"stun,dtls,rtp""#),
        ("csv", r#","stun,dtls,rtp","#),
        ("spreadsheet", r#","stun,dtls,rtp","#),
        ("zeek", "\tstun,dtls,rtp\t"),
        ("zeek-json", r#""service":"stun,dtls,rtp""#),
    ] {
        let words = [
            "flows",
            "-q",
            "--format",
            format,
            "-r",
            path.to_str().unwrap(),
        ];
        let out = run(&words).exits(0).stdout;
        assert!(out.contains(cell), "{format}: {out}");
    }
}
