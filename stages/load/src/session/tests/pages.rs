//! Sessions that go well.

use super::rig::{OK, Rig, SECOND, State, at, page, session};
use crate::script::{Body, Method, RequestPlan, SessionPlan, Span};
use crate::seam::{CloseReason, TcpEvent};

const MILLI: u64 = 1_000_000;

#[test]
fn one_get_from_plan_to_end() {
    let mut rig = Rig::new(session(vec![page("/x", &[])]));
    let t = rig.now;
    rig.start(5);
    rig.connected(0);
    assert_eq!(rig.asked(0), ["GET /x"]);
    rig.data(0, b"HTTP/1.1 404 Gone\r\nContent-Le");
    rig.data(0, b"ngth: 3\r\n\r\na");
    rig.data(0, b"bc");
    let end = rig.only_end();
    assert_eq!(rig.states(), [State::Closed]);
    let told = rig.told();
    assert_eq!(told.starts, [(9, t - MILLI, t)]);
    assert_eq!(told.connects, 1);
    let (exchange, target, port) = &told.exchanges[0];
    assert_eq!(
        (target.as_str(), *port, exchange.is_page),
        ("/x", 10_000, true)
    );
    assert_eq!(
        exchange.intended,
        at(t - MILLI),
        "the handshake and the lag count"
    );
    assert_eq!(exchange.sent, Some(at(t + MILLI)));
    assert_eq!(exchange.first_byte, Some(at(t + 2 * MILLI)));
    assert_eq!(exchange.last_byte, Some(at(t + 4 * MILLI)));
    assert_eq!((exchange.status, exchange.response_bytes), (404, 43));
    assert_eq!(exchange.request_bytes, rig.conns[0].sent[0].len() as u64);
    assert_eq!(told.pages, [(t - MILLI, t + 4 * MILLI)]);
    assert_eq!((end.session, end.client, end.failure), (5, 9, None));
    assert_eq!(
        (end.pages, end.requests, end.responses, end.connections),
        (1, 1, 1, 1)
    );
    assert_eq!((end.statuses, end.last_status), ([0, 0, 0, 1, 0], 404));
    assert_eq!(
        (end.request_bytes, end.response_bytes),
        (exchange.request_bytes, 43)
    );
    assert_eq!((end.started, end.ended), (Some(at(t)), at(t + 4 * MILLI)));
}

#[test]
fn objects_follow_their_page_over_parallel_connections() {
    let plan = SessionPlan {
        parallel: 2,
        ..session(vec![page("/", &["/a", "/b", "/c"]), page("/next", &[])])
    };
    let mut rig = Rig::new(plan);
    rig.start(0);
    rig.connected(0);
    rig.data(0, OK);
    let due = rig.now;
    assert_eq!(rig.conns.len(), 2, "one more for the second object");
    assert_eq!(rig.asked(0), ["GET /", "GET /a"]);
    rig.connected(1);
    assert_eq!(rig.asked(1), ["GET /b"]);
    rig.data(1, OK);
    assert_eq!(rig.asked(1), ["GET /b", "GET /c"]);
    let third_due = rig.now;
    rig.data(1, OK);
    assert_eq!(rig.told().pages, [], "an object is still to come");
    rig.data(0, OK);
    assert_eq!(rig.told().pages.len(), 1);
    let asked: usize = [0, 1].map(|conn| rig.asked(conn).len()).iter().sum();
    assert_eq!(
        asked, 5,
        "the next page at once, on a connection that waits"
    );
    let conn = usize::from(rig.asked(1).contains(&"GET /next"));
    rig.data(conn, OK);
    let end = rig.only_end();
    assert_eq!(
        (end.pages, end.requests, end.responses, end.connections),
        (2, 5, 5, 2)
    );
    assert_eq!(end.failure, None);
    let intended = |target: &str| {
        let exchanges = &rig.told().exchanges;
        let found = exchanges.iter().find(|(_, own, _)| own == target);
        found.expect(target).0.intended
    };
    assert_eq!((intended("/a"), intended("/b")), (at(due), at(due)));
    assert_eq!(intended("/c"), at(third_due), "when a connection was free");
}

#[test]
fn without_keep_alive_each_request_has_its_connection() {
    let plan = SessionPlan {
        keep_alive: false,
        parallel: 1,
        ..session(vec![page("/", &["/a"])])
    };
    let mut rig = Rig::new(plan);
    rig.start(0);
    rig.connected(0);
    assert!(rig.conns[0].sent[0].contains("Connection: close\r\n"));
    rig.data(0, OK);
    assert_eq!(rig.states(), [State::Closed, State::Open]);
    rig.connected(1);
    rig.data(1, OK);
    assert_eq!(rig.only_end().connections, 2);
}

#[test]
fn a_connection_that_the_server_will_close_is_not_used_again() {
    for head in ["HTTP/1.1 200 OK\r\nConnection: x, Close", "HTTP/1.0 200 OK"] {
        let mut rig = Rig::new(session(vec![page("/", &["/a"])]));
        rig.start(0);
        rig.connected(0);
        rig.data(0, format!("{head}\r\nContent-Length: 0\r\n\r\n").as_bytes());
        // The server goes first, as it has said.
        assert_eq!(rig.states(), [State::ClosedAfter, State::Open], "{head}");
    }
    let mut rig = Rig::new(session(vec![page("/", &["/a"])]));
    rig.start(0);
    rig.connected(0);
    rig.data(
        0,
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(rig.asked(0), ["GET /", "GET /a"]);
}

#[test]
fn a_body_may_end_with_the_connection() {
    for is_closed in [false, true] {
        let mut rig = Rig::new(session(vec![page("/", &[])]));
        rig.start(0);
        rig.connected(0);
        rig.data(0, b"HTTP/1.1 200 OK\r\n\r\nall of it");
        assert_eq!(rig.told().ends.len(), 0);
        if is_closed {
            rig.closed(0, CloseReason::Finished);
        } else {
            rig.event(0, TcpEvent::PeerFinished);
        }
        assert_eq!(rig.only_end().failure, None);
        assert_eq!(rig.told().exchanges[0].0.response_bytes, 28);
    }
}

#[test]
fn thinking_counts_from_the_end_of_the_page() {
    let mut first = page("/", &[]);
    first.think = Span::Constant(2 * SECOND);
    let mut rig = Rig::new(session(vec![first, page("/next", &[])]));
    rig.start(0);
    rig.connected(0);
    rig.data(0, OK);
    let due = rig.now + 2 * SECOND;
    let deadline = rig.sessions.next_deadline().expect("a timer");
    assert!(deadline <= at(due + (1 << 14)));
    rig.wait(SECOND);
    assert_eq!(rig.asked(0), ["GET /"]);
    // The generator is late: that counts.
    rig.wait(SECOND + MILLI);
    assert_eq!(rig.asked(0), ["GET /", "GET /next"]);
    rig.data(0, OK);
    let exchange = rig.told().exchanges[1].0;
    assert_eq!(
        (exchange.intended, exchange.sent),
        (at(due), Some(at(due + MILLI)))
    );
    assert_eq!(rig.told().pages[1].0, due);
    assert_eq!(rig.only_end().connections, 1);
}

#[test]
fn a_pause_stands_before_each_object() {
    let mut only = page("/", &["/a", "/b"]);
    only.pause = Span::Constant(SECOND);
    let plan = SessionPlan {
        parallel: 1,
        ..session(vec![only])
    };
    let mut rig = Rig::new(plan);
    rig.start(0);
    rig.connected(0);
    rig.data(0, OK);
    rig.wait(SECOND - 100 * MILLI);
    assert_eq!(rig.asked(0), ["GET /"]);
    rig.wait(101 * MILLI);
    assert_eq!(rig.asked(0), ["GET /", "GET /a"]);
    rig.wait(2 * SECOND);
    rig.data(0, OK);
    let turn = rig.now;
    assert_eq!(rig.asked(0).len(), 2, "its turn has only come");
    rig.wait(SECOND + MILLI);
    rig.data(0, OK);
    assert_eq!(rig.told().exchanges[2].0.intended, at(turn + SECOND));
    assert_eq!(rig.only_end().responses, 3);
}

#[test]
fn replayed_objects_are_due_at_their_times() {
    let mut only = page("/", &["/a", "/b", "/c"]);
    only.offsets_ns = vec![0, SECOND, 3 * SECOND];
    let plan = SessionPlan {
        parallel: 2,
        ..session(vec![only])
    };
    let mut rig = Rig::new(plan);
    let planned = rig.now - MILLI;
    rig.start(0);
    assert_eq!(rig.conns.len(), 2, "the base is not waited for");
    rig.connected(0);
    rig.connected(1);
    rig.wait(2 * SECOND);
    assert_eq!(rig.conns.len(), 2, "all that the session may have");
    rig.data(1, OK);
    assert_eq!(rig.asked(1), ["GET /a", "GET /b"]);
    rig.data(0, OK);
    rig.data(1, OK);
    assert_eq!(rig.told().ends.len(), 0);
    rig.wait(SECOND);
    let conn = usize::from(rig.asked(1).contains(&"GET /c"));
    rig.data(conn, OK);
    let intended: Vec<u64> = rig
        .told()
        .exchanges
        .iter()
        .map(|(e, _, _)| e.intended.as_nanos() - planned)
        .collect();
    // In the order of their ends; what waited for a connection counts.
    assert_eq!(intended, [0, 0, SECOND, 3 * SECOND]);
    assert_eq!(rig.only_end().pages, 1);
}

#[test]
fn objects_are_found_in_the_page() {
    let mut only = page("/dir/?q", &["/known"]);
    only.is_parsed = true;
    let mut rig = Rig::new(SessionPlan {
        parallel: 1,
        ..session(vec![only])
    });
    rig.start(0);
    rig.connected(0);
    rig.data(0, b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n<img src=");
    rig.data(0, b"\r\n4\r\na.pn\r\n3;x\r\ng><\r\n");
    rig.data(0, b"12\r\nscript src='/b.js'\r\n1\r\n>\r\n0\r\n\r\n");
    for _ in 0..3 {
        rig.data(0, OK);
    }
    assert_eq!(
        rig.asked(0),
        ["GET /dir/?q", "GET /known", "GET /dir/a.png", "GET /b.js"]
    );
    let (first, last) = (&rig.conns[0].sent[0], &rig.conns[0].sent[3]);
    assert_eq!(first.replace("/dir/?q", "/b.js"), **last, "the same fields");
    let (exchange, target, _) = &rig.told().exchanges[3];
    assert_eq!((target.as_str(), exchange.is_page), ("/b.js", false));
    assert_eq!(exchange.request_bytes, last.len() as u64);
    assert_eq!(rig.only_end().responses, 4);
    assert_eq!(
        (
            rig.sessions.stats().objects_found,
            rig.sessions.stats().objects_beyond
        ),
        (2, 0)
    );
}

#[test]
fn what_is_no_page_is_not_searched() {
    for head in [
        "200 OK\r\nContent-Type: text/plain",
        "404 No\r\nContent-Type: text/html",
        "200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip",
    ] {
        let mut only = page("/", &[]);
        only.is_parsed = true;
        let mut rig = Rig::new(session(vec![only]));
        rig.start(0);
        rig.connected(0);
        let page = "<img src=/a>";
        rig.data(
            0,
            format!(
                "HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{page}",
                page.len()
            )
            .as_bytes(),
        );
        assert_eq!(rig.only_end().responses, 1, "{head}");
    }
}

#[test]
fn interim_responses_are_passed_over() {
    let mut rig = Rig::new(session(vec![page("/", &[])]));
    rig.start(0);
    rig.connected(0);
    rig.data(0, b"HTTP/1.1 100 Continue\r\n\r\n");
    rig.data(
        0,
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n",
    );
    let first_byte = rig.now;
    rig.data(0, b"Content-Length: 0\r\n\r\n");
    let exchange = rig.told().exchanges[0].0;
    assert_eq!(
        (exchange.status, exchange.first_byte),
        (200, Some(at(first_byte)))
    );
    assert_eq!(rig.only_end().statuses, [0, 1, 0, 0, 0]);
    assert_eq!(rig.sessions.stats().interim_responses, 2);
}

#[test]
fn responses_that_have_no_body() {
    let head = RequestPlan {
        method: Method::Head,
        ..RequestPlan::get("/head")
    };
    let mut plan = page("/", &["/304"]);
    plan.objects.insert(0, head);
    let mut rig = Rig::new(SessionPlan {
        parallel: 1,
        ..session(vec![plan])
    });
    rig.start(0);
    rig.connected(0);
    rig.data(0, b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n");
    rig.data(0, b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n");
    rig.data(
        0,
        b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    assert_eq!(rig.only_end().statuses, [0, 2, 1, 0, 0]);
}

#[test]
fn an_answer_before_the_upload_is_read_ends_the_connection() {
    for is_acknowledged in [false, true] {
        let mut first = page("/up", &[]);
        first.base.method = Method::Post;
        first.base.body = Body::Filled(100_000);
        let mut rig = Rig::new(session(vec![first, page("/next", &[])]));
        rig.start(0);
        rig.connected(0);
        assert!(rig.conns[0].sent[0].ends_with("xxx"));
        if is_acknowledged {
            rig.event(0, TcpEvent::Sent);
        }
        rig.data(0, OK);
        let want = if is_acknowledged {
            vec![State::Open]
        } else {
            vec![State::Aborted, State::Open]
        };
        assert_eq!(rig.states(), want);
    }
}

#[test]
fn think_times_depend_on_seed_and_number_only() {
    let dues = |numbers: [u64; 2]| {
        let mut first = page("/", &[]);
        first.think = Span::Exponential {
            mean: 1.0,
            cap: 20.0,
        };
        let mut rig = Rig::new(session(vec![first, page("/next", &[])]));
        let mut dues = numbers.map(|number| {
            let conn = rig.conns.len();
            rig.start(number);
            rig.connected(conn);
            rig.data(conn, OK);
            let ended = rig.now;
            rig.wait(30 * SECOND);
            rig.data(conn, OK);
            let intended = rig.told().exchanges.last().unwrap().0.intended;
            (number, intended.as_nanos() - ended)
        });
        dues.sort_unstable();
        dues
    };
    let forward = dues([3, 4]);
    assert_eq!(forward, dues([4, 3]));
    assert_ne!(forward[0].1, forward[1].1);
}
