//! Sessions, a TCP that does what the test says, and a list of what was reported.

use std::sync::Arc;

use linkweir_wire::Timestamp;

use crate::outcome::{Exchange, Failure, Observer, SessionEnd};
use crate::script::{PagePlan, Plan, RequestPlan, Script, SessionPlan, Site};
use crate::seam::{Client, CloseReason, ConnId, Listener as _, TcpEvent};
use crate::session::{Action, SessionSettings, Sessions};

pub(super) const SECOND: u64 = 1_000_000_000;
pub(super) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

pub(super) const fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// What was reported.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) starts: Vec<(Client, u64, u64)>,
    pub(super) connects: usize,
    pub(super) exchanges: Vec<(Exchange, String, u16)>,
    pub(super) pages: Vec<(u64, u64)>,
    pub(super) ends: Vec<SessionEnd>,
}

impl Observer for Told {
    fn on_start(&mut self, client: Client, planned: Timestamp, started: Timestamp) {
        self.starts
            .push((client, planned.as_nanos(), started.as_nanos()));
    }
    fn on_connect(&mut self, _: Client, _: u64, _: u32) {
        self.connects += 1;
    }
    fn on_exchange(&mut self, exchange: &Exchange, target: &[u8], local_port: u16) {
        let target = String::from_utf8(target.to_vec()).expect("a target is text");
        self.exchanges.push((*exchange, target, local_port));
    }
    fn on_page(&mut self, _: Client, intended: Timestamp, ended: Timestamp) {
        self.pages.push((intended.as_nanos(), ended.as_nanos()));
    }
    fn on_session(&mut self, end: &SessionEnd) {
        self.ends.push(*end);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Closed,
    /// Closed when the server is.
    ClosedAfter,
    Aborted,
    /// By the other side.
    Gone,
}

/// A connection as the made-up TCP has it.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) id: ConnId,
    pub(super) user: u32,
    pub(super) state: State,
    pub(super) is_connected: bool,
    pub(super) sent: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Rig {
    pub(super) sessions: Sessions<Told>,
    pub(super) now: u64,
    /// In the order in which they were opened.
    pub(super) conns: Vec<Conn>,
    /// What the next connect is answered with.
    pub(super) refuses: Option<Failure>,
}

pub(super) fn page(target: &str, objects: &[&str]) -> PagePlan {
    PagePlan {
        base: RequestPlan::get(target),
        objects: objects
            .iter()
            .map(|object| RequestPlan::get(*object))
            .collect(),
        ..PagePlan::default()
    }
}

pub(super) fn session(pages: Vec<PagePlan>) -> SessionPlan {
    SessionPlan {
        pages,
        ..SessionPlan::default()
    }
}

impl Rig {
    pub(super) fn new(plan: SessionPlan) -> Self {
        let settings = SessionSettings {
            timeout_ns: 10 * SECOND,
            ..SessionSettings::default()
        };
        Self::with(plan, settings)
    }

    pub(super) fn with(plan: SessionPlan, settings: SessionSettings) -> Self {
        let plan = Plan {
            sessions: vec![plan],
            is_weighted: false,
        };
        let script = Script::new(&plan, &Site::new("www.test")).expect("a plan");
        Self {
            sessions: Sessions::new(settings, Arc::new(script), 7, Told::default()),
            now: 100 * SECOND,
            conns: Vec::new(),
            refuses: None,
        }
    }

    /// Starts a session now that was planned a millisecond ago, for client 9.
    pub(super) fn start(&mut self, number: u64) {
        let planned = at(self.now - 1_000_000);
        self.sessions.start(number, 9, planned, at(self.now));
        self.act();
    }

    /// Carries out what is wanted.
    pub(super) fn act(&mut self) {
        let mut room = Vec::new();
        while let Some(action) = self.sessions.next_action(at(self.now)) {
            match action {
                Action::Connect { user, client, .. } => {
                    assert_eq!(client, 9);
                    let number = u32::try_from(self.conns.len()).unwrap();
                    let id = ConnId {
                        slot: number % 3,
                        generation: number,
                    };
                    let port = u16::try_from(10_000 + number).unwrap();
                    let result = match self.refuses {
                        Some(failure) => Err(failure),
                        None => Ok((id, port)),
                    };
                    if result.is_ok() {
                        self.conns.push(Conn {
                            id,
                            user,
                            state: State::Open,
                            is_connected: false,
                            sent: Vec::new(),
                        });
                    }
                    self.sessions.on_opened(user, result, at(self.now));
                }
                Action::Send { conn, request } => {
                    let bytes = self.sessions.request_bytes(request, &mut room);
                    let text = String::from_utf8(bytes.to_vec()).expect("a request is text");
                    assert!(!text.is_empty());
                    let conn = self.conn(conn);
                    assert!(conn.is_connected && conn.state == State::Open);
                    conn.sent.push(text);
                }
                Action::Close(id) => self.leave(id, State::Closed),
                Action::CloseAfterPeer(id) => self.leave(id, State::ClosedAfter),
                Action::Abort(id) => self.leave(id, State::Aborted),
            }
        }
    }

    fn conn(&mut self, id: ConnId) -> &mut Conn {
        let conn = self.conns.iter_mut().find(|conn| conn.id == id);
        conn.expect("a connection that was opened")
    }

    fn leave(&mut self, id: ConnId, state: State) {
        let conn = self.conn(id);
        assert_eq!(
            conn.state,
            State::Open,
            "left once, and not after it was gone"
        );
        conn.state = state;
    }

    /// An event of a connection, a millisecond later.
    pub(super) fn event(&mut self, conn: usize, event: TcpEvent<'_>) {
        self.now += 1_000_000;
        let (id, user) = (self.conns[conn].id, self.conns[conn].user);
        match event {
            TcpEvent::Connected { .. } => self.conns[conn].is_connected = true,
            TcpEvent::Closed(_) => self.conns[conn].state = State::Gone,
            _ => {}
        }
        self.sessions.on_event(id, user, event, at(self.now));
        self.act();
    }

    pub(super) fn connected(&mut self, conn: usize) {
        let event = TcpEvent::Connected {
            handshake_ns: 5,
            syn_retransmissions: 0,
        };
        self.event(conn, event);
    }

    pub(super) fn data(&mut self, conn: usize, bytes: &[u8]) {
        self.event(conn, TcpEvent::Data(bytes));
    }

    pub(super) fn closed(&mut self, conn: usize, reason: CloseReason) {
        self.event(conn, TcpEvent::Closed(reason));
    }

    /// Time passes.
    pub(super) fn wait(&mut self, nanos: u64) {
        self.now += nanos;
        self.sessions.on_tick(at(self.now));
        self.act();
    }

    /// The request lines that were sent on a connection.
    pub(super) fn asked(&self, conn: usize) -> Vec<&str> {
        let lines = self.conns[conn].sent.iter();
        lines
            .map(|text| text.split(" HTTP/1.1").next().unwrap())
            .collect()
    }

    pub(super) fn states(&self) -> Vec<State> {
        self.conns.iter().map(|conn| conn.state).collect()
    }

    pub(super) fn told(&self) -> &Told {
        self.sessions.observer()
    }

    /// The one session that is over, and that nothing is left of it.
    pub(super) fn only_end(&self) -> SessionEnd {
        assert_eq!(self.told().ends.len(), 1);
        assert_eq!(self.sessions.open_sessions(), 0);
        assert_eq!(self.sessions.open_connections(), 0);
        assert!(self.states().iter().all(|state| *state != State::Open));
        assert_eq!(self.sessions.next_deadline(), None);
        self.told().ends[0]
    }
}
