//! `jsonl`: one JSON object (RFC 8259) a line, with all fields of the kind in the schema's order.
//!
//! What is not there is `null`; numbers, times and spans (nanoseconds) are integers; addresses are
//! strings. Text from the network need not be UTF-8, JSON must be: a byte that is not part of a
//! valid UTF-8 sequence becomes the four characters `\xHH` in the string (as in Zeek's JSON), and so
//! does a backslash that is followed by `x` and two hexadecimal digits. The original bytes are
//! thus had back by replacing every `\xHH` of the decoded string by that byte.

use linkweir_record::escape::hex;
use linkweir_record::{RecordKind, Value};

use crate::escape::{Piece, is_clean, push_digits};
use crate::format::{Encoder, Shapes, all_columns};
use crate::number::{push_ip, push_millis6, push_u64};

/// Writes objects. The keys with their punctuation are made once.
#[derive(Debug)]
pub(crate) struct JsonlEncoder {
    members: Shapes<Member>,
}

/// A member of an object: its key, and the column with its value.
#[derive(Debug)]
struct Member {
    key: Piece,
    column: usize,
}

impl JsonlEncoder {
    /// Writes whole objects with these members.
    pub(crate) fn new<K: RecordKind>(chosen: &[usize]) -> Self {
        Self::after::<K>('{', chosen)
    }

    /// Writes the rest of objects that have been opened and have a key already.
    pub(crate) fn inside<K: RecordKind>() -> Self {
        Self::after::<K>(',', &all_columns::<K>())
    }

    fn after<K: RecordKind>(first: char, chosen: &[usize]) -> Self {
        let member = |(at, column): (usize, usize)| {
            let lead = if at == 0 { first } else { ',' };
            let name = K::fields().get(column).map_or("", |field| field.name);
            Member {
                key: Piece::new(&format!("{lead}\"{name}\":")),
                column,
            }
        };
        let members = |shape: usize| {
            let columns = chosen.iter().copied();
            let columns = columns.filter(|column| K::has_column(shape, *column));
            columns.enumerate().map(member).collect()
        };
        Self {
            members: Shapes::new::<K>(members),
        }
    }
}

impl<K: RecordKind> Encoder<K> for JsonlEncoder {
    fn record(&mut self, view: &K::View<'_>, out: &mut Vec<u8>) {
        for member in self.members.of::<K>(view) {
            member.key.push(out);
            match K::value(view, member.column) {
                Value::Null => out.extend_from_slice(b"null"),
                Value::U64(n) | Value::TimeNs(n) | Value::SpanNs(n) => push_u64(out, n),
                Value::Millis(n) => push_millis6(out, n),
                Value::Port(port) => push_u64(out, u64::from(port)),
                Value::Ip(address) => {
                    out.push(b'"');
                    push_ip(out, address);
                    out.push(b'"');
                }
                Value::Text(bytes) => push_string(out, bytes),
                Value::Short(short) => push_string(out, short.as_bytes()),
                Value::Word(word) => {
                    out.push(b'"');
                    out.extend_from_slice(word.as_bytes());
                    out.push(b'"');
                }
                Value::Bytes(bytes) => {
                    out.push(b'"');
                    push_digits(out, bytes);
                    out.push(b'"');
                }
            }
        }
        out.extend_from_slice(b"}\n");
    }
}

#[inline]
const fn is_special(byte: u8) -> bool {
    (byte.wrapping_sub(0x20) > 0x5e) | (byte == b'"') | (byte == b'\\')
}

/// A string with its quotes.
#[inline]
pub(crate) fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    if is_clean(bytes, is_special) {
        out.extend_from_slice(bytes);
    } else {
        push_slow(out, bytes);
    }
    out.push(b'"');
}

#[cold]
fn push_slow(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid().as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if byte == 0xc2
                && let [control @ 0x80..=0x9f, after @ ..] = after
            {
                // U+0080 to U+009F: some terminals act on them.
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&hex(*control));
                rest = after;
            } else {
                push_char_byte(out, byte, after);
            }
        }
        for &byte in chunk.invalid() {
            out.push(b'\\');
            crate::escape::push_hex(out, byte);
        }
    }
}

/// One byte of valid UTF-8, and what follows it.
fn push_char_byte(out: &mut Vec<u8>, byte: u8, after: &[u8]) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => match after {
            [b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.extend_from_slice(b"\\\\x5c");
            }
            _ => out.extend_from_slice(b"\\\\"),
        },
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0..=0x1f | 0x7f => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&hex(byte));
        }
        _ => out.push(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unescape(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            if let [b'\\', b'x', a, b, ..] = rest
                && a.is_ascii_hexdigit()
                && b.is_ascii_hexdigit()
            {
                let digits = String::from_utf8(vec![*a, *b]).unwrap();
                out.push(u8::from_str_radix(&digits, 16).unwrap());
                rest = &rest[4..];
            } else {
                out.push(byte);
                rest = after;
            }
        }
        out
    }

    proptest! {
        #[test]
        fn strings_are_json_and_come_back(bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            "[ -~]{0,30}".prop_map(String::into_bytes),
            "([\\\\x5c\"é]|\\\\xff){0,12}".prop_map(String::into_bytes),
        ]) {
            let mut out = Vec::new();
            push_string(&mut out, &bytes);
            let text: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(unescape(&text), bytes);
        }
    }
}
