//! Messages whose end is disputed (RFC 9112 sec. 6.3, 11.2).

use super::{faults, files, inspect, text};
use crate::inspect::Side::{Client, Server};

#[test]
fn a_request_that_smuggles_is_malformed() {
    let smuggled = "0\r\n\r\nGET /hidden.exe HTTP/1.1\r\nHost: b\r\n\r\n";
    for (fields, why) in [
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "both Content-Length and Transfer-Encoding",
        ),
        (
            "Content-Length: 5\r\nContent-Length: 6",
            "Content-Length that contradicts",
        ),
        (
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding that is not chunked",
        ),
        (
            "Transfer-Encoding: chunked, identity",
            "Transfer-Encoding that is not chunked",
        ),
        (
            "Transfer-Encoding:\r\n chunked",
            "length in a folded or disguised field",
        ),
        ("Transfer-Encoding : chunked", "an invalid field name"),
    ] {
        let request = format!("POST /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{smuggled}");
        let found = inspect(&[(Client, request.as_bytes())]);
        assert_eq!(faults(&found), [(Client, why)], "{fields}");
        assert_eq!(text(&found.client), request.as_bytes());
        assert!(files(&found.client).is_empty());
    }
}

#[test]
fn a_response_is_read_as_all_clients_read_it() {
    let get = b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n";
    for (fields, body, want) in [
        (
            "Transfer-Encoding: \t chunked",
            "2\r\nab\r\n0\r\n\r\n",
            "ab",
        ),
        ("Content-Length: 2\r\nContent-Length: 2", "ab", "ab"),
        (
            "X: y\r\n Content-Length: 1\r\nContent-Length: 2",
            "ab",
            "ab",
        ),
    ] {
        let response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}");
        let found = inspect(&[(Client, get), (Server, response.as_bytes())]);
        assert_eq!(faults(&found), [], "{fields}");
        let sent = files(&found.server);
        assert_eq!(
            (sent.len(), &sent[0].1[..]),
            (1, want.as_bytes()),
            "{fields}"
        );
        assert!(sent[0].2);
    }
}

#[test]
fn a_response_that_clients_read_in_different_ways_is_malformed() {
    let get = b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = "Content-Length that contradicts";
    let coding = "Transfer-Encoding that is not chunked";
    let name = "an invalid field name";
    for (fields, why) in [
        ("Content-Length: 2\r\nContent-Length: 3", length),
        ("Content-Length: two", length),
        ("Content-Length : 2", name),
        ("Transfer-Encoding : chunked", name),
        ("X : a\r\nTransfer-Encoding: chunked", name),
        ("X\u{e9}: a\r\nTransfer-Encoding: chunked", name),
        ("Transfer-Encoding: xchunked\r\nContent-Length: 1", coding),
        ("Transfer-Encoding: chunked,", coding),
        ("Transfer-Encoding: ,chunked", coding),
        ("Transfer-Encoding: identity, chunked", coding),
        ("Transfer-Encoding:\r\nTransfer-Encoding: chunked", coding),
        (
            "X: a\rTransfer-Encoding: chunked",
            "CR without LF in a head",
        ),
        ("X: a\rContent-Encoding: deflate", "CR without LF in a head"),
        ("X: \0", "NUL in a head"),
        ("no colon\r\nContent-Length: 2", "a line without a colon"),
        (" X: a", "a field that begins with white space"),
    ] {
        let response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nab");
        let found = inspect(&[(Client, get), (Server, response.as_bytes())]);
        assert_eq!(faults(&found), [(Server, why)], "{fields:?}");
        assert_eq!(text(&found.server), response.as_bytes());
    }
}

#[test]
fn an_empty_line_before_a_response_is_malformed() {
    let get = b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n";
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
    // Behind the last one it is of no matter.
    for blank in [&b"\r\n"[..], b"\n"] {
        let found = inspect(&[(Client, get), (Server, response), (Server, blank)]);
        assert_eq!(faults(&found), []);
        for before in [&b""[..], response] {
            let found = inspect(&[
                (Client, get),
                (Client, get),
                (Server, before),
                (Server, blank),
                (Server, response),
            ]);
            let why = "an empty line before a response";
            assert_eq!(faults(&found), [(Server, why)]);
        }
    }
}

#[test]
fn a_response_that_nobody_asked_for_is_malformed() {
    let get = b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n";
    let first = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n";
    for second in ["100 Continue", "200 OK"] {
        let second = format!("HTTP/1.1 {second}\r\nX: what some clients take for a body\r\n\r\n");
        let found = inspect(&[(Client, get), (Server, first), (Server, second.as_bytes())]);
        assert_eq!(
            faults(&found),
            [(Server, "a response that nobody asked for")]
        );
    }
}

#[test]
fn chunks_that_are_none_end_the_file_and_the_inspection() {
    let get = b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (body, why) in [
        ("2\r\nabc\r\n", "chunk longer than its size"),
        ("2\r\nab\r\n-\r\n", "chunk size that is not a number"),
    ] {
        let response = format!("{head}{body}");
        let found = inspect(&[
            (Client, get),
            (Server, response.as_bytes()),
            (Client, b"more"),
        ]);
        assert_eq!(faults(&found), [(Server, why)]);
        let sent = files(&found.server);
        assert_eq!((&sent[0].1[..], sent[0].2), (&b"ab"[..], false));
        assert!(text(&found.client).ends_with(b"more"));
    }
}

#[test]
fn a_file_goes_on_when_the_other_side_talks_nonsense() {
    let found = inspect(&[
        (Client, b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n"),
        (Server, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"),
        (Client, b"\0\0"),
        (Server, b"cdHTTP/1.1 200 OK\r\n\r\n"),
    ]);
    assert_eq!(faults(&found), [(Client, "no start line of HTTP/1")]);
    let sent = files(&found.server);
    assert_eq!(
        (sent.len(), &sent[0].1[..], sent[0].2),
        (1, &b"abcd"[..], true)
    );
    assert!(text(&found.server).ends_with(b"HTTP/1.1 200 OK\r\n\r\n"));
}

#[test]
fn more_requests_than_are_kept() {
    let request = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    let found = inspect(&[(Client, &request.repeat(129))]);
    assert_eq!(
        faults(&found),
        [(Client, "more requests wait than are kept")]
    );
    assert_eq!(faults(&inspect(&[(Client, &request.repeat(128))])), []);
}

#[test]
fn what_some_clients_take_for_a_body_is_no_head_that_does_not_end() {
    let get = b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n";
    let cr = "CR without LF in a head";
    for (response, why) in [
        (&b"no head at all"[..], "no start line of HTTP/1"),
        (
            b"HTTP/1.1 304 Not Modified\r\n\r\nforbidden",
            "no start line of HTTP/1",
        ),
        (
            b"HTTP/1.1 199 Odd\r\n\r\nforbidden",
            "no start line of HTTP/1",
        ),
        (b"HTTP/1.1 200 OK\r\r\nA: b\r\r\n\r\r\nforbidden", cr),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n\r\r\nforbidden", cr),
        (b"HTTP/1.1 200 OK\rA: b\r\rforbidden", cr),
    ] {
        for cut in 1..response.len() {
            let (first, second) = response.split_at(cut);
            let found = inspect(&[(Client, get), (Server, first), (Server, second)]);
            assert_eq!(
                faults(&found),
                [(Server, why)],
                "{} at {cut}",
                response.escape_ascii()
            );
        }
    }
    // Who was offered a file asks for it.
    let found = inspect(&[
        (Client, b"GIVE 12345678\r\n\r\n"),
        (Server, b"GET /b HTTP/1.1\r\n\r\n"),
    ]);
    assert_eq!(faults(&found), []);
}

#[test]
fn blanks_around_a_coding_and_lengths_beside_it_are_malformed() {
    let get = b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n";
    let disguised = "length in a folded or disguised field";
    for (fields, why) in [
        ("Transfer-Encoding: chunked ", disguised),
        ("Transfer-Encoding: chunked\t", disguised),
        ("Transfer-Encoding: chunked\x0c", disguised),
        ("Transfer-Encoding:\x0cchunked", disguised),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 3",
            "both Content-Length and Transfer-Encoding",
        ),
        (
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "both Content-Length and Transfer-Encoding",
        ),
    ] {
        let response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n2\r\nab\r\n0\r\n\r\n");
        let found = inspect(&[(Client, get), (Server, response.as_bytes())]);
        assert_eq!(faults(&found), [(Server, why)], "{fields}");
    }
    let response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000002\r\nab\r\n";
    let found = inspect(&[(Client, get), (Server, response)]);
    assert_eq!(faults(&found), [(Server, "chunk size beyond 31 bits")]);
}
