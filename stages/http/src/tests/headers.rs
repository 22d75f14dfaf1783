//! Header fields that records keep: those of every run, and chosen ones.

use linkweir_record::header::{Slot, find};
use linkweir_record::{HeaderNames, HttpKind, RecordBatch as _, RecordKind as _, Value};
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_testkit::memory::drive;

use super::http2::{END_STREAM, Encoder, opening};
use super::support::{answer, get, together};
use crate::{HttpConfig, HttpStage};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// Trace and parent of it, as a message's text has them.
const IDS: &str = "4bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b7";

/// The target and what is kept of a request and its response: trace, forwarding, `x-id` of both.
fn kept(config: &HttpConfig, talks: &[Conversation]) -> Vec<[String; 5]> {
    let mut stage = HttpStage::new(config);
    let batch = drive(&mut stage, &together(talks), talks[0].link(), &[]);
    let own = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let rows = batch.views().map(|view| {
        let [request, response] = view.fields();
        [
            view.text.uri,
            find(request, Slot::Trace),
            find(request, Slot::Forwarded),
            find(request, Slot::Chosen(0)),
            find(response, Slot::Chosen(0)),
        ]
        .map(own)
    });
    rows.collect()
}

fn choosing() -> HttpConfig {
    HttpConfig {
        headers: HeaderNames::new(&["X-ID".to_owned()]).unwrap(),
        ..HttpConfig::default()
    }
}

/// A request with more field lines.
fn with(target: &str, lines: &str) -> String {
    get(target).replace("\r\n\r\n", &format!("\r\n{lines}\r\n\r\n"))
}

fn answer_with(lines: &str) -> String {
    answer(200, 0).replace("\r\n\r\n", &format!("\r\n{lines}\r\n\r\n"))
}

#[test]
fn every_run_keeps_trace_and_forwarding() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(with(
        "/a",
        &format!(
            "Traceparent: {TRACE}\r\nx-forwarded-for: 192.0.2.1\r\nX-Forwarded-For:\r\n ::1\r\nX-Id: 1"
        ),
    ))
    .server_sends(answer_with("X-Id: 2\r\nX-Forwarded-For: 10.0.0.1"))
    .client_sends(get("/b"))
    .server_sends(answer(200, 0));
    let found = kept(&HttpConfig::default(), &[talk]);
    assert_eq!(
        found,
        [
            ["/a", IDS, "192.0.2.1, ::1", "", ""],
            ["/b", "", "", "", ""]
        ]
    );
}

#[test]
fn columns_of_a_record_with_a_trace() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(with("/", &format!("traceparent: {TRACE}")))
        .server_sends(answer(200, 0));
    let mut stage = HttpStage::new(&HttpConfig::default());
    let batch = drive(&mut stage, &talk.frames(), talk.link(), &[]);
    let view = batch.get(0).unwrap();
    for (name, value) in [
        ("trace_id", Value::Text(&TRACE.as_bytes()[3..35])),
        ("parent_id", Value::Text(&TRACE.as_bytes()[36..52])),
        ("forwarded_for", Value::Null),
        ("source", Value::Word("clear")),
    ] {
        let column = HttpKind::column(name).unwrap();
        assert_eq!(HttpKind::value(&view, column), value, "{name}");
        assert!(
            HttpKind::has_column(HttpKind::shape(&view), column),
            "{name}"
        );
    }
}

#[test]
fn chosen_fields_come_along_however_a_transaction_is_matched() {
    let request = with("/a", "X-Id: one\r\nx-id: two");
    let response = answer_with("x-ID: three");
    let want = |uri: &str, request: &str, response: &str| -> [String; 5] {
        [uri, "", "", request, response].map(str::to_owned)
    };
    let whole = want("/a", "one, two", "three");
    for ttlb in [false, true] {
        let config = HttpConfig { ttlb, ..choosing() };
        let mut plain = Conversation::v4(40_000);
        plain.client_sends(&request).server_sends(&response);
        assert_eq!(kept(&config, &[plain]), std::slice::from_ref(&whole));
        // The response overtakes its request, and waits.
        let mut swapped = Conversation::v4(40_000);
        swapped.client_sends(&request).server_sends(&response);
        swapped.exchange(0, 1);
        assert_eq!(kept(&config, &[swapped]), std::slice::from_ref(&whole));
        // Heads over several segments.
        let mut cut = Conversation::v4(40_000);
        cut.sends(Side::Client, request.as_bytes(), &[10, request.len() - 9])
            .sends(Side::Server, response.as_bytes(), &[30]);
        assert_eq!(kept(&config, &[cut]), std::slice::from_ref(&whole));
        // A pipeline, and halves that nothing answers or asked for.
        let mut pipeline = Conversation::v4(40_000);
        pipeline
            .client_sends(request.clone() + &with("/b", "X-Id: four"))
            .server_sends(response.clone() + &answer(200, 0))
            .client_sends(with("/c", "X-Id: five"));
        let mut orphan = Conversation::v4(40_001);
        orphan.server_sends(&response);
        let mut found = kept(&config, &[pipeline, orphan]);
        found.sort();
        let mut all = [
            want("", "", "three"),
            whole.clone(),
            want("/b", "four", ""),
            want("/c", "five", ""),
        ];
        all.sort();
        assert_eq!(found, all);
    }
}

#[test]
fn what_follows_a_lost_byte_is_not_there() {
    let request = with("/a", "X-Id: one\r\nX-Forwarded-For: 192.0.2.1");
    let at = request.find("X-Forwarded").unwrap();
    let mut talk = Conversation::v4(40_000);
    talk.sends(Side::Client, request.as_bytes(), &[at + 20])
        .server_sends(answer_with("X-Id: two"));
    talk.lose(1);
    let found = kept(&choosing(), &[talk]);
    assert_eq!(found, [["/a", "", "", "one", "two"]]);
}

#[test]
fn replaced_addresses_are_replaced_in_lists() {
    let key = linkweir_record::Anonymizer::new(&[7; 32]);
    let config = HttpConfig {
        anonymizer: Some(key.clone()),
        ..choosing()
    };
    let mut talk = Conversation::v4(40_000);
    talk.client_sends(with(
        "/a",
        "X-Forwarded-For: unknown, 192.0.2.1\r\nX-Id: 192.0.2.1",
    ))
    .server_sends(answer_with("X-Id: name"));
    let hidden = String::from_utf8(key.replace_host(b"192.0.2.1").unwrap()).unwrap();
    let found = kept(&config, &[talk]);
    let forwarded = format!("unknown, {hidden}");
    assert_eq!(found, [["/a", "", &forwarded, &hidden, "name"]]);
}

#[test]
fn streams_of_http2_have_them() {
    let (mut client, mut server) = (Encoder::default(), Encoder::default());
    let request = |path: &'static str, more: &[(&'static str, &'static str)]| {
        let fields = [
            (":method", "GET"),
            (":authority", "h.test"),
            (":path", path),
            ("traceparent", TRACE),
            ("x-forwarded-for", "192.0.2.1"),
        ];
        [&fields[..], more].concat()
    };
    let first = client.headers(
        1,
        END_STREAM,
        &request("/a", &[("x-id", "1"), ("x-id", "2")]),
    );
    let second = client.headers(3, END_STREAM, &request("/b", &[]));
    let ok = server.headers(
        1,
        END_STREAM,
        &[(":status", "200"), ("content-type", "a/b"), ("x-id", "3")],
    );
    let interim = server.headers(3, 0, &[(":status", "103"), ("x-id", "no")]);
    let last = server.headers(3, 0, &[(":status", "200"), ("x-id", "4")]);
    let trailers = server.headers(3, END_STREAM, &[("x-id", "no")]);
    let mut talk = Conversation::v4(40_000);
    talk.handshake()
        .client_sends(opening())
        .client_sends([first, second].concat())
        .server_sends([ok, interim, last, trailers].concat());
    let found = kept(&choosing(), std::slice::from_ref(&talk));
    assert_eq!(
        found,
        [
            ["/a", IDS, "192.0.2.1", "1, 2", "3"],
            ["/b", IDS, "192.0.2.1", "", "4"]
        ]
    );
    let found = kept(&HttpConfig::default(), &[talk]);
    assert_eq!(found[0], ["/a", IDS, "192.0.2.1", "", ""]);
}
