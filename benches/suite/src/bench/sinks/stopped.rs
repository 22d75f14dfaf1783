//! A live capture whose broker stops for ten seconds: no packet may be lost, and of the records every one
//! must be in the topic or in the count of what was not delivered.
//!
//! All of it is in one network namespace that is made for it: a veth pair, on one end of which a capture is
//! replayed while `linkweir http` listens on the other, and the broker on its loopback. So this program
//! starts itself there (`--inside`).

use super::super::harness::{
    Column, Target, compile, count as number, print, ready, said, verdict,
};
use super::place::Topics;
use super::traffic;
use crate::Outcome;
use crate::shell::{grouped, output, passes, root};
use anyhow::{Context as _, Result, bail};
use linkweir_kafka::Consumer;
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Running, Wire};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Transactions of the capture that is replayed; each repetition is from other clients.
const TRANSACTIONS: u64 = 50_000;
/// Packets a second.
const RATE: u64 = 50_000;
/// For how long the broker is away, and how long traffic runs before and after, seconds.
const AWAY: u64 = 10;
const BEFORE: u64 = 3;
const AFTER: u64 = 4;
/// Messages of the small buffer: what comes in about a second.
const SMALL: &str = "queue.buffering.max.messages=10000";
/// The ends of the pair.
const ENDS: [&str; 2] = ["gen0", "cap0"];

/// How the broker goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// SIGSTOP and SIGCONT: its connections stay.
    Stopped,
    /// SIGKILL, and started again on what it had written.
    Killed,
}

/// A run.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    way: Way,
    is_small: bool,
}

const CASES: [Case; 4] = [
    Case {
        name: "stopped",
        way: Way::Stopped,
        is_small: false,
    },
    Case {
        name: "killed",
        way: Way::Killed,
        is_small: false,
    },
    Case {
        name: "stopped, small buffer",
        way: Way::Stopped,
        is_small: true,
    },
    Case {
        name: "killed, small buffer",
        way: Way::Killed,
        is_small: true,
    },
];

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ended {
    name: &'static str,
    packets: u64,
    /// Packets that the capture lost.
    dropped: u64,
    /// Records that the analysis made.
    produced: u64,
    /// Different records in the topic.
    delivered: u64,
    /// Messages of the topic that say a record again.
    repeated: u64,
    /// Records that linkweir says were not delivered.
    lost: u64,
}

impl Ended {
    /// Every record is in the topic or counted as lost, and not both.
    const fn is_exact(&self) -> bool {
        self.produced == self.delivered + self.lost
    }
}

/// Starts this program in a namespace of its own.
pub(super) fn run(linkweir: &Path) -> Outcome {
    let wire = Wire::new()?;
    let mut own = wire.command(Side::Server, std::env::current_exe()?);
    own.args(["bench", "sinks", "--inside", "--binary"])
        .arg(linkweir);
    passes(&mut own)
}

/// What it does there.
pub(super) fn inside(linkweir: &Path, dir: &Path) -> Outcome {
    let [near, far] = ENDS;
    let words = ["link", "add", near, "type", "veth", "peer", "name", far];
    output(Command::new("ip").args(words))?;
    for end in ENDS {
        output(Command::new("ip").args(["link", "set", end, "up"]))?;
    }
    let replay = dir.join("replay");
    compile(&root().join("benches/limits/replay.c"), &replay)?;
    let site = Site {
        linkweir: linkweir.to_path_buf(),
        replay,
        capture: dir.join("live.pcap"),
        dir: dir.to_path_buf(),
    };
    traffic::write(&site.capture, TRANSACTIONS)?;
    let mut topics = Topics::open()?;
    let mut all = Vec::new();
    for case in CASES {
        all.push(site.run(case, &mut topics)?);
    }
    let title = format!(
        "broker away for {AWAY} s, {} packets/s captured",
        grouped(RATE)
    );
    print(&title, &COLUMNS, &all);
    verdict(&targets(&all))
}

/// Where the programs and files are.
#[derive(Debug)]
struct Site {
    linkweir: PathBuf,
    replay: PathBuf,
    capture: PathBuf,
    dir: PathBuf,
}

impl Site {
    fn run(&self, case: Case, topics: &mut Topics) -> Result<Ended> {
        let topic = topics.next();
        let [near, far] = ENDS;
        let summary = self.dir.join("live.json");
        let mut command = Command::new(&self.linkweir);
        command
            .args([
                "http",
                "-q",
                "--overwrite",
                "-i",
                far,
                "-w",
                &topics.broker.url(&topic),
                "--summary",
            ])
            .arg(&summary);
        if case.is_small {
            command.args(["--kafka", SMALL]);
        }
        let linkweir = Running::start(command.stderr(Stdio::piped()))?;
        let linkweir = ready("linkweir", linkweir, |_| is_listening(), said)?;
        // The socket is there before the first poll.
        std::thread::sleep(Duration::from_millis(300));
        let seconds = (BEFORE + AWAY + AFTER).to_string();
        let mut replay = Command::new(&self.replay);
        replay
            .arg(near)
            .arg(&self.capture)
            .args(["--loops", "0", "--seconds", &seconds]);
        replay
            .args(["--rate", &RATE.to_string()])
            .stdout(Stdio::null());
        let replay = Running::start(&mut replay)?;
        std::thread::sleep(Duration::from_secs(BEFORE));
        match case.way {
            Way::Stopped => topics.broker.pause()?,
            Way::Killed => topics.broker.kill(),
        }
        std::thread::sleep(Duration::from_secs(AWAY));
        match case.way {
            Way::Stopped => topics.broker.resume()?,
            Way::Killed => topics.broker.start_again()?,
        }
        if !replay.output()?.status.success() {
            bail!("replay failed");
        }
        std::thread::sleep(Duration::from_millis(500));
        let ended = linkweir.finish()?;
        if !matches!(ended.status.code(), Some(0 | 1)) {
            bail!(
                "linkweir: {}",
                String::from_utf8_lossy(&ended.stderr).trim()
            );
        }
        let messages = Consumer::read_to_end(&topics.broker.address(), &topic)?;
        let values = messages.iter().map(|message| message.value.as_slice());
        count(case.name, &std::fs::read(&summary)?, values)
    }
}

/// Whether there is a packet socket in this namespace that is bound to an interface.
fn is_listening() -> bool {
    let table = std::fs::read_to_string("/proc/self/net/packet").unwrap_or_default();
    // sk RefCnt Type Proto Iface R Rmem User Inode
    let interface = |line: &str| line.split_whitespace().nth(4).map(str::to_owned);
    let mut sockets = table.lines().skip(1).filter_map(interface);
    sockets.any(|index| index != "0")
}

/// Compares the summary of a run with the messages of its topic.
fn count<'a>(
    name: &'static str,
    summary: &[u8],
    values: impl Iterator<Item = &'a [u8]>,
) -> Result<Ended> {
    let summary: Value = serde_json::from_slice(summary).context("the summary")?;
    let number = |way| number(&summary, way);
    let mut ids = HashSet::new();
    let mut messages = 0;
    for value in values {
        let message: Value = serde_json::from_slice(value).context("a message")?;
        let id = message.get("record_id").and_then(Value::as_str);
        ids.insert(id.context("a message without `record_id`")?.to_owned());
        messages += 1;
    }
    let delivered = ids.len() as u64;
    let lost = summary.pointer("/dropped/sink").and_then(Value::as_object);
    let lost = lost.context("no `/dropped/sink` in the summary")?;
    Ok(Ended {
        name,
        packets: number("packets")?,
        dropped: number("dropped/kernel")? + number("dropped/ring")?,
        produced: number("records")?,
        delivered,
        repeated: messages - delivered,
        lost: lost.values().filter_map(Value::as_u64).sum(),
    })
}

const COLUMNS: [Column<Ended>; 8] = [
    ("broker", |ended| ended.name.to_owned()),
    ("packets", |ended| grouped(ended.packets)),
    ("capture drops", |ended| grouped(ended.dropped)),
    ("records", |ended| grouped(ended.produced)),
    ("in the topic", |ended| grouped(ended.delivered)),
    ("repeated", |ended| grouped(ended.repeated)),
    ("counted lost", |ended| grouped(ended.lost)),
    ("missing", |ended| {
        let known = ended.delivered + ended.lost;
        (i128::from(ended.produced) - i128::from(known)).to_string()
    }),
];

fn targets(all: &[Ended]) -> Vec<Target> {
    let dropped: u64 = all.iter().map(|ended| ended.dropped).sum();
    let overflows = all.iter().filter(|ended| ended.lost > 0).count();
    let exact = all.iter().filter(|ended| ended.is_exact()).count();
    vec![
        Target::new(
            format!("broker away for {AWAY} s: no packet lost"),
            format!("{} capture drops", grouped(dropped)),
            dropped == 0 && !all.is_empty(),
        ),
        Target::new(
            "every record is in the topic or counted as lost",
            format!("{exact} of {} runs; {overflows} overflowed", all.len()),
            exact == all.len() && overflows > 0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::harness::reached;
    use super::*;

    const SUMMARY: &[u8] =
        br#"{"packets":10,"records":5,"dropped":{"kernel":0,"ring":0,"sink":{"a":2}}}"#;

    fn ended(name: &'static str, summary: &[u8], ids: &[&str]) -> Result<Ended> {
        let values: Vec<String> = ids
            .iter()
            .map(|id| format!("{{\"record_id\":\"{id}\"}}"))
            .collect();
        count(name, summary, values.iter().map(String::as_bytes))
    }

    #[test]
    fn messages_are_counted_by_their_ids() {
        let exact = ended("a", SUMMARY, &["r-0", "r-1", "r-1", "r-4"]).unwrap();
        assert!(exact.is_exact());
        assert_eq!((exact.delivered, exact.repeated, exact.lost), (3, 1, 2));
        let missing = ended("b", SUMMARY, &["r-0", "r-1"]).unwrap();
        assert!(!missing.is_exact());
        assert_eq!(
            reached(&targets(std::slice::from_ref(&exact))),
            [true, true]
        );
        assert!(!targets(&[exact, missing])[1].is_reached);
        assert!(count("c", SUMMARY, std::iter::once(b"{}".as_slice())).is_err());
    }

    #[test]
    fn a_dropped_packet_is_a_miss() {
        let summary =
            br#"{"packets":10,"records":1,"dropped":{"kernel":1,"ring":0,"sink":{"a":1}}}"#;
        let ended = ended("a", summary, &[]).unwrap();
        assert!(ended.is_exact() && !targets(&[ended])[0].is_reached);
    }
}
