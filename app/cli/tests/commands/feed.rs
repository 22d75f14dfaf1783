//! `linkweir feed` and its consumers, as processes that come, go and are killed.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::common::{Ran, demo, demo_frames, ended, fifo, http, linkweir, plain, run};
use linkweir_engine::split::shard_of;
use linkweir_engine::{FlowSplitter, Frame, Splitter, TransactionSplitter};
use linkweir_http::TransactionGroups;
use linkweir_testkit::parts::in_parts;
use linkweir_wire::{LinkType, Timestamp};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// A name that no other test of this or another run has.
fn name(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

#[expect(
    clippy::disallowed_methods,
    reason = "other processes have no clock of ours"
)]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn feed(words: &[&str]) -> Child {
    linkweir().arg("feed").args(words).spawn().unwrap()
}

fn consumer(directory: &Path, feed: &str, number: u32) -> Child {
    linkweir()
        .current_dir(directory)
        .args(["http", "-q", "-w", &format!("{number}.txt"), "--summary"])
        .arg(format!("{number}.json"))
        .args(["--feed", &format!("{feed}/{number}")])
        .spawn()
        .unwrap()
}

fn wait(child: Child) -> Ran {
    ended(child.wait_with_output().unwrap())
}

fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn number(value: &Value, keys: &[&str]) -> u64 {
    keys.iter()
        .fold(value, |value, key| &value[*key])
        .as_u64()
        .unwrap_or_else(|| unreachable!("no {keys:?} in {value}"))
}

/// The records of some consumers, sorted.
fn records(directory: &Path, consumers: std::ops::Range<u32>) -> Vec<String> {
    let mut lines: Vec<String> = consumers
        .flat_map(|n| {
            let text = std::fs::read_to_string(directory.join(format!("{n}.txt"))).unwrap();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    lines.sort();
    lines
}

fn of_one_process(path: &Path) -> Vec<String> {
    let mut lines: Vec<String> = http(path, &[])
        .lines()
        .iter()
        .map(|&l| l.to_owned())
        .collect();
    lines.sort();
    lines
}

/// What went to each consumer is all that was read.
fn assert_adds_up(summary: &Value) {
    let consumers = summary["feed"]["consumers"].as_array().unwrap();
    let all: u64 = consumers
        .iter()
        .map(|c| number(c, &["packets"]) + number(c, &["dropped"]))
        .sum();
    assert_eq!(all, number(summary, &["packets"]), "{summary}");
    let dropped: u64 = consumers.iter().map(|c| number(c, &["dropped"])).sum();
    assert_eq!(dropped, number(summary, &["dropped", "ring"]));
}

/// Whether a process maps a ring.
fn maps_ring(child: &Child) -> bool {
    std::fs::read_to_string(format!("/proc/{}/maps", child.id()))
        .is_ok_and(|maps| maps.contains("memfd:linkweir-ring"))
}

/// A feeder that reads a FIFO which stays open: it has had the demo capture once.
struct Held {
    directory: TempDir,
    fifo: std::fs::File,
    feeder: Child,
    name: String,
}

fn held(test: &str, consumers: u32, words: &[&str]) -> Held {
    let directory = tempdir().unwrap();
    let path = fifo(directory.path());
    let name = name(test);
    let feeder = linkweir()
        .current_dir(directory.path())
        .args([
            "feed",
            "-r",
            "fifo",
            "--summary",
            "feed.json",
            "--name",
            &name,
        ])
        .args(["--consumers", &consumers.to_string()])
        .args(words)
        .spawn()
        .unwrap();
    let fifo = OpenOptions::new().write(true).open(&path).unwrap();
    Held {
        directory,
        fifo,
        feeder,
        name,
    }
}

#[test]
fn consumers_have_together_what_one_process_has() {
    let directory = tempdir().unwrap();
    let name = name("together");
    // One before the feeder, one after it has read everything.
    let early = consumer(directory.path(), &name, 0);
    let summary = directory.path().join("feed.json");
    let capture = demo();
    let feeder = feed(&[
        "-q",
        "-r",
        capture.to_str().unwrap(),
        "--name",
        &name,
        "--consumers",
        "2",
        "--summary",
        summary.to_str().unwrap(),
    ]);
    until("a feeder", || maps_ring(&feeder));
    let late = consumer(directory.path(), &name, 1);
    wait(early).exits(0);
    wait(late).exits(0);
    wait(feeder).exits(0);
    assert_eq!(records(directory.path(), 0..2), of_one_process(&demo()));
    let summary = json(&summary);
    assert_adds_up(&summary);
    for (n, fed) in summary["feed"]["consumers"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
    {
        let own = json(&directory.path().join(format!("{n}.json")));
        assert_eq!(number(fed, &["packets"]), number(&own, &["packets"]));
        assert_eq!(number(fed, &["bytes"]), number(&own, &["bytes"]));
        assert!(number(fed, &["packets"]) > 0 && number(fed, &["dropped"]) == 0);
    }
}

#[test]
fn a_killed_consumer_loses_its_own_share_only_and_is_replaced() {
    let mut held = held("killed", 2, &["--ring", "64KiB", "-q"]);
    let directory = held.directory.path().to_owned();
    let capture = plain(&demo_frames());
    let other = consumer(&directory, &held.name, 0);
    let mut killed = consumer(&directory, &held.name, 1);
    let (header, frames) = capture.split_at(24);
    held.fifo.write_all(header).unwrap();
    until("both attached", || maps_ring(&other) && maps_ring(&killed));
    signal(&killed, "-KILL");
    killed.wait().unwrap();
    // Many rings full: the feeder goes on without it.
    let frames = frames.to_owned();
    let mut fifo = held.fifo.try_clone().unwrap();
    fifo.write_all(&frames).unwrap();
    let again = consumer(&directory, &held.name, 1);
    until("the next one", || maps_ring(&again));
    drop(fifo);
    drop(held.fifo);
    wait(other).exits(0);
    let again = wait(again);
    wait(held.feeder).exits(1);
    let summary = json(&directory.join("feed.json"));
    assert_adds_up(&summary);
    let consumers = &summary["feed"]["consumers"];
    assert_eq!(number(&consumers[0], &["dropped"]), 0);
    assert!(number(&consumers[1], &["dropped"]) > 0, "{summary}");
    assert_eq!(number(&consumers[1], &["killed"]), 1);
    assert_eq!(number(&consumers[1], &["attached"]), 2);
    assert!(
        again.code == Some(0) || again.code == Some(1),
        "{}",
        again.stderr
    );
    // The other one's records are those it has when nobody is killed.
    let intact = records(&directory, 0..1);
    let (name, capture) = (name("intact"), demo());
    let words = [
        "-q",
        "-r",
        capture.to_str().unwrap(),
        "--consumers",
        "2",
        "--name",
        &name,
    ];
    let feeder = feed(&words);
    let both = [0, 1].map(|n| consumer(&directory, &name, n));
    for child in both {
        wait(child).exits(0);
    }
    wait(feeder).exits(0);
    assert_eq!(intact, records(&directory, 0..1));
}

#[test]
fn what_a_killed_consumer_had_not_written_is_announced() {
    let mut held = held("unwritten", 2, &["-q"]);
    let directory = held.directory.path().to_owned();
    // The second one sorts its records: it keeps them, and never says that all are written.
    let mut writes = consumer(&directory, &held.name, 0);
    let mut keeps = linkweir()
        .current_dir(&directory)
        .args(["http", "-q", "--sort", "-w", "1.txt", "--feed"])
        .arg(format!("{}/1", held.name))
        .spawn()
        .unwrap();
    until("both attached", || maps_ring(&writes) && maps_ring(&keeps));
    held.fifo.write_all(&plain(&demo_frames()[..1500])).unwrap();
    let partial = directory.join(".0.txt.partial");
    until("records", || {
        partial.metadata().is_ok_and(|meta| meta.len() > 0)
    });
    // Both have read everything, and have been idle since.
    let mut looks = 0;
    until("a while", || {
        looks += 1;
        looks > 70
    });
    for child in [&mut writes, &mut keeps] {
        signal(child, "-KILL");
        child.wait().unwrap();
    }
    drop(held.fifo);
    let ran = wait(held.feeder);
    let summary = json(&directory.join("feed.json"));
    assert_adds_up(&summary);
    let [one, other] = [0, 1].map(|n| &summary["feed"]["consumers"][n]);
    for consumer in [one, other] {
        assert_eq!(number(consumer, &["killed"]), 1, "{summary}");
        let (distributed, taken) = (
            number(consumer, &["packets"]),
            number(consumer, &["taken_by_killed"]),
        );
        assert!(taken > 0 && taken == distributed, "{summary}");
    }
    assert_eq!(number(one, &["unwritten_by_killed"]), 0, "{summary}");
    let unwritten = number(other, &["unwritten_by_killed"]);
    assert_eq!(unwritten, number(other, &["taken_by_killed"]), "{summary}");
    ran.exits(1);
}

#[test]
fn a_killed_feeder_is_a_fault_and_leaves_nothing_behind() {
    let mut held = held("orphans", 1, &["-q"]);
    let directory = held.directory.path().to_owned();
    let child = consumer(&directory, &held.name, 0);
    held.fifo.write_all(&plain(&demo_frames()[..1500])).unwrap();
    until("a consumer", || maps_ring(&child));
    until("its packets", || {
        // 1500 packets of the demo are more than one record.
        std::fs::read_dir(&directory).unwrap().any(|entry| {
            let entry = entry.unwrap();
            entry.file_name().to_string_lossy().contains("partial")
                && entry.metadata().is_ok_and(|meta| meta.len() > 0)
        })
    });
    signal(&held.feeder, "-KILL");
    held.feeder.wait().unwrap();
    wait(child).exits(1).says("the feeder was killed");
    assert!(
        !records(&directory, 0..1).is_empty(),
        "what it was given is written"
    );
    for place in ["/dev/shm", "/tmp", "/run"] {
        let Ok(entries) = std::fs::read_dir(place) else {
            continue;
        };
        let left: Vec<_> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().contains(&held.name))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    assert!(!sockets.contains(&held.name));
    // The name is free at once.
    let capture = demo();
    let next = feed(&[
        "-q",
        "-r",
        capture.to_str().unwrap(),
        "--consumers",
        "1",
        "--name",
        &held.name,
    ]);
    // What the killed run gave stays.
    let own = directory.join("next");
    std::fs::create_dir(&own).unwrap();
    wait(consumer(&own, &held.name, 0)).exits(0);
    wait(next).exits(0);
    assert_eq!(records(&own, 0..1), of_one_process(&demo()));
}

#[test]
fn who_asks_for_what_is_not_there_is_told() {
    let held = held("asked", 2, &["-q"]);
    let directory = held.directory.path().to_owned();
    until("a feeder", || maps_ring(&held.feeder));
    let first = consumer(&directory, &held.name, 1);
    until("a consumer", || maps_ring(&first));
    let ask = |number: u32| run(&["http", "-q", "--feed", &format!("{}/{number}", held.name)]);
    ask(7).exits(3).says("there is no 7");
    ask(1).exits(3).says("is attached already");
    let capture = demo();
    let taken = [
        "feed",
        "-r",
        capture.to_str().unwrap(),
        "--consumers",
        "1",
        "--name",
        &held.name,
    ];
    run(&taken).exits(2).says("is running already");
    run(&["feed", "-r", "x", "--consumers", "1", "--name", "a/b"])
        .exits(2)
        .says("not a valid feed name");
    run(&["http", "--feed", "nobody/0", "--feed-wait", "200ms"])
        .exits(3)
        .says("no feeder called `nobody`");
    // 2 of 2 is another name of 0.
    let same = consumer(&directory, &held.name, 2);
    until("the other", || maps_ring(&same));
    ask(0).exits(3).says("is attached already");
    // Interrupted, everything ends well.
    signal(&held.feeder, "-INT");
    wait(first).exits(0);
    wait(same).exits(0);
    wait(held.feeder).exits(0);
}

#[test]
fn drops_are_counted_where_nobody_comes() {
    let directory = tempdir().unwrap();
    let (name, summary, capture) = (name("nobody"), directory.path().join("s.json"), demo());
    let words = [
        "feed",
        "-r",
        capture.to_str().unwrap(),
        "--consumers",
        "3",
        "--name",
        &name,
        "--when-full",
        "drop",
        "--ring",
        "64KiB",
        "--by",
        "flow",
        "--summary",
        summary.to_str().unwrap(),
    ];
    run(&words).exits(1).says("lost");
    let summary = json(&summary);
    assert_adds_up(&summary);
    assert_eq!(
        number(&summary, &["dropped", "ring"]),
        number(&summary, &["packets"])
    );
    assert_eq!(summary["feed"]["by"], "flow");
}

/// The packets distributed to each of `consumers`, of whom none comes: all are counted as dropped.
fn distributed(by: &str, consumers: usize) -> Vec<u64> {
    let directory = tempdir().unwrap();
    let summary = directory.path().join("feed.json");
    let capture = demo();
    let words = [
        "feed",
        "-r",
        capture.to_str().unwrap(),
        "--name",
        &name(by),
        "--consumers",
        &consumers.to_string(),
        "--when-full",
        "drop",
        "--by",
        by,
        "--summary",
        summary.to_str().unwrap(),
    ];
    run(&words).exits(1);
    let summary = json(&summary);
    assert_adds_up(&summary);
    assert_eq!(summary["feed"]["by"], by);
    let consumers = summary["feed"]["consumers"].as_array().unwrap();
    consumers
        .iter()
        .map(|c| number(c, &["packets"]) + number(c, &["dropped"]))
        .collect()
}

/// What a splitter of the library would deal to each of `consumers`.
fn dealt_by(splitter: &mut impl Splitter, consumers: usize) -> Vec<u64> {
    let mut counts = vec![0; consumers];
    for frame in demo_frames() {
        let hash = splitter.hash(&Frame {
            timestamp: Timestamp::from_nanos(frame.timestamp_ns),
            bytes: &frame.bytes,
            wire_len: frame.wire_len,
            link: LinkType::ETHERNET,
            interface: 0,
        });
        counts[shard_of(hash, u32::try_from(consumers).unwrap()) as usize] += 1;
    }
    counts
}

#[test]
fn what_stays_together_is_as_asked_for() {
    let paper = dealt_by(&mut TransactionSplitter, 3);
    let transaction = dealt_by(&mut TransactionGroups::default(), 3);
    let flow = dealt_by(&mut FlowSplitter, 3);
    assert!(paper != transaction && transaction != flow && flow != paper);
    assert_eq!(distributed("paper", 3), paper, "Eq. (3) of each packet");
    assert_eq!(distributed("transaction", 3), transaction);
    assert_eq!(distributed("flow", 3), flow);
}

/// The price of Eq. (3) without memory, as the documents give it: each transaction that is parted is a
/// request without an answer at one consumer and an answer without a request at another.
#[test]
fn eq_3_of_each_packet_parts_few_transactions() {
    let directory = tempdir().unwrap();
    let name = name("parted");
    let consumers = [0, 1].map(|number| consumer(directory.path(), &name, number));
    let capture = demo();
    let words = ["-q", "-r", capture.to_str().unwrap(), "--name", &name];
    let feeder = linkweir()
        .arg("feed")
        .args(words)
        .args(["--consumers", "2", "--by", "paper"])
        .spawn()
        .unwrap();
    for child in consumers.into_iter().chain([feeder]) {
        wait(child).exits(0);
    }
    let whole = of_one_process(&demo());
    assert_eq!(whole.len(), 800);
    let parts = records(directory.path(), 0..2);
    let parted = whole.iter().filter(|&record| !parts.contains(record));
    assert_eq!(parted.count(), 7);
    assert_eq!(parts.len(), 800 - 7 + 2 * 7);
}

#[test]
fn packets_in_parts_are_dealt_whole() {
    let directory = tempdir().unwrap();
    let capture = directory.path().join("parts.pcap");
    // So small that the first one has no more than the ports.
    std::fs::write(&capture, plain(&in_parts(&demo_frames(), 8))).unwrap();
    let name = name("parts");
    let consumers = [0, 1].map(|number| consumer(directory.path(), &name, number));
    let summary = directory.path().join("feed.json");
    let feeder = feed(&[
        "-q",
        "-r",
        capture.to_str().unwrap(),
        "--name",
        &name,
        "--consumers",
        "2",
        "--summary",
        summary.to_str().unwrap(),
    ]);
    for child in consumers.into_iter().chain([feeder]) {
        wait(child).exits(0);
    }
    assert_eq!(records(directory.path(), 0..2), of_one_process(&demo()));
    let (fed, one) = (json(&summary), crate::common::summary(&capture, &[]));
    for key in ["packets", "bytes", "fragments"] {
        assert_eq!(fed[key], one[key], "{key}");
    }
    let consumers = fed["feed"]["consumers"].as_array().unwrap();
    let distributed: u64 = consumers.iter().map(|c| number(c, &["packets"])).sum();
    assert_eq!(distributed, demo_frames().len() as u64);
}

#[test]
fn the_distribution_of_hashes_as_numbers_and_as_drawings() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let capture = demo();
    for ending in ["h.json", "h.svg", "h.html"] {
        run(&[
            "feed",
            "-r",
            capture.to_str().unwrap(),
            "--histogram",
            &path(ending),
        ])
        .exits(0)
        .says("Eq. (3)");
    }
    let numbers = json(&directory.path().join("h.json"));
    let packets = number(&numbers, &["packets"]);
    for hash in ["eq1", "eq2", "eq3", "mixed"] {
        let bins = numbers["hashes"][hash]["bins"].as_array().unwrap();
        assert_eq!(bins.len(), 128);
        assert_eq!(bins.iter().filter_map(Value::as_u64).sum::<u64>(), packets);
    }
    let chi = |hash: &str| numbers["hashes"][hash]["chi_square"].as_f64().unwrap();
    assert!(chi("eq1") > 10.0 * chi("eq3"), "Eq. (1) is far from even");
    assert!(
        std::fs::read_to_string(path("h.svg"))
            .unwrap()
            .starts_with("<svg xmlns")
    );
    let page = std::fs::read_to_string(path("h.html")).unwrap();
    assert!(page.contains("Eq. (1)") && !page.contains("NaN"));
}

/// Of a capture without packets nothing is in a ring: the feeder still waits for its consumer, and asleep.
#[test]
fn a_feeder_with_nothing_to_give_waits_asleep() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("none.pcap");
    std::fs::write(&path, plain(&[])).unwrap();
    let feed_name = name("nothing");
    let words = ["-q", "-r", path.to_str().unwrap(), "--name", &feed_name];
    let child = feed(&[&words[..], &["--consumers", "1"]].concat());
    std::thread::sleep(Duration::from_secs(1));
    let (_, ticks) = crate::signals::state_of(child.id()).unwrap();
    assert!(ticks < 40, "{ticks} of 100 ticks");
    let consumer = consumer(directory.path(), &feed_name, 0);
    wait(consumer).exits(0);
    wait(child).exits(0);
}
