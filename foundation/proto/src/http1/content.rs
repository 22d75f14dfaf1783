//! What is transferred: names of files and the fields that describe them.

use std::borrow::Cow;

use super::framing::decimal;

/// Name, value and what is behind them of a parameter (`; name=value`).
type Parameter<'a> = (&'a [u8], Cow<'a, [u8]>, &'a [u8]);

/// The file name of a `Content-Disposition` value (RFC 6266), without directories; empty where it has none.
///
/// `filename*` (RFC 8187) goes before `filename`, its bytes are UTF-8 where they say so or are
/// ISO-8859-1. Continuations (`filename*0`, RFC 2231) and encoded words (RFC 2047) are not of HTTP
/// and not read.
#[must_use]
pub fn disposition_name(value: &[u8]) -> Cow<'_, [u8]> {
    disposition_names(value)
        .into_iter()
        .next()
        .unwrap_or_default()
}

/// All names that a client may give the file of a `Content-Disposition` value, that of
/// [`disposition_name`] first, each once: curl takes `filename` where both are there, aria2 undoes every
/// quoted pair, wget reads a `filename*` that is not what it should be.
#[must_use]
pub fn disposition_names(value: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let (mut extended, mut others) = (Vec::new(), Vec::new());
    let mut rest = value;
    while let Some((name, value, after)) = parameter(rest) {
        rest = after;
        if name.eq_ignore_ascii_case(b"filename*") {
            match extended_value(&value) {
                Some(name) => extended.push(without_directories(Cow::Owned(name))),
                None => others.push(without_directories(Cow::Owned(behind_quotes(&value)))),
            }
        } else if name.eq_ignore_ascii_case(b"filename") {
            let unquoted = value.contains(&b'\\').then(|| without_pairs(&value));
            others.push(without_directories(value));
            others.extend(unquoted.map(|name| without_directories(Cow::Owned(name))));
        }
    }
    let mut names: Vec<Cow<'_, [u8]>> = Vec::new();
    for name in extended.into_iter().chain(others) {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What is behind the last `'`, decoded.
fn behind_quotes(value: &[u8]) -> Vec<u8> {
    let start = memchr::memrchr(b'\'', value).map_or(0, |at| at + 1);
    percent_decoded(value.get(start..).unwrap_or_default()).into_owned()
}

/// Every quoted pair undone (RFC 9110 sec. 5.6.4).
fn without_pairs(value: &[u8]) -> Vec<u8> {
    let mut bytes = value.iter().copied();
    let mut plain = Vec::with_capacity(value.len());
    while let Some(byte) = bytes.next() {
        plain.extend(if byte == b'\\' {
            bytes.next()
        } else {
            Some(byte)
        });
    }
    plain
}

/// The value of a parameter of a field like `Content-Type`; empty where it has none.
#[must_use]
pub fn parameter_value<'a>(value: &'a [u8], name: &[u8]) -> Cow<'a, [u8]> {
    let mut rest = value;
    while let Some((this, value, after)) = parameter(rest) {
        rest = after;
        if this.eq_ignore_ascii_case(name) {
            return value;
        }
    }
    Cow::Borrowed(&[])
}

/// The next parameter; words without `=` are passed over.
fn parameter(bytes: &[u8]) -> Option<Parameter<'_>> {
    let mut rest = bytes;
    loop {
        let end = memchr::memchr2(b'=', b';', rest)?;
        let (name, after) = rest.split_at_checked(end)?;
        let (&separator, after) = after.split_first()?;
        rest = after;
        if separator == b';' {
            continue;
        }
        let after = after.trim_ascii_start();
        let (value, after) = match after.strip_prefix(b"\"") {
            Some(quoted) => quoted_value(quoted),
            None => {
                let end = memchr::memchr(b';', after).unwrap_or(after.len());
                let (value, after) = after.split_at_checked(end)?;
                (Cow::Borrowed(value.trim_ascii()), after)
            }
        };
        return Some((name.trim_ascii(), value, after));
    }
}

/// What is before the closing quotation mark, and behind it.
///
/// Only `\"` and `\\` are taken for quoted pairs: some servers send directories of Windows as they are.
fn quoted_value(bytes: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let mut value = Cow::Borrowed(&[][..]);
    let mut rest = bytes;
    loop {
        let end = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        let (plain, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        append(&mut value, plain);
        match after {
            [b'\\', b'"' | b'\\', ..] => {
                append(&mut value, after.get(1..2).unwrap_or_default());
                rest = after.get(2..).unwrap_or_default();
            }
            [b'\\', ..] => {
                append(&mut value, b"\\");
                rest = after.get(1..).unwrap_or_default();
            }
            _ => return (value, after.get(1..).unwrap_or_default()),
        }
    }
}

fn append<'a>(value: &mut Cow<'a, [u8]>, more: &'a [u8]) {
    if value.is_empty() {
        *value = Cow::Borrowed(more);
    } else if !more.is_empty() {
        value.to_mut().extend_from_slice(more);
    }
}

/// `charset'language'percent-encoded` (RFC 8187 sec. 3.2).
fn extended_value(value: &[u8]) -> Option<Vec<u8>> {
    let mut parts = value.splitn(3, |&byte| byte == b'\'');
    let (charset, _language, text) = (parts.next()?, parts.next()?, parts.next()?);
    let decoded = percent_decoded(text);
    if charset.eq_ignore_ascii_case(b"iso-8859-1") && !decoded.is_ascii() {
        let text: String = decoded.iter().copied().map(char::from).collect();
        return Some(text.into_bytes());
    }
    Some(decoded.into_owned())
}

/// What is behind the last `/` or `\`: a name must not lead into other directories (RFC 6266 sec. 4.3).
fn without_directories(name: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let start = memchr::memrchr2(b'/', b'\\', &name).map_or(0, |at| at + 1);
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.get(start..).unwrap_or_default()),
        Cow::Owned(mut name) => {
            name.drain(..start);
            Cow::Owned(name)
        }
    }
}

/// The last segment of the path of a request target, percent-decoded; empty where the path ends in
/// `/` or the target has none.
#[must_use]
pub fn target_name(target: &[u8]) -> Cow<'_, [u8]> {
    percent_decoded(last_segment(path(target)))
}

/// The path of a target in origin-form or absolute-form, without query and fragment.
#[must_use]
pub fn path(target: &[u8]) -> &[u8] {
    let end = memchr::memchr2(b'?', b'#', target).unwrap_or(target.len());
    let target = target.get(..end).unwrap_or(target);
    if target.starts_with(b"/") {
        return target;
    }
    let Some(scheme) = memchr::memmem::find(target, b"://") else {
        return &[];
    };
    let after = target.get(scheme + 3..).unwrap_or_default();
    let start = memchr::memchr(b'/', after).unwrap_or(after.len());
    after.get(start..).unwrap_or_default()
}

fn last_segment(path: &[u8]) -> &[u8] {
    let start = memchr::memrchr(b'/', path).map_or(0, |at| at + 1);
    path.get(start..).unwrap_or_default()
}

/// `%XX` made the byte it stands for (RFC 3986 sec. 2.1); other `%` stay.
#[must_use]
pub fn percent_decoded(bytes: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'%', bytes) else {
        return Cow::Borrowed(bytes);
    };
    let mut decoded = bytes.get(..first).unwrap_or_default().to_vec();
    let mut rest = bytes.get(first..).unwrap_or_default();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%').then(|| hexadecimal_byte(after)).flatten();
        decoded.push(escaped.unwrap_or(byte));
        rest = after
            .get(if escaped.is_some() { 2 } else { 0 }..)
            .unwrap_or_default();
    }
    Cow::Owned(decoded)
}

fn hexadecimal_byte(digits: &[u8]) -> Option<u8> {
    let [high, low, ..] = digits else { return None };
    let value = char::from(*high).to_digit(16)? << 4 | char::from(*low).to_digit(16)?;
    u8::try_from(value).ok()
}

/// The length of the whole of which a `Content-Range` is a part (RFC 9110 sec. 14.4).
#[must_use]
pub fn range_total(value: &[u8]) -> Option<u64> {
    let unit = value.get(..5)?;
    if !unit.eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    let slash = memchr::memrchr(b'/', value)?;
    decimal(value.get(slash + 1..)?.trim_ascii())
}

/// A host without its port.
#[must_use]
pub fn without_port(host: &[u8]) -> &[u8] {
    let Some(colon) = memchr::memrchr(b':', host) else {
        return host;
    };
    let (name, port) = host.split_at_checked(colon).unwrap_or((host, &[]));
    let is_port = port.iter().skip(1).all(u8::is_ascii_digit);
    // An IPv6 address without brackets is all name.
    let is_address = name.contains(&b':') && !name.ends_with(b"]");
    if is_port && !is_address { name } else { host }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_dispositions() {
        for (value, want) in [
            ("inline", ""),
            ("attachment; filename=example.html", "example.html"),
            (r#"attachment; filename="a b;c.txt""#, "a b;c.txt"),
            (
                r#"attachment; filename="a \"b\".txt"; size=3"#,
                r#"a "b".txt"#,
            ),
            (r#"Attachment; FileName = "x.exe" "#, "x.exe"),
            (r#"attachment; filename="C:\temp\setup.exe""#, "setup.exe"),
            (r#"attachment; filename="../../etc/passwd""#, "passwd"),
            (
                "attachment; filename=\"EURO.txt\"; filename*=utf-8''%e2%82%ac%20rates.txt",
                "€ rates.txt",
            ),
            (
                "attachment; filename*=ISO-8859-1'en'%A3.txt; filename=no",
                "£.txt",
            ),
            ("attachment; filename*=UTF-8''..%2F..%2Fx.sh", "x.sh"),
            ("attachment; filename*=broken; filename=yes.txt", "broken"),
            ("filename=bare.zip", "bare.zip"),
            (r#"attachment; x="; filename=no"; filename=yes"#, "yes"),
            (r#"attachment; filename="unended"#, "unended"),
            ("attachment; filename=", ""),
            ("", ""),
        ] {
            let name = disposition_name(value.as_bytes());
            assert_eq!(String::from_utf8_lossy(&name), want, "{value}");
        }
    }

    #[test]
    fn names_that_clients_may_take() {
        for (value, want) in [
            (
                r#"attachment; filename="evil.exe"; filename*=UTF-8''fine.txt"#,
                &["fine.txt", "evil.exe"][..],
            ),
            (r#"attachment; filename="evil.e\xe""#, &["xe", "evil.exe"]),
            ("attachment; filename*=UTF-8'evil.ex%65", &["evil.exe"]),
            (
                "attachment; filename=a; filename=b; filename=a",
                &["a", "b"],
            ),
            (
                "attachment; filename*=UTF-8''a; filename*=UTF-8''b",
                &["a", "b"],
            ),
            ("inline", &[]),
        ] {
            let names = disposition_names(value.as_bytes());
            let names: Vec<_> = names
                .iter()
                .map(|name| String::from_utf8_lossy(name))
                .collect();
            assert_eq!(names, want, "{value}");
        }
    }

    #[test]
    fn names_of_targets() {
        for (target, want) in [
            ("/", ""),
            ("/a/b%20c.mp3?x=/y", "b c.mp3"),
            ("/a/", ""),
            ("/a%2Fb#c", "a/b"),
            ("/100%", "100%"),
            ("/%4", "%4"),
            ("/%zz%41", "%zzA"),
            ("http://host.example", ""),
            ("http://host.example/x.iso", "x.iso"),
            ("http://host.example?u=/x", ""),
            ("host.example:443", ""),
            ("*", ""),
            ("/get/12/song%21.mp3", "song!.mp3"),
        ] {
            let name = target_name(target.as_bytes());
            assert_eq!(String::from_utf8_lossy(&name), want, "{target}");
        }
    }

    #[test]
    fn lengths_of_wholes() {
        for (value, want) in [
            ("bytes 0-99/1234", Some(1234)),
            ("Bytes */1234", Some(1234)),
            ("bytes=0-99/1234", Some(1234)),
            ("bytes 0-99/*", None),
            ("lines 0-9/10", None),
            ("bytes", None),
            ("", None),
        ] {
            assert_eq!(range_total(value.as_bytes()), want, "{value}");
        }
    }

    #[test]
    fn hosts_and_parameters() {
        for (host, want) in [
            ("a.example", "a.example"),
            ("a.example:8080", "a.example"),
            ("a.example:", "a.example"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("::1", "::1"),
            ("a:b", "a:b"),
        ] {
            assert_eq!(without_port(host.as_bytes()), want.as_bytes(), "{host}");
        }
        let value = b"multipart/form-data; charset=utf-8; Boundary=\"x y\"";
        assert_eq!(*parameter_value(value, b"boundary"), b"x y"[..]);
        assert_eq!(*parameter_value(value, b"name"), b""[..]);
    }

    proptest! {
        #[test]
        fn quoted_names_come_back(name in "[ -~&&[^/\\\\]]{1,40}") {
            let quoted = name.replace('"', "\\\"");
            let value = format!("attachment; filename=\"{quoted}\"");
            prop_assert_eq!(&*disposition_name(value.as_bytes()), name.as_bytes());
        }

        #[test]
        fn encoded_names_come_back(name in proptest::collection::vec(any::<u8>(), 0..40)) {
            let target: String = name.iter().map(|byte| format!("%{byte:02x}")).collect();
            let target = format!("/a/{target}");
            prop_assert_eq!(&*target_name(target.as_bytes()), &name);
        }

        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(prop_oneof![Just(b'"'), Just(b'\\'), Just(b';'), Just(b'='), Just(b'%'), Just(b'\''), any::<u8>()], 0..80)) {
            let value = [&b"attachment; filename*="[..], &bytes].concat();
            // ISO-8859-1 takes two bytes of UTF-8 for one.
            prop_assert!(disposition_name(&value).len() <= 2 * value.len());
            prop_assert!(target_name(&bytes).len() <= bytes.len());
            prop_assert!(without_port(&bytes).len() <= bytes.len());
            prop_assert!(range_total(&bytes).is_none() || bytes.contains(&b'/'));
        }
    }
}
