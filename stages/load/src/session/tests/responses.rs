//! Responses in pieces of any size.

use proptest::prelude::*;

use crate::outcome::Failure;
use crate::session::Heads;
use crate::session::response::{Progress, ResponseReader};

/// Body, bytes received, status, how many interim ones, whether it ended, what was left, keep-alive.
type Read = (Vec<u8>, u64, u16, u32, bool, usize, bool);

fn read<'a>(is_to_head: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Read, Failure> {
    let mut heads = Heads::new(4000, 4000);
    let mut reader = ResponseReader::new(is_to_head);
    let (mut body, mut interim, mut is_done, mut left) = (Vec::new(), 0, false, 0);
    for piece in pieces {
        let mut rest = piece;
        while !is_done {
            let before = rest.len();
            let progress =
                reader.read(&mut rest, &mut heads, |bytes| body.extend_from_slice(bytes))?;
            assert!(rest.len() <= before);
            match progress {
                Progress::More => {
                    assert!(rest.is_empty());
                    break;
                }
                Progress::Interim => interim += 1,
                Progress::Head => {}
                Progress::Done => is_done = true,
            }
            if rest.is_empty() && !is_done {
                break;
            }
        }
        left += rest.len();
    }
    assert!(heads.held_bytes() <= 4000);
    let result = (
        body,
        reader.received(),
        reader.status(),
        interim,
        is_done,
        left,
        reader.keeps_alive(),
    );
    reader.release(&mut heads);
    assert_eq!(heads.held_bytes(), 0);
    Ok(result)
}

#[test]
fn framings() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n2\r\nab\r\n0\r\nA: b\r\n\r\nrest";
    assert_eq!(
        read(false, [&chunked[..]]),
        Ok((b"ab".to_vec(), 84, 200, 0, true, 4, true))
    );
    let until_close = b"HTTP/1.1 200 OK\n\nabc";
    assert_eq!(
        read(false, [&until_close[..]]),
        Ok((b"abc".to_vec(), 20, 200, 0, false, 0, false))
    );
    let to_head = b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    assert_eq!(
        read(true, [&to_head[..]]),
        Ok((Vec::new(), 56, 200, 1, true, 0, true))
    );
}

#[test]
fn what_is_no_response() {
    for bytes in [
        &b"\r\nHTTP/1.1 200 OK\r\n\r\n"[..],
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        assert_eq!(
            read(false, [bytes]),
            Err(Failure::Malformed),
            "{}",
            bytes.escape_ascii()
        );
        assert_eq!(
            read(false, bytes.chunks(1)),
            Err(Failure::Malformed),
            "{}",
            bytes.escape_ascii()
        );
    }
}

fn response() -> impl Strategy<Value = Vec<u8>> {
    let interim =
        prop_oneof![3 => Just(""), 1 => Just("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n")];
    let field = prop_oneof![
        Just("Content-Type: text/html\r\n"),
        Just("Connection: close\r\n"),
        Just("connection: Keep-Alive\r\n"),
        Just("X: y\r\n"),
    ];
    let body = proptest::collection::vec(any::<u8>(), 0..100);
    let parts = (
        interim,
        prop_oneof![Just("1.1"), Just("1.0")],
        prop_oneof![Just(200_u16), Just(204), Just(304), Just(404), Just(500)],
        proptest::collection::vec(field, 0..3),
        0_u8..3,
        body,
        proptest::collection::vec(any::<u8>(), 0..3),
    );
    parts.prop_map(|(interim, version, status, fields, framing, body, extra)| {
        let mut bytes =
            format!("{interim}HTTP/{version} {status} X\r\n{}", fields.concat()).into_bytes();
        match framing {
            0 => {
                bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                bytes.extend(&body);
            }
            1 => {
                bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in body.chunks(7) {
                    bytes.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
                    bytes.extend(chunk);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\n\r\n");
            }
            _ => {
                bytes.extend(b"\r\n");
                bytes.extend(&body);
            }
        }
        bytes.extend(extra);
        bytes
    })
}

proptest! {
    #[test]
    fn cuts_change_nothing(bytes in response(), is_to_head: bool, cuts in proptest::collection::vec(1_usize..9, 1..40)) {
        let whole = read(is_to_head, [&bytes[..]]);
        let (mut pieces, mut rest) = (Vec::new(), &bytes[..]);
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(read(is_to_head, pieces), whole);
    }

    #[test]
    fn hostile_bytes_are_bounded(
        start in prop_oneof![Just(""), Just("HTTP/1.1 200 OK\r\n"), Just("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")],
        tail in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b':'), Just(b'1'), Just(b';'), any::<u8>()], 0..6000),
        cut in 1_usize..2000,
    ) {
        let bytes = [start.as_bytes(), &tail].concat();
        let whole = read(false, [&bytes[..]]);
        let cut = read(false, bytes.chunks(cut));
        // A head beyond its bound may be seen whole before it is seen to be too long.
        prop_assert_eq!(cut, whole);
    }
}
