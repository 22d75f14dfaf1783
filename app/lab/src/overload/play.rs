//! One run of the generator against the server, and what the server's core was doing meanwhile.
//!
//! The server's processor time, as the kernel's scheduler counts it.
//!
//! What the server can do in a second.

use crate::error::LabError;
use crate::program::{Ended, Program};
use crate::services::{Web, url};
use crate::testbed::{Testbed, go_first};
use std::fs;
use std::time::Duration;

/// Where all clients are.
pub(super) const CLIENTS: &str = "10.16.0.0/12";
/// How long the server may be behind: every session is to end by itself.
const DRAIN: Duration = Duration::from_secs(60);

/// What is to be run.
#[derive(Debug)]
pub(super) struct Job {
    /// Name of the run and of its files.
    pub(super) name: String,
    /// As the generator takes them.
    pub(super) arrivals: String,
    /// When it ends, and other words for the generator.
    pub(super) words: Vec<String>,
    /// How long it takes without the drain, at most.
    pub(super) duration: Duration,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Played {
    /// Name of the run.
    pub(super) name: String,
    /// What the generator says.
    pub(super) load: Ended,
    /// What the server had of its core; `None` where the kernel does not count.
    pub(super) core: Option<Core>,
    /// Number of the run, which is in the addresses of its clients.
    number: u8,
}

/// All runs, each with clients of its own, so that every observer can tell them apart.
pub(super) struct Player<'a, 'b> {
    pub(super) testbed: &'a mut Testbed<'b>,
    pub(super) web: &'a Web,
    runs: u8,
}

impl<'a, 'b> Player<'a, 'b> {
    pub(super) const fn new(testbed: &'a mut Testbed<'b>, web: &'a Web) -> Self {
        Self {
            testbed,
            web,
            runs: 0,
        }
    }

    /// Runs one to its end.
    pub(super) fn play(&mut self, job: Job) -> Result<Played, LabError> {
        let number = self.runs;
        self.runs = (self.runs + 1) % 16;
        let (clients, drain) = (
            format!("10.{}.0.0/16", 16 + number),
            format!("{}s", DRAIN.as_secs()),
        );
        let mut more = vec![
            "--timeout",
            "120s",
            "--drain",
            &drain,
            "--close",
            "--lag-limit",
            "20ms",
        ];
        more.extend(job.words.iter().map(String::as_str));
        let before = Core::of(self.web.id());
        let load = Program::load(
            self.testbed,
            &job.name,
            &url("/work"),
            (&clients, &job.arrivals),
            self.testbed.order.seed,
            &more,
        )?;
        go_first(self.testbed, load.id());
        let load = load.wait(self.testbed, job.duration + DRAIN)?;
        let core = Core::of(self.web.id());
        Ok(Played {
            name: job.name,
            load,
            core: core.zip(before).map(|(now, before)| now.since(before)),
            number,
        })
    }
}

impl Played {
    /// Whether a client is one of this run.
    pub(super) const fn is_of(&self, client: std::net::IpAddr) -> bool {
        match client {
            std::net::IpAddr::V4(address) => {
                let [a, b, _, _] = address.octets();
                a == 10 && b == 16 + self.number
            }
            std::net::IpAddr::V6(_) => false,
        }
    }

    /// Sessions that the schedule had.
    pub(super) fn planned(&self) -> u64 {
        self.load.count("load/planned")
    }

    /// Part of the run in which the server was kept from its core.
    pub(super) fn denied(&self) -> Option<f64> {
        let elapsed = self.load.number("elapsed_s")?;
        Some(self.core?.denied.as_secs_f64() / elapsed)
    }

    /// Part of the run in which the server ran.
    pub(super) fn busy(&self) -> Option<f64> {
        let elapsed = self.load.number("elapsed_s")?;
        Some(self.core?.ran.as_secs_f64() / elapsed)
    }
}

/// What a process has had of the processors, and what it has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Core {
    /// How long it ran.
    pub(super) ran: Duration,
    /// How long it could have run, but others did.
    pub(super) denied: Duration,
}

impl Core {
    /// Until now; `None` where the kernel does not count (`CONFIG_SCHED_INFO`).
    pub(super) fn of(process: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        Self::read(&text)
    }

    /// Nanoseconds on a processor, nanoseconds of waiting for one, time slices.
    fn read(text: &str) -> Option<Self> {
        let mut figures = text.split_whitespace().map(str::parse);
        let core = Self {
            ran: Duration::from_nanos(figures.next()?.ok()?),
            denied: Duration::from_nanos(figures.next()?.ok()?),
        };
        // A process that was never on a processor could not be asked for.
        (!core.ran.is_zero()).then_some(core)
    }

    /// Since an earlier moment.
    pub(super) const fn since(self, before: Self) -> Self {
        Self {
            ran: self.ran.saturating_sub(before.ran),
            denied: self.denied.saturating_sub(before.denied),
        }
    }
}

/// Sessions of the volley.
const SESSIONS: u32 = 600;
/// Sessions a second in it: many times what a server does that works a millisecond or so for each.
const RATE: u32 = 20_000;
/// How long the server may take for it.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The part of the answers at the beginning and at the end that does not count: there the server may
/// wait for work.
const EDGE: f64 = 0.1;

/// Answers a second of the server's own time, and the run that showed it.
///
/// A volley comes faster than the server can answer, so that it is never idle while it works it off.
/// Then the answers divided by the processor time it had are its limit, whatever else the machine does.
/// Where the kernel does not count that time, the log says when answers went out, and the limit is their
/// rate in the middle of the volley.
pub(super) fn find(player: &mut Player<'_, '_>) -> Result<(f64, Played), LabError> {
    let played = player.play(Job {
        name: "limit".to_owned(),
        arrivals: format!("constant:{RATE}"),
        words: vec!["--sessions".to_owned(), SESSIONS.to_string()],
        duration: TIMEOUT,
    })?;
    let limit = match by_core(&played) {
        Some(limit) => Some(limit),
        None => {
            let visits = player.web.visits().into_iter();
            rate_amid(visits.map(|visit| visit.ended_s).collect())
        }
    };
    let limit = limit.filter(|limit| limit.is_finite() && *limit > 0.0);
    let limit = limit.ok_or_else(|| LabError::program("the server's limit", "no answers"))?;
    Ok((limit, played))
}

/// Answers a second of the processor time that the server had in a run.
pub(super) fn by_core(played: &Played) -> Option<f64> {
    let answers = played.load.count("load/responses");
    let limit = answers as f64 / played.core?.ran.as_secs_f64();
    limit.is_finite().then_some(limit)
}

/// Events a second without the edges.
fn rate_amid(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    let from = crate::curves::quantile(&times, EDGE)?;
    let to = crate::curves::quantile(&times, 1.0 - EDGE)?;
    Some(times.len() as f64 * (1.0 - 2.0 * EDGE) / (to - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_figures_count() {
        let core = Core::read("303449 88200 2\n").unwrap();
        assert_eq!(core.ran, Duration::from_nanos(303_449));
        assert_eq!(core.denied, Duration::from_nanos(88_200));
        assert_eq!(Core::read("0 0 0\n"), None);
        assert_eq!(Core::read("12"), None);
    }

    #[test]
    fn work_takes_time_of_a_core() {
        let own = std::process::id();
        let before = Core::of(own).unwrap();
        let mut sum = 0_u64;
        while Core::of(own).unwrap().since(before).ran.is_zero() {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(Core::of(own).unwrap().ran > before.ran);
    }

    #[test]
    fn a_late_first_answer_does_not_count() {
        let mut times: Vec<f64> = (0..1001).map(|index| f64::from(index) / 500.0).collect();
        times[0] = -100.0;
        let rate = rate_amid(times).unwrap();
        assert!((rate - 500.0).abs() < 5.0, "{rate}");
        assert_eq!(rate_amid(Vec::new()), None);
    }
}
