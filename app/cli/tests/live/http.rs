//! Live traffic: what is measured on an interface is what is measured on a recording of it.
//!
//! nginx, wrk and curl in network namespaces: as root those of the machine, as an ordinary user those
//! of a user namespace. Where neither is allowed, or a program is missing, the tests say SKIPPED.

use std::path::Path;
use std::time::Duration;

use crate::common::http;
use crate::traffic::{PATIENCE, Site, pause};
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Running, interface, until};
use serde_json::Value;
use tempfile::tempdir;

const SERVER_SIDE: &str = interface(Side::Server);

/// A run of `linkweir http` that writes `NAME.jsonl` and `NAME.json`.
pub(crate) struct Measured {
    name: String,
    running: Running,
}

impl Measured {
    pub(crate) fn command(site: &Site, name: &str, words: &[&str]) -> std::process::Command {
        let mut command = site.linkweir();
        command
            .args(["http", "-q", "-w", &format!("{name}.jsonl")])
            .args(["--summary", &format!("{name}.json")])
            .args(words);
        command
    }

    /// On the interface, with `sockets` sockets.
    fn interface(site: &Site, name: &str, sockets: usize, words: &[&str]) -> Self {
        let mut command = Self::command(site, name, &["-i", SERVER_SIDE, "-B", "16384"]);
        Self {
            name: name.to_owned(),
            running: site.listening(command.args(words), sockets),
        }
    }

    /// What `command` starts, when it has so many sockets for packets.
    pub(crate) fn start(site: &Site, name: &str, sockets: usize, words: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            running: site.listening(&mut Self::command(site, name, words), sockets),
        }
    }

    /// A consumer of a feeder, attached.
    fn consumer(site: &Site, name: &str, feed: &str) -> Self {
        let mut all = Self::consumers(site, &[(name.to_owned(), feed.to_owned())]);
        all.remove(0)
    }

    /// Consumers by name and feed, attached.
    pub(crate) fn consumers(site: &Site, consumers: &[(String, String)]) -> Vec<Self> {
        let start = |(name, feed): &(String, String)| Self {
            name: name.clone(),
            running: Running::start(&mut Self::command(site, name, &["--feed", feed])).unwrap(),
        };
        let mut all: Vec<Self> = consumers.iter().map(start).collect();
        pause(Duration::from_millis(400));
        let has_ended = |one: &mut Self| one.running.ended().unwrap().is_some();
        if let Some(at) = all.iter_mut().position(has_ended) {
            let one = all.remove(at);
            let output = one.running.output().unwrap();
            panic!("{}: {}", one.name, String::from_utf8_lossy(&output.stderr));
        }
        all
    }

    /// Ends it; gives its records, sorted, and its totals.
    pub(crate) fn finish(self, directory: &Path, codes: &[i32]) -> (Vec<Record>, Value) {
        let Self { name, running } = self;
        let output = running.finish().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code().unwrap();
        assert!(codes.contains(&code), "{name} ends with {code}: {said}");
        let records = std::fs::read_to_string(directory.join(format!("{name}.jsonl"))).unwrap();
        (sorted(&records), totals(directory, &name))
    }
}

pub(crate) fn totals(directory: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(directory.join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A record: what must be the same to the letter, and when its request came.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    pub(crate) rest: String,
    request_ns: Option<u64>,
}

/// How far apart the stamps of a request may be in two sockets.
///
/// The kernel stamps what leaves an interface once for all sockets, so responses are compared to the
/// nanosecond. What a TCP of the same machine sends still carries, on the other end of a veth pair, the
/// time at which it was to leave, and every socket takes a time of its own; from a real network
/// requests too have one stamp. The sockets are served one after the other, a fraction of a
/// microsecond apart, but the processor may be taken away in between.
const APART_NS: u64 = 50_000_000;

fn sorted(records: &str) -> Vec<Record> {
    let mut records: Vec<Record> = records.lines().map(record).collect();
    records.sort_unstable();
    records
}

fn record(line: &str) -> Record {
    let mut fields: Value = serde_json::from_str(line).unwrap();
    let object = fields.as_object_mut().unwrap();
    let request_ns = object.remove("request_ts_ns").and_then(|ns| ns.as_u64());
    let response_ns = object["response_ts_ns"].as_u64();
    let took = object.remove("response_time_ns").and_then(|ns| ns.as_i64());
    if let (Some(request), Some(response), Some(took)) = (request_ns, response_ns, took) {
        assert_eq!(i128::from(response) - i128::from(request), i128::from(took));
    }
    // The stamps of a SYN are apart too, and workers by the kernel do not have both packets of a handshake.
    for name in ["rtt_ns", "server_time_ns"] {
        object.remove(name);
    }
    Record {
        rest: fields.to_string(),
        request_ns,
    }
}

impl Record {
    fn is(&self, other: &Self) -> bool {
        let near = match (self.request_ns, other.request_ns) {
            (Some(one), Some(two)) => one.abs_diff(two) <= APART_NS,
            (one, two) => one == two,
        };
        near && self.rest == other.rest
    }
}

/// A feeder of the interface for two consumers; its totals go to `NAME.json`.
fn feeder(site: &Site, feed: &str, ring: &str) -> Running {
    let mut command = site.linkweir();
    command
        .args([
            "feed",
            "-q",
            "-i",
            SERVER_SIDE,
            "--consumers",
            "2",
            "--name",
            feed,
        ])
        .args(["--ring", ring, "--summary", &format!("{feed}.json")]);
    site.listening(&mut command, 1)
}

/// A name that no other run has.
pub(crate) fn unique(name: &str) -> String {
    format!("test-{name}-{}", std::process::id())
}

/// Ends the recorder, which must have everything; gives the records of its file.
fn recorded(recorder: Running, path: &Path) -> Vec<Record> {
    let output = recorder.finish().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let has_all = ["0 packets dropped by kernel", "(pcap:0/dumpcap:0/"];
    assert!(has_all.iter().any(|word| said.contains(word)), "{said}");
    sorted(&http(path, &["--format", "jsonl"]).exits(0).stdout)
}

/// What is different; nothing if they are the same.
pub(crate) fn differences(live: &[Record], offline: &[Record], who: &str) -> Option<String> {
    if live.len() == offline.len() && live.iter().zip(offline).all(|(a, b)| a.is(b)) {
        return None;
    }
    let only = |these: &[Record], others: &[Record]| -> Vec<Record> {
        let known = |record: &Record| others.iter().any(|other| other.is(record));
        let foreign = these.iter().filter(|record| !known(record));
        foreign.take(3).cloned().collect()
    };
    Some(format!(
        "{who}: {} records instead of {}\nonly here: {:#?}\nmissing: {:#?}",
        live.len(),
        offline.len(),
        only(live, offline),
        only(offline, live)
    ))
}

#[test]
fn live_records_are_those_of_the_recording() {
    let directory = tempdir().unwrap();
    let Some(site) = Site::open(directory.path()) else {
        return;
    };
    let path = directory.path().join("recorded.pcap");
    let Some(recorder) = site.record(&path) else {
        return;
    };
    let alone = [
        Measured::interface(&site, "one", 1, &[]),
        Measured::interface(&site, "two", 2, &["--workers", "2"]),
        Measured::interface(&site, "four", 4, &["--workers", "4"]),
        Measured::interface(
            &site,
            "distributed",
            1,
            &["--workers", "2", "--fanout", "reader"],
        ),
    ];
    let feed = unique("truth");
    let feeder = feeder(&site, &feed, "64MiB");
    let consumers = [0, 1].map(|number| {
        let name = format!("consumer{number}");
        Measured::consumer(&site, &name, &format!("{feed}/{number}"))
    });

    site.load(3);
    Site::settle();

    let offline = recorded(recorder, &path);
    assert!(offline.len() > 1000, "{} records", offline.len());
    let interim = r#""interim_responses":1"#;
    for part in [
        r#""method":"HEAD""#,
        r#""method":"POST""#,
        r#""status_code":304"#,
        interim,
    ] {
        assert!(
            offline.iter().any(|record| record.rest.contains(part)),
            "no {part}"
        );
    }
    let mut wrong = Vec::new();
    for measured in alone {
        let name = measured.name.clone();
        let (live, totals) = measured.finish(directory.path(), &[0]);
        assert_eq!(totals["dropped"]["kernel"], 0, "{name}");
        wrong.extend(differences(&live, &offline, &name));
    }
    let output = feeder.finish().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let distributed = totals(directory.path(), &feed);
    let mut live = Vec::new();
    for (number, consumer) in consumers.into_iter().enumerate() {
        let (records, totals) = consumer.finish(directory.path(), &[0]);
        assert!(
            records.len() > offline.len() / 4,
            "a consumer without a share"
        );
        let given = &distributed["feed"]["consumers"][number];
        assert_eq!(given["dropped"], 0);
        assert_eq!(given["packets"], totals["packets"]);
        live.extend(records);
    }
    live.sort_unstable();
    wrong.extend(differences(&live, &offline, "two consumers"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_killed_consumer_loses_only_its_own_share() {
    let directory = tempdir().unwrap();
    let Some(site) = Site::open(directory.path()) else {
        return;
    };
    // Two feeders deal the same packets in the same way; only one of them loses a consumer.
    let (whole, harmed) = (unique("whole"), unique("harmed"));
    // Its rings hold less than what comes while the consumer is away.
    let feeders = [
        feeder(&site, &whole, "64MiB"),
        feeder(&site, &harmed, "2MiB"),
    ];
    let attach = |feed: &str, number: u8, name: &str| {
        Measured::consumer(&site, name, &format!("{feed}/{number}"))
    };
    let safe = [attach(&whole, 0, "safe0"), attach(&whole, 1, "safe1")];
    let spared = attach(&harmed, 0, "spared");
    let victim = attach(&harmed, 1, "victim");

    site.load(1);
    victim.running.signal("KILL").unwrap();
    drop(victim);
    site.load(3);
    let late = attach(&harmed, 1, "late");
    site.load(1);
    Site::settle();

    for feeder in feeders {
        let output = feeder.finish().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    }
    let [safe0, safe1] = safe.map(|consumer| consumer.finish(directory.path(), &[0]));
    let spared = spared.finish(directory.path(), &[0]);
    // Its ring may still have been full when it came.
    let late = late.finish(directory.path(), &[0, 1]);
    let wrong = differences(&spared.0, &safe0.0, "the consumer that was spared");
    assert_eq!(wrong, None, "{}", wrong.as_deref().unwrap_or_default());
    assert!(!late.0.is_empty() && late.0.len() < safe1.0.len());
    // The one that came late cannot know the requests before it, nor their answers.
    let known = late
        .0
        .iter()
        .filter(|late| safe1.0.iter().any(|safe| safe.is(late)))
        .count();
    assert!(known + 8 >= late.0.len(), "{known} of {}", late.0.len());

    let (whole, harmed) = (
        totals(directory.path(), &whole),
        totals(directory.path(), &harmed),
    );
    let count = |totals: &Value, number: usize, what: &str| {
        totals["feed"]["consumers"][number][what].as_u64().unwrap()
    };
    for number in [0, 1] {
        assert_eq!(count(&whole, number, "dropped"), 0);
        let given = count(&harmed, number, "packets") + count(&harmed, number, "dropped");
        assert_eq!(given, count(&whole, number, "packets"), "consumer {number}");
    }
    assert_eq!(count(&harmed, 0, "dropped"), 0);
    assert!(count(&harmed, 1, "dropped") > 0);
}

#[test]
fn an_interface_that_goes_and_comes_back() {
    let directory = tempdir().unwrap();
    let Some(site) = Site::open(directory.path()) else {
        return;
    };
    let measured = Measured::interface(&site, "steady", 1, &[]);
    let asked = |number| assert!(until(PATIENCE, || site.ask(number, &[])), "no answer");
    let ip = |words: &[&str]| site.wire.must(Side::Server, "ip", words).unwrap();
    asked(0);
    ip(&["link", "set", SERVER_SIDE, "mtu", "900"]);
    asked(1);
    ip(&["link", "set", SERVER_SIDE, "down"]);
    pause(Duration::from_millis(300));
    ip(&["link", "set", SERVER_SIDE, "up"]);
    asked(2);
    Site::settle();
    let sockets = site.wire.packet_sockets(Side::Server);
    ip(&["link", "delete", SERVER_SIDE]);
    let gone = until(PATIENCE, || {
        site.wire.packet_sockets(Side::Server) < sockets
    });
    site.wire.connect().unwrap();
    site.wire.give_addresses().unwrap();
    // The socket for the interface that is there again comes when the run finds it.
    assert!(
        until(PATIENCE, || site.wire.packet_sockets(Side::Server)
            >= sockets)
            || !gone
    );
    pause(Duration::from_millis(1500));
    asked(3);
    Site::settle();

    let output = measured.running.finish().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{:?}: {said}",
        output.status
    );
    for word in [
        SERVER_SIDE,
        "the MTU is 900 now",
        "went down",
        "is up again",
        "is gone",
        "is back",
    ] {
        assert!(said.contains(word), "it does not say `{word}`: {said}");
    }
    let records = std::fs::read_to_string(directory.path().join("steady.jsonl")).unwrap();
    for number in 0..4 {
        let uri = format!("/page?from={number}");
        assert!(records.contains(&uri), "no {uri} in {records}\n{said}");
    }
}

#[test]
fn files_and_intervals_end_by_the_clock_where_nothing_comes() {
    let directory = tempdir().unwrap();
    let Some(site) = Site::open(directory.path()) else {
        return;
    };
    let quiet = ["--rotate", "2s", "--interval", "1s"];
    let measured = Measured::interface(&site, "quiet", 1, &quiet);
    assert!(until(PATIENCE, || site.ask(0, &[])), "no answer");
    let first = directory.path().join("quiet-000001.jsonl");
    assert!(until(PATIENCE, || first.exists()), "the run goes on");
    let records = std::fs::read_to_string(first).unwrap();
    assert!(records.contains("/page?from=0"), "{records}");
    pause(Duration::from_secs(3));
    let output = measured.running.finish().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.matches(" UTC  0 req/s").count() >= 2, "{said}");
    let names = std::fs::read_dir(directory.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let quiet: Vec<String> = names.filter(|name| name.contains("quiet")).collect();
    assert_eq!(quiet.len(), 2, "one file, one summary: {quiet:?}");
}

#[test]
fn an_interface_that_does_not_exist() {
    let Some(site) = Site::open(tempdir().unwrap().path()) else {
        return;
    };
    let mut command = site.linkweir();
    command
        .args(["http", "-q", "-i", "nonesuch0"])
        .current_dir("/");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("nonesuch0"), "{said}");
}
