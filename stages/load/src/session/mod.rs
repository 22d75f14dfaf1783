//! Drives all sessions that run: what they ask for next, over which connection, and what became of it.
//!
//! [`Sessions`] never touches TCP. It hears the events of connections (it is a [`Listener`](crate::seam::Listener)) and says what it
//! wants done ([`Action`]); whoever joins the rooms carries that out:
//!
//! ```text
//! start ──┐                ┌─ Connect ─► TcpClients::connect ─► on_opened
//! events ─┼─► Sessions ────┼─ Send ────► TcpClients::send (on_unsent where that fails)
//! on_tick ┘   next_action  ├─ Close ───► TcpClients::close (CloseAfterPeer: close_after_peer)
//!                          └─ Abort ───► TcpClients::abort
//! ```
//!
//! After each call, take actions until there is none. The `user` of a connection is what
//! [`Action::Connect`] says.
//!
//! **Order.** The base of a page is due when the page is: the first as the schedule planned it, others
//! after the think time. When the response is complete, the objects follow, each when its turn comes: the
//! object before it has begun and one of the session's connections is free; then its pause passes. Replayed
//! objects are due at their recorded times instead. A request is *intended* for the time at which it is due,
//! so that waiting for the generator, for a handshake or, where it is replayed, for a free connection counts.
//!
//! **Faults.** The first fault ends its session: requests in flight get the same cause, connections are reset.
//! One thing is no fault: a server may close a connection that waits for a request. A request that meets
//! this is sent once more on a new connection, where it is idempotent and nothing of its response came (RFC
//! 9112 sec. 9.3.1), and counted ([`SessionStats::retries`]). Redirections are responses like others and not
//! followed; no cookies, no caches.
//!
//! **Memory.** 208 bytes for a session that runs and 192 for each of its connections at most, reserved at the
//! beginning and never more than [`SessionSettings`] allow; heads that come in pieces and targets found in
//! pages are held within bounds of their own.

mod begin;
mod drive;
mod events;
pub mod html;
pub mod response;
mod state;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use linkweir_model::Random;
use linkweir_table::{Slab, Wheel};
use linkweir_wire::Timestamp;

use self::html::Found;
use self::state::{Asks, LANE_BYTES, Lane, LaneState, SESSION_BYTES, Session};
use crate::outcome::{Failure, Observer, SessionEnd};
use crate::script::Script;
use crate::seam::{Client, ConnId};
pub use response::Heads;

/// Ticks of the timers are 2^14 ns, 16 us: think times are late by less.
const TICK_BITS: u32 = 14;

/// A server that did not answer a SYN for so long was asked again.
const UNANSWERED: Duration = Duration::from_millis(1500);

/// Bounds of what runs at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSettings {
    /// Most sessions at a time; one more fails with [`Failure::NoRoom`].
    pub max_sessions: u32,
    /// Most connections at a time. A session that has one goes on with those it has.
    pub max_connections: u32,
    /// How long a response may take from when its request is sent, and a connection from when it is
    /// wanted, where the script does not say, nanoseconds.
    pub timeout_ns: u64,
    /// Longest head of a response, bytes.
    pub max_head: usize,
    /// Most bytes of heads that came in pieces, of all responses.
    pub max_head_bytes: usize,
    /// Most bytes of targets that were found in pages, of all sessions.
    pub max_found_bytes: usize,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            max_sessions: 100_000,
            max_connections: 200_000,
            timeout_ns: 60_000_000_000,
            max_head: 32 << 10,
            max_head_bytes: 64 << 20,
            max_found_bytes: 64 << 20,
        }
    }
}

/// What is to be done with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Open one to the server; answer with [`Sessions::on_opened`].
    Connect {
        /// Its user number.
        user: u32,
        /// Who opens it.
        client: Client,
        /// When the session was planned, for its first connection; `None` for the others.
        planned: Option<Timestamp>,
    },
    /// Send the bytes of a request: [`Sessions::request_bytes`].
    Send {
        /// On this connection.
        conn: ConnId,
        /// The request.
        request: RequestRef,
    },
    /// Finish it (FIN). Its later events are of no interest.
    Close(ConnId),
    /// The same, when the server has, which said that it will.
    CloseAfterPeer(ConnId),
    /// Reset it.
    Abort(ConnId),
}

/// Names a request until the next call that may change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRef {
    lane: u32,
}

/// Counts that no session tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionStats {
    /// Requests that were sent again, for the server had closed the connection that was to be used again.
    pub retries: u64,
    /// Connections that the server closed while they waited for a request.
    pub idle_closed: u64,
    /// Interim responses (1xx).
    pub interim_responses: u64,
    /// Objects that were found in pages.
    pub objects_found: u64,
    /// Objects that were found in pages and not asked for: beyond a bound.
    pub objects_beyond: u64,
}

/// What is wanted, before it is looked at whether it still is.
#[derive(Debug, Clone, Copy)]
enum Wish {
    Connect(u32),
    Send(u32, ConnId),
    Close(ConnId),
    CloseAfterPeer(ConnId),
    Abort(ConnId),
}

/// All sessions that run.
#[derive(Debug)]
pub struct Sessions<O> {
    settings: SessionSettings,
    script: Arc<Script>,
    seed: u64,
    observer: O,
    sessions: Slab<Option<Session>>,
    lanes: Slab<Option<Lane>>,
    wheel: Wheel,
    wishes: VecDeque<Wish>,
    heads: Heads,
    found: Vec<Found>,
    free_found: Vec<u32>,
    /// Bytes of targets in `found`.
    found_bytes: usize,
    stats: SessionStats,
}

impl<O: Observer> Sessions<O> {
    /// No session yet. `seed` names the choice of scripts and all think times: those of a session depend on
    /// it and the session's number, not on what the server does.
    #[must_use]
    pub fn new(settings: SessionSettings, script: Arc<Script>, seed: u64, observer: O) -> Self {
        Self {
            sessions: Slab::with_capacity(settings.max_sessions),
            lanes: Slab::with_capacity(settings.max_connections),
            wheel: Wheel::new(TICK_BITS),
            wishes: VecDeque::new(),
            heads: Heads::new(settings.max_head, settings.max_head_bytes),
            found: Vec::new(),
            free_found: Vec::new(),
            found_bytes: 0,
            stats: SessionStats::default(),
            settings,
            script,
            seed,
            observer,
        }
    }

    /// Begins session `number` of the schedule, which planned it for `planned`.
    pub fn start(&mut self, number: u64, client: Client, planned: Timestamp, now: Timestamp) {
        let mut random = Random::part(self.seed, number);
        let mut session = Session::new(number, client, planned);
        session.seed = random.bits();
        session.script = self.script.choose(number, &mut random);
        let no_room = SessionEnd {
            failure: Some(Failure::NoRoom),
            ..session.end(now)
        };
        match self.sessions.insert(Some(session)) {
            Some(slot) => self.go_on(slot, now),
            None => self.observer.on_session(&no_room),
        }
    }

    /// What is to be done next, in the order in which it was wanted. `now` becomes the time at which a request
    /// was sent.
    pub fn next_action(&mut self, now: Timestamp) -> Option<Action> {
        loop {
            match self.wishes.pop_front()? {
                Wish::Close(conn) => return Some(Action::Close(conn)),
                Wish::CloseAfterPeer(conn) => return Some(Action::CloseAfterPeer(conn)),
                Wish::Abort(conn) => return Some(Action::Abort(conn)),
                Wish::Connect(user) => {
                    let Some(lane) = self.lanes.value_mut(user) else {
                        continue;
                    };
                    match &mut lane.state {
                        LaneState::Opening { is_asked } => *is_asked = true,
                        _ => {
                            // Its session ended meanwhile.
                            self.lanes.remove(user);
                            continue;
                        }
                    }
                    let session = self.sessions.value(lane.session);
                    let client = session.map_or(0, |session| session.client);
                    let first = session.filter(|session| session.started.is_none());
                    return Some(Action::Connect {
                        user,
                        client,
                        planned: first.map(|session| session.planned),
                    });
                }
                Wish::Send(number, conn) => {
                    if self.mark_sent(number, conn, now) {
                        let request = RequestRef { lane: number };
                        return Some(Action::Send { conn, request });
                    }
                }
            }
        }
    }

    /// The bytes of a request, in `room` where they do not stand ready.
    #[must_use]
    pub fn request_bytes<'a>(&'a self, request: RequestRef, room: &'a mut Vec<u8>) -> &'a [u8] {
        let Some(lane) = self.lanes.value(request.lane) else {
            return &[];
        };
        let number = match lane.asks {
            Asks::Base(number) | Asks::Object(number) => number,
            Asks::Found(_) => {
                room.clear();
                room.extend_from_slice(b"GET ");
                room.extend_from_slice(self.target(lane));
                if let Some(session) = self.sessions.value(lane.session)
                    && let Some(page) = self.script.page(session.script, session.page)
                {
                    room.extend_from_slice(self.script.found_tail(page));
                }
                return room;
            }
        };
        let request = self.script.request(number);
        request.map_or(&[], |request| self.script.bytes(request))
    }

    /// When [`Sessions::on_tick`] is wanted next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.wheel.next_ns().map(Timestamp::from_nanos)
    }

    /// Ends all sessions: the run is over, or nothing can be reached.
    ///
    /// One whose SYN has had no answer for a second, and was sent again in vain, fails as
    /// [`Failure::ConnectTimeout`]: that the run ended is not why.
    pub fn fail_all(&mut self, why: Failure, now: Timestamp) {
        for slot in self.sessions.numbers() {
            let is_unanswered = self.sessions.value(slot).is_some_and(|session| {
                session.counts.requests == 0
                    && session
                        .started
                        .is_some_and(|started| now >= started + UNANSWERED)
            });
            let why = if is_unanswered {
                Failure::ConnectTimeout
            } else {
                why
            };
            self.fail(slot, why, now);
        }
    }

    /// How many sessions run.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Whether one more would fail for want of room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.sessions.is_full()
    }

    /// Connections that are open or wanted.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.lanes.len()
    }

    /// Counts that no session tells.
    #[must_use]
    pub const fn stats(&self) -> SessionStats {
        self.stats
    }

    /// The script.
    #[must_use]
    pub const fn script(&self) -> &Arc<Script> {
        &self.script
    }

    /// Who hears what became of everything.
    #[must_use]
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// Who hears what became of everything.
    pub const fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Gives back who heard what became of everything.
    #[must_use]
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Bytes of memory that have been touched, without the script.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let found: usize = self.found.iter().map(Found::memory_bytes).sum();
        self.sessions.memory_bytes()
            + self.lanes.memory_bytes()
            + self.wishes.capacity() * size_of::<Wish>()
            + self.heads.memory_bytes()
            + found
            + self.found.capacity() * size_of::<Found>()
    }

    /// Bytes of a session that runs, and of each of its connections.
    pub const ENTRY_BYTES: (usize, usize) = (SESSION_BYTES, LANE_BYTES);
}

#[cfg(test)]
mod tests;
