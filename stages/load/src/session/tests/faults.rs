//! Sessions that do not come to their end, and servers that make it hard.

use super::rig::{OK, Rig, SECOND, State, at, page, session};
use crate::outcome::Failure;
use crate::script::{Method, SessionPlan, Span};
use crate::seam::{CloseReason, ConnId, Listener as _, TcpEvent};
use crate::session::{Action, SessionSettings};

fn one() -> Rig {
    Rig::new(session(vec![page("/", &[])]))
}

/// A session whose first response is complete, and whose connection waits.
fn waiting() -> Rig {
    let mut first = page("/", &[]);
    first.think = Span::Constant(SECOND);
    let mut rig = Rig::new(session(vec![first, page("/next", &[])]));
    rig.start(0);
    rig.connected(0);
    rig.data(0, OK);
    rig
}

/// A cause, and what happens to be it.
type Fault = (Failure, fn(&mut Rig));

const FAULTS: [Fault; 17] = [
    (Failure::Refused, |rig| rig.closed(0, CloseReason::Refused)),
    (Failure::ConnectTimeout, |rig| {
        rig.closed(0, CloseReason::ConnectTimeout);
    }),
    (Failure::ConnectTimeout, |rig| {
        rig.wait(10 * SECOND + 100_000);
    }),
    (Failure::Unreachable, |rig| {
        rig.sessions.fail_all(Failure::Unreachable, at(rig.now));
    }),
    (Failure::Reset, |rig| {
        rig.connected(0);
        rig.data(0, b"HTTP/1.1 200 OK\r\n\r\nuntil it ends");
        rig.closed(0, CloseReason::Reset);
    }),
    (Failure::Reset, |rig| {
        rig.connected(0);
        rig.closed(0, CloseReason::Aborted);
    }),
    (Failure::ClosedEarly, |rig| {
        rig.connected(0);
        rig.event(0, TcpEvent::PeerFinished);
    }),
    (Failure::ClosedEarly, |rig| {
        rig.connected(0);
        rig.data(0, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab");
        rig.closed(0, CloseReason::Finished);
    }),
    (Failure::SendTimeout, |rig| {
        rig.connected(0);
        rig.closed(0, CloseReason::SendTimeout);
    }),
    (Failure::ResponseTimeout, |rig| {
        rig.wait(9 * SECOND);
        rig.connected(0);
        rig.wait(9 * SECOND);
        assert_eq!(rig.told().ends.len(), 0, "counted from when it was sent");
        rig.data(0, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab");
        rig.wait(SECOND);
    }),
    (Failure::Malformed, |rig| {
        rig.connected(0);
        rig.data(0, b"S");
    }),
    (Failure::Malformed, |rig| {
        rig.connected(0);
        rig.data(0, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
    }),
    (Failure::Malformed, |rig| {
        rig.connected(0);
        rig.data(
            0,
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        );
    }),
    (Failure::Malformed, |rig| {
        rig.connected(0);
        rig.data(
            0,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno chunk",
        );
    }),
    (Failure::Malformed, |rig| {
        rig.connected(0);
        rig.data(0, b"HTTP/1.1 200 OK\r\n");
        for _ in 0..40 {
            rig.data(0, &[b'x'; 1000]);
        }
    }),
    (Failure::WrongLength, |rig| {
        rig.connected(0);
        rig.data(0, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd");
    }),
    (Failure::RunEnded, |rig| {
        rig.connected(0);
        rig.sessions.fail_all(Failure::RunEnded, at(rig.now));
    }),
];

#[test]
fn each_fault_has_its_cause() {
    for (number, (failure, step)) in FAULTS.into_iter().enumerate() {
        let mut rig = one();
        rig.start(0);
        step(&mut rig);
        rig.act();
        let end = rig.only_end();
        assert_eq!(end.failure, Some(failure), "case {number}");
        assert_eq!((end.pages, end.responses), (0, 0));
        let [(exchange, ..)] = &rig.told().exchanges[..] else {
            panic!("case {number}: one exchange");
        };
        assert_eq!(
            (exchange.failure, exchange.last_byte),
            (Some(failure), None)
        );
        assert_eq!(exchange.sent.is_some(), end.requests == 1, "case {number}");
        assert_ne!(
            rig.states(),
            [State::Closed],
            "case {number}: it is reset or gone"
        );
        assert_eq!(rig.sessions.heads.held_bytes(), 0);
    }
}

#[test]
fn a_connection_that_cannot_be_opened_fails_the_session() {
    for failure in [Failure::NoPort, Failure::NoRoom, Failure::Unreachable] {
        let mut rig = one();
        rig.refuses = Some(failure);
        rig.start(0);
        let end = rig.only_end();
        assert_eq!(
            (end.failure, end.started, end.requests),
            (Some(failure), None, 0)
        );
        assert_eq!(rig.told().exchanges.len(), 1);
        assert_eq!(rig.told().starts, []);
    }
}

#[test]
fn there_is_room_for_so_many_and_no_more() {
    let settings = SessionSettings {
        max_sessions: 2,
        max_connections: 1,
        ..SessionSettings::default()
    };
    let plan = session(vec![page("/", &["/a", "/b"])]);
    let mut rig = Rig::with(plan, settings);
    rig.start(0);
    rig.start(1);
    assert_eq!(rig.told().ends.len(), 1, "no connection for the second");
    rig.connected(0);
    rig.data(0, OK);
    rig.data(0, OK);
    rig.data(0, OK);
    assert_eq!(
        (rig.told().ends[1].session, rig.told().ends[1].responses),
        (0, 3),
        "with the one it has"
    );
    let settings = SessionSettings {
        max_connections: 9,
        ..settings
    };
    let mut rig = Rig::with(session(vec![page("/", &[])]), settings);
    for number in 0..3 {
        rig.sessions.start(number, 1, at(5), at(6));
    }
    assert!(rig.sessions.is_full());
    let end = rig.told().ends[0];
    assert_eq!(
        (end.session, end.failure, end.started),
        (2, Some(Failure::NoRoom), None)
    );
}

#[test]
fn the_first_fault_ends_all_of_its_session() {
    let mut rig = Rig::new(SessionPlan {
        parallel: 3,
        ..session(vec![page("/", &["/a", "/b", "/c"])])
    });
    rig.start(0);
    rig.connected(0);
    rig.data(0, OK);
    rig.connected(1);
    // One request on each of two connections, one handshake under way.
    rig.data(0, b"garbage");
    let end = rig.only_end();
    assert_eq!(
        (end.failure, end.requests, end.responses),
        (Some(Failure::Malformed), 3, 1)
    );
    assert_eq!(rig.states(), [State::Aborted; 3]);
    let failed = rig
        .told()
        .exchanges
        .iter()
        .filter(|(e, ..)| e.failure == Some(Failure::Malformed));
    assert_eq!(failed.count(), 3);
    assert_eq!(rig.told().pages, []);
}

#[test]
fn a_connection_closed_while_it_waits_is_no_fault() {
    for closed in [false, true] {
        let mut rig = waiting();
        if closed {
            rig.closed(0, CloseReason::Reset);
        } else {
            rig.event(0, TcpEvent::PeerFinished);
            assert_eq!(rig.states(), [State::Closed]);
        }
        assert_eq!(rig.sessions.stats().idle_closed, 1);
        rig.wait(2 * SECOND);
        rig.connected(1);
        rig.data(1, OK);
        let end = rig.only_end();
        assert_eq!((end.failure, end.responses, end.connections), (None, 2, 2));
        assert_eq!(rig.sessions.stats().retries, 0);
    }
}

#[test]
fn bytes_that_nobody_asked_for_are_a_fault() {
    let mut rig = waiting();
    rig.data(0, b"x");
    let end = rig.only_end();
    assert_eq!(
        (end.failure, end.responses),
        (Some(Failure::WrongLength), 1)
    );
    assert_eq!(rig.told().exchanges.len(), 1, "no request is to blame");
}

#[test]
fn a_request_that_meets_the_close_is_sent_once_more() {
    for reason in [CloseReason::Reset, CloseReason::Finished] {
        let mut rig = waiting();
        rig.wait(2 * SECOND);
        let sent = rig.now;
        assert_eq!(rig.asked(0).len(), 2);
        rig.closed(0, reason);
        rig.connected(1);
        assert_eq!(rig.asked(1), ["GET /next"]);
        rig.data(1, OK);
        let end = rig.only_end();
        assert_eq!(
            (end.failure, end.requests, end.responses),
            (None, 2, 2),
            "counted once"
        );
        assert_eq!(rig.told().exchanges[1].0.sent, Some(at(sent)));
        assert_eq!(rig.sessions.stats().retries, 1);
    }
    // Not twice.
    let mut rig = waiting();
    rig.wait(2 * SECOND);
    rig.event(0, TcpEvent::PeerFinished);
    assert_eq!(rig.states(), [State::Closed, State::Open]);
    rig.connected(1);
    rig.closed(1, CloseReason::Reset);
    assert_eq!(rig.only_end().failure, Some(Failure::Reset));
    // Not when part of a response came.
    let mut rig = waiting();
    rig.wait(2 * SECOND);
    rig.data(0, b"H");
    rig.closed(0, CloseReason::Reset);
    assert_eq!(rig.only_end().failure, Some(Failure::Reset));
}

#[test]
fn what_is_not_idempotent_is_not_sent_again() {
    for (method, failure) in [
        (Method::Post, Some(Failure::ClosedEarly)),
        (Method::Put, None),
    ] {
        let mut next = page("/next", &[]);
        next.base.method = method;
        let mut rig = Rig::new(session(vec![page("/", &[]), next]));
        rig.start(0);
        rig.connected(0);
        rig.data(0, OK);
        rig.event(0, TcpEvent::PeerFinished);
        if failure.is_none() {
            rig.connected(1);
            rig.data(1, OK);
        }
        assert_eq!(rig.only_end().failure, failure, "{method:?}");
    }
}

#[test]
fn events_of_others_change_nothing() {
    let mut rig = one();
    rig.start(0);
    rig.connected(0);
    let (id, user) = (rig.conns[0].id, rig.conns[0].user);
    let other = ConnId {
        generation: id.generation + 1,
        ..id
    };
    let reset = TcpEvent::Closed(CloseReason::Reset);
    rig.sessions.on_event(other, user, reset, at(rig.now));
    rig.sessions.on_event(id, user + 1, reset, at(rig.now));
    rig.sessions
        .on_opened(user, Err(Failure::NoPort), at(rig.now));
    rig.sessions
        .on_opened(77, Err(Failure::NoPort), at(rig.now));
    rig.data(0, OK);
    rig.data(0, b"late");
    rig.closed(0, CloseReason::Reset);
    assert_eq!(rig.told().ends[0].failure, None);
    assert_eq!(rig.told().ends.len(), 1);
}

#[test]
fn a_connection_that_comes_too_late_is_given_back() {
    let mut rig = one();
    // Before anybody took the wish.
    rig.sessions.start(0, 9, at(rig.now), at(rig.now));
    rig.sessions.fail_all(Failure::RunEnded, at(rig.now));
    assert_eq!(rig.sessions.next_action(at(rig.now)), None);
    assert_eq!(rig.sessions.open_connections(), 0);
    // After it was taken.
    rig.sessions.start(1, 9, at(rig.now), at(rig.now));
    let Some(Action::Connect {
        user, client: 9, ..
    }) = rig.sessions.next_action(at(rig.now))
    else {
        panic!("a wish for a connection");
    };
    rig.sessions.fail_all(Failure::RunEnded, at(rig.now));
    assert_eq!(
        rig.sessions.open_connections(),
        1,
        "its number is not used before the answer"
    );
    let id = ConnId {
        slot: 4,
        generation: 4,
    };
    rig.sessions.on_opened(user, Ok((id, 4)), at(rig.now));
    assert_eq!(
        rig.sessions.next_action(at(rig.now)),
        Some(Action::Abort(id))
    );
    assert_eq!(rig.sessions.open_connections(), 0);
    assert_eq!(rig.told().ends.len(), 2);
}

#[test]
fn a_request_that_cannot_be_sent_fails_its_session() {
    let mut rig = one();
    rig.start(0);
    let (id, user) = (rig.conns[0].id, rig.conns[0].user);
    let connected = TcpEvent::Connected {
        handshake_ns: 1,
        syn_retransmissions: 0,
    };
    rig.sessions.on_event(id, user, connected, at(rig.now));
    let Some(Action::Send { conn, request }) = rig.sessions.next_action(at(rig.now)) else {
        panic!("a request");
    };
    assert_eq!(conn, id);
    rig.sessions
        .on_unsent(request, Failure::NoRoom, at(rig.now));
    rig.act();
    assert_eq!(rig.only_end().failure, Some(Failure::NoRoom));
}

#[test]
fn heads_that_dribble_are_bounded_together() {
    let settings = SessionSettings {
        max_head_bytes: 50_000,
        ..SessionSettings::default()
    };
    let mut rig = Rig::with(session(vec![page("/", &[])]), settings);
    for number in 0..10 {
        rig.start(number);
    }
    for conn in 0..10 {
        rig.connected(conn);
        rig.data(conn, b"HTTP/1.1 200 OK\r\nX: ");
        rig.data(conn, &[b'x'; 10_000]);
        assert!(rig.sessions.heads.held_bytes() <= 50_000);
    }
    let failed = rig
        .told()
        .ends
        .iter()
        .filter(|end| end.failure == Some(Failure::NoRoom));
    assert_eq!(failed.count(), 6);
    rig.sessions.fail_all(Failure::RunEnded, at(rig.now));
    assert_eq!(rig.sessions.heads.held_bytes(), 0);
    assert!(
        rig.sessions.memory_bytes() < 200_000,
        "{}",
        rig.sessions.memory_bytes()
    );
}
