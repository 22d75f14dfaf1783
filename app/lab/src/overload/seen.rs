//! What the observers saw of each run.
//!
//! What a queue says: one server, first come first served, every answer takes the same time.

use super::play::Played;
use crate::error::LabError;
use crate::program;
use crate::testbed::Testbed;
use linkweir_testkit::load::log::Visit;
use serde::Deserialize;
use std::net::IpAddr;
use std::path::Path;

/// Fields of `load_session`.
#[derive(Debug, Deserialize)]
struct Session {
    planned_ts_ns: u64,
    response_time_ns: Option<u64>,
    service_time_ns: Option<u64>,
}

/// Fields of `http_transaction`.
#[derive(Debug, Deserialize)]
struct Transaction {
    client_ip: IpAddr,
    ttlb_ns: Option<u64>,
}

/// Fields of `tcp_flow`.
#[derive(Debug, Deserialize)]
struct Flow {
    c_ip: IpAddr,
    c_syn_cnt: u64,
}

/// What they saw of one run. Times are seconds; moments are seconds since the first was planned.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// When the schedule wanted sessions, in order.
    pub(super) planned: Vec<f64>,
    /// When it wanted one, and how long after that its answer was complete.
    pub(super) client: Vec<(f64, f64)>,
    /// From the first byte of a request to the last of its answer, as the client saw it.
    pub(super) service: Vec<f64>,
    /// From the first segment of a request to the last byte of its answer, as `linkweir http` saw it.
    pub(super) wire: Vec<f64>,
    /// Answers in nginx's log.
    pub(super) served: u64,
    /// Transactions of `linkweir http`.
    pub(super) transactions: u64,
    /// Flows of `linkweir flows` that begin with a SYN: what a generator that was late says after the
    /// end of a connection is a flow of its own there.
    pub(super) flows: u64,
}

/// Reads all records.
pub(super) fn read(
    testbed: &Testbed<'_>,
    runs: &[Played],
    visits: &[Visit],
) -> Result<Vec<Seen>, LabError> {
    let mut seen = Vec::new();
    for run in runs {
        let path = testbed.path(&format!("{}.jsonl", run.name));
        let mut one = of_generator(&path)?;
        one.served = count(visits.iter().filter(|visit| run.is_of(visit.client)));
        seen.push(one);
    }
    program::each(&testbed.path("http.jsonl"), |one: Transaction| {
        let run = runs
            .iter()
            .zip(&mut seen)
            .find(|(run, _)| run.is_of(one.client_ip));
        if let (Some((_, seen)), Some(nanos)) = (run, one.ttlb_ns) {
            seen.transactions += 1;
            seen.wire.push(seconds(nanos));
        }
    })?;
    program::each(&testbed.path("flows.jsonl"), |one: Flow| {
        let run = runs
            .iter()
            .zip(&mut seen)
            .find(|(run, _)| one.c_syn_cnt > 0 && run.is_of(one.c_ip));
        if let Some((_, seen)) = run {
            seen.flows += 1;
        }
    })?;
    Ok(seen)
}

fn of_generator(path: &Path) -> Result<Seen, LabError> {
    let mut sessions: Vec<Session> = Vec::new();
    program::each(path, |session| sessions.push(session))?;
    sessions.sort_by_key(|session| session.planned_ts_ns);
    let first = sessions.first().map_or(0, |session| session.planned_ts_ns);
    let mut seen = Seen::default();
    for session in sessions {
        let when = seconds(session.planned_ts_ns - first);
        seen.planned.push(when);
        let response = session.response_time_ns.map(seconds);
        seen.client
            .extend(response.map(|response| (when, response)));
        seen.service.extend(session.service_time_ns.map(seconds));
    }
    Ok(seen)
}

fn count<T>(items: impl Iterator<Item = T>) -> u64 {
    items.fold(0, |count, _| count + 1)
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Mean time from arrival to answer at these sorted arrivals, seconds: Lindley's recursion (1952),
/// `wait' = max(0, wait + service - gap)`.
pub(super) fn mean_response(arrivals: &[f64], service_s: f64) -> Option<f64> {
    let first = arrivals.first()?;
    let (mut wait, mut before, mut sum) = (0.0_f64, *first, 0.0);
    for (index, at) in arrivals.iter().enumerate() {
        if index > 0 {
            wait = (wait + service_s - (at - before)).max(0.0);
        }
        before = *at;
        sum += wait + service_s;
    }
    Some(sum / arrivals.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_first_that_was_planned() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.jsonl");
        let line = |planned: u64, response: &str| {
            format!(
                "{{\"planned_ts_ns\":{planned},\"response_time_ns\":{response},\"service_time_ns\":{response}}}\n"
            )
        };
        // Records come in the order of their ends.
        let text = line(3_500_000_000, "1000000") + &line(3_000_000_000, "null");
        std::fs::write(&path, text).unwrap();
        let seen = of_generator(&path).unwrap();
        assert_eq!(seen.planned, [0.0, 0.5]);
        assert_eq!(seen.client, [(0.5, 0.001)]);
        assert_eq!(seen.service, [0.001]);
    }

    #[test]
    fn nobody_waits_where_gaps_are_long_enough() {
        let even: Vec<f64> = (0..100).map(f64::from).collect();
        assert!((mean_response(&even, 0.9).unwrap() - 0.9).abs() < 1e-12);
        assert_eq!(mean_response(&[], 0.9), None);
    }

    #[test]
    fn those_who_come_together_wait_for_each_other() {
        // 1, 2 and 3 services; then the server is idle again.
        let mean = mean_response(&[0.0, 0.0, 0.0, 10.0], 1.0).unwrap();
        assert!((mean - 7.0 / 4.0).abs() < 1e-12);
        // Half a service too many with each: the wait grows without end.
        let many: Vec<f64> = (0..100).map(|index| 0.5 * f64::from(index)).collect();
        assert!(mean_response(&many, 1.0).unwrap() > 25.0);
    }
}
