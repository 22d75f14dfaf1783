//! Both halves of a transaction, in either order; what a record says.

use linkweir_engine::hash::flow_hash;
use linkweir_record::HttpState;
use linkweir_testkit::conversation::{Conversation, Side};
use std::time::Duration;

use super::support::{answer, get, look, observe, together};
use crate::HttpConfig;

#[test]
fn every_field_of_a_record() {
    let mut talk = Conversation::v4(40_001);
    talk.handshake().client_sends(
        "POST /form?a=1|2 HTTP/1.1\r\nhost:  shop.example.test:8080 \r\nACCEPT: */*\r\n\
         USER-AGENT: Agent/1.0 (with spaces | bars)\r\nContent-Length: 5\r\n\r\nhello",
    );
    talk.wait(Duration::from_micros(1234));
    talk.server_sends(
        "HTTP/1.0 404 Not Found Here\r\ncontent-type: text/html; charset=utf-8\r\n\
         content-length: 3\r\n\r\nno!",
    );
    talk.fin(Side::Server).fin(Side::Client);
    let outcome = look(&talk);
    let record = outcome.only();
    let (client, server) = (
        "192.0.2.1".parse().unwrap(),
        "198.51.100.2".parse().unwrap(),
    );
    assert_eq!(
        (record.row.client_ip, record.row.client_port),
        (client, 40_001)
    );
    assert_eq!((record.row.server_ip, record.row.server_port), (server, 80));
    let request_ns = Conversation::START_NS + 3 * Conversation::SPACING_NS;
    assert_eq!(record.row.request_ts_ns, Some(request_ns));
    assert_eq!(record.row.response_ts_ns, Some(request_ns + 2_234_000));
    assert_eq!(record.row.response_time_ns(), Some(2_234_000));
    assert_eq!(record.row.status_code, Some(404));
    assert_eq!(record.row.version, (1, 0), "of the response");
    assert_eq!(record.row.state, HttpState::Complete);
    assert_eq!(
        record.row.request_bytes,
        Some(talk.segments()[3].payload.len() as u64)
    );
    assert_eq!(
        record.row.response_bytes,
        Some(talk.segments()[4].payload.len() as u64)
    );
    assert_eq!(record.row.ttlb_ns, None, "only on demand");
    assert_eq!(
        (record.row.interim_responses, record.row.retransmissions),
        (0, 0)
    );
    assert_eq!(record.row.vlan, None);
    assert_eq!(
        record.row.flow_hash,
        flow_hash((client, 40_001), (server, 80))
    );
    assert_eq!(record.method, "POST");
    assert_eq!(record.uri, "/form?a=1|2");
    assert_eq!(record.host, "shop.example.test:8080");
    assert_eq!(record.user_agent, "Agent/1.0 (with spaces | bars)");
    assert_eq!(record.reason_phrase, "Not Found Here");
    assert_eq!(record.content_type, "text/html; charset=utf-8");
    let stats = &outcome.stats;
    assert_eq!(
        (stats.requests, stats.responses, stats.transactions),
        (1, 1, 1)
    );
    assert_eq!(stats.methods().collect::<Vec<_>>(), [(&b"POST"[..], 1)]);
    assert_eq!(stats.status_codes().collect::<Vec<_>>(), [(404, 1)]);
    assert_eq!(stats.response_time.max(), Some(2_234_000));
}

#[test]
fn a_response_before_its_request() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a")).server_sends(answer(200, 10));
    let forward = look(&talk);
    talk.exchange(0, 1);
    let backward = look(&talk);
    assert_eq!(backward.short(), ["complete /a 200"]);
    let (there, back) = (forward.only(), backward.only());
    assert_eq!(back.row.response_time_ns(), Some(0), "never negative");
    assert_eq!(back.row.request_ts_ns, there.row.response_ts_ns);
    assert_eq!(back.row.response_bytes, there.row.response_bytes);
    assert_eq!(
        (&back.content_type, &back.uri),
        (&there.content_type, &there.uri)
    );
}

#[test]
fn halves_alone() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/lonely"));
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["unanswered /lonely"]);
    let row = &outcome.only().row;
    assert_eq!(
        (row.response_ts_ns, row.status_code, row.response_bytes),
        (None, None, None)
    );
    assert_eq!(outcome.stats.unanswered, 1);

    let mut talk = Conversation::v4(40_000);
    talk.server_sends(answer(503, 4));
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["orphan 503"]);
    let record = outcome.only();
    assert_eq!(record.row.request_ts_ns, None);
    assert_eq!(
        record.row.client_port, 40_000,
        "who asked is known all the same"
    );
    assert_eq!(record.row.response_bytes, Some(answer(503, 4).len() as u64));
    assert_eq!(outcome.stats.orphans, 1);
}

#[test]
fn a_kept_alive_connection_and_others_beside_it() {
    let talks: Vec<_> = (0..20)
        .map(|n| {
            let mut talk = Conversation::v4(40_000 + n)
                .starting_at(Conversation::START_NS + u64::from(n) * 777);
            for k in 0..10_usize {
                // Bodies in several segments, the last of which begins like nothing in HTTP.
                talk.client_sends(get(&format!("/{n}/{k}")))
                    .server_sends(answer(200 + n, k * 500));
            }
            talk
        })
        .collect();
    let outcome = observe(&HttpConfig::default(), &together(&talks), talks[0].link());
    assert_eq!(outcome.records.len(), 200);
    for record in &outcome.records {
        let n = record.row.client_port - 40_000;
        assert!(record.uri.starts_with(&format!("/{n}/")), "{record:?}");
        assert_eq!(record.row.status_code, Some(200 + n));
        assert_eq!(
            record.row.response_time_ns(),
            Some(Conversation::SPACING_NS)
        );
    }
}

#[test]
fn connections_that_differ_in_one_part_of_the_key_do_not_meet() {
    let mut asked = Conversation::v4(40_000);
    asked.client_sends(get("/a"));
    // Same numbers, another port; same ports, another number.
    let mut other = Conversation::v4(40_001);
    other
        .client_sends("")
        .skips(Side::Client, get("/a").len())
        .server_sends(answer(200, 0));
    let mut later = Conversation::v4(40_000).numbered(1001, 500_002);
    later.server_sends(answer(201, 0));
    let frames = together(&[asked, other, later]);
    let outcome = observe(
        &HttpConfig::default(),
        &frames,
        linkweir_wire::LinkType::ETHERNET,
    );
    let mut short = outcome.short();
    short.sort();
    assert_eq!(short, ["orphan 200", "orphan 201", "unanswered /a"]);
}

#[test]
fn what_is_not_http_is_left_alone() {
    let mut talk = Conversation::v4(40_000);
    for bytes in [
        &b"GET /\r\n"[..],
        b"GET / HTTP/2.0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"get lost, everybody\r\n\r\n",
        b"\0\0\0\0\0\0",
        b"\r\n\r\n",
        b" GET / HTTP/1.1\r\n\r\n",
    ] {
        talk.client_sends(bytes)
            .server_sends("HTTP/2 200\r\n\r\n")
            .server_sends(bytes);
    }
    let outcome = look(&talk);
    assert_eq!(outcome.short(), [""; 0]);
    assert_eq!((outcome.stats.requests, outcome.stats.responses), (0, 0));
}

#[test]
fn unusual_but_good_heads() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends("PROPFIND http://dav.example.test/x y HTTP/1.1\r\n\r\n")
        .server_sends("HTTP/1.1 207\r\nContent-Length: 0\r\n\r\n")
        .client_sends("BREW /pot HTTP/1.0\nHost: tea.test\n\n")
        .server_sends("HTTP/1.1 418 I'm a teapot\n\n")
        .client_sends("OPTIONS * HTTP/1.1\r\nHost: all.test\r\n\r\n")
        .server_sends("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n");
    let outcome = look(&talk);
    assert_eq!(
        outcome.short(),
        [
            "complete http://dav.example.test/x y 207",
            "complete /pot 418",
            "complete * 200"
        ]
    );
    let hosts: Vec<_> = outcome.records.iter().map(|r| r.host.as_str()).collect();
    assert_eq!(hosts, ["dav.example.test", "tea.test", "all.test"]);
    let methods: Vec<_> = outcome.records.iter().map(|r| r.method.as_str()).collect();
    assert_eq!(methods, ["PROPFIND", "BREW", "OPTIONS"]);
    assert_eq!(outcome.records[1].reason_phrase, "I'm a teapot");
}

/// Behind a head in the same segment and behind the tail of a body that began in another.
#[test]
fn a_response_that_nobody_asked_for_is_an_orphan_wherever_it_begins() {
    for body in [0, 10, 1400, 3000, 100_000] {
        for unasked in [0, 700, 5000] {
            let mut talk = Conversation::v4(40_000);
            talk.client_sends(get("/a"))
                .server_sends(answer(200, body) + &answer(408, unasked))
                .client_sends(get("/b"))
                .server_sends(answer(201, 3));
            let mut short = look(&talk).short();
            short.sort();
            let expected = ["complete /a 200", "complete /b 201", "orphan 408"];
            assert_eq!(short, expected, "{body} {unasked}");
        }
    }
}

/// The length in a response to HEAD is not that of anything behind it, though its request comes later.
#[test]
fn an_answer_to_head_hides_nothing_of_the_next() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a").replace("GET", "HEAD"))
        .server_sends("HTTP/1.1 200 Fine\r\nContent-Length: 20\r\n\r\n")
        .client_sends(get("/b"))
        .server_sends(answer(201, 10));
    talk.exchange(0, 1).exchange(0, 3);
    let mut short = look(&talk).short();
    short.sort();
    assert_eq!(short, ["complete /a 200", "complete /b 201"]);
}
