//! Sequence numbers that wrap, and clocks that run backwards.

use std::time::Duration;

use linkweir_testkit::conversation::{Conversation, Side};

use super::support::{answer, get, look};

/// Every place of the wrap within the first bytes of both sides.
fn starts() -> impl Iterator<Item = (u32, u32)> {
    (0..120_u32).map(|n| (0_u32.wrapping_sub(n), 0_u32.wrapping_sub(n * 7 % 120)))
}

#[test]
fn a_transaction_over_the_wrap() {
    for (client, server) in starts() {
        let mut talk = Conversation::v4(40_000).numbered(client, server);
        talk.client_sends(get("/a")).server_sends(answer(200, 3));
        talk.client_sends(get("/b")).server_sends(answer(201, 3));
        let outcome = look(&talk);
        assert_eq!(
            outcome.short(),
            ["complete /a 200", "complete /b 201"],
            "{client} {server}"
        );
    }
}

#[test]
fn heads_that_span_segments_over_the_wrap() {
    for (client, server) in starts() {
        let mut talk = Conversation::v4(40_000).numbered(client, server).mss(16);
        talk.client_sends(get("/a")).server_sends(answer(200, 3));
        talk.exchange(1, 2);
        let outcome = look(&talk);
        assert_eq!(outcome.short(), ["complete /a 200"], "{client} {server}");
        assert_eq!(outcome.stats.truncated_heads, 0);
    }
}

#[test]
fn a_pipeline_over_the_wrap() {
    for (client, server) in starts() {
        let mut talk = Conversation::v4(40_000).numbered(client, server).mss(150);
        talk.client_sends(get("/a"))
            .client_sends(get("/b"))
            .client_sends(get("/c"));
        talk.server_sends([answer(200, 30), answer(201, 200), answer(202, 1)].concat());
        let outcome = look(&talk);
        assert_eq!(
            outcome.short(),
            ["complete /a 200", "complete /b 201", "complete /c 202"],
            "{client} {server}"
        );
    }
}

#[test]
fn an_interim_response_over_the_wrap() {
    for (client, server) in starts() {
        let mut talk = Conversation::v4(40_000).numbered(client, server);
        talk.client_sends(get("/a"))
            .server_sends("HTTP/1.1 100 Continue\r\n\r\n");
        talk.repeat(0, 100).server_sends(answer(200, 0));
        let outcome = look(&talk);
        assert_eq!(outcome.short(), ["complete /a 200"], "{client} {server}");
        assert_eq!(outcome.stats.retransmitted_requests, 1);
    }
}

#[test]
fn a_retransmission_over_the_wrap() {
    for (client, server) in starts() {
        let mut talk = Conversation::v4(40_000).numbered(client, server);
        talk.client_sends(get("/a")).server_sends(answer(200, 0));
        talk.repeat(0, 5_000_000).repeat(1, 5_000_000);
        let outcome = look(&talk);
        assert_eq!(outcome.stats.transactions, 1, "{client} {server}");
        assert_eq!(outcome.stats.retransmitted_requests, 1);
        assert_eq!(outcome.stats.retransmitted_responses, 1);
    }
}

#[test]
fn time_that_runs_backwards() {
    let mut talk = Conversation::v4(40_000);
    for n in 0..20 {
        talk.client_sends(get(&format!("/{n}")))
            .server_sends(answer(200, 0));
    }
    let count = talk.segments().len() as u64;
    for (at, segment) in (0..).zip(talk.segments_mut()) {
        segment.at_ns = Conversation::START_NS + (count - at) * 1_000_000;
    }
    let frames = talk.frames_as_listed();
    let outcome = super::support::observe(&crate::HttpConfig::default(), &frames, talk.link());
    assert_eq!(outcome.stats.transactions, 20);
    assert!(
        outcome
            .records
            .iter()
            .all(|r| r.row.response_time_ns() == Some(0))
    );
}

#[test]
fn a_clock_that_jumps() {
    // Years ahead for one segment, then back; zero for another.
    for odd_ns in [0, 4_000_000_000_000_000_000, u64::MAX] {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(get("/a")).server_sends(answer(200, 0));
        talk.client_sends(get("/odd")).server_sends(answer(201, 0));
        talk.client_sends(get("/b"))
            .wait(Duration::from_secs(1))
            .server_sends(answer(202, 0));
        talk.segments_mut()[2].at_ns = odd_ns;
        let frames = talk.frames_as_listed();
        let outcome = super::support::observe(&crate::HttpConfig::default(), &frames, talk.link());
        assert_eq!(
            outcome.short(),
            ["complete /a 200", "complete /odd 201", "complete /b 202"],
            "{odd_ns}"
        );
        assert_eq!(
            outcome.records[2].row.response_time_ns(),
            Some(1_001_000_000)
        );
    }
}

#[test]
fn numbers_half_a_circle_away_belong_to_nothing() {
    let mut talk = Conversation::v4(40_000).numbered(10, 20);
    talk.client_sends(get("/a"))
        .skips(Side::Server, 1 << 31)
        .server_sends(answer(200, 0));
    let mut short = look(&talk).short();
    short.sort();
    assert_eq!(short, ["orphan 200", "unanswered /a"]);
}
