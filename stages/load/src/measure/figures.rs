//! Everything that is counted and timed in a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::counts::{Failures, Statuses};
use super::open::OpenSessions;
use super::series::Series;
use super::times::{Times, wide};

/// Most groups of clients whose figures are kept apart.
pub const MAX_GROUPS: usize = 1024;

/// The figures of a run, or of one generator's share of it. They merge by addition, exactly and in any
/// order, and travel as JSON ([`serde`]).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Sessions of the schedule whose time has come.
    pub planned: u64,
    /// Sessions whose first SYN was sent.
    pub started: u64,
    /// Sessions that did all that their script says.
    pub completed: u64,
    /// Sessions that did not, by their first cause.
    pub failed: Failures,
    /// Requests that were sent.
    pub requests: u64,
    /// Responses that are complete.
    pub responses: u64,
    /// Requests without a complete response, by cause.
    pub failed_requests: Failures,
    /// Pages that were complete, with all their objects.
    pub pages: u64,
    /// Handshakes that were complete.
    pub connections: u64,
    /// Bytes of requests.
    pub request_bytes: u64,
    /// Bytes of responses, as on the wire, also of those that broke off.
    pub response_bytes: u64,
    /// Complete responses by status code.
    pub statuses: Statuses,
    /// How long everything took.
    pub stages: Stages,
    /// Sessions that are open at a time.
    pub open: OpenSessions,
    /// What happened in each second.
    pub series: Series,
    /// When the first and the last request were sent, nanoseconds since the epoch.
    pub sending: Option<(u64, u64)>,
    /// Figures by group of clients, in the order of the command line.
    pub groups: Vec<Group>,
    /// What TCP met with, by name, such as `syn_retransmissions`.
    pub tcp: BTreeMap<String, u64>,
    /// What the generator itself could not do.
    pub generator: Generator,
}

/// How long the stages of sessions took, nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stages {
    /// From when the script wanted a request to the last byte of its response. Waiting for the
    /// generator, for a free connection and for the handshake counts.
    pub response: Times,
    /// From the first byte of a request to the last byte of its response.
    pub service: Times,
    /// From the first byte of a request to the first segment of its final response: what
    /// `linkweir http` calls the response time.
    pub first_byte: Times,
    /// From the first SYN to the SYN ACK.
    pub connect: Times,
    /// From when the script wanted a page to the end of it and all its objects.
    pub page: Times,
    /// From when the schedule wanted a session to its end; only those that completed.
    pub session: Times,
    /// From when the schedule wanted a session to its first SYN.
    pub lag: Times,
}

impl Stages {
    /// All of them by name, in the order in which a reader asks for them.
    #[must_use]
    pub const fn all(&self) -> [(&'static str, &Times); 7] {
        [
            ("response", &self.response),
            ("service", &self.service),
            ("first_byte", &self.first_byte),
            ("connect", &self.connect),
            ("page", &self.page),
            ("session", &self.session),
            ("schedule_lag", &self.lag),
        ]
    }
}

/// The figures of one group of clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Sessions that started.
    pub started: u64,
    /// Sessions that completed.
    pub completed: u64,
    /// Sessions that failed.
    pub failed: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Responses that are complete.
    pub responses: u64,
    /// Bytes of responses.
    pub response_bytes: u64,
    /// As [`Stages::response`].
    pub response: Times,
    /// As [`Stages::connect`].
    pub connect: Times,
}

impl Group {
    fn merge(&mut self, other: &Self) {
        add(&mut [
            (&mut self.started, other.started),
            (&mut self.completed, other.completed),
            (&mut self.failed, other.failed),
            (&mut self.requests, other.requests),
            (&mut self.responses, other.responses),
            (&mut self.response_bytes, other.response_bytes),
        ]);
        self.response.merge(&other.response);
        self.connect.merge(&other.connect);
    }
}

/// What the generator itself could not do. Anything here that is not zero makes a run invalid: what was
/// measured is then the generator and not the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    /// How often frames waited because the interface or the kernel took no more.
    pub send_stalls: u64,
    /// Frames that could not be sent.
    pub send_errors: u64,
    /// Frames that the kernel dropped because they were not fetched in time.
    pub receive_drops: u64,
    /// Frames that the emulated lines had no room for in the memory of the generator. A full queue that
    /// the emulated line is said to have is none of these.
    pub emulator_overflow: u64,
}

impl Generator {
    fn merge(&mut self, other: &Self) {
        add(&mut [
            (&mut self.send_stalls, other.send_stalls),
            (&mut self.send_errors, other.send_errors),
            (&mut self.receive_drops, other.receive_drops),
            (&mut self.emulator_overflow, other.emulator_overflow),
        ]);
    }
}

impl Figures {
    /// Adds those of another generator. Groups are joined by name.
    pub fn merge(&mut self, other: &Self) {
        add(&mut [
            (&mut self.planned, other.planned),
            (&mut self.started, other.started),
            (&mut self.completed, other.completed),
            (&mut self.requests, other.requests),
            (&mut self.responses, other.responses),
            (&mut self.pages, other.pages),
            (&mut self.connections, other.connections),
            (&mut self.request_bytes, other.request_bytes),
            (&mut self.response_bytes, other.response_bytes),
        ]);
        self.failed.merge(&other.failed);
        self.failed_requests.merge(&other.failed_requests);
        self.statuses.merge(&other.statuses);
        let (mine, theirs) = (&mut self.stages, &other.stages);
        mine.response.merge(&theirs.response);
        mine.service.merge(&theirs.service);
        mine.first_byte.merge(&theirs.first_byte);
        mine.connect.merge(&theirs.connect);
        mine.page.merge(&theirs.page);
        mine.session.merge(&theirs.session);
        mine.lag.merge(&theirs.lag);
        self.open.merge(&other.open);
        self.series.merge(&other.series);
        self.sending = match (self.sending, other.sending) {
            (Some((from, to)), Some((low, high))) => Some((from.min(low), to.max(high))),
            (mine, theirs) => mine.or(theirs),
        };
        for group in &other.groups {
            let has_room = self.groups.len() < MAX_GROUPS;
            match self.groups.iter_mut().find(|one| one.name == group.name) {
                Some(mine) => mine.merge(group),
                None if has_room => self.groups.push(group.clone()),
                None => {}
            }
        }
        for (name, number) in &other.tcp {
            let count = self.tcp.entry(name.clone()).or_default();
            *count = count.saturating_add(*number);
        }
        self.generator.merge(&other.generator);
    }

    /// Takes over what the other host of a pair knows better, which sent the SYNs of these sessions on
    /// schedule: how late it was, and what it could not send.
    pub fn adopt_sender(&mut self, sender: &Self) {
        self.stages.lag = sender.stages.lag.clone();
        self.generator.merge(&sender.generator);
        for (name, number) in &sender.tcp {
            let count = self.tcp.entry(name.clone()).or_default();
            *count = count.saturating_add(*number);
        }
    }

    /// Requests issued per second: the gaps between the first and the last one, over the time between
    /// them (the `rate` of the paper's Table 2). `None` below two requests.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<f64> {
        let (first, last) = self.sending?;
        let gaps = self.requests.checked_sub(1).filter(|gaps| *gaps > 0)?;
        let nanos = last.checked_sub(first).filter(|nanos| *nanos > 0)?;
        Some(wide(gaps.into()) * 1e9 / wide(nanos.into()))
    }

    /// How the sessions that started in each bin of the series compare with those that were planned.
    #[must_use]
    pub fn arrivals(&self) -> Arrivals {
        let counts = |of: fn(&super::Bin) -> u64| -> Vec<u64> {
            self.series.bins().map(|(_, bin)| of(bin)).collect()
        };
        let planned = trimmed(counts(|bin| bin.planned));
        let started = trimmed(counts(|bin| bin.started));
        Arrivals {
            bin_s: wide(self.series.width_ns().into()) / 1e9,
            distance: total_variation(&planned, &started),
            planned,
            started,
        }
    }
}

/// Sessions per bin of the series, as planned and as they started. The first and the last bin are
/// left out where there are more than two: the run has only a part of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrivals {
    /// Width of a bin, seconds.
    pub bin_s: f64,
    /// Planned sessions in each bin.
    pub planned: Vec<u64>,
    /// Sessions that started in each bin.
    pub started: Vec<u64>,
    /// Total variation between the histograms of both: half the sum of the differences of the shares of
    /// bins with each count; 0 (the same) to 1.
    pub distance: f64,
}

/// Without the bins before the first and after the last session, and without those two themselves.
fn trimmed(mut counts: Vec<u64>) -> Vec<u64> {
    let from = counts.iter().position(|count| *count > 0).unwrap_or(0);
    let to = counts
        .iter()
        .rposition(|count| *count > 0)
        .map_or(0, |at| at + 1);
    counts.truncate(to);
    counts.drain(..from.min(to));
    if counts.len() > 2 {
        counts.pop();
        counts.remove(0);
    }
    counts
}

fn total_variation(one: &[u64], other: &[u64]) -> f64 {
    let mut shares: BTreeMap<u64, f64> = BTreeMap::new();
    for (counts, sign) in [(one, 1.0), (other, -1.0)] {
        let share = sign / wide(counts.len().max(1) as u128);
        for count in counts {
            *shares.entry(*count).or_default() += share;
        }
    }
    shares.values().map(|share| share.abs()).sum::<f64>() / 2.0
}

fn add(pairs: &mut [(&mut u64, u64)]) {
    for (mine, theirs) in pairs {
        **mine = mine.saturating_add(*theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_counts_gaps() {
        let mut figures = Figures {
            requests: 501,
            sending: Some((5_000_000_000, 6_000_000_000)),
            ..Figures::default()
        };
        assert_eq!(figures.rate_per_s(), Some(500.0));
        figures.requests = 1;
        assert_eq!(figures.rate_per_s(), None);
    }

    #[test]
    fn arrivals_of_partial_bins_are_left_out() {
        assert_eq!(trimmed(vec![0, 3, 5, 0, 5, 1, 0, 0]), [5, 0, 5]);
        assert_eq!(trimmed(vec![0, 3, 1]), [3, 1]);
        assert!(trimmed(vec![0, 0]).is_empty());
        assert!((total_variation(&[1, 1, 2, 2], &[1, 1, 2, 3]) - 0.25).abs() < 1e-12);
        assert!(total_variation(&[], &[]).abs() < 1e-12);
    }
}
