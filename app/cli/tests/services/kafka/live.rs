//! A live capture whose broker goes away for some seconds: no packet is lost, and every record is in the
//! topic or in the count of what was not delivered.
//!
//! All of it is in one network namespace: a veth pair, on one end of which transactions are sent while the
//! binary listens on the other, and the broker on its loopback. So the test starts itself there. Where
//! namespaces are not allowed or there is no broker, it says SKIPPED.
#![cfg(feature = "kafka")]

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::site::lost_records;
use crate::common::skipped;
use linkweir_inject::{Port, PortOptions};
use linkweir_kafka::Consumer;
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_testkit::kafka::Broker;
use linkweir_testkit::netns::{Running, Wire, until};
use linkweir_testkit::script::Exchange;
use serde_json::Value;
use tempfile::tempdir;

const NAME: &str = "kafka::live::a_broker_that_goes_away_costs_no_packet";
/// Set where the test runs inside of its namespace.
const INSIDE: &str = "LINKWEIR_TEST_INSIDE";
/// The ends of the pair.
const ENDS: [&str; 2] = ["gen0", "cap0"];
const PATIENCE: Duration = Duration::from_secs(20);
/// Transactions that are sent at once, and the pause between: 2000 a second.
const BURST: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);
/// For how long the broker is away; before and after it traffic runs for a second.
const AWAY: Duration = Duration::from_secs(3);
const AROUND: Duration = Duration::from_secs(1);

#[test]
fn a_broker_that_goes_away_costs_no_packet() {
    if std::env::var_os(INSIDE).is_some() {
        inside();
        return;
    }
    let wire = match Wire::new() {
        Ok(wire) => wire,
        Err(error) => return skipped(&error.to_string()),
    };
    let mut own = wire.command(Side::Server, std::env::current_exe().unwrap());
    own.args(["--exact", NAME, "--nocapture"]).env(INSIDE, "1");
    let output = own.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    eprintln!("{said}");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

fn inside() {
    let [near, far] = ENDS;
    ip(&["link", "add", near, "type", "veth", "peer", "name", far]);
    for end in ENDS {
        ip(&["link", "set", end, "up"]);
    }
    let directory = tempdir().unwrap();
    let mut broker = match Broker::start() {
        Ok(broker) => broker,
        Err(error) => return skipped(&error.to_string()),
    };
    // Its connections stay, and its buffer holds all.
    let waited = capture(
        &broker.address(),
        "waited",
        &[],
        directory.path(),
        |moment| match moment {
            Moment::Away => broker.pause().unwrap(),
            Moment::Back => broker.resume().unwrap(),
        },
    );
    assert_eq!(waited.lost, 0, "{waited:?}");
    waited.is_right();
    // It dies and begins anew, and the buffer is small: a second's records at most.
    let small = ["--kafka", "queue.buffering.max.messages=2000"];
    let address = broker.address();
    let overflown = capture(
        &address,
        "overflown",
        &small,
        directory.path(),
        |moment| match moment {
            Moment::Away => broker.kill(),
            Moment::Back => broker.start_again().unwrap(),
        },
    );
    assert!(overflown.lost > 1000, "{overflown:?}");
    overflown.is_right();
}

/// When the broker is to go and to come.
enum Moment {
    Away,
    Back,
}

/// What came of a run.
#[derive(Debug)]
struct Ended {
    sent: u64,
    packets: u64,
    dropped: u64,
    records: u64,
    delivered: u64,
    lost: u64,
}

impl Ended {
    #[track_caller]
    fn is_right(&self) {
        assert_eq!(self.dropped, 0, "packets were lost: {self:?}");
        // Two packets of each transaction.
        assert_eq!(self.packets, 2 * self.sent, "{self:?}");
        assert_eq!(self.records, self.sent, "{self:?}");
        assert_eq!(self.records, self.delivered + self.lost, "{self:?}");
    }
}

fn capture(
    brokers: &str,
    topic: &str,
    words: &[&str],
    directory: &Path,
    mut at: impl FnMut(Moment),
) -> Ended {
    let [near, far] = ENDS;
    let summary = directory.join(format!("{topic}.json"));
    let mut command = crate::common::linkweir();
    command
        .args(["http", "-q", "-i", far, "-B", "16384", "-w"])
        .arg(format!("kafka://{brokers}/{topic}"))
        .args(words)
        .arg("--summary")
        .arg(&summary)
        .stdout(Stdio::null());
    let mut linkweir = Running::start(&mut command).unwrap();
    let is_ready = until(PATIENCE, || {
        is_listening() || linkweir.ended().unwrap().is_some()
    });
    if !is_ready || linkweir.ended().unwrap().is_some() {
        let output = linkweir.finish().unwrap();
        panic!("{}", String::from_utf8_lossy(&output.stderr));
    }
    pause(Duration::from_millis(200));

    let port = Port::open(&PortOptions::new(near)).unwrap();
    let bursts = u32::try_from((AROUND + AWAY + AROUND).as_millis() / PAUSE.as_millis()).unwrap();
    let sent = std::thread::scope(|threads| {
        let sending = threads.spawn(move || send(port, bursts));
        pause(AROUND);
        at(Moment::Away);
        pause(AWAY);
        at(Moment::Back);
        sending.join().unwrap()
    });
    // What the kernel holds back in a block that is not full comes soon.
    pause(Duration::from_millis(500));
    let output = linkweir.finish().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");

    let totals: Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    let number = |path: &str| totals.pointer(path).and_then(Value::as_u64).unwrap();
    let ended = Ended {
        sent,
        packets: number("/packets"),
        dropped: number("/dropped/kernel") + number("/dropped/ring"),
        records: number("/records"),
        delivered: ids(brokers, topic).len() as u64,
        lost: lost_records(&totals),
    };
    eprintln!("{topic}: {ended:?}; {said}");
    ended
}

/// The different records of a topic.
fn ids(brokers: &str, topic: &str) -> HashSet<String> {
    let mut consumer = Consumer::from_beginning(brokers, &[topic], &[]).unwrap();
    let mut ids = HashSet::new();
    let is_over = until(PATIENCE, || {
        while let Some(message) = consumer.poll(Duration::from_millis(500)) {
            let record: Value = serde_json::from_slice(&message.value).unwrap();
            ids.insert(record["record_id"].as_str().unwrap().to_owned());
        }
        consumer.remaining() == Ok(0)
    });
    assert!(is_over, "{:?}", consumer.trouble());
    ids
}

/// Sends transactions, each of a connection of its own; gives how many.
fn send(mut port: Port, bursts: u32) -> u64 {
    let mut number = 0;
    for _ in 0..bursts {
        let frames: Vec<Vec<u8>> = (0..BURST)
            .flat_map(|_| {
                number += 1;
                transaction(number)
            })
            .collect();
        let sent = port.send(frames.iter().map(Vec::as_slice)).unwrap();
        assert_eq!((sent.frames, sent.refused), (frames.len() as u64, 0));
        pause(PAUSE);
    }
    u64::from(number)
}

fn transaction(number: u32) -> Vec<Vec<u8>> {
    let client = Ipv4Addr::from_bits(0x0a50_0000 + number);
    let client = SocketAddr::from((client, 40_000));
    let server = SocketAddr::from((Ipv4Addr::new(10, 80, 0, 1), 80));
    let exchange = Exchange::get(format!("/page/{number}"), 200);
    let mut talk = Conversation::between(client, server).numbered(number << 8, number << 9);
    talk.client_sends(exchange.request());
    talk.server_sends(exchange.response());
    talk.frames().into_iter().map(|frame| frame.bytes).collect()
}

/// Whether there is a packet socket in this namespace that is bound to an interface.
fn is_listening() -> bool {
    let table = std::fs::read_to_string("/proc/self/net/packet").unwrap_or_default();
    // sk RefCnt Type Proto Iface R Rmem User Inode
    let interface = |line: &str| line.split_whitespace().nth(4).map(str::to_owned);
    let mut sockets = table.lines().skip(1).filter_map(interface);
    sockets.any(|index| index != "0")
}

fn ip(words: &[&str]) {
    let status = Command::new("ip").args(words).status().unwrap();
    assert!(status.success(), "ip {}", words.join(" "));
}

/// Lets others go on.
#[expect(
    clippy::disallowed_methods,
    reason = "another process has no clock of ours"
)]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
