//! Text of the network as valid UTF-8, by the rule of the `jsonl` output.
//!
//! A byte that is not part of a valid UTF-8 sequence becomes the four characters `\xHH`, and so does
//! a backslash that is followed by `x` and two hexadecimal digits. The original bytes are had back by
//! replacing every `\xHH` by that byte. Control characters stay as they are.

/// The text, which stands in `scratch` where it is not taken as it is.
#[inline]
pub(crate) fn valid<'a>(bytes: &'a [u8], scratch: &'a mut String) -> &'a str {
    // No early exit: vectorises.
    let has_backslash = bytes.iter().fold(false, |has, byte| has | (*byte == b'\\'));
    match std::str::from_utf8(bytes) {
        // The usual case.
        Ok(text) if !has_backslash => text,
        _ => {
            scratch.clear();
            escape(bytes, scratch);
            scratch
        }
    }
}

#[cold]
fn escape(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some((before, after)) = rest.split_once('\\') {
            out.push_str(before);
            match after.as_bytes() {
                [b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    out.push_str("\\x5c");
                }
                _ => out.push('\\'),
            }
            rest = after;
        }
        out.push_str(rest);
        for byte in chunk.invalid() {
            out.push_str("\\x");
            out.extend([byte >> 4, byte & 15].map(digit));
        }
    }
}

/// The lower-case hexadecimal digit of a number below 16.
fn digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::builder::StringBuilder;

    #[test]
    fn what_is_no_utf8_is_escaped_and_can_be_had_back() {
        let cases: [(&[u8], &str); 8] = [
            (b"", ""),
            (b"plain", "plain"),
            ("zażółć".as_bytes(), "zażółć"),
            (b"a\xffb", "a\\xffb"),
            (b"\\x5c", "\\x5cx5c"),
            (b"C:\\dir\\xyz", "C:\\dir\\xyz"),
            (b"\xc3\\xfe\xe2\x82", "\\xc3\\x5cxfe\\xe2\\x82"),
            (b"tab\tand\x00", "tab\tand\0"),
        ];
        let mut builder = StringBuilder::new();
        let mut scratch = String::new();
        for (bytes, _) in cases {
            builder.append_value(valid(bytes, &mut scratch));
        }
        let array = builder.finish();
        assert_eq!(array.null_count(), 0);
        for (at, (_, expected)) in cases.iter().enumerate() {
            assert_eq!(array.value(at), *expected);
        }
    }
}
