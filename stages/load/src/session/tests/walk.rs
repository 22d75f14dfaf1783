//! Servers and networks that do anything at all: every session ends once, every request is told once, and
//! nothing is left.

use proptest::prelude::*;

use super::rig::{OK, Rig, SECOND, State, page, session};
use crate::outcome::Failure;
use crate::script::{Method, SessionPlan, Span};
use crate::seam::{CloseReason, TcpEvent};
use crate::session::SessionSettings;

#[derive(Debug, Clone)]
enum Step {
    Start,
    /// On the connection of this number, of those that are open.
    Connected(usize),
    Answer(usize),
    Bytes(usize, Vec<u8>),
    Sent(usize),
    PeerFinished(usize),
    Closed(usize, CloseReason),
    Wait(u64),
    Refuse(Option<Failure>),
}

fn step() -> impl Strategy<Value = Step> {
    let conn = 0_usize..8;
    let reason = prop_oneof![
        Just(CloseReason::Finished),
        Just(CloseReason::Refused),
        Just(CloseReason::Reset),
        Just(CloseReason::ConnectTimeout),
        Just(CloseReason::SendTimeout),
        Just(CloseReason::Aborted),
    ];
    let bytes = prop_oneof![
        Just(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Just(b"Content-Length: 30\r\nContent-Type: text/html\r\n\r\n".to_vec()),
        Just(b"<img src=/a><img src=/b>......".to_vec()),
        Just(b"HTTP/1.1 100 C\r\n\r\n".to_vec()),
        Just(b"HTTP/1.1 200 OK\r\n\r\nuntil close".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    prop_oneof![
        3 => Just(Step::Start),
        6 => conn.clone().prop_map(Step::Connected),
        8 => conn.clone().prop_map(Step::Answer),
        4 => (conn.clone(), bytes).prop_map(|(conn, bytes)| Step::Bytes(conn, bytes)),
        1 => conn.clone().prop_map(Step::Sent),
        1 => conn.clone().prop_map(Step::PeerFinished),
        1 => (conn, reason).prop_map(|(conn, reason)| Step::Closed(conn, reason)),
        3 => (0..3 * SECOND).prop_map(Step::Wait),
        1 => prop_oneof![3 => Just(None), 1 => Just(Some(Failure::NoPort))].prop_map(Step::Refuse),
    ]
}

fn plan(parallel: u8, keep_alive: bool, timed: bool) -> SessionPlan {
    let mut first = page("/", &["/1", "/2", "/3"]);
    first.is_parsed = true;
    first.think = Span::Exponential {
        mean: 1.0,
        cap: 5.0,
    };
    first.pause = Span::Constant(SECOND / 10);
    if timed {
        first.offsets_ns = vec![0, SECOND, SECOND];
    }
    let mut second = page("/second", &["/4"]);
    second.base.method = Method::Post;
    SessionPlan {
        parallel,
        keep_alive,
        ..session(vec![first, second])
    }
}

fn take(rig: &mut Rig, step: Step, started: &mut u64) {
    let open: Vec<usize> = (0..rig.conns.len())
        .filter(|conn| rig.conns[*conn].state == State::Open)
        .collect();
    let pick = |number: usize| open.get(number % open.len().max(1)).copied();
    let on = |rig: &mut Rig, number: usize, event: TcpEvent<'_>| {
        if let Some(conn) = pick(number).filter(|conn| rig.conns[*conn].is_connected) {
            rig.event(conn, event);
        }
    };
    match step {
        Step::Start => {
            rig.start(*started);
            *started += 1;
        }
        Step::Connected(number) => {
            if let Some(conn) = pick(number).filter(|conn| !rig.conns[*conn].is_connected) {
                rig.connected(conn);
            }
        }
        Step::Answer(number) => {
            if pick(number).is_some_and(|conn| !rig.conns[conn].sent.is_empty()) {
                on(rig, number, TcpEvent::Data(OK));
            }
        }
        Step::Bytes(number, bytes) => on(rig, number, TcpEvent::Data(&bytes)),
        Step::Sent(number) => on(rig, number, TcpEvent::Sent),
        Step::PeerFinished(number) => on(rig, number, TcpEvent::PeerFinished),
        Step::Closed(number, reason) => {
            if let Some(conn) = pick(number) {
                rig.closed(conn, reason);
            }
        }
        Step::Wait(nanos) => rig.wait(nanos),
        Step::Refuse(failure) => rig.refuses = failure,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]
    #[test]
    fn every_session_ends_once(
        parallel in 1_u8..4,
        keep_alive: bool,
        timed: bool,
        max_connections in 1_u32..8,
        steps in proptest::collection::vec(step(), 0..120),
    ) {
        let settings = SessionSettings {
            max_sessions: 4,
            max_connections,
            timeout_ns: 10 * SECOND,
            ..SessionSettings::default()
        };
        let mut rig = Rig::with(plan(parallel, keep_alive, timed), settings);
        let mut started = 0;
        for step in steps {
            take(&mut rig, step, &mut started);
            prop_assert!(rig.sessions.open_sessions() <= 4);
            prop_assert!(rig.sessions.open_connections() <= 8);
            prop_assert_eq!(rig.told().ends.len() + rig.sessions.open_sessions(), usize::try_from(started).unwrap());
        }
        // Whatever still waits has a timer: nothing waits for ever.
        for _ in 0..100 {
            rig.refuses = None;
            rig.wait(6 * SECOND);
        }
        prop_assert_eq!(rig.sessions.open_sessions(), 0, "something waited for ever");
        let mut numbers: Vec<u64> = rig.told().ends.iter().map(|end| end.session).collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..started).collect::<Vec<u64>>());
        let ends = &rig.told().ends;
        let exchanges = &rig.told().exchanges;
        let sent = exchanges.iter().filter(|(e, ..)| e.sent.is_some()).count();
        prop_assert_eq!(ends.iter().map(|end| end.requests as usize).sum::<usize>(), sent);
        let complete = exchanges.iter().filter(|(e, ..)| e.failure.is_none());
        prop_assert!(complete.clone().all(|(e, ..)| e.sent <= e.first_byte && e.first_byte <= e.last_byte));
        prop_assert_eq!(ends.iter().map(|end| end.responses as usize).sum::<usize>(), complete.count());
        prop_assert_eq!(ends.iter().map(|end| end.pages as usize).sum::<usize>(), rig.told().pages.len());
        prop_assert!(ends.iter().filter(|end| end.failure.is_none()).all(|end| end.pages == 2));
        prop_assert_eq!(rig.sessions.open_connections(), 0);
        prop_assert!(rig.states().iter().all(|state| *state != State::Open));
        prop_assert_eq!(rig.sessions.heads.held_bytes(), 0);
        prop_assert_eq!(rig.sessions.found_bytes, 0);
    }
}
