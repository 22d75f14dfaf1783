//! What the segments come in: versions of IP, tags, tunnels, short captures, odd segments.

use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::{Conversation, Encapsulation, Side};
use linkweir_testkit::parts::parts_of;
use linkweir_wire::LinkType;

use super::support::{answer, get, look, look_with, observe};
use crate::HttpConfig;

#[test]
fn every_encapsulation_of_both_versions() {
    for encapsulation in Encapsulation::ALL {
        for (talk, client, server) in [
            (Conversation::v4(40_000), "192.0.2.1", "198.51.100.2"),
            (Conversation::v6(40_000), "2001:db8::1", "2001:db8:1::2"),
        ] {
            let mut talk = talk.within(encapsulation);
            talk.handshake()
                .sends(Side::Client, get("/in").as_bytes(), &[30])
                .server_sends(answer(200, 3000));
            talk.fin(Side::Server);
            let outcome = look(&talk);
            let record = outcome.only();
            assert_eq!(record.short(), "complete /in 200", "{encapsulation:?}");
            assert_eq!(record.row.vlan, encapsulation.vlan(), "{encapsulation:?}");
            assert_eq!(
                record.row.client_ip.to_string(),
                client,
                "the inner one: {encapsulation:?}"
            );
            assert_eq!(record.row.server_ip.to_string(), server);
        }
    }
}

/// The frames, whose packets come in parts of at most so many bytes, forwards or backwards.
fn in_parts(frames: &[CapturedFrame], piece: usize, is_backwards: bool) -> Vec<CapturedFrame> {
    let cut = |(id, frame)| {
        let mut parts = parts_of(frame, id, piece);
        if is_backwards {
            parts.reverse();
        }
        parts
    };
    (1..).zip(frames).flat_map(cut).collect()
}

#[test]
fn packets_in_parts_are_put_together() {
    for talk in [Conversation::v4(40_000), Conversation::v6(40_000)] {
        let mut talk = talk;
        talk.handshake();
        for turn in 0..3 {
            talk.client_sends(get(&format!("/parts/{turn}")))
                .server_sends(answer(200, 3000));
        }
        let expected = look(&talk);
        assert_eq!(expected.stats.transactions, 3);
        for piece in [24, 64, 576, 1480] {
            for is_backwards in [false, true] {
                let frames = in_parts(&talk.frames(), piece, is_backwards);
                let found = observe(&HttpConfig::default(), &frames, LinkType::ETHERNET);
                assert_eq!(found.records, expected.records, "{piece} {is_backwards}");
            }
        }
    }
}

#[test]
fn of_a_packet_of_which_a_part_never_comes_the_start_is_read() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(format!(
        "GET /start HTTP/1.1\r\nX: {}\r\n\r\n",
        "y".repeat(900)
    ));
    talk.server_sends(answer(200, 3000));
    let mut frames = in_parts(&talk.frames(), 400, false);
    frames.remove(1);
    let outcome = observe(&HttpConfig::default(), &frames, LinkType::ETHERNET);
    assert_eq!(outcome.short(), ["complete /start 200"]);
    assert_eq!(outcome.only().row.request_bytes, None);
}

#[test]
fn a_tag_on_one_direction_only() {
    let mut tagged = Conversation::v4(40_000).within(Encapsulation::Vlan(12));
    tagged.client_sends(get("/a")).server_sends(answer(200, 0));
    let mut plain = tagged.clone().within(Encapsulation::Plain);
    plain.lose(0);
    let mut half = tagged.clone();
    half.lose(1);
    let frames = super::support::together(&[half, plain]);
    let outcome = observe(&HttpConfig::default(), &frames, LinkType::ETHERNET);
    assert_eq!(outcome.short(), ["complete /a 200"]);
    assert_eq!(outcome.only().row.vlan, Some(12));
}

#[test]
fn heads_cut_by_the_capture() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/long/target/that/is/cut"))
        .server_sends(answer(200, 500));
    let headers = 14 + 20 + 20;
    let run = |snaplen: usize| look(&talk.clone().snaplen(snaplen));
    // Heads whole, body cut.
    let outcome = run(headers + 100);
    assert_eq!(outcome.short(), ["complete /long/target/that/is/cut 200"]);
    assert_eq!(outcome.stats.truncated_heads, 0);
    // Start lines whole.
    let outcome = run(headers + 60);
    assert_eq!(outcome.short(), ["complete /long/target/that/is/cut 200"]);
    assert_eq!(outcome.stats.truncated_heads, 2);
    assert_eq!(outcome.only().row.request_bytes, None);
    assert_eq!(outcome.only().row.response_bytes, None);
    // The target is cut.
    let outcome = run(headers + 15);
    assert_eq!(outcome.stats.truncated_heads, 2);
    assert_eq!(outcome.stats.transactions, 1);
    assert_eq!(outcome.only().row.status_code, Some(200));
    // Nothing of HTTP is left, at no length is there a panic.
    for snaplen in 0..headers + 110 {
        let outcome = run(snaplen);
        assert!(outcome.stats.requests <= 1 && outcome.stats.responses <= 1);
        if snaplen <= headers {
            assert_eq!(outcome.records.len(), 0, "{snaplen}");
        }
    }
}

#[test]
fn records_that_hide_the_cut_change_nothing() {
    let config = HttpConfig {
        ttlb: true,
        ..HttpConfig::default()
    };
    for encapsulation in Encapsulation::ALL {
        for whole in [Conversation::v4(40_000), Conversation::v6(40_000)] {
            // Whole heads behind any headers: those of Prism cards take 144 bytes.
            let mut talk = whole.within(encapsulation).snaplen(320);
            talk.client_sends(get("/a"))
                .client_sends(get("/b"))
                .server_sends(answer(200, 24_000))
                .server_sends(answer(201, 700));
            let honest = look_with(&config, &talk);
            assert_eq!(honest.stats.transactions, 2);
            let mut frames = talk.frames();
            for frame in &mut frames {
                frame.wire_len = u32::try_from(frame.bytes.len()).unwrap();
            }
            let rewritten = observe(&config, &frames, talk.link());
            assert_eq!(rewritten.records, honest.records, "{encapsulation:?}");
        }
    }
}

#[test]
fn a_cut_head_is_not_joined_with_what_follows() {
    let mut talk = Conversation::v4(40_000).snaplen(54 + 40);
    talk.client_sends(format!(
        "GET /a HTTP/1.1\r\nHost: h.test\r\nX: {}\r\n\r\n",
        "y".repeat(3000)
    ))
    .server_sends(answer(200, 0))
    .client_sends(get("/b"))
    .server_sends(answer(201, 0));
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ["complete /a 200", "complete /b 201"]);
    assert_eq!(outcome.records[0].host, "h.test");
}

#[test]
fn an_interim_response_cut_by_the_capture() {
    let mut talk = Conversation::v4(40_000).snaplen(54 + 14);
    talk.client_sends(get("/up"))
        .server_sends("HTTP/1.1 100 Continue\r\n\r\n")
        .client_sends("body")
        .server_sends(answer(200, 0));
    let outcome = look(&talk);
    assert_eq!(outcome.stats.transactions, 1, "{:?}", outcome.short());
    assert_eq!(outcome.stats.interim_responses, 1);
}

#[test]
fn data_on_a_syn_stands_one_behind_its_number() {
    let request = get("/fast");
    let (first, rest) = request.split_at(25);
    let mut talk = Conversation::v4(40_000);
    talk.opens_with(first.as_bytes()).client_sends(rest);
    let outcome = look(&talk);
    assert_eq!(outcome.only().uri, "/fast");
    assert_eq!(outcome.only().host, "www.example.test", "the rest fits on");
    assert_eq!(outcome.stats.truncated_heads, 0);
}

#[test]
fn segments_without_payload_change_nothing() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(get("/a"));
    for _ in 0..5 {
        talk.acknowledges(Side::Server).acknowledges(Side::Client);
    }
    talk.server_sends(answer(200, 0)).rst(Side::Client);
    assert_eq!(look(&talk).short(), ["complete /a 200"]);
}

#[test]
fn the_seed_of_the_hash_changes_nothing() {
    let mut talk = Conversation::v6(40_000);
    for n in 0..30 {
        talk.client_sends(get(&format!("/{n}")))
            .server_sends(answer(200, 100));
    }
    let expected = look(&talk).records;
    for hash_seed in [0, 1, u64::MAX] {
        let config = HttpConfig {
            hash_seed,
            ..HttpConfig::default()
        };
        assert_eq!(look_with(&config, &talk).records, expected);
    }
}
