//! The job of `contrib/spark` on a real cluster of two workers gives what one process gives.
//!
//! `make test-cluster` installs what it needs and asks for it; it takes some minutes. Without that it
//! says so and passes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{plain, skipped, summary};
use linkweir_engine::hash::mix;
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::{Conversation, Encapsulation};
use linkweir_testkit::script::{Exchange, Framing, tell};

/// Connections of the made trace.
const CONNECTIONS: u16 = 600;
/// Files that the made trace is cut into.
const FILES: usize = 5;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % sides
    }

    fn place(&mut self, count: usize) -> usize {
        usize::try_from(self.roll(count as u64)).unwrap()
    }

    fn is(&mut self, of_ten: u64) -> bool {
        self.roll(10) < of_ten
    }
}

fn exchange(dice: &mut Dice) -> Exchange {
    let method = ["GET", "GET", "GET", "POST", "HEAD", "PURGE"][dice.place(6)];
    let long = "x".repeat(dice.place(700));
    Exchange {
        method,
        upload: if method == "POST" { dice.place(400) } else { 0 },
        status: [200, 200, 200, 204, 304, 404, 500][dice.place(7)],
        host: format!("host{}.test", dice.roll(20)),
        interim: dice.is(1),
        pipelined: dice.is(2),
        framing: if dice.is(2) {
            Framing::Chunked
        } else {
            Framing::Length
        },
        ..Exchange::get(
            format!("/{long}?n={}", dice.roll(1 << 32)),
            dice.place(3000),
        )
    }
}

/// A connection with whatever a network does to it.
fn conversation(number: u16, dice: &mut Dice) -> Conversation {
    let [high, low] = number.to_be_bytes();
    let client: IpAddr = if dice.is(3) {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number).into()
    } else {
        Ipv4Addr::new(10, 1, high, low).into()
    };
    let server: IpAddr = match client {
        IpAddr::V4(_) => Ipv4Addr::new(198, 51, 100, 7).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2).into(),
    };
    let number32 = |dice: &mut Dice| u32::try_from(dice.roll(1 << 32)).unwrap();
    let mut talk = Conversation::between(
        SocketAddr::new(client, 40_000 + number),
        SocketAddr::new(server, 80),
    )
    .numbered(number32(dice), number32(dice))
    .starting_at(Conversation::START_NS + dice.roll(30_000_000_000))
    .spaced(1 + dice.roll(40_000_000))
    .mss([1460, 1460, 1460, 1460, 300][dice.place(5)]);
    if dice.is(1) {
        talk = talk.within(Encapsulation::Vlan(7));
    }
    // Some connections are older than the trace.
    if dice.is(7) {
        talk.handshake();
    }
    let exchanges: Vec<Exchange> = (0..dice.roll(14)).map(|_| exchange(dice)).collect();
    tell(&mut talk, &exchanges);
    for _ in 0..dice.roll(4) {
        let count = talk.segments().len();
        if count == 0 {
            break;
        }
        let (at, ns) = (dice.place(count), dice.roll(50_000_000));
        match dice.roll(3) {
            0 => talk.lose(at),
            1 => talk.repeat(at, ns),
            _ => talk.delay(at, ns),
        };
    }
    talk
}

/// A trace in several files, one after the other in time, with connections that span them.
fn made_captures(directory: &Path) -> Vec<PathBuf> {
    let mut dice = Dice(8);
    let mut frames: Vec<CapturedFrame> = (0..CONNECTIONS)
        .flat_map(|number| conversation(number, &mut dice).frames())
        .collect();
    frames.sort_by_key(|frame| frame.timestamp_ns);
    let parts = frames.chunks(frames.len().div_ceil(FILES)).zip(0..);
    parts
        .map(|(frames, number)| {
            let path = directory.join(format!("part-{number}.pcap"));
            std::fs::write(&path, plain(frames)).unwrap();
            path
        })
        .collect()
}

/// Real captures with HTTP in them, where there are any: one after the other in time, before the made ones.
fn real_captures() -> Vec<PathBuf> {
    const NAMES: [&str; 10] = [
        "blitz__tcptrace/input/http.dmp.gz",
        "zeek__zeek/testing/btest/Traces/http/1000-requests-one-dropped-response.pcap.gz",
        "zeek__zeek/testing/btest/Traces/http/bro.org.pcap",
        "zeek__zeek/testing/btest/Traces/http/methods.pcap",
        "zeek__zeek/testing/btest/Traces/http/206_example_a.pcap",
        "zeek__zeek/testing/btest/Traces/tunnels/gre-aruba.pcap",
        "andrewf__pcap2har/tests/sajal.pcap",
        "andrewf__pcap2har/tests/pcapr.net.pcap",
        "seladb__PcapPlusPlus/Tests/Pcap++Test/PcapExamples/example.pcap",
        "nfstream__nfstream/tests/pcaps/pps.pcap",
    ];
    let directory = linkweir_testkit::real_captures::directory();
    let mut found: Vec<(u64, u64, PathBuf)> = Vec::new();
    for path in NAMES.map(|name| directory.join(name)) {
        let ran = crate::common::http(&path, &["-w", "/dev/null", "--summary", "-"]);
        if ran.code == Some(0) {
            let totals: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            let time = |name: &str| totals[name].as_u64().unwrap();
            found.push((time("first_ts_ns"), time("last_ts_ns"), path));
        }
    }
    if found.is_empty() {
        skipped("no real captures; the made ones alone");
    }
    found.sort();
    let mut end = 0;
    let in_order = found.into_iter().filter(|(first, last, _)| {
        let is_in_order = *first > end && *last < Conversation::START_NS;
        end = if is_in_order { *last } else { end };
        is_in_order
    });
    in_order.map(|(_, _, path)| path).collect()
}

#[test]
fn a_cluster_gives_the_records_and_totals_of_one_process() {
    if std::env::var_os("LINKWEIR_CLUSTER").is_none() {
        skipped("not asked for: `make test-cluster` runs it");
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cluster");
    let directory = tempfile::tempdir().unwrap();
    let made = made_captures(directory.path());
    let first = summary(&made[0], &[]);
    assert!(first["http"]["transactions"].as_u64().unwrap() > 100);
    let captures = [real_captures(), made].concat();
    let status = Command::new(tests.join(".venv/bin/python"))
        .arg(tests.join("cluster.py"))
        .arg("--linkweir")
        .arg(env!("CARGO_BIN_EXE_linkweir"))
        .arg("--directory")
        .arg(directory.path())
        .args(&captures)
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}
