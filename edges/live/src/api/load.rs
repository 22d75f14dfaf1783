//! What the statistics say of a load generator.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;

use crate::figure::{Codes, Columns, Derived, Entries, Figure, Names};
use crate::figures::{figures, rows};
use crate::sketch::wire::Cause;
use crate::words::words;

/// Sessions that failed, by their first cause, in the words of the summary.
#[derive(Debug, Default)]
pub struct Causes(Names<32, true>);

impl Causes {
    /// Counts `times` sessions that failed for a cause.
    pub fn record_n(&mut self, cause: &str, times: u64) {
        if times > 0 {
            self.0.record_n(cause.as_bytes(), times);
        }
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.total()
    }

    /// Those of one cause.
    pub(crate) fn of(&self, cause: &str) -> u64 {
        self.0.count(cause.as_bytes())
    }
}

impl Figure for Causes {
    type Shown = BTreeMap<String, u64>;

    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    fn shown(&self) -> Self::Shown {
        self.0.shown()
    }

    fn add(mine: &mut Self::Shown, theirs: Self::Shown) {
        Names::<32, true>::add(mine, theirs);
    }

    fn columns(_name: &str, shown: &Self::Shown, columns: &mut Columns) {
        let causes = shown.iter();
        let causes = causes.map(|(cause, count)| (format!("failed_{cause}"), (*count).into()));
        columns.further.extend(causes);
    }

    fn send<M: SerializeMap>(&self, name: &'static str, message: &mut M) -> Result<(), M::Error> {
        self.0.send(name, message)
    }

    fn take(name: &'static str, message: &mut Entries) -> Result<Self, Cause> {
        Names::take(name, message).map(Self)
    }
}

figures! {
    /// What a generator did in an interval, or in a run.
    ///
    /// Everything counts when it happens: a session that starts in one interval and fails in the next is in
    /// `started` of the one and in `failed` of the other.
    LoadCounts => LoadFigures {
        /// Sessions of the schedule whose time came.
        planned: u64,
        /// Sessions whose first SYN was sent.
        started: u64,
        /// Sessions that did all that their script says.
        completed: u64,
        /// Sessions that did not.
        failed: Derived,
        /// Those by their first cause.
        causes: Causes,
        /// Requests that were sent.
        requests: u64,
        /// Responses that are complete.
        responses: u64,
        /// Requests without a complete response.
        unanswered: u64,
        /// Complete responses by status code.
        codes: Codes,
        /// Pages that are complete, with all their objects.
        pages: u64,
        /// Handshakes that are complete.
        connections: u64,
        /// Bytes of requests.
        request_bytes: u64,
        /// Bytes of responses.
        response_bytes: u64,
    }
    distributions {
        /// From when a request was wanted to the last byte of its response. Nanoseconds.
        response_time_ns,
        /// From the first byte of a request to the last byte of its response. Nanoseconds.
        service_time_ns,
        /// From the first SYN to the SYN ACK. Nanoseconds.
        connect_ns,
        /// From when a session was wanted to its first SYN. Nanoseconds.
        schedule_lag_ns,
    }
    derive |counts, figures| figures.failed = counts.causes.total();
    is_sound |_| true;
}

words! {
    /// What sessions are grouped by.
    LoadBy {
        /// Group of clients of the command line.
        Group = "group",
        /// Generator: an interface, or the address of a worker.
        Generator = "generator",
    }
}

words! {
    /// What a table of sessions is sorted by, largest first.
    LoadSort {
        /// Bytes of responses.
        Bytes = "bytes",
        /// Sessions that started.
        Sessions = "sessions",
        /// Sessions that failed.
        Failed = "failed",
        /// Responses.
        Responses = "responses",
    }
}

words! {
    /// What there is a distribution of.
    LoadOf {
        /// From when a request was wanted to its response.
        ResponseTime = "response_time",
        /// From sending a request to its response.
        ServiceTime = "service_time",
        /// From the SYN to the SYN ACK.
        Connect = "connect",
        /// From when a session was wanted to its SYN.
        ScheduleLag = "schedule_lag",
    }
}

rows! {
    /// One group of clients, or one generator.
    LoadKeyed => LoadTopRow, LoadWireKeyed {
        /// Its name.
        key,
        /// Bytes of responses; at most [`TopTable::floor`](super::TopTable::floor) too many.
        bytes,
        /// Sessions that started.
        sessions: count,
        /// Sessions that completed.
        completed: count,
        /// Sessions that failed.
        failed: count,
        /// Requests that were sent.
        requests: count,
        /// Complete responses.
        responses: count,
    }
}
