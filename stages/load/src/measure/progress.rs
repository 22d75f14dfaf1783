//! What a run has come to while it goes on, for those who look at it.

use serde::{Deserialize, Serialize};

use super::counts::{Failures, Statuses};
use super::figures::Figures;
use super::times::Times;

/// A look at a run: what was counted since its begin, and the times since the last look.
///
/// Counts of a later look replace those of an earlier one; times add up. So a look that nobody takes is joined with
/// the next ([`Progress::join`]), and nothing is lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Sessions of the schedule whose time has come.
    pub planned: u64,
    /// Sessions whose first SYN was sent.
    pub started: u64,
    /// Sessions that did all that their script says.
    pub completed: u64,
    /// Sessions that did not, by their first cause.
    pub failed: Failures,
    /// Sessions that are open.
    pub open: u64,
    /// The most that were open at a time.
    pub peak_open: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Responses that are complete.
    pub responses: u64,
    /// Requests without a complete response.
    pub unanswered: u64,
    /// Complete responses by status code.
    pub statuses: Statuses,
    /// Pages that were complete.
    pub pages: u64,
    /// Handshakes that were complete.
    pub connections: u64,
    /// Bytes of requests.
    pub request_bytes: u64,
    /// Bytes of responses.
    pub response_bytes: u64,
    /// Frames that were sent and received; [`Measure`](super::Measure) does not see them, and leaves these three to
    /// whoever does.
    pub frames: u64,
    /// Their bytes.
    pub frame_bytes: u64,
    /// Frames that were not fetched in time.
    pub dropped: u64,
    /// Counts by group of clients.
    pub groups: Vec<GroupProgress>,
    /// Times since the last look.
    pub recent: Recent,
}

/// What a group of clients has come to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupProgress {
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
    /// Complete responses.
    pub responses: u64,
    /// Bytes of responses.
    pub response_bytes: u64,
}

/// Times since the last look, nanoseconds; what they are is in [`Stages`](super::Stages).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recent {
    /// From when a request was wanted to its response.
    pub response: Times,
    /// From the first byte of a request to its response.
    pub service: Times,
    /// From the first SYN to the SYN ACK.
    pub connect: Times,
    /// From when a session was wanted to its first SYN.
    pub lag: Times,
}

impl Progress {
    /// Of these figures, with the times that were kept apart.
    pub(super) fn of(figures: &Figures, recent: Recent) -> Self {
        let groups = figures.groups.iter();
        Self {
            planned: figures.planned,
            started: figures.started,
            completed: figures.completed,
            failed: figures.failed,
            open: figures.open.now(),
            peak_open: figures.open.peak(),
            requests: figures.requests,
            responses: figures.responses,
            unanswered: figures.failed_requests.total(),
            statuses: figures.statuses.clone(),
            pages: figures.pages,
            connections: figures.connections,
            request_bytes: figures.request_bytes,
            response_bytes: figures.response_bytes,
            frames: 0,
            frame_bytes: 0,
            dropped: 0,
            groups: groups
                .map(|group| GroupProgress {
                    name: group.name.clone(),
                    started: group.started,
                    completed: group.completed,
                    failed: group.failed,
                    requests: group.requests,
                    responses: group.responses,
                    response_bytes: group.response_bytes,
                })
                .collect(),
            recent,
        }
    }

    /// Makes one look of this one, which nobody has taken, and the next.
    pub fn join(&mut self, mut next: Self) {
        std::mem::swap(self, &mut next);
        let (mine, earlier) = (&mut self.recent, next.recent);
        mine.response.merge(&earlier.response);
        mine.service.merge(&earlier.service);
        mine.connect.merge(&earlier.connect);
        mine.lag.merge(&earlier.lag);
    }
}
