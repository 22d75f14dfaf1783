//! `flows` on QUIC without keys: the captures of spindump (`shared/suites/spindump`), whose figures are another program's, and
//! captures of our own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tempfile::tempdir;

use crate::common::run;

/// Times are printed without what is below a microsecond, and a few of theirs are of the packet beside.
const TOLERANCE_US: u64 = 3;
/// Versions of the programs quant and picoquic and of an experiment that have the header of version 1 and numbers of their own: read under
/// the number of draft 29.
const PRIVATE: [&[u8]; 3] = [b"EGG", b"PCQ1", b"\xf0\xf0\xf1\xf2"];

/// What spindump says of one connection, in microseconds. `right` is between the capture point and the server, `left` between
/// it and the client, `full` a period of the spin bit in one direction.
#[derive(Debug, Default)]
struct Theirs {
    protocol: String,
    ports: [u64; 2],
    right: Vec<u64>,
    left: Vec<u64>,
    full: Vec<u64>,
}

impl Theirs {
    fn add(&mut self, which: &str, value: u64) {
        match which.split([' ', '_']).next().unwrap() {
            "right" | "Right" => self.right.push(value),
            "left" | "Left" => self.left.push(value),
            _ => self.full.push(value),
        }
    }
}

/// The connection of these ports, a new one where there is none.
fn connection<'a>(
    found: &'a mut Vec<Theirs>,
    protocol: &str,
    ports: [u64; 2],
) -> Option<&'a mut Theirs> {
    if !["TCP", "QUIC"].contains(&protocol) {
        return None;
    }
    let is_it = |one: &Theirs| one.protocol == protocol && one.ports == ports;
    let at = found.iter().position(is_it).unwrap_or_else(|| {
        found.push(Theirs {
            protocol: protocol.to_owned(),
            ports,
            ..Theirs::default()
        });
        found.len() - 1
    });
    found.get_mut(at)
}

/// The ports at the end of `... 1234:443` or `... (1234:443)`.
fn ports(text: &str) -> Option<[u64; 2]> {
    let last = text.split_whitespace().next_back()?;
    let (client, server) = last.trim_matches(['(', ')']).split_once(':')?;
    Some([client.parse().ok()?, server.parse().ok()?])
}

/// Reads a file of expected events in any of the three formats that spindump writes.
fn expected(text: &str) -> Vec<Theirs> {
    let mut found = Vec::new();
    let mut group = Vec::new();
    let mut current = String::new();
    let between = |line: &str, name: &str| {
        let rest = line.split_once(&format!("\"{name}\": "))?.1;
        let value = rest.split([',', '}', ' ']).next()?;
        Some(value.trim_matches('"').to_owned())
    };
    for line in text.lines() {
        if line.starts_with("{ \"Event\"") {
            let event: Value = serde_json::from_str(line.trim_end_matches(',')).unwrap();
            let Some(ports) = ports(event["Session"].as_str().unwrap()) else {
                continue;
            };
            let one = connection(&mut found, event["Type"].as_str().unwrap(), ports);
            let fields = event.as_object().unwrap().iter();
            let times = fields.filter(|(name, _)| name.to_lowercase().contains("_rtt"));
            if let Some(one) = one {
                times.for_each(|(name, value)| one.add(name, value.as_u64().unwrap()));
            }
        } else if line.trim_start().starts_with('{') || line.trim_start().starts_with('"') {
            // The qlog format, in lines of one event: ports stand with the first one of a group.
            if let Some(id) = between(line, "group_id") {
                let protocol = between(line, "protocol_type").unwrap();
                current = id;
                group.push((current.clone(), protocol, None));
            }
            if let (Some(client), Some(server)) =
                (between(line, "src_port"), between(line, "dst_port"))
            {
                group.last_mut().unwrap().2 =
                    Some([client.parse().unwrap(), server.parse().unwrap()]);
            }
            let known = group.iter().find(|one| one.0 == current && one.2.is_some());
            let Some((_, protocol, Some(ports))) = known else {
                continue;
            };
            for name in [
                "right_rtt",
                "left_rtt",
                "full_rtt_initiator",
                "full_rtt_responder",
            ] {
                let value = between(line, name).and_then(|value| value.parse().ok());
                if let (Some(value), Some(one)) = (value, connection(&mut found, protocol, *ports))
                {
                    one.add(name, value);
                }
            }
        } else if let Some((before, after)) = line.split_once(" at ")
            && let Some(ports) = ports(before)
            && let Some(one) = connection(&mut found, line.split(' ').next().unwrap(), ports)
            && let Some((_, measured)) = after.split_once(" measurement ")
        {
            // State, which, perhaps whose, value.
            let words: Vec<&str> = measured.split(' ').collect();
            let value = words[2..].iter().find_map(|word| word.parse().ok());
            one.add(words[1], value.unwrap());
        }
    }
    found
}

/// The records of a capture, whose private versions are renamed.
fn flows(capture: &Path, directory: &Path) -> Vec<Value> {
    let mut bytes = std::fs::read(capture).unwrap();
    for version in PRIVATE {
        for at in 0..bytes.len().saturating_sub(5) {
            if bytes[at] & 0xc0 == 0xc0 && bytes[at + 1..].starts_with(version) {
                bytes[at + 1..at + 5].copy_from_slice(&[0xff, 0, 0, 29]);
            }
        }
    }
    let path = directory.join("renamed.pcap");
    std::fs::write(&path, bytes).unwrap();
    records(&path)
}

/// The records of a capture.
fn records(path: &Path) -> Vec<Value> {
    let words = ["flows", "-q", "-w", "-", "--format", "jsonl", "-r"].map(str::to_owned);
    let ran = run(&[&words[..], &[path.display().to_string()]].concat());
    let lines = ran.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn is_near(ours: u64, theirs: &[u64]) -> bool {
    theirs.iter().any(|one| one.abs_diff(ours) <= TOLERANCE_US)
}

fn micros(record: &Value, name: &str) -> Option<u64> {
    record[name].as_u64().map(|ns| ns / 1000)
}

fn show(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Why a handshake has no figure of ours, or another.
const OLD: &str = "drafts before 22 have another header: not read";
const AGAIN: &str = "theirs is of an Initial that was sent again: not known which one was answered";
const PARTS: &str = "a hello of two datagrams: ours from the first one, theirs from the second";
const VERSIONS: &str = "theirs is to the list of versions: no handshake was captured";
const CUT: &str = "cut by the snapshot length within a long header";
const DIFFERENCES: [(&str, u64, &str); 28] = [
    ("trace_quic_apple", 56348, OLD),
    ("trace_quic_bug_ls", 46844, OLD),
    ("trace_quic_fail2_quant", 59060, OLD),
    ("trace_quic_pandora", 56618, OLD),
    ("trace_quic_v18_long_spin", 55782, OLD),
    ("trace_quic_v18_long_spin_all", 55782, OLD),
    ("trace_quic_v18_short_spin", 49576, OLD),
    ("trace_quic_v18_short_spin_all", 49576, OLD),
    ("trace_quic_v19_short_quant", 49623, OLD),
    ("trace_quic_v20_0rtt_quant", 58849, OLD),
    ("trace_quic_v20_medium_quant", 49156, OLD),
    ("trace_quic_v20_no0rtt_quant", 55154, OLD),
    ("trace_quic_rfc_quant_long", 49702, AGAIN),
    ("trace_quic_rfc_quant_long_qlog", 49702, AGAIN),
    ("trace_quic_v23_aiortc", 58778, AGAIN),
    ("trace_quic_v23_aiortc_spin", 52120, AGAIN),
    ("trace_quic_v23_ats", 60946, AGAIN),
    ("trace_quic_v23_ats", 58420, AGAIN),
    ("trace_quic_v23_ats", 61098, AGAIN),
    ("trace_quic_v23_ats_readdr", 54753, AGAIN),
    ("trace_quic_v23_lsquic_simple", 49377, AGAIN),
    ("trace_quic_v23_quant_2k", 57237, AGAIN),
    ("trace_quic_v25_ngtcp2", 50972, PARTS),
    ("trace_quic_v25_picoquic", 50172, PARTS),
    ("trace_quic_v23_picoquic_1k_versneg", 60489, VERSIONS),
    ("trace_quic_v25_ngx", 61074, VERSIONS),
    ("trace_quic_titalia_delaybit", 37166, CUT),
    ("trace_quic_titalia_qrloss", 58184, CUT),
];

/// The same of TCP.
const TCP_DIFFERENCES: [(&str, &str); 2] = [
    (
        "trace_tcp_medium_snap80",
        "theirs remembers few segments of a flight: 107 samples of our 4,918",
    ),
    (
        "trace_tcp_short_sack",
        "theirs takes selective ACKs, of retransmitted segments too; ours only ACKs of segments sent once",
    ),
];

/// The row of a connection of TCP.
fn tcp_row(name: &str, theirs: &Theirs, record: &Value) -> String {
    let mut words = Vec::new();
    for (prefix, samples) in [("c", &theirs.right), ("s", &theirs.left)] {
        let figure = |what: &str| &record[format!("{prefix}_rtt_{what}")];
        let us = |what: &str| {
            let time = Duration::try_from_secs_f64(figure(what).as_f64().unwrap() / 1000.0);
            // What is printed are nanoseconds, which the division may miss by a little.
            u64::try_from((time.unwrap() + Duration::from_nanos(1)).as_micros()).unwrap()
        };
        let count = figure("cnt").as_u64().unwrap();
        let [least, most] = [samples.iter().min(), samples.iter().max()];
        let [least, most] = [least, most].map(|one| one.copied().unwrap_or_default());
        let is_equal = count == samples.len() as u64
            && us("min").abs_diff(least) <= TOLERANCE_US
            && us("max").abs_diff(most) <= TOLERANCE_US;
        let (ours_in, theirs_in) = (
            us("min") + TOLERANCE_US >= least && us("max") <= most + TOLERANCE_US,
            least + TOLERANCE_US >= us("min") && most <= us("max") + TOLERANCE_US,
        );
        let verdict = match TCP_DIFFERENCES.iter().find(|one| one.0 == name) {
            _ if is_equal => "equal",
            Some((_, why)) if ours_in || theirs_in => why,
            _ => panic!("{name}: {theirs:?}, {record}"),
        };
        words.push(format!(
            "{} {least}-{most} ({}), ours {}-{} ({count}): {verdict}",
            if prefix == "c" { "right" } else { "left" },
            samples.len(),
            us("min"),
            us("max"),
        ));
    }
    words.join("; ")
}

/// The row of a connection of QUIC; whether the handshake is the same.
fn quic_row(name: &str, theirs: &Theirs, record: &Value) -> (String, bool) {
    let ours = micros(record, "c_quic_rtt_ns");
    let is_equal = ours.is_some_and(|ours| is_near(ours, &theirs.right));
    let why = DIFFERENCES
        .iter()
        .find(|one| (one.0, one.1) == (name, theirs.ports[0]));
    let verdict = match why {
        _ if ours.is_none() && theirs.right.is_empty() => "none of both",
        None if is_equal => "equal",
        Some((.., why)) if !is_equal => why,
        _ => panic!("{name}: {theirs:?}, {record}"),
    };
    let spin = micros(record, "spin_rtt_ns");
    if let Some(spin) = spin {
        assert!(is_near(spin, &theirs.full), "{name}: {theirs:?}, {record}");
    }
    let range = |times: &[u64]| match (times.iter().min(), times.iter().max()) {
        (Some(least), Some(most)) if times.len() > 1 => {
            format!("{least}-{most} ({})", times.len())
        }
        (least, _) => show(least.copied()),
    };
    let row = format!(
        "right {}, ours {} (left {}): {verdict}; spin {}, ours {} {}",
        range(&theirs.right),
        show(ours),
        show(micros(record, "s_quic_rtt_ns")),
        range(&theirs.full),
        show(spin),
        record["spin_valid"].as_str().unwrap_or("-"),
    );
    (row, is_equal)
}

/// Every connection of TCP and QUIC in every file: the table says who is right where the two differ. They measure the handshake
/// at the same packets; of the spin bit they print each period, whatever made it, so ours must be one of them.
#[test]
fn round_trips_are_those_of_spindump() {
    let directory = std::env::var_os("LINKWEIR_SPINDUMP").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites/spindump/test"),
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(&directory) else {
        linkweir_testkit::ran::skipped(&format!("no {}", directory.display()));
        return;
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "expected"));
    files.sort();
    let room = tempdir().unwrap();
    let mut table = String::new();
    let (mut equal, mut different) = (0, 0);
    for file in &files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let theirs = expected(&std::fs::read_to_string(file).unwrap());
        let capture = file.with_extension("pcap");
        if theirs.is_empty() || !capture.exists() {
            let why = if theirs.is_empty() {
                "neither TCP nor QUIC"
            } else {
                "no capture"
            };
            writeln!(table, "{name}: {why}").unwrap();
            continue;
        }
        let records = flows(&capture, room.path());
        for one in &theirs {
            let protocol = if one.protocol == "TCP" { "tcp" } else { "udp" };
            let is_of = |record: &&Value| {
                let ports =
                    [&record["c_port"], &record["s_port"]].map(|port| port.as_u64().unwrap());
                let is_same = ports == one.ports || [ports[1], ports[0]] == one.ports;
                record["protocol"] == protocol && is_same
            };
            let of_quic = |record: &&Value| record["application"] == "quic";
            let found = records.iter().filter(is_of);
            let record = found.clone().find(of_quic).or_else(|| found.clone().next());
            let record = record.unwrap_or_else(|| panic!("{name}: {one:?}"));
            let row = if protocol == "tcp" {
                tcp_row(name, one, record)
            } else {
                let (row, is_equal) = quic_row(name, one, record);
                equal += usize::from(is_equal);
                different += usize::from(!is_equal);
                row
            };
            writeln!(table, "{name} {protocol} {}: {row}", one.ports[0]).unwrap();
        }
    }
    println!("{table}QUIC: {equal} equal, {different} not");
    assert!(equal > 100, "{equal}");
}

/// Connections of caddy with aioquic, and with Chromium, at the loopback interface: by port of the client the halves of the
/// handshake in microseconds, as tshark has the times of its packets. caddy's bit is always 0.
#[test]
fn handshakes_of_our_own_captures_have_both_halves() {
    type Halves = (u64, u64, u64);
    let captures: [(&str, &[Halves]); 2] = [
        (
            "caddy-h3",
            &[
                (36_566, 799, 2232),
                (35_633, 1058, 1907),
                (50_731, 950, 1795),
            ],
        ),
        ("chromium-h3", &[(52_258, 4278, 1417)]),
    ];
    for (name, connections) in captures {
        let capture = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../testkit/captures/web")
            .join(format!("{name}.pcap.gz"));
        let mut records = records(&capture);
        records.retain(|one| one["application"] == "quic");
        assert_eq!(records.len(), connections.len(), "{name}");
        for (port, server_us, client_us) in connections {
            let record = records.iter().find(|one| one["c_port"] == *port).unwrap();
            let of = |field| micros(record, field).unwrap();
            assert_eq!(of("c_quic_rtt_ns"), *server_us, "{record}");
            assert_eq!(of("s_quic_rtt_ns"), *client_us, "{record}");
            assert_eq!(of("quic_rtt_ns"), server_us + client_us, "{record}");
            for none in ["quic_retries", "quic_version_negotiations", "quic_migrated"] {
                assert_eq!(record[none], 0, "{record}");
            }
            assert_eq!(record["spin_valid"], "off", "{record}");
            assert!(record["spin_rtt_ns"].is_null(), "{record}");
        }
    }
}
