//! A broker that is away: at the start, in the middle, for ever; one that stands still.
#![cfg(feature = "kafka")]

use super::site;

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{demo, http, run};
use linkweir_kafka::Consumer;
use linkweir_testkit::kafka::Broker;
use linkweir_testkit::netns::{until, wall_clock_ns};
use site::{PATIENCE, Run, broker_or_skip, capture, lost_records, numbers};
use tempfile::tempdir;

/// A topic at a port of this machine at which nobody listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!(
        "kafka://127.0.0.1:{}/t",
        listener.local_addr().unwrap().port()
    )
}

/// All records of a run are in the topic, once or more.
#[track_caller]
fn has_all(broker: &Broker, topic: &str, count: u64) {
    let messages = Consumer::read_to_end(&broker.address(), topic).unwrap();
    let runs = numbers(&messages);
    assert_eq!(runs.len(), 1);
    for run in runs.values() {
        let missing: Vec<u64> = (0..count).filter(|number| !run.contains(number)).collect();
        assert!(missing.is_empty(), "{} missing", missing.len());
        assert_eq!(run.len() as u64, count, "none that is not of the run");
    }
}

#[test]
fn a_broker_that_comes_late_is_killed_and_stands_still_costs_nothing() {
    let Some(mut broker) = broker_or_skip(Broker::prepared()) else {
        return;
    };
    let directory = tempdir().unwrap();
    late(&mut broker, directory.path());
    killed(&mut broker, directory.path());
    still(&broker, directory.path());
}

fn late(broker: &mut Broker, directory: &Path) {
    let (path, url) = (capture(directory, 500), broker.url("late"));
    let words = ["-r", path.to_str().unwrap(), "-w", &url];
    let mut run = Run::start(directory, "late", &words, Stdio::null());
    run.says("no broker accepts messages");
    assert!(run.said().contains("Connection refused"), "{}", run.said());
    broker.start_again().unwrap();
    let summary = run.ends_with(0);
    assert_eq!(lost_records(&summary), 0);
    run.says("accepts messages again");
    let told = run.said().matches("no broker accepts messages").count();
    assert_eq!(told, 1, "{}", run.said());
    has_all(broker, "late", 1_000);
}

/// The second half of the capture comes after the broker has been killed.
fn killed(broker: &mut Broker, directory: &Path) {
    let (path, url) = (capture(directory, 10_000), broker.url("killed"));
    // Less room than records: the run waits for the broker in the middle of the file.
    let words = [
        "-r",
        "-",
        "-w",
        &url,
        "--kafka",
        "queue.buffering.max.messages=2000",
    ];
    let (input, mut pipe) = std::io::pipe().unwrap();
    let mut run = Run::start(directory, "killed", &words, Stdio::from(input));
    let mut file = File::open(path).unwrap();
    let half = file.metadata().unwrap().len() / 2;
    let mut bytes = Vec::new();
    (&file).take(half).read_to_end(&mut bytes).unwrap();
    pipe.write_all(&bytes).unwrap();
    assert!(
        until(PATIENCE, || Consumer::read_to_end(
            &broker.address(),
            "killed"
        )
        .is_ok_and(|messages| messages.len() > 3_000)),
        "{}",
        run.said()
    );
    broker.kill();
    assert_eq!(file.stream_position().unwrap(), half);
    let rest = std::thread::spawn(move || std::io::copy(&mut file, &mut pipe));
    run.says("no broker accepts messages");
    broker.start_again().unwrap();
    rest.join().unwrap().unwrap();
    let summary = run.ends_with(0);
    assert_eq!(summary["http"]["transactions"], 20_000);
    assert_eq!(lost_records(&summary), 0);
    has_all(broker, "killed", 20_000);
}

fn still(broker: &Broker, directory: &Path) {
    let (path, url) = (capture(directory, 500), broker.url("still"));
    // Somebody who is asked to wait: for less than this broker needs, and for longer.
    broker.pause().unwrap();
    let words = ["-r", path.to_str().unwrap(), "-w", &url];
    let hasty = [&words[..], &["--kafka", "linkweir.patience.ms=1000"]].concat();
    let summary = Run::start(directory, "hasty", &hasty, Stdio::null()).ends_with(1);
    assert_eq!(lost_records(&summary), 1_000);
    let mut patient = Run::start(directory, "patient", &words, Stdio::null());
    patient.says("no broker accepts messages");
    broker.resume().unwrap();
    let summary = patient.ends_with(0);
    assert_eq!(lost_records(&summary), 0);
    has_all(broker, "still", 1_000);
}

#[test]
fn a_broker_that_is_never_there_ends_with_1_and_the_number_of_records() {
    let directory = tempdir().unwrap();
    let url = nowhere();
    let demo = demo();
    let words = ["-r", demo.to_str().unwrap(), "-w", &url];
    // All records fit into the buffer, or few of them do.
    for (name, room) in [("wide", "1000"), ("narrow", "10")] {
        let room = format!("queue.buffering.max.messages={room}");
        let more = ["--kafka", "linkweir.patience.ms=1500", "--kafka", &room];
        let words = [&words[..], &more].concat();
        let begin = wall_clock_ns();
        let mut run = Run::start(directory.path(), name, &words, Stdio::null());
        let summary = run.ends_with(1);
        // The records are waited for, then the sketches, and nothing else.
        let took = Duration::from_nanos(wall_clock_ns() - begin);
        assert!(took < Duration::from_secs(12), "{name}: {took:?}");
        assert_eq!(lost_records(&summary), 800, "{name}: {}", run.said());
        run.says("no broker accepts messages");
        run.says("Connection refused");
        run.says("800 records are lost: ");
    }
}

#[test]
fn who_asks_twice_need_not_wait() {
    let directory = tempdir().unwrap();
    let url = nowhere();
    let demo = demo();
    let words = ["-r", demo.to_str().unwrap(), "-w", &url];
    let mut run = Run::start(directory.path(), "asked", &words, Stdio::null());
    run.says("no broker accepts messages");
    run.signal("INT");
    // Signals that come within half a second are one.
    assert!(!until(Duration::from_millis(700), || false));
    run.signal("INT");
    assert_eq!(run.ends().signal(), Some(2));
}

#[test]
fn what_is_no_topic_is_refused_at_once() {
    for (url, says) in [
        ("kafka://127.0.0.1:9092", "has no topic"),
        ("kafka://127.0.0.1:99999/t", "port `99999`"),
        ("kafka://::1/t", "brackets"),
        ("kafka://h/a b", "topic `a b`"),
    ] {
        http(&demo(), &["-w", url]).exits(2).says(url).says(says);
    }
    let url = nowhere();
    for (setting, says) in [
        ("no.such.setting=1", "setting `no.such.setting`"),
        ("security.protocol=tls", "`tls` is not taken"),
        ("linger.ms=long", "`long` is not taken"),
    ] {
        let demo = demo();
        let words = ["http", "-r", demo.to_str().unwrap(), "-w", &url];
        let words = [&words[..], &["--kafka", setting]].concat();
        run(&words).exits(2).says("--kafka").says(says);
    }
}
