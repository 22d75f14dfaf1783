//! The names that flow records give, against those that tshark reads from the same hellos.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{ended, installed, linkweir, skipped};
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
    let folder = linkweir_testkit::real_captures::folder();
    if !folder.is_dir() {
        skipped("there are no captures beside the repository");
        return;
    }
    if !installed("tshark") {
        return;
    }
    let mut count = 0;
    for name in CAPTURES {
        let capture = folder.join(name);
        let expected = by_tshark(&capture);
        assert_eq!(by_flows(&capture), expected, "{name}");
        count += expected.len();
    }
    assert!(count > 60, "{count}");
}
