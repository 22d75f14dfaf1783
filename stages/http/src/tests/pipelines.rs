//! Requests that do not wait for the answers of those before them.

use linkweir_testkit::conversation::{Conversation, Side};

use super::support::{answer, chunked_answer, get, look};

const TARGETS: [&str; 4] = ["/a", "/b", "/c", "/d"];
const ALL: [&str; 4] = [
    "complete /a 200",
    "complete /b 201",
    "complete /c 202",
    "complete /d 203",
];

fn requests() -> Vec<String> {
    TARGETS.map(get).to_vec()
}

fn answers(bodies: [usize; 4]) -> Vec<String> {
    (200..)
        .zip(bodies)
        .map(|(code, body)| answer(code, body))
        .collect()
}

#[test]
fn requests_in_one_segment_or_each_in_its_own_and_answers_likewise() {
    for bodies in [[0; 4], [1, 20, 0, 300], [3000, 1, 1459, 5000]] {
        for one_segment in [true, false] {
            for one_stream in [true, false] {
                let mut talk = Conversation::v4(40_000);
                if one_segment {
                    talk.client_sends(requests().concat());
                } else {
                    requests().iter().for_each(|r| _ = talk.client_sends(r));
                }
                let sent = talk.now_ns();
                let answers = answers(bodies);
                if one_stream {
                    // Cut by size: answers begin in the middle of segments.
                    talk.server_sends(answers.concat());
                } else {
                    answers.iter().for_each(|a| _ = talk.server_sends(a));
                }
                let outcome = look(&talk);
                assert_eq!(
                    outcome.short(),
                    ALL,
                    "{bodies:?} {one_segment} {one_stream}"
                );
                for (record, body) in outcome.records.iter().zip(bodies) {
                    assert_eq!(
                        record.row.response_bytes,
                        Some(answer(200, body).len() as u64)
                    );
                    assert!(record.row.request_ts_ns < Some(sent));
                    assert!(record.row.response_ts_ns >= Some(sent));
                }
            }
        }
    }
}

#[test]
fn answers_have_the_times_of_the_segments_they_begin_in() {
    let mut talk = Conversation::v4(40_000).mss(1000);
    talk.client_sends(requests().concat())
        .server_sends(answers([1500, 100, 100, 2000]).concat());
    let outcome = look(&talk);
    assert_eq!(outcome.short(), ALL);
    let starts: Vec<usize> = outcome
        .records
        .iter()
        .map(|r| {
            talk.segments()
                .iter()
                .position(|s| Some(s.at_ns) == r.row.response_ts_ns)
        })
        .map(Option::unwrap)
        .collect();
    assert_eq!(starts, [1, 2, 2, 2], "segment of each answer");
}

#[test]
fn answers_in_two_segments_cut_at_every_byte() {
    let stream = answers([7, 0, 3, 1]).concat();
    for cut in 1..stream.len() {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends(requests().concat())
            .sends(Side::Server, stream.as_bytes(), &[cut]);
        assert_eq!(look(&talk).short(), ALL, "cut at {cut}");
    }
}

#[test]
fn requests_in_two_segments_cut_at_every_byte() {
    let stream = requests().concat();
    for cut in 1..stream.len() {
        let mut talk = Conversation::v4(40_000);
        talk.sends(Side::Client, stream.as_bytes(), &[cut]);
        answers([7, 0, 3, 1])
            .iter()
            .for_each(|a| _ = talk.server_sends(a));
        assert_eq!(look(&talk).short(), ALL, "cut at {cut}");
    }
}

#[test]
fn requests_with_bodies() {
    let post = |target: &str, body: &str| {
        format!(
            "POST {target} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let mut talk = Conversation::v4(40_000);
    // The body looks like a request.
    talk.client_sends(
        [
            post("/a", &get("/not-this")),
            get("/b"),
            post("/c", ""),
            get("/d"),
        ]
        .concat(),
    );
    answers([0; 4])
        .iter()
        .for_each(|a| _ = talk.server_sends(a));
    assert_eq!(look(&talk).short(), ALL);
}

#[test]
fn chunked_answers_that_fit_a_segment() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(requests().concat());
    for sizes in [&[5_usize, 300][..], &[], &[1], &[900]] {
        talk.server_sends(chunked_answer(sizes));
    }
    let outcome = look(&talk);
    assert_eq!(outcome.stats.transactions, 4, "{:?}", outcome.short());
    for (record, target) in outcome.records.iter().zip(TARGETS) {
        assert_eq!(record.uri, target);
    }
    assert_eq!(
        outcome.records[0].row.response_bytes,
        Some(chunked_answer(&[5, 300]).len() as u64)
    );
}

#[test]
fn chunks_over_several_segments_end_where_the_next_answer_begins() {
    for mss in [60, 1460] {
        let mut talk = Conversation::v4(40_000).mss(mss);
        talk.client_sends([get("/a"), get("/b")].concat())
            .server_sends(chunked_answer(&[4000, 7]) + &answer(201, 0));
        talk.client_sends(get("/c")).server_sends(answer(202, 0));
        assert_eq!(look(&talk).short(), ALL[..3], "{mss}");
    }
}

#[test]
fn an_answer_of_unknown_length_ends_what_can_be_told() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends([get("/a"), get("/b")].concat())
        .server_sends("HTTP/1.1 200 OK\r\n\r\n".to_owned() + &"x".repeat(4000))
        .server_sends(answer(200, 0));
    // A request that has seen the answers is found again.
    talk.client_sends(get("/c")).server_sends(answer(201, 0));
    let outcome = look(&talk);
    let mut short = outcome.short();
    short.sort();
    assert_eq!(
        short,
        [
            "complete /a 200",
            "complete /c 201",
            "orphan 200",
            "unanswered /b"
        ]
    );
    assert_eq!(outcome.stats.requests, 3);
}

#[test]
fn a_request_that_saw_the_first_answer_joins_the_queue() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends([get("/a"), get("/b")].concat())
        .server_sends(answer(200, 10))
        .client_sends(get("/c"))
        .server_sends(answer(201, 10))
        .client_sends(get("/d"))
        .server_sends(answer(202, 10))
        .server_sends(answer(203, 10));
    assert_eq!(look(&talk).short(), ALL);
}

#[test]
fn requests_that_overtake_one_another() {
    for (one, other) in [(0, 1), (0, 2), (1, 3), (0, 3)] {
        let mut talk = Conversation::v4(40_000);
        requests().iter().for_each(|r| _ = talk.client_sends(r));
        talk.exchange(one, other);
        answers([5; 4])
            .iter()
            .for_each(|a| _ = talk.server_sends(a));
        let outcome = look(&talk);
        assert_eq!(outcome.short(), ALL, "{one} and {other} exchanged");
    }
}

#[test]
fn a_response_overtakes_a_pipelined_one() {
    let mut talk = Conversation::v4(40_000);
    requests().iter().for_each(|r| _ = talk.client_sends(r));
    answers([5; 4])
        .iter()
        .for_each(|a| _ = talk.server_sends(a));
    talk.exchange(4, 5);
    let outcome = look(&talk);
    let mut short = outcome.short();
    short.sort();
    assert_eq!(short, ALL);
}

#[test]
fn all_answers_before_all_requests() {
    let mut talk = Conversation::v4(40_000);
    requests().iter().for_each(|r| _ = talk.client_sends(r));
    answers([5; 4])
        .iter()
        .for_each(|a| _ = talk.server_sends(a));
    for segment in &mut talk.segments_mut()[..4] {
        segment.at_ns += 50_000_000;
    }
    let mut short = look(&talk).short();
    short.sort();
    assert_eq!(short, ALL);
}

#[test]
fn a_lost_answer_costs_itself_and_what_depends_on_it() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(requests().concat());
    answers([5; 4])
        .iter()
        .for_each(|a| _ = talk.server_sends(a));
    talk.lose(2);
    talk.client_sends(get("/after"))
        .server_sends(answer(204, 0));
    let outcome = look(&talk);
    let mut short = outcome.short();
    short.sort();
    assert_eq!(
        short,
        [
            "complete /a 200",
            "complete /after 204",
            "orphan 202",
            "orphan 203",
            "unanswered /b",
            "unanswered /c",
            "unanswered /d"
        ]
    );
}

#[test]
fn a_pipeline_beyond_the_bound_is_counted() {
    let count = 300;
    let mut talk = Conversation::v4(40_000);
    for n in 0..count {
        talk.client_sends(get(&format!("/{n}")));
    }
    for _ in 0..count {
        talk.server_sends(answer(200, 3));
    }
    let outcome = look(&talk);
    assert_eq!(outcome.stats.requests, count);
    assert!(outcome.stats.transactions > 256, "{:?}", outcome.stats);
    assert_eq!(outcome.stats.table_full, count - outcome.stats.transactions);
    let answered = outcome
        .records
        .iter()
        .filter(|r| r.row.status_code == Some(200));
    for (n, record) in answered.filter(|r| !r.uri.is_empty()).enumerate() {
        assert_eq!(record.uri, format!("/{n}"), "in order");
    }
}

#[test]
fn a_request_behind_a_body_of_several_segments() {
    for (length, mss) in [(2000, 1460), (5000, 536), (1400, 1460)] {
        let post = format!(
            "POST /a HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{}",
            "u".repeat(length)
        );
        let mut talk = Conversation::v4(40_000).mss(mss);
        talk.client_sends([post, get("/b"), get("/c"), get("/d")].concat());
        answers([0; 4])
            .iter()
            .for_each(|a| _ = talk.server_sends(a));
        assert_eq!(look(&talk).short(), ALL, "{length}");
    }
}

#[test]
fn requests_behind_chunked_bodies() {
    let post = |target: &str, body: &str| {
        format!("POST {target} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
    };
    let mut talk = Conversation::v4(40_000);
    let first = post("/a", &super::support::chunks(&[10, 20]));
    let third = post("/c", &super::support::chunks(&[]));
    talk.client_sends([first, get("/b"), third, get("/d")].concat());
    answers([0; 4])
        .iter()
        .for_each(|a| _ = talk.server_sends(a));
    assert_eq!(look(&talk).short(), ALL);
}

#[test]
fn a_segment_of_a_pipelined_stream_again() {
    let stream = answers([700, 900, 50, 300]).concat();
    let mut talk = Conversation::v4(40_000).mss(500);
    talk.client_sends(requests().concat()).server_sends(&stream);
    let expected = look(&talk).records;
    for at in 1..talk.segments().len() {
        for after_ns in [100, 1_500_000, 20_000_000] {
            let mut again = talk.clone();
            again.repeat(at, after_ns);
            let outcome = look(&again);
            let mut records = outcome.records;
            records
                .iter_mut()
                .for_each(|record| record.row.retransmissions = 0);
            assert_eq!(records, expected, "segment {at} after {after_ns}");
            assert_eq!(outcome.stats.responses, 4);
        }
    }
}
