//! Headers are enough: packets cut to 80 bytes, as the paper's traces were, give the same flow records and
//! the same archive, but for what only payload says.
//!
//! Source: Rossi, Mellia 2006, sec. III.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::{demo_frames, plain, run};
use linkweir_testkit::anomalies::{Options, Version, all};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::Conversation;
use serde_json::Value;

/// Bytes of each packet that the paper's traces have.
const SNAPLEN: usize = 80;

/// What may differ, and why: names and methods of HTTP that are further inside than 14 bytes.
const OF_PAYLOAD: [&str; 1] = ["http_hostname"];

/// What else may differ of IPv6 with TCP timestamps: of 86 bytes of headers, and 94 of a SYN, the end of the
/// TCP options is cut off, and so is all payload.
const OF_LONG_HEADERS: [&str; 16] = [
    // Of the payload.
    "application",
    "con_t",
    "http_req_cnt",
    "http_res",
    "http_res_cnt",
    "http_t",
    // Window scale and timestamps of the SYNs, and with the scale the windows.
    "c_f1323_opt",
    "c_tm_opt",
    "c_win_scl",
    "c_win_max",
    "c_win_min",
    "s_f1323_opt",
    "s_tm_opt",
    "s_win_scl",
    "s_win_max",
    "s_win_min",
];

/// The series of the archive that may differ: flows by application.
const OF_APPLICATIONS: &str = "app_";

fn truncated(frames: &[CapturedFrame]) -> Vec<CapturedFrame> {
    let mut frames = frames.to_vec();
    for frame in &mut frames {
        frame.bytes.truncate(SNAPLEN);
    }
    frames
}

/// A connection: client, its port, server, when it began.
type Key = [String; 4];

/// The columns of all records, and the lines of the archive.
fn measured(
    directory: &Path,
    name: &str,
    frames: &[CapturedFrame],
) -> (BTreeMap<Key, BTreeMap<String, Value>>, Vec<String>) {
    let path = |ending: &str| directory.join(format!("{name}{ending}"));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (capture, archive) = (path(".pcap"), path(".lwa"));
    std::fs::write(&capture, plain(frames)).unwrap();
    let words = ["flows", "-q", "--format", "jsonl", "-w", "-", "-r"].map(str::to_owned);
    let more = [text(&capture), "--archive".to_owned(), text(&archive)];
    let ran = run(&[&words[..], &more].concat()).exits(0);
    let mut records = BTreeMap::new();
    for line in ran.stdout.lines() {
        let record: BTreeMap<String, Value> = serde_json::from_str(line).unwrap();
        let key = ["c_ip", "c_port", "s_ip", "first"].map(|name| record[name].to_string());
        assert!(records.insert(key, record).is_none());
    }
    let dumped = run(&["archive", "dump", &text(&archive)]).exits(0).stdout;
    (records, dumped.lines().map(str::to_owned).collect())
}

/// The columns that differ once the packets are cut; but for flows by application, the archive does not.
fn differences(directory: &Path, name: &str, frames: &[CapturedFrame]) -> BTreeSet<String> {
    let (whole, all) = measured(directory, name, frames);
    let (headers, cut) = measured(directory, &format!("{name}-80"), &truncated(frames));
    let (flows, again): (Vec<&Key>, Vec<&Key>) = (whole.keys().collect(), headers.keys().collect());
    assert_eq!(flows, again, "{name}");
    assert!(flows.len() >= 10, "{name}: {}", flows.len());
    let mut differ = BTreeSet::new();
    for (whole, headers) in whole.values().zip(headers.values()) {
        let names = whole.keys().chain(headers.keys());
        let differs = |name: &&String| whole.get(*name) != headers.get(*name);
        differ.extend(names.filter(differs).cloned());
    }
    if differ
        .iter()
        .all(|name| OF_PAYLOAD.contains(&name.as_str()))
    {
        let measured = |lines: Vec<String>| -> Vec<String> {
            let is_kept = |line: &String| !line.starts_with(OF_APPLICATIONS);
            lines.into_iter().filter(is_kept).collect()
        };
        let (all, cut) = (measured(all), measured(cut));
        assert!(all.len() > 500, "{name}: {}", all.len());
        assert!(all == cut, "{name}: another archive");
    }
    differ
}

fn names(lists: &[&[&str]]) -> BTreeSet<String> {
    lists
        .concat()
        .iter()
        .map(|name| (*name).to_owned())
        .collect()
}

#[test]
fn packets_of_80_bytes_give_the_same_flows() {
    let directory = tempfile::tempdir().unwrap();
    let differences =
        |name: &str, frames: &[CapturedFrame]| differences(directory.path(), name, frames);
    let is_v6 = |frame: &CapturedFrame| frame.bytes.get(12..14) == Some(&[0x86, 0xdd]);
    let (v6, v4): (Vec<_>, Vec<_>) = demo_frames().into_iter().partition(is_v6);
    // The lists say no more than what is so.
    assert_eq!(differences("v4", &v4), names(&[&OF_PAYLOAD[..]]));
    assert_eq!(
        differences("v6", &v6),
        names(&[&OF_PAYLOAD[..], &OF_LONG_HEADERS[..]])
    );
    // Losses, reordering and duplicates of every kind.
    let options = Options {
        timestamps: true,
        ..Options::PLAIN
    };
    assert!(options.version == Version::V4);
    let cases = all(options, 20_000, Conversation::START_NS);
    let made: Vec<CapturedFrame> = cases.iter().flat_map(|case| case.frames.clone()).collect();
    assert_eq!(differences("anomalies", &made), BTreeSet::new());
}
