//! Heads that span segments, in every cut and order.

use std::time::Duration;

use linkweir_testkit::conversation::{Conversation, Side};

use super::support::{Outcome, Record, answer, get, look, orders};

const REQUEST: &str = "POST /a/b?c=d HTTP/1.1\r\nHost: www.example.test\r\n\
    User-Agent: Agent/1 (x)\r\nContent-Length: 4\r\n\r\nbody";
const RESPONSE: &str = "HTTP/1.1 201 Made It\r\nServer: s\r\nContent-Type: text/x\r\n\
    Content-Length: 6\r\n\r\nanswer";

/// One exchange with both messages cut; segments of one message at one time.
fn cut(request_cuts: &[usize], response_cuts: &[usize]) -> Conversation {
    let mut talk = Conversation::v4(40_000).spaced(0);
    talk.sends(Side::Client, REQUEST.as_bytes(), request_cuts)
        .wait(Duration::from_millis(5))
        .sends(Side::Server, RESPONSE.as_bytes(), response_cuts);
    talk
}

fn whole() -> Outcome {
    look(&cut(&[], &[]))
}

#[test]
fn a_head_cut_at_every_byte() {
    let expected = whole().only().clone();
    for at in 1..REQUEST.len() {
        let outcome = look(&cut(&[at], &[]));
        assert_eq!(outcome.only(), &expected, "request cut at {at}");
        assert_eq!(outcome.stats.truncated_heads, 0);
    }
    for at in 1..RESPONSE.len() {
        let outcome = look(&cut(&[], &[at]));
        assert_eq!(outcome.only(), &expected, "response cut at {at}");
        assert_eq!(outcome.stats.truncated_heads, 0);
    }
}

#[test]
fn heads_in_segments_of_one_byte() {
    let every: Vec<usize> = (1..RESPONSE.len().max(REQUEST.len())).collect();
    let outcome = look(&cut(&every, &every));
    assert_eq!(outcome.only(), whole().only());
}

#[test]
fn a_head_has_the_time_of_its_first_segment() {
    let mut talk = Conversation::v4(40_000);
    talk.sends(Side::Client, REQUEST.as_bytes(), &[20, 40])
        .sends(Side::Server, RESPONSE.as_bytes(), &[10, 30]);
    let outcome = look(&talk);
    let row = &outcome.only().row;
    assert_eq!(row.request_ts_ns, Some(talk.segments()[0].at_ns));
    assert_eq!(row.response_ts_ns, Some(talk.segments()[3].at_ns));
}

#[test]
fn a_target_of_sixty_thousand_characters_is_whole() {
    let target = format!("/{}", "long-".repeat(12_000));
    for (one, other) in [(0, 0), (5, 6), (0, 1), (20, 23)] {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(get(&target));
        talk.exchange(one, other).server_sends(answer(414, 0));
        let outcome = look(&talk);
        assert_eq!(
            outcome.only().uri,
            target,
            "segments {one} and {other} exchanged"
        );
        assert_eq!(outcome.only().row.status_code, Some(414));
        assert_eq!(outcome.stats.truncated_heads, 0);
    }
}

#[test]
fn a_head_beyond_the_bound_counts_once_and_is_truncated() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get(&format!("/{}", "x".repeat(100_000))))
        .server_sends(answer(414, 0));
    // The connection goes on.
    talk.client_sends(get("/next")).server_sends(answer(200, 0));
    let outcome = look(&talk);
    assert_eq!(outcome.stats.requests, 2, "{:?}", outcome.stats);
    assert_eq!(outcome.stats.truncated_heads, 1);
    assert_eq!(outcome.stats.transactions, 2);
    assert!(outcome.records[0].uri.len() > 60_000);
}

fn without_time(record: &Record) -> Record {
    let mut record = record.clone();
    record.row.request_ts_ns = None;
    record.row.response_ts_ns = None;
    record
}

#[test]
fn segments_of_a_request_head_in_any_order() {
    let expected = without_time(whole().only());
    for cuts in [
        vec![30, 60],
        vec![10, 11],
        vec![12, 40, 70],
        vec![5, 23, 24],
    ] {
        for order in orders(cuts.len() + 1) {
            let mut talk = Conversation::v4(40_000);
            talk.sends(Side::Client, REQUEST.as_bytes(), &cuts);
            for (at, place) in order.iter().enumerate() {
                talk.segments_mut()[at].at_ns =
                    Conversation::START_NS + *place as u64 * Conversation::SPACING_NS;
            }
            talk.wait(Duration::from_millis(5)).server_sends(RESPONSE);
            let outcome = look(&talk);
            let record = outcome.only();
            assert_eq!(
                without_time(record),
                expected,
                "{cuts:?} in order {order:?}"
            );
            assert_eq!(outcome.stats.truncated_heads, 0);
        }
    }
}

#[test]
fn later_segments_of_a_response_head_in_any_order() {
    let expected = without_time(whole().only());
    let cuts = [9, 30, 55];
    for order in orders(3) {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(REQUEST)
            .sends(Side::Server, RESPONSE.as_bytes(), &cuts);
        let first = talk.segments()[1].at_ns;
        for (at, place) in order.iter().enumerate() {
            talk.segments_mut()[2 + at].at_ns = first + (*place as u64 + 1) * 1000;
        }
        let outcome = look(&talk);
        assert_eq!(without_time(outcome.only()), expected, "order {order:?}");
    }
}

#[test]
fn overlapping_retransmissions_within_a_head() {
    let expected = without_time(whole().only());
    let bytes = REQUEST.as_bytes();
    for (from, to) in [
        (0, 30),
        (10, 50),
        (25, 60),
        (0, bytes.len()),
        (30, 60),
        (29, 31),
    ] {
        let mut talk = Conversation::v4(40_000);
        talk.sends(Side::Client, bytes, &[30, 60]);
        // Between the second and the third: what was sent, cut in another way.
        let mut again = talk.segments()[1].clone();
        again.seq.0 = talk.segments()[0].seq.0 + u32::try_from(from).unwrap();
        again.payload = bytes[from..to].to_vec();
        again.at_ns += 1;
        talk.segments_mut().push(again);
        talk.server_sends(RESPONSE);
        let outcome = look(&talk);
        let mut record = without_time(outcome.only());
        record.row.retransmissions = 0;
        assert_eq!(record, expected, "{from}..{to} again");
        assert_eq!(outcome.stats.requests, 1);
    }
}

#[test]
fn a_head_whose_rest_is_lost_is_paired_and_counted() {
    let mut talk = Conversation::v4(40_000);
    talk.sends(Side::Client, REQUEST.as_bytes(), &[30, 60])
        .server_sends(answer(200, 0));
    talk.lose(1);
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /a/b?c=d 200"]);
    assert_eq!(outcome.stats.truncated_heads, 1);
    assert_eq!(outcome.only().row.request_bytes, None, "not known");

    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a"))
        .sends(Side::Server, RESPONSE.as_bytes(), &[25, 50]);
    talk.lose(2)
        .client_sends(get("/b"))
        .server_sends(answer(200, 0));
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /a 201", "complete /b 200"]);
    assert_eq!(outcome.stats.truncated_heads, 1);
    assert_eq!(outcome.records[0].reason_phrase, "Made It");
}

/// RFC 9112 sec. 2.2: a server passes over empty lines before a request line.
#[test]
fn empty_lines_before_a_request_line() {
    for lines in ["\r\n", "\n", "\r\n\r\n", "\n\r\n\n"] {
        let second = format!("{lines}{}", get("/b"));
        for cut in 1..second.len() {
            let mut talk = Conversation::v4(40_000);
            talk.client_sends(format!("{lines}{}", get("/a")))
                .server_sends(answer(200, 0))
                .sends(Side::Client, second.as_bytes(), &[cut])
                .server_sends(answer(201, 0));
            let outcome = look(&talk);
            let lines = lines.escape_debug();
            assert_eq!(
                outcome.short(),
                ["complete /a 200", "complete /b 201"],
                "{lines} cut at {cut}"
            );
            assert_eq!(outcome.stats.truncated_heads, 0, "{lines} cut at {cut}");
            let bytes = outcome.records.iter().map(|r| r.row.request_bytes);
            let len = get("/a").len() as u64;
            assert!(bytes.eq([Some(len); 2]), "they are not part of a message");
        }
    }
}

/// Some clients send one behind a body, where its length does not count it.
#[test]
fn empty_lines_between_requests_of_one_stream() {
    let requests = [REQUEST, "\r\n", REQUEST, "\n\r\n", REQUEST].concat();
    let answers = [RESPONSE; 3].concat();
    for cut in 1..requests.len() {
        let mut talk = Conversation::v4(40_000);
        talk.sends(Side::Client, requests.as_bytes(), &[cut])
            .server_sends(&answers);
        let outcome = look(&talk);
        assert_eq!(
            outcome.short(),
            ["complete /a/b?c=d 201"; 3],
            "cut at {cut}"
        );
    }
}

#[test]
fn empty_lines_before_a_request_come_again_or_late() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(format!("\r\n{}", get("/a")))
        .server_sends(answer(200, 0));
    talk.repeat(0, 10).exchange(0, 2);
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /a 200"]);
    assert_eq!(outcome.stats.retransmitted_requests, 1);
}

#[test]
fn empty_lines_before_anything_else_are_no_request() {
    for text in [
        "\r\n",
        "\n\n\n",
        "\r\ntext of a body\r\n",
        "\r\n GET / HTTP/1.1\r\n\r\n",
    ] {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(text);
        assert_eq!(look(&talk).stats.requests, 0, "{text:?}");
    }
}

/// What begins with the end of a head and goes on with the next one looks like an empty line.
#[test]
fn the_end_of_a_head_again_with_the_next_one() {
    let (first, second) = (get("/a"), get("/b"));
    for end in 1..4 {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(&first)
            .server_sends(answer(200, 0))
            .sends(Side::Client, second.as_bytes(), &[30])
            .server_sends(answer(201, 0));
        let mut again = talk.segments()[2].clone();
        again.seq.0 -= end;
        again.payload = [
            &first.as_bytes()[first.len() - end as usize..],
            &again.payload,
        ]
        .concat();
        again.at_ns += 1;
        talk.segments_mut().push(again);
        let outcome = look(&talk);
        assert_eq!(outcome.short(), ["complete /a 200", "complete /b 201"]);
        assert_eq!(outcome.stats.truncated_heads, 0, "{end}");
    }
}

/// RFC 9112 sec. 5.2: a line that begins with white space goes on with the field before it.
#[test]
fn folded_fields_are_read() {
    let folded = "POST /a HTTP/1.1\r\nHost:\r\n www.example.test\r\nUser-Agent: Agent/1\r\n\t (x)\r\n  (y)\r\n\
        Content-Length:\r\n 5\r\n\r\nhello";
    let answers = "HTTP/1.1 201 Made It\r\nContent-Type: text/x;\r\n charset=y\r\n\
        Content-Length:\r\n \t6\r\n\r\nanswer";
    for gap in ["\r\n ", "\n ", "\r\n\t", " \r\n \r\n  "] {
        let (folded, answers) = (folded.replace("\r\n ", gap), answers.replace("\r\n ", gap));
        let requests = folded.clone() + &get("/b");
        let answers = answers + &answer(200, 0);
        for cut in 1..requests.len() {
            let mut talk = Conversation::v4(40_000).spaced(0);
            talk.sends(Side::Client, requests.as_bytes(), &[cut])
                .wait(Duration::from_millis(5))
                .sends(
                    Side::Server,
                    answers.as_bytes(),
                    &[cut.min(answers.len() - 1)],
                );
            let outcome = look(&talk);
            assert_eq!(
                outcome.short(),
                ["complete /a 201", "complete /b 200"],
                "cut at {cut}"
            );
            let [first, second] = &outcome.records[..] else {
                panic!();
            };
            assert_eq!(
                (first.method.as_str(), second.method.as_str()),
                ("POST", "GET")
            );
            assert_eq!(first.host, "www.example.test");
            assert_eq!(first.user_agent, "Agent/1 (x) (y)");
            assert_eq!(first.content_type, "text/x; charset=y");
            assert_eq!(first.row.request_bytes, Some(folded.len() as u64));
            let both = first.row.response_bytes.unwrap() + second.row.response_bytes.unwrap();
            assert_eq!(both, answers.len() as u64);
        }
    }
}

#[test]
fn a_body_behind_a_head_continues_no_field() {
    for body in [" 5\r\n\r\n", "\tGET / HTTP/1.1\r\n"] {
        let head = format!(
            "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(format!("{head}{body}"))
            .server_sends(answer(200, 0));
        let outcome = look(&talk);
        let bytes = (head.len() + body.len()) as u64;
        assert_eq!(outcome.only().row.request_bytes, Some(bytes));
    }
}

/// RFC 9112 sec. 6.3: where the end of a message cannot be told, neither can its length.
#[test]
fn no_length_where_none_can_be_known() {
    for fields in [
        "Content-Length: 4\r\nContent-Length: 5",
        "Content-Length: 4, 5",
        "Content-Length: 18446744073709551615",
        "Content-Length: 18446744073709551616",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\nContent-Length: 4",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: gzip\r\nContent-Length: 4",
    ] {
        let request = format!("POST /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\nbody");
        let response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nbody");
        for is_late in [false, true] {
            let mut talk = Conversation::v4(40_000);
            talk.client_sends(&request).server_sends(&response);
            if is_late {
                talk.exchange(0, 1);
            }
            let outcome = look(&talk);
            let row = &outcome.only().row;
            assert_eq!(outcome.short(), ["complete /a 200"]);
            assert_eq!(
                (row.request_bytes, row.response_bytes),
                (None, None),
                "{fields}"
            );
        }
        let mut talk = Conversation::v4(40_000);
        talk.server_sends(&response);
        assert_eq!(look(&talk).only().row.response_bytes, None, "{fields}");
    }
}

/// As it stands in a `Host` field: with its port.
#[test]
fn the_host_of_connect_is_the_authority() {
    for target in [
        "proxied.test:443",
        "proxied.test:443/",
        "http://proxied.test:443/",
    ] {
        for fields in ["", "Host: proxied.test:443\r\n"] {
            let mut talk = Conversation::v4(40_000);
            talk.client_sends(format!("CONNECT {target} HTTP/1.1\r\n{fields}\r\n"))
                .server_sends("HTTP/1.1 200 Connected\r\n\r\n");
            let outcome = look(&talk);
            assert_eq!(outcome.only().host, "proxied.test:443", "{target}");
            assert_eq!(outcome.only().uri, target);
        }
    }
}
