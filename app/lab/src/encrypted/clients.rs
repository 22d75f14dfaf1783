//! The clients, how they are started, and what their clocks say.

use super::client::Reading;
use super::plan::{self, Ask};
use super::settings::{Protocol, Settings};
use super::{HOST, browser};
use crate::error::LabError;
use crate::testbed::{Testbed, go_first};
use linkweir_testkit::gateway::{Place, SERVER};
use linkweir_testkit::netns::{Running, until};
use linkweir_testkit::ran::installed;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Processes of a client at a time, where one is busy with one request.
const LANES: u64 = 4;
/// Numbers of requests that a process may use.
const NUMBERS: u64 = 10_000;
/// How long the last responses may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Streams at a time, where there are several.
pub(super) const STREAMS: usize = 6;

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) name: &'static str,
    kind: Kind,
    /// Whether a connection of HTTP/2 or 3 carries several requests at a time.
    pub(super) has_several: bool,
    /// Its place among the clients.
    place: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The laboratory's own.
    Own,
    Curl,
    H2load,
    Chromium,
}

/// Those that a scenario has and that are installed, and a note about each other.
pub(super) fn of(settings: &Settings) -> (Vec<Client>, Vec<String>) {
    let all: &[(&'static str, Kind, bool)] = match settings.http {
        Protocol::Http1 => &[
            ("rustls", Kind::Own, false),
            ("curl", Kind::Curl, false),
            ("Chromium", Kind::Chromium, false),
        ],
        Protocol::Http2 => &[
            ("curl", Kind::Curl, false),
            ("h2load", Kind::H2load, false),
            ("Chromium", Kind::Chromium, false),
            ("h2load, several", Kind::H2load, true),
            ("Chromium, several", Kind::Chromium, true),
        ],
        Protocol::Http3 => &[
            ("Chromium", Kind::Chromium, false),
            ("Chromium, several", Kind::Chromium, true),
        ],
    };
    let (mut clients, mut notes) = (Vec::new(), Vec::new());
    for (place, (name, kind, has_several)) in (0..).zip(all.iter().copied()) {
        let program = match kind {
            Kind::Own => None,
            Kind::Curl => Some(("curl", "curl")),
            Kind::H2load => Some(("h2load", "nghttp2-client")),
            Kind::Chromium => Some(("chromium", "chromium")),
        };
        match program {
            Some((program, package)) if installed(program).is_none() => {
                notes.push(format!(
                    "{program} is not installed (Debian: {package}): nothing of `{name}` was measured"
                ));
            }
            _ => clients.push(Client {
                name,
                kind,
                has_several,
                place,
            }),
        }
    }
    (clients, notes)
}

/// What a process of a client needs.
struct Lane {
    /// For the names of its files.
    name: String,
    asks: Vec<Ask>,
}

impl Lane {
    fn path(&self, testbed: &Testbed<'_>, ending: &str) -> PathBuf {
        testbed.path(&format!("{}.{ending}", self.name))
    }

    /// Its requests, a line each.
    fn plan(&self, line: impl Fn(&Ask) -> String) -> String {
        self.asks.iter().map(|ask| line(ask) + "\n").collect()
    }
}

impl Client {
    /// Lets it do its work over a line, and gives what its clock says.
    pub(super) fn run(
        &self,
        settings: &Settings,
        testbed: &mut Testbed<'_>,
        line: &str,
    ) -> Result<Vec<Reading>, LabError> {
        let lanes = match self.kind {
            Kind::Own | Kind::Chromium => 1,
            Kind::Curl | Kind::H2load => LANES,
        };
        let lossy = u64::from(line == "lossy");
        let round_trip = settings.latency * 2;
        // Who has several at a time, or connections of its own, gets more to do.
        let times = match (self.kind, self.has_several) {
            (Kind::Own, _) => 8,
            (_, true) => 4,
            _ => 1,
        };
        let lanes: Vec<Lane> = (0..lanes)
            .map(|lane| Lane {
                name: format!("{line}-client-{}-{lane}", self.place),
                asks: plan::asks(
                    testbed.order.seed,
                    ((lossy * 10 + self.place) * LANES + lane + 1) * NUMBERS,
                    (settings.duration * times, round_trip),
                    self.kind == Kind::Own,
                ),
            })
            .collect();
        let mut running = Vec::new();
        for lane in &lanes {
            let one = self.start(settings, testbed, lane)?;
            // What its clock says is to be the network's time, not that of waiting for a core. A browser would keep all
            // others from theirs.
            if self.kind != Kind::Chromium {
                go_first(testbed, one.id());
            }
            running.push(one);
        }
        let has_said = |lane: &Lane| testbed.path(&browser::said(&lane.name)).exists();
        let is_browser = self.kind == Kind::Chromium;
        let mut failed = None;
        let ended = until(settings.duration * 4 + TIMEOUT, || {
            if testbed.is_stopped() {
                return true;
            }
            let mut all = true;
            for (running, lane) in running.iter_mut().zip(&lanes) {
                match running.ended() {
                    // A browser goes on when its page has said what it saw.
                    Ok(None) => all &= is_browser && has_said(lane),
                    Ok(Some(status)) if status.success() && !is_browser => {}
                    status => failed = Some(format!("{status:?}: {}", said(testbed, lane))),
                }
            }
            all || failed.is_some()
        });
        if testbed.is_stopped() {
            return Err(LabError::Stopped);
        }
        if let Some(why) = failed {
            return Err(LabError::program(self.name, why));
        }
        if !ended {
            return Err(LabError::program(self.name, "does not end"));
        }
        for mut running in running {
            // So that a browser closes its connections.
            drop(running.signal("TERM"));
            until(Duration::from_secs(3), || {
                !matches!(running.ended(), Ok(None))
            });
        }
        let mut readings = Vec::new();
        for lane in &lanes {
            readings.extend(self.readings(testbed, lane)?);
        }
        Ok(readings)
    }

    fn start(
        &self,
        settings: &Settings,
        testbed: &Testbed<'_>,
        lane: &Lane,
    ) -> Result<Running, LabError> {
        let url = |ask: &Ask| format!("https://{HOST}{}", ask.path);
        let out = lane.path(testbed, "out");
        let out = out.display().to_string();
        let plan = lane.path(testbed, "plan");
        let mut command = match self.kind {
            Kind::Own => {
                let line = |ask: &Ask| match ask.body {
                    None => ask.path.clone(),
                    Some(bytes) => format!("{} {bytes}", ask.path),
                };
                fs::write(&plan, lane.plan(line)).map_err(LabError::file(&plan))?;
                let plan = plan.display().to_string();
                testbed.part(Place::Client, &["client", "--plan", &plan, "-w", &out])
            }
            Kind::Curl => {
                let line = |ask: &Ask| format!("url = \"{}\"\noutput = /dev/null", url(ask));
                fs::write(&plan, lane.plan(line)).map_err(LabError::file(&plan))?;
                let http = match settings.http {
                    Protocol::Http1 => "--http1.1",
                    Protocol::Http2 | Protocol::Http3 => "--http2",
                };
                let resolve = format!("{HOST}:443:{SERVER}");
                let mut curl = testbed.command(Place::Client, "curl");
                curl.args(["-sS", "--insecure", http, "--resolve", &resolve]);
                curl.args([
                    "-w",
                    "%{url} %{time_pretransfer} %{time_starttransfer} %{time_total}\\n",
                ]);
                curl.arg("--config").arg(&plan);
                curl
            }
            Kind::H2load => {
                fs::write(&plan, lane.plan(url)).map_err(LabError::file(&plan))?;
                let streams = if self.has_several { STREAMS } else { 1 };
                let mut h2load = testbed.command(Place::Client, "h2load");
                h2load.args([
                    "--clients=1",
                    "--threads=1",
                    &format!("--connect-to={SERVER}:443"),
                ]);
                h2load.arg(format!("--requests={}", lane.asks.len()));
                h2load.arg(format!("--max-concurrent-streams={streams}"));
                h2load.arg(format!("--log-file={out}.log"));
                h2load.arg(format!("--input-file={}", plan.display()));
                h2load
            }
            Kind::Chromium => browser::command(
                testbed,
                settings,
                lane.name.as_str(),
                &lane.asks,
                self.has_several,
            )?,
        };
        let keys = lane.path(testbed, "keys");
        command.env("SSLKEYLOGFILE", &keys);
        let stdout = File::create(&out).map_err(LabError::file(&keys))?;
        let error = lane.path(testbed, "err");
        let error = File::create(&error).map_err(LabError::file(&error))?;
        start(
            self.name,
            command.stdin(Stdio::null()).stdout(stdout).stderr(error),
        )
    }

    fn readings(&self, testbed: &Testbed<'_>, lane: &Lane) -> Result<Vec<Reading>, LabError> {
        let file = match self.kind {
            Kind::Own | Kind::Curl => lane.path(testbed, "out"),
            Kind::H2load => lane.path(testbed, "out.log"),
            Kind::Chromium => testbed.path(&browser::said(&lane.name)),
        };
        let text = fs::read_to_string(&file).map_err(LabError::file(&file))?;
        let readings = match self.kind {
            Kind::Own => text
                .lines()
                .map(|line| serde_json::from_str(line).ok())
                .collect(),
            Kind::Curl => text.lines().map(of_curl).collect(),
            Kind::H2load => of_h2load(&text, &lane.asks),
            Kind::Chromium => browser::readings(&text),
        };
        readings.ok_or_else(|| LabError::program(self.name, "its times cannot be read"))
    }
}

fn start(name: &str, command: &mut Command) -> Result<Running, LabError> {
    Running::start(command).map_err(|error| LabError::program(name, error))
}

/// The last words of a process.
fn said(testbed: &Testbed<'_>, lane: &Lane) -> String {
    let text = fs::read_to_string(lane.path(testbed, "err")).unwrap_or_default();
    text.lines().last().unwrap_or("it says nothing").to_owned()
}

/// A line of curl: the address, and seconds from the beginning of the transfer to where the request goes out, the
/// first and the last byte of the response.
fn of_curl(line: &str) -> Option<Reading> {
    let mut words = line.split(' ');
    let id = plan::number(words.next()?)?;
    let mut seconds = || words.next()?.parse::<f64>().ok();
    let (sent, first, last) = (seconds()?, seconds()?, seconds()?);
    Some(Reading {
        id,
        first_ns: Some(nanos(first - sent)),
        last_ns: nanos(last - sent),
    })
}

/// Lines of h2load: when a request went out, its status, and microseconds to the end of its response. It asks in the
/// order of its list.
fn of_h2load(text: &str, asks: &[Ask]) -> Option<Vec<Reading>> {
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace().map(str::parse::<i64>);
        let mut number = || words.next()?.ok();
        let (began, _, took) = (number()?, number()?, number()?);
        Some((began, u64::try_from(took).ok()? * 1000))
    };
    let mut lines = text.lines().map(line).collect::<Option<Vec<_>>>()?;
    lines.sort_unstable();
    let readings = lines.iter().zip(asks).map(|((_, last_ns), ask)| {
        Some(Reading {
            id: plan::number(&ask.path)?,
            first_ns: None,
            last_ns: *last_ns,
        })
    });
    readings.collect()
}

/// Seconds of another program as nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time of some seconds"
)]
pub(super) fn nanos(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_others_are_read() {
        let line = "https://shop.test/d/30/200/77 0.020001 0.071501 0.075";
        let reading = Reading {
            id: 77,
            first_ns: Some(51_500_000),
            last_ns: 54_999_000,
        };
        assert_eq!(of_curl(line), Some(reading));
        assert_eq!(of_curl("curl: (7) no"), None);

        let ask = |id| Ask {
            path: format!("/d/1/1/{id}"),
            body: None,
        };
        // The second was over first.
        let text = "1700000000000020\t200\t1500\n1700000000000010\t200\t2500\n";
        let readings = of_h2load(text, &[ask(1), ask(2)]).unwrap();
        let read: Vec<_> = readings.iter().map(|one| (one.id, one.last_ns)).collect();
        assert_eq!(read, [(1, 2_500_000), (2, 1_500_000)]);
    }
}
