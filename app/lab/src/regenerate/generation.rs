//! One generation: a model is played, what the wire saw is recorded, and its sessions are counted.

use super::Settings;
use crate::error::LabError;
use crate::program::{self, Ended, Program, watch};
use crate::services::{Web, url};
use crate::testbed::{Testbed, go_first};
use linkweir_model::log::calendar::parse_date;
use linkweir_testkit::gateway::Place;
use linkweir_wire::nanos;
use serde::Deserialize;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the clients of all generations are.
pub(super) const CLIENTS: &str = "10.16.0.0/12";
/// Sessions in turn: a page with objects, then two pages with a pause, then one small answer.
const SCRIPT: &str = "/page\n    /style.css\n    /one.png\n\n/small think=0.2\n/small\n\n/small\n";
/// How long sessions may go on when no more begin.
const DRAIN: Duration = Duration::from_secs(15);
/// How long the last lines of the log may take.
const SETTLE: Duration = Duration::from_secs(10);
/// Clients for each session that is expected: none comes twice, so that whether it was silent for the
/// timeout in between is no question of milliseconds. The timeout need only be longer than the pauses of a
/// session. (The generator takes all clients in an order by chance before one comes again, and then in
/// another order; the last of one turn may be the first of the next.)
const CLIENTS_PER_SESSION: f64 = 4.0;

/// What is played.
#[derive(Debug)]
pub(super) struct Play<'a> {
    /// Name of the generation and of its files.
    pub(super) name: &'a str,
    /// A file of `linkweir model fit`.
    pub(super) model: &'a Path,
    /// Names its path.
    pub(super) seed: u64,
    /// First address of its clients.
    pub(super) clients: Ipv4Addr,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Generation {
    /// What the generator says.
    pub(super) load: Ended,
    /// What `linkweir http` says.
    pub(super) http: Ended,
    /// What `linkweir model sessions` says of the records.
    pub(super) found: Ended,
    /// Lines of nginx's log.
    pub(super) served: u64,
    /// Sessions in each bin, by the schedule.
    pub(super) planned: Vec<u64>,
    /// Sessions in each bin, by the records.
    pub(super) counts: Vec<u64>,
    /// The file of these counts.
    pub(super) path: PathBuf,
}

/// Fields of `load_session`.
#[derive(Debug, Deserialize)]
struct Session {
    planned_ts_ns: u64,
}

impl Generation {
    /// Plays it, and counts.
    pub(super) fn play(
        testbed: &mut Testbed<'_>,
        web: &Web,
        settings: &Settings,
        play: &Play<'_>,
    ) -> Result<Self, LabError> {
        let before = lines(web);
        let http = watch(testbed, &format!("{}-http", play.name), "http")?;
        if let Some(address) = http.console {
            testbed.tell(&format!("watch http: http://{address}/"));
        }
        testbed.tell_of(
            &format!("the {} generation is sent and recorded", play.name),
            settings.duration,
        );
        let name = format!("{}-load", play.name);
        let load = load(testbed, settings, play, &name)?;
        go_first(testbed, load.id());
        let load = load.wait(testbed, settings.duration + DRAIN)?;
        let expected = before + load.count("load/responses");
        // What the log lacks in the end is a finding.
        drop(testbed.wait("the log", SETTLE, || lines(web) >= expected));
        let http = http.finish()?;
        let records = testbed.path(&format!("{}.jsonl", http.name));
        let list = testbed.path(&format!("{}-starts.csv", play.name));
        let found = sessions(testbed, settings, play.name, &records, &list)?;
        let grid = Grid {
            begin_ns: load.count("schedule_begin_ts_ns"),
            bin: settings.bin,
            bins: settings.bins(),
        };
        let mut planned = Vec::new();
        program::each(&testbed.path(&format!("{name}.jsonl")), |one: Session| {
            planned.push(one.planned_ts_ns);
        })?;
        let counts = grid.count(&read_starts(&list)?);
        let text: String = counts.iter().map(|count| format!("{count}\n")).collect();
        let path = testbed.put(
            &format!("{}-counts.csv", play.name),
            format!("count\n{text}").as_bytes(),
        )?;
        Ok(Self {
            load,
            http,
            found,
            served: lines(web) - before,
            planned: grid.count(&planned),
            counts,
            path,
        })
    }

    /// Whether sessions began when they should: a session in a hundred was late by a bin at most. Else
    /// what was captured is what the machine made of the schedule.
    pub(super) fn is_punctual(&self, bin: Duration) -> bool {
        let late = self.load.number("load/schedule_lag_us/p99");
        late.is_some_and(|micros| micros <= bin.as_secs_f64() * 1e6)
    }
}

fn lines(web: &Web) -> u64 {
    u64::try_from(web.visits().len()).unwrap_or(u64::MAX)
}

/// Starts the generator.
fn load(
    testbed: &Testbed<'_>,
    settings: &Settings,
    play: &Play<'_>,
    name: &str,
) -> Result<Program, LabError> {
    let script = testbed.put("script", SCRIPT.as_bytes())?;
    let (script, url) = (script.display().to_string(), url("/small"));
    let (clients, arrivals) = (
        format!("{}/{}", play.clients, 32 - bits(settings)),
        format!("mmpp:{}", play.model.display()),
    );
    let (duration, drain) = (
        format!("{}ms", settings.duration.as_millis()),
        format!("{}s", DRAIN.as_secs()),
    );
    let more = [
        "--duration",
        &duration,
        "--drain",
        &drain,
        "--script",
        &script,
        "--lag-limit",
        "20ms",
    ];
    Program::load(testbed, name, &url, (&clients, &arrivals), play.seed, &more)
}

/// Bits of an address that tell the clients apart.
fn bits(settings: &Settings) -> u32 {
    let least = CLIENTS_PER_SESSION * settings.duration.as_secs_f64() * settings.rate;
    // Network and broadcast address are no clients.
    (2..=20)
        .find(|bits| f64::from(1_u32 << bits) >= least + 2.0)
        .unwrap_or(20)
}

/// How many clients there are.
pub(super) fn clients(settings: &Settings) -> u32 {
    (1 << bits(settings)) - 2
}

/// Finds the sessions of records by `linkweir model sessions`: a list of when they begin.
fn sessions(
    testbed: &Testbed<'_>,
    settings: &Settings,
    name: &str,
    records: &Path,
    list: &Path,
) -> Result<Ended, LabError> {
    let (records, list) = (records.display().to_string(), list.display().to_string());
    let timeout = format!("{}ms", settings.timeout.as_millis());
    let words = [
        "model",
        "sessions",
        &records,
        "--timeout",
        &timeout,
        "-w",
        &list,
    ];
    let name = format!("{name}-sessions");
    Program::start(testbed, Place::Client, &name, &words)?.wait(testbed, SETTLE)
}

/// Reads that list: moments, ns since 1970.
fn read_starts(path: &Path) -> Result<Vec<u64>, LabError> {
    let text = fs::read_to_string(path).map_err(LabError::file(path))?;
    let lines = text.lines().enumerate().skip(1);
    let starts = lines.map(|(number, line)| {
        parse_date(line.as_bytes()).ok_or_else(|| {
            let what = format!("{}, line {}", path.display(), number + 1);
            LabError::program(what, format!("`{line}` is not a valid time"))
        })
    });
    starts.collect()
}

/// The bins of a schedule, the first of which begins when it begins.
///
/// `linkweir model sessions --bin` has bins that begin at whole multiples of their length since 1970. Each of
/// them has a part of one bin of the schedule and a part of the next, and what is the mean of two is
/// steadier than each: by that the variance of a model without memory would go down to a half.
#[derive(Debug, Clone, Copy)]
struct Grid {
    begin_ns: u64,
    bin: Duration,
    /// At least so many.
    bins: usize,
}

impl Grid {
    /// How many of these times are in each bin.
    fn count(&self, times_ns: &[u64]) -> Vec<u64> {
        let width = nanos(self.bin).max(1);
        let mut counts = vec![0; self.bins];
        for time in times_ns {
            let Ok(place) = usize::try_from(time.saturating_sub(self.begin_ns) / width) else {
                continue;
            };
            if counts.len() <= place {
                counts.resize(place + 1, 0);
            }
            if let Some(count) = counts.get_mut(place) {
                *count += 1;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_begin_with_the_schedule() {
        let grid = Grid {
            begin_ns: 1_005_000_000,
            bin: Duration::from_millis(10),
            bins: 4,
        };
        let times = [1_005_000_000, 1_014_999_999, 1_015_000_000, 1_035_000_001];
        assert_eq!(grid.count(&times), [2, 1, 0, 1]);
        assert_eq!(grid.count(&[1_046_000_000]), [0, 0, 0, 0, 1]);
        assert_eq!(grid.count(&[]), [0; 4]);
    }

    #[test]
    fn a_list_of_starts_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("starts.csv");
        let text = "session_start\n1970-01-01T00:00:01.5Z\n1970-01-01T00:00:02Z\n";
        fs::write(&path, text).unwrap();
        assert_eq!(read_starts(&path).unwrap(), [1_500_000_000, 2_000_000_000]);
        fs::write(&path, "session_start\nsoon\n").unwrap();
        let wrong = read_starts(&path).unwrap_err().to_string();
        assert!(
            wrong.contains("line 2") && wrong.contains("soon"),
            "{wrong}"
        );
    }

    #[test]
    fn clients_are_more_than_sessions() {
        let mut settings = Settings {
            duration: Duration::from_secs(4),
            rate: 500.0,
            bin: Duration::from_millis(10),
            changes: 1.0,
            timeout: Duration::from_secs(2),
        };
        assert_eq!(clients(&settings), 8190);
        settings.rate = 600.0;
        assert_eq!(clients(&settings), 16_382);
        settings.rate = 1e9;
        assert_eq!(clients(&settings), (1 << 20) - 2);
    }
}
