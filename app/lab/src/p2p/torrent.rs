//! A file that comes by BitTorrent, and who measures how fast.
//!
//! Downloads by HTTP beside the torrent, which nobody shapes.

use super::Settings;
use super::act::noise;
use super::rate::Count;
use crate::curves::quantile;
use crate::error::LabError;
use crate::program::{self, Ended, Program};
use crate::services::url;
use crate::testbed::Testbed;
use linkweir_testkit::gateway::{LAN, Place, Torrent};
use linkweir_testkit::netns::Running;
use serde::Deserialize;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// Bytes of TCP payload in a full frame of Ethernet with timestamps.
pub(super) const PAYLOAD: f64 = 1448.0;
/// Bytes of the frame: the rest are headers (14, 20, 32).
pub(super) const FRAME: f64 = 1514.0;
/// How much longer than planned it may take: tracker, handshakes, a machine with other work.
const TIMEOUT: Duration = Duration::from_secs(40);
/// How often the class of the shaper is asked, seconds.
const PERIOD: &str = "0.2";

/// The part of a frame that is content of the connection.
pub(super) const CONTENT: f64 = PAYLOAD / FRAME;

/// A torrent that is offered, and then fetched.
pub(super) struct Download {
    torrent: Torrent,
    directory: PathBuf,
    fetch: Option<Running>,
    classes: Option<Running>,
}

/// What came of it.
pub(super) struct Downloaded {
    /// What was sent, and where it was to come.
    pub(super) file: (PathBuf, PathBuf),
    /// Content that aria2 received.
    pub(super) blocks: Vec<Count>,
    /// Connections that aria2 opened through the gateway, as both sides say.
    pub(super) opened: u64,
    /// Frames that the shaper let go.
    pub(super) shaped: Vec<Count>,
}

impl Download {
    /// Offers it.
    pub(super) fn offer(testbed: &Testbed<'_>, settings: &Settings) -> Result<Self, LabError> {
        let content = noise(!testbed.order.seed, length(settings));
        let torrent = Torrent::seed(&testbed.net, &testbed.path(""), &content)
            .map_err(|error| LabError::program("the torrent", error))?;
        let directory = testbed.path("leech");
        fs::create_dir_all(&directory).map_err(LabError::file(&directory))?;
        Ok(Self {
            torrent,
            directory,
            fetch: None,
            classes: None,
        })
    }

    /// Begins to fetch it.
    pub(super) fn begin(&mut self, testbed: &Testbed<'_>) -> Result<(), LabError> {
        let path = testbed.path("classes");
        let file = File::create(&path).map_err(LabError::file(&path))?;
        let script =
            format!("while date +%s.%N; do tc -s class show dev {LAN}; sleep {PERIOD}; done");
        let mut classes = testbed.command(Place::Gateway, "sh");
        classes
            .args(["-c", &script])
            .stdout(file)
            .stderr(Stdio::null());
        let started = |result: std::io::Result<Running>| {
            result.map_err(|error| LabError::program("aria2c", error))
        };
        self.classes = Some(started(Running::start(&mut classes))?);
        let mut fetch = self.torrent.fetch(&testbed.net, &self.directory);
        self.fetch = Some(started(Running::start(&mut fetch))?);
        Ok(())
    }

    /// Waits until all of it is there.
    pub(super) fn end(
        mut self,
        testbed: &Testbed<'_>,
        settings: &Settings,
    ) -> Result<Downloaded, LabError> {
        if let Some(fetch) = &mut self.fetch {
            testbed.wait("the torrent", settings.duration + TIMEOUT, || {
                !matches!(fetch.ended(), Ok(None))
            })?;
        }
        self.classes = None;
        let read = |path: PathBuf| fs::read_to_string(&path).map_err(LabError::file(&path));
        let log = read(self.directory.join("log"))?;
        let other = read(testbed.path("seed/log"))?;
        Ok(Downloaded {
            opened: opened(&log, "10.88.2.") + opened(&other, "10.88.1."),
            file: (
                testbed.path("seed/shared.bin"),
                self.directory.join("shared.bin"),
            ),
            blocks: blocks(&log),
            shaped: shaped(&read(testbed.path("classes"))?),
        })
    }
}

/// As much as goes over in the wanted time.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "far below 2^32, and positive"
)]
fn length(settings: &Settings) -> u32 {
    (settings.shape() * CONTENT / 8.0 * settings.duration.as_secs_f64()) as u32
}

/// Connections to addresses that begin so. A tracker names to everybody all that it knows, so peers
/// connect to themselves too.
fn opened(log: &str, network: &str) -> u64 {
    let targets = log
        .lines()
        .filter_map(|line| line.split_once(" - Connecting to "));
    targets
        .map(|(_, target)| u64::from(target.starts_with(network)))
        .sum()
}

/// The log of aria2 has a line for each block that comes, as
/// `2026-01-02 03:04:05.678901 [INFO] [...] CUID#7 - From: 10.0.0.1:6881 piece index=1, begin=0, length=16384`.
fn blocks(log: &str) -> Vec<Count> {
    let mut all = 0.0;
    let lines = log.lines().filter_map(|line| {
        let (before, block) = line.split_once(" piece index=")?;
        let (_, length) = block.rsplit_once("length=")?;
        let mut parts = before.split(' ').nth(1)?.split(':');
        let mut part = || parts.next()?.parse::<f64>().ok();
        let seconds = 3600.0 * part()? + 60.0 * part()? + part()?;
        Some((seconds, length.parse::<f64>().ok()?))
    });
    lines
        .map(|(at, length)| {
            all += length;
            (at, all)
        })
        .collect()
}

/// A line with the time, then what `tc` says of the classes, again and again. There is one class.
fn shaped(text: &str) -> Vec<Count> {
    let mut at = None;
    let mut counts = Vec::new();
    for line in text.lines() {
        if let Ok(seconds) = line.parse() {
            at = Some(seconds);
        }
        let sent = line.trim().strip_prefix("Sent ");
        let sent = sent.and_then(|rest| rest.split(' ').next()?.parse().ok());
        if let (Some(at), Some(bytes)) = (at, sent) {
            counts.push((at, bytes));
        }
    }
    counts
}

/// Who downloads.
pub(super) const CLIENTS: &str = "10.16.0.0/24";
/// What is downloaded.
pub(super) const PATH: &str = "/file";
/// How long the last ones may take when no more begin.
const DRAIN: Duration = Duration::from_secs(10);

/// Starts them; they begin at a constant rate for this time. `name` is where their records go.
pub(super) fn start(
    testbed: &Testbed<'_>,
    settings: &Settings,
    name: &str,
    duration: Duration,
) -> Result<Program, LabError> {
    let (url, arrivals) = (url(PATH), format!("constant:{}", settings.rate));
    let (duration, drain) = (
        format!("{}ms", duration.as_millis()),
        format!("{}s", DRAIN.as_secs()),
    );
    let more = [
        "--duration",
        &duration,
        "--drain",
        &drain,
        "--lag-limit",
        "1s",
    ];
    Program::load(
        testbed,
        name,
        &url,
        (CLIENTS, &arrivals),
        testbed.order.seed,
        &more,
    )
}

/// Fields of `load_session`.
#[derive(Debug, Deserialize)]
struct Session {
    service_time_ns: Option<u64>,
}

/// What came of them.
pub(super) struct Downloads {
    /// What the generator says.
    pub(super) load: Ended,
    /// From the first byte of a request to the last byte of its response, seconds; sorted.
    pub(super) times: Vec<f64>,
}

impl Downloads {
    /// Waits for the last one.
    pub(super) fn end(
        program: Program,
        testbed: &Testbed<'_>,
        duration: Duration,
    ) -> Result<Self, LabError> {
        let load = program.wait(testbed, duration + DRAIN)?;
        let mut times = Vec::new();
        let path = testbed.path(&format!("{}.jsonl", load.name));
        program::each(&path, |session: Session| {
            // Far below 2^53 nanoseconds.
            times.extend(session.service_time_ns.map(|time| time as f64 / 1e9));
        })?;
        times.sort_by(f64::total_cmp);
        Ok(Self { load, times })
    }

    /// The middle one of all times.
    pub(super) fn median(&self) -> Option<f64> {
        quantile(&self.times, 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_aria2_is_read() {
        let log = "2026-11-22 13:17:50.915371 [INFO] [DefaultBtInteractive.cc:315] CUID#15 - From: \
                   127.0.0.1:6881 piece index=11, begin=0, length=16384\n\
                   2026-11-22 13:17:50.915400 [INFO] something else, length=9\n\
                   2026-11-22 13:17:51.415371 [INFO] [DefaultBtInteractive.cc:315] CUID#15 - From: \
                   127.0.0.1:6881 piece index=2, begin=16384, length=100\n";
        let at = 13.0 * 3600.0 + 17.0 * 60.0;
        let counts = blocks(log);
        let expected = [(at + 50.915_371, 16384.0), (at + 51.415_371, 16484.0)];
        for (count, expected) in counts.iter().zip(expected) {
            assert!((count.0 - expected.0).abs() < 1e-6 && count.1 == expected.1);
        }
        assert_eq!(counts.len(), 2);
    }

    #[test]
    fn connections_to_oneself_are_not_through_the_gateway() {
        let log = "13:28:01 [INFO] [a.cc:123] CUID#14 - Connecting to 10.88.2.2:6969\n\
                   13:28:02 [INFO] [b.cc:77] CUID#15 - Connecting to 10.88.1.11:6882\n\
                   13:28:02 [INFO] [b.cc:77] CUID#16 - Connecting to 10.88.2.2:6881\n";
        assert_eq!(opened(log, "10.88.2."), 2);
    }

    #[test]
    fn what_tc_says_is_read() {
        let text = "17.5\nclass htb 4c57:2 root leaf 8449: prio 0 rate 10Mbit ceil 10Mbit\n \
                    Sent 1514 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)\n backlog 0b\n\
                    17.75\n Sent 3028 bytes 2 pkt\n";
        assert_eq!(shaped(text), [(17.5, 1514.0), (17.75, 3028.0)]);
    }
}
