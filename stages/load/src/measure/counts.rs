//! Counts by cause of failure and by status code.
//!
//! Makes a record of each session.

use super::Roll;
use crate::outcome::{Exchange, Failure, SessionEnd};
use linkweir_record::{LoadBatch, LoadRow, RecordBatch as _};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// How often each cause of failure came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, u64>", into = "BTreeMap<String, u64>")]
pub struct Failures([u64; Failure::ALL.len()]);

impl Failures {
    /// Counts one failure.
    pub fn record(&mut self, failure: Failure) {
        let place = Failure::ALL.iter().position(|one| *one == failure);
        if let Some(count) = place.and_then(|at| self.0.get_mut(at)) {
            *count = count.saturating_add(1);
        }
    }

    /// How often `failure` came.
    #[must_use]
    pub fn of(&self, failure: Failure) -> u64 {
        self.iter()
            .find_map(|(one, count)| (one == failure).then_some(count))
            .unwrap_or(0)
    }

    /// Every cause with its count, also with zero.
    pub fn iter(&self) -> impl Iterator<Item = (Failure, u64)> + '_ {
        Failure::ALL.iter().copied().zip(self.0)
    }

    /// Failures of all causes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Adds those of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }
}

impl From<Failures> for BTreeMap<String, u64> {
    fn from(failures: Failures) -> Self {
        let causes = failures.iter().filter(|(_, count)| *count > 0);
        causes
            .map(|(cause, count)| (cause.as_str().to_owned(), count))
            .collect()
    }
}

impl TryFrom<BTreeMap<String, u64>> for Failures {
    type Error = &'static str;

    fn try_from(causes: BTreeMap<String, u64>) -> Result<Self, Self::Error> {
        let mut failures = Self::default();
        for (name, number) in causes {
            let place = Failure::ALL.iter().position(|one| one.as_str() == name);
            let count = place.and_then(|at| failures.0.get_mut(at));
            *count.ok_or("an unknown cause of failure")? = number;
        }
        Ok(failures)
    }
}

/// Complete responses by status code (RFC 9110 sec. 15).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Statuses(BTreeMap<u16, u64>);

impl Statuses {
    /// Counts a response. There are at most 1000 codes of three digits, so this is bounded.
    pub fn record(&mut self, code: u16) {
        let count = self.0.entry(code.min(999)).or_default();
        *count = count.saturating_add(1);
    }

    /// Codes that came, in rising order, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.0.iter().map(|(code, count)| (*code, *count))
    }

    /// How many came with a code.
    #[must_use]
    pub fn of(&self, code: u16) -> u64 {
        self.0.get(&code).copied().unwrap_or(0)
    }

    /// Responses by class: 1xx to 5xx; what is none of these is in none.
    #[must_use]
    pub fn classes(&self) -> [u64; 5] {
        let mut classes = [0_u64; 5];
        for (code, count) in self.iter() {
            let class = usize::from(code / 100).checked_sub(1);
            if let Some(class) = class.and_then(|at| classes.get_mut(at)) {
                *class = class.saturating_add(count);
            }
        }
        classes
    }

    /// Adds those of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (code, number) in other.iter() {
            let count = self.0.entry(code).or_default();
            *count = count.saturating_add(number);
        }
    }
}

/// What is kept of the first request of a session until the session ends.
#[derive(Debug, Clone, Copy)]
struct First {
    client_port: u16,
    response_time_ns: Option<u64>,
    service_time_ns: Option<u64>,
    first_byte_ns: Option<u64>,
}

/// Records of sessions that ended, and what is known of those that are open: at most one entry for each.
#[derive(Debug, Default)]
pub(super) struct Records {
    batch: LoadBatch,
    open: HashMap<u64, First>,
}

impl Records {
    /// A request is over; the first one of a session that was sent is kept.
    pub(super) fn exchange(&mut self, exchange: &Exchange, client_port: u16) {
        if exchange.sent.is_none() {
            return;
        }
        self.open.entry(exchange.session).or_insert_with(|| First {
            client_port,
            response_time_ns: exchange.response_time_ns(),
            service_time_ns: exchange.service_time_ns(),
            first_byte_ns: exchange.first_byte_ns(),
        });
    }

    /// A session is over.
    pub(super) fn session<R: Roll>(
        &mut self,
        end: &SessionEnd,
        roll: &R,
        group: &str,
        server: SocketAddr,
    ) {
        let first = self.open.remove(&end.session);
        let row = LoadRow {
            session: end.session,
            client_ip: roll.address(end.client),
            client_port: first.map_or(0, |first| first.client_port),
            server_ip: server.ip(),
            server_port: server.port(),
            planned_ts_ns: end.planned.as_nanos(),
            started_ts_ns: end.started.map(linkweir_wire::Timestamp::as_nanos),
            ended_ts_ns: end.ended.as_nanos(),
            response_time_ns: first.and_then(|first| first.response_time_ns),
            service_time_ns: first.and_then(|first| first.service_time_ns),
            first_byte_ns: first.and_then(|first| first.first_byte_ns),
            pages: end.pages,
            requests: end.requests,
            responses: end.responses,
            connections: end.connections,
            request_bytes: end.request_bytes,
            response_bytes: end.response_bytes,
            status_code: (end.last_status > 0).then_some(end.last_status),
            statuses: end.statuses,
            failure: end.failure.map_or("", Failure::as_str),
        };
        self.batch.push(row, group.as_bytes());
    }

    /// Number of records that wait to be taken.
    pub(super) fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether no session is open.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Gives the records away and takes an empty batch for the next.
    pub(super) fn take(&mut self, into: &mut LoadBatch) {
        into.clear();
        std::mem::swap(&mut self.batch, into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_travel_by_name() {
        let mut failures = Failures::default();
        failures.record(Failure::Reset);
        failures.record(Failure::Reset);
        failures.record(Failure::RunEnded);
        let text = serde_json::to_string(&failures).unwrap();
        assert_eq!(text, r#"{"reset":2,"run_ended":1}"#);
        let mut again: Failures = serde_json::from_str(&text).unwrap();
        assert_eq!(again, failures);
        again.merge(&failures);
        assert_eq!((again.of(Failure::Reset), again.total()), (4, 6));
        assert!(serde_json::from_str::<Failures>(r#"{"bad luck":1}"#).is_err());
    }

    #[test]
    fn classes_are_sums_of_codes() {
        let mut statuses = Statuses::default();
        [200, 200, 204, 404, 503, 42, 700, u16::MAX]
            .into_iter()
            .for_each(|code| statuses.record(code));
        assert_eq!(statuses.classes(), [0, 3, 0, 1, 1]);
        let mut twice = statuses.clone();
        twice.merge(&statuses);
        assert_eq!(twice.iter().last(), Some((999, 2)));
        let text = serde_json::to_string(&twice).unwrap();
        assert_eq!(serde_json::from_str::<Statuses>(&text).unwrap(), twice);
    }
}
