//! What tshark finds in the same capture: messages, codes, and every response time to the
//! microsecond.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{demo, http, installed, summary};
use linkweir_testkit::capture_writer::{PcapVariant, pcap};
use linkweir_testkit::conversation::{Conversation, Encapsulation, Side};
use linkweir_testkit::script::{Exchange, Framing, tell};
use serde_json::Value;
use tempfile::tempdir;

/// One HTTP frame as tshark tells it.
#[derive(Debug)]
struct Frame {
    time_us: u64,
    method: String,
    code: Option<u64>,
    time: Option<u64>,
    request_in: Option<u64>,
}

/// Frames by number. Where segments are put together, a message belongs to its last frame.
fn tshark(capture: &Path, reassemble: bool) -> BTreeMap<u64, Frame> {
    let preference = if reassemble { "TRUE" } else { "FALSE" };
    let fields = [
        "frame.number",
        "frame.time_epoch",
        "http.request.method",
        "http.response.code",
        "http.time",
        "http.request_in",
    ];
    let output = Command::new("tshark")
        .args([
            "-n",
            "-o",
            &format!("tcp.desegment_tcp_streams:{preference}"),
            "-Y",
            "http",
            "-r",
        ])
        .arg(capture)
        .args(["-T", "fields"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let number = |text: &str| text.parse().ok();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| {
            let mut cells = line.split('\t');
            let mut next = || cells.next().unwrap_or_default();
            let at = number(next())?;
            let frame = Frame {
                time_us: micros(next())?,
                method: next().to_owned(),
                code: number(next()),
                time: micros(next()),
                request_in: number(next()),
            };
            Some((at, frame))
        })
        .collect()
}

/// Seconds with nine decimals as microseconds.
fn micros(seconds: &str) -> Option<u64> {
    let (whole, fraction) = seconds.split_once('.')?;
    let millionths = fraction.get(..6)?;
    Some(whole.parse::<u64>().ok()? * 1_000_000 + millionths.parse::<u64>().ok()?)
}

fn records(capture: &Path) -> Vec<Value> {
    let text = http(capture, &["--ttlb", "--format", "jsonl"])
        .exits(0)
        .stdout;
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn us(record: &Value, key: &str) -> Option<u64> {
    record[key].as_u64().map(|ns| ns / 1000)
}

fn agree(capture: &Path) {
    let frames = tshark(capture, false);
    let (ours, records) = (summary(capture, &[]), records(capture));

    let mut methods: BTreeMap<&str, u64> = BTreeMap::new();
    let mut codes: BTreeMap<String, u64> = BTreeMap::new();
    for frame in frames.values() {
        if !frame.method.is_empty() {
            *methods.entry(&frame.method).or_default() += 1;
        }
        if let Some(code) = frame.code {
            *codes.entry(code.to_string()).or_default() += 1;
        }
    }
    assert_eq!(ours["http"]["requests"], methods.values().sum::<u64>());
    assert_eq!(ours["http"]["responses"], codes.values().sum::<u64>());
    assert_eq!(
        ours["http"]["methods"],
        serde_json::to_value(&methods).unwrap()
    );
    assert_eq!(
        ours["http"]["status_codes"],
        serde_json::to_value(&codes).unwrap()
    );

    // Response times. Where an interim response came first, tshark pairs that one.
    let pairs: BTreeSet<_> = frames
        .values()
        .filter(|frame| frame.code.is_some_and(|code| code >= 200))
        .filter_map(|frame| {
            let request = frames.get(&frame.request_in?)?;
            Some((
                request.time_us,
                frame.time_us,
                frame.time?,
                request.method.clone(),
                frame.code,
            ))
        })
        .collect();
    let found: BTreeSet<_> = records
        .iter()
        .filter(|record| record["interim_responses"] == 0)
        .map(|record| {
            (
                us(record, "request_ts_ns").unwrap(),
                us(record, "response_ts_ns").unwrap(),
                us(record, "response_time_ns").unwrap(),
                record["method"].as_str().unwrap().to_owned(),
                record["status_code"].as_u64(),
            )
        })
        .collect();
    assert!(!pairs.is_empty());
    assert_eq!(found, pairs);

    // Times to last byte, where tshark puts the body together.
    let whole = tshark(capture, true);
    let mut compared = 0;
    let ttlbs: BTreeMap<u64, Option<u64>> = records
        .iter()
        .filter(|record| record["interim_responses"] == 0)
        .map(|record| (us(record, "request_ts_ns").unwrap(), us(record, "ttlb_ns")))
        .collect();
    for frame in whole
        .values()
        .filter(|frame| frame.code.is_some_and(|code| code >= 200))
    {
        let request = frame.request_in.and_then(|at| frames.get(&at));
        let (Some(request), Some(time)) = (request, frame.time) else {
            continue;
        };
        if let Some(ttlb) = ttlbs.get(&request.time_us) {
            assert_eq!(*ttlb, Some(time), "{frame:?}");
            compared += 1;
        }
    }
    assert_eq!(
        compared,
        found.len(),
        "every time to last byte was compared"
    );
}

#[test]
fn the_bundled_capture() {
    if installed("tshark") {
        agree(&demo());
    }
}

#[test]
fn conversations_in_a_vlan_and_over_ipv6() {
    if !installed("tshark") {
        return;
    }
    let directory = tempdir().unwrap();
    let exchanges: Vec<Exchange> = (0..30)
        .map(|n| Exchange {
            status: [200, 404, 302][n % 3],
            framing: if n % 4 == 3 {
                Framing::Chunked
            } else {
                Framing::Length
            },
            upload: if n % 5 == 4 { 700 } else { 0 },
            method: if n % 5 == 4 { "POST" } else { "GET" },
            ..Exchange::get(format!("/{n}"), n * 333)
        })
        .collect();
    for (name, talk) in [
        (
            "vlan",
            Conversation::v4(40_001).within(Encapsulation::Vlan(42)),
        ),
        (
            "qinq",
            Conversation::v4(40_002).within(Encapsulation::QinQ(1, 2)),
        ),
        ("ipv6", Conversation::v6(40_003)),
        ("gre6", Conversation::v6(40_004).within(Encapsulation::Gre)),
        (
            "wrap",
            Conversation::v4(40_005).numbered(u32::MAX - 3000, u32::MAX - 60_000),
        ),
    ] {
        let mut talk = talk.spaced(123_000);
        talk.handshake();
        tell(&mut talk, &exchanges);
        talk.fin(Side::Client).fin(Side::Server);
        let path = directory.path().join(name);
        std::fs::write(&path, pcap(&talk.frames(), PcapVariant::usual(talk.link()))).unwrap();
        assert_eq!(records(&path).len(), exchanges.len(), "{name}");
        agree(&path);
    }
}
