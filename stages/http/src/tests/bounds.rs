//! Timeouts by capture time, and tables that are full.

use std::time::Duration;

use linkweir_engine::Stage;
use linkweir_record::HttpBatch;
use linkweir_testkit::conversation::Conversation;
use linkweir_testkit::memory::drive;
use linkweir_wire::{LinkType, Timestamp};

use super::support::{answer, get, look, look_with, observe, records_of, together};
use crate::{HttpConfig, HttpStage};

const TIMEOUT_NS: u64 = 60_000_000_000;

fn small() -> HttpConfig {
    HttpConfig {
        max_pending: 16,
        ..HttpConfig::default()
    }
}

#[test]
fn an_answer_just_before_at_and_after_the_timeout() {
    for (after_ns, expected) in [
        (TIMEOUT_NS - 1, vec!["complete /a 200"]),
        (TIMEOUT_NS, vec!["unanswered /a", "orphan 200"]),
        (TIMEOUT_NS + 1, vec!["unanswered /a", "orphan 200"]),
    ] {
        let mut talk = Conversation::v4(40_000).spaced(0);
        talk.client_sends(get("/a"))
            .wait(Duration::from_nanos(after_ns))
            .server_sends(answer(200, 0));
        assert_eq!(look(&talk).short(), expected, "{after_ns}");
    }
}

#[test]
fn the_timeout_is_what_was_asked_for() {
    let config = HttpConfig {
        timeout: Duration::from_millis(100),
        ..HttpConfig::default()
    };
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a"))
        .wait(Duration::from_millis(98))
        .server_sends(answer(200, 0));
    talk.client_sends(get("/b"))
        .wait(Duration::from_millis(100))
        .server_sends(answer(201, 0));
    assert_eq!(
        look_with(&config, &talk).short(),
        ["complete /a 200", "unanswered /b", "orphan 201"]
    );
}

#[test]
fn an_interim_response_starts_the_timeout_anew() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/slow"))
        .wait(Duration::from_secs(50))
        .server_sends("HTTP/1.1 102 Processing\r\n\r\n")
        .wait(Duration::from_secs(50))
        .server_sends(answer(200, 0));
    assert_eq!(look(&talk).short(), ["complete /slow 200"]);
}

#[test]
fn what_is_due_leaves_when_other_traffic_moves_time_on() {
    let mut quiet = Conversation::v4(40_000);
    quiet.client_sends(get("/quiet"));
    let mut busy = Conversation::v4(50_000);
    for _ in 0..70 {
        busy.client_sends(get("/busy"))
            .server_sends(answer(200, 0))
            .wait(Duration::from_secs(1));
    }
    let frames = together(&[quiet, busy]);
    let outcome = observe(&HttpConfig::default(), &frames, LinkType::ETHERNET);
    let at = outcome
        .short()
        .iter()
        .position(|line| line == "unanswered /quiet")
        .unwrap();
    assert!(
        (58..=62).contains(&at),
        "left after 60 s, not at the end: {at}"
    );
}

#[test]
fn a_tick_is_enough_and_the_deadline_says_when() {
    let mut stage = HttpStage::new(&HttpConfig::default());
    assert_eq!(stage.next_deadline(), None);
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a"));
    let frames = talk.frames();
    let mut out = HttpBatch::default();
    let mut source = linkweir_testkit::memory::MemorySource::new(&frames, talk.link(), 1);
    if let Ok(linkweir_engine::SourceEvent::Batch(batch)) =
        linkweir_engine::Source::next_event(&mut source)
    {
        stage.on_batch(&batch, &mut out);
    }
    assert_eq!(stage.pending(), 1);
    assert!(stage.next_deadline().is_some());
    stage.on_tick(
        Timestamp::from_nanos(Conversation::START_NS + TIMEOUT_NS - 1),
        &mut out,
    );
    assert_eq!(stage.pending(), 1);
    let due = stage.next_deadline().unwrap();
    assert!(due <= Timestamp::from_nanos(Conversation::START_NS + TIMEOUT_NS));
    stage.on_tick(
        Timestamp::from_nanos(Conversation::START_NS + TIMEOUT_NS),
        &mut out,
    );
    assert_eq!(stage.pending(), 0);
    assert_eq!(records_of(&out)[0].short(), "unanswered /a");
}

#[test]
fn a_full_table_lets_the_oldest_go_and_counts() {
    let talks: Vec<_> = (0..40)
        .map(|n| {
            let at = Conversation::START_NS + u64::from(n) * 1000;
            let mut talk = Conversation::v4(40_000 + n)
                .starting_at(at)
                .spaced(1_000_000);
            talk.client_sends(get(&format!("/{n}")))
                .server_sends(answer(200, 0));
            talk
        })
        .collect();
    let outcome = observe(&small(), &together(&talks), LinkType::ETHERNET);
    let stats = &outcome.stats;
    assert_eq!(stats.requests, 40);
    assert!(stats.table_full >= 24, "{stats:?}");
    // 24 requests had to go first; so did responses without a request, but no request of the 16.
    let short = outcome.short();
    for (n, line) in short.iter().take(24).enumerate() {
        assert_eq!(*line, format!("unanswered /{n}"), "oldest first");
    }
    for n in 24..40 {
        let line = format!("/{n}");
        assert!(
            short.iter().any(|s| s.split(' ').any(|part| part == line)),
            "{n} has a record"
        );
    }
}

#[test]
fn a_full_table_with_one_pipeline_in_it() {
    let mut talk = Conversation::v4(40_000);
    for n in 0..40 {
        talk.client_sends(get(&format!("/{n}")));
    }
    for n in 0..40 {
        talk.server_sends(answer(200 + n, 3));
    }
    let outcome = look_with(&small(), &talk);
    assert_eq!(outcome.stats.requests, 40);
    assert!(outcome.stats.table_full >= 40 - 16);
    // Those that left are written; the rest must not be paired with answers that are not theirs.
    for record in &outcome.records {
        if let (Some(code), true) = (record.row.status_code, !record.uri.is_empty()) {
            assert_eq!(
                record.uri,
                format!("/{}", code - 200),
                "{:?}",
                outcome.short()
            );
        }
    }
}

#[test]
fn long_targets_exhaust_the_text_pool_and_the_oldest_go() {
    let talks: Vec<_> = (0..12)
        .map(|n| {
            let at = Conversation::START_NS + u64::from(n) * 1_000_000;
            let mut talk = Conversation::v4(40_000 + n)
                .starting_at(at)
                .spaced(1)
                .mss(30_000);
            talk.client_sends(get(&format!("/{n}/{}", "y".repeat(60_000))));
            talk
        })
        .collect();
    let outcome = observe(&small(), &together(&talks), LinkType::ETHERNET);
    assert_eq!(outcome.stats.requests, 12);
    assert!(
        outcome.stats.table_full > 0,
        "the pool is smaller than this"
    );
    for (n, record) in outcome.records.iter().enumerate() {
        assert!(record.uri.starts_with(&format!("/{n}/")), "oldest first");
        assert_eq!(
            record.uri.len(),
            60_000 + 2 + n.to_string().len(),
            "whole all the same"
        );
    }
}

#[test]
fn heads_that_never_end_are_bounded() {
    let talks: Vec<_> = (0..300_u16)
        .map(|n| {
            let at = Conversation::START_NS + u64::from(n) * 1_000_000;
            let mut talk = Conversation::v4(30_000 + n).starting_at(at);
            talk.client_sends(format!("GET /{n} HTTP/1.1\r\nHost: slow.test\r\nX: "));
            talk
        })
        .collect();
    let outcome = observe(&small(), &together(&talks), LinkType::ETHERNET);
    assert_eq!(outcome.stats.requests, 300);
    assert_eq!(outcome.stats.truncated_heads, 300);
    assert_eq!(outcome.stats.unanswered, 300);
}

#[test]
fn many_messages_leave_nothing_behind() {
    let mut stage = HttpStage::new(&small());
    for round in 0..50_u64 {
        let mut talk = Conversation::v4(40_000)
            .numbered(1, 1)
            .starting_at(Conversation::START_NS + round * 200_000_000_000);
        talk.client_sends(get(&"/z".repeat(20_000)))
            .server_sends(answer(200, 0));
        let records = records_of(&drive(&mut stage, &talk.frames(), talk.link(), &[]));
        assert_eq!(
            records[0].uri.len(),
            40_000,
            "round {round}: the pool is given back"
        );
    }
    assert_eq!(stage.stats().table_full, 0);
    assert_eq!(stage.stats().transactions, 50);
}

#[test]
fn a_cut_head_answers_its_request_when_both_time_out() {
    for wait in [70, 30] {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(get("/cut"));
        talk.wait(Duration::from_millis(200));
        talk.server_sends("HTTP/1.1 200 OK\r\nServer: x\r\n");
        let mut later =
            Conversation::v4(40_001).starting_at(Conversation::START_NS + wait * 1_000_000_000);
        later
            .client_sends(get("/later"))
            .server_sends(answer(204, 0));
        let frames = together(&[talk, later]);
        let seen = observe(&HttpConfig::default(), &frames, LinkType::ETHERNET);
        assert_eq!(seen.stats.transactions, 2, "{wait} s");
        assert_eq!(seen.stats.truncated_heads, 1);
    }
}
