//! Time to last byte, and responses without a body.

use std::time::Duration;

use linkweir_testkit::conversation::{Conversation, Side};

use super::support::{Outcome, answer, chunked_answer, get, look, look_with};
use crate::HttpConfig;

const MS: u64 = 1_000_000;

fn timed(talk: &Conversation) -> Outcome {
    let config = HttpConfig {
        ttlb: true,
        ..HttpConfig::default()
    };
    let with = look_with(&config, talk);
    let without = look(talk);
    assert_eq!(
        with.stats.transactions, without.stats.transactions,
        "the same pairs"
    );
    assert_eq!(with.records.len(), without.records.len());
    with
}

fn ttlbs(outcome: &Outcome) -> Vec<Option<u64>> {
    outcome.records.iter().map(|r| r.row.ttlb_ns).collect()
}

#[test]
fn a_body_with_a_length() {
    for body in [0, 1, 1000, 1460, 10_000] {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(get("/a")).server_sends(answer(200, body));
        let last = talk.segments().last().unwrap().at_ns;
        talk.wait(Duration::from_secs(5)).fin(Side::Server);
        let outcome = timed(&talk);
        assert_eq!(
            ttlbs(&outcome),
            [Some(last - Conversation::START_NS)],
            "{body}"
        );
    }
}

#[test]
fn a_chunked_body() {
    for sizes in [&[][..], &[5], &[3000], &[1000, 1000, 1000, 1000], &[1440]] {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(get("/a"))
            .server_sends(chunked_answer(sizes));
        let last = talk.segments().last().unwrap().at_ns;
        talk.wait(Duration::from_secs(2))
            .client_sends(get("/b"))
            .server_sends(answer(200, 0));
        let outcome = timed(&talk);
        let first = outcome.records.iter().find(|r| r.uri == "/a").unwrap();
        assert_eq!(
            first.row.ttlb_ns,
            Some(last - Conversation::START_NS),
            "{sizes:?}"
        );
    }
}

#[test]
fn a_body_until_the_connection_closes() {
    for (closing, extra) in [(true, 0), (false, 0), (true, 7)] {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(get("/a"))
            .server_sends("HTTP/1.0 200 OK\r\n\r\n".to_owned() + &"z".repeat(5000));
        if extra > 0 {
            // The last bytes come with the FIN.
            talk.server_sends("z".repeat(extra));
            let segment = talk.segments_mut().last_mut().unwrap();
            segment.flags = segment.flags | linkweir_wire::TcpFlags::FIN;
        }
        let last = talk.segments().last().unwrap().at_ns;
        talk.wait(Duration::from_secs(3));
        if closing && extra == 0 {
            talk.fin(Side::Server);
        }
        let outcome = timed(&talk);
        assert_eq!(
            ttlbs(&outcome),
            [Some(last - Conversation::START_NS)],
            "{closing} {extra}"
        );
        assert_eq!(outcome.only().row.response_bytes, None);
    }
}

#[test]
fn no_body_whatever_the_head_says() {
    for (method, response) in [
        (
            "HEAD",
            answer(200, 0).replace("Length: 0", "Length: 100000"),
        ),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        ),
        ("HEAD", "HTTP/1.1 200 OK\r\n\r\n".to_owned()),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n".to_owned()),
        ("GET", answer(304, 0).replace("Length: 0", "Length: 500")),
    ] {
        let mut talk = Conversation::v4(40_000);
        let ask = |target: &str| get(target).replacen("GET", method, 1);
        // Pipelined: the next response begins right behind the head.
        talk.client_sends([ask("/a"), ask("/b")].concat())
            .server_sends(response.repeat(2));
        let outcome = timed(&talk);
        assert_eq!(outcome.stats.transactions, 2, "{method} {response}");
        assert_eq!(ttlbs(&outcome), [Some(MS), Some(MS)]);
        let bytes: Vec<_> = outcome
            .records
            .iter()
            .map(|r| r.row.response_bytes)
            .collect();
        assert_eq!(bytes, [Some(response.len() as u64); 2]);
    }
}

#[test]
fn a_tunnel_has_no_end_that_http_knows() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends("CONNECT db.example.test:5432 HTTP/1.1\r\nHost: db.example.test\r\n\r\n")
        .server_sends("HTTP/1.1 200 Connection Established\r\n\r\n")
        .client_sends("hello")
        .server_sends("there");
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete db.example.test:5432 200"]);
    assert_eq!(outcome.only().method, "CONNECT");
    assert_eq!(outcome.only().row.response_bytes, None);
}

#[test]
fn the_last_segment_is_lost() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a")).server_sends(answer(200, 4000));
    let last = talk.segments().len() - 1;
    talk.lose(last).wait(Duration::from_secs(1));
    assert_eq!(ttlbs(&timed(&talk)), [None], "not known, but written");
    talk.client_sends(get("/b")).server_sends(answer(201, 10));
    let outcome = timed(&talk);
    let mut told: Vec<_> = outcome
        .records
        .iter()
        .map(|r| (r.short(), r.row.ttlb_ns))
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            ("complete /a 200".to_owned(), None),
            ("complete /b 201".to_owned(), Some(MS))
        ]
    );
}

#[test]
fn a_segment_in_between_is_lost_or_comes_late() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a")).server_sends(answer(200, 6000));
    let last = talk.segments().last().unwrap().at_ns - Conversation::START_NS;
    let mut lossy = talk.clone();
    lossy.lose(3);
    assert_eq!(ttlbs(&timed(&lossy)), [Some(last)]);
    talk.exchange(2, 3);
    assert_eq!(ttlbs(&timed(&talk)), [Some(last)]);
}

#[test]
fn bodies_of_a_pipeline() {
    let mut talk = Conversation::v4(40_000).mss(1000);
    talk.client_sends([get("/a"), get("/b"), get("/c")].concat());
    let stream = [answer(200, 1500), answer(201, 50), answer(202, 2500)];
    talk.server_sends(stream.concat());
    let outcome = timed(&talk);
    assert_eq!(
        outcome.short(),
        ["complete /a 200", "complete /b 201", "complete /c 202"]
    );
    let mut end = 0;
    for (record, message) in outcome.records.iter().zip(&stream) {
        end += message.len();
        // Segment 0 is the requests.
        let last = talk.segments()[1 + (end - 1) / 1000].at_ns;
        assert_eq!(
            record.row.ttlb_ns,
            Some(last - Conversation::START_NS),
            "{}",
            record.uri
        );
    }
}

#[test]
fn a_connection_that_breaks_off() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a")).server_sends(answer(200, 6000));
    let last = talk.segments().len() - 1;
    talk.lose(last).rst(Side::Server);
    let outcome = timed(&talk);
    assert_eq!(outcome.short(), ["complete /a 200"]);
    assert_eq!(ttlbs(&outcome), [None]);
}

#[test]
fn a_body_that_never_ends_times_out() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a"))
        .server_sends(chunked_answer(&[3000]));
    let last = talk.segments().len() - 1;
    talk.lose(last);
    let mut other = Conversation::v4(40_001).starting_at(talk.now_ns() + 200_000_000_000);
    other.client_sends(get("/b")).server_sends(answer(201, 0));
    let config = HttpConfig {
        ttlb: true,
        ..HttpConfig::default()
    };
    let frames = super::support::together(&[talk.clone(), other]);
    let outcome = super::support::observe(&config, &frames, talk.link());
    assert_eq!(outcome.short(), ["complete /a 200", "complete /b 201"]);
    assert_eq!(outcome.records[0].row.ttlb_ns, None);
}

#[test]
fn a_last_chunk_cut_at_every_byte() {
    for trailer in ["", "Expires: never\r\n"] {
        let text = chunked_answer(&[10]);
        let text = format!("{}{trailer}\r\n", text.strip_suffix("\r\n").unwrap());
        let head = text.find("\r\n\r\n").unwrap() + 4;
        for cut in head..text.len() {
            for then_closes in [true, false] {
                let mut talk = Conversation::v4(40_000);
                talk.client_sends(get("/a"))
                    .sends(Side::Server, text.as_bytes(), &[cut]);
                let last = talk.segments().last().unwrap().at_ns;
                talk.wait(Duration::from_secs(1));
                if then_closes {
                    talk.fin(Side::Server).fin(Side::Client);
                } else {
                    talk.client_sends(get("/b")).server_sends(answer(200, 0));
                }
                let outcome = timed(&talk);
                let first = outcome.records.iter().find(|r| r.uri == "/a").unwrap();
                assert_eq!(
                    first.row.ttlb_ns,
                    Some(last - Conversation::START_NS),
                    "{trailer:?} cut at {cut}, closes: {then_closes}"
                );
            }
        }
    }
}

#[test]
fn a_body_longer_than_the_sequence_space_sees() {
    for length in [0x7fff_ffff_u64, 0x8000_0000, 3_000_000_000, 5_000_000_000] {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(get("/iso")).server_sends(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}",
            "x".repeat(1000)
        ));
        talk.server_sends("y".repeat(5000));
        let outcome = timed(&talk);
        assert_eq!(
            ttlbs(&outcome),
            [None],
            "{length}: the last byte was not seen"
        );
        let row = &outcome.only().row;
        assert!(row.response_bytes > Some(length));
    }
}

#[test]
fn a_response_before_its_request_has_its_whole_body() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a")).server_sends(answer(200, 100));
    talk.exchange(0, 1)
        .wait(Duration::from_secs(1))
        .fin(Side::Server);
    assert_eq!(ttlbs(&timed(&talk)), [Some(0)]);
}
