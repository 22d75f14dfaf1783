//! Plans made ready: the bytes that go out.

use linkweir_model::Random;

use super::*;

fn site() -> Site {
    Site {
        host: "www.test:8080".to_owned(),
        user_agent: "agent".to_owned(),
    }
}

fn ready(pages: Vec<PagePlan>) -> Script {
    let plan = Plan {
        sessions: vec![SessionPlan {
            pages,
            ..SessionPlan::default()
        }],
        is_weighted: false,
    };
    Script::new(&plan, &site()).expect("a plan that can be sent")
}

fn text(script: &Script, request: u32) -> &str {
    let request = script.request(request).expect("a request");
    str::from_utf8(script.bytes(request)).expect("text")
}

#[test]
fn requests_are_bytes_that_can_go_out() {
    let post = RequestPlan {
        method: Method::Post,
        target: "/form".to_owned(),
        headers: vec![
            ("accept".to_owned(), "text/html".to_owned()),
            ("X-A".to_owned(), "b".to_owned()),
        ],
        body: Body::Given(b"k=v".to_vec()),
        timeout_ns: Some(7),
    };
    let script = ready(vec![PagePlan {
        base: post,
        objects: vec![RequestPlan::get("/a?b=c"), RequestPlan::get("/a?b=c")],
        is_parsed: true,
        ..PagePlan::default()
    }]);
    let page = *script.page(0, 0).expect("a page");
    assert_eq!(
        text(&script, page.base),
        "POST /form HTTP/1.1\r\nHost: www.test:8080\r\nUser-Agent: agent\r\nAccept: text/html\r\n\
         Connection: keep-alive\r\nX-A: b\r\nContent-Length: 3\r\n\r\nk=v"
    );
    let object = script.object(&page, 0).expect("an object");
    assert_eq!(
        text(&script, object),
        "GET /a?b=c HTTP/1.1\r\nHost: www.test:8080\r\nUser-Agent: agent\r\nAccept: */*\r\n\
         Connection: keep-alive\r\n\r\n"
    );
    assert_eq!(script.object(&page, 1), Some(object), "kept once");
    assert_eq!(script.object(&page, 2), None);
    let request = script.request(object).expect("a request");
    assert_eq!(script.target(request), b"/a?b=c");
    assert_eq!((request.body_len, request.timeout_ns), (0, None));
    let base = script.request(page.base).expect("a request");
    assert_eq!(
        (script.target(base), base.body_len, base.timeout_ns),
        (&b"/form"[..], 3, Some(7))
    );
    // What follows the target of an object that is found: a GET without the body of its page.
    let tail = str::from_utf8(script.found_tail(&page)).expect("text");
    assert_eq!(
        tail,
        " HTTP/1.1\r\nHost: www.test:8080\r\nUser-Agent: agent\r\nAccept: text/html\r\n\
         Connection: keep-alive\r\nX-A: b\r\n\r\n"
    );
    assert!(script.memory_bytes() >= text(&script, page.base).len());
}

#[test]
fn one_connection_for_each_request_and_bodies_of_a_length() {
    let put = RequestPlan {
        method: Method::Put,
        body: Body::Filled(5),
        ..RequestPlan::get("/")
    };
    let plan = Plan {
        sessions: vec![SessionPlan {
            keep_alive: false,
            pages: vec![PagePlan {
                base: put,
                ..PagePlan::default()
            }],
            ..SessionPlan::default()
        }],
        is_weighted: false,
    };
    let script = Script::new(&plan, &Site::new("h")).expect("a plan");
    let bytes = text(&script, 0);
    assert!(bytes.contains("Connection: close\r\n"), "{bytes}");
    assert!(bytes.ends_with("Content-Length: 5\r\n\r\nxxxxx"), "{bytes}");
    assert!(bytes.contains(concat!(
        "User-Agent: linkweir/",
        env!("CARGO_PKG_VERSION"),
        "\r\n"
    )));
}

#[test]
fn the_default_is_one_get() {
    let script = Script::new(&single("/x?y", &SessionPlan::default()), &site()).expect("a plan");
    assert_eq!(script.sessions(), 1);
    assert!(text(&script, 0).starts_with("GET /x?y HTTP/1.1\r\n"));
    assert_eq!(script.page(0, 1), None);
    assert_eq!(script.page(1, 0), None);
}

#[test]
fn sessions_take_turns_or_are_drawn_by_weight() {
    let session = |weight| SessionPlan {
        weight,
        ..single("/", &SessionPlan::default()).sessions.remove(0)
    };
    let mut plan = Plan {
        sessions: vec![session(1), session(0), session(3)],
        is_weighted: false,
    };
    let script = Script::new(&plan, &site()).expect("a plan");
    let mut random = Random::new(1);
    let turns: Vec<u32> = (0..7).map(|n| script.choose(n, &mut random)).collect();
    assert_eq!(turns, [0, 1, 2, 0, 1, 2, 0]);
    plan.is_weighted = true;
    let script = Script::new(&plan, &site()).expect("a plan");
    let mut counts = [0.0_f64; 3];
    for number in 0..40_000 {
        let chosen = script.choose(number, &mut Random::part(5, number));
        counts[usize::try_from(chosen).unwrap()] += 1.0 / 40_000.0;
    }
    assert!((counts[0] - 0.25).abs() < 0.01, "{counts:?}");
    assert!(counts[1].abs() < 1e-9, "{counts:?}");
}

#[test]
fn plans_that_cannot_be_sent() {
    let with = |session: SessionPlan| Plan {
        sessions: vec![session],
        is_weighted: true,
    };
    let page = |request: RequestPlan| SessionPlan {
        pages: vec![PagePlan {
            base: request,
            ..PagePlan::default()
        }],
        ..SessionPlan::default()
    };
    let get = || page(RequestPlan::get("/"));
    let header = RequestPlan {
        headers: vec![("Connection".to_owned(), "close".to_owned())],
        ..RequestPlan::get("/")
    };
    let body = RequestPlan {
        body: Body::Filled(MAX_BODY + 1),
        ..RequestPlan::get("/")
    };
    let mut endless = get();
    endless.pages[0].think = Span::Exponential {
        mean: -1.0,
        cap: 1.0,
    };
    for (session, part) in [
        (SessionPlan::default(), "without a page"),
        (page(RequestPlan::get("x")), "begin with"),
        (page(header), "written by the generator"),
        (page(body), "16777217 bytes"),
        (endless, "think time"),
        (
            SessionPlan {
                parallel: 0,
                ..get()
            },
            "1 to 64",
        ),
        (SessionPlan { weight: 0, ..get() }, "all weights are 0"),
    ] {
        let error = Script::new(&with(session), &site()).expect_err(part);
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(
        Script::new(&Plan::default(), &site()),
        Err(CompileError::Empty)
    );
    let error = Script::new(&with(get()), &Site::new("a\r\nb")).expect_err("a host of two lines");
    assert!(error.to_string().contains("Host"), "{error}");
}
