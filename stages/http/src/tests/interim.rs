//! 1xx responses: counted, and never taken for the answer.

use std::time::Duration;

use linkweir_testkit::conversation::Conversation;

use super::support::{answer, get, look};

const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";
const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
const EXPECTING: &str = "POST /up HTTP/1.1\r\nHost: h.test\r\nContent-Length: 4\r\n\
    Expect: 100-continue\r\n\r\n";

#[test]
fn continue_then_the_body_then_the_answer() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(EXPECTING)
        .server_sends(CONTINUE)
        .client_sends("body")
        .wait(Duration::from_millis(138))
        .server_sends(answer(201, 2));
    let outcome = look(&talk);
    let record = outcome.only();
    assert_eq!(record.short(), "complete /up 201");
    assert_eq!(record.row.interim_responses, 1);
    assert_eq!(
        record.row.response_time_ns(),
        Some(141_000_000),
        "to the final one"
    );
    assert_eq!(record.row.request_bytes, Some(EXPECTING.len() as u64 + 4));
    let stats = &outcome.stats;
    assert_eq!(
        (stats.requests, stats.responses, stats.interim_responses),
        (1, 2, 1)
    );
    assert_eq!(
        stats.status_codes().collect::<Vec<_>>(),
        [(100, 1), (201, 1)]
    );
}

#[test]
fn interim_and_final_in_one_segment() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a"))
        .server_sends([CONTINUE, HINTS, HINTS, &answer(200, 10)].concat())
        .client_sends(get("/b"))
        .server_sends(HINTS)
        .server_sends([HINTS, &answer(201, 0)].concat());
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /a 200", "complete /b 201"]);
    let interim: Vec<_> = outcome
        .records
        .iter()
        .map(|r| r.row.interim_responses)
        .collect();
    assert_eq!(interim, [3, 2]);
    assert_eq!(outcome.stats.interim_responses, 5);
    assert_eq!(outcome.stats.requests, 2);
}

#[test]
fn interim_before_its_request() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(EXPECTING)
        .server_sends(CONTINUE)
        .client_sends("body")
        .server_sends(answer(200, 0));
    // The request comes after the interim response, or after both.
    for by in [1_500_000, 10_000_000] {
        let mut late = talk.clone();
        late.delay(0, by);
        let outcome = look(&late);
        assert_eq!(outcome.short(), ["complete /up 200"], "{by}");
        assert_eq!(outcome.stats.interim_responses, 1);
        assert_eq!(outcome.stats.requests, 1);
    }
}

#[test]
fn interim_seen_again() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(EXPECTING)
        .server_sends(CONTINUE)
        .repeat(1, 10);
    talk.client_sends("body").server_sends(answer(200, 0));
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /up 200"]);
    assert_eq!(outcome.only().row.interim_responses, 1);
    assert_eq!(outcome.stats.interim_responses, 1);
    assert_eq!(outcome.stats.retransmitted_responses, 1);
}

#[test]
fn the_request_again_after_the_interim_response() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(EXPECTING)
        .server_sends(CONTINUE)
        .repeat(0, 1_500_000);
    talk.client_sends("body").server_sends(answer(200, 0));
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /up 200"]);
    assert_eq!(outcome.stats.requests, 1);
    assert_eq!(outcome.stats.retransmitted_requests, 1);
}

#[test]
fn interim_responses_in_a_pipeline() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends([get("/a"), get("/b"), get("/c")].concat())
        .server_sends([HINTS, &answer(200, 1)].concat())
        .server_sends(HINTS)
        .server_sends(answer(201, 1))
        .server_sends(answer(202, 1));
    let outcome = look(&talk);
    assert_eq!(
        outcome.short(),
        ["complete /a 200", "complete /b 201", "complete /c 202"]
    );
    let interim: Vec<_> = outcome
        .records
        .iter()
        .map(|r| r.row.interim_responses)
        .collect();
    assert_eq!(interim, [1, 1, 0]);
}

#[test]
fn only_an_interim_response_leaves_the_request_unanswered() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(EXPECTING).server_sends(CONTINUE);
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["unanswered /up"]);
    assert_eq!(outcome.only().row.interim_responses, 1);
}

#[test]
fn an_interim_response_that_nobody_asked_for_gives_no_record() {
    let mut talk = Conversation::v4(40_000);
    talk.server_sends(CONTINUE);
    let outcome = look(&talk);
    assert_eq!(outcome.short(), [""; 0]);
    assert_eq!(
        (outcome.stats.responses, outcome.stats.interim_responses),
        (1, 1)
    );
}

#[test]
fn switching_protocols_is_final() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends("GET /chat HTTP/1.1\r\nUpgrade: websocket\r\n\r\n")
        .server_sends("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
        .client_sends([0x81, 0x85, 1, 2, 3, 4, 5, 6, 7, 8, 9])
        .server_sends([0x81, 5, b'h', b'e', b'l', b'l', b'o']);
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /chat 101"]);
    assert_eq!(outcome.stats.interim_responses, 0);
    assert_eq!(outcome.only().row.response_bytes, None, "without end");
}

#[test]
fn interim_and_final_in_one_segment_before_their_request() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a"))
        .server_sends([HINTS, &answer(200, 3)].concat())
        .exchange(0, 1);
    talk.client_sends(get("/b")).server_sends(answer(201, 3));
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /a 200", "complete /b 201"]);
    assert_eq!(outcome.stats.interim_responses, 1);
}

#[test]
fn an_interim_response_sent_again_together_with_the_final_one() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(EXPECTING)
        .server_sends(CONTINUE)
        .client_sends("body")
        .server_sends(answer(200, 0));
    let (interim, last) = (talk.segments()[1].clone(), talk.segments()[3].clone());
    let mut joined = interim;
    joined.at_ns = last.at_ns;
    joined.payload.extend_from_slice(&last.payload);
    talk.segments_mut()[3] = joined;
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /up 200"]);
    assert_eq!(outcome.stats.interim_responses, 1);
    assert_eq!(outcome.stats.retransmitted_responses, 1);
}
