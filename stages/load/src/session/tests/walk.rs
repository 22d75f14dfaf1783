//! Servers and networks that do anything at all: every session ends once, every request is reported once, and
//! nothing is left.
//!
//! Responses in pieces of any size.

use super::rig::{OK, Rig, SECOND, State, page, session};
use crate::outcome::Failure;
use crate::script::{Method, SessionPlan, Span};
use crate::seam::{CloseReason, TcpEvent};
use crate::session::response::{Progress, ResponseReader};
use crate::session::{Heads, SessionSettings};
use proptest::prelude::*;

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

/// Body, bytes received, status, how many interim ones, whether it ended, what was left, keep-alive.
type Read = (Vec<u8>, u64, u16, u32, bool, usize, bool);

fn read<'a>(is_to_head: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Read, Failure> {
    let mut heads = Heads::new(4000, 4000);
    let mut reader = ResponseReader::new(is_to_head);
    let (mut body, mut interim, mut is_done, mut left) = (Vec::new(), 0, false, 0);
    for piece in pieces {
        let mut rest = piece;
        while !is_done {
            let before = rest.len();
            let progress =
                reader.read(&mut rest, &mut heads, |bytes| body.extend_from_slice(bytes))?;
            assert!(rest.len() <= before);
            match progress {
                Progress::More => {
                    assert!(rest.is_empty());
                    break;
                }
                Progress::Interim => interim += 1,
                Progress::Head => {}
                Progress::Done => is_done = true,
            }
            if rest.is_empty() && !is_done {
                break;
            }
        }
        left += rest.len();
    }
    assert!(heads.held_bytes() <= 4000);
    let result = (
        body,
        reader.received(),
        reader.status(),
        interim,
        is_done,
        left,
        reader.keeps_alive(),
    );
    reader.release(&mut heads);
    assert_eq!(heads.held_bytes(), 0);
    Ok(result)
}

#[test]
fn framings() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n2\r\nab\r\n0\r\nA: b\r\n\r\nrest";
    assert_eq!(
        read(false, [&chunked[..]]),
        Ok((b"ab".to_vec(), 84, 200, 0, true, 4, true))
    );
    let until_close = b"HTTP/1.1 200 OK\n\nabc";
    assert_eq!(
        read(false, [&until_close[..]]),
        Ok((b"abc".to_vec(), 20, 200, 0, false, 0, false))
    );
    let to_head = b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    assert_eq!(
        read(true, [&to_head[..]]),
        Ok((Vec::new(), 56, 200, 1, true, 0, true))
    );
}

#[test]
fn what_is_no_response() {
    for bytes in [
        &b"\r\nHTTP/1.1 200 OK\r\n\r\n"[..],
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        assert_eq!(
            read(false, [bytes]),
            Err(Failure::Malformed),
            "{}",
            bytes.escape_ascii()
        );
        assert_eq!(
            read(false, bytes.chunks(1)),
            Err(Failure::Malformed),
            "{}",
            bytes.escape_ascii()
        );
    }
}

fn response() -> impl Strategy<Value = Vec<u8>> {
    let interim =
        prop_oneof![3 => Just(""), 1 => Just("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n")];
    let field = prop_oneof![
        Just("Content-Type: text/html\r\n"),
        Just("Connection: close\r\n"),
        Just("connection: Keep-Alive\r\n"),
        Just("X: y\r\n"),
    ];
    let body = proptest::collection::vec(any::<u8>(), 0..100);
    let parts = (
        interim,
        prop_oneof![Just("1.1"), Just("1.0")],
        prop_oneof![Just(200_u16), Just(204), Just(304), Just(404), Just(500)],
        proptest::collection::vec(field, 0..3),
        0_u8..3,
        body,
        proptest::collection::vec(any::<u8>(), 0..3),
    );
    parts.prop_map(|(interim, version, status, fields, framing, body, extra)| {
        let mut bytes =
            format!("{interim}HTTP/{version} {status} X\r\n{}", fields.concat()).into_bytes();
        match framing {
            0 => {
                bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                bytes.extend(&body);
            }
            1 => {
                bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in body.chunks(7) {
                    bytes.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
                    bytes.extend(chunk);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\n\r\n");
            }
            _ => {
                bytes.extend(b"\r\n");
                bytes.extend(&body);
            }
        }
        bytes.extend(extra);
        bytes
    })
}

proptest! {
    #[test]
    fn cuts_change_nothing(bytes in response(), is_to_head: bool, cuts in proptest::collection::vec(1_usize..9, 1..40)) {
        let whole = read(is_to_head, [&bytes[..]]);
        let (mut pieces, mut rest) = (Vec::new(), &bytes[..]);
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(read(is_to_head, pieces), whole);
    }

    #[test]
    fn hostile_bytes_are_bounded(
        start in prop_oneof![Just(""), Just("HTTP/1.1 200 OK\r\n"), Just("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")],
        tail in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b':'), Just(b'1'), Just(b';'), any::<u8>()], 0..6000),
        cut in 1_usize..2000,
    ) {
        let bytes = [start.as_bytes(), &tail].concat();
        let whole = read(false, [&bytes[..]]);
        let cut = read(false, bytes.chunks(cut));
        // A head beyond its bound may be seen whole before it is seen to be too long.
        prop_assert_eq!(cut, whole);
    }
}
