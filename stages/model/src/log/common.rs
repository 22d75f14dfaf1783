//! Common and Combined Log Format.
//!
//! ```text
//! client ident user [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326 "referer" "agent"
//! ```
//! Source: the Apache HTTP Server's documentation of `mod_log_config`; nginx writes the same. The size
//! is `-` or 0 where no body was sent; what follows it is not looked at.

use super::calendar::{Civil, Digits};
use super::{Cause, Client, Request};

/// Reads a line without its line feed.
pub(super) fn parse(line: &[u8]) -> Result<Request, Cause> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (client, rest) = split_at_byte(line, b' ').ok_or(Cause::Client)?;
    let client = Client::from_text(client).ok_or(Cause::Client)?;
    let (time_ns, rest) = time(rest).ok_or(Cause::Time)?;
    let request = request(rest)?;
    if request == b"-" {
        return Err(Cause::NoRequest);
    }
    Ok(Request {
        time_ns,
        client,
        line: 0,
    })
}

/// What stands before and after the first byte `at`.
fn split_at_byte(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|byte| *byte == at)?;
    let (before, after) = text.split_at_checked(place)?;
    Some((before, after.get(1..)?))
}

/// The time, and what follows it. A name of a user may hold spaces and brackets: the time is the
/// first bracket that holds one.
fn time(mut rest: &[u8]) -> Option<(u64, &[u8])> {
    loop {
        let (_, after) = split_at_byte(rest, b'[')?;
        if let Some(found) = stamp(after) {
            return Some(found);
        }
        rest = after;
    }
}

/// `10/Oct/2000:13:55:36 -0700]`; a fraction of the second is read where there is one.
fn stamp(text: &[u8]) -> Option<(u64, &[u8])> {
    const MONTHS: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    let mut at = Digits(text);
    let day = at.number(2)?;
    at.one_of(b"/")?;
    let (name, rest) = at.rest().split_first_chunk::<3>()?;
    let month = MONTHS
        .iter()
        .zip(1..)
        .find(|(known, _)| known.eq_ignore_ascii_case(name))?
        .1;
    at = Digits(rest);
    at.one_of(b"/")?;
    let year = at.number(4)?;
    at.one_of(b":")?;
    let hour = at.number(2)?;
    at.one_of(b":")?;
    let minute = at.number(2)?;
    at.one_of(b":")?;
    let second = at.number(2)?;
    let nanos = at.fraction()?;
    at.one_of(b" ")?;
    let offset_s = at.offset()?;
    at.one_of(b"]")?;
    let civil = Civil {
        year,
        month,
        day,
        hour,
        minute,
        second,
        nanos,
        offset_s,
    };
    Some((civil.nanos_since_1970()?, at.rest()))
}

/// The request: from the quote to the first one that is not escaped and has a status and a size
/// behind it. Old servers do not escape quotes; a quote in the middle is taken for what it is.
fn request(rest: &[u8]) -> Result<&[u8], Cause> {
    let text = rest.trim_ascii_start().strip_prefix(b"\"");
    let text = text.ok_or(Cause::Request)?;
    let mut cause = Cause::Request;
    let mut is_escaped = false;
    for (place, byte) in text.iter().enumerate() {
        if *byte == b'"' && !is_escaped {
            let (request, answer) = text.split_at_checked(place).ok_or(Cause::Request)?;
            match status_and_size(answer.get(1..).unwrap_or_default()) {
                Ok(()) => return Ok(request),
                // The first quote says best what is wrong.
                Err(first) if cause == Cause::Request => cause = first,
                Err(_) => {}
            }
        }
        is_escaped = *byte == b'\\' && !is_escaped;
    }
    Err(cause)
}

fn status_and_size(text: &[u8]) -> Result<(), Cause> {
    let text = text.strip_prefix(b" ").ok_or(Cause::Status)?;
    let mut words = text.split(|byte| *byte == b' ');
    let is_status = match words.next() {
        Some(b"-") => true,
        Some(word) => word.len() == 3 && word.iter().all(u8::is_ascii_digit),
        None => false,
    };
    if !is_status {
        return Err(Cause::Status);
    }
    match words.next() {
        Some(b"-") => Ok(()),
        Some(word) if !word.is_empty() && word.iter().all(u8::is_ascii_digit) => Ok(()),
        _ => Err(Cause::Size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::calendar::SECOND_NS;
    use proptest::prelude::*;

    fn at(line: &str) -> Result<u64, Cause> {
        parse(line.as_bytes()).map(|request| request.time_ns / SECOND_NS)
    }

    #[test]
    fn lines_of_servers() {
        let apache = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
        assert_eq!(at(apache), Ok(971_211_336));
        let combined = format!(r#"{apache} "http://x.test/\"" "Mozilla/4.08 [en] (Win98)""#);
        assert_eq!(at(&combined), Ok(971_211_336));
        let client = |line: &str| parse(line.as_bytes()).unwrap().client;
        assert_eq!(client(apache), Client::Address([127, 0, 0, 1].into()));
        let rest = r#"- - [01/Jul/1995:00:00:01 -0400] "GET /a HTTP/1.0" 304 -"#;
        assert_eq!(at(&format!("2001:db8::7 {rest}")), Ok(804_571_201));
        assert_eq!(
            client(&format!("ix-4.netcom.com {rest}")),
            Client::from_text(b"IX-4.netcom.com").unwrap()
        );
        // Names with spaces and brackets; fractions; escaped and bare quotes; a carriage return.
        for line in [
            r#"a - the [x] user [01/Jul/1995:00:00:01.25 -0400] "GET / HTTP/1.0" 200 5"#,
            r#"a - - [01/Jul/1995:00:00:01 -0400] "GET /\"x\" 200 1\\" 400 226"#,
            r#"a - - [01/Jul/1995:00:00:01 -0400] "GET /"quoted" HTTP/1.0" 404 -"#,
            r#"a - - [01/Jul/1995:00:00:01 -0400] "\x16\x03\x01" 400 0"#,
            "a - - [01/Jul/1995:00:00:01 -0400] \"GET /\" - -\r",
            r#"a - - [01/Jul/1995:00:00:01 -0400] "" 400 0"#,
        ] {
            assert_eq!(at(line), Ok(804_571_201), "{line}");
        }
    }

    #[test]
    fn damage_has_a_cause() {
        let time = "[01/Jul/1995:00:00:01 -0400]";
        for (line, cause) in [
            ("", Cause::Client),
            ("alone", Cause::Client),
            (" - - x", Cause::Client),
            (r#"a - - "GET /" 200 1"#, Cause::Time),
            (
                r#"a - - [31/Jun/1995:00:00:01 -0400] "GET /" 200 1"#,
                Cause::Time,
            ),
            (
                r#"a - - [01/Jul/1995:25:00:01 -0400] "GET /" 200 1"#,
                Cause::Time,
            ),
            (r#"a - - [01/Jul/1995:00:00:01] "GET /" 200 1"#, Cause::Time),
            (&format!("a - - {time} GET / 200 1"), Cause::Request),
            (&format!("a - - {time} \"GET /"), Cause::Request),
            (&format!("a - - {time} \"GET /\" OK 1"), Cause::Status),
            (&format!("a - - {time} \"GET /\""), Cause::Status),
            (&format!("a - - {time} \"GET /\" 200"), Cause::Size),
            (&format!("a - - {time} \"GET /\" 200 x"), Cause::Size),
            (&format!("a - - {time} \"-\" 408 -"), Cause::NoRequest),
        ] {
            assert_eq!(at(line), Err(cause), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_line_is_too_strange(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _any = parse(&line);
        }

        #[test]
        fn any_request_with_escapes_is_read(text in "[ -~]{0,80}") {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
            let line = format!("::1 - - [01/Jul/1995:00:00:01 +0000] \"{escaped}\" 200 17");
            let expected = if text == "-" { Err(Cause::NoRequest) } else { Ok(804_556_801) };
            prop_assert_eq!(at(&line), expected);
        }
    }
}
