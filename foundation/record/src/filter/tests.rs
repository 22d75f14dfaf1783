use proptest::prelude::*;

use super::*;
use crate::http::{HttpBatch, HttpKind, HttpRow, HttpState, Text};
use crate::schema::RecordBatch as _;
use crate::{FlowBatch, FlowKind, FlowRow};

fn batch() -> HttpBatch {
    let mut batch = HttpBatch::default();
    let row = HttpRow {
        client_ip: "::ffff:10.1.2.3".parse().unwrap(),
        server_ip: "2001:db8::7".parse().unwrap(),
        server_port: 8080,
        request_ts_ns: Some(1_700_000_000_000_000_001),
        response_ts_ns: Some(1_700_000_000_600_000_001),
        response_bytes: Some(70_000),
        status_code: Some(503),
        ..HttpRow::default()
    };
    let text = Text {
        method: b"GET",
        uri: b"/cart?id=\xff1",
        host: b"Shop.test",
        ..Text::default()
    };
    batch.push(row, &text);
    let unanswered = HttpRow {
        response_ts_ns: None,
        response_bytes: None,
        status_code: None,
        state: HttpState::Unanswered,
        ..row
    };
    batch.push(unanswered, &text);
    batch
}

/// Which of a complete and an unanswered transaction a filter matches.
fn matched(filter: &str) -> [bool; 2] {
    let filter = Filter::<HttpKind>::read(filter).unwrap_or_else(|error| panic!("{error}"));
    let batch = batch();
    [0, 1].map(|at| filter.matches(&batch.get(at).unwrap()))
}

#[test]
fn conditions() {
    for (filter, want) in [
        ("status_code >= 500", [true, false]),
        ("status >= 500 and host = \"Shop.test\"", [true, false]),
        ("status == 503", [true, false]),
        ("status_code != 200", [true, false]),
        ("not status_code = 200", [true, true]),
        ("status_code in (500, 502,503)", [true, false]),
        ("status_code", [true, false]),
        ("not status_code", [false, true]),
        ("state = unanswered", [false, true]),
        ("state!=complete", [false, true]),
        ("method=GET and uri ~ \"^/cart\\?id=\"", [true, true]),
        ("host ~ shop", [true, true]),
        ("host = shop.test", [false, false]),
        ("user_agent ~ .", [false, false]),
        ("client_ip in (192.0.2.1, 10.0.0.0/8)", [true, true]),
        ("client_ip = ::ffff:10.0.0.0/104", [true, true]),
        ("client_ip != 10.0.0.0/8", [false, false]),
        (
            "server_ip = 2001:db8::/32 and server_port = 8080",
            [true, true],
        ),
        ("response_time_ns > 500ms", [true, false]),
        (
            "response_time_ns > 0.5 s and response_time_ns < 1s",
            [true, false],
        ),
        ("response_time_ns = 600000000ns", [true, false]),
        ("response_time_ns > 0", [true, false]),
        ("request_ts_ns = 1700000000000000001ns", [true, true]),
        ("request_ts_ns = 1700000000000000002 ns", [false, false]),
        // A number alone counts seconds since 1970, as on the command line.
        ("request_ts = 1700000000.000000001", [true, true]),
        ("request_ts >= 1700000000", [true, true]),
        ("request_ts >= 1700000001", [false, false]),
        ("request_ts >= 1699999999999.5ms", [true, true]),
        ("client = 10.0.0.0/8 and server = 2001:db8::7", [true, true]),
        ("c_ip = 10.1.2.3 and s_port = 8080", [true, true]),
        ("url ~ \"^shop.test/cart.id=\"", [true, true]),
        ("url = shop.test/cart", [true, true]),
        ("url in (a, shop.test/cart)", [true, true]),
        ("url != shop.test/cart or not url", [false, false]),
        ("url = \"shop.test/cart?id=1\"", [false, false]),
        ("request_ts >= 2023-11-14T22:13:20Z", [true, true]),
        ("request_ts < 2023-11-14T22:13:20Z", [false, false]),
        (
            "request_ts < 2023-11-15T00:13:20.000000002+02:00 and request_ts >= '2023-11-14 22:13:20.000000001'",
            [true, true],
        ),
        (r#"uri = "/cart?id=\xff1""#, [true, true]),
        (r#"uri = "/cart?id=\\xff1""#, [false, false]),
        (r#"uri ~ "^/c\art""#, [false, false]),
        (r#"uri ~ "cart\?id" and host != "a\"b""#, [true, true]),
        ("response_bytes > 64KiB", [true, false]),
        ("response_bytes > 70kB", [false, false]),
        (
            "status = 1 or status = 2 or (state = complete and not (host ~ other))",
            [true, false],
        ),
        ("status = 503 or status = 1 and status = 2", [true, false]),
    ] {
        assert_eq!(matched(filter), want, "{filter}");
    }
    let mut flows = FlowBatch::default();
    let row = FlowRow {
        first_ns: 1_500_000,
        ..FlowRow::default()
    };
    flows.push(row, &crate::flow::FlowText::default());
    let first = flows.get(0).unwrap();
    for (filter, want) in [
        ("first = 1.5ms", true),
        ("first > 1ms", true),
        ("first = 0.0015", true),
        ("first >= 0.0016", false),
        ("protocol = tcp and first > 2ms", false),
    ] {
        assert_eq!(
            Filter::<FlowKind>::read(filter).unwrap().matches(&first),
            want,
            "{filter}"
        );
    }
}

#[test]
fn points_in_time_are_exact() {
    for (text, want) in [
        ("1367526040", 1_367_526_040_000_000_000),
        ("1367526040.123456789", 1_367_526_040_123_456_789),
        ("1367526040123.4567ms", 1_367_526_040_123_456_700),
        ("2013-05-02T22:20:40.5+02:00", 1_367_526_040_500_000_000),
        ("2013-05-02", 1_367_452_800_000_000_000),
    ] {
        assert_eq!(parse_moment(text), Ok(want), "{text}");
    }
    for text in [
        "",
        ".",
        "-5",
        "1.2.3",
        "1e9",
        "yesterday",
        "99999999999999999999",
    ] {
        assert!(parse_moment(text).is_err(), "{text}");
    }
    let flow = Filter::<FlowKind>::read("first > 1367526040123").unwrap_err();
    assert!(flow.message.contains("write 1367526040123ms"), "{flow}");
    let names = ["client", "client_ip", "c_ip"].map(find_column::<FlowKind>);
    assert!(
        names
            .iter()
            .all(|at| *at == Ok(FlowKind::column("c_ip").unwrap()))
    );
    assert!(
        find_column::<HttpKind>("url")
            .unwrap_err()
            .contains("host and uri")
    );
}

#[test]
fn faults_say_where() {
    for (filter, column, words) in [
        ("", 1, "expected a column"),
        (
            "status_code >=",
            15,
            "expected a value, the filter ends here",
        ),
        ("stat = 5", 1, "no column `stat`"),
        (
            "response = 5",
            1,
            "begins response_ts_ns, response_time_ns, response_bytes",
        ),
        (
            "method = GET x",
            14,
            "expected `and`, `or` or the end, found `x`",
        ),
        ("status_code > high", 15, "`high` is not a valid number"),
        ("status_code ~ 5", 15, "is not text"),
        ("host > a", 8, "is text"),
        ("host = \"x", 8, "not closed"),
        ("(host = a", 10, "expected `)`"),
        ("host in a", 9, "expected `(`"),
        ("host = = =", 10, "expected a value, found `=`"),
        ("client_ip = 10.0.0.0/33", 13, "not a valid network"),
        ("response_time_ns > 5 parsecs", 20, "time span"),
        ("request_ts > 2026-13-01T00:00:00Z", 14, "not a valid time"),
        ("response_time > 500", 17, "without a unit: write 500ms"),
        (
            "request_ts > 1700000000000000001",
            14,
            "write 1700000000000000001ns",
        ),
        ("url > x", 7, "is text"),
        ("response_time > 2026-11-01", 17, "time span"),
        ("uri ~ \"(\"", 7, "regular expression"),
        ("status_code ! 5", 13, "expected =, !="),
    ] {
        let error = Filter::<HttpKind>::read(filter).unwrap_err();
        assert_eq!(error.column, column, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
    let deep = format!("{}host{}", "(".repeat(1000), ")".repeat(1000));
    assert!(
        Filter::<HttpKind>::read(&deep)
            .unwrap_err()
            .message
            .contains("deep")
    );
    let deep = format!("{}host", "not ".repeat(900));
    assert!(
        Filter::<HttpKind>::read(&deep)
            .unwrap_err()
            .message
            .contains("deep")
    );
    assert!(Filter::<HttpKind>::read(&"x".repeat(5000)).is_err());
}

#[test]
fn many_expressions_share_the_memory_of_a_filter() {
    let of = |expression: &str, times: usize| {
        let all = vec![format!("uri ~ \"{expression}\""); times];
        Filter::<HttpKind>::read(&all.join(" or "))
    };
    assert!(of("(a{80}){80}b", 1).is_ok());
    let error = of("(a{80}){80}b", 150).unwrap_err().to_string();
    assert!(error.contains("size"), "{error}");
    assert!(of("^/shop/[a-z]+$", 150).is_ok());
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_or_refused(
        text in "([a-z_]{0,12}|status_code|host|client_ip|[<>=!~(),\" ]|and|or|not|in|[0-9.]{1,6}|ms|é){0,12}"
    ) {
        if let Ok(filter) = Filter::<HttpKind>::read(&text) {
            let batch = batch();
            let matched = batch.views().filter(|view| filter.matches(view)).count();
            prop_assert!(matched <= 2);
        }
    }
}
