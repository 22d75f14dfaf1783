//! The baselines of the specification of Community ID (the repository `community-id-spec`), where they are at hand: every
//! id byte by byte, from the fields of a baseline and from the packets of the captures. Without them the test says so
//! and ends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a helper that fails is a failed test, and one that is left out says so"
)]

use linkweir_record::CommunityId;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// What an id is made of: protocol, addresses, and two numbers (ports, or type and code of ICMP).
type Tuple = (u8, IpAddr, IpAddr, Option<[u16; 2]>);

fn id(seed: u16, (protocol, source, destination, numbers): Tuple) -> CommunityId {
    match (protocol, numbers) {
        (1 | 58, Some([kind, code])) => {
            let [kind, code] = [kind, code].map(|number| u8::try_from(number).unwrap());
            CommunityId::of_icmp(seed, source, destination, kind, code)
        }
        (_, Some([from, to])) => {
            CommunityId::of_ports(seed, protocol, (source, from), (destination, to))
        }
        (_, None) => CommunityId::of_addresses(seed, protocol, source, destination),
    }
}

fn base64(id: CommunityId) -> String {
    String::from_utf8(id.text().as_bytes().to_vec()).unwrap()
}

fn hexadecimal(id: CommunityId) -> String {
    let digits = id.digest().iter().map(|byte| format!("{byte:02x}"));
    format!("1:{}", digits.collect::<String>())
}

fn baseline(directory: &Path, name: &str) -> Vec<(Tuple, String)> {
    let path = directory.join("baseline").join(name);
    let rows: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let number = |value: &Value| value.as_u64().map(|port| u16::try_from(port).unwrap());
    let address = |value: &Value| value.as_str().unwrap().parse().unwrap();
    let row = |row: &Value| {
        let protocol = u8::try_from(row["proto"].as_u64().unwrap()).unwrap();
        let numbers = number(&row["sport"]).zip(number(&row["dport"]));
        let tuple = (
            protocol,
            address(&row["saddr"]),
            address(&row["daddr"]),
            numbers.map(|(from, to)| [from, to]),
        );
        (tuple, row["communityid"].as_str().unwrap().to_owned())
    };
    rows.iter().map(row).collect()
}

/// The packets of a capture of Ethernet in the classic format of this machine's order.
fn packets(file: &[u8]) -> Vec<Tuple> {
    let mut tuples = Vec::new();
    let mut rest = &file[24..];
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let frame = &rest[16..16 + len];
        rest = &rest[16 + len..];
        let packet = &frame[14..];
        let (protocol, source, destination, payload) = match packet[0] >> 4 {
            _ if frame[12..14] == [0x08, 0x06] => continue,
            4 => (
                packet[9],
                IpAddr::from(<[u8; 4]>::try_from(&packet[12..16]).unwrap()),
                IpAddr::from(<[u8; 4]>::try_from(&packet[16..20]).unwrap()),
                &packet[usize::from(packet[0] & 15) * 4..],
            ),
            _ => (
                packet[6],
                IpAddr::from(<[u8; 16]>::try_from(&packet[8..24]).unwrap()),
                IpAddr::from(<[u8; 16]>::try_from(&packet[24..40]).unwrap()),
                &packet[40..],
            ),
        };
        let numbers = match protocol {
            1 | 58 => Some([payload[0], payload[1]].map(u16::from)),
            6 | 17 | 132 => {
                Some([0, 2].map(|at| u16::from_be_bytes([payload[at], payload[at + 1]])))
            }
            _ => None,
        };
        tuples.push((protocol, source, destination, numbers));
    }
    tuples
}

#[test]
fn every_id_is_that_of_the_baselines() {
    let directory = std::env::var_os("LINKWEIR_COMMUNITY_ID_SPEC").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites/community-id-spec"),
        PathBuf::from,
    );
    if !directory.is_dir() {
        eprintln!("SKIPPED: {} is not there", directory.display());
        return;
    }
    let captures = std::fs::read_dir(directory.join("pcaps")).unwrap();
    let captures = captures.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    let tuples: Vec<Tuple> = captures.flat_map(|file| packets(&file)).collect();
    for (name, seed, text) in [
        (
            "baseline_deflt.json",
            0,
            base64 as fn(CommunityId) -> String,
        ),
        ("baseline_seed1.json", 1, base64),
        ("baseline_nob64.json", 0, hexadecimal),
    ] {
        let rows = baseline(&directory, name);
        assert_eq!(rows.len(), 23, "{name}");
        for (tuple, wanted) in &rows {
            assert_eq!(&text(id(seed, *tuple)), wanted, "{name} {tuple:?}");
        }
        let wanted: BTreeSet<String> = rows.into_iter().map(|(_, id)| id).collect();
        let found: BTreeSet<String> = tuples.iter().map(|of| text(id(seed, *of))).collect();
        assert_eq!(found, wanted, "{name}");
    }
}
