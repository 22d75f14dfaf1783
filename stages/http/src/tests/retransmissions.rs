//! Messages seen again: counted, and printed only on demand.

use linkweir_testkit::conversation::{Conversation, Side};

use super::support::{answer, get, look, look_with};
use crate::HttpConfig;

fn keeping() -> HttpConfig {
    HttpConfig {
        keep_duplicates: true,
        ..HttpConfig::default()
    }
}

#[test]
fn a_request_again_before_the_answer() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a"))
        .repeat(0, 10)
        .repeat(0, 20)
        .server_sends(answer(200, 0));
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /a 200"]);
    assert_eq!(
        (outcome.stats.requests, outcome.stats.retransmitted_requests),
        (1, 2)
    );
    assert_eq!(outcome.only().row.retransmissions, 2);
    assert_eq!(
        outcome.only().row.request_ts_ns,
        Some(Conversation::START_NS),
        "the first counts"
    );
    let kept = look_with(&keeping(), &talk);
    assert_eq!(
        kept.short(),
        ["unanswered /a", "unanswered /a", "complete /a 200"]
    );
    assert_eq!(kept.stats.requests, 1, "counters are the same");
    assert_eq!(kept.stats.retransmitted_requests, 2);
}

#[test]
fn a_request_and_a_response_again_after_the_answer() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a")).server_sends(answer(200, 0));
    talk.repeat(0, 5_000_000).repeat(1, 6_000_000);
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /a 200"]);
    let stats = &outcome.stats;
    assert_eq!((stats.requests, stats.responses), (1, 1));
    assert_eq!(
        (stats.retransmitted_requests, stats.retransmitted_responses),
        (1, 1)
    );
    let kept = look_with(&keeping(), &talk);
    assert_eq!(
        kept.short(),
        ["complete /a 200", "unanswered /a", "orphan 200"]
    );
}

#[test]
fn a_response_again_before_its_request() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a"))
        .server_sends(answer(200, 0))
        .repeat(1, 10);
    talk.delay(0, 5_000_000);
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /a 200"]);
    assert_eq!(
        (
            outcome.stats.responses,
            outcome.stats.retransmitted_responses
        ),
        (1, 1)
    );
    assert_eq!(outcome.only().row.retransmissions, 1);
}

#[test]
fn heads_that_span_segments_again() {
    for config in [HttpConfig::default(), keeping()] {
        let (request, response) = (get("/a"), answer(200, 0));
        let mut talk = Conversation::v4(40_000);
        talk.sends(Side::Client, request.as_bytes(), &[20]).sends(
            Side::Server,
            response.as_bytes(),
            &[30],
        );
        for at in 0..4 {
            talk.repeat(at, 20_000_000);
        }
        let outcome = look_with(&config, &talk);
        let stats = &outcome.stats;
        assert_eq!((stats.requests, stats.responses), (1, 1));
        assert_eq!(
            (stats.retransmitted_requests, stats.retransmitted_responses),
            (1, 1)
        );
        assert_eq!(stats.transactions, 1);
        if config.keep_duplicates {
            assert_eq!(outcome.short().len(), 3, "{:?}", outcome.short());
        } else {
            assert_eq!(outcome.short(), ["complete /a 200"]);
        }
    }
}

#[test]
fn a_whole_pipeline_again() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends([get("/a"), get("/b"), get("/c")].concat())
        .server_sends([answer(200, 5), answer(201, 5), answer(202, 5)].concat());
    talk.repeat(0, 500)
        .repeat(0, 10_000_000)
        .repeat(1, 11_000_000);
    let outcome = look(&talk);
    assert_eq!(
        outcome.short(),
        ["complete /a 200", "complete /b 201", "complete /c 202"]
    );
    assert_eq!(outcome.stats.requests, 3);
    assert_eq!(outcome.stats.retransmitted_requests, 6);
    assert_eq!(outcome.stats.retransmitted_responses, 3);
}

#[test]
fn an_unanswered_request_again_after_its_timeout_is_a_new_one() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a")).repeat(0, 100_000_000_000);
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["unanswered /a", "unanswered /a"]);
    assert_eq!(outcome.stats.requests, 2);
}

#[test]
fn the_same_request_with_new_numbers_is_no_retransmission() {
    let mut talk = Conversation::v4(40_000);
    for _ in 0..3 {
        talk.client_sends(get("/a")).server_sends(answer(304, 0));
    }
    let outcome = look(&talk);
    assert_eq!(outcome.stats.transactions, 3);
    assert_eq!(outcome.stats.retransmitted_requests, 0);
}

#[test]
fn ports_and_numbers_used_again_by_a_new_connection_an_hour_later() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a")).server_sends(answer(200, 0));
    talk.repeat(0, 3_600_000_000_000)
        .repeat(1, 3_600_000_000_000);
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /a 200", "complete /a 200"]);
}
