//! A million connections of which transactions are estimated, open at the same time: their memory, and that more of them
//! make others leave.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::Stdio;

use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_wire::SeqNumber;
use linkweir_wire::emit::TcpFrame;
use serde_json::Value;
use tempfile::tempdir;

use crate::common::{linkweir, plain};

/// As many as are estimated at once.
const CONNECTIONS: u32 = 1 << 20;
/// So many more.
const MORE: u32 = 5000;
/// The most memory of so many, bytes: 160 of each, their addresses and ports, their place in the table.
const MOST_BYTES: u64 = 250_000_000;

/// Frames by which connections are joined late: a record of TLS from each client.
fn frames(range: std::ops::Range<u32>) -> Vec<CapturedFrame> {
    let record = [&[23, 3, 3, 0, 40][..], &[0xee; 40]].concat();
    let server = SocketAddr::from(([10, 255, 0, 1], 443));
    let each = range.map(|number| {
        let [_, a, b, c] = number.to_be_bytes();
        let bytes = TcpFrame {
            seq: SeqNumber(1000),
            ack: SeqNumber(1),
            payload: &record,
            ..TcpFrame::new(SocketAddr::from(([10, a, b, c], 40_000)), server)
        }
        .to_vec();
        CapturedFrame {
            timestamp_ns: 1_700_000_000_000_000_000 + u64::from(number) * 1000,
            interface: 0,
            wire_len: u32::try_from(bytes.len()).unwrap(),
            bytes,
        }
    });
    each.collect()
}

fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib * 1024
}

#[test]
fn a_million_connections_take_less_than_250_mb_and_more_make_room() {
    let directory = tempdir().unwrap();
    let summary = directory.path().join("summary.json");
    let mut process = linkweir()
        .args(["http", "-q", "-r", "-", "--no-output", "--summary"])
        .arg(&summary)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    let mut write = |range: std::ops::Range<u32>| {
        let file = plain(&frames(range.clone()));
        // The header of the file comes once.
        let from = if range.start == 0 { 0 } else { 24 };
        input.write_all(&file[from..]).unwrap();
    };
    // What the process takes anyway.
    write(0..20_000);
    let before = memory(process.id());
    let mut at = 20_000;
    while at < CONNECTIONS + MORE {
        let to = (at + 50_000).min(CONNECTIONS + MORE);
        write(at..to);
        at = to;
    }
    // The last of it is in the pipe or read.
    let after = memory(process.id());
    drop(input);
    // A connection that made room for another may have had more to say.
    assert_eq!(process.wait().unwrap().code(), Some(1));
    let taken = after.saturating_sub(before);
    println!("{CONNECTIONS} connections: {} MB", taken / 1_000_000);
    assert!((100_000_000..MOST_BYTES).contains(&taken), "{taken}");
    let summary: Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    let estimates = &summary["http"]["estimates"];
    assert_eq!(estimates["connections"], CONNECTIONS + MORE);
    assert_eq!(estimates["evicted"], MORE);
}
