//! A session and its lanes.

pub(super) use linkweir_table::NONE;
use linkweir_table::{Timed, Timer};
use linkweir_wire::Timestamp;

use super::response::ResponseReader;
use crate::outcome::SessionEnd;
use crate::seam::{Client, ConnId};

/// A session that runs.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) planned: Timestamp,
    pub(super) started: Option<Timestamp>,
    /// When the next request is due; `None` until its turn comes.
    pub(super) due: Option<Timestamp>,
    /// When its page was intended.
    pub(super) page_intended: Timestamp,
    /// Names its random numbers, which depend on nothing else.
    pub(super) seed: u64,
    pub(super) timer: Timer,
    pub(super) client: Client,
    /// What it plays.
    pub(super) script: u32,
    pub(super) page: u32,
    pub(super) base: Base,
    /// Number of the next object of the page.
    pub(super) next_object: u32,
    /// Objects that were found in the page; `NONE` where none are looked for.
    pub(super) found: u32,
    /// Random numbers drawn so far.
    pub(super) draws: u32,
    /// First lane of its list.
    pub(super) lanes: u32,
    pub(super) lane_count: u8,
    pub(super) in_flight: u8,
    pub(super) counts: Counts,
}

/// What the end of the session will say.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) pages: u32,
    pub(super) requests: u32,
    pub(super) responses: u32,
    pub(super) connections: u32,
    pub(super) request_bytes: u64,
    pub(super) response_bytes: u64,
    pub(super) statuses: [u32; 5],
    pub(super) last_status: u16,
}

impl Counts {
    /// A complete response.
    pub(super) fn response(&mut self, status: u16) {
        self.responses += 1;
        self.last_status = status;
        let class = usize::from(status / 100).checked_sub(1);
        if let Some(count) = class.and_then(|class| self.statuses.get_mut(class)) {
            *count += 1;
        }
    }
}

/// How far the base request of the page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Waits,
    InFlight,
    Done,
}

impl Session {
    pub(super) fn new(number: u64, client: Client, planned: Timestamp) -> Self {
        Self {
            number,
            planned,
            started: None,
            due: Some(planned),
            page_intended: planned,
            seed: 0,
            timer: Timer::default(),
            client,
            script: 0,
            page: 0,
            base: Base::Waits,
            next_object: 0,
            found: NONE,
            draws: 1,
            lanes: NONE,
            lane_count: 0,
            in_flight: 0,
            counts: Counts::default(),
        }
    }

    pub(super) const fn end(&self, ended: Timestamp) -> SessionEnd {
        SessionEnd {
            session: self.number,
            client: self.client,
            planned: self.planned,
            started: self.started,
            ended,
            pages: self.counts.pages,
            requests: self.counts.requests,
            responses: self.counts.responses,
            connections: self.counts.connections,
            request_bytes: self.counts.request_bytes,
            response_bytes: self.counts.response_bytes,
            last_status: self.counts.last_status,
            statuses: self.counts.statuses,
            failure: None,
        }
    }
}

impl Timed for Session {
    #[inline]
    fn timer(&mut self) -> &mut Timer {
        &mut self.timer
    }
}

/// One of the connections that a session may have at a time, and the request on it.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) session: u32,
    /// Next lane of the session.
    pub(super) next: u32,
    pub(super) conn: Option<ConnId>,
    pub(super) local_port: u16,
    pub(super) state: LaneState,
    /// A response was completed on this connection.
    pub(super) is_reused: bool,
    /// The request was sent before, on a connection that was closed under it.
    pub(super) is_retried: bool,
    /// All that was sent has been acknowledged.
    pub(super) is_acknowledged: bool,
    pub(super) asks: Asks,
    pub(super) intended: Timestamp,
    pub(super) sent: Option<Timestamp>,
    pub(super) first_byte: Option<Timestamp>,
    /// When the request has failed.
    pub(super) deadline: Timestamp,
    pub(super) reader: ResponseReader,
}

/// What a lane is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneState {
    /// It has a connection and no request.
    Idle,
    /// Its request waits for the connection, which is wanted, or already asked for.
    Opening { is_asked: bool },
    /// Its request was handed to the connection, or is about to be.
    Busy { is_sent: bool },
    /// Its request has failed, and it has no connection.
    Failed,
    /// Its session is over, and the answer to its wish for a connection still to come.
    Doomed,
}

impl LaneState {
    pub(super) const fn is_in_flight(self) -> bool {
        matches!(
            self,
            Self::Opening { .. } | Self::Busy { .. } | Self::Failed
        )
    }
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// The base of the page: a request of the script.
    Base(u32),
    /// An object: a request of the script.
    Object(u32),
    /// An object that was found in the page.
    Found(u32),
}

/// Bytes of a running session and of a lane of it.
pub(super) const SESSION_BYTES: usize = size_of::<Option<Session>>();
pub(super) const LANE_BYTES: usize = size_of::<Option<Lane>>();
const _: () = assert!(SESSION_BYTES <= 208 && LANE_BYTES <= 192);
