use proptest::prelude::*;

use super::*;

fn request(bytes: &[u8]) -> (RequestHead<'_>, usize) {
    match parse_request(bytes) {
        Outcome::Complete(head, len) => (head, len),
        other => panic!("not complete: {other:?}"),
    }
}

fn response(bytes: &[u8]) -> (ResponseHead<'_>, usize) {
    match parse_response(bytes) {
        Outcome::Complete(head, len) => (head, len),
        other => panic!("not complete: {other:?}"),
    }
}

#[test]
fn reads_what_a_browser_sends() {
    let bytes = b"GET /a?b=c HTTP/1.1\r\nAccept: */*\r\nhOST: shop.example\r\nUSER-agent: Mozilla/5.0 (X11; Linux) A\r\n\r\nrest";
    let (head, len) = request(bytes);
    assert_eq!(head.method, b"GET");
    assert_eq!(head.target, b"/a?b=c");
    assert_eq!(head.host, b"shop.example");
    assert_eq!(head.user_agent, b"Mozilla/5.0 (X11; Linux) A");
    assert_eq!(head.minor, 1);
    assert_eq!(&bytes[len..], b"rest");
    assert_eq!(classify(bytes), Start::Request);
}

#[test]
fn host_is_a_field_and_not_a_word_in_the_target() {
    let (head, _) = request(b"GET /Host: evil HTTP/1.0\nX-Host: no\nHost : real\n\n");
    assert_eq!(head.target, b"/Host: evil");
    assert_eq!(head.host, b"real");
    assert_eq!(head.minor, 0);
}

#[test]
fn absolute_and_authority_form_name_the_host() {
    assert_eq!(
        request(b"GET http://u:p@h.example:81/x HTTP/1.1\r\n\r\n")
            .0
            .host,
        b"h.example:81"
    );
    for target in [
        "h.example:443",
        "h.example:443/",
        "u:p@h.example:443",
        "h.example:443?x",
        "http://h.example:443/x",
    ] {
        let bytes = format!("CONNECT {target} HTTP/1.1\r\n\r\n");
        let (head, _) = request(bytes.as_bytes());
        assert_eq!(
            (head.target, head.host),
            (target.as_bytes(), &b"h.example:443"[..])
        );
    }
    let (head, _) = request(b"CONNECT [2001:db8::1]:443/ HTTP/1.1\r\nHost:\r\n\r\n");
    assert_eq!(head.host, b"[2001:db8::1]:443");
    assert_eq!(request(b"CONNECT /x HTTP/1.1\r\n\r\n").0.host, b"");
    assert_eq!(request(b"OPTIONS * HTTP/1.1\r\n\r\n").0.host, b"");
}

#[test]
fn lengths_and_codings() {
    let (head, _) = request(
        b"POST / HTTP/1.1\r\nContent-Length: 12\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n",
    );
    assert_eq!((head.content_length, head.chunked), (Some(12), true));
    assert_eq!(request_body(&head), BodyLength::Chunked);
    for (text, want) in [
        ("5", Some(5)),
        ("5, 5", Some(5)),
        ("5,6", None),
        ("-5", None),
        ("", None),
        ("+5", None),
        ("99999999999999999999", None),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {text}\r\n\r\n");
        assert_eq!(response(bytes.as_bytes()).0.content_length, want, "{text}");
    }
}

/// RFC 9112 sec. 6.3 rules 3 to 5.
#[test]
fn lengths_that_contradict_are_none() {
    use BodyLength::{Chunked, Known, UntilClose};
    for (fields, of_request, of_response) in [
        ("", Known(0), UntilClose),
        ("Content-Length: 7", Known(7), Known(7)),
        ("Content-Length: 7\r\nContent-Length: 7", Known(7), Known(7)),
        (
            "Content-Length: 7\r\nContent-Length: 8",
            UntilClose,
            UntilClose,
        ),
        (
            "Content-Length: 7\r\nContent-Length: x\r\nContent-Length: 7",
            UntilClose,
            UntilClose,
        ),
        (
            "Content-Length: x\r\nContent-Length: 7",
            UntilClose,
            UntilClose,
        ),
        ("Content-Length: 7, 8", UntilClose, UntilClose),
        ("Content-Length:", UntilClose, UntilClose),
        (
            "Content-Length: 18446744073709551616",
            UntilClose,
            UntilClose,
        ),
        (
            "Content-Length: 18446744073709551615",
            Known(u64::MAX),
            Known(u64::MAX),
        ),
        ("Transfer-Encoding: chunked", Chunked, Chunked),
        ("Transfer-Encoding: gzip, , Chunked", Chunked, Chunked),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
            Chunked,
            Chunked,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            Chunked,
            Chunked,
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 7",
            Chunked,
            Chunked,
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: x",
            Chunked,
            Chunked,
        ),
        (
            "Transfer-Encoding: identity\r\nContent-Length: 7",
            Known(7),
            Known(7),
        ),
        (
            "Transfer-Encoding: gzip\r\nContent-Length: 7",
            UntilClose,
            UntilClose,
        ),
        ("Transfer-Encoding: xchunked", UntilClose, UntilClose),
        (
            "Transfer-Encoding: chunked, identity\r\nContent-Length: 7",
            UntilClose,
            UntilClose,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip",
            UntilClose,
            UntilClose,
        ),
        (
            "Transfer-Encoding: chunked, gzip, chunked",
            UntilClose,
            UntilClose,
        ),
    ] {
        let bytes =
            format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n").replace("\r\n\r\n\r\n", "\r\n\r\n");
        assert_eq!(
            request_body(&request(bytes.as_bytes()).0),
            of_request,
            "{fields}"
        );
        let bytes = bytes.replace("POST / HTTP/1.1", "HTTP/1.1 200 OK");
        assert_eq!(
            response_body(&response(bytes.as_bytes()).0, b"GET"),
            of_response,
            "{fields}"
        );
        assert_eq!(
            response_body(&response(bytes.as_bytes()).0, b"HEAD"),
            Known(0),
            "{fields}"
        );
    }
}

#[test]
fn field_lines_are_handed_on_as_far_as_they_are_whole() {
    let (head, _) = request(b"GET / HTTP/1.1\r\nX-Forwarded-For: a\r\n\r\nX: body\r\n");
    assert_eq!(head.section, b"X-Forwarded-For: a\r\n\r\n");
    assert!(head.may_be_forwarded);
    let (head, _) = request(b"GET / HTTP/1.1\r\nTRACEPARENT: a\r\n\r\n");
    assert!(head.may_be_forwarded);
    let (head, _) = request(b"GET / HTTP/1.1\r\nHost: x-forwarded-for\r\n\r\n");
    assert!(!head.may_be_forwarded);
    let Outcome::Partial(head) = parse_response(b"HTTP/1.1 200 OK\r\nServer: a\r\nX-Id: ") else {
        panic!()
    };
    assert_eq!(head.section, b"Server: a\r\n");
}

/// RFC 9112 sec. 5.2.
#[test]
fn a_field_goes_on_in_lines_that_begin_with_white_space() {
    let bytes = b"POST / HTTP/1.1\r\nX: 1\r\n Content-Length: 9\r\nHost:\r\n\ta\r\nUser-Agent: b \n c\r\nContent-Length:\r\n 1,\r\n 1\r\n\r\n 9";
    let (head, len) = request(bytes);
    assert_eq!((&bytes[len..], head.is_folded), (&b" 9"[..], true));
    assert_eq!((head.host, head.content_length), (&b"a"[..], Some(1)));
    let mut agent = Vec::new();
    unfold(head.user_agent, &mut agent);
    assert_eq!(agent, b"b c");
    let bytes = b"HTTP/1.1 200 OK\r\n Content-Length: 7\r\nTransfer-Encoding: gzip,\r\n chunked\r\nContent-Type:\n text/x\n\n";
    let (head, _) = response(bytes);
    assert_eq!((head.content_length, head.chunked), (None, true));
    assert_eq!(head.content_type, b"text/x");
    // Digits in two lines are not one number.
    let (head, _) = response(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n");
    assert_eq!(head.content_length, None);
    // The line that continues is not there yet.
    let Outcome::Partial(head) = parse_request(b"GET / HTTP/1.1\r\nHost: a\r\n b") else {
        panic!()
    };
    assert_eq!(head.host, b"a");
    assert!(!request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n b").0.is_folded);
}

proptest! {
    /// Both readers of fields read the same.
    #[test]
    fn folds_are_those_of_all_fields(lines in proptest::collection::vec(prop_oneof![Just("Host:"), Just("Host: a"), Just(" b"), Just("\t"), Just("X: y"), Just("User-Agent: c"), Just(" Host: d")], 0..8), bare: bool) {
        let end = if bare { "\n" } else { "\r\n" };
        let bytes = format!("GET / HTTP/1.1{end}{}{end} body", lines.iter().map(|line| format!("{line}{end}")).collect::<String>());
        let (head, len) = request(bytes.as_bytes());
        prop_assert_eq!(bytes.len() - len, 5);
        for (name, value) in [(&b"host"[..], head.host), (b"user-agent", head.user_agent)] {
            let want = Fields::of_head(bytes.as_bytes()).find(|field| field.is(name) && !field.value.is_empty());
            prop_assert_eq!(value, want.map_or(&b""[..], |field| field.value));
        }
    }
}

#[test]
fn status_lines() {
    let (head, len) =
        response(b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html; charset=x\r\n\r\n<html>");
    assert_eq!(
        (head.status_code, head.reason_phrase),
        (404, &b"Not Found"[..])
    );
    assert_eq!(head.content_type, b"text/html; charset=x");
    assert_eq!(len, 62);
    assert_eq!(response(b"HTTP/1.0 200\r\n\r\n").0.reason_phrase, b"");
    for bad in [
        &b"HTTP/1.1 20x OK\r\n\r\n"[..],
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
    ] {
        assert_eq!(
            parse_response(bad),
            Outcome::Invalid,
            "{}",
            bad.escape_ascii()
        );
    }
}

#[test]
fn interim_is_every_1xx_but_101() {
    let interim = |code: u16| {
        ResponseHead {
            status_code: code,
            ..ResponseHead::default()
        }
        .is_interim()
    };
    assert!(interim(100) && interim(103));
    assert!(!interim(101) && !interim(200));
}

#[test]
fn body_lengths_follow_the_rfc() {
    let head = |code, length| ResponseHead {
        status_code: code,
        content_length: length,
        ..ResponseHead::default()
    };
    assert_eq!(
        response_body(&head(200, Some(7)), b"GET"),
        BodyLength::Known(7)
    );
    assert_eq!(
        response_body(&head(200, Some(7)), b"HEAD"),
        BodyLength::Known(0)
    );
    assert_eq!(
        response_body(&head(304, Some(7)), b"GET"),
        BodyLength::Known(0)
    );
    assert_eq!(
        response_body(&head(200, None), b"GET"),
        BodyLength::UntilClose
    );
    assert_eq!(
        response_body(&head(200, None), b"CONNECT"),
        BodyLength::UntilClose
    );
    assert_eq!(chunked_length(b"3\r\nabc\r\n0\r\n\r\nHTTP/1.1"), Some(13));
    assert_eq!(
        chunked_length(b"3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n"),
        Some(23)
    );
    assert_eq!(chunked_length(b"3\r\nab"), None);
    assert_eq!(chunked_length(b"ffffffffffffffff\r\nab"), None);
}

#[test]
fn starts() {
    for (bytes, want) in [
        (&b"GET /"[..], Start::Request),
        (b"GET http://a/", Start::Request),
        (b"GE", Start::Unsure),
        (b"GET ", Start::Unsure),
        (b"POST", Start::Unsure),
        (b"OPTI", Start::Unsure),
        (b"PROPFIND /dav HTTP/1.1\r\n", Start::Request),
        (b"PROPFIND /dav", Start::Request),
        (b"CCM_POST /x HTTP/1.1\r\n", Start::Request),
        (b"CCM_POST /x HTTP", Start::Neither),
        (b"HTTP/1.1 200 OK", Start::Response),
        (b"HTTP", Start::Unsure),
        (b"HTTP/2 200", Start::Neither),
        (b"HTTPS", Start::Neither),
        (b"GET \r\n", Start::Neither),
        (b"GETTING somewhere\r\n", Start::Neither),
        (b"some text of a body HTTP/1.1 and more\r\n", Start::Neither),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Start::Neither),
        (b"", Start::Neither),
        (b"\0\0\0\0", Start::Neither),
    ] {
        assert_eq!(classify(bytes), want, "{}", bytes.escape_ascii());
    }
}

#[test]
fn http_0_9_is_refused() {
    assert_eq!(parse_request(b"GET /old\r\n\r\n"), Outcome::Invalid);
    assert_eq!(
        parse_request(b"OPTIONS sip:a@b SIP/2.0\r\n\r\n"),
        Outcome::Invalid
    );
}

#[test]
fn a_cut_request_line_gives_what_is_there() {
    let Outcome::Partial(head) = parse_request(b"GET http://h.example/long/uri") else {
        panic!()
    };
    assert_eq!(
        (head.target, head.host),
        (&b"http://h.example/long/uri"[..], &b"h.example"[..])
    );
    let Outcome::Partial(head) = parse_request(b"GET /x HTTP/1") else {
        panic!()
    };
    assert_eq!(head.target, b"/x");
}

#[test]
fn a_head_beyond_the_bound_is_refused() {
    let mut bytes = b"GET /".to_vec();
    bytes.resize(60_000, b'a');
    bytes.extend_from_slice(b" HTTP/1.1\r\n\r\n");
    assert_eq!(request(&bytes).0.target.len(), 59_996);
    bytes.splice(5..5, std::iter::repeat_n(b'b', 6_000));
    assert_eq!(parse_request(&bytes), Outcome::Invalid);
}

fn token() -> impl Strategy<Value = String> {
    "[A-Za-z!#$%&'*+.^_`|~0-9-]{1,20}"
}

proptest! {
    #[test]
    fn emit_then_parse(method in token(), target in "/[!-~]{0,300}", host in "[a-z0-9.:-]{1,60}", agent in "[!-~]([ -~]{0,80}[!-~])?", length: u32) {
        let bytes = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent:{agent}\r\ncontent-length: {length}\r\n\r\n");
        let (head, len) = request(bytes.as_bytes());
        prop_assert_eq!(len, bytes.len());
        prop_assert_eq!(head.method, method.as_bytes());
        prop_assert_eq!(head.target, target.as_bytes());
        prop_assert_eq!(head.host, host.as_bytes());
        prop_assert_eq!(head.user_agent, agent.as_bytes());
        prop_assert_eq!(head.content_length, Some(u64::from(length)));
        prop_assert_eq!(classify(bytes.as_bytes()), if method == "HTTP" { Start::Neither } else { Start::Request });
        // Every proper prefix needs more; none is complete and none is refused before its line ends.
        for cut in 1..bytes.len() {
            prop_assert!(!matches!(parse_request(&bytes.as_bytes()[..cut]), Outcome::Complete(..)), "{}", cut);
        }
    }

    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600), lead in 0_usize..4) {
        let mut input = [&b""[..], b"GET ", b"HTTP/1.1 ", b"POST / HTTP/1.1\r\n"][lead].to_vec();
        input.extend_from_slice(&bytes);
        std::hint::black_box(classify(&input));
        std::hint::black_box(parse_request(&input));
        std::hint::black_box(parse_response(&input));
        if let Some(len) = chunked_length(&input) {
            prop_assert!(len <= input.len());
        }
    }
}

#[test]
fn what_a_response_says_of_its_content_and_of_websocket() {
    let read = |head: &'static str| match parse_response(head.as_bytes()) {
        Outcome::Complete(head, _) => (head.content_encoding, head.is_websocket),
        other => panic!("{other:?}"),
    };
    let coded = read("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(coded, (&b"gzip"[..], false), "only 101 switches");
    let switched = read("HTTP/1.1 101 Switching\r\nupgrade : WebSocket\r\n\r\n");
    assert_eq!(switched, (&b""[..], true));
    assert!(!read("HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n").1);
}
