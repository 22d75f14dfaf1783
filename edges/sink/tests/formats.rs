//! Golden lines of every format, and what comes back when they are read.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may stop at the first surprise"
)]

use linkweir_engine::Sink;
use linkweir_record::{HttpBatch, HttpKind, HttpRow, HttpState, Text};
use linkweir_sink::{Format, OutputOptions, open_sink};

/// 2023-11-14T22:13:20.25Z
const T0: u64 = 1_700_000_000_250_000_000;

fn row() -> HttpRow {
    HttpRow {
        client_ip: "10.0.0.7".parse().unwrap(),
        client_port: 40_000,
        server_ip: "::ffff:192.168.255.1".parse().unwrap(),
        server_port: 80,
        request_ts_ns: Some(T0),
        response_ts_ns: Some(T0 + 104_130_000),
        status_code: Some(200),
        request_bytes: Some(78),
        flow_hash: 123_456,
        ..HttpRow::default()
    }
}

/// A plain record, a hostile one, an unanswered one over IPv6, an orphan.
fn records() -> HttpBatch {
    let mut batch = HttpBatch::default();
    batch.push(
        row(),
        &Text {
            method: b"GET",
            uri: b"/index.html?a=1",
            host: b"example.org",
            user_agent: b"curl/8.0 (x; y)",
            reason_phrase: b"OK",
            content_type: b"text/html",
        },
    );
    batch.push(
        HttpRow {
            ttlb_ns: Some(1),
            vlan: Some(7),
            ..row()
        },
        &Text {
            method: b"GET",
            uri: b"/a|b\\x41\t,\"q\"\n",
            host: "h\u{e9}te".as_bytes(),
            user_agent: b"\xff\x00-",
            reason_phrase: b"-",
            content_type: b"(empty)",
        },
    );
    batch.push(
        HttpRow {
            client_ip: "2001:db8::7".parse().unwrap(),
            server_ip: "2001:db8::1".parse().unwrap(),
            response_ts_ns: None,
            status_code: None,
            request_bytes: None,
            state: HttpState::Unanswered,
            ..row()
        },
        &Text {
            method: b"POST",
            uri: b"*",
            ..Text::default()
        },
    );
    batch.push(
        HttpRow {
            request_ts_ns: None,
            request_bytes: None,
            status_code: Some(404),
            state: HttpState::Orphan,
            ..row()
        },
        &Text {
            reason_phrase: b"Not Found",
            ..Text::default()
        },
    );
    batch
}

fn written(format: Format) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let options = OutputOptions {
        wall_clock_ns: || T0,
        ..OutputOptions::default()
    };
    let mut sink: Box<dyn Sink<HttpKind>> =
        open_sink(path.to_str().unwrap(), Some(format), options).unwrap();
    sink.write(&records()).unwrap();
    sink.finish().unwrap();
    let bytes = std::fs::read(path).unwrap();
    bytes.iter().map(|b| char::from(*b)).collect()
}

#[test]
fn text_is_the_line_of_the_paper() {
    let expected = "\
10.0.0.7|40000|192.168.255.1|80|1700000000.250000000|1700000000.354130000|0.104130000|OK|200|GET|curl/8.0 (x; y)|example.org|/index.html?a=1
10.0.0.7|40000|192.168.255.1|80|1700000000.250000000|1700000000.354130000|0.104130000|-|200|GET|\\xff\\x00-|h\\xc3\\xa9te|/a\\x7cb\\x5cx41\\x09,\"q\"\\x0a
2001:db8::7|40000|2001:db8::1|80|1700000000.250000000|||||POST|||*
10.0.0.7|40000|192.168.255.1|80||1700000000.354130000||Not Found|404||||
";
    assert_eq!(written(Format::Text), expected);
}
